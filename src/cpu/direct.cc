#include "cpu/direct.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "core/text.h"
#include "cpu/direct_axes.h"
#include "cpu/direct_group_pixels.h"
#include "cpu/direct_in_place.h"
#include "cpu/direct_sums.h"
#include "cpu/direct_turned.h"
#include "cpu/engine.h"

namespace convgrad {
namespace {

// Far more than fits is as good as any: what follows cannot overflow.
constexpr int64_t kFar = int64_t{1} << 32;

int64_t SpanOf(const GatherAxis& axis, int64_t pixels) {
  return std::min(kFar, (pixels - 1) * axis.pixel_step +
                            std::abs((std::max<int64_t>(axis.taps, 1) - 1) * axis.tap_step) + 1);
}

int64_t TaskFloats(const Contraction& c, const DirectTiling& t) {
  return MemoryOf(c, t).floats(t.blocks_each);
}

// Taps of neighbouring pixels read the same positions.
bool Slides(const GatherAxis& axis) {
  return axis.taps > 1 && std::abs(axis.tap_step) == axis.pixel_step;
}

// In place, of one line of taps: those of a tile that the next one reads, too. See
// direct_in_place.h. Sums of pixels are loaded and stored for each tile, which costs less than what
// longer runs of pixels cost only where these take many streams of memory (Neoverse-N1, 4 taps,
// 12288 channels: 36 ms, so 25; 2048 the same; 128 in the caches: 0.036, so 0.050).
int64_t PositionsToCarry(const Contraction& c, const DirectTiling& t) {
  constexpr int64_t kManyChannels = 2048;
  if (!t.in_place || (c.sum_pixels && t.blocks * t.lanes < kManyChannels)) return 0;
  const GatherAxis& last = c.axes[kAxes - 1];
  const bool carries = SumsInPlace::Carries(t.vector_lanes) && Slides(last) &&
                       last.taps <= SumsInPlace::kMostCarriedTaps &&
                       c.axes[0].taps * c.axes[1].taps == 1;
  return carries ? last.taps - 1 : 0;
}

int64_t CarriedPositions(const Contraction& c, const DirectTiling& t) {
  return t.carries ? PositionsToCarry(c, t) : 0;
}

constexpr int64_t kMostColumns = int64_t{1} << 20;
// In place, positions that are near each other in time: their channels stay in the caches.
int64_t MostColumns(const Contraction& c, const DirectTiling& t) {
  if (!t.in_place || CarriedPositions(c, t) > 0) return kMostColumns;
  constexpr int64_t kMost = DirectTiling::kMostColumnsInPlace;
  if (!c.sum_pixels) return kMost;
  return std::clamp<int64_t>((int64_t{4} << 10) / (t.blocks * t.lanes), 8, kMost);
}

// As many columns at once as `floats` allow one block; false: not even `least`.
bool CutColumns(const Contraction& c, int64_t floats, int64_t least, DirectTiling& t) {
  const int64_t most = MostColumns(c, t);
  for (t.columns = std::clamp<int64_t>(c.axes[kAxes - 1].pixels, 1, most);;
       t.columns = CeilDiv(t.columns, 2)) {
    t.sparse.reset();
    if (TaskFloats(c, t) <= floats) return true;
    t.sparse = true;
    if (TaskFloats(c, t) <= floats) return true;
    if (t.columns <= least) return false;
  }
}

// Most taps that are read in place: of more, copies that are next to each other are worth their
// time. Neoverse-N1, time in place / of copies: 3x3 0.8, 7x7 1.1, its wgrad 0.9 for 3x3x3. Where
// taps slide, f32 of 64 to 384 channels: 3x3x3 0.9, 5x5 0.9, 4x4 0.77, but 5x5 of 16 channels 1.15;
// of stride two 1.5. What is of 16 bits is widened for every line of taps that reads it: bf16 3x3x3
// 0.83, 5x5 1.1, 3x3x3 of 16 channels 1.1; f16 1.0 to 1.5. Other vectors than of four lanes were
// not measured.
int64_t MostTapsInPlace(const Contraction& c, const Problem& p, int lanes) {
  constexpr int64_t kMost = 27, kFew = 12;
  if (c.sum_pixels) return kMost;
  const GatherAxis& last = c.axes[kAxes - 1];
  if (!Slides(last) || lanes != 4) return kFew;
  const bool many = p.type == DataType::kF32    ? p.groups >= 32
                    : p.type == DataType::kBF16 ? p.groups >= 64 && last.taps <= 4
                                                : false;
  return many ? kMost : kFew;
}

// One channel to one, next to each other in both tensors, whole vectors of them, and few taps.
bool IsInPlace(const Contraction& c, const Problem& p, int lanes) {
  if (c.channels != 1 || c.o != 1 || c.g.channel != 1 || c.v.o != 1) return false;
  if (p.groups % lanes != 0) return false;
  // Each by itself first: products of extents may be more than can be counted.
  const int64_t most = MostTapsInPlace(c, p, lanes);
  for (const GatherAxis& axis : c.axes) {
    if (axis.taps > most) return false;
  }
  return c.taps() <= most;
}

// Each by itself first: products of extents may be more than can be counted.
bool HasFewTaps(const Contraction& c) {
  constexpr int64_t kMost = DirectTiling::kMostLines;
  return c.axes[0].taps <= kMost && c.axes[1].taps <= kMost && c.axes[2].taps <= kMostColumns &&
         c.axes[0].taps * c.axes[1].taps <= kMost;
}

// All taps at once, of one block in so many floats; no columns: they do not fit.
constexpr int64_t kFewColumns = 8;
DirectTiling TilingOfTaps(const Contraction& c, const Problem& p, int lanes, int64_t floats,
                          int64_t least_columns = kFewColumns) {
  DirectTiling t;
  t.vector_lanes = lanes;
  t.lanes = LanesOfBlock(lanes);
  t.used = t.lanes / c.o * c.o;
  t.blocks = t.block_tasks = CeilDiv(p.groups * c.o, t.used);
  t.on_stack = true;
  t.in_place = IsInPlace(c, p, lanes);
  t.carries = PositionsToCarry(c, t) > 0;
  if (!HasFewTaps(c) || !CutColumns(c, floats, least_columns, t)) t.columns = 0;
  if (t.in_place && t.columns > 0) {
    t.blocks_each = std::clamp<int64_t>(floats / TaskFloats(c, t), 1, t.blocks);
    t.block_tasks = CeilDiv(t.blocks, t.blocks_each);
  }
  return t;
}

// Of a wgrad of more taps than a task has memory for, parts: lines of taps first. Each tap is a sum
// of its own, so that parts share nothing.
DirectTiling TilingOfParts(const Contraction& c, const Problem& p, int lanes, int64_t floats) {
  DirectTiling t = TilingOfTaps(c, p, lanes, floats);
  if (t.columns > 0 || !c.sum_pixels) return t;
  Contraction part = c;
  for (GatherAxis& axis : part.axes) {
    while (axis.taps > 1 && t.columns == 0) {
      axis.taps = CeilDiv(axis.taps, 2);
      t = TilingOfTaps(part, p, lanes, floats);
    }
  }
  for (int a = 0; a < kAxes; ++a) {
    t.part_taps[a] = std::max<int64_t>(1, part.axes[a].taps);
    t.tap_parts *= CeilDiv(std::max<int64_t>(1, c.axes[a].taps), t.part_taps[a]);
  }
  return t;
}

// fprop, dgrad: a kernel that only workspace has room for, since all taps of an element are one
// sum. As many columns as fit beside it into half of L2. (64 channels of 1024 taps, stride 512, on
// a Neoverse-N1: a contraction of each group took 15 times as long.)
constexpr int64_t kNoLimit = -1;
DirectTiling TilingOfManyTaps(const Contraction& c, const Problem& p, const VectorUnit& unit) {
  return TilingOfTaps(c, p, unit.lanes, unit.l2_bytes / 2 / int64_t{sizeof(float)}, 1);
}

// Tasks for all threads: of images, which share nothing but the weights; then bands, of some
// height, since neighbours read the same lines; then columns.
void CutPixels(const Contraction& c, int threads, DirectTiling& t) {
  if (threads == 1) return;
  const int64_t lines = c.axes[0].pixels * c.axes[1].pixels;
  const int64_t least = std::max<int64_t>(1, 2 * c.axes[1].taps);
  int64_t wanted = CeilDiv(4 * threads, t.block_tasks);
  t.image_tasks = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, c.images));
  wanted = CeilDiv(wanted, t.image_tasks);
  t.bands = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, lines / least));
  wanted = CeilDiv(wanted, t.bands);
  constexpr int64_t kFew = DirectTiling::kMostColumnsInPlace;
  const int64_t parts =
      CeilDiv(c.axes[kAxes - 1].pixels, t.in_place ? std::min(t.columns, kFew) : t.columns);
  t.column_tasks = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, parts));
}

