"""Registry of all primitives by name (``matmul``) and by TensorFlow op type (``MatMul``).

Code that runs before an op is defined, or belongs to a lower floor, looks the op up
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import hooks
from ..messages.suggestions import did_you_mean

if TYPE_CHECKING:
    from ..primitive import Primitive

_OPS = {}


def register_op(op: Primitive) -> None:
    """Register an op. A user's op never replaces an op of tapewright.

    Raises:
        ValueError: If a user's op has the name of an op of tapewright: files and models
            refer to ops by name, and would run the wrong one.
    """
    if not op.is_own:
        hooks.define_ops.call()
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
        hooks.define_ops.call()
    try:
        return _OPS[name]
    except KeyError:
        raise ValueError(f"Unknown op {name!r}{did_you_mean(name, _OPS)}") from None


def list_ops() -> list[Primitive]:
    """Return every op once."""
    hooks.define_ops.call()
    return list_defined_ops()


def list_defined_ops() -> list[Primitive]:
    """Return every op defined so far, once."""
    return list({id(op): op for op in _OPS.values()}.values())
