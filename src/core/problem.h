// The canonical problem: y = x * w, and which of the three is written. Step 3 of the story ends
// here and everything below starts here. Formats are strides, ranks below 3 have unit axes, and
// nothing from here on knows the words src, NXC, OIX or transpose.
#ifndef CONVGRAD_CORE_PROBLEM_H_
#define CONVGRAD_CORE_PROBLEM_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "convgrad/types.h"
#include "core/window.h"

namespace convgrad {

// What is written: y (fprop), x (dgrad) or w (wgrad).
enum class Pass { kFprop, kDgrad, kWgrad };

constexpr std::string_view NameOf(Pass pass) {
  return pass == Pass::kFprop ? "fprop" : pass == Pass::kDgrad ? "dgrad" : "wgrad";
}

constexpr int kAxes = 3;  // depth, height, width

// x or y: [batch, groups * channels, in or out...], strides in elements.
struct PixelStrides {
  int64_t n = 0;
  int64_t c = 0;
  std::array<int64_t, kAxes> s{};

  bool operator==(const PixelStrides&) const = default;
};

// w: [groups, co, ci, taps...], strides in elements.
struct WeightStrides {
  int64_t g = 0;
  int64_t co = 0;
  int64_t ci = 0;
  std::array<int64_t, kAxes> s{};

  bool operator==(const WeightStrides&) const = default;
};

// fprop, dgrad: one value per output channel, added. wgrad: written, the sum of y, or of x, over
// batch and pixels.
struct Bias {
  bool present = false;
  bool sums_x = false;  // wgrad only
  int64_t stride = 1;
  bool alone = false;  // wgrad only: w is not written

  bool operator==(const Bias&) const = default;
};

// wgrad only: every image has a w, and a sum for the bias, of its own, so many elements apart.
struct PerSample {
  bool present = false;
  int64_t w = 0;
  int64_t bias = 0;

  bool operator==(const PerSample&) const = default;
};

struct Problem {
  Pass pass = Pass::kFprop;
  DataType type = DataType::kF32;  // of every operand that is read
  // Of what the pass writes, and of what it adds to where beta is not 0: `type`, but a wgrad of
  // bf16 or f16 may write w and bias_out as f32.
  DataType out_type = DataType::kF32;
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t ci = 1;  // channels of x in one group
  int64_t co = 1;  // channels of y in one group
  std::array<Axis, kAxes> axes;
  PixelStrides x;
  WeightStrides w;
  PixelStrides y;
  Bias bias;
  PerSample per_sample;

  // Results of a wgrad, each the sum over its own images.
  int64_t samples() const { return per_sample.present ? batch : 1; }

  bool operator==(const Problem&) const = default;
};

// The pointers of one run. The one that `pass` writes is not const in truth.
struct Operands {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* y = nullptr;
  const void* bias = nullptr;  // fprop, dgrad
  void* out = nullptr;         // x, w or y
  void* bias_out = nullptr;    // wgrad
};

// An element of an operand; null stays null.
inline const void* At(const void* base, DataType type, int64_t index) {
  return base == nullptr ? nullptr : static_cast<const char*>(base) + index * SizeOf(type);
}
inline void* At(void* base, DataType type, int64_t index) {
  return const_cast<void*>(At(static_cast<const void*>(base), type, index));
}

// Multiply-adds with both factors inside their tensors, as a double: it may exceed 2^63.
inline double CountMultiplyAdds(const Problem& p) {
  if (p.bias.alone) return 0;
  double count = static_cast<double>(p.batch) * static_cast<double>(p.groups) *
                 static_cast<double>(p.ci) * static_cast<double>(p.co);
  for (const Axis& axis : p.axes) count *= CountPairs(axis);
  return count;
}

// Bytes of x, w and y, each touched once; of a bias gradient alone, those that it sums.
inline double CountBytes(const Problem& p) {
  double x = static_cast<double>(p.batch) * static_cast<double>(p.groups * p.ci);
  double y = static_cast<double>(p.batch) * static_cast<double>(p.groups * p.co);
  double w = static_cast<double>(p.groups * p.ci) * static_cast<double>(p.co);
  for (const Axis& axis : p.axes) {
    x *= static_cast<double>(axis.in);
    y *= static_cast<double>(axis.out);
    w *= static_cast<double>(axis.taps);
  }
  if (p.bias.alone) return (p.bias.sums_x ? x : y) * static_cast<double>(SizeOf(p.type));
  const DataType w_type = p.pass == Pass::kWgrad ? p.out_type : p.type;
  w *= static_cast<double>(p.samples());
  return (x + y) * static_cast<double>(SizeOf(p.type)) + w * static_cast<double>(SizeOf(w_type));
}

// Strides of a dense [batch, channel, pixels...] x and y and a dense [g, co, ci, taps...] w, and of
// one such w and bias after another, image by image: what the text form leaves out.
void SetDenseStrides(Problem& problem);

}  // namespace convgrad

#endif  // CONVGRAD_CORE_PROBLEM_H_
