"""Diagonals and bands of matrices, the last two axes of a tensor.

``k`` numbers the diagonals: 0 is the main one, those above it are positive. A pair
``(low, high)`` is a band, whose diagonals are rows, the highest first, each padded to
the length of the longest; ``align`` is the side of the diagonals ("RIGHT_LEFT":
diagonals above the main one end on the right, those below begin on the left). Writing
diagonals and reading them are adjoints of each other; so are `embed_diagonal` and
`take_diagonal`, which Jacobians use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, SupportsIndex, TypeAlias

import numpy as np

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    all_mapped,
    batch_leading,
    check_choice,
    known_rank,
)
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import Axis, IntLike, TensorLike, as_shape

from ..array.shape import reshape, transpose
from ..math.comparison import where

__all__ = [
    "band_part",
    "diag",
    "diag_part",
    "set_diag",
    "tensor_diag",
    "tensor_diag_part",
]

_ALIGN = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def as_band(value):
    """Return ``(low, high)`` from one number or two."""
    pair = as_shape(value)
    pair = pair * 2 if len(pair) == 1 else pair
    if len(pair) != 2 or pair[0] > pair[1]:
        raise InvalidArgumentError(
            f"k must be a number or a pair (low, high), got {value}"
        )
    return pair


Band: TypeAlias = Annotated[SupportsIndex | Sequence[SupportsIndex], as_band]


def _longest(k, rows, cols):
    """Return the length of the longest diagonal of a band."""
    return max(min(rows + min(k[1], 0), cols - max(k[0], 0)), 0)


def _slices(k, align, rows, cols):
    """Return positions of the diagonals of a band, the highest first.

    For each, its entries in a row-by-row matrix and its position in a row of diagonals, as
    slices.
    """
    longest = _longest(k, rows, cols)
    above, below = align.split("_")
    for d in range(k[1], k[0] - 1, -1):
        length = min(rows + min(d, 0), cols - max(d, 0))
        start = d if d >= 0 else -d * cols
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        first = 0 if left else longest - length
        end = start + (length - 1) * (cols + 1) + 1 if length else start
        yield slice(start, end, cols + 1), slice(first, first + length)


def _check_band(who, k, align, rows, cols, corner=0, **given):
    """Check that the diagonals of a band lie inside the matrix.

    ``corner`` is 1 where diagonals beyond the corners are allowed, which have no
    entries.

    Raises:
        ShapeError: If a diagonal lies outside the matrix.
    """
    check_choice(who, "align", align, _ALIGN)
    if len(k) != 2 or k[0] > k[1]:
        raise ShapeError(who, f"k must be a pair (low, high), got {k}", **given)
    if None not in (rows, cols):
        for d in k:
            if d and not -rows - corner < d < cols + corner:
                raise ShapeError(who, f"k={d} must lie between {-rows} and {cols} for matrices "
                                 f"of {rows} rows and {cols} columns", **given)  # fmt: skip


def _diagonals_shape(k, rows, cols):
    """Return the last axes of the diagonals of a band."""
    length = None if None in (rows, cols) else _longest(k, rows, cols)
    return (length,) if k[0] == k[1] else (k[1] - k[0] + 1, length)


# ------------------------------------------------------------------ writing, reading


@primitive(type_name="MatrixDiagV3", strict=True, linear=True, batch=batch_leading)
def _diag(
    xp, diagonal: TensorLike, k: Band, rows: int, cols: int, align: str = "RIGHT_LEFT"
):
    lead = diagonal.shape[: diagonal.ndim - (1 if k[0] == k[1] else 2)]
    full = xp.zeros((*lead, rows * cols), diagonal.dtype)
    _write(full, diagonal, k, rows, cols, align)
    return full.reshape((*lead, rows, cols))


def _write(flat, diagonal, k, rows, cols, align):
    """Write the diagonals of a band into matrices with their rows flattened."""
    single = k[0] == k[1]
    for i, (there, here) in enumerate(_slices(k, align, rows, cols)):
        flat[..., there] = diagonal[..., here] if single else diagonal[..., i, here]


@_diag.infer
def _(diagonal, k, rows, cols, align):
    _check_band("diag", k, align, rows, cols, corner=1, diagonal=diagonal)
    depth = 1 if k[0] == k[1] else 2
    wanted = _diagonals_shape(k, rows, cols)
    rank = known_rank("diag", "diagonal", diagonal)
    if rank < depth or not diagonal.shape[-depth:].is_compatible_with(wanted):
        raise ShapeError("diag", f"diagonal must end in the shape {wanted}",
                         diagonal=diagonal)  # fmt: skip
    return TensorSpec((*diagonal.shape[:-depth], rows, cols), diagonal.dtype)


@_diag.vjp("diagonal")
def _(g, k, align):
    return _diag_part(g, k=k, align=align)


@primitive(type_name="MatrixDiagPartV3", strict=True, linear=True, batch=batch_leading)
def _diag_part(xp, input: TensorLike, k: Band, align: str = "RIGHT_LEFT"):
    *lead, rows, cols = input.shape
    single = k[0] == k[1]
    flat = input.reshape((*lead, rows * cols))
    if single:
        ((there, _),) = _slices(k, align, rows, cols)
        return flat[..., there]
    band = xp.zeros((*lead, *_diagonals_shape(k, rows, cols)), input.dtype)
    for i, (there, here) in enumerate(_slices(k, align, rows, cols)):
        band[..., i, here] = flat[..., there]
    return band


@_diag_part.infer
def _(input, k, align):
    _check_matrix("diag_part", input)
    rows, cols = input.shape[-2:]
    _check_band("diag_part", k, align, rows, cols, input=input)
    return TensorSpec(
        (*input.shape[:-2], *_diagonals_shape(k, rows, cols)), input.dtype
    )


def _check_matrix(who, input):
    if known_rank(who, "input", input) < 2:
        raise ShapeError(who, "input must have two axes or more", input=input)


@_diag_part.vjp("input")
def _(g, k, align, input_shape):
    return _diag(g, k=k, rows=input_shape[-2], cols=input_shape[-1], align=align)


@primitive(type_name="MatrixSetDiagV3", strict=True, linear=True)
def _set_diag(
    xp, input: TensorLike, diagonal: TensorLike, k: Band, align: str = "RIGHT_LEFT"
):
    *lead, rows, cols = input.shape
    full = input.reshape((*lead, rows * cols)).copy()
    _write(full, diagonal, k, rows, cols, align)
    return full.reshape(input.shape)


@_set_diag.infer
def _(input, diagonal, k, align):
    _check_matrix("set_diag", input)
    rows, cols = input.shape[-2:]
    _check_band("set_diag", k, align, rows, cols, input=input)
    wanted = (*input.shape[:-2], *_diagonals_shape(k, rows, cols))
    if not diagonal.shape.is_compatible_with(wanted):
        raise ShapeError("set_diag", f"diagonal must have shape {wanted}",
                         input=input, diagonal=diagonal)  # fmt: skip
    return TensorSpec(input.shape, input.dtype)


@_set_diag.vjp("input")
def _(g, k):
    return clear_diag(g, k=k)


@_set_diag.vjp("diagonal")
def _(g, k, align):
    return _diag_part(g, k=k, align=align)


@_set_diag.batch
def _(mapped, input, diagonal, *, k, align):
    return _set_diag(*all_mapped(mapped, (input, diagonal)), k=k, align=align)


@primitive(strict=True, linear=True, batch=batch_leading)
def clear_diag(xp, input: TensorLike, k: Band):
    """Set the diagonals of a band of ``input`` to zero; it is self-adjoint."""
    *lead, rows, cols = input.shape
    full = input.reshape((*lead, rows * cols)).copy()
    for there, _ in _slices(k, "LEFT_LEFT", rows, cols):
        full[..., there] = 0
    return full.reshape(input.shape)


@clear_diag.infer
def _(input, k):
    _check_matrix("clear_diag", input)
    _check_band("clear_diag", k, _ALIGN[0], *input.shape[-2:], input=input)
    return TensorSpec(input.shape, input.dtype)


@clear_diag.vjp("input")
def _(g, k):
    return clear_diag(g, k=k)


# ------------------------------------------------------------------- public functions


def diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: IntLike | Sequence[IntLike] = 0,
    num_rows: IntLike = -1,
    num_cols: IntLike = -1,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Make matrices with the given diagonals, and ``padding_value`` elsewhere.

    Args:
        diagonal: Entries of the diagonal, or of a band with the highest diagonal in the
            first row.
        k: Diagonal: 0 is the main one, positive numbers are above it; or a pair
            ``(low, high)`` for a band.
        num_rows: Number of rows; defaults to the smallest square that holds the
            diagonal.
        num_cols: Number of columns; defaults to the smallest square that holds the
            diagonal.
        padding_value: Value of the other entries, a scalar.
        align: Sides to which shorter diagonals of a band are aligned, above and below
            the main one: "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT".

    Shapes:
        ``[..., n]`` to ``[..., rows, cols]``; a band has ``[..., high - low + 1, n]``.

    Raises:
        ShapeError: If ``num_rows`` or ``num_cols`` are too small or both too large.
        ValueError: If ``align`` is unknown.

    Example:
        >>> tw.linalg.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
        >>> tw.linalg.diag([1, 2], k=1, padding_value=9).numpy()
        array([[9, 1, 9],
               [9, 9, 2],
               [9, 9, 9]], dtype=int32)
    """
    diagonal, k = convert_to_tensor(diagonal), as_band(k)
    depth, shape = 1 if k[0] == k[1] else 2, tuple(diagonal.shape)
    if len(shape) < depth or (depth == 2 and shape[-2] != k[1] - k[0] + 1):
        raise ShapeError(
            "diag", "diagonal must have an axis for the entries" if depth == 1 else
            f"diagonal must have {k[1] - k[0] + 1} rows, for the diagonals from {k[0]} "
            f"to {k[1]}", diagonal=diagonal,
        )  # fmt: skip
    least = (shape[-1] - min(k[1], 0), shape[-1] + max(k[0], 0))
    rows, cols = int(num_rows), int(num_cols)
    if rows == cols == -1:
        rows = cols = max(least)
    rows, cols = (least[0] if rows == -1 else rows), (least[1] if cols == -1 else cols)
    if rows < least[0] or cols < least[1] or (rows > least[0] and cols > least[1]):
        raise ShapeError(
            "diag", f"num_rows and num_cols must be at least {least[0]} and {least[1]}, and "
            f"one of them exactly that, got {rows} and {cols}", diagonal=diagonal,
        )  # fmt: skip
    full = _diag(diagonal, k=k, rows=rows, cols=cols, align=str(align))
    if _is_zero(padding_value):
        return full
    mask = np.zeros(rows * cols, bool)
    for there, _ in _slices(k, align, rows, cols):
        mask[there] = True
    return _padded(full, mask.reshape(rows, cols), padding_value)


