"""convgrad.torch: of the three gradients of a convolution, those that are asked for, and no other."""

import itertools
import os
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
import convgrad.torch  # noqa: E402

MASKS = list(itertools.product([False, True], repeat=3))


def integers(*shape):
    return torch.randint(-2, 3, shape).float()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("transposed", [False, True])
def test_results_are_what_is_asked_for(mask, transposed):
    x, w, dy = integers(2, 4, 5, 5), integers(4, 4, 3, 3), integers(2, 4, 5, 5)
    arguments = ([4], [1, 1], [1, 1], [1, 1], transposed, [0, 0], 1)
    everything = torch.ops.aten.convolution_backward(dy, x, w, *arguments, [True] * 3)
    with convgrad.torch.enabled():
        results = torch.ops.aten.convolution_backward(dy, x, w, *arguments, list(mask))
    for wanted, result, expected in zip(mask, results, everything):
        assert torch.equal(result, expected) if wanted else result is None


@pytest.mark.parametrize("mask", MASKS)
def test_nothing_else_is_allocated(mask):
    """Without memory, a gradient of the bias that nobody wants cannot be computed."""
    made = []

    def counted(function):
        def call(*arguments, **keywords):
            made.append(function(*arguments, **keywords))
            return made[-1]

        return call

    stand_in = types.ModuleType("torch")
    vars(stand_in).update(vars(torch))
    stand_in.empty_strided = counted(torch.empty_strided)
    stand_in.empty_like = counted(torch.empty_like)
    questions = [lambda *_: pytest.fail("PyTorch is asked")] * 5
    bridge = convgrad._core.TorchBridge(stand_in, *questions, False)
    x, w, dy = integers(2, 4, 5, 5), integers(6, 4, 3, 3), integers(2, 6, 5, 5)
    geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    results = bridge.convolution_backward(dy, x, w, [6], *geometry, list(mask))
    assert [result is not None for result in results] == list(mask)
    wanted = [result for result in results if result is not None]
    assert [id(memory) for memory in made] == [id(result) for result in wanted]


# Arguments: which of dy, x and w must not be read, and the mask. A child for each, which prints the
# sums of its gradients, and its signal after them.
SCRIPT = """
import ctypes, faulthandler, mmap, os, sys, torch, convgrad.torch
protect = ctypes.CDLL(None, use_errno=True).mprotect

def ones(shape, readable):
    page = mmap.mmap(-1, mmap.PAGESIZE)
    count = torch.Size(shape).numel()
    tensor = torch.frombuffer(page, dtype=torch.float32, count=count).reshape(shape).fill_(1)
    failed = 0 if readable else protect(ctypes.c_void_p(tensor.data_ptr()), mmap.PAGESIZE, 0)
    assert not failed, ctypes.get_errno()
    return tensor

torch.set_num_threads(1)
convgrad.torch.enable()
for unread, mask in zip(sys.argv[1::2], sys.argv[2::2]):
    for transposed in False, True:
        child = os.fork()
        if child == 0:
            faulthandler.disable()
            dy, x, w = (ones(shape, name not in unread) for name, shape in
                        (("y", (2, 4, 5, 5)), ("x", (2, 4, 5, 5)), ("w", (4, 4, 3, 3))))
            results = torch.ops.aten.convolution_backward(
                dy, x, w, [4], [1, 1], [1, 1], [1, 1], transposed, [0, 0], 1,
                [letter == "1" for letter in mask])
            print(*(0 if result is None else int(result.sum()) for result in results), flush=True)
            os._exit(0)
        print(os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)
"""
SEGMENTATION_FAULT = "11"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and mprotect")
def test_nothing_else_is_computed():
    """The gradient of the source needs the weight, that of the weight the source. What none of the
    wanted needs is in memory that ends the process when it is read."""
    cases = [
        ("x", "100", "5408 0 0"),
        ("x", "101", "5408 0 200"),
        ("w", "010", "0 5408 0"),
        ("w", "011", "0 5408 200"),
        ("xw", "001", "0 0 200"),
        ("xwy", "000", "0 0 0"),
        # It does: wanted, they read it.
        ("x", "010", None),
        ("w", "100", None),
        ("y", "001", None),
    ]
    arguments = [word for case in cases for word in case[:2]]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=120
    )
    expected = []
    for _, _, sums in cases:
        expected += 2 * ([SEGMENTATION_FAULT] if sums is None else [sums, "0"])
    assert ended.stdout.splitlines() == expected, ended.stderr
