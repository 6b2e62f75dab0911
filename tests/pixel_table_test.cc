// Weight gradients whose x is read where it is, and dgrads of two phases that are stored together:
// on every instruction set that runs here, right against guard pages and aligned to nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/instruction_set.h"
// After the choice of instruction sets.
#include "cpu/engine.h"
#include "tests/guarded_run.h"

namespace convgrad::tests {
namespace {

// Taps outside on all sides, through a stride along lines and a dilation across.
BitsProblem Layer(int64_t channels, int64_t batch) {
  return {"layer", batch, 1, channels, 8, {11, 17}, {3, 3}, {1, 2}, {2, 1}, {2, 1}};
}

// All tensors one byte beyond where they would be aligned.
std::vector<char> RunUnaligned(BitsCase& item, const Options& options) {
  Result<Plan> plan = item.MakePlan(options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return {};
  std::vector<std::vector<char>> memory;
  memory.reserve(8);
  const auto moved = [&](const void* data, size_t bytes) {
    memory.emplace_back(bytes + 1);
    std::memcpy(memory.back().data() + 1, data, bytes);
    return memory.back().data() + 1;
  };
  std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
  std::vector<const void*> inputs = item.InputData();
  std::vector<void*> outputs = item.OutputData();
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = moved(inputs[i], BytesOf(item.InputDescs()[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = moved(outputs[i], BytesOf(item.OutputDescs()[i]));
  }
  const Status status = plan->Run(inputs, outputs, workspace.data());
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<char> written;
  for (size_t i = inputs.size(); i < memory.size(); ++i) {
    written.insert(written.end(), memory[i].begin() + 1, memory[i].end());
  }
  return written;
}

void ExpectOracles(const BitsProblem& problem, OpKind kind, Layout layout) {
  for (const float beta : {0.0f, 1.0f}) {
    BitsCase item(problem, kind, DataType::kF32, layout, true);
    FillWithIntegers(item);
    const std::vector<char> expected = OracleBytes(item, beta);
    for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
      const Options options{
          .threads = 2, .workspace_limit = limit, .beta = beta, .kernel = "contract"};
      EXPECT_EQ(RunGuarded(item, options, true), expected);
      EXPECT_EQ(RunGuarded(item, options, false), expected);
      EXPECT_EQ(RunUnaligned(item, options), expected);
    }
  }
}

TEST(PixelTable, HasEveryPixelOfEveryTap) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const InstructionSet set(target);
    for (const int64_t channels : {24, 29, 64, 100}) {
      for (const int64_t batch : {1, 3}) {
        for (const bool taps_first : {false, true}) {
          SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << " " << channels
                                          << " channels " << batch << " images " << taps_first);
          ExpectOracles(Layer(channels, batch), OpKind::kConvolutionBackwardWeights,
                        {true, taps_first});
        }
      }
    }
  }
}

// Images of a few pixels: chunks of several images.
TEST(PixelTable, HasAllImagesOfAChunk) {
  const BitsProblem tiny{"tiny", 40, 1, 30, 8, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectOracles(tiny, OpKind::kConvolutionBackwardWeights, {true, false});
  }
}

// 264 rows of even and odd positions, in lines of 33: fours of them lie across slices and lines.
TEST(ZippedPhases, AreStoredInSlices) {
  const BitsProblem strided{"strided", 1, 1, 16, 16, {16, 66}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectOracles(strided, OpKind::kConvolutionBackwardData, {false, false});
  }
}

}  // namespace
}  // namespace convgrad::tests
