"""All primitives, by their own names (``matmul``) and by TensorFlow's op types (``MatMul``).

Code that runs before an op is defined, or lies below it, finds the op here by name.
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
    """Make an op known. A user's op never replaces one of tapewright's own.

    Raises: ``ValueError`` for a user's op with the name of one of tapewright's: files and
    models name ops, and would run the other one.
    """
    if not op.is_own:
        _define_all()
    known = _OPS.get(op.name)
    if known is not None and known.is_own and not op.is_own:
        raise ValueError(
            f"The name {op.name!r} is that of an op of tapewright: give yours another"
        )
    for name in (op.name, op.type_name):
        known = _OPS.get(name)
        if known is None or op.is_own or not known.is_own:
            _OPS[name] = op


def get_primitive(name: str) -> Primitive:
    """The primitive of this name, or TensorFlow op type.

    Raises: ``ValueError`` that suggests the names nearest to an unknown one.
    """
    if name not in _OPS:
        _define_all()
    try:
        return _OPS[name]
    except KeyError:
        raise ValueError(f"Unknown op {name!r}{did_you_mean(name, _OPS)}") from None


def list_ops() -> list[Primitive]:
    """Every op once."""
    _define_all()
    return list_defined_ops()


def list_defined_ops() -> list[Primitive]:
    """Every op that is defined so far, once."""
    return list({id(op): op for op in _OPS.values()}.values())
