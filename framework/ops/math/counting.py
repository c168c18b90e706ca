"""Counts: occurrences of each integer, histograms, confusion matrices."""

from __future__ import annotations

import math

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.op_definition.costs import per_input
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    check_at_least,
    check_choice,
    normalize_axis,
)
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import (
    Axis,
    DTypeLike,
    IntLike,
    TensorLike,
    as_int,
    as_shape,
)

from ..array.conversion import cast
from ..array.gather import flat_index
from ..array.joining import stack
from ..array.segment import known_values, offset_ids, unsorted_segment_sum
from ..array.shape import reshape, squeeze
from .comparison import is_nan, less, where
from .elementwise import clip_by_value, floor

__all__ = [
    "bincount",
    "confusion_matrix",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
]


@primitive(
    type_name="DenseBincount",
    kinds="iu",
    may_raise=True,
    grows=True,
    strict=True,
    cost=per_input(1),
    no_gradient=True,
    batch=batch_leading,
)
def _bincount(
    xp,
    arr: TensorLike,
    size: int,
    dtype: DTypeLike = "int32",
    binary_output: bool = False,
):
    """Count each number below ``size`` in each row (the last axis)."""
    if arr.size and arr.min() < 0:
        raise InvalidArgumentError("bincount: values must not be negative, or NaN")
    *lead, width = arr.shape
    count = math.prod(lead)
    # What is too large goes to one more bin of each row, which is cut off.
    bins = xp.minimum(arr, size).reshape(count, width).astype(xp.int64)
    bins += (xp.arange(count) * (size + 1))[:, None]
    counts = xp.bincount(bins.reshape(-1), minlength=count * (size + 1))
    counts = counts.reshape(*lead, size + 1)[..., :size]
    counts = counts > 0 if binary_output else counts
    return counts.astype(dtype)


@_bincount.infer
def _(arr, size, dtype, binary_output):
    normalize_axis("bincount", -1, arr.shape.rank)
    check_at_least("bincount", 0, size=size)
    return TensorSpec((*arr.shape[:-1], size), dtype)


