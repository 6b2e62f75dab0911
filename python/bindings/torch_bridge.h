// aten::convolution and aten::convolution_backward by convgrad, on tensors of PyTorch that are read
// as Python objects: nothing is built against PyTorch. Made to cost little: no Python code runs,
// no capsule is made, nothing is kept between calls. What convgrad does not compute gives None, and
// the kernels go to PyTorch's own then.
#ifndef CONVGRAD_PYTHON_BINDINGS_TORCH_BRIDGE_H_
#define CONVGRAD_PYTHON_BINDINGS_TORCH_BRIDGE_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <utility>
#include <vector>

#include "convgrad/convgrad.hpp"

namespace convgrad::python {

// DLPack's functions for extension modules: a tensor's description by one call, without a capsule.
struct DlpackExchange {
  uint32_t major, minor;
  void* previous;
  void* allocate;
  void* from_object;
  void* to_object;
  int (*describe)(void* object, nanobind::dlpack::dltensor* out);
};

// A tensor as it was read.
struct TorchTensor {
  nanobind::handle object;
  void* data = nullptr;
  TensorDesc desc;

  const Dims& extents() const { return desc.extents; }
  size_t axes() const { return desc.extents.size(); }
  bool empty() const;
};

// What both calls have in common, in PyTorch's words: lists of one hold for every axis.
struct TorchGeometry {
  nanobind::handle stride, padding, dilation, transposed, output_padding, groups;
};

class TorchBridge {
 public:
  // `torch` is the module. own_forward(...) and own_backward(...) are PyTorch's kernels, which take
  // the arguments of the operators. results_last(source, weight, *geometry) says whether the
  // results of a convolution with channels last in one of its arguments have them last, too. It is
  // asked for volumes, and for images if `asks_for_images`: all but old PyTorch say yes there.
  // keeps_weight(the same) says whether the gradient of a weight that is dense both with channels
  // first and with channels last (kernels of one tap, one channel) has them first then.
  // traced_forward is PyTorch's kernel of aten::convolution: it calls aten::_convolution through
  // the dispatcher, which is what torch.jit.trace writes down.
  TorchBridge(nanobind::module_ torch, nanobind::callable own_forward,
              nanobind::callable own_backward, nanobind::callable traced_forward,
              nanobind::callable results_last, nanobind::callable keeps_weight,
              bool asks_for_images);

  // What PyTorch's dispatcher calls, with the arguments of aten::convolution (aten::_convolution
  // has more of them) and of aten::convolution_backward.
  nanobind::object ForwardKernel(const nanobind::args& arguments) const;
  nanobind::object BackwardKernel(const nanobind::args& arguments) const;
  // Whether the kernels compute by convgrad; else they are PyTorch's own.
  void Replace(bool forward, bool backward);
  // report("forward" or "backward", arguments) computes in their place; None: they compute.
  void SetReport(nanobind::object report);
  // How many threads beside this one have been in a kernel and have not ended.
  static int OtherThreads();
  const nanobind::object& own_forward() const { return own_forward_; }
  const nanobind::object& own_backward() const { return own_backward_; }

  nanobind::object Convolution(nanobind::handle source, nanobind::handle weight,
                               nanobind::handle bias, const TorchGeometry& geometry) const;
  // (of source, of weight, of bias), None where the mask has no use for it.
  nanobind::object ConvolutionBackward(nanobind::handle grad, nanobind::handle source,
                                       nanobind::handle weight, const TorchGeometry& geometry,
                                       nanobind::handle output_mask) const;
  // Spent in the library itself, by all calls so far: making operations, planning and running.
  double library_seconds() const { return library_seconds_; }

 private:
  // False: of no type of convgrad's.
  bool Read(nanobind::handle object, TorchTensor& tensor) const;
  bool ReadAttributes(nanobind::handle object, TorchTensor& tensor) const;
  // Null: not on the CPU.
  void* DataOf(nanobind::handle object) const;
  bool ReadBoth(nanobind::handle source, nanobind::handle weight, TorchTensor& x,
                TorchTensor& w) const;
  bool ChannelsLast(const TorchTensor& source, const TorchTensor& weight,
                    const TorchGeometry& geometry) const;
  // Of the gradient of the weight, where results have channels last.
  bool WeightLast(const TorchTensor& source, const TorchTensor& weight,
                  const TorchGeometry& geometry) const;
  bool Ask(const nanobind::object& question, const TorchTensor& source, const TorchTensor& weight,
           const TorchGeometry& geometry) const;
  // A dense tensor of PyTorch on the CPU with the extents of `memory`, which gets the rest. No
  // pointer: PyTorch gave other memory than was asked for.
  // `like` has the same extents; null where nothing has.
  nanobind::object Allocate(DataType type, bool channels_last, TorchTensor& memory,
                            const TorchTensor* like) const;
  // The type of guards that turn off what overrides PyTorch's functions. None where nothing can:
  // tensors are read without a call of theirs, and no mode is on. A guard takes 3 us.
  nanobind::handle Guard() const;
  Options RunOptions() const;

  nanobind::object own_forward_, own_backward_, traced_forward_, tracing_state_, results_last_,
      keeps_weight_;
  nanobind::object report_;                  // not valid: none
  bool forward_ = false, backward_ = false;  // replaced; under the interpreter's lock
  nanobind::object empty_strided_, empty_like_, plain_tensor_, cpu_, no_overrides_, count_modes_,
      get_num_threads_;
  bool asks_for_images_;
  std::array<std::pair<nanobind::object, DataType>, 3> types_;
  const DlpackExchange* exchange_;                               // null before PyTorch 2.10
  nanobind::object data_ptr_, shape_, stride_, dtype_, is_cpu_;  // names
  nanobind::object empty_keywords_;
  ParallelFor threads_;                 // PyTorch's own
  mutable double library_seconds_ = 0;  // under the interpreter's lock
};

void BindTorchBridge(nanobind::module_& module);

}  // namespace convgrad::python

#endif  // CONVGRAD_PYTHON_BINDINGS_TORCH_BRIDGE_H_
