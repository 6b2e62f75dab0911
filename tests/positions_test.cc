// Positions that all taps of a weight gradient share: no chunk has more than were planned for, and
// every pixel finds, through every tap, the position that it should. Brute force over small
// problems.
#include "cpu/positions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "tests/random_problem.h"

namespace convgrad {
namespace {

// An image and a position in it along each axis.
using Place = std::array<int64_t, kAxes + 1>;

// As the packing writes them: for each plane of taps, part by part, line by line.
std::vector<Place> PlacesOf(const Contraction& c, const Positions& positions, const Chunk& chunk) {
  std::vector<Place> places;
  for (int64_t tap = 0; tap < c.axes[0].taps; ++tap) {
    ForEachPart(c, chunk, [&](int64_t image, int64_t plane, Range lines) {
      const int64_t z = c.axes[0].first + plane * c.axes[0].pixel_step + tap * c.axes[0].tap_step;
      const int64_t y = c.axes[1].first + lines.begin * c.axes[1].pixel_step;
      for (int64_t i = 0; i < PositionsAlong(c.axes[1], lines.size()); ++i) {
        for (int64_t x = 0; x < positions.width; ++x) {
          places.push_back({image, z, y + i, positions.first + x});
        }
      }
    });
  }
  return places;
}

// What the pixels of a chunk read through the first tap, in order, as places in the packing.
std::vector<int64_t> FirstTaps(const Contraction& c, const Chunk& chunk,
                               const std::vector<Place>& places) {
  std::vector<int64_t> found;
  for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
    for (int64_t p = chunk.inner.begin; p < chunk.inner.end; ++p) {
      const int64_t x = p % c.axes[2].pixels, zy = p / c.axes[2].pixels;
      const int64_t y = zy % c.axes[1].pixels, z = zy / c.axes[1].pixels;
      const Place wanted{i, c.axes[0].first + z * c.axes[0].pixel_step,
                         c.axes[1].first + y * c.axes[1].pixel_step,
                         c.axes[2].first + x * c.axes[2].pixel_step};
      const auto at = std::find(places.begin(), places.end(), wanted);
      found.push_back(at == places.end() ? -1 : at - places.begin());
    }
  }
  return found;
}

void CheckChunk(const Contraction& c, const Chunk& chunk, int64_t most) {
  const Positions positions = PositionsOf(c, chunk);
  const std::vector<Place> places = PlacesOf(c, positions, chunk);
  ASSERT_EQ(static_cast<int64_t>(places.size()),
            c.axes[0].taps * positions.lines * positions.width);
  ASSERT_LE(static_cast<int64_t>(places.size()), most);
  for (const int64_t first : FirstTaps(c, chunk, places)) {
    ASSERT_GE(first, 0);
    for (int64_t tap = 0; tap < c.taps(); ++tap) {
      const int64_t at = first + positions.ShiftOfTap(c, tap);
      ASSERT_LT(at, static_cast<int64_t>(places.size()));
      Place wanted = places[static_cast<size_t>(first)];
      wanted[3] += tap % c.axes[2].taps * c.axes[2].tap_step;
      wanted[2] += tap / c.axes[2].taps % c.axes[1].taps * c.axes[1].tap_step;
      wanted[1] += tap / c.axes[2].taps / c.axes[1].taps * c.axes[0].tap_step;
      ASSERT_EQ(places[static_cast<size_t>(at)], wanted) << "tap " << tap;
    }
  }
}

TEST(Positions, EveryPixelFindsWhatItsTapsRead) {
  std::mt19937_64 random(11);
  int64_t shared = 0, cut_lines = 0, several_planes = 0, several_images = 0;
  for (int i = 0; i < 3000; ++i) {
    Problem p = tests::RandomProblem(random, 40);
    p.pass = Pass::kWgrad;
    SetDenseStrides(p);
    const Contraction c = MakeContraction(p, 0, 0);
    Chunks chunks = MakeChunks(c);
    if (!CanShareTaps(c) || chunks.count() == 0) continue;
    ++shared;
    // Shorter chunks cut lines and planes in more ways.
    if (!chunks.chained && i % 3 != 0) {
      chunks.inner_block = tests::Between(random, 1, std::min<int64_t>(chunks.inner_block, 60));
    }
    const int64_t most = MostPositions(c, chunks);
    for (int64_t j = 0; j < std::min<int64_t>(chunks.count(), 12); ++j) {
      const Chunk chunk = ChunkAt(chunks, j);
      SCOPED_TRACE(testing::Message() << "problem " << i << " chunk " << j);
      CheckChunk(c, chunk, most);
      if (HasFatalFailure()) return;
      cut_lines += chunk.inner.begin % c.axes[2].pixels != 0;
      several_planes += chunk.inner.size() > c.axes[1].pixels * c.axes[2].pixels;
      several_images += chunk.outer.size() > 1;
    }
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(cut_lines, 500);
  EXPECT_GT(several_planes, 100);
  EXPECT_GT(several_images, 100);
}

}  // namespace
}  // namespace convgrad
