// Graphs, partitions and compilation of the dnnl::graph API: what is refused when and with which
// status, the order of partitions, inferred shapes, life times.
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "convgrad_dnnl.h"
#include "dnnl_problem.h"

namespace convgrad::tests {
namespace {

using dnnl::graph::status;
using Engine = dnnl::engine;

const Engine& Cpu() {
  static const Engine engine(Engine::kind::cpu, 0);
  return engine;
}

template <class Body>
dnnl_status_t StatusOf(Body&& body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    return error.status;
  }
  return dnnl_success;
}

status AddOp(const op& made) {
  graph g(Engine::kind::cpu);
  return g.add_op(made, false);
}

logical_tensor F32(size_t id) { return Unknown(id, ElementType::f32); }

op Elementwise(size_t id, op::kind kind, size_t from, size_t to) {
  return op(id, kind, {F32(from)}, {F32(to)}, "elementwise");
}

// A convolution from tensor `from` to tensor `to`, with weights of id `to` + 1000.
op Layer(size_t id, size_t from, size_t to) {
  op made(id, op::kind::Convolution, {F32(from), F32(to + 1000)}, {F32(to)});
  SetAttributes(WindowAttributes({}), made);
  return made;
}

op WithAttributes(op::kind kind, const Attributes& attributes) {
  op made(0, kind, {F32(0), F32(1)}, {F32(2)});
  SetAttributes(attributes, made);
  return made;
}

TEST(DnnlAddOp, TheFamilyWithItsDefaults) {
  const Attributes least = {{"strides", Dims{1, 1}},
                            {"pads_begin", Dims{0, 0}},
                            {"pads_end", Dims{0, 0}},
                            {"dilations", Dims{1, 1}}};
  for (op::kind kind : kFamily) EXPECT_EQ(AddOp(WithAttributes(kind, least)), status::success);
  for (const char* missing : {"strides", "pads_begin", "pads_end", "dilations"}) {
    Attributes others;
    for (const auto& [name, value] : least.entries()) {
      if (name != missing) others.Set(name, value);
    }
    for (op::kind kind : kFamily) {
      EXPECT_EQ(AddOp(WithAttributes(kind, others)), status::invalid_graph_op) << missing;
    }
    EXPECT_NE(std::string(convgrad_dnnl_last_error()).find(missing), std::string::npos);
  }
}

TEST(DnnlAddOp, AttributesOfTheOperation) {
  const auto with = [](op::kind kind, const char* name, const AttributeValue& value) {
    Geometry g{.kind = kind};
    Attributes attributes = WindowAttributes(g);
    return AddOp(WithAttributes(kind, attributes.Set(name, value)));
  };
  const Dims two = {1, 1}, four = {4, 2, 3, 3};
  using enum op::kind;
  EXPECT_EQ(with(Convolution, "output_padding", two), status::invalid_graph_op);
  EXPECT_EQ(with(Convolution, "weights_shape", four), status::invalid_graph_op);
  EXPECT_EQ(with(ConvolutionBackwardWeights, "output_padding", two), status::invalid_graph_op);
  EXPECT_EQ(with(ConvolutionBackwardWeights, "dst_shape", four), status::invalid_graph_op);
  EXPECT_EQ(with(ConvolutionBackwardWeights, "weights_shape", four), status::success);
  EXPECT_EQ(with(ConvolutionBackwardData, "dst_shape", four), status::success);
  EXPECT_EQ(with(ConvolutionBackwardData, "output_padding", two), status::success);
  EXPECT_EQ(with(ConvTranspose, "output_padding", two), status::success);
  EXPECT_EQ(with(ConvTransposeBackwardData, "output_padding", two), status::success);
  EXPECT_EQ(with(ConvTransposeBackwardWeights, "output_padding", two), status::success);
  EXPECT_EQ(with(ConvTransposeBackwardWeights, "weights_shape", four), status::success);

  EXPECT_EQ(with(Convolution, "auto_pad", "SAME_LOWER"), status::success);
  EXPECT_EQ(with(Convolution, "auto_pad", "same_lower"), status::success);
  EXPECT_EQ(with(Convolution, "auto_pad", "same"), status::invalid_graph_op);
  EXPECT_EQ(with(Convolution, "data_format", "NXC"), status::success);
  EXPECT_EQ(with(Convolution, "data_format", "NHWC"), status::invalid_graph_op);
  EXPECT_EQ(with(Convolution, "weights_format", "IOX"), status::invalid_graph_op);
  EXPECT_EQ(with(ConvTranspose, "weights_format", "OIX"), status::invalid_graph_op);
  EXPECT_EQ(with(Convolution, "pads_begin", Dims{0, -1}), status::invalid_graph_op);
  EXPECT_EQ(with(Convolution, "pads_end", Dims{-1, 0}), status::invalid_graph_op);

  // Attributes of other operations, and values of another kind.
  op relu_like = WithAttributes(Convolution, WindowAttributes({}));
  relu_like.set_attr<float>(op::attr::alpha, 1.0f);
  EXPECT_EQ(AddOp(relu_like), status::invalid_graph_op);
  op text = WithAttributes(Convolution, WindowAttributes({}));
  text.set_attr<std::string>(op::attr::strides, "1x1");
  EXPECT_EQ(AddOp(text), status::invalid_graph_op);
  op list = WithAttributes(Convolution, WindowAttributes({}));
  list.set_attr<std::vector<float>>(op::attr::groups, {1.0f});
  EXPECT_EQ(AddOp(list), status::invalid_graph_op);
}

TEST(DnnlAddOp, TensorsOfTheOperation) {
  const auto with = [](op::kind kind, const std::vector<ElementType>& inputs,
                       const std::vector<ElementType>& outputs) {
    op made(0, kind, "op");
    for (size_t i = 0; i < inputs.size(); ++i) made.add_input(Unknown(i, inputs[i]));
    for (size_t i = 0; i < outputs.size(); ++i) made.add_output(Unknown(10 + i, outputs[i]));
    SetAttributes(WindowAttributes({.kind = kind}), made);
    return AddOp(made);
  };
  constexpr ElementType f32 = ElementType::f32, bf16 = ElementType::bf16, s32 = ElementType::s32;
  const auto no = status::invalid_graph_op;
  using enum op::kind;
  for (op::kind kind : kFamily) {
    EXPECT_EQ(with(kind, {f32}, {f32}), no);
    EXPECT_EQ(with(kind, {f32, f32}, {}), no);
    EXPECT_EQ(with(kind, {f32, f32}, {f32, f32}), no);
    EXPECT_EQ(with(kind, {f32, f32, f32, f32}, {f32}), no);
    EXPECT_EQ(with(kind, {f32, bf16}, {f32}), no);
    EXPECT_EQ(with(kind, {bf16, bf16}, {f32}), no);
    EXPECT_EQ(with(kind, {bf16, bf16}, {bf16}), status::success);
    EXPECT_EQ(with(kind, {s32, s32}, {s32}), no);
    EXPECT_EQ(with(kind, {f32, f32}, {ElementType::undef}), no);
  }
  EXPECT_EQ(with(Convolution, {f32, f32, f32}, {f32}), status::success);
  EXPECT_EQ(with(Convolution, {f32, f32, s32}, {f32}), no);
  EXPECT_EQ(with(ConvolutionBackwardData, {f32, f32, s32}, {f32}), status::success);
  EXPECT_EQ(with(ConvolutionBackwardWeights, {f32, f32, ElementType::s64}, {f32}), status::success);
  EXPECT_EQ(with(ConvolutionBackwardWeights, {f32, f32, f32}, {f32}), no);
  EXPECT_EQ(with(ConvTransposeBackwardData, {f32, f32, s32}, {f32}), no);
}

// Of operations that convgrad does not run: an attribute's number says what kind of value it has.
TEST(DnnlAddOp, KindsOfValuesOfOtherOperations) {
  const auto add = [](op::kind kind, const std::function<void(op&)>& set) {
    op made(1, kind, {F32(1), F32(2)}, {F32(3)}, "other");
    set(made);
    graph g(dnnl::engine::kind::cpu);
    return g.add_op(made, false);
  };
  using dnnl::graph::status;
  using attr = op::attr;
  constexpr op::kind matmul = op::kind::MatMul;
  EXPECT_EQ(add(matmul, [](op& o) { o.set_attr<bool>(attr::transpose_a, true); }), status::success);
  EXPECT_EQ(add(matmul, [](op& o) { o.set_attr<int64_t>(attr::transpose_a, 1); }),
            status::invalid_graph_op);
  EXPECT_STREQ(convgrad_dnnl_last_error(),
               "MatMul with id 1: attribute transpose_a is of s64[], expected bool");
  EXPECT_EQ(add(matmul, [](op& o) { o.set_attr<std::string>(attr::axis, "1"); }),
            status::invalid_graph_op);
  EXPECT_EQ(add(op::kind::Elu, [](op& o) { o.set_attr<float>(attr::alpha, 1); }), status::success);
  EXPECT_EQ(add(op::kind::Elu, [](op& o) { o.set_attr<int64_t>(attr::alpha, 1); }),
            status::invalid_graph_op);
  EXPECT_EQ(add(op::kind::Quantize,
                [](op& o) {
                  o.set_attr<std::vector<float>>(attr::scales, {1});
                  o.set_attr<std::vector<int64_t>>(attr::zps, {0});
                  o.set_attr<std::string>(attr::qtype, "per_tensor");
                  o.set_attr<int64_t>(attr::axis, 1);
                }),
            status::success);
  // A wildcard stands for anything.
  EXPECT_EQ(add(op::kind::Wildcard, [](op& o) { o.set_attr<int64_t>(attr::alpha, 1); }),
            status::success);
}

TEST(DnnlGraph, StatesOfAGraph) {
  graph g(Engine::kind::cpu, dnnl::fpmath_mode::tf32);
  dnnl::fpmath_mode mode = dnnl::fpmath_mode::strict;
  bool to_int = true;
  g.get_fpmath_mode(mode, to_int);
  EXPECT_EQ(mode, dnnl::fpmath_mode::tf32);
  EXPECT_FALSE(to_int);
  g.set_fpmath_mode(dnnl::fpmath_mode::any, true);
  g.get_fpmath_mode(mode, to_int);
  EXPECT_EQ(mode, dnnl::fpmath_mode::any);
  EXPECT_TRUE(to_int);

  EXPECT_FALSE(g.is_finalized());
  EXPECT_EQ(StatusOf([&] { g.get_partitions(); }), dnnl_invalid_graph);
  EXPECT_EQ(g.add_op(Layer(5, 0, 1)), status::success);
  EXPECT_EQ(g.add_op(op(5, op::kind::Convolution)), status::success) << "the id is known: ignored";
  op wrong(6, op::kind::Convolution);
  EXPECT_EQ(StatusOf([&] { g.add_op(wrong); }), dnnl_invalid_graph_op);
  EXPECT_EQ(g.add_op(wrong, false), status::invalid_graph_op);
  g.finalize();
  g.finalize();
  EXPECT_TRUE(g.is_finalized());
  EXPECT_EQ(g.add_op(Layer(7, 1, 2), false), status::invalid_graph);
  EXPECT_EQ(StatusOf([&] { g.set_fpmath_mode(dnnl::fpmath_mode::any); }), dnnl_invalid_graph);
  for (partition::policy policy : {partition::policy::fusion, partition::policy::debug}) {
    const std::vector<partition> once = g.get_partitions(policy), again = g.get_partitions(policy);
    ASSERT_EQ(once.size(), 1u);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(once[0].get_ops(), std::vector<size_t>{5});
  }
  const auto no = dnnl_invalid_arguments;
  const auto bad_mode = static_cast<dnnl::fpmath_mode>(99);
  const auto bad_kind = static_cast<Engine::kind>(42);
  EXPECT_EQ(StatusOf([&] { graph(Engine::kind::cpu, bad_mode); }), no);
  EXPECT_EQ(StatusOf([&] { graph{bad_kind}; }), no);
  EXPECT_EQ(StatusOf([&] { partition(Layer(5, 0, 1), bad_kind); }), no);
  EXPECT_EQ(StatusOf([&] { g.get_partitions(static_cast<partition::policy>(7)); }), no);
  graph empty(Engine::kind::cpu);
  EXPECT_EQ(StatusOf([&] { empty.set_fpmath_mode(bad_mode); }), no);
  empty.finalize();
  EXPECT_TRUE(empty.get_partitions().empty());
}

TEST(DnnlGraph, FinalizeFindsContradictions) {
  const auto finalize = [](const std::vector<op>& ops) {
    graph g(Engine::kind::cpu);
    for (const op& o : ops) g.add_op(o);
    return StatusOf([&] { g.finalize(); });
  };
  constexpr op::kind relu = op::kind::ReLU;
  EXPECT_EQ(finalize({Elementwise(0, relu, 0, 1), Elementwise(1, relu, 1, 2)}), dnnl_success);
  EXPECT_EQ(finalize({Elementwise(0, relu, 0, 1), Elementwise(1, relu, 1, 0)}), dnnl_invalid_graph);
  EXPECT_EQ(finalize({Elementwise(0, relu, 3, 3)}), dnnl_invalid_graph);
  EXPECT_EQ(finalize({Elementwise(0, relu, 0, 2), Elementwise(1, relu, 1, 2)}), dnnl_invalid_graph);
  const auto uses = [&](const logical_tensor& lt) {
    return finalize({Elementwise(0, relu, 0, 1), op(1, relu, {lt}, {F32(2)})});
  };
  EXPECT_EQ(uses(F32(1)), dnnl_success);
  EXPECT_EQ(uses(Unknown(1, ElementType::f16)), dnnl_invalid_graph);
  EXPECT_EQ(uses(logical_tensor(1, ElementType::f32, Layout::any)), dnnl_invalid_graph);
  EXPECT_EQ(uses(logical_tensor(1, ElementType::f32, 4, Layout::undef)), dnnl_invalid_graph);
  EXPECT_EQ(uses(logical_tensor(1, ElementType::f32, -1, Layout::undef, Property::constant)),
            dnnl_invalid_graph);
  EXPECT_EQ(StatusOf([] { partition(Elementwise(0, op::kind::ReLU, 3, 3), Engine::kind::cpu); }),
            dnnl_invalid_graph);
}

TEST(DnnlGraph, PartitionsInTopologicalOrder) {
  graph g(Engine::kind::cpu);
  g.add_op(Layer(30, 3, 4));
  g.add_op(Elementwise(20, op::kind::ReLU, 2, 3));
  g.add_op(Layer(10, 1, 2));
  g.add_op(op(40, op::kind::End, {F32(4)}, {}));
  g.add_op(op(50, op::kind::Wildcard, {}, {F32(1)}));
  g.finalize();
  const std::vector<partition> partitions = g.get_partitions();
  ASSERT_EQ(partitions.size(), 5u);
  const size_t order[] = {50, 10, 20, 30, 40};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(partitions[i].get_ops(), std::vector<size_t>{order[i]});
    EXPECT_EQ(partitions[i].get_ops_num(), 1u);
    EXPECT_EQ(partitions[i].is_supported(), i == 1 || i == 3);
    EXPECT_EQ(partitions[i].get_engine_kind(), Engine::kind::cpu);
    if (i == 0) continue;
    EXPECT_NE(partitions[i].get_id(), partitions[i - 1].get_id());
  }
  ASSERT_EQ(partitions[1].get_input_ports().size(), 2u);
  EXPECT_TRUE(partitions[1].get_input_ports()[0].is_equal(F32(1)));
  EXPECT_TRUE(partitions[1].get_input_ports()[1].is_equal(F32(1002)));
  ASSERT_EQ(partitions[1].get_output_ports().size(), 1u);
  EXPECT_TRUE(partitions[1].get_output_ports()[0].is_equal(F32(2)));
  EXPECT_TRUE(partitions[4].get_output_ports().empty());
  EXPECT_EQ(StatusOf([&] { partitions[2].compile({F32(2)}, {F32(3)}, Cpu()); }),
            dnnl_invalid_arguments);
  graph independent(
      Engine::kind::cpu);  // those that do not depend on each other: as they were added
  for (size_t id : {7, 3, 9}) independent.add_op(Layer(id, 10 * id, 10 * id + 1));
  independent.finalize();
  std::vector<size_t> ids;
  for (const partition& p : independent.get_partitions()) ids.push_back(p.get_ops().at(0));
  EXPECT_EQ(ids, (std::vector<size_t>{7, 3, 9}));
  graph gpu(Engine::kind::gpu);
  gpu.add_op(Layer(0, 0, 1));
  gpu.finalize();
  EXPECT_FALSE(gpu.get_partitions().at(0).is_supported());
}

