"""Gates of recurrent networks, stored so that no digit is lost where they saturate.

A sigmoid that has been rounded to 1 has no digit of ``1 - s`` left, and tanh near 1 and
-1 no digit of ``1 - n ** 2``; derivatives consist of these. So a gate is stored in
another form where it is larger than `FAR`, in as much memory:

    a sigmoid s as s - 1, which is negative
    tanh(x)     as x, which is larger than 1

NumPy does the extra work only on the entries that are so far out. The bits are the
same.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike

from ..array.creation import ones_like
from ..math.comparison import greater, less, where
from ..math.elementwise import abs
from ..math.trigonometry import tanh, tanh_slope

FAR = 1 - 2.0**-10  # from here on more than 10 bits of the difference from 1 are lost
_SURELY_NEAR, _SLOPE_AT_FAR = 3.8, 2.0**-9  # the argument is a bit less there


# ------------------------------------------------------------------------ for kernels


def keep_sigmoids(xp, s, decay):
    """Replace ``s = 1 / (1 + decay)`` by its stored form; return whether one is far out."""
    tiny = np.finfo(s.dtype).tiny  # what is kept is to stay below 0
    if xp is not np:
        xp.copyto(s, -xp.maximum(decay * s, tiny), where=s > FAR)
    elif not _largest(s) <= FAR:
        at = true_entries(s > FAR)
        s[at] = -np.maximum(decay[at] * s[at], tiny)
    else:
        return False
    return True


def kept_tanhs(xp, n, x):
    """Return the stored form of ``n = tanh(x)``."""
    if xp is np and _largest(n) <= FAR and smallest(n) >= -FAR:
        return n
    return xp.where(xp.abs(n) > FAR, x, n)


def are_near(sigmoids=(), tanhs=(), arguments=()):
    """Return whether no stored gate, and no tanh of the ``arguments``, is far out or NaN.

    These are NumPy arrays: a GPU would have to synchronize.
    """
    ends = [(v, 1) for v in tanhs] + [(x, _SURELY_NEAR) for x in arguments]
    return all([y.min(initial=0) >= 0 for y in sigmoids]) and all(
        [x.max(initial=0) <= end and x.min(initial=0) >= -end for x, end in ends]
    )


def _largest(x):
    """Return the maximum, 0 if empty; for few numbers argmax takes half the time of max."""
    return x.item(x.argmax()) if x.size else 0.0


def smallest(x):
    """Return the minimum, 0 if empty."""
    return x.item(x.argmin()) if x.size else 0.0


def sigmoid_parts(xp, y, far):
    """Return ``s`` and ``1 - s`` of a stored sigmoid."""
    if xp is not np:
        return xp.where(y < 0, 1 + y, y), xp.where(y < 0, -y, 1 - y)
    rest = 1 - y
    if far:
        at = true_entries(y < 0)
        rest[at] = -y[at]
        y = y.copy()
        y[at] += 1
    return y, rest


def tanh_parts(xp, v, far):
    """Return ``n`` and ``1 - n ** 2`` of a stored tanh."""
    slope = 1 - v * v
    if xp is not np:
        n, far_slope = tanh_and_slope(xp, v)
        return xp.where(slope < 0, n, v), xp.where(slope < 0, far_slope, slope)
    if far:
        at = true_entries(slope < 0)
        n = v.copy()
        n[at], slope[at] = np.tanh(v[at]), _far_slope(v[at])
        return n, slope
    return v, slope


def tanh_and_slope(xp, x, far=True):
    """Return ``tanh(x)`` and its derivative."""
    if xp is np:
        n = np.tanh(x)
        return n, slope_of_tanh(n, x) if far else 1 - n * n
    # one exponential for both: m / (m + 2) and 4 (m + 1) / (m + 2)^2
    bound = math.log(np.finfo(x.dtype).max) * (1 - 1e-6)
    m = xp.expm1(xp.minimum(xp.abs(x) * 2, bound))
    share = 1 / (m + 2)
    return xp.copysign(m * share, x), (m + 1) * share * share * 4


def slope_of_tanh(n, x):
    """Return the derivative of ``n = tanh(x)``, NumPy arrays."""
    slope = 1 - n * n
    at = np.flatnonzero(slope < _SLOPE_AT_FAR)
    slope.reshape(-1)[at] = _far_slope(x.reshape(-1)[at])
    return slope


def true_entries(mask):
    """Return ``np.nonzero`` of a matrix, faster where few entries are true."""
    return np.divmod(np.flatnonzero(mask), mask.shape[1])


def _far_slope(x):
    small = np.exp(np.abs(x) * -2)
    return 4 * small / (1 + small) ** 2


# -------------------------------------------------------------------------- for rules


def sigmoids(y):
    """Return ``s`` and ``1 - s`` of a stored sigmoid."""
    far = less(y, 0.0)
    return where(far, 1.0 + y, y), where(far, -y, 1.0 - y)


def tanhs(v):
    """Return a stored tanh ``n``, its slope, and two derivatives.

    These are ``n`` by ``v``, and ``v`` by the argument: one is the slope, the other 1.
    """
    far, one = greater(abs(v), 1.0), ones_like(v)
    inner = where(far, v, 1.0)
    n = where(far, tanh(inner), v)
    slope = where(far, tanh_slope(one, inner), 1.0 - v * v)
    return n, slope, where(far, slope, one), where(far, one, slope)


# ------------------------------------------------------------------------- for layers


@elementwise(floating=True, no_gradient=("x",), cost=(4, 1))
def rest_of_sigmoid(xp, s: TensorLike, x: TensorLike):
    """Compute ``1 - s`` where ``s`` is ``sigmoid(x)``, with all digits.

    It is differentiated as a function of ``s``: its own derivative has its digits.
    """
    rest = s.dtype.type(1) - s
    if xp is np and s.shape == x.shape and smallest(rest) >= 1 - FAR:
        return rest
    return xp.where(s > FAR, xp.exp(-xp.abs(x)) * s, rest)


@rest_of_sigmoid.vjp("s")
def _(g):
    return -g
