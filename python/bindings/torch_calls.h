// The two calls of the PyTorch bridge: a convolution and its gradients in PyTorch's terms, on
// memory that PyTorch allocated. Made to cost little: tensors come as tuples, nothing is kept.
#ifndef CONVGRAD_PYTHON_BINDINGS_TORCH_CALLS_H_
#define CONVGRAD_PYTHON_BINDINGS_TORCH_CALLS_H_

#include <nanobind/nanobind.h>

namespace convgrad::python {

void BindTorchCalls(nanobind::module_& module);

}  // namespace convgrad::python

#endif  // CONVGRAD_PYTHON_BINDINGS_TORCH_CALLS_H_
