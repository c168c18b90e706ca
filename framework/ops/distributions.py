"""How draws of a NumPy generator become tensors, and how they depend on parameters.

The functions take NumPy's generator first; `random` says whose it is. Drawing is done on
the host. A gradient passes to ``mean``, ``stddev``, floating bounds and ``beta`` through
the ops that scale a draw, and to the ``alpha`` of a gamma draw implicitly.
"""

import numpy as np

from .. import backend, dtypes
from ..errors import GradientLookupError, ShapeError
from ..primitive import Shape
from ..rules import elementwise
from ..tensor import convert_to_tensor, is_tensor, new_tensor
from .conversion import cast
from .elementwise import _times, log, maximum
from .shape import broadcast_to
from .special import digamma

__all__ = [
    "as_drawn",
    "checked_bounds",
    "checked_floating",
    "checked_logits",
    "checked_rates",
    "draw_binomial",
    "draw_categorical",
    "draw_gamma",
    "draw_integers",
    "draw_normal",
    "draw_poisson",
    "draw_shuffled",
    "draw_truncated_normal",
    "draw_uniform",
    "random_gamma_grad",
]


def draw_normal(rng, shape, mean, stddev, dtype):
    """Normally distributed numbers."""
    values = rng.standard_normal(Shape(shape), _drawn(dtype))
    return _scaled(values, dtype, stddev, mean)


def draw_truncated_normal(rng, shape, mean, stddev, dtype):
    """The same within two ``stddev`` of ``mean``: what is beyond is drawn again."""
    values = rng.standard_normal(Shape(shape), _drawn(dtype))
    outside = np.abs(values) > 2
    while outside.any():
        values[outside] = rng.standard_normal(int(outside.sum()), _drawn(dtype))
        outside = np.abs(values) > 2
    return _scaled(values, dtype, stddev, mean)


def checked_bounds(who, minval, maxval, dtype):
    """The bounds and the dtype of uniform numbers; None and None for all integers."""
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer:
        dtype = checked_floating(who, dtype)
        return 0 if minval is None else minval, 1.0 if maxval is None else maxval, dtype
    if minval is None and maxval is None:
        return None, None, dtype
    if minval is None or maxval is None:
        raise ValueError(
            f"{who}: maxval must be given for integers, and minval with it, got minval "
            f"{minval} and maxval {maxval}"
        )
    minval, maxval = int(minval), int(maxval)
    if not minval < maxval:
        raise ValueError(
            f"{who}: minval must be below maxval for integers, got {minval} and {maxval}"
        )
    return minval, maxval, dtype


def draw_uniform(rng, shape, minval, maxval, dtype):
    """Numbers between bounds that `checked_bounds` gave."""
    shape = Shape(shape)
    if minval is None:
        return as_drawn(draw_integers(rng, dtype, shape), dtype)
    if dtype.is_integer:
        return as_drawn(rng.integers(minval, maxval, shape, dtype.dtype), dtype)
    values = rng.random(shape, _drawn(dtype))
    if not (_is_number(minval) and _is_number(maxval)):
        low, high = (
            cast(convert_to_tensor(v, dtype_hint=dtype), values.dtype)
            for v in (minval, maxval)
        )
        return _scaled(values, dtype, high - low, low)
    scaled = _on_the_host(values, np.subtract(maxval, minval, dtype=np.float64), minval)
    scaled = np.asarray(scaled, dtype.dtype)
    # What is rounded up to maxval stays below; from 0 on only float16 can be.
    if minval < maxval and (minval or dtype == dtypes.float16):
        kind = dtype.dtype.type
        np.minimum(scaled, np.nextafter(kind(maxval), kind(minval)), out=scaled)
    return as_drawn(scaled, dtype)


def draw_integers(rng, dtype, shape):
    """Integers from all that the dtype can hold."""
    return rng.integers(dtype.min, dtype.max, shape, dtype.dtype, endpoint=True)


def checked_logits(logits):
    """Logits ``[batch, classes]`` as a tensor."""
    logits = convert_to_tensor(logits)
    if len(logits.shape) != 2:
        raise ShapeError(
            "categorical", "logits must be [batch, classes]", logits=logits
        )
    return logits


def draw_categorical(rng, logits, num_samples, dtype):
    """Classes by the Gumbel trick: the largest of logits and noise."""
    batch, classes = logits.shape
    values = _host("categorical", "logits", logits).astype(np.float64)
    noise = rng.gumbel(size=(batch, int(num_samples), classes))
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    return as_drawn((values[:, None] + noise).argmax(axis=-1), dtype)


def checked_rates(who, alpha, beta, dtype):
    """The arguments of a gamma distribution as tensors of the dtype."""
    dtype = checked_floating(who, dtype)
    alpha = convert_to_tensor(alpha, dtype=dtype)
    if (_host(who, "alpha", alpha) < 0).any():
        raise ValueError(f"{who}: alpha must not be negative, got {alpha}")
    return alpha, None if beta is None else convert_to_tensor(beta, dtype=dtype)


