"""convgrad.grad: the signatures of torch.nn.grad, on arrays of NumPy and plain buffers."""

import itertools

import convgrad.grad
import numpy
import pytest


def test_names():
    kinds = [f"conv{t}{rank}d" for t in ("", "_transpose") for rank in (1, 2, 3)]
    for name in kinds:
        for suffix in ("_input", "_weight", "_weight_per_sample"):
            assert callable(getattr(convgrad.grad, name + suffix))


def test_padding_by_name(integers):
    x, dy, size = integers(2, 3, 8, 9), integers(2, 4, 8, 9), (4, 3, 2, 5)
    same = convgrad.grad.conv2d_weight(x, size, dy, padding="same", dilation=(3, 2))
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 2), (4, 4)))  # an odd one goes to the end
    assert numpy.array_equal(
        same, convgrad.grad.conv2d_weight(padded, size, dy, padding="valid", dilation=(3, 2))
    )
    of_padded = convgrad.grad.conv2d_input(padded.shape, integers(*size), dy, dilation=(3, 2))
    assert of_padded.shape == padded.shape
    with pytest.raises(ValueError, match="strides of 1"):
        convgrad.grad.conv2d_weight(x, size, dy, stride=2, padding="same")
    with pytest.raises(ValueError, match="expected 'same', 'valid' or numbers"):
        convgrad.grad.conv2d_weight(x, size, dy, padding="full")
    with pytest.raises(ValueError, match="padding has 3 values"):
        convgrad.grad.conv2d_weight(x, size, dy, padding=(1, 2, 3))
    with pytest.raises(ValueError, match="transposed"):
        convgrad.grad.conv_transpose2d_weight(x, size, dy, padding="same")


def test_plain_buffers(integers):
    x, w, dy = integers(1, 2, 5), integers(2, 3, 3), integers(1, 3, 7)
    given = [memoryview(array) for array in (x, w, dy)]
    expected = convgrad.grad.conv_transpose1d_input(x.shape, w, dy)
    got = convgrad.grad.conv_transpose1d_input(x.shape, given[1], given[2])
    assert memoryview(got).tolist() == expected.tolist()
    own = convgrad.grad.conv_transpose1d_weight(given[0], w.shape, given[2])
    assert numpy.array_equal(
        numpy.from_dlpack(convgrad.grad.conv_transpose1d_input(None, own, dy)),
        convgrad.grad.conv_transpose1d_input(None, numpy.from_dlpack(own), dy),
    )


def test_padding_of_numpy(integers):
    x, dy = integers(1, 2, 5, 5), integers(1, 3, 5, 5)
    got = convgrad.grad.conv2d_weight(x, (3, 2, 3, 3), dy, padding=numpy.array([1, 1]))
    assert numpy.array_equal(got, convgrad.grad.conv2d_weight(x, (3, 2, 3, 3), dy, padding=1))


def test_every_axis_of_a_list(integers):
    x, size = integers(1, 2, 9, 8), (3, 2, 3, 2)
    for stride, padding, dilation in itertools.product((1, (2, 1)), (0, (1, 0)), (1, (1, 2))):
        pair = lambda v: (v, v) if isinstance(v, int) else v
        (sh, sw), (ph, pw), (dh, dw) = pair(stride), pair(padding), pair(dilation)
        h, w = (9 + 2 * ph - 2 * dh - 1) // sh + 1, (8 + 2 * pw - dw - 1) // sw + 1
        dy = integers(1, 3, h, w)
        result = convgrad.grad.conv2d_weight(x, size, dy, stride, padding, dilation)
        padded = numpy.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
        for i, j in itertools.product(range(3), range(2)):
            seen = padded[0, :, i * dh :, j * dw :][:, : h * sh : sh, : w * sw : sw][:, :h, :w]
            expected = numpy.einsum("oyx,iyx->oi", dy[0], seen)
            assert numpy.array_equal(result[:, :, i, j], expected)
