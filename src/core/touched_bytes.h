// What a run has to read and write at least: the part of each operand that a product needs, all of
// what a bias gradient sums, and all of the result. The floor of a time, where memory is what it
// waits for.
#ifndef CONVGRAD_CORE_TOUCHED_BYTES_H_
#define CONVGRAD_CORE_TOUCHED_BYTES_H_

#include <algorithm>
#include <vector>

#include "core/problem.h"

namespace convgrad {

// Positions of one axis that are part of a product.
struct TouchedAxis {
  double in = 0, taps = 0, out = 0;
};

inline TouchedAxis TouchedOf(const Axis& axis) {
  // Longer lines than this are not gone through pixel by pixel: then those of the tap that meets
  // the most are counted, and no fewer are touched.
  constexpr int64_t kMostSteps = 1 << 22;
  const int64_t taps = std::min(axis.taps, kMostSteps);
  const bool all = axis.in <= kMostSteps && axis.out <= kMostSteps / taps;
  std::vector<bool> in(all ? static_cast<size_t>(axis.in) : 0);
  std::vector<bool> out(all ? static_cast<size_t>(axis.out) : 0);
  TouchedAxis touched;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Range outs = OutsInside(axis, tap);
    if (outs.size() > 0) ++touched.taps;
    if (!all) touched.in = touched.out = std::max(touched.out, static_cast<double>(outs.size()));
    for (int64_t o = outs.begin; all && o < outs.end; ++o) {
      in[static_cast<size_t>(InIndex(axis, o, tap))] = true;
      out[static_cast<size_t>(o)] = true;
    }
  }
  for (const bool is : in) touched.in += is;
  for (const bool is : out) touched.out += is;
  return touched;
}

inline double CountTouchedBytes(const Problem& p) {
  if (p.bias.alone) return CountBytes(p);
  double x = static_cast<double>(p.batch) * static_cast<double>(p.groups * p.ci);
  double y = static_cast<double>(p.batch) * static_cast<double>(p.groups * p.co);
  double w = static_cast<double>(p.groups * p.ci) * static_cast<double>(p.co) *
             static_cast<double>(p.samples());
  const bool sums = p.pass == Pass::kWgrad && p.bias.present;
  const bool all_x = p.pass == Pass::kDgrad || (sums && p.bias.sums_x);
  const bool all_y = p.pass == Pass::kFprop || (sums && !p.bias.sums_x);
  for (const Axis& axis : p.axes) {
    const TouchedAxis touched = TouchedOf(axis);
    x *= all_x ? static_cast<double>(axis.in) : touched.in;
    y *= all_y ? static_cast<double>(axis.out) : touched.out;
    w *= p.pass == Pass::kWgrad ? static_cast<double>(axis.taps) : touched.taps;
  }
  const DataType w_type = p.pass == Pass::kWgrad ? p.out_type : p.type;
  return (x + y) * static_cast<double>(SizeOf(p.type)) + w * static_cast<double>(SizeOf(w_type));
}

}  // namespace convgrad

#endif  // CONVGRAD_CORE_TOUCHED_BYTES_H_
