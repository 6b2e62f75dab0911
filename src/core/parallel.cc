#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <thread>
#include <vector>

#include "core/float_mode.h"

#if defined(CONVGRAD_OPENMP)
#include <omp.h>
#include <pthread.h>
#include <sys/stat.h>
#endif

namespace convgrad {
namespace {

// Hands out ranges until none is left; threads that find none cost nothing.
struct Ranges {
  int64_t count;
  int64_t grain;
  RangeFunction function;
  const void* context;
  std::atomic<int64_t> next{0};

  void Drain(int slot) {
    const DefaultFloatMode mode;
    const int64_t ranges = (count - 1) / grain + 1;
    for (int64_t i = next++; i < ranges; i = next++) {
      const int64_t begin = i * grain;
      function(context, slot, begin, begin + std::min(grain, count - begin));
    }
  }
};

#if defined(CONVGRAD_OPENMP)
// How many threads of a team of `team` can be had. An OpenMP runtime that cannot start one ends the
// process; so the first team of each size is tried, when planning, with threads of our own, about
// 30 us for each.
int StartableTeam(int team) {
  static std::atomic<int> known{1}, most{INT_MAX};
  team = std::min(team, most.load(std::memory_order_relaxed));
  if (team <= known.load(std::memory_order_relaxed)) return team;
  std::atomic<bool> go{false};
  std::vector<std::thread> others;
  try {
    others.reserve(static_cast<size_t>(team) - 1);
    while (static_cast<int>(others.size()) < team - 1)
      others.emplace_back([&go] { go.wait(false); });
  } catch (const std::exception&) {
    // as many as there are
  }
  go = true;
  go.notify_all();
  for (std::thread& other : others) other.join();
  const int startable = static_cast<int>(others.size()) + 1;
  if (startable < team) most = startable;  // and is not tried again
  int before = known.load(std::memory_order_relaxed);
  while (before < startable && !known.compare_exchange_weak(before, startable)) {
  }
  return startable;
}

// A child of fork() has none of its parent's threads, but a runtime (GCC's) that believes it has,
// and waits for them for ever, whoever has used it. So forks are watched from loading on; a child
// that loads the library itself cannot know. A parent of one thread leaves none behind.
std::atomic<bool> is_fork{false};
std::atomic<bool> parent_has_threads{false};

void BeforeFork() {
  struct stat threads;  // a link for each, and two
  parent_has_threads = stat("/proc/self/task", &threads) != 0 || threads.st_nlink > 3;
}
void InChild() {
  if (parent_has_threads) is_fork = true;
}
[[maybe_unused]] const int watched = pthread_atfork(BeforeFork, nullptr, InChild);
#endif

// Threads for this region alone, about 30 us for each: without OpenMP, in a child of fork(), and
// under ThreadSanitizer, which cannot see into a runtime.
void RunOnOwnThreads(Ranges& ranges, int threads) {
  std::vector<std::thread> others;
  try {
    others.reserve(static_cast<size_t>(threads) - 1);
    for (int i = 1; i < threads; ++i) others.emplace_back([&ranges, i] { ranges.Drain(i); });
  } catch (const std::exception&) {
    // fewer threads do the same work
  }
  ranges.Drain(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

int UsableCores() {
#if defined(CONVGRAD_OPENMP)
  return omp_get_num_procs();
#else
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#endif
}

int ResolveThreads(int asked, const ParallelFor& host) {
  const int cores = UsableCores();
#if defined(CONVGRAD_OPENMP)
  const int all = omp_get_max_threads();
#else
  const int all = cores;
#endif
  // A count that no machine of this size can use is not passed on.
  const int team = std::min(asked > 0 ? asked : all, std::max(64, 2 * cores));
#if defined(CONVGRAD_OPENMP)
  if (host.function == nullptr) return StartableTeam(team);
#endif
  (void)host;
  return team;
}

void RunRanges(const Team& team, int64_t count, int64_t grain, RangeFunction function,
               const void* context) {
  if (count <= 0) return;
  Ranges ranges{count, std::max<int64_t>(1, grain), function, context};
  const int64_t useful = (count - 1) / ranges.grain + 1;
  const int threads = static_cast<int>(std::min<int64_t>(std::max(1, team.threads), useful));
  if (threads == 1) return ranges.Drain(0);
  if (team.host.function != nullptr) {
    team.host.function(
        team.host.host, threads, [](void* of, int slot) { static_cast<Ranges*>(of)->Drain(slot); },
        &ranges);
    return ranges.Drain(0);  // what a host left out, which is nothing
  }
#if defined(CONVGRAD_OPENMP)
  if (is_fork.load(std::memory_order_relaxed)) return RunOnOwnThreads(ranges, threads);
  // Not inside another region, which keeps no threads for those inside it, nor many more than there
  // are cores: work for two took 48 us on two cores, with 4 woken 63, with 64 318.
  const int all = omp_in_parallel() ? 0 : std::min(team.Woken(), 2 * UsableCores());
  const int woken = std::max(threads, all);
#pragma omp parallel num_threads(woken)
  if (const int slot = omp_get_thread_num(); slot < threads) ranges.Drain(slot);
#else
  RunOnOwnThreads(ranges, threads);
#endif
}

}  // namespace convgrad
