"""The times of convolutions in PyTorch and in convgrad, side by side."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Tuple


class Row(NamedTuple):
    """One convolution, or its gradients, over all its calls."""

    what: str  # forward, or backward and which of s(ource), w(eight), b(ias)
    problem: str
    calls: int
    torch_seconds: float
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

    def compare(
        self,
        what: str,
        problem: Tuple[Any, ...],
        own: Callable[[], Any],
        replacement: Callable[[], Any],
    ) -> Any:
        """Runs both; the result is the replacement's, if it has one."""
        self._convgrad_first = not self._convgrad_first
        result, first, second = None, own, replacement
        if self._convgrad_first:
            first, second = second, first
        seconds = {}
        for function in (first, second):
            begin = time.perf_counter()
            output = function()
            seconds[function] = time.perf_counter() - begin
            if function is replacement:
                result = output
            else:
                of_torch = output
        times = self._times.setdefault((what, _describe(*problem)), [0, 0.0, 0.0])
        times[0] += 1
        times[1] += seconds[own]
        if result is None:
            return of_torch
        times[2] += seconds[replacement]
        return result

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
        return self.torch_seconds - self.convgrad_seconds

    def __str__(self) -> str:
        lines = [f"{'':14}{'calls':>6}{'PyTorch':>11}{'convgrad':>11}{'':>8}  ms"]
        for row in self.rows:
            line = f"{row.what:14}{row.calls:6}{row.torch_seconds * 1e3:11.3f}"
            if row.convgrad_seconds:
                ratio = row.torch_seconds / row.convgrad_seconds
                line += f"{row.convgrad_seconds * 1e3:11.3f}{ratio:7.2f}x"
            else:
                line += f"{'PyTorch':>11}{'':8}"
            lines.append(f"{line}  {row.problem}")
        total, ours = self.torch_seconds, self.convgrad_seconds
        ratio = total / ours if ours else 1.0
        lines.append(
            f"{'total':14}{sum(row.calls for row in self.rows):6}{total * 1e3:11.3f}"
            f"{ours * 1e3:11.3f}{ratio:7.2f}x  saved {self.saved_seconds * 1e3:.3f} ms"
        )
        return "\n".join(lines)
