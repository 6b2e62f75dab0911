"""The ten operations: against naive sums, against the library's oracle, on arrays of all kinds."""

import array
import inspect
import itertools
import re

import convgrad
import numpy
import pytest
from convgrad import _core

RANDOM = numpy.random.default_rng(20)


def integers(*shape, most=3):
    return RANDOM.integers(-most, most + 1, shape).astype("float32")


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def naive_convolution(x, w, stride, pad, dilation, groups):
    """(N, C, X) with (O, C / groups, K) along one axis, from the words of the specification."""
    n, c, length = x.shape
    o, cg, k = w.shape
    og = o // groups
    out = (length + 2 * pad - (k - 1) * dilation - 1) // stride + 1
    y = numpy.zeros((n, o, out))
    for oc, pos, tap in itertools.product(range(o), range(out), range(k)):
        at = pos * stride + tap * dilation - pad
        if 0 <= at < length:
            g = oc // og
            y[:, oc, pos] += x[:, g * cg : (g + 1) * cg, at] @ w[oc, :, tap].astype("float64")
    return y


def test_functions_have_the_arguments_of_the_specification():
    table = _core.operations()
    assert len(table) == 10
    for name, (inputs, outputs, attributes) in table.items():
        signature = inspect.signature(getattr(convgrad, snake(name))).parameters
        shapes = {"dst_shape", "weights_shape", "filter_shape", "output_shape"}
        wanted = (set(inputs) - shapes) | set(attributes) | set(outputs[1:])
        assert wanted <= set(signature), name
        for extra in set(signature) - wanted:
            assert extra in {"out", "beta", "threads", "workspace_limit", "kernel", "out_dtype",
                             "per_sample"}, (name, extra)  # fmt: skip
        doc = getattr(convgrad, snake(name)).__doc__
        assert name in doc and ">>>" in doc


