// Which weight gradients have sums along taps (direct_taps.h), and how they are cut. Step 4 of the
// story; knows nothing of the sums.
#include <algorithm>

#include "cpu/direct.h"
#include "cpu/direct_taps.h"
#include "cpu/engine.h"

namespace convgrad {
namespace {

// Lines of more are cut into parts of half of it: what a part reads stays in L1.
constexpr int64_t kWholeLine = 1024;

int64_t ColumnsOf(const GatherAxis& last) {
  return std::max<int64_t>(1, last.pixels <= kWholeLine ? last.pixels : kWholeLine / 2);
}

bool HasFewEdges(const GatherAxis& last) {
  constexpr int64_t kTaps = TapStrips::kTaps;
  const int64_t terms = CeilDiv(last.taps, kTaps) * kTaps;
  if (last.limit < kTaps || last.taps > TapEdges::kMostTaps) return false;
  const int64_t beyond = last.first + (last.pixels - 1) * last.pixel_step + terms - last.limit;
  const int64_t before = CeilDiv(std::max<int64_t>(0, -last.first), last.pixel_step);
  const int64_t after = CeilDiv(std::max<int64_t>(0, beyond), last.pixel_step);
  // One more, of fewer than four pixels.
  return CeilDiv(before, kTaps) + CeilDiv(after, kTaps) < TapEdges::kMost;
}

}  // namespace

// Where nothing is better: of several lines of taps and pixels next to each other, lines that are
// turned are used by all of them (Neoverse-N1, 3x3: 5.3 ms, so 6.5; of stride two 2.8 and 2.2, but
// 5x5 4.8 and 5.5; four taps of 1536 channels 5.0 and 2.9, of 15 taps 7.6 and 7.4, of lines of 40
// pixels 0.85 and 0.93). Lanes of lines that are turned are channels: of fewer than four, most are
// empty (one channel, 3x3 8.4 ms, so 2.3; 3x3x3 3.0 and 0.8; 7x7 6.2 and 2.0; three channels 2.2
// and 2.0, but 7x7 2.4 and 2.7). Of vectors of more lanes, too many would be without a tap, and 16
// bits would have to be widened for each of them.
bool IsAlongTaps(const Contraction& c, const Problem& p) {
  if (!c.sum_pixels || c.channels != 1 || c.o != 1 || p.type != DataType::kF32) return false;
  const GatherAxis& last = c.axes[kAxes - 1];
  if (c.g.at[kAxes - 1] != 1 || c.v.at[kAxes - 1] != 1 || last.tap_step != 1) return false;
  if (PickedVectorUnit(p.type).lanes != TapStrips::kTaps) return false;
  if (last.taps < 2 || last.pixel_step > TapEdges::kMostStep || last.pixels < 1) return false;
  // Each by itself first: products of extents may be more than can be counted.
  constexpr int64_t kMostTaps = 1 << 10;
  for (const GatherAxis& axis : c.axes) {
    if (axis.taps < 1 || axis.taps > kMostTaps) return false;
  }
  if (c.taps() > kMostTaps || !HasFewEdges(last)) return false;
  const bool one_line = c.axes[0].taps * c.axes[1].taps == 1;
  const bool few = p.groups < (last.taps <= TapStrips::kTaps ? 4 : 3);
  const bool suits = few        ? last.pixels >= 16
                     : one_line ? last.pixels >= 48
                                : last.taps <= 4 && last.pixels >= 16 && last.pixel_step > 1;
  return suits && AlongTapsTiling(c, p).blocks_each > 0;
}

DirectTiling AlongTapsTiling(const Contraction& c, const Problem& p) {
  DirectTiling t;
  t.vector_lanes = PickedVectorUnit(p.type).lanes;
  t.along_taps = t.on_stack = true;
  t.lanes = t.used = 1;
  t.blocks = p.groups;
  t.columns = ColumnsOf(c.axes[kAxes - 1]);
  constexpr int64_t kMostBlocks = 16;
  const DirectMemory m = MemoryOf(c, t);
  t.blocks_each = std::min((DirectTiling::kStackFloats - m.shared_floats()) / m.block_floats,
                           std::min(kMostBlocks, t.blocks));
  return t;
}

}  // namespace convgrad
