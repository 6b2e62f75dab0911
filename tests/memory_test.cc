// Promise 5: no read or write outside the tensors, any alignment, 64-bit indices.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "convgrad/convgrad.hpp"
#include "core/numerics.h"
#include "tests/guarded_memory.h"
#include "tests/random_case.h"
#include "tools/formula.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tests {
namespace {

using tools::Case;
using tools::FillIntegers;
using tools::TensorBuffer;

// The bytes of a tensor, from its lowest element to its highest, and where index 0 is.
struct Extent {
  size_t bytes;
  size_t origin;
};
Extent ExtentOf(const TensorDesc& desc) {
  int64_t low = 0, high = 0;
  for (size_t a = 0; a < desc.extents.size(); ++a) {
    if (desc.extents[a] == 0) return {0, 0};
    const int64_t reach = (desc.extents[a] - 1) * desc.strides[a];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = SizeOf(desc.type);
  return {static_cast<size_t>((high - low + 1) * size), static_cast<size_t>(-low * size)};
}

// Runs a case with every tensor and the workspace against a guard page, at the front or at the
// back, and compares with a run in ordinary memory.
void RunGuarded(const Case& item, bool at_end) {
  Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs, {.threads = 2});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<TensorBuffer> plain;
  std::vector<std::unique_ptr<GuardedMemory>> guarded;
  std::vector<const void*> plain_in, guarded_in;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    if (!item.inputs[i].given() || !item.inputs[i].values.empty()) {
      plain_in.push_back(nullptr);
      guarded_in.push_back(nullptr);
      continue;
    }
    plain.emplace_back(item.inputs[i]);
    FillIntegers(plain.back(), 4, 17 + i);
    const Extent extent = ExtentOf(plain.back().desc());
    guarded.push_back(std::make_unique<GuardedMemory>(extent.bytes, at_end));
    std::memcpy(guarded.back()->data(), static_cast<char*>(plain.back().data()) - extent.origin,
                extent.bytes);
    guarded_in.push_back(guarded.back()->data() + extent.origin);
  }
  size_t next = 0;
  for (size_t i = 0; i < plain_in.size() || i < item.inputs.size(); ++i) {
    if (i >= plain_in.size()) plain_in.push_back(nullptr);
    if (guarded_in[i] != nullptr) plain_in[i] = plain[next++].data();
  }
  std::vector<TensorBuffer> expected;
  std::vector<void*> expected_out, guarded_out;
  std::vector<std::unique_ptr<GuardedMemory>> outputs;
  for (int i = 0; i < plan->num_outputs(); ++i) {
    expected.emplace_back(plan->output(i));
    const Extent extent = ExtentOf(plan->output(i));
    outputs.push_back(std::make_unique<GuardedMemory>(extent.bytes, at_end));
    std::memset(outputs.back()->data(), 0xa5, extent.bytes);
    guarded_out.push_back(outputs.back()->data() + extent.origin);
  }
  for (TensorBuffer& buffer : expected) expected_out.push_back(buffer.data());
  const size_t workspace_bytes = static_cast<size_t>(plan->workspace_bytes());
  std::vector<char> workspace(workspace_bytes);
  const GuardedMemory guarded_workspace(workspace_bytes, at_end);
  ASSERT_TRUE(plan->Run(plain_in, expected_out, workspace.data()).ok());
  ASSERT_TRUE(plan->Run(guarded_in, guarded_out, guarded_workspace.data()).ok());
  for (int i = 0; i < plan->num_outputs(); ++i) {
    const Extent extent = ExtentOf(plan->output(i));
    const char* plain_bytes =
        static_cast<const char*>(expected_out[static_cast<size_t>(i)]) - extent.origin;
    ASSERT_EQ(std::memcmp(outputs[static_cast<size_t>(i)]->data(), plain_bytes, extent.bytes), 0)
        << item.text;
  }
}

TEST(Memory, NothingIsTouchedOutsideTheTensors) {
  int checked = 0;
  for (uint64_t seed = 10000; seed < 10800; ++seed) {
    const std::optional<Case> item = Build(RandomRecipe(seed));
    if (!item) continue;
    RunGuarded(*item, seed % 2 == 0);
    if (HasFatalFailure()) FAIL() << item->text;
    ++checked;
  }
  EXPECT_GT(checked, 200);
}

const Attributes kUnitStride = {{"strides", {1, 1}},    {"pads_begin", {1, 1}},
                                {"pads_end", {1, 1}},   {"dilations", {1, 1}},
                                {"data_format", "NCX"}, {"weights_format", "OIX"}};

