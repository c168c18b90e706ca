"""Normalization layers."""

from tapewright.ops.conversion import stop_gradient
from tapewright.ops.creation import ones_like, zeros_like
from tapewright.ops.normalization import (
    batch_normalization,
    fused_batch_norm,
    group_normalization,
    l2_normalize,
    layer_normalization,
    rms_normalization,
)
from tapewright.ops.shape import reshape
from tapewright.rules import normalize_axis

from . import initializers, regularizers
from .layer import InputSpec, Layer

__all__ = [
    "BatchNormalization",
    "GroupNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "UnitNormalization",
]


class _ScaleAndShift(Layer):
    """What has a ``gamma`` if ``scale`` and a ``beta`` if ``center``."""

    gamma = beta = None

    def _keep(
        self,
        center,
        scale,
        beta_initializer,
        gamma_initializer,
        beta_regularizer,
        gamma_regularizer,
    ):
        self.center = center
        self.scale = scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)

    def _add_gamma_and_beta(self, shape):
        for name, wanted in (("gamma", self.scale), ("beta", self.center)):
            if wanted:
                initializer = getattr(self, f"{name}_initializer")
                regularizer = getattr(self, f"{name}_regularizer")
                weight = self.add_weight(
                    name, shape, initializer, regularizer=regularizer
                )
                setattr(self, name, weight)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


class BatchNormalization(_ScaleAndShift):
    """Gives each channel mean 0 and variance 1 over the batch, then scales and shifts.

        outputs = (inputs - mean) / sqrt(variance + epsilon) * gamma + beta

    With ``training=True`` mean and variance are those of the batch (the variance is the
    biased one), and the moving ones follow them: ``moving <- moving * momentum + new *
    (1 - momentum)``. Otherwise, and while ``trainable`` is False, the moving ones count.

    Args: ``axis``: the channels; ``center``, ``scale``: whether there is a ``beta``, a
    ``gamma``. Derivatives are exact at every order, also through mean and variance.

    Reference: Ioffe & Szegedy, "Batch normalization" (2015).
    """

    def __init__(
        self,
        axis=-1,
        momentum=0.99,
        epsilon=0.001,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        moving_mean_initializer="zeros",
        moving_variance_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not isinstance(axis, int):
            raise TypeError(f"BatchNormalization: axis must be an int, got {axis!r}")
        self.axis = axis
        self.momentum = momentum
        self.epsilon = epsilon
        self._keep(
            center,
            scale,
            beta_initializer,
            gamma_initializer,
            beta_regularizer,
            gamma_regularizer,
        )
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)

    def build(self, input_shape):
        rank = len(input_shape)
        (axis,) = normalize_axis(self._title, self.axis, rank)
        shape, self.input_spec = _sizes(self, input_shape)
        self._add_gamma_and_beta(shape)
        self.moving_mean = self.add_weight(
            "moving_mean", shape, self.moving_mean_initializer, trainable=False
        )
        self.moving_variance = self.add_weight(
            "moving_variance", shape, self.moving_variance_initializer, trainable=False
        )
        self._reduced = tuple([i for i in range(rank) if i != axis])
        # the shape in which a channel's weights meet the inputs
        self._aligned = None if axis == rank - 1 else (-1,) + (1,) * (rank - 1 - axis)

    def call(self, inputs, training=None):
        inputs = self._as_own_dtype(inputs)
        if training and self.trainable:
            return self._by_batch(inputs)
        weights = [self.moving_mean, self.moving_variance, self.beta, self.gamma]
        if self._aligned:
            weights = [w if w is None else reshape(w, self._aligned) for w in weights]
        return batch_normalization(inputs, *weights, self.epsilon)

    def _by_batch(self, inputs):
        gamma = self.gamma if self.scale else ones_like(self.moving_mean)
        beta = self.beta if self.center else zeros_like(self.moving_mean)
        outputs, mean, variance = fused_batch_norm(
            inputs, gamma, beta, self._reduced, self.epsilon
        )
        self._follow(self.moving_mean, mean)
        self._follow(self.moving_variance, variance)
        return outputs

    def _follow(self, moving, new):
        new = stop_gradient(new)  # the tape keeps nothing of the update
        moving.assign(moving * self.momentum + new * (1.0 - self.momentum))