// Of g, of a block.
int64_t PositionFloats(const Contraction& c, const DirectTiling& t) {
  if (!HasFours(c, t.vector_lanes)) return c.channels * t.lanes;
  return CeilDiv(t.used / c.o * c.channels, 16) * 16;
}

LineSlots SlotsOf(const Contraction& c, const DirectTiling& t, int64_t columns) {
  const GatherAxis &depth = c.axes[0], &height = c.axes[1];
  LineSlots s;
  const GatherAxis& last = c.axes[kAxes - 1];
  s.span = SpanOf(last, columns);
  const int64_t read = std::min(kFar, columns * std::max<int64_t>(last.taps, 1));
  // Where channels are not next to each other, positions that are not are moved one by one: four
  // times the time.
  s.sparse = t.sparse.value_or((c.g.channel == 1 ? 1 : 4) * read < s.span);
  // Taps that are nearer to each other than pixels are read in their order.
  s.by_pixels = s.sparse && last.taps >= 8 && last.tap_step > 0 && last.tap_step < last.pixel_step;
  if (s.sparse) s.span = read;
  s.line_floats = s.span * PositionFloats(c, t);
  const auto fits = [&](int64_t planes, int64_t lines) {
    s.depth = planes;
    s.height = lines;
    // By division: spans of far taps may be more than can be multiplied.
    return planes <= t.most_lines / std::max<int64_t>(1, lines) && s.floats() <= t.line_floats;
  };
  const int64_t lines = PowerOfTwo(std::min(SpanOf(height, t.lines_each), height.limit));
  s.keeps_lines = s.keeps_planes = true;
  // At least as many lines as it would take without planes: a phase or a part of the taps that has
  // one plane has room for them.
  if (depth.taps > 1 &&
      fits(std::min(SpanOf(depth, 1), depth.limit), std::max(height.limit, lines))) {
    return s;
  }
  s.keeps_planes = false;
  if (fits(depth.taps, lines)) return s;
  s.keeps_lines = false;
  s.depth = depth.taps;
  s.height = height.taps;
  return s;
}

