"""True and false positives and negatives, and their ratios."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from tapewright.ops.math.elementwise import divide_no_nan

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
    """The number of predictions with one outcome, for one threshold or a list of them.

    A prediction is positive if it is above the threshold (default 0.5), a label if it is
    not 0. With several ``thresholds``, from 0 to 1, the result has one entry for each.
    """

    _tw_attributes = ("accumulator",)
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

    @property
    def _tw_init_thresholds(self):
        return self.init_thresholds

    def result(self) -> Tensor:
        return self._tw_as_result(_one_or_all(self.accumulator.read()))


class TruePositives(_Count):
    """The number of positive predictions with a positive label.

    Args: ``thresholds``: from 0 to 1, default 0.5: a prediction above it is positive.
    For a list the result has one entry for each.

    Shapes: ``y_true``, 0 or 1, and ``y_pred`` ``[...]``; ``sample_weight`` what
    broadcasts to them, also without their last axis: then its sums are counted.

    Raises: ``ValueError`` for a threshold that is not from 0 to 1.

    Example:
        >>> keras.metrics.TruePositives()([0, 1, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(2.0)
    """

    _tw_outcomes = ("true_positives",)


class FalsePositives(_Count):
    """The number of positive predictions with a negative label.

    Args: as for `TruePositives`.

    Shapes: ``y_true``, 0 or 1, and ``y_pred`` ``[...]``.

    Example:
        >>> keras.metrics.FalsePositives()([0, 0, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(1.0)
    """

    _tw_outcomes = ("false_positives",)


class TrueNegatives(_Count):
    """The number of negative predictions with a negative label.

    Args: as for `TruePositives`.

    Shapes: ``y_true``, 0 or 1, and ``y_pred`` ``[...]``.

    Example:
        >>> keras.metrics.TrueNegatives()([0, 0, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(1.0)
    """

    _tw_outcomes = ("true_negatives",)


class FalseNegatives(_Count):
    """The number of negative predictions with a positive label.

    Args: as for `TruePositives`.

    Shapes: ``y_true``, 0 or 1, and ``y_pred`` ``[...]``.

    Example:
        >>> keras.metrics.FalseNegatives()([0, 0, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
        np.float32(1.0)
    """

    _tw_outcomes = ("false_negatives",)


class _Ratio(ConfusionMetric):
    """``true_positives / (true_positives + others)``, 0 where there are none.

    Args: ``thresholds`` from 0 to 1, one or a list (default 0.5; with ``top_k`` none);
    ``top_k``: only the best scores of each row can be positive; ``class_id``: counts
    one class only, an index on the last axis.
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
        positives, others = [getattr(self, name).read() for name in self._tw_attributes]
        share = divide_no_nan(positives, positives + others)
        return self._tw_as_result(_one_or_all(share))


class Precision(_Ratio):
    """The share of positive predictions with a positive label: ``tp / (tp + fp)``.

    It is 0 if there are no positive predictions.

    Args: ``thresholds``: from 0 to 1, one or a list, default 0.5: a prediction above it
    is positive; ``top_k``: only this number of the best scores of each row can be
    positive, by default at any score; ``class_id``: count one class only, an index on
    the last axis.

    Shapes: ``y_true``, 0 or 1, and ``y_pred`` ``[...]``, with ``top_k`` or ``class_id``
    ``[..., classes]``.

    Raises: ``ValueError`` for a threshold that is not from 0 to 1, or more ``top_k``
    than classes.

    Example:
        >>> keras.metrics.Precision()([0, 1, 1, 1], [1, 0, 1, 1]).numpy().round(5)
        np.float32(0.66667)
    """

    _tw_outcomes = _tw_attributes = ("true_positives", "false_positives")


class Recall(_Ratio):
    """The share of positive labels with a positive prediction: ``tp / (tp + fn)``.

    It is 0 if there are no positive labels.

    Args: as for `Precision`.

    Shapes: as for `Precision`.

    Raises: as `Precision`.

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
