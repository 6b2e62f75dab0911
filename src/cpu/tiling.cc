#include "cpu/tiling.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "cpu/element.h"
#include "cpu/lines.h"
#include "cpu/live.h"
#include "cpu/positions.h"

namespace convgrad {
namespace {

struct Shape {
  int mr, vectors;
};

// Tiles of 24 sums leave 8 of 32 registers for operands; of 12, 4 of 16. Fewer sums than 16 do not
// hide the 4 cycles of a multiply-add on 4 units. The last is for sides of up to 4.
constexpr Shape kShapes32[] = {{12, 2}, {8, 3}, {4, 6}};
static_assert(kShapes32[0].mr == Tiling::kMostRowsOfSingles);
constexpr Shape kShapes16[] = {{6, 2}, {4, 3}, {2, 6}};
// Four tile registers of AMX.
constexpr Shape kShapesAmx[] = {{32, 2}, {16, 4}};

std::span<const Shape> ShapesOf(const VectorUnit& unit, int64_t k_unit) {
  if (k_unit > 1) return kShapesAmx;
  return unit.registers >= 32 ? std::span<const Shape>(kShapes32) : kShapes16;
}

// CeilDiv of counts, nearly all of which have 31 bits: x86 before Ice Lake takes 40 to 90 cycles
// for a division of 64, and a plan makes a hundred (Cascade Lake, 16 threads, no workspace: 14.8
// us, so 10.0).
int64_t PartsOf(int64_t count, int64_t each) {
  if (static_cast<uint64_t>(count | each) >> 31 != 0) return CeilDiv(count, each);
  const uint32_t of = static_cast<uint32_t>(each);
  return (static_cast<uint32_t>(count) + of - 1) / of;
}

int64_t RoundUp(int64_t value, int64_t multiple) { return PartsOf(value, multiple) * multiple; }
int64_t RoundDown(int64_t value, int64_t multiple) {
  return std::max(value / multiple, int64_t{1}) * multiple;
}

// The share of multiply-adds of m x n, cut into tiles, that count.
double Use(int64_t m, int64_t n, int mr, int nr) {
  return static_cast<double>(m) / static_cast<double>(RoundUp(m, mr)) * static_cast<double>(n) /
         static_cast<double>(RoundUp(n, nr));
}

// Memory of a task, in floats. A block of b stays in L2 while c and a stream past it.
struct Budget {
  int64_t b, c;
};

// A tensor of 2^60 elements has more tasks than can be counted; nobody runs them.
int64_t Product(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || __builtin_mul_overflow(product, c, &product)
             ? INT64_MAX
             : product;
}

// Cuts [0, extent) into `count` blocks, multiples of `unit`, as even as can be.
int64_t EvenBlock(int64_t extent, int64_t count, int64_t unit) {
  return RoundUp(PartsOf(std::max<int64_t>(extent, 1), std::max<int64_t>(count, 1)), unit);
}

// Cycles to pack an element of a and of b, and multiply-adds in a cycle: what more and smaller
// blocks cost. Measured on a Neoverse-V1 and, with AVX-512, on a Xeon of the Sapphire-Rapids class.
struct Rates {
  double a, b, multiply_adds;
  // For each term of a chunk and each block of rows that share positions, instead of `a`.
  double positions = 0, position_rows = 0;
};

Rates RatesOf(const Contraction& c, const Tiling& t, const VectorUnit& unit) {
  // AVX-512 multiplies faster than caches follow: with 16 threads (Sapphire-Rapids class) 0.9
  // cycles were measured for copies, 1.5 for turned values, 2.4 for those that are moved one by
  // one, and more for those of a sum over pixels, which no cache of one core holds.
  const bool is_wide = unit.lanes > 8;
  const double wide = !is_wide ? 1 : c.sum_pixels ? 5 : 3;
  const double copied = is_wide ? 0.3 : 0.2, turned = is_wide ? 0.5 : 0.4;  // times `wide`
  const double gathered = is_wide ? 0.8 : 2, for_run = 8;
  const bool g_copied =
      c.sum_pixels ? c.g.channel == 1 || t.a_by_rows : t.a_by_rows || c.g.at[kAxes - 1] == 1;
  const bool scattered = !c.sum_pixels && c.taps() > 1 && c.w.at[kAxes - 1] != 1;
  const double o = (c.sum_pixels ? c.v.o : c.w.o) == 1 ? copied : scattered ? gathered : turned;
  // Each run of neighbours costs something by itself: a line of an image, or the channels of a
  // chunk.
  const int64_t run =
      c.g.channel == 1 ? std::min<int64_t>(c.channels, 48) : c.axes[kAxes - 1].pixels;
  const double g =
      ((g_copied ? copied : turned) + for_run / static_cast<double>(std::max<int64_t>(run, 1))) /
      (t.twins ? 2 : 1);
  const double multiply_adds = (unit.lanes <= 4 ? 16.0 : 2.0 * unit.lanes) *
                               static_cast<double>(t.terms_each * (t.k_unit > 1 ? 4 : 1));
  return t.o_is_n ? Rates{wide * g, wide * o, multiply_adds}
                  : Rates{wide * o, wide * g, multiply_adds};
}

// Lines of b that taps share are packed once, if they are not too short for the tile: by how much
// that is faster. Of 32 pixels and 32 rows AVX-512 spent a third of the time packing.
double GainOfLines(const Contraction& c, int nr, double packing, const VectorUnit& unit) {
  if (!MakeLines(c, nr, 4, unit.lanes).shared) return 1;
  return (1 + packing) / (1 + packing / static_cast<double>(c.axes[kAxes - 1].taps));
}

void ChooseShape(Tiling& t, const Contraction& c, int64_t m, int64_t n, const VectorUnit& unit,
                 const Rates& rates, int64_t most_columns) {
  double best = 0;
  // Of b, beside multiplying.
  const double packing = rates.b * rates.multiply_adds / static_cast<double>(m);
  for (const Shape& shape : ShapesOf(unit, t.k_unit)) {
    const int nr = shape.vectors * unit.lanes;
    double use = Use(m, n, shape.mr, nr);
    if (!t.o_is_n && t.k_unit == 1) use *= GainOfLines(c, nr, packing, unit);
    if (nr > most_columns || use <= best * 1.02) continue;
    best = use;
    t.mr = shape.mr;
    t.vectors = shape.vectors;
    t.nr = nr;
  }
}

// Cycles for each term of the sum of a block.
double CyclesOf(const Rates& rates, int64_t mb, int64_t nb) {
  const double m = static_cast<double>(mb), n = static_cast<double>(nb);
  double a = m * rates.a;
  if (rates.positions > 0) a = rates.positions * std::ceil(m / rates.position_rows);
  return m * n / rates.multiply_adds + a + n * rates.b;
}

// By how many blocks the last of two threads or more ends late, where each has `rounds` of them. Of
// 16 cores (Sapphire-Rapids class) those that somebody else uses too are up to 1.4 times as slow:
// the last thread ended 1.37 times as late as the mean with one or two blocks each, 1.13 times with
// three, 1.09 with four, when others do what it has not begun.
double Late(double rounds, int threads) {
  return (0.42 - 0.84 / threads) * (rounds <= 2 ? rounds : 1);
}

// How to share out blocks of `rows` and `o`: the time of the best way, in cycles for each term.
struct Shares {
  int64_t rows = 0, o = 0, tail_from = -1, tail_rows = 0;
  double cycles = INFINITY;