int64_t TasksAtOnce(const Problem& p, const DirectTiling& t, int threads) {
  return TasksWorthwhile(p,
                         p.samples() * t.block_tasks * t.image_tasks * t.bands * t.column_tasks *
                             t.chunk_parts * t.tap_parts,
                         threads);
}

// wgrad: tasks for all threads, of blocks; of few of them, chunks side by side, if their sums may
// be in workspace and are not too many.
void CutChunks(const Contraction& c, const Problem& p, int threads, bool slabs, DirectTiling& t) {
  if (threads == 1) return;
  const Chunks chunks = MakeChunks(c);
  const int64_t sums = t.blocks * SumFloatsOf(c, t), samples = p.samples();
  const int64_t tasks = samples * CeilDiv(t.blocks, t.blocks_each) * t.tap_parts;
  if (slabs && tasks < 4 * threads && samples == 1 && !chunks.chained && chunks.count() > 1 &&
      sums <= (int64_t{16} << 20) / chunks.count() / t.tap_parts) {
    t.chunk_parts = std::min<int64_t>(chunks.count(), CeilDiv(4 * threads, tasks));
    t.slab_floats = chunks.count() * sums * t.tap_parts;
  } else if (tasks < 4 * threads) {
    t.blocks_each = std::max<int64_t>(1, samples * t.blocks * t.tap_parts / (4 * threads));
  }
}

// Of a channel of an image, in both tensors. As a double: they may be more than can be counted.
double PlaneBytes(const Problem& p) {
  double in = 1, out = 1;
  for (const Axis& axis : p.axes) {
    in *= static_cast<double>(axis.in);
    out *= static_cast<double>(axis.out);
  }
  return std::max(1.0, (in + out) * static_cast<double>(SizeOf(p.type)));
}

