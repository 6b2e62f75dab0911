// The one parallel-for: every range once, slots below the number of threads, and threads that stay.
#include "core/parallel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace convgrad {
namespace {

// Slots have memory of their own: there are as many as threads that have work, no more, and no two
// calls have the same at a time.
void ExpectEveryRangeOnce(const Team& team, int64_t count, int64_t grain) {
  SCOPED_TRACE(testing::Message() << team.threads << " of " << team.Woken() << " threads, " << count
                                  << " by " << grain);
  std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
  std::vector<std::atomic<int>> busy(64);
  ForRanges(team, count, grain, [&](int slot, int64_t i, int64_t end) {
    ASSERT_LT(slot, team.threads);
    EXPECT_EQ(busy[static_cast<size_t>(slot)]++, 0);
    EXPECT_LE(end - i, grain);
    for (; i < end; ++i) ++hits[static_cast<size_t>(i)];
    std::this_thread::yield();
    --busy[static_cast<size_t>(slot)];
  });
  EXPECT_TRUE(std::all_of(hits.begin(), hits.end(), [](int times) { return times == 1; }));
}

TEST(Parallel, CoversEveryRangeOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    for (int some = 1; some <= threads; ++some) {
      for (const int64_t count : {0, 1, 2, 7, 100}) {
        for (const int64_t grain : {1, 3, 1000}) {
          ExpectEveryRangeOnce(Team{threads}.Of(some), count, grain);
        }
      }
    }
  }
}

TEST(Parallel, AsksAHostForThoseThatHaveWork) {
  int asked = 0;
  const ParallelForFunction host = [](void* most, int count, void (*task)(void*, int),
                                      void* context) {
    *static_cast<int*>(most) = std::max(*static_cast<int*>(most), count);
    for (int i = 0; i < count; ++i) task(context, i);
  };
  ExpectEveryRangeOnce(Team{8, {host, &asked}}.Of(3), 100, 1);
  EXPECT_EQ(asked, 3);
}

#if defined(_OPENMP)
// Work for fewer threads than there are must not end the others: to start them again took 40 us
// each, 0.6 ms of a weight gradient of 2 ms on 16 cores.
TEST(Parallel, KeepsItsThreads) {
  std::mutex mutex;
  std::set<pid_t> seen;
  const Team team{2 * UsableCores()};
  for (int i = 0; i < 25; ++i) {
    for (const int64_t count : {2, 4, 3, 16}) {
      for (const int some : {team.threads, 2}) {
        ForRanges(team.Of(some), count, 1, [&](int, int64_t, int64_t) {
          const std::lock_guard<std::mutex> lock(mutex);
          seen.insert(gettid());
        });
      }
    }
  }
  EXPECT_LE(seen.size(), static_cast<size_t>(team.threads));
}

// A team inside another region is started anew each time: no larger than its work.
TEST(Parallel, WakesFewInsideAnotherRegion) {
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(2);
  std::atomic<int> largest{0};
#pragma omp parallel num_threads(2)
  ForRanges(Team{8}.Of(3), 100, 1, [&](int, int64_t, int64_t) {
    int before = largest;
    while (before < omp_get_num_threads() &&
           !largest.compare_exchange_weak(before, omp_get_num_threads())) {
    }
  });
  omp_set_max_active_levels(levels);
  EXPECT_EQ(largest, 3);
}
#endif

}  // namespace
}  // namespace convgrad
