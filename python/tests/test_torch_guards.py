"""convgrad.torch beside what users and PyTorch itself do wrong: other default devices, classes and
modes of their own, registrations that fail, threads that go on computing."""

import threading
import time

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
import convgrad.torch  # noqa: E402

LAYOUTS = [torch.contiguous_format, torch.channels_last]
GEOMETRY = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
WINDOW = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
              data_format="NCX", weights_format="OIX")  # fmt: skip


@pytest.fixture(autouse=True)
def clean():
    yield
    assert not convgrad.torch.is_enabled()


def integers(*shape):
    return torch.randint(-2, 3, shape).float()


def forward_and_backward(x, w):
    y = torch.ops.aten.convolution(x, w, None, *GEOMETRY)
    return (y, *torch.ops.aten.convolution_backward(y, x, w, [4], *GEOMETRY, [True] * 3))


def assert_same(results, expected):
    for result, own in zip(results, expected):
        assert result.device.type == "cpu" and result.stride() == own.stride()
        assert torch.equal(result, own)


@pytest.mark.skipif(not hasattr(torch.device, "__enter__"), reason="needs torch.device as a block")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_on_the_cpu_whatever_the_default(layout):
    x, w = integers(2, 4, 5, 5).to(memory_format=layout), integers(4, 4, 3, 3)
    expected = forward_and_backward(x, w)
    with convgrad.torch.enabled(), torch.device("meta"):
        results = forward_and_backward(x, w)
        direct = convgrad.convolution(x, w, **WINDOW)
    assert_same(results, expected)
    assert direct.device.type == "cpu" and torch.equal(direct, expected[0])


# Of one tap and channels last, PyTorch is asked which of its backends is replaced.
@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_class_of_tensors_runs_inside_the_kernels(layout, taps):
    seen = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), keywords=None):
            seen.append(function)
            return super().__torch_function__(function, types, arguments, keywords or {})

    leaves = [integers(2, 4, 5, 5).to(memory_format=layout), integers(4, 4, taps, taps)]
    leaves = [leaf.as_subclass(Logged).requires_grad_() for leaf in leaves]
    y = torch.conv2d(*leaves, padding=taps // 2).sum().as_subclass(torch.Tensor)
    seen.clear()
    y.backward(retain_graph=True)
    own, seen[:] = list(seen), []
    with convgrad.torch.enabled():
        y.backward()
    assert seen == own


@pytest.mark.skipif(
    not hasattr(torch._C, "DisableTorchFunctionSubclass"),
    reason="needs modes that can be turned off",
)
@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_mode_runs_inside_the_kernels(layout, taps):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            seen.append(function)
            return function(*arguments, **(keywords or {}))

    x, w = integers(2, 4, 5, 5).to(memory_format=layout), integers(4, 4, taps, taps)
    leaves = [x.requires_grad_(), w.requires_grad_()]
    y = torch.conv2d(x, w, padding=taps // 2).sum()
    with Mode():
        torch.autograd.backward(y, inputs=leaves, retain_graph=True)
    own, seen[:] = list(seen), []
    with convgrad.torch.enabled(), Mode():
        torch.autograd.backward(y, inputs=leaves)
    assert seen == own


def failing_at(count, monkeypatch):
    """Lets the count-th registration fail, from 0."""
    own, calls = torch.library.Library.impl, []

    def impl(self, *arguments, **keywords):
        calls.append(arguments)
        if len(calls) == count + 1:
            raise RuntimeError("not today")
        return own(self, *arguments, **keywords)

    monkeypatch.setattr(torch.library.Library, "impl", impl)


def tables():
    return [torch._C._dispatch_dump_table("aten::" + name)
            for name in ("convolution", "convolution_backward", "_convolution")]  # fmt: skip


def tables_once_others_have_ended(before):
    """After disable(): a thread that is joined may take a while to end, on a busy machine."""
    deadline = time.monotonic() + 10
    while True:
        convgrad.torch.disable()
        now = tables()
        if now == before or time.monotonic() > deadline:
            return now
        time.sleep(0.01)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("block", [False, True])
def test_a_registration_that_fails_leaves_everything_as_it_was(count, block, monkeypatch):
    before = tables()
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="not today"):
        failing_at(count, patch)
        if block:
            with convgrad.torch.enabled():
                pass
        else:
            convgrad.torch.enable()
    assert not convgrad.torch.is_enabled() and tables() == before
    convgrad.torch.disable()
    assert not convgrad.torch.is_enabled() and tables() == before
    with convgrad.torch.enabled():
        assert tables() != before
    assert tables() == before


def test_a_registration_that_fails_keeps_the_one_before(monkeypatch):
    convgrad.torch.enable(forward=False)
    try:
        gradients = tables()
        with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="not today"):
            failing_at(1, patch)
            convgrad.torch.enable()
        assert convgrad.torch.is_enabled() and tables() == gradients
    finally:
        convgrad.torch.disable()


