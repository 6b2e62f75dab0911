// Which problems have sums along pixels. Step 5 of the story.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "cpu/direct.h"
#include "cpu/direct_axes.h"
#include "cpu/direct_group_pixels.h"
#include "cpu/direct_pixels.h"
#include "cpu/engine.h"

namespace convgrad {
namespace {

// Whether every second lane is taken, if sums are along pixels. (Lines of 18 and 20 pixels take 1.1
// times as long as turned ones with AVX-512, of 40 half.)
bool IsOfStrideTwo(const GatherAxis& line, const Problem& p) {
  return p.type == DataType::kF32 && line.pixel_step == 2 &&
         line.pixels >= 2 * PickedVectorUnit(p.type).lanes &&
         line.taps <= PixelColumns::kMostOfStrideTwo && (line.taps == 1 || line.tap_step == 1);
}

// Whether lines can be cut into vectors along pixels: the same in all phases of other axes.
bool HasPixelColumns(const Problem& p) {
  const int64_t lanes = PickedVectorUnit(p.type).lanes;
  PixelColumns columns[2];
  const GatherAxis line = MakePlainContraction(p, 0).axes[kAxes - 1];
  if (HasPairs(p)) {
    return PhasePair::Cut(line, MakePlainContraction(p, 1).axes[kAxes - 1], lanes, columns);
  }
  if (p.axes[kAxes - 1].stride > 1 && !IsOfStrideTwo(line, p)) return false;
  return columns[0].Cut(line, lanes, PixelColumns::InsideOf(line));
}

// One group, of few o and of more channels than a small one, as one contraction of one phase.
bool HasOneNarrowGroup(const Problem& p) {
  if (p.groups != 1 || p.pass == Pass::kWgrad || IsSmallGroup(p)) return false;
  for (const Axis& axis : p.axes) {
    if (p.pass == Pass::kDgrad && axis.stride > 1) return false;
  }
  return (p.pass == Pass::kDgrad ? p.ci : p.co) <= GroupPixels::kFewOuts;
}

// Whether the lines of a chunk of many channels fall into so few sets of L2 that they push each
// other out. (Sapphire Rapids, 64 to 1, 3x3: of 256x256 4.4 ms, along pixels 9.4; of 56x56 1.7, so
// 0.39; 64 to 3 of 32x32 2.5, so 0.79.)
bool ShareSets(const Contraction& c) {
  constexpr int64_t kSmall = 16, kWay = 16 << 10, kWays = 12;  // a way's floats
  if (c.channels <= kSmall) return false;
  const int64_t apart = std::gcd(c.g.channel, kWay);
  return MakeChunks(c).outer_block > kWay / apart * kWays;
}

}  // namespace

bool HasPairs(const Problem& p) { return p.pass == Pass::kDgrad && p.axes[kAxes - 1].stride == 2; }

int64_t FloatsOfZeroLine(const Contraction& c, const Problem& p) {
  const bool needed = !(p.axes[0] == Axis{} && p.axes[1] == Axis{});
  return needed ? CeilDiv(c.axes[kAxes - 1].limit, 16) * 16 : 0;
}

// One channel to one, the pixels of a line next to each other in both tensors and as many as a
// vector has lanes; the taps of an output are one chunk.
bool IsAlongPixels(const Contraction& c, const Problem& p) {
  if (c.sum_pixels || c.channels != 1 || c.o != 1 || p.out_type != p.type) return false;
  if (p.x.s[kAxes - 1] != 1 || p.y.s[kAxes - 1] != 1) return false;
  // Each by itself first: products of extents may be more than can be counted.
  const int64_t depths = c.axes[0].taps, lines = c.axes[1].taps;
  constexpr int64_t kMost = SumsAlongPixels::kMostLines;
  if (depths < 1 || lines < 1 || depths > kMost || lines > kMost / depths ||
      c.axes[kAxes - 1].taps > PixelColumns::kMostTaps) {
    return false;
  }
  constexpr int64_t kMostRows = SumsAlongPixels::kMostRows;
  const int64_t lanes = PickedVectorUnit(p.type).lanes;
  if (std::abs(c.axes[1].tap_step) > kMostRows ||
      SumsAlongPixels::RowsOf(c.axes[1], lanes) > kMostRows / depths || MakeChunks(c).count() > 1) {
    return false;
  }
  const int64_t limit = c.axes[kAxes - 1].limit, room = DirectTiling::kStackFloats;
  int64_t floats = FloatsOfZeroLine(c, p);
  if (p.type != DataType::kF32 && limit > 0) {
    // Of more taps, or of shorter lines, lines that are turned are faster (Neoverse-N1, f16:
    // 7x7 5.4 ms, this way 6.4; 3x3, lines of seven 1.5 and 1.7; 3x3 7.0 and 4.8).
    if (c.taps() > 27 || limit < 8) return false;
    const int64_t fewest = SumsAlongPixels::FewestRows(c.axes[0], c.axes[1], lanes);
    if (fewest > room / limit) return false;
    floats += std::max(fewest * limit, SumsAlongPixels::kWidenedFloats);
  }
  return floats <= room && HasPixelColumns(p);
}

// Several channels or o in a group, chunks of channels alone, and few lanes of vectors and few of
// the o that are computed at once are for nothing. (Sapphire Rapids, one thread: 32
// groups of 4 of 56x56 4.3 ms, so 3.0; of 8 of 28x28 3.6, so 2.2; 16 of 12 of 14x14 1.6, so 0.8; 32
// of 16 of 16x16 3.2, so 2.4, of 14x14 2.24, so 2.10, but of 12x12 1.61, so 1.75; 27 taps of groups
// of 16 13.9, so 14.7.)
bool IsOfGroupsAlongPixels(const Contraction& c, const Problem& p) {
  constexpr int64_t kLanes = GroupPixels::kLanes;
  const GatherAxis& line = c.axes[kAxes - 1];
  if (c.channels < 1 || c.o < 1) return false;
  // IsAlongPixels, or turned: up to 5 times as fast.
  if (c.channels == 1 && c.o == 1) return false;
  if (PickedVectorUnit(p.type).lanes != kLanes || p.out_type != p.type || c.sum_pixels ||
      c.o > GroupPixels::kMostOuts || p.axes[kAxes - 1].stride != 1 || p.x.s[kAxes - 1] != 1 ||
      p.y.s[kAxes - 1] != 1 || c.channels > GroupPixels::kMostOfFew) {
    return false;
  }
  for (const GatherAxis& axis : c.axes) {  // each by itself, as above
    if (axis.taps > Chunks::kLongest) return false;
  }
  if (c.taps() > Chunks::kLongest || (p.type == DataType::kF32 && ShareSets(c))) return false;
  if (p.type != DataType::kF32) {  // each by itself, as above
    const GatherAxis& heights = c.axes[1];
    const int64_t rows = GroupPixels::RowsOfRoom(c), far = heights.taps > 1 ? heights.tap_step : 0;
    if (std::abs(far) > heights.limit) return false;
    if (rows < std::min(heights.limit, GroupPixels::SpanOf(heights))) return false;
  }
  const int64_t terms = c.taps() * c.channels, weights = GroupPixels::WeightsOf(terms, c.o);
  const int64_t vectors = CeilDiv(line.pixels, kLanes);
  const int64_t most = p.type == DataType::kF32 && c.o <= GroupPixels::kFewOuts
                           ? GroupPixels::kMostOfFew
                           : GroupPixels::kMostWeights;
  const bool fills =
      c.o <= 8 ? 2 * line.pixels > vectors * kLanes : 4 * line.pixels > 3 * vectors * kLanes;
  return fills && 4 * terms * c.o >= 3 * weights && weights <= most &&
         vectors <= GroupPixels::kMostColumns && line.taps <= GroupPixels::kMostMasks / vectors;
}

bool HasGroupsAlongPixels(const Problem& problem) {
  // One group is not for the direct kernel where several of its terms are multiplied at once.
  const bool one = (HasOneSmallGroup(problem) || HasOneNarrowGroup(problem)) &&
                   TermsEach(problem, PickedVectorUnit(problem.type)) == 1;
  if (!HasSmallGroups(problem) && !one) return false;
  const Problem p = WithLines(problem);
  return IsOfGroupsAlongPixels(MakeLargestPlainContraction(p), p);
}

}  // namespace convgrad
