// Weight gradients whose x is read where it is, and dgrads of two phases that are stored together:
// on every instruction set that runs here, right against guard pages and aligned to nothing.
#include <gtest/gtest.h>

#include <vector>

#include "tests/instruction_set.h"
// After the choice of instruction sets.
#include "cpu/engine.h"
#include "tests/guarded_run.h"

namespace convgrad::tests {
namespace {

void ExpectOracles(const BitsProblem& problem, OpKind kind, Layout layout, float beta) {
  BitsCase item(problem, kind, DataType::kF32, layout, true);
  FillWithIntegers(item);
  const std::vector<char> expected = OracleBytes(item, beta);
  for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
    const Options options{
        .threads = 2, .workspace_limit = limit, .beta = beta, .kernel = "contract"};
    EXPECT_EQ(RunGuarded(item, options, true), expected);
    EXPECT_EQ(RunGuarded(item, options, false), expected);
    EXPECT_EQ(RunGuarded(item, options, false, 1), expected);
  }
}

void ExpectOraclesEverywhere(const BitsProblem& problem, OpKind kind, Layout layout) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << " " << problem.channels
                                    << " channels " << problem.batch << " images");
    const InstructionSet set(target);
    ExpectOracles(problem, kind, layout, 0);
    ExpectOracles(problem, kind, layout, 1);
  }
}

// Taps outside on all sides, through a stride along lines and a dilation across.
TEST(PixelTable, HasEveryPixelOfEveryTap) {
  for (const int64_t channels : {24, 29, 64, 100}) {
    for (const int64_t batch : {1, 3}) {
      const BitsProblem layer{"layer",  batch,  1,      channels, 8,
                              {11, 17}, {3, 3}, {1, 2}, {2, 1},   {2, 1}};
      for (const bool taps_first : {false, true}) {
        ExpectOraclesEverywhere(layer, OpKind::kConvolutionBackwardWeights, {true, taps_first});
      }
    }
  }
}

// Images of a few pixels: chunks of several images.
TEST(PixelTable, HasAllImagesOfAChunk) {
  const BitsProblem tiny{"tiny", 40, 1, 30, 8, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  ExpectOraclesEverywhere(tiny, OpKind::kConvolutionBackwardWeights, {true, false});
}

// 264 rows of even and odd positions, in lines of 33: fours of them lie across slices and lines.
TEST(ZippedPhases, AreStoredInSlices) {
  const BitsProblem strided{"strided", 1, 1, 16, 16, {16, 66}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  ExpectOraclesEverywhere(strided, OpKind::kConvolutionBackwardData, {false, false});
}

}  // namespace
}  // namespace convgrad::tests
