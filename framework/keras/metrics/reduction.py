"""Sums and means over all batches, and the mean of any function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from tapewright.core.interpreters import converted
from tapewright.core.state.replica_context import replica_context
from tapewright.ops.math.elementwise import divide_no_nan
from tapewright.ops.math.reduction import reduce_mean, reduce_sum
from tapewright.serialization.object_config import (
    deserialize,
    function_of,
    plain,
    serialize,
)
from tapewright.serialization.registry import registered_name

from ..losses.loss import WithFunction, scale_by_share
from ..losses.shape_utils import as_tensor, broadcast_weight, same_rank, trailing_axes
from .metric import Metric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike
    from tapewright.core.variable import Variable

__all__ = ["Mean", "MeanMetricWrapper", "Sum"]


class Sum(Metric):
    """Weighted sum of all values.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        Values ``[...]``; weights ``[batch]``, or any shape that broadcasts to the first
        axes.

    Example:
        >>> metric = keras.metrics.Sum()
        >>> metric.update_state([1.0, 3.0], sample_weight=[1.0, 0.5])
        >>> metric.result().numpy()
        np.float32(2.5)
    """

    def __init__(self, name: str | None = "sum", dtype: DTypeLike | None = None):
        super().__init__(dtype, name)
        self.total: Variable = self._tw_add_sum("total", (), self._dtype)

    def update_state(
        self, values: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add values to the sum.

        Args:
            values: Numbers of any shape.
            sample_weight: Weights, which broadcast to the first axes of ``values``, or
                None.
        """
        values, _ = _weighted(self, values, sample_weight, reduce_sum)
        self.total.assign_add(reduce_sum(values))

    def result(self) -> Tensor:
        return self._tw_as_result(self.total.read())


class Mean(Metric):
    """Weighted mean of all values, ``sum(weight * value) / sum(weight)``.

    It is 0 before the first value. Axes after the first (or after the axes of the
    weights) are averaged first, so that each sample of a batch counts once.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        Values ``[batch, ...]``; weights ``[batch]``, or any shape that broadcasts to
        the first axes.

    Raises:
        ShapeError: If the weights do not broadcast.

    Example:
        >>> metric = keras.metrics.Mean()
        >>> metric.update_state([1.0, 3.0])
        >>> metric([[5.0, 7.0]]).numpy()  # one sample
        np.float32(3.3333333)
    """

    def __init__(self, name: str | None = "mean", dtype: DTypeLike | None = None):
        super().__init__(dtype, name)
        self.total: Variable = self._tw_add_sum("total", (), self._dtype)
        self.count: Variable = self._tw_add_sum("count", (), self._dtype)

    def update_state(
        self, values: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add values to the mean.

        Args:
            values: Numbers of any shape.
            sample_weight: Weights, which broadcast to the first axes of ``values``, or
                None.
        """
        values, weight = _weighted(self, values, sample_weight, reduce_mean)
        total = _sum_of_samples(values)
        if weight is not None:
            count = _sum_of_samples(weight)
        else:
            count = values.array.shape[0] if values.array.ndim else 1
        self.total.assign_add(total)
        self.count.assign_add(count)

    def result(self) -> Tensor:
        return self._tw_as_result(divide_no_nan(self.total, self.count))


class MeanMetricWrapper(WithFunction, Mean):
    """Mean of a function, ``fn(y_true, y_pred, **kwargs)``, as a metric.

    A mask of ``y_pred`` is used as a weight.

    Args:
        fn: Function of labels and predictions that returns one value per sample.
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        **kwargs: Keyword arguments of ``fn``.

    Shapes:
        ``y_true`` and ``y_pred`` as accepted by ``fn``; weights ``[batch]``.

    Example:
        >>> mse = keras.losses.mean_squared_error
        >>> metric = keras.metrics.MeanMetricWrapper(mse, name="mse")
        >>> metric([[0.0], [2.0]], [[1.0], [2.0]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ):
        if not callable(fn):
            raise TypeError(
                f"MeanMetricWrapper: fn must be a function of y_true and y_pred, got "
                f"{fn!r}"
            )
        super().__init__(name, dtype)
        self.fn = fn
        self._fn_kwargs = kwargs

    @property
    def _direction(self):
        losses = (registered_name("loss", f) for f in (self.fn, type(self.fn)))
        return "down" if any(losses) else None

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Add the values of the function for one batch.

        Args:
            y_true: Labels.
            y_pred: Predictions.
            sample_weight: Weights of the examples, or None.
        """
        mask = getattr(y_pred, "_keras_mask", None)
        arguments = self._fn_kwargs | self._tw_function_kwargs()
        values = converted(self.fn)(y_true, y_pred, **arguments)
        if mask is not None:
            sample_weight = _masked(sample_weight, mask, self._dtype)
        if replica_context() is not None and not as_tensor(values).array.ndim:
            # One value of the batch, of which this replica has a part.
            weight = 1.0 if sample_weight is None else sample_weight
            sample_weight = scale_by_share(as_tensor(weight, self._dtype))
        super().update_state(values, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments; functions by their names.

        Raises:
            ValueError: If ``fn`` is a lambda.
        """
        config = super().get_config()
        if "fn" in config:  # else the subclass has a function of its own
            config |= {key: plain(value) for key, value in self._fn_kwargs.items()}
            config["fn"] = serialize(self.fn)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Create a metric from its config; functions are resolved by name.

        Args:
            config: Result of `get_config`.
        """
        config = dict(config)
        fn = config.get("fn")
        if isinstance(fn, dict) and not isinstance(fn.get("config"), str):
            config["fn"] = deserialize("loss", fn)
        elif fn is not None:
            name = fn["config"] if isinstance(fn, dict) else fn
            config["fn"] = function_of("metric", name)
        return cls(**config)


class _MeanMetric(MeanMetricWrapper):
    """Base of the means of a function, ``class Hinge(_MeanMetric, function=hinge)``.

    More is better, unless the function is a loss.
    """

    def __init_subclass__(cls, function: Any = None, **options: Any) -> None:
        super().__init_subclass__(function=function, **options)
        if function is not None:
            cls._direction = "down" if registered_name("loss", function) else "up"

    def __init__(self, name: str | None, dtype: DTypeLike | None):
        super().__init__(self._tw_function, name, dtype)


def _weighted(metric, values, sample_weight, reduce):
    """Return values times weights, and the weights in the same shape, or None."""
    dtype, mask = metric._dtype, getattr(values, "_keras_mask", None)
    values = as_tensor(values, dtype)
    if sample_weight is None:
        return values, None
    if mask is not None:
        sample_weight = _masked(sample_weight, mask, dtype)
    weight = as_tensor(sample_weight, dtype, values)
    values, weight = same_rank(values, weight)
    rank = weight.array.ndim
    if values.array.ndim > rank:
        values = reduce(values, list(range(rank, values.array.ndim)))
    weight = broadcast_weight(type(metric).__name__, weight, values)
    return values * weight, weight


def _sum_of_samples(values):
    """Return the sum over the first axis of the means over the other axes."""
    rank = values.array.ndim
    if rank > 1:
        values = reduce_mean(values, list(range(1, rank)))
    return reduce_sum(values) if rank else values


def _masked(sample_weight, mask, dtype):
    """Return ``sample_weight`` times the mask."""
    mask = as_tensor(mask, dtype)
    if sample_weight is None:
        return mask
    mask, weight = same_rank(mask, as_tensor(sample_weight, dtype, mask))
    rank = max(mask.array.ndim, weight.array.ndim)
    return trailing_axes(mask, rank) * trailing_axes(weight, rank)
