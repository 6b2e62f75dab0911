"""The operations of the specification as functions.

Arguments and attributes have the specification's names. Arrays are of any library that speaks
DLPack or the buffer protocol, on the CPU, of f32, bf16 or f16, with any strides; nothing is copied,
and results come from the library of the first array. Every function takes

    out               memory for the result, of any strides; the result is then ``out`` itself
    beta              out = beta * out + result; 0 never reads ``out``
    threads           None: as OpenMP has them, which PyTorch in the same process may have set;
                      never changes a bit of the result
    workspace_limit   bytes of scratch memory, None: no limit; never changes a bit of the result
    kernel            one of ``convgrad.kernels()``; None: the planner chooses

and raises ``ValueError`` with the library's sentence. The interpreter's lock is released meanwhile.
Tensors of PyTorch are read as memory: results have no history of autograd, whatever the inputs
require; ``convgrad.torch`` is for training.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from . import _core
from ._arrays import NAMES, Array, Result, finish, library_of, type_number
from ._words import translated

Integers = Sequence[int]


def options_tuple(
    threads: Optional[int],
    beta: float,
    workspace_limit: Optional[int],
    kernel: Optional[str],
    per_sample: bool = False,
) -> Tuple[int, float, int, str, bool]:
    limit = -1 if workspace_limit is None else workspace_limit
    return (threads or 0, beta, limit, kernel or "", per_sample)


# What the specification calls the output that ``out`` is memory for.
_OUTPUTS = {
    "Convolution": "dst", "ConvTranspose": "dst",
    "ConvolutionBackwardData": "diff_src", "ConvTransposeBackwardData": "diff_src",
    "ConvolutionBackwardWeights": "diff_weights", "ConvTransposeBackwardWeights": "diff_weights",
    "ConvolutionBackpropData": "diff_src", "ConvTransposeBackpropData": "diff_src",
    "ConvolutionBackpropFilters": "diff_weights", "ConvTransposeBackpropFilters": "diff_weights",
}  # fmt: skip
_GRADIENTS = ("diff_src", "diff_weights", "diff_bias")


def _words_of(name: str, outputs: Sequence[Any]) -> Dict[str, str]:
    """The caller's words for outputs whose memory is the caller's."""
    given = [array is not None and not isinstance(array, tuple) for array in outputs]
    if name in _OUTPUTS:
        return {_OUTPUTS[name]: "out"} if given and given[0] else {}
    return {word: f"out[{i}]" for i, word in enumerate(_GRADIENTS[: len(given)]) if given[i]}


def check_beta(beta: float, out: Any) -> None:
    if not hasattr(beta, "__float__"):
        raise TypeError(f"beta is a {type(beta).__name__}, expected a number")
    if beta != 0 and out is None:
        raise ValueError(f"beta is {beta:g}, which reads the output: out is needed")


def run_call(
    name: str,
    attributes: Dict[str, Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    options: Tuple[int, float, int, str, bool],
) -> Tuple[Any, ...]:
    """Runs an operation; results in the library of the first input."""
    allocate, convert = library_of(inputs)
    try:
        results = _core.call(name, attributes, inputs, outputs, options, allocate)
    except (TypeError, ValueError) as error:
        raise translated(error, _words_of(name, outputs)) from None
    return finish(results, outputs, convert)


def _type_of(array: Any, name: str) -> int:
    return _core.describe(array, name)[0]


def _check_out_dtype(number: Optional[int], memory: Any, name: str) -> None:
    """Memory of the caller's has a type already, which out_dtype cannot change."""
    if number is None or memory is None:
        return
    type_ = _type_of(memory, name)
    if type_ != number:
        raise ValueError(
            f"{name} has type {NAMES[type_]}, expected {NAMES[number]} as out_dtype says"
        )


def gradient_of_weights(
    name: str,
    attributes: Dict[str, Any],
    src: Any,
    diff_dst: Any,
    out: Any,
    diff_bias: Any,
    out_dtype: Any,
    options: Tuple[int, float, int, str, bool],
) -> Any:
    check_beta(options[1], out)
    both = diff_bias is not None and diff_bias is not False
    word = "bias_delta" if "Backprop" in name else "diff_bias"
    number = None if out_dtype is None else type_number(out_dtype, "out_dtype")
    _check_out_dtype(number, out, "out")
    if both and diff_bias is not True:
        _check_out_dtype(number, diff_bias, word)
    if both and number is None:
        number = (
            _type_of(out, "out") if out is not None
            else _type_of(diff_bias, word) if diff_bias is not True
            else _type_of(diff_dst, "diff_dst")
        )  # fmt: skip
    described = None if number is None else (0, number, None, None)
    outputs = [described if out is None else out]
    if both:
        check_beta(options[1], None if diff_bias is True else diff_bias)
        outputs.append(described if diff_bias is True else diff_bias)
    results = run_call(name, attributes, (src, diff_dst), outputs, options)
    return results if both else results[0]