// `p` with lines, as c has them; a block is a channel, or a group. Channels of an image after each
// other, and of several images where there are few of them; all images of a group.
DirectTiling AlongPixelsTiling(const Contraction& c, const Problem& p, int threads) {
  DirectTiling t;
  t.vector_lanes = PickedVectorUnit(p.type).lanes;
  t.groups_along_pixels = IsOfGroupsAlongPixels(c, p);
  t.along_pixels = !t.groups_along_pixels;
  t.on_stack = true;
  t.lanes = t.used = 1;
  t.blocks = p.groups;
  // A few tasks more than threads want, since cores are not equally fast.
  const int64_t planes = t.blocks * std::max<int64_t>(1, c.images);
  t.blocks_each = std::clamp<int64_t>(planes / (16 * threads), 1, t.blocks);
  t.pairs = t.along_pixels && HasPairs(p);
  // All phases of so many planes before others: what they read stays in L2.
  const bool again = t.pairs && CountPlainPhases(p) > 2;
  const double most = static_cast<double>(PickedVectorUnit(p.type).l2_bytes / 2) / PlaneBytes(p);
  const int64_t planes_each = again ? static_cast<int64_t>(std::clamp(most, 1.0, 1e9)) : planes;
  t.blocks_each = std::min(t.blocks_each, planes_each);
  t.block_tasks = CeilDiv(t.blocks, t.blocks_each);
  t.columns = std::max<int64_t>(1, c.axes[kAxes - 1].pixels);
  if (t.along_pixels) t.line_floats = FloatsOfZeroLine(c, p);
  CutPixels(c, threads, t);
  const int64_t images_each = std::max<int64_t>(1, planes_each / t.blocks);
  t.image_tasks = std::max(t.image_tasks, CeilDiv(c.images, images_each));
  t.column_tasks = 1;
  t.slots = TasksAtOnce(p, t, threads);
  return t;
}

}  // namespace

Contraction OfTaps(Contraction c, const DirectTiling& t, int64_t i) {
  for (int a = kAxes - 1; a >= 0 && t.tap_parts > 1; --a) {
    GatherAxis& axis = c.axes[a];
    const int64_t parts = std::max<int64_t>(1, CeilDiv(axis.taps, t.part_taps[a]));
    const int64_t first = i % parts * t.part_taps[a];
    i /= parts;
    axis.taps = std::min(t.part_taps[a], axis.taps - first);
    axis.first += first * axis.tap_step;
    c.w.first += first * c.w.at[a];
  }
  return c;
}

DirectMemory MemoryOf(const Contraction& c, const DirectTiling& t) {
  const int64_t columns = std::min(t.columns, c.axes[kAxes - 1].pixels);
  DirectMemory m;
  if (t.along_taps) {
    m.tap_line_floats =
        (columns - 1) * c.axes[kAxes - 1].pixel_step + TermsOfLine(c, t) + 2 * TapEdges::kEnd;
  } else if (t.in_place) {
    m.zero_floats = 2 * t.blocks_each * t.lanes;
    m.carry_floats = CarriedPositions(c, t) * t.blocks_each * t.lanes;
  } else {
    m.slots = SlotsOf(c, t, columns);
    m.tag_floats = CeilDiv(m.slots.count(), 8) * 16;
    m.weights_at = m.slots.floats() + t.lines_each * columns * t.lanes;
  }
  m.block_floats = m.weights_at + (c.sum_pixels ? 2 : 1) * SumFloatsOf(c, t);
  return m;
}

std::string DirectRefusal(const Problem& problem, int threads, int64_t limit) {
  if (!HasGroupsOfImages(problem) && !HasSmallGroups(problem)) {
    if (problem.groups > 1) return "groups have more than 16 channels";
    if (!IsSmallGroup(problem)) {
      if (!HasGroupsAlongPixels(problem)) return "there is one group, of more than 16 channels";
    } else if (!HasOneSmallGroup(problem)) {
      return "phases of its stride are columns of one contraction";
    }
    if (TermsEach(problem, PickedVectorUnit(problem.type)) > 1) {
      return "there is one group, of which this CPU multiplies several terms at once";
    }
  }
  const Problem p = WithLines(problem);
  const Contraction c = MakeLargestPlainContraction(p);
  if (IsAlongPixels(c, p) || IsOfGroupsAlongPixels(c, p) || IsAlongTaps(c, p)) return "";
  if (!c.sum_pixels && !HasFewTaps(c)) return "its kernel has too many taps";
  const VectorUnit unit = PickedVectorUnit(p.type);
  if (TilingOfParts(c, p, unit.lanes, DirectTiling::kStackFloats).columns > 0) return "";
  if (TilingOfManyTaps(c, p, unit).columns == 0) {
    return "its lines and taps do not fit into the memory of a task";
  }
  if (limit >= 0 && DirectTilingOf(problem, threads, kNoLimit).workspace_bytes() > limit) {
    return "its lines and taps do not fit into the workspace";
  }
  return "";
}

