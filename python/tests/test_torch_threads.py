"""The PyTorch bridge beside other threads and processes."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")


def run_script(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True,
        env={**os.environ, **environment},
    ).stdout.split()  # fmt: skip


def test_two_processes_with_gloo():
    """DistributedDataParallel: gradients of two halves of a batch, averaged, on both processes."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("needs torch.distributed with gloo")
    import tempfile

    script = """
import sys, torch, convgrad.torch
from torch import distributed
rank, store = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
torch.manual_seed(1)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ConvTranspose2d(4, 2, 2, 2))
for p in network.parameters(): p.data = p.data.mul(8).round()
x = torch.randint(-2, 3, (4, 3, 6, 6)).float()
parallel = torch.nn.parallel.DistributedDataParallel(network)
convgrad.torch.enable()
parallel(x[2 * rank : 2 * rank + 2]).sum().backward()
convgrad.torch.disable()
averaged = [p.grad.clone() for p in network.parameters()]
network.zero_grad()
network(x).sum().backward()
assert all(torch.equal(2 * a, p.grad) for a, p in zip(averaged, network.parameters()))
distributed.barrier()
"""
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        processes = [
            subprocess.Popen([sys.executable, "-c", script, str(rank), store],
                             stderr=subprocess.PIPE, text=True)
            for rank in range(2)
        ]  # fmt: skip
        for process in processes:
            errors = process.communicate(timeout=120)[1]
            assert process.returncode == 0, errors


FORK = """
import os, threading, torch, convgrad.torch
x, w = torch.randn(8, 32, 32, 32), torch.randn(32, 32, 3, 3)
geometry = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
def compute():
    y = torch.ops.aten.convolution(x, w, None, *geometry)
    grads = torch.ops.aten.convolution_backward(x, x, w, [32], *geometry, [True] * 3)
    return [result.numpy().tobytes() for result in (y, *grads)]  # no threads of PyTorch
torch.set_num_threads(2)
if {before}: convgrad.torch.enable()
torch.relu(torch.randn(1 << 22)); expected = compute()  # PyTorch's pool has run
done, end = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (compute(), done.set(), end.wait()))  # is in no child
other.start(); done.wait()
child = os.fork()
if child == 0:
    seconds = convgrad.torch._bridge.library_seconds if {before} else 0
    convgrad.torch.enable()
    try:
        results = compute()
        computed = convgrad.torch._bridge.library_seconds > seconds
        alone = convgrad.torch._bridge.other_threads() == 0
        print(computed and alone and (not {before} or results == expected), flush=True)
    finally:
        os._exit(0)
end.set()
os.waitpid(child, 0)
print(len(expected))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("before", [True, False])
def test_a_child_of_fork_computes(before):
    """Although the pool whose threads its parent has used is not there."""
    script = FORK.replace("{before}", str(before))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": "2"},
                               start_new_session=True)  # fmt: skip
    try:
        assert process.communicate(timeout=60)[0].split() == ["True", "4"]
    finally:
        with contextlib.suppress(ProcessLookupError):  # the child that waits, too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
@pytest.mark.parametrize("first", ["convgrad.torch", "torch"])
def test_threads_are_pytorchs(first):
    """PyTorch's pool serves both: no thread is added, whichever library is imported first."""
    script = f"""
import {first}, os, torch, convgrad.torch
torch.set_num_threads(3)
x, w = torch.randn(8, 32, 32, 32), torch.randn(32, 32, 3, 3)
torch.relu(torch.randn(1 << 22)); torch.conv2d(x, w)
before = len(os.listdir('/proc/self/task'))
convgrad.torch.enable()
for _ in range(3): torch.conv2d(x, w)
print(before, len(os.listdir('/proc/self/task')))
"""
    before, after = map(int, run_script(script, OMP_NUM_THREADS="3"))
    assert before >= 3 and after == before


def test_threads_follow_pytorch():
    """What other threads than the caller's compute: nothing with one thread, a share with two."""
    script = """
import time, torch, convgrad.torch
x, w = torch.randn(16, 64, 48, 48), torch.randn(64, 64, 3, 3)
convgrad.torch.enable()
for threads in 1, 2:
    torch.set_num_threads(threads)
    torch.conv2d(x, w)
    shares = []
    for _ in range(5):
        time.sleep(0.1)
        everyone, own = time.process_time(), time.thread_time()
        computed = convgrad.torch._bridge.library_seconds
        for _ in range(4): torch.conv2d(x, w)
        own = time.thread_time() - own
        shares.append((time.process_time() - everyone - own) / own)
        assert convgrad.torch._bridge.library_seconds > computed
    print(int(100 * (min(shares) if threads == 1 else max(shares))))
"""
    alone, shared = map(int, run_script(script, OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive"))
    assert alone < 10 and shared > 30
