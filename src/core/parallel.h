// One parallel-for. Which thread runs which part never shows in a result: every output element is
// summed by one call, in an order of its own.
#ifndef CONVGRAD_CORE_PARALLEL_H_
#define CONVGRAD_CORE_PARALLEL_H_

#include <cstdint>

namespace convgrad {

using RangeFunction = void (*)(const void* context, int64_t begin, int64_t end);

// How many threads `asked` means: 0 is what the machine has (OMP_NUM_THREADS is respected). May
// start threads to see whether it can; call it when planning.
int ResolveThreads(int asked);

// Covers [0, count) with ranges of at most `grain`, on up to `threads` threads.
void ParallelRanges(int threads, int64_t count, int64_t grain, RangeFunction function,
                    const void* context);

template <class Body>
void ParallelFor(int threads, int64_t count, int64_t grain, const Body& body) {
  ParallelRanges(
      threads, count, grain,
      [](const void* context, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(context))(begin, end);
      },
      &body);
}

}  // namespace convgrad

#endif  // CONVGRAD_CORE_PARALLEL_H_
