// A training step as a client of oneDNN Graph writes it: one graph with the forward pass, the loss
// and all gradients of a small autoencoder,
//
//   image -> Convolution, stride 2 -> Tanh -> Convolution -> ConvTranspose, stride 2 -> loss
//
// whose tensors are of unknown shape until their partitions are compiled. Partitions that the
// library does not support (Tanh, its gradient and the loss) are run here. Trains for some steps,
// and compares the gradients with differences of the loss. Exit status 0: they agree, and the loss
// went down.
//
//   g++ training_step.cc $(pkg-config --cflags --libs convgrad_dnnl) -o training_step
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl_graph.hpp"

using dnnl::engine;
using dnnl::graph::compiled_partition;
using dnnl::graph::graph;
using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::partition;
using dnnl::graph::tensor;
using Dims = logical_tensor::dims;
using Layout = logical_tensor::layout_type;

namespace {

// The tensors of the graph by their ids; a gradient is 100 after what it is the gradient of.
enum Id : size_t {
  kImage,
  kWeights1,
  kHidden1,
  kActive1,
  kWeights2,
  kHidden2,
  kWeights3,
  kBias3,
  kResult,
  kGradient = 100,
};

constexpr auto kF32 = logical_tensor::data_type::f32;

logical_tensor Unknown(size_t id) { return logical_tensor(id, kF32); }

// A layer's window is the same for the operation and its gradients.
op Layer(op::kind kind, const std::vector<size_t>& inputs, size_t output, int64_t stride) {
  static size_t next_id = 0;
  op made(next_id++, kind, "layer");
  for (size_t id : inputs) made.add_input(Unknown(id));
  made.add_output(Unknown(output));
  const bool transposed = kind >= op::kind::ConvTranspose;
  made.set_attr<Dims>(op::attr::strides, {stride, stride});
  made.set_attr<Dims>(op::attr::pads_begin, {1, 1});
  made.set_attr<Dims>(op::attr::pads_end, {1, 1});
  made.set_attr<Dims>(op::attr::dilations, {1, 1});
  made.set_attr<std::string>(op::attr::auto_pad, "None");
  made.set_attr<std::string>(op::attr::data_format, "NXC");
  made.set_attr<std::string>(op::attr::weights_format, transposed ? "XOI" : "XIO");
  made.set_attr<int64_t>(op::attr::groups, 1);
  if (transposed) made.set_attr<Dims>(op::attr::output_padding, {1, 1});
  return made;
}

graph TrainingStep() {
  using kind = op::kind;
  graph g(engine::kind::cpu);
  const auto gradient = [](size_t id) { return kGradient + id; };
  g.add_op(Layer(kind::Convolution, {kImage, kWeights1}, kHidden1, 2));
  g.add_op(op(1001, kind::Tanh, {Unknown(kHidden1)}, {Unknown(kActive1)}));
  g.add_op(Layer(kind::Convolution, {kActive1, kWeights2}, kHidden2, 1));
  g.add_op(Layer(kind::ConvTranspose, {kHidden2, kWeights3, kBias3}, kResult, 2));
  g.add_op(op(1002, kind::Wildcard, {Unknown(kResult), Unknown(kImage)},
              {Unknown(gradient(kResult))}, "loss"));
  g.add_op(Layer(kind::ConvTransposeBackwardWeights, {kHidden2, gradient(kResult)},
                 gradient(kWeights3), 2));
  g.add_op(Layer(kind::ConvTransposeBackwardData, {gradient(kResult), kWeights3},
                 gradient(kHidden2), 2));
  g.add_op(Layer(kind::ConvolutionBackwardWeights, {kActive1, gradient(kHidden2)},
                 gradient(kWeights2), 1));
  g.add_op(
      Layer(kind::ConvolutionBackwardData, {gradient(kHidden2), kWeights2}, gradient(kActive1), 1));
  g.add_op(op(1003, kind::TanhBackward, {Unknown(kActive1), Unknown(gradient(kActive1))},
              {Unknown(gradient(kHidden1))}));
  g.add_op(Layer(kind::ConvolutionBackwardWeights, {kImage, gradient(kHidden1)},
                 gradient(kWeights1), 2));
  g.finalize();
  return g;
}

struct Value {
  logical_tensor description;
  std::vector<float> data;
};

class Trainer {
 public:
  Trainer() : engine_(engine::kind::cpu, 0), stream_(engine_) {
    Set(kImage, {2, 8, 8, 1}, 1.0f);
    Set(kWeights1, {3, 3, 1, 6}, 0.4f);
    Set(kWeights2, {3, 3, 6, 4}, 0.2f);
    Set(kWeights3, {3, 3, 1, 4}, 0.2f);
    Set(kBias3, {1}, 0.0f);
    graph g = TrainingStep();
    for (const partition& p : g.get_partitions()) steps_.push_back({p, compiled_partition()});
  }

  // Forward and backward; the loss.
  double Run() {
    for (Step& step : steps_) {
      if (step.part.is_supported()) {
        Execute(step);
      } else {
        RunHere(step.part);
      }
    }
    return loss_;
  }

