// The flat kernel (cpu/flat.h): the very bits of the contraction for problems of any shape, of
// weights that are not finite, too, on every instruction set, and not a byte beyond a tensor. Its
// planes: what each tap finds where it looks.
#include "cpu/flat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/problem_text.h"
#include "cpu/engine.h"
#include "cpu/flat_sums.h"
#include "tests/direct_shapes.h"
#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;
constexpr DataType kTypes[] = {DataType::kF32, DataType::kBF16, DataType::kF16};

struct Tally {
  int ran[2] = {}, refused = 0, of_images = 0, on_stack = 0;
};

// Both directions, of a random layout, beta, bias, number of threads and place in memory; every
// third time a weight is infinite.
void ExpectBitsOfContract(const BitsProblem& problem, DataType type, Tally& tally) {
  static std::mt19937_64 random(21);
  const auto coin = [&] { return random() % 2 == 0; };
  for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData}) {
    BitsCase item(problem, kind, type, {coin(), coin()}, coin());
    if (random() % 3 == 0) {
      tools::TensorBuffer& w = item.w().buffer;
      w.Set(static_cast<int64_t>(random() % static_cast<uint64_t>(w.elements())),
            std::numeric_limits<double>::infinity());
    }
    const Options options{.threads = 1 + static_cast<int>(random() % 3),
                          .workspace_limit = coin() ? 0 : Options::kNoLimit,
                          .beta = coin() ? 0.0f : -0.5f,
                          .kernel = "flat"};
    SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
    const Result<Plan> plan = item.MakePlan(options);
    if (!plan.ok()) {
      ++tally.refused;
      continue;
    }
    ++tally.ran[kind == OpKind::kConvolution ? 0 : 1];
    const std::string text = plan->Explain();
    tally.of_images += text.find("vectors along images") != std::string::npos;
    tally.on_stack += plan->workspace_bytes() == 0;
    SCOPED_TRACE(text);
    ExpectGuardedBitsOfContract(item, options, random() % 2);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Any rank, step, dilation, padding wider than the kernel, and number of images.
BitsProblem RandomProblem(std::mt19937_64& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const size_t rank = 1 + static_cast<size_t>(below(3));
  const int64_t groups = below(3) == 0 ? 1 + below(3) : 1;
  BitsProblem p{"",
                1 + below(below(3) == 0 ? 40 : 3),
                groups,
                groups * (1 + below(9)),
                groups * (1 + below(below(4) == 0 ? 20 : 6)),
                {},
                {},
                {},
                {},
                {}};
  if (below(6) == 0) p.channels = groups * (20 + below(90));
  for (size_t a = 0; a < rank; ++a) {
    p.taps.push_back(1 + below(rank == 3 ? 4 : rank == 2 ? 6 : 40));
    p.stride.push_back(below(2) == 0 ? 1 : 1 + below(5));
    p.dilation.push_back(below(3) == 0 ? 1 + below(6) : 1);
    const int64_t reach = (p.taps[a] - 1) * p.dilation[a] + 1;
    p.pad.push_back(below(3) == 0 ? 0 : below(reach + 2));
    p.in.push_back(std::max<int64_t>(1, reach - 2 * p.pad[a]) + below(rank == 3   ? 7
                                                                      : rank == 2 ? 20
                                                                                  : 150));
  }
  return p;
}

TEST(Flat, HasTheBitsOfContract) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    std::mt19937_64 random(static_cast<uint64_t>(target));
    Tally tally;
    for (int i = 0; i < (kSanitized ? 60 : 400); ++i) {
      ExpectBitsOfContract(RandomProblem(random), kTypes[i % 3], tally);
      if (HasFatalFailure()) return;
    }
    for (const int ran : tally.ran) EXPECT_GT(ran, kSanitized ? 30 : 200);
    EXPECT_TRUE(tally.of_images > 0 || PickedVectorUnit(DataType::kF32).lanes == 1);
    EXPECT_GT(tally.on_stack, 0);
    EXPECT_GT(tally.refused, 0);  // elements of several terms, or too many outputs and phases
  }
}

