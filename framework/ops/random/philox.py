"""Draws as ops of two integers, so that a traced step and a file can hold them.

The integers come first, and ``purpose`` is their kind: at 0 the key and the counter of
a generator (`random.Generator`), otherwise the seed of a stateless draw, with a
separate stream for each purpose. The same integers produce the same numbers on any
machine: NumPy's Philox draws on the host, and the result is placed on the current
device. Other values on which a draw depends are inputs, or plain numbers. No gradient
passes; see `distributions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    MappingError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import broadcast_shape, check_at_least, check_attributes
from tapewright.core.tensor import Tensor, TensorSpec
from tapewright.core.typing import (
    DTypeLike,
    IntLike,
    Kernel,
    Op,
    P,
    ShapeLike,
    TensorLike,
)

from ..array.indexing import getitem
from ..array.joining import stack

# What the seed of a stateless draw is for: numbers, or seeds of further draws.
GENERATOR, NUMBERS, SPLIT, FOLD_IN = range(4)

# NumPy's generators that nobody uses now: making one costs ten times what a new state does.
_FREE = []


def draw_at(key, counter, draw):
    """Call ``draw(rng)`` with NumPy's generator at a point of the stream of a key."""
    try:
        rng = _FREE.pop()
    except IndexError:
        rng = np.random.Generator(np.random.Philox(0))
    rng.bit_generator.state = {
        "bit_generator": "Philox",
        "state": {"key": _words(key), "counter": _words(counter)},
        "buffer": _words([0] * 4),
        "buffer_pos": 4,  # used up
        "has_uint32": 0,
        "uinteger": 0,
    }
    values = draw(rng)
    _FREE.append(rng)
    return values


def _draw(state, purpose, draw, data=0):
    first, second = [int(n) % 2**64 for n in devices.to_numpy(state)]
    if purpose == GENERATOR:
        return draw_at([first, 0], [0, 0, second, 0], draw)
    return draw_at([first, second], [0, 0, int(data) % 2**64, purpose], draw)


def _words(numbers):
    return np.array(numbers, np.uint64)


def _placed(values, dtype):
    """Copy numbers drawn on the host to an array of the current device."""
    array = np.asarray(values, dtypes.as_dtype(dtype).dtype)
    module = devices.current_module()
    return array if module is np else module.asarray(array)


def _single(dtype):
    """Return the dtype in which NumPy draws floating numbers."""
    return np.float64 if dtype == "float64" else np.float32


def _batch_one_by_one(op):
    """Batch rule: one draw for each mapped value, from a single seed, which all share."""

    def _(mapped, *inputs, purpose, **attributes):
        if purpose == GENERATOR:
            raise MappingError(
                f"{op.name.removeprefix('random_')}: the draws depend on mapped values, "
                "but a generator has a single stream; use the stateless function, with a "
                "seed"
            )
        count = next(len(x) for x, m in zip(inputs, mapped) if m)
        attributes["purpose"] = purpose
        rows = []
        for i in range(count):
            row = [getitem(x, i) if m else x for x, m in zip(inputs, mapped)]
            rows.append(op.general(row, attributes))
        return stack(rows)

    return _