namespace {

DirectTiling AlongTapsTilingOf(const Contraction& all, const Problem& p, const Problem& problem,
                               int threads, int64_t limit) {
  DirectTiling t;
  for (const bool slabs : {true, false}) {
    t = AlongTapsTiling(all, p);
    CutChunks(all, problem, threads, slabs, t);
    t.block_tasks = CeilDiv(t.blocks, t.blocks_each);
    t.slots = TasksAtOnce(problem, t, threads);
    if (limit < 0 || t.workspace_bytes() <= limit) break;
  }
  return t;
}

// Of lines of images, parts for every thread, and no more than stay in L1 while one position of
// them is copied after the other.
void CutImages(const Contraction& c, const Problem& p, const Problem& problem, int threads,
               DirectTiling& t) {
  constexpr int64_t kLeast = 16, kMost = 64;
  if (c.sum_pixels || c.images >= problem.batch || p.groups != problem.groups) return;
  const int64_t each = CeilDiv(c.axes[kAxes - 1].pixels, 4 * int64_t{threads});
  t.columns = std::min(t.columns, std::clamp(each, kLeast, kMost));
}

// As many blocks at once as the cache holds, where the same lines of them are next to each other in
// memory: up to 8 KiB of each position, if need be of fewer columns.
void CutBlocks(const Contraction& c, const VectorUnit& unit, DirectTiling& t) {
  const int64_t wanted = std::min<int64_t>(t.blocks, 2048 / t.lanes);
  const int64_t least = 4 * SpanOf(c.axes[2], 1);
  const int64_t floats = unit.l2_bytes / 4 * 3 / int64_t{sizeof(float)};
  // In place, sums are loaded and stored for every few pixels: with what these read, they stay in
  // L2 (Neoverse-N1, 12304 channels, 4 taps: all at once 39 ms, 4096 34, 1024 43; not measured
  // on others).
  const int64_t most_summed = 4096 / t.lanes;
  for (;; t.columns = CeilDiv(t.columns, 2)) {
    t.blocks_each = 1;
    t.blocks_each = std::clamp<int64_t>(floats / TaskFloats(c, t), 1, t.blocks);
    if (c.sum_pixels && t.in_place && CarriedPositions(c, t) == 0)
      t.blocks_each = std::min(t.blocks_each, most_summed);
    if (t.blocks_each >= wanted || t.columns < 2 * std::max<int64_t>(least, 16)) break;
  }
}

// Of a weight gradient of groups of fours: lines of v that are summed one after the other while the
// sums of a line of taps stay in registers, and those of a block in L1. (Cascade Lake, with taps
// that slide: 32 groups of 16 of 14x14 7.4 ms, so 6.2; of 8 of 28x28 8.6, so 4.7; of twice the
// pixels no better. Vectors of fewer lanes were not measured.)
int64_t LinesEach(const Contraction& c, const VectorUnit& unit) {
  if (!c.sum_pixels || unit.lanes <= 8 || !HasFours(c, unit.lanes)) return 1;
  constexpr int64_t kPixels = 64;
  const int64_t most = DirectTiling::kMostLines / std::max<int64_t>(1, c.axes[0].taps) /
                       std::max<int64_t>(1, c.axes[1].taps);
  const int64_t wanted = kPixels / std::max<int64_t>(1, c.axes[kAxes - 1].pixels);
  return std::clamp<int64_t>(std::min({wanted, most, c.axes[1].pixels}), 1, PixelRows::kMost);
}

// Turned, planes of so many floats in a task, and sums of chunks side by side or not.
DirectTiling TurnedTilingOf(const Problem& p, const Problem& problem, int threads, int64_t floats,
                            bool slabs) {
  const VectorUnit unit = PickedVectorUnit(p.type);
  const Contraction c = MakeLargestPlainContraction(p);
  DirectTiling t;
  t.vector_lanes = unit.lanes;
  t.turned = t.in_place = true;
  t.lanes = t.used = LanesOfBlock(unit.lanes);
  t.blocks = CeilDiv(p.groups, t.used);
  t.columns = std::min(c.axes[kAxes - 1].pixels, DirectTiling::kMostColumnsInPlace);
  t.plane_positions = TurnedPlanes::PositionsOf(p);
  t.blocks_each = std::clamp<int64_t>(floats / (t.plane_positions * t.lanes), 1, t.blocks);
  if (c.sum_pixels) {
    CutChunks(c, problem, threads, slabs, t);
  } else if (threads > 1) {
    // Of few images, tasks of fewer blocks, and as many in each.
    const int64_t wanted = CeilDiv(4 * threads, std::max<int64_t>(1, p.batch));
    t.blocks_each = std::min(t.blocks_each, CeilDiv(t.blocks, wanted));
    t.blocks_each = CeilDiv(t.blocks, CeilDiv(t.blocks, t.blocks_each));
  }
  t.block_tasks = CeilDiv(t.blocks, t.blocks_each);
  if (!c.sum_pixels && threads > 1) {
    t.image_tasks =
        std::clamp<int64_t>(CeilDiv(4 * threads, t.block_tasks), 1, std::max<int64_t>(1, p.batch));
  }
  // Neighbours in different banks of L1: a Neoverse-N1 loads two vectors in a cycle then. Vectors
  // that are wider would lie across its lines.
  t.plane_width = t.blocks_each * t.lanes + (unit.lanes == 4 ? 4 : 0);
  t.task_floats = TurnedPlanes::WholeLines(t.plane_positions * t.plane_width) +
                  CountPlainPhases(p) * TurnedPlanes::WholeLines(TaskFloats(c, t));
  t.on_stack = t.task_floats <= DirectTiling::kStackFloats;
  t.slots = TasksAtOnce(problem, t, threads);
  return t;
}

// As many blocks at once as stay in L2 with what they are turned to: tables of positions are made
// once for all of them.
std::optional<DirectTiling> TurnedTiling(const Problem& problem, int threads, int64_t limit) {
  const Problem p = WithPlanes(problem), lines = WithLines(problem);
  const VectorUnit unit = PickedVectorUnit(p.type);
  const bool by_twos = HasPairs(lines) && IsAlongPixels(MakeLargestPlainContraction(lines), lines);
  if (!HasTurnedPlanes(p, unit.lanes, by_twos)) return std::nullopt;
  for (const int64_t floats :
       {unit.l2_bytes / 4 / int64_t{sizeof(float)}, DirectTiling::kStackFloats / 2}) {
    for (const bool slabs : {true, false}) {
      const DirectTiling t = TurnedTilingOf(p, problem, threads, floats, slabs);
      if (limit < 0 || t.workspace_bytes() <= limit) return t;
    }
  }
  return std::nullopt;
}

}  // namespace