CASES = [
    # channels in, out, groups, extent, kernel, stride, pad, dilation
    (2, 4, 1, 9, 3, 1, 1, 1),
    (4, 6, 2, 10, 3, 2, 1, 1),
    (6, 6, 6, 7, 3, 3, 2, 2),
    (1, 3, 1, 5, 5, 4, 2, 1),
    (8, 8, 1, 4, 1, 1, 0, 1),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_one_axis_against_naive_sums(case, batch):
    ci, co, groups, extent, k, stride, pad, dilation = case
    window = dict(strides=(stride,), pads_begin=(pad,), pads_end=(pad,), dilations=(dilation,),
                  groups=groups, data_format="NCX")  # fmt: skip
    x, w = integers(batch, ci, extent), integers(co, ci // groups, k)
    expected = naive_convolution(x, w, stride, pad, dilation, groups)
    y = convgrad.convolution(x, w, weights_format="OIX", **window)
    assert y.dtype == numpy.float32 and numpy.array_equal(y, expected)

    # The gradients are what makes <conv x, dy> = <x, dx> = <w, dw> hold for every dy, x and w.
    dy = integers(*y.shape)
    dx = convgrad.convolution_backward_data(
        dy, w, dst_shape=x.shape, weights_format="OIX", **window
    )
    dw = convgrad.convolution_backward_weights(
        x, dy, weights_shape=w.shape, weights_format="OIX", **window
    )
    for _ in range(3):
        other_x, other_w = integers(*x.shape), integers(*w.shape)
        by_x = naive_convolution(other_x, w, stride, pad, dilation, groups)
        by_w = naive_convolution(x, other_w, stride, pad, dilation, groups)
        assert numpy.vdot(by_x, dy) == numpy.vdot(other_x, dx)
        assert numpy.vdot(by_w, dy) == numpy.vdot(other_w, dw)

    # Transposed: the same three with src and dst exchanged.
    op = extent - ((y.shape[2] - 1) * stride + (k - 1) * dilation + 1 - 2 * pad)
    up = convgrad.conv_transpose(dy, w, weights_format="IOX", output_padding=(op,), **window)
    assert numpy.array_equal(up, dx)
    down = convgrad.conv_transpose_backward_data(
        x, w, weights_format="IOX", output_padding=(op,), **window
    )
    assert numpy.array_equal(down, expected)
    dw_up = convgrad.conv_transpose_backward_weights(
        dy, x, weights_format="IOX", weights_shape=w.shape, output_padding=(op,), **window
    )
    assert numpy.array_equal(dw_up, dw)


def to_type(values, dtype):
    if dtype == "bfloat16":
        return values.astype(pytest.importorskip("ml_dtypes").bfloat16)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(_core.operations()))
def test_every_function_against_the_oracle(name, rank, dtype):
    function = getattr(convgrad, snake(name))
    attributes = _core.operations()[name][2]
    transposed = name.startswith("ConvTranspose")
    groups, small, large = 2, (5, 4, 3)[:rank], (9, 7, 5)[:rank]
    window = dict(strides=(2,) * rank, pads_begin=(1,) * rank, pads_end=(1,) * rank,
                  dilations=(1,) * rank, groups=groups)  # fmt: skip
    src_extent, dst_extent = (small, large) if transposed else (large, small)
    # Of magnitude 1, so that three times a sum is exact in bf16, too.
    src = to_type(integers(2, *src_extent, 4, most=1), dtype)
    dst = to_type(integers(2, *dst_extent, 6, most=1), dtype)
    x_taps = (3,) * rank
    if not transposed:
        shape = (*x_taps, 2, 6)  # (X..., IC / groups, OC)
    elif "Backprop" in name:
        shape = (*x_taps, 4, 3)  # (X..., IC, OC / groups)
    else:
        shape = (*x_taps, 3, 4)  # (X..., OC / groups, IC)
    weights = to_type(integers(*shape, most=1), dtype)
    if name.endswith(("Weights", "Filters")):
        arrays = (src, dst)
        window["filter_shape" if "filter_shape" in attributes else "weights_shape"] = shape
        expected_shape = shape
    elif name.endswith("Data"):
        arrays, expected_shape = (dst, weights), src.shape
        for shape_name in {"dst_shape", "output_shape"} & set(attributes):
            window[shape_name] = src.shape
    else:
        arrays, expected_shape = (src, weights, to_type(integers(6), dtype)), dst.shape
    result = function(*arrays, threads=1, **window)
    oracle = function(*arrays, kernel="oracle", **window)
    assert result.shape == expected_shape and result.dtype == src.dtype
    assert numpy.array_equal(result.astype("float32"), oracle.astype("float32"))
    # Into memory of the caller's, of odd strides, on two threads, twice: 2 + 1 times the result.
    wide = numpy.zeros((*expected_shape[:-1], 2 * expected_shape[-1]), src.dtype)
    out = wide[..., ::2]
    assert function(*arrays, out=out, threads=2, **window) is out
    assert numpy.array_equal(out.astype("float32"), oracle.astype("float32"))
    function(*arrays, out=out, beta=2, **window)
    assert numpy.array_equal(out.astype("float32"), 3 * oracle.astype("float32"))
    assert not wide[..., 1::2].astype("float32").any()


WINDOW = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
              data_format="NCX", weights_format="OIX")  # fmt: skip


def test_views_of_any_strides_are_read_in_place():
    big = integers(2, 12, 14, 10)
    w = integers(3, 5, 3, 3)
    views = [big[:, 1:11:2, ::-1, ::3], big[:, :5].transpose(0, 1, 3, 2)]
    repeated = numpy.broadcast_to(big[:1, :5], (4, 5, 14, 10))
    for view in (*views, repeated):
        expected = convgrad.convolution(numpy.ascontiguousarray(view), w, **WINDOW)
        assert numpy.array_equal(convgrad.convolution(view, w, **WINDOW), expected)


