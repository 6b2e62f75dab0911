// Depthwise lines whose vectors are along pixels (cpu/direct_pixels.h): the very bits of the
// contraction for lines of any length, taps, padding and dilation, and not a byte beyond a tensor.
#include "cpu/direct_pixels.h"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <random>

#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;

struct Tally {
  int along_pixels = 0, other = 0;
  int pairs = 0;  // of them, phases by twos
};

// Channels first. Both directions, guarded at both ends, of a random beta, bias and number of
// threads, and of this type or a random one.
void ExpectBitsOfContract(const BitsProblem& problem, Tally& tally,
                          std::optional<DataType> of = std::nullopt) {
  static std::mt19937_64 random(11);
  const auto one_of = [&]<class T>(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  };
  for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData}) {
    const DataType type =
        of.value_or(one_of({DataType::kF32, DataType::kF32, DataType::kBF16, DataType::kF16}));
    BitsCase item(problem, kind, type, {false, false}, random() % 2 == 0);
    Options options{.threads = one_of({1, 2, 3}),
                    .workspace_limit = one_of({int64_t{0}, Options::kNoLimit}),
                    .beta = one_of({0.0f, 0.5f, 0.0f, -2.0f}),
                    .kernel = "direct"};
    SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
    Result<Plan> plan = item.MakePlan(options);
    // 343 taps, of 16 bits and so not along pixels, need workspace on vectors of 16 lanes.
    if (!plan.ok() && problem.taps == Dims{7, 7, 7}) {
      options.workspace_limit = Options::kNoLimit;
      plan = item.MakePlan(options);
    }
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const bool along_pixels =
        plan->Explain().find(" channels in a task; vectors along pixels") != std::string::npos;
    ASSERT_EQ(plan->Explain().find(" groups in a task; vectors along pixels"), std::string::npos);
    ++(along_pixels ? tally.along_pixels : tally.other);
    tally.pairs += plan->Explain().find("two phases at once") != std::string::npos;
    if (along_pixels) {  // lines of 16 bits are widened before, those of f32 are not copied
      const bool widened =
          plan->Explain().find("widened to f32 when a line is copied") != std::string::npos;
      const bool in_place = plan->Explain().find("no line is copied") != std::string::npos;
      ASSERT_EQ(widened, type != DataType::kF32) << plan->Explain();
      ASSERT_EQ(in_place, type == DataType::kF32) << plan->Explain();
    }
    SCOPED_TRACE(plan->Explain());
    ExpectGuardedBitsOfContract(item, options);
  }
}