  void Descend(float rate) {
    for (size_t id : {kWeights1, kWeights2, kWeights3}) {
      for (size_t i = 0; i < values_[id].data.size(); ++i) {
        values_[id].data[i] -= rate * values_[kGradient + id].data[i];
      }
    }
  }

  std::vector<float>& data(size_t id) { return values_[id].data; }
  Dims shape(size_t id) const { return values_.at(id).description.get_dims(); }

 private:
  struct Step {
    partition part;
    compiled_partition compiled;
  };

  void Set(size_t id, const Dims& dims, float scale) {
    const logical_tensor description(id, kF32, dims, Layout::strided);
    Value& value = values_[id] = {description, {}};
    value.data.resize(description.get_mem_size() / sizeof(float));
    for (float& x : value.data) x = scale * (2.0f * static_cast<float>(std::rand()) / RAND_MAX - 1);
  }

  // A gradient has the shape of what it is the gradient of; all else is for the library to infer.
  logical_tensor Wanted(size_t id) const {
    if (id < kGradient) return logical_tensor(id, kF32, Layout::any);
    return logical_tensor(id, kF32, shape(id - kGradient), Layout::strided);
  }

  void Execute(Step& step) {
    const size_t out = step.part.get_output_ports()[0].get_id();
    std::vector<logical_tensor> inputs;
    for (const logical_tensor& port : step.part.get_input_ports()) {
      inputs.push_back(values_.at(port.get_id()).description);
    }
    if (!step.compiled) {
      step.compiled = step.part.compile(inputs, {Wanted(out)}, engine_);
      const logical_tensor result = step.compiled.query_logical_tensor(out);
      values_[out] = {result, std::vector<float>(result.get_mem_size() / sizeof(float))};
    }
    std::vector<tensor> tensors;
    for (const logical_tensor& lt : inputs) {
      tensors.emplace_back(lt, engine_, values_[lt.get_id()].data.data());
    }
    Value& result = values_[out];
    step.compiled.execute(stream_, tensors,
                          {tensor(result.description, engine_, result.data.data())});
    stream_.wait();
  }

  // Element by element: Tanh, its gradient, and half the mean square of what is lost.
  void RunHere(const partition& part) {
    const std::vector<logical_tensor> in = part.get_input_ports();
    const size_t out = part.get_output_ports()[0].get_id();
    const std::vector<float>& a = values_.at(in[0].get_id()).data;
    const std::vector<float>& b = values_.at(in.back().get_id()).data;
    if (values_.count(out) == 0) Set(out, shape(in[0].get_id()), 0.0f);
    std::vector<float>& result = values_[out].data;
    if (out == kGradient + kResult) loss_ = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (out == kActive1) {
        result[i] = std::tanh(a[i]);
      } else if (out == kGradient + kHidden1) {
        result[i] = (1 - a[i] * a[i]) * b[i];
      } else {
        result[i] = (a[i] - b[i]) / static_cast<float>(a.size());
        loss_ +=
            0.5 * (double{a[i]} - b[i]) * (double{a[i]} - b[i]) / static_cast<double>(a.size());
      }
    }
  }

  engine engine_;
  dnnl::stream stream_;
  std::map<size_t, Value> values_;
  std::vector<Step> steps_;
  double loss_ = 0;
};

// Every gradient against the difference of the loss on both sides.
bool GradientsAgree(Trainer& trainer) {
  constexpr float kStep = 1.0f / 64;
  bool agree = true;
  for (size_t id : {kWeights1, kWeights2, kWeights3}) {
    trainer.Run();
    const std::vector<float> gradient = trainer.data(kGradient + id);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      float& weight = trainer.data(id)[i];
      const float before = weight;
      weight = before + kStep;
      const double above = trainer.Run();
      weight = before - kStep;
      const double below = trainer.Run();
      weight = before;
      worst = std::fmax(worst, std::fabs((above - below) / (2 * kStep) - gradient[i]));
      largest = std::fmax(largest, std::fabs(gradient[i]));
    }
    std::printf("gradient of tensor %zu: up to %.4f, off by at most %.6f\n", id, largest, worst);
    agree = agree && largest > 0 && worst < 1e-2 * largest;
  }
  return agree;
}

}  // namespace

int main() {
  try {
    std::srand(1);
    Trainer trainer;
    const double first = trainer.Run();
    const Dims hidden = trainer.shape(kHidden2), result = trainer.shape(kResult);
    std::printf("inferred: hidden %dx%dx%d, result %dx%dx%d\n", static_cast<int>(hidden[1]),
                static_cast<int>(hidden[2]), static_cast<int>(hidden[3]),
                static_cast<int>(result[1]), static_cast<int>(result[2]),
                static_cast<int>(result[3]));
    const bool agree = GradientsAgree(trainer);
    double loss = first;
    for (int step = 0; step < 200; ++step) {
      loss = trainer.Run();
      if (step % 50 == 0) std::printf("step %d: loss %.5f\n", step, loss);
      trainer.Descend(2.0f);
    }
    std::printf("loss %.5f, after 200 steps %.5f\n", first, loss);
    return agree && loss < 0.5 * first ? 0 : 1;
  } catch (const dnnl::error& error) {
    std::fprintf(stderr, "status %d: %s\n", static_cast<int>(error.status), error.what());
    return 1;
  }
}
