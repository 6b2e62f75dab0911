from typing import Any, Callable, Dict, Optional, Sequence, Tuple

__version__: str

Options = Tuple[int, float, int, str, bool]
Description = Tuple[int, Tuple[int, ...], Tuple[int, ...]]
Allocate = Callable[[int, Tuple[int, ...]], Any]
Geometry = Tuple[bool, Sequence[int], Sequence[int], Sequence[int], Sequence[int], int]

class Plan:
    workspace_bytes: int
    flops: float
    outputs: Tuple[Optional[Description], ...]
    kernel: str
    error_bound: float
    def explain(self) -> str: ...
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], allocate: Allocate) -> Tuple[Any, ...]: ...

def plan(
    name: str, attributes: Dict[str, Any], inputs: Sequence[Any], outputs: Sequence[Any], options: Options
) -> Plan: ...
def call(
    name: str,
    attributes: Dict[str, Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    options: Options,
    allocate: Allocate,
) -> Tuple[Any, ...]: ...
def empty(type: int, shape: Tuple[int, ...]) -> Any: ...
def describe(array: Any, name: str) -> Description: ...
def operations() -> Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...], Tuple[str, ...]]]: ...
def kernels() -> Tuple[Tuple[str, str], ...]: ...
def peak(type: int, threads: int) -> Tuple[str, float]: ...
def cores() -> int: ...
def torch_forward(
    geometry: Geometry, threads: int, src: Any, weights: Any, bias: Optional[Any], dst: Any
) -> None: ...
def torch_backward(
    geometry: Geometry,
    threads: int,
    src: Any,
    weights: Any,
    diff_dst: Any,
    diff_src: Optional[Any],
    diff_weights: Optional[Any],
    diff_bias: Optional[Any],
) -> None: ...
def use_threads_of(library: str) -> bool: ...