TEST(Flat, HasTheBitsOfContractForShapesOfTheDirectKernel) {
  Tally tally;
  int64_t i = 0;
  for (const Shape& s : kShapes) {
    if (kSanitized && i++ % 4 > 0) continue;
    if (s.groups > 100) continue;
    ExpectBitsOfContract({"", s.batch, s.groups, s.groups * s.icg, s.groups * s.ocg, s.extent,
                          s.taps, s.stride, s.dilation, s.pad},
                         kTypes[i % 3], tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.ran[0] + tally.ran[1], kSanitized ? 30 : 120);
}

// Sums of several chunks, of channels and of taps; phases as columns; blocks that no cache holds.
TEST(Flat, HasTheBitsOfContractForLongSums) {
  const BitsProblem problems[] = {
      {"", 2, 1, 256, 16, {6, 5, 7}, {5, 5, 5}, {2, 2, 2}, {1, 1, 1}, {2, 2, 2}},
      {"", 3, 1, 128, 2, {14, 12}, {6, 6}, {1, 1}, {1, 1}, {1, 2}},
      {"", 1, 1, 5, 3, {900}, {500}, {1}, {1}, {250}},
      {"", 2, 1, 3, 4, {40, 41}, {22, 21}, {3, 2}, {1, 1}, {10, 9}},
      {"", 21, 1, 32, 16, {14, 11}, {11, 11}, {1, 1}, {1, 1}, {0, 0}},
      {"", 2, 1, 2, 64, {31, 30}, {4, 4}, {2, 2}, {1, 1}, {1, 1}},
      {"", 1, 1, 1, 8, {17, 150, 141}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"", 1, 2, 2, 2, {300000}, {7}, {3}, {2}, {5}},
      {"", 3, 1, 3, 40, {19, 18}, {7, 7}, {2, 2}, {1, 1}, {3, 3}},
      // Phases without taps, that would have more channels in a chunk; axes that are not there.
      {"", 1, 1, 16, 432, {8, 496}, {1, 50}, {4, 1}, {1, 5}, {0, 0}},
      {"", 1, 1, 1, 280, {8, 256}, {1, 200}, {4, 1}, {1, 1}, {0, 0}},
      {"", 2, 1, 20, 6, {300, 1}, {3, 1}, {1, 1}, {1, 1}, {1, 0}},
      {"", 2, 1, 9, 6, {300, 1, 1}, {5, 1, 1}, {2, 1, 1}, {1, 1, 1}, {2, 0, 0}},
  };
  Tally tally;
  for (const BitsProblem& problem : problems) {
    for (const DataType type : kTypes) {
      for (int i = 0; i < (kSanitized ? 1 : 3); ++i) ExpectBitsOfContract(problem, type, tally);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(tally.ran[0], 0);
  EXPECT_GT(tally.ran[1], 0);
}

// Of a problem that may be anything: stride, taps, dilation and pads of any size, many channels.
Problem AnyProblem(std::mt19937_64& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Problem p;
  p.pass = below(4) == 0 ? Pass::kFprop : Pass::kDgrad;
  p.batch = 1 + below(below(2) == 0 ? 40 : 3);
  p.groups = 1 + below(3);
  const int64_t few = 1 + below(30), many = 1 + below(500);
  p.ci = p.pass == Pass::kFprop ? many : few;
  p.co = p.pass == Pass::kFprop ? few : many;
  for (Axis& axis : p.axes) {
    if (below(3) == 0) continue;
    axis.taps = 1 + below(below(4) == 0 ? 120 : 7);
    axis.stride = 1 + below(6);
    axis.dilation = below(2) == 0 ? 1 : 1 + below(6);
    axis.out = 1 + below(below(3) == 0 ? 300 : 12);
    const int64_t reach = (axis.taps - 1) * axis.dilation + 1;
    axis.pad = below(2) == 0 ? 0 : below(reach + 3);
    axis.in = std::max<int64_t>(1, (axis.out - 1) * axis.stride + reach - 2 * axis.pad);
  }
  SetDenseStrides(p);
  return p;
}

// The blocks of a phase: the first one of the first task, and those after each other.
void ExpectRoomForPhase(const Contraction& c, const FlatTiling& t) {
  const FlatTiling own = OfPhase(c, t);
  const Chunks chunks = MakeChunks(c);
  for (int64_t i = 0; i < 3; ++i) {
    FlatAxes axes = FlatAxesOf(c, own.images_last);
    for (int a = 0; a < kFlatAxes; ++a) {
      GatherAxis& axis = axes[a].axis;
      const int64_t begin = std::min(i * own.block[a], std::max<int64_t>(0, axis.pixels - 1));
      axis.first += begin * axis.pixel_step;
      axis.pixels = std::min(own.block[a], axis.pixels - begin);
      if (axis.pixels <= 0) return;
    }
    const FlatLayout layout = LayoutOf(axes, own.lanes);
    const int64_t each = FlatSums::OutsOf(c.o), outs = CeilDiv(c.o, each) * each;
    if (chunks.count() > 0) {
      EXPECT_LE(chunks.outer_block * layout.channel_floats() + own.lanes, own.g_floats);
      EXPECT_LE(outs * chunks.longest(), own.w_floats);
    }
    EXPECT_LE(outs * layout.vectors() * own.lanes, own.c_floats);
    EXPECT_LE(2 * layout.vectors(), own.pixel_floats);
  }
}

TEST(Flat, HasRoomForEveryPhase) {
  std::mt19937_64 random(3);
  int ran = 0, without_taps = 0;
  for (int i = 0; i < 20000; ++i) {
    const Problem p = AnyProblem(random);
    const int threads = 1 + i % 3;
    for (const int64_t limit : {int64_t{-1}, int64_t{0}}) {
      if (!FlatRefusal(p, threads, limit).empty()) continue;
      const FlatTiling t = FlatTilingOf(p, threads, limit);
      ++ran;
      for (int64_t phase = 0; phase < CountUnmergedPhases(p); ++phase) {
        const Contraction c = MakeUnmergedContraction(p, phase);
        without_taps += c.taps() == 0;
        ExpectRoomForPhase(c, t);
        ASSERT_FALSE(HasFailure()) << ToText(p) << " limit " << limit;
      }
    }
  }
  EXPECT_GT(ran, 10000);
  EXPECT_GT(without_taps, 1000);
}

// Lines that share their zeros: each position that a pixel reads through a tap is the float of that
// position, or a zero.
void ExpectEveryTapFound(const FlatAxes& axes) {
  const FlatLayout layout = LayoutOf(axes, 4);
  std::vector<int64_t> planes(static_cast<size_t>(layout.channel_floats()), 0);
  const auto number = [](int64_t a, int64_t b) { return 1 + a * 1000 + b; };
  const GatherAxis &outer = axes[2].axis, &inner = axes[3].axis;
  const auto& e = layout.extents;
  const auto plane_of = [&](int64_t r2, int64_t r3) {
    return (r2 * e[3].residues + r3) * layout.plane;
  };
  for (int64_t r2 = 0; r2 < e[2].residues; ++r2) {
    for (int64_t r3 = 0; r3 < e[3].residues; ++r3) {
      const Range i = InsideOfResidue(outer, r2, e[2].span);
      const Range j = InsideOfResidue(inner, r3, e[3].span);
      for (int64_t y = i.begin; y < i.end; ++y) {
        for (int64_t x = j.begin; x < j.end; ++x) {
          int64_t& at = planes[static_cast<size_t>(plane_of(r2, r3) + y * layout.pitch[2] + x)];
          ASSERT_EQ(at, 0) << "two positions in one place";
          at = number(FirstOfResidue(outer, r2) + y * outer.pixel_step,
                      FirstOfResidue(inner, r3) + x * inner.pixel_step);
        }
      }
    }
  }
  for (int64_t t2 = 0; t2 < outer.taps; ++t2) {
    for (int64_t t3 = 0; t3 < inner.taps; ++t3) {
      const TapPlace p2 = PlaceOfTap(outer, t2), p3 = PlaceOfTap(inner, t3);
      for (int64_t y = 0; y < outer.pixels; ++y) {
        for (int64_t x = 0; x < inner.pixels; ++x) {
          const int64_t a = outer.first + y * outer.pixel_step + t2 * outer.tap_step;
          const int64_t b = inner.first + x * inner.pixel_step + t3 * inner.tap_step;
          const bool inside = a >= 0 && a < outer.limit && b >= 0 && b < inner.limit;
          const int64_t at =
              plane_of(p2.residue, p3.residue) + (p2.j + y) * layout.pitch[2] + p3.j + x;
          ASSERT_EQ(planes[static_cast<size_t>(at)], inside ? number(a, b) : 0)
              << t2 << " " << t3 << " " << y << " " << x;
        }
      }
    }
  }
}

TEST(Flat, FindsEveryTap) {
  std::mt19937_64 random(5);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const auto axis = [&] {
    GatherAxis a{.pixels = 1 + below(6),
                 .taps = 1 + below(5),
                 .first = below(14) - 10,
                 .pixel_step = 1 + below(4),
                 .tap_step = 1 + below(6),
                 .limit = 1 + below(12)};
    if (below(2) == 0) {
      a.tap_step = -a.tap_step;
      a.first += 8;
    }
    return a;
  };
  int shared = 0;
  for (int i = 0; i < 3000; ++i) {
    FlatAxes axes;
    axes[2].axis = axis();
    axes[3].axis = axis();
    ExpectEveryTapFound(axes);
    if (HasFatalFailure()) return;
    const FlatLayout layout = LayoutOf(axes, 4);
    shared += layout.pitch[2] < layout.extents[3].span;
  }
  EXPECT_GT(shared, 500);
}

// Layers of which a contraction takes 1.1 to 3 times as long (Sapphire Rapids, and Cascade Lake).
TEST(Flat, IsChosenForFewOutputs) {
  if (PickedVectorUnit(DataType::kF32).lanes != 16) GTEST_SKIP() << "not timed there";
  const BitsProblem problems[] = {
      {"", 8, 1, 64, 16, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 8, 1, 128, 2, {14, 12}, {6, 6}, {1, 1}, {1, 1}, {0, 2}},
      {"", 8, 1, 1, 32, {161, 700}, {5, 20}, {2, 2}, {1, 1}, {0, 0}},
      {"", 1, 1, 1, 8, {39, 84, 150}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"", 32, 1, 1, 16, {51, 33}, {7, 7}, {1, 1}, {1, 1}, {3, 3}},
  };
  for (const BitsProblem& problem : problems) {
    for (const bool last : {false, true}) {
      BitsCase item(problem, OpKind::kConvolution, DataType::kF32, {last, false}, false);
      const Result<Plan> plan = item.MakePlan({.threads = 1});
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_NE(plan->kernel(), "contract") << plan->Explain();
      EXPECT_TRUE(!last || plan->kernel() == "flat") << plan->Explain();
    }
  }
}

// Nor is anything counted there, of extents whose products are no numbers.
TEST(Flat, RefusesWhatHasNothingToMultiply) {
  Problem p;
  constexpr int64_t kFar = int64_t{1} << 30;
  p.axes = {Axis{.in = 0, .out = 24, .pad = 12},
            Axis{.in = kFar + 1, .out = 1, .taps = 2, .dilation = kFar},
            Axis{.in = kFar + 1, .out = 1, .taps = 2, .dilation = kFar}};
  EXPECT_EQ(FlatRefusal(p, 1, -1), "there is nothing to multiply");
  EXPECT_EQ(FlatSeconds(p, 1), HUGE_VAL);
  p.axes[0] = {.in = 1, .out = 2, .pad = 5};
  EXPECT_EQ(FlatRefusal(p, 1, -1), "no tap meets anything but padding");
  EXPECT_EQ(FlatSeconds(p, 1), HUGE_VAL);
  p.pass = Pass::kDgrad;
  p.axes = {Axis{}, Axis{.in = 0, .out = 2, .pad = 2},
            Axis{.in = 10 * kFar, .out = 2, .stride = 10 * kFar}};
  EXPECT_EQ(FlatRefusal(p, 1, -1), "there is nothing to multiply");
}

TEST(Flat, SumsNoMoreOutputsThanItHasTilesFor) {
  for (int64_t o = 1; o <= FlatTiling::kMostOuts; ++o) {
    const int64_t each = FlatSums::OutsOf(o);
    EXPECT_TRUE(each <= 4 || each == 6 || each == 8) << o;
    EXPECT_LT(CeilDiv(o, each) * each, o + each) << o;
  }
}

}  // namespace
}  // namespace convgrad::tests
