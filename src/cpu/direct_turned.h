// Small planes of depthwise layers whose channels are not next to each other: those of some
// channels are turned as a whole, summed as if channels had been next to each other
// (direct_in_place.h), and turned back. Lines of a few pixels, turned one by one, took up to 6
// times as long.
#ifndef CONVGRAD_CPU_DIRECT_TURNED_H_
#define CONVGRAD_CPU_DIRECT_TURNED_H_

#include <array>
#include <cstdint>

#include "core/problem.h"

namespace convgrad {

struct TurnedPlanes {
  static constexpr int64_t kMostPositions = 2048;  // of x and of y, of a channel
  static constexpr int64_t kMostPhases = 16;

  static int64_t PositionsOfX(const Problem& p) {
    return p.axes[0].in * p.axes[1].in * p.axes[2].in;
  }
  static int64_t PositionsOfY(const Problem& p) {
    return p.axes[0].out * p.axes[1].out * p.axes[2].out;
  }
  static int64_t PositionsOf(const Problem& p) { return PositionsOfX(p) + PositionsOfY(p); }

  // Floats in whole lines of the cache.
  static int64_t WholeLines(int64_t floats) { return CeilDiv(floats, 16) * 16; }

  // The problem after it is turned: `width` floats from position to position, all images in the
  // same place.
  static Problem Turned(Problem p, int64_t width) {
    p.x = {.n = 0, .c = 1, .s = {p.axes[1].in * p.axes[2].in * width, p.axes[2].in * width, width}};
    p.y = {
        .n = 0, .c = 1, .s = {p.axes[1].out * p.axes[2].out * width, p.axes[2].out * width, width}};
    return p;
  }
};

// Whether it is worth it; `problem` with planes (direct_axes.h). `by_twos`: the other way to sum it
// has its phases by twos (direct_pixels.h).
bool HasTurnedPlanes(const Problem& problem, int vector_lanes, bool by_twos);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_TURNED_H_
