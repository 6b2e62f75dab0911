"""What every test shares: arrays of small integers, and what the installation lacks."""

import numpy
import pytest


@pytest.fixture
def integers():
    """Arrays of small integers, whose sums are exact in any order and type."""
    random = numpy.random.default_rng(7)

    def make(*shape, low=-3, high=4):
        return random.integers(low, high, shape).astype("float32")

    return make
