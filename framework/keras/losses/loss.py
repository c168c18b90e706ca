"""`Loss`: the losses of a batch, masked, weighted and reduced to one number.

Names, defaults and arithmetic are the same as in Keras. A mask on ``y_pred``
(``_keras_mask``, propagated by layers) and a mask that a loss sets on its result
exclude entries; a mean then divides by the number of remaining entries.

If several replicas take a step together, each returns its part of the loss of the whole
batch: the parts, and their gradients, add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from tapewright.core.interpreters import converted
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.names.naming import snake_case, unique_name
from tapewright.core.nest import flatten, map_structure
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import convert_to_tensor
from tapewright.layers.dtype_policies import compute_dtype
from tapewright.ops.array.conversion import cast
from tapewright.ops.collective import all_reduce, zero_if_idle
from tapewright.ops.math.comparison import logical_and
from tapewright.ops.math.elementwise import divide_no_nan
from tapewright.ops.math.reduction import reduce_mean, reduce_sum
from tapewright.serialization.configured import Configured, from_constructor
from tapewright.serialization.constructor_arguments import constructor_arguments
from tapewright.serialization.object_config import plain, resolve, serialize

from .shape_utils import aligned_weight, as_tensor, is_structure, predictions, same_rank

if TYPE_CHECKING:
    from tapewright.core.dtypes import DType
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = ["Loss", "LossFunctionWrapper", "Reduction"]

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none")


class Reduction:
    """Names of reductions for the argument ``reduction``; AUTO exists in Keras 2 only.

    Example:
        >>> keras.losses.Loss(reduction=keras.losses.Reduction.SUM).reduction
        'sum'
    """

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return all names."""
        return cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise an error unless ``key`` is the name of a reduction.

        Args:
            key: Name to check.

        Raises:
            ValueError: If ``key`` is not one of the names.
        """
        one_of("Reduction.validate", "key", key, cls.all())


class WithFunction:
    """Base of classes declared with a function, ``class Hinge(Loss, function=hinge)``.

    The function receives labels, predictions and, by name, the arguments of the
    constructor, which are kept as attributes.
    """

    _tw_function: Any = None
    _tw_function_arguments: Sequence[str] = ()

    def __init_subclass__(
        cls, function: Callable[..., Any] | None = None, **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        if function is not None:
            cls._tw_function = staticmethod(function)
            of_all = ("name", "reduction", "dtype")  # not those of the function
            names = [n for n in constructor_arguments(cls) if n not in of_all]
            cls._tw_function_arguments = names

    def _tw_function_kwargs(self):
        return {name: getattr(self, name) for name in self._tw_function_arguments}


class Loss(WithFunction, Configured):
    """Base class of losses: `call` computes them per example, ``__call__`` reduces them.

    A loss is called with ``y_true``, ``y_pred`` and optionally ``sample_weight``, which
    is multiplied by the losses. ``y_true`` and ``y_pred`` may be nests if `call`
    accepts them. A mask on ``y_pred`` excludes entries, also from the number by which a
    mean divides.

    A subclass defines `call`, or is declared with a function,
    ``class Hinge(Loss, function=hinge)``: the function receives the arguments of the
    constructor, which are kept as attributes, by name.

    Args:
        name: Name of the loss, by default the class name in snake case, made unique.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        dtype: Dtype or `keras.DTypePolicy` of the computation; `floatx` by default,
            regardless of the dtype of the predictions, as in Keras (the functions keep
            the dtype of ``y_pred``).

    Shapes:
        ``sample_weight`` ``[batch]``, or any shape that broadcasts to the losses. The
        result is a scalar; with "none" it has the shape of the losses, usually
        ``[batch]``.

    Raises:
        ValueError: If ``reduction`` is unknown.
        ShapeError: If the weights do not broadcast to the losses.

    Example:
        >>> class Largest(keras.losses.Loss):
        ...     def call(self, y_true, y_pred):
        ...         return tw.reduce_sum((y_true - y_pred) ** 4, -1)
        >>> loss = Largest(reduction="sum")
        >>> loss([[0, 1]], [[0.0, 3.0]], sample_weight=[0.5]).numpy()
        np.float32(8.0)
    """

    _tw_kind: str = "loss"
    # True if `call` takes y_true as it is, not in the dtype of y_pred.
    integer_labels: bool = False
    reduction: str | None = None

    def __init_subclass__(
        cls, function: Callable[..., Any] | None = None, **options: Any
    ) -> None:
        super().__init_subclass__(function=function, **options)
        if function is not None:
            cls.integer_labels = getattr(function, "integer_labels", False)

    @property
    def _tw_integer_labels(self):
        return type(self).integer_labels is True

    def __init__(
        self,
        name: str | None = None,
        reduction: str | None = "sum_over_batch_size",
        dtype: DTypeLike | None = None,
    ):
        reduction = "none" if reduction is None else reduction
        one_of(self, "reduction", reduction, REDUCTIONS)
        self.name: str = name or unique_name(snake_case(type(self).__name__))
        self.reduction = reduction
        self._tw_dtype_argument = dtype
        self.dtype: DType = compute_dtype(dtype)

    @from_constructor
    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments; the dtype only if it was passed."""
        config = super().get_config()
        if self._tw_dtype_argument is None:  # Keras' configs never have it
            config.pop("dtype", None)
        return config

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        """Compute the losses, one or more per example.

        Args:
            y_true: Labels.
            y_pred: Predictions.
        """
        if self._tw_function is None:
            raise NotImplementedError(
                f"{type(self).__name__} must define call(y_true, y_pred)"
            )
        return self._tw_function(y_true, y_pred, **self._tw_function_kwargs())

    def __call__(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> Tensor:
        if self.reduction is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )
        mask = getattr(y_pred, "_keras_mask", None)
        y_pred = predictions(y_pred, self.dtype)
        if not self._tw_integer_labels:
            y_true = _labels(y_true, y_pred)
        losses = converted(self.call)(y_true, y_pred)
        if losses is None:
            raise TypeError(
                f"loss '{self.name}' returned None; is a return statement missing?"
            )
        losses = convert_to_tensor(losses)
        counted = getattr(losses, "_keras_mask", None)
        if counted is not None and counted is not mask:
            mask = counted if mask is None else logical_and(cast(mask, bool), counted)
        return reduced(losses, sample_weight, mask, self.reduction, self.name)


