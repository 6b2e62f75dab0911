// One convolution, as numbers, run under any of its six names in any layout; and a digest of what
// came out. The same index of a tensor holds the same value in every layout, and digests are taken
// in the order of indices, so that equal digests mean equal bits, element by element.
#ifndef CONVGRAD_TESTS_BITS_CASE_H_
#define CONVGRAD_TESTS_BITS_CASE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/plan.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tests {

// y = x * w; the ConvTranspose names see y as src and x as dst.
struct BitsProblem {
  std::string name;
  int64_t batch, groups, channels, o;  // channels of x and of y, all groups
  Dims in, taps, stride, dilation, pad;

  size_t rank() const { return in.size(); }
  int64_t out(size_t a) const {
    return (in[a] + 2 * pad[a] - ((taps[a] - 1) * dilation[a] + 1)) / stride[a] + 1;
  }
  Dims OutExtents() const {
    Dims extents;
    for (size_t a = 0; a < rank(); ++a) extents.push_back(out(a));
    return extents;
  }
};

// Which of the two formats that the operation has: channels first, or last.
struct Layout {
  bool channels_last = false;       // NXC, else NCX
  bool weights_taps_first = false;  // XIO, XOI, else OIX, IOX
};

inline const OpKind kSixNames[] = {OpKind::kConvolution,
                                   OpKind::kConvolutionBackwardData,
                                   OpKind::kConvolutionBackwardWeights,
                                   OpKind::kConvTranspose,
                                   OpKind::kConvTransposeBackwardData,
                                   OpKind::kConvTransposeBackwardWeights};

inline bool IsTranspose(OpKind kind) { return kind >= OpKind::kConvTranspose; }
inline bool WritesWeights(OpKind kind) {
  return kind == OpKind::kConvolutionBackwardWeights ||
         kind == OpKind::kConvTransposeBackwardWeights;
}
inline bool IsForward(OpKind kind) {
  return kind == OpKind::kConvolution || kind == OpKind::kConvTranspose;
}

// Dense in its format, described by index: extents (n, c, x...) or (o, i, x...).
struct IndexedTensor {
  std::vector<size_t> order;
  tools::TensorBuffer buffer;

  IndexedTensor(DataType type, Dims extents, std::vector<size_t> axes) : order(std::move(axes)) {
    Dims strides(extents.size());
    int64_t stride = 1;
    for (size_t place = order.size(); place-- > 0;) {
      strides[order[place]] = stride;
      stride *= extents[order[place]];
    }
    buffer = tools::TensorBuffer(TensorDesc{type, std::move(extents), std::move(strides), {}});
  }
  TensorDesc InFormat() const {
    TensorDesc desc{buffer.desc().type, {}, {}, {}};
    for (size_t index : order) {
      desc.extents.push_back(buffer.desc().extents[index]);
      desc.strides.push_back(buffer.desc().strides[index]);
    }
    return desc;
  }
};

// Of a tensor that is dense, in any order.
inline size_t BytesOf(const TensorDesc& desc) {
  int64_t bytes = SizeOf(desc.type);
  for (const int64_t extent : desc.extents) bytes *= extent;
  return static_cast<size_t>(bytes);
}

