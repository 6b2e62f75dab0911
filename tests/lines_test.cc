// Lines that taps share: every pixel finds, through every tap, the position that it should, at the
// place where a tile looks for it. Brute force over small problems.
#include "cpu/lines.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/random_problem.h"

namespace convgrad {
namespace {

using tests::Between;

// What is where in a group, by class and place: the line and the position along it.
using Places = std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>;

// As the packing writes them: run after run, `extra` positions more after the pixels of each.
Places PlacesOf(const GatherAxis& axis, const Lines& lines, int64_t first, int64_t end) {
  Places places;
  for (int64_t at = 0, pixel = first; pixel < end;) {
    const int64_t x = pixel % lines.pixels, count = std::min(lines.pixels - x, end - pixel);
    for (int64_t tap = 0; tap < lines.classes; ++tap) {
      const int64_t begin = x + lines.least - ShiftOfTap(axis, tap);
      for (int64_t i = 0; i < count + lines.extra; ++i) {
        EXPECT_LT(at + i, lines.width);
        places[{tap, at + i}] = {pixel / lines.pixels,
                                 axis.first + (begin + i) * axis.pixel_step + tap * axis.tap_step};
      }
    }
    at += count + lines.gap;
    pixel += count;
  }
  return places;
}

void CheckGroup(const Contraction& c, const Lines& lines, int64_t first, int64_t width,
                int64_t unit) {
  const GatherAxis& axis = c.axes[kAxes - 1];
  const int64_t end = std::min(first + lines.group, c.rows());
  const Places places = PlacesOf(axis, lines, first, end);
  for (int64_t panel = first; panel < end; panel += width) {
    for (int64_t i = 0; i < std::min(width, end - panel); ++i) {
      const int64_t pixel = panel + i, in_vector = i % unit;
      // As a tile finds it: by vectors, those after the end of the line a gap further.
      const int64_t vector = i - in_vector;
      const int64_t place = lines.PlaceOf(first, panel) + vector +
                            (vector < lines.RestOfLine(panel) ? 0 : lines.gap) + in_vector;
      for (int64_t tap = 0; tap < axis.taps; ++tap) {
        const auto found =
            places.find({tap % lines.classes, place + ShiftOfTap(axis, tap) - lines.least});
        ASSERT_NE(found, places.end()) << "pixel " << pixel << " tap " << tap;
        ASSERT_EQ(found->second.first, pixel / axis.pixels);
        ASSERT_EQ(found->second.second,
                  axis.first + pixel % axis.pixels * axis.pixel_step + tap * axis.tap_step);
      }
    }
  }
}

TEST(Lines, EveryPixelFindsWhatItsTapsRead) {
  std::mt19937_64 random(7);
  int64_t shared = 0, strided = 0, split = 0;
  for (int i = 0; i < 4000; ++i) {
    Problem p = tests::RandomProblem(random, 64);
    if (p.pass == Pass::kWgrad) p.pass = Pass::kFprop;
    p.axes[kAxes - 1].taps += Between(random, 0, 9);
    const Axis& last = p.axes[kAxes - 1];
    p.axes[kAxes - 1].in = std::max<int64_t>(
        1, (last.out - 1) * last.stride + (last.taps - 1) * last.dilation + 1 - last.pad);
    SetDenseStrides(p);
    const int64_t phases = CountPhases(p);
    const Contraction c = MakeContraction(p, 0, Between(random, 0, phases - 1));
    const int64_t unit = int64_t{2} << Between(random, 0, 3), width = unit * Between(random, 1, 3);
    const Lines lines = MakeLines(c, width, Between(random, 1, 8), unit);
    if (!lines.shared) continue;
    ++shared;
    strided += lines.classes > 1;
    split += lines.pixels % lines.group != 0;
    ASSERT_LE(2 * lines.classes * lines.width, c.axes[kAxes - 1].taps * lines.group);
    const int64_t begin = width * Between(random, 0, 3);  // of a block
    for (int64_t first = begin; first < c.rows(); first += lines.group) {
      CheckGroup(c, lines, first, width, unit);
    }
  }
  EXPECT_GT(shared, 300);
  EXPECT_GT(strided, 10);
  EXPECT_GT(split, 200);
}

// An image and a plane of it, and a position across and along lines.
using Place = std::array<int64_t, 3>;

// What is where in a block of whole planes or parts of them, by class and place.
std::map<std::pair<int64_t, int64_t>, Place> PlacesOfPlanes(const Contraction& c,
                                                            const Lines& lines, Range pixels) {
  const GatherAxis &axis = c.axes[kAxes - 1], &across = c.axes[kAxes - 2];
  std::map<std::pair<int64_t, int64_t>, Place> places;
  int64_t at = 0, line = pixels.begin / lines.pixels;
  while (line * lines.pixels < pixels.end) {
    const int64_t plane = line / across.pixels, y = line % across.pixels;
    int64_t count = 0;
    while ((line + count) * lines.pixels < pixels.end && (line + count) / across.pixels == plane) {
      ++count;
    }
    for (int64_t i = 0; i < count + lines.halo; ++i, at += lines.pitch()) {
      for (int64_t tap = 0; tap < lines.classes; ++tap) {
        const int64_t begin = lines.least - ShiftOfTap(axis, tap);
        for (int64_t x = 0; x < lines.pixels + lines.extra; ++x) {
          EXPECT_LT(at + x, lines.width);
          places[{tap, at + x}] = {
              plane, across.first + y + i + lines.least_line,
              axis.first + (begin + x) * axis.pixel_step + tap * axis.tap_step};
        }
      }
    }
    line += count;
  }
  return places;
}

void CheckBlock(const Contraction& c, const Lines& lines, Range pixels, int64_t width,
                int64_t unit) {
  const GatherAxis &axis = c.axes[kAxes - 1], &across = c.axes[kAxes - 2];
  const auto places = PlacesOfPlanes(c, lines, pixels);
  const int64_t farthest = (across.taps - 1) * std::abs(across.tap_step) * lines.pitch();
  for (int64_t panel = pixels.begin; panel < pixels.end; panel += width) {
    const int64_t turn = lines.RestOfLine(panel), gap = lines.GapAfter(panel, pixels.end);
    for (int64_t i = 0; i < width; ++i) {
      const int64_t pixel = panel + i, vector = i - i % unit;
      const int64_t place = lines.PlaceOf(pixels.begin, panel) + i + (vector < turn ? 0 : gap);
      // Whatever does not exist is at least memory of the block.
      ASSERT_LE(place + lines.extra + farthest, lines.width);
      if (pixel >= pixels.end) continue;
      for (int64_t tap = 0; tap < across.taps * axis.taps; ++tap) {
        const int64_t y = tap / axis.taps, x = tap % axis.taps;
        const int64_t line = y * across.tap_step - lines.least_line;
        const int64_t at = place + ShiftOfTap(axis, x) - lines.least + line * lines.pitch();
        const auto found = places.find({x % lines.classes, at});
        ASSERT_NE(found, places.end()) << "pixel " << pixel << " tap " << tap;
        const int64_t of_plane = pixel % lines.plane;
        const Place wanted{
            pixel / lines.plane, across.first + of_plane / lines.pixels + y * across.tap_step,
            axis.first + of_plane % lines.pixels * axis.pixel_step + x * axis.tap_step};
        ASSERT_EQ(found->second, wanted) << "pixel " << pixel << " tap " << tap;
      }
    }
  }
}

TEST(Lines, EveryPixelFindsWhatTapsAcrossLinesRead) {
  std::mt19937_64 random(8);
  int64_t planes = 0, several = 0, across_ends = 0, backward = 0, by_planes_alone = 0;
  for (int i = 0; i < 12000; ++i) {
    Problem p = tests::RandomProblem(random, 48);
    if (p.pass == Pass::kWgrad) p.pass = Pass::kFprop;
    for (Axis* axis : {&p.axes[kAxes - 1], &p.axes[kAxes - 2]}) {
      axis->taps += Between(random, 1, 4);
      axis->in = std::max<int64_t>(
          1, (axis->out - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1 - axis->pad);
    }
    if (i % 2 == 0) p.ci = p.co = 16;  // then two taps along a line may do
    SetDenseStrides(p);
    const int64_t phases = CountPhases(p);
    const Contraction c = MakeContraction(p, 0, Between(random, 0, phases - 1));
    const int64_t unit = int64_t{2} << Between(random, 0, 2), width = unit * Between(random, 1, 3);
    const int64_t columns = width * Between(random, 1, 40);
    const Lines lines = LinesOfColumns(c, width, columns, unit);
    if (!lines.planes) continue;
    ++planes;
    by_planes_alone += !MakeLines(c, width, 4, unit).shared;
    several += columns > lines.plane;
    across_ends += lines.plane % width != 0;
    backward += c.axes[kAxes - 2].tap_step < 0;
    const int64_t shift = width * Between(random, 0, 3);  // of the small blocks at the end
    for (int64_t first = shift; first < std::min(c.rows(), 4 * columns); first += columns) {
      CheckBlock(c, lines, {first, std::min(first + columns, c.rows())}, width, unit);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(planes, 300);
  EXPECT_GT(several, 50);
  EXPECT_GT(across_ends, 50);
  EXPECT_GT(backward, 50);
  EXPECT_GT(by_planes_alone, 50);
}

// An image without lines.
TEST(Lines, AreNotSharedByNothing) {
  Problem p;
  p.pass = Pass::kDgrad;
  p.ci = p.co = 24;
  p.axes[1] = {.in = 0, .out = 2, .taps = 3, .pad = 2};
  p.axes[2] = {.in = 32, .out = 32, .taps = 3, .pad = 1};
  SetDenseStrides(p);
  const Contraction c = MakeLargestContraction(p);
  ASSERT_EQ(c.axes[1].pixels, 0);
  ASSERT_GT(c.axes[1].taps, 1);
  EXPECT_FALSE(LinesOfColumns(c, 8, 1024, 4).planes);
}

}  // namespace
}  // namespace convgrad
