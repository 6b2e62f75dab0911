// Taps along a line of g read the same positions, shifted. Where lines are long enough, each is
// packed once for all its taps, and a tile reads it from another place for each tap. Decides speed,
// never a result.
#ifndef CONVGRAD_CPU_LINES_H_
#define CONVGRAD_CPU_LINES_H_

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "cpu/contraction.h"
#include "cpu/tiling.h"

namespace convgrad {

// Pixels of g, several panels of them: [(tap, channel), position], where `tap` is along the other
// axes, and, for strides, one of `classes` along the line: taps of a class read positions that are
// a multiple of the stride apart. A group of pixels is part of one line or of some; after those of
// each line there are `gap` positions more.
struct Lines {
  bool shared = false;
  int64_t pixels = 1;   // of a line
  int64_t group = 1;    // pixels that are packed together
  int64_t classes = 1;  // tap t belongs to class t % classes
  int64_t least = 0;    // the least shift of a tap
  int64_t extra = 0;    // positions beyond the pixels of a line that are read
  int64_t gap = 0;      // extra, in whole vectors of four
  int64_t width = 0;    // positions of a group

  // Where a pixel of a group is that begins with pixel `first` of all.
  int64_t PlaceOf(int64_t first, int64_t pixel) const {
    return pixel - first + (first % pixels + pixel - first) / pixels * gap;
  }
  // Pixels from this one to the end of its line.
  int64_t RestOfLine(int64_t pixel) const { return pixels - pixel % pixels; }
};

// Tap t reads for pixel x what a tap of the same class without a shift would for pixel x + shift.
inline int64_t ShiftOfTap(const GatherAxis& axis, int64_t tap) {
  return FloorDiv(tap * axis.tap_step, axis.pixel_step);
}

// Elements of a group along k, with so many of channels.
inline int64_t DepthOfLines(const Contraction& c, const Lines& lines, int64_t channels) {
  return c.axes[0].taps * c.axes[1].taps * lines.classes * channels;
}

// For panels of `width` pixels, `panels` in a group, that are read by vectors of `unit`: a panel
// must not have part of more than two lines, a vector of more than one.
inline Lines MakeLines(const Contraction& c, int64_t width, int64_t panels, int64_t unit) {
  const GatherAxis& axis = c.axes[kAxes - 1];
  constexpr int64_t kFarthest = 256;  // apart; no product overflows
  Lines lines;
  if (c.sum_pixels || axis.taps < 2 || c.taps() > Chunks::kLongest || axis.pixels < width ||
      axis.pixels % unit != 0 || axis.pixel_step > kFarthest || axis.tap_step > kFarthest ||
      axis.tap_step < -kFarthest) {
    return lines;
  }
  const int64_t last = ShiftOfTap(axis, axis.taps - 1);
  lines.pixels = axis.pixels;
  lines.group = width * panels;
  lines.classes = std::min(axis.pixel_step / std::gcd(axis.pixel_step, axis.tap_step), axis.taps);
  lines.least = std::min<int64_t>(last, 0);
  lines.extra = std::max<int64_t>(last, 0) - lines.least;
  lines.gap = CeilDiv(lines.extra, 4) * 4;
  const int64_t most_lines = std::max<int64_t>(lines.group - 2, 0) / lines.pixels + 2;
  lines.width = lines.group + most_lines * lines.gap;
  // Half of the packing, or it is not worth the tile's leaps from segment to segment.
  lines.shared = 2 * lines.classes * lines.width <= axis.taps * lines.group;
  return lines;
}

// A position by rows has half of a chunk's terms at most, a row all of them.
static_assert(Chunks::kLongest <= kRowPitch && Chunks::kLongest / 2 <= kLinePitch);

// What a block shares. It never needs more memory than panels without sharing: half of the terms at
// most, for at most twice the pixels.
inline Lines LinesOf(const Contraction& c, const Tiling& t, int lanes) {
  if (t.k_unit > 1) return {};
  const int64_t row_unit = t.mr % 4 == 0 ? 4 : 2;
  if (t.a_by_rows) {
    Lines lines = MakeLines(c, t.mr, t.a_panels, row_unit);
    lines.shared = lines.shared && lines.width * kLinePitch <= t.a_floats();
    return lines;
  }
  // The last group of b may be short of panels.
  if (!t.o_is_n) return MakeLines(c, t.nr, std::min<int64_t>(4, t.nb / t.nr), lanes);
  constexpr int64_t kMostFloats = 8 << 10;  // half of a small L1
  int64_t panels = int64_t{2} * t.a_panels;
  while (panels > 1 && panels * t.mr * t.kc_floats > kMostFloats * c.axes[kAxes - 1].taps) --panels;
  return MakeLines(c, t.mr, panels, row_unit);
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_LINES_H_
