// One operation of the family, as convgrad's own API and as the dnnl::graph API describe it, with
// small-integer data: what both compute must be the same bytes.
#ifndef CONVGRAD_TESTS_DNNL_PROBLEM_H_
#define CONVGRAD_TESTS_DNNL_PROBLEM_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/convgrad.hpp"
#include "oneapi/dnnl/dnnl_graph.hpp"

namespace convgrad::tests {

using dnnl::graph::compiled_partition;
using dnnl::graph::graph;
using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::partition;
using dnnl::graph::tensor;
using Layout = logical_tensor::layout_type;
using Property = logical_tensor::property_type;
using ElementType = logical_tensor::data_type;
using Bytes = std::vector<std::byte>;

constexpr op::kind kFamily[] = {op::kind::Convolution,
                                op::kind::ConvolutionBackwardData,
                                op::kind::ConvolutionBackwardWeights,
                                op::kind::ConvTranspose,
                                op::kind::ConvTransposeBackwardData,
                                op::kind::ConvTransposeBackwardWeights};

// The same window along every axis.
struct Geometry {
  op::kind kind = op::kind::Convolution;
  ElementType type = ElementType::f32;
  int spatial = 2;
  int64_t batch = 2, groups = 2, icg = 2, ocg = 3;  // channels of one group
  int64_t src = 7, taps = 3, stride = 2, dilation = 1, pad_begin = 1, pad_end = 0;
  int64_t output_padding = 0;
  bool bias = false;
  std::string auto_pad = "none";
  bool channels_last = false;          // NXC, else NCX
  bool spatial_first_weights = false;  // XIO and XOI, else OIX and IOX

