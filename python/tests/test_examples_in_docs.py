"""The examples in docstrings and documents run, and print what they say."""

import doctest
import functools
import importlib
import importlib.util
import pathlib
import re

import convgrad.grad
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["_first_generation", "_operations", "_plan", "grad"])
def test_docstrings(name):
    module = importlib.import_module("convgrad." + name)
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def test_docstrings_of_the_bridge():
    pytest.importorskip("torch", reason="needs PyTorch")
    test_docstrings("torch")


def test_everything_has_an_example():
    names = ["grad." + name for name in dir(convgrad.grad) if name.startswith("conv")]
    names += [name for name in convgrad.__all__ if name != "grad"]
    assert len(names) > 30
    for name in names:
        item = functools.reduce(getattr, name.split("."), convgrad)
        if callable(item):
            assert ">>>" in (item.__doc__ or ""), name


@pytest.mark.parametrize("document", ["README.md", "docs/pytorch.md"])
def test_documents(document):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text("utf-8"), re.DOTALL)
    assert blocks
    names = {}
    has_torch = importlib.util.find_spec("torch") is not None
    if has_torch:
        import convgrad.torch
        import torch

        names["model"] = torch.nn.Conv2d(3, 4, 3)
        names["images"] = torch.randn(2, 3, 8, 8)
    try:
        for block in blocks:
            if has_torch or "torch" not in block:
                exec(compile(block, document, "exec"), names)
    finally:
        if has_torch:
            convgrad.torch.disable()
