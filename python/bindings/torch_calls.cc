#include "torch_calls.h"

#include <array>
#include <memory>

#include "arrays.h"
#include "convgrad/convgrad.hpp"
#include "host_threads.h"

namespace nb = nanobind;

namespace convgrad::python {
namespace {

// Of PyTorch's runtime, once it is known. Written under the interpreter's lock, before any call.
ParallelFor torch_threads;

// (transposed, stride, padding, dilation, output_padding, groups) as aten::convolution has them:
// pads on both sides are the same, and a list of one holds for every axis.
struct Geometry {
  Operation operation;
  bool transposed = false;

  Geometry(nb::handle values, size_t rank) {
    PyObject* const tuple = values.ptr();
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != 6) {
      throw nb::type_error("geometry is not a tuple of six");
    }
    transposed = PyObject_IsTrue(PyTuple_GET_ITEM(tuple, 0)) == 1;
    const auto list = [&](Py_ssize_t i, const char* name) {
      Dims dims = ParseDims(PyTuple_GET_ITEM(tuple, i), name);
      if (dims.size() == 1) dims.resize(rank, dims[0]);
      return dims;
    };
    Attributes& attributes = operation.attributes;
    operation.kind = transposed ? OpKind::kConvTranspose : OpKind::kConvolution;
    attributes.Set("strides", list(1, "stride"));
    const Dims padding = list(2, "padding");
    attributes.Set("pads_begin", padding);
    attributes.Set("pads_end", padding);
    attributes.Set("dilations", list(3, "dilation"));
    if (transposed) attributes.Set("output_padding", list(4, "output_padding"));
    attributes.Set("groups", nb::cast<int64_t>(nb::handle(PyTuple_GET_ITEM(tuple, 5))));
    attributes.Set("data_format", "NCX");
    attributes.Set("weights_format", transposed ? "IOX" : "OIX");
  }
};

template <class AnyPlan>
Status RunWithWorkspace(const AnyPlan& plan, std::span<const void* const> inputs,
                        std::span<void* const> outputs) {
  const auto bytes = static_cast<size_t>(plan.workspace_bytes());
  const std::unique_ptr<char[]> workspace(bytes > 0 ? new char[bytes] : nullptr);
  return plan.Run(inputs, outputs, workspace.get());
}

Options OptionsOf(int threads) {
  Options options;
  options.threads = threads;
  options.parallel_for = torch_threads;
  return options;
}

void Forward(nb::handle geometry, int threads, nb::handle src, nb::handle weights, nb::handle bias,
             nb::handle dst) {
  const Array arrays[] = {ParseArray(src, "src"), ParseArray(weights, "weights"),
                          ParseArray(bias, "bias")};
  const Array out = ParseArray(dst, "dst", Access::kWrite);
  const Geometry read(geometry, arrays[0].desc.extents.size() - 2);
  Status status;
  {
    const nb::gil_scoped_release release;
    const TensorDesc inputs[] = {arrays[0].desc, arrays[1].desc, arrays[2].desc};
    const Result<Plan> plan =
        Plan::Make(read.operation, inputs, std::span(&out.desc, 1), OptionsOf(threads));
    const void* const in[] = {arrays[0].data, arrays[1].data, arrays[2].data};
    status = plan.ok() ? RunWithWorkspace(*plan, in, std::span(&out.data, 1)) : plan.status();
  }
  ThrowUnlessOk(status);
}

void Backward(nb::handle geometry, int threads, nb::handle src, nb::handle weights,
              nb::handle diff_dst, nb::handle diff_src, nb::handle diff_weights,
              nb::handle diff_bias) {
  const Array in[] = {ParseArray(src, "src"), ParseArray(weights, "weights"),
                      ParseArray(diff_dst, "diff_dst")};
  const Array out[] = {ParseArray(diff_src, "diff_src", Access::kWrite),
                       ParseArray(diff_weights, "diff_weights", Access::kWrite),
                       ParseArray(diff_bias, "diff_bias", Access::kWrite)};
  const Geometry read(geometry, in[0].desc.extents.size() - 2);
  Status status;
  {
    const nb::gil_scoped_release release;
    const TensorDesc inputs[] = {in[0].desc, in[1].desc, in[2].desc};
    const TensorDesc outputs[] = {out[0].desc, out[1].desc, out[2].desc};
    const Result<BackwardPlan> plan =
        BackwardPlan::Make(read.operation, inputs, outputs, OptionsOf(threads));
    const void* const in_data[] = {in[0].data, in[1].data, in[2].data};
    void* const out_data[] = {out[0].data, out[1].data, out[2].data};
    status = plan.ok() ? RunWithWorkspace(*plan, in_data, out_data) : plan.status();
  }
  ThrowUnlessOk(status);
}

bool UseThreadsOf(const char* library) {
  torch_threads = ThreadsOf(library);
  return torch_threads.function != nullptr;
}

}  // namespace

void BindTorchCalls(nb::module_& module) {
  module.def("torch_forward", &Forward, nb::arg("geometry"), nb::arg("threads"), nb::arg("src"),
             nb::arg("weights"), nb::arg("bias").none(), nb::arg("dst"));
  module.def("torch_backward", &Backward, nb::arg("geometry"), nb::arg("threads"), nb::arg("src"),
             nb::arg("weights"), nb::arg("diff_dst"), nb::arg("diff_src").none(),
             nb::arg("diff_weights").none(), nb::arg("diff_bias").none());
  module.def("use_threads_of", &UseThreadsOf, nb::arg("library"));
}

}  // namespace convgrad::python
