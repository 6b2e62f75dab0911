// oneDNN through its primitives: the convolution or deconvolution that the operation is, on the
// caller's tensors as they lie. Weights are plain, too: with format_tag::any the library would ask
// for a layout of its own, and the reorders into it, on every step of a training, would not show.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "bench/peer.h"

namespace convgrad::bench {

std::unique_ptr<Peer> MakeOnednnPeer(const PeerRequest& request, std::string* why);

namespace {

using dnnl::memory;

// Version 3 takes what version 2 calls a descriptor as arguments of the primitive's description.
template <class Primitive, class... Arguments>
auto Describe(const dnnl::engine& engine, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), engine);
#else
  return typename Primitive::primitive_desc(engine, arguments...);
#endif
}

// A gradient names the forward operation as well.
template <class Primitive, class Forward, class... Arguments>
auto DescribeGradient(const dnnl::engine& engine, const Forward& forward,
                      const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return
      typename Primitive::primitive_desc(typename Primitive::desc(arguments...), engine, forward);
#else
  return typename Primitive::primitive_desc(engine, arguments..., forward);
#endif
}

// In oneDNN's words, and with the operation's own number of axes.
struct Shapes {
  memory::desc src, weights, dst, bias;
  memory::desc forward_weights;  // as the forward operation reads them, which a gradient names
  memory::dims strides, dilates, pads_begin, pads_end;
};

memory::data_type TypeOf(DataType type) {
  return type == DataType::kF32    ? memory::data_type::f32
         : type == DataType::kBF16 ? memory::data_type::bf16
                                   : memory::data_type::f16;
}

memory::desc PixelsOf(const PeerRequest& request, bool x) {
  const Problem& p = request.problem;
  const PixelStrides& from = x ? p.x : p.y;
  memory::dims extents = {p.batch, p.groups * (x ? p.ci : p.co)};
  memory::dims strides = {from.n, from.c};
  for (size_t a = static_cast<size_t>(kAxes - request.spatial); a < kAxes; ++a) {
    extents.push_back(x ? p.axes[a].in : p.axes[a].out);
    strides.push_back(from.s[a]);
  }
  return {extents, TypeOf(p.type), strides};
}

// [groups,] channels of dst, channels of src, taps: a deconvolution's dst is x.
memory::desc WeightsOf(const PeerRequest& request, DataType type) {
  const Problem& p = request.problem;
  memory::dims extents, strides;
  if (p.groups > 1) {
    extents.push_back(p.groups);
    strides.push_back(p.w.g);
  }
  const bool t = request.transposed;
  extents.insert(extents.end(), {t ? p.ci : p.co, t ? p.co : p.ci});
  strides.insert(strides.end(), {t ? p.w.ci : p.w.co, t ? p.w.co : p.w.ci});
  for (size_t a = static_cast<size_t>(kAxes - request.spatial); a < kAxes; ++a) {
    extents.push_back(p.axes[a].taps);
    strides.push_back(p.w.s[a]);
  }
  return {extents, TypeOf(type), strides};
}

