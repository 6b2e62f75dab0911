// The threads of an OpenMP runtime that another library of the process brought along, for the
// library's parallel-for: two runtimes would each have a pool of threads, waiting on the same
// cores.
#ifndef CONVGRAD_PYTHON_BINDINGS_HOST_THREADS_H_
#define CONVGRAD_PYTHON_BINDINGS_HOST_THREADS_H_

#include "convgrad/parallel.h"

namespace convgrad::python {

// The runtime that `library`, a loaded shared library, uses; without one, convgrad's own.
ParallelFor ThreadsOf(const char* library);

// A child of fork() has none of its parent's threads, but a runtime (GCC's) that believes it has
// and waits for them for ever, once the parent has used them. From here on children use threads
// that live as long as one region; the bits are the same. What forked before is not known.
void WatchForks();

}  // namespace convgrad::python

#endif  // CONVGRAD_PYTHON_BINDINGS_HOST_THREADS_H_
