"""Plans, explanations, the module's own report."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import convgrad
import numpy
import pytest

WINDOW = dict(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
              data_format="NCX", weights_format="OIX")  # fmt: skip


def test_a_plan_runs_as_often_as_wanted(integers):
    x, w, dy = integers(2, 3, 6, 6), integers(4, 3, 3, 3), integers(2, 4, 6, 6)
    made = convgrad.plan(
        "Convolution", convgrad.Tensor(x.shape), convgrad.Tensor(w.shape), **WINDOW
    )
    assert made.outputs == (convgrad.Tensor((2, 4, 6, 6), "f32", (144, 36, 6, 1)),)
    assert made.kernel in convgrad.kernels() and made.workspace_bytes >= 0
    assert made.flops > 0 and made.error_bound > 0
    expected = convgrad.convolution(x, w, **WINDOW)
    for _ in range(3):
        assert numpy.array_equal(made.run(x, w), expected)
    out = numpy.empty_like(expected)
    assert made.run(x, w, out=out) is out and numpy.array_equal(out, expected)

    wanted = (None, convgrad.Tensor(w.shape), convgrad.Tensor((4,)))
    grads = convgrad.plan("ConvolutionBackward", x, w, dy, outputs=wanted, **WINDOW)
    dx, dw, db = grads.run(x, w, dy)
    assert dx is None and numpy.array_equal(db, dy.sum((0, 2, 3)))
    expected = convgrad.convolution_backward_weights(x, dy, weights_shape=w.shape, **WINDOW)
    assert numpy.array_equal(dw, expected)
    assert "ConvolutionBackwardWeights" in grads.explain()


def test_a_plan_with_beta_needs_memory_to_add_to(integers):
    x, w = integers(1, 2, 4, 4), integers(3, 2, 3, 3)
    plan = convgrad.plan("Convolution", x, w, beta=1, **WINDOW)
    with pytest.raises(ValueError, match="beta is 1, which reads the output: dst is needed"):
        plan.run(x, w)
    once = convgrad.convolution(x, w, **WINDOW)
    assert numpy.array_equal(plan.run(x, w, out=numpy.ones_like(once)), 1 + once)
    dy, window = integers(1, 3, 4, 4), dict(WINDOW, beta=-0.5)
    wanted = [convgrad.Tensor(x.shape), convgrad.Tensor(w.shape)]
    plan = convgrad.plan("ConvolutionBackward", x, w, dy, outputs=wanted, **window)
    with pytest.raises(ValueError, match="beta is -0.5, .*: diff_weights is needed"):
        plan.run(x, w, dy, out=(numpy.ones_like(x), None))


def test_a_plan_refuses_other_arrays(integers):
    x, w = integers(2, 3, 6, 6), integers(4, 3, 3, 3)
    made = convgrad.plan("Convolution", x, w, **WINDOW)
    with pytest.raises(ValueError, match="src is f32 1x3x6x6 .*the plan was made for f32 2x3x6x6"):
        made.run(x[:1], w)
    with pytest.raises(ValueError, match="strides"):
        made.run(x.transpose(0, 1, 3, 2), w)
    with pytest.raises(ValueError, match="dst is f32 2x4x6x5"):
        made.run(x, w, out=numpy.empty((2, 4, 6, 5), "float32"))
    with pytest.raises(ValueError):
        made.run(x)


def test_explain():
    text = convgrad.explain("Convolution", convgrad.Tensor((8, 64, 56, 56), "bf16"),
                            convgrad.Tensor((64, 64, 3, 3), "bf16"), **WINDOW)  # fmt: skip
    assert "operation   Convolution" in text and "bf16" in text and "contract" in text
    with pytest.raises(ValueError, match="operation 'Convolute' is unknown"):
        convgrad.explain("Convolute", convgrad.Tensor((8, 64, 56, 56)))
    with pytest.raises(ValueError, match="f8"):
        convgrad.explain("Convolution", convgrad.Tensor((8, 64, 56, 56), "f8"))


def test_what_is_no_name_of_an_operation():
    with pytest.raises(TypeError, match="operation is a function, expected a name of the spec"):
        convgrad.explain(convgrad.convolution)
    with pytest.raises(TypeError, match="operation is a NoneType"):
        convgrad.plan(None)


def test_errors_name_their_argument():
    x, w = convgrad.Tensor((1, 5, 5, 1)), convgrad.Tensor((3, 3, 1, 1))
    window = dict(strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1))
    for changed, error, sentence in (
        (dict(strides=(1.5, 1)), TypeError, r"strides\[0\] is a float, expected an integer"),
        (dict(pads_end=(0, "x")), TypeError, r"pads_end\[1\] is a str, expected an integer"),
        (dict(dilations=2.5), TypeError, "dilations is a float, expected integers"),
        (dict(strides=(1, 1 << 70)), ValueError, r"strides\[1\] is beyond an integer of 64 bits"),
        (dict(groups=1 << 70), ValueError, "groups is beyond an integer of 64 bits"),
        (dict(threads=1.5), TypeError, "threads is a float, expected an integer"),
        (dict(kernel=3), TypeError, "kernel is a int, expected a name"),
        (dict(beta="x"), TypeError, "beta is a str, expected a number"),
        (dict(workspace_limit="x"), TypeError, "workspace_limit is a str, expected an integer"),
    ):
        with pytest.raises(error, match=sentence):
            convgrad.plan("Convolution", x, w, **{**window, **changed})


def run_module(*arguments, **options):
    command = [sys.executable, "-m", "convgrad", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_arguments_of_the_module():
    assert run_module("--help").stdout.startswith("usage: python -m convgrad")
    assert run_module("--version").stdout == f"convgrad {convgrad.__version__}\n"
    unknown = run_module("--no-such-option")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "unrecognized arguments: --no-such-option" in unknown.stderr


def test_the_module_ends_with_its_reader():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        command = [sys.executable, "-m", "convgrad"]
        ended = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, "")


def test_the_report_of_the_module():
    output = subprocess.run(
        [sys.executable, "-m", "convgrad"], check=True, capture_output=True, text=True
    ).stdout
    for word in (
        f"convgrad {convgrad.__version__}",
        "cpu ",
        "kernel ",
        "contract",
        "peak ",
        "bf16",
    ):
        assert word in output


TESTS = pathlib.Path(__file__).parent


@pytest.mark.parametrize("required", [False, True])
def test_files_that_need_pytorch_say_so_without_it(required, tmp_path):
    """Every one, as a whole; where PyTorch has to be there, every one fails."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(name='torch')")
    files = sorted(TESTS.glob("test_torch_*.py"))
    environment = {**os.environ, "CONVGRAD_REQUIRE_TORCH": "1" if required else ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        *map(str, files),
    ]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    last = ended.stdout.splitlines()[-1]
    if required:
        assert ended.returncode == 2 and f"{len(files)} errors in" in last
    else:
        assert ended.returncode == 5 and last.startswith(f"{len(files)} skipped in")
        for file in files:
            assert re.search(rf"SKIPPED .*{file.name}.*: needs PyTorch", ended.stdout), file.name


