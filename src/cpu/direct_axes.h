// Which axis the lines of the direct kernel go along. Step 5 of the story.
#ifndef CONVGRAD_CPU_DIRECT_AXES_H_
#define CONVGRAD_CPU_DIRECT_AXES_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/problem.h"

namespace convgrad {

inline int64_t PowerOfTwo(int64_t least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, least))));
}

// A last axis of one position, as in [N, C, T, 1], makes way: lines go along it. Of gradients for
// each image, one. Images that can be groups are.
Problem WithPlanes(Problem problem);
// And images that can be lines are.
Problem WithLines(Problem problem);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_AXES_H_
