"""The examples in docstrings run and print what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["_first_generation", "_operations", "_plan", "grad"])
def test_docstrings(name):
    module = importlib.import_module("convgrad." + name)
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0
