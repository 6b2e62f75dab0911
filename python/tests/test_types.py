"""What type checkers accept as an array: what speaks DLPack or the buffer protocol, nothing else."""

import os
import re
import subprocess
import sys

import convgrad
import pytest

pytest.importorskip("mypy", reason="needs mypy")

# Lines that end with the sign of a mistake, and those that do not. The class has the method of
# NumPy's arrays, whose own types take half a minute to read.
CALLS = """
import array
from typing import Any
import convgrad
import convgrad.grad

class Array:
    shape = (1, 1, 1)
    def __dlpack__(self, /, *, stream: None = None, max_version: object = None,
                   dl_device: object = None, copy: object = None) -> object: ...

x = Array()
buffer = memoryview(array.array("f", [1]))
window: dict[str, Any] = dict(strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
convgrad.convolution(x, x, x, out=x, **window).shape
convgrad.convolution(buffer, array.array("f", [1]), **window)
convgrad.convolution_backward(x, x, x, out=(None, x, None), **window)
convgrad.convolution_backward_weights(x, x, diff_bias=True, out_dtype="f32", **window)
convgrad.plan("Convolution", x, convgrad.Tensor((1, 1, 1)), **window).run(x, x, out=x)
convgrad.plan("ConvolutionBackward", x, x, x).run(x, x, x, out=[None, x])
convgrad.explain("Convolution", convgrad.Tensor((1, 1, 1)), x)
convgrad.grad.conv1d_weight(x, x.shape, buffer, padding="same")
convgrad.convolution([[1.0]], x, **window)  # a list
convgrad.convolution(x, None, **window)  # nothing
convgrad.convolution_backprop_filters(x, 1.5, filter_shape=(1, 1, 1), **window)  # a number
convgrad.conv_transpose(x, x, out="x", **window)  # a name
convgrad.convolution_backward(x, x, x, out=(None, 1, None), **window)  # a number
convgrad.plan("Convolution", x, x).run(x, [1.0])  # a list
convgrad.plan("Convolution", x, (1, 1, 1))  # a shape
convgrad.convolution(convgrad.Tensor((1, 1, 1)), x, **window)  # a description
convgrad.grad.conv1d_weight(x, x.shape, [[1.0]])  # a list
"""


def test_calls(tmp_path):
    (tmp_path / "calls.py").write_text(CALLS)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "calls.py"]
    environment, path = dict(os.environ), os.path.dirname(os.path.dirname(convgrad.__file__))
    # There it looks by itself, and refuses to be told.
    if not path.endswith(("site-packages", "dist-packages")):
        environment["MYPYPATH"] = path
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    wrong = {int(line) for line in re.findall(r"calls.py:(\d+): error:", ended.stdout)}
    lines = CALLS.splitlines()
    assert wrong == {i for i, line in enumerate(lines, 1) if "  # " in line}, ended.stdout
