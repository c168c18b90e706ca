"""Intersection over union (IoU) of predicted and true regions of classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tapewright.core.dtypes import float32, float64
from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import whole
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.settings.floatx import epsilon
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

MAX_CLASSES = 1 << 16


class IoU(Metric):
    """Intersection over union, ``tp / (tp + fp + fn)``, averaged over target classes.

    Classes that neither occur nor are predicted are excluded from the mean. Labels and
    predictions outside of 0 to ``num_classes - 1`` are ignored.

    Args:
        num_classes: Number of classes.
        target_class_ids: Numbers of the classes to average over.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the counts, int64 by default; fractional weights need a floating
            dtype.
        ignore_class: Label to ignore, or None.
        sparse_y_true: If True, labels are integers; if False, one-hot along ``axis``.
        sparse_y_pred: If True, predictions are class numbers; if False, scores along
            ``axis``.
        axis: Axis of the classes in scores and one-hot labels.

    Shapes:
        ``y_true`` and ``y_pred``, class numbers, ``[batch, ...]``; scores and one-hot
        labels also have the classes along ``axis``.

    Raises:
        ValueError: If a target class is not below ``num_classes``, or there are more
            than 65536 classes.

    Example:
        >>> metric = keras.metrics.IoU(num_classes=2, target_class_ids=[0])
        >>> metric([0, 0, 1, 1], [0, 1, 0, 1]).numpy().round(5)
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
        if num_classes > MAX_CLASSES:  # checked before all classes are listed
            raise ValueError(
                f"{type(self).__name__}: num_classes must be at most {MAX_CLASSES}, "
                f"because each pair of classes is counted, got {num_classes}"
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
        """Add one batch to the confusion matrix.

        Args:
            y_true: Labels.
            y_pred: Predictions.
            sample_weight: Weights in the shape of the labels, which are added up, or
                None.
        """
        y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
        if not self.sparse_y_true:
            y_true = argmax(y_true, self.axis)
        if not self.sparse_y_pred:
            y_pred = argmax(y_pred, self.axis)
        y_true = reshape(cast(y_true, "int64"), (-1,))
        y_pred = reshape(cast(y_pred, "int64"), (-1,))
        if y_true.shape != y_pred.shape:
            what = "y_true must have as many labels as y_pred has predictions"
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
    """Intersection over union of the classes 0 and 1, for binary segmentation: see `IoU`.

    Args:
        target_class_ids: Classes to average over: 0, 1 or both.
        threshold: Predictions greater than or equal to it are class 1.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the counts, int64 by default; fractional weights need a floating
            dtype.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[batch, ...]``.

    Raises:
        ValueError: If an element of ``target_class_ids`` is neither 0 nor 1.

    Example:
        >>> metric = keras.metrics.BinaryIoU(threshold=0.3)
        >>> metric([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7]).numpy().round(5)
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
        """Add one batch to the confusion matrix.

        Args:
            y_true: Labels.
            y_pred: Predictions.
            sample_weight: Weights in the shape of the labels, which are added up, or
                None.
        """
        positive = greater_equal(as_tensor(y_pred, float32), self.threshold)
        super().update_state(y_true, positive, sample_weight)


class MeanIoU(IoU):
    """Mean intersection over union: `IoU`, averaged over all classes.

    Args:
        num_classes: Number of classes.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the counts, int64 by default; fractional weights need a floating
            dtype.
        ignore_class: Label to ignore, or None.
        sparse_y_true: If True, labels are integers; if False, one-hot along ``axis``.
        sparse_y_pred: If True, predictions are class numbers; if False, scores along
            ``axis``.
        axis: Axis of the classes in scores and one-hot labels.

    Shapes:
        ``y_true`` and ``y_pred``, class numbers, ``[batch, ...]``; scores and one-hot
        labels also have the classes along ``axis``.

    Raises:
        ValueError: If there are more than 65536 classes.

    Example:
        >>> metric = keras.metrics.MeanIoU(num_classes=2)
        >>> metric([0, 0, 1, 1], [0, 1, 0, 1]).numpy().round(5)
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
    """Intersection over union for one-hot labels: see `IoU`.

    Args:
        num_classes: Number of classes.
        target_class_ids: Numbers of the classes to average over.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the counts, int64 by default; fractional weights need a floating
            dtype.
        ignore_class: Label to ignore, or None.
        sparse_y_pred: If True, predictions are class numbers; if False, scores along
            ``axis``.
        axis: Axis of the classes.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

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
    """Mean intersection over union for one-hot labels: see `MeanIoU`.

    Args:
        num_classes: Number of classes.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the counts, int64 by default; fractional weights need a floating
            dtype.
        ignore_class: Label to ignore, or None.
        sparse_y_pred: If True, predictions are class numbers; if False, scores along
            ``axis``.
        axis: Axis of the classes.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

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
