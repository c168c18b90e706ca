"""What the tests of targets share."""

import pytest

from tapewright.compiler.targets.native import engine

from ... import machine_code


@pytest.fixture
def without_a_gpu(request):
    """Skip a test of stand-ins for CuPy where arrays are CuPy's own."""
    if request.config.getoption("--device") == "cupy":
        if not request.node.get_closest_marker("gpu"):
            pytest.skip("a test of stand-ins")


@pytest.fixture
def few_passes(request, monkeypatch):
    """Run LLVM's passes for the first case of a test alone.

    They take nine tenths of the time, and the test is about the code given to LLVM, which
    is written, loaded and run in each case.
    """
    case = getattr(request.node, "callspec", None)
    if case is None or not any(case.indices.values()):
        return
    monkeypatch.setattr(engine, "compiled", machine_code.without_passes)
