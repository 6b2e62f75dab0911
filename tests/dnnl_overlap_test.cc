// Tensors that share memory at execution: what is shown to overlap is refused before anything is
// written; tensors that only reach around each other are computed.
#include <algorithm>

#include "convgrad_dnnl.h"
#include "dnnl_problem.h"

namespace convgrad::tests {
namespace {

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// One pixel of weights: src and dst have the same extents, 2 x 5 x 5 x 4.
Problem OnePixel() {
  return MakeProblem({.groups = 1,
                      .icg = 4,
                      .ocg = 4,
                      .src = 5,
                      .taps = 1,
                      .stride = 1,
                      .pad_begin = 0,
                      .channels_last = true});
}

// src and dst of the problem with these strides, at these elements of one buffer.
class Buffer {
 public:
  explicit Buffer(const Dims& strides) : problem_(OnePixel()), strides_(strides) {
    const logical_tensor weights = InputTensors(problem_)[1];
    compiled_ = OnlyPartition(MakeOp(problem_)).compile({Src(), weights}, {Dst()}, Cpu());
  }

  dnnl_status_t Execute(size_t src_at, size_t dst_at) {
    std::vector<Bytes> data = InputData(problem_);
    memory_.assign(memory_.size(), 99.0F);
    Walk(src_at, [&, i = size_t{0}](float& element) mutable {
      std::memcpy(&element, &data[0][4 * i++], 4);
    });
    const std::vector<float> before = memory_;
    const std::vector<tensor> in = {tensor(Src(), Cpu(), &memory_[src_at]),
                                    tensor(InputTensors(problem_)[1], Cpu(), data[1].data())};
    dnnl::stream stream(Cpu());
    try {
      compiled_.execute(stream, in, {tensor(Dst(), Cpu(), &memory_[dst_at])});
    } catch (const dnnl::error& error) {
      EXPECT_EQ(memory_, before);
      EXPECT_STREQ(convgrad_dnnl_last_error(), "output tensor 0 shares memory with input tensor 0");
      return error.status;
    }
    const Bytes expected = Expected(problem_);
    Walk(dst_at, [&, i = size_t{0}](const float& element) mutable {
      EXPECT_EQ(std::memcmp(&element, &expected[4 * i++], 4), 0);
    });
    return dnnl_success;
  }

 private:
  logical_tensor Src() const {
    return logical_tensor(0, ElementType::f32, problem_.inputs[0], strides_);
  }
  logical_tensor Dst() const {
    return logical_tensor(kOutputId, ElementType::f32, problem_.output, strides_);
  }
  template <class Body>
  void Walk(size_t at, Body body) {
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t y = 0; y < 5; ++y) {
        for (int64_t x = 0; x < 5; ++x) {
          for (int64_t c = 0; c < 4; ++c) {
            body(memory_[at + static_cast<size_t>(n * strides_[0] + y * strides_[1] +
                                                  x * strides_[2] + c * strides_[3])]);
          }
        }
      }
    }
  }

  Problem problem_;
  Dims strides_;
  compiled_partition compiled_;
  std::vector<float> memory_ = std::vector<float>(2000);
};

TEST(DnnlOverlap, DenseTensors) {
  Buffer buffer({100, 20, 4, 1});  // 200 elements
  EXPECT_EQ(buffer.Execute(300, 300), dnnl_invalid_arguments);
  EXPECT_EQ(buffer.Execute(300, 301), dnnl_invalid_arguments);
  EXPECT_EQ(buffer.Execute(300, 499), dnnl_invalid_arguments);
  EXPECT_EQ(buffer.Execute(300, 101), dnnl_invalid_arguments);
  EXPECT_EQ(buffer.Execute(300, 500), dnnl_success);
  EXPECT_EQ(buffer.Execute(300, 100), dnnl_success);
}

// src and dst are the halves of the channels of one tensor, as a network with concatenation has it.
TEST(DnnlOverlap, InterleavedChannelsAreApart) {
  Buffer buffer({200, 40, 8, 1});
  EXPECT_EQ(buffer.Execute(0, 4), dnnl_success);
  EXPECT_EQ(buffer.Execute(4, 0), dnnl_success);
  EXPECT_EQ(buffer.Execute(4, 4), dnnl_invalid_arguments);
  // Some of the channels; a pixel, a row or an image further on; and the other half there.
  EXPECT_EQ(buffer.Execute(0, 3), dnnl_invalid_arguments);
  EXPECT_EQ(buffer.Execute(5, 2), dnnl_invalid_arguments);
  for (const size_t further : {8, 40, 200, 248}) {
    EXPECT_EQ(buffer.Execute(0, further), dnnl_invalid_arguments) << further;
    EXPECT_EQ(buffer.Execute(further, 0), dnnl_invalid_arguments) << further;
    EXPECT_EQ(buffer.Execute(0, further + 4), dnnl_success) << further;
    EXPECT_EQ(buffer.Execute(further + 4, 0), dnnl_success) << further;
  }
}

