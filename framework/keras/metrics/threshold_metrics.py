"""Metrics that maximize one ratio over the thresholds at which another is high enough."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from tapewright.core.messages.argument_validation import share, whole
from tapewright.ops.math.comparison import greater_equal, where
from tapewright.ops.math.reduction import reduce_max

from .confusion_metric import MAX_THRESHOLDS, ConfusionMetric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike

__all__ = [
    "PrecisionAtRecall",
    "RecallAtPrecision",
    "SensitivityAtSpecificity",
    "SpecificityAtSensitivity",
]


# The counts of which a ratio is the first divided by their sum.
PRECISION = ("true_positives", "false_positives")
RECALL = SENSITIVITY = ("true_positives", "false_negatives")
SPECIFICITY = ("true_negatives", "false_positives")


class _Constrained(ConfusionMetric):
    """Base class: the best of one ratio where another reaches a value.

    Outcomes are counted at evenly spaced thresholds from 0 to 1.
    """

    _direction = "up"
    _tw_class_id = property(attrgetter("class_id"))
    _tw_constrained: tuple[str, str]
    _tw_maximized: tuple[str, str]

    def __init__(
        self,
        argument: str,
        value: float,
        num_thresholds: int,
        class_id: int | None,
        name: str | None,
        dtype: DTypeLike | None,
    ):
        share(self, argument, value)
        whole(self, "num_thresholds", num_thresholds, most=MAX_THRESHOLDS)
        steps = num_thresholds - 1
        thresholds = [i / steps for i in range(num_thresholds)] if steps else [0.5]
        super().__init__(thresholds, name, dtype)
        self.value = value
        self.num_thresholds = num_thresholds
        self.class_id = class_id
        self._tw_add_counts()

    def result(self) -> Tensor:
        feasible = greater_equal(self._tw_ratio(*self._tw_constrained), self.value)
        ratios = where(feasible, self._tw_ratio(*self._tw_maximized), 0.0)
        return self._tw_as_result(reduce_max(ratios))


class SensitivityAtSpecificity(_Constrained):
    """Best sensitivity ``tp / (tp + fn)`` where ``tn / (tn + fp) >= specificity``.

    It is 0 if no threshold reaches the specificity.

    Args:
        specificity: Required specificity, from 0 to 1.
        num_thresholds: Number of thresholds, evenly spaced from 0 to 1.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred``, from 0 to 1, ``[...]``.

    Raises:
        ValueError: If ``specificity`` is not between 0 and 1.

    Example:
        >>> metric = keras.metrics.SensitivityAtSpecificity(0.5)
        >>> metric([0, 0, 0, 1, 1], [0, 0.3, 0.8, 0.3, 0.8]).numpy()
        np.float32(0.5)
    """

    _tw_constrained, _tw_maximized = SPECIFICITY, SENSITIVITY

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(
            "specificity", specificity, num_thresholds, class_id, name, dtype
        )
        self.specificity = specificity


class SpecificityAtSensitivity(_Constrained):
    """Best specificity ``tn / (tn + fp)`` where ``tp / (tp + fn) >= sensitivity``.

    It is 0 if no threshold reaches the sensitivity.

    Args:
        sensitivity: Required sensitivity, from 0 to 1.
        num_thresholds: Number of thresholds, evenly spaced from 0 to 1.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred``, from 0 to 1, ``[...]``.

    Raises:
        ValueError: If ``sensitivity`` is not between 0 and 1.

    Example:
        >>> metric = keras.metrics.SpecificityAtSensitivity(0.5)
        >>> metric([0, 0, 0, 1, 1], [0, 0.3, 0.8, 0.3, 0.8]).numpy().round(5)
        np.float32(0.66667)
    """

    _tw_constrained, _tw_maximized = SENSITIVITY, SPECIFICITY

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(
            "sensitivity", sensitivity, num_thresholds, class_id, name, dtype
        )
        self.sensitivity = sensitivity


class PrecisionAtRecall(_Constrained):
    """Best precision ``tp / (tp + fp)`` where the recall ``tp / (tp + fn) >= recall``.

    It is 0 if no threshold reaches the recall.

    Args:
        recall: Required recall, from 0 to 1.
        num_thresholds: Number of thresholds, evenly spaced from 0 to 1.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred``, from 0 to 1, ``[...]``.

    Raises:
        ValueError: If ``recall`` is not between 0 and 1.

    Example:
        >>> keras.metrics.PrecisionAtRecall(0.5)([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9]).numpy()
        np.float32(1.0)
    """

    _tw_constrained, _tw_maximized = RECALL, PRECISION

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__("recall", recall, num_thresholds, class_id, name, dtype)
        self.recall = recall


class RecallAtPrecision(_Constrained):
    """Best recall ``tp / (tp + fn)`` where the precision ``tp / (tp + fp) >= precision``.

    It is 0 if no threshold reaches the precision.

    Args:
        precision: Required precision, from 0 to 1.
        num_thresholds: Number of thresholds, evenly spaced from 0 to 1.
        class_id: Class to count, an index on the last axis, or None for all.
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred``, from 0 to 1, ``[...]``.

    Raises:
        ValueError: If ``precision`` is not between 0 and 1.

    Example:
        >>> keras.metrics.RecallAtPrecision(0.8)([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9]).numpy()
        np.float32(0.5)
    """

    _tw_constrained, _tw_maximized = PRECISION, RECALL

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__("precision", precision, num_thresholds, class_id, name, dtype)
        self.precision = precision
