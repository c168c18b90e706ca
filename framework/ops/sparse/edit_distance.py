"""`edit_distance`: the number of edits between two sequences."""

from __future__ import annotations

from operator import lt

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    MappingError,
    OutOfBoundsError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.primitive import primitive
from tapewright.core.tensor import Tensor, TensorSpec
from tapewright.core.typing import ShapeLike, TensorLike

from .coordinates import sizes_of
from .sparse_tensor import SparseTensor, as_sparse


def edit_distance(
    hypothesis: SparseTensor,
    truth: SparseTensor,
    normalize: bool = True,
    name: str = "edit_distance",
) -> Tensor:
    """Levenshtein distance between sequences, the rows of sparse tensors.

    It is the least number of insertions, deletions and substitutions that change one
    sequence into the other.

    Args:
        hypothesis: `SparseTensor` of sequences ``[..., steps]``.
        truth: `SparseTensor` of sequences of the same rank and dtype.
        normalize: If True, divide by the length of the sequence in ``truth``: the
            quotient is infinite if only that one is empty, 0 if both are.

    Shapes:
        ``[..., steps]``, of one rank, 2 or more; result ``[...]``, float32, with the
        larger size of the two along each axis.

    Raises:
        TypeError: If the dtypes differ.
        ShapeError: If the ranks do not match.

    References:
        Levenshtein, "Binary codes capable of correcting deletions, insertions, and
        reversals" (1966).

    Example:
        >>> hypothesis = tw.sparse.from_dense([[1, 2, 3], [4, 5, 0]])
        >>> truth = tw.sparse.from_dense([[1, 3, 0], [4, 5, 0]])
        >>> tw.edit_distance(hypothesis, truth).numpy()
        array([0.5, 0. ], dtype=float32)
    """
    who = "edit_distance"
    pair = as_sparse(who, hypothesis, "hypothesis"), as_sparse(who, truth, "truth")
    if pair[0].dtype != pair[1].dtype:
        raise DTypeError(who, "the dtypes must be the same", hypothesis=pair[0].values,
                         truth=pair[1].values)  # fmt: skip
    sizes = [sizes_of(who, x) for x in pair]
    if len(sizes[0]) != len(sizes[1]) or len(sizes[0]) < 2:
        raise ShapeError(
            who, "hypothesis and truth must have one rank, 2 or more, "
            f"got the dense shapes {sizes[0]} and {sizes[1]}",
        )  # fmt: skip
    shape = [max(a, b) for a, b in zip(*[each[:-1] for each in sizes])]
    parts = [part for x in pair for part in (x.indices, x.values)]
    return _edit_distance(*parts, shape=shape, normalize=normalize)


@primitive(type_name="EditDistance", same_dtype=(), no_gradient=True, may_raise=True)
def _edit_distance(
    xp,
    hypothesis_indices: TensorLike,
    hypothesis: TensorLike,
    truth_indices: TensorLike,
    truth: TensorLike,
    *,
    shape: ShapeLike,
    normalize: bool,
):
    rows = _rows(hypothesis_indices, hypothesis)
    wanted = _rows(truth_indices, truth)
    distances = np.zeros(shape, np.float32)
    for position in {**rows, **wanted}:
        row, true = rows.get(position, []), wanted.get(position, [])
        distance = _levenshtein(row, true)
        if normalize:
            distance = distance / len(true) if true else np.inf
        if len(position) != len(shape) or not all(map(lt, position, shape)):
            raise OutOfBoundsError(
                f"edit_distance: indices of rows must be below {tuple(shape)}, got {position}"
            )
        distances[position] = distance
    return xp.asarray(distances)


@_edit_distance.infer
def _(hypothesis_indices, hypothesis, truth_indices, truth, shape, normalize):
    return TensorSpec(shape, dtypes.float32)


@_edit_distance.batch
def _(mapped, *parts, shape, normalize):
    raise MappingError("edit_distance: mapped sparse tensors are not supported")


def _rows(indices, values):
    """Return the entries of each row, by its position."""
    rows = {}
    for position, value in zip(devices.to_numpy(indices).tolist(), values.tolist()):
        rows.setdefault(tuple(position[:-1]), []).append(value)
    return rows


def _levenshtein(a, b):
    distances = range(len(b) + 1)  # from the entries of `a` so far to `b[:i]`
    for n, x in enumerate(a, 1):
        row = [n]
        for i, y in enumerate(b):
            row.append(min(row[i] + 1, distances[i + 1] + 1, distances[i] + (x != y)))
        distances = row
    return distances[-1]
