"""PyTorch's own sample inputs of its convolutions, with and without convgrad."""

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
import convgrad.torch  # noqa: E402

try:
    from torch.testing._internal.common_methods_invocations import op_db
except Exception as reason:  # the database needs packages that PyTorch itself does not
    pytest.skip(f"no sample inputs: {reason}", allow_module_level=True)

NAMES = [f"nn.functional.conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3)]
OPERATORS = {op.name: op for op in op_db if op.name in NAMES}


def small_integers(value):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return (value.detach() * 0.5).round().clamp(-2, 2).requires_grad_(value.requires_grad)
    return value


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_sample_inputs(name, dtype):
    if name not in OPERATORS:
        pytest.skip(f"PyTorch's database has no {name}, as before 2.1")
    operator = OPERATORS[name]
    count = 0
    for sample in operator.sample_inputs("cpu", torch.float32, requires_grad=True):
        arguments = [small_integers(v) for v in (sample.input, *sample.args)]
        arguments = [v.detach().to(dtype).requires_grad_() if isinstance(v, torch.Tensor) else v
                     for v in arguments]  # fmt: skip
        leaves = [v for v in arguments if isinstance(v, torch.Tensor)]

        def call(leaves_type=dtype):
            tensors = [v.detach().to(leaves_type).requires_grad_() for v in leaves]
            rest = iter(tensors)
            with_type = [next(rest) if isinstance(v, torch.Tensor) else v for v in arguments]
            y = operator(*with_type, **sample.kwargs)
            dy = torch.arange(y.numel(), dtype=torch.float64).remainder(3).sub(1)
            grads = torch.autograd.grad(y, tensors, dy.reshape(y.shape).to(leaves_type))
            return [y.detach(), *grads]

        # PyTorch 1.13 computes a plain convolution there, where oneDNN has bf16 (AVX-512).
        wrong = "transpose" in name and dtype == torch.bfloat16 and convgrad.torch._OLD_RULES
        try:
            own = None if wrong else call()
        except RuntimeError as error:  # before PyTorch 2.1
            assert dtype == torch.float16 and "not implemented for 'Half'" in str(error)
            own = None
        with convgrad.torch.enabled():
            before = convgrad.torch._bridge.library_seconds
            replaced = call()
            # Nothing is left to compute without elements.
            computed = convgrad.torch._bridge.library_seconds > before
        assert computed == all(v.numel() > 0 for v in (*leaves, replaced[0])), sample
        # Integers: right is what f64 gives, rounded once.
        for result, own_result, exact in zip(replaced, own or replaced, call(torch.float64)):
            assert result.stride() == own_result.stride()
            assert torch.equal(result, exact.to(dtype)), sample
        count += 1
    assert count > 0