DirectTiling DirectTilingOf(const Problem& problem, int threads, int64_t limit) {
  if (const auto turned = TurnedTiling(problem, threads, limit)) return *turned;
  const Problem p = WithLines(problem);
  const Contraction all = MakeLargestPlainContraction(p);
  if (IsAlongPixels(all, p) || IsOfGroupsAlongPixels(all, p)) {
    return AlongPixelsTiling(all, p, threads);
  }
  if (IsAlongTaps(all, p)) return AlongTapsTilingOf(all, p, problem, threads, limit);
  const VectorUnit unit = PickedVectorUnit(p.type);
  DirectTiling stack = TilingOfParts(all, p, unit.lanes, DirectTiling::kStackFloats);
  // Lines from the second-level cache. Each part of the taps copies them again: as few as it takes.
  const int64_t block_floats = unit.l2_bytes / 8 / int64_t{sizeof(float)};
  const bool many_taps = stack.columns == 0;
  DirectTiling first = many_taps ? TilingOfManyTaps(all, p, unit) : stack;
  if (stack.tap_parts > 1) {
    first = TilingOfParts(all, p, unit.lanes, std::max(block_floats, DirectTiling::kStackFloats));
  }
  const Contraction c = OfTaps(all, first, 0);  // no part has more
  const auto cut = [&](DirectTiling& tiling) {
    if (!c.sum_pixels) CutPixels(c, threads, tiling);
    tiling.slots = TasksAtOnce(problem, tiling, threads);
  };
  // What of a third-level cache is there for one core is not known (Neoverse-N1, L2 of 1 MiB:
  // dgrads of stride two that read and write 12 MB the same, 6 MB slower, 24 MB faster; Cascade
  // Lake gained nothing, so vectors of four lanes alone).
  first.far_out = stack.far_out = unit.lanes == 4 && first.in_place &&
                                  CountBytes(p) >= 12.0 * static_cast<double>(unit.l2_bytes);
  first.on_stack = false;
  if (!many_taps) CutColumns(c, block_floats, kFewColumns, first);
  CutImages(c, p, problem, threads, first);
  const bool channels_inside = c.g.channel == 1 || c.v.o == 1;
  // Lines that have to be turned are worth half of the cache: so, more often all planes that taps
  // read stay there, and no line is turned for every plane of taps (Neoverse-N1, 3x3x3, 64 channels
  // of 16x32x32: 9.2 ms, so 7.3; groups of 4 of 8x28x28 13.1, so 12.0).
  for (int64_t share = channels_inside ? 1 : 4; share > 0; share /= 4) {
    DirectTiling t = first;
    t.line_floats = share * block_floats;
    t.most_lines = t.line_floats / 8;
    t.lines_each = LinesEach(c, unit);
    if (channels_inside) CutBlocks(c, unit, t);
    if (t.columns < c.axes[kAxes - 1].pixels || !MemoryOf(c, t).slots.keeps_lines) t.lines_each = 1;
    if (c.sum_pixels) CutChunks(c, problem, threads, true, t);
    t.block_tasks = CeilDiv(t.blocks, t.blocks_each);
    // No phase may take more than the largest.
    const LineSlots slots = MemoryOf(c, t).slots;
    t.sparse = slots.sparse;
    t.line_floats = slots.floats();
    t.most_lines = slots.count();
    t.task_floats = CeilDiv(TaskFloats(c, t), 16) * 16;
    t.on_stack = t.task_floats <= DirectTiling::kStackFloats;
    cut(t);
    if (limit < 0 || many_taps || t.workspace_bytes() <= limit) return t;
  }
  CutImages(c, p, problem, threads, stack);
  stack.sparse = MemoryOf(OfTaps(all, stack, 0), stack).slots.sparse;
  cut(stack);
  return stack;
}