TEST(DnnlPartition, OfOneOperation) {
  const Problem problem = MakeProblem({});
  const partition single(MakeOp(problem, 77), Engine::kind::cpu);
  EXPECT_TRUE(single.is_supported());
  EXPECT_EQ(single.get_ops(), std::vector<size_t>{77});
  EXPECT_EQ(single
                .compile(InputTensors(problem),
                         {logical_tensor(kOutputId, ElementType::f32, Layout::any)}, Cpu())
                .query_logical_tensor(kOutputId)
                .get_dims(),
            problem.output);
  EXPECT_FALSE(partition(op(0, op::kind::Wildcard), Engine::kind::cpu).is_supported());
  EXPECT_EQ(StatusOf([] { partition(op(0, op::kind::Convolution), Engine::kind::cpu); }),
            dnnl_invalid_graph_op);
  EXPECT_EQ(StatusOf([] { partition().get_id(); }), dnnl_invalid_arguments);
}

TEST(DnnlCompile, InfersWhatIsUnknown) {
  const Problem problem = MakeProblem({.kind = op::kind::ConvTranspose});
  const partition p = OnlyPartition(MakeOp(problem));
  std::vector<logical_tensor> inputs = InputTensors(problem);
  inputs[1] = logical_tensor(1, ElementType::f32, problem.inputs[1], Layout::any);
  const logical_tensor complete(kOutputId, ElementType::f32, problem.output, Layout::strided);
  for (const logical_tensor& output :
       {logical_tensor(kOutputId, ElementType::f32, Layout::any),
        logical_tensor(kOutputId, ElementType::f32, Layout::strided),
        logical_tensor(kOutputId, ElementType::f32, 4, Layout::strided),
        logical_tensor(kOutputId, ElementType::f32, Dims{-1, INT64_MIN, -1, -1}, Layout::any),
        logical_tensor(kOutputId, ElementType::f32, problem.output, Layout::any), complete}) {
    const compiled_partition compiled = p.compile(inputs, {output}, Cpu());
    EXPECT_TRUE(compiled.query_logical_tensor(kOutputId).is_equal(complete));
    EXPECT_TRUE(compiled.get_inplace_ports().empty());
    const logical_tensor weights(1, ElementType::f32, problem.inputs[1], Layout::strided);
    EXPECT_TRUE(compiled.query_logical_tensor(1).is_equal(weights)) << "any is dense";
    const logical_tensor none = compiled.query_logical_tensor(55);
    EXPECT_EQ(none.get_id(), SIZE_MAX);
    EXPECT_EQ(none.get_data_type(), ElementType::undef);
    EXPECT_EQ(StatusOf([&] { none.get_dims(); }), dnnl_invalid_arguments);
  }
}

