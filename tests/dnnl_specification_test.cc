// The six operations through the dnnl::graph API against loops that are written from the
// specification's words: defaults of attributes, pads of auto_pad, layouts of grouped weights.
// Nothing of convgrad takes part in what is expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl_graph.hpp"

namespace {

using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::tensor;
using Dims = logical_tensor::dims;
using Layout = logical_tensor::layout_type;
using Type = logical_tensor::data_type;

constexpr int64_t kBatch = 2, kLargeOfGroup = 3, kSmallOfGroup = 2;
constexpr int64_t kTaps[] = {3, 2}, kStride[] = {2, 3}, kDilation[] = {2, 1};
constexpr int64_t kBegin[] = {1, 0}, kEnd[] = {2, 1}, kSmallExtent[] = {4, 3};

constexpr op::kind kFamily[] = {op::kind::Convolution,
                                op::kind::ConvolutionBackwardData,
                                op::kind::ConvolutionBackwardWeights,
                                op::kind::ConvTranspose,
                                op::kind::ConvTransposeBackwardData,
                                op::kind::ConvTransposeBackwardWeights};

struct Case {
  op::kind kind;
  int64_t groups = 1;
  bool channels_first = false;  // NCX with OIX or IOX; else the defaults, which are not set
  std::string auto_pad = "";    // not set
  bool channels_of_group_first = false;  // (ICg, OC, K...) of a grouped ConvTranspose

  bool transposed() const { return kind >= op::kind::ConvTranspose; }
};

// Of the tensors on both sides of the window, "large" is the one that it moves over: src of
// Convolution, dst of ConvTranspose. large at = small at * stride + tap * dilation - begin.
struct Window {
  int64_t large[2], begin[2];
};

Window WindowOf(const Case& c) {
  Window window;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t reach = (kTaps[axis] - 1) * kDilation[axis] + 1, stride = kStride[axis];
    const int64_t dense = (kSmallExtent[axis] - 1) * stride + reach;
    if (c.auto_pad.empty()) {
      window.begin[axis] = kBegin[axis];
      window.large[axis] = dense - kBegin[axis] - kEnd[axis];
      continue;
    }
    // 7 is no multiple of 2 or 3: a Convolution's last window sees one element of its stride.
    int64_t total = std::max<int64_t>(0, reach - stride);
    if (!c.transposed()) total = std::max<int64_t>(0, reach - 7 % stride);
    window.large[axis] = c.transposed() ? dense - total : 7;
    const int64_t lesser = total / 2;
    window.begin[axis] = c.auto_pad == "SAME_UPPER" ? lesser : total - lesser;
  }
  return window;
}

struct Array {
  Dims shape;
  std::vector<float> values;

  explicit Array(const Dims& extents) : shape(extents) {
    int64_t count = 1;
    for (int64_t extent : extents) count *= extent;
    values.resize(static_cast<size_t>(count));
  }
  float& at(const Dims& index) {
    int64_t place = 0;
    for (size_t i = 0; i < shape.size(); ++i) place = place * shape[i] + index[i];
    return values[static_cast<size_t>(place)];
  }
  void Fill(uint32_t seed) {
    for (float& value : values) {
      seed = seed * 1664525 + 1013904223;
      value = static_cast<float>(seed >> 29) - 3;
    }
  }
};

class Correlation {
 public:
  explicit Correlation(const Case& c)
      : case_(c),
        window_(WindowOf(c)),
        large_(Data(c.groups * kLargeOfGroup, window_.large[0], window_.large[1])),
        small_(Data(c.groups * kSmallOfGroup, kSmallExtent[0], kSmallExtent[1])),
        weights_(WeightsAt(WeightRows(), WeightColumns(), kTaps[0], kTaps[1])) {
    large_.Fill(1);
    small_.Fill(2);
    weights_.Fill(3);
  }

  std::vector<Array*> inputs() {
    switch (case_.kind) {
      case op::kind::Convolution:
      case op::kind::ConvTransposeBackwardData:
        return {&large_, &weights_};
      case op::kind::ConvolutionBackwardData:
      case op::kind::ConvTranspose:
        return {&small_, &weights_};
      case op::kind::ConvolutionBackwardWeights:
        return {&large_, &small_};
      default:
        return {&small_, &large_};
    }
  }
  Array& output() {
    const std::vector<Array*> used = inputs();
    for (Array* array : {&large_, &small_}) {
      if (array != used[0] && array != used[1]) return *array;
    }
    return weights_;
  }

  void Compute() {
    std::ranges::fill(output().values, 0.0f);
    for (int64_t n = 0; n < kBatch; ++n) {
      for (int64_t g = 0; g < case_.groups; ++g) {
        for (int64_t l = 0; l < kLargeOfGroup; ++l) {
          for (int64_t s = 0; s < kSmallOfGroup; ++s) AddChannels(n, g, l, s);
        }
      }
    }
  }

