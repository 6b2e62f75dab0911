// Taps along a line of g read the same positions, shifted. Where lines are long enough, each is
// packed once for all its taps, and a tile reads it from another place for each tap. Taps across
// lines read the same lines: where a block has many, those are packed once as well. Decides speed,
// never a result.
#ifndef CONVGRAD_CPU_LINES_H_
#define CONVGRAD_CPU_LINES_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
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

  // Taps across lines share them: a group is a block, of whole lines, and after those of a plane
  // there are `halo` more.
  bool planes = false;
  int64_t plane = 1;  // pixels of one
  int64_t halo = 0;
  int64_t least_line = 0;  // the least shift of a tap across lines

  int64_t pitch() const { return pixels + gap; }  // from line to line of a plane

  // Where a pixel of a group is that begins with pixel `first` of all.
  int64_t PlaceOf(int64_t first, int64_t pixel) const {
    if (planes) {
      const int64_t lines = pixel / pixels - first / pixels;
      return (lines + (pixel / plane - first / plane) * halo) * pitch() + pixel % pixels;
    }
    return pixel - first + (first % pixels + pixel - first) / pixels * gap;
  }
  // Pixels from this one to the end of its line.
  int64_t RestOfLine(int64_t pixel) const { return pixels - pixel % pixels; }
  // Positions from the end of this pixel's line to the next one; `end`: of the pixels.
  int64_t GapAfter(int64_t pixel, int64_t end) const {
    const int64_t next = pixel + RestOfLine(pixel);
    return planes && next < end && next % plane == 0 ? gap + halo * pitch() : gap;
  }
};

// Tap t reads for pixel x what a tap of the same class without a shift would for pixel x + shift.
inline int64_t ShiftOfTap(const GatherAxis& axis, int64_t tap) {
  return FloorDiv(tap * axis.tap_step, axis.pixel_step);
}