def random_op(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator for ops that draw from a state, and may depend on further inputs."""
    own = Traits(same_dtype=(), grows=True, no_gradient=True, batch=_batch_one_by_one)
    return primitive(**own | traits)


# ------------------------------------------------------------- of a shape that is told


def _infer_shape_and_dtype(op):
    def _(state, *others, shape, dtype, **attributes):
        return TensorSpec(shape, dtype)

    return _


@random_op(infer=_infer_shape_and_dtype)
def random_normal(
    xp,
    state: TensorLike,
    *,
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    mean=0.0,
    stddev=1.0,
    truncated: bool = False,
    purpose: IntLike = 0,
):
    """Normally distributed numbers; if ``truncated``, within two ``stddev`` of ``mean``."""

    def draw(rng):
        values = rng.standard_normal(shape, _single(dtype))
        if truncated:  # what is beyond is drawn again
            values = np.asarray(values)
            outside = np.abs(values) > 2
            while outside.any():
                values[outside] = rng.standard_normal(
                    int(outside.sum()), _single(dtype)
                )
                outside = np.abs(values) > 2
        return values

    return _placed(_scaled(_draw(state, purpose, draw), stddev, mean), dtype)


@random_op(strict=True, infer=_infer_shape_and_dtype)
def random_uniform(
    xp,
    state: TensorLike,
    *,
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    minval=0,
    maxval=1,
    purpose: IntLike = 0,
):
    """Uniformly distributed numbers from ``minval`` up to, and without, ``maxval``.

    If both are None: integers from the full range of the dtype.
    """
    kind = dtypes.as_dtype(dtype)
    if minval is None:
        return _placed(_draw(state, purpose, lambda r: _any(r, kind, shape)), dtype)
    if kind.is_integer:
        bounds = (minval, maxval, shape, kind.dtype)
        return _placed(_draw(state, purpose, lambda r: r.integers(*bounds)), dtype)
    values = _draw(state, purpose, lambda r: r.random(shape, _single(dtype)))
    values = _scaled(values, np.subtract(maxval, minval, dtype=np.float64), minval)
    values = np.asarray(values, kind.dtype)
    # What is rounded up to maxval stays below; from 0 on only half precision can be.
    if minval < maxval and (minval or dtypes.is_half(kind)):
        one = kind.dtype.type
        np.minimum(values, np.nextafter(one(maxval), one(minval)), out=values)
    return _placed(values, dtype)


def _scaled(values, factor, shift):
    kind = values.dtype.type
    if factor != 1:
        values = values * kind(factor)
    return values + kind(shift) if shift else values


def _any(rng, dtype, shape):
    return rng.integers(dtype.min, dtype.max, shape, dtype.dtype, endpoint=True)


@random_op(may_raise=True, infer=_infer_shape_and_dtype)
def random_integers(
    xp,
    state: TensorLike,
    minval: TensorLike,
    maxval: TensorLike,
    shape: ShapeLike,
    dtype: DTypeLike,
    purpose: IntLike = 0,
):
    """Integers from ``minval`` up to, and without, ``maxval``, both scalars."""
    low, high = (int(devices.to_numpy(bound)) for bound in (minval, maxval))
    if not low < high:
        raise InvalidArgumentError(
            f"uniform: minval must be below maxval for integers, got {low} and {high}"
        )
    kind = dtypes.as_dtype(dtype).dtype
    draw = _draw(state, purpose, lambda rng: rng.integers(low, high, shape, kind))
    return _placed(draw, dtype)


@random_op(infer=_infer_shape_and_dtype)
def random_seeds(
    xp,
    state: TensorLike,
    data: TensorLike,
    shape: ShapeLike,
    dtype: DTypeLike = "int64",
    purpose: IntLike = 0,
):
    """Integers from the full range of the dtype; the integer ``data`` selects the stream."""
    kind, data = dtypes.as_dtype(dtype), devices.to_numpy(data)
    return _placed(
        _draw(state, purpose, lambda r: _any(r, kind, shape), int(data)), dtype
    )


@random_op(strict=True)
def random_permutation(xp, state: TensorLike, count: IntLike, purpose: IntLike = 0):
    """The numbers from 0 to ``count - 1`` in random order."""
    return _placed(_draw(state, purpose, lambda r: r.permutation(count)), "int64")


# As much of a mask is drawn at a time: the numbers behind it stay in the cache.
_BLOCK = 1 << 14


@random_op(infer=_infer_shape_and_dtype)
def dropout_mask(
    xp,
    state: TensorLike,
    *,
    shape: ShapeLike,
    rate,
    dtype: DTypeLike = "float32",
    purpose: IntLike = 0,
):
    """Dropout mask: 0 with probability ``rate``, else ``1 / (1 - rate)``.

    It is drawn from the numbers of `uniform`.
    """
    kind = dtypes.as_dtype(dtype).dtype
    factor = kind.type(1 / (1 - rate) if rate < 1 else 0)

    def draw(rng):
        mask = np.empty(shape, kind)
        flat = mask.reshape(-1)
        room = np.empty(min(flat.size, _BLOCK), np.float32)
        for start in range(0, flat.size, _BLOCK):
            part = flat[start : start + _BLOCK]
            drawn = rng.random(out=room[: part.size], dtype=np.float32)
            np.multiply(drawn >= np.float32(rate), factor, out=part)
        return mask

    return _placed(_draw(state, purpose, draw), dtype)


@random_permutation.infer
def _(state, count, purpose):
    return TensorSpec([count], "int64")


# ------------------------------------------------- whose parameters are arrays


@random_op()
def random_categorical(
    xp,
    state: TensorLike,
    logits: TensorLike,
    num_samples: IntLike,
    dtype: DTypeLike = "int64",
    purpose: IntLike = 0,
):
    """Classes by the Gumbel-max trick: the largest of ``logits`` plus noise."""
    values = devices.to_numpy(logits).astype(np.float64)
    size = (values.shape[0], num_samples, values.shape[1])
    noise = _draw(state, purpose, lambda rng: rng.gumbel(size=size))
    return _placed((values[:, None] + noise).argmax(axis=-1), dtype)


@random_categorical.infer
def _(state, logits, num_samples, dtype, purpose):
    return TensorSpec([logits.shape[0], num_samples], dtype)


@random_op(may_raise=True)
def random_standard_gamma(
    xp, state: TensorLike, alpha: TensorLike, purpose: IntLike = 0
):
    """Gamma draws with rate 1, one for each entry of ``alpha``."""
    values = devices.to_numpy(alpha)
    if (values < 0).any():
        raise InvalidArgumentError(f"gamma: alpha must not be negative, got {values}")
    values = values + 0.0  # NumPy refuses -0.0
    drawn = _draw(state, purpose, lambda r: r.standard_gamma(values, values.shape))
    return _placed(drawn, alpha.dtype.name)


@random_standard_gamma.infer
def _(state, alpha, purpose):
    return TensorSpec(alpha.shape, alpha.dtype)


# Beyond it, numbers as large as ten deviations above the mean leave 64 bits.
_LARGEST_MEAN = 2.0**63 - 10 * 2.0**31.5


@random_op(may_raise=True)
def random_poisson(
    xp,
    state: TensorLike,
    lam: TensorLike,
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    purpose: IntLike = 0,
):
    """Poisson draws with mean ``lam``, which broadcasts to ``shape``."""
    means = np.asarray(devices.to_numpy(lam), np.float64)
    if not ((means >= 0) & (means <= _LARGEST_MEAN)).all():  # nor NaN
        raise InvalidArgumentError(
            f"poisson: lam must be from 0 to {_LARGEST_MEAN:.3}, got {means}"
        )
    drawn = _draw(state, purpose, lambda r: r.poisson(means, shape))
    return _placed_counts("poisson", drawn, dtype)


@random_poisson.infer
def _(state, lam, shape, dtype, purpose):
    _check_broadcast("poisson", shape, lam=lam)
    return TensorSpec(shape, dtype)


@random_op(may_raise=True)
def random_binomial(
    xp,
    state: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    shape: ShapeLike,
    dtype: DTypeLike = "int32",
    purpose: IntLike = 0,
):
    """The number of successes in ``counts`` trials, each with probability ``probs``."""
    counts, probs = devices.to_numpy(counts), devices.to_numpy(probs)
    probs = np.asarray(probs, np.float64)
    fits = ((counts >= 0) & (counts < 2.0**63)).all()  # nor NaN
    if not (fits and ((probs >= 0) & (probs <= 1)).all()):
        raise InvalidArgumentError(
            "binomial: counts must be from 0 to 2 ** 63 - 1, and probs from 0 to 1, got "
            f"counts {counts} and probs {probs}"
        )
    counts = counts.astype(np.int64)
    drawn = _draw(state, purpose, lambda rng: rng.binomial(counts, probs, shape))
    return _placed_counts("binomial", drawn, dtype)


@random_binomial.infer
def _(state, counts, probs, shape, dtype, purpose):
    _check_broadcast("binomial", shape, counts=counts, probs=probs)
    return TensorSpec(shape, dtype)


def _placed_counts(who, drawn, dtype):
    """`_placed`, with a check that the dtype can hold the numbers.

    Raises:
        ValueError: If an integer dtype cannot hold a number.
    """
    own = dtypes.as_dtype(dtype).dtype
    if own.kind in "iu" and drawn.max(initial=0) > np.iinfo(own).max:
        raise InvalidArgumentError(
            f"{who}: dtype must hold every draw, but {drawn.max()} does not fit into "
            f"{own.name}; use int64 or float64"
        )
    return _placed(drawn, dtype)


def _check_broadcast(who, shape, **given):
    for name, spec in given.items():
        try:
            fits = tuple(broadcast_shape(tuple(spec.shape), shape)) == tuple(shape)
        except ValueError:
            fits = False
        if not fits:
            what = f"{name} must broadcast to the shape {tuple(shape)} of the result"
            raise ShapeError(who, what, **{name: spec})


def _check_draw(purpose, count=0, **attributes):
    check_at_least("random", 0, purpose=purpose, count=count)


def _check_integers(dtype, **attributes):
    _check_draw(**attributes)
    if not dtypes.as_dtype(dtype).is_integer:
        raise DTypeError("random", f"dtype must be integer, got {dtype}")


def _check_uniform(dtype, minval, maxval, **attributes):
    _check_draw(**attributes)
    dtype = dtypes.as_dtype(dtype)
    if dtype.is_bool:
        raise DTypeError("random_uniform", "dtype must be numeric, got bool")
    if minval is None and not dtype.is_integer:
        raise DTypeError("random_uniform", f"minval must be given for {dtype.name}")
    if dtype.is_integer and minval is not None and not minval < maxval:
        raise InvalidArgumentError(
            f"random_uniform: minval must be below maxval, got {minval} and {maxval}"
        )


for _op in (
    random_normal, random_permutation, dropout_mask, random_categorical,
    random_standard_gamma, random_poisson, random_binomial,
):  # fmt: skip
    check_attributes(_op, _check_draw)
for _op in (random_integers, random_seeds):
    check_attributes(_op, _check_integers)
check_attributes(random_uniform, _check_uniform)
