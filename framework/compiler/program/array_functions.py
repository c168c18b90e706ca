"""NumPy's functions on traced arrays: each appends instructions, or is refused.

A handler gets a `Builder`, then the arguments of the function.
"""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .array_instructions import Contract, Copy, Map
from .scalar_functions import cast, where

__all__ = [
    "FUNCTIONS",
    "LOOP_FUNCTIONS",
    "NotTraceable",
    "UFUNCS",
    "casted",
    "copied",
    "matmul",
]


class NotTraceable(Exception):
    """A kernel, or a call in it, cannot be traced."""


UFUNCS = {
    getattr(np, name)
    for name in """add subtract multiply divide true_divide floor_divide negative positive
    power float_power remainder fmod absolute fabs rint sign heaviside conjugate exp exp2
    log log2 log10 expm1 log1p sqrt square cbrt reciprocal sin cos tan arcsin arccos arctan
    arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh greater greater_equal less
    less_equal not_equal equal logical_and logical_or logical_xor logical_not maximum
    minimum fmax fmin isfinite isinf isnan signbit copysign nextafter floor ceil trunc
    logaddexp bitwise_and bitwise_or bitwise_xor invert left_shift right_shift""".split()
}


# ---------------------------------------------------------------------------- products


def dot(builder, a, b, out=None):
    """``np.dot`` of matrices and vectors."""
    ranks = len(a.shape), len(b.shape)
    if ranks not in ((2, 2), (1, 2), (2, 1)) or a.shape[-1] != b.shape[0]:
        raise NotTraceable
    if 1 in (a.size, b.size):  # `np.dot` scales by a lone entry, and 0 drops NaN
        raise NotTraceable
    shape = a.shape[:-1] + b.shape[1:]
    return builder.into(out, _product(builder, np.dot, a, b, shape))


def matmul(builder, a, b):
    """``np.matmul``; of matrices as ``np.dot``, which is called faster."""
    if len(a.shape) < 3 and len(b.shape) < 3:
        return dot(builder, a, b)
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise NotTraceable
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-1])
    return _product(builder, np.matmul, a, b, shape)


def _product(builder, function, a, b, shape):
    if a.dtype != b.dtype or a.dtype.kind not in "fc":
        raise NotTraceable
    operands = (builder.buffer(a), builder.buffer(b))
    return builder.made(Contract(function, operands, builder.node), shape, a.dtype)


# ------------------------------------------------------------------- reductions, copies


def _reduction(ufunc):
    def handler(builder, x, axis=None, dtype=None, out=None, keepdims=False, **initial):
        if initial:
            raise NotTraceable
        return builder.reduce(ufunc, builder.traced(x), axis, dtype, out, keepdims)

    return handler


def copy_into(x, out=None):
    """``x`` in C order."""
    if out is None:
        return x.copy(order="C")
    np.copyto(out, x)
    return out


def copied(builder, x):
    """A copy of an array in C order."""
    return builder.made(Copy(copy_into, (x.buffer,), builder.node), x.shape, x.dtype)


def casted(builder, x, dtype):
    """An array in another dtype."""
    if x.dtype.kind == "c" or dtype.kind not in "biufc":
        raise NotTraceable
    instruction = Map(cast, (x.buffer,), builder.node, {"dtype": dtype})
    return builder.made(instruction, x.shape, dtype)


def _like(make):
    def handler(builder, x, dtype=None, shape=None, **keywords):
        if keywords:
            raise NotTraceable
        shape = x.shape if shape is None else shape
        return make(shape, x.dtype if dtype is None else dtype)

    return handler


# ------------------------------------------------------------------------------- views


def _broadcast_to(builder, x, shape, subok=False):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return builder.view(np.broadcast_to, builder.traced(x), shape, (shape,))


def _expand_dims(builder, x, axis):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = normalize_axis_tuple(axes, x.ndim + len(axes))
    rest = iter(x.shape)
    shape = [1 if i in axes else next(rest) for i in range(x.ndim + len(axes))]
    return x.reshape(shape)


def _squeeze(builder, x, axis=None):
    axes = [i for i, n in enumerate(x.shape) if n == 1]
    if axis is not None:
        axes = normalize_axis_tuple(axis, x.ndim)
    return x.reshape([n for i, n in enumerate(x.shape) if i not in axes])


FUNCTIONS = {
    np.dot: dot,
    np.sum: _reduction(np.add),
    np.max: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.zeros_like: _like(np.zeros),
    np.ones_like: _like(np.ones),
    np.broadcast_to: _broadcast_to,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.reshape: lambda builder, x, shape: x.reshape(shape),
    np.transpose: lambda builder, x, axes=None: x.transpose(*(axes or ())),
    np.swapaxes: lambda builder, x, a, b: x.swapaxes(a, b),
    np.shape: lambda builder, x: x.shape,
    np.ndim: lambda builder, x: x.ndim,
}


# ------------------------------------------------- known to targets that compile loops


def _where(builder, condition, x, y):
    if condition.dtype != bool:
        raise NotTraceable
    dtype = np.result_type(*[getattr(a, "dtype", a) for a in (x, y)])
    operands = [builder.buffer(condition)]
    for each in (x, y):
        if getattr(each, "dtype", None) != dtype:
            traced = hasattr(each, "buffer")
            each = casted(builder, each, dtype) if traced else np.asarray(each, dtype)
        operands.append(builder.buffer(each))
    shape = np.broadcast_shapes(*[a.shape for a in operands])
    return builder.entrywise(where, tuple(operands), shape, dtype)


def _vdot(builder, a, b):
    if a.dtype.kind == "c":
        raise NotTraceable
    if a is b:
        a = b = builder.unshaped(a)
    return builder.reduce(np.add, a * b, None, None, None, False)


LOOP_FUNCTIONS = {
    **FUNCTIONS,
    np.where: _where,
    np.vdot: _vdot,
}
