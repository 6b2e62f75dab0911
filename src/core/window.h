// The window: how a kernel tap at an output position meets an input position, along one axis. This
// is the only place that has the index map and the extent formulas; axes are independent.
// Canonical words only (in, out, taps): it does not know operations or formats.
#ifndef CONVGRAD_CORE_WINDOW_H_
#define CONVGRAD_CORE_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace convgrad {

// One spatial axis of y = x * w. Padding at the end is not here: it only decides `out`.
struct Axis {
  int64_t in = 1;        // extent of x
  int64_t out = 1;       // extent of y
  int64_t taps = 1;      // extent of w
  int64_t stride = 1;    // in positions between neighbouring outs
  int64_t dilation = 1;  // in positions between neighbouring taps
  int64_t pad = 0;       // in positions before the first one

  bool operator==(const Axis&) const = default;
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

constexpr int64_t FloorDiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

// THE index map. May lie outside [0, in): such a read contributes nothing.
constexpr int64_t InIndex(const Axis& axis, int64_t out, int64_t tap) {
  return out * axis.stride + tap * axis.dilation - axis.pad;
}

namespace window_internal {
// The i in [0, count) with 0 <= first + i * step < limit.
constexpr Range Inside(int64_t first, int64_t step, int64_t count, int64_t limit) {
  const int64_t begin = std::clamp<int64_t>(CeilDiv(-first, step), 0, count);
  const int64_t end = std::clamp<int64_t>(CeilDiv(limit - first, step), begin, count);
  // {0, 0}, not {count, count}: InIndex is only safe for positions that exist.
  return begin < end ? Range{begin, end} : Range{};
}
}  // namespace window_internal

// The taps that read inside the input at output position `out`.
constexpr Range TapsInside(const Axis& axis, int64_t out) {
  return window_internal::Inside(InIndex(axis, out, 0), axis.dilation, axis.taps, axis.in);
}

// The output positions at which `tap` reads inside the input.
constexpr Range OutsInside(const Axis& axis, int64_t tap) {
  return window_internal::Inside(InIndex(axis, 0, tap), axis.stride, axis.out, axis.in);
}

// The inverse: the output position at which `tap` reads input position `in`, if there is one.
constexpr std::optional<int64_t> OutIndex(const Axis& axis, int64_t in, int64_t tap) {
  const int64_t distance = in + axis.pad - tap * axis.dilation;
  if (distance < 0 || distance % axis.stride != 0) return std::nullopt;
  const int64_t out = distance / axis.stride;
  if (out >= axis.out) return std::nullopt;
  return out;
}

__extension__ typedef __int128 Int128;

namespace window_internal {

// sum over i in [0, count) of floor((first + i * step) / divisor), all of them at least 0. Taking
// the whole parts of step / divisor and first / divisor out leaves the points under a line, which
// can be counted along the other axis: Euclid's algorithm, so a logarithmic number of rounds.
constexpr Int128 FloorSum(Int128 count, Int128 divisor, Int128 step, Int128 first) {
  Int128 sum = 0;
  while (count > 0) {
    sum += (step / divisor) * (count * (count - 1) / 2) + (first / divisor) * count;
    step %= divisor;
    first %= divisor;
    if (step == 0) break;
    const Int128 last = step * count + first;
    count = last / divisor;
    first = last % divisor;
    std::swap(divisor, step);
  }
  return sum;
}

// Pairs (out, tap) with out * stride + tap * dilation < limit.
constexpr Int128 CountPairsBelow(const Axis& axis, int64_t limit) {
  if (limit <= 0) return 0;
  // For taps below `full` every out counts, from `some` on none does.
  const int64_t some = std::min(axis.taps, CeilDiv(limit, axis.dilation));
  const Int128 beyond = limit - Int128{axis.out - 1} * axis.stride;
  const int64_t full =
      beyond <= 0 ? 0 : std::min(some, CeilDiv(static_cast<int64_t>(beyond), axis.dilation));
  // For the rest, ceil((limit - tap * dilation) / stride), the last tap first.
  const Int128 last = limit - Int128{some - 1} * axis.dilation + axis.stride - 1;
  return Int128{full} * axis.out + FloorSum(some - full, axis.stride, axis.dilation, last);
}

}  // namespace window_internal

// Pairs (out, tap) that read inside the input: the multiply-adds of this axis, which may be more
// than 2^63. Closed form: it costs the same for any extents.
constexpr double CountPairs(const Axis& axis) {
  return static_cast<double>(window_internal::CountPairsBelow(axis, axis.in + axis.pad) -
                             window_internal::CountPairsBelow(axis, axis.pad));
}

// Extents. All are nullopt when the value, or a step on the way, does not fit in 63 bits; so an
// axis made from them cannot overflow in InIndex.

constexpr std::optional<int64_t> FitInt64(Int128 value) {
  if (value > INT64_MAX || value < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(value);
}

// E: in positions covered by a kernel.
constexpr std::optional<int64_t> KernelSpan(int64_t taps, int64_t dilation) {
  return FitInt64(Int128{taps - 1} * dilation + 1);
}

// in + both pads - span: how far the first tap can travel. Negative: the kernel does not fit.
constexpr std::optional<int64_t> Travel(int64_t in, int64_t pad_begin, int64_t pad_end,
                                        int64_t span) {
  const Int128 padded = Int128{in} + pad_begin + pad_end;
  if (!FitInt64(padded)) return std::nullopt;
  return FitInt64(padded - span);
}

// out, from how far the first tap can travel.
constexpr int64_t OutExtent(int64_t travel, int64_t stride) { return FloorDiv(travel, stride) + 1; }

// The smallest `in` whose windows are just `out` many, plus `extra` positions at the end.
constexpr std::optional<int64_t> InExtent(int64_t out, int64_t stride, int64_t span,
                                          int64_t pad_begin, int64_t pad_end, int64_t extra) {
  const Int128 padded = Int128{stride} * (out - 1) + span + extra;
  if (!FitInt64(padded)) return std::nullopt;
  return FitInt64(padded - pad_begin - pad_end);
}

}  // namespace convgrad

#endif  // CONVGRAD_CORE_WINDOW_H_