def _labels(y_true, y_pred):
    """Return ``y_true``, or each of its leaves, in the dtype of the predictions."""
    first = flatten(y_pred)[0] if is_structure(y_pred) else y_pred
    if not is_structure(y_true):
        return as_tensor(y_true, first.dtype, first)
    return map_structure(lambda leaf: as_tensor(leaf, first.dtype, first), y_true)


def reduced(
    losses, sample_weight=None, mask=None, reduction="sum_over_batch_size", who="loss"
):
    """Multiply losses by weights, exclude masked entries, and reduce them.

    With a mask, means divide by the number of entries for which it is true; the loss of
    a batch without any is 0. In a replica context a mean is this replica's part of the
    mean over the whole batch; the losses of an idle replica are 0.
    """
    losses = zero_if_idle(losses)  # its gradients are as many as in the other replicas
    if sample_weight is None and mask is None:
        if reduction == "none":
            return losses
        if reduction == "sum" or not losses.array.size:
            return reduce_sum(losses)
        return scale_by_share(reduce_mean(losses))
    losses, weight, mask = _weights(losses, sample_weight, mask, who)
    losses = losses * weight
    if reduction == "none":
        return losses
    if not losses.array.shape:  # one loss is its own mean
        return losses if reduction == "sum" else scale_by_share(losses)
    total = reduce_sum(losses)
    if reduction == "sum" or not losses.array.size:
        return total
    if reduction == "mean_with_sample_weight":
        return divide_no_nan(total, sum_over_replicas(reduce_sum(weight)))
    if mask is None:
        return scale_by_share(total * (1.0 / losses.array.size))
    valid = reduce_sum(mask)
    if mask.array.shape != losses.array.shape:  # one entry counts for several losses
        valid = valid * (losses.array.size / mask.array.size)
    return divide_no_nan(total, sum_over_replicas(valid))


def scale_by_share(mean):
    """Return this replica's term in the mean over the whole batch.

    It is the mean over the replica's examples, times its share of them.
    """
    context = replica_context()
    if context is None:
        return mean
    share = convert_to_tensor(context.share, dtype_hint=mean.dtype)
    return mean * cast(share, mean.dtype)


def sum_over_replicas(x):
    """Return the sum of ``x`` over the replicas; ``x`` itself outside a replica context."""
    return x if replica_context() is None else all_reduce(zero_if_idle(x))


def _weights(losses, weight, mask, who):
    """Return losses, weights multiplied by the mask, and mask, in matching shapes."""
    if weight is not None:
        losses, weight = aligned_weight(
            who, "sample_weight", as_tensor(weight, losses.dtype, losses), losses
        )
    if mask is None:
        return losses, weight, None
    losses, mask = aligned_weight(who, "mask", cast(mask, losses.dtype), losses)
    if weight is None:
        return losses, mask, mask
    # The rank of the losses may be less now.
    losses, weight = aligned_weight(who, "sample_weight", weight, losses)
    return losses, weight * mask, mask


class LossFunctionWrapper(Loss):
    """Loss from a function ``fn(y_true, y_pred, **kwargs)``, reduced.

    Args:
        fn: Function that returns the losses, one per example.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.
        **kwargs: Keyword arguments of ``fn``.

    Shapes:
        ``y_true`` and ``y_pred`` ``[...]``, as accepted by ``fn``.

    Raises:
        TypeError: If ``fn`` is not callable.

    Example:
        >>> distance = lambda y_true, y_pred: abs(y_true - y_pred)
        >>> loss = keras.losses.LossFunctionWrapper(distance, "sum")
        >>> loss([1.0, 2.0], [3.0, 5.0]).numpy()
        np.float32(5.0)
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ):
        if not callable(fn):
            raise TypeError(
                f"LossFunctionWrapper: fn must be a function of y_true and y_pred, got "
                f"{fn!r}"
            )
        super().__init__(name, reduction, dtype)
        self.fn = fn
        self._tw_arguments = kwargs

    @property
    def _tw_integer_labels(self):
        return getattr(self.fn, "integer_labels", False)

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        if self._tw_integer_labels or is_structure(y_true) or is_structure(y_pred):
            return converted(self.fn)(y_true, y_pred, **self._tw_arguments)
        return converted(self.fn)(*same_rank(y_true, y_pred), **self._tw_arguments)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments, with ``fn`` as its name.

        Raises:
            ValueError: If ``fn`` is a lambda.
        """
        config = {
            "name": self.name,
            "reduction": self.reduction,
            "fn": serialize(self.fn),
        }
        if self._tw_dtype_argument is not None:
            config["dtype"] = self.dtype.name
        return {**config, **plain(self._tw_arguments)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Create a loss from its config.

        Args:
            config: Result of `get_config`.
        """
        if "fn" not in config:
            return cls(**config)
        return cls(**{**config, "fn": resolve("loss", config["fn"])})