// Lines of one vector and of many, with and without a rest; edges of one vector and of several.
TEST(DirectPixels, HasTheBitsOfContractForLinesOfAnyLength) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    Tally tally;
    for (int64_t width = 1; width <= 45; width += kSanitized ? 4 : 1) {
      for (int64_t taps = 1; taps <= 8; ++taps) {
        for (const int64_t dilation : {1, 2, 5}) {
          const int64_t reach = (taps - 1) * dilation;
          for (const int64_t pad : {reach / 2, reach, int64_t{0}}) {
            if (reach > width - 1 + 2 * pad || (kSanitized && (width + taps + pad) % 3 != 0)) {
              continue;
            }
            const int64_t rows = std::array<int64_t, 3>{1, taps, 2}[size_t((width + taps) % 3)];
            const int64_t height = 2 + (width + taps) % 4;
            ExpectBitsOfContract({"",
                                  2,
                                  2,
                                  2,
                                  2,
                                  {height, width},
                                  {rows, taps},
                                  {1, 1},
                                  {1, dilation},
                                  {rows / 2, pad}},
                                 tally);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
    EXPECT_GT(tally.along_pixels, kSanitized ? 50 : 500);
    EXPECT_GT(tally.other, 0);  // eight taps, or fewer pixels than lanes
  }
}

// Kernels that are unrolled and others, as many lines as are summed at once and others, several
// depths, steps between lines, planes of padding, more lines than the table has rows.
void ExpectLinesOfAnyNumber() {
  Tally tally;
  for (const int64_t k : {3, 5, 7}) {
    for (const int64_t height : {1, 2, 3, 6, 7, 8, 13}) {
      for (const int64_t width : {16, 28, 37, 121}) {
        ExpectBitsOfContract(
            {"", 1, 3, 3, 3, {height, width}, {k, k}, {1, 1}, {1, 1}, {k / 2, k / 2}}, tally);
        ExpectBitsOfContract(
            {"", 1, 3, 3, 3, {height, width}, {k, k}, {1, 1}, {1, 1}, {k - 1, k - 1}}, tally);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  const BitsProblem others[] = {
      {"", 2, 3, 3, 3, {5, 6, 21}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"", 1, 2, 2, 2, {4, 7, 33}, {3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {2, 1, 1}},
      {"", 1, 2, 2, 2, {5, 5, 20}, {2, 3, 4}, {1, 2, 1}, {2, 1, 1}, {1, 1, 2}},
      {"", 1, 2, 2, 2, {6, 6, 19}, {5, 5, 5}, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}},
      {"", 1, 2, 2, 2, {9, 9, 17}, {7, 7, 7}, {1, 1, 1}, {1, 1, 1}, {3, 3, 3}},
      {"", 1, 2, 2, 2, {17, 18}, {3, 3}, {2, 1}, {1, 1}, {1, 1}},
      {"", 1, 2, 2, 2, {17, 18}, {3, 3}, {3, 1}, {2, 1}, {2, 1}},
      {"", 1, 2, 2, 2, {17, 18}, {3, 3}, {2, 1}, {2, 1}, {2, 1}},
      {"", 1, 2, 2, 2, {17, 18}, {3, 3}, {1, 1}, {4, 1}, {4, 1}},
      {"", 1, 2, 2, 2, {17, 18}, {1, 3}, {3, 1}, {1, 1}, {0, 1}},
      {"", 1, 2, 2, 2, {17, 18}, {2, 3}, {3, 1}, {1, 1}, {0, 1}},  // a phase without a tap
      {"", 1, 2, 2, 2, {2100, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 1, 2, 2, 2, {1, 700, 18}, {3, 2, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"", 1, 2, 2, 2, {3, 30000}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"", 1, 3, 3, 3, {30001}, {4}, {1}, {1}, {3}},
      {"", 7, 1, 1, 1, {9, 23}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // images as groups
  };
  for (const BitsProblem& problem : others) {
    ExpectBitsOfContract(problem, tally);
    if (::testing::Test::HasFatalFailure()) return;
  }
  // Every other depth of x has no tap: there is a line of zeros and no other, however long lines
  // are of which few can be widened at a time.
  const BitsProblem without_taps[] = {
      {"", 1, 2, 2, 2, {4, 20, 1000}, {1, 7, 3}, {2, 1, 1}, {1, 1, 1}, {0, 3, 1}},
      {"", 1, 2, 2, 2, {4, 20, 1400}, {1, 3, 3}, {2, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {"", 1, 2, 2, 2, {4, 40, 512}, {1, 7, 3}, {2, 1, 1}, {1, 8, 1}, {0, 8, 1}},
      {"", 1, 2, 2, 2, {4, 40, 700}, {1, 3, 3}, {2, 4, 1}, {1, 1, 1}, {0, 1, 1}},
  };
  for (const BitsProblem& problem : without_taps) {
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      ExpectBitsOfContract(problem, tally, type);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  // Others are of 16 bits and more than 27 taps, or too long.
  EXPECT_GT(tally.along_pixels, 2 * tally.other);
  EXPECT_GT(tally.other, 0);
}

TEST(DirectPixels, HasTheBitsOfContractForLinesOfAnyNumber) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectLinesOfAnyNumber();
    if (HasFatalFailure()) return;
  }
}

// Of a stride of two: an even and an odd number of pixels, edges at both ends, one phase of more
// taps than the other, lines of taps that are unrolled and others, depths, padding beyond all taps.
void ExpectLinesOfStrideTwo() {
  Tally tally;
  for (int64_t width = 7; width <= 80; width += kSanitized ? 6 : 1) {
    for (int64_t taps = 1; taps <= 7; ++taps) {
      for (const int64_t pad : {taps / 2, taps - 1, int64_t{0}, taps + 2}) {
        const int64_t rows = std::array<int64_t, 4>{1, taps, 2, 3}[size_t((width + taps) % 4)];
        const int64_t height = rows + (width + pad) % 5, stride = 1 + (width + taps) / 2 % 3;
        if (taps > width + 2 * pad || (kSanitized && (width + taps + pad) % 2 != 0)) continue;
        ExpectBitsOfContract(
            {"", 2, 3, 3, 3, {height, width}, {rows, taps}, {stride, 2}, {1, 1}, {rows / 2, pad}},
            tally);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  const BitsProblem others[] = {
      {"", 1, 2, 2, 2, {9, 12, 40}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}},
      {"", 1, 2, 2, 2, {6, 9, 41}, {2, 5, 5}, {1, 2, 2}, {1, 1, 1}, {1, 2, 2}},
      {"", 2, 3, 3, 3, {30, 45}, {3, 3}, {2, 2}, {2, 1}, {2, 1}},
      {"", 2, 3, 3, 3, {30, 45}, {3, 3}, {2, 2}, {1, 3}, {1, 3}},  // taps that are not neighbours
      {"", 2, 3, 3, 3, {30, 46}, {3, 3}, {2, 2}, {1, 2}, {1, 2}},  // a phase without a tap
      {"", 1, 2, 2, 2, {300, 40}, {5, 5}, {2, 2}, {1, 1}, {2, 2}},
      {"", 1, 2, 2, 2, {2100, 35}, {3, 3}, {1, 2}, {1, 1}, {1, 1}},
      {"", 1, 3, 3, 3, {30001}, {4}, {2}, {1}, {3}},
  };
  for (const BitsProblem& problem : others) {
    ExpectBitsOfContract(problem, tally);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(tally.along_pixels, kSanitized ? 30 : 300);
  EXPECT_GT(tally.pairs, kSanitized ? 20 : 200);
  EXPECT_GT(tally.along_pixels - tally.pairs, kSanitized ? 10 : 100);
  EXPECT_GT(tally.other, 0);  // more taps, of 16 bits, or short
}

TEST(DirectPixels, HasTheBitsOfContractForAStrideOfTwo) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectLinesOfStrideTwo();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace convgrad::tests
