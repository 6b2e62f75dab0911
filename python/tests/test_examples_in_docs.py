"""The examples in docstrings and documents run, and print what they say."""

import doctest
import functools
import importlib
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


def test_everything_has_an_example():
    names = ["grad." + name for name in dir(convgrad.grad) if name.startswith("conv")]
    names += [name for name in convgrad.__all__ if name != "grad"]
    assert len(names) > 30
    for name in names:
        item = functools.reduce(getattr, name.split("."), convgrad)
        if callable(item):
            assert ">>>" in (item.__doc__ or ""), name
    for name, item in vars(convgrad.Plan).items():
        if not name.startswith("_"):
            assert ">>>" in (item.__doc__ or ""), name


def blocks_of(document):
    """(the examples of Python that PyTorch takes no part in, all of them)."""
    text = (ROOT / document).read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [block for block in blocks if "torch" not in block], blocks


def test_documents():
    """What needs PyTorch is in test_torch_examples_in_docs."""
    blocks = blocks_of("docs/pytorch.md")[0]
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/pytorch.md", "exec"), {})
