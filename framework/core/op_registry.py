"""All primitives, by their own names (``matmul``) and by TensorFlow's op types (``MatMul``).

Code that runs before an op is defined, or lies below it, finds the op here by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .primitive import Primitive

__all__ = ["get_primitive", "list_ops", "register_op"]

_OPS = {}


def register_op(op: Primitive) -> None:
    """Make an op known. A user's op never replaces one of tapewright's own.

    Raises: ``ValueError`` for a user's op with the name of one of tapewright's: files and
    models name ops, and would run the other one.
    """
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
    try:
        return _OPS[name]
    except KeyError:
        raise ValueError(f"Unknown op {name!r}{_suggestion(name)}") from None


def list_ops() -> list[Primitive]:
    """Every op once."""
    return list({id(op): op for op in _OPS.values()}.values())


def _suggestion(name):
    import difflib  # takes a millisecond, and only a mistake needs it

    near = difflib.get_close_matches(str(name), _OPS, 3)
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
