"""Normalization layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.communication.job import communicator
from tapewright.core.dtypes import float32, is_half
from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import not_negative, share, whole
from tapewright.core.rules import normalize_axis
from tapewright.core.settings.floatx import epsilon as small_number
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast, stop_gradient
from tapewright.ops.array.creation import ones_like, zeros_like
from tapewright.ops.array.joining import stack, unstack
from tapewright.ops.array.shape import expand_dims, reshape, size
from tapewright.ops.collective import all_reduce, zero_if_idle
from tapewright.ops.math.comparison import logical_and, where
from tapewright.ops.math.elementwise import maximum, minimum, rsqrt, sqrt, square
from tapewright.ops.math.reduction import reduce_sum, reduce_variance
from tapewright.ops.nn.activation import relu
from tapewright.ops.nn.normalization import (
    batch_normalization,
    fused_batch_norm,
    group_normalization,
    l2_normalize,
    layer_normalization,
    rms_normalization,
)

from .base.layer import InputSpec, Layer, ShapePreserving

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, Shape
    from tapewright.core.variable import Variable

    from .base.layer_types import (
        ConstraintLike,
        InitializerLike,
        RegularizedLayerOptions,
        RegularizerLike,
    )

__all__ = [
    "BatchNormalization",
    "GroupNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "UnitNormalization",
]


class _ScaleAndShift(ShapePreserving, Layer):
    """Base class of layers with ``gamma`` if ``scale`` and ``beta`` if ``center``."""

    beta_initializer: Any
    gamma_initializer: Any
    beta_regularizer: Any
    gamma_regularizer: Any
    beta_constraint: Any
    gamma_constraint: Any

    supports_masking = True
    _tw_shape_tells = True
    gamma: Variable | None = None
    beta: Variable | None = None

    def _tw_add_gamma_and_beta(self, shape, scale, center):
        if scale:
            self.gamma = self._tw_new_weight("gamma", shape, autocast=False)
        if center:
            self.beta = self._tw_new_weight("beta", shape, autocast=False)

    # Statistics of half precision are in single, and so is all that follows from them.

    def _tw_in_single(self, inputs):
        """Cast inputs to the compute dtype, and half precision to float32."""
        own = self._tw_compute_dtype
        return cast(inputs, float32) if is_half(own) else self._tw_as_own_dtype(inputs)

    def _tw_like(self, inputs, *weights):
        """Return the weights in the dtype of the inputs."""
        if inputs.dtype is self._tw_variable_dtype:
            return weights
        return [w if w is None else cast(w, inputs.dtype) for w in weights]


class BatchNormalization(_ScaleAndShift):
    """Batch normalization: normalize each channel over the batch, then scale and shift.

        outputs = (inputs - mean) / sqrt(variance + epsilon) * gamma + beta

    With ``training=True``, ``mean`` and the (biased) ``variance`` are computed from the
    batch, and the moving statistics are updated:
    ``moving <- moving * momentum + new * (1 - momentum)``. In inference, and while
    ``trainable`` is False, the layer uses the moving statistics. Derivatives are exact
    at every order, also through mean and variance.

    With ``renorm``, the training outputs become ``outputs * r + d`` before ``gamma``
    and ``beta`` are applied, which is nearly the normalization by the moving
    statistics. ``r = stddev / renorm_stddev`` and
    ``d = (mean - renorm_mean) / renorm_stddev`` are treated as constants in gradients.

    The call accepts a ``mask`` with all axes of the inputs but the last: entries where
    it is False are excluded from mean and variance.

    Args:
        axis: Axis of the channels.
        momentum: Fraction of the moving statistics that an update keeps, from 0 to 1.
        epsilon: Small number added to the variance, not negative.
        center: If False, the layer has no ``beta``.
        scale: If False, the layer has no ``gamma``.
        beta_initializer: Initializer of ``beta``: an object or its name.
        gamma_initializer: Initializer of ``gamma``: an object or its name.
        moving_mean_initializer: Initializer of ``moving_mean``: an object or its name.
        moving_variance_initializer: Initializer of ``moving_variance``: an object or
            its name.
        beta_regularizer: Regularizer of ``beta``, or None.
        gamma_regularizer: Regularizer of ``gamma``, or None.
        beta_constraint: Constraint on ``beta``, or None.
        gamma_constraint: Constraint on ``gamma``, or None.
        renorm: If True, use batch renormalization.
        renorm_clipping: Dict of limits: "rmin" and "rmax" of ``r``, "dmax" of the
            magnitude of ``d``.
        renorm_momentum: Fraction of ``renorm_mean`` and ``renorm_stddev`` that an
            update keeps.
        synchronized: If True, compute the statistics over the batches of all processes,
            each of which must make the call. Otherwise, the replicas of a strategy
            average their moving statistics.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ..., channels]``; weights ``gamma``, ``beta``,
        ``moving_mean`` and ``moving_variance`` ``[channels]``, the last two not
        trainable; with ``renorm`` also ``moving_stddev``, ``renorm_mean`` and
        ``renorm_stddev``.

    Raises:
        ValueError: If ``momentum`` is not between 0 and 1, ``epsilon`` is negative, or
            ``renorm_clipping`` has other keys or contradictory limits.
        TypeError: If ``axis`` is not an integer.

    References:
        Ioffe & Szegedy, "Batch normalization" (2015).
        Ioffe, "Batch renormalization" (2017).

    Example:
        >>> layer = keras.layers.BatchNormalization(momentum=0.9)
        >>> layer([[1.0], [3.0]], training=True).numpy().round(2)
        array([[-1.],
               [ 1.]], dtype=float32)
        >>> layer.moving_mean.numpy()
        array([0.2], dtype=float32)
    """

    moving_mean_initializer: Any
    moving_variance_initializer: Any
    input_spec: InputSpec

    _tw_omit_defaults: dict[str, Any] = {
        **Layer._tw_omit_defaults,
        "renorm": False,
        "renorm_clipping": None,
        "renorm_momentum": 0.99,
    }

    def __init__(
        self,
        axis: Axes = -1,
        momentum: float = 0.99,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = "zeros",
        gamma_initializer: InitializerLike = "ones",
        moving_mean_initializer: InitializerLike = "zeros",
        moving_variance_initializer: InitializerLike = "ones",
        beta_regularizer: RegularizerLike = None,
        gamma_regularizer: RegularizerLike = None,
        beta_constraint: ConstraintLike = None,
        gamma_constraint: ConstraintLike = None,
        renorm: bool = False,
        renorm_clipping: dict[str, float] | None = None,
        renorm_momentum: float = 0.99,
        synchronized: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        if not isinstance(axis, int):
            raise TypeError(f"BatchNormalization: axis must be an int, got {axis!r}")
        self.axis: Any = axis
        self.renorm: bool = bool(renorm)
        self.renorm_clipping: Any = _limits(renorm_clipping) if renorm else None
        self.renorm_momentum: float = share(self, "renorm_momentum", renorm_momentum)
        self.synchronized = synchronized
        self.momentum: float = share(self, "momentum", momentum)
        self.epsilon: float = not_negative(self, "epsilon", epsilon)
        self._tw_keep_weight_arguments(locals())
        self.center = center
        self.scale = scale

    def build(self, input_shape: Shape) -> None:
        rank = len(input_shape)
        (axis,) = normalize_axis(self._tw_title, self.axis, rank)
        shape, self.input_spec = _sizes(self, input_shape)
        self._tw_add_gamma_and_beta(shape, self.scale, self.center)
        mean, variance = self.moving_mean_initializer, self.moving_variance_initializer
        self.moving_mean: Variable = self._tw_add_moment("moving_mean", shape, mean)
        self.moving_variance: Variable = self._tw_add_moment(
            "moving_variance", shape, variance
        )
        if self.renorm:

            def stddev(shape, dtype=None):
                return sqrt(variance(shape, dtype=dtype))

            self.moving_stddev = self._tw_add_moment("moving_stddev", shape, stddev)
            self.renorm_mean = self._tw_add_moment("renorm_mean", shape, mean)
            self.renorm_stddev = self._tw_add_moment("renorm_stddev", shape, stddev)
        self._tw_reduced = tuple([i for i in range(rank) if i != axis])
        # the shape in which a channel's weights meet the inputs
        self._tw_aligned = (
            None if axis == rank - 1 else (-1,) + (1,) * (rank - 1 - axis)
        )

    def _tw_add_moment(self, name, shape, initializer):
        return self.add_weight(
            shape, initializer, name=name, trainable=False, autocast=False
        )

    def call(
        self, inputs: Tensor, training: bool | None = None, mask: Any = None
    ) -> Tensor:
        inputs = self._tw_in_single(inputs)
        if not (training and self.trainable):
            outputs = self._tw_by_moments(
                inputs, self.moving_mean, self.moving_variance
            )
        elif self.synchronized and communicator().size > 1:
            outputs = self._tw_by_all(inputs, mask)
        elif mask is None and not self.renorm:
            outputs = self._tw_by_batch(inputs)
        else:
            outputs = self._tw_by_some(inputs, mask)
        return self._tw_as_own_dtype(outputs)

    def _tw_by_moments(self, inputs, mean, variance, of_batch=False):
        weights = self._tw_like(inputs, mean, variance, self.beta, self.gamma)
        if of_batch and self.renorm:
            weights = self._tw_renormalizing(*weights)
        if self._tw_aligned:
            weights = [
                w if w is None else reshape(w, self._tw_aligned) for w in weights
            ]
        return batch_normalization(inputs, *weights, self.epsilon)

    def _tw_by_batch(self, inputs):
        gamma = self.gamma if self.scale else ones_like(self.moving_mean)
        beta = self.beta if self.center else zeros_like(self.moving_mean)
        weights = self._tw_like(inputs, gamma, beta)
        outputs, mean, variance = fused_batch_norm(
            inputs, *weights, self._tw_reduced, self.epsilon
        )
        self._tw_follow(mean, variance)
        return outputs

    def _tw_by_some(self, inputs, mask):
        """Normalize by the moments of the unmasked entries."""
        kept = None if mask is None else self._tw_kept(inputs, mask)
        mean, variance, count = self._moments(inputs, kept)
        outputs = self._tw_by_moments(inputs, mean, variance, of_batch=True)
        self._tw_follow(mean, variance, None if mask is None else count)
        return outputs

    def _tw_by_all(self, inputs, mask):
        """Normalize by the moments of the batches of all processes."""

        def sum_over_processes(x):
            return all_reduce(zero_if_idle(x))

        kept = None if mask is None else self._tw_kept(inputs, mask)
        mean, variance, _ = self._moments(inputs, kept, sum_over_processes)
        outputs = self._tw_by_moments(inputs, mean, variance, of_batch=True)
        self._tw_move(mean, variance)
        return outputs

    def _tw_renormalizing(self, mean, variance, beta, gamma):
        """Return the moments of a batch, and a renormalizing offset and scale."""
        known_mean, known = self._tw_like(mean, self.renorm_mean, self.renorm_stddev)
        known = maximum(known, self.epsilon**0.5)  # as in Keras: it may begin at 0
        r = sqrt(variance + self.epsilon) / known
        d = (mean - known_mean) / known
        limits = self.renorm_clipping
        if limits.get("rmin") is not None:
            r = maximum(r, limits["rmin"])
        if limits.get("rmax") is not None:
            r = minimum(r, limits["rmax"])
        if limits.get("dmax") is not None:
            d = maximum(minimum(d, limits["dmax"]), -limits["dmax"])
        r, d = stop_gradient(r), stop_gradient(d)
        scale, offset = (r, d) if gamma is None else (r * gamma, d * gamma)
        return [mean, variance, offset if beta is None else offset + beta, scale]

    def _moments(self, inputs, kept, reduce=lambda sums: sums):
        """Return mean and variance of the unmasked entries, and their number.

        ``reduce`` adds up sums over all processes.
        """

        def sums(x):
            x = x if kept is None else where(kept, x, cast(0, x.dtype))
            return reshape(reduce_sum(x, self._tw_reduced), (-1,))

        total = sums(inputs)
        if kept is None:
            count = size(inputs, inputs.dtype) / total.array.size + zeros_like(total)
        else:
            count = sums(ones_like(inputs))
        total, count = unstack(reduce(stack([total, count])))
        if kept is not None:
            # As in Keras: it may be that nothing is kept.
            count = count + small_number()
        mean = total / count
        rest = inputs - (reshape(mean, self._tw_aligned) if self._tw_aligned else mean)
        rest = rest if kept is None else where(kept, rest, cast(0, rest.dtype))
        squares = reshape(reduce_sum(square(rest), self._tw_reduced), (-1,))
        return mean, reduce(squares) / count, count

    def _tw_kept(self, inputs, mask):
        """Return which entries of the inputs count."""
        if len(mask.shape) != len(inputs.shape) - 1:
            raise ShapeError(
                self._tw_title,
                "mask must have all axes of the inputs but the last",
                inputs=inputs,
                mask=mask,
            )
        return logical_and(
            expand_dims(cast(mask, "bool"), -1), ones_like(inputs, "bool")
        )

    def _tw_follow(self, mean, variance, count=None):
        """Update the moving moments by the moments of the batch, or of its parts.

        The moments of the replicas' parts are averaged, weighted by ``count``, by
        default their fraction of the examples.
        """
        context = replica_context()
        if context is not None:
            if count is None:
                count = convert_to_tensor(context.share, dtype_hint=mean.dtype)
            weight = zero_if_idle(cast(count, mean.dtype) + zeros_like(mean))
            terms = stop_gradient(stack([mean * weight, variance * weight, weight]))
            mean, variance, weight = unstack(all_reduce(terms))
            mean, variance = mean / weight, variance / weight
        self._tw_move(mean, variance)

    def _tw_move(self, mean, variance):
        if not self.renorm:
            self._tw_move_one(self.moving_mean, mean, self.momentum)
            self._tw_move_one(self.moving_variance, variance, self.momentum)
            return
        stddev = sqrt(variance + self.epsilon)
        self._tw_move_one(self.renorm_mean, mean, self.renorm_momentum)
        self._tw_move_one(self.renorm_stddev, stddev, self.renorm_momentum)
        self._tw_move_one(self.moving_mean, mean, self.momentum)
        stddev = self._tw_move_one(self.moving_stddev, stddev, self.momentum)
        moved = relu(stddev * stddev - self.epsilon)  # what rounding made negative
        self.moving_variance.assign(cast(moved, self.moving_variance.dtype))

    def _tw_move_one(self, moving, new, momentum):
        # The tape keeps nothing of the update.
        new, (old,) = stop_gradient(new), self._tw_like(new, moving)
        moved = old * momentum + new * (1.0 - momentum)
        moving.assign(cast(moved, moving.dtype))
        return moved


def _limits(clipping):
    """Check the limits of the corrections, and return them as a dict."""
    limits, known = dict(clipping or {}), ("rmin", "rmax", "dmax")
    rmin, rmax, dmax = [limits.get(key) for key in known]
    if set(limits) - set(known):
        problem = f"must only have the keys {', '.join(known)}"
    elif rmin is not None and rmax is not None and rmax < rmin:
        problem = "must have rmin <= rmax"
    elif dmax is not None and dmax < 0:
        problem = "must have dmax >= 0"
    else:
        return limits
    raise ValueError(f"BatchNormalization: renorm_clipping {problem}, got {limits}")


class LayerNormalization(_ScaleAndShift):
    """Layer normalization: normalize each example over ``axis``, then scale and shift.

        outputs = (inputs - mean) / sqrt(variance + epsilon) * gamma + beta

    Derivatives are exact at every order.

    Args:
        axis: Axis or axes over which mean and variance are computed.
        epsilon: Small number added to the variance, not negative.
        center: If False, the layer has no ``beta``.
        scale: If False, the layer has no ``gamma``.
        beta_initializer: Initializer of ``beta``: an object or its name.
        gamma_initializer: Initializer of ``gamma``: an object or its name.
        beta_regularizer: Regularizer of ``beta``, or None.
        gamma_regularizer: Regularizer of ``gamma``, or None.
        beta_constraint: Constraint on ``beta``, or None.
        gamma_constraint: Constraint on ``gamma``, or None.
        rms_scaling: If True, compute ``inputs / sqrt(variance + epsilon) * gamma``
            instead, as Keras does for old models; `RMSNormalization` divides by the
            root mean square.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ...]``; weights ``gamma`` and ``beta`` with the
        sizes along ``axis``, in the order of the inputs.

    Raises:
        ValueError: If ``epsilon`` is negative.
        TypeError: If ``axis`` is neither an integer nor a list of integers.

    References:
        Ba et al., "Layer normalization" (2016).

    Example:
        >>> keras.layers.LayerNormalization()([[1.0, 3.0]]).numpy().round(2)
        array([[-1.,  1.]], dtype=float32)
    """

    autocast = False  # inputs are in single precision at least
    input_spec: InputSpec

    def __init__(
        self,
        axis: Axes = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = "zeros",
        gamma_initializer: InitializerLike = "ones",
        beta_regularizer: RegularizerLike = None,
        gamma_regularizer: RegularizerLike = None,
        beta_constraint: ConstraintLike = None,
        gamma_constraint: ConstraintLike = None,
        rms_scaling: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.axis: Any = _axes("LayerNormalization", axis)
        self.epsilon: float = not_negative(self, "epsilon", epsilon)
        self.rms_scaling = rms_scaling
        self._tw_keep_weight_arguments(locals())
        self.center = center
        self.scale = scale

    def build(self, input_shape: Shape) -> None:
        shape, self.input_spec = _sizes(self, input_shape, any_rank=True)
        rms = self.rms_scaling
        self._tw_add_gamma_and_beta(shape, self.scale or rms, self.center and not rms)

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._tw_in_single(inputs)
        gamma, beta = self._tw_like(inputs, self.gamma, self.beta)
        if self.rms_scaling:
            outputs = self._tw_divided(inputs, gamma)
        else:
            outputs = layer_normalization(inputs, gamma, beta, self.axis, self.epsilon)
        return self._tw_as_own_dtype(outputs)

    def _tw_divided(self, inputs, gamma):
        variance = reduce_variance(inputs, self.axis, keepdims=True)
        axes = normalize_axis(self._tw_title, self.axis, len(inputs.shape))
        dims = [n if i in axes else 1 for i, n in enumerate(inputs.shape)]
        return inputs * rsqrt(variance + self.epsilon) * reshape(gamma, dims)


class GroupNormalization(_ScaleAndShift):
    """Group normalization: normalize groups of channels of each example.

    Each group is normalized to mean 0 and variance 1, then scaled and shifted:

        outputs = (inputs - mean) / sqrt(variance + epsilon) * gamma + beta

    Derivatives are exact at every order.

    Args:
        groups: Number of groups, which must divide the number of channels. 1 is layer
            normalization over all axes; -1, one group per channel, is instance
            normalization.
        axis: Axis of the channels.
        epsilon: Small number added to the variance, not negative.
        center: If False, the layer has no ``beta``.
        scale: If False, the layer has no ``gamma``.
        beta_initializer: Initializer of ``beta``: an object or its name.
        gamma_initializer: Initializer of ``gamma``: an object or its name.
        beta_regularizer: Regularizer of ``beta``, or None.
        gamma_regularizer: Regularizer of ``gamma``, or None.
        beta_constraint: Constraint on ``beta``, or None.
        gamma_constraint: Constraint on ``gamma``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ..., channels]``; weights ``gamma`` and ``beta``
        ``[channels]``.

    Raises:
        ValueError: If ``groups`` does not divide the number of channels.

    References:
        Wu & He, "Group normalization" (2018).

    Example:
        >>> layer = keras.layers.GroupNormalization(groups=2)
        >>> layer([[1.0, 3.0, 10.0, 30.0]]).numpy().round(2)
        array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    autocast = False  # inputs are in single precision at least
    input_spec: InputSpec

    def __init__(
        self,
        groups: int = 32,
        axis: Axes = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = "zeros",
        gamma_initializer: InitializerLike = "ones",
        beta_regularizer: RegularizerLike = None,
        gamma_regularizer: RegularizerLike = None,
        beta_constraint: ConstraintLike = None,
        gamma_constraint: ConstraintLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        if groups != -1:
            self.groups: int = whole(self, "groups", groups)
        else:  # each channel its own
            self.groups = -1
        self.axis: Any = axis
        self.epsilon: float = not_negative(self, "epsilon", epsilon)
        self._tw_keep_weight_arguments(locals())
        self.center = center
        self.scale = scale

    def build(self, input_shape: Shape) -> None:
        shape, self.input_spec = _sizes(self, input_shape)
        if shape[0] is None:
            raise ValueError(
                f"{self._tw_title}: the number of channels must be known, got inputs of "
                f"shape {tuple(input_shape)} with axis {self.axis}"
            )
        groups = shape[0] if self.groups == -1 else self.groups
        if groups < 1 or shape[0] % groups:
            raise ValueError(
                f"{self._tw_title}: groups must divide the number of channels, "
                f"{shape[0]}, got {self.groups}"
            )
        self._tw_add_gamma_and_beta(shape, self.scale, self.center)

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._tw_in_single(inputs)
        weights = self._tw_like(inputs, self.gamma, self.beta)
        outputs = group_normalization(
            inputs, self.groups, *weights, self.axis, self.epsilon
        )
        return self._tw_as_own_dtype(outputs)


class RMSNormalization(ShapePreserving, Layer):
    """RMS normalization: divide each example by its root mean square, then scale.

        outputs = inputs / sqrt(mean(inputs ** 2) + epsilon) * scale

    Args:
        axis: Axis or axes over which the mean is computed.
        epsilon: Small number added to the mean square, not negative.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ...]``; weight ``scale`` with the sizes along
        ``axis``, in the order of the inputs.

    Raises:
        ValueError: If ``epsilon`` is negative.
        TypeError: If ``axis`` is neither an integer nor a list of integers.

    References:
        Zhang & Sennrich, "Root mean square layer normalization" (2019).

    Example:
        >>> keras.layers.RMSNormalization()([[1.0, 7.0]]).numpy().round(3)
        array([[0.2, 1.4]], dtype=float32)
    """

    input_spec: InputSpec

    def __init__(
        self,
        axis: Axes = -1,
        epsilon: float = 1e-6,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.axis: Any = _axes("RMSNormalization", axis)
        self.epsilon: float = not_negative(self, "epsilon", epsilon)

    def build(self, input_shape: Shape) -> None:
        shape, self.input_spec = _sizes(self, input_shape, any_rank=True)
        self.scale: Variable = self.add_weight(
            name="scale", shape=shape, initializer="ones"
        )

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._tw_as_own_dtype(inputs)
        return rms_normalization(inputs, self.scale, self.axis, self.epsilon)


class UnitNormalization(ShapePreserving, Layer):
    """L2 normalization: scale each example to Euclidean norm 1 over ``axis``.

    Args:
        axis: Axis or axes over which the norm is computed.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ...]``.

    Raises:
        TypeError: If ``axis`` is neither an integer nor a list of integers.

    Example:
        >>> keras.layers.UnitNormalization()([[3.0, 4.0]]).numpy()
        array([[0.6, 0.8]], dtype=float32)
    """

    supports_masking = True

    def __init__(self, axis: Axes = -1, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.axis: Any = _axes("UnitNormalization", axis)

    def call(self, inputs: Tensor) -> Tensor:
        return l2_normalize(self._tw_as_own_dtype(inputs), self.axis, epsilon=1e-24)


def _axes(who, axis):
    if isinstance(axis, int):
        return axis
    if isinstance(axis, list | tuple) and all(isinstance(a, int) for a in axis):
        return list(axis)
    raise TypeError(f"{who}: axis must be an int or a list of ints, got {axis!r}")


def _sizes(
    layer: Any, input_shape: Shape, any_rank: bool = False
) -> tuple[Shape, InputSpec]:
    """Return the sizes of a layer's axes, in order, and the spec that checks inputs.

    With ``any_rank`` the spec only fixes the sizes, on the axes as they were given.
    """
    rank = len(input_shape)
    axes = sorted(normalize_axis(layer._tw_title, layer.axis, rank))
    sizes = tuple([input_shape[a] for a in axes])
    if any_rank:
        given = [layer.axis] if isinstance(layer.axis, int) else layer.axis
        return sizes, InputSpec(axes={a: input_shape[a] for a in given})
    return sizes, InputSpec(ndim=rank, axes=dict(zip(axes, sizes)))
