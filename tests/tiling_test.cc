// Blocks on every vector unit there is, AVX-512 too on machines that have none: they fit the
// workspace, the stack and the arrays of a task, and a run finds the plan's blocks again.
#include "cpu/tiling.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

#include "cpu/block_tasks.h"
#include "cpu/element.h"
#include "cpu/engine.h"
#include "cpu/lines.h"
#include "tests/random_problem.h"

namespace convgrad {
namespace {

constexpr VectorUnit kUnits[] = {{"SCALAR", 1, 32, true},
                                 {"NEON", 4, 32, false},
                                 {"AVX2", 8, 16, true},
                                 {"AVX3", 16, 32, true},
                                 {"NEON with BFMMLA", 4, 32, false, 1 << 20, 4},
                                 {"AVX3 with AVX512-BF16", 16, 32, true, 1 << 20, 2},
                                 {"AVX3 with AMX", 16, 32, true, 1 << 20, 2, 16}};

Contraction Largest(const Problem& problem, const VectorUnit& unit) {
  Contraction c = MakeLargestContraction(problem);
  const int64_t terms_each = c.terms_each = TermsEach(problem, c, unit);
  if (HasBoxes(problem, c, unit)) c = MakeLargestContraction(problem, true);
  c.terms_each = terms_each;
  return c;
}

// Of a group, as the engine makes it: the largest decides for all phases.
Contraction PhaseOf(const Problem& problem, int64_t group, int64_t half,
                    const Contraction& largest) {
  const int64_t halves = largest.zipped ? 2 : 1;
  Contraction c = MakeContraction(problem, group, half / halves, half % halves == 1, largest.boxes);
  c.terms_each = largest.terms_each;
  return c;
}
int64_t CountHalves(const Problem& problem, const Contraction& largest) {
  return CountPhases(problem) * (largest.zipped ? 2 : 1);
}

// Memory of one element of a panel.
int64_t FloatsEach(const Contraction& c) {
  const size_t bytes = c.terms_each == 1   ? sizeof(float)
                       : c.terms_each == 2 ? sizeof(Pair)
                                           : sizeof(Quad);
  return static_cast<int64_t>(bytes / sizeof(float));
}

Problem RandomProblem(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  const auto extent = [&](int64_t most) { return between(1, int64_t{1} << between(0, most)); };
  Problem p;
  p.pass = static_cast<Pass>(between(0, 2));
  p.batch = between(0, 9) == 0 ? 0 : extent(7);
  p.groups = between(0, 2) == 0 ? extent(6) : 1;
  p.ci = extent(11);
  p.co = extent(11);
  for (size_t a = static_cast<size_t>(between(0, 2)); a < kAxes; ++a) {
    Axis& axis = p.axes[a];
    axis.taps = between(0, 9) == 0 ? extent(11) : between(1, 7);
    axis.stride = between(1, 4);
    axis.dilation = between(1, 3);
    axis.out = between(0, 19) == 0 ? 0 : extent(8);
    axis.pad = between(0, 3);
    axis.in = std::max<int64_t>(
        0, (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1 - 2 * axis.pad);
  }
  SetDenseStrides(p);
  if (between(0, 1) == 0) return p;
  tests::ToChannelsLast(p);
  return p;
}

void ExpectFits(const Tiling& t, int64_t limit) {
  ASSERT_GE(t.mr, 1);
  ASSERT_LE(t.mr, Tiling::kMostRows);
  ASSERT_EQ(t.mb % t.mr, 0);
  ASSERT_EQ(t.nb % t.nr, 0);
  ASSERT_GE(t.mb, t.mr);
  ASSERT_GE(t.nb, t.nr);
  ASSERT_LE(t.nb, Tiling::kMostColumns);
  ASSERT_LE(t.kc, t.terms_each == 1 ? Chunks::kLongest : Chunks::kLongestOfElements);
  ASSERT_LE(t.kc_floats, Chunks::kLongest);
  ASSERT_GE(t.kc_floats * t.terms_each, t.kc);
  ASSERT_TRUE(t.keeps_c || !t.stores_last);
  if (t.stores_last && t.slabs == 0) {
    ASSERT_LE(t.mb, Tiling::kMostColumns);  // the offsets of all its rows
  }
  if (t.tail_from >= 0) {
    const int64_t rows = t.o_is_n ? t.mb : t.nb;
    ASSERT_EQ(t.slabs, 0);
    ASSERT_GE(t.tail_from, rows);
    ASSERT_EQ(t.tail_from % rows, 0);
    ASSERT_GE(t.tail_rows, 1);
    ASSERT_LT(t.tail_rows, rows);
    ASSERT_EQ(t.tail_rows % (t.o_is_n ? t.mr : t.nr), 0);
  }
  ASSERT_GE(t.workspace_bytes(), 0);
  ASSERT_TRUE(limit < 0 || t.workspace_bytes() <= limit) << t.workspace_bytes();
  // The arrays of a task have so many panels.
  ASSERT_LE((t.twins ? 2 : 1) * t.nb / t.nr, Tiling::kMostColumns / 2);
  ASSERT_TRUE(!t.twins || (t.o_is_n && t.stores_last && t.slot_floats > 0));
  const int64_t a = t.a_floats(), b = (t.twins ? 2 : 1) * t.kc_floats * t.nb,
                c = t.keeps_c && t.slabs == 0 ? t.results * t.mb * t.nb : 0;
  if (t.slabs > 0) {
    ASSERT_GT(t.slot_floats, 0);
    ASSERT_GE(t.part_rows, 1);
    ASSERT_LE(t.part_rows, t.mb);
    ASSERT_EQ(t.part_rows % t.mr, 0);
    const int64_t shared = (t.slabs + 1) * t.mb * t.nb + Tiling::kAlign;
    ASSERT_GE(t.workspace_bytes(), 4 * (t.slots * t.slot_floats + shared));
  }
  if (t.slot_floats == 0) {
    ASSERT_LE(a, kRowPitch * Tiling::kMostRows);
    ASSERT_LE(b, Tiling::kStackB);
    ASSERT_LE(c, Tiling::kStackC);
  } else {
    // The first cache line may be as much as 63 bytes into the slot.
    ASSERT_GE(t.slot_floats, a + b + c + Tiling::kAlign);
  }
}

// Rows that share positions are not cut, if the memory holds a block of them.
void ExpectRowsTogether(const Tiling& t, const Contraction& c) {
  ASSERT_EQ(t.position_rows, c.row_block * c.taps());
  const auto whole = [&](int64_t rows) {
    return rows % t.position_rows == 0 || rows >= c.rows() || c.rows() <= t.position_rows;
  };
  ASSERT_TRUE(whole(t.mb) || t.mb < t.position_rows) << t.mb;
  if (t.tail_from >= 0) {
    ASSERT_TRUE(whole(t.tail_rows) || t.mb < t.position_rows) << t.tail_rows;
  }
  if (t.slabs > 0) {
    ASSERT_GE(t.part_rows, c.rows());
  }
}

TEST(Tiling, FitsItsMemoryOnEveryVectorUnit) {
  int64_t on_stack = 0, shared = 0, in_workspace = 0, side_by_side = 0, in_parts = 0, of_taps = 0,
          quads = 0, tails = 0, twins = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Problem problem = RandomProblem(seed);
    const int64_t copies = problem.groups * CountPhases(problem);
    for (const VectorUnit& unit : kUnits) {
      const Contraction contraction = Largest(problem, unit);
      quads += contraction.terms_each > 1;
      for (const int threads : {1, 2, 7, 64}) {
        for (const int64_t limit : {0, 1000, 64 << 10, 1 << 20, -1}) {
          SCOPED_TRACE(testing::Message() << "seed " << seed << " " << unit.name << " " << threads
                                          << " threads, limit " << limit);
          const Tiling t = MakeTiling(contraction, copies, threads, limit, unit);
          ASSERT_EQ(t.terms_each, contraction.terms_each);
          ExpectFits(t, limit);
          if (t.positions > 0) ExpectRowsTogether(t, contraction);
          shared += t.positions > 0;
          if (HasFatalFailure()) return;
          (t.slot_floats == 0 ? on_stack : in_workspace) += 1;
          // What a run does, which knows the workspace and not the limit.
          const Tiling again = MakeTiling(contraction, copies, threads, t.workspace_bytes(), unit);
          ASSERT_EQ(again.mr, t.mr);
          ASSERT_EQ(again.nr, t.nr);
          ASSERT_EQ(again.kc_floats, t.kc_floats);
          ASSERT_EQ(again.mb, t.mb);
          ASSERT_EQ(again.nb, t.nb);
          ASSERT_EQ(again.tail_from, t.tail_from);
          ASSERT_EQ(again.tail_rows, t.tail_rows);
          ASSERT_EQ(again.slots, t.slots);
          ASSERT_EQ(again.a_panels, t.a_panels);
          ASSERT_EQ(again.a_by_rows, t.a_by_rows);
          ASSERT_EQ(again.o_is_n, t.o_is_n);
          ASSERT_EQ(again.keeps_c, t.keeps_c);
          ASSERT_EQ(again.results, t.results);
          ASSERT_EQ(again.twins, t.twins);
          twins += t.twins;
          ASSERT_EQ(again.slabs, t.slabs);
          ASSERT_EQ(again.part_rows, t.part_rows);
          ASSERT_EQ(again.positions, t.positions);
          ASSERT_EQ(again.position_floats, t.position_floats);
          ASSERT_EQ(again.position_rows, t.position_rows);
          tails += t.tail_from >= 0;
          side_by_side += t.slabs > 0;
          in_parts += t.slabs > 0 && t.part_rows < t.mb;
          of_taps += t.slabs > 0 && !contraction.sum_pixels;
          ASSERT_EQ(again.slot_floats, t.slot_floats);
        }
      }
    }
  }
  EXPECT_GT(on_stack, 10000);
  EXPECT_GT(in_workspace, 10000);
  EXPECT_GT(shared, 50);
  EXPECT_GT(tails, 1000);
  EXPECT_GT(side_by_side, 100);
  EXPECT_GT(in_parts, 100);
  EXPECT_GT(of_taps, 100);
  EXPECT_GT(quads, 1000);
  EXPECT_GT(twins, 100);
}

// Marks what each task has, in steps of a row and a column of a tile.
TEST(BlockTasks, CoverEveryTileOnce) {
  int64_t tails = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Problem problem = RandomProblem(seed);
    const int64_t copies = problem.groups * CountPhases(problem);
    for (const VectorUnit& unit : kUnits) {
      const Contraction c = Largest(problem, unit);
      for (const int threads : {1, 3, 16, 64}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " " << unit.name << " " << threads);
        const Tiling t = MakeTiling(c, copies, threads, -1, unit);
        const BlockTasks tasks(t, c, copies);
        const int64_t row_unit = t.o_is_n ? t.mr : t.nr, o_unit = t.o_is_n ? t.nr : t.mr;
        const int64_t rows = CeilDiv(c.rows(), row_unit), o = CeilDiv(c.o, o_unit);
        if (t.slabs > 0 || rows == 0 || o == 0 || copies > 100000 / rows / o) continue;
        std::vector<int> hits(static_cast<size_t>(copies * rows * o));
        for (int64_t i = 0; i < tasks.count(); ++i) {
          const BlockTasks::Place at = tasks.At(i);
          ASSERT_LE(at.rows.size(), t.o_is_n ? t.mb : t.nb);
          ASSERT_LE(at.o.size(), t.o_is_n ? t.nb : t.mb);
          for (int64_t r = at.rows.begin / row_unit; r * row_unit < at.rows.end && r < rows; ++r) {
            for (int64_t n = at.o.begin / o_unit; n * o_unit < at.o.end && n < o; ++n) {
              ++hits[static_cast<size_t>((at.copy * rows + r) * o + n)];
            }
          }
        }
        for (const int times : hits) ASSERT_EQ(times, 1);
        tails += t.tail_from >= 0;
      }
    }
  }
  EXPECT_GT(tails, 100);
}

