"""True and false positives and negatives, precision and recall."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from .confusion_metric import LOWEST, ConfusionMetric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike
    from tapewright.core.variable import Variable

__all__ = [
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "Recall",
    "TrueNegatives",
    "TruePositives",
]


class _Count(ConfusionMetric):
    """Number of predictions with one outcome, for one threshold or a list of them.

    A prediction is positive if it exceeds the threshold (default 0.5), a label if it is
    not 0. With several ``thresholds``, from 0 to 1, the result has one entry per
    threshold.
    """

    _tw_attributes = ("accumulator",)
    _tw_init_thresholds = property(attrgetter("init_thresholds"))
    accumulator: Variable

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(_parsed(type(self), thresholds, 0.5), name, dtype)
        self.init_thresholds = thresholds
        self._tw_add_counts()

    def result(self) -> Tensor:
        return self._tw_as_result(_one_or_all(self.accumulator.read()))


class TruePositives(_Count):
    """Number of true positives: positive predictions with a positive label.

    Args:
        thresholds: Number from 0 to 1, 0.5 by default, above which a prediction is
            positive. For a list of them the result has one entry per threshold.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[...]``; ``sample_weight`` broadcasts to
        them, also without their last axis; its sums are counted.

    Raises:
        ValueError: If a threshold is not between 0 and 1.

    Example:
        >>> keras.metrics.TruePositives()([0, 1, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(2.0)
    """

    _tw_outcomes = ("true_positives",)


class FalsePositives(_Count):
    """Number of false positives: positive predictions with a negative label.

    Args:
        thresholds: Number from 0 to 1, 0.5 by default, above which a prediction is
            positive. For a list of them the result has one entry per threshold.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[...]``; ``sample_weight`` as for
        `TruePositives`.

    Raises:
        ValueError: If a threshold is not between 0 and 1.

    Example:
        >>> keras.metrics.FalsePositives()([0, 0, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(1.0)
    """

    _tw_outcomes = ("false_positives",)


class TrueNegatives(_Count):
    """Number of true negatives: negative predictions with a negative label.

    Args:
        thresholds: Number from 0 to 1, 0.5 by default, above which a prediction is
            positive. For a list of them the result has one entry per threshold.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[...]``; ``sample_weight`` as for
        `TruePositives`.

    Raises:
        ValueError: If a threshold is not between 0 and 1.

    Example:
        >>> keras.metrics.TrueNegatives()([0, 0, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(1.0)
    """

    _tw_outcomes = ("true_negatives",)


class FalseNegatives(_Count):
    """Number of false negatives: negative predictions with a positive label.

    Args:
        thresholds: Number from 0 to 1, 0.5 by default, above which a prediction is
            positive. For a list of them the result has one entry per threshold.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[...]``; ``sample_weight`` as for
        `TruePositives`.

    Raises:
        ValueError: If a threshold is not between 0 and 1.

    Example:
        >>> keras.metrics.FalseNegatives()([0, 0, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(1.0)
    """

    _tw_outcomes = ("false_negatives",)


class _Ratio(ConfusionMetric):
    """Ratio ``true_positives / (true_positives + others)``, 0 if the denominator is 0.

    Args:
        thresholds: Number from 0 to 1, or a list of them, above which a prediction is
            positive; 0.5 by default, with ``top_k`` no threshold.
        top_k: Number of highest scores of each row that can be positive, or None for
            all.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.
    """

    _direction = "up"
    _tw_init_thresholds = property(attrgetter("init_thresholds"))
    _tw_top_k = property(attrgetter("top_k"))
    _tw_class_id = property(attrgetter("class_id"))

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        default = 0.5 if top_k is None else LOWEST
        super().__init__(_parsed(type(self), thresholds, default), name, dtype)
        self.init_thresholds = thresholds
        self.top_k = top_k
        self.class_id = class_id
        self._tw_add_counts()

    def result(self) -> Tensor:
        return self._tw_as_result(_one_or_all(self._tw_ratio(*self._tw_attributes)))


class Precision(_Ratio):
    """Precision: fraction of positive predictions that are right, ``tp / (tp + fp)``.

    It is 0 if there are no positive predictions.

    Args:
        thresholds: Number from 0 to 1, or a list of them, above which a prediction is
            positive; 0.5 by default, with ``top_k`` no threshold.
        top_k: Number of highest scores of each row that can be positive, or None for
            all.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[...]``, with ``top_k`` or ``class_id``
        ``[..., classes]``.

    Raises:
        ValueError: If a threshold is not between 0 and 1, or ``top_k`` is greater than
            the number of classes.

    Example:
        >>> keras.metrics.Precision()([0, 1, 1, 1], [1, 0, 1, 1]).numpy().round(5)
        np.float32(0.66667)
    """

    _tw_outcomes = _tw_attributes = ("true_positives", "false_positives")


class Recall(_Ratio):
    """Recall: fraction of positive labels that are predicted, ``tp / (tp + fn)``.

    It is 0 if there are no positive labels.

    Args:
        thresholds: Number from 0 to 1, or a list of them, above which a prediction is
            positive; 0.5 by default, with ``top_k`` no threshold.
        top_k: Number of highest scores of each row that can be positive, or None for
            all.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[...]``, with ``top_k`` or ``class_id``
        ``[..., classes]``.

    Raises:
        ValueError: If a threshold is not between 0 and 1, or ``top_k`` is greater than
            the number of classes.

    Example:
        >>> keras.metrics.Recall()([0, 1, 1, 1], [1, 0, 1, 1]).numpy().round(5)
        np.float32(0.66667)
    """

    _tw_outcomes = _tw_attributes = ("true_positives", "false_negatives")


def _parsed(cls, thresholds, default):
    values = default if thresholds is None else thresholds
    values = list(values) if hasattr(values, "__len__") else [values]
    wrong = [t for t in values if t is None or not 0 <= t <= 1]
    if thresholds is not None and (wrong or not values):
        raise ValueError(
            f"{cls.__name__}: thresholds must be from 0 to 1, got {thresholds!r}"
        )
    return values


def _one_or_all(values):
    return values[0] if values.shape[0] == 1 else values
