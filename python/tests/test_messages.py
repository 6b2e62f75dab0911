"""What is said about wrong calls: the argument as the caller typed it, what it is, what it may be."""

import convgrad
import convgrad.grad
import numpy
import pytest

WINDOW = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))
X, W, DY = (numpy.ones(shape, "f4") for shape in ((2, 5, 5, 3), (3, 3, 3, 4), (2, 5, 5, 4)))
ARRAY = "expected an array on the CPU that speaks DLPack or the buffer protocol"
TYPES = "expected f32, bf16 or f16"


def read_only():
    out = numpy.zeros((2, 5, 5, 4), "f4")
    out.flags.writeable = False
    return out


def repeated():
    return numpy.lib.stride_tricks.as_strided(
        numpy.zeros((5, 5, 4), "f4"), DY.shape, (0, 80, 16, 4)
    )


@pytest.mark.parametrize(
    "changed, error, sentence",
    [
        (dict(src=X[0]), ValueError, "weights has rank 4, expected 3"),
        (dict(src=X[0, 0, 0]), ValueError, "src has rank 1, expected 3, 4 or 5"),
        (dict(weights=W[:, :, :2]), ValueError,
         "weights dim 2 is 2, expected src channels 3 / groups 1 = 3"),
        (dict(src=None), ValueError, "src is missing, Convolution requires it"),
        (dict(src=[[1.0]]), TypeError, f"src is a list, {ARRAY}"),
        (dict(src="x"), TypeError, f"src is a str, {ARRAY}"),
        (dict(src=X.astype("f8")), ValueError, f"src has elements of f64, {TYPES}"),
        (dict(src=X.astype(bool)), ValueError, f"src has elements of bool, {TYPES}"),
        (dict(src=X.astype(object)), ValueError, f"src has elements of object, {TYPES}"),
        (dict(src=X.astype(">f4")), ValueError,
         "src has elements in another byte order than this machine's"),
        (dict(weights=W.astype("f2")), ValueError, "weights has type f16, expected f32 as src has"),
        (dict(bias=X[0, 0, 0]), ValueError, "bias dim 0 is 3, expected dst channels 4"),
        (dict(strides=(-1, 1)), ValueError, "strides is -1 at index 0, expected at least 1"),
        (dict(strides=(1,)), ValueError,
         "strides has 1 entries, expected 2, one for each spatial axis"),
        (dict(strides=1), ValueError, "strides is an integer, expected a sequence of integers"),
        (dict(strides="11"), ValueError, "strides is a string, expected a sequence of integers"),
        (dict(groups="2"), ValueError, "groups is a string, expected an integer"),
        (dict(groups=2), ValueError, "src has 3 channels, not a multiple of groups 2"),
        (dict(data_format="NHWC"), ValueError, "data_format is 'NHWC', expected one of NXC, NCX"),
        (dict(auto_pad=1), ValueError, "auto_pad is an integer, expected a string"),
        (dict(out=X.copy()), ValueError,
         "out dim 3 is 3, expected 4: out is 2x5x5x3, it must be 2x5x5x4"),
        (dict(out=DY.astype("f2")), ValueError, "out has type f16, expected f32 as src has"),
        (dict(out=[1, 2]), TypeError, f"out is a list, {ARRAY}"),
        (dict(out=read_only()), ValueError, "out is read-only, expected memory to write to"),
        (dict(out=repeated()), ValueError,
         "out of 2x5x5x4 with strides 0,20,4,1 has elements that share memory, an output must not"),
        (dict(src=DY, weights=numpy.ones((3, 3, 4, 4), "f4"), out=DY), ValueError,
         "out shares memory with src, an output must not overlap an input"),
        (dict(threads=-1), ValueError, "threads is -1, expected None (all), 0 (all) or more"),
        (dict(threads=2.0), TypeError, "threads is a float, expected an integer of 32 bits"),
        (dict(threads=1 << 40), ValueError,
         "threads is 1099511627776, expected an integer of 32 bits"),
        (dict(beta=1), ValueError, "beta is 1, which reads the output: out is needed"),
        (dict(beta="1"), TypeError, "beta is a str, expected a number"),
        (dict(beta=float("nan"), out=DY.copy()), ValueError,
         "beta is nan, expected a finite number"),
        (dict(workspace_limit=-5), ValueError,
         "workspace_limit is -5, expected None (no limit), 0 or more bytes"),
        (dict(kernel="quick"), ValueError,
         "kernel 'quick' is unknown, expected one of direct, flat, contract, oracle"),
    ],
)  # fmt: skip
def test_convolution(changed, error, sentence):
    with pytest.raises(error) as raised:
        convgrad.convolution(**{**WINDOW, "src": X, "weights": W, **changed})
    assert type(raised.value) is error and str(raised.value) == sentence


