"""F-scores: the harmonic mean of precision and recall, by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.settings.floatx import epsilon
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.math.comparison import greater, greater_equal, logical_and
from tapewright.ops.math.elementwise import abs
from tapewright.ops.math.reduction import reduce_max, reduce_mean, reduce_sum

from ..losses.shape_utils import as_tensor, check_matrices
from .metric import Metric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = ["F1Score", "FBetaScore"]

_MAX_BETA = 1e18  # its square is a float32
_AVERAGES = (None, "micro", "macro", "weighted")
_SUMS = "true_positives false_positives false_negatives intermediate_weights".split()


class FBetaScore(Metric):
    """F-beta score: the weighted harmonic mean of precision and recall.

    It is ``(1 + beta ** 2) * precision * recall / (beta ** 2 * precision + recall)``.

    Args:
        average: Average over the classes: None for one score per class, "micro" to
            count all classes together, "macro" for the mean of the scores, "weighted"
            for their mean weighted by the frequency of the classes.
        beta: Weight of recall relative to precision, a positive float.
        threshold: Number above which predictions are positive, a float above 0 and at
            most 1; by default the largest prediction of each row is positive.
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[batch, classes]``.

    Raises:
        ValueError: If ``average`` is unknown, ``beta`` is not a positive float, or
            ``threshold`` is not a float above 0 and at most 1.

    Example:
        >>> keras.metrics.FBetaScore(beta=2.0, threshold=0.5)(
        ...     [[1, 1, 1], [1, 0, 0], [1, 1, 0]],
        ...     [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]],
        ... ).numpy().round(5)
        array([0.38462, 0.90909, 0.83333], dtype=float32)
    """

    _direction = "up"

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(dtype, name)
        who = type(self).__name__
        if not isinstance(beta, float) or not 0 < beta < _MAX_BETA:
            raise ValueError(
                f"{who}: beta must be a positive float below {_MAX_BETA:g}, got {beta!r}"
            )
        if threshold is not None:
            if not isinstance(threshold, float) or not 0 < threshold <= 1:
                raise ValueError(
                    f"{who}: threshold must be a float above 0 and at most 1, got "
                    f"{threshold!r}"
                )
        self.average = one_of(self, "average", average, _AVERAGES)
        self.beta = beta
        self.threshold = threshold
        self.axis = None if self.average == "micro" else 0  # that is summed over
        self._built = False

    def _build(self, y_true_shape, y_pred_shape):  # an `update_state` of users calls it
        shape = () if self.axis is None else (int(y_pred_shape[1]),)
        for name in _SUMS:
            setattr(self, name, self._tw_add_sum(name, shape, self._dtype))
        self._built = True

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Count the outcomes of one batch.

        Args:
            y_true: Labels 0 and 1 ``[batch, classes]``.
            y_pred: Predictions ``[batch, classes]``.
            sample_weight: Weights ``[batch]``, or None.
        """
        y_pred = as_tensor(y_pred, self._dtype)
        y_true = as_tensor(y_true, self._dtype, y_pred)
        check_matrices(type(self).__name__, "classes", y_true, y_pred)
        if not self._built:
            self._build(y_true.shape, y_pred.shape)
        predicted = cast(self._tw_positive(y_pred), self._dtype)
        counts = (
            predicted * y_true,
            predicted * (1 - y_true),
            (1 - predicted) * y_true,
            y_true,
        )
        if sample_weight is not None:
            weight = expand_dims(as_tensor(sample_weight, self._dtype, y_pred), 1)
            counts = [values * weight for values in counts]
        for name, values in zip(_SUMS, counts):
            getattr(self, name).assign_add(reduce_sum(values, self.axis))

    def _tw_positive(self, y_pred):
        if self.threshold is not None:
            return greater(y_pred, self.threshold)
        largest = greater_equal(y_pred, reduce_max(y_pred, -1, True))
        return logical_and(largest, greater(abs(y_pred), 1e-9))

    def result(self) -> Tensor:
        """Return the score, or one score per class; 0 before the first update."""
        if not self._built:
            return as_tensor(0.0, self._dtype)
        positives = self.true_positives.read()
        precision = positives / (positives + self.false_positives + epsilon())
        recall = positives / (positives + self.false_negatives + epsilon())
        square = self.beta**2
        mean = precision * recall / (square * precision + recall + epsilon())
        score = mean * (1 + square)
        if self.average == "weighted":
            weights = self.intermediate_weights.read()
            score = reduce_sum(score * (weights / (reduce_sum(weights) + epsilon())))
        elif self.average is not None:
            score = reduce_mean(score)
        return self._tw_as_result(score)


class F1Score(FBetaScore):
    """F1 score: the harmonic mean of precision and recall.

    It is ``2 * precision * recall / (precision + recall)``, `FBetaScore` with
    ``beta=1``.

    Args:
        average: Average over the classes: None, "micro", "macro" or "weighted", see
            `FBetaScore`.
        threshold: Number above which predictions are positive, a float above 0 and at
            most 1; by default the largest prediction of each row is positive.
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[batch, classes]``.

    Raises:
        ValueError: If ``average`` is unknown, or ``threshold`` is not a float above 0
            and at most 1.

    Example:
        >>> metric = keras.metrics.F1Score(average="micro", threshold=0.5)
        >>> metric([[1, 1]], [[0.9, 0.2]]).numpy().round(5)
        np.float32(0.66667)
    """

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = "f1_score",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(average, 1.0, threshold, name, dtype)
