"""Ops that join and split tensors: concat, stack, split, unstack, pad, reverse, tile.

Each op and its adjoint are in pairs: `concat` and `split`, `stack` and `unstack`, `pad`
and crop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, SupportsIndex, TypeAlias

import numpy as np

from tapewright.core import dtypes, hooks, tensor
from tapewright.core.dispatch import composite
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.interpreters import ARRAY_EVAL, active_interpreter
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    all_mapped,
    batch_along_axis,
    beside_axis,
    check_choice,
    diagonal_along_axis,
    known_rank,
    lift,
    normalize_axis,
)
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_operand import TracedOperand
from tapewright.core.shapes.symbolic_shape import agree, as_size
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    Axes,
    Axis,
    IntLike,
    ShapeLike,
    SupportsArray,
    TensorLike,
    as_shape,
)

from ..math.comparison import where
from .conversion import cast
from .shape import broadcast_to, reshape, sum_to_shape

__all__ = [
    "concat",
    "pad",
    "reverse",
    "split",
    "stack",
    "tile",
    "unstack",
]


# -------------------------------------------------------------------- joining, splitting


@primitive(
    name="concat",
    type_name="ConcatV2",
    sizes=True,
    linear=True,
    moves=True,
    batch=batch_along_axis,
)
def concat_p(xp, *values: TensorLike, axis: Axis):
    return xp.concatenate(values, axis=axis)


def _first_of(who, values):
    if not values:
        raise InvalidArgumentError(
            f"{who}: values must hold at least one tensor, got none"
        )
    return values[0]


@concat_p.infer
def _(*values, axis):
    first = _first_of("concat", values)
    (at,) = normalize_axis("concat", axis, first.shape.rank)
    for value in values[1:]:
        if value.shape.rank != first.shape.rank:
            raise ShapeError("concat", "the tensors must have the same rank; expand_dims "
                             "adds an axis", first=first, other=value)  # fmt: skip
        if any(
            i != at and not agree(a, b)
            for i, (a, b) in enumerate(zip(value.shape, first.shape))
        ):
            raise ShapeError("concat", f"all axes but {at} must have the same size",
                             first=first, other=value)  # fmt: skip
    dims = list(first.shape)
    sizes = [v.shape[at] for v in values]
    dims[at] = None if any([n is None for n in sizes]) else sum(sizes)
    return TensorSpec(dims, first.dtype)


@concat_p.vjp("values")
def _(g, values_shape, axis):
    return _split(g, sizes=[s[axis] for s in values_shape], axis=axis)


@concat_p.diagonal
def _(axes, *values, axis):
    rank = len(values[0].shape)
    return axes[0] if set(axes) == {axes[0]} and axes[0] + rank != axis % rank else None


def concat(values: TensorLike, axis: Axis, name: str | None = None) -> Tensor:
    """Concatenate tensors along an existing axis.

    Args:
        values: List of tensors with the same dtype; a single tensor is returned
            unchanged.
        axis: Axis to concatenate along.

    Shapes:
        All sizes except along ``axis`` must be the same; along ``axis`` the sizes are
        added.

    Example:
        >>> tw.concat([[1, 2], [3]], axis=0).numpy()
        array([1, 2, 3], dtype=int32)
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    if axis is None:  # NumPy would flatten them
        raise TypeError("concat: axis must be an integer, got None")
    return concat_p(values, axis=axis)


@primitive(name="stack", type_name="Pack", sizes=True, linear=True, moves=True)
def stack_p(xp, *values: TensorLike, axis: Axis = 0):
    return xp.stack(values, axis=axis)


@stack_p.infer
def _(*values, axis):
    first = _first_of("stack", values)
    for value in values[1:]:
        if not value.shape.is_compatible_with(first.shape):
            raise ShapeError(
                "stack", "all shapes must be the same", first=first, other=value
            )
    (at,) = normalize_axis("stack", axis, known_rank("stack", "values", first) + 1)
    dims = list(first.shape)
    return TensorSpec(dims[:at] + [len(values)] + dims[at:], first.dtype)


@stack_p.vjp("values")
def _(g, axis):
    return unstack(g, axis=axis)


@stack_p.batch
def _(mapped, *values, axis):
    rank = values[0].array.ndim - mapped[0] + 1
    return stack(all_mapped(mapped, values), axis=axis % rank + 1)


