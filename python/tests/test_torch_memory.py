"""convgrad.torch: where results lie in memory, axes of one position included, as PyTorch has it."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
import convgrad.torch  # noqa: E402

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def laid_out(tensor, layout):
    """The same values in other memory; "odd" has strides of 7 where they lead nowhere."""
    if layout == "channels last":
        if tensor.dim() == 3:
            return tensor.transpose(1, 2).contiguous().transpose(1, 2)
        return tensor.contiguous(memory_format=FORMATS[tensor.dim()])
    if layout == "odd":
        steps = [step if size > 1 else 7 for step, size in zip(tensor.stride(), tensor.shape)]
        return tensor.as_strided(tensor.shape, steps)
    return tensor


# PyTorch 2.0 takes the strides of results from oneDNN's descriptions of them, which give axes of
# one position this and that; 1.13 and 2.5 do not.
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
ONES_COUNT = not (2, 0) <= VERSION < (2, 5) or not torch.backends.mkldnn.is_available()


def in_memory(tensor):
    if not ONES_COUNT:
        return [step for step, size in zip(tensor.stride(), tensor.shape) if size > 1]
    formats = [
        torch.contiguous_format,
        *([FORMATS[tensor.dim()]] if tensor.dim() in FORMATS else []),
    ]
    return tensor.stride(), [tensor.is_contiguous(memory_format=f) for f in formats]


@pytest.mark.parametrize("threads", [1, 2])  # PyTorch's choice of a backend looks at them
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_strides_are_pytorchs(rank, transposed, dtype, threads):
    if transposed and dtype == torch.bfloat16 and convgrad.torch._OLD_RULES:
        pytest.skip("PyTorch 1.13 computes a plain convolution where oneDNN has bf16 (AVX-512)")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    wrong, count = [], 0
    sizes = itertools.product((1, 2), (1, 4), (1, 4), (1, 3), (1, 5), (1, 2), (False, True))
    for images, ci, co, k, extent, dilation, grouped in sizes:
        groups = ci if grouped else 1
        if grouped and (ci == 1 or co % ci) or dilation > 1 and (k == 1 or images > 1):
            continue
        geometry = (
            [1] * rank,
            [k // 2 * dilation] * rank,
            [dilation] * rank,
            transposed,
            [0] * rank,
            groups,
        )
        channels = (ci, co // groups) if transposed else (co, ci // groups)
        source = torch.ones(images, ci, *[extent] * rank, dtype=dtype)
        weights = torch.ones(*channels, *[k] * rank, dtype=dtype)
        for layouts in itertools.product(("contiguous", "channels last", "odd"), repeat=2):
            if "odd" in layouts and grouped:
                continue  # PyTorch joins what it computes for each group, in memory of its own kind
            x, w = laid_out(source, layouts[0]), laid_out(weights, layouts[1])

            def run():
                y = torch.ops.aten.convolution(x, w, None, *geometry)
                return (y, *torch.ops.aten.convolution_backward(
                    y, x, w, [co], *geometry, [True] * 3))  # fmt: skip

            try:
                own = run()
            except RuntimeError:  # PyTorch has no kernel for this type
                assert dtype != torch.float32
                continue
            with convgrad.torch.enabled():
                results = run()
            count += 1
            for name, ours, theirs in zip(("y", "dx", "dw", "db"), results, own):
                if in_memory(ours) != in_memory(theirs):
                    wrong.append((name, x.shape, x.stride(), w.shape, w.stride(), groups,
                                  ours.stride(), theirs.stride()))  # fmt: skip
    torch.set_num_threads(before)
    if count == 0:
        assert dtype != torch.float32
        pytest.skip("this PyTorch has no such convolution of bf16 to compare with")
    assert not wrong, f"{len(wrong)} of {count}, such as {wrong[:3]}"
