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
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import torch

from . import _core
from ._torch_profile import Report
from ._torch_profile import compare as compare_for

__all__ = ["disable", "enable", "enabled", "is_enabled", "profile"]

_lock = threading.Lock()
# No other thread is in the middle of a change when a child begins, which has none of them to end it.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
# What is wanted, a flag each: is the forward pass replaced, too?
_on: List[bool] = []  # by enable(): one or none
_blocks: List[bool] = []  # of enabled() and profile() that are open
_replaced: Optional[bool] = None  # what is replaced now
_reports: List[Report] = []  # of profile() that are open, whatever thread opened them

# What is registered: the operators that convgrad's kernels stand for, whether they compute or not.
_OPERATORS = {"backward": ("convolution_backward",), "forward": ("convolution", "_convolution")}
_registered: Dict[str, torch.library.Library] = {}
_bridge: Optional[_core.TorchBridge] = None


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


_BACKENDS = getattr(torch._C, "_ConvBackend")  # which PyTorch's own types do not know
_KEEPING_BACKENDS = (_BACKENDS.Slow2d, _BACKENDS.SlowTranspose2d)


def _keeps_weight(
    source, weight, stride, padding, dilation, transposed, output_padding, groups
) -> bool:
    """PyTorch's backends differ in the strides that the gradient of a weight has along axes of one
    position: oneDNN, and loops with dilation, give those of the memory format, its other loops
    those of the weight."""
    backend = torch._C._select_conv_backend(
        source, weight, None, stride, padding, dilation, transposed, output_padding, groups
    )
    return backend in _KEEPING_BACKENDS


# (benchmark, deterministic, cudnn_enabled, allow_tf32): what aten::_convolution has more than
# aten::convolution, and no kernel of the CPU looks at.
_MORE = (False, False, True, True)


def _make_bridge() -> _core.TorchBridge:
    own = _own_kernel("_convolution")
    return _core.TorchBridge(
        torch,
        lambda *arguments: own(*arguments[:9], *_MORE),
        _own_kernel("convolution_backward"),
        _own_kernel("convolution"),
        _results_last,
        _keeps_weight,
        _OLD_RULES,
    )


def _compare(reports: Sequence[Report]) -> Callable[..., Any]:
    """What the kernels call while these profiles are open."""
    bridge = _bridge
    assert bridge is not None
    own_kernels = {"forward": bridge.own_forward, "backward": bridge.own_backward}
    replacements = {"forward": bridge.convolution, "backward": bridge.convolution_backward}

    def compare(direction, arguments):
        arguments = arguments[: 9 if direction == "forward" else 11]
        if direction == "forward":
            (source, weight), geometry, what = arguments[:2], arguments[3:9], direction
        else:
            (source, weight), geometry = arguments[1:3], arguments[4:10]
            what = "backward " + "".join(n for n, wanted in zip("swb", arguments[10]) if wanted)
        stride, padding, dilation, transposed, output_padding, groups = geometry
        return compare_for(
            reports,
            what,
            (source, weight, (transposed, stride, padding, dilation, output_padding, groups)),
            lambda: own_kernels[direction](*arguments),
            lambda: replacements[direction](*arguments),
        )

    return compare


def _destroy(library: torch.library.Library) -> None:
    destroy = getattr(library, "_destroy", None)
    if destroy is not None:
        destroy()
    else:  # before PyTorch 2.1: what it does when nothing refers to it, but an exception may
        torch.library._impls.difference_update(library._op_impls)
        library._op_impls.clear()
        library.m = None


def _register(direction: str) -> None:
    assert _bridge is not None
    library = torch.library.Library("aten", "IMPL")
    try:
        for name in _OPERATORS[direction]:
            library.impl(name, getattr(_bridge, direction + "_kernel"), "CPU")
    except BaseException:
        _destroy(library)
        raise
    _registered[direction] = library


def _others_compute() -> bool:
    """Whether a thread beside this one has computed a convolution here and has not ended."""
    count = _core.TorchBridge.other_threads
    if count() == 0:
        if len(sys._current_frames()) == 1:
            return False
        # Threads that compute show up meanwhile.
        time.sleep(0.01)
    for pause in (0, 5e-5, 5e-4):  # one that has been joined takes some microseconds more to end
        time.sleep(pause)
        if count() == 0:
            return False
    return True


def _update() -> None:
    """Replaces, registers and unregisters, as wanted; under the lock.

    PyTorch's dispatcher takes a kernel away without a look at threads that are on their way into
    it. So a kernel that is not wanted computes by PyTorch's own from now on, and is taken away
    when no other thread can be there: at once where one thread alone computes convolutions, else
    not before the others have ended.
    """
    global _bridge, _replaced
    wanted = any(_on + _blocks) if _on or _blocks else None
    if _bridge is None:
        if wanted is None:
            return
        _bridge = _make_bridge()
    directions = [] if wanted is None else ["backward", "forward"] if wanted else ["backward"]
    for direction in directions:
        if direction not in _registered:
            _register(direction)
    _bridge.replace(forward="forward" in directions, backward="backward" in directions)
    _replaced = wanted
    unwanted = [direction for direction in _registered if direction not in directions]
    if unwanted and not _others_compute():
        for direction in unwanted:
            _destroy(_registered.pop(direction))


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

    Other threads may be computing meanwhile. Each of their convolutions is convgrad's or PyTorch's;
    and while one of them lives, PyTorch's kernels are called through convgrad's.

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
    return _replaced is not None


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


def _show_reports() -> None:
    assert _bridge is not None
    _bridge.set_report(_compare(tuple(_reports)) if _reports else None)


@contextlib.contextmanager
def profile() -> Iterator[Report]:
    """Times every convolution and gradient inside the block both in PyTorch and in convgrad.

    Both compute, one after the other, in turns first, so the block takes as long as both; results
    are convgrad's. The report is complete at the block's end: ``print(report)``, ``report.rows``,
    ``report.saved_seconds``. Blocks may be nested, or open on several threads: each call is timed
    once and is in the report of every block that is open then.

    >>> import torch, convgrad.torch
    >>> with convgrad.torch.profile() as report:
    ...     y = torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    >>> len(report.rows)
    1
    """
    report = Report()
    with enabled():
        with _lock:
            _reports.append(report)
            _show_reports()
        try:
            yield report
        finally:
            with _lock:
                _reports.remove(report)
                _show_reports()
