"""convgrad: Convolution, ConvTranspose and their gradients, the same bits on any number of threads.

    convgrad.convolution(...)       the ten operations of the specification, on any CPU arrays
    convgrad.convolution_backward   any of the gradients in one call
    convgrad.grad                   the signatures of torch.nn.grad, for any library
    convgrad.plan, .explain         for repeated calls; what runs and why
    convgrad.torch                  PyTorch's own convolutions and gradients by convgrad: enable()

All but convgrad.torch compute on memory alone: of a tensor that requires grad, a result has no
history, and no gradient flows back through it. convgrad.torch keeps autograd as it is.
``python -m convgrad`` prints the version, the CPU, the kernels and the peak.
"""

from ._core import __version__
from ._first_generation import (
    conv_transpose_backprop_data,
    conv_transpose_backprop_filters,
    convolution_backprop_data,
    convolution_backprop_filters,
)
from ._operations import (
    conv_transpose,
    conv_transpose_backward,
    conv_transpose_backward_data,
    conv_transpose_backward_weights,
    convolution,
    convolution_backward,
    convolution_backward_data,
    convolution_backward_weights,
)
from ._plan import Plan, Tensor, explain, kernels, plan

__all__ = [
    "Plan",
    "Tensor",
    "__version__",
    "conv_transpose",
    "conv_transpose_backprop_data",
    "conv_transpose_backprop_filters",
    "conv_transpose_backward",
    "conv_transpose_backward_data",
    "conv_transpose_backward_weights",
    "convolution",
    "convolution_backprop_data",
    "convolution_backprop_filters",
    "convolution_backward",
    "convolution_backward_data",
    "convolution_backward_weights",
    "explain",
    "grad",
    "kernels",
    "plan",
]


def __getattr__(name):  # convgrad.grad and convgrad.torch without an import of their own
    if name in ("grad", "torch"):
        import importlib

        try:
            return importlib.import_module("." + name, __name__)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            text = f"module {__name__!r} has no attribute {name!r}: PyTorch is not installed"
            raise AttributeError(text) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
