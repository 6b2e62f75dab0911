// Strides in any order through the dnnl::graph API: nothing beyond a tensor's last element is read
// or written, of memory that the library allocates and of the caller's.
#include <algorithm>
#include <map>
#include <memory>

#include "convgrad_dnnl.h"
#include "dnnl_problem.h"
#include "guarded_memory.h"

namespace convgrad::tests {
namespace {

// Every allocation ends where a page begins that must not be touched. Alignment is given up for it
// where the size is no multiple: what was asked for is what there is.
std::map<void*, std::unique_ptr<GuardedMemory>> guarded;
std::vector<size_t> sizes;

void* AllocateGuarded(size_t size, size_t) {
  auto memory = std::make_unique<GuardedMemory>(size, true);
  sizes.push_back(size);
  void* data = memory->data();
  guarded[data] = std::move(memory);
  return data;
}
void FreeGuarded(void* data) { guarded.erase(data); }

dnnl::engine GuardedEngine() {
  return dnnl::graph::make_engine_with_allocator(
      dnnl::engine::kind::cpu, 0, dnnl::graph::allocator(AllocateGuarded, FreeGuarded));
}

// 1x1x4x4 by 1x1x2x3 to 1x1x3x2, strides of 1, no pads.
Problem SmallProblem() {
  Problem problem = MakeProblem({.batch = 1,
                                 .groups = 1,
                                 .icg = 1,
                                 .ocg = 1,
                                 .src = 4,
                                 .taps = 2,
                                 .stride = 1,
                                 .pad_begin = 0});
  problem.inputs[1] = {1, 1, 2, 3};
  problem.output = {1, 1, 3, 2};
  return problem;
}

// Places of the elements in memory, by the strides.
std::vector<size_t> Places(const Dims& extents, const Dims& strides) {
  std::vector<size_t> places;
  for (int64_t i = 0; i < extents[2]; ++i) {
    for (int64_t j = 0; j < extents[3]; ++j) {
      places.push_back(static_cast<size_t>(i * strides[2] + j * strides[3]));
    }
  }
  return places;
}

struct Strided {
  logical_tensor lt;
  std::vector<size_t> places;
  Strided(size_t id, const Dims& extents, const Dims& strides)
      : lt(id, ElementType::f32, extents, strides), places(Places(extents, strides)) {}
};

void Scatter(const Bytes& dense, const Strided& to, void* memory) {
  for (size_t i = 0; i < to.places.size(); ++i) {
    std::memcpy(static_cast<char*>(memory) + 4 * to.places[i], &dense[4 * i], 4);
  }
}

Bytes Gather(const Strided& from, const void* memory) {
  Bytes dense(4 * from.places.size());
  for (size_t i = 0; i < from.places.size(); ++i) {
    std::memcpy(&dense[4 * i], static_cast<const char*>(memory) + 4 * from.places[i], 4);
  }
  return dense;
}

// Of both the largest product of an extent and its stride is less than what the elements reach.
const Strided& CrossedSrc() {
  static const Strided src(0, {1, 1, 4, 4}, {100, 100, 3, 2});  // 16 elements, the last at 15
  return src;
}
const Strided& CrossedDst() {
  static const Strided dst(kOutputId, {1, 1, 3, 2}, {6, 6, 2, 3});  // 6 elements, the last at 7
  return dst;
}

TEST(DnnlStrides, AllocatedTensorsHoldWhatTheirElementsReach) {
  EXPECT_EQ(CrossedSrc().lt.get_mem_size(), 48u);
  EXPECT_EQ(CrossedDst().lt.get_mem_size(), 24u);
  sizes.clear();
  const dnnl::engine engine = GuardedEngine();
  const tensor src(CrossedSrc().lt, engine), dst(CrossedDst().lt, engine);
  EXPECT_EQ(sizes, (std::vector<size_t>{64, 32}));
  // Not less than what the client was told: padded rows.
  const tensor padded(logical_tensor(0, ElementType::f32, Dims{2, 3}, Dims{8, 1}), engine);
  EXPECT_EQ(sizes.back(), 64u);
  for (const Dims& strides : {Dims{-3, 1}, Dims{3, -1}, Dims{-1, -1}}) {
    try {
      tensor(logical_tensor(0, ElementType::f32, Dims{2, 3}, strides), engine);
      ADD_FAILURE() << "strides that are not known";
    } catch (const dnnl::error& error) {
      EXPECT_EQ(error.status, dnnl_invalid_arguments);
    }
  }
}

TEST(DnnlStrides, CrossedStridesAreComputedWithinTheirMemory) {
  const Problem problem = SmallProblem();
  const dnnl::engine engine = GuardedEngine();
  // Equal elements where two indices share a place: src is of ones.
  Bytes ones(64);
  for (size_t i = 0; i < 16; ++i) {
    const float one = 1;
    std::memcpy(&ones[4 * i], &one, 4);
  }
  const Bytes weights = InputData(problem)[1];
  const logical_tensor weights_lt(1, ElementType::f32, problem.inputs[1], Layout::strided);
  const compiled_partition compiled =
      OnlyPartition(MakeOp(problem))
          .compile({CrossedSrc().lt, weights_lt}, {CrossedDst().lt}, engine);
  const tensor src(CrossedSrc().lt, engine), taps(weights_lt, engine), dst(CrossedDst().lt, engine);
  Scatter(ones, CrossedSrc(), src.get_data_handle());
  std::memcpy(taps.get_data_handle(), weights.data(), weights.size());
  dnnl::stream stream(engine);
  compiled.execute(stream, {src, taps}, {dst});
  float sum = 0;
  for (size_t i = 0; i < 6; ++i) {
    float tap;
    std::memcpy(&tap, &weights[4 * i], 4);
    sum += tap;
  }
  const Bytes result = Gather(CrossedDst(), dst.get_data_handle());
  for (size_t i = 0; i < 6; ++i) {
    float value;
    std::memcpy(&value, &result[4 * i], 4);
    EXPECT_EQ(value, sum) << i;
  }
}

// As many bytes by get_mem_size, but the compiled strides reach further.
TEST(DnnlStrides, SmallerMemoryOfTheCallerIsRefused) {
  const Problem problem = SmallProblem();
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::vector<Bytes> data = InputData(problem);
  const compiled_partition compiled =
      OnlyPartition(MakeOp(problem)).compile(InputTensors(problem), {CrossedDst().lt}, engine);
  const logical_tensor dense(kOutputId, ElementType::f32, problem.output, Layout::strided);
  EXPECT_EQ(dense.get_mem_size(), CrossedDst().lt.get_mem_size());
  const GuardedMemory output(24, true);
  dnnl::stream stream(engine);
  try {
    compiled.execute(stream, TensorsOf(problem, data, engine),
                     {tensor(dense, engine, output.data())});
    ADD_FAILURE() << "32 bytes were written to 24";
  } catch (const dnnl::error& error) {
    EXPECT_EQ(error.status, dnnl_invalid_arguments);
    EXPECT_NE(std::string(convgrad_dnnl_last_error()).find("24 bytes"), std::string::npos);
  }
  const GuardedMemory enough(32, true);
  compiled.execute(stream, TensorsOf(problem, data, engine),
                   {tensor(CrossedDst().lt, engine, enough.data())});
  EXPECT_EQ(Gather(CrossedDst(), enough.data()), Expected(problem));
}

}  // namespace
}  // namespace convgrad::tests
