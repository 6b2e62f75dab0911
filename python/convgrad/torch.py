"""PyTorch's convolutions and their gradients on the CPU, computed by convgrad.

    import convgrad.torch
    convgrad.torch.enable()          # any model, from here on
    with convgrad.torch.enabled():   # or for a while
        loss.backward()
    with convgrad.torch.profile() as report:
        step()
    print(report)

The CPU kernels of ``aten::convolution``, ``aten::_convolution`` (which traced models call) and
``aten::convolution_backward`` are replaced, below autograd, autocast and vmap, which go on as
before. Tensors of f32, bf16 and f16 are convgrad's; every other type, device and layout, and
whatever convgrad refuses, goes to PyTorch's own kernels.
Results lie in memory as PyTorch's would, and threads are PyTorch's own: ``torch.get_num_threads()``
of them.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, List, Optional

import torch

from . import _core
from ._torch_profile import Report

__all__ = ["disable", "enable", "enabled", "is_enabled", "profile"]

_lock = threading.Lock()
_library: Optional[torch.library.Library] = None
# What is wanted, a flag each: is the forward pass replaced, too?
_on: List[bool] = []  # by enable(): one or none
_blocks: List[bool] = []  # of enabled() and profile() that are open
_registered: Optional[bool] = None  # what is replaced now
_report: Optional[Report] = None


_bridge: Optional[_core.TorchBridge] = None
_own_forward: Optional[Callable[..., Any]] = None
_own_backward: Optional[Callable[..., Any]] = None


def _own_kernel(name: str) -> Callable[..., Any]:
    """PyTorch's kernel of an operator for the CPU, which the replacement falls back to: a call by
    the operator's name would end in the replacement again."""
    operator = getattr(torch.ops.aten, name).default
    keys = torch._C.DispatchKey
    if hasattr(torch.library, "get_kernel"):  # PyTorch 2.10
        kernel = torch.library.get_kernel(operator, "CPU")
        on_cpu = torch._C.DispatchKeySet(keys.CPU)
        return lambda *arguments: kernel.call_boxed(on_cpu, *arguments)
    # The kernel that serves every backend which has none of its own.
    return lambda *arguments: operator._op_dk(keys.CompositeExplicitAutograd, *arguments)


# PyTorch 1.13 has other rules for the memory of results than all later versions.
_OLD_RULES = not hasattr(torch._C, "_conv_determine_backend_memory_format")


def _results_last(
    source, weight, stride, padding, dilation, transposed, output_padding, groups
) -> bool:
    """Not all of PyTorch's kernels know channels-last memory: it says which of them runs."""
    if _OLD_RULES:
        return not transposed and source.dim() < 5
    backend = torch._C._select_conv_backend(
        source, weight, None, stride, padding, dilation, transposed, output_padding, groups
    )
    memory_format = torch._C._conv_determine_backend_memory_format(source, weight, backend)
    return memory_format == torch.channels_last_3d


# (benchmark, deterministic, cudnn_enabled, allow_tf32): what aten::_convolution has more than
# aten::convolution, and no kernel of the CPU looks at.
_MORE = (False, False, True, True)


def _convolution(*arguments):
    """aten::convolution, and aten::_convolution, which traced models call."""
    arguments = arguments[:9]
    report = _report  # another thread may end its block meanwhile
    if report is not None:
        source, weight, _, stride, padding, dilation, transposed, output_padding, groups = arguments
        return report.compare(
            "forward",
            (source, weight, (transposed, stride, padding, dilation, output_padding, groups)),
            lambda: _own_forward(*arguments, *_MORE),
            lambda: _bridge.convolution(*arguments),
        )
    result = _bridge.convolution(*arguments)
    return _own_forward(*arguments, *_MORE) if result is None else result


def _convolution_backward(*arguments):
    report = _report
    if report is not None:
        source, weight, mask = arguments[1], arguments[2], arguments[10]
        stride, padding, dilation, transposed, output_padding, groups = arguments[4:10]
        return report.compare(
            "backward " + "".join(name for name, wanted in zip("swb", mask) if wanted),
            (source, weight, (transposed, stride, padding, dilation, output_padding, groups)),
            lambda: _own_backward(*arguments),
            lambda: _bridge.convolution_backward(*arguments),
        )
    results = _bridge.convolution_backward(*arguments)
    return _own_backward(*arguments) if results is None else results