  bool transposed() const { return kind >= op::kind::ConvTranspose; }
};

// In the words of convgrad; inputs in the order of the specification.
struct Problem {
  op::kind kind;
  ElementType type;
  Attributes attributes;
  std::vector<Dims> inputs;
  Dims output;
};

inline OpKind OwnKind(op::kind kind) {
  return static_cast<OpKind>(static_cast<int>(kind) - static_cast<int>(op::kind::Convolution));
}

inline DataType OwnType(ElementType type) {
  switch (type) {
    case ElementType::bf16:
      return DataType::kBF16;
    case ElementType::f16:
      return DataType::kF16;
    case ElementType::s32:
      return DataType::kS32;
    case ElementType::s64:
      return DataType::kS64;
    default:
      return DataType::kF32;
  }
}

inline Dims DataShape(const Geometry& g, int64_t channels, int64_t extent) {
  Dims shape(static_cast<size_t>(g.spatial), extent);
  shape.insert(g.channels_last ? shape.end() : shape.begin(), channels);
  shape.insert(shape.begin(), g.batch);
  return shape;
}

// OIX (OC, ICg, K), XIO (K, ICg, OC); IOX (IC, OCg, K), XOI (K, OCg, IC).
inline Dims WeightsShape(const Geometry& g) {
  const int64_t outer = g.groups * (g.transposed() ? g.icg : g.ocg);
  const int64_t inner = g.transposed() ? g.ocg : g.icg;
  Dims shape(static_cast<size_t>(g.spatial), g.taps);
  const auto at = g.spatial_first_weights ? shape.end() : shape.begin();
  if (g.spatial_first_weights) {
    shape.insert(at, {inner, outer});
  } else {
    shape.insert(at, {outer, inner});
  }
  return shape;
}

inline Attributes WindowAttributes(const Geometry& g) {
  const auto each = [&](int64_t value) { return Dims(static_cast<size_t>(g.spatial), value); };
  const char* spatial_first = g.transposed() ? "XOI" : "XIO";
  const char* channels_first = g.transposed() ? "IOX" : "OIX";
  Attributes attributes = {
      {"strides", each(g.stride)},
      {"pads_begin", each(g.pad_begin)},
      {"pads_end", each(g.pad_end)},
      {"dilations", each(g.dilation)},
      {"auto_pad", g.auto_pad},
      {"groups", g.groups},
      {"data_format", g.channels_last ? "NXC" : "NCX"},
      {"weights_format", g.spatial_first_weights ? spatial_first : channels_first}};
  if (g.output_padding > 0) attributes.Set("output_padding", each(g.output_padding));
  return attributes;
}

inline std::vector<TensorDesc> Descs(ElementType type, const std::vector<Dims>& shapes) {
  std::vector<TensorDesc> descs;
  for (const Dims& shape : shapes) descs.push_back({OwnType(type), shape, {}, {}});
  return descs;
}

// The extents of dst are those that convgrad infers for the forward operation.
inline Problem MakeProblem(const Geometry& g) {
  const Dims src = DataShape(g, g.groups * g.icg, g.src), weights = WeightsShape(g);
  const op::kind forward = g.transposed() ? op::kind::ConvTranspose : op::kind::Convolution;
  const Result<Plan> plan =
      Plan::Make({OwnKind(forward), WindowAttributes(g)}, Descs(ElementType::f32, {src, weights}));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const Dims dst = plan.ok() ? plan->output().extents : Dims();
  Problem problem{g.kind, g.type, WindowAttributes(g), {src, weights}, dst};
  switch (g.kind) {
    case op::kind::ConvolutionBackwardData:
      problem.attributes.Set("dst_shape", src);
      [[fallthrough]];
    case op::kind::ConvTransposeBackwardData:
      problem.inputs = {dst, weights};
      problem.output = src;
      break;
    case op::kind::ConvolutionBackwardWeights:
    case op::kind::ConvTransposeBackwardWeights:
      problem.attributes.Set("weights_shape", weights);
      problem.inputs = {src, dst};
      problem.output = weights;
      break;
    default:
      if (g.bias) problem.inputs.push_back({g.groups * g.ocg});
  }
  return problem;
}

inline size_t Elements(const Dims& shape) {
  size_t count = 1;
  for (int64_t extent : shape) count *= static_cast<size_t>(extent);
  return count;
}

// -3 to 3: every sum of products of these tests is exact in f32, and rounded once.
inline Bytes SmallIntegers(ElementType type, size_t count, uint32_t seed) {
  constexpr uint16_t kBF16[] = {0x0000, 0x3f80, 0x4000, 0x4040};
  constexpr uint16_t kF16[] = {0x0000, 0x3c00, 0x4000, 0x4200};
  const size_t size = type == ElementType::f32 ? 4 : 2;
  Bytes bytes(count * size);
  std::minstd_rand random(seed);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t draw = static_cast<uint32_t>(random() >> 8);
    const bool negative = (draw & 4) != 0;
    const float f32 = negative ? -static_cast<float>(draw & 3) : static_cast<float>(draw & 3);
    const uint16_t bits = (type == ElementType::bf16 ? kBF16 : kF16)[draw & 3];
    const uint16_t half = static_cast<uint16_t>(bits | (negative ? 0x8000 : 0));
    std::memcpy(&bytes[i * size], size == 4 ? static_cast<const void*>(&f32) : &half, size);
  }
  return bytes;
}

inline std::vector<Bytes> InputData(const Problem& problem) {
  std::vector<Bytes> data;
  for (const Dims& shape : problem.inputs) {
    const uint32_t seed = static_cast<uint32_t>(data.size() + 1);
    data.push_back(SmallIntegers(problem.type, Elements(shape), seed));
  }
  return data;
}

// By the oracle.
inline Bytes Expected(const Problem& problem) {
  const std::vector<Bytes> data = InputData(problem);
  std::vector<ConstTensorView> inputs;
  for (size_t i = 0; i < data.size(); ++i) {
    inputs.emplace_back(static_cast<const void*>(data[i].data()), OwnType(problem.type),
                        problem.inputs[i]);
  }
  const size_t size = problem.type == ElementType::f32 ? 4 : 2;
  Bytes output(Elements(problem.output) * size);
  Options options;
  options.kernel = "oracle";
  const TensorView view(static_cast<void*>(output.data()), OwnType(problem.type), problem.output);
  const Status status = Run({OwnKind(problem.kind), problem.attributes}, inputs, {view}, options);
  EXPECT_TRUE(status.ok()) << status.message();
  return output;
}