 private:
  Dims Data(int64_t second, int64_t h, int64_t w) const { return DataAt(kBatch, second, h, w); }
  Dims DataAt(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return case_.channels_first ? Dims{n, c, h, w} : Dims{n, h, w, c};
  }
  // OIX, IOX: rows first; XIO, XOI: rows last.
  Dims WeightsAt(int64_t row, int64_t column, int64_t kh, int64_t kw) const {
    return case_.channels_first ? Dims{row, column, kh, kw} : Dims{kh, kw, column, row};
  }
  int64_t WeightRows() const {
    return kSmallOfGroup * (case_.channels_of_group_first ? 1 : case_.groups);
  }
  int64_t WeightColumns() const {
    return kLargeOfGroup * (case_.channels_of_group_first ? case_.groups : 1);
  }

  void AddChannels(int64_t n, int64_t g, int64_t l, int64_t s) {
    const int64_t row = case_.channels_of_group_first ? s : g * kSmallOfGroup + s;
    const int64_t column = case_.channels_of_group_first ? g * kLargeOfGroup + l : l;
    for (int64_t y = 0; y < kSmallExtent[0]; ++y) {
      for (int64_t x = 0; x < kSmallExtent[1]; ++x) {
        for (int64_t kh = 0; kh < kTaps[0]; ++kh) {
          for (int64_t kw = 0; kw < kTaps[1]; ++kw) {
            const int64_t h = y * kStride[0] + kh * kDilation[0] - window_.begin[0];
            const int64_t w = x * kStride[1] + kw * kDilation[1] - window_.begin[1];
            if (h < 0 || h >= window_.large[0] || w < 0 || w >= window_.large[1]) continue;
            AddProduct(large_.at(DataAt(n, g * kLargeOfGroup + l, h, w)),
                       small_.at(DataAt(n, g * kSmallOfGroup + s, y, x)),
                       weights_.at(WeightsAt(row, column, kh, kw)));
          }
        }
      }
    }
  }
  void AddProduct(float& large, float& small, float& weight) {
    if (&output() == &large_) {
      large += small * weight;
    } else if (&output() == &small_) {
      small += large * weight;
    } else {
      weight += large * small;
    }
  }

  Case case_;
  Window window_;
  Array large_, small_, weights_;
};

op MakeOp(const Case& c) {
  op made(0, c.kind, {logical_tensor(0, Type::f32), logical_tensor(1, Type::f32)},
          {logical_tensor(2, Type::f32)});
  made.set_attr<Dims>(op::attr::strides, {kStride[0], kStride[1]});
  made.set_attr<Dims>(op::attr::dilations, {kDilation[0], kDilation[1]});
  made.set_attr<Dims>(op::attr::pads_begin, {kBegin[0], kBegin[1]});
  made.set_attr<Dims>(op::attr::pads_end, {kEnd[0], kEnd[1]});
  if (c.groups != 1) made.set_attr<int64_t>(op::attr::groups, c.groups);
  if (!c.auto_pad.empty()) made.set_attr<std::string>(op::attr::auto_pad, c.auto_pad);
  if (c.channels_first) {
    made.set_attr<std::string>(op::attr::data_format, "NCX");
    made.set_attr<std::string>(op::attr::weights_format, c.transposed() ? "IOX" : "OIX");
  }
  return made;
}

void Check(const Case& c) {
  SCOPED_TRACE("kind " + std::to_string(static_cast<int>(c.kind)) + " groups " +
               std::to_string(c.groups) + " " + c.auto_pad);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::graph::graph graph(dnnl::engine::kind::cpu);
  graph.add_op(MakeOp(c));
  graph.finalize();
  Correlation correlation(c);
  std::vector<logical_tensor> inputs;
  std::vector<tensor> tensors;
  for (Array* array : correlation.inputs()) {
    inputs.emplace_back(inputs.size(), Type::f32, array->shape, Layout::strided);
    tensors.emplace_back(inputs.back(), engine, array->values.data());
  }
  const logical_tensor output(2, Type::f32, correlation.output().shape, Layout::strided);
  std::vector<float> result(correlation.output().values.size(), 99.0f);
  dnnl::stream stream(engine);
  graph.get_partitions()
      .at(0)
      .compile(inputs, {output}, engine)
      .execute(stream, tensors, {tensor(output, engine, result.data())});
  correlation.Compute();
  EXPECT_EQ(result, correlation.output().values);
}

TEST(DnnlSpecification, RequiredAttributesOnly) {
  for (op::kind kind : kFamily) Check({.kind = kind});
}

TEST(DnnlSpecification, ChannelsFirst) {
  for (op::kind kind : kFamily) Check({.kind = kind, .groups = 2, .channels_first = true});
}

TEST(DnnlSpecification, AutoPad) {
  for (op::kind kind : kFamily) {
    for (const char* auto_pad : {"SAME_UPPER", "SAME_LOWER"}) {
      Check({.kind = kind, .auto_pad = auto_pad});
    }
  }
}

// (IC, OCg, K...) and (ICg, OC, K...), told apart by their extents.
TEST(DnnlSpecification, BothLayoutsOfGroupedTransposedWeights) {
  for (op::kind kind : {op::kind::ConvTranspose, op::kind::ConvTransposeBackwardData,
                        op::kind::ConvTransposeBackwardWeights}) {
    for (bool channels_first : {true, false}) {
      for (bool channels_of_group_first : {true, false}) {
        Check({.kind = kind,
               .groups = 3,
               .channels_first = channels_first,
               .channels_of_group_first = channels_of_group_first});
      }
    }
  }
}

}  // namespace
