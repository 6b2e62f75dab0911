// Terms that are left out are products with padding, all of them: brute force over small problems,
// for any range of rows and any chunk.
#include "cpu/live.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "tests/random_problem.h"

namespace convgrad {
namespace {

// A pixel of fprop or dgrad in the order of the rows of the result.
struct Pixel {
  int64_t at[kAxes];
};

Pixel PixelOfRow(const Contraction& c, int64_t row) {
  const auto& axes = c.axes;
  const int64_t each = c.images_inside > 0 ? c.images_inside : c.pixels();  // of one image
  const int64_t of_image =
      c.images_inside > 0 ? row / (each * c.images) * each + row % each : row % each;
  const int64_t line = of_image / axes[2].pixels;
  return {{line / axes[1].pixels, line % axes[1].pixels, of_image % axes[2].pixels}};
}

bool Inside(const Contraction& c, const Pixel& pixel, int64_t tap) {
  const int64_t taps[kAxes] = {tap / (c.axes[1].taps * c.axes[2].taps),
                               tap / c.axes[2].taps % c.axes[1].taps, tap % c.axes[2].taps};
  for (size_t a = 0; a < kAxes; ++a) {
    const GatherAxis& axis = c.axes[a];
    const int64_t at = axis.first + pixel.at[a] * axis.pixel_step + taps[a] * axis.tap_step;
    if (at < 0 || at >= axis.limit) return false;
  }
  return true;
}

// Whether term k of the chunk reads inside, for one row.
bool TermInside(const Contraction& c, const Chunk& chunk, int64_t row, int64_t k) {
  if (!c.sum_pixels) {
    return Inside(c, PixelOfRow(c, row), chunk.inner.begin + k / chunk.outer.size());
  }
  const int64_t flat = chunk.inner.begin + k % chunk.inner.size();
  const int64_t area = c.axes[1].pixels * c.axes[2].pixels;
  const Pixel pixel{
      {flat / area, flat / c.axes[2].pixels % c.axes[1].pixels, flat % c.axes[2].pixels}};
  return Inside(c, pixel, PlaceOfRow(c, row).tap);
}

TEST(Live, LeavesOutOnlyPadding) {
  std::mt19937_64 random(7);
  int64_t left_out = 0, inside_images = 0;
  for (int i = 0; i < 4000; ++i) {
    const Problem problem = tests::RandomProblem(random, 9);
    const int64_t phase = static_cast<int64_t>(random()) & 0xff;
    const Contraction c = MakeContraction(problem, 0, phase % CountPhases(problem), i % 2 == 1);
    inside_images += c.images_inside > 0;
    const Chunks chunks = MakeChunks(c);
    if (c.skipped_axis < 0 || chunks.count() == 0 || c.rows() == 0) continue;
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(c.rows()));
    const Range side{begin, std::min(c.rows(), begin + 1 + static_cast<int64_t>(random() % 12))};
    for (int64_t n = 0; n < chunks.count(); ++n) {
      const Chunk chunk = ChunkAt(chunks, n);
      const Range live = LiveTerms(c, chunk, side);
      ASSERT_GE(live.begin, 0);
      ASSERT_LE(live.begin, live.end);
      ASSERT_LE(live.end, chunk.terms());
      for (int64_t k = 0; k < chunk.terms(); ++k) {
        if (k >= live.begin && k < live.end) continue;
        ++left_out;
        for (int64_t row = side.begin; row < side.end; ++row) {
          ASSERT_FALSE(TermInside(c, chunk, row, k)) << i << " row " << row << " term " << k;
        }
      }
    }
  }
  EXPECT_GT(left_out, 10000);
  EXPECT_GT(inside_images, 100);
}

// Whether w has the tap through which position f of x, of phase (row / channels), meets the
// position of y that tap t of g reads for the first pixel, on every axis.
bool PhaseHasTap(const Problem& p, const Contraction& c, int64_t row, int64_t tap) {
  int64_t phase = row / p.ci;
  for (int a = kAxes - 1; a >= 0; --a) {
    const Axis& axis = p.axes[a];
    const int64_t y = c.axes[a].first + tap % c.axes[a].taps * c.axes[a].tap_step;
    const int64_t from = phase % axis.stride + axis.pad - axis.stride * y;
    if (from % axis.dilation != 0 || from < 0 || from / axis.dilation >= axis.taps) return false;
    phase /= axis.stride;
    tap /= c.axes[a].taps;
  }
  return true;
}

TEST(Live, LeavesOutOnlyPhasesWithoutATap) {
  std::mt19937_64 random(11);
  int64_t halves = 0, quarters = 0;
  for (int i = 0; i < 20000; ++i) {
    const Problem problem = tests::RandomProblem(random, 9);
    const Contraction c = MakeContraction(problem, 0, 0);
    if (c.columns.channels == 0) continue;
    for (int64_t tap = 0; tap < c.taps(); ++tap) {
      const TileRows rows = RowsOfTap(c, tap);
      halves += std::popcount(rows) == 2;
      quarters += std::popcount(rows) == 1;
      TileRows met = 0;
      for (int64_t row = 0; row < c.o; ++row) {
        if (PhaseHasTap(problem, c, row, tap))
          met = static_cast<TileRows>(met | 1 << 4 * row / c.o);
      }
      ASSERT_EQ(rows, met) << i << " tap " << tap;
    }
  }
  EXPECT_GT(halves, 100);
  EXPECT_GT(quarters, 100);
}

// 7 taps of stride 2 are 4 for each of two phases, of which the first misses its first, on two
// axes.
TEST(Live, LeavesOutWhatAFirstLayerMisses) {
  Problem p;
  p.pass = Pass::kDgrad;
  p.ci = 3;
  p.co = 64;
  for (size_t a = 1; a < kAxes; ++a) {
    p.axes[a] = {.in = 224, .out = 112, .taps = 7, .stride = 2, .pad = 3};
  }
  SetDenseStrides(p);
  const Contraction c = MakeContraction(p, 0, 0);
  ASSERT_EQ(c.taps(), 16);
  for (int64_t tap = 0; tap < 16; ++tap) {
    const int down = tap < 4 ? 0b1100 : 0b1111, along = tap % 4 == 0 ? 0b1010 : 0b1111;
    EXPECT_EQ(RowsOfTap(c, tap), down & along) << tap;
  }
}

// One line of 7x7 images, all of whose taps of the first row are padding: nothing less is left out.
TEST(Live, LeavesOutTheRowsOfTapsAboveAnImage) {
  Problem p;
  p.batch = 8;
  p.ci = p.co = 16;
  for (size_t a = 1; a < kAxes; ++a) p.axes[a] = {.in = 7, .out = 7, .taps = 3, .pad = 1};
  SetDenseStrides(p);
  const Contraction c = MakeContraction(p, 0, 0);
  ASSERT_EQ(c.images_inside, 7);
  const Chunk chunk = ChunkAt(MakeChunks(c), 0);
  EXPECT_EQ(LiveTerms(c, chunk, {0, 12}), (Range{3 * 16, 9 * 16}));
  EXPECT_EQ(LiveTerms(c, chunk, {56, 68}), (Range{0, 9 * 16}));
  EXPECT_EQ(LiveTerms(c, chunk, {6 * 56, 6 * 56 + 12}), (Range{0, 6 * 16}));
}

}  // namespace
}  // namespace convgrad