def test_nothing_is_copied():
    """A gibibyte of zeros that is one float repeated: a copy would take memory."""
    import resource

    x = numpy.broadcast_to(numpy.zeros((1, 1, 1, 1), "float32"), (1, 512, 2048, 256))
    w = integers(8, 512, 1, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    window = dict(WINDOW, strides=(1024, 256), pads_begin=(0, 0), pads_end=(0, 0))
    assert not convgrad.convolution(x, w, threads=1, **window).any()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10  # KiB


def test_memory_that_is_no_array_of_whole_native_elements_is_refused():
    w = integers(1, 1, 3, 3)
    with pytest.raises(ValueError, match="src has elements in another byte order"):
        convgrad.convolution(numpy.ones((1, 1, 4, 4), ">f4"), w, **WINDOW)
    odd = numpy.ndarray((1, 1, 4, 4), "float32", bytearray(400), strides=(92, 92, 20, 5))
    with pytest.raises(ValueError, match="src has a stride of 5 bytes, expected a multiple of 4"):
        convgrad.convolution(odd, w, **WINDOW)


def test_read_only_inputs_are_read_and_read_only_outputs_refused():
    x, w = integers(1, 2, 5, 5), integers(3, 2, 3, 3)
    expected = convgrad.convolution(x, w, **WINDOW)
    x.flags.writeable = False
    assert numpy.array_equal(convgrad.convolution(x, w, **WINDOW), expected)
    out = numpy.zeros((1, 3, 5, 5), "float32")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        convgrad.convolution(x, w, out=out, **WINDOW)


def test_plain_buffers_come_back_as_buffers():
    x = memoryview(array.array("f", [1, 2, 3])).cast("B").cast("f", (1, 1, 3))
    w = memoryview(array.array("f", [1, 10])).cast("B").cast("f", (1, 1, 2))
    y = convgrad.convolution(x, w, strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,),
                             data_format="NCX", weights_format="OIX")  # fmt: skip
    assert memoryview(y).tolist() == [[[21.0, 32.0]]]
    assert numpy.from_dlpack(y).tolist() == [[[21.0, 32.0]]]


def test_gradient_of_the_bias_and_sums_in_f32():
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    x, dy = integers(2, 3, 6, 6), integers(2, 4, 6, 6)
    shape = (4, 3, 3, 3)
    plain = convgrad.convolution_backward_weights(x, dy, weights_shape=shape, **WINDOW)
    dw, db = convgrad.convolution_backward_weights(
        x, dy, weights_shape=shape, diff_bias=True, **WINDOW
    )
    assert numpy.array_equal(dw, plain) and numpy.array_equal(db, dy.sum((0, 2, 3)))
    dw, db = convgrad.convolution_backward_weights(
        x.astype(bf16), dy.astype(bf16), weights_shape=shape, diff_bias=True, out_dtype="f32",
        **WINDOW,
    )  # fmt: skip
    assert dw.dtype == db.dtype == numpy.float32
    assert numpy.array_equal(dw, plain) and numpy.array_equal(db, dy.sum((0, 2, 3)))
    memory = numpy.ones(4, "float32"), numpy.ones(shape, "float32")
    convgrad.convolution_backward_weights(
        x.astype(bf16), dy.astype(bf16), diff_bias=memory[0], out=memory[1], beta=1, **WINDOW
    )
    assert numpy.array_equal(memory[0], db + 1) and numpy.array_equal(memory[1], dw + 1)


def test_gradients_for_each_image():
    x, dy = integers(3, 2, 5, 5), integers(3, 4, 5, 5)
    dw, db = convgrad.convolution_backward_weights(
        x, dy, weights_shape=(4, 2, 3, 3), diff_bias=True, per_sample=True, **WINDOW
    )
    assert dw.shape == (3, 4, 2, 3, 3) and db.shape == (3, 4)
    for i in range(3):
        alone = convgrad.convolution_backward_weights(
            x[i : i + 1], dy[i : i + 1], weights_shape=(4, 2, 3, 3), **WINDOW
        )
        assert numpy.array_equal(dw[i], alone)


