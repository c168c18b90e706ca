"""Dropout: noise that zeroes entries and scales the others, from the random streams."""

from __future__ import annotations

import functools

import numpy as np

from tapewright.core.dispatch import composite
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    cast_advice,
)
from tapewright.core.hardware import devices
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor, convert_to_tensor, module_of
from tapewright.core.typing import IntLike, StaticShapeLike, TensorLike

from ..array.conversion import cast
from ..math.comparison import greater_equal
from ..random.generators import one_stream, stateless_stream
from ..random.philox import dropout_mask, random_uniform

__all__ = ["dropout", "stateless_dropout"]


@composite
def dropout(
    x: TensorLike,
    rate: TensorLike,
    noise_shape: StaticShapeLike = None,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Dropout: zero each entry with probability ``rate``, ``x * mask / (1 - rate)``.

    Args:
        x: Floating tensor.
        rate: Probability from 0 to below 1: a number, or a scalar tensor, which gets a
            gradient through ``1 / (1 - rate)``.
        noise_shape: Shape of the mask, in which axes of size 1 share one draw; None
            means the shape of ``x``.
        seed: Integer seed of a separate stream; None draws the mask from the global
            stream.

    Raises:
        ValueError: If ``rate`` is out of range.
        ShapeError: If ``noise_shape`` does not match ``x``.

    Example:
        >>> import numpy as np
        >>> tw.nn.dropout([1.0, 2.0], rate=0).numpy()
        array([1., 2.], dtype=float32)
        >>> sorted(set(tw.nn.dropout(np.ones(99), rate=0.75, seed=1).numpy().tolist()))
        [0.0, 4.0]
    """
    _check_rate("dropout", rate)
    stream = functools.partial(one_stream, seed)
    return apply_dropout("dropout", x, rate, noise_shape, stream)


def stateless_dropout(
    x: TensorLike,
    rate: TensorLike,
    seed: TensorLike,
    rng_alg: str | None = None,
    noise_shape: StaticShapeLike = None,
    name: str | None = None,
) -> Tensor:
    """Dropout with a mask that is a function of ``seed``.

    Args:
        x: Floating tensor.
        rate: Probability from 0 to below 1: a number, or a scalar tensor.
        seed: Two integers.
        rng_alg: None, "philox" or "auto_select": there is one algorithm.
        noise_shape: Shape of the mask, in which axes of size 1 share one draw; None
            means the shape of ``x``.

    Raises:
        ValueError: If ``rate`` is out of range, or ``seed`` or ``rng_alg`` is invalid.
        ShapeError: If ``noise_shape`` does not match ``x``.

    Example:
        >>> import numpy as np
        >>> first = tw.nn.stateless_dropout(np.ones(9), 0.5, seed=[1, 2])
        >>> np.array_equal(first, tw.nn.stateless_dropout(np.ones(9), 0.5, seed=[1, 2]))
        True
    """
    who = "stateless_dropout"
    _check_rate(who, rate)
    check_choice(who, "rng_alg", rng_alg, (None, "philox", "auto_select"))
    stream = stateless_stream(who, seed)
    return apply_dropout(who, x, rate, noise_shape, lambda: stream)


def _check_rate(who, rate):
    if _is_number(rate) and not 0 <= rate < 1:
        raise InvalidArgumentError(
            f"{who}: rate must be from 0 to below 1, got {rate!r}"
        )


def _is_number(rate):
    return isinstance(rate, int | float | np.number)


def apply_dropout(who, x, rate, noise_shape, next_stream):
    """Apply dropout with the noise of ``next_stream()``; a rate of 1 leaves zeros."""
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        what = f"x must be floating; {cast_advice('x', 'float32')}"
        raise DTypeError(who, what, x=x)
    if _is_number(rate) and rate == 0:
        return x
    shape = _mask_shape(who, x, noise_shape)
    if not _is_number(rate):
        rate = cast(convert_to_tensor(rate, dtype_hint=x.dtype), x.dtype)
        if rate.shape.rank != 0:
            raise ShapeError(who, "rate must be a scalar", rate=rate)
    state, purpose = next_stream()
    with devices.use_module(module_of(x)):
        if _is_number(rate):
            return x * dropout_mask(
                state, shape=shape, rate=float(rate), dtype=x.dtype, purpose=purpose
            )
        drawn = random_uniform(state, shape=shape, purpose=purpose)
    kept = cast(greater_equal(cast(drawn, x.dtype), rate), x.dtype)
    return x * (kept / (1.0 - rate))


def _mask_shape(who, x, noise_shape):
    shape = tuple(x.shape)
    if noise_shape is None:
        return shape
    noise = tuple([None if n is None else int(n) for n in noise_shape])
    fits = [n in (None, 1, own) for n, own in zip(noise, shape)]
    if len(noise) != len(shape) or not all(fits):
        what = f"noise_shape must be {shape}, with 1 or None for any axis, got {noise}"
        raise ShapeError(who, what)
    return [own if n is None else n for n, own in zip(noise, shape)]
