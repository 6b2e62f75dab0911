// No phase of a dgrad, and no part of the taps of a wgrad, needs more of a task's memory than its
// plan has, which is made for the largest of them; and a run has the tiling of its plan. Nothing is
// computed here, so that many shapes can be: far taps, strides, cropped taps, thousands of
// channels.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/problem_text.h"
#include "cpu/direct.h"
#include "cpu/direct_axes.h"
#include "cpu/direct_bands.h"
#include "cpu/direct_group_pixels.h"
#include "cpu/direct_turned.h"
#include "cpu/engine.h"

namespace convgrad::tests {
namespace {

class RandomDirect {
 public:
  // Some axes are tiny: they have fewer positions than taps.
  RandomDirect(uint64_t seed, bool some_tiny) : random_(seed), some_tiny_(some_tiny) {}

  // False: no window fits.
  bool Make(Problem& p) {
    p = {};
    p.pass = std::array{Pass::kFprop, Pass::kDgrad, Pass::kWgrad}[random_() % 3];
    p.type = p.out_type = DataType::kF32;
    p.groups = OneOf({1, 2, 16, 64, 2304, 2560, 4096, 12288, Between(1, 100)});
    p.ci = OneOf({1, 1, 1, 1, 2, 3, 4, 8, 13, 16});
    p.co = random_() % 2 == 0 ? p.ci : OneOf({1, 2, 3, 4, 8, 16});
    p.batch = OneOf({1, 2, 40});
    for (size_t a = random_() % 3; a < kAxes; ++a) {
      if (!MakeAxis(p.axes[a])) return false;
    }
    SetDenseStrides(p);
    if (random_() % 2 == 0) PutChannelsLast(p);
    return true;
  }

  int Threads() { return static_cast<int>(Between(1, 4)); }

 private:
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  int64_t OneOf(std::initializer_list<int64_t> values) {
    return values.begin()[random_() % values.size()];
  }

  bool MakeAxis(Axis& axis) {
    axis.taps = random_() % 2 == 0 ? Between(1, 5) : Between(1, random_() % 3 == 0 ? 400 : 30);
    axis.stride = random_() % 2 == 0 ? 1 : Between(1, 12);
    axis.dilation = random_() % 2 == 0 ? 1 : Between(1, 200);
    axis.in = random_() % 2 == 0 ? Between(1, 12) : Between(1, 300);
    if (some_tiny_ && random_() % 4 == 0) {
      axis = {};
      axis.in = axis.out = OneOf({1, 2, 3, 5, 6, 7});
      axis.taps = OneOf({1, 3, 5, 7, 9});
      axis.pad = axis.taps / 2;
      return true;
    }
    const int64_t reach = (axis.taps - 1) * axis.dilation;
    axis.pad = OneOf({Between(0, reach), reach / 2, 0});
    const int64_t windows =
        axis.in + axis.pad + (random_() % 2 == 0 ? axis.pad : Between(0, reach)) - reach;
    if (windows < 1) return false;
    axis.out = (windows - 1) / axis.stride + 1;
    return true;
  }

  static void PutChannelsLast(Problem& p) {
    p.x.c = p.y.c = 1;
    p.x.n = p.groups * p.ci;
    p.y.n = p.groups * p.co;
    for (int a = kAxes - 1; a >= 0; --a) {
      p.x.s[a] = p.x.n;
      p.y.s[a] = p.y.n;
      p.x.n *= p.axes[a].in;
      p.y.n *= p.axes[a].out;
    }
  }

