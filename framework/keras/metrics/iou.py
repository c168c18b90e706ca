"""Intersection over union of the predicted and true areas of classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tapewright.core.argument_validation import whole
from tapewright.core.dtypes import float32, float64
from tapewright.core.errors import ShapeError
from tapewright.core.floatx import epsilon
from tapewright.core.source_lines import user_stacklevel
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.gather import gather
from tapewright.ops.array.indexing import argmax
from tapewright.ops.array.segment import unsorted_segment_sum
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.diagonal import tensor_diag_part
from tapewright.ops.math.comparison import (
    greater,
    greater_equal,
    less,
    logical_and,
    not_equal,
    where,
)
from tapewright.ops.math.reduction import reduce_sum

from ..losses.shape_utils import as_tensor, broadcast_weight
from .metric import Metric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike
    from tapewright.core.variable import Variable

__all__ = ["BinaryIoU", "IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"]

MOST = 1 << 16  # classes


class IoU(Metric):
    """``tp / (tp + fp + fn)`` of each class in ``target_class_ids``, averaged.

    Classes that neither occur nor are predicted do not count in the mean. Labels and
    predictions that are no class below ``num_classes`` are ignored.

    Args: ``ignore_class``: a label to ignore as well; ``sparse_y_true``,
    ``sparse_y_pred``: these are class numbers, not scores or one-hot along ``axis``;
    ``dtype`` of the counts, int64 by default: fractional weights need a floating one.

    Shapes: ``y_true`` and ``y_pred``, class numbers, ``[batch, ...]``; scores and
    one-hot labels have the classes along ``axis`` as well.

    Raises: ``ValueError`` for a class that is not below ``num_classes``, or more than
    65536 classes.

    Example:
        >>> keras.metrics.IoU(num_classes=2, target_class_ids=[0])([0, 0, 1, 1], [0, 1, 0, 1]).numpy().round(5)
        np.float32(0.33333)
    """

    _direction = "up"

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: Axes = -1,
    ):
        super().__init__("int64" if dtype in (None, "int") else dtype, name)
        if num_classes > MOST:  # looked at before a list of them is made
            raise ValueError(
                f"{type(self).__name__}: num_classes must be at most {MOST}, as each pair "
                f"of classes is counted, got {num_classes}"
            )
        self.target_class_ids: list[int] = [
            whole(self, "target_class_ids", each, 0) for each in target_class_ids
        ]
        wrong = [each for each in self.target_class_ids if not 0 <= each < num_classes]
        if wrong or not self.target_class_ids:
            raise ValueError(
                f"{type(self).__name__}: target_class_ids must be from 0 to "
                f"{num_classes - 1}, got {self.target_class_ids}"
            )
        self.num_classes = num_classes
        self.ignore_class = ignore_class
        self.sparse_y_true = sparse_y_true
        self.sparse_y_pred = sparse_y_pred
        self.axis = axis
        shape = (num_classes, num_classes)
        self.total_cm: Variable = self._tw_add_sum(
            "total_confusion_matrix", shape, self._dtype
        )

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Count one batch; weights, in the shape of the labels, are added up."""
        y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
        if not self.sparse_y_true:
            y_true = argmax(y_true, self.axis)
        if not self.sparse_y_pred:
            y_pred = argmax(y_pred, self.axis)
        y_true = reshape(cast(y_true, "int64"), (-1,))
        y_pred = reshape(cast(y_pred, "int64"), (-1,))
        if y_true.shape != y_pred.shape:
            what = "there must be as many labels as predictions"
            raise ShapeError(type(self).__name__, what, y_true=y_true, y_pred=y_pred)
        weight = self._tw_weights(sample_weight, y_true)
        valid = logical_and(self._tw_is_class(y_true), self._tw_is_class(y_pred))
        if self.ignore_class is not None:
            valid = logical_and(valid, not_equal(y_true, self.ignore_class))
        cells = where(valid, y_true * self.num_classes + y_pred, -1)
        counts = unsorted_segment_sum(weight, cells, self.num_classes**2)
        self.total_cm.assign_add(reshape(counts, self.total_cm.shape))

    def _tw_is_class(self, numbers):
        return logical_and(greater_equal(numbers, 0), less(numbers, self.num_classes))

    def _tw_weights(self, sample_weight, y_true):
        if sample_weight is None:
            return ones_like(y_true, self.total_cm.dtype)
        weight = as_tensor(sample_weight, beside=y_true)
        if weight.dtype.is_floating and self._dtype.is_integer:
            warnings.warn(
                f"{type(self).__name__}: sample_weight is cast from {weight.dtype.name} "
                f"to {self.dtype}; pass dtype='float32' to keep its fractions",
                stacklevel=user_stacklevel(),
            )
        weight = cast(weight, self.total_cm.dtype)
        if len(weight.shape) > 1:
            weight = reshape(weight, (-1,))
        return broadcast_weight(type(self).__name__, weight, y_true)

    def result(self) -> Tensor:
        """Return the mean of the ratios, float32."""
        counts = self.total_cm.read()
        hits = tensor_diag_part(counts)
        union = reduce_sum(counts, 0) + reduce_sum(counts, 1) - hits
        hits = cast(gather(hits, self.target_class_ids), float64)
        union = cast(gather(union, self.target_class_ids), float64)
        present = greater(union, 1e-9)
        ratios = where(present, hits / (union + epsilon()), 0.0)
        count = reduce_sum(cast(present, float64))
        return cast(reduce_sum(ratios) / (count + epsilon()), float32)


