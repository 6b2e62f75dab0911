from typing import Any, Callable, Dict, Optional, Sequence, Tuple

__version__: str

Options = Tuple[int, float, int, str, bool]
Description = Tuple[int, Tuple[int, ...], Tuple[int, ...]]
Allocate = Callable[[int, Tuple[int, ...]], Any]

class Plan:
    workspace_bytes: int
    flops: float
    outputs: Tuple[Optional[Description], ...]
    kernel: str
    error_bound: float
    def explain(self) -> str: ...
    def run(
        self, inputs: Sequence[Any], outputs: Sequence[Any], allocate: Allocate
    ) -> Tuple[Any, ...]: ...

def plan(
    name: str,
    attributes: Dict[str, Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    options: Options,
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

class TorchBridge:
    library_seconds: float
    own_forward: Callable[..., Any]
    own_backward: Callable[..., Any]
    def __init__(
        self,
        torch: Any,
        own_forward: Callable[..., Any],
        own_backward: Callable[..., Any],
        traced_forward: Callable[..., Any],
        results_last: Callable[..., bool],
        keeps_weight: Callable[..., bool],
        asks_for_images: bool,
    ) -> None: ...
    def replace(self, forward: bool, backward: bool) -> None: ...
    def set_report(self, report: Optional[Callable[..., Any]]) -> None: ...
    @staticmethod
    def other_threads() -> int: ...
    def forward_kernel(self, *arguments: Any) -> Any: ...
    def backward_kernel(self, *arguments: Any) -> Any: ...
    def convolution(self, *arguments: Any) -> Any: ...
    def convolution_backward(self, *arguments: Any) -> Any: ...