TEST(Contraction, PhasesInOrderAreAllOfThem) {
  int64_t several = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Problem problem = RandomProblem(seed);
    problem.pass = Pass::kDgrad;
    if (seed % 3 == 0) problem.axes[1].pad = -static_cast<int64_t>(seed % 7);
    if (seed % 5 == 0) problem.axes[2].in = 1;  // fewer positions than phases
    const int64_t phases = CountPhases(problem);
    std::vector<int> hits(static_cast<size_t>(phases));
    for (int64_t i = 0; i < phases; ++i) {
      const int64_t phase = PhaseInOrder(problem, i);
      ASSERT_GE(phase, 0);
      ASSERT_LT(phase, phases);
      ASSERT_EQ(hits[static_cast<size_t>(phase)]++, 0) << "seed " << seed;
    }
    several += phases > 1;
  }
  EXPECT_GT(several, 1000);
}

// 3x3, stride 2, padding 1: odd positions have two taps, even ones one.
TEST(Contraction, PhasesWithMoreTapsComeFirst) {
  Problem p;
  p.pass = Pass::kDgrad;
  p.batch = 1;
  p.ci = p.co = 64;
  for (int a = 1; a < kAxes; ++a) p.axes[a] = {14, 7, 3, 2, 1, 1};
  SetDenseStrides(p);
  tests::ToChannelsLast(p);
  ASSERT_EQ(CountPhases(p), 4);
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < 4; ++i) {
    taps.push_back(MakeContraction(p, 0, PhaseInOrder(p, i)).taps());
  }
  EXPECT_EQ(taps, (std::vector<int64_t>{4, 2, 2, 1}));
}

