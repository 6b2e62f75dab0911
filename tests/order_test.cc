// The order of a sum, written down a second time: chunks of at most 432 terms, each a chain of
// fused multiply-adds from zero, added in order. Naive loops over indices; what the library
// computes in f32 must have the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tests/bits_table.h"

namespace convgrad::tests {
namespace {

constexpr int64_t kLongest = 432;
constexpr int64_t kTinyImage = 64;

int64_t RoundedUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The length of blocks of at most `most` that are as even as can be.
int64_t EvenBlock(int64_t extent, int64_t most) {
  return extent == 0 ? 1 : RoundedUp(extent, RoundedUp(extent, most));
}

// A dense tensor (n or o, c or i, x...), rank 3 after the first two.
struct Volume {
  std::vector<float> values;
  int64_t channels = 1;
  std::array<int64_t, 3> extents{1, 1, 1};

  explicit Volume(const tools::TensorBuffer& buffer) : channels(buffer.desc().extents[1]) {
    const Dims& all = buffer.desc().extents;
    for (size_t a = 2; a < all.size(); ++a) extents[3 - (all.size() - a)] = all[a];
    for (int64_t i = 0; i < buffer.elements(); ++i) {
      values.push_back(static_cast<float>(buffer.At(i)));
    }
  }
  int64_t pixels() const { return extents[0] * extents[1] * extents[2]; }
  float At(int64_t first, int64_t second, const std::array<int64_t, 3>& at) const {
    int64_t flat = first * channels + second;
    for (size_t a = 0; a < 3; ++a) {
      if (at[a] < 0 || at[a] >= extents[a]) return 0.0f;
      flat = flat * extents[a] + at[a];
    }
    return values[static_cast<size_t>(flat)];
  }
  std::array<int64_t, 3> PixelAt(int64_t flat) const {
    return {flat / (extents[1] * extents[2]), flat / extents[2] % extents[1], flat % extents[2]};
  }
};

// term(outer, inner) -> a pair of factors.
template <class Term>
float SumOfChannelsAndTaps(int64_t channels, int64_t taps, const Term& term) {
  const int64_t tap_block = EvenBlock(taps, kLongest);
  const int64_t most = std::max<int64_t>(1, kLongest / tap_block);
  int64_t channel_block = EvenBlock(channels, most);
  if (most >= 4) channel_block = std::min(RoundedUp(channel_block, 4) * 4, most / 4 * 4);
  float sum = 0;
  for (int64_t c0 = 0; c0 < channels; c0 += channel_block) {
    for (int64_t t0 = 0; t0 < taps; t0 += tap_block) {
      float chain = 0;
      for (int64_t t = t0; t < std::min(taps, t0 + tap_block); ++t) {
        for (int64_t c = c0; c < std::min(channels, c0 + channel_block); ++c) {
          const auto [a, b] = term(c, t);
          chain = std::fma(a, b, chain);
        }
      }
      sum += chain;
    }
  }
  return sum;
}

template <class Term>
float SumOfImagesAndPixels(int64_t images, int64_t pixels, const Term& term) {
  const bool tiny = pixels < kTinyImage;
  const int64_t block = EvenBlock(pixels, kLongest);
  float sum = 0;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t p0 = 0; p0 < pixels; p0 += block) {
      float chain = tiny ? sum : 0.0f;
      for (int64_t p = p0; p < std::min(pixels, p0 + block); ++p) {
        const auto [a, b] = term(image, p);
        chain = std::fma(a, b, chain);
      }
      sum = tiny ? chain : sum + chain;
    }
  }
  return sum;
}

class InOrder {
 public:
  InOrder(const BitsProblem& p, BitsCase& item)
      : p_(p), x_(item.x().buffer), w_(item.w().buffer), y_(item.y().buffer) {
    const size_t first = 3 - p.rank();
    for (size_t a = 0; a < p.rank(); ++a) {
      stride_[first + a] = p.stride[a];
      dilation_[first + a] = p.dilation[a];
      pad_[first + a] = p.pad[a];
    }
  }

  float Fprop(int64_t n, int64_t o, const std::array<int64_t, 3>& at) const {
    const int64_t group = o / (p_.o / p_.groups), channels = w_.channels;
    return SumOfChannelsAndTaps(channels, w_.pixels(), [&](int64_t c, int64_t t) {
      const auto tap = w_.PixelAt(t);
      return std::pair(x_.At(n, group * channels + c, In(at, tap)), w_.At(o, c, tap));
    });
  }

  // Only taps whose stride meets the position are terms, inside y or not.
  float Dgrad(int64_t n, int64_t c, const std::array<int64_t, 3>& at) const {
    const int64_t group = c / w_.channels, o_of_group = p_.o / p_.groups;
    std::vector<std::array<int64_t, 3>> taps;
    for (const int64_t t0 : TapsAt(0, at)) {
      for (const int64_t t1 : TapsAt(1, at)) {
        for (const int64_t t2 : TapsAt(2, at)) taps.push_back({t0, t1, t2});
      }
    }
    const int64_t count = static_cast<int64_t>(taps.size());
    return SumOfChannelsAndTaps(o_of_group, count, [&](int64_t o, int64_t t) {
      const auto& tap = taps[static_cast<size_t>(t)];
      std::array<int64_t, 3> out;
      for (size_t a = 0; a < 3; ++a) {
        out[a] = (at[a] + pad_[a] - tap[a] * dilation_[a]) / stride_[a];
      }
      const int64_t all = group * o_of_group + o;
      return std::pair(y_.At(n, all, out), w_.At(all, c % w_.channels, tap));
    });
  }

