"""`keras.ops.rearrange`: split, permute and join axes by an einops pattern."""

from __future__ import annotations

import math
import re

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike
from tapewright.ops.array.shape import reshape, shape, transpose

from .operation import OperationFamily

__all__ = ["rearrange"]

operation = OperationFamily(__name__, "einops")


@operation(call="tensor pattern **axes_lengths")
def rearrange(tensor: TensorLike, pattern: str, **axes_lengths: int) -> Tensor:
    """Split, permute and join axes by an einops pattern.

    Args:
        tensor: Input tensor.
        pattern: Names of the axes before and after "->"; names in parentheses are one
            axis of the tensor.
        **axes_lengths: Sizes of names in parentheses, all but one of each group on the
            left.

    Raises:
        ValueError: If ``pattern`` is invalid or does not match the shape.

    Example:
        >>> keras.ops.rearrange([[1, 2, 3, 4]], "b (h w) -> b w h", h=2).numpy().tolist()
        [[[1, 3], [2, 4]]]
    """
    x = convert_to_tensor(tensor)
    before, after = _parsed(pattern)
    if len(before) != len(x.shape):
        what = f"pattern {pattern!r} must have {len(x.shape)} axes before '->'"
        raise ShapeError("rearrange", what, tensor=x)
    lengths = dict(axes_lengths)
    sizes = x.shape if x.shape.is_fully_defined() else shape(x)
    for axis, group in enumerate(before):
        _fill_in(lengths, group, sizes[axis], pattern, x)
    names = [name for group in before for name in group]
    moved = [name for group in after for name in group]
    split = reshape(x, [lengths[name] for name in names])
    split = transpose(split, [names.index(name) for name in moved])
    return reshape(split, [math.prod([lengths[n] for n in group]) for group in after])


def _parsed(pattern):
    """Return the names of each axis before and after the arrow."""
    sides = pattern.split("->") if isinstance(pattern, str) else ()
    groups = [_groups(side) for side in sides]
    if len(groups) != 2 or None in groups:
        raise InvalidArgumentError(
            "rearrange: pattern must be names of axes around '->', such as "
            f"'b h w c -> b (h w) c', got {pattern!r:.200}"
        )
    before, after = groups
    names, moved = [
        [n for group in groups for n in group] for groups in (before, after)
    ]
    if sorted(names) != sorted(moved) or len(set(names)) != len(names):
        raise InvalidArgumentError(
            "rearrange: pattern must have each name once before and once after '->', got "
            f"{pattern!r:.200}"
        )
    return before, after


def _groups(side):
    """Return the names of each axis, grouped by parentheses; None for invalid text."""
    groups, is_open = [], False
    for token in re.findall(r"\w+|\S", side):
        if token in "()":
            if is_open == (token == "("):
                return None
            is_open = not is_open
            groups += [[]] if is_open else []
        elif not re.match(r"\w", token):
            return None
        elif is_open:
            groups[-1].append(token)
        else:
            groups.append([token])
    return None if is_open else groups


def _fill_in(lengths, group, size, pattern, x):
    """Infer the missing length of a name in a group, so that the product is ``size``."""
    unknown = [name for name in group if name not in lengths]
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"rearrange: lengths of all axes {group} but one must be given, got "
            f"{ {name: lengths[name] for name in group if name in lengths} }"
        )
    product = math.prod([lengths[name] for name in group if name in lengths])
    if unknown:
        lengths[unknown[0]] = size // product if product else size
    fits = product * lengths[unknown[0]] if unknown else product
    if isinstance(size, int) and fits != size:
        what = f"an axis of size {size} cannot be {group} with {lengths} in {pattern!r}"
        raise ShapeError("rearrange", what, tensor=x)