TEST(DnnlOverlap, InterleavedImagesAreApart) {
  Buffer buffer({200, 20, 4, 1});
  EXPECT_EQ(buffer.Execute(0, 100), dnnl_success);
  EXPECT_EQ(buffer.Execute(300, 0), dnnl_success);
}

// A dense output between the rows of an input that has gaps, and one that meets a row.
TEST(DnnlOverlap, DenseBetweenRows) {
  const Problem problem = OnePixel();
  const Dims gaps = {600, 20, 4, 1};  // images of 100 elements, 500 apart
  const logical_tensor src(0, ElementType::f32, problem.inputs[0], gaps);
  const logical_tensor weights = InputTensors(problem)[1];
  const compiled_partition compiled =
      OnlyPartition(MakeOp(problem))
          .compile({src, weights}, {logical_tensor(kOutputId, ElementType::f32, Layout::any)},
                   Cpu());
  std::vector<float> memory(1000);
  Bytes of_weights = InputData(problem)[1];
  const std::vector<tensor> in = {tensor(src, Cpu(), memory.data()),
                                  tensor(weights, Cpu(), of_weights.data())};
  const auto status = [&](size_t at) {
    dnnl::stream stream(Cpu());
    const logical_tensor dst = compiled.query_logical_tensor(kOutputId);
    try {
      compiled.execute(stream, in, {tensor(dst, Cpu(), &memory[at])});
    } catch (const dnnl::error& error) {
      return error.status;
    }
    return dnnl_success;
  };
  EXPECT_EQ(status(100), dnnl_success);
  EXPECT_EQ(status(400), dnnl_success);
  EXPECT_EQ(status(401), dnnl_invalid_arguments);
  EXPECT_EQ(status(99), dnnl_invalid_arguments);
  EXPECT_EQ(status(550), dnnl_invalid_arguments);
  EXPECT_EQ(status(700), dnnl_success);
}

TEST(DnnlOverlap, EmptyTensorsShareNothing) {
  Problem problem = OnePixel();
  problem.inputs[0][0] = problem.output[0] = 0;
  const compiled_partition compiled = Compile(problem, Cpu());
  std::vector<Bytes> data = InputData(problem);
  const tensor src(InputTensors(problem)[0], Cpu(), data[1].data());
  const tensor weights(InputTensors(problem)[1], Cpu(), data[1].data());
  const tensor dst(compiled.query_logical_tensor(kOutputId), Cpu(), data[1].data());
  dnnl::stream stream(Cpu());
  compiled.execute(stream, {src, weights}, {dst});
}

TEST(DnnlOverlap, Scratchpads) {
  // Panels: small ones, as tasks of many threads have, are on the stack.
  Problem problem;
  compiled_partition compiled;
  for (int64_t channels = 64; channels <= 1024; channels *= 2) {
    problem = MakeProblem({.kind = op::kind::ConvolutionBackwardWeights,
                           .batch = 2,
                           .groups = 1,
                           .icg = channels,
                           .ocg = channels,
                           .src = 16});
    compiled = Compile(problem, Cpu());
    if (compiled.get_scratchpad_logical_tensor().get_mem_size() > 0) break;
  }
  const logical_tensor pad = compiled.get_scratchpad_logical_tensor();
  ASSERT_GT(pad.get_mem_size(), 0U);
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  std::vector<Bytes> data = InputData(problem);
  Bytes memory(pad.get_mem_size() + result.get_mem_size());
  const std::vector<tensor> in = TensorsOf(problem, data, Cpu());
  const auto status = [&](void* output, void* scratchpad) {
    dnnl::stream stream(Cpu());
    try {
      compiled.execute(stream, in, {tensor(result, Cpu(), output)}, tensor(pad, Cpu(), scratchpad));
    } catch (const dnnl::error& error) {
      return error.status;
    }
    return dnnl_success;
  };
  EXPECT_EQ(status(&memory[pad.get_mem_size()], memory.data()), dnnl_success);
  EXPECT_EQ(status(&memory[pad.get_mem_size() - 4], memory.data()), dnnl_invalid_arguments);
  EXPECT_STREQ(convgrad_dnnl_last_error(), "output tensor 0 shares memory with the scratchpad");
  Bytes output(result.get_mem_size());
  Bytes both(pad.get_mem_size() + data[0].size());
  data[0].swap(both);  // the first input keeps its old memory: `both`
  EXPECT_EQ(status(output.data(), both.data()), dnnl_invalid_arguments);
  EXPECT_STREQ(convgrad_dnnl_last_error(), "input tensor 0 shares memory with the scratchpad");
}

}  // namespace
}  // namespace convgrad::tests