def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: IntLike | None = None,
    maxlength: IntLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    axis: Axis | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Count the occurrences of each number 0, 1, ... in a tensor, or sum its weights.

    Args:
        arr: Integer tensor, not negative.
        weights: Weights to sum, in the shape of ``arr``; gradients pass to them, and
            the result has their dtype. None counts.
        minlength: Minimal length of the result.
        maxlength: Maximal length of the result; larger numbers are not counted.
        dtype: Dtype of the result without weights.
        axis: None or 0 counts all of ``arr`` together, -1 each row.
        binary_output: If True, return 1 for each number that occurs instead of its
            count.

    Shapes:
        ``[length]``, or ``[..., length]`` for ``axis=-1``; the length is the largest
        number plus 1, within the bounds. A traced function needs equal bounds.

    Raises:
        ValueError: If a number is negative, ``axis`` is unknown, or weights are
            combined with ``binary_output``.

    Example:
        >>> tw.math.bincount([1, 1, 5]).numpy()
        array([0, 2, 0, 0, 0, 1], dtype=int32)
        >>> tw.math.bincount([0, 1, 1], weights=[0.5, 1.0, 2.0]).numpy()
        array([0.5, 3. ], dtype=float32)
    """
    check_choice("bincount", "axis", axis, (None, 0, -1))
    if binary_output and weights is not None:
        raise InvalidArgumentError(
            "bincount: weights cannot be combined with binary_output=True"
        )
    arr = convert_to_tensor(arr)
    if arr.dtype == dtypes.string:
        raise DTypeError("bincount", "arr must be integers", arr=arr)
    arr = arr if arr.dtype.is_integer else cast(arr, dtypes.int32)
    dtype = dtypes.int32 if dtype is None else dtype
    size = None if weights is not None else _fixed_length(minlength, maxlength)
    size = _length(arr, minlength, maxlength) if size is None else size
    if weights is not None:
        weights = convert_to_tensor(weights)
        if weights.shape != arr.shape:
            raise ShapeError(
                "bincount",
                "weights must have the shape of arr",
                arr=arr,
                weights=weights,
            )
    if axis is None or axis == 0:
        arr = reshape(arr, [-1])
        weights = None if weights is None else reshape(weights, [-1])
    if weights is None:
        return _bincount(arr, size, dtype, bool(binary_output))
    lead = as_shape(arr.shape)[:-1]
    ids = where(less(arr, size), arr, -1)
    if lead:
        ids = offset_ids(reshape(ids, (math.prod(lead), arr.shape[-1])), size)
        weights = reshape(weights, ids.shape)
    sums = unsorted_segment_sum(weights, ids, math.prod(lead) * size)
    return reshape(sums, (*lead, size))


def _fixed_length(minlength, maxlength):
    """Return the length if the bounds determine it for any numbers, else None."""
    if minlength is None or maxlength is None or as_int(minlength) < as_int(maxlength):
        return None
    return as_int(maxlength)


def _length(arr, minlength, maxlength):
    array = known_values("bincount", "arr", arr)
    size = int(array.max()) + 1 if array.size else 0
    if array.size and int(array.min()) < 0:
        raise InvalidArgumentError(
            f"bincount: arr must not be negative, got {int(array.min())}"
        )
    size = size if minlength is None else max(size, as_int(minlength))
    return size if maxlength is None else min(size, as_int(maxlength))


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: IntLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Return the bin of each value in a histogram with bins of equal width.

    Args:
        values: Input tensor of numbers.
        value_range: Pair of numbers that the bins divide; values below and above it are
            in the first and the last bin, NaN in bin -1.
        nbins: Number of bins.
        dtype: Integer dtype of the result.

    Raises:
        ValueError: If the range is not ascending and finite, or ``nbins`` is less than
            1.

    Example:
        >>> tw.histogram_fixed_width_bins([-1.0, 1.5, 5.0], [0.0, 5.0], nbins=5).numpy()
        array([0, 1, 4], dtype=int32)
    """
    values = convert_to_tensor(values)
    value_range = convert_to_tensor(value_range, dtype_hint=values.dtype)
    if tuple(value_range.shape) != (2,):
        what = "value_range must hold two numbers"
        raise ShapeError("histogram_fixed_width", what, value_range=value_range)
    low, high = (float(n) for n in value_range.numpy())
    nbins = int(nbins)
    check_at_least("histogram_fixed_width", 1, nbins=nbins)
    if not low < high or math.inf in (high, -low):
        raise InvalidArgumentError(
            "histogram_fixed_width: value_range must be finite and ascending, got "
            f"{value_range}"
        )
    values = cast(values, dtypes.float64) * 0.5  # so that no difference overflows
    bins = floor((values - low * 0.5) / ((high * 0.5 - low * 0.5) / nbins))
    limited = clip_by_value(bins, 0.0, nbins - 1.0)
    return cast(where(is_nan(bins), -1.0, limited), dtype)


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: IntLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Compute a histogram: the number of values in each of ``nbins`` bins of equal width.

    Args:
        values: Input tensor of numbers.
        value_range: Pair of numbers that the bins divide; values below and above it
            count in the first and the last bin.
        nbins: Number of bins.
        dtype: Integer dtype of the result.

    Shapes:
        ``values`` ``[...]``, ``value_range`` ``[2]``, result ``[nbins]``.

    Raises:
        ValueError: If a value is NaN, the range is not ascending and finite, or
            ``nbins`` is less than 1.

    Example:
        >>> tw.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 9.0], [0.0, 5.0], nbins=5).numpy()
        array([2, 1, 1, 0, 1], dtype=int32)
    """
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    return _bincount(reshape(bins, [-1]), int(nbins), dtype)


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: IntLike | None = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Compute a confusion matrix: counts by label (row) and prediction (column).

    Args:
        labels: True class of each example, integers.
        predictions: Predicted class of each example, integers.
        num_classes: Number of classes; defaults to the largest class plus 1. Traced
            functions need it.
        weights: Weight of each example, summed instead of 1; None means 1.
        dtype: Dtype of the result.

    Shapes:
        ``labels``, ``predictions`` and ``weights`` ``[n]``, result
        ``[num_classes, num_classes]``.

    Raises:
        ValueError: If a class is negative or not below ``num_classes``.

    Example:
        >>> tw.math.confusion_matrix([0, 1, 1], [1, 1, 1]).numpy()
        array([[0, 1],
               [0, 2]], dtype=int32)
    """
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    if labels.shape.rank == predictions.shape.rank + 1 and labels.shape[-1] == 1:
        labels = squeeze(labels, -1)
    elif predictions.shape.rank == labels.shape.rank + 1 and predictions.shape[-1] == 1:
        predictions = squeeze(predictions, -1)
    if labels.shape != predictions.shape or labels.shape.rank != 1:
        raise ShapeError("confusion_matrix", "labels and predictions must be vectors of the "
                         "same length", labels=labels, predictions=predictions)  # fmt: skip
    labels, predictions = cast(labels, dtypes.int64), cast(predictions, dtypes.int64)
    both = stack([labels, predictions], axis=1)
    if num_classes is None:
        array = known_values("confusion_matrix", "labels and predictions", both)
        num_classes = int(array.max()) + 1 if array.size else 0
    count = int(num_classes)
    who = "confusion_matrix of labels (axis 0) and predictions (axis 1)"
    cells = flat_index(both, dims=(count, count), who=who)
    if weights is None:
        return reshape(_bincount(cells, count * count, dtype), (count, count))
    weights = cast(convert_to_tensor(weights), dtype)
    sums = unsorted_segment_sum(weights, cells, count * count)
    return reshape(sums, (count, count))