@pytest.mark.parametrize(
    "changed, error, sentence",
    [
        (dict(weights_shape=None), ValueError,
         "weights_shape is needed: ConvolutionBackwardWeights cannot infer dim 0 of diff_weights; "
         "give it, or out"),
        (dict(weights_shape=(3, 3, 3, 5)), ValueError,
         "weights_shape dim 3 is 5, expected diff_dst channels 4"),
        (dict(diff_bias=X[0, 0, 0].copy()), ValueError,
         "diff_bias dim 0 is 3, expected diff_dst channels 4"),
        (dict(diff_bias="yes"), TypeError, f"diff_bias is a str, {ARRAY}"),
        (dict(out_dtype="f64"), ValueError, f"out_dtype is 'f64', {TYPES}"),
        (dict(out_dtype="f16", out=W.copy()), ValueError,
         "out has type f32, expected f16 as out_dtype says"),
        (dict(out_dtype="f16", diff_bias=DY[0, 0, 0].copy()), ValueError,
         "diff_bias has type f32, expected f16 as out_dtype says"),
        (dict(per_sample=True, out=W.copy()), ValueError,
         "out has rank 4, expected 5: N, then the axes of one gradient"),
    ],
)  # fmt: skip
def test_gradient_of_weights(changed, error, sentence):
    arguments = {**WINDOW, "src": X, "diff_dst": DY, "weights_shape": W.shape, **changed}
    with pytest.raises(error) as raised:
        convgrad.convolution_backward_weights(**arguments)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "changed, error, sentence",
    [
        (dict(output_mask=True), TypeError,
         "output_mask is a bool, expected 3: for diff_src, diff_weights and diff_bias"),
        (dict(out=(X, W)), ValueError,
         "out has 2 values, expected 3: for diff_src, diff_weights and diff_bias"),
        (dict(out=(None, W[:1].copy(), None)), ValueError,
         "out[1] dim 0 is 1, expected 3 as weights has"),
        (dict(out=(None, W.copy(), None), out_dtype="f16"), ValueError,
         "out[1] has type f32, expected f16 as out_dtype says"),
    ],
)  # fmt: skip
def test_gradients_together(changed, error, sentence):
    with pytest.raises(error) as raised:
        convgrad.convolution_backward(X, W, DY, **{**WINDOW, **changed})
    assert str(raised.value) == sentence


def test_plans():
    with pytest.raises(ValueError, match="^weights is missing, Convolution requires it$"):
        convgrad.plan("Convolution", X, **WINDOW)
    with pytest.raises(ValueError, match="^weights is missing$"):
        convgrad.plan("Convolution", X, W, **WINDOW).run(X)
    with pytest.raises(ValueError, match="^stride is not an attribute of Convolution, which has s"):
        convgrad.plan("Convolution", X, W, stride=1, **WINDOW)