// Every phase fits into what was planned for the largest.
TEST(Tiling, HoldsEveryPhase) {
  int64_t boxes = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Problem problem = RandomProblem(seed / 2);
    if (seed % 2 == 1) problem.axes[kAxes - 1] = {};  // its lines go along another axis
    for (const VectorUnit& unit : {kUnits[1], kUnits[4], kUnits[5], kUnits[6]}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " " << unit.name);
      const Contraction largest = Largest(problem, unit);
      const Chunks most = MakeChunks(largest);
      const Tiling t = MakeTiling(largest, 1, 1, -1, unit);
      for (int64_t half = 0; half < CountHalves(problem, largest); ++half) {
        const Contraction c = PhaseOf(problem, problem.groups - 1, half, largest);
        boxes += c.boxes;
        // In boxes, a chunk has all taps of its channels.
        ASSERT_TRUE(!c.boxes || MakeChunks(c).inner_count() <= 1);
        const Chunks chunks = MakeChunks(c);
        ASSERT_LE(c.rows(), largest.rows());
        ASSERT_EQ(c.o, largest.o);
        // Without a place to keep c, every sum must be one chunk.
        ASSERT_TRUE(most.count() > 1 || chunks.count() <= 1);
        for (int64_t i = 0; i < chunks.count(); ++i) {
          const Chunk chunk = ChunkAt(chunks, i);
          ASSERT_LE(chunk.terms(), t.kc) << "chunk " << i;
          ASSERT_LE(ElementsOf(c, chunk, c.terms_each) * FloatsEach(c), t.kc_floats)
              << "chunk " << i;
        }
      }
    }
  }
  EXPECT_GT(boxes, 100);
}

