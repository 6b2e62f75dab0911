// Promise 4: the workspace is what the plan says and what the caller allows. Nothing is written
// beyond it, whatever its alignment, and its size never changes a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/guarded_run.h"

namespace convgrad::tests {
namespace {

// Sizes at which blocks of every kind need workspace: sums of several chunks, sides of several
// blocks; a few million products each.
BitsProblem RandomProblem(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  BitsProblem p;
  p.batch = between(1, 3);
  p.groups = between(0, 3) == 0 ? between(2, 4) : 1;
  const size_t rank = static_cast<size_t>(between(1, 2));
  for (size_t a = 0; a < rank; ++a) {
    p.taps.push_back(between(1, 4));
    p.stride.push_back(between(1, 2));
    p.dilation.push_back(between(1, 2));
    p.pad.push_back(between(0, 2));
    p.in.push_back(between(9, rank == 1 ? 600 : 24));
  }
  p.channels = p.groups * between(1, between(0, 1) == 0 ? 40 : 250);
  p.o = p.groups * between(1, between(0, 1) == 0 ? 40 : 250);
  p.name = "seed " + std::to_string(seed);
  return p;
}

constexpr OpKind kPasses[] = {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                              OpKind::kConvolutionBackwardWeights};
constexpr int64_t kLimits[] = {0, 1, 1000, 64 << 10, 1 << 20, Options::kNoLimit};
constexpr int kSeeds = CONVGRAD_TEST_SANITIZED ? 40 : 100;

std::string Text(const BitsProblem& p, OpKind kind, bool last, const Options& options) {
  return p.name + " " + std::string(NameOf(kind)) + (last ? " NXC, " : " NCX, ") +
         std::to_string(options.threads) + " threads, limit " +
         std::to_string(options.workspace_limit);
}

template <class Visit>
void ForEachCase(const Visit& visit) {
  for (uint64_t seed = 0; seed < uint64_t{kSeeds}; ++seed) {
    const BitsProblem problem = RandomProblem(seed);
    for (const OpKind kind : kPasses) {
      const bool last = seed % 2 == 0;
      BitsCase item(problem, kind, DataType::kF32, {last, seed % 3 == 0}, true);
      visit(problem, kind, last, item);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Workspace, IsNeverMoreThanTheLimit) {
  int64_t needing = 0;
  ForEachCase([&](const BitsProblem& problem, OpKind kind, bool last, BitsCase& item) {
    for (const int threads : {1, 2, 5, 16, 64}) {
      for (const int64_t limit : kLimits) {
        const Options options{.threads = threads, .workspace_limit = limit};
        Result<Plan> plan = item.MakePlan(options);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        ASSERT_GE(plan->workspace_bytes(), 0);
        if (limit != Options::kNoLimit) {
          ASSERT_LE(plan->workspace_bytes(), limit) << Text(problem, kind, last, options);
        }
        needing += plan->workspace_bytes() > 0;
      }
    }
  });
  EXPECT_GT(needing, 2 * kSeeds);  // else nothing is shown
}

// Guard pages right before and right after, three numbers of threads and six limits in turn, and
// the oracle's bits, with every beta.
TEST(Workspace, IsNotOverrun) {
  int turn = 0, needing = 0;
  ForEachCase([&](const BitsProblem& problem, OpKind kind, bool last, BitsCase& item) {
    FillWithIntegers(item);
    const float beta = std::array{0.0f, 1.0f, -2.0f, 0.5f}[static_cast<size_t>(turn / 4 % 4)];
    const std::vector<char> expected = OracleBytes(item, beta);
    for (int i = 0; i < 4; ++i, ++turn) {
      const Options options{.threads = std::array{1, 2, 5}[static_cast<size_t>(turn % 3)],
                            .workspace_limit = kLimits[turn / 3 % 6],
                            .beta = beta};
      needing += item.MakePlan(options)->workspace_bytes() > 0;
      ASSERT_TRUE(RunGuarded(item, options, i % 2 == 0) == expected)
          << Text(problem, kind, last, options);
    }
  });
  EXPECT_GT(needing, kSeeds / 4);
}

TEST(Workspace, MayHaveAnyAlignment) {
  constexpr char kCanary = 0x5a;
  const BitsProblem problem{"", 2, 1, 70, 90, {15, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const OpKind kind : kPasses) {
    BitsCase item(problem, kind, DataType::kF32, {true, true}, true);
    const uint64_t expected = item.Run({.threads = 1});
    Result<Plan> plan = item.MakePlan({.threads = 3});
    ASSERT_TRUE(plan.ok());
    const size_t bytes = static_cast<size_t>(plan->workspace_bytes());
    ASSERT_GT(bytes, 0u);
    for (const size_t shift : {0, 1, 2, 3, 4, 7, 31, 60, 63}) {
      std::vector<char> memory(bytes + 256, kCanary);
      const auto aligned = (reinterpret_cast<uintptr_t>(memory.data()) + 127) / 64 * 64;
      char* workspace = reinterpret_cast<char*>(aligned) + shift;
      ASSERT_TRUE(plan->Run(item.InputData(), item.OutputData(), workspace).ok());
      EXPECT_EQ(item.OutputDigest(), expected) << NameOf(kind) << " shift " << shift;
      const size_t before = static_cast<size_t>(workspace - memory.data());
      const auto is_canary = [](char c) { return c == kCanary; };
      EXPECT_TRUE(
          std::all_of(memory.begin(), memory.begin() + static_cast<int64_t>(before), is_canary));
      EXPECT_TRUE(std::all_of(memory.begin() + static_cast<int64_t>(before + bytes), memory.end(),
                              is_canary));
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