TEST(DnnlCompile, Refusals) {
  const Problem problem = MakeProblem({});
  const partition p = OnlyPartition(MakeOp(problem));
  const std::vector<logical_tensor> in = InputTensors(problem);
  const logical_tensor out(kOutputId, ElementType::f32, Layout::any);
  const auto compile = [&](const std::vector<logical_tensor>& inputs,
                           const std::vector<logical_tensor>& outputs) {
    return StatusOf([&] { p.compile(inputs, outputs, Cpu()); });
  };
  const auto weights = [&](const logical_tensor& lt) { return compile({in[0], lt}, {out}); };
  const Dims shape = problem.inputs[1];
  constexpr ElementType f32 = ElementType::f32;
  EXPECT_EQ(compile(in, {out}), dnnl_success);
  EXPECT_EQ(compile({in[0]}, {out}), dnnl_invalid_arguments);
  EXPECT_EQ(compile(in, {}), dnnl_invalid_arguments);
  EXPECT_EQ(compile(in, {F32(kOutputId)}), dnnl_invalid_arguments);  // no layout
  EXPECT_EQ(compile(in, {logical_tensor(kOutputId, ElementType::undef, Layout::any)}),
            dnnl_invalid_arguments);
  EXPECT_EQ(weights(logical_tensor(1, f32, shape, Layout::undef)), dnnl_invalid_arguments);
  EXPECT_EQ(weights(logical_tensor(1, f32, 4, Layout::strided)), dnnl_invalid_arguments);
  EXPECT_EQ(weights(logical_tensor(1, f32, Layout::any)), dnnl_invalid_arguments);
  EXPECT_EQ(weights(logical_tensor(1, f32, shape, size_t{3})), dnnl_invalid_arguments);  // opaque
  EXPECT_EQ(weights(logical_tensor(1, f32, Dims{6, 9, 3, 3}, Layout::strided)), dnnl_invalid_shape);
  EXPECT_EQ(weights(logical_tensor(1, f32, Dims{6, 2, 3}, Layout::strided)), dnnl_invalid_shape);
  EXPECT_EQ(weights(logical_tensor(1, f32, Dims{6, 2, 99, 3}, Layout::strided)),
            dnnl_invalid_shape);  // larger than the padded input
  EXPECT_EQ(weights(logical_tensor(1, ElementType::f16, shape, Layout::strided)),
            dnnl_invalid_data_type);
  EXPECT_EQ(compile(in, {logical_tensor(kOutputId, f32, Dims{2, 6, 9, 9}, Layout::strided)}),
            dnnl_invalid_shape);
  EXPECT_EQ(compile(in, {logical_tensor(kOutputId, ElementType::bf16, Layout::any)}),
            dnnl_invalid_data_type);
  EXPECT_EQ(StatusOf([&] { p.compile(in, {out}, Engine()); }), dnnl_invalid_arguments);
  // Plans can widen gradients of 16-bit data, the graph API does not.
  const Problem narrow =
      MakeProblem({.kind = op::kind::ConvolutionBackwardWeights, .type = ElementType::bf16});
  EXPECT_EQ(StatusOf([&] {
              OnlyPartition(MakeOp(narrow))
                  .compile(InputTensors(narrow), {logical_tensor(kOutputId, f32, Layout::any)},
                           Cpu());
            }),
            dnnl_invalid_data_type);
  // Extra tensors are ignored, also ones in front.
  std::vector<logical_tensor> more = in;
  more.insert(more.begin(), F32(4711));
  EXPECT_EQ(compile(more, {F32(4712), out}), dnnl_success);
}