class BinaryIoU(IoU):
    """`IoU` of the classes 0 and 1: predictions of ``threshold`` or more are class 1.

    Shapes: ``y_true``, 0 or 1, and ``y_pred`` ``[batch, ...]``.

    Raises: ``ValueError`` if one of ``target_class_ids`` is neither 0 nor 1.

    Example:
        >>> keras.metrics.BinaryIoU(threshold=0.3)([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7]).numpy().round(5)
        np.float32(0.33333)
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Count one batch; weights, in the shape of the labels, are added up."""
        positive = greater_equal(as_tensor(y_pred, float32), self.threshold)
        super().update_state(y_true, positive, sample_weight)


class MeanIoU(IoU):
    """`IoU`, averaged over all classes.

    Args: as for `IoU`.

    Shapes: ``y_true`` and ``y_pred``, class numbers, ``[batch, ...]``.

    Raises: ``ValueError`` for more than 65536 classes.

    Example:
        >>> keras.metrics.MeanIoU(num_classes=2)([0, 0, 1, 1], [0, 1, 0, 1]).numpy().round(5)
        np.float32(0.33333)
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: Axes = -1,
    ):
        super().__init__(
            num_classes,
            range(num_classes),
            name,
            dtype,
            ignore_class,
            sparse_y_true=sparse_y_true,
            sparse_y_pred=sparse_y_pred,
            axis=axis,
        )


class OneHotIoU(IoU):
    """`IoU` for one-hot labels, and for scores unless ``sparse_y_pred``.

    Args: ``axis``: the classes; the others as for `IoU`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

    Example:
        >>> metric = keras.metrics.OneHotIoU(num_classes=2, target_class_ids=[0])
        >>> metric([[1, 0], [1, 0]], [[0.7, 0.3], [0.2, 0.8]]).numpy().round(5)
        np.float32(0.5)
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: Axes = -1,
    ):
        super().__init__(
            num_classes,
            target_class_ids,
            name,
            dtype,
            ignore_class,
            sparse_y_true=False,
            sparse_y_pred=sparse_y_pred,
            axis=axis,
        )


class OneHotMeanIoU(MeanIoU):
    """`MeanIoU` for one-hot labels, and for scores unless ``sparse_y_pred``.

    Args: ``axis``: the classes; the others as for `IoU`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

    Example:
        >>> metric = keras.metrics.OneHotMeanIoU(num_classes=2)
        >>> metric([[1, 0], [1, 0]], [[0.7, 0.3], [0.2, 0.8]]).numpy().round(5)
        np.float32(0.25)
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: Axes = -1,
    ):
        super().__init__(
            num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis
        )