class LayerNormalization(_ScaleAndShift):
    """Gives each example mean 0 and variance 1 over ``axis``, then scales and shifts.

        outputs = (inputs - mean) / sqrt(variance + epsilon) * gamma + beta

    Args: ``axis``: one axis or several, which ``gamma`` and ``beta`` have too, in order;
    ``center``, ``scale``: whether there is a ``beta``, a ``gamma``. Derivatives are exact
    at every order. Reference: Ba et al., "Layer normalization" (2016).
    """

    def __init__(
        self,
        axis=-1,
        epsilon=0.001,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.axis = _axes("LayerNormalization", axis)
        self.epsilon = epsilon
        self._keep(
            center,
            scale,
            beta_initializer,
            gamma_initializer,
            beta_regularizer,
            gamma_regularizer,
        )

    def build(self, input_shape):
        shape, self.input_spec = _sizes(self, input_shape)
        self._add_gamma_and_beta(shape)

    def call(self, inputs):
        inputs = self._as_own_dtype(inputs)
        return layer_normalization(
            inputs, self.gamma, self.beta, self.axis, self.epsilon
        )


class GroupNormalization(_ScaleAndShift):
    """Gives each group of channels of an example mean 0 and variance 1, scales and shifts.

        outputs = (inputs - mean) / sqrt(variance + epsilon) * gamma + beta

    Args: ``groups``: how many, dividing the number of channels; 1 is layer normalization
    over all axes, -1 (each channel its own) instance normalization; ``axis``: the
    channels. Derivatives are exact at every order.

    Reference: Wu & He, "Group normalization" (2018).
    """

    def __init__(
        self,
        groups=32,
        axis=-1,
        epsilon=0.001,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.groups = groups
        self.axis = axis
        self.epsilon = epsilon
        self._keep(
            center,
            scale,
            beta_initializer,
            gamma_initializer,
            beta_regularizer,
            gamma_regularizer,
        )

    def build(self, input_shape):
        shape, self.input_spec = _sizes(self, input_shape)
        groups = shape[0] if self.groups == -1 else self.groups
        if groups < 1 or shape[0] % groups:
            raise ValueError(
                f"{self._title}: groups must divide the number of channels, "
                f"{shape[0]}, got {self.groups}"
            )
        self._add_gamma_and_beta(shape)

    def call(self, inputs):
        inputs = self._as_own_dtype(inputs)
        return group_normalization(
            inputs, self.groups, self.gamma, self.beta, self.axis, self.epsilon
        )


class RMSNormalization(Layer):
    """Gives each example mean square 1 over ``axis``, then scales.

        outputs = inputs / sqrt(mean(inputs ** 2) + epsilon) * scale

    Args: ``axis``: one axis or several, which the weight ``scale`` has too, in order.
    Reference: Zhang & Sennrich, "Root mean square layer normalization" (2019).
    """

    def __init__(self, axis=-1, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.axis = _axes("RMSNormalization", axis)
        self.epsilon = epsilon

    def build(self, input_shape):
        shape, self.input_spec = _sizes(self, input_shape)
        self.scale = self.add_weight("scale", shape, "ones")

    def call(self, inputs):
        inputs = self._as_own_dtype(inputs)
        return rms_normalization(inputs, self.scale, self.axis, self.epsilon)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


class UnitNormalization(Layer):
    """Scales each example to Euclidean length 1 over ``axis``, one or several.

    >>> UnitNormalization()([[3.0, 4.0]]).numpy()
    array([[0.6, 0.8]], dtype=float32)
    """

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = _axes("UnitNormalization", axis)

    def call(self, inputs):
        return l2_normalize(self._as_own_dtype(inputs), self.axis, epsilon=1e-24)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


def _axes(who, axis):
    if isinstance(axis, int):
        return axis
    if isinstance(axis, list | tuple) and all(isinstance(a, int) for a in axis):
        return list(axis)
    raise TypeError(f"{who}: axis must be an int or a list of ints, got {axis!r}")


def _sizes(layer, input_shape):
    """The sizes of a layer's axes, in order, and the spec that holds inputs to them."""
    rank = len(input_shape)
    axes = sorted(normalize_axis(layer._title, layer.axis, rank))
    sizes = tuple([input_shape[a] for a in axes])
    return sizes, InputSpec(ndim=rank, axes=dict(zip(axes, sizes)))