def _is_zero(value):
    return isinstance(value, (int, float)) and value == 0


def _padded(x, mask, padding_value):
    mask = new_tensor(module_of(x).asarray(mask))
    return where(mask, x, padding_value)


def diag_part(
    input: TensorLike,
    name: str | None = "diag_part",
    k: IntLike | Sequence[IntLike] = 0,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Extract a diagonal of each matrix, or the diagonals of a band, the highest first.

    Args:
        input: Matrices.
        k: Diagonal: 0 is the main one, positive numbers are above it; or a pair
            ``(low, high)`` for a band.
        padding_value: Value that pads the shorter diagonals of a band.
        align: Sides to which shorter diagonals of a band are aligned, as in `diag`.

    Shapes:
        ``[..., rows, cols]`` to ``[..., n]``, the length of the diagonal; for a band to
        ``[..., high - low + 1, n]``.

    Raises:
        ShapeError: If there is no such diagonal.
        ValueError: If ``k`` descends.

    Example:
        >>> tw.linalg.diag_part([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
        >>> tw.linalg.diag_part([[1, 2], [3, 4]], k=(-1, 1)).numpy()
        array([[0, 2],
               [1, 4],
               [3, 0]], dtype=int32)
    """
    input, k = convert_to_tensor(input), as_band(k)
    _check("diag_part", input, k, align)
    band = _diag_part(input, k=k, align=str(align))
    if k[0] == k[1] or _is_zero(padding_value):
        return band
    rows, cols = input.shape[-2:]
    mask = np.zeros(_diagonals_shape(k, rows, cols), bool)
    for i, (_, here) in enumerate(_slices(k, align, rows, cols)):
        mask[i, here] = True
    return _padded(band, mask, padding_value)


def _check(who, input, k, align):
    _check_matrix(who, input)
    _check_band(who, k, align, *input.shape[-2:], input=input)


def set_diag(
    input: TensorLike,
    diagonal: TensorLike,
    name: str | None = "set_diag",
    k: IntLike | Sequence[IntLike] = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Replace the diagonals of each matrix.

    Args:
        input: Matrices.
        diagonal: New entries, in the shape of the result of `diag_part`.
        k: Diagonal: 0 is the main one, positive numbers are above it; or a pair
            ``(low, high)`` for a band.
        align: Sides to which shorter diagonals of a band are aligned, as in `diag`.

    Example:
        >>> tw.linalg.set_diag([[1, 2], [3, 4]], [7, 8]).numpy()
        array([[7, 2],
               [3, 8]], dtype=int32)
    """
    input, k = convert_to_tensor(input), as_band(k)
    diagonal = convert_to_tensor(diagonal, dtype_hint=input.dtype)
    _check("set_diag", input, k, align)
    wanted = (*input.shape[:-2], *_diagonals_shape(k, *input.shape[-2:]))
    if tuple(diagonal.shape) != wanted:  # NumPy would repeat a diagonal
        raise ShapeError("set_diag", f"diagonal must have shape {wanted}",
                         input=input, diagonal=diagonal)  # fmt: skip
    return _set_diag(input, diagonal, k=k, align=str(align))


@primitive(type_name="MatrixBandPart", linear=True, batch=batch_leading)
def band_part(xp, input: TensorLike, num_lower: int, num_upper: int):
    """Set each matrix to zero outside a band around the main diagonal.

    ``(-1, 0)`` returns the lower triangle, ``(0, 0)`` the diagonal.

    Args:
        input: Matrices.
        num_lower: Number of diagonals below the main one to keep, -1 for all.
        num_upper: Number of diagonals above the main one to keep, -1 for all.

    Shapes:
        ``[..., m, n]``, input and result.

    Example:
        >>> tw.linalg.band_part([[1, 2], [3, 4]], -1, 0).numpy()
        array([[1, 0],
               [3, 4]], dtype=int32)
    """
    if input.ndim < 2:
        raise ValueError  # where NumPy would make a matrix
    if num_upper >= 0:
        input = xp.tril(input, num_upper)
    return xp.triu(input, -num_lower) if num_lower >= 0 else input


@band_part.infer
def _(input, num_lower, num_upper):
    _check_matrix("band_part", input)
    return TensorSpec(input.shape, input.dtype)


@band_part.vjp("input")
def _(g, num_lower, num_upper):
    return band_part(g, num_lower, num_upper)


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Make a diagonal tensor.

    It holds ``diagonal[i, ..., k]`` at ``[i, ..., k, i, ..., k]``, and zeros elsewhere.

    Args:
        diagonal: Entries of the diagonal.

    Shapes:
        ``[d0, ..., dk]`` to ``[d0, ..., dk, d0, ..., dk]``.

    Example:
        >>> tw.linalg.tensor_diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    diagonal = convert_to_tensor(diagonal)
    shape = tuple(diagonal.shape)
    size = math.prod(shape)
    full = _diag(reshape(diagonal, (size,)), k=0, rows=size, cols=size)
    return reshape(full, shape + shape)


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Extract the entries ``input[i, ..., k, i, ..., k]``: the inverse of `tensor_diag`.

    Args:
        input: Tensor with an even number of axes.

    Shapes:
        ``[d0, ..., dk, d0, ..., dk]`` to ``[d0, ..., dk]``.

    Example:
        >>> tw.linalg.tensor_diag_part([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    input = convert_to_tensor(input)
    shape = tuple(input.shape)
    half = shape[: len(shape) // 2]
    if not shape or half * 2 != shape:
        raise ShapeError("tensor_diag_part", "the shape must be [d0, ..., dk, d0, ..., dk]",
                         input=input)  # fmt: skip
    size = math.prod(half)
    return reshape(_diag_part(reshape(input, (size, size)), k=0), half)


# -------------------------------------------------------- diagonals, for Jacobians


@primitive(strict=True, linear=True)
def embed_diagonal(xp, x: TensorLike, axis: Axis):
    """Repeat ``x`` per index of ``axis``, zero except at that index: a new axis in front.

    ``axis`` is counted from the end.

    Shapes:
        ``[n, *x.shape]`` with ``n = x.shape[axis]``.
    """
    count = x.shape[axis]
    full = xp.zeros((count, *x.shape), x.dtype)
    picks = xp.arange(count)
    xp.moveaxis(full, axis, 1)[picks, picks] = xp.moveaxis(x, axis, 0)
    return full


@embed_diagonal.infer
def _(x, axis):
    _check_from_end("embed_diagonal", axis, known_rank("embed_diagonal", "x", x), x)
    return TensorSpec((x.shape[axis], *x.shape), x.dtype)


def _check_from_end(who, axis, rank, x):
    if not -rank <= axis < 0:
        raise ShapeError(who, f"axis must be from {-rank} to -1, got {axis}", x=x)


@embed_diagonal.vjp("x")
def _(g, axis):
    return take_diagonal(g, axis)


@embed_diagonal.batch
def _(mapped, x, *, axis):
    full = embed_diagonal(x, axis)
    return transpose(full, (1, 0, *range(2, full.array.ndim)))


@primitive(strict=True, linear=True)
def take_diagonal(xp, x: TensorLike, axis: Axis):
    """Take its index from each entry of the first axis: the adjoint of `embed_diagonal`."""
    picks = xp.arange(x.shape[0])
    return xp.moveaxis(xp.moveaxis(x, axis, 1)[picks, picks], 0, axis)


@take_diagonal.infer
def _(x, axis):
    _check_from_end("take_diagonal", axis, known_rank("take_diagonal", "x", x) - 1, x)
    if None not in (x.shape[0], x.shape[axis]) and x.shape[0] != x.shape[axis]:
        raise ShapeError(
            "take_diagonal", f"axes 0 and {axis} must have the same size", x=x
        )
    return TensorSpec(x.shape[1:], x.dtype)


@take_diagonal.vjp("x")
def _(g, axis):
    return embed_diagonal(g, axis)


@take_diagonal.batch
def _(mapped, x, *, axis):
    return take_diagonal(transpose(x, (1, 0, *range(2, x.array.ndim))), axis)
