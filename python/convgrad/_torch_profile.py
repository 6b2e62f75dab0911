"""The times of convolutions in PyTorch and in convgrad, side by side."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple


class Row(NamedTuple):
    """One convolution, or its gradients, over all its calls."""

    what: str  # forward, or backward and which of s(ource), w(eight), b(ias)
    problem: str
    calls: int
    torch_seconds: float  # 0 where PyTorch has no kernel
    convgrad_seconds: float  # 0 where PyTorch's kernel computed the result


def _describe(source: Any, weight: Any, geometry: Tuple[Any, ...]) -> str:
    transposed, stride, padding, dilation, output_padding, groups = geometry

    def axes(values):
        values = list(values)
        same = len(set(values)) == 1
        return str(values[0]) if same else "x".join(map(str, values))

    text = f"{'x'.join(map(str, source.shape))} {'T ' if transposed else ''}"
    text += f"w{'x'.join(map(str, weight.shape))} s{axes(stride)} p{axes(padding)}"
    if any(step != 1 for step in dilation):
        text += f" d{axes(dilation)}"
    if any(output_padding):
        text += f" op{axes(output_padding)}"
    if groups != 1:
        text += f" g{groups}"
    return f"{text} {str(source.dtype).replace('torch.', '')}"


class Report:
    """What ``convgrad.torch.profile()`` measured."""

    def __init__(self) -> None:
        self._times: Dict[Tuple[str, str], List[float]] = {}
        self._convgrad_first = False

    def _take_turn(self) -> bool:
        """Whether convgrad is first, in turns."""
        self._convgrad_first = not self._convgrad_first
        return self._convgrad_first

    def _add(self, key: Tuple[str, str], torch_seconds: float, convgrad_seconds: float) -> None:
        times = self._times.setdefault(key, [0, 0.0, 0.0])
        for i, more in enumerate((1, torch_seconds, convgrad_seconds)):
            times[i] += more

    @property
    def rows(self) -> List[Row]:
        """In the order of their first calls."""
        return [Row(*key, int(n), a, b) for key, (n, a, b) in self._times.items()]

    @property
    def torch_seconds(self) -> float:
        return sum(row.torch_seconds for row in self.rows)

    @property
    def convgrad_seconds(self) -> float:
        """Of all rows; where PyTorch's kernel computed the result, its time."""
        return sum(row.convgrad_seconds or row.torch_seconds for row in self.rows)

    @property
    def saved_seconds(self) -> float:
        """Over the rows that both computed."""
        return sum(row.torch_seconds - row.convgrad_seconds for row in self.rows
                   if row.torch_seconds and row.convgrad_seconds)  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{'':14}{'calls':>6}{'PyTorch':>11}{'convgrad':>11}{'':>8}  ms"]
        for row in self.rows:
            line = f"{row.what:14}{row.calls:6}"
            for seconds in (row.torch_seconds, row.convgrad_seconds):
                line += f"{seconds * 1e3:11.3f}" if seconds else f"{'-':>11}"
            both = row.torch_seconds and row.convgrad_seconds
            line += f"{row.torch_seconds / row.convgrad_seconds:7.2f}x" if both else f"{'':8}"
            lines.append(f"{line}  {row.problem}")
        lines.append(
            f"{'total':14}{sum(row.calls for row in self.rows):6}{self.torch_seconds * 1e3:11.3f}"
            f"{self.convgrad_seconds * 1e3:11.3f}{'':8}  saved {self.saved_seconds * 1e3:.3f} ms"
        )
        return "\n".join(lines)


def compare(
    reports: Sequence[Report],
    what: str,
    problem: Tuple[Any, ...],
    own: Callable[[], Any],
    replacement: Callable[[], Any],
) -> Any:
    """Runs both, once, for every report; the result is the replacement's, if it has one."""
    order = (replacement, own) if reports[0]._take_turn() else (own, replacement)
    outputs: Dict[Any, Any] = {own: None, replacement: None}
    seconds = {}
    error = None
    for function in order:
        begin = time.perf_counter()
        try:
            outputs[function] = function()
        except RuntimeError as refusal:  # a type that PyTorch has no kernel for, or an error
            error = refusal
        seconds[function] = time.perf_counter() - begin
    replaced = outputs[replacement] is not None
    if error is not None and not replaced:
        raise error
    key = what, _describe(*problem)
    for report in reports:
        report._add(
            key, seconds[own] if error is None else 0, seconds[replacement] if replaced else 0
        )
    return outputs[replacement if replaced else own]
