// Weight gradients whose taps share what is packed, and dgrads of two phases that are stored
// together: on every instruction set that runs here, right against guard pages and aligned to
// nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/instruction_set.h"
// After the choice of instruction sets.
#include "cpu/engine.h"
#include "tests/guarded_run.h"

namespace convgrad::tests {
namespace {

void ExpectOracles(const BitsProblem& problem, OpKind kind, DataType type, Layout layout,
                   float beta, bool shares_taps) {
  BitsCase item(problem, kind, type, layout, true);
  FillWithIntegers(item);
  const std::vector<char> expected = OracleBytes(item, beta);
  for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
    const Options options{
        .threads = 1, .workspace_limit = limit, .beta = beta, .kernel = "contract"};
    const std::string text = item.MakePlan(options)->Explain();
    const bool shares = text.find("packed once for all of them") != std::string::npos;
    // Positions of these problems take up to a quarter of 1 MiB, and of L2.
    const bool fits = PickedVectorUnit(type).l2_bytes >= 1 << 20;
    if (fits || limit == 0) {
      EXPECT_EQ(shares, shares_taps && limit == Options::kNoLimit) << text;
    }
    EXPECT_EQ(RunGuarded(item, options, true), expected);
    EXPECT_EQ(RunGuarded(item, options, false), expected);
    EXPECT_EQ(RunGuarded(item, options, false, 1), expected);
  }
}

void ExpectOraclesEverywhere(const BitsProblem& problem, OpKind kind, Layout layout,
                             DataType type = DataType::kF32) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << " " << problem.channels
                                    << " channels " << problem.batch << " images");
    const InstructionSet set(target);
    // NEON reads a in vectors, and terms of bf16 that are multiplied at once are packed by pixels.
    const bool shares_taps = kind == OpKind::kConvolutionBackwardWeights &&
                             std::string("NEON") != hwy::TargetName(target) &&
                             PickedVectorUnit(type).terms_each == 1;
    ExpectOracles(problem, kind, type, layout, 0, shares_taps);
    ExpectOracles(problem, kind, type, layout, 1, shares_taps);
  }
}

// Taps outside on all sides, through a stride along lines and a dilation across; whole blocks of 48
// channels, parts of them, and panels that have two taps.
TEST(PackedPositions, HaveEveryPixelOfEveryTap) {
  for (const int64_t channels : {24, 29, 64, 100}) {
    const BitsProblem layer{"layer", 2, 1, channels, 96, {13, 29}, {3, 3}, {1, 2}, {2, 1}, {2, 1}};
    for (const bool channels_last : {false, true}) {
      for (const bool taps_first : {false, true}) {
        ExpectOraclesEverywhere(layer, OpKind::kConvolutionBackwardWeights,
                                {channels_last, taps_first});
      }
    }
  }
}

// Images of a few pixels: chunks of several images.
TEST(PackedPositions, HaveAllImagesOfAChunk) {
  const BitsProblem tiny{"tiny", 40, 1, 30, 96, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const bool channels_last : {false, true}) {
    ExpectOraclesEverywhere(tiny, OpKind::kConvolutionBackwardWeights, {channels_last, false});
  }
}

