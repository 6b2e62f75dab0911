// The contraction engine, as the kernel table sees it. Steps 5 to 8 of the story. Knows problems,
// not operations; never allocates, never fails.
#ifndef CONVGRAD_CPU_ENGINE_H_
#define CONVGRAD_CPU_ENGINE_H_

#include <cstdint>
#include <string>

#include "core/parallel.h"
#include "core/problem.h"
#include "cpu/tiling.h"

namespace convgrad {

// The vector unit that was picked for this CPU, and how it multiplies a type.
VectorUnit PickedVectorUnit(DataType type);

// Tasks at a time: a thread that is given less than 10 us of work costs more than it does.
int64_t TasksWorthwhile(const Problem& problem, int64_t tasks, int threads);

Tiling TilingOf(const Problem& problem, int threads, int64_t workspace_limit);
std::string TilingText(const Problem& problem, int threads, int64_t workspace_limit);
// docs/numerics.md derives it.
double ContractionErrorBound(const Problem& problem);
double ExpectedSeconds(const Problem& problem, int threads);

void RunContractions(const Problem& problem, const Operands& operands, float beta, const Team& team,
                     void* workspace, int64_t workspace_bytes);

// The bias gradient of a wgrad.
void RunBiasGradient(const Problem& problem, const Operands& operands, float beta,
                     const Team& team);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_ENGINE_H_
