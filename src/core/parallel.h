// One parallel-for. Which thread runs which part never shows in a result: every output element is
// summed by one call, in an order of its own.
#ifndef CONVGRAD_CORE_PARALLEL_H_
#define CONVGRAD_CORE_PARALLEL_H_

#include <cstdint>

#include "convgrad/parallel.h"

namespace convgrad {

// Who does the work of a run.
struct Team {
  int threads = 1;
  ParallelFor host{};
  // With OpenMP, so many are woken for work of fewer, too; 0: `threads`. A runtime (GCC's) ends the
  // threads that a smaller team leaves out and starts others for the next larger one: 40 us each,
  // where waking 16 takes 3.
  int woken = 0;

  int Woken() const { return woken > threads ? woken : threads; }
  // Some of its threads.
  Team Of(int64_t some) const { return {static_cast<int>(some), host, Woken()}; }
};

// That this process may run on.
int UsableCores();

// How many threads `asked` means: 0 is what the machine has (OMP_NUM_THREADS is respected). May
// start threads of OpenMP to see whether it can, where it is to be used; call it when planning.
int ResolveThreads(int asked, const ParallelFor& host);

// slot: below the number of threads; no two calls at the same time have the same.
using RangeFunction = void (*)(const void* context, int slot, int64_t begin, int64_t end);

// Covers [0, count) with ranges of at most `grain`.
void RunRanges(const Team& team, int64_t count, int64_t grain, RangeFunction function,
               const void* context);

// body(slot, begin, end)
template <class Body>
void ForRanges(const Team& team, int64_t count, int64_t grain, const Body& body) {
  RunRanges(
      team, count, grain,
      [](const void* context, int slot, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(context))(slot, begin, end);
      },
      &body);
}

}  // namespace convgrad

#endif  // CONVGRAD_CORE_PARALLEL_H_