def _gradients(
    name: str,
    attributes: Dict[str, Any],
    inputs: Sequence[Any],
    mask: Sequence[bool],
    out_dtype: Any,
    out: Sequence[Any],
    options: Tuple[int, float, int, str, bool],
) -> Tuple[Any, Any, Any]:
    for argument, values in (("output_mask", mask), ("out", out)):
        expected = "expected 3: for diff_src, diff_weights and diff_bias"
        if not isinstance(values, (list, tuple)) and not hasattr(values, "__len__"):
            raise TypeError(f"{argument} is a {type(values).__name__}, {expected}")
        if len(values) != 3:
            raise ValueError(f"{argument} has {len(values)} values, {expected}")
    if not any(mask):
        return None, None, None
    number = _type_of(inputs[2], "diff_dst")
    asked = None if out_dtype is None else type_number(out_dtype, "out_dtype")
    of_weights = number if asked is None else asked
    outputs = []
    for i, (wanted, memory) in enumerate(zip(mask, out)):
        if wanted:
            check_beta(options[1], memory)
            type_ = number if i == 0 else of_weights
            if i > 0:
                _check_out_dtype(asked, memory, f"out[{i}]")
            outputs.append((0, type_, None, None) if memory is None else memory)
        else:
            outputs.append(None)
    return run_call(name, attributes, inputs, outputs, options)  # type: ignore[return-value]