def _destroy(library: torch.library.Library) -> None:
    destroy = getattr(library, "_destroy", None)
    if destroy is not None:
        destroy()
    else:  # before PyTorch 2.1: what it does when nothing refers to it, but an exception may
        torch.library._impls.difference_update(library._op_impls)
        library._op_impls.clear()
        library.m = None


def _register(forward: bool) -> torch.library.Library:
    global _bridge, _own_forward, _own_backward
    if _bridge is None:
        _own_forward = _own_kernel("_convolution")
        _own_backward = _own_kernel("convolution_backward")
        _bridge = _core.TorchBridge(torch, _results_last, _OLD_RULES)
    library = torch.library.Library("aten", "IMPL")
    try:
        library.impl("convolution_backward", _convolution_backward, "CPU")
        if forward:
            library.impl("convolution", _convolution, "CPU")
            library.impl("_convolution", _convolution, "CPU")
    except BaseException:
        _destroy(library)
        raise
    return library


def _update() -> None:
    """Registers and unregisters, as wanted; under the lock."""
    global _library, _registered
    wanted = any(_on + _blocks) if _on or _blocks else None
    if wanted == _registered:
        return
    if _library is not None:
        library, _library, _registered = _library, None, None
        _destroy(library)
        del library
    if wanted is not None:
        _library = _register(wanted)
        _registered = wanted


def _want(on: List[bool], blocks: List[bool]) -> None:
    """More than before; what cannot be had changes nothing. Under the lock."""
    before = list(_on), list(_blocks)
    _on[:], _blocks[:] = on, blocks
    try:
        _update()
    except BaseException:
        _on[:], _blocks[:] = before
        with contextlib.suppress(Exception):
            _update()
        raise


def enable(*, forward: bool = True) -> None:
    """From here on, convgrad computes PyTorch's convolutions and their gradients on the CPU.

    With ``forward=False`` the gradients alone; the forward pass stays PyTorch's.

    >>> import torch, convgrad.torch
    >>> convgrad.torch.enable()
    >>> layer = torch.nn.Conv2d(3, 8, 3)
    >>> layer(torch.ones(1, 3, 8, 8)).sum().backward()
    >>> layer.weight.grad.sum().item()
    7776.0
    >>> convgrad.torch.disable()
    """
    with _lock:
        _want([forward], list(_blocks))


def disable() -> None:
    """Takes :func:`enable` back: PyTorch is as it was, after the last open :func:`enabled`.

    >>> import convgrad.torch
    >>> convgrad.torch.enable()
    >>> convgrad.torch.disable()
    >>> convgrad.torch.is_enabled()
    False
    """
    with _lock:
        _on.clear()
        _update()


def is_enabled() -> bool:
    """Whether convgrad computes PyTorch's convolutions, or their gradients alone.

    >>> import convgrad.torch
    >>> convgrad.torch.is_enabled()
    False
    """
    return _registered is not None


@contextlib.contextmanager
def enabled(*, forward: bool = True) -> Iterator[None]:
    """:func:`enable` for the length of a ``with`` block.

    >>> import torch, convgrad.torch
    >>> with convgrad.torch.enabled():
    ...     torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)).tolist()
    [[[2.0, 2.0, 2.0]]]
    """
    with _lock:
        _want(list(_on), [*_blocks, forward])
    try:
        yield
    finally:
        with _lock:
            _blocks.remove(forward)
            _update()


@contextlib.contextmanager
def profile() -> Iterator[Report]:
    """Times every convolution and gradient inside the block both in PyTorch and in convgrad.

    Both compute, one after the other, in turns first, so the block takes as long as both; results
    are convgrad's. The report is complete at the block's end: ``print(report)``, ``report.rows``,
    ``report.saved_seconds``.

    >>> import torch, convgrad.torch
    >>> with convgrad.torch.profile() as report:
    ...     y = torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    >>> len(report.rows)
    1
    """
    global _report
    report = Report()
    with enabled():
        with _lock:
            before, _report = _report, report
        try:
            yield report
        finally:
            with _lock:
                _report = before
