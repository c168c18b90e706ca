"""Normalization layers."""

from tapewright.ops.conversion import stop_gradient
from tapewright.ops.creation import ones_like, zeros_like
from tapewright.ops.normalization import batch_normalization, fused_batch_norm
from tapewright.ops.shape import reshape
from tapewright.rules import normalize_axis

from . import initializers, regularizers
from .layer import InputSpec, Layer

__all__ = ["BatchNormalization"]


class BatchNormalization(Layer):
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
        self.center = center
        self.scale = scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)

    def build(self, input_shape):
        rank = len(input_shape)
        (axis,) = normalize_axis(self._title, self.axis, rank)
        shape = (input_shape[axis],)
        if self.scale:
            self.gamma = self.add_weight(
                "gamma",
                shape,
                self.gamma_initializer,
                regularizer=self.gamma_regularizer,
            )
        if self.center:
            self.beta = self.add_weight(
                "beta",
                shape,
                self.beta_initializer,
                regularizer=self.beta_regularizer,
            )
        self.moving_mean = self.add_weight(
            "moving_mean", shape, self.moving_mean_initializer, trainable=False
        )
        self.moving_variance = self.add_weight(
            "moving_variance", shape, self.moving_variance_initializer, trainable=False
        )
        self.input_spec = InputSpec(ndim=rank, axes={axis: shape[0]})
        self._reduced = tuple([i for i in range(rank) if i != axis])
        # the shape in which a channel's weights meet the inputs
        self._aligned = None if axis == rank - 1 else (-1,) + (1,) * (rank - 1 - axis)

    def call(self, inputs, training=None):
        inputs = self._as_own_dtype(inputs)
        if training and self.trainable:
            return self._by_batch(inputs)
        weights = [
            self.moving_mean,
            self.moving_variance,
            self.beta if self.center else None,
            self.gamma if self.scale else None,
        ]
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

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)
