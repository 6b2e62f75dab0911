// The threads of an OpenMP runtime that another library of the process brought along, for the
// library's parallel-for: two runtimes would each have a pool of threads, waiting on the same
// cores.
#ifndef CONVGRAD_PYTHON_BINDINGS_HOST_THREADS_H_
#define CONVGRAD_PYTHON_BINDINGS_HOST_THREADS_H_

#include "convgrad/parallel.h"

namespace convgrad::python {

// The runtime that `library`, a loaded shared library, uses; without one, convgrad's own.
ParallelFor ThreadsOf(const char* library);

}  // namespace convgrad::python

#endif  // CONVGRAD_PYTHON_BINDINGS_HOST_THREADS_H_