def test_memory_for_results_has_no_history():
    x, w = integers(2, 4, 5, 5), integers(4, 4, 3, 3)
    out = torch.zeros(2, 4, 5, 5, requires_grad=True)
    with pytest.raises(ValueError, match="requires grad"):
        convgrad.convolution(x, w, out=out, **WINDOW)
    convgrad.convolution(x.requires_grad_(), w, out=out.detach(), **WINDOW)
    assert torch.equal(out, torch.conv2d(x, w, padding=1))


def test_plain_functions_leave_no_history():
    """As their documentation says: they compute on memory; the bridge alone is for training."""
    x, w = integers(2, 4, 5, 5).requires_grad_(), integers(4, 4, 3, 3).requires_grad_()
    results = [
        convgrad.convolution(x, w, **WINDOW),
        *convgrad.convolution_backward(x, w, x, **WINDOW),
        convgrad.plan("Convolution", x, w, **WINDOW).run(x, w),
        convgrad.grad.conv2d_input(x.shape, w, x, padding=1),
    ]
    assert not any(result.requires_grad or result.grad_fn for result in results)
    with convgrad.torch.enabled():
        assert torch.conv2d(x, w, padding=1).grad_fn is not None
    for said in (convgrad.__doc__, convgrad._operations.__doc__, convgrad.grad.__doc__):
        assert "history" in said


@pytest.mark.parametrize("padding", [2**62, 2**63 - 1])
@pytest.mark.parametrize("transposed", [False, True])
def test_extents_beyond_64_bits_are_refused_as_before(padding, transposed):
    x, w = integers(1, 2, 4, 4), integers(2, 2, 3, 3)
    arguments = (x, w, None, [1, 1], [padding, padding], [1, 1], transposed, [0, 0], 1)
    try:
        torch.ops.aten.convolution(*arguments)
        pytest.skip("this PyTorch computes other extents instead")
    except RuntimeError as error:
        own = error
    with convgrad.torch.enabled(), pytest.raises(RuntimeError) as ours:
        torch.ops.aten.convolution(*arguments)
    assert type(ours.value) is type(own)


def start(threads):
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("forward", [True, False])
def test_threads_compute_while_another_turns_it_on_and_off(forward):
    """Convolutions are convgrad's or PyTorch's, and right, from one to the next."""
    before, torch_threads = tables(), torch.get_num_threads()
    torch.set_num_threads(1)
    leaves = [(integers(2, 3, 5, 5), integers(4, 3, 3, 3)) for _ in range(3)]
    expected = [forward_and_backward(*both) for both in leaves]
    done, counts, wrong = threading.Event(), [0] * len(leaves), []

    def work(i):
        try:
            while not done.is_set():
                results = forward_and_backward(*leaves[i])
                if not all(torch.equal(a, b) for a, b in zip(results, expected[i])):
                    wrong.append(i)
                counts[i] += 1
        except BaseException as error:
            wrong.append(error)

    threads = start([threading.Thread(target=work, args=(i,)) for i in range(len(leaves))])
    try:
        for _ in range(1000):
            with convgrad.torch.enabled(forward=forward):
                pass
            convgrad.torch.enable()
            convgrad.torch.disable()
            if wrong:
                break
    finally:
        done.set()
        for thread in threads:
            thread.join()
        torch.set_num_threads(torch_threads)
    assert not wrong and min(counts) > 100
    assert tables_once_others_have_ended(before) == before


def test_kernels_are_not_taken_from_a_thread_that_computes():
    before = tables()
    x, w = integers(2, 4, 5, 5), integers(4, 4, 3, 3)
    expected = forward_and_backward(x, w)
    computed, may_end = threading.Event(), threading.Event()

    def work():
        forward_and_backward(x, w)
        computed.set()
        may_end.wait()

    with convgrad.torch.enabled():
        (thread,) = start([threading.Thread(target=work)])
        computed.wait()
    registered = tables()
    try:
        assert registered != before and not convgrad.torch.is_enabled()
        spent = convgrad.torch._bridge.library_seconds
        assert_same(forward_and_backward(x, w), expected)
        x64, w64 = x.double(), w.double()
        assert_same(forward_and_backward(x64, w64), [y.double() for y in expected])
        assert convgrad.torch._bridge.library_seconds == spent  # PyTorch's own computed
        with convgrad.torch.enabled():
            assert_same(forward_and_backward(x, w), expected)
            assert convgrad.torch._bridge.library_seconds > spent
        assert tables() == registered
    finally:
        may_end.set()
        thread.join()
    assert tables_once_others_have_ended(before) == before
