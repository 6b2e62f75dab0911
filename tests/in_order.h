// The sum of one element of a result, by naive loops over indices: what the library computes must
// have the same bits. The order of the terms is a parameter.
#ifndef CONVGRAD_TESTS_IN_ORDER_H_
#define CONVGRAD_TESTS_IN_ORDER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/bits_case.h"

namespace convgrad::tests {

inline int64_t RoundedUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The length of blocks of at most `most` that are as even as can be.
inline int64_t EvenBlock(int64_t extent, int64_t most) {
  return extent == 0 ? 1 : RoundedUp(extent, RoundedUp(extent, most));
}

// A dense tensor (n or o, c or i, x...), rank 3 after the first two.
struct Volume {
  std::vector<float> values;
  int64_t channels = 1;
  std::array<int64_t, 3> extents{1, 1, 1};

  explicit Volume(const tools::TensorBuffer& buffer) {
    const Dims& all = buffer.desc().extents;
    if (all.size() > 1) channels = all[1];  // else a bias
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

// Of one term.
struct Factors {
  float a, b;
};

// Chunks of at most 432 terms, each a chain of fused multiply-adds from zero, added in order.
// term(outer, inner) -> Factors.
struct FusedSums {
  static constexpr int64_t kLongest = 432;
  static constexpr int64_t kTinyImage = 64;

  float from = 0;  // what the element was, times beta

  template <class Term>
  float OfChannelsAndTaps(int64_t channels, int64_t taps, int64_t /*most_taps*/,
                          const Term& term) const {
    const int64_t tap_block = EvenBlock(taps, kLongest);
    const int64_t most = std::max<int64_t>(1, kLongest / tap_block);
    int64_t channel_block = EvenBlock(channels, most);
    if (most >= 4) channel_block = std::min(RoundedUp(channel_block, 4) * 4, most / 4 * 4);
    float sum = from;
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
  float OfImagesAndPixels(int64_t images, int64_t pixels, int64_t /*line*/,
                          const Term& term) const {
    const bool tiny = pixels < kTinyImage;
    const int64_t block = EvenBlock(pixels, kLongest);
    float sum = from;
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
};

// Sums have OfChannelsAndTaps, given the taps of the element's phase and the most that any has, and
// OfImagesAndPixels, given the pixels of a line.
class InOrder {
 public:
  InOrder(const BitsProblem& p, OpKind kind, BitsCase& item)
      : p_(p), kind_(kind), x_(item.x().buffer), w_(item.w().buffer), y_(item.y().buffer) {
    const size_t first = 3 - p.rank();
    for (size_t a = 0; a < p.rank(); ++a) {
      stride_[first + a] = p.stride[a];
      dilation_[first + a] = p.dilation[a];
      pad_[first + a] = p.pad[a];
    }
  }

  template <class Sums>
  auto Fprop(const Sums& sums, int64_t n, int64_t o, const std::array<int64_t, 3>& at) const {
    const int64_t group = o / (p_.o / p_.groups), channels = w_.channels;
    return sums.OfChannelsAndTaps(channels, w_.pixels(), w_.pixels(), [&](int64_t c, int64_t t) {
      const auto tap = w_.PixelAt(t);
      return Factors{x_.At(n, group * channels + c, In(at, tap)), w_.At(o, c, tap)};
    });
  }

  // Only taps whose stride meets the position are terms, inside y or not.
  template <class Sums>
  auto Dgrad(const Sums& sums, int64_t n, int64_t c, const std::array<int64_t, 3>& at) const {
    const int64_t group = c / w_.channels, o_of_group = p_.o / p_.groups;
    std::vector<std::array<int64_t, 3>> taps;
    for (const int64_t t0 : TapsAt(0, at)) {
      for (const int64_t t1 : TapsAt(1, at)) {
        for (const int64_t t2 : TapsAt(2, at)) taps.push_back({t0, t1, t2});
      }
    }
    const int64_t count = static_cast<int64_t>(taps.size());
    return sums.OfChannelsAndTaps(o_of_group, count, MostTaps(), [&](int64_t o, int64_t t) {
      const auto& tap = taps[static_cast<size_t>(t)];
      std::array<int64_t, 3> out;
      for (size_t a = 0; a < 3; ++a) {
        out[a] = (at[a] + pad_[a] - tap[a] * dilation_[a]) / stride_[a];
      }
      const int64_t all = group * o_of_group + o;
      return Factors{y_.At(n, all, out), w_.At(all, c % w_.channels, tap)};
    });
  }

  template <class Sums>
  auto Wgrad(const Sums& sums, int64_t o, int64_t c, const std::array<int64_t, 3>& tap) const {
    const int64_t group = o / (p_.o / p_.groups);
    return sums.OfImagesAndPixels(
        p_.batch, y_.pixels(), PixelsOfLine(), [&](int64_t image, int64_t pixel) {
          const auto out = y_.PixelAt(pixel);
          return Factors{x_.At(image, group * w_.channels + c, In(out, tap)), y_.At(image, o, out)};
        });
  }

  // The bias gradients: of Convolution sums y, of ConvTranspose x.
  template <class Sums>
  auto Plain(const Sums& sums, const Volume& of, int64_t channel) const {
    return sums.OfImagesAndPixels(p_.batch, of.pixels(), of.extents[2],
                                  [&](int64_t image, int64_t pixel) {
                                    return Factors{1.0f, of.At(image, channel, of.PixelAt(pixel))};
                                  });
  }

  // An element of the operation's first result.
  template <class Sums>
  auto Element(const Sums& sums, int64_t first, int64_t second,
               const std::array<int64_t, 3>& at) const {
    if (WritesWeights(kind_)) return Wgrad(sums, first, second, at);
    const bool writes_x =
        kind_ == OpKind::kConvolutionBackwardData || kind_ == OpKind::kConvTranspose;
    return writes_x ? Dgrad(sums, first, second, at) : Fprop(sums, first, second, at);
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
    const double most = w_.channels <= 4 && p_.o / p_.groups > 16 ? 2.25 : 2;
    return w_.channels <= 8 && phases > 1 && phases <= 4096 && work <= most;
  }
  int64_t FirstShared(size_t a) const {
    return pad_[a] - (stride_[a] - 1 + pad_[a]) / stride_[a] * stride_[a];
  }
  int64_t SharedTaps(size_t a) const {
    return (w_.extents[a] - 1 - FirstShared(a)) / stride_[a] + 1;
  }
  // Of the phase of dgrad that has most.
  int64_t MostTaps() const {
    int64_t most = 1;
    for (size_t a = 0; a < 3; ++a) {
      const bool shared = stride_[a] > 1 && PhasesShareTaps();
      most *= shared ? SharedTaps(a)
                     : RoundedUp(w_.extents[a], stride_[a] / std::gcd(stride_[a], dilation_[a]));
    }
    return most;
  }
  // One tap reads every position, in order.
  bool IsPlain(size_t a) const {
    return w_.extents[a] == 1 && pad_[a] == 0 && stride_[a] == 1 && x_.extents[a] == y_.extents[a];
  }
  // Along the last axis that is more than one pixel seen through one tap.
  int64_t PixelsOfLine() const {
    size_t a = 2;
    while (a > 0 && y_.extents[a] == 1 && IsPlain(a)) --a;
    return y_.extents[a];
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
  OpKind kind_;
  Volume x_, w_, y_;
  std::array<int64_t, 3> stride_{1, 1, 1}, dilation_{1, 1, 1}, pad_{0, 0, 0};
};

// The nearest number of a type.
inline float RoundedTo(DataType type, float sum) {
  return VisitFloat(
      type, [&](auto zero) { return Widen(Narrow<decltype(zero)>(static_cast<double>(sum))); });
}

// visit(i, first, second, at) for at most about 300 elements: the last and some before it.
template <class Visit>
void ForSomeElements(const tools::TensorBuffer& tensor, const Visit& visit) {
  const Volume volume(tensor);
  const int64_t pixels = volume.pixels(), count = tensor.elements();
  const int64_t step = std::max<int64_t>(1, count / 300);
  for (int64_t i = count - 1; i >= 0; i -= step) {
    const int64_t outer = i / pixels;
    visit(i, outer / volume.channels, outer % volume.channels, volume.PixelAt(i % pixels));
    if (testing::Test::HasFatalFailure()) return;
  }
}

inline void ExpectElement(const tools::TensorBuffer& got, int64_t i, float sum,
                          const std::string& what) {
  const float value = static_cast<float>(got.At(i)), expected = RoundedTo(got.desc().type, sum);
  ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected))
      << what << " element " << i << ": " << value << ", not " << expected;
}

// A result and its bias, of a case that has not run yet.
template <class Sums>
void ExpectInOrder(const BitsProblem& p, OpKind kind, BitsCase& item) {
  const InOrder in_order(p, kind, item);
  const std::vector<float> bias = item.BiasValues();
  ASSERT_NE(item.Run({.threads = 1}), 0u);
  const std::string what = p.name + " " + std::string(NameOf(kind));
  using At = std::array<int64_t, 3>;
  const tools::TensorBuffer& got = item.output().buffer;
  ForSomeElements(got, [&](int64_t i, int64_t first, int64_t second, const At& at) {
    const float plus = IsForward(kind) ? bias[static_cast<size_t>(second)] : 0.0f;
    ExpectElement(got, i, in_order.Element(Sums{}, first, second, at) + plus, what);
  });
  if (!WritesWeights(kind)) return;
  // Sums of single values are fused sums, whatever products are summed by.
  const Volume& of = IsTranspose(kind) ? in_order.x() : in_order.y();
  ForSomeElements(item.bias(), [&](int64_t i, int64_t channel, int64_t, const At&) {
    ExpectElement(item.bias(), i, in_order.Plain(FusedSums{}, of, channel), what + " bias");
  });
}

// The last bits of a sum are not in a result of 16 bits, unless the first ones are gone: onto
// results that are minus the sum, rounded. Of a case without bias that has not run yet.
template <class Sums>
void ExpectRestInOrder(const BitsProblem& p, OpKind kind, BitsCase& item) {
  const InOrder in_order(p, kind, item);
  tools::TensorBuffer& got = item.output().buffer;
  for (int64_t i = 0; i < got.elements(); ++i) got.Set(i, 0);
  using At = std::array<int64_t, 3>;
  ForSomeElements(got, [&](int64_t i, int64_t first, int64_t second, const At& at) {
    const float sum = in_order.Element(Sums{}, first, second, at);
    if (sum != 0) got.Set(i, -static_cast<double>(sum));
  });
  const tools::TensorBuffer before = got;
  ASSERT_NE(item.Run({.threads = 1, .beta = 1}), 0u);
  ForSomeElements(got, [&](int64_t i, int64_t first, int64_t second, const At& at) {
    const Sums sums{.from = static_cast<float>(before.At(i))};
    ExpectElement(got, i, in_order.Element(sums, first, second, at),
                  p.name + " " + std::string(NameOf(kind)) + ", the rest,");
  });
}

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_IN_ORDER_H_
