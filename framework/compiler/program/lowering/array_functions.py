"""NumPy's functions on traced arrays: each appends instructions, or raises `NotTraceable`.

A handler is called with a `Builder` and the arguments of the function.
"""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tapewright.core.dtypes import kind_of

from ..instructions.array_instructions import Contract, Copy, Map
from ..instructions.scalar_functions import cast, where


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
    """``np.matmul``; for matrices ``np.dot``, which has less call overhead."""
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
    return builder.emit(Contract(function, operands, builder.node), shape, a.dtype)


# ------------------------------------------------------------------- reductions, copies


def _reduction(ufunc):
    def handler(builder, x, axis=None, dtype=None, out=None, keepdims=False, **initial):
        if initial:
            raise NotTraceable
        return builder.reduce(ufunc, builder.traced(x), axis, dtype, out, keepdims)

    return handler


def copy_into(x, out=None):
    """Copy ``x`` into C order."""
    if out is None:
        return x.copy(order="C")
    out[...] = x
    return out


def join_into(*values, axis, out=None):
    """Concatenate ``values`` along ``axis``."""
    return np.concatenate(values, axis, out)


def copy_array(builder, x):
    """Return a copy of an array in C order."""
    return builder.emit(Copy(copy_into, (x.buffer,), builder.node), x.shape, x.dtype)


def cast_to(builder, x, dtype):
    """Return an array in another dtype."""
    if x.dtype.kind == "c" or kind_of(dtype) not in "biufc":
        raise NotTraceable
    instruction = Map(cast, (x.buffer,), builder.node, {"dtype": dtype})
    return builder.emit(instruction, x.shape, dtype)


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
        if not hasattr(each, "dtype") or each.dtype != dtype:  # None equals float64
            traced = hasattr(each, "buffer")
            each = cast_to(builder, each, dtype) if traced else np.asarray(each, dtype)
        operands.append(builder.buffer(each))
    shape = np.broadcast_shapes(*[a.shape for a in operands])
    return builder.entrywise(where, tuple(operands), shape, dtype)


def _vdot(builder, a, b):
    if a.dtype.kind == "c":
        raise NotTraceable
    if a is b:
        a = b = builder.unshaped(a)
    return builder.reduce(np.add, a * b, None, None, None, False)


def _moveaxis(builder, x, source, destination):
    source = normalize_axis_tuple(source, x.ndim)
    destination = normalize_axis_tuple(destination, x.ndim)
    order = [i for i in range(x.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return x.transpose(order)


def _flip(builder, x, axis=None):
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    turned = slice(None, None, -1)
    return x[tuple([turned if i in axes else slice(None) for i in range(x.ndim)])]


def _broadcast_arrays(builder, *arrays):
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    return tuple([x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays])


def _concatenate(builder, arrays, axis=0):
    shape, (axis,) = list(arrays[0].shape), normalize_axis_tuple(axis, arrays[0].ndim)
    shape[axis] = sum([x.shape[axis] for x in arrays])
    operands = [builder.buffer(x) for x in arrays]
    if len({a.dtype for a in operands}) > 1:
        raise NotTraceable
    return builder.emit(
        Copy(join_into, operands, builder.node, axis), tuple(shape), operands[0].dtype
    )


def _stack(builder, arrays, axis=0):
    (at,) = normalize_axis_tuple(axis, arrays[0].ndim + 1)
    return _concatenate(builder, [_expand_dims(builder, x, at) for x in arrays], at)


def _roll(builder, x, shift, axis=None):
    if not x.ndim:
        raise NotTraceable
    if axis is None:
        return _roll(builder, x.reshape(-1), shift, 0).reshape(x.shape)
    axes = normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    if not axes:  # NumPy raises
        raise NotTraceable
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    for by, at in zip(shifts, axes, strict=True):
        by = by % max(x.shape[at], 1)
        if by:
            lead = (slice(None),) * at
            parts = x[(*lead, slice(-by, None))], x[(*lead, slice(None, -by))]
            x = _concatenate(builder, parts, at)
    return x


def _clip(builder, x, low, high, out=None):
    return builder.into(out, np.minimum(np.maximum(x, low), high))


def _triangle(make):
    def handler(builder, x, k=0):
        kept = make(np.ones(x.shape[-2:], bool), k)
        return _where(builder, kept, x, np.zeros((), x.dtype))

    return handler


LOOP_FUNCTIONS = {
    **FUNCTIONS,
    np.all: lambda builder, x, axis=None, keepdims=False: x.all(
        axis, keepdims=keepdims
    ),
    np.any: lambda builder, x, axis=None, keepdims=False: x.any(
        axis, keepdims=keepdims
    ),
    np.broadcast_arrays: _broadcast_arrays,
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.flip: _flip,
    np.moveaxis: _moveaxis,
    np.prod: _reduction(np.multiply),
    np.roll: _roll,
    np.stack: _stack,
    np.tril: _triangle(np.tril),
    np.triu: _triangle(np.triu),
    np.vdot: _vdot,
    np.where: _where,
}
