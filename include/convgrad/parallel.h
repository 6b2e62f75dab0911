// The one place where convgrad uses threads, for a host that has its own.
#ifndef CONVGRAD_PARALLEL_H_
#define CONVGRAD_PARALLEL_H_

namespace convgrad {

// Calls task(context, i) for every i in [0, count), at the same time as far as it can, and returns
// when all calls have returned. Running them one after another, in any order, is right too. It must
// not throw. Tasks never throw and never wait for each other; each needs 256 KiB of stack.
using ParallelForFunction = void (*)(void* host, int count, void (*task)(void* context, int i),
                                     void* context);

struct ParallelFor {
  ParallelForFunction function = nullptr;  // null: OpenMP
  void* host = nullptr;                    // passed back to the function
};

}  // namespace convgrad

#endif  // CONVGRAD_PARALLEL_H_