// The order of a sum of quads: what fits into one chunk is one, images are whole numbers of chunks,
// and chunks end with a line where a line fits into one.
TEST(Contraction, ChunksOfQuadsAreWholeLines) {
  int64_t lines = 0, parts = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Problem problem = RandomProblem(seed);
    problem.pass = Pass::kWgrad;
    problem.groups = 1;  // several small ones are widened
    if (seed % 4 == 0) {
      Axis& last = problem.axes[kAxes - 1];
      last.in += 5 * last.out * last.stride;
      last.out *= 6;
      SetDenseStrides(problem);
    }
    const Contraction c = Largest(problem, kUnits[4]);
    ASSERT_EQ(c.terms_each, 4);
    const Chunks chunks = MakeChunks(c);
    ASSERT_LE(chunks.longest(), Chunks::kLongestOfElements) << seed;
    ASSERT_TRUE(chunks.outer_block == 1 || chunks.chained) << seed;
    const int64_t line = c.axes[kAxes - 1].pixels;
    if (c.pixels() == 0) continue;
    ASSERT_EQ(chunks.inner_count() == 1, chunks.inner_block == c.pixels()) << seed;
    if (c.pixels() <= Chunks::kLongestOfElements) {
      ASSERT_EQ(chunks.inner_count(), 1) << seed;
    }
    if (line > Chunks::kLongestOfElements) {
      ++parts;
      continue;
    }
    ASSERT_EQ(chunks.inner_block % line, 0) << seed;
    lines += chunks.inner_count() > 1;
  }
  EXPECT_GT(lines, 100);
  EXPECT_GT(parts, 20);
}

