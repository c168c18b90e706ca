"""True and false positives and negatives, counted for many thresholds in one pass.

The *bucket* of a prediction is the number of thresholds that it exceeds. Weights are
added up by bucket, separately for both labels; cumulative sums from the end are then
the positives of every threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.dtypes import float32, float64, int32
from tapewright.core.errors import ShapeError
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.gather import gather
from tapewright.ops.array.indexing import one_hot
from tapewright.ops.array.segment import unsorted_segment_sum
from tapewright.ops.array.shape import expand_dims, reshape, transpose
from tapewright.ops.array.sorting import searchsorted, top_k
from tapewright.ops.math.comparison import (
    greater,
    is_nan,
    logical_and,
    logical_not,
    not_equal,
    where,
)
from tapewright.ops.math.elementwise import (
    ceil,
    clip_by_value,
    divide_no_nan,
    maximum,
)
from tapewright.ops.math.reduction import reduce_any, reduce_sum
from tapewright.ops.math.scan import cumsum
from tapewright.serialization.object_config import plain

from ..losses.shape_utils import as_tensor, broadcast_weight, same_rank
from .metric import Metric

if TYPE_CHECKING:
    from tapewright.core.typing import DTypeLike, TensorLike

OUTCOMES = ("true_positives", "false_positives", "true_negatives", "false_negatives")
MAX_THRESHOLDS = 1_000_000  # evenly spaced; each is a number of the constructor's
LOWEST = -1e10  # a threshold below all scores


class Thresholds:
    """Thresholds that predictions are compared with, in the order of the results."""

    def __init__(self, values):
        self.values: list[float] = [float(value) for value in values]
        array = np.array(self.values, np.float32)
        self.even: bool = _is_even(array)
        self.order: np.ndarray | None = None  # of the results, if not ascending
        if not self.even and (np.diff(array) < 0).any():
            order = np.argsort(array, kind="stable")
            self.order, array = np.argsort(order), array[order]
        self.ascending = array

    def __len__(self):
        return len(self.values)

    def bucket(self, y_pred):
        """Return the number of thresholds that each prediction exceeds, int32."""
        if not self.even:
            return searchsorted(as_tensor(self.ascending, beside=y_pred), y_pred)
        # Where a bucket ends is rounded as in Keras.
        bucket = ceil(clip_by_value(y_pred, 0.0, 1.0) * float(len(self) - 1))
        if self.values[0] < 0.0:
            bucket = maximum(bucket, 1.0)
        return cast(bucket, int32)


def _is_even(array):
    """Return whether thresholds are evenly spaced from 0 to 1, or just beyond at the ends."""
    count = len(array)
    if count < 3:
        return False
    even = np.arange(count, dtype=np.float32) / (count - 1)
    return bool(np.allclose(array, even, atol=1e-7))


class ConfusionMetric(Metric):
    """Base class of metrics that count the outcomes of predictions at several thresholds.

    A prediction is positive if it exceeds the threshold, a label if it is not 0.
    Constructors of subclasses set the attributes below for which they have arguments,
    then call `_tw_add_counts`.
    """

    _tw_kind: str = "metric"  # a base: no name in a config stands for it
    _tw_init_thresholds: Any = None  # the argument of the constructor
    # Positive are only so many of the best scores of a row.
    _tw_top_k: int | None = None
    # The index on the last axis that counts, None for all.
    _tw_class_id: int | None = None
    _tw_label_weights: Any = None  # ``[labels]``, factors of the sample weights
    _tw_multi_label: bool = False  # whether labels are counted one by one

    _tw_outcomes: Sequence[str] = OUTCOMES  # those that are counted,
    _tw_attributes: Sequence[str] = OUTCOMES  # and the names of the variables
    _tw_built = False

    def __init__(
        self,
        thresholds: Sequence[float],
        name: str | None,
        dtype: DTypeLike | None,
    ):
        super().__init__(dtype, name)
        self._tw_thresholds = Thresholds(thresholds)

    def _tw_add_counts(self, labels=None):
        count = len(self._tw_thresholds)
        shape = (count, labels) if labels else (count,)
        for name in self._tw_attributes:
            setattr(self, name, self._tw_add_sum(name, shape))
        self._tw_built = True

    @property
    def thresholds(self) -> list[float]:
        """The thresholds, in the order of the results."""
        return self._tw_thresholds.values

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Count the outcomes of one batch; with weights, their sums.

        Args:
            y_true: Labels.
            y_pred: Predictions.
            sample_weight: Weights of the examples, or None.

        Shapes:
            ``y_true`` and ``y_pred`` ``[...]``; ``sample_weight`` broadcasts to them,
            also without their last axis.
        """
        counts = self._tw_count(y_true, y_pred, sample_weight)
        if not self._tw_built:
            self._tw_add_counts(int(y_pred.shape[1]))
        for outcome, name in zip(self._tw_outcomes, self._tw_attributes):
            getattr(self, name).assign_add(counts[outcome])

    def _tw_count(self, y_true, y_pred, sample_weight):
        """Map each outcome to its counts, ``[thresholds]`` or ``[thresholds, labels]``."""
        who = type(self).__name__
        y_pred = as_tensor(y_pred, float32)
        y_pred, y_true = same_rank(y_pred, as_tensor(y_true, float32, y_pred))
        if y_pred.shape != y_true.shape:
            what = "y_true and y_pred must have the same shape"
            raise ShapeError(who, what, y_true=y_true, y_pred=y_pred)
        if self._tw_top_k is not None:
            y_pred = _among_best(y_pred, self._tw_top_k)
        if self._tw_class_id is not None:
            y_true, y_pred = _of_class(who, y_true, y_pred, self._tw_class_id)
        label_weights = None if self._tw_multi_label else self._tw_label_weights
        weight = _weights(who, sample_weight, label_weights, y_pred)
        label = not_equal(y_true, 0.0)
        if len(self._tw_thresholds) == 1 and not self._tw_multi_label:
            positive = greater(y_pred, self._tw_thresholds.values[0])
            return _counts_at_one(self._tw_outcomes, label, positive, weight)
        return _counts_at_all(
            self._tw_thresholds, label, y_pred, weight, self._tw_multi_label
        )

    def _tw_ratio(self, part, rest):
        """Return the count ``part`` divided by its sum with ``rest``; 0 if that is 0."""
        part = getattr(self, part).read()
        return divide_no_nan(part, part + getattr(self, rest))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments; ``thresholds`` as they were passed."""
        config = super().get_config()
        if "thresholds" in config:
            config["thresholds"] = plain(self._tw_init_thresholds)
        return config


def _among_best(y_pred, k):
    """Replace scores that are not among the ``k`` highest of their row by `LOWEST`."""
    classes = y_pred.shape[-1]
    if k > classes:
        raise ValueError(
            f"top_k must be at most the number of classes, {classes}, got {k}"
        )
    best = one_hot(top_k(y_pred, k).indices, classes)
    return where(reduce_any(greater(best, 0.0), -2), y_pred, LOWEST)


def _of_class(who, y_true, y_pred, class_id):
    """Return the labels and scores of one class, with an axis of size 1 for the class."""
    classes = y_pred.shape[-1] if len(y_pred.shape) > 1 else 0
    if not -classes <= class_id < classes:
        raise ShapeError(who, f"class_id={class_id} requires y_pred [..., classes] with "
                         f"more than {class_id} classes", y_pred=y_pred)  # fmt: skip
    first = class_id % classes
    return y_true[..., first : first + 1], y_pred[..., first : first + 1]


def _weights(who, sample_weight, label_weights, y_pred):
    """Return the weight of each prediction, or None if all are 1."""
    weight = None
    if sample_weight is not None:
        weight = as_tensor(sample_weight, float64, y_pred)
        rank = len(y_pred.shape)
        if len(weight.shape) == rank + 1:
            weight = same_rank(weight, y_pred, expand_vectors=False)[0]
        elif 0 < len(weight.shape) < rank:
            weight = expand_dims(weight, -1)
        weight = broadcast_weight(who, weight, y_pred)
    if label_weights is not None:
        labels = broadcast_weight(who, as_tensor(label_weights, float64), y_pred)
        weight = labels if weight is None else weight * labels
    return weight


def _counts_at_one(outcomes, label, positive, weight):
    """Count outcomes at one threshold, each ``[1]``."""
    counts = {}
    for outcome in outcomes:
        truth, _, sign = outcome.partition("_")
        predicted = positive if sign == "positives" else logical_not(positive)
        # A false positive is a positive whose label is not.
        is_label = (truth == "true") == (sign == "positives")
        members = logical_and(predicted, label if is_label else logical_not(label))
        members = cast(members, float64)
        if weight is not None:
            members = members * weight
        counts[outcome] = reshape(reduce_sum(members), (1,))
    return counts


def _counts_at_all(thresholds, label, y_pred, weight, by_label):
    """Count at all thresholds: ``[thresholds]``, or ``[thresholds, labels]`` by label."""
    size = len(thresholds) + 1
    y_pred = where(is_nan(y_pred), LOWEST, y_pred)  # it exceeds nothing
    bucket = thresholds.bucket(y_pred) + cast(label, int32) * size
    groups = 1
    if by_label:
        groups = int(y_pred.shape[-1])
        bucket = bucket + np.arange(groups, dtype=np.int32) * (2 * size)
    bucket = reshape(bucket, (-1,))
    weight = ones_like(bucket, float64) if weight is None else reshape(weight, (-1,))
    sums = unsorted_segment_sum(weight, bucket, groups * 2 * size)
    sums = reshape(sums, (groups, 2, size) if by_label else (2, size))
    above = cumsum(sums, -1, reverse=True)
    if by_label:
        above = transpose(above, (1, 2, 0))
    total, positives = above[:, :1], above[:, 1:]
    if thresholds.order is not None:
        positives = gather(positives, thresholds.order, axis=1)
    negatives = total - positives
    return dict(zip(OUTCOMES, (positives[1], positives[0], negatives[0], negatives[1])))