// Widened where they are packed.
TEST(PackedPositions, HaveTypesOf16Bits) {
  const BitsProblem image{"image", 1, 1, 50, 96, {29, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    for (const bool channels_last : {false, true}) {
      ExpectOraclesEverywhere(image, OpKind::kConvolutionBackwardWeights, {channels_last, false},
                              type);
    }
  }
}

// Chunks that are part of a line, that end within one, and that have parts of two planes.
TEST(PackedPositions, HaveChunksThatBeginAnywhere) {
  const BitsProblem line{"line", 2, 1, 50, 96, {1000}, {5}, {1}, {3}, {6}};
  const BitsProblem image{"image", 1, 1, 50, 96, {29, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  const BitsProblem planes{"planes",   1,         1,         26,        96,
                           {7, 9, 11}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  for (const BitsProblem& problem : {line, image, planes}) {
    for (const bool channels_last : {false, true}) {
      ExpectOraclesEverywhere(problem, OpKind::kConvolutionBackwardWeights, {channels_last, false});
    }
  }
}

// 264 rows of even and odd positions, in lines of 33: fours of them lie across slices and lines.
TEST(ZippedPhases, AreStoredInSlices) {
  const BitsProblem strided{"strided", 1, 1, 16, 16, {16, 66}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  ExpectOraclesEverywhere(strided, OpKind::kConvolutionBackwardData, {false, false});
}

// Two phases that read the same pixels, which are packed once for the columns of both: two chunks
// and 75 columns of 2x2; 4x4, whose kernels overlap, in groups; more columns than a block has. As a
// gradient and, with a bias, as the forward operation of ConvTranspose.
TEST(ZippedPhases, ShareWhatTheyRead) {
  const BitsProblem apart{"apart", 2, 1, 75, 500, {10, 46}, {2, 2}, {2, 2}, {1, 1}, {0, 0}};
  const BitsProblem groups{"groups", 1, 2, 80, 140, {9, 70}, {3, 4}, {1, 2}, {1, 1}, {1, 0}};
  const BitsProblem wide{"wide", 1, 1, 1100, 40, {2, 12}, {2, 2}, {2, 2}, {1, 1}, {0, 0}};
  for (const OpKind kind : {OpKind::kConvolutionBackwardData, OpKind::kConvTranspose}) {
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const InstructionSet set(target);
        BitsCase item(apart, kind, type, {false, false}, true);
        const auto shares = [&item](const Options& options) {
          return item.MakePlan(options)->Explain().find("for two phases") != std::string::npos;
        };
        EXPECT_TRUE(shares({.threads = 1, .kernel = "contract"})) << hwy::TargetName(target);
        EXPECT_FALSE(shares({.threads = 1, .workspace_limit = 0, .kernel = "contract"}));
      }
      ExpectOraclesEverywhere(apart, kind, {false, false}, type);
    }
    ExpectOraclesEverywhere(groups, kind, {false, true});
    ExpectOraclesEverywhere(wide, kind, {false, false});
  }
}

// What the taps of a line read is one run of memory, of which lines' ends are outside.
TEST(PackedTapRuns, HaveEveryTapOfEveryPixel) {
  const struct {
    BitsProblem layer;
    bool copies;
  } cases[] = {
      {{"", 2, 1, 3, 40, {9, 33}, {7, 7}, {2, 2}, {1, 1}, {3, 3}}, true},
      {{"", 1, 1, 3, 33, {5, 4, 30}, {2, 3, 5}, {1, 2, 3}, {1, 2, 1}, {1, 2, 9}}, true},
      {{"", 2, 1, 1, 35, {301}, {10}, {5}, {1}, {12}}, true},
      // Chunks that end within a line of the kernel.
      {{"", 1, 1, 1, 35, {1000}, {500}, {130}, {1}, {7}}, true},
      {{"", 1, 1, 1, 33, {18, 60}, {17, 26}, {1, 7}, {1, 1}, {1, 9}}, true},
      // Chunks of one channel.
      {{"", 1, 1, 3, 64, {16, 50}, {16, 16}, {16, 16}, {1, 1}, {0, 0}}, false},
      {{"", 1, 1, 3, 64, {2, 60}, {1, 20}, {1, 2}, {1, 1}, {0, 8}}, false},
      {{"", 1, 1, 8, 64, {6, 40}, {3, 4}, {1, 4}, {1, 1}, {1, 2}}, false},
      {{"", 2, 1, 3, 40, {9, 33}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, false},
      {{"", 2, 1, 3, 40, {9, 33}, {3, 3}, {2, 2}, {1, 2}, {1, 1}}, false},
  };
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const InstructionSet set(target);
    for (const auto& [layer, copies] : cases) {
      for (const DataType type : {DataType::kF32, DataType::kF16}) {
        SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << " " << layer.channels << " "
                                        << layer.taps.back() << " taps");
        BitsCase item(layer, OpKind::kConvolution, type, {true, false}, true);
        FillWithIntegers(item);
        const std::vector<char> expected = OracleBytes(item, 0);
        const Options options{.threads = 2, .kernel = "contract"};
        const std::string text = item.MakePlan(options)->Explain();
        EXPECT_EQ(text.find("taps of a line are copied at once") != std::string::npos,
                  copies && PickedVectorUnit(type).a_by_rows)
            << text;
        EXPECT_EQ(RunGuarded(item, options, true), expected);
        EXPECT_EQ(RunGuarded(item, options, false, 1), expected);
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