// Elements of a group along k, with so many of channels.
inline int64_t DepthOfLines(const Contraction& c, const Lines& lines, int64_t channels) {
  return c.axes[0].taps * (lines.planes ? 1 : c.axes[1].taps) * lines.classes * channels;
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

// For blocks of `columns` pixels in panels of `width`. Two taps of a line alone are not worth it,
// but are with those across (Neoverse-N1, channels first: 3x3 of stride 2, 32 channels to 3 in four
// phases, 19.5 ms, so 10.5; 2x2, 64 channels to 12 6.2, so 5.5; to 64 the same), unless there are
// many products for what is packed (to 256: 1.04 times as long) or few terms from leap to leap (4
// channels: 1.1).
inline void SharePlanes(const Contraction& c, int64_t width, int64_t columns, Lines& lines) {
  const GatherAxis& axis = c.axes[kAxes - 2];
  constexpr int64_t kFarthest = 256;
  const int64_t plane = axis.pixels * lines.pixels;
  if (lines.width == 0 || plane == 0 || axis.taps < 2 || axis.pixel_step != 1 ||
      std::abs(axis.tap_step) > kFarthest || c.images_inside || lines.pixels > columns) {
    return;
  }
  // Of so many pixels, from any one on.
  const auto met = [&](int64_t each) { return (columns + each - 2) / each + 1; };
  const int64_t last = (axis.taps - 1) * axis.tap_step, halo = std::abs(last);
  // The last panel may read beyond its pixels.
  const int64_t positions = (met(lines.pixels) + met(plane) * halo) * lines.pitch() + width;
  // An odd number of cache lines, so that channels fall into different sets of L1.
  const int64_t all = CeilDiv(positions, 32) * 32 + 16;
  const int64_t before = axis.taps * CeilDiv(columns, lines.group) * lines.width;
  const int64_t alone = axis.taps * c.axes[kAxes - 1].taps * columns;
  const bool worth = c.o <= 64 && c.channels >= 16;
  if (lines.shared ? 4 * all > 3 * before : !worth || 2 * lines.classes * all > alone) return;
  lines.shared = true;
  lines.planes = true;
  lines.plane = plane;
  lines.halo = halo;
  lines.least_line = std::min<int64_t>(last, 0);
  lines.group = columns;
  lines.width = all;
}

// For blocks of `columns` pixels as columns, in panels of `width`. The last group may be short of
// panels.
inline Lines LinesOfColumns(const Contraction& c, int64_t width, int64_t columns, int64_t unit) {
  Lines lines = MakeLines(c, width, std::min<int64_t>(4, columns / width), unit);
  SharePlanes(c, width, columns, lines);
  return lines;
}

// A position by rows has half of a chunk's terms at most, a row all of them.
static_assert(Chunks::kLongest <= kRowPitch && Chunks::kLongest / 2 <= kLinePitch);

// Whether rows are copied, the taps of a line of the kernel as one: of every third pixel or fewer,
// and of every second one of three channels, few taps share what they read, and lines of up to
// three channels are moved element by element (Cascade Lake, time of this / of what was done
// before: 3 to 64 channels, 7x7 of stride 2 0.71, 3 to 32, 3x3 of stride 2 0.77; 3 to 96, 4x4 of
// stride 4 0.60; 1 to 64, 10 taps of stride 5 0.54; but 1 to 32, 20 taps of stride 2 1.4, and of
// stride 1, 3 to 64 3x3 1.04, 3x3x3 1.5, 8 to 64 3x3 1.3). A chunk must have all channels.
inline bool CopiesTapRuns(const Contraction& c) {
  const GatherAxis& axis = c.axes[kAxes - 1];
  constexpr int64_t kFewChannels = 3, kFewTaps = 4;  // for each pixel of the stride
  return !c.sum_pixels && c.terms_each == 1 && c.channels <= kFewChannels &&
         axis.pixel_step > (c.channels == 3 ? 1 : 2) && axis.taps / kFewTaps <= axis.pixel_step &&
         axis.tap_step > 0 && c.g.at[kAxes - 1] > 0 && c.g.at[kAxes - 1] <= kFewChannels &&
         HasTapRuns(c) && MakeChunks(c).outer_block == c.channels;
}

// What a block shares. It never needs more memory than panels without sharing: half of the terms at
// most, for at most twice the pixels.
inline Lines LinesOf(const Contraction& c, const Tiling& t, int lanes) {
  if (t.k_unit > 1 || t.boxes) return {};
  const int64_t row_unit = t.mr % 4 == 0 ? 4 : 2;
  if (t.a_by_rows) {
    if (CopiesTapRuns(c)) return {};
    Lines lines = MakeLines(c, t.mr, t.a_panels, row_unit);
    lines.shared = lines.shared && lines.width * kLinePitch <= t.panel_floats();
    return lines;
  }
  if (!t.o_is_n) return LinesOfColumns(c, t.nr, t.nb, lanes);
  constexpr int64_t kMostFloats = 8 << 10;  // half of a small L1
  int64_t panels = int64_t{2} * t.a_panels;
  while (panels > 1 && panels * t.mr * t.kc_floats > kMostFloats * c.axes[kAxes - 1].taps) --panels;
  return MakeLines(c, t.mr, panels, row_unit);
}

inline TileSource TileSourceOf(const Tiling& t, const Lines& lines) {
  if (!lines.shared) return t.a_by_rows ? TileSource::kRows : TileSource::kPanels;
  if (t.a_by_rows) return TileSource::kARowLines;
  return t.o_is_n ? TileSource::kALines : TileSource::kBLines;
}

// Where the terms of each tap begin in a group of lines, of so many elements along k for a tap of
// each class, `step` apart, and `pitch` from position to position.
inline void FillSegments(const Contraction& c, const Lines& lines, int64_t depth, int64_t step,
                         int64_t pitch, int64_t* begins) {
  const GatherAxis &axis = c.axes[kAxes - 1], &across = c.axes[kAxes - 2];
  const int64_t all = DepthOfLines(c, lines, depth);
  // Of lines that are shared across, too, taps there are places, not terms.
  const int64_t taps_across = lines.planes ? across.taps : 1;
  for (int64_t k0 = 0; k0 < all; k0 += lines.classes * depth) {
    for (int64_t y = 0; y < taps_across; ++y) {
      const int64_t line = y * across.tap_step - lines.least_line;
      for (int64_t t = 0; t < axis.taps; ++t) {
        const int64_t k = k0 + t % lines.classes * depth;
        const int64_t place = ShiftOfTap(axis, t) - lines.least + line * lines.pitch();
        *begins++ = k * step + place * pitch;
      }
    }
  }
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_LINES_H_
