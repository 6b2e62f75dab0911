// Taps of a weight gradient that meet nothing but padding: what no contraction writes. Part of step
// 8 of the story.
#ifndef CONVGRAD_CPU_DEAD_TAPS_H_
#define CONVGRAD_CPU_DEAD_TAPS_H_

#include "core/parallel.h"
#include "core/problem.h"

namespace convgrad {

// out = beta * out there.
void FillDeadTaps(const Problem& problem, void* out, float beta, const Team& team);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DEAD_TAPS_H_