// FNV-1a, 64 bits, over the bytes of the elements, lowest first, in the order of their indices.
class Digest {
 public:
  void Add(const tools::TensorBuffer& tensor) {
    const int64_t size = SizeOf(tensor.desc().type);
    tools::ForEachOffset(tensor.desc().extents, tensor.desc().strides, [&](int64_t offset) {
      const uint32_t bits = size == 4 ? LoadAt<uint32_t>(tensor.data(), offset)
                                      : LoadAt<uint16_t>(tensor.data(), offset);
      for (int64_t b = 0; b < size; ++b) {
        state_ = (state_ ^ ((bits >> (8 * b)) & 0xffu)) * 0x100000001b3u;
      }
    });
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

class BitsCase {
 public:
  // with_bias: of the forward operations, or its gradient. `out`: of gradients of weights.
  BitsCase(const BitsProblem& p, OpKind kind, DataType type, Layout layout, bool with_bias)
      : BitsCase(p, kind, type, layout, with_bias, type) {}
  BitsCase(const BitsProblem& p, OpKind kind, DataType type, Layout layout, bool with_bias,
           DataType out)
      : kind_(kind),
        with_bias_(with_bias && (IsForward(kind) || WritesWeights(kind))),
        x_(type, Joined(p.batch, p.channels, p.in), DataOrder(p, layout)),
        w_(WritesWeights(kind) ? out : type, Joined(p.o, p.channels / p.groups, p.taps),
           WeightsOrder(p, layout)),
        y_(type, Joined(p.batch, p.o, p.OutExtents()), DataOrder(p, layout)),
        bias_(TensorDesc{
            WritesWeights(kind) ? out : type, {IsTranspose(kind) ? p.channels : p.o}, {}, {}}) {
    tools::FillReals(x_.buffer, 1);
    tools::FillReals(w_.buffer, 2);
    tools::FillReals(y_.buffer, 3);
    tools::FillReals(bias_, 4);
    operation_ = {kind, {}};
    operation_.attributes.Set("strides", p.stride)
        .Set("pads_begin", p.pad)
        .Set("pads_end", p.pad)
        .Set("dilations", p.dilation)
        .Set("groups", p.groups)
        .Set("data_format", layout.channels_last ? "NXC" : "NCX");
    const char* first = IsTranspose(kind) ? "XOI" : "XIO";
    const char* last = IsTranspose(kind) ? "IOX" : "OIX";
    operation_.attributes.Set("weights_format", layout.weights_taps_first ? first : last);
    Dims rest;  // what the stride leaves over at the end of x
    for (size_t a = 0; a < p.rank(); ++a) {
      rest.push_back(p.in[a] + 2 * p.pad[a] - ((p.taps[a] - 1) * p.dilation[a] + 1) -
                     (p.out(a) - 1) * p.stride[a]);
    }
    if (IsTranspose(kind)) operation_.attributes.Set("output_padding", rest);
  }

  const Operation& operation() const { return operation_; }
  IndexedTensor& output() {
    return WritesWeights(kind_)                                                             ? w_
           : (kind_ == OpKind::kConvolutionBackwardData || kind_ == OpKind::kConvTranspose) ? x_
                                                                                            : y_;
  }
  IndexedTensor& x() { return x_; }
  IndexedTensor& w() { return w_; }
  IndexedTensor& y() { return y_; }
  tools::TensorBuffer& bias() { return bias_; }
  std::vector<float> BiasValues() const {
    std::vector<float> values;
    for (int64_t i = 0; i < bias_.elements(); ++i) {
      values.push_back(static_cast<float>(bias_.At(i)));
    }
    return values;
  }

  std::vector<TensorDesc> InputDescs() {
    std::vector<TensorDesc> descs;
    for (IndexedTensor* tensor : Inputs()) descs.push_back(tensor->InFormat());
    if (with_bias_ && IsForward(kind_)) descs.push_back(bias_.desc());
    return descs;
  }
  std::vector<TensorDesc> OutputDescs() {
    std::vector<TensorDesc> descs = {output().InFormat()};
    if (with_bias_ && WritesWeights(kind_)) descs.push_back(bias_.desc());
    return descs;
  }
  std::vector<const void*> InputData() {
    std::vector<const void*> data;
    for (IndexedTensor* tensor : Inputs()) data.push_back(tensor->buffer.data());
    if (with_bias_ && IsForward(kind_)) data.push_back(bias_.data());
    return data;
  }
  std::vector<void*> OutputData() {
    std::vector<void*> data = {output().buffer.data()};
    if (with_bias_ && WritesWeights(kind_)) data.push_back(bias_.data());
    return data;
  }
  void FillOutputs(int byte) {
    const std::vector<void*> data = OutputData();
    const std::vector<TensorDesc> descs = OutputDescs();
    for (size_t i = 0; i < data.size(); ++i) std::memset(data[i], byte, BytesOf(descs[i]));
  }
  Result<Plan> MakePlan(const Options& options) {
    return Plan::Make(operation_, InputDescs(), OutputDescs(), options);
  }

  // The outputs as they lie in memory, one after another.
  std::vector<char> OutputBytes() {
    std::vector<char> bytes;
    const std::vector<void*> data = OutputData();
    const std::vector<TensorDesc> descs = OutputDescs();
    for (size_t i = 0; i < data.size(); ++i) {
      const char* const begin = static_cast<char*>(data[i]);
      bytes.insert(bytes.end(), begin, begin + BytesOf(descs[i]));
    }
    return bytes;
  }

  // Plans, runs and digests what was written; 0 on an error, which is a failure of the test too.
  uint64_t Run(const Options& options) {
    Result<Plan> plan = MakePlan(options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok()) return 0;
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    const Status status = plan->Run(InputData(), OutputData(), workspace.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok() ? OutputDigest() : 0;
  }
  uint64_t OutputDigest() {
    Digest digest;
    digest.Add(output().buffer);
    if (with_bias_ && WritesWeights(kind_)) digest.Add(bias_);
    return digest.value();
  }

 private:
  static Dims Joined(int64_t first, int64_t second, const Dims& rest) {
    Dims extents = {first, second};
    extents.insert(extents.end(), rest.begin(), rest.end());
    return extents;
  }
  static std::vector<size_t> DataOrder(const BitsProblem& p, Layout layout) {
    std::vector<size_t> order = {0};
    if (!layout.channels_last) order.push_back(1);
    for (size_t a = 0; a < p.rank(); ++a) order.push_back(2 + a);
    if (layout.channels_last) order.push_back(1);
    return order;
  }
  static std::vector<size_t> WeightsOrder(const BitsProblem& p, Layout layout) {
    std::vector<size_t> order;
    if (!layout.weights_taps_first) order = {0, 1};
    for (size_t a = 0; a < p.rank(); ++a) order.push_back(2 + a);
    if (layout.weights_taps_first) order.insert(order.end(), {1, 0});
    return order;
  }
  std::vector<IndexedTensor*> Inputs() {
    IndexedTensor *src = IsTranspose(kind_) ? &y_ : &x_, *dst = IsTranspose(kind_) ? &x_ : &y_;
    if (WritesWeights(kind_)) return {src, dst};
    return {IsForward(kind_) ? src : dst, &w_};
  }

  OpKind kind_;
  bool with_bias_;
  Operation operation_;
  IndexedTensor x_, w_, y_;
  tools::TensorBuffer bias_;
};

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_BITS_CASE_H_
