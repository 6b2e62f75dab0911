"""The first generation's ("-1") names: what is weights now is a filter there, and ConvTranspose's
filters hold their channel axes in the other order. Arguments as in ``_operations``."""

from __future__ import annotations

from typing import Any, Optional, Tuple, Union

from ._arrays import Array, Result
from ._operations import (
    Integers,
    check_beta,
    gradient_of_weights,
    options_tuple,
    run_call,
)


def convolution_backprop_data(
    output_delta: Array,
    filter: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    filter_format: str = "XIO",
    output_shape: Optional[Integers] = None,
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Result:
    """ConvolutionBackpropData, the first generation's name of ConvolutionBackwardData.

    output_shape, the shape of input_delta, is needed unless ``out`` has it.

    >>> import numpy, convgrad
    >>> delta = numpy.ones((1, 2, 1), "float32")
    >>> filter = numpy.array([1, 2, 3], "float32").reshape(3, 1, 1)
    >>> window = dict(strides=(2,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
    >>> dx = convgrad.convolution_backprop_data(delta, filter, output_shape=(1, 4, 1), **window)
    >>> dx.ravel().tolist()
    [2.0, 4.0, 2.0, 3.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        filter_format=filter_format, output_shape=output_shape,
    )  # fmt: skip
    check_beta(beta, out)
    return run_call(
        "ConvolutionBackpropData", attributes, (output_delta, filter),
        () if out is None else (out,),
        options_tuple(threads, beta, workspace_limit, kernel),
    )[0]  # fmt: skip


def convolution_backprop_filters(
    input_forward: Array,
    output_delta: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    groups: int = 1,
    data_format: str = "NXC",
    filter_format: str = "XIO",
    filter_shape: Optional[Integers] = None,
    bias_delta: Union[None, bool, Array] = None,
    out_dtype: Any = None,
    per_sample: bool = False,
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Union[Result, Tuple[Result, Result]]:
    """ConvolutionBackpropFilters, the first generation's name of ConvolutionBackwardWeights.

    filter_shape is needed unless ``out`` has it.
    bias_delta: True asks for the gradient of the bias as well, an array is memory for it; the
    result is then a pair. out_dtype: "f32" keeps the sums of bf16 or f16 data. per_sample: a
    gradient for each image, (N, filter...).

    >>> import numpy, convgrad
    >>> ones = numpy.ones((1, 3, 1), "float32")
    >>> window = dict(strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
    >>> convgrad.convolution_backprop_filters(
    ...     ones, ones, filter_shape=(3, 1, 1), **window).ravel().tolist()
    [2.0, 3.0, 2.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, groups=groups, data_format=data_format,
        filter_format=filter_format, filter_shape=filter_shape,
    )  # fmt: skip
    return gradient_of_weights(
        "ConvolutionBackpropFilters", attributes, input_forward, output_delta, out, bias_delta,
        out_dtype,
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )  # fmt: skip


def conv_transpose_backprop_data(
    output_delta: Array,
    filter: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    filter_format: str = "XIO",
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Result:
    """ConvTransposeBackpropData, the first generation's name of ConvTransposeBackwardData.

    The filter holds its channel axes in the other order: (X..., IC, OC / groups) under XIO.

    >>> import numpy, convgrad
    >>> delta = numpy.ones((1, 5, 1), "float32")
    >>> filter = numpy.array([1, 2, 3], "float32").reshape(3, 1, 1)
    >>> window = dict(strides=(2,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    >>> convgrad.conv_transpose_backprop_data(delta, filter, **window).ravel().tolist()
    [6.0, 6.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        filter_format=filter_format,
    )  # fmt: skip
    check_beta(beta, out)
    return run_call(
        "ConvTransposeBackpropData", attributes, (output_delta, filter),
        () if out is None else (out,),
        options_tuple(threads, beta, workspace_limit, kernel),
    )[0]  # fmt: skip


def conv_transpose_backprop_filters(
    input_forward: Array,
    output_delta: Array,
    *,
    strides: Integers,
    pads_begin: Integers,
    pads_end: Integers,
    dilations: Integers,
    auto_pad: str = "none",
    output_padding: Optional[Integers] = None,
    groups: int = 1,
    data_format: str = "NXC",
    filter_format: str = "XIO",
    filter_shape: Optional[Integers] = None,
    bias_delta: Union[None, bool, Array] = None,
    out_dtype: Any = None,
    per_sample: bool = False,
    out: Optional[Array] = None,
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
) -> Union[Result, Tuple[Result, Result]]:
    """ConvTransposeBackpropFilters, the first generation's name of ConvTransposeBackwardWeights.

    filter_shape is needed unless ``out`` has it, with the channel axes in the other order.
    bias_delta: True asks for the gradient of the bias as well, an array is memory for it; the
    result is then a pair. out_dtype: "f32" keeps the sums of bf16 or f16 data. per_sample: a
    gradient for each image, (N, filter...).

    >>> import numpy, convgrad
    >>> src = numpy.array([1, 10], "float32").reshape(1, 2, 1)
    >>> delta = numpy.arange(5, dtype="float32").reshape(1, 5, 1)
    >>> window = dict(strides=(2,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    >>> convgrad.conv_transpose_backprop_filters(
    ...     src, delta, filter_shape=(3, 1, 1), **window).ravel().tolist()
    [20.0, 31.0, 42.0]
    """
    attributes = dict(
        strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations,
        auto_pad=auto_pad, output_padding=output_padding, groups=groups, data_format=data_format,
        filter_format=filter_format, filter_shape=filter_shape,
    )  # fmt: skip
    return gradient_of_weights(
        "ConvTransposeBackpropFilters", attributes, input_forward, output_delta, out, bias_delta,
        out_dtype,
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )  # fmt: skip