TEST(DnnlCompile, BadWindowsAreRefusedNotComputed) {
  for (const char* name : {"strides", "dilations"}) {
    Problem problem = MakeProblem({});
    problem.attributes.Set(name, Dims{0, 1});
    EXPECT_EQ(StatusOf([&] { Compile(problem, Cpu()); }), dnnl_invalid_arguments) << name;
  }
  for (const char* name : {"strides", "dilations", "pads_begin", "pads_end"}) {
    for (const Dims& list : {Dims{1}, Dims{1, 1, 1}}) {
      Problem problem = MakeProblem({});
      problem.attributes.Set(name, list);
      EXPECT_EQ(StatusOf([&] { Compile(problem, Cpu()); }), dnnl_invalid_shape) << name;
      EXPECT_NE(std::string(convgrad_dnnl_last_error()).find(name), std::string::npos);
    }
  }
  Problem problem = MakeProblem({});
  problem.attributes.Set("groups", 0);
  EXPECT_EQ(StatusOf([&] { Compile(problem, Cpu()); }), dnnl_invalid_arguments);
  problem.attributes.Set("groups", 3);
  EXPECT_EQ(StatusOf([&] { Compile(problem, Cpu()); }), dnnl_invalid_shape);
  Problem weights = MakeProblem({.kind = op::kind::ConvolutionBackwardWeights});
  weights.attributes.Set("weights_shape", Dims{6, 2, 3, 1});
  EXPECT_EQ(StatusOf([&] { Compile(weights, Cpu()); }), dnnl_invalid_shape);
}

