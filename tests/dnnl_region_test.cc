// Whether two tensors share memory (src/onednn/dnnl_overlap.h), against every byte of them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "onednn/dnnl_overlap.h"
#include "tests/watched_allocations.h"

namespace convgrad::tests {
namespace {

using Dims = std::vector<int64_t>;

TEST(DnnlRegion, SharesWhatTheBytesSay) {
  std::mt19937 random(7);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  constexpr size_t kBytes = 1 << 16;
  alignas(64) static char memory[kBytes];
  int shared = 0, apart = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    // A place in a larger dense tensor, so that strides nest; the others have any stride.
    const auto make = [&](const Dims& strides, std::vector<bool>& bytes) {
      dnnl_graph_logical_tensor_t made{};
      made.ndims = 3;
      made.data_type = dnnl_f32;
      made.layout_type = dnnl_graph_layout_type_strided;
      for (int axis = 0; axis < 3; ++axis) {
        made.dims[axis] = draw(1, 4);
        made.layout.strides[axis] = strides[static_cast<size_t>(axis)];
      }
      const size_t begin = static_cast<size_t>(draw(0, 100)) * 4;
      bytes.assign(kBytes, false);
      for (int64_t i = 0; i < made.dims[0]; ++i) {
        for (int64_t j = 0; j < made.dims[1]; ++j) {
          for (int64_t k = 0; k < made.dims[2]; ++k) {
            const int64_t at = i * strides[0] + j * strides[1] + k * strides[2];
            for (size_t b = 0; b < 4; ++b) bytes[begin + 4 * static_cast<size_t>(at) + b] = true;
          }
        }
      }
      return onednn::Region(made, memory + begin);
    };
    const auto strides = [&] {
      const int64_t inner = draw(1, 3), row = inner * draw(4, 6);
      return turn % 2 == 0 ? Dims{row * draw(4, 6), row, inner}
                           : Dims{draw(1, 30), draw(1, 30), draw(1, 30)};
    };
    std::vector<bool> one, other;
    const Dims first = strides();
    const onednn::Region a = make(first, one), b = make(turn % 3 == 0 ? strides() : first, other);
    bool expected = false;
    for (size_t i = 0; i < kBytes; ++i) expected = expected || (one[i] && other[i]);
    ASSERT_EQ(a.Shares(b), expected) << turn;
    ASSERT_EQ(b.Shares(a), expected) << turn;
    ++(expected ? shared : apart);
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(apart, 500);
}

// 24 strides, no two of which are the same, and a search that has to look at all of them.
TEST(DnnlRegion, OfTwelveAxesEachAllocatesNothing) {
  alignas(64) static float memory[2048];
  const auto make = [&](int64_t first_stride, float* data) {
    dnnl_graph_logical_tensor_t made{};
    made.ndims = DNNL_MAX_NDIMS;
    made.data_type = dnnl_f32;
    made.layout_type = dnnl_graph_layout_type_strided;
    for (int axis = 0; axis < DNNL_MAX_NDIMS; ++axis) {
      made.dims[axis] = 2;
      made.layout.strides[axis] = first_stride + 4 * axis;
    }
    return onednn::Region(made, data);
  };
  // Even strides alone: what is an odd number of elements apart never meets.
  const onednn::Region a = make(6, memory), odd = make(8, memory + 33), even = make(8, memory + 34);
  const int64_t before = allocations;
  EXPECT_TRUE(a.Shares(even) && even.Shares(a));
  EXPECT_FALSE(a.Shares(odd) || odd.Shares(a));
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace convgrad::tests