  void Consider(const Shares& other) {
    if (other.cycles < 0.99 * cycles) *this = other;
  }
};

// More blocks share out more evenly, and pack more: of numbers of blocks that give every thread one
// to four of them, the one with the least time. Where each has one or two, rows may be left for
// small blocks at the end: as many as the other threads do while the last one ends its large ones.
// `work`: contractions like the largest, all in all.
double ShareOut(Tiling& t, int64_t m, int64_t n, double work, int threads, const Rates& rates) {
  const int64_t rows = t.o_is_n ? m : n;
  const int64_t row_unit = !t.o_is_n ? t.nr : t.mb >= t.row_unit(m) ? t.row_unit(m) : t.mr;
  const int64_t o = t.o_is_n ? n : m, o_unit = t.o_is_n ? t.nr : t.mr;
  const Shares most{t.o_is_n ? t.mb : t.nb, t.o_is_n ? t.nb : t.mb};
  const auto cycles = [&](int64_t of_rows, int64_t of_o) {
    return t.o_is_n ? CyclesOf(rates, of_rows, of_o) : CyclesOf(rates, of_o, of_rows);
  };
  const int64_t least_blocks = PartsOf(rows, most.rows), o_blocks = PartsOf(o, most.o);
  const double least_rounds =
      work * static_cast<double>(least_blocks) * static_cast<double>(o_blocks) / threads;
  if (least_rounds > 16) return least_rounds * cycles(most.rows, most.o);  // even enough
  const int most_rounds = static_cast<int>(least_rounds) + 4;
  Shares best = most;
  for (int64_t i = o_blocks; i <= o_blocks + std::min(threads, 16); ++i) {
    const int64_t o_block = EvenBlock(o, i, o_unit);
    if (PartsOf(o, o_block) != i) continue;
    const double tasks = work * static_cast<double>(i);  // for each block of rows
    int64_t before = 0;
    for (int rounds = 1; rounds <= most_rounds; ++rounds) {
      const double blocks = rounds * threads / tasks, late = Late(rounds, threads);
      const int64_t large = static_cast<int64_t>(blocks);
      const int64_t even =
          std::min(EvenBlock(rows, std::max(least_blocks, large), row_unit), most.rows);
      if (even != before) {
        const double each = std::ceil(tasks * static_cast<double>(PartsOf(rows, even)) / threads);
        best.Consider({even, o_block, -1, 0, (each + Late(each, threads)) * cycles(even, o_block)});
      }
      before = even;
      if (rounds > 2 || large < 1) continue;
      const double all_blocks = blocks * (1 + late / rounds);
      const int64_t block =
          RoundUp(static_cast<int64_t>(static_cast<double>(rows) / all_blocks), row_unit);
      if (block < 2 * row_unit || block > most.rows || large * block >= rows) continue;
      const int64_t small = RoundUp(PartsOf(block, 4), row_unit), rest = rows - large * block;
      const double of_block = cycles(block, o_block), of_small = cycles(small, o_block);
      const double all = tasks * (static_cast<double>(large) * of_block +
                                  static_cast<double>(PartsOf(rest, small)) * of_small);
      best.Consider(
          {block, o_block, large * block, small,
           std::max((rounds + late) * of_block, all / threads + Late(1, threads) * of_small)});
    }
  }
  t.mb = t.o_is_n ? best.rows : best.o;
  t.nb = t.o_is_n ? best.o : best.rows;
  t.tail_from = best.tail_from;
  t.tail_rows = best.tail_rows;
  return best.cycles;
}

void ChooseBlocks(Tiling& t, int64_t m, int64_t n, const Budget& budget) {
  constexpr int64_t kMostRows = 1024;
  // Of a short sum b would hold more columns than c has room for in one row of tiles.
  const int64_t columns =
      std::min<int64_t>({budget.b / std::max<int64_t>(t.kc_floats, 1), budget.c / t.mr,
                         static_cast<int64_t>(Tiling::kMostColumns) / (t.twins ? 2 : 1)});
  t.nb = EvenBlock(n, PartsOf(n, RoundDown(columns, t.nr)), t.nr);
  const int64_t most = t.keeps_c ? std::min(kMostRows, budget.c / t.nb) : kMostRows;
  const int64_t unit = most >= t.row_unit(m) ? t.row_unit(m) : t.mr;
  t.mb = std::min(EvenBlock(m, PartsOf(m, RoundDown(most, unit)), unit),
                  RoundUp(std::max<int64_t>(m, 1), t.mr));
  t.tail_from = -1;
  t.tail_rows = 0;
}

// The whole result as one block, its chunks side by side, if that beats blocks of `t`, which take
// `cycles` for each term: nothing is packed more often than once for each part of the rows. Rows
// that share positions are not cut: with 16 threads 128 channels, in three parts, took up to 1.3
// times as long as without them. `cycles` becomes the time of the better way.
bool SplitSum(Tiling& t, int64_t m, int64_t n, int threads, const Chunks& chunks, int64_t limit,
              const Rates& rates, int64_t l2_floats, double& cycles) {
  constexpr int64_t kMostShared = 4 << 20;
  // Cycles to start all threads twice: 6 us of 16 (Sapphire-Rapids class).
  const double round = 1000.0 * threads;
  if (m > kMostShared || n > Tiling::kMostColumns || chunks.chained) return false;
  Tiling split = t;
  split.mb = RoundUp(m, t.mr);
  split.nb = RoundUp(n, t.nr);
  split.keeps_c = true;
  split.tail_from = -1;
  split.tail_rows = 0;
  if (split.nb > Tiling::kMostColumns) return false;
  const int64_t count = chunks.count(), most = kMostShared / split.slab_floats();
  const double terms = static_cast<double>(t.kc);
  double least = 0.95 * cycles * terms * static_cast<double>(count);
  split.slots = threads;
  split.slot_floats = Tiling::kAlign + split.a_floats() + split.b_floats();
  Tiling best;
  const int64_t most_parts = t.positions > 0 ? 1 : std::min<int64_t>(threads, PartsOf(m, t.mr));
  for (int64_t parts = 1; parts <= most_parts; ++parts) {
    const int64_t rows = EvenBlock(m, parts, t.mr);
    if (PartsOf(m, rows) != parts) continue;
    // Two rounds of all threads, which stay in L2, or all at once.
    for (const int64_t slabs : {std::min(count, 2 * int64_t{threads} / parts), count}) {
      split.slabs = slabs;
      split.part_rows = rows;
      if (slabs < 2 || slabs > most || (limit >= 0 && split.workspace_bytes() > limit)) continue;
      // Cycles for each sum that is written to a slab and added.
      const bool near = (slabs + 1) * split.slab_floats() <= threads * l2_floats / 8;
      const double add = near ? 0.75 : 2, batches = static_cast<double>(PartsOf(count, slabs));
      const double tasks = static_cast<double>(PartsOf(slabs * parts, threads));
      const double task = CyclesOf(rates, rows, n) * terms + add * static_cast<double>(rows * n);
      const double time = batches * (tasks + Late(tasks, threads)) * task + (batches - 1) * round;
      if (time >= least) continue;
      least = time;
      best = split;
    }
  }
  if (best.slabs == 0) return false;
  t = best;
  cycles = least / (terms * static_cast<double>(count));
  return true;
}

// Floats that a row of the longest chunk takes.
int64_t ChunkFloats(const Contraction& c, int64_t kc) {
  if (c.terms_each == 1) return kc;
  const int64_t floats = c.terms_each / 2;  // of an element
  const int64_t elements = c.sum_pixels ? PartsOf(kc, c.terms_each)
                                        : Product(c.taps(), PartsOf(c.channels, c.terms_each), 1);
  return floats * std::min(elements, Chunks::kLongestOfElements / c.terms_each);
}

// Whether the positions that all taps of a weight gradient read are packed once for all of them, on
// a CPU that multiplies by a float of memory for free. Time of this / of copies for each tap,
// AVX-512 (Sapphire-Rapids class), one thread, 3x3: channels first 0.89 to 0.91 (64 channels), 0.9
// to 1 (128 to 512); 16 threads 0.7 to 0.9 (256 and 512), 0.9 to 1 (4x4 of stride 2). Channels last
// 0.87 (64) to 1 (128); more of them, whose copies run along memory and are read more often, 1
// to 1.1. It is not worth it for every second pixel of 3x3 (0.94 to 1.05) or three taps of one axis
// (0.98 to 1.09). Only panels of one tap can be read like that: most must be.
void ChoosePositions(Tiling& t, const Contraction& c, const Chunks& chunks, const VectorUnit& unit,
                     Rates& rates) {
  constexpr int64_t kFewChannels = 128;
  const int64_t whole = c.row_block / t.mr * t.mr;  // rows of a block in panels of one tap
  if (!unit.a_by_rows || !c.sum_pixels || !t.o_is_n || t.terms_each > 1 ||
      2 * whole <= c.row_block + t.mr || chunks.count() == 0 || !CanShareTaps(c)) {
    return;
  }
  if (c.g.channel == 1 && (c.channels > kFewChannels || c.o > kFewChannels)) return;
  const int64_t rows = RoundUp(c.row_block, t.mr), most = MostPositions(c, chunks);
  const int64_t most_floats = unit.l2_bytes / int64_t{sizeof(float)} / 4;
  if (3 * most > c.taps() * chunks.longest() || most > most_floats / rows) return;
  t.positions = most;
  t.position_floats = RoundUp(most * rows, Tiling::kAlign);
  t.position_rows = c.row_block * c.taps();
  t.a_panels = 1;                                // those that are packed have others beside them
  const double cycles = unit.lanes > 8 ? 2 : 1;  // of an element
  rates.positions = cycles * static_cast<double>(most * c.row_block) / static_cast<double>(t.kc);
  rates.position_rows = static_cast<double>(t.position_rows);
}

void DropPositions(Tiling& t) {
  if (t.positions > 0) t.a_panels = Tiling().a_panels;
  t.positions = t.position_floats = t.position_rows = 0;
}

// The best that any tile makes of m x n.
double BestUse(int64_t m, int64_t n, const VectorUnit& unit) {
  double best = 0;
  for (const Shape& shape : ShapesOf(unit, 1)) {
    best = std::max(best, Use(m, n, shape.mr, shape.vectors * unit.lanes));
  }
  return best;
}

// Whether vectors go along o, though pixels are what is contiguous in the result. Lines of pixels
// are no multiple of a wide vector, so that each tap copies its own; as a, lines of fours are
// copied once for all taps (lines.h), and turning the result costs less. Lines of 7 and 14, which
// are not shared, gain as well: panels of 12 cut them less often than panels of 48 do. AVX-512
// (Sapphire-Rapids class), 3x3, time of this / of vectors along pixels: dgrad 0.58 to 0.96, fprop
// 0.6 to 0.98; 5x5 0.9. Not for one line of taps (fprop 1.0 to 1.17), many weights to turn (1.02 to
// 1.12) or every second pixel (1.06 to 1.15).
bool PutsPixelsAcross(const Contraction& c, const VectorUnit& unit) {
  constexpr int64_t kMostTurned = 256 * 256;
  const GatherAxis& axis = c.axes[kAxes - 1];
  if (unit.lanes <= 8 || c.terms_each > 1 || c.sum_pixels || c.columns.channels > 0) return false;
  if (axis.taps < 3 || axis.pixel_step > 1 || c.o < 2 * unit.lanes) return false;
  const bool one_line = c.taps() == axis.taps, turned = c.w.o > c.w.channel;
  if (turned && (one_line || c.channels > kMostTurned / c.o)) return false;
  const int64_t rows = std::max<int64_t>(c.rows(), 1);
  return BestUse(rows, c.o, unit) >= 0.98 * BestUse(c.o, rows, unit);
}

// Whether blocks whose b fills L2 share lines, of pixels as columns.
bool SharesLines(const Contraction& c, int64_t nr, int64_t kc, const VectorUnit& unit) {
  const int64_t floats = unit.l2_bytes / int64_t{sizeof(float)};
  const int64_t columns = RoundDown(floats / std::max<int64_t>(kc, 1), nr);
  return LinesOfColumns(c, nr, std::min<int64_t>(columns, Tiling::kMostColumns), unit.lanes).shared;
}

// Whether phases as columns fill the 12 rows of a tile of NEON, of which some taps meet a quarter
// or half: the others are left out (tile.h), which lanes of a vector could not be. (Neoverse-N1, 64
// channels to 3, stride 2, channels first and last, ms: 4x4, 256x256, 15.9 and 16.6, so 9.9 and
// 11.3; 7x7, 224x224, 80 and 86, so 67 and 67; 5x5, 64x64, 4.5 and 4.2, so 3.1 and 3.3.)
bool LeavesOutRows(const Contraction& c, const VectorUnit& unit) {
  constexpr int64_t kRows = 12, kPixels = 8;
  if (unit.a_by_rows || c.o != kRows || c.terms_each > 1 || c.taps() == 0) return false;
  return SharesLines(c, kPixels, std::min(c.channels * c.taps(), Chunks::kLongest), unit) &&
         (RowsOfTap(c, 0) != kAllRows || RowsOfTap(c, c.taps() - 1) != kAllRows);
}

// All but the tile, the blocks and the memory.
Tiling ChooseSides(const Contraction& c, const Chunks& chunks, const VectorUnit& unit) {
  Tiling t;
  // Phases with fewer taps have other chunks, but none with more terms than there are.
  t.kc = c.sum_pixels ? chunks.longest()
                      : std::min(c.channels * c.taps(),
                                 c.terms_each == 1 ? Chunks::kLongest : Chunks::kLongestOfElements);
  t.terms_each = c.terms_each;
  if (t.terms_each > 1) t.k_unit = unit.k_unit;
  t.kc_floats = RoundUp(ChunkFloats(c, t.kc), t.k_unit);
  t.keeps_c = chunks.count() > 1;
  // Vectors go along the side of the result that is contiguous; where both or none are, along o.
  t.o_is_n = c.sum_pixels ? c.w.o == 1 || c.w.channel != 1 : c.v.o == 1 || c.v.at[kAxes - 1] != 1;
  // Phases as columns lie between each other: none of both sides is contiguous. Vectors go along
  // them, unless they fill half of the narrowest tile or less (3 channels in 4 phases, AVX-512).
  if (c.columns.channels > 0) t.o_is_n = c.o > unit.lanes && !LeavesOutRows(c, unit);
  if (c.zipped || PutsPixelsAcross(c, unit)) t.o_is_n = true;
  if (c.o <= 4 && unit.lanes > 2 && !c.zipped) t.o_is_n = false;
  t.boxes = c.boxes;
  if (t.boxes) t.o_is_n = true;  // a panel of a for itself, b for all of them
  // Copied where k is contiguous: along channels, or, in a sum over pixels, along them.
  t.a_by_rows = unit.a_by_rows && t.o_is_n && !t.boxes &&
                (c.sum_pixels ? c.g.channel != 1 && c.axes[kAxes - 1].pixel_step <= 2 &&
                                    c.g.at[kAxes - 1] == 1
                              : CopiesTapRuns(c) || (c.g.channel == 1 && c.channels >= 4));
  if (t.k_unit > 1) {  // always, and as many rows as other tiles have in three panels
    t.a_by_rows = true;
    t.a_panels = 1;
  }
  // A line of OIX weights has several taps, which are rows far apart: written panel by panel of
  // columns, at the end, they meet in L1.
  t.stores_last = c.sum_pixels && c.taps() > 1 && c.row_block < c.channels;
  t.stores_last |= c.zipped;
  t.keeps_c |= t.stores_last;
  t.results = c.zipped ? 2 : 1;
  t.twins = c.twins;
  return t;
}

// One group of few outputs or few channels: packing takes more than multiplying, elements are
// mostly filled up, and the direct kernel, which sums no elements, does not pack. Sapphire Rapids,
// AMX, 1 to 256 channels, 1x1 to 7x7, time widened / by the instruction, both layouts: to 1 to 4
// outputs, of up to 16 channels 0.1 to 1.0, of 32 0.3 to 2.2 (geometric mean 0.8), of 64 0.3 to 2.9
// (1.2). Of 2 to 4 channels to 6 to 16 outputs 0.2 to 1.5 of stride one, 0.3 to 3 of stride two. No
// other instruction has been timed, and none is left out.
bool HasFewForPairs(const Problem& p, const Contraction& c, const VectorUnit& unit) {
  constexpr int64_t kFew = 4, kMostChannels = 32, kMostOutputs = 16;
  const bool amx = unit.terms_each == kTermsOf<Pair> && unit.k_unit > 1;
  if (!amx || p.groups != 1) return false;
  if (c.o <= kFew) return c.channels <= kMostChannels;
  bool strided = false;
  for (const Axis& axis : p.axes) strided |= axis.stride > 1 && p.pass == Pass::kFprop;
  return c.o <= kMostOutputs && c.channels <= kFew && !strided;
}

}  // namespace

int64_t TermsEach(const Problem& p, const Contraction& c, const VectorUnit& unit) {
  if (HasSmallGroups(p)) return 1;
  if (c.sum_pixels) return unit.terms_each;
  // Then a chunk never takes more memory than one of floats: its taps times its channels, filled
  // up, are at most kLongestOfElements.
  const bool fits = c.taps() <= Chunks::kLongestOfElements / 4;
  return c.channels > 1 && fits && !HasFewForPairs(p, c, unit) ? unit.terms_each : 1;
}

int64_t TermsEach(const Problem& p, const VectorUnit& unit) {
  return unit.terms_each == 1 ? 1 : TermsEach(p, MakeLargestContraction(p), unit);
}

bool HasBoxes(const Problem& p, const Contraction& c, const VectorUnit& unit) {
  // 3x3 on 2x2, 1.5 times the products: 1.25 to 1.34 of the time; of dilation 18 on 33x33, 1.57:
  // 0.83. A box costs something for each tap and panel, which one of few channels is not worth (1
  // to 33, 2x2x2: 3.2).
  constexpr double kWorthIt = 1.55;
  constexpr int64_t kFewChannels = 16;
  if (c.terms_each > 1 || std::min(c.o, c.channels) < kFewChannels) return false;
  // Vectors go along o then, wherever they went before.
  const int64_t columns = std::max(2 * unit.lanes, 8);
  const bool anyway = c.v.o == 1 || c.v.at[kAxes - 1] != 1 || c.zipped;
  const double use =
      anyway ? 1 : static_cast<double>(c.o) / static_cast<double>(RoundUp(c.o, columns));
  return use * PaddedMultiple(p) >= kWorthIt;
}

Tiling MakeTiling(const Contraction& c, int64_t copies, int threads, int64_t limit,
                  const VectorUnit& unit) {
  const Chunks chunks = MakeChunks(c);
  // A thread that is given less than 10 us of work (Neoverse-V1: 200 000 multiply-adds) costs
  // more than it does.
  const double work = static_cast<double>(copies) * c.share * static_cast<double>(c.rows()) *
                      static_cast<double>(c.o) * static_cast<double>(chunks.outer) *
                      static_cast<double>(chunks.inner);
  const double least = 200e3 * static_cast<double>(c.terms_each);
  threads = static_cast<int>(std::clamp(work / least, 1.0, static_cast<double>(threads)));
  Tiling t = ChooseSides(c, chunks, unit);
  // Empty sides have no blocks to share out, but the sharing divides by their number.
  const int64_t rows = std::max<int64_t>(c.rows(), 1), o = std::max<int64_t>(c.o, 1);
  const int64_t m = t.o_is_n ? rows : o, n = t.o_is_n ? o : rows;
  Rates rates = RatesOf(c, t, unit);
  ChooseShape(t, c, m, n, unit, rates, Tiling::kMostColumns);
  const Rates plain = rates;
  ChoosePositions(t, c, chunks, unit, rates);
  copies = std::max<int64_t>(copies, 1);
  double cycles = INFINITY;
  const auto try_budget = [&](const Budget& budget) {
    ChooseBlocks(t, m, n, budget);
    if (threads > 1) {
      const double share = c.share / c.largest_pair;
      cycles = ShareOut(t, m, n, static_cast<double>(copies) * share, threads, rates);
    }
    t.slots = std::clamp<int64_t>(Product(copies, PartsOf(m, t.mb), PartsOf(n, t.nb)), 1, threads);
    t.slot_floats = Tiling::kAlign + t.a_floats() + t.b_floats() + t.c_floats();
  };
  // b takes half of L2, and c, which streams past it, may be as large as all of it (each c, where
  // there are two); of elements of several terms, whose products take less time than packing b
  // again, twice that (bf16 on a Neoverse-V1: 1.3 % in all, up to 7).
  const int64_t l2_floats = unit.l2_bytes / int64_t{sizeof(float)};
  Budget budget{l2_floats / (t.twins ? 4 : 2), t.terms_each == 1 ? l2_floats : 2 * l2_floats};
  // Lines that taps share fill half of what is counted for b, or less.
  if (!t.o_is_n && t.k_unit == 1 && SharesLines(c, t.nr, t.kc_floats, unit)) budget.b = l2_floats;
  const Budget stack{Tiling::kStackB, Tiling::kStackC / t.results};
  try_budget(budget);
  if (copies == 1 && !c.zipped && threads > 1) {
    Tiling split = t, shared = t;
    DropPositions(split);
    const bool splits = SplitSum(split, m, n, threads, chunks, limit, plain, l2_floats, cycles);
    // 16 threads, 64 channels last: 0.93 of the time; first, whose positions are turned: 1.14.
    if (t.positions > 0 && c.g.channel == 1 &&
        SplitSum(shared, m, n, threads, chunks, limit, rates, l2_floats, cycles)) {
      return shared;
    }
    if (splits) return split;
  }
  const auto stack_holds = [&] {
    return t.b_floats() <= Tiling::kStackB && t.c_floats() <= Tiling::kStackC;
  };
  if (t.positions > 0 && (stack_holds() || (limit >= 0 && t.workspace_bytes() > limit))) {
    DropPositions(t);
    rates = plain;
    try_budget(budget);
  }
  for (; budget.b > stack.b; try_budget(budget)) {
    if (stack_holds()) break;  // a small problem needs no workspace
    if (limit < 0 || t.workspace_bytes() <= limit) return t;
    budget = {budget.b / 2, budget.c / 2};
  }
  if (t.kc_floats * t.nr > stack.b) {
    ChooseShape(t, c, m, n, unit, rates, stack.b / t.kc_floats);
    try_budget(stack);
  }
  // Of c the stack holds less than halving both has left: 6 Ki floats.
  if (t.c_floats() > Tiling::kStackC) try_budget(stack);
  DropPositions(t);
  t.twins = false;  // the stack has room for the columns of one
  t.slot_floats = 0;
  t.a_panels = 1;
  return t;
}

}  // namespace convgrad
