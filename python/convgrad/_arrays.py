"""Arrays of the caller's own library: their types, and memory for results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Optional, Protocol, Sequence, Tuple, Union

from . import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer  # type checkers know it without the package
else:
    Buffer = Any


class SpeaksDLPack(Protocol):
    """Arrays of NumPy, PyTorch, JAX and others."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...


Array = Union[SpeaksDLPack, Buffer]
Result = Any  # an array of the first argument's library, which no type can say of all of them

# The numbers of convgrad::DataType.
F32, BF16, F16 = 1, 2, 3
NAMES = {F32: "f32", BF16: "bf16", F16: "f16"}
_TYPES = {
    "f32": F32, "float32": F32, "torch.float32": F32,
    "bf16": BF16, "bfloat16": BF16, "torch.bfloat16": BF16,
    "f16": F16, "float16": F16, "torch.float16": F16,
}  # fmt: skip


def type_number(dtype: Any, argument: str = "dtype") -> int:
    """The number of a type given as ``"f32"`` or as a library's own type."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if not isinstance(name, str):
        name = getattr(dtype, "__name__", str(dtype))
    if name not in _TYPES:
        raise ValueError(f"{argument} is {dtype!r}, expected f32, bf16 or f16")
    return _TYPES[name]


def _numpy_type(number: int) -> Any:
    import numpy

    if number == BF16:
        import ml_dtypes

        return ml_dtypes.bfloat16
    return numpy.float32 if number == F32 else numpy.float16


def _allocate_numpy(number: int, shape: Tuple[int, ...]) -> Any:
    import numpy

    return numpy.empty(shape, _numpy_type(number))


def _allocate_torch(number: int, shape: Tuple[int, ...]) -> Any:
    import torch

    types = {F32: torch.float32, BF16: torch.bfloat16, F16: torch.float16}
    return torch.empty(shape, dtype=types[number], device="cpu")


def _is_of(library: str, name: str, array: Any) -> bool:
    module = sys.modules.get(library)
    return module is not None and isinstance(array, getattr(module, name))


def library_of(arrays: Sequence[Any]) -> Tuple[Callable[..., Any], Optional[Callable[..., Any]]]:
    """(allocate, convert): memory in the library of the first array, and what turns it into a
    result of that library where results cannot be written to (JAX)."""
    for array in arrays:
        if array is None or isinstance(array, tuple):
            continue
        if _is_of("torch", "Tensor", array):
            return _allocate_torch, None
        if _is_of("numpy", "ndarray", array):
            return _allocate_numpy, None
        if _is_of("jax", "Array", array):
            return _allocate_numpy, sys.modules["jax"].numpy.asarray
        break
    return _core.empty, None


def _count_write(array: Any) -> None:
    """Autograd refuses a backward pass through what has been written since: it counts writes."""
    import torch

    if array.is_inference():
        return
    if hasattr(torch.autograd.graph, "increment_version"):  # PyTorch 2.1
        torch.autograd.graph.increment_version(array)
    else:  # an operation in place that writes nothing
        array.detach()[..., :0].zero_()


def finish(
    results: Sequence[Any], outputs: Sequence[Any], convert: Optional[Callable[..., Any]]
) -> Tuple[Any, ...]:
    """Results as the caller has them: those in memory of the caller's own are that memory."""
    given = tuple(outputs) + (None,) * (len(results) - len(outputs))
    finished = []
    for result, out in zip(results, given):
        if result is not None and result is out:
            if _is_of("torch", "Tensor", out):
                _count_write(out)
        elif result is not None and convert is not None:
            result = convert(result)
        finished.append(result)
    return tuple(finished)