std::string DirectText(const Problem& problem, int threads, int64_t limit) {
  const DirectTiling t = DirectTilingOf(problem, threads, limit);
  const Problem p = WithLines(problem);
  const Contraction c = MakeLargestPlainContraction(p);
  const std::string widened = t.turned     ? ", widened to f32 when it is turned"
                              : t.in_place ? ", widened to f32 when it is loaded"
                                           : ", widened to f32 when a line is copied";
  const std::string unit = Join("; ", PickedVectorUnit(problem.type).name,
                                problem.type == DataType::kF32 ? "" : widened);
  const int64_t groups = std::min(t.used / std::max<int64_t>(1, c.o), p.groups);
  const int64_t lanes = groups * c.o;
  if (t.turned) {
    return Join("blocks of ", lanes, " channels, ", t.blocks_each, " of ", t.blocks,
                " in a task, whose planes are turned; vectors along channels",
                t.chunk_parts > 1 ? ", chunks side by side" : "", unit);
  }
  if (t.along_taps) {
    return Join(t.blocks_each, " of ", t.blocks, " channels in a task; vectors along taps",
                t.chunk_parts > 1 ? ", chunks side by side" : "", unit);
  }
  if (t.groups_along_pixels) {
    return Join(t.blocks_each, " of ", t.blocks, " groups in a task; vectors along pixels",
                problem.type == DataType::kF32 ? ", in place: no line is copied" : "", unit);
  }
  if (t.along_pixels) {
    return Join(t.blocks_each, " of ", t.blocks, " channels in a task; vectors along pixels",
                t.pairs ? ", two phases at once" : "",
                problem.type == DataType::kF32 ? ", in place: no line is copied" : "", unit);
  }
  return Join("blocks of ", lanes, " channels, ", t.blocks_each, " of ", t.blocks,
              " in a task; vectors along channels",
              groups > 1 && c.o * c.channels > 1 ? Join(" of ", groups, " groups") : "",
              t.in_place ? ", in place: no line is copied" : "",
              t.chunk_parts > 1 ? ", chunks side by side" : "", unit);
}

}  // namespace convgrad
