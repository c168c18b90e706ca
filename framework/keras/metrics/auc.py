"""Area under the ROC or precision-recall curve, computed from many thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tapewright.core.messages.argument_validation import whole
from tapewright.core.settings.floatx import epsilon
from tapewright.ops.math.comparison import equal, greater, logical_and, where
from tapewright.ops.math.elementwise import divide_no_nan, log, maximum, minimum
from tapewright.ops.math.reduction import reduce_mean, reduce_sum
from tapewright.ops.nn.activation import sigmoid
from tapewright.serialization.object_config import plain

from ..losses.shape_utils import as_tensor
from .confusion_metric import MAX_THRESHOLDS, OUTCOMES, ConfusionMetric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = ["AUC"]

_CURVES = ("ROC", "PR", "PRGAIN")
METHODS = ("interpolation", "majoring", "minoring")


class AUC(ConfusionMetric):
    """Area under the ROC or precision-recall curve, approximated by a Riemann sum.

    Args:
        num_thresholds: Number of thresholds, evenly spaced from 0 to 1; at least 2.
        curve: "ROC" (recall over false positive rate), "PR" (precision over recall) or
            "PRGAIN" (precision gain over recall gain).
        summation_method: Height of each step: "interpolation" (in the middle),
            "majoring" (the larger end) or "minoring" (the smaller end).
        name: Name of the metric, by default the class name in snake case, made unique.
        dtype: Dtype of the result, `floatx` by default.
        thresholds: Thresholds between 0 and 1 to use instead of ``num_thresholds``.
        multi_label: If True, compute the area for each label and average.
        num_labels: Number of labels with ``multi_label``, to create the state at once.
        label_weights: Weights ``[labels]`` of the areas with ``multi_label``, else of
            the predictions.
        from_logits: If True, apply a sigmoid to ``y_pred`` first.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred``, from 0 to 1, ``[...]``; with ``multi_label``
        ``[batch, labels]``.

    Raises:
        ValueError: If there are fewer than 2 thresholds, ``curve`` or
            ``summation_method`` is unknown, or ``num_labels`` is given without
            ``multi_label``.

    References:
        Davis & Goadrich, "The relationship between precision-recall and ROC curves"
        (2006), for the interpolation of "PR"; Flach & Kull, "Precision-recall-gain
        curves: PR analysis done right" (2015), for "PRGAIN".

    Example:
        >>> metric = keras.metrics.AUC(num_thresholds=3)
        >>> metric([0, 0, 1, 1], [0, 0.5, 0.3, 0.9]).numpy()
        np.float32(0.75)
    """

    _direction = "up"
    _tw_multi_label: Any = property(attrgetter("multi_label"))
    _tw_label_weights = property(attrgetter("label_weights"))

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        thresholds: float | Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: TensorLike | None = None,
        from_logits: bool = False,
    ):
        if num_labels and not multi_label:
            raise ValueError("AUC: num_labels requires multi_label=True")
        if thresholds is not None:
            thresholds = sorted(plain(thresholds))
        super().__init__(_with_ends(num_thresholds, thresholds), name, dtype)
        self.curve: str = _one_of("curve", curve, _CURVES)
        self.summation_method: str = _one_of(
            "summation_method", summation_method, METHODS
        )
        self._tw_init_thresholds = thresholds
        self.num_thresholds: int = len(self.thresholds)
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.label_weights = plain(label_weights)
        self.from_logits = from_logits
        if not multi_label or num_labels:
            self._tw_add_counts(num_labels)

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
        """
        y_pred = as_tensor(y_pred)
        if self.from_logits:
            y_pred = sigmoid(y_pred)
        if self.multi_label and len(y_pred.shape) != 2:
            raise ValueError(
                "AUC: with multi_label=True y_pred must be [batch, labels], got shape "
                f"{tuple(y_pred.shape)}"
            )
        super().update_state(y_true, y_pred, sample_weight)

    def result(self) -> Tensor:
        """Return the area; 0 before the first update."""
        if not self._tw_built:
            return as_tensor(0.0, self._dtype)
        tp, fp, tn, fn = [getattr(self, name).read() for name in OUTCOMES]
        if self.curve == "PR" and self.summation_method == "interpolation":
            areas = _interpolated_pr(tp, fp, fn)
        else:
            x, y = _coordinates(self.curve, tp, fp, tn, fn)
            areas = (x[:-1] - x[1:]) * _heights(self.summation_method, y)
        if not self.multi_label:
            return self._tw_as_result(reduce_sum(areas))
        areas = reduce_sum(areas, 0)
        if self.label_weights is None:
            return self._tw_as_result(reduce_mean(areas))
        weights = as_tensor(self.label_weights, areas.dtype, areas)
        mean = divide_no_nan(reduce_sum(areas * weights), reduce_sum(weights))
        return self._tw_as_result(mean)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments; ``thresholds`` only if they were passed."""
        config = super().get_config()
        if config["thresholds"] is None:
            del config["thresholds"]
        return config


def _one_of(argument, value, known):
    spellings = {each.lower(): each for each in known}
    if str(value).lower() not in spellings:
        raise ValueError(f"AUC: {argument} must be one of {known}, got {value!r}")
    return spellings[str(value).lower()]


def _with_ends(num_thresholds, thresholds):
    if thresholds is None:
        steps = whole("AUC", "num_thresholds", num_thresholds, 2, MAX_THRESHOLDS) - 1
        thresholds = [i / steps for i in range(1, steps)]
    return [-epsilon(), *thresholds, 1.0 + epsilon()]


def _coordinates(curve, tp, fp, tn, fn):
    """Return both coordinates of the curve at each threshold."""
    recall = divide_no_nan(tp, tp + fn)
    if curve == "ROC":
        return divide_no_nan(fp, fp + tn), recall
    if curve == "PR":
        return recall, divide_no_nan(tp, tp + fp)
    odds = divide_no_nan(tp + fn, tn + fp)
    none = equal(tp, 0.0)
    recall_gain = where(none, 0.0, 1.0 - odds * divide_no_nan(fn, tp))
    precision_gain = where(none, 1.0, 1.0 - odds * divide_no_nan(fp, tp))
    return maximum(recall_gain, 0.0), precision_gain


def _heights(method, y):
    if method == "interpolation":
        return (y[:-1] + y[1:]) / 2.0
    return (maximum if method == "majoring" else minimum)(y[:-1], y[1:])


def _interpolated_pr(tp, fp, fn):
    """Return the areas of the steps of the PR curve, interpolating true positives linearly."""
    positives = tp + fp
    steps = positives[:-1] - positives[1:]
    slope = divide_no_nan(tp[:-1] - tp[1:], maximum(steps, 0.0))
    intercept = tp[1:] - slope * positives[1:]
    both = logical_and(greater(positives[:-1], 0.0), greater(positives[1:], 0.0))
    ratio = where(both, divide_no_nan(positives[:-1], positives[1:]), 1.0)
    areas = slope * (tp[:-1] - tp[1:] + intercept * log(ratio))
    return divide_no_nan(areas, maximum(tp[1:] + fn[1:], 0.0))
