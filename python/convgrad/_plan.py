"""Plans: an operation checked once, run as often as wanted; and what would run.

Runs compute on memory alone, as the functions of ``_operations`` do: no history of autograd."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from . import _core
from ._arrays import NAMES, Array, Result, finish, library_of, type_number
from ._operations import options_tuple
from ._words import translated


class Tensor(NamedTuple):
    """The description of an array that is not there yet.

    >>> import convgrad
    >>> convgrad.Tensor((8, 64, 56, 56), "bf16").shape
    (8, 64, 56, 56)
    """

    shape: Tuple[int, ...]
    dtype: Any = "f32"
    strides: Optional[Tuple[int, ...]] = None  # in elements; None: dense, last axis fastest


def _description(argument: Any) -> Any:
    if not isinstance(argument, Tensor):
        return argument
    strides = None if argument.strides is None else tuple(argument.strides)
    return (0, type_number(argument.dtype), tuple(argument.shape), strides)


class Plan:
    """An operation on arrays of known types, shapes and strides. Made by :func:`plan`.

    >>> import convgrad
    >>> made = convgrad.plan(
    ...     "Convolution", convgrad.Tensor((8, 16, 1)), convgrad.Tensor((4, 1, 2)),
    ...     strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    >>> made.outputs[0].shape, made.flops
    ((8, 13, 2), 1664.0)
    """

    def __init__(self, core: _core.Plan) -> None:
        self._core = core

    def run(
        self, *inputs: Array, out: Union[None, Array, Sequence[Optional[Array]]] = None
    ) -> Result:
        """Runs on arrays that are as planned. ``out`` is memory for the result, or a sequence for
        plans of several outputs. The result is one array or a tuple, as planned; plans may run on
        several threads at once.

        >>> import numpy, convgrad
        >>> x, w = numpy.ones((1, 3, 1), "float32"), numpy.ones((2, 1, 1), "float32")
        >>> window = dict(strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
        >>> made = convgrad.plan("Convolution", x, w, **window)
        >>> made.run(x, w).ravel().tolist(), made.run(2 * x, w).ravel().tolist()
        ([2.0, 2.0], [4.0, 4.0])
        >>> out = numpy.empty((1, 2, 1), "float32")
        >>> made.run(x, w, out=out) is out
        True
        """
        allocate, convert = library_of(inputs)
        outputs: Sequence[Any] = () if out is None else (out,)
        if isinstance(out, (list, tuple)):
            outputs = out
        try:
            results = self._core.run(inputs, outputs, allocate)
        except (TypeError, ValueError) as error:
            raise translated(error, {}) from None
        results = finish(results, outputs, convert)
        return results[0] if len(results) == 1 else results

    def explain(self) -> str:
        """What runs and why: the problem, the kernels considered, workspace, expected time.

        >>> import convgrad
        >>> made = convgrad.plan(
        ...     "Convolution", convgrad.Tensor((8, 16, 1)), convgrad.Tensor((4, 1, 2)),
        ...     strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
        >>> print(made.explain())  # doctest: +ELLIPSIS
        operation   Convolution
        ...
        """
        return self._core.explain()

    @property
    def outputs(self) -> Tuple[Optional[Tensor], ...]:
        """The outputs, complete; None where one is not wanted.

        >>> import convgrad
        >>> x, w = convgrad.Tensor((8, 16, 4)), convgrad.Tensor((3, 4, 2))
        >>> made = convgrad.plan(
        ...     "ConvolutionBackward", x, w, convgrad.Tensor((8, 14, 2)), outputs=(None, w),
        ...     strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
        >>> made.outputs
        (None, Tensor(shape=(3, 4, 2), dtype='f32', strides=(8, 2, 1)), None)
        """
        return tuple(
            None if output is None else Tensor(output[1], NAMES[output[0]], output[2])
            for output in self._core.outputs
        )

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory that a run allocates.

        >>> import convgrad
        >>> made = convgrad.plan(
        ...     "Convolution", convgrad.Tensor((8, 16, 1)), convgrad.Tensor((4, 1, 2)),
        ...     strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,), workspace_limit=0)
        >>> made.workspace_bytes
        0
        """
        return self._core.workspace_bytes

    @property
    def flops(self) -> float:
        """Two for each multiply-add whose factors both lie inside their tensors.

        >>> import convgrad
        >>> made = convgrad.plan(
        ...     "Convolution", convgrad.Tensor((1, 3, 1)), convgrad.Tensor((3, 1, 1)),
        ...     strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
        >>> made.flops  # two taps at either end, three in the middle
        14.0
        """
        return self._core.flops

    @property
    def kernel(self) -> str:
        """What runs; empty for gradients together, of which each has its own.

        >>> import convgrad
        >>> made = convgrad.plan(
        ...     "Convolution", convgrad.Tensor((1, 3, 1)), convgrad.Tensor((3, 1, 1)),
        ...     strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,), kernel="oracle")
        >>> made.kernel
        'oracle'
        """
        return self._core.kernel

    @property
    def error_bound(self) -> float:
        """Before it is rounded to its type, an element is off by at most this share of the sum of
        the magnitudes of its terms; 0 for gradients together.

        >>> import convgrad
        >>> made = convgrad.plan(
        ...     "Convolution", convgrad.Tensor((1, 3, 1)), convgrad.Tensor((3, 1, 1)),
        ...     strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
        >>> 0 < made.error_bound < 1e-6
        True
        """
        return self._core.error_bound

    def __repr__(self) -> str:
        shapes = ", ".join(
            "None" if o is None else f"{o.dtype} {'x'.join(map(str, o.shape))}"
            for o in self.outputs
        )
        return f"<convgrad.Plan to {shapes}, {self.kernel or 'gradients'}>"


def plan(
    operation: str,
    *inputs: Union[Array, Tensor],
    outputs: Sequence[Union[None, Array, Tensor]] = (),
    beta: float = 0,
    threads: Optional[int] = None,
    workspace_limit: Optional[int] = None,
    kernel: Optional[str] = None,
    per_sample: bool = False,
    **attributes: Any,
) -> Plan:
    """A plan for repeated calls.

    operation is the specification's name, such as ``"ConvolutionBackwardWeights"``, or
    ``"ConvolutionBackward"`` or ``"ConvTransposeBackward"`` for any of the gradients. Inputs and
    outputs are arrays, whose types, shapes and strides are taken, or :class:`Tensor`; an output may
    be left out where its shape follows.

    >>> import numpy, convgrad
    >>> x = numpy.ones((1, 1, 3, 3), "float32")
    >>> made = convgrad.plan("ConvolutionBackwardWeights", x, x, strides=(1, 1), pads_begin=(1, 1),
    ...                      pads_end=(1, 1), dilations=(1, 1), data_format="NCX",
    ...                      weights_format="OIX", weights_shape=(1, 1, 3, 3))
    >>> made.run(x, x).ravel().tolist()
    [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]
    """
    if not isinstance(operation, str):
        raise TypeError(
            f"operation is a {type(operation).__name__}, expected a name of the specification, "
            "such as 'Convolution'"
        )
    arguments = (
        tuple(_description(argument) for argument in inputs),
        tuple(_description(argument) for argument in outputs),
        options_tuple(threads, beta, workspace_limit, kernel, per_sample),
    )
    try:
        return Plan(_core.plan(operation, attributes, *arguments))
    except (TypeError, ValueError) as error:
        raise translated(error, {}) from None


def explain(operation: str, *inputs: Union[Array, Tensor], **arguments: Any) -> str:
    """What would run and why, in words. Takes what :func:`plan` takes.

    >>> import convgrad
    >>> x = convgrad.Tensor((8, 64, 56, 56))
    >>> w = convgrad.Tensor((64, 64, 3, 3))
    >>> text = convgrad.explain("Convolution", x, w, strides=(1, 1), pads_begin=(1, 1),
    ...                         pads_end=(1, 1), dilations=(1, 1), data_format="NCX",
    ...                         weights_format="OIX")
    >>> text.splitlines()[0]
    'operation   Convolution'
    """
    return plan(operation, *inputs, **arguments).explain()


def kernels() -> Dict[str, str]:
    """The kernels of this build and what each is for, in the order in which they are considered.

    >>> import convgrad
    >>> list(convgrad.kernels())
    ['direct', 'flat', 'contract', 'oracle']
    """
    return dict(_core.kernels())
