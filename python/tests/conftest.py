"""What every test shares: arrays of small integers, and what the installation lacks."""

import os

import numpy
import pytest

# Reasons to skip. A file needs a library for all of its tests or for none: what is left out shows.
OF_LIBRARIES = ("needs PyTorch", "import 'torch'", "No module named 'torch'", "no sample inputs",
                "needs JAX", "needs mypy")  # fmt: skip


def refuse_skips(report):
    """Where PyTorch has to be there, tests that miss it, JAX or mypy fail."""
    missing = report.skipped and any(reason in str(report.longrepr) for reason in OF_LIBRARIES)
    if missing and os.environ.get("CONVGRAD_REQUIRE_TORCH"):
        report.outcome = "failed"
        report.longrepr = f"CONVGRAD_REQUIRE_TORCH is set, but: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    refuse_skips((yield).get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    refuse_skips((yield).get_result())


@pytest.fixture
def integers():
    """Arrays of small integers, whose sums are exact in any order and type."""
    random = numpy.random.default_rng(7)

    def make(*shape, low=-3, high=4):
        return random.integers(low, high, shape).astype("float32")

    return make
