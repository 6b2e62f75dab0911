// Rows of a that tiles read where they are, in a tensor: nothing is packed. Decides speed, never a
// result.
#ifndef CONVGRAD_CPU_IN_PLACE_H_
#define CONVGRAD_CPU_IN_PLACE_H_

#include <cstdint>

#include "cpu/contraction.h"
#include "cpu/tile.h"
#include "cpu/tiling.h"

namespace convgrad {

// From row to row of the side that is a.
inline int64_t RowStepInPlace(const Contraction& c, bool o_is_n) {
  return o_is_n ? c.g.channel : c.v.o;
}

// Whether rows of a tile, so many floats apart, find room in the four ways of L1, beside b.
inline bool RowsSpread(int64_t step, int64_t length) {
  constexpr int64_t kWay = (16 << 10) / int64_t{sizeof(float)}, kMost = 3;
  for (int64_t r = 0; r < kInPlaceRows; ++r) {
    int64_t there = 0;
    for (int64_t other = 0; other < kInPlaceRows; ++other) {
      const int64_t apart = (other - r) * (step % kWay) % kWay;
      there += (apart + kWay) % kWay < length;
    }
    if (there > kMost) return false;
  }
  return true;
}

// Whether a block of so many panels of b reads a in place: f32 pixels that are next to each other,
// through one tap that reads no padding. Only beside few panels: the more there are, the less
// packing is of all (Neoverse-N1: of 2 of them 0.82 of the time, of 3 0.90, of 8 0.98), and of
// many, which L1 does not hold, a CPU no longer foresees what is read next to so many rows (of
// 32: 1.4). Nor for images of 64x64, whose rows push each other out of L1 (1.5 to 1.8).
inline bool ReadsInPlace(const Contraction& c, const Chunks& chunks, const Tiling& t,
                         int64_t panels) {
  constexpr int64_t kFewPanels = 4;
  const GatherAxis& axis = c.axes[kAxes - 1];
  if (!c.sum_pixels || chunks.chained || c.taps() != 1 || c.pixels() != axis.pixels ||
      c.skipped_axis >= 0 || t.mr != kInPlaceRows || panels > kFewPanels ||
      !RowsSpread(RowStepInPlace(c, t.o_is_n), chunks.longest())) {
    return false;
  }
  if (!t.o_is_n) return c.v.at[kAxes - 1] == 1;
  // Of an axis with one pixel, any position may be what its one tap reads.
  return c.g.at[kAxes - 1] == 1 && axis.pixel_step == 1 && axis.first == 0 &&
         axis.limit == axis.pixels && c.axes[0].first == 0 && c.axes[1].first == 0;
}

// Where a row begins, for a chunk of one image.
inline int64_t OffsetInPlace(const Contraction& c, bool o_is_n, int64_t row, const Chunk& chunk) {
  const Strides& side = o_is_n ? c.g : c.v;
  return side.first + chunk.outer.begin * side.image + chunk.inner.begin +
         row * RowStepInPlace(c, o_is_n);
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_IN_PLACE_H_
