// Terms that are left out are products with padding, all of them: brute force over small problems,
// for any range of rows and any chunk.
#include "cpu/live.h"

#include <gtest/gtest.h>

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
  const int64_t x = row % axes[2].pixels, line = row / axes[2].pixels;
  const int64_t lines = axes[0].pixels * axes[1].pixels;
  const int64_t rest = c.images_inside ? line / c.images : line % lines;
  return {{rest / axes[1].pixels, rest % axes[1].pixels, x}};
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
    inside_images += c.images_inside;
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

// Whether w has the tap that phase (row / channels) meets through tap t of g, on every axis.
bool PhaseHasTap(const PhaseColumns& columns, const Contraction& c, int64_t row, int64_t tap) {
  int64_t phase = row / columns.channels;
  for (int a = kAxes - 1; a >= 0; --a) {
    const int64_t of_w =
        columns.base[a] + phase % columns.phases[a] + columns.stride[a] * (tap % c.axes[a].taps);
    if (of_w < 0 || of_w >= columns.taps[a]) return false;
    phase /= columns.phases[a];
    tap /= c.axes[a].taps;
  }
  return true;
}

TEST(Live, LeavesOutOnlyPhasesWithoutATap) {
  std::mt19937_64 random(11);
  int64_t first = 0, second = 0;
  for (int i = 0; i < 20000; ++i) {
    const Problem problem = tests::RandomProblem(random, 9);
    const Contraction c = MakeContraction(problem, 0, 0);
    if (c.columns.channels == 0) continue;
    for (int64_t tap = 0; tap < c.taps(); ++tap) {
      const TileRows rows = RowsOfTap(c, tap);
      first += rows == TileRows::kFirstHalf;
      second += rows == TileRows::kSecondHalf;
      if (rows == TileRows::kAll) continue;
      ASSERT_EQ(c.o % 2, 0);
      const int64_t left_out = rows == TileRows::kFirstHalf ? c.o / 2 : 0;
      for (int64_t row = left_out; row < left_out + c.o / 2; ++row) {
        ASSERT_FALSE(PhaseHasTap(c.columns, c, row, tap)) << i << " row " << row << " tap " << tap;
      }
    }
  }
  EXPECT_GT(first, 100);
  EXPECT_GT(second, 100);
}

// 7 taps of stride 2 are 4 for each of two phases, of which the first misses its first.
TEST(Live, LeavesOutAnEighthOfAFirstLayer) {
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
    EXPECT_EQ(RowsOfTap(c, tap), tap < 4 ? TileRows::kSecondHalf : TileRows::kAll) << tap;
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
  ASSERT_TRUE(c.images_inside);
  const Chunk chunk = ChunkAt(MakeChunks(c), 0);
  EXPECT_EQ(LiveTerms(c, chunk, {0, 12}), (Range{3 * 16, 9 * 16}));
  EXPECT_EQ(LiveTerms(c, chunk, {56, 68}), (Range{0, 9 * 16}));
  EXPECT_EQ(LiveTerms(c, chunk, {6 * 56, 6 * 56 + 12}), (Range{0, 6 * 16}));
}

}  // namespace
}  // namespace convgrad
