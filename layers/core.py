"""The layers that most models begin with: `Dense`, `Activation`, `Flatten`, `Dropout`."""

import math
import operator

from tapewright.ops.dropout import apply_dropout
from tapewright.ops.linalg import affine, matmul
from tapewright.ops.random import Generator, get_global_generator
from tapewright.ops.shape import reshape, transpose

from . import activations, initializers, regularizers
from .layer import InputSpec, Layer

__all__ = ["Activation", "Dense", "Dropout", "Flatten"]


class Dense(Layer):
    """Every output sees every input: ``outputs = activation(inputs @ kernel + bias)``.

    Shapes: inputs ``[batch, ..., features]``, outputs ``[batch, ..., units]``; weights
    ``kernel [features, units]`` and ``bias [units]``. Integer inputs are cast.

    >>> layer = Dense(2, kernel_initializer="ones", activation="relu")
    >>> layer([[1.0, 2.0, 3.0]]).numpy()
    array([[6., 6.]], dtype=float32)
    """

    def __init__(
        self,
        units,
        activation=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units = _positive("Dense", "units", units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape):
        features = input_shape[-1]
        self.kernel = self.add_weight(
            "kernel",
            (features, self.units),
            self.kernel_initializer,
            regularizer=self.kernel_regularizer,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                (self.units,),
                self.bias_initializer,
                regularizer=self.bias_regularizer,
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: features})

    def call(self, inputs):
        inputs = self._as_own_dtype(inputs)
        if self.use_bias:
            outputs = affine(inputs, self.kernel, self.bias)
        else:
            outputs = matmul(inputs, self.kernel)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


class Activation(Layer):
    """``activation(inputs)``: a name, or any function of a tensor."""

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs):
        return self.activation(inputs)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


class Flatten(Layer):
    """All axes but the first become one; a scalar for each example, one of size 1.

    Shapes: inputs ``[batch, ...]``, outputs ``[batch, n]``. ``data_format``:
    "channels_last" (default), or "channels_first" to move axis 1 to the end first.
    """

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = data_format or "channels_last"
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(
                "Flatten: data_format must be 'channels_last' or 'channels_first', "
                f"got {data_format!r}"
            )
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs):
        batch, *rest = inputs.shape
        if self.data_format == "channels_first" and len(rest) > 1:
            inputs = transpose(inputs, (0, *range(2, len(rest) + 1), 1))
        return reshape(inputs, (batch, math.prod(rest)))

    def compute_output_shape(self, input_shape):
        batch, *rest = input_shape
        return batch, None if None in rest else math.prod(rest)


class Dropout(Layer):
    """In training, zeroes each input with probability ``rate`` and scales the others up.

        outputs = inputs * mask / (1 - rate),   mask 0 or 1

    Otherwise the inputs pass unchanged. Args: ``noise_shape``: the shape of the mask,
    None where it is that of the inputs; axes of size 1 share one draw. ``seed``: for a
    stream of random numbers of its own.

    Reference: Srivastava et al., "Dropout: a simple way to prevent neural networks from
    overfitting" (2014).
    """

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"Dropout: rate must be from 0 to 1, got {rate!r}")
        self.rate = rate
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)
        for n in self.noise_shape or ():
            if n is not None:
                _positive("Dropout", "each entry of noise_shape", n)
        self.seed = seed
        self.seed_generator = None if seed is None else Generator(seed)

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        generator = self.seed_generator or get_global_generator()
        return apply_dropout(
            self._title, inputs, self.rate, self.noise_shape, generator.stream
        )

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


def _positive(who, name, value):
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{who}: {name} must be a positive integer, got {value!r}")
    return number
