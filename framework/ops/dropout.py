"""Dropout: noise that zeroes entries and scales the others up, from the random streams."""

import numpy as np

from .. import backend
from ..errors import DTypeError, ShapeError
from ..tensor import convert_to_tensor, module_of, new_tensor
from .comparison import greater_equal
from .conversion import cast
from .random import Generator, get_global_generator

__all__ = ["dropout", "stateless_dropout"]


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Zeroes each entry of ``x`` with probability ``rate``: ``x * mask / (1 - rate)``.

    Args: ``rate``: a number from 0 up to, and without, 1, or a scalar tensor, which gets
    a gradient through ``1 / (1 - rate)``; ``noise_shape``: the shape of the mask, None
    where it is that of ``x``; axes of size 1 share one draw; ``seed``: for numbers of
    their own, the same at each call; without one they are from the global stream.

    Raises: ``ValueError`` for a rate out of range, ``ShapeError`` for a ``noise_shape``
    that does not fit, ``DTypeError`` if ``x`` is not floating.

    >>> dropout([1.0, 2.0], rate=0).numpy()
    array([1., 2.], dtype=float32)
    """
    _check_rate("dropout", rate)
    generator = get_global_generator() if seed is None else Generator(seed)
    return apply_dropout("dropout", x, rate, noise_shape, generator)


def stateless_dropout(x, rate, seed, rng_alg=None, noise_shape=None, name=None):
    """`dropout` whose noise is a function of ``seed``, two integers, and nothing else.

    ``rng_alg`` may be None, "philox" or "auto_select": there is one algorithm.

    Raises: as `dropout`, and ``ValueError`` for another ``seed`` or ``rng_alg``.

    >>> first = stateless_dropout(np.ones(9), 0.5, seed=[1, 2])
    >>> np.array_equal(first, stateless_dropout(np.ones(9), 0.5, seed=[1, 2]))
    True
    """
    who = "stateless_dropout"
    _check_rate(who, rate)
    if rng_alg not in (None, "philox", "auto_select"):
        raise ValueError(f"{who}: rng_alg must be None or 'philox', got {rng_alg!r}")
    values = np.asarray(seed)
    if values.shape != (2,) or values.dtype.kind not in "iu":
        raise ValueError(f"{who}: seed must be two integers, got {seed!r}")
    generator = Generator(int(values[0]))
    key = generator.state.numpy()[0]
    generator.state.assign(np.array([key, abs(int(values[1]))], np.int64))
    return apply_dropout(who, x, rate, noise_shape, generator)


def _check_rate(who, rate):
    if _is_number(rate) and not 0 <= rate < 1:
        raise ValueError(f"{who}: rate must be from 0 up to, not 1, got {rate!r}")


def _is_number(rate):
    return isinstance(rate, int | float | np.number)


def apply_dropout(who, x, rate, noise_shape, generator):
    """`dropout` with noise from this generator; a rate of 1 leaves zeros."""
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise DTypeError(who, "x must be floating; cast converts it", x=x)
    if _is_number(rate) and rate == 0:
        return x
    with backend.use_module(module_of(x)):
        drawn = generator.uniform(_mask_shape(who, x, noise_shape))
    if _is_number(rate):
        return x * _mask(drawn, float(rate), x.dtype.dtype)
    rate = cast(convert_to_tensor(rate, dtype_hint=x.dtype), x.dtype)
    if rate.shape.rank != 0:
        raise ShapeError(who, "rate must be a scalar", rate=rate)
    kept = cast(greater_equal(cast(drawn, x.dtype), rate), x.dtype)
    return x * (kept / (1.0 - rate))


def _mask(drawn, rate, dtype):
    """0 or ``1 / (1 - rate)`` for each number drawn."""
    kept = drawn.array >= drawn.array.dtype.type(rate)
    factor = dtype.type(1 / (1 - rate) if rate < 1 else 0)
    return new_tensor(module_of(drawn).multiply(kept, factor, dtype=dtype))


def _mask_shape(who, x, noise_shape):
    shape = tuple(x.shape)
    if noise_shape is None:
        return shape
    noise = tuple([None if n is None else int(n) for n in noise_shape])
    fits = [n in (None, 1, own) for n, own in zip(noise, shape)]
    if len(noise) != len(shape) or not all(fits):
        what = f"noise_shape {noise} must give each axis of x, of shape {shape}, "
        raise ShapeError(who, what + "its size, 1 or None")
    return [own if n is None else n for n, own in zip(noise, shape)]
