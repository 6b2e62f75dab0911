// Small planes of depthwise layers, channels first, which are turned as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <random>
#include <string>

#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;

class RandomPlanes {
 public:
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

  // One to three axes, of which the result has at least one position.
  BitsProblem Make() {
    // Whole vectors of every instruction set, or of NEON and AVX2 alone; several blocks.
    const int64_t groups = OneOf<int64_t>({4, 8, 12, 16, 20, 48, 80, 176});
    BitsProblem p{"", Between(0, 5), groups, groups, groups, {}, {}, {}, {}, {}};
    const int64_t axes = Between(1, 3),
                  longest = std::array<int64_t, 3>{32, 18, 9}[size_t(axes - 1)];
    for (int64_t a = 0; a < axes; ++a) {
      const int64_t in = Between(1, longest), taps = Between(1, axes == 3 ? 3 : 5);
      const int64_t dilation = taps > 1 ? OneOf<int64_t>({1, 1, 2, 3}) : 1;
      const int64_t reach = (taps - 1) * dilation;
      int64_t pad = OneOf<int64_t>({0, reach / 2, reach});
      while (in + 2 * pad <= reach) ++pad;
      p.in.push_back(in);
      p.taps.push_back(taps);
      p.stride.push_back(OneOf<int64_t>({1, 1, 2, 3, 4}));
      p.dilation.push_back(dilation);
      p.pad.push_back(pad);
    }
    return p;
  }

 private:
  std::mt19937_64 random_{5};
};

// Of every pass, type, cap and number of threads, with and without bias and beta; nothing is read
// or written beyond the tensors and the workspace.
TEST(DirectTurned, HasTheBitsOfContract) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    RandomPlanes random;
    int turned = 0, phases = 0, in_workspace = 0;
    for (int k = 0; k < (kSanitized ? 300 : 3000); ++k) {
      const BitsProblem problem = random.Make();
      const OpKind kind =
          random.OneOf({OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                        OpKind::kConvolutionBackwardWeights, OpKind::kConvTranspose,
                        OpKind::kConvTransposeBackwardData, OpKind::kConvTransposeBackwardWeights});
      const DataType type = random.OneOf({DataType::kF32, DataType::kBF16, DataType::kF16});
      BitsCase item(problem, kind, type, {false, false}, random.Between(0, 1) == 0);
      const Options options{
          .threads = random.OneOf({1, 2, 5}),
          .workspace_limit = random.OneOf({Options::kNoLimit, int64_t{0}, int64_t{50'000}}),
          .beta = random.OneOf({0.0f, 0.5f, 0.0f, -2.0f}),
          .kernel = "direct"};
      SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
      const Result<Plan> plan = item.MakePlan(options);
      if (!plan.ok()) continue;  // a cap that this kernel cannot keep to
      const std::string text = plan->Explain();
      if (text.find("planes are turned") == std::string::npos) continue;
      ++turned;
      in_workspace += plan->workspace_bytes() > 0;
      const bool dgrad = kind == OpKind::kConvolutionBackwardData || kind == OpKind::kConvTranspose;
      phases += dgrad && *std::max_element(problem.stride.begin(), problem.stride.end()) > 1;
      SCOPED_TRACE(text);
      ExpectGuardedBitsOfContract(item, options);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(turned, kSanitized ? 25 : 250);
    EXPECT_GT(phases, kSanitized ? 5 : 50);
    EXPECT_GT(in_workspace, kSanitized ? 0 : 3);
  }
}

// Few blocks of many images: sums of chunks, side by side.
TEST(DirectTurned, HasTheBitsOfContractOfChunksSideBySide) {
  const BitsProblem problem{"", 40, 32, 32, 32, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      BitsCase item(problem, OpKind::kConvolutionBackwardWeights, type, {false, false}, true);
      const Options options{.threads = 5, .kernel = "direct"};
      const Result<Plan> plan = item.MakePlan(options);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_NE(plan->Explain().find("planes are turned"), std::string::npos) << plan->Explain();
      EXPECT_NE(plan->Explain().find("side by side"), std::string::npos) << plan->Explain();
      ExpectGuardedBitsOfContract(item, options);
    }
  }
}

std::string ExplainedF32(const BitsProblem& problem, OpKind kind, int threads) {
  BitsCase item(problem, kind, DataType::kF32, {false, false}, false);
  const Result<Plan> plan = item.MakePlan({.threads = threads, .kernel = "direct"});
  return plan.ok() ? plan->Explain() : plan.status().message();
}

// Long lines, few channels and planes of which little is read are faster line by line.
TEST(DirectTurned, IsForSmallPlanesOfManyChannels) {
  const auto turned = [](const BitsProblem& problem, OpKind kind) {
    return ExplainedF32(problem, kind, 1).find("planes are turned") != std::string::npos;
  };
  const BitsProblem planes[] = {
      {"", 2, 64, 64, 64, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 2, 64, 64, 64, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {3, 3}},
  };
  const BitsProblem lines[] = {
      {"", 2, 64, 64, 64, {150}, {4}, {1}, {1}, {2}},
      {"", 2, 64, 64, 64, {12, 12}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
      {"", 2, 4, 4, 4, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 2, 64, 64, 64, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 2, 64, 64, 64, {30}, {2}, {1}, {29}, {0}},
  };
  EXPECT_TRUE(turned({"", 2, 64, 64, 64, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
                     OpKind::kConvolutionBackwardData));
  for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                            OpKind::kConvolutionBackwardWeights}) {
    for (const BitsProblem& problem : planes) EXPECT_TRUE(turned(problem, kind));
    for (const BitsProblem& problem : lines) {
      if (kind == OpKind::kConvolutionBackwardData && problem.dilation[0] > 1) continue;
      EXPECT_FALSE(turned(problem, kind)) << ExplainedF32(problem, kind, 1);
    }
  }
}

// One image: blocks are tasks, the same number of them in each.
TEST(DirectTurned, HasTasksForAllThreads) {
  const BitsProblem problem{"", 1, 1024, 1024, 1024, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData}) {
    const std::string text = ExplainedF32(problem, kind, 4);
    EXPECT_TRUE(text.find("4 of 64 in a task") != std::string::npos ||
                text.find("2 of 32 in a task") != std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace convgrad::tests