// A negative stride is one that is not known: some clients write -1, others INT64_MIN.
TEST(DnnlCompile, UnknownStridesAreAllOrNone) {
  const Problem problem = MakeProblem({});
  const partition p = OnlyPartition(MakeOp(problem));
  const std::vector<logical_tensor> in = InputTensors(problem);
  const logical_tensor complete(kOutputId, ElementType::f32, problem.output, Layout::strided);
  const auto with_output = [&](const Dims& strides) {
    return p.compile(in, {logical_tensor(kOutputId, ElementType::f32, problem.output, strides)},
                     Cpu());
  };
  for (int64_t unknown : {int64_t{-1}, int64_t{INT64_MIN}}) {
    EXPECT_TRUE(with_output(Dims(4, unknown)).query_logical_tensor(kOutputId).is_equal(complete));
    Dims partly = complete.get_strides();
    partly[0] = unknown;
    EXPECT_EQ(StatusOf([&] { with_output(partly); }), dnnl_invalid_arguments);
    EXPECT_NE(std::string(convgrad_dnnl_last_error()).find("all or none"), std::string::npos);
    Dims of_weights = in[1].get_strides();
    of_weights[2] = unknown;
    const logical_tensor weights(1, ElementType::f32, problem.inputs[1], of_weights);
    EXPECT_EQ(StatusOf([&] {
                p.compile({in[0], weights}, {complete}, Cpu());
              }),
              dnnl_invalid_arguments);
  }
}

