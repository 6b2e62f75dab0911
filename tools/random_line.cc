#include "tools/random_line.h"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string_view>

#include "core/text.h"

namespace convgrad::tools {
namespace {

// In the words of a convolution: of a transposed one src is `out` and dst is `in`.
struct Axis {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_begin = 0, pad_end = 0;
  int64_t rest = 0;  // of the input, beyond the last window

  int64_t reach() const { return (kernel - 1) * dilation + 1; }
};

enum class Channels { kDense, kDepthwise, kMultiplier, kSmallGroups, kFew };

std::string_view NameOf(Channels channels) {
  switch (channels) {
    case Channels::kDense:
      break;
    case Channels::kDepthwise:
      return "depthwise";
    case Channels::kMultiplier:
      return "multiplier";
    case Channels::kSmallGroups:
      return "small-groups";
    case Channels::kFew:
      return "few-channels";
  }
  return "dense";
}

int64_t Power(int64_t base, size_t exponent) {
  int64_t power = 1;
  for (size_t i = 0; i < exponent; ++i) power *= base;
  return power;
}

// Images of a pixel and few channels come in batches of thousands, not of millions.
constexpr int64_t kMostBatch = 4096;

// Pairs of an output and a tap that meet the input.
int64_t Products(const Axis& axis) {
  int64_t products = 0;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t offset = tap * axis.dilation - axis.pad_begin;  // of the first window's tap
    const int64_t first = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
    const int64_t end = offset >= axis.in ? 0 : (axis.in - 1 - offset) / axis.stride + 1;
    products += std::max<int64_t>(0, std::min(end, axis.out) - first);
  }
  return products;
}

// The largest r with r^degree <= value.
int64_t Root(int64_t value, size_t degree) {
  if (degree == 1) return value;
  int64_t root = 1;
  while (Power(root + 1, degree) <= value) ++root;
  return root;
}

int64_t Half(int64_t value) { return (value + 1) / 2; }

// The engine is the same everywhere; the standard's distributions and floating point are not.
class LineMaker {
 public:
  explicit LineMaker(uint64_t seed) : random_(seed) {}

