"""Registry of all primitives by name (``matmul``) and by TensorFlow op type (``MatMul``).

Code that runs before an op is defined, or belongs to a lower floor, looks the op up
here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .suggestions import did_you_mean

if TYPE_CHECKING:
    from .primitive import Primitive

__all__ = [
    "define_ops_later",
    "get_primitive",
    "list_defined_ops",
    "list_ops",
    "register_op",
]

_OPS = {}
_later = None  # the module that defines all ops of tapewright


def define_ops_later(module: str) -> None:
    """Name the module whose import defines all ops, for lookups of one not yet defined."""
    global _later
    _later = module


def _define_all():
    if _later is not None:
        import_module(_later)


def register_op(op: Primitive) -> None:
    """Register an op. A user's op never replaces an op of tapewright.

    Raises:
        ValueError: If a user's op has the name of an op of tapewright: files and models
            refer to ops by name, and would run the wrong one.
    """
    if not op.is_own:
        _define_all()
    known = _OPS.get(op.name)
    if known is not None and known.is_own and not op.is_own:
        raise ValueError(
            f"The name {op.name!r} belongs to an op of tapewright; choose another name"
        )
    for name in (op.name, op.type_name):
        known = _OPS.get(name)
        if known is None or op.is_own or not known.is_own:
            _OPS[name] = op


def get_primitive(name: str) -> Primitive:
    """Return the primitive with this name or TensorFlow op type.

    Raises:
        ValueError: If the name is unknown; the message suggests the nearest names.
    """
    if name not in _OPS:
        _define_all()
    try:
        return _OPS[name]
    except KeyError:
        raise ValueError(f"Unknown op {name!r}{did_you_mean(name, _OPS)}") from None


def list_ops() -> list[Primitive]:
    """Return every op once."""
    _define_all()
    return list_defined_ops()


def list_defined_ops() -> list[Primitive]:
    """Return every op defined so far, once."""
    return list({id(op): op for op in _OPS.values()}.values())
