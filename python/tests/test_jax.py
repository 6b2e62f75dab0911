"""convgrad.grad on arrays of JAX."""

import convgrad.grad
import numpy
import pytest

jax = pytest.importorskip("jax", reason="needs JAX")


def test_results_are_arrays_of_jax():
    x = jax.numpy.arange(2 * 3 * 4 * 4, dtype=jax.numpy.bfloat16).reshape(2, 3, 4, 4) % 3
    dy = jax.numpy.ones((2, 5, 4, 4), jax.numpy.bfloat16)
    dw = convgrad.grad.conv2d_weight(x, (5, 3, 3, 3), dy, padding=1)
    assert isinstance(dw, jax.Array) and dw.dtype == jax.numpy.bfloat16
    expected = convgrad.grad.conv2d_weight(
        numpy.asarray(x, "float32"), (5, 3, 3, 3), numpy.asarray(dy, "float32"), padding=1
    )
    assert numpy.array_equal(numpy.asarray(dw, "float32"), expected)