  std::mt19937_64 random_;
  const bool some_tiny_;
};

int64_t PartsOf(const Problem& p, const DirectTiling& t) {
  return p.pass == Pass::kWgrad ? t.tap_parts : CountPlainPhases(p);
}

TEST(DirectMemory, HasRoomForEveryPhaseAndPart) {
  int planned = 0, several = 0, in_workspace = 0, turned = 0, groups_along_pixels = 0;
  RandomDirect random(7, true);
  Problem p;
  for (int k = 0; k < 60'000; ++k) {
    if (!random.Make(p)) continue;
    for (const int64_t limit : {int64_t{-1}, int64_t{0}, int64_t{200'000}}) {
      const int threads = random.Threads();
      if (!DirectRefusal(p, threads, limit).empty()) continue;
      const DirectTiling t = DirectTilingOf(p, threads, limit);
      SCOPED_TRACE(ToText(p) + ", limit " + std::to_string(limit) + ", " + std::to_string(threads) +
                   " threads");
      ASSERT_GE(t.columns, 1);
      ASSERT_TRUE(limit < 0 || t.workspace_bytes() <= limit);
      const DirectTiling run = DirectTilingOf(p, threads, t.workspace_bytes());
      ASSERT_EQ(run.task_floats, t.task_floats);
      ASSERT_EQ(run.columns, t.columns);
      ASSERT_EQ(run.slots, t.slots);
      ++planned;
      if (t.along_pixels) continue;
      if (t.groups_along_pixels) {
        ++groups_along_pixels;
        const Problem lines = WithLines(p);
        for (int64_t i = 0; i < std::min<int64_t>(CountPlainPhases(lines), 200); ++i) {
          const Contraction c = MakePlainContraction(lines, i);
          const int64_t vectors = CeilDiv(c.axes[kAxes - 1].pixels, GroupPixels::kLanes);
          const bool few = p.type == DataType::kF32 && c.o <= GroupPixels::kFewOuts;
          ASSERT_LE(GroupPixels::WeightsOf(c.taps() * c.channels, c.o),
                    few ? GroupPixels::kMostOfFew : GroupPixels::kMostWeights);
          ASSERT_LE(c.o, GroupPixels::kMostOuts);
          ASSERT_LE(vectors * c.axes[kAxes - 1].taps, GroupPixels::kMostMasks);
          ASSERT_GE(GroupPixels::LinesOf(c.axes[0].taps * c.axes[1].taps, vectors), 1);
          if (p.type == DataType::kF32) continue;
          const int64_t room = GroupPixels::RowsOfRoom(c);
          ASSERT_GE(room, std::min(c.axes[1].limit, GroupPixels::SpanOf(c.axes[1])));
          ASSERT_LE(room * c.axes[0].taps * c.channels * c.axes[2].limit, GroupPixels::kWidened);
        }
        continue;
      }
      if (t.turned) {
        ++turned;
        const Problem planes = WithPlanes(p);
        int64_t floats = TurnedPlanes::WholeLines(t.plane_positions * t.plane_width);
        ASSERT_LE(CountPlainPhases(planes), TurnedPlanes::kMostPhases);
        for (int64_t i = 0; i < CountPlainPhases(planes); ++i) {
          const Contraction c = MakePlainContraction(planes, i);
          floats += TurnedPlanes::WholeLines(MemoryOf(c, t).floats(t.blocks_each));
        }
        ASSERT_LE(floats, t.on_stack ? DirectTiling::kStackFloats : t.task_floats);
        continue;
      }
      const Problem lines = WithLines(p);
      const int64_t parts = PartsOf(lines, t), some = std::min<int64_t>(parts, 200);
      several += parts > 1;
      in_workspace += !t.on_stack;
      for (int64_t i = 0; i < some; ++i) {
        const int64_t part = i % 2 == 0 ? i / 2 : parts - 1 - i / 2;  // from both ends
        const Contraction c = p.pass == Pass::kWgrad
                                  ? OfTaps(MakePlainContraction(lines, 0), t, part)
                                  : MakePlainContraction(lines, part);
        ASSERT_LE(MemoryOf(c, t).floats(t.blocks_each),
                  t.on_stack ? DirectTiling::kStackFloats : t.task_floats)
            << "part " << part << " of " << parts;
      }
    }
  }
  EXPECT_GT(planned, 20'000);
  EXPECT_GT(several, 2'000);
  EXPECT_GT(turned, 100);
  EXPECT_EQ(groups_along_pixels > 100,
            PickedVectorUnit(DataType::kF32).lanes == GroupPixels::kLanes);
  EXPECT_GT(in_workspace, 2'000);
}

// Phases take turns on bands: every pixel of every phase is in one of them, whatever L2 holds.
TEST(DirectBands, HaveEveryPixelOfEveryPhaseOnce) {
  int of_images = 0, of_lines = 0, of_columns = 0, apart = 0;
  RandomDirect random(8, false);
  Problem p;
  for (int k = 0; k < 60'000; ++k) {
    if (!random.Make(p) || p.pass != Pass::kDgrad) continue;
    const int threads = random.Threads();
    if (!DirectRefusal(p, threads, -1).empty()) continue;
    const DirectTiling t = DirectTilingOf(p, threads, -1);
    const Problem lines = WithLines(p);
    const int64_t phases = CountPlainPhases(lines);
    for (const int64_t l2_bytes : {int64_t{0}, int64_t{1} << 20}) {
      const PhaseBands bands = MakePhaseBands(lines, t, l2_bytes);
      SCOPED_TRACE(ToText(p));
      ASSERT_EQ(phases % bands.together, 0);
      ASSERT_TRUE(phases > 1 || bands.count() == 1);
      of_images += bands.images > 1;
      of_lines += bands.lines > 1;
      of_columns += bands.columns > 1;
      apart += phases > 1 && bands.together == 1;
      for (int64_t phase = 0; phase < std::min<int64_t>(phases, 20); ++phase) {
        const Contraction c = MakePlainContraction(lines, phase);
        const DirectTask all{.images = {3, 3 + lines.batch},
                             .lines = {1, 1 + c.axes[0].pixels * c.axes[1].pixels},
                             .columns = {2, 2 + c.axes[kAxes - 1].pixels}};
        // Along each axis, where the band before it ends, from the first to the last.
        const auto follows = [&](Range DirectTask::*range, int64_t i, int64_t parts, int64_t step) {
          const Range part = bands.Of(all, i).*range;
          const int64_t at = i / step % parts;
          ASSERT_LE(part.begin, part.end);
          ASSERT_EQ(part.begin,
                    at == 0 ? (all.*range).begin : (bands.Of(all, i - step).*range).end);
          ASSERT_TRUE(at + 1 < parts || part.end == (all.*range).end);
        };
        for (int64_t i = 0; i < bands.count(); ++i) {
          follows(&DirectTask::columns, i, bands.columns, 1);
          follows(&DirectTask::lines, i, bands.lines, bands.columns);
          follows(&DirectTask::images, i, bands.images, bands.columns * bands.lines);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(of_images, 100);
  EXPECT_GT(of_lines, 100);
  EXPECT_GT(of_columns, 3);
  EXPECT_GT(apart, 100);
}

}  // namespace
}  // namespace convgrad::tests
