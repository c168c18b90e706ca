"""Machine code for tests of functions that run only a few times."""

from pathlib import Path
from unittest import mock

from tapewright.compiler.targets.native.jit import engine

__all__ = ["as_here", "with_passes", "without_passes"]

with_passes = engine.compiled


def without_passes(
    text, name="module", symbols=None, level=None, kernels=(), exported=()
):
    """`engine.compiled` without LLVM's passes, which take nine tenths of its time."""
    if level is not None:  # it has none anyway, and is kept for all tests
        return with_passes(text, name, symbols, level, kernels, exported)
    with mock.patch.object(engine, "CODEGEN_LEVEL", 0):
        kernels = [(each, 0) for each, _ in kernels]
        return with_passes(text, name, symbols, 0, kernels, exported)


def as_here():
    """Return code with which a new process compiles as this one: bits of sums depend on it."""
    if engine.compiled is not without_passes:
        return ""
    return f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from tests import machine_code
machine_code.engine.compiled = machine_code.without_passes
"""
