// Promise 2, of f32 weight gradients: a batch that is cut into micro-batches, accumulated in order
// with beta = 1, has the bits of the whole. From f16 as from f32; from bf16 where images are not
// tiny: of tiny ones, four terms that are summed at once can be of two images.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/bits_case.h"

namespace convgrad::tests {
namespace {

constexpr int64_t kBatch = 8;

// Images of many chunks, of one, of 64 pixels (the first that are not tiny), tiny ones whose chain
// runs on over images, and of one pixel; of x smaller than tiny and of y not, and the other way.
const BitsProblem kProblems[] = {
    {"large", kBatch, 1, 5, 17, {27, 23}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"one-chunk", kBatch, 2, 16, 24, {12, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"64-pixels", kBatch, 1, 3, 16, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"63-pixels", kBatch, 1, 17, 5, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"tiny", kBatch, 1, 24, 16, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"one-pixel", kBatch, 1, 64, 40, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {"tiny-y", kBatch, 1, 5, 16, {14, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {"tiny-x", kBatch, 1, 5, 16, {7, 7}, {2, 2}, {1, 1}, {1, 1}, {4, 4}},
    {"depthwise", kBatch, 16, 16, 16, {20, 18}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"1d", kBatch, 1, 3, 1, {600}, {5}, {2}, {3}, {6}},
    {"3d", kBatch, 1, 3, 5, {6, 7, 8}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
};

const std::vector<std::vector<int64_t>> kCuts = {
    {1, 7}, {3, 5}, {7, 1}, {1, 1, 1, 1, 1, 1, 1, 1}, {2, 4, 2}, {0, 8}, {4, 0, 4}};

// The part of an input from image `first` on.
const void* FromImage(const void* data, const TensorDesc& desc, int64_t first) {
  return static_cast<const char*>(data) + first * desc.strides[0] * SizeOf(desc.type);
}

void RunMicroBatches(BitsCase& item, const std::vector<int64_t>& cut, bool onto_zeros,
                     const Options& options) {
  item.FillOutputs(onto_zeros ? 0x00 : 0xff);  // NaNs, unless zeros are asked for
  const std::vector<TensorDesc> whole = item.InputDescs();
  const std::vector<const void*> data = item.InputData();
  int64_t first = 0;
  bool starts = !onto_zeros;
  for (const int64_t images : cut) {
    std::vector<TensorDesc> descs = whole;
    std::vector<const void*> parts;
    for (size_t i = 0; i < descs.size(); ++i) {
      descs[i].extents[0] = images;
      parts.push_back(FromImage(data[i], descs[i], first));
    }
    Options own = options;
    own.beta = starts ? 0.0f : 1.0f;
    Result<Plan> plan = Plan::Make(item.operation(), descs, item.OutputDescs(), own);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    ASSERT_TRUE(plan->Run(parts, item.OutputData(), workspace.data()).ok());
    first += images;
    starts = false;
  }
  ASSERT_EQ(first, kBatch);
}

bool HasTinyImages(const BitsProblem& problem) {
  int64_t x = 1, y = 1;
  for (size_t a = 0; a < problem.rank(); ++a) {
    x *= problem.in[a];
    y *= problem.out(a);
  }
  return std::min(x, y) < 64;
}

void ExpectTheWhole(const BitsProblem& problem, OpKind kind, DataType type, bool last) {
  BitsCase item(problem, kind, type, {last, last}, true, DataType::kF32);
  const uint64_t expected = item.Run({.threads = 1});
  int turn = 0;
  for (const std::vector<int64_t>& cut : kCuts) {
    for (const bool onto_zeros : {false, true}) {
      const Options options{.threads = 1 + turn % 3,
                            .workspace_limit = turn % 2 == 0 ? Options::kNoLimit : 0};
      ++turn;
      RunMicroBatches(item, cut, onto_zeros, options);
      EXPECT_EQ(item.OutputDigest(), expected)
          << problem.name << " " << NameOf(kind) << " from " << NameOf(type)
          << (last ? " NXC" : " NCX") << ", first " << cut[0] << (onto_zeros ? ", onto zeros" : "");
    }
  }
}

void ExpectTheWholeOfAll(DataType type, bool with_tiny) {
  int problems = 0;
  for (const BitsProblem& problem : kProblems) {
    if (!with_tiny && HasTinyImages(problem)) continue;
    ++problems;
    for (const OpKind kind :
         {OpKind::kConvolutionBackwardWeights, OpKind::kConvTransposeBackwardWeights}) {
      for (const bool last : {false, true}) ExpectTheWhole(problem, kind, type, last);
    }
  }
  EXPECT_GE(problems, 6);
}

TEST(MicroBatch, HasTheBitsOfTheWhole) { ExpectTheWholeOfAll(DataType::kF32, true); }
TEST(MicroBatch, HasTheBitsOfTheWholeFromF16) { ExpectTheWholeOfAll(DataType::kF16, true); }
TEST(MicroBatch, HasTheBitsOfTheWholeFromBF16) { ExpectTheWholeOfAll(DataType::kBF16, false); }

// So that the tests above can fail: another order of the same micro-batches has other bits.
void ExpectOtherBits(DataType type) {
  BitsCase item(kProblems[0], OpKind::kConvolutionBackwardWeights, type, {}, true, DataType::kF32);
  const uint64_t expected = item.Run({.threads = 1});
  item.FillOutputs(0x00);
  std::vector<TensorDesc> descs = item.InputDescs();
  for (TensorDesc& desc : descs) desc.extents[0] = 1;
  Result<Plan> plan = Plan::Make(item.operation(), descs, item.OutputDescs(), {.beta = 1.0f});
  ASSERT_TRUE(plan.ok());
  std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
  for (int64_t image = kBatch; image-- > 0;) {
    std::vector<const void*> parts = item.InputData();
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = FromImage(parts[i], descs[i], image);
    ASSERT_TRUE(plan->Run(parts, item.OutputData(), workspace.data()).ok());
  }
  EXPECT_NE(item.OutputDigest(), expected) << NameOf(type);
}

TEST(MicroBatch, OutOfOrderHasOtherBits) {
  for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    ExpectOtherBits(type);
  }
}

}  // namespace
}  // namespace convgrad::tests