// Whatever is destroyed first, what is left works.
TEST(DnnlLifeTimes, InAnyOrder) {
  const Problem problem = MakeProblem({});
  auto made = std::make_unique<op>(MakeOp(problem));
  auto g = std::make_unique<graph>(Engine::kind::cpu);
  g->add_op(*made);
  made.reset();
  g->finalize();
  std::vector<partition> partitions = g->get_partitions();
  g.reset();
  EXPECT_TRUE(partitions.at(0).is_supported());
  auto engine = std::make_unique<Engine>(Engine::kind::cpu, 0);
  const compiled_partition compiled = partitions[0].compile(
      InputTensors(problem), {logical_tensor(kOutputId, ElementType::f32, Layout::any)}, *engine);
  partitions.clear();
  std::optional<dnnl::stream> stream(*engine);
  std::vector<Bytes> data = InputData(problem);
  const std::vector<tensor> inputs = TensorsOf(problem, data, *engine);
  const tensor output(compiled.query_logical_tensor(kOutputId), *engine);
  engine.reset();
  compiled.execute(*stream, inputs, {output});
  stream.reset();
  const Bytes expected = Expected(problem);
  EXPECT_EQ(std::memcmp(output.get_data_handle(), expected.data(), expected.size()), 0);

  compiled_partition moved = compiled;
  const compiled_partition kept = std::move(moved);
  EXPECT_EQ(kept.query_logical_tensor(kOutputId).get_dims(), problem.output);
  EXPECT_EQ(StatusOf([&] { moved.get_inplace_ports(); }), dnnl_invalid_arguments);  // NOLINT
}

// An op is copied when it is added: what is done to it later does not matter.
TEST(DnnlLifeTimes, AnAddedOpIsACopy) {
  const Problem problem = MakeProblem({});
  op made = MakeOp(problem);
  graph g(Engine::kind::cpu);
  g.add_op(made);
  made.set_attr<int64_t>(op::attr::groups, 1);
  made.add_input(F32(9));
  g.finalize();
  const partition p = g.get_partitions().at(0);
  EXPECT_EQ(p.get_input_ports().size(), 2u);
  EXPECT_EQ(p.compile(InputTensors(problem),
                      {logical_tensor(kOutputId, ElementType::f32, Layout::any)}, Cpu())
                .query_logical_tensor(kOutputId)
                .get_dims(),
            problem.output);
}

}  // namespace
}  // namespace convgrad::tests