@pytest.mark.parametrize("mask", list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize("transposed", [False, True])
def test_any_of_the_gradients_in_one_call(mask, transposed):
    x, w, dy = integers(2, 4, 5, 5), integers(4, 4, 3, 3), integers(2, 4, 5, 5)
    window = dict(WINDOW, weights_format="IOX" if transposed else "OIX")
    family = "conv_transpose" if transposed else "convolution"
    together, of_data, of_weights = (
        getattr(convgrad, family + name)
        for name in ("_backward", "_backward_data", "_backward_weights")
    )
    known = {} if transposed else {"dst_shape": x.shape}
    dx = of_data(dy, w, **known, **window)
    dw, db = of_weights(x, dy, weights_shape=w.shape, diff_bias=True, **window)
    results = together(x, w, dy, output_mask=mask, **window)
    for wanted, result, expected in zip(mask, results, (dx, dw, db)):
        assert numpy.array_equal(result, expected) if wanted else result is None


def test_options_of_gradients_together():
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    x, w, dy = integers(2, 4, 5, 5), integers(4, 4, 3, 3, most=1), integers(2, 4, 5, 5, most=1)
    dx, dw, db = convgrad.convolution_backward(x, w, dy, **WINDOW)
    # Sums of bf16 data in f32, but the gradient of the source, which has the type of the data.
    arrays = [array.astype(bf16) for array in (x, w, dy)]
    of_x, of_w, of_b = convgrad.convolution_backward(*arrays, out_dtype="f32", **WINDOW)
    assert of_x.dtype == bf16 and of_w.dtype == of_b.dtype == numpy.float32
    assert numpy.array_equal(of_x.astype("float32"), dx)
    assert numpy.array_equal(of_w, dw) and numpy.array_equal(of_b, db)
    each = convgrad.convolution_backward(
        x, w, dy, output_mask=(False, True, True), per_sample=True, **WINDOW
    )
    assert each[0] is None and each[1].shape == (2, 4, 4, 3, 3) and each[2].shape == (2, 4)
    assert numpy.array_equal(each[1].sum(0), dw) and numpy.array_equal(each[2].sum(0), db)
    out = [numpy.ones_like(dx), numpy.ones_like(dw), None]
    with pytest.raises(ValueError, match="beta is 2"):
        convgrad.convolution_backward(x, w, dy, out=out, beta=2, **WINDOW)
    for wrong in (dict(out=out[:1]), dict(output_mask=(True, True)), dict(output_mask=[True] * 4)):
        with pytest.raises(ValueError, match=r"has [124] values, expected 3: for diff_src, "):
            convgrad.convolution_backward(x, w, dy, **wrong, **WINDOW)
    out[2] = numpy.ones_like(db)
    results = convgrad.convolution_backward(x, w, dy, out=out, beta=2, **WINDOW)
    for result, memory, once in zip(results, out, (dx, dw, db)):
        assert result is memory and numpy.array_equal(memory, 2 + once)


def test_calls_from_several_threads_at_once():
    import threading

    problems = [(integers(2, 8, 16, 16), integers(8, 8, 3, 3)) for _ in range(4)]
    expected = [convgrad.convolution(x, w, **WINDOW) for x, w in problems]
    made = convgrad.plan("Convolution", *problems[0], **WINDOW)
    wrong = []

    def work(i):
        x, w = problems[i]
        for threads in (1, 2) * 10:
            if not numpy.array_equal(
                convgrad.convolution(x, w, threads=threads, **WINDOW), expected[i]
            ):
                wrong.append(i)
            if not numpy.array_equal(made.run(x, w), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_are_the_library_sentences():
    x, w = integers(1, 64, 5, 5), integers(8, 32, 3, 3)
    with pytest.raises(ValueError, match="weights dim 1 is 32, expected src channels 64 / groups"):
        convgrad.convolution(x, w, **dict(WINDOW, groups=4))
    with pytest.raises(ValueError, match="strides"):
        convgrad.convolution(x, w[:, :1], **dict(WINDOW, strides=(0, 1)))
    with pytest.raises(ValueError, match="weights_shape is needed|needed"):
        convgrad.convolution_backward_weights(x, x, **WINDOW)
    with pytest.raises(ValueError, match="f64, expected f32, bf16 or f16"):
        convgrad.convolution(x.astype("float64"), w, **WINDOW)
    with pytest.raises(TypeError, match="src is a list, expected an array"):
        convgrad.convolution([1.0], w, **WINDOW)
    with pytest.raises(ValueError, match="beta is 1, which reads the output"):
        convgrad.convolution(x, w, beta=1, **WINDOW)
    with pytest.raises(ValueError, match="overlap"):
        convgrad.convolution(x, integers(64, 64, 3, 3), out=x, **WINDOW)
    with pytest.raises(ValueError, match="kernel"):
        convgrad.convolution(integers(1, 32, 5, 5), w, kernel="none such", **WINDOW)
    with pytest.raises(TypeError):
        convgrad.convolution(x, w, strides=(1, 1))


def test_integers_of_numpy_are_integers():
    x, w = integers(1, 4, 5, 5), integers(2, 2, 3, 3)
    two, ones = numpy.int64(2), numpy.ones(2, "int32")
    window = dict(strides=ones, pads_begin=list(ones), pads_end=ones, dilations=(1, ones[0]))
    result = convgrad.convolution(x, w, groups=two, **dict(WINDOW, **window))
    assert numpy.array_equal(result, convgrad.convolution(x, w, groups=2, **WINDOW))
    dw = convgrad.grad.conv2d_weight(x, w.shape, result, padding=ones[0], groups=two)
    assert numpy.array_equal(
        dw, convgrad.grad.conv2d_weight(x, w.shape, result, padding=1, groups=2)
    )
    with pytest.raises((TypeError, ValueError)):
        convgrad.convolution(x, w, groups=2.0, **WINDOW)


def test_pointers_and_descriptions_are_not_arrays():
    x, w = integers(1, 2, 5, 5), integers(2, 2, 3, 3)
    pointer = (0x10, 1, (1, 2, 5, 5), None)  # dereferenced, it would end the process
    for wrong in (pointer, (x.ctypes.data, 1, x.shape, None), convgrad.Tensor(x.shape)):
        for call in (dict(src=wrong, weights=w), dict(src=x, weights=w, out=wrong)):
            with pytest.raises(ValueError, match=r"\(convgrad.Tensor\) is not an array"):
                convgrad.convolution(**call, **WINDOW)
    with pytest.raises(ValueError, match=r"src is a description \(convgrad.Tensor\), expected an"):
        convgrad.convolution((0, 1, x.shape, None), w, **WINDOW)


def test_the_same_bits_for_any_number_of_threads():
    x = RANDOM.standard_normal((4, 16, 20, 20)).astype("float32")
    dy = RANDOM.standard_normal((4, 8, 20, 20)).astype("float32")
    results = [
        convgrad.convolution_backward_weights(
            x, dy, weights_shape=(8, 16, 3, 3), threads=threads, workspace_limit=limit, **WINDOW
        )
        for threads, limit in ((1, None), (2, None), (3, 0))
    ]
    assert all(numpy.array_equal(results[0], result) for result in results[1:])


def test_the_interpreter_runs_meanwhile():
    """Another thread counts while a call computes: without the lock it could not."""
    import threading
    import time

    x, w = integers(4, 64, 64, 64), integers(64, 64, 3, 3)
    began, done = threading.Event(), threading.Event()

    def compute():
        began.set()
        convgrad.convolution(x, w, threads=1, kernel="contract", **WINDOW)
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    began.wait()
    ticks = 0
    while not done.is_set():
        ticks += 1
        time.sleep(0.0005)
    thread.join()
    assert ticks > 5
