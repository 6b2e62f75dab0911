// Depthwise weight gradients whose vectors are along taps (cpu/direct_taps.h): the very bits of the
// contraction for lines of any length, taps, padding and stride, and not a byte beyond a tensor.
#include "cpu/direct_taps.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <random>

#include "cpu/engine.h"
#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;

struct Tally {
  int along_taps = 0, other = 0;
};

// Infinities, of which two at the ends: times padding they are NaN.
void PutInfinities(tools::TensorBuffer& tensor, std::mt19937_64& random) {
  const int64_t elements = tensor.elements();
  for (const int64_t at : {int64_t{0}, elements - 1, int64_t(random() % uint64_t(elements))}) {
    if (random() % 2 == 0) StoreAt(tensor.data(), at, std::numeric_limits<float>::infinity());
  }
}

// Channels first, guarded at both ends, of a random beta, bias and number of threads, some with
// infinities.
void ExpectBitsOfContract(const BitsProblem& problem, Tally& tally) {
  static std::mt19937_64 random(17);
  const auto one_of = [&]<class T>(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  };
  const OpKind kind =
      one_of({OpKind::kConvolutionBackwardWeights, OpKind::kConvolutionBackwardWeights,
              OpKind::kConvTransposeBackwardWeights});
  BitsCase item(problem, kind, DataType::kF32, {false, false}, random() % 2 == 0);
  if (random() % 3 == 0) PutInfinities(item.x().buffer, random);
  if (random() % 3 == 0) PutInfinities(item.y().buffer, random);
  const Options options{.threads = one_of({1, 2, 3}),
                        .workspace_limit = one_of({int64_t{0}, Options::kNoLimit}),
                        .beta = one_of({0.0f, 0.5f, 0.0f, -2.0f}),
                        .kernel = "direct"};
  SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
  const Result<Plan> plan = item.MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const bool along_taps = plan->Explain().find("vectors along taps") != std::string::npos;
  ++(along_taps ? tally.along_taps : tally.other);
  SCOPED_TRACE(plan->Explain());
  ExpectGuardedBitsOfContract(item, options);
}

// On every instruction set, those of which vectors have as many lanes as strips have taps.
template <class Check>
void OnEachInstructionSet(const Check& check) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    Tally tally;
    check(tally);
    if (::testing::Test::HasFatalFailure()) return;
    if (PickedVectorUnit(DataType::kF32).lanes == TapStrips::kTaps) {
      EXPECT_GT(tally.along_taps, tally.other);
    } else {
      EXPECT_EQ(tally.along_taps, 0);
    }
  }
}