// The strides of tensors with gaps: axes that were one line are not any more.
void AddGaps(Problem& p) {
  for (PixelStrides* strides : {&p.x, &p.y}) {
    strides->s[1] += 2 * strides->s[2];
    strides->s[0] = 1000 * strides->s[1];
  }
}

void ExpectSameChunksWithGaps(const VectorUnit& unit) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Problem problem = RandomProblem(seed);
    if (seed % 2 == 0) {  // one tap that reads all positions in order
      for (Axis& axis : problem.axes) axis = {.in = axis.out, .out = axis.out};
      SetDenseStrides(problem);
    }
    const Chunks dense = MakeChunks(Largest(problem, unit));
    AddGaps(problem);
    const Chunks gaps = MakeChunks(Largest(problem, unit));
    ASSERT_EQ(gaps.outer, dense.outer) << seed;
    ASSERT_EQ(gaps.outer_block, dense.outer_block) << seed;
    ASSERT_EQ(gaps.inner, dense.inner) << seed;
    ASSERT_EQ(gaps.inner_block, dense.inner_block) << seed;
    ASSERT_EQ(gaps.chained, dense.chained) << seed;
  }
}

TEST(Contraction, ChunksDoNotDependOnStrides) { ExpectSameChunksWithGaps(kUnits[1]); }
TEST(Contraction, ChunksOfQuadsDoNotDependOnStrides) { ExpectSameChunksWithGaps(kUnits[4]); }

// Lines that taps share need no more memory than panels that share nothing.
void ExpectLinesFit(const Contraction& c, const Tiling& t, const Lines& lines) {
  const Chunks chunks = MakeChunks(c);
  for (int64_t i = 0; i < chunks.count(); ++i) {
    const int64_t channels = CeilDiv(ChunkAt(chunks, i).outer.size(), c.terms_each);
    const int64_t floats = DepthOfLines(c, lines, channels) * FloatsEach(c);
    if (t.a_by_rows) {
      ASSERT_LE(floats, kLinePitch);
      ASSERT_LE(lines.width * kLinePitch, t.panel_floats());
    } else if (t.o_is_n) {
      ASSERT_LE(floats * lines.width, t.panel_floats());
    } else {
      ASSERT_LE(CeilDiv(t.nb, lines.group) * floats * lines.width, t.kc_floats * t.nb);
    }
  }
}

