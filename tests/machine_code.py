"""Machine code for tests of functions that run only a few times."""

from unittest import mock

from tapewright.compiler.targets.native import engine

__all__ = ["without_passes"]

_compiled = engine.compiled


def without_passes(text, name="module", symbols=None, level=None):
    """`engine.compiled` without LLVM's passes, which take nine tenths of its time."""
    if level is not None:  # it has none anyway, and is kept for all tests
        return _compiled(text, name, symbols, level)
    with mock.patch.object(engine, "CODEGEN_LEVEL", 0):
        return _compiled(text, name, symbols, 0)
