"""python -m convgrad: version, CPU, kernels and peak."""

import argparse
import platform
import signal
from typing import Dict

import convgrad
from convgrad import _core
from convgrad._arrays import NAMES

# Arm's CPUs have numbers where others have names.
_ARM_PARTS = {
    "0xd07": "Cortex-A57", "0xd08": "Cortex-A72", "0xd0c": "Neoverse-N1", "0xd40": "Neoverse-V1",
    "0xd49": "Neoverse-N2", "0xd4f": "Neoverse-V2", "0xd83": "Neoverse-V3", "0xd8e": "Neoverse-N3",
}  # fmt: skip


def cpu_name() -> str:
    """As the system calls it."""
    fields: Dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                fields.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    part = fields.get("CPU part", "")
    named = _ARM_PARTS.get(part) if fields.get("CPU implementer") == "0x41" else None
    return fields.get("model name") or named or part or platform.processor() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m convgrad",
        description="Prints the version, the CPU, the kernels and the peak, which it measures.",
    )
    parser.add_argument("--version", action="version", version=f"convgrad {convgrad.__version__}")
    parser.parse_args()
    # As other commands end: by the signal, without a traceback.
    for name in ("SIGPIPE", "SIGINT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    cores = _core.cores()
    print(f"convgrad {convgrad.__version__}")
    print(f"cpu      {cpu_name()}, {platform.machine()}, {cores} core{'s' * (cores != 1)}")
    for name, summary in convgrad.kernels().items():
        print(f"kernel   {name}: {summary}")
    for number, name in NAMES.items():
        instruction, one = _core.peak(number, 1)
        line = f"peak     {name:5}{instruction}: {one * 1e-9:.1f} GFLOP/s on one core"
        if cores > 1:
            line += f", {_core.peak(number, cores)[1] * 1e-9:.1f} on {cores}"
        print(line)


if __name__ == "__main__":
    main()
