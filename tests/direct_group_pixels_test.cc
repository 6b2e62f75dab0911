// Small groups whose vectors are along pixels (cpu/direct_group_pixels-inl.h), where these have 16
// lanes: the very bits of the contraction for lines of any length, taps, padding and dilation, of
// weights that are not finite, too, and not a byte beyond a tensor.
#include "cpu/direct_group_pixels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

#include "cpu/engine.h"
#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;

// Plans, of fprop and of dgrad.
struct Tally {
  int along_pixels[2] = {}, other[2] = {}, refused = 0;
};

// Channels first. Both directions, guarded at both ends, of a random beta, bias, number of threads
// and place in memory; every third time a weight is infinite.
void ExpectBitsOfContract(const BitsProblem& problem, Tally& tally,
                          DataType type = DataType::kF32) {
  static std::mt19937_64 random(12);
  for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData}) {
    BitsCase item(problem, kind, type, {false, false}, random() % 2 == 0);
    if (random() % 3 == 0) {
      tools::TensorBuffer& w = item.w().buffer;
      w.Set(static_cast<int64_t>(random() % static_cast<uint64_t>(w.elements())),
            std::numeric_limits<double>::infinity());
    }
    const Options options{.threads = 1 + static_cast<int>(random() % 3),
                          .workspace_limit = random() % 2 == 0 ? 0 : Options::kNoLimit,
                          .beta = random() % 2 == 0 ? 0.0f : -0.5f,
                          .kernel = "direct"};
    SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
    Result<Plan> plan = item.MakePlan(options);
    if (!plan.ok()) {  // lines that need workspace, or have no room in a task
      ++tally.refused;
      continue;
    }
    const bool along_pixels =
        plan->Explain().find("groups in a task; vectors along pixels") != std::string::npos;
    const int dgrad = kind == OpKind::kConvolution ? 0 : 1;
    ++(along_pixels ? tally.along_pixels : tally.other)[dgrad];
    SCOPED_TRACE(plan->Explain());
    ExpectGuardedBitsOfContract(item, options, random() % 2 == 0 ? 0 : 1);
  }
}

// Channels and o of a group.
struct Group {
  int64_t channels, o;
};
constexpr Group kGroups[] = {{4, 4}, {8, 8},   {1, 4},   {3, 3}, {4, 8}, {16, 7},
                             {2, 6}, {16, 16}, {12, 12}, {2, 2}, {6, 1}};

constexpr DataType kTypes[] = {DataType::kF32, DataType::kBF16, DataType::kF16};