  float Wgrad(int64_t o, int64_t c, const std::array<int64_t, 3>& tap) const {
    const int64_t group = o / (p_.o / p_.groups);
    return SumOfImagesAndPixels(p_.batch, y_.pixels(), [&](int64_t image, int64_t pixel) {
      const auto out = y_.PixelAt(pixel);
      return std::pair(x_.At(image, group * w_.channels + c, In(out, tap)), y_.At(image, o, out));
    });
  }

  // The bias gradients: of Convolution sums y, of ConvTranspose x.
  float Plain(const Volume& of, int64_t channel) const {
    return SumOfImagesAndPixels(p_.batch, of.pixels(), [&](int64_t image, int64_t pixel) {
      return std::pair(1.0f, of.At(image, channel, of.PixelAt(pixel)));
    });
  }

  const Volume& x() const { return x_; }
  const Volume& y() const { return y_; }

 private:
  // Of few channels, the phases of a stride have one sum together: as many taps as the phase that
  // has most, from before the first of w to behind the last. Zeros, but they count in the chunks.
  bool PhasesShareTaps() const {
    double phases = 1, work = 1;
    for (size_t a = 0; a < 3; ++a) {
      if (stride_[a] == 1) continue;
      if (dilation_[a] != 1 || x_.extents[a] < stride_[a]) return false;
      phases *= static_cast<double>(stride_[a]);
      work *= static_cast<double>(SharedTaps(a) * stride_[a]) / static_cast<double>(w_.extents[a]);
    }
    return w_.channels <= 8 && phases > 1 && phases <= 4096 && work <= 2;
  }
  int64_t FirstShared(size_t a) const {
    return pad_[a] - (stride_[a] - 1 + pad_[a]) / stride_[a] * stride_[a];
  }
  int64_t SharedTaps(size_t a) const {
    return (w_.extents[a] - 1 - FirstShared(a)) / stride_[a] + 1;
  }
  std::vector<int64_t> TapsAt(size_t a, const std::array<int64_t, 3>& at) const {
    std::vector<int64_t> taps;
    if (stride_[a] > 1 && PhasesShareTaps()) {
      const int64_t first = FirstShared(a) + at[a] % stride_[a];
      for (int64_t t = 0; t < SharedTaps(a); ++t) taps.push_back(first + t * stride_[a]);
      return taps;
    }
    for (int64_t t = 0; t < w_.extents[a]; ++t) {
      if ((at[a] + pad_[a] - t * dilation_[a]) % stride_[a] == 0) taps.push_back(t);
    }
    return taps;
  }
  std::array<int64_t, 3> In(const std::array<int64_t, 3>& out,
                            const std::array<int64_t, 3>& tap) const {
    std::array<int64_t, 3> in;
    for (size_t a = 0; a < 3; ++a) in[a] = out[a] * stride_[a] + tap[a] * dilation_[a] - pad_[a];
    return in;
  }

  const BitsProblem& p_;
  Volume x_, w_, y_;
  std::array<int64_t, 3> stride_{1, 1, 1}, dilation_{1, 1, 1}, pad_{0, 0, 0};
};

// At most about 300 elements of each result: the first, the last and some between.
template <class Element>
void ExpectElements(const tools::TensorBuffer& got, const std::string& what, Element element) {
  const Volume volume(got);
  const int64_t pixels = volume.pixels(), count = got.elements();
  const int64_t step = std::max<int64_t>(1, count / 300);
  for (int64_t i = count - 1; i >= 0; i -= step) {
    const int64_t outer = i / pixels;
    const float expected =
        element(outer / volume.channels, outer % volume.channels, volume.PixelAt(i % pixels));
    ASSERT_EQ(std::bit_cast<uint32_t>(volume.values[static_cast<size_t>(i)]),
              std::bit_cast<uint32_t>(expected))
        << what << " element " << i;
  }
}

TEST(Order, IsTheOneThatIsWrittenDown) {
  for (const BitsRow& row : kBitsTable) {
    const BitsProblem& p = row.problem;
    for (const OpKind kind : kSixNames) {
      BitsCase item(p, kind, DataType::kF32, {}, true);
      const InOrder in_order(p, item);
      const std::vector<float> bias = item.BiasValues();
      const auto plus = [&](int64_t channel) {
        return IsForward(kind) ? bias[static_cast<size_t>(channel)] : 0.0f;
      };
      ASSERT_NE(item.Run({}), 0u);
      const std::string what = p.name + " " + std::string(NameOf(kind));
      using At = std::array<int64_t, 3>;
      ExpectElements(item.output().buffer, what, [&](int64_t first, int64_t second, const At& at) {
        if (WritesWeights(kind)) return in_order.Wgrad(first, second, at);
        if (&item.output() == &item.x()) return in_order.Dgrad(first, second, at) + plus(second);
        return in_order.Fprop(first, second, at) + plus(second);
      });
      if (!WritesWeights(kind)) continue;
      const std::vector<float> sums = item.BiasValues();
      const Volume& of = IsTranspose(kind) ? in_order.x() : in_order.y();
      for (size_t c = 0; c < sums.size(); ++c) {
        ASSERT_EQ(sums[c], in_order.Plain(of, static_cast<int64_t>(c))) << what << " bias " << c;
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