@stack_p.diagonal
def _(axes, *values, axis):
    rank = len(values[0].shape)
    if set(axes) != {axes[0]}:
        return None
    return axes[0] - (axis % (rank + 1) > rank + axes[0])


_OF_PYTHON = (np.ndarray, np.generic, int, float, complex, str, bytes, list, tuple)


def stack(values: TensorLike, axis: Axis = 0, name: str | None = None) -> Tensor:
    """Stack tensors along a new axis.

    Args:
        values: List of tensors with the same shape and dtype.
        axis: Position of the new axis in the result, from ``-rank - 1`` to ``rank`` for
            tensors of rank ``rank``.

    Example:
        >>> tw.stack([[1, 2], [3, 4]], axis=1).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    on_arrays = active_interpreter() is ARRAY_EVAL
    if axis == 0 and isinstance(values, (list, tuple)) and values and not on_arrays:
        if all([isinstance(x, _OF_PYTHON) for x in values]):
            try:  # numbers and arrays alone: a list of them has its own dtype
                return tensor.convert_to_tensor(values)
            except (TypeError, ValueError):
                pass  # the primitive says what does not fit
    return stack_p(values, axis=axis)


@hooks.pack.fill
def _pack(tensors, dtype):
    return stack(tensors if dtype is None else [cast(x, dtype) for x in tensors])


@primitive(
    type_name="SplitV",
    multiple=True,
    sizes=True,
    linear=True,
    moves=True,
    view=True,
    batch=batch_along_axis,
    diagonal=diagonal_along_axis,
)
def _split(xp, value: TensorLike, sizes: ShapeLike, axis: Axis = 0):
    if sum(sizes) != value.shape[axis] or min(sizes, default=0) < 0:
        raise ValueError("sizes do not fit")  # `infer` says it better
    ends = np.cumsum(sizes)
    index = [slice(None)] * value.ndim
    parts = []
    for size, end in zip(sizes, ends):
        index[axis] = slice(int(end) - size, int(end))
        parts.append(value[tuple(index)])
    return tuple(parts)


@_split.infer
def _(value, sizes, axis):
    (at,) = normalize_axis("split", axis, value.shape.rank)
    if not agree(value.shape[at], sum(sizes)):
        raise ShapeError(
            "split",
            f"sizes {sizes} do not add up to the size of axis {at}",
            value=value,
        )
    shapes = [list(value.shape) for _ in sizes]
    for dims, size in zip(shapes, sizes):
        dims[at] = size
    return tuple([TensorSpec(dims, value.dtype) for dims in shapes])


@_split.vjp("value")
def _(g, axis):
    return concat(list(g), axis=axis)


def split(
    value: TensorLike,
    num_or_size_splits: ShapeLike,
    axis: Axis = 0,
    num: IntLike | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Split a tensor into a list of pieces along an axis.

    Args:
        value: Tensor to split.
        num_or_size_splits: Number of pieces of equal size, or a list of sizes, of which
            one may be -1 for the rest.
        axis: Axis to split along.
        num: Expected length of the list of sizes, or None.

    Raises:
        ShapeError: If the sizes do not add up to the size of the axis.
        ValueError: If ``num`` is not the number of sizes.

    Example:
        >>> [part.numpy().tolist() for part in tw.split([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
        >>> [part.numpy().tolist() for part in tw.split([1, 2, 3, 4, 5], [2, -1])]
        [[1, 2], [3, 4, 5]]
    """
    on_arrays = active_interpreter() is ARRAY_EVAL
    value = value if on_arrays else convert_to_tensor(value)
    (axis,) = normalize_axis("split", int(axis), len(value.shape))
    size = value.shape[axis]
    several = isinstance(num_or_size_splits, (list, tuple))
    if not several and np.ndim(num_or_size_splits) == 0:
        count = int(num_or_size_splits)
        if count < 1 or size % count:
            raise ShapeError(
                "split",
                f"the size of axis {axis} must be a multiple of {count}",
                value=value,
            )
        sizes = (size // count,) * count
    else:
        sizes = list(as_shape(num_or_size_splits))
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = size - sum(n for n in sizes if n != -1)
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise ShapeError("split", f"sizes {tuple(sizes)} do not add up to {size}, the size "
                             f"of axis {axis}", value=value)  # fmt: skip
        if num not in (None, len(sizes)):
            raise InvalidArgumentError(
                f"split: num must be the number of sizes, {len(sizes)}, got {num}"
            )
    return list(_split(value, sizes=sizes, axis=axis))


MOST_SLICES = 1 << 20


@primitive(
    type_name="Unpack",
    multiple=True,
    sizes=True,
    linear=True,
    moves=True,
    view=True,
    batch=batch_along_axis,
)
def _unstack(xp, value: TensorLike, axis: Axis = 0):
    return tuple(xp.moveaxis(value, axis, 0))


@_unstack.infer
def _(value, axis):
    (at,) = normalize_axis("unstack", axis, value.shape.rank)
    dims = list(value.shape)
    count = dims.pop(at)
    if count is None:
        raise ShapeError("unstack", f"the size of axis {at} must be known", value=value)
    if count > MOST_SLICES:
        raise ShapeError("unstack", f"a graph holds at most {MOST_SLICES} slices, but axis "
                         f"{at} has {count}", value=value)  # fmt: skip
    return tuple([TensorSpec(dims, value.dtype)] * count)


@_unstack.vjp("value")
def _(g, axis):
    return stack(list(g), axis=axis)


@_unstack.diagonal
def _(axes, value, *, axis):
    rank = len(value.shape)
    kept = beside_axis(axes[0], rank, axis)
    return kept if kept is None else kept + (axis % rank > rank + axes[0])


def unstack(
    value: TensorLike,
    num: IntLike | None = None,
    axis: Axis = 0,
    name: str | None = None,
) -> list[Tensor]:
    """Unpack a tensor into a list of its slices along an axis, which is removed.

    Args:
        value: Tensor to unpack.
        num: Expected number of slices, or None to infer it.
        axis: Axis to unpack along.

    Raises:
        ValueError: If ``num`` is not the size of the axis.

    Example:
        >>> [part.numpy().tolist() for part in tw.unstack([[1, 2], [3, 4]], axis=1)]
        [[1, 3], [2, 4]]
    """
    parts = list(_unstack(value, axis=axis))
    if num is not None and num != len(parts):
        raise InvalidArgumentError(
            f"unstack: num must be the size of axis {axis}, {len(parts)}, got {num}"
        )
    return parts


# ------------------------------------------------------------------- padding, repeating


def as_paddings(value):
    """Convert paddings to pairs (before, after) of plain ints, one per axis."""
    return tuple([(_width(before), _width(after)) for before, after in value])


Paddings: TypeAlias = Annotated[
    Sequence[Sequence[SupportsIndex]] | SupportsArray, as_paddings
]


def _width(n):
    return (
        n if is_symbolic(n) else as_size(n) if isinstance(n, TracedOperand) else int(n)
    )


@primitive(
    type_name="PadV2",
    same_dtype=("tensor", "constant_values"),
    sizes=True,
    grows=True,
    linear=True,
    moves=True,
)
def _pad(xp, tensor: TensorLike, constant_values: TensorLike, paddings: Paddings):
    if any([type(n) is int and n < 0 for pair in paddings for n in pair]):
        raise ValueError("negative paddings")  # `infer` says it better
    dims = [n + b + a for n, (b, a) in zip(tensor.shape, paddings, strict=True)]
    padded = xp.empty(dims, tensor.dtype)
    padded[...] = constant_values
    padded[tuple([slice(b, b + n) for n, (b, a) in zip(tensor.shape, paddings)])] = (
        tensor
    )
    return padded


@_pad.infer
def _(tensor, constant_values, paddings):
    _check_paddings("pad", paddings, tensor=tensor)
    if constant_values.shape.rank != 0:
        raise ShapeError("pad", "constant_values must be a scalar",
                         constant_values=constant_values)  # fmt: skip
    dims = [None if n is None else n + sum(p) for n, p in zip(tensor.shape, paddings)]
    return TensorSpec(dims, tensor.dtype)


def _check_paddings(who, paddings, **given):
    (x,) = given.values()
    pairs = all([len(pair) == 2 for pair in paddings])
    if not pairs or len(paddings) != x.shape.rank or any(
        [n < 0 for pair in paddings for n in pair]
    ):  # fmt: skip
        raise ShapeError(who, f"paddings must be one pair of numbers >= 0 for each axis, got "
                         f"{paddings}", **given)  # fmt: skip


@_pad.vjp("tensor")
def _(g, tensor_shape, paddings):
    return _crop(g, paddings=paddings)


@_pad.vjp("constant_values")
def _(g, paddings, constant_values_dtype):
    inside = _crop(g, paddings=paddings)
    return sum_to_shape(g, ()) - sum_to_shape(inside, ())


@_pad.batch
def _(mapped, tensor, constant_values, *, paddings):
    if mapped[1]:
        tensor, constant_values = lift(
            (True, True), *all_mapped(mapped, (tensor, constant_values))
        )
        inside = new_tensor(module_of(tensor).ones(tensor.array.shape, bool))
        inside = _pad(inside, False, paddings=((0, 0), *paddings))
        padded = _pad(tensor, False, paddings=((0, 0), *paddings))
        return where(inside, padded, constant_values)
    return _pad(tensor, constant_values, paddings=((0, 0), *paddings))


@_pad.diagonal
def _(axes, tensor, constant_values, *, paddings):
    return None if axes[1] is not None or paddings[axes[0]] != (0, 0) else axes[0]


@primitive(linear=True, moves=True, view=True, strict=True)
def _crop(xp, x: TensorLike, paddings: Paddings):
    """Remove the margin from ``x``: the adjoint of `pad`."""
    parts = [slice(b, n - a) for n, (b, a) in zip(x.shape, paddings, strict=True)]
    return x[tuple(parts)]


@_crop.infer
def _(x, paddings):
    _check_paddings("crop", paddings, x=x)
    dims = [None if n is None else n - sum(p) for n, p in zip(x.shape, paddings)]
    if any([type(n) is int and n < 0 for n in dims]):
        raise ShapeError("crop", f"x must be larger than its margins, {paddings}", x=x)
    return TensorSpec(dims, x.dtype)


@_crop.vjp("x")
def _(g, paddings):
    return _pad(g, 0, paddings=paddings)


@_crop.batch
def _(mapped, x, *, paddings):
    return _crop(x, paddings=((0, 0), *paddings))


def pad(
    tensor: TensorLike,
    paddings: Paddings,
    mode: str = "CONSTANT",
    constant_values: TensorLike = 0,
    name: str | None = None,
) -> Tensor:
    """Pad a tensor with ``paddings[i] = (before, after)`` entries along axis ``i``.

    Args:
        tensor: Tensor to pad.
        paddings: Pairs ``(before, after)``, one for each axis.
        mode: "CONSTANT", filled with ``constant_values``; "REFLECT", mirrored without
            the edge; or "SYMMETRIC", mirrored with the edge; in upper or lower case.
        constant_values: Value of the padding in mode "CONSTANT", a scalar.

    Raises:
        ValueError: If ``mode`` is unknown.
        ShapeError: If a padding is negative, or larger than the number of entries to
            mirror.

    Example:
        >>> tw.pad([1, 2], [[1, 1]]).numpy()
        array([0, 1, 2, 0], dtype=int32)
        >>> tw.pad([1, 2, 3], [[2, 2]], mode="REFLECT").numpy()
        array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
        >>> tw.pad([1, 2, 3], [[2, 2]], mode="SYMMETRIC").numpy()
        array([2, 1, 1, 2, 3, 3, 2], dtype=int32)
    """
    mode, tensor = str(mode).upper(), convert_to_tensor(tensor)
    check_choice("pad", "mode", mode, ("CONSTANT", "REFLECT", "SYMMETRIC"))
    if mode == "CONSTANT":
        if tensor.dtype.is_bool and isinstance(constant_values, int):
            constant_values = bool(constant_values)
        if tensor.dtype == dtypes.string and type(constant_values) is int:
            constant_values = ""
        return _pad(tensor, constant_values, paddings=paddings)
    edge, paddings = 1 if mode == "REFLECT" else 0, as_paddings(paddings)
    if len(paddings) != len(tensor.shape) or any(n < 0 for p in paddings for n in p):
        raise ShapeError("pad", f"paddings must be one pair of numbers >= 0 for each axis, got "
                         f"{paddings}", tensor=tensor)  # fmt: skip
    for axis, (before, after) in enumerate(paddings):
        if not before and not after:
            continue
        size = tensor.shape[axis]
        if max(before, after) > size - edge:
            raise ShapeError(
                "pad", f"mode {mode} mirrors at most {size - edge} entries of axis {axis}",
                tensor=tensor,
            )  # fmt: skip
        head, rest = split(tensor, [before + edge, size - before - edge], axis)
        tail = split(tensor, [size - after - edge, after + edge], axis)[1]
        head = split(head, [edge, before], axis)[1]
        tail = split(tail, [after, edge], axis)[0]
        tensor = concat([reverse(head, axis), tensor, reverse(tail, axis)], axis=axis)
    return tensor


@primitive(
    type_name="ReverseV2",
    sizes=True,
    linear=True,
    moves=True,
    view=True,
    batch=batch_along_axis,
    diagonal=diagonal_along_axis,
)
def reverse(xp, tensor: TensorLike, axis: Axes):
    """Reverse the order of the entries along axes.

    Args:
        tensor: Input tensor.
        axis: Axis or list of axes to reverse.

    Example:
        >>> tw.reverse([[1, 2], [3, 4]], axis=[1]).numpy()
        array([[2, 1],
               [4, 3]], dtype=int32)
    """
    if axis is None:
        raise TypeError  # where NumPy would take all axes
    return xp.flip(tensor, axis)


@reverse.infer
def _(tensor, axis):
    if axis is None:
        raise TypeError("reverse: axis must be given, one axis or several, got None")
    normalize_axis("reverse", axis, tensor.shape.rank)
    return tensor


@reverse.vjp("tensor")
def _(g, axis):
    return reverse(g, axis)


@primitive(
    name="roll",
    sizes=True,
    linear=True,
    moves=True,
    batch=batch_along_axis,
    diagonal=diagonal_along_axis,
)
def roll_p(xp, input: TensorLike, shift: Axes, axis: Axes):
    if np.ndim(shift) != np.ndim(axis) or np.size(shift) != np.size(axis):
        raise ValueError  # where NumPy would repeat the one
    if axis is None or shift is None:
        raise ValueError  # where NumPy would roll all of it as one row
    return xp.roll(input, shift, axis)


@roll_p.infer
def _(input, shift, axis):
    if axis is None or shift is None:
        raise InvalidArgumentError(
            f"roll: shift and axis must be given, got {shift} and {axis}"
        )
    if np.ndim(shift) != np.ndim(axis) or np.size(shift) != np.size(axis):
        raise InvalidArgumentError(
            f"roll: shift and axis must be two numbers or two lists of the same length, got "
            f"{shift} and {axis}"
        )
    for each in (axis,) if isinstance(axis, int) else axis:  # one may come twice
        normalize_axis("roll", each, input.shape.rank)
    return input


@roll_p.vjp("input")
def _(g, shift, axis):
    back = -shift if isinstance(shift, int) else [-n for n in shift]
    return roll_p(g, shift=back, axis=axis)


@composite
def tile(input: TensorLike, multiples: ShapeLike, name: str | None = None) -> Tensor:
    """Repeat a whole tensor ``multiples[i]`` times along axis ``i``.

    Args:
        input: Input tensor.
        multiples: Number of repetitions, one for each axis.

    Shapes:
        Size ``n`` of axis ``i`` becomes ``n * multiples[i]``.

    Example:
        >>> tw.tile([1, 2], [2]).numpy()
        array([1, 2, 1, 2], dtype=int32)
    """
    input, multiples = convert_to_tensor(input), as_shape(multiples)
    dims = tuple(input.shape)
    if len(multiples) != len(dims):
        raise ShapeError("tile", f"multiples {multiples} must have one entry for each axis",
                         input=input)  # fmt: skip
    if any([type(m) is int and m < 0 for m in multiples]):
        raise InvalidArgumentError(
            f"tile: multiples must be 0 or more, got {tuple(multiples)}"
        )
    spread = [n for m, d in zip(multiples, dims) for n in (1, d)]
    full = [n for m, d in zip(multiples, dims) for n in (m, d)]
    tiled = broadcast_to(reshape(input, spread), full)
    return reshape(tiled, [m * d for m, d in zip(multiples, dims)])