TEST(Tiling, HoldsTheLinesOfEveryPhase) {
  int64_t shared[5] = {};  // a, a by rows, b; a and b of quads
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    std::mt19937_64 random(seed);
    Problem problem = tests::RandomProblem(random, 80);
    Axis& last = problem.axes[kAxes - 1];
    last.taps += tests::Between(random, 1, 12);
    last.out += 3;
    last.in = std::max<int64_t>(
        1, (last.out - 1) * last.stride + (last.taps - 1) * last.dilation + 1 - last.pad);
    problem.ci = tests::Between(random, 1, 80);
    problem.co = tests::Between(random, 1, 80);
    SetDenseStrides(problem);
    if (seed % 2 == 0) tests::ToChannelsLast(problem);
    for (const VectorUnit& unit : kUnits) {
      const Contraction largest = Largest(problem, unit);
      for (const int64_t limit : {0, 64 << 10, -1}) {
        const Tiling t = MakeTiling(largest, CountPhases(problem), 1, limit, unit);
        for (int64_t half = 0; half < CountHalves(problem, largest); ++half) {
          const Contraction c = PhaseOf(problem, 0, half, largest);
          const Lines lines = LinesOf(c, t, unit.lanes);
          if (!lines.shared) continue;
          SCOPED_TRACE(testing::Message() << "seed " << seed << " " << unit.name << " " << limit);
          ExpectLinesFit(c, t, lines);
          if (HasFatalFailure()) return;
          ++shared[t.a_by_rows ? 1
                               : (t.o_is_n ? 0 : 2) + (t.terms_each == 1 ? 0
                                                       : t.o_is_n        ? 3
                                                                         : 2)];
        }
      }
    }
  }
  for (const int64_t count : shared) EXPECT_GT(count, 500);
}

// 3x3 of stride 1 and padding 1, or a network's first layer: 7x7 of stride 2 and padding 3.
Problem SquareLayer(Pass pass, int64_t ci, int64_t co, int64_t in, int64_t taps, int64_t stride) {
  Problem p;
  p.pass = pass;
  p.batch = 2;
  p.ci = ci;
  p.co = co;
  for (int a = 1; a < kAxes; ++a) {
    Axis& axis = p.axes[a];
    axis.in = in;
    axis.taps = taps;
    axis.stride = stride;
    axis.pad = taps / 2;
    axis.out = (in + 2 * axis.pad - taps) / stride + 1;
  }
  SetDenseStrides(p);
  return p;
}

// A wider tile would fit 32 rows better, but not lines of 32 pixels, which taps could share. (Of so
// many weights that vectors do not go along them.)
TEST(Tiling, PrefersLinesThatTapsShare) {
  for (const auto& [pixels, vectors, shared] :
       {std::tuple{32, 2, true}, {48, 3, true}, {28, 3, false}}) {
    const Problem p = SquareLayer(Pass::kFprop, 2049, 32, pixels, 3, 1);
    const Contraction c = Largest(p, kUnits[3]);
    const Tiling t = MakeTiling(c, 1, 1, -1, kUnits[3]);
    EXPECT_FALSE(t.o_is_n);
    EXPECT_EQ(t.vectors, vectors) << pixels;
    EXPECT_EQ(LinesOf(c, t, kUnits[3].lanes).shared, shared) << pixels;
  }
}

