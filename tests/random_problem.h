// Small problems of any rank, pass, stride, dilation and padding, for tests that look at every
// position.
#ifndef CONVGRAD_TESTS_RANDOM_PROBLEM_H_
#define CONVGRAD_TESTS_RANDOM_PROBLEM_H_

#include <algorithm>
#include <cstdint>
#include <random>

#include "core/problem.h"

namespace convgrad::tests {

inline int64_t Between(std::mt19937_64& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
}

// `most_out`: along the last axis; 9 along the others.
inline Problem RandomProblem(std::mt19937_64& random, int64_t most_out) {
  Problem p;
  p.pass = static_cast<Pass>(Between(random, 0, 2));
  p.batch = Between(random, 1, 4);
  p.ci = Between(random, 1, 3);
  p.co = Between(random, 1, 3);
  for (size_t a = static_cast<size_t>(Between(random, 0, 2)); a < kAxes; ++a) {
    Axis& axis = p.axes[a];
    axis.taps = Between(random, 1, 4);
    axis.stride = Between(random, 1, 3);
    axis.dilation = Between(random, 1, 3);
    axis.out = Between(random, 1, a + 1 < kAxes ? 9 : most_out);
    axis.pad = Between(random, 0, 4);
    axis.in = std::max<int64_t>(
        1, (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1 - axis.pad);
  }
  SetDenseStrides(p);
  return p;
}

// The same tensors with their channels next to each other.
inline void ToChannelsLast(Problem& p) {
  for (PixelStrides* strides : {&p.x, &p.y}) {
    const int64_t channels = p.groups * (strides == &p.x ? p.ci : p.co);
    strides->c = 1;
    for (int64_t& stride : strides->s) stride *= channels;
  }
}

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_RANDOM_PROBLEM_H_
