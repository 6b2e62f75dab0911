"""Gradients of convolutions, with the signatures of ``torch.nn.grad``, for arrays of any library.

    conv{1,2,3}d_input, conv{1,2,3}d_weight
    conv_transpose{1,2,3}d_input, conv_transpose{1,2,3}d_weight
    conv{1,2,3}d_weight_per_sample, conv_transpose{1,2,3}d_weight_per_sample   a gradient per image

Arrays are (N, C, X...), weights (OC, IC / groups, X...) or, transposed, (IC, OC / groups, X...), of
any strides. padding is a number, one number for each axis, ``"valid"`` or ``"same"`` (for a stride
of 1, as in PyTorch; transposed convolutions have none). Results carry no history of autograd.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from . import _core
from . import _operations as operations
from ._arrays import Array, Result
from ._words import translated

Axes = Union[int, Sequence[int]]
Padding = Union[str, Axes]


# The words of torch.nn.grad for those of the specification.
_WORDS = {
    "src": "input", "weights": "weight", "diff_dst": "grad_output", "strides": "stride",
    "pads_begin": "padding", "pads_end": "padding", "dilations": "dilation",
    "dst_shape": "input_size", "weights_shape": "weight_size",
}  # fmt: skip


def _call(operation, *arguments, **keywords):
    try:
        return operation(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        raise translated(error, _WORDS) from None


def _shape(name: str, array: Array) -> Tuple[int, ...]:
    shape = getattr(array, "shape", None)
    return tuple(_core.describe(array, name)[1] if shape is None else shape)


def _axes(name: str, value: Axes, rank: int) -> Tuple[int, ...]:
    if not hasattr(value, "__len__") and hasattr(value, "__index__"):
        return (value,) * rank  # type: ignore[return-value]
    if not hasattr(value, "__iter__") or isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}, expected integers")
    values = tuple(value)
    if len(values) == 1:
        values *= rank
    if len(values) != rank:
        raise ValueError(f"{name} has {len(values)} values, expected 1 or {rank}")
    return values


def _pads(
    padding: Padding, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    rank = len(kernel)
    if not isinstance(padding, str):
        pads = _axes("padding", padding, rank)
        return pads, pads
    if padding == "valid":
        return (0,) * rank, (0,) * rank
    if padding == "same":
        if any(step != 1 for step in stride):
            raise ValueError(f"padding is 'same' and stride {tuple(stride)}, expected strides of 1")
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        begin = tuple(t // 2 for t in total)
        return begin, tuple(t - b for t, b in zip(total, begin))
    raise ValueError(f"padding is {padding!r}, expected 'same', 'valid' or numbers")


def _window(
    rank: int,
    name: str,
    kernel: Sequence[int],
    stride: Axes,
    padding: Padding,
    dilation: Axes,
    groups: int,
) -> Dict[str, Any]:
    if not hasattr(kernel, "__len__"):
        raise TypeError(f"{name} is a {type(kernel).__name__}, expected integers")
    if len(kernel) != rank + 2:
        raise ValueError(f"{name} has {len(kernel)} axes, expected {rank + 2}")
    strides = _axes("stride", stride, rank)
    dilations = _axes("dilation", dilation, rank)
    begin, end = _pads(padding, tuple(kernel)[2:], strides, dilations)
    return dict(
        strides=strides,
        pads_begin=begin,
        pads_end=end,
        dilations=dilations,
        groups=groups,
        data_format="NCX",
    )


def _input(rank, input_size, weight, grad_output, stride, padding, dilation, groups):
    window = _window(rank, "weight", _shape("weight", weight), stride, padding, dilation, groups)
    return _call(
        operations.convolution_backward_data,
        grad_output,
        weight,
        dst_shape=tuple(input_size),
        weights_format="OIX",
        **window,
    )


def _weight(rank, input, weight_size, grad_output, stride, padding, dilation, groups, each=False):
    window = _window(rank, "weight_size", weight_size, stride, padding, dilation, groups)
    return _call(
        operations.convolution_backward_weights,
        input, grad_output, weights_shape=tuple(weight_size), weights_format="OIX",
        per_sample=each, **window,
    )  # fmt: skip


def _check_transposed(padding: Padding) -> None:
    if isinstance(padding, str):
        raise ValueError(f"padding is {padding!r}, expected numbers for a transposed convolution")


def _transpose_input(
    rank, input_size, weight, grad_output, stride, padding, output_padding, groups, dilation
):
    _check_transposed(padding)
    window = _window(rank, "weight", _shape("weight", weight), stride, padding, dilation, groups)
    result = _call(
        operations.conv_transpose_backward_data,
        grad_output, weight, weights_format="IOX",
        output_padding=_axes("output_padding", output_padding, rank), **window,
    )  # fmt: skip
    shape = _shape("result", result)
    if input_size is not None and shape != tuple(input_size):
        raise ValueError(f"input_size is {tuple(input_size)}, but the other arguments give {shape}")
    return result


def _transpose_weight(
    rank, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation,
    each=False,
):  # fmt: skip
    _check_transposed(padding)
    window = _window(rank, "weight_size", weight_size, stride, padding, dilation, groups)
    return _call(
        operations.conv_transpose_backward_weights,
        input, grad_output, weights_shape=tuple(weight_size), weights_format="IOX",
        output_padding=_axes("output_padding", output_padding, rank), per_sample=each, **window,
    )  # fmt: skip


def conv1d_input(
    input_size: Sequence[int],
    weight: Array,
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv1d with respect to its input, of the shape input_size.

    >>> import numpy, convgrad.grad
    >>> weight, grad_output = numpy.ones((1, 1, 2), "f4"), numpy.ones((1, 1, 2), "f4")
    >>> convgrad.grad.conv1d_input((1, 1, 3), weight, grad_output)[0, 0].tolist()
    [1.0, 2.0, 1.0]
    """
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv1d with respect to its weight, of the shape weight_size.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((1, 1, 3), "f4"), numpy.ones((1, 1, 2), "f4")
    >>> convgrad.grad.conv1d_weight(input, (1, 1, 2), grad_output)[0, 0].tolist()
    [2.0, 2.0]
    """
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv1d_weight_per_sample(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv1d with respect to weight, for each image: (N, *weight_size).

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((8, 1, 3), "f4"), numpy.ones((8, 4, 2), "f4")
    >>> convgrad.grad.conv1d_weight_per_sample(input, (4, 1, 2), grad_output).shape
    (8, 4, 1, 2)
    """
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups, True)


