// Lines that taps share: every pixel finds, through every tap, the position that it should, at the
// place where a tile looks for it. Brute force over small problems.
#include "cpu/lines.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace convgrad
