// The positions of g that the pixels of a chunk of a weight gradient read through all taps: lines
// of them, each packed once for all taps of a plane of the kernel. A tile reads another place of
// them for each tap. Decides speed, never a result.
#ifndef CONVGRAD_CPU_POSITIONS_H_
#define CONVGRAD_CPU_POSITIONS_H_

#include <algorithm>
#include <cstdint>

#include "cpu/contraction.h"

namespace convgrad {

// [plane of taps, part, line, position]. A part is what the pixels of one plane of an image read:
// whole lines, but of a chunk that is part of one line.
struct Positions {
  int64_t first = 0;  // position of a line, in g; may be outside
  int64_t width = 0;  // positions of a line
  int64_t lines = 0;  // of all parts, through one plane of taps

  // From what the first tap reads to what this one reads for the same pixel.
  int64_t ShiftOfTap(const Contraction& c, int64_t tap) const {
    const int64_t x = tap % c.axes[2].taps, zy = tap / c.axes[2].taps;
    const int64_t y = zy % c.axes[1].taps, z = zy / c.axes[1].taps;
    return (z * lines + y * c.axes[1].tap_step) * width + x * c.axes[2].tap_step;
  }
};

// What `pixels` along an axis read.
inline int64_t PositionsAlong(const GatherAxis& axis, int64_t pixels) {
  return (pixels - 1) * axis.pixel_step + (axis.taps - 1) * axis.tap_step + 1;
}

// Calls part(image, plane, lines of pixels) for all parts of a chunk.
template <class Part>
void ForEachPart(const Contraction& c, const Chunk& chunk, const Part& part) {
  const int64_t pixels1 = c.axes[1].pixels, pixels2 = c.axes[2].pixels;
  const Range lines{chunk.inner.begin / pixels2, (chunk.inner.end - 1) / pixels2 + 1};
  for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
    for (int64_t z = lines.begin / pixels1; z * pixels1 < lines.end; ++z) {
      part(i, z,
           Range{std::max(lines.begin - z * pixels1, int64_t{0}),
                 std::min(lines.end - z * pixels1, pixels1)});
    }
  }
}

inline Positions PositionsOf(const Contraction& c, const Chunk& chunk) {
  const int64_t pixels2 = c.axes[2].pixels, begin = chunk.inner.begin % pixels2;
  const bool one_line = begin + chunk.inner.size() <= pixels2;
  Positions positions;
  positions.first = c.axes[2].first + (one_line ? begin * c.axes[2].pixel_step : 0);
  positions.width = PositionsAlong(c.axes[2], one_line ? chunk.inner.size() : pixels2);
  ForEachPart(c, chunk, [&](int64_t, int64_t, Range lines) {
    positions.lines += PositionsAlong(c.axes[1], lines.size());
  });
  return positions;
}

// Whether no product of MostPositions overflows and the first tap reads the first position. Of
// longer lines a chunk has part of one, or of two, which are not worth packing.
inline bool CanShareTaps(const Contraction& c) {
  constexpr int64_t kFarthest = 256, kLongestLine = 1 << 16;
  const bool one_line = c.axes[0].pixels == 1 && c.axes[1].pixels == 1;
  return c.sum_pixels && c.taps() > 1 && c.taps() <= Chunks::kLongest && c.pixels() > 0 &&
         (one_line || c.axes[2].pixels <= kLongestLine) &&
         std::all_of(c.axes.begin(), c.axes.end(), [](const GatherAxis& axis) {
           return axis.pixel_step <= kFarthest && axis.tap_step > 0 && axis.tap_step <= kFarthest;
         });
}

// No chunk has more of them, through all taps.
inline int64_t MostPositions(const Contraction& c, const Chunks& chunks) {
  // Of runs of `count` that follow each other, one meets so many of `each` at most.
  const auto met = [](int64_t count, int64_t each, bool aligned) {
    if (aligned && (count % each == 0 || each % count == 0)) return CeilDiv(count, each);
    return (count - 1 + each - 1) / each + 1;
  };
  const int64_t pixels0 = c.axes[0].pixels, pixels1 = c.axes[1].pixels, pixels2 = c.axes[2].pixels;
  const int64_t length = std::min(chunks.inner_block, c.pixels());
  const int64_t lines = std::min(met(length, pixels2, true), pixels0 * pixels1);
  const int64_t planes = std::min(met(lines, pixels1, length % pixels2 == 0), pixels0);
  const int64_t width = PositionsAlong(c.axes[2], lines == 1 ? std::min(length, pixels2) : pixels2);
  // More parts have more lines at their ends, but, of a large stride, none between them.
  const int64_t each = PositionsAlong(c.axes[1], 1), step = c.axes[1].pixel_step;
  const int64_t most = std::max(each * planes + (lines - planes) * step, each + (lines - 1) * step);
  return chunks.outer_block * c.axes[0].taps * most * width;
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_POSITIONS_H_
