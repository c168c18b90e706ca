"""Nests of tensors as flat lists, for nodes that take and give several."""

from tapewright.core.nest import flatten, is_nested, pack
from tapewright.core.tensor import convert_to_tensor

__all__ = ["as_tensors", "put_together", "take_apart"]


def take_apart(structure):
    """The leaves of a nest; what is made of several tensors (a `TensorArray`) as these."""
    leaves = []
    for x in flatten(structure) if is_nested(structure) else [structure]:
        leaves += x.components() if hasattr(x, "components") else [x]
    return leaves


def put_together(structure, leaves):
    """``leaves`` in a structure that was taken apart."""
    leaves, whole = iter(leaves), []
    for x in flatten(structure) if is_nested(structure) else [structure]:
        if hasattr(x, "components"):
            whole.append(x.with_components([next(leaves) for _ in x.components()]))
        else:
            whole.append(next(leaves))
    return pack(structure, whole) if is_nested(structure) else whole[0]


def as_tensors(structure, like=None):
    """The nest with tensors as leaves; numbers follow the dtype of what they replace."""
    leaves = flatten(structure)
    hints = [None] * len(leaves) if like is None else flatten(like)
    found = [
        x
        if hasattr(x, "components")
        else convert_to_tensor(x, dtype_hint=getattr(hint, "dtype", None))
        for x, hint in zip(leaves, hints)
    ]
    return pack(structure, found)
