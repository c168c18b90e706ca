"""Random numbers that come back: each draw is a function of a key and a counter.

A `Generator` holds both; every draw takes the next value of the counter, so that a seed
gives the same numbers anywhere. NumPy's Philox does the drawing, on the host.
"""

import secrets

import numpy as np

from .. import backend, dtypes
from ..errors import ShapeError
from ..primitive import Shape
from ..tensor import convert_to_tensor, new_tensor
from ..variable import Variable
from .conversion import cast

__all__ = [
    "Generator",
    "categorical",
    "get_global_generator",
    "normal",
    "set_seed",
    "shuffle",
    "truncated_normal",
    "uniform",
]


class Generator:
    """A stream of random numbers: a key, and a counter that each draw advances.

    ``Generator.from_seed(7)`` always starts the same stream; ``state`` (key and counter,
    an int64 Variable of two entries) can be kept and assigned back.
    """

    def __init__(self, seed=None):
        key = secrets.randbits(63) if seed is None else int(seed) % 2**63
        with backend.use_module(np):  # read at each draw: a GPU would have to wait
            self.state = Variable(
                np.array([key, 0], np.int64), trainable=False, name="state"
            )

    @classmethod
    def from_seed(cls, seed):
        return cls(seed)

    def draw(self):
        """NumPy's generator for one draw; advances the counter."""
        key, counter = (int(n) for n in self.state._array)
        self.state.assign(np.array([key, counter + 1], np.int64))
        return np.random.Generator(
            np.random.Philox(key=key, counter=[0, 0, counter, 0])
        )

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        """Normally distributed numbers."""
        dtype = _floating(dtype)
        values = self.draw().standard_normal(Shape(shape), _drawn(dtype))
        return _scaled(values, dtype, stddev, mean)

    def uniform(self, shape, minval=0, maxval=None, dtype=dtypes.float32, name=None):
        """Numbers from ``minval`` up to, and without, ``maxval`` (1 for floating dtypes)."""
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_integer:
            if maxval is None:
                raise ValueError("uniform: maxval must be given for integers")
            drawn = self.draw().integers(
                int(minval), int(maxval), Shape(shape), dtype.dtype
            )
            return _made(drawn, dtype)
        dtype = _floating(dtype)
        maxval = 1.0 if maxval is None else maxval
        values = self.draw().random(Shape(shape), _drawn(dtype))
        return _scaled(
            values, dtype, np.subtract(maxval, minval, dtype=np.float64), minval
        )

    def truncated_normal(
        self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None
    ):
        """Normally distributed numbers no further than two ``stddev`` from ``mean``."""
        dtype, rng = _floating(dtype), self.draw()
        values = rng.standard_normal(Shape(shape), _drawn(dtype))
        outside = np.abs(values) > 2
        while outside.any():
            values[outside] = rng.standard_normal(int(outside.sum()), _drawn(dtype))
            outside = np.abs(values) > 2
        return _scaled(values, dtype, stddev, mean)


_GLOBAL = None


def get_global_generator():
    """The generator behind the functions of this module."""
    global _GLOBAL
    if _GLOBAL is None:
        _GLOBAL = Generator()
    return _GLOBAL


def set_seed(seed):
    """Starts the global stream anew: what follows is the same for the same seed."""
    generator, fresh = get_global_generator(), Generator(seed)
    generator.state.assign(fresh.state.read())


def _generator(seed):
    return get_global_generator() if seed is None else Generator(seed)


def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Normally distributed numbers, from the global stream or, with ``seed``, from its own.

    >>> set_seed(1)
    >>> normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _generator(seed).normal(shape, mean, stddev, dtype)


def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers from ``minval`` up to, and without, ``maxval`` (1 for floating dtypes)."""
    return _generator(seed).uniform(shape, minval, maxval, dtype)


def truncated_normal(
    shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None
):
    """Normally distributed numbers no further than two ``stddev`` from ``mean``."""
    return _generator(seed).truncated_normal(shape, mean, stddev, dtype)


def categorical(logits, num_samples, dtype=dtypes.int64, seed=None, name=None):
    """``num_samples`` classes a row, each drawn with probability ``softmax(logits)``.

    Shapes: ``logits`` ``[batch, classes]``, result ``[batch, num_samples]``.
    """
    logits = convert_to_tensor(logits)
    if len(logits.shape) != 2:
        raise ShapeError(
            "categorical", "logits must be [batch, classes]", logits=logits
        )
    batch, classes = logits.shape
    values = backend.to_numpy(logits.array).astype(np.float64)
    noise = _generator(seed).draw().gumbel(size=(batch, int(num_samples), classes))
    return _made((values[:, None] + noise).argmax(axis=-1), dtypes.as_dtype(dtype))


def shuffle(value, seed=None, name=None):
    """The rows of ``value`` in random order."""
    value = convert_to_tensor(value)
    order = _generator(seed).draw().permutation(value.shape[0])
    return value[order]


def _floating(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(f"random: dtype must be floating, got {dtype.name}")
    return dtype


def _drawn(dtype):
    """The dtype in which NumPy draws."""
    return np.float64 if dtype == dtypes.float64 else np.float32


def _scaled(values, dtype, factor, shift):
    if all(isinstance(v, (int, float, np.floating)) for v in (factor, shift)):
        if factor != 1:
            values = values * values.dtype.type(factor)
        if shift:
            values = values + values.dtype.type(shift)
        return _made(values, dtype)
    scaled = _made(values, dtypes.as_dtype(values.dtype)) * factor + shift
    return cast(scaled, dtype)


def _made(values, dtype):
    array = np.asarray(values, dtype.dtype)
    module = backend.current_module()
    return new_tensor(array if module is np else module.asarray(array))
