// Small groups whose sums are along pixels: the room of a task, and which problems have them. Step
// 5 of the story.
#ifndef CONVGRAD_CPU_DIRECT_GROUP_PIXELS_H_
#define CONVGRAD_CPU_DIRECT_GROUP_PIXELS_H_

#include <algorithm>
#include <cstdint>

#include "cpu/contraction.h"

namespace convgrad {

struct GroupPixels {
  static constexpr int64_t kOutside = INT64_MIN;  // a line of g

  static constexpr int kLanes = 16;
  static constexpr int64_t kMostOuts = 16;
  static constexpr int64_t kMostMasks = 2048;  // vectors of a line by taps
  static constexpr int64_t kMostRows = 1024;   // lines of v by lines of taps
  static constexpr int64_t kMostColumns = 256;
  static constexpr int64_t kMostWeights = 4096;    // floats: half of a small L1
  static constexpr int64_t kMostOfFew = 16 << 10;  // of up to kFewOuts of f32
  static constexpr int64_t kFewOuts = 4;
  static constexpr int64_t kWidened = 8 << 10;  // floats, of lines of 16 bits

  // o at once: a vector of g is loaded for all of them, a weight for several vectors of g. 16 sums,
  // and 8 of one o, are more than a CPU needs to have all of its multiplications under way.
  static constexpr int64_t OutsOf(int64_t o) { return o <= 2 ? o : o <= 4 ? 4 : 8; }
  static int64_t WeightsOf(int64_t terms, int64_t o) {
    return terms * CeilDiv(o, OutsOf(o)) * OutsOf(o);
  }
  // Lanes and o that exist, of those that are computed.
  static double FilledShare(const Contraction& c) {
    const int64_t pixels = c.axes[kAxes - 1].pixels;
    return static_cast<double>(pixels * c.o) /
           static_cast<double>(CeilDiv(pixels, kLanes) * kLanes * WeightsOf(1, c.o));
  }
  // Lines of g that a line of v reads, or lies between those; and lines of each plane of taps, of a
  // group, that there is room to widen.
  static int64_t SpanOf(const GatherAxis& heights) {
    return (std::max<int64_t>(heights.taps, 1) - 1) * std::abs(heights.tap_step) + 1;
  }
  static int64_t RowsOfRoom(const Contraction& c) {
    const int64_t limit = std::max<int64_t>(1, c.axes[kAxes - 1].limit);
    return kWidened / limit / std::max<int64_t>(1, c.axes[0].taps * c.channels);
  }
  // Lines of v at once.
  static int64_t LinesOf(int64_t lines_of_taps, int64_t vectors) {
    return std::min(kMostRows / std::max<int64_t>(1, lines_of_taps), kMostColumns / vectors);
  }
};

// `c`: the largest phase of `p`, which has lines; and of any problem.
bool IsOfGroupsAlongPixels(const Contraction& c, const Problem& p);
bool HasGroupsAlongPixels(const Problem& problem);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_GROUP_PIXELS_H_
