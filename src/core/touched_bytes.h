// What a run has to read and write at least: the part of each operand that a product needs, all of
// what a bias gradient sums, and all of the result. The floor of a time, where memory is what it
// waits for.
#ifndef CONVGRAD_CORE_TOUCHED_BYTES_H_
#define CONVGRAD_CORE_TOUCHED_BYTES_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "core/problem.h"

namespace convgrad {

// Positions of one axis that are part of a product.
struct TouchedAxis {
  double in = 0, taps = 0, out = 0;
};

// Steps that one tap touches, of those that leave the same rest when divided by a stride.
struct TouchedSteps {
  int64_t rest, begin, end;
  auto operator<=>(const TouchedSteps&) const = default;
};

// How many there are in all, each counted once.
inline double CountSteps(std::vector<TouchedSteps>& steps) {
  std::sort(steps.begin(), steps.end());
  double count = 0;
  int64_t rest = -1, end = 0;
  for (const TouchedSteps& some : steps) {
    if (some.rest != rest) end = some.begin;
    rest = some.rest;
    count += static_cast<double>(std::max<int64_t>(0, some.end - std::max(end, some.begin)));
    end = std::max(end, some.end);
  }
  return count;
}

inline TouchedAxis TouchedOf(const Axis& axis) {
  // Of more taps, these touch no more than all of them do, or nothing, if they are all outside.
  constexpr int64_t kMostTaps = 1 << 20;
  std::vector<TouchedSteps> in, out;
  TouchedAxis touched;
  for (int64_t tap = 0; tap < std::min(axis.taps, kMostTaps); ++tap) {
    const Range outs = OutsInside(axis, tap);
    if (outs.size() == 0) continue;
    const int64_t first = InIndex(axis, outs.begin, tap), step = first / axis.stride;
    in.push_back({first % axis.stride, step, step + outs.size()});
    out.push_back({0, outs.begin, outs.end});
  }
  touched.in = CountSteps(in);
  touched.out = CountSteps(out);
  touched.taps = static_cast<double>(in.size());
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