def test_no_other_file_needs_pytorch():
    for file in TESTS.glob("test_*.py"):
        needs = re.search(r"^\s*(import torch|torch = |from torch)", file.read_text(), re.MULTILINE)
        assert bool(needs) == file.name.startswith("test_torch_"), file.name


def test_without_pytorch_there_is_no_bridge():
    script = """if True:
        import sys
        sys.modules["torch"] = None  # as if it were not installed
        import convgrad
        assert not hasattr(convgrad, "torch") and hasattr(convgrad, "grad")
        try:
            convgrad.torch
        except AttributeError as error:
            assert "PyTorch is not installed" in str(error)
        try:
            import convgrad.torch
        except ModuleNotFoundError:
            print("none")"""
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True,
                             text=True, env=os.environ).stdout  # fmt: skip
    assert printed == "none\n"


def test_importing_takes_little():
    """No other library is imported, and the best of five starts adds less than 50 ms, of the CPU's
    time: a machine that is busy with other things takes longer."""
    script = (
        "import sys, time; begin = time.process_time(); import convgrad; "
        "print(time.process_time() - begin, 'numpy' in sys.modules, 'torch' in sys.modules)"
    )
    times = []
    for _ in range(5):
        run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True,
                             text=True, env=os.environ)  # fmt: skip
        seconds, *others = run.stdout.split()
        assert others == ["False", "False"]
        times.append(float(seconds))
    assert min(times) < 0.05, times
