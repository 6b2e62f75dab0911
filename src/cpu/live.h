// Terms that are products with padding, and can be left out. Decides speed, never a result: a sum
// that takes them adds zeros, which changes no bit as long as the other factors are finite.
#ifndef CONVGRAD_CPU_LIVE_H_
#define CONVGRAD_CPU_LIVE_H_

#include <algorithm>
#include <cstdint>

#include "cpu/contraction.h"
#include "cpu/tile.h"

namespace convgrad {

// The i in [0, count) from which some position in [lowest, highest] + i * step is in [0, limit).
inline Range StepsInside(int64_t lowest, int64_t highest, int64_t step, int64_t count,
                         int64_t limit) {
  const int64_t first = step > 0 ? CeilDiv(-highest, step) : FloorDiv(lowest - limit, -step) + 1;
  const int64_t end = step > 0 ? CeilDiv(limit - lowest, step) : FloorDiv(highest, -step) + 1;
  const int64_t begin = std::clamp<int64_t>(first, 0, count);
  return {begin, std::clamp(end, begin, count)};
}

// What a range has in common with `of`, counted from the beginning of that.
inline Range Common(Range range, Range of) {
  const int64_t begin = std::clamp(range.begin, of.begin, of.end);
  return {begin - of.begin, std::clamp(range.end, begin, of.end) - of.begin};
}

// Where a pixel of fprop or dgrad is along the skipped axis, and which line of the rest it is part
// of.
struct PixelPlace {
  int64_t outer, along;
};

inline PixelPlace PlaceOfPixel(const Contraction& c, int64_t pixel) {
  const auto& axes = c.axes;
  const int64_t each = c.images_inside;
  const int64_t at = each > 0 ? pixel / each / c.images * each + pixel % each : pixel % c.pixels();
  const int64_t line = at / axes[2].pixels, image = each > 0 ? 0 : pixel / c.pixels();
  const int64_t y = line % axes[1].pixels, z = line / axes[1].pixels;
  if (c.skipped_axis == 0) return {image, z};
  if (c.skipped_axis == 1) return {image * axes[0].pixels + z, y};
  return {pixel / axes[2].pixels, at % axes[2].pixels};
}

// The terms of a chunk that are not all products with padding, for a range of the side that is not
// o. Only the outermost axis is looked at: there they are one range.
inline Range LiveTerms(const Contraction& c, const Chunk& chunk, Range side) {
  const Range all{0, chunk.terms()};
  const int a = c.skipped_axis;
  const GatherAxis& axis = c.axes[a];
  int64_t inner_taps = 1, inner_pixels = 1;
  for (int b = a + 1; b < kAxes; ++b) {
    inner_taps *= c.axes[b].taps;
    inner_pixels *= c.axes[b].pixels;
  }
  if (!c.sum_pixels) {
    const PixelPlace first = PlaceOfPixel(c, side.begin), last = PlaceOfPixel(c, side.end - 1);
    if (first.outer != last.outer) return all;
    const Range taps = StepsInside(axis.first + first.along * axis.pixel_step,
                                   axis.first + last.along * axis.pixel_step, axis.tap_step,
                                   axis.taps, axis.limit);
    const Range live = Common({taps.begin * inner_taps, taps.end * inner_taps}, chunk.inner);
    return {live.begin * chunk.outer.size(), live.end * chunk.outer.size()};
  }
  const RowPlace first = PlaceOfRow(c, side.begin), last = PlaceOfRow(c, side.end - 1);
  if (chunk.outer.size() != 1 || last.tap < first.tap ||
      last.channel / c.row_block != first.channel / c.row_block) {
    return all;
  }
  const int64_t low = first.tap / inner_taps * axis.tap_step,
                high = last.tap / inner_taps * axis.tap_step;
  const Range pixels =
      StepsInside(axis.first + std::min(low, high), axis.first + std::max(low, high),
                  axis.pixel_step, axis.pixels, axis.limit);
  return Common({pixels.begin * inner_pixels, pixels.end * inner_pixels}, chunk.inner);
}

// Of a tile whose rows are all phases: those that meet a tap.
inline TileRows RowsOfTap(const Contraction& c, int64_t tap) {
  const PhaseColumns& columns = c.columns;
  const auto place = [](int64_t flat, int64_t extent1, int64_t extent2, int64_t(&at)[kAxes]) {
    at[2] = flat % extent2;
    at[1] = flat / extent2 % extent1;
    at[0] = flat / extent2 / extent1;
  };
  int64_t tap_at[kAxes], phase_at[kAxes] = {};
  place(tap, c.axes[1].taps, c.axes[2].taps, tap_at);
  TileRows rows = 0;
  for (int64_t row = 0; row < c.o; ++row) {
    if (row % columns.channels == 0) {
      place(row / columns.channels, columns.phases[1], columns.phases[2], phase_at);
    }
    if (columns.HasTap(phase_at, tap_at)) rows = static_cast<TileRows>(rows | 1 << 4 * row / c.o);
  }
  return rows;
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_LIVE_H_
