"""Kernels that approximate functions: double precision, large arrays in parts, pieces.

Such a kernel computes in float64 and returns the dtype of its inputs; where pieces of a
domain have different formulas, NumPy computes each on its entries alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Unpack

import numpy as np

from tapewright.core.hardware.parallel import parallel_for
from tapewright.core.op_definition.traits import ElementwiseTraits
from tapewright.core.rules import elementwise
from tapewright.core.tensor import Tensor
from tapewright.core.typing import Kernel, Op, P


def special_function(
    **traits: Unpack[ElementwiseTraits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an `elementwise` op of real numbers, with infinities as valid results."""
    own = ElementwiseTraits(kinds="f", ignores_float_errors=True, cost=(0, 1))
    return elementwise(**own | traits)


_BLOCK = 1 << 16  # entries that one thread works on at once: they stay in the cache
WHOLE = 2 * _BLOCK  # up to here copies of results cost more than the cache saves


def in_blocks(compute, *inputs):
    """Apply ``compute`` to NumPy arrays of one shape; a large one is processed in parts."""
    first = inputs[0]
    if first.size <= _BLOCK or not all([x.flags.c_contiguous for x in inputs]):
        return compute(*inputs)
    flat = [x.reshape(-1) for x in inputs]
    out = np.empty(first.size, first.dtype)

    def work(start):
        part = slice(start, start + _BLOCK)
        out[part] = compute(*[x[part] for x in flat])

    parallel_for(work, range(0, first.size, _BLOCK), first.size)
    return out.reshape(first.shape)


def in_parts(kernel):
    """Wrap a ``kernel`` of NumPy arrays with `in_blocks`, where all have one shape."""

    def parted(xp, x, *more):
        if x.size > WHOLE and all([each.shape == x.shape for each in more]):
            return in_blocks(partial(kernel, xp), x, *more)
        return kernel(xp, x, *more)

    return parted


def in_double(xp, compute, *inputs):
    """Compute in float64 on inputs that broadcast; return the result in their dtype."""
    dtype = inputs[0].dtype
    wide = [x.astype(xp.float64, copy=False) for x in inputs]
    if len(wide) > 1:
        wide = [x + 0.0 for x in xp.broadcast_arrays(*wide)]  # each in one piece
    if xp is np:
        result = in_blocks(partial(compute, np), *map(np.asarray, wide))
    else:
        result = compute(xp, *wide)
    return result.astype(dtype, copy=False)


def either(xp, mask, this, that, *inputs):
    """Compute ``this(*inputs)`` where ``mask`` is true, else ``that(*inputs)``.

    On NumPy each sees only its entries. A GPU computes both everywhere: to separate the
    entries it would have to synchronize.
    """
    if xp is not np:
        return xp.where(mask, this(*inputs), that(*inputs))
    if mask.all():
        return this(*inputs)
    if not mask.any():
        return that(*inputs)
    out, rest = np.empty(mask.shape), ~mask
    out[mask] = this(*[x[mask] for x in inputs])
    out[rest] = that(*[x[rest] for x in inputs])
    return out


def polynomial(x, coefficients):
    """Evaluate ``c[0] * x ** n + ... + c[n]`` by Horner's scheme, in place."""
    value = x * coefficients[0]
    for c in coefficients[1:-1]:
        value += c
        value *= x
    value += coefficients[-1]
    return value


def ratio(x, above, below):
    """Return the quotient of two polynomials."""
    return polynomial(x, above) / polynomial(x, below)