TEST(Memory, AnyAlignment) {
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    TensorBuffer src(TensorDesc{type, {2, 3, 5, 4}, {}, {}});
    TensorBuffer diff_dst(TensorDesc{type, {2, 4, 5, 4}, {}, {}});
    TensorBuffer expected(TensorDesc{type, {4, 3, 3, 3}, {}, {}});
    FillIntegers(src, 4, 1);
    FillIntegers(diff_dst, 4, 2);
    const Operation op{OpKind::kConvolutionBackwardWeights, kUnitStride};
    ASSERT_TRUE(convgrad::Run(op, {src.view(), diff_dst.view()}, {expected.view()}).ok());
    for (size_t shift : {1, 2, 3}) {
      const auto moved = [&](const TensorBuffer& buffer) {
        std::vector<char> bytes(static_cast<size_t>(buffer.elements()) * 4 + shift);
        std::memcpy(bytes.data() + shift, buffer.data(),
                    static_cast<size_t>(buffer.elements() * SizeOf(type)));
        return bytes;
      };
      const std::vector<char> a = moved(src), b = moved(diff_dst);
      std::vector<char> out = moved(expected);
      std::fill(out.begin(), out.end(), char{0x55});
      ASSERT_TRUE(
          convgrad::Run(
              op, {{a.data() + shift, type, {2, 3, 5, 4}}, {b.data() + shift, type, {2, 4, 5, 4}}},
              {{out.data() + shift, type, {4, 3, 3, 3}}})
              .ok());
      ASSERT_EQ(std::memcmp(out.data() + shift, expected.data(),
                            static_cast<size_t>(expected.elements() * SizeOf(type))),
                0);
    }
  }
}

// Offsets beyond 2^31 elements and 2^32 bytes, in address space that is never touched but for a few
// pages: an index that is kept in 32 bits anywhere faults or reads the wrong page.
TEST(Memory, OffsetsBeyond32Bits) {
  const int64_t far = (int64_t{1} << 31) + 12345;  // elements between neighbouring images
  const size_t bytes = static_cast<size_t>(2 * far) * sizeof(float);
  char* base = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(base, MAP_FAILED);
  TensorBuffer dense(TensorDesc{DataType::kF32, {2, 2, 6}, {}, {}});
  FillIntegers(dense, 4, 3);
  const Dims strides = {far, 6, 1};
  for (int64_t i = 0; i < dense.elements(); ++i) {
    const Dims index = dense.IndexOf(i);
    StoreAt<float>(base, index[0] * far + index[1] * 6 + index[2], static_cast<float>(dense.At(i)));
  }
  TensorBuffer w(TensorDesc{DataType::kF32, {4, 2, 3}, {}, {}});
  FillIntegers(w, 4, 4);
  const Operation op{OpKind::kConvolution,
                     {{"strides", {1}},
                      {"pads_begin", {1}},
                      {"pads_end", {1}},
                      {"dilations", {1}},
                      {"data_format", "NCX"},
                      {"weights_format", "OIX"}}};
  TensorBuffer expected(TensorDesc{DataType::kF32, {2, 4, 6}, {}, {}}), got(expected.desc());
  ASSERT_TRUE(convgrad::Run(op, {dense.view(), w.view()}, {expected.view()}).ok());
  ASSERT_TRUE(
      convgrad::Run(op, {{base, DataType::kF32, {2, 2, 6}, strides}, w.view()}, {got.view()}).ok());
  EXPECT_TRUE(got.SameBytes(expected));
  // And as an output.
  const Operation back{OpKind::kConvolutionBackwardData, op.attributes};
  TensorBuffer dx(dense.desc());
  ASSERT_TRUE(convgrad::Run(back, {expected.view(), w.view()}, {dx.view()}).ok());
  ASSERT_TRUE(
      convgrad::Run(back, {expected.view(), w.view()}, {{base, DataType::kF32, {2, 2, 6}, strides}})
          .ok());
  for (int64_t i = 0; i < dx.elements(); ++i) {
    const Dims index = dx.IndexOf(i);
    ASSERT_EQ(LoadAt<float>(base, index[0] * far + index[1] * 6 + index[2]), dx.At(i));
  }
  munmap(base, bytes);
}

// A tensor with more than 2^31 elements along one axis, 2^33 bytes of untouched zeros but for its
// end.
TEST(Memory, MoreThan2To31Elements) {
  const int64_t length = (int64_t{1} << 31) + 100;
  const size_t bytes = static_cast<size_t>(length) * 2;
  char* base = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(base, MAP_FAILED);
  // Stride as long as the tensor: only the first and the last window are visited.
  StoreRounded(DataType::kBF16, base, 1, 3);
  StoreRounded(DataType::kBF16, base, length - 1, 5);
  const Operation op{OpKind::kConvolution,
                     {{"strides", {length - 2}},
                      {"pads_begin", {0}},
                      {"pads_end", {0}},
                      {"dilations", {1}},
                      {"data_format", "NCX"},
                      {"weights_format", "OIX"}}};
  TensorBuffer w(TensorDesc{DataType::kBF16, {1, 1, 2}, {}, {}});
  w.Set(0, 2);
  w.Set(1, 7);
  TensorBuffer y(TensorDesc{DataType::kBF16, {1, 1, 2}, {}, {}});
  const Status status =
      convgrad::Run(op, {{base, DataType::kBF16, {1, 1, length}}, w.view()}, {y.view()});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(y.At(0), 7 * 3);
  EXPECT_EQ(y.At(1), 7 * 5);
  munmap(base, bytes);
}

}  // namespace
}  // namespace convgrad::tests
