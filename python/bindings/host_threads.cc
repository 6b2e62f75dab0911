#include "host_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace convgrad::python {
namespace {

// What compilers emit for `#pragma omp parallel`; the runtimes of GCC, LLVM and Intel all have it.
using ParallelRegion = void (*)(void (*body)(void*), void* data, unsigned threads, unsigned flags);

struct Region {
  int count;
  void (*task)(void* context, int i);
  void* context;
  std::atomic<int> next{0};

  // A runtime may give fewer threads than asked for: each takes tasks until none is left.
  static void Body(void* data) {
    auto* region = static_cast<Region*>(data);
    for (int i = region->next++; i < region->count; i = region->next++) {
      region->task(region->context, i);
    }
  }
};

std::atomic<bool> is_fork{false};

// Threads that end with the region, about 30 us for each.
void RunWithoutPool(Region& region) {
  std::vector<std::thread> others;
  try {
    others.reserve(static_cast<size_t>(region.count));
    for (int i = 1; i < region.count; ++i) others.emplace_back(&Region::Body, &region);
  } catch (const std::exception&) {
    // fewer threads do the same work
  }
  Region::Body(&region);
  for (std::thread& other : others) other.join();
}

void RunRegion(void* host, int count, void (*task)(void* context, int i), void* context) {
  Region region{count, task, context};
  if (is_fork.load(std::memory_order_relaxed)) return RunWithoutPool(region);
  reinterpret_cast<ParallelRegion>(host)(&Region::Body, &region, static_cast<unsigned>(count), 0);
}

}  // namespace

void WatchForks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { is_fork = true; });
  (void)watched;
}

ParallelFor ThreadsOf(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  // Searches the library and what it was linked with. It stays loaded: others use it.
  void* theirs = dlsym(handle, "GOMP_parallel");
  dlclose(handle);
  return theirs != nullptr ? ParallelFor{&RunRegion, theirs} : ParallelFor{};
}

}  // namespace convgrad::python