// Channels in four phases: vectors go along them, unless they fill half of the narrowest tile or
// less, or are 12 rows of NEON, of which some taps meet a part and lines are shared.
TEST(Tiling, PutsFewPhaseColumnsAcrossVectors) {
  for (const auto& [channels, taps] : {std::pair{3, 7}, {3, 3}, {4, 7}, {5, 7}}) {
    const Problem p = SquareLayer(Pass::kDgrad, channels, 64, 64, taps, 2);
    for (const VectorUnit& unit : {kUnits[1], kUnits[2], kUnits[3]}) {
      const Contraction c = Largest(p, unit);
      ASSERT_EQ(c.o, 4 * channels);
      const bool some_rows = unit.lanes == 4 && channels == 3;
      EXPECT_EQ(MakeTiling(c, 1, 1, -1, unit).o_is_n, c.o > unit.lanes && !some_rows) << unit.name;
    }
  }
}

// Taps share lines of a that are fours of pixels, and of b only those that are whole vectors. Of
// channels first, which SquareLayer has.
TEST(Tiling, PutsPixelsAcrossWideVectors) {
  bool shared = false;
  const auto across = [&](Pass pass, int64_t ci, int64_t co, int64_t size, int64_t taps,
                          int64_t stride, const VectorUnit& unit) {
    const Contraction c = Largest(SquareLayer(pass, ci, co, size, taps, stride), unit);
    const Tiling t = MakeTiling(c, 1, 1, -1, unit);
    shared = LinesOf(c, t, unit.lanes).shared;
    return t.o_is_n;
  };
  const VectorUnit wide = kUnits[3];
  ASSERT_EQ(wide.lanes, 16);
  EXPECT_TRUE(across(Pass::kFprop, 64, 64, 56, 3, 1, wide));
  EXPECT_TRUE(shared);
  EXPECT_TRUE(across(Pass::kDgrad, 64, 64, 56, 3, 1, wide));
  EXPECT_TRUE(shared);
  EXPECT_TRUE(across(Pass::kDgrad, 512, 512, 7, 3, 1, wide));
  EXPECT_FALSE(shared);
  EXPECT_FALSE(across(Pass::kFprop, 512, 512, 7, 3, 1, wide));   // turns many weights
  EXPECT_FALSE(across(Pass::kFprop, 128, 128, 56, 3, 2, wide));  // every second pixel
  EXPECT_FALSE(across(Pass::kFprop, 64, 64, 56, 1, 1, wide));
  EXPECT_FALSE(across(Pass::kFprop, 64, 40, 56, 3, 1, wide));  // 40 of 48 columns
  EXPECT_FALSE(across(Pass::kFprop, 64, 24, 56, 3, 1, wide));  // of 32
  EXPECT_FALSE(across(Pass::kFprop, 64, 64, 56, 3, 1, kUnits[1]));
  EXPECT_FALSE(across(Pass::kDgrad, 64, 64, 56, 3, 1, kUnits[2]));
  Problem line = SquareLayer(Pass::kFprop, 64, 64, 56, 3, 1);
  line.axes[kAxes - 2] = {};
  line.w.s[kAxes - 2] = 0;
  EXPECT_FALSE(MakeTiling(Largest(line, wide), 1, 1, -1, wide).o_is_n);
}