@pytest.mark.parametrize(
    "changed, error, sentence",
    [
        (dict(input=X[0]), ValueError, "grad_output has rank 4, expected 3"),
        (dict(input=[1]), TypeError, f"input is a list, {ARRAY}"),
        (dict(weight_size=(4, 3, 3)), ValueError, "weight_size has 3 axes, expected 4"),
        (dict(padding=0), ValueError,
         "grad_output dim 2 is 5, expected floor((input dim 2 (5) + padding 0 + padding 0 - kernel "
         "span 3 (3 taps, dilation 1) of weight_size dim 2) / stride 1) + 1 = 3"),
        (dict(padding=1.5), TypeError, "padding is a float, expected integers"),
        (dict(padding="full"), ValueError, "padding is 'full', expected 'same', 'valid' or numbers"),
        (dict(padding="same", stride=2), ValueError,
         "padding is 'same' and stride (2, 2), expected strides of 1"),
        (dict(stride=-1), ValueError, "stride is -1 at index 0, expected at least 1"),
        (dict(dilation=0), ValueError, "dilation is 0 at index 0, expected at least 1"),
        (dict(groups=2), ValueError, "input has 3 channels, not a multiple of groups 2"),
    ],
)  # fmt: skip
def test_words_of_torch_nn_grad(changed, error, sentence):
    arguments = dict(input=X.transpose(0, 3, 1, 2), weight_size=(4, 3, 3, 3), padding=1,
                     grad_output=DY.transpose(0, 3, 1, 2))  # fmt: skip
    with pytest.raises(error) as raised:
        convgrad.grad.conv2d_weight(**{**arguments, **changed})
    assert str(raised.value) == sentence


def test_a_type_of_results_that_their_memory_has():
    out, of_bias = numpy.zeros(W.shape, "f4"), numpy.zeros(4, "f4")
    arguments = {**WINDOW, "out": out, "out_dtype": "f32"}
    arrays = X.astype("f2"), DY.astype("f2")
    results = convgrad.convolution_backward_weights(*arrays, diff_bias=of_bias, **arguments)
    assert results[0] is out and results[1] is of_bias and out.all() and of_bias.all()
    # Not of diff_src, which has the type of the data.
    out = (numpy.zeros(X.shape, "f2"), out, of_bias)
    arguments["out"] = out
    results = convgrad.convolution_backward(arrays[0], W.astype("f2"), arrays[1], **arguments)
    assert all(result is memory for result, memory in zip(results, out))
    with pytest.raises(ValueError, match="^bias_delta has type f32, expected f16 as out_dtype"):
        convgrad.convolution_backprop_filters(
            *arrays, filter_shape=W.shape, bias_delta=of_bias, out_dtype="f16", **WINDOW
        )


def test_an_output_that_overlaps():
    """Also where it begins elsewhere; what lies between the elements of an input is free."""
    window = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))
    w = numpy.ones((3, 3, 4, 4), "f4")
    many = numpy.ones((3, 5, 5, 4), "f4")
    flat = numpy.ones(201, "f4")
    for src, out in (
        (many[:2], many[1:]),
        (flat[:200].reshape(2, 5, 5, 4), flat[1:].reshape(2, 5, 5, 4)),
    ):
        with pytest.raises(ValueError, match="^out shares memory with src, an output must not"):
            convgrad.convolution(src, w, out=out, **window)
    both = numpy.ones((2, 5, 5, 8), "f4")
    expected = convgrad.convolution(both[..., :4].copy(), w, **window)
    convgrad.convolution(both[..., :4], w, out=both[..., 4:], **window)
    assert (both[..., 4:] == expected).all() and (both[..., :4] == 1).all()
    memory = numpy.zeros(400, "f4")
    x, dy = numpy.ones((2, 5, 5, 4), "f4"), numpy.ones((2, 5, 5, 4), "f4")
    out = (memory[:200].reshape(2, 5, 5, 4), memory[150:294].reshape(3, 3, 4, 4), None)
    with pytest.raises(ValueError, match="shares memory with .*, outputs must not overlap$"):
        convgrad.convolution_backward(x, w, dy, out=out, **window)