// One line of taps: every rest of a line, edges at both ends, one and several strips; channels that
// are not fours.
TEST(DirectTaps, HasTheBitsOfContractForLinesOfAnyLength) {
  OnEachInstructionSet([](Tally& tally) {
    for (int64_t width = 48; width <= 71; width += kSanitized ? 5 : 1) {
      for (int64_t taps = 2; taps <= 8; ++taps) {
        for (const int64_t pad : {int64_t{0}, taps / 2, taps - 1, taps + 3}) {
          for (const int64_t stride : {1, 2, 3, 4}) {
            if (kSanitized && (width + taps + pad + stride) % 4 != 0) continue;
            const int64_t extent = width * stride - (stride - 1) + taps - 1 - 2 * pad;
            const int64_t channels = 1 + (width + taps + stride) % 6;
            ExpectBitsOfContract(
                {"", 2, channels, channels, channels, {extent}, {taps}, {stride}, {1}, {pad}},
                tally);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

// Several lines of taps, of strides; lines of padding above and below; chunks that begin and end in
// the middle of a line, and near its end.
TEST(DirectTaps, HasTheBitsOfContractForLinesOfAnyNumber) {
  OnEachInstructionSet([](Tally& tally) {
    for (const int64_t width : {16, 17, 19, 30, 61, 109, 217}) {
      for (const int64_t taps : {2, 3, 4}) {
        for (const int64_t stride : {2, 3}) {
          for (const int64_t height : {1, 3, 8, 27}) {
            const int64_t rows = taps, pad = (width + height) % taps;
            const int64_t in = (height - 1) * stride + rows - 2 * pad;
            if (in < 1) continue;
            const int64_t extent = (width - 1) * stride + taps - 2 * pad;
            ExpectBitsOfContract(
                {"", 1, 3, 3, 3, {in, extent}, {rows, taps}, {stride, stride}, {1, 1}, {pad, pad}},
                tally);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
    const BitsProblem others[] = {
        {"", 2, 3, 3, 3, {7, 9, 41}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}},
        {"", 1, 2, 2, 2, {6, 17, 50}, {2, 3, 4}, {1, 2, 3}, {2, 3, 1}, {1, 2, 1}},
        {"", 1, 2, 2, 2, {40, 60}, {11, 3}, {1, 2}, {2, 1}, {5, 1}},
        {"", 3, 2, 2, 2, {1, 90}, {1, 4}, {1, 1}, {1, 1}, {0, 3}},
        {"", 1, 5, 5, 5, {9000}, {4}, {1}, {1}, {3}},
        {"", 1, 4, 4, 4, {4099}, {7}, {2}, {1}, {3}},
        {"", 1, 2, 2, 2, {3, 5000}, {3, 3}, {1, 2}, {1, 1}, {1, 1}},
        {"", 1, 1, 1, 1, {70}, {4}, {1}, {1}, {2}},
    };
    for (const BitsProblem& problem : others) {
      ExpectBitsOfContract(problem, tally);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// Fewer channels than a vector has lanes: several lines of taps of any number, also of stride one.
TEST(DirectTaps, HasTheBitsOfContractForFewChannels) {
  OnEachInstructionSet([](Tally& tally) {
    for (const int64_t width : {16, 18, 23, 57}) {
      for (const int64_t taps : {2, 3, 5, 7, 8}) {
        for (const int64_t height : {1, 4, 13}) {
          if (kSanitized && (width + taps + height) % 3 != 0) continue;
          const int64_t channels = 1 + (width + taps + height) % 3;
          const int64_t rows = 1 + (width + taps) % 4, dilation = 1 + height % 2;
          const int64_t pad = taps / 2, above = (rows - 1) * dilation / 2;
          const int64_t in = height + (rows - 1) * dilation - 2 * above;
          ExpectBitsOfContract({"",
                                2,
                                channels,
                                channels,
                                channels,
                                {in, width + taps - 1 - 2 * pad},
                                {rows, taps},
                                {1, 1},
                                {dilation, 1},
                                {above, pad}},
                               tally);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
    const BitsProblem others[] = {
        {"", 2, 1, 1, 1, {5, 7, 31}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
        {"", 1, 3, 3, 3, {4, 9, 20}, {2, 3, 5}, {2, 1, 1}, {1, 2, 1}, {1, 2, 2}},
        {"", 1, 1, 1, 1, {2100, 19}, {2, 4}, {3, 1}, {1, 1}, {1, 0}},
    };
    for (const BitsProblem& problem : others) {
      ExpectBitsOfContract(problem, tally);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// Few channels of long lines: chunks side by side, or without memory for that, channels.
TEST(DirectTaps, HasTasksForAllThreadsWithoutWorkspace) {
  if (PickedVectorUnit(DataType::kF32).lanes != TapStrips::kTaps) {
    GTEST_SKIP() << "vectors of this CPU have other lanes";
  }
  BitsCase item({"", 1, 16, 16, 16, {65536}, {4}, {1}, {1}, {3}},
                OpKind::kConvolutionBackwardWeights, DataType::kF32, {false, false}, false);
  for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
    const Result<Plan> plan =
        item.MakePlan({.threads = 8, .workspace_limit = limit, .kernel = "direct"});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_NE(plan->Explain().find("vectors along taps"), std::string::npos) << plan->Explain();
    EXPECT_EQ(plan->Explain().find("side by side") != std::string::npos, limit != 0)
        << plan->Explain();
    EXPECT_EQ(plan->Explain().find("1 of 16 channels in a task") != std::string::npos, limit == 0)
        << plan->Explain();
  }
}

}  // namespace
}  // namespace convgrad::tests