constexpr size_t kOutputId = 100;  // inputs have the ids 0, 1 and 2

inline logical_tensor Unknown(size_t id, ElementType type) { return logical_tensor(id, type); }

inline op::attr AttributeNamed(const std::string& name) {
  constexpr std::pair<const char*, op::attr> kNames[] = {
      {"strides", op::attr::strides},
      {"pads_begin", op::attr::pads_begin},
      {"pads_end", op::attr::pads_end},
      {"dilations", op::attr::dilations},
      {"auto_pad", op::attr::auto_pad},
      {"groups", op::attr::groups},
      {"data_format", op::attr::data_format},
      {"weights_format", op::attr::weights_format},
      {"output_padding", op::attr::output_padding},
      {"dst_shape", op::attr::dst_shape},
      {"weights_shape", op::attr::weights_shape}};
  for (const auto& [known, attribute] : kNames) {
    if (name == known) return attribute;
  }
  ADD_FAILURE() << name;
  return op::attr::undef;
}

inline void SetAttributes(const Attributes& attributes, op& target) {
  for (const auto& [name, value] : attributes.entries()) {
    const op::attr attribute = AttributeNamed(name);
    if (value.s64() != nullptr) target.set_attr<int64_t>(attribute, *value.s64());
    if (value.list() != nullptr) target.set_attr<Dims>(attribute, *value.list());
    if (value.text() != nullptr) target.set_attr<std::string>(attribute, *value.text());
  }
}

// With tensors of unknown shape and layout, as clients build them.
inline op MakeOp(const Problem& problem, size_t id = 0) {
  op made(id, problem.kind, "op");
  for (size_t i = 0; i < problem.inputs.size(); ++i) made.add_input(Unknown(i, problem.type));
  made.add_output(Unknown(kOutputId, problem.type));
  SetAttributes(problem.attributes, made);
  return made;
}

inline partition OnlyPartition(const op& made) {
  graph g(dnnl::engine::kind::cpu);
  g.add_op(made);
  g.finalize();
  return g.get_partitions().at(0);
}

inline std::vector<logical_tensor> InputTensors(const Problem& problem) {
  std::vector<logical_tensor> tensors;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    tensors.emplace_back(i, problem.type, problem.inputs[i], Layout::strided);
  }
  return tensors;
}

inline compiled_partition Compile(const Problem& problem, const dnnl::engine& engine) {
  return OnlyPartition(MakeOp(problem))
      .compile(InputTensors(problem), {logical_tensor(kOutputId, problem.type, Layout::any)},
               engine);
}

// Tensors of the caller's memory, in the compiled shapes.
inline std::vector<tensor> TensorsOf(const Problem& problem, std::vector<Bytes>& data,
                                     const dnnl::engine& engine) {
  std::vector<tensor> tensors;
  const std::vector<logical_tensor> inputs = InputTensors(problem);
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.emplace_back(inputs[i], engine, data[i].data());
  }
  return tensors;
}

// From an op of unknown shapes to the result.
inline Bytes Computed(const Problem& problem) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const compiled_partition compiled = Compile(problem, engine);
  const logical_tensor result = compiled.query_logical_tensor(kOutputId);
  EXPECT_EQ(result.get_dims(), problem.output);
  Bytes output(result.get_mem_size());
  std::vector<Bytes> data = InputData(problem);
  dnnl::stream stream(engine);
  compiled.execute(stream, TensorsOf(problem, data, engine),
                   {tensor(result, engine, output.data())});
  stream.wait();
  return output;
}

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_DNNL_PROBLEM_H_
