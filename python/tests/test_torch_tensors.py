"""The plain functions and convgrad.grad on tensors of PyTorch, and against torch.nn.grad in f64."""

import inspect

import convgrad.grad
import numpy
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

WINDOW = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
              data_format="NCX", weights_format="OIX")  # fmt: skip

CASES = [
    (1, 0, 1, 1),
    (2, 1, 1, 2),
    (1, 2, 2, 4),
    (3, 1, 2, 1),
    ((2, 1, 3), (1, 0, 2), (1, 2, 1), 2),
    ((1, 3, 2), (0, 2, 1), (3, 1, 2), 1),
]  # stride, padding, dilation: of every axis, or of each; groups


def of_axes(rank, *values):
    """One value for every axis as it is, of several the first ones."""
    return [value[:rank] if isinstance(value, tuple) else value for value in values]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("stride, padding, dilation, groups", CASES)
def test_against_torch(rank, stride, padding, dilation, groups):
    theirs, ours = torch.nn.grad, convgrad.grad
    x = torch.randint(-3, 4, (2, 4, *(8, 7, 9)[:rank])).double()
    w = torch.randint(-3, 4, (8, 4 // groups, *(3, 2, 3)[:rank])).double()
    tail = (*of_axes(rank, stride, padding, dilation), groups)
    y = getattr(torch.nn.functional, f"conv{rank}d")(x, w, None, *tail)
    dy = torch.randint(-3, 4, y.shape).double()
    pairs = [
        (f"conv{rank}d_input", (x.shape, w, dy)),
        (f"conv{rank}d_weight", (x, w.shape, dy)),
    ]
    for name, arguments in pairs:
        expected = getattr(theirs, name)(*arguments, *tail)
        same = inspect.signature(getattr(theirs, name)).parameters
        assert list(inspect.signature(getattr(ours, name)).parameters) == list(same)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            given = [a.to(dtype) if isinstance(a, torch.Tensor) else a for a in arguments]
            result = getattr(ours, name)(*given, *tail)
            assert result.dtype == dtype and torch.equal(result, expected.to(dtype))
        # Leaves of autograd, as in PyTorch's own examples, and the same from NumPy.
        given = [
            a.float().requires_grad_() if isinstance(a, torch.Tensor) else a for a in arguments
        ]
        result = getattr(ours, name)(*given, *tail)
        assert not result.requires_grad and torch.equal(result, expected.float())
        given = [a.float().numpy() if isinstance(a, torch.Tensor) else a for a in arguments]
        assert numpy.array_equal(getattr(ours, name)(*given, *tail), expected.float().numpy())
    each = getattr(ours, f"conv{rank}d_weight_per_sample")(x.float(), w.shape, dy.float(), *tail)
    for i in range(2):
        alone = getattr(theirs, f"conv{rank}d_weight")(x[i : i + 1], w.shape, dy[i : i + 1], *tail)
        assert torch.equal(each[i], alone.float())


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("stride, padding, dilation, groups", CASES)
def test_transposed_against_torch(rank, stride, padding, dilation, groups):
    ours = convgrad.grad
    stride, padding, dilation = of_axes(rank, stride, padding, dilation)
    pairs = zip(numpy.broadcast_to(stride, rank), numpy.broadcast_to(dilation, rank))
    more = tuple(int(max(pair)) - 1 for pair in pairs)
    tail = (stride, padding, more, groups, dilation)
    x = torch.randint(-3, 4, (2, 4, *(4, 3, 5)[:rank])).double().requires_grad_()
    w = torch.randint(-3, 4, (4, 8 // groups, *(3, 2, 3)[:rank])).double().requires_grad_()
    y = getattr(torch.nn.functional, f"conv_transpose{rank}d")(x, w, None, *tail)
    dy = torch.randint(-3, 4, y.shape).double()
    dx, dw = torch.autograd.grad(y, (x, w), dy)
    x, w, dy = x.detach().float(), w.detach().float(), dy.float()
    name = f"conv_transpose{rank}d"
    assert torch.equal(getattr(ours, name + "_input")(x.shape, w, dy, *tail), dx.float())
    assert torch.equal(getattr(ours, name + "_weight")(x, w.shape, dy, *tail), dw.float())
    each = getattr(ours, name + "_weight_per_sample")(x, w.shape, dy, *tail)
    assert each.shape == (2, *w.shape) and torch.equal(each.sum(0), dw.float())
    with pytest.raises(ValueError, match="input_size"):
        getattr(ours, name + "_input")((2, 4, *[99] * rank), w, dy, *tail)


def test_views_of_torch_are_read_and_written_in_place():
    x = torch.randint(-3, 4, (2, 6, 6, 3)).bfloat16().permute(0, 3, 1, 2)[:, :, ::2]
    w = torch.randint(-1, 2, (4, 3, 3, 3)).bfloat16()
    out = torch.zeros(2, 3, 6, 8, dtype=torch.bfloat16).permute(0, 3, 1, 2)[:, ::2]
    assert convgrad.convolution(x, w, out=out, **WINDOW) is out
    assert torch.equal(out.double(), torch.conv2d(x.double(), w.double(), padding=1))
    with pytest.raises(ValueError, match="src is on the device meta, expected the CPU"):
        convgrad.convolution(x.to("meta"), w, **WINDOW)


def test_negated_views_of_torch_have_their_values():
    x, w, dy = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3)
    negated = torch.complex(dy, dy).conj().imag
    assert negated.is_neg()
    got = convgrad.grad.conv2d_input(x.shape, w, negated)
    assert torch.equal(got, -convgrad.grad.conv2d_input(x.shape, w, dy))
    memory = torch.complex(x, x).conj().imag
    with pytest.raises(ValueError, match="out is a negated view"):
        convgrad.convolution_backward_data(
            dy, w, strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1),
            data_format="NCX", weights_format="OIX", out=memory)  # fmt: skip


def test_autograd_sees_that_out_was_written():
    x, w = torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3)
    made = convgrad.plan("Convolution", x, w, **WINDOW)
    for write in (
        lambda out: convgrad.convolution(x, w, out=out, **WINDOW),
        lambda out: made.run(x, w, out=out),
    ):
        leaf = torch.ones(1, 2, 5, 5, requires_grad=True)
        saved = leaf * 1
        loss = saved.square().sum()
        write(saved.detach())
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    with torch.inference_mode():
        out = torch.zeros(1, 2, 5, 5)
        assert convgrad.convolution(x, w, out=out, **WINDOW) is out and out[0, 0, 2, 2] == 18


def test_tensors_that_are_refused():
    x, w = torch.ones(2, 3, 5, 5), torch.ones(4, 3, 3, 3)
    for src, sentence in (
        (x.to("meta"), "src is on the device meta, expected the CPU"),
        (x.to_sparse(), "src has the layout torch.sparse_coo, expected torch.strided"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            convgrad.convolution(src, w, **WINDOW)
    with pytest.raises(ValueError, match="^out requires grad, expected memory that does not$"):
        convgrad.convolution(x, w, out=torch.zeros(2, 4, 5, 5, requires_grad=True), **WINDOW)
