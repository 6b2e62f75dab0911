// What a plan and a run cost beside the arithmetic: a plan takes microseconds, a run allocates
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/bits_case.h"
#include "tests/watched_allocations.h"

namespace convgrad::tests {
namespace {

constexpr OpKind kPasses[] = {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                              OpKind::kConvolutionBackwardWeights};

// res3b of ResNet-50: 3x3, 128 channels of 28x28; and a layer whose kernels are three to choose
// from.
const BitsProblem kLayer{"", 1, 1, 128, 128, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
const BitsProblem kSmallLayer{"small", 8, 1, 16, 16, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};

#if defined(NDEBUG) && !CONVGRAD_TEST_SANITIZED
TEST(PlanCost, IsLessThan20Microseconds) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 2 * 3; ++i) {
    const OpKind kind = kPasses[i % 3];
    BitsCase item(i < 3 ? kLayer : kSmallLayer, kind, DataType::kF32, {}, true);
    const std::vector<TensorDesc> inputs = item.InputDescs(), outputs = item.OutputDescs();
    // The more threads and the less memory, the more ways to cut are weighed.
    for (const Options& options :
         {Options{}, Options{.threads = 16}, Options{.threads = 16, .workspace_limit = 0}}) {
      // Threads are tried once.
      ASSERT_TRUE(Plan::Make(item.operation(), inputs, outputs, options).ok());
      std::vector<double> microseconds;
      const int64_t before = allocations;
      for (int run = 0; run < 1000; ++run) {
        const Clock::time_point start = Clock::now();
        const Result<Plan> plan = Plan::Make(item.operation(), inputs, outputs, options);
        microseconds.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - start).count());
        ASSERT_TRUE(plan.ok());
      }
      const int64_t each = (allocations - before) / 1000;
      // The median: others may use the machine.
      std::nth_element(microseconds.begin(), microseconds.begin() + 500, microseconds.end());
      EXPECT_LT(microseconds[500], i < 3 ? 20 : 40)
          << NameOf(kind) << ", " << options.threads << " threads, " << each << " allocations";
      const std::string name = std::string(NameOf(kind)) + (i < 3 ? "_" : "_small_") +
                               std::to_string(options.threads) +
                               (options.workspace_limit == 0 ? "_without_workspace" : "");
      RecordProperty(name + "_us", std::to_string(microseconds[500]));
      RecordProperty(name + "_allocations", std::to_string(each));
    }
  }
}
#endif

TEST(RunCost, NoAllocation) {
  const BitsProblem problems[] = {
      kLayer,
      {"stride", 2, 1, 40, 70, {21, 19}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {"groups", 2, 8, 64, 64, {20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"depthwise", 1, 100, 100, 100, {30, 30}, {5, 5}, {2, 2}, {1, 1}, {2, 2}},
      {"tiny", 40, 1, 64, 30, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"3d", 1, 1, 30, 20, {9, 8, 7}, {3, 3, 3}, {1, 1, 1}, {2, 1, 1}, {2, 1, 1}}};
  for (const BitsProblem& problem : problems) {
    for (const OpKind kind : kPasses) {
      for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
        for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
          const bool last = limit == 0;
          BitsCase item(problem, kind, type, {last, last}, true);
          Result<Plan> plan = item.MakePlan(
              {.threads = CONVGRAD_TEST_THREADS, .workspace_limit = limit, .beta = 1.0f});
          ASSERT_TRUE(plan.ok());
          const std::vector<const void*> inputs = item.InputData();
          const std::vector<void*> outputs = item.OutputData();
          std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
          const int64_t before = allocations;
          const Status status = plan->Run(inputs, outputs, workspace.data());
          EXPECT_EQ(allocations, before) << problem.name << " " << NameOf(kind);
          ASSERT_TRUE(status.ok());
        }
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
