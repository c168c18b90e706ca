"""The tests of this folder are about calls of NumPy, and need arrays of the CPU."""

import pytest


@pytest.fixture(autouse=True)
def on_the_cpu(device):
    """Skip a test that is to run elsewhere."""
    if device != "cpu":
        pytest.skip("it is about calls of NumPy")