void ExpectAll() {
  Tally tally;
  int64_t i = 0;
  for (const Group& g : kGroups) {
    for (int64_t width = 3; width <= 75; width += kSanitized ? 9 : 3) {
      for (int64_t taps = 1; taps <= 5; taps += 2, ++i) {
        const int64_t rows = 1 + (width + taps) % 3, dilation = 1 + i % 3, stride = 1 + i / 3 % 2;
        const int64_t pad = i % 4 == 0 ? taps * dilation : (taps - 1) * dilation / 2;
        if ((taps - 1) * dilation >= width + 2 * pad) continue;
        ExpectBitsOfContract({"",
                              1 + i % 2,
                              3,
                              3 * g.channels,
                              3 * g.o,
                              {rows + width % 5, width},
                              {rows, taps},
                              {stride, 1},
                              {1 + i % 2, dilation},
                              {rows, pad}},
                             tally, kTypes[i / 12 % 3]);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  const bool wide = PickedVectorUnit(DataType::kF32).lanes == GroupPixels::kLanes;
  for (int dgrad = 0; dgrad < 2; ++dgrad) {
    EXPECT_EQ(tally.along_pixels[dgrad] > (kSanitized ? 80 : 250), wide) << dgrad;
    EXPECT_GT(tally.other[dgrad], 0) << dgrad;
  }
  EXPECT_LT(tally.refused, tally.other[0]);
}

void ExpectCorners() {
  struct Corner {
    BitsProblem problem;
    bool along_pixels;
    DataType type = DataType::kF32;
  };
  constexpr DataType kBF16 = DataType::kBF16, kF16 = DataType::kF16;
  const Corner corners[] = {
      {{"", 2, 2, 8, 8, {5, 6, 21}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, true},
      {{"", 1, 2, 8, 16, {4, 7, 33}, {3, 3, 3}, {2, 2, 1}, {1, 1, 1}, {2, 1, 1}}, true},
      // Phases without taps.
      {{"", 1, 2, 16, 16, {6, 5, 29}, {1, 3, 3}, {2, 4, 1}, {1, 1, 1}, {0, 1, 1}}, true},
      {{"", 2, 1, 4, 4, {19, 30}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, true},  // one group
      // More lines than the table has, and phases that write between each other, in bands.
      {{"", 1, 2, 8, 8, {700, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, true},
      {{"", 2, 8, 32, 32, {3000, 12}, {3, 3}, {3, 1}, {1, 1}, {1, 1}}, true},
      // As many vectors, taps of them and weights as there is room for, and one more.
      {{"", 1, 2, 8, 8, {4096}, {3}, {1}, {1}, {1}}, true},
      {{"", 1, 2, 8, 8, {4097}, {3}, {1}, {1}, {1}}, false},
      {{"", 1, 2, 8, 8, {3999}, {8}, {1}, {1}, {4}}, true},
      {{"", 1, 2, 8, 8, {4000}, {9}, {1}, {1}, {4}}, false},
      {{"", 1, 2, 32, 32, {5, 31}, {2, 8}, {1, 1}, {1, 1}, {0, 4}}, true},
      {{"", 1, 2, 32, 32, {5, 31}, {3, 7}, {1, 1}, {1, 1}, {1, 3}}, false},
      {{"", 1, 2, 8, 8, {20, 31}, {12, 9}, {1, 1}, {1, 1}, {6, 4}}, true},
      {{"", 1, 2, 16, 16, {20, 31}, {9, 9}, {1, 1}, {1, 1}, {4, 4}}, false},  // several chunks
      // One group, of as many channels as there is room for, and one more; lines of as many
      // channels as L2 holds of those that are so far apart, and of more; of 16 bits.
      {{"", 1, 1, 455, 4, {5, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, true},
      {{"", 1, 1, 456, 4, {5, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, false},
      {{"", 1, 1, 64, 2, {64, 64}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, true},
      {{"", 1, 1, 64, 2, {128, 128}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, false},
      {{"", 1, 1, 64, 2, {4, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, true, kF16},
      {{"", 1, 1, 64, 2, {9, 63}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, false, kF16},
      // Of 16 bits: planes and phases as above, lines that are widened in several parts, and as
      // many elements as there is room for, and one line more.
      {{"", 2, 2, 8, 8, {5, 6, 21}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, true, kBF16},
      {{"", 1, 2, 8, 16, {4, 7, 33}, {3, 3, 3}, {2, 2, 1}, {1, 1, 1}, {2, 1, 1}}, true, kF16},
      {{"", 1, 2, 16, 16, {6, 5, 29}, {1, 3, 3}, {2, 4, 1}, {1, 1, 1}, {0, 1, 1}}, true, kBF16},
      {{"", 2, 8, 32, 32, {3000, 12}, {3, 3}, {3, 1}, {1, 1}, {1, 1}}, true, kF16},
      {{"", 2, 2, 8, 8, {3, 99, 29}, {3, 3, 3}, {1, 2, 1}, {1, 3, 1}, {1, 3, 1}}, true, kBF16},
      {{"", 1, 2, 8, 8, {5, 682}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, true, kF16},
      {{"", 1, 2, 8, 8, {5, 683}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, false, kF16},
      {{"", 1, 2, 8, 8, {9, 227}, {3, 3}, {1, 1}, {4, 1}, {4, 1}}, true, kBF16},
      {{"", 1, 2, 8, 8, {9, 228}, {3, 3}, {1, 1}, {4, 1}, {4, 1}}, false, kBF16},
      {{"", 1, 2, 8, 8, {9, 227}, {3, 3}, {1, 1}, {9, 1}, {9, 1}}, true, kBF16},
  };
  const bool wide = PickedVectorUnit(DataType::kF32).lanes == GroupPixels::kLanes;
  for (const auto& [problem, along_pixels, type] : corners) {
    Tally tally;
    ExpectBitsOfContract(problem, tally, type);
    if (::testing::Test::HasFatalFailure()) return;
    const bool narrow = problem.groups == 1 && problem.channels > 16;  // few o in one direction
    for (int dgrad = 0; dgrad < (narrow ? 1 : 2); ++dgrad) {
      EXPECT_EQ(tally.along_pixels[dgrad], along_pixels && wide)
          << problem.in[0] << " " << problem.taps[0];
    }
  }
}

// One group of more channels than a small one has, and of few o: a sum has chunks. In both
// directions, of which one has few o.
void ExpectManyChannels() {
  Tally tally;
  int64_t i = 0;
  for (const int64_t channels : {17, 48, 49, 64, 100, 131}) {
    for (const int64_t o : {1, 2, 3, 4}) {
      for (const int64_t width : {9, 14, 31, 64, 70}) {
        for (int64_t taps = 1; taps <= 5; taps += 2, ++i) {
          if (kSanitized && i % 5 > 0) continue;
          const int64_t rows = 1 + (width + taps) % 3, dilation = 1 + i % 2;
          ExpectBitsOfContract({"",
                                1 + i % 3,
                                1,
                                i % 2 == 0 ? channels : o,
                                i % 2 == 0 ? o : channels,
                                {rows + width % 5, width},
                                {rows, taps},
                                {1, 1},
                                {1, dilation},
                                {rows - 1, taps * dilation / 2}},
                               tally);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
  const bool wide = PickedVectorUnit(DataType::kF32).lanes == GroupPixels::kLanes;
  for (const int along_pixels : tally.along_pixels) {
    EXPECT_EQ(along_pixels > (kSanitized ? 15 : 100), wide) << along_pixels;
    EXPECT_TRUE(wide || along_pixels == 0);
  }
  EXPECT_EQ(tally.other[0] + tally.other[1], 0);
}

// No channels or no o are few, too: nothing is divided by them, and the contraction writes what
// there is.
TEST(DirectGroupPixels, LeavesEmptySidesToTheContraction) {
  for (const auto& [channels, o] : {Group{64, 0}, Group{0, 3}, Group{3, 0}, Group{0, 64}}) {
    const BitsProblem problem{"", 1, 1, channels, o, {8, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
    for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                              OpKind::kConvolutionBackwardWeights}) {
      BitsCase item(problem, kind, DataType::kF32, {false, false}, false);
      const Result<Plan> plan = item.MakePlan({.threads = 2});
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(plan->kernel(), "contract") << channels << " " << o;
      // Its time is asked for although it is refused.
      EXPECT_NE(plan->Explain().find("direct refuses"), std::string::npos) << plan->Explain();
    }
  }
}

TEST(DirectGroupPixels, HasTheBitsOfContractOfManyChannels) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectManyChannels();
    if (HasFatalFailure()) return;
  }
}

TEST(DirectGroupPixels, HasTheBitsOfContract) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectAll();
    if (HasFatalFailure()) return;
    ExpectCorners();
    if (HasFatalFailure()) return;
  }
}

// Layers of one group, of which a contraction takes 1.2 to 4.5 times as long (Sapphire Rapids).
TEST(DirectGroupPixels, NoContractionIsTakenForOneGroupOfFewChannels) {
  if (PickedVectorUnit(DataType::kF32).lanes != GroupPixels::kLanes) GTEST_SKIP();
  const BitsProblem problems[] = {
      {"", 8, 1, 16, 3, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 8, 1, 3, 8, {112, 112}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 8, 1, 8, 8, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 8, 1, 16, 16, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 8, 1, 16, 16, {28, 28}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
      {"", 8, 1, 6, 16, {28, 28}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},
  };
  for (const BitsProblem& problem : problems) {
    for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData}) {
      BitsCase item(problem, kind, DataType::kF32, {false, false}, false);
      const Result<Plan> plan = item.MakePlan({.threads = 1});
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_NE(plan->kernel(), "contract") << plan->Explain();  // the flat kernel is as fast
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
