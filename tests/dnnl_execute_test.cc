// Results through the dnnl::graph API: the six operations against the oracle, layouts, shape
// tensors, scratchpads, allocators, concurrent execution.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "convgrad_dnnl.h"
#include "dnnl_problem.h"

namespace convgrad::tests {
namespace {

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::string Describe(const Geometry& g) {
  return "kind " + std::to_string(static_cast<int>(g.kind)) + " rank " + std::to_string(g.spatial) +
         " type " + std::to_string(static_cast<int>(g.type)) + (g.channels_last ? " NXC" : " NCX") +
         (g.spatial_first_weights ? " X first" : " X last");
}

TEST(DnnlExecute, EveryOperationRankTypeAndFormat) {
  for (op::kind kind : kFamily) {
    for (int spatial : {1, 2, 3}) {
      for (ElementType type : {ElementType::f32, ElementType::bf16, ElementType::f16}) {
        for (int formats = 0; formats < 4; ++formats) {
          Geometry g{.kind = kind, .type = type, .spatial = spatial};
          g.channels_last = (formats & 1) != 0;
          g.spatial_first_weights = (formats & 2) != 0;
          const Problem problem = MakeProblem(g);
          EXPECT_EQ(Computed(problem), Expected(problem)) << Describe(g);
        }
      }
    }
  }
}

TEST(DnnlExecute, DilationsGroupsAndBias) {
  for (op::kind kind : kFamily) {
    for (int64_t dilation : {1, 2, 3}) {
      for (int64_t groups : {1, 4}) {
        const Problem problem = MakeProblem({.kind = kind,
                                             .spatial = 1,
                                             .groups = groups,
                                             .src = 9,
                                             .stride = 3,
                                             .dilation = dilation,
                                             .pad_end = 2,
                                             .bias = true});
        EXPECT_EQ(Computed(problem), Expected(problem)) << dilation << " " << groups;
      }
    }
  }
}

// Documented for the gradients as for the forward operation.
TEST(DnnlExecute, OutputPaddingOnGradients) {
  for (op::kind kind : {op::kind::ConvTranspose, op::kind::ConvTransposeBackwardData,
                        op::kind::ConvTransposeBackwardWeights}) {
    const Problem problem = MakeProblem({.kind = kind, .stride = 3, .output_padding = 2});
    EXPECT_EQ(problem.attributes.Find("output_padding")->list()->at(0), 2);
    EXPECT_EQ(Computed(problem), Expected(problem));
  }
  // 8 = 2 * (4 - 1) + 3 - 1 - 1 + 1
  Problem data = MakeProblem({.kind = op::kind::ConvolutionBackwardData, .src = 8, .pad_end = 1});
  data.attributes.Set("output_padding", Dims{1, 1});
  EXPECT_EQ(Computed(data), Expected(data));
}

TEST(DnnlExecute, AutoPadInBothCases) {
  for (op::kind kind : kFamily) {
    for (const char* auto_pad : {"SAME_UPPER", "same_upper", "SAME_LOWER", "same_lower", "VALID",
                                 "valid", "None", "none"}) {
      const Problem problem = MakeProblem(
          {.kind = kind, .src = 10, .taps = 4, .stride = 3, .pad_begin = 2, .auto_pad = auto_pad});
      EXPECT_EQ(Computed(problem), Expected(problem)) << auto_pad;
    }
  }
}

// The shape as an input: s32, or s64, instead of the attribute.
TEST(DnnlExecute, ShapeTensors) {
  for (op::kind kind : {op::kind::ConvolutionBackwardData, op::kind::ConvolutionBackwardWeights,
                        op::kind::ConvTransposeBackwardWeights}) {
    for (ElementType type : {ElementType::s32, ElementType::s64}) {
      Problem problem = MakeProblem({.kind = kind});
      op made(0, kind, "op");
      made.add_inputs({Unknown(0, problem.type), Unknown(1, problem.type), Unknown(2, type)});
      made.add_output(Unknown(kOutputId, problem.type));
      Attributes attributes;
      for (const auto& [name, value] : problem.attributes.entries()) {
        if (name != "dst_shape" && name != "weights_shape") attributes.Set(name, value);
      }
      SetAttributes(attributes, made);
      std::vector<logical_tensor> inputs = InputTensors(problem);
      inputs.emplace_back(2, type, Dims{4}, Layout::strided);
      const logical_tensor output(kOutputId, problem.type, problem.output, Layout::strided);
      const compiled_partition compiled = OnlyPartition(made).compile(inputs, {output}, Cpu());

      std::vector<Bytes> data = InputData(problem);
      std::vector<int32_t> s32(problem.output.begin(), problem.output.end());
      Dims s64 = problem.output;
      void* shape = type == ElementType::s32 ? static_cast<void*>(s32.data()) : s64.data();
      std::vector<tensor> tensors = TensorsOf(problem, data, Cpu());
      tensors.emplace_back(inputs[2], Cpu(), shape);
      Bytes result(output.get_mem_size());
      dnnl::stream stream(Cpu());
      compiled.execute(stream, tensors, {tensor(output, Cpu(), result.data())});
      EXPECT_EQ(result, Expected(problem));

      // Values that differ from what was compiled.
      s32[0] += 1;
      s64[0] += 1;
      try {
        compiled.execute(stream, tensors, {tensor(output, Cpu(), result.data())});
        ADD_FAILURE() << "another shape was accepted";
      } catch (const dnnl::error& error) {
        EXPECT_EQ(error.status, dnnl_invalid_shape);
      }
    }
  }
}

// NCX extents with channels-last strides: the bytes of NXC.
TEST(DnnlExecute, ChannelsLastStridesUnderChannelsFirstExtents) {
  const Problem plain = MakeProblem({.kind = op::kind::Convolution, .channels_last = true});
  const auto strided = [](size_t id, const Dims& nxc) {
    const int64_t n = nxc[0], h = nxc[1], w = nxc[2], c = nxc[3];
    return logical_tensor(id, ElementType::f32, Dims{n, c, h, w}, Dims{h * w * c, 1, w * c, c});
  };
  Problem moved = plain;
  moved.attributes.Set("data_format", "NCX");
  const logical_tensor src = strided(0, plain.inputs[0]), dst = strided(kOutputId, plain.output);
  const logical_tensor weights(1, ElementType::f32, plain.inputs[1], Layout::strided);
  const compiled_partition compiled =
      OnlyPartition(MakeOp(moved)).compile({src, weights}, {dst}, Cpu());
  EXPECT_TRUE(compiled.query_logical_tensor(kOutputId).is_equal(dst));
  std::vector<Bytes> data = InputData(plain);
  Bytes output(dst.get_mem_size());
  dnnl::stream stream(Cpu());
  compiled.execute(stream,
                   {tensor(src, Cpu(), data[0].data()), tensor(weights, Cpu(), data[1].data())},
                   {tensor(dst, Cpu(), output.data())});
  EXPECT_EQ(output, Expected(plain));
}

TEST(DnnlExecute, EmptyBatch) {
  for (op::kind kind : kFamily) {
    const Problem problem = MakeProblem({.kind = kind, .batch = 0});
    const Bytes output = Computed(problem);
    EXPECT_EQ(output, Expected(problem));  // gradients of weights are zeros, the others empty
    EXPECT_EQ(output.empty(), problem.output[0] == 0);
    EXPECT_TRUE(
        std::all_of(output.begin(), output.end(), [](std::byte b) { return b == std::byte{}; }));
  }
}

TEST(DnnlExecute, TensorsThatTheLibraryAllocates) {
  const Problem problem = MakeProblem({.kind = op::kind::ConvTranspose});
  const compiled_partition compiled = Compile(problem, Cpu());
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  std::vector<tensor> inputs;
  const std::vector<Bytes> data = InputData(problem);
  for (const logical_tensor& lt : InputTensors(problem)) {
    inputs.emplace_back(lt, Cpu());
    const Bytes& bytes = data[inputs.size() - 1];
    ASSERT_EQ(lt.get_mem_size(), bytes.size());
    std::memcpy(inputs.back().get_data_handle(), bytes.data(), bytes.size());
  }
  const tensor output(result, Cpu());
  dnnl::stream stream(Cpu());
  compiled.execute(stream, inputs, {output});
  const Bytes expected = Expected(problem);
  EXPECT_EQ(std::memcmp(output.get_data_handle(), expected.data(), expected.size()), 0);
}

// The first whose plan has a workspace.
Problem LargeProblem() {
  for (int64_t channels = 8; channels <= 512; channels *= 2) {
    Problem problem = MakeProblem({.kind = op::kind::ConvolutionBackwardWeights,
                                   .groups = 1,
                                   .icg = channels,
                                   .ocg = channels,
                                   .src = 20,
                                   .stride = 1});
    const Result<Plan> plan = Plan::Make({OwnKind(problem.kind), problem.attributes},
                                         Descs(problem.type, problem.inputs));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (plan.ok() && plan->workspace_bytes() > 0) return problem;
  }
  ADD_FAILURE() << "no plan has a workspace";
  return MakeProblem({});
}

TEST(DnnlExecute, ScratchpadOfTheCaller) {
  const Problem problem = LargeProblem();
  const compiled_partition compiled = Compile(problem, Cpu());
  const logical_tensor lt = compiled.get_scratchpad_logical_tensor();
  ASSERT_GT(lt.get_mem_size(), 0u);
  EXPECT_EQ(lt.get_id(), SIZE_MAX);
  EXPECT_EQ(lt.get_data_type(), ElementType::u8);
  EXPECT_EQ(lt.get_layout_type(), Layout::strided);
  EXPECT_EQ(lt.get_dims(), Dims{static_cast<int64_t>(lt.get_mem_size())});
  EXPECT_EQ(lt.get_strides(), Dims{1});

  std::vector<Bytes> data = InputData(problem);
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  Bytes output(result.get_mem_size()), pad(lt.get_mem_size() + 64, std::byte{0xa5});
  dnnl::stream stream(Cpu());
  const std::vector<tensor> inputs = TensorsOf(problem, data, Cpu());
  const std::vector<tensor> outputs = {tensor(result, Cpu(), output.data())};
  compiled.execute(stream, inputs, outputs, tensor(lt, Cpu(), pad.data()));
  EXPECT_EQ(output, Expected(problem));
  EXPECT_TRUE(
      std::all_of(pad.end() - 64, pad.end(), [](std::byte b) { return b == std::byte{0xa5}; }));

  const logical_tensor small(7, ElementType::u8, Dims{1}, Layout::strided);
  EXPECT_THROW(compiled.execute(stream, inputs, outputs, tensor(small, Cpu(), pad.data())),
               dnnl::error);
  EXPECT_THROW(compiled.execute(stream, inputs, outputs, tensor(lt, Cpu(), nullptr)), dnnl::error);
  // Nobody knows that a scratchpad of unknown size is large enough.
  const logical_tensor unknown_scratchpads[] = {
      logical_tensor(7, ElementType::u8, lt.get_dims(), Layout::any),
      logical_tensor(7, ElementType::u8, Layout::strided)};
  for (const logical_tensor& unknown : unknown_scratchpads) {
    EXPECT_THROW(compiled.execute(stream, inputs, outputs, tensor(unknown, Cpu(), pad.data())),
                 dnnl::error);
  }
}

// What is allocated, by whom it was asked for.
struct Ledger {
  std::mutex mutex;
  std::set<void*> live;
  size_t calls = 0;
  bool aligned = true;
  bool refuse = false;
} ledger;

void* LedgerAllocate(size_t size, size_t alignment) {
  const std::lock_guard lock(ledger.mutex);
  if (ledger.refuse) return nullptr;
  const size_t unit = std::max(alignment, sizeof(void*));
  void* pointer = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  ledger.aligned &= reinterpret_cast<uintptr_t>(pointer) % alignment == 0 && alignment >= 64;
  ledger.live.insert(pointer);
  ++ledger.calls;
  return pointer;
}

void LedgerFree(void* pointer) {
  const std::lock_guard lock(ledger.mutex);
  EXPECT_EQ(ledger.live.erase(pointer), 1u);
  std::free(pointer);
}

TEST(DnnlExecute, AllocatorOfTheCallerIsUsedAndBalanced) {
  ledger.calls = 0;
  const Problem problem = LargeProblem();
  {
    dnnl::engine engine;
    {
      const dnnl::graph::allocator allocator(LedgerAllocate, LedgerFree);
      engine = dnnl::graph::make_engine_with_allocator(dnnl::engine::kind::cpu, 0, allocator);
    }  // the allocator dies first
    const compiled_partition compiled = Compile(problem, engine);
    std::vector<Bytes> data = InputData(problem);
    const tensor output(compiled.query_logical_tensor(kOutputId), engine);
    EXPECT_EQ(ledger.live.size(), 1u);
    dnnl::stream stream(engine);
    const std::vector<tensor> inputs = TensorsOf(problem, data, engine);
    engine = dnnl::engine();  // the engine, too: the others keep what they need of it
    for (int i = 0; i < 3; ++i) compiled.execute(stream, inputs, {output});
    EXPECT_EQ(ledger.live.size(), 1u) << "scratchpads last for one execution";
    EXPECT_EQ(ledger.calls, 4u);
    const Bytes expected = Expected(problem);
    EXPECT_EQ(std::memcmp(output.get_data_handle(), expected.data(), expected.size()), 0);

    ledger.refuse = true;
    try {
      compiled.execute(stream, inputs, {output});
      ADD_FAILURE() << "executed without memory";
    } catch (const dnnl::error& error) {
      EXPECT_EQ(error.status, dnnl_out_of_memory);
    }
    EXPECT_THROW(tensor(inputs[0].get_logical_tensor(), stream.get_engine()), dnnl::error);
    ledger.refuse = false;
  }
  EXPECT_TRUE(ledger.live.empty());
  EXPECT_TRUE(ledger.aligned);
}

TEST(DnnlExecute, OneCompiledPartitionOnEightThreads) {
  constexpr size_t kThreads = 8;
  const Problem problem = LargeProblem();
  const compiled_partition compiled = Compile(problem, Cpu());
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  const Bytes expected = Expected(problem);
  std::vector<Bytes> data = InputData(problem);
  const std::vector<tensor> inputs = TensorsOf(problem, data, Cpu());
  std::vector<Bytes> outputs(kThreads, Bytes(result.get_mem_size()));
  std::vector<std::thread> team;
  std::atomic<int> equal{0};
  for (size_t t = 0; t < kThreads; ++t) {
    team.emplace_back([&, t, copy = compiled] {
      dnnl::stream stream(Cpu());
      for (int i = 0; i < 5; ++i) {
        std::fill(outputs[t].begin(), outputs[t].end(), std::byte{0xff});
        copy.execute(stream, inputs, {tensor(result, Cpu(), outputs[t].data())});
        equal += outputs[t] == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(equal, static_cast<int>(kThreads) * 5);
}

// By the places in the lists that were compiled, whatever the ids of the tensors.
TEST(DnnlExecute, TensorsAreFoundByTheirPlaces) {
  const Problem problem = MakeProblem({});
  const std::vector<logical_tensor> in = InputTensors(problem);
  const compiled_partition compiled =
      OnlyPartition(MakeOp(problem))
          .compile({in[1], Unknown(77, ElementType::f32), in[0]},
                   {logical_tensor(kOutputId, ElementType::f32, Layout::any)}, Cpu());
  std::vector<Bytes> data = InputData(problem);
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  const auto with_ids = [&](size_t src, size_t weights, size_t dst) {
    Bytes output(result.get_mem_size());
    dnnl::stream stream(Cpu());
    const logical_tensor of_src(src, ElementType::f32, problem.inputs[0], Layout::strided);
    const logical_tensor of_weights(weights, ElementType::f32, problem.inputs[1], Layout::strided);
    const logical_tensor of_dst(dst, ElementType::f32, problem.output, Layout::strided);
    const tensor weights_tensor(of_weights, Cpu(), data[1].data());
    compiled.execute(stream,
                     {weights_tensor, weights_tensor, tensor(of_src, Cpu(), data[0].data())},
                     {tensor(of_dst, Cpu(), output.data())});
    return output;
  };
  EXPECT_EQ(with_ids(0, 1, kOutputId), Expected(problem));
  EXPECT_EQ(with_ids(1, 0, kOutputId), Expected(problem));
  EXPECT_EQ(with_ids(500, 500, 500), Expected(problem));
}

TEST(DnnlExecute, Refusals) {
  const Problem problem = MakeProblem({});
  const compiled_partition compiled = Compile(problem, Cpu());
  std::vector<Bytes> data = InputData(problem);
  const std::vector<tensor> in = TensorsOf(problem, data, Cpu());
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  Bytes output(result.get_mem_size(), std::byte{0x5a});
  const tensor out(result, Cpu(), output.data());
  dnnl::stream stream(Cpu());
  const auto status = [&](const std::vector<tensor>& inputs, const std::vector<tensor>& outputs) {
    try {
      compiled.execute(stream, inputs, outputs);
    } catch (const dnnl::error& error) {
      return error.status;
    }
    return dnnl_success;
  };
  EXPECT_EQ(status({in[0]}, {out}), dnnl_invalid_arguments);            // too few
  EXPECT_EQ(status(in, {}), dnnl_invalid_arguments);                    // no output
  EXPECT_EQ(status({in[0], tensor()}, {out}), dnnl_invalid_arguments);  // empty handle
  EXPECT_EQ(status({in[0], tensor(in[1].get_logical_tensor(), Cpu(), nullptr)}, {out}),
            dnnl_invalid_arguments);
  const logical_tensor one(1, ElementType::f32, Dims{1, 1, 1, 1}, Layout::strided);
  EXPECT_EQ(status({in[0], tensor(one, Cpu(), data[1].data())}, {out}), dnnl_invalid_arguments);
  EXPECT_NE(std::string(convgrad_dnnl_last_error()).find("has 4 bytes"), std::string::npos);
  EXPECT_TRUE(
      std::all_of(output.begin(), output.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
  EXPECT_EQ(status(in, {out}), dnnl_success);
  EXPECT_EQ(output, Expected(problem));
  dnnl::stream none;
  EXPECT_THROW(compiled.execute(none, in, {out}), dnnl::error);
}

}  // namespace
}  // namespace convgrad::tests