Shapes ShapesOf(const PeerRequest& request) {
  const Problem& p = request.problem;
  Shapes shapes;
  shapes.src = PixelsOf(request, !request.transposed);
  shapes.dst = PixelsOf(request, request.transposed);
  shapes.forward_weights = WeightsOf(request, p.type);
  const DataType type = p.pass == Pass::kWgrad ? p.out_type : p.type;
  shapes.weights = WeightsOf(request, type);
  if (p.bias.present) {
    const int64_t channels = p.groups * (request.transposed ? p.ci : p.co);
    shapes.bias = memory::desc({channels}, TypeOf(type), memory::dims{p.bias.stride});
  }
  for (size_t a = static_cast<size_t>(kAxes - request.spatial); a < kAxes; ++a) {
    const Axis& axis = p.axes[a];
    shapes.strides.push_back(axis.stride);
    shapes.dilates.push_back(axis.dilation - 1);
    shapes.pads_begin.push_back(axis.pad);
    shapes.pads_end.push_back((axis.out - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1 -
                              axis.in - axis.pad);
  }
  return shapes;
}

class OnednnPeer : public Peer {
 public:
  // Throws dnnl::error where there is no such primitive.
  explicit OnednnPeer(const PeerRequest& request)
      : threads_(request.threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    omp_set_num_threads(threads_);  // what it generates depends on it
    if (request.transposed) {
      Make<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data,
           dnnl::deconvolution_backward_weights>(request, dnnl::algorithm::deconvolution_direct);
    } else {
      Make<dnnl::convolution_forward, dnnl::convolution_backward_data,
           dnnl::convolution_backward_weights>(request, dnnl::algorithm::convolution_direct);
    }
  }

  void Run() override {
    omp_set_num_threads(threads_);
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

  std::string implementation() const override { return implementation_; }

 private:
  template <class Forward, class BackwardData, class BackwardWeights>
  void Make(const PeerRequest& request, dnnl::algorithm algorithm) {
    const Shapes s = ShapesOf(request);
    const Operands& operands = request.operands;
    const bool bias = request.problem.bias.present;
    const bool weights_written = request.problem.pass == Pass::kWgrad;
    const bool dst_written =
        !weights_written && (request.problem.pass == Pass::kDgrad) == request.transposed;
    const auto training =
        dst_written ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const bool forward_bias = bias && dst_written;
    const auto forward =
        forward_bias
            ? Describe<Forward>(engine_, training, algorithm, s.src, s.forward_weights, s.bias,
                                s.dst, s.strides, s.dilates, s.pads_begin, s.pads_end)
            : Describe<Forward>(engine_, training, algorithm, s.src, s.forward_weights, s.dst,
                                s.strides, s.dilates, s.pads_begin, s.pads_end);
    const void* src = request.transposed ? operands.y : operands.x;
    const void* dst = request.transposed ? operands.x : operands.y;
    if (dst_written) {
      Take(forward, Forward(forward));
      Bind(DNNL_ARG_SRC, s.src, src);
      Bind(DNNL_ARG_WEIGHTS, s.weights, operands.w);
      Bind(DNNL_ARG_DST, s.dst, operands.out);
      if (bias) Bind(DNNL_ARG_BIAS, s.bias, operands.bias);
    } else if (weights_written) {
      const auto backward = bias ? DescribeGradient<BackwardWeights>(
                                       engine_, forward, algorithm, s.src, s.weights, s.bias, s.dst,
                                       s.strides, s.dilates, s.pads_begin, s.pads_end)
                                 : DescribeGradient<BackwardWeights>(
                                       engine_, forward, algorithm, s.src, s.weights, s.dst,
                                       s.strides, s.dilates, s.pads_begin, s.pads_end);
      Take(backward, BackwardWeights(backward));
      Bind(DNNL_ARG_SRC, s.src, src);
      Bind(DNNL_ARG_DIFF_DST, s.dst, dst);
      Bind(DNNL_ARG_DIFF_WEIGHTS, s.weights, operands.out);
      if (bias) Bind(DNNL_ARG_DIFF_BIAS, s.bias, operands.bias_out);
    } else {
      const auto backward =
          DescribeGradient<BackwardData>(engine_, forward, algorithm, s.src, s.weights, s.dst,
                                         s.strides, s.dilates, s.pads_begin, s.pads_end);
      Take(backward, BackwardData(backward));
      Bind(DNNL_ARG_DIFF_DST, s.dst, dst);
      Bind(DNNL_ARG_WEIGHTS, s.weights, operands.w);
      Bind(DNNL_ARG_DIFF_SRC, s.src, operands.out);
    }
  }

  template <class Description>
  void Take(const Description& description, const dnnl::primitive& primitive) {
    implementation_ = description.impl_info_str();
    primitive_ = primitive;
  }

  void Bind(int argument, const memory::desc& desc, const void* data) {
    arguments_.insert({argument, memory(desc, engine_, const_cast<void*>(data))});
  }

  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
  std::string implementation_;
};

}  // namespace

std::unique_ptr<Peer> MakeOnednnPeer(const PeerRequest& request, std::string* why) {
  try {
    return std::make_unique<OnednnPeer>(request);
  } catch (const dnnl::error& error) {
    *why = error.what();
    return nullptr;
  }
}

}  // namespace convgrad::bench