def draw_gamma(rng, shape, alpha, beta):
    """Gamma draws, as functions of ``alpha`` and ``beta``; never 0."""
    alpha, dtype = broadcast_to(alpha, shape), alpha.dtype
    drawn = rng.standard_gamma(_host("gamma", "alpha", alpha), shape)
    sample = _random_gamma(alpha, as_drawn(drawn, dtype))
    sample = sample if beta is None else sample / beta
    return maximum(sample, dtype.dtype.type(np.finfo(dtype.dtype).tiny))


def draw_poisson(rng, shape, lam, dtype):
    """Whole numbers with mean ``lam``."""
    means = np.asarray(_host("poisson", "lam", lam), np.float64)
    if not (means >= 0).all():
        raise ValueError(f"poisson: lam must not be negative, got {lam}")
    return as_drawn(rng.poisson(means, shape), dtypes.as_dtype(dtype))


def draw_binomial(rng, shape, counts, probs, dtype):
    """Successes of ``counts`` trials."""
    counts = _host("binomial", "counts", convert_to_tensor(counts)).astype(np.int64)
    probs = np.asarray(_host("binomial", "probs", convert_to_tensor(probs)), np.float64)
    if (counts < 0).any() or not ((probs >= 0) & (probs <= 1)).all():
        raise ValueError(
            "binomial: counts must not be negative, and probs from 0 to 1, got counts "
            f"{counts} and probs {probs}"
        )
    return as_drawn(rng.binomial(counts, probs, Shape(shape)), dtypes.as_dtype(dtype))


def draw_shuffled(rng, value):
    """The rows in another order; a scalar as it is."""
    value = convert_to_tensor(value)
    if not value.shape.rank:
        return value
    return value[rng.permutation(value.shape[0])]


def checked_floating(who, dtype):
    """The dtype, if it is floating."""
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(f"{who}: dtype must be floating, got {dtype.name}")
    return dtype


def _drawn(dtype):
    """The dtype in which NumPy draws."""
    return np.float64 if dtype == dtypes.float64 else np.float32


def _is_number(value):
    return isinstance(value, (int, float, np.floating, np.integer))


def _scaled(values, dtype, factor, shift):
    if _is_number(factor) and _is_number(shift):
        return as_drawn(_on_the_host(values, factor, shift), dtype)
    factor, shift = (_beside(v, values.dtype) for v in (factor, shift))
    return cast(as_drawn(values, dtypes.as_dtype(values.dtype)) * factor + shift, dtype)


def _beside(value, dtype):
    """A number, or a tensor in the dtype of the draws."""
    return cast(value, dtype) if is_tensor(value) else value


def _on_the_host(values, factor, shift):
    if factor != 1:
        values = values * values.dtype.type(factor)
    if shift:
        values = values + values.dtype.type(shift)
    return values


def _host(who, name, tensor):
    """The values of a tensor in host memory."""
    if not backend.is_array(tensor.array):
        raise TypeError(
            f"{who}: the draws depend on the values of {name}, so that {name} can neither "
            "be mapped nor traced"
        )
    return backend.to_numpy(tensor.array)


def as_drawn(values, dtype):
    """Numbers drawn on the host as a tensor of the current device."""
    array = np.asarray(values, dtype.dtype)
    module = backend.current_module()
    return new_tensor(array if module is np else module.asarray(array))


# ------------------------------------------------- how a gamma draw depends on alpha


@elementwise(name="random_gamma", type_name="RandomGamma")
def _random_gamma(xp, alpha, sample):
    """``sample``, as a function of ``alpha`` at a fixed quantile."""
    return sample + xp.zeros_like(alpha)


_random_gamma.no_gradient("sample")


@_random_gamma.vjp("alpha")
def _(g, alpha, sample):
    return _times(g, random_gamma_grad(alpha, sample))


@elementwise(type_name="RandomGammaGrad")
def random_gamma_grad(xp, alpha, sample):
    """The derivative of a gamma draw by ``alpha``: ``-(dP / dalpha) / density``.

    ``P`` is the cumulative distribution at ``sample``: where the quantile stays, the draw
    moves. On the host, in float64, by the power series of ``P`` (no cancellation but in
    the far tail), or where ``alpha`` is large by Cornish and Fisher's expansion.
    """
    a, x = np.broadcast_arrays(backend.to_numpy(alpha), backend.to_numpy(sample))
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
    return -_times(g, by_alpha + out * by_sample)


@random_gamma_grad.vjp("alpha")
def _(g):
    raise GradientLookupError("random_gamma_grad", "RandomGammaGrad", "alpha")