def conv_transpose1d_input(
    input_size: Optional[Sequence[int]],
    weight: Array,
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose1d with respect to its input, of the shape input_size.

    >>> import numpy, convgrad.grad
    >>> weight, grad_output = numpy.ones((1, 1, 2), "f4"), numpy.ones((1, 1, 3), "f4")
    >>> convgrad.grad.conv_transpose1d_input((1, 1, 2), weight, grad_output)[0, 0].tolist()
    [2.0, 2.0]
    """
    return _transpose_input(
        1, input_size, weight, grad_output, stride, padding, output_padding, groups, dilation
    )


def conv_transpose1d_weight(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose1d with respect to its weight, of the shape weight_size.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((1, 1, 2), "f4"), numpy.ones((1, 1, 3), "f4")
    >>> convgrad.grad.conv_transpose1d_weight(input, (1, 1, 2), grad_output)[0, 0].tolist()
    [2.0, 2.0]
    """
    return _transpose_weight(
        1, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation
    )


def conv_transpose1d_weight_per_sample(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose1d with respect to weight, for each image.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((8, 1, 2), "f4"), numpy.ones((8, 4, 3), "f4")
    >>> convgrad.grad.conv_transpose1d_weight_per_sample(input, (1, 4, 2), grad_output).shape
    (8, 1, 4, 2)
    """
    return _transpose_weight(
        1, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation, True
    )


def conv2d_input(
    input_size: Sequence[int],
    weight: Array,
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv2d with respect to its input, of the shape input_size.

    >>> import numpy, convgrad.grad
    >>> weight, grad_output = numpy.ones((1, 1, 3, 3), "f4"), numpy.ones((1, 1, 3, 3), "f4")
    >>> convgrad.grad.conv2d_input((1, 1, 3, 3), weight, grad_output, padding=1)[0, 0].tolist()
    [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]
    """
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv2d with respect to its weight, of the shape weight_size.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((1, 1, 3, 3), "f4"), numpy.ones((1, 1, 3, 3), "f4")
    >>> convgrad.grad.conv2d_weight(input, (1, 1, 3, 3), grad_output, padding="same")[0, 0].tolist()
    [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]
    """
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_weight_per_sample(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv2d with respect to weight, for each image: (N, *weight_size).

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((8, 1, 5, 5), "f4"), numpy.ones((8, 4, 5, 5), "f4")
    >>> convgrad.grad.conv2d_weight_per_sample(input, (4, 1, 3, 3), grad_output, padding=1).shape
    (8, 4, 1, 3, 3)
    """
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups, True)


def conv_transpose2d_input(
    input_size: Optional[Sequence[int]],
    weight: Array,
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose2d with respect to its input, of the shape input_size.

    >>> import numpy, convgrad.grad
    >>> weight, grad_output = numpy.ones((1, 1, 2, 2), "f4"), numpy.ones((1, 1, 3, 3), "f4")
    >>> convgrad.grad.conv_transpose2d_input((1, 1, 2, 2), weight, grad_output)[0, 0].tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    return _transpose_input(
        2, input_size, weight, grad_output, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d_weight(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose2d with respect to its weight, of the shape weight_size.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((1, 1, 2, 2), "f4"), numpy.ones((1, 1, 3, 3), "f4")
    >>> convgrad.grad.conv_transpose2d_weight(input, (1, 1, 2, 2), grad_output)[0, 0].tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    return _transpose_weight(
        2, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d_weight_per_sample(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose2d with respect to weight, for each image.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((8, 1, 2, 2), "f4"), numpy.ones((8, 4, 3, 3), "f4")
    >>> convgrad.grad.conv_transpose2d_weight_per_sample(input, (1, 4, 2, 2), grad_output).shape
    (8, 1, 4, 2, 2)
    """
    return _transpose_weight(
        2, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation, True
    )


def conv3d_input(
    input_size: Sequence[int],
    weight: Array,
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv3d with respect to its input, of the shape input_size.

    >>> import numpy, convgrad.grad
    >>> weight, grad_output = numpy.ones((1, 1, 2, 2, 2), "f4"), numpy.ones((1, 1, 2, 2, 2), "f4")
    >>> convgrad.grad.conv3d_input((1, 1, 3, 3, 3), weight, grad_output)[0, 0, 0, 0].tolist()
    [1.0, 2.0, 1.0]
    """
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv3d with respect to its weight, of the shape weight_size.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((1, 1, 3, 3, 3), "f4"), numpy.ones((1, 1, 2, 2, 2), "f4")
    >>> convgrad.grad.conv3d_weight(input, (1, 1, 2, 2, 2), grad_output)[0, 0].tolist()
    [[[8.0, 8.0], [8.0, 8.0]], [[8.0, 8.0], [8.0, 8.0]]]
    """
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_weight_per_sample(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Padding = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Result:
    """The gradient of conv3d with respect to weight, for each image: (N, *weight_size).

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((8, 1, 3, 3, 3), "f4"), numpy.ones((8, 4, 2, 2, 2), "f4")
    >>> convgrad.grad.conv3d_weight_per_sample(input, (4, 1, 2, 2, 2), grad_output).shape
    (8, 4, 1, 2, 2, 2)
    """
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups, True)


def conv_transpose3d_input(
    input_size: Optional[Sequence[int]],
    weight: Array,
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose3d with respect to its input, of the shape input_size.

    >>> import numpy, convgrad.grad
    >>> weight, grad_output = numpy.ones((1, 1, 2, 2, 2), "f4"), numpy.ones((1, 1, 3, 3, 3), "f4")
    >>> convgrad.grad.conv_transpose3d_input((1, 1, 2, 2, 2), weight, grad_output)[0, 0].tolist()
    [[[8.0, 8.0], [8.0, 8.0]], [[8.0, 8.0], [8.0, 8.0]]]
    """
    return _transpose_input(
        3, input_size, weight, grad_output, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d_weight(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose3d with respect to its weight, of the shape weight_size.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((1, 1, 2, 2, 2), "f4"), numpy.ones((1, 1, 3, 3, 3), "f4")
    >>> convgrad.grad.conv_transpose3d_weight(input, (1, 1, 2, 2, 2), grad_output)[0, 0].tolist()
    [[[8.0, 8.0], [8.0, 8.0]], [[8.0, 8.0], [8.0, 8.0]]]
    """
    return _transpose_weight(
        3, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d_weight_per_sample(
    input: Array,
    weight_size: Sequence[int],
    grad_output: Array,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Result:
    """The gradient of conv_transpose3d with respect to weight, for each image.

    >>> import numpy, convgrad.grad
    >>> input, grad_output = numpy.ones((8, 1, 2, 2, 2), "f4"), numpy.ones((8, 4, 3, 3, 3), "f4")
    >>> convgrad.grad.conv_transpose3d_weight_per_sample(input, (1, 4, 2, 2, 2), grad_output).shape
    (8, 1, 4, 2, 2, 2)
    """
    return _transpose_weight(
        3, input, weight_size, grad_output, stride, padding, output_padding, groups, dilation, True
    )
