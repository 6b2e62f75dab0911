"""The examples that need PyTorch, in docstrings and documents, run."""

import doctest

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
import convgrad.torch  # noqa: E402
from test_examples_in_docs import blocks_of  # noqa: E402


def test_docstrings():
    result = doctest.testmod(convgrad.torch)
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("document", ["README.md", "docs/pytorch.md"])
def test_documents(document):
    blocks = blocks_of(document)[1]
    assert any("torch" in block for block in blocks)
    names = {"model": torch.nn.Conv2d(3, 4, 3), "images": torch.randn(2, 3, 8, 8)}
    try:
        for block in blocks:
            exec(compile(block, document, "exec"), names)
    finally:
        convgrad.torch.disable()
