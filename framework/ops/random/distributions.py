"""Distributions: tensors from draws, and their dependence on parameters.

The functions accept a `Stream` first: the integers that `philox` turns into numbers,
and their kind. Gradients pass to ``mean``, ``stddev``, floating bounds and ``beta``
through the ops that scale a draw, and to the ``alpha`` of a gamma draw implicitly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    GradientLookupError,
    InvalidArgumentError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.rules import elementwise
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor, module_of
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.indexing import getitem
from ..array.shape import broadcast_to
from ..math.elementwise import log, maximum, zero_safe_multiply
from ..math.gamma import digamma
from .philox import (
    GENERATOR,
    random_binomial,
    random_categorical,
    random_integers,
    random_normal,
    random_permutation,
    random_poisson,
    random_standard_gamma,
    random_uniform,
)


class Stream(NamedTuple):
    """Source of the numbers of one draw; see `philox`."""

    state: Tensor
    purpose: int = GENERATOR


def draw_normal(stream, shape, mean, stddev, dtype, truncated=False):
    """Draw normal numbers; if ``truncated``, within two ``stddev`` of ``mean``."""
    state, purpose = stream
    if _is_number(mean) and _is_number(stddev):
        return random_normal(
            state, shape=shape, dtype=dtype, mean=float(mean), stddev=float(stddev),
            truncated=truncated, purpose=purpose,
        )  # fmt: skip
    values = random_normal(
        state, shape=shape, dtype=_drawn(dtype), truncated=truncated, purpose=purpose
    )
    return _scaled(values, dtype, stddev, mean)


def checked_bounds(who, minval, maxval, dtype):
    """Return the bounds and the dtype of uniform numbers; None and None for all integers."""
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer:
        dtype = checked_floating(who, dtype)
        return 0 if minval is None else minval, 1.0 if maxval is None else maxval, dtype
    if minval is None and maxval is None:
        return None, None, dtype
    if minval is None or maxval is None:
        raise InvalidArgumentError(
            f"{who}: minval and maxval must be given for integers, got {minval} and "
            f"{maxval}"
        )
    if not (has_value(minval) and has_value(maxval)):
        return minval, maxval, dtype
    minval, maxval = int(minval), int(maxval)
    if not minval < maxval:
        raise InvalidArgumentError(
            f"{who}: minval must be below maxval for integers, got {minval} and {maxval}"
        )
    return minval, maxval, dtype


def draw_uniform(stream, shape, minval, maxval, dtype):
    """Draw uniform numbers between the bounds of `checked_bounds`."""
    state, purpose = stream
    if dtype.is_integer and not (has_value(minval) and has_value(maxval)):
        return random_integers(
            state, minval, maxval, shape=shape, dtype=dtype, purpose=purpose
        )
    if minval is None or (_is_number(minval) and _is_number(maxval)):
        bounds = [
            v.item() if isinstance(v, np.generic) else v for v in (minval, maxval)
        ]
        return random_uniform(
            state, shape=shape, dtype=dtype, minval=bounds[0], maxval=bounds[1],
            purpose=purpose,
        )  # fmt: skip
    values = random_uniform(state, shape=shape, dtype=_drawn(dtype), purpose=purpose)
    low, high = (
        cast(convert_to_tensor(v, dtype_hint=dtype), values.dtype)
        for v in (minval, maxval)
    )
    return _scaled(values, dtype, high - low, low)


def checked_logits(logits):
    """Convert logits to a tensor ``[batch, classes]``."""
    logits = convert_to_tensor(logits)
    if len(logits.shape) != 2:
        raise ShapeError(
            "categorical", "logits must be [batch, classes]", logits=logits
        )
    return logits


def draw_categorical(stream, logits, num_samples, dtype):
    """Draw classes with probabilities ``softmax(logits)``."""
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    if not dtype.is_integer:
        raise TypeError(f"categorical: dtype must be integer, got {dtype.name}")
    return random_categorical(
        stream.state, logits, num_samples=num_samples, dtype=dtype,
        purpose=stream.purpose,
    )  # fmt: skip


def checked_rates(who, alpha, beta, dtype):
    """Convert the arguments of a gamma distribution to tensors of the dtype."""
    dtype = checked_floating(who, dtype)
    alpha = convert_to_tensor(alpha, dtype=dtype)
    if has_value(alpha) and (devices.to_numpy(alpha.array) < 0).any():
        raise InvalidArgumentError(f"{who}: alpha must not be negative, got {alpha}")
    return alpha, None if beta is None else convert_to_tensor(beta, dtype=dtype)


def draw_gamma(stream, shape, alpha, beta):
    """Draw gamma numbers, functions of ``alpha`` and ``beta``; never 0."""
    alpha, dtype = broadcast_to(alpha, shape), alpha.dtype
    drawn = random_standard_gamma(stream.state, alpha, purpose=stream.purpose)
    sample = _random_gamma(alpha, drawn)
    sample = sample if beta is None else sample / beta
    return maximum(sample, dtype.dtype.type(dtypes.finfo(dtype.dtype).tiny))


def draw_poisson(stream, shape, lam, dtype):
    """Draw whole numbers with mean ``lam``."""
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise TypeError(f"poisson: dtype must be integer or floating, got {dtype.name}")
    return random_poisson(
        stream.state, lam, shape=shape, dtype=dtype, purpose=stream.purpose
    )


def draw_binomial(stream, shape, counts, probs, dtype):
    """Draw numbers of successes in ``counts`` trials."""
    return random_binomial(
        stream.state, convert_to_tensor(counts), convert_to_tensor(probs), shape=shape,
        dtype=dtype, purpose=stream.purpose,
    )  # fmt: skip


def draw_shuffled(stream, value):
    """Shuffle the rows; return a scalar unchanged."""
    value = convert_to_tensor(value)
    if not value.shape.rank:
        return value
    with devices.use_module(module_of(value)):
        rows = random_permutation(
            stream.state, count=value.array.shape[0], purpose=stream.purpose
        )
    return getitem(value, rows)


def checked_floating(who, dtype):
    """Return the dtype, which must be floating."""
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(f"{who}: dtype must be floating, got {dtype.name}")
    return dtype


def has_value(x):
    """Return whether ``x`` has a concrete value: neither traced nor mapped."""
    return not isinstance(x, Tensor) or devices.is_array(x.array)


def _drawn(dtype):
    """Return the dtype in which NumPy draws."""
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def _is_number(value):
    return isinstance(value, (int, float, np.floating, np.integer))


def _scaled(values, dtype, factor, shift):
    factor, shift = (_beside(v, values.dtype) for v in (factor, shift))
    return cast(values * factor + shift, dtype)


def _beside(value, dtype):
    """Return a number unchanged, and a tensor in the dtype of the draws."""
    return cast(value, dtype) if is_tensor(value) else value


# ------------------------------------------------- how a gamma draw depends on alpha


@elementwise(no_gradient=("sample",))
def _random_gamma(xp, alpha: TensorLike, sample: TensorLike):
    """Return ``sample``, as a function of ``alpha`` at a fixed quantile."""
    return sample + xp.zeros_like(alpha)


@_random_gamma.vjp("alpha")
def _(g, alpha, sample):
    return zero_safe_multiply(g, random_gamma_grad(alpha, sample))


@elementwise
def random_gamma_grad(xp, alpha: TensorLike, sample: TensorLike):
    """Derivative of a gamma draw by ``alpha``: ``-(dP / dalpha) / density``.

    ``P`` is the cumulative distribution at ``sample``: the draw moves so that its
    quantile stays fixed. It is computed on the host, in float64, by the power series of
    ``P`` (no cancellation except in the far tail), or for large ``alpha`` by the
    Cornish-Fisher expansion.
    """
    a, x = np.broadcast_arrays(devices.to_numpy(alpha), devices.to_numpy(sample))
    a, x = a.astype(np.float64), x.astype(np.float64)
    large = a > 4000
    with np.errstate(all="ignore"):
        slopes = _slope_by_series(np.where(large, 1.0, a), np.where(large, 1.0, x))
        if large.any():
            slopes = np.where(large, _slope_of_large(a, x), slopes)
    slopes = np.asarray(slopes, alpha.dtype)
    return slopes if xp is np else xp.asarray(slopes)


def _slope_by_series(a, x):
    # P = density * x / a * s with s = sum of t[n], t[n] = t[n - 1] * x / (a + n), t[0] = 1;
    # the density and the gamma function cancel. `ds` is the derivative of s by a.
    term, s, ds, harmonic, n = np.ones_like(x), np.ones_like(x), 0.0, 0.0, 0
    while (term > 1e-17 * s).any():
        n += 1
        harmonic = harmonic + 1 / (a + n)
        term = term * (x / (a + n))
        s, ds = s + term, ds - term * harmonic
    exponent = np.log(x) - digamma.primitive.kernel(np, a + 1.0)
    return np.where(x > 0, -x / a * (exponent * s + ds), 0.0)


def _slope_of_large(a, x):
    # A draw by the normal deviate w of its quantile: Fisher & Cornish, "The percentile
    # points of distributions having known cumulants" (1960), and its derivative by a.
    root = np.sqrt(a)
    w = (x - a) / root
    for _ in range(12):  # a contraction by 2 w / (3 root)
        rest = (w**2 - 1) / 3 + (w**3 - 7 * w) / (36 * root)
        rest = rest - (3 * w**4 + 7 * w**2 - 16) / (810 * a)
        w = (x - a - rest) / root
    slope = 1 + w / (2 * root) - (w**3 - 7 * w) / (72 * a * root)
    return slope + (3 * w**4 + 7 * w**2 - 16) / (810 * a**2)


@random_gamma_grad.vjp("sample")
def _(g, alpha, sample, out):
    by_alpha = log(sample) - digamma(alpha)  # the slopes of the log density
    by_sample = (alpha - 1.0) / sample - 1.0
    return -zero_safe_multiply(g, by_alpha + out * by_sample)


@random_gamma_grad.vjp("alpha")
def _(g):
    raise GradientLookupError("random_gamma_grad", "RandomGammaGrad", "alpha")