def convolution(
    src: Array,
    weights: Array,
    bias: Optional[Array] = None,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XIO",
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Result:
    """Convolution: src, weights and an optional bias to dst.

    >>> import numpy, convgrad
    >>> src = numpy.ones((1, 3, 3, 1), "float32")        # NXC
    >>> weights = numpy.ones((3, 3, 1, 1), "float32")    # XIO
    >>> window = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))
    >>> convgrad.convolution(src, weights, **window)[0, :, :, 0].tolist()
    [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, groups=groups, data_format=data_format, weights_format=weights_format,
    )  # fmt: skip
    check_beta(beta, out)
    return run_call(
        "Convolution", attributes, (src, weights) if bias is None else (src, weights, bias),
        () if out is None else (out,), options_tuple(threads, beta, workspace_limit, kernel),
    )[0]  # fmt: skip


def convolution_backward_data(
    diff_dst: Array,
    weights: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XIO",
    dst_shape: Optional[Integers] = None,
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Result:
    """ConvolutionBackwardData: diff_dst and weights to diff_src.

    dst_shape, the shape of diff_src, is needed unless ``out`` has it.

    >>> import numpy, convgrad
    >>> diff_dst = numpy.ones((1, 2, 1), "float32")
    >>> weights = numpy.array([1, 2, 3], "float32").reshape(3, 1, 1)
    >>> window = dict(strides=(2,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
    >>> dx = convgrad.convolution_backward_data(diff_dst, weights, dst_shape=(1, 4, 1), **window)
    >>> dx.ravel().tolist()
    [2.0, 4.0, 2.0, 3.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        weights_format=weights_format, dst_shape=dst_shape,
    )  # fmt: skip
    check_beta(beta, out)
    return run_call(
        "ConvolutionBackwardData", attributes, (diff_dst, weights), () if out is None else (out,),
        options_tuple(threads, beta, workspace_limit, kernel),
    )[0]  # fmt: skip


def convolution_backward_weights(
    src: Array,
    diff_dst: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XIO",
    weights_shape: Optional[Integers] = None,
    diff_bias: Union[None, bool, Array] = None,
    out_dtype: Any = None,
    per_sample: bool = False,
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Union[Result, Tuple[Result, Result]]:
    """ConvolutionBackwardWeights: src and diff_dst to diff_weights.

    weights_shape is needed unless ``out`` has it.
    diff_bias: True asks for the gradient of the bias as well, an array is memory for it; the result
    is then a pair. out_dtype: "f32" keeps the sums of bf16 or f16 data. per_sample: a gradient
    for each image, (N, weights...).

    >>> import numpy, convgrad
    >>> src = numpy.ones((1, 1, 3, 3), "float32")
    >>> window = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))
    >>> dw, db = convgrad.convolution_backward_weights(
    ...     src, src, weights_shape=(1, 1, 3, 3), data_format="NCX", weights_format="OIX",
    ...     diff_bias=True, **window)
    >>> dw.ravel().tolist(), db.tolist()
    ([4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0], [9.0])
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, groups=groups, data_format=data_format,
        weights_format=weights_format, weights_shape=weights_shape,
    )  # fmt: skip
    return gradient_of_weights(
        "ConvolutionBackwardWeights", attributes, src, diff_dst, out, diff_bias, out_dtype,
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )  # fmt: skip


def conv_transpose(
    src: Array,
    weights: Array,
    bias: Optional[Array] = None,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Result:
    """ConvTranspose: src, weights and an optional bias to dst.

    >>> import numpy, convgrad
    >>> src = numpy.array([1, 10], "float32").reshape(1, 2, 1)
    >>> weights = numpy.array([1, 2, 3], "float32").reshape(3, 1, 1)
    >>> window = dict(strides=(2,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    >>> convgrad.conv_transpose(src, weights, **window).ravel().tolist()
    [1.0, 2.0, 13.0, 20.0, 30.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        weights_format=weights_format,
    )  # fmt: skip
    check_beta(beta, out)
    return run_call(
        "ConvTranspose", attributes, (src, weights) if bias is None else (src, weights, bias),
        () if out is None else (out,), options_tuple(threads, beta, workspace_limit, kernel),
    )[0]  # fmt: skip


def conv_transpose_backward_data(
    diff_dst: Array,
    weights: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Result:
    """ConvTransposeBackwardData: diff_dst and weights to diff_src.

    >>> import numpy, convgrad
    >>> diff_dst = numpy.ones((1, 5, 1), "float32")
    >>> weights = numpy.array([1, 2, 3], "float32").reshape(3, 1, 1)
    >>> window = dict(strides=(2,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    >>> convgrad.conv_transpose_backward_data(diff_dst, weights, **window).ravel().tolist()
    [6.0, 6.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        weights_format=weights_format,
    )  # fmt: skip
    check_beta(beta, out)
    return run_call(
        "ConvTransposeBackwardData", attributes, (diff_dst, weights), () if out is None else (out,),
        options_tuple(threads, beta, workspace_limit, kernel),
    )[0]  # fmt: skip


def conv_transpose_backward_weights(
    src: Array,
    diff_dst: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    weights_shape: Optional[Integers] = None,
    diff_bias: Union[None, bool, Array] = None,
    out_dtype: Any = None,
    per_sample: bool = False,
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Union[Result, Tuple[Result, Result]]:
    """ConvTransposeBackwardWeights: src and diff_dst to diff_weights.

    weights_shape is needed unless ``out`` has it.
    diff_bias: True asks for the gradient of the bias as well, an array is memory for it; the result
    is then a pair. out_dtype: "f32" keeps the sums of bf16 or f16 data. per_sample: a gradient
    for each image, (N, weights...).

    >>> import numpy, convgrad
    >>> src = numpy.array([1, 10], "float32").reshape(1, 2, 1)
    >>> diff_dst = numpy.arange(5, dtype="float32").reshape(1, 5, 1)
    >>> window = dict(strides=(2,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    >>> convgrad.conv_transpose_backward_weights(
    ...     src, diff_dst, weights_shape=(3, 1, 1), **window).ravel().tolist()
    [20.0, 31.0, 42.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        weights_format=weights_format, weights_shape=weights_shape,
    )  # fmt: skip
    return gradient_of_weights(
        "ConvTransposeBackwardWeights", attributes, src, diff_dst, out, diff_bias, out_dtype,
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )  # fmt: skip


def convolution_backward(
    src: Array,
    weights: Array,
    diff_dst: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XIO",
    output_mask: Sequence[bool] = (True, True, True),
    out_dtype: Any = None,
    per_sample: bool = False,
    out: Sequence[Optional[Array]] = (None, None, None),
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Tuple[Optional[Result], Optional[Result], Optional[Result]]:
    """Any of diff_src, diff_weights and diff_bias of a Convolution in one call.

    output_mask says which are wanted; the others are None, and nothing is computed for them. Each
    has the bits of the single operation. ``out`` has memory for any of them. out_dtype is for
    diff_weights and diff_bias, as is per_sample.

    >>> import numpy, convgrad
    >>> ones = numpy.ones((1, 3, 1), "float32")
    >>> window = dict(strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
    >>> dx, dw, db = convgrad.convolution_backward(
    ...     ones, ones.reshape(3, 1, 1), ones, output_mask=(True, False, True), **window)
    >>> dx.ravel().tolist(), dw, db.tolist()
    ([2.0, 3.0, 2.0], None, [3.0])
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, groups=groups, data_format=data_format,
        weights_format=weights_format,
    )  # fmt: skip
    return _gradients(
        "ConvolutionBackward", attributes, (src, weights, diff_dst), output_mask, out_dtype, out,
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )  # fmt: skip


def conv_transpose_backward(
    src: Array,
    weights: Array,
    diff_dst: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    output_mask: Sequence[bool] = (True, True, True),
    out_dtype: Any = None,
    per_sample: bool = False,
    out: Sequence[Optional[Array]] = (None, None, None),
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Tuple[Optional[Result], Optional[Result], Optional[Result]]:
    """Any of diff_src, diff_weights and diff_bias of a ConvTranspose in one call.

    output_mask says which are wanted; the others are None, and nothing is computed for them. Each
    has the bits of the single operation. ``out`` has memory for any of them. out_dtype is for
    diff_weights and diff_bias, as is per_sample.

    >>> import numpy, convgrad
    >>> ones = numpy.ones((1, 3, 1), "float32")
    >>> window = dict(strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
    >>> dx, dw, db = convgrad.conv_transpose_backward(
    ...     ones, ones.reshape(3, 1, 1), ones, output_mask=(True, False, True), **window)
    >>> dx.ravel().tolist(), dw, db.tolist()
    ([2.0, 3.0, 2.0], None, [3.0])
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        weights_format=weights_format,
    )  # fmt: skip
    return _gradients(
        "ConvTransposeBackward", attributes, (src, weights, diff_dst), output_mask, out_dtype, out,
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )  # fmt: skip
