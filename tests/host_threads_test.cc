// A host that brings its own threads: whatever it does with the tasks, the bits are the same.
// Plans inside a parallel region, and many plans at once.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/bits_case.h"

namespace convgrad::tests {
namespace {

// Sums of several chunks, and as many tasks as threads at least.
const BitsProblem kProblem{"", 3, 1, 50, 40, {17, 15}, {3, 3}, {2, 1}, {1, 1}, {1, 1}};
// Depthwise, and a multiplier: kernels of their own, with more on the stack.
// (Of small planes 16 phases.)
const BitsProblem kPlanes{"", 3, 512, 512, 512, {13, 11}, {5, 5}, {4, 4}, {1, 1}, {2, 2}};
const BitsProblem kDepthwise{"", 3, 500, 500, 500, {17, 15}, {3, 3}, {2, 1}, {1, 1}, {1, 1}};
const BitsProblem kMultiplied{"", 3, 100, 300, 200, {17, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};

#if !CONVGRAD_TEST_SANITIZED
// Runs in a child, which it has a minute for: it would wait for ever.
void ExpectInChild(BitsCase& item, const Options& options, uint64_t digest) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    _exit(item.Run(options) == digest ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The first test of this process: another user of the runtime has threads, which are not in the
// child; the library has not run yet on more than one.
TEST(HostThreads, ChildrenOfForkDoNotWaitForThreadsOfOthers) {
  using ParallelRegion = void (*)(void (*)(void*), void*, unsigned, unsigned);
  void* const region = dlsym(RTLD_DEFAULT, "GOMP_parallel");
  if (region == nullptr) GTEST_SKIP() << "needs GCC's runtime of OpenMP";
  reinterpret_cast<ParallelRegion>(region)([](void*) {}, nullptr, 2, 0);
  BitsCase item(kProblem, OpKind::kConvolutionBackwardWeights, DataType::kF32, {true, true}, true);
  const uint64_t digest = item.Run({.threads = 1});
  ASSERT_NE(digest, 0u);
  ExpectInChild(item, {.threads = 2}, digest);
}

// As workers that load data are.
TEST(HostThreads, ChildrenOfForkHaveTheSameBits) {
  const Options options{.threads = 2};
  BitsCase item(kProblem, OpKind::kConvolutionBackwardWeights, DataType::kF32, {true, true}, true);
  const uint64_t digest = item.Run(options);
  ASSERT_NE(digest, 0u);
  ExpectInChild(item, options, digest);
  EXPECT_EQ(item.Run(options), digest);
}
#endif

struct Host {
  std::atomic<int> calls{0};
  std::atomic<int> largest{0};
  std::atomic<int> tasks{0};

  void Count(int count) {
    ++calls;
    tasks += count;
    int before = largest;
    while (before < count && !largest.compare_exchange_weak(before, count)) {
    }
  }
};

using Task = void (*)(void* context, int i);

void Backwards(void* host, int count, Task task, void* context) {
  static_cast<Host*>(host)->Count(count);
  for (int i = count; i-- > 0;) task(context, i);
}

void OwnThreads(void* host, int count, Task task, void* context) {
  static_cast<Host*>(host)->Count(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([=] { task(context, i); });
  for (std::thread& thread : threads) thread.join();
}

// Two threads for any count, the odd ones and the even ones.
void TwoThreads(void* host, int count, Task task, void* context) {
  static_cast<Host*>(host)->Count(count);
  const auto every_other = [=](int first) {
    for (int i = first; i < count; i += 2) task(context, i);
  };
  std::thread other([=] { every_other(1); });
  every_other(0);
  other.join();
}

TEST(HostThreads, NeverChangeTheBits) {
  for (const OpKind kind : kSixNames) {
    for (const bool last : {false, true}) {
      for (const DataType type : {DataType::kF32, DataType::kBF16}) {
        BitsCase item(kProblem, kind, type, {last, last}, true);
        const uint64_t expected = item.Run({.threads = 1});
        for (const ParallelForFunction function : {Backwards, OwnThreads, TwoThreads}) {
          for (const int threads : {2, 3, 7}) {
            for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
              Host host;
              const Options options{
                  .threads = threads, .workspace_limit = limit, .parallel_for = {function, &host}};
              EXPECT_EQ(item.Run(options), expected) << NameOf(kind) << " " << threads;
              EXPECT_GT(host.calls, 0);
              EXPECT_GT(host.tasks, 1);
              EXPECT_LE(host.largest, threads);
            }
          }
        }
      }
    }
  }
}

TEST(HostThreads, AreNotAskedForOne) {
  Host host;
  BitsCase item(kProblem, OpKind::kConvolution, DataType::kF32, {}, true);
  EXPECT_NE(item.Run({.threads = 1, .parallel_for = {Backwards, &host}}), 0u);
  EXPECT_EQ(host.calls, 0);
}

// A run inside a task of the host's: of another plan, on the same host.
TEST(HostThreads, MayRunPlansInsideTasks) {
  struct Nest {
    Host host;
    std::vector<BitsCase> items;
    std::vector<uint64_t> digests;
  } nest;
  BitsCase item(kProblem, OpKind::kConvolutionBackwardData, DataType::kF32, {true, true}, true);
  const uint64_t expected = item.Run({.threads = 1});
  nest.items.assign(5, item);
  nest.digests.assign(5, 0);
  OwnThreads(
      &nest.host, 5,
      [](void* context, int i) {
        Nest& own = *static_cast<Nest*>(context);
        const size_t at = static_cast<size_t>(i);
        own.digests[at] =
            own.items[at].Run({.threads = 3, .parallel_for = {OwnThreads, &own.host}});
      },
      &nest);
  EXPECT_EQ(nest.digests, std::vector<uint64_t>(5, expected));
  EXPECT_GE(nest.host.calls, 6);
}

// OpenMP's own: a plan that asks for four threads where a region already has them.
TEST(HostThreads, PlansRunInsideAParallelRegion) {
  for (const OpKind kind : kSixNames) {
    BitsCase item(kProblem, kind, DataType::kF32, {}, true);
    const uint64_t expected = item.Run({.threads = 1});
    std::vector<BitsCase> items(4, item);
    std::vector<uint64_t> digests(4, 0);
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 4; ++i) {
      digests[static_cast<size_t>(i)] = items[static_cast<size_t>(i)].Run({.threads = 4});
    }
    EXPECT_EQ(digests, std::vector<uint64_t>(4, expected)) << NameOf(kind);
  }
}

// One plan on several host threads at a time, each with a workspace and outputs of its own, and
// other plans beside it.
TEST(HostThreads, RunPlansAtTheSameTime) {
  std::vector<uint64_t> expected;
  std::vector<BitsCase> items;
  std::vector<Plan> plans;
  for (const OpKind kind : kSixNames) {
    items.emplace_back(kProblem, kind, DataType::kF32, Layout{true, false}, true);
    expected.push_back(items.back().Run({.threads = 1}));
    Result<Plan> plan = items.back().MakePlan({.threads = 2});
    ASSERT_TRUE(plan.ok());
    plans.push_back(*plan);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < 5; ++round) {
        const size_t at = t % 2 == 0 ? 2 : (t + round) % plans.size();  // half of them the same
        BitsCase own = items[at];
        std::vector<char> workspace(static_cast<size_t>(plans[at].workspace_bytes()));
        const Status status = plans[at].Run(own.InputData(), own.OutputData(), workspace.data());
        if (!status.ok() || own.OutputDigest() != expected[at]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

#if !CONVGRAD_TEST_SANITIZED
// One thread after the other, with as much stack as a task is said to need.
void LeastStack(void*, int count, Task task, void* context) {
  struct Call {
    Task task;
    void* context;
    int i;
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  for (int i = 0; i < count; ++i) {
    Call call{task, context, i};
    pthread_t thread;
    const auto run = [](void* of) -> void* {
      const Call& own = *static_cast<Call*>(of);
      own.task(own.context, own.i);
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &call), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
  }
  pthread_attr_destroy(&attributes);
}

TEST(HostThreads, NeedTheStackThatIsStated) {
  for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    for (const OpKind kind : kSixNames) {
      for (const bool last : {false, true}) {
        for (const BitsProblem& problem : {kProblem, kDepthwise, kPlanes, kMultiplied}) {
          BitsCase item(problem, kind, type, {last, last}, true);
          const uint64_t expected = item.Run({.threads = 1});
          for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
            const ParallelFor host{LeastStack, nullptr};
            EXPECT_EQ(item.Run({.threads = 5, .workspace_limit = limit, .parallel_for = host}),
                      expected);
          }
        }
      }
    }
  }
}
#endif

}  // namespace
}  // namespace convgrad::tests