// Enough channels for whole panels of one tap and, where they are next to each other, not too many.
TEST(Tiling, PacksPositionsOnceForAllTaps) {
  VectorUnit unit = kUnits[3];
  const auto shares = [&](int64_t ci, int64_t co, bool last, int64_t taps = 3, int64_t limit = -1) {
    Problem p = SquareLayer(Pass::kWgrad, ci, co, 20, taps, 1);
    if (last) tests::ToChannelsLast(p);
    const Tiling t = MakeTiling(Largest(p, unit), 1, 1, limit, unit);
    if (unit.k_unit == 1) {
      EXPECT_EQ(t.a_panels, t.positions > 0 || t.slot_floats == 0 ? 1 : 4);
    }
    if (t.positions > 0) {
      // 400 pixels; 48 channels or all of them, in tiles of 12 rows.
      EXPECT_EQ(t.positions, (20 + taps - 1) * (20 + taps - 1));
      EXPECT_GE(t.position_floats, t.positions * std::min<int64_t>(ci, 48));
      const int64_t together = std::min<int64_t>(ci, 48) * taps * taps;
      EXPECT_TRUE(t.mb % together == 0 || t.mb >= ci * taps * taps) << t.mb;
    }
    return t.positions > 0;
  };
  for (const bool last : {true, false}) {
    EXPECT_TRUE(shares(64, 64, last));
    EXPECT_TRUE(shares(128, 128, last));
    EXPECT_TRUE(shares(24, 64, last));
    EXPECT_FALSE(shares(3, 64, last));
    EXPECT_FALSE(shares(16, 64, last));
    EXPECT_EQ(shares(132, 64, last), !last);
    EXPECT_EQ(shares(64, 132, last), !last);
    EXPECT_FALSE(shares(64, 64, last, 1));
    EXPECT_FALSE(shares(64, 64, last, 3, 256 << 10));
    EXPECT_FALSE(shares(64, 64, last, 3, 0));
  }
  for (const VectorUnit& other : {kUnits[1], kUnits[4], kUnits[5], kUnits[6]}) {
    unit = other;
    EXPECT_FALSE(shares(64, 64, false)) << unit.name;
  }
}

// Nothing overflows for extents that nobody has memory for; sanitizers look at it.
TEST(Tiling, SharesNothingOfLinesWithoutEnd) {
  for (const int64_t size : {int64_t{1} << 46, int64_t{1} << 48, int64_t{1} << 52}) {
    for (const Pass pass : {Pass::kFprop, Pass::kWgrad}) {
      Problem p = SquareLayer(pass, 48, 8, 129, 3, 1);
      p.axes[kAxes - 2].dilation = 128;
      p.axes[kAxes - 1] = {.in = 300, .out = size + 1, .taps = 3, .stride = 256, .pad = size};
      SetDenseStrides(p);
      for (const VectorUnit& unit : kUnits) {
        const Contraction c = Largest(p, unit);
        const Tiling t = MakeTiling(c, 1, 1, -1, unit);
        EXPECT_EQ(t.positions, 0);
        EXPECT_FALSE(LinesOf(c, t, unit.lanes).planes);
      }
    }
  }
}

// Where row `row` of fprop or dgrad goes, from the strides alone.
int64_t OffsetOfRow(const Contraction& c, int64_t row) {
  const auto& axes = c.axes;
  const int64_t line = row / axes[2].pixels, lines = axes[0].pixels * axes[1].pixels;
  return c.v.first + line / lines * c.v.image + line % lines / axes[1].pixels * c.v.at[0] +
         line % axes[1].pixels * c.v.at[1] + row % axes[2].pixels * c.v.at[2];
}

// Two zipped phases are written together: every pixel of the one is before that of the other.
TEST(Contraction, ZipsPhasesOfTheSamePixels) {
  int64_t zipped = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Problem problem = RandomProblem(seed);
    problem.pass = Pass::kDgrad;
    problem.axes[kAxes - 1].stride = 2;
    for (Axis& axis : problem.axes) axis.in = std::min<int64_t>(axis.in, 12) / 2 * 2;
    SetDenseStrides(problem);
    for (int64_t phase = 0; phase < CountPhases(problem); ++phase) {
      const Contraction even = MakeContraction(problem, 0, phase);
      const Contraction odd = MakeContraction(problem, 0, phase, true);
      if (!even.zipped) continue;
      ASSERT_EQ(even.images_inside, 0);
      ++zipped;
      ASSERT_EQ(even.rows(), odd.rows()) << seed;
      for (int64_t row = 0; row < even.rows(); ++row) {
        ASSERT_EQ(OffsetOfRow(even, row) + 1, OffsetOfRow(odd, row)) << seed << " row " << row;
      }
    }
  }
  EXPECT_GT(zipped, 500);
}

}  // namespace
}  // namespace convgrad
