"""True and false positives and negatives, and the ratios of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tapewright.ops.math.elementwise import divide_no_nan
from tapewright.serialization.object_config import plain

from .confusion_utils import LOWEST, Thresholds, count
from .metric import Metric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike
    from tapewright.core.variable import Variable

__all__ = [
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "Recall",
    "TrueNegatives",
    "TruePositives",
]


class _Count(Metric):
    """The number of predictions of one kind, for one threshold or a list of them.

    A prediction is positive if it is above the threshold (default 0.5), a label if it is
    not 0. With several ``thresholds``, from 0 to 1, the result has one entry for each.
    """

    _kind = None

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(dtype, name)
        self.init_thresholds = thresholds
        self._thresholds = _parsed(type(self), thresholds, 0.5)
        shape = (len(self._thresholds),)
        self.accumulator: Variable = self.add_variable(
            shape, "zeros", name="accumulator"
        )

    @property
    def thresholds(self) -> list[float]:
        return self._thresholds.values

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Count one batch; weights are added up in place of ones."""
        who, kinds = type(self).__name__, (self._kind,)
        counts = count(who, self._thresholds, kinds, y_true, y_pred, sample_weight)
        self.accumulator.assign_add(counts[self._kind])

    def result(self) -> Tensor:
        return _one_or_all(self.accumulator.read())

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": plain(self.init_thresholds)}


class TruePositives(_Count):
    """The number of positive predictions with a positive label.

    >>> TruePositives()([0, 1, 1, 1], [0.1, 0.9, 0.8, 0.3]).numpy()
    np.float32(2.0)
    """

    _kind = "true_positives"


class FalsePositives(_Count):
    """The number of positive predictions with a negative label."""

    _kind = "false_positives"


class TrueNegatives(_Count):
    """The number of negative predictions with a negative label."""

    _kind = "true_negatives"


class FalseNegatives(_Count):
    """The number of negative predictions with a positive label."""

    _kind = "false_negatives"


class _Ratio(Metric):
    """``true_positives / (true_positives + others)``, 0 where there are none.

    Args: ``thresholds`` from 0 to 1, one or a list (default 0.5; with ``top_k`` none);
    ``top_k``: only the best scores of each row can be positive; ``class_id``: looks at
    one class only, a place on the last axis.
    """

    _direction = "up"
    _others = None

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(dtype, name)
        self.init_thresholds = thresholds
        self.top_k = top_k
        self.class_id = class_id
        default = 0.5 if top_k is None else LOWEST
        self._thresholds = _parsed(type(self), thresholds, default)
        self._kinds = ("true_positives", self._others)
        for kind in self._kinds:
            shape = (len(self._thresholds),)
            setattr(self, kind, self.add_variable(shape, "zeros", name=kind))

    @property
    def thresholds(self) -> list[float]:
        return self._thresholds.values

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Count one batch; weights are added up in place of ones."""
        counts = count(
            type(self).__name__,
            self._thresholds,
            self._kinds,
            y_true,
            y_pred,
            sample_weight,
            top_k=self.top_k,
            class_id=self.class_id,
        )
        for kind, number in counts.items():
            getattr(self, kind).assign_add(number)

    def result(self) -> Tensor:
        positives = self.true_positives.read()
        others = getattr(self, self._others)
        return _one_or_all(divide_no_nan(positives, positives + others))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": plain(self.init_thresholds)}


class Precision(_Ratio):
    """The share of positive predictions with a positive label.

    >>> Precision()([0, 1, 1, 1], [1, 0, 1, 1]).numpy().round(5)
    np.float32(0.66667)
    """

    _others = "false_positives"


class Recall(_Ratio):
    """The share of positive labels with a positive prediction.

    >>> Recall()([0, 1, 1, 1], [1, 0, 1, 1]).numpy().round(5)
    np.float32(0.66667)
    """

    _others = "false_negatives"


def _parsed(cls, thresholds, default):
    values = default if thresholds is None else thresholds
    values = list(values) if hasattr(values, "__len__") else [values]
    wrong = [t for t in values if t is None or not 0 <= t <= 1]
    if thresholds is not None and (wrong or not values):
        raise ValueError(
            f"{cls.__name__}: thresholds must be from 0 to 1, got {thresholds!r}"
        )
    return Thresholds(values)


def _one_or_all(values):
    return values[0] if values.shape[0] == 1 else values