  std::string Next() {
    groups_ = ci_ = co_ = batch_ = 1;
    transposed_ = OneIn(3);
    DrawChannels();
    axes_.assign(OneIn(2) ? 2 : OneIn(2) ? 1 : 3, Axis());
    DrawKernels();
    DrawStridesAndDilations();
    const int64_t work = DrawWork();
    DrawExtents(work);
    DrawPads();
    MakeUpForPads(work);
    while (Bytes() > kMostRandomBytes) Shrink();
    return Options() + " " + Descriptor();
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <class Value>
  Value Of(std::initializer_list<Value> values) {
    return values.begin()[Below(static_cast<int64_t>(values.size()))];
  }

  // Powers of two are even on the scale of logarithms; between two of them it is nearly so.
  int64_t DrawWork() {
    const int64_t octave = kLeastRandomFlops << Below(12);
    static_assert(kLeastRandomFlops << 12 == kMostRandomFlops);
    return octave + octave / 1024 * Below(1024);
  }

  void DrawChannels() {
    using enum Channels;
    channels_ = Of({kDense, kDense, kDense, kDense, kDepthwise, kDepthwise, kMultiplier,
                    kSmallGroups, kSmallGroups, kFew, kFew});
    const auto many = [&] {
      return Of<int64_t>({3, 5, 8, 16, 24, 32, 33, 64, 96, 144, 192, 256, 384, 768, 1024, 2048});
    };
    switch (channels_) {
      case kDense:
        ci_ = Of<int64_t>({16, 17, 24, 32, 33, 48, 64, 96, 128, 192, 256, 512, 1024});
        co_ = Of<int64_t>({16, 17, 24, 32, 33, 48, 64, 96, 128, 192, 256, 512, 1024});
        break;
      case kDepthwise:
        groups_ = many();
        break;
      case kMultiplier:
        groups_ = many();
        (OneIn(4) ? ci_ : co_) = Between(2, 4);
        break;
      case kSmallGroups:
        groups_ = Of<int64_t>({2, 3, 4, 8, 16, 32, 64});
        ci_ = Of<int64_t>({2, 3, 4, 8, 16});
        co_ = OneIn(2) ? ci_ : Of<int64_t>({2, 3, 4, 8, 16});
        break;
      case kFew:
        ci_ = Between(1, 4);
        co_ = OneIn(4) ? Between(1, 4) : Of<int64_t>({8, 16, 32, 33, 64, 128});
        if (OneIn(3)) std::swap(ci_, co_);
        if (OneIn(10)) ci_ = co_ = 1;
        break;
    }
  }

  void DrawKernels() {
    long_ = axes_.size() == 1 && OneIn(5);
    if (long_) {
      axes_[0].kernel = Of<int64_t>({64, 200, 256, 400, 1024});
      return;
    }
    const bool alike = !OneIn(4);
    // Most kernels of three axes are small; one in eight may have 1331 taps.
    const bool small = axes_.size() == 3 && !OneIn(8);
    const auto draw = [&] {
      return small ? Of<int64_t>({1, 2, 3, 3, 3, 4, 5})
                   : Of<int64_t>({1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 10, 11});
    };
    const int64_t kernel = draw();
    for (Axis& axis : axes_) axis.kernel = alike ? kernel : draw();
  }

  int64_t DrawStride(int64_t kernel) {
    if (long_) return Of<int64_t>({1, kernel / 4, kernel / 4, kernel / 2, kernel});
    if (OneIn(12)) return kernel + Between(1, 3);
    return OneIn(2) ? 1 : Of<int64_t>({1, 2, 2, 2, 3, 4});
  }

  int64_t DrawDilation() {
    return long_ || !OneIn(4) ? 1 : Of<int64_t>({2, 2, 3, 4, 8, 16, 32, 64});
  }

  void DrawStridesAndDilations() {
    const bool alike = !OneIn(4);
    for (Axis& axis : axes_) {
      axis.stride = DrawStride(axis.kernel);
      axis.dilation = DrawDilation();
      if (!alike) continue;
      axis.stride = axes_[0].stride;
      axis.dilation = axes_[0].dilation;
    }
  }

  int64_t Taps() const {
    int64_t taps = 1;
    for (const Axis& axis : axes_) taps *= axis.kernel;
    return taps;
  }

  // Of one position of one image.
  int64_t FlopsOfPosition() const { return 2 * groups_ * ci_ * co_ * Taps(); }

  void HalveChannels() {
    int64_t& most = groups_ > 1 ? groups_ : ci_ > co_ ? ci_ : co_;
    most = Half(most);
  }

  // Batch and extents that make up the work: one large image, a usual batch, or images of a few
  // pixels or of one with as large a batch as it takes, up to kMostBatch.
  void DrawExtents(int64_t work) {
    enum { kOneImage, kBatch, kTiny, kPixel };
    const auto form =
        Of({kOneImage, kOneImage, kOneImage, kBatch, kBatch, kBatch, kBatch, kTiny, kTiny, kPixel});
    const int64_t least = form == kPixel || OneIn(8) ? 1 : 64;
    while (FlopsOfPosition() > work / least && groups_ * ci_ * co_ > 1) HalveChannels();
    int64_t positions = std::max<int64_t>(1, work / FlopsOfPosition());
    if (form == kTiny || form == kPixel) {
      for (Axis& axis : axes_) {
        const int64_t extent = form == kPixel ? 1 : Between(1, axes_.size() == 1 ? 60 : 7);
        axis.out = std::min(positions, extent);
        positions /= axis.out;
      }
      batch_ = std::min(positions, kMostBatch);
      return;
    }
    if (form == kBatch) batch_ = std::min(positions, Of<int64_t>({2, 3, 4, 8, 16, 32, 64}));
    positions = std::max<int64_t>(1, positions / batch_);
    for (size_t a = 0; a < axes_.size(); ++a) {
      const size_t left = axes_.size() - a;
      const int64_t even = Root(positions, left);
      axes_[a].out = left == 1 ? even : std::max<int64_t>(1, even * Between(2, 6) / 4);
      positions = std::max<int64_t>(1, positions / axes_[a].out);
    }
  }

  // None, as many at both ends as keep the extent, all at one end, any, or wider than the reach.
  void DrawPads() {
    const int64_t kind = Below(8);
    for (Axis& axis : axes_) {
      const int64_t most = axis.reach() - 1;
      if (kind >= 1 && kind <= 4) {
        axis.pad_begin = most / 2;
        axis.pad_end = most - most / 2;
      } else if (kind == 5) {
        (OneIn(2) ? axis.pad_begin : axis.pad_end) = most;
      } else if (kind >= 6) {
        axis.pad_begin = Below(kind == 6 ? most / 2 + 1 : 2 * most + 2);
        axis.pad_end = Below(kind == 6 ? most / 2 + 1 : 2 * most + 2);
      }
      if (OneIn(4)) axis.rest = Below(axis.stride);
      SolveIn(axis);
    }
  }

  // Products with pads are not counted: a batch is as much larger as they leave out.
  void MakeUpForPads(int64_t work) {
    int64_t flops = 2 * groups_ * ci_ * co_ * batch_;
    for (Axis& axis : axes_) {
      if (Products(axis) == 0) {
        axis.pad_begin = axis.pad_end = 0;
        SolveIn(axis);
      }
      flops *= Products(axis);
    }
    if (batch_ > 1) batch_ = std::min(kMostBatch, batch_ * std::max<int64_t>(1, work / flops));
  }

  // Pads that leave no input are halved.
  static void SolveIn(Axis& axis) {
    const int64_t span = (axis.out - 1) * axis.stride + axis.reach();
    while (span - axis.pad_begin - axis.pad_end < 1) {
      axis.pad_begin /= 2;
      axis.pad_end /= 2;
    }
    axis.in = span - axis.pad_begin - axis.pad_end + axis.rest;
  }

  int64_t Bytes() const {
    int64_t in = batch_ * groups_ * ci_, out = batch_ * groups_ * co_;
    for (const Axis& axis : axes_) {
      in *= axis.in;
      out *= axis.out;
    }
    return 4 * (in + out + groups_ * ci_ * co_ * Taps());
  }

  void Shrink() {
    const auto less = [](const Axis& a, const Axis& b) { return a.out < b.out; };
    Axis& longest = *std::max_element(axes_.begin(), axes_.end(), less);
    if (batch_ > 1) {
      batch_ = Half(batch_);
    } else if (longest.out > 1) {
      longest.out = Half(longest.out);
      SolveIn(longest);
    } else {
      HalveChannels();
    }
  }

  std::string Options() {
    const char* direction = Of({"FWD_D", "FWD_B", "BWD_D", "BWD_D", "BWD_W", "BWD_WB"});
    const char* type = Of({"f32", "f32", "bf16", "f16"});
    const char* tag = Of({"abx", "axb"});
    const char* weights_tag = Of({"any", "any", "xba"});
    return Join(transposed_ ? "--deconv" : "--conv", " --dir=", direction, " --dt=", type,
                " --stag=", tag, " --wtag=", weights_tag, " --dtag=", tag);
  }

  std::string Descriptor() const {
    const std::string_view letters = std::string_view("dhw").substr(3 - axes_.size());
    const auto list = [&](char kind, auto number) {
      std::string text;
      for (size_t a = 0; a < axes_.size(); ++a) text += Join(kind, letters[a], number(axes_[a]));
      return text;
    };
    const auto in = [](const Axis& axis) { return axis.in; };
    const auto out = [](const Axis& axis) { return axis.out; };
    std::string text = Join("g", groups_, "mb", batch_);
    if (transposed_) {
      text += Join("_ic", groups_ * co_, list('i', out), "_oc", groups_ * ci_, list('o', in));
    } else {
      text += Join("_ic", groups_ * ci_, list('i', in), "_oc", groups_ * co_, list('o', out));
    }
    text += "_" + list('k', [](const Axis& axis) { return axis.kernel; });
    text += "_" + list('s', [](const Axis& axis) { return axis.stride; });
    text += "_" + list('p', [](const Axis& axis) { return axis.pad_begin; });
    text += "_" + list('d', [](const Axis& axis) { return axis.dilation - 1; });
    return Join(text, "_n\"random:", NameOf(channels_), "\"");
  }

  std::mt19937_64 random_;
  bool transposed_ = false, long_ = false;
  Channels channels_ = Channels::kDense;
  int64_t groups_ = 1, ci_ = 1, co_ = 1, batch_ = 1;  // channels of a group
  std::vector<Axis> axes_;
};

}  // namespace

std::vector<std::string> RandomLines(uint64_t seed, int count) {
  LineMaker maker(seed);
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) lines.push_back(maker.Next());
  return lines;
}

}  // namespace convgrad::tools
