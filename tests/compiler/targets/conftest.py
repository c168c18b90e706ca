"""What the tests of targets share."""

import pytest


@pytest.fixture
def without_a_gpu(request):
    """Skip a test of stand-ins for CuPy where arrays are CuPy's own."""
    if request.config.getoption("--device") == "cupy":
        if not request.node.get_closest_marker("gpu"):
            pytest.skip("a test of stand-ins")
