"""Pooling: the maximum or the mean of each window.

Both are separable: the maximum over a window is the maximum over the maxima of its
rows, and likewise for means. The primitives therefore pool along one axis, in memory of
any order, and pooling over several axes composes them, the last axis first; of equal
maxima, the first of the window then receives the gradient, as in TensorFlow. Spreading
cotangents to the maxima and picking entries at the maxima are adjoint to each other, as
are taking and spreading means, which provides derivatives of every order.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias, Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dispatch import composite
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    cast_advice,
)
from tapewright.core.hardware.parallel import parallel_for
from tapewright.core.op_definition.costs import per_input, size_of
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    all_mapped,
    broadcast_shape,
    check_choice,
    checked_broadcast,
    diagonal_along_axis,
    normalize_axis,
)
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    Axis,
    DTypeLike,
    Kernel,
    Op,
    P,
    ShapeLike,
    TensorLike,
)

from ..array.conversion import cast
from ..array.shape import broadcast_to, sum_to_shape
from ..math.comparison import masked
from .windows import (
    CHANNELS_LAST,
    Margin,
    as_margin,
    at,
    is_everywhere,
    resized,
    spatial_numbers,
    spatial_op,
    taps,
    taps_along,
    window_arguments,
    window_positions,
)

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "pool",
]


# Numbers of an array that one thread works on at a time, so that they stay in the cache.
PART = 1 << 18
# Numbers of an array from which on parts pay where no window has a margin.
LARGE = 1 << 20


def as_windows(value):
    """Return plain values ``(axis, size, stride, margins, dilation)`` for each axis."""
    return tuple([(*map(int, w[:3]), as_margin(w[3]), int(w[4])) for w in value])


Windows: TypeAlias = Annotated[Sequence[tuple[Any, ...]], as_windows]


def parts_in_cache(xp, axis, *arrays):
    """Yield indices of parts of arrays, such that a part of the first fits the cache.

    The axes that lie far apart in memory are cut, except ``axis``, which counts from
    the end. Arrays with different other axes are treated as one part.
    """
    first = arrays[0]
    shapes = {resized(x.shape, axis, 0) for x in arrays}
    parts, size = [slice(None)] * first.ndim, first.size
    if xp is not np or len(shapes) > 1 or size <= PART:
        yield ...
        return
    order = sorted(range(first.ndim), key=lambda a: -abs(first.strides[a]))
    order.remove(first.ndim + axis)
    cut = [[part] for part in parts]
    for a in order:
        extent = first.shape[a]
        step = max(1, PART * extent // size)
        cut[a] = [slice(i, i + step) for i in range(0, extent, step)]
        size = size * min(step, extent) // extent
        if size <= PART:
            break
    yield from itertools.product(*cut)


def _combined_everywhere(ufunc, input, axis, slices, out=None):
    """Combine each tap's entries, where every tap meets an entry in each window."""
    parts = [input[at(axis, seen)] for _, _, seen in slices]
    if len(parts) == 1:
        return parts[0]
    out = ufunc(parts[0], parts[1], out=out)
    for part in parts[2:]:
        ufunc(out, part, out=out)
    return out


def _combined(ufunc, input, out, axis, slices, neutral):
    """Combine each tap's entries into ``out``, from a neutral entry for each window."""
    if is_everywhere(slices, out.shape[axis]) and len(slices) > 1:
        _combined_everywhere(ufunc, input, axis, slices, out)
        return
    out[...] = neutral
    for _, windows, seen in slices:
        part = out[at(axis, windows)]
        ufunc(part, input[at(axis, seen)], out=part)


def _pooled(input, axis, size, stride, padding, dilation):
    normalize_axis("pooling", axis, input.shape.rank)
    _, _, count = window_positions(input.shape[axis], size, stride, padding, dilation)
    return TensorSpec(resized(tuple(input.shape), axis, count), input.dtype)


# ------------------------------------------------------------------------------ maxima


def _cost(inputs, outputs, size, **attributes):
    return size_of(outputs[0]) * size


@spatial_op(name="window_max", type_name="MaxPool", kinds="iuf", cost=_cost)
def window_max_p(
    xp,
    input: TensorLike,
    axis: Axis,
    size: int,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """Maximum of each window along ``axis``, which counts from the end."""
    count, slices = taps_along(input, axis, size, stride, padding, dilation)
    if is_everywhere(slices, count) and input.size < LARGE:
        return _combined_everywhere(xp.maximum, input, axis, slices)
    out = xp.empty_like(input, shape=resized(input.shape, axis, count))
    least = -np.inf if out.dtype.kind == "f" else np.iinfo(out.dtype).min

    def pool(part):
        _combined(xp.maximum, input[part], out[part], axis, slices, least)

    parallel_for(pool, parts_in_cache(xp, axis, input, out), input.size)
    return out


window_max_p.infer(_pooled)


@window_max_p.vjp("input")
def _(g, input, out, axis, size, stride, padding, dilation):
    return spread_to_maxima_p(g, input, out, axis, size, stride, padding, dilation)


@primitive(
    name="add_to_maxima",
    kinds="f",
    ignores_float_errors=True,
    linear=[{"maxima", "bias"}],
    strict=True,
    no_gradient=("input",),
)
def add_to_maxima_p(
    xp, maxima: TensorLike, bias: TensorLike, input: TensorLike, windows: Windows
):
    """Compute the maxima of ``input + bias`` as ``maxima + bias``.

    ``maxima`` are the maxima of ``input``. Where the bias is +inf they are not enough:
    one entry of -inf makes the sum NaN.
    """
    if (bias == np.inf).any():
        return maxima_of_sum(xp, input, bias, windows)
    return maxima + bias


def maxima_of_sum(xp, input, bias, windows):
    """Maxima of ``input + bias`` over windows along one axis after another."""
    total = input + bias
    for window in windows:
        attributes = dict(zip(window_max_p.primitive.attributes, window, strict=True))
        total = window_max_p.primitive.kernel(xp, total, **attributes)
    return total


@add_to_maxima_p.infer
def _(maxima, bias, input, windows):
    pooled = TensorSpec(
        checked_broadcast("pooling", input.shape, bias.shape, input=input, bias=bias),
        input.dtype,
    )
    for window in windows:
        if len(window) != 5:
            raise ShapeError("pooling", f"a window has 5 numbers, got {window}")
        pooled = _pooled(pooled, *window)
    if not pooled.shape.is_compatible_with(maxima.shape):
        problem = f"the maxima of input must have shape {pooled.shape}"
        raise ShapeError("pooling", problem, maxima=maxima, input=input)
    return TensorSpec(maxima.shape, maxima.dtype)


@add_to_maxima_p.vjp("maxima")
def _(g):
    return g


@add_to_maxima_p.vjp("bias")
def _(g, bias_shape):
    return sum_to_shape(g, bias_shape)


def at_maxima(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator for ops at the first maximum of each window, linear in their first input."""
    own = Traits(
        same_dtype=("input", "maxima"), ignores_float_errors=True, cost=per_input(1),
        strict=True, no_gradient=("input", "maxima"), diagonal=diagonal_along_axis,
    )  # fmt: skip
    return primitive(**own | traits)


@at_maxima(name="spread_to_maxima", linear=[{"g"}])
def spread_to_maxima_p(
    xp,
    g: TensorLike,
    input: TensorLike,
    maxima: TensorLike,
    axis: Axis,
    size: int,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """Add each window's ``g`` at its first maximum, to zeros shaped like ``input``.

    Leading axes broadcast: mapped cotangents need no copies of the input.
    """
    count, slices = taps_along(input, axis, size, stride, padding, dilation)
    shape = tuple(broadcast_shape(g.shape, maxima.shape))
    if shape[axis] != count or maxima.shape[axis] != count:
        raise ValueError("shapes do not fit")  # `infer` says it better
    shape = resized(shape, axis, input.shape[axis])
    if xp is np and g.shape == maxima.shape:
        g, full = _in_order_of(g, input), xp.empty_like(input, g.dtype, shape=shape)
    else:
        full = xp.empty(shape, g.dtype)
    halves = in_halves(input.shape, g.dtype, axis, size, stride, padding, dilation)

    def spread(part):
        if halves and xp is np:
            spread_to_halves(g[part], input[part], out=full[part], axis=axis)
        elif halves:
            _spread_to_pairs(xp, g[part], input[part], full[part], axis)
        else:
            pieces = g[part], input[part], maxima[part]
            _spread_part(xp, *pieces, full[part], axis, slices)

    parallel_for(spread, parts_in_cache(xp, axis, full, input, maxima, g), full.size)
    return full


def _spread_part(xp, g, input, maxima, full, axis, slices):
    full[...] = 0
    g = g + g.dtype.type(0)  # without negative zeros, as sums from 0 are
    reached = set()
    for windows, seen, hits in _hits(xp, input, maxima, axis, slices):
        target, first = full[at(axis, seen)], seen.start % seen.step not in reached
        if first:
            _keep(xp, g[at(axis, windows)], hits, target)
            reached.add(seen.start % seen.step)
        else:
            target += _keep(xp, g[at(axis, windows)], hits)


def _spread_to_pairs(xp, g, input, full, axis):
    """Apply `spread_to_halves` to arrays of any array module."""
    count = input.shape[axis] // 2
    first, second = at(axis, slice(0, 2 * count, 2)), at(axis, slice(1, 2 * count, 2))
    wins, zero = input[first] >= input[second], xp.zeros((), g.dtype)
    full[first] = xp.where(wins, g, zero)
    full[second] = xp.where(wins, zero, g)
    full[at(axis, slice(2 * count, None))] = 0


def _hits(xp, input, maxima, axis, slices):
    """Return, for each tap, the windows that have their first maximum there."""
    free = xp.ones_like(maxima, bool)
    for _, windows, seen in slices:
        left = free[at(axis, windows)]
        hits = xp.equal(input[at(axis, seen)], maxima[at(axis, windows)])
        hits &= left
        left ^= hits
        yield windows, seen, hits


def _keep(xp, x, mask, out=None):
    """Return ``x`` where ``mask`` is true, else 0; by bits on NumPy if the dtype has them."""
    if xp is np and x.dtype.kind in "fiu":
        bits, integer = mask.view(np.int8), f"i{x.itemsize}"
        np.negative(bits, out=bits)  # all bits or none
        target = None if out is None else out.view(integer)
        return np.bitwise_and(x.view(integer), bits, out=target).view(x.dtype)
    kept = masked.primitive.kernel(xp, x, mask)
    if out is not None:
        out[...] = kept
    return kept


def in_halves(shape, dtype, axis, size, stride, padding, dilation=1):
    """Return whether windows of two tile an axis, as `spread_to_halves` requires."""
    if (size, stride, dilation) != (2, 2, 1) or dtype.kind not in "fiu":
        return False
    count, slices = taps(shape[axis], size, stride, padding, dilation)
    both = len(slices) == 2 and is_everywhere(slices, count)
    return both and slices[0][2].start == 0


def spread_to_halves(g, input, out=None, *, axis):
    """`spread_to_maxima` for windows of two, with a single comparison.

    A cotangent is kept or dropped by its bits, which is exact for infinities and NaN as
    well. ``out`` may be ``input`` itself, which is then overwritten.
    """
    count = input.shape[axis] // 2
    first, second = at(axis, slice(0, 2 * count, 2)), at(axis, slice(1, 2 * count, 2))
    if out is None:
        g = _in_order_of(g, input)
        shape = np.broadcast_shapes(g.shape, input[first].shape)
        shape = resized(shape, axis, input.shape[axis])
        out = np.empty_like(input, dtype=g.dtype, shape=shape)
    wins = np.empty_like(input, dtype=bool, shape=input[first].shape)
    np.greater_equal(input[first], input[second], out=wins)
    kept = wins.view(np.int8)
    np.negative(kept, out=kept)  # all bits or none
    integer = f"i{g.dtype.itemsize}"
    g, target = g.view(integer), out.view(integer)
    np.bitwise_and(g, kept, out=target[first])
    np.bitwise_xor(g, target[first], out=target[second])  # what is left
    out[at(axis, slice(2 * count, None))] = 0
    return out


def _in_order_of(x, like):
    """Copy ``x`` into the memory order of ``like`` if their innermost axes differ."""
    if x.ndim != like.ndim:
        return x
    steps = range(x.ndim)
    if min(steps, key=x.strides.__getitem__) == min(
        steps, key=like.strides.__getitem__
    ):
        return x
    copy = np.empty_like(like, dtype=x.dtype, shape=x.shape)
    copy[...] = x
    return copy


@spread_to_maxima_p.infer
def _(g, input, maxima, axis, size, stride, padding, dilation):
    shape = _at_maxima("g", g, input, maxima, axis, size, stride, padding, dilation)
    return TensorSpec(resized(shape, axis, input.shape[axis]), g.dtype)


def _at_maxima(name, x, input, maxima, axis, *window):
    """Return the common shape of ``x`` and ``maxima``, which must be pooled from ``input``."""
    pooled = _pooled(input, axis, *window)
    given = {name: x, "input": input, "maxima": maxima}
    if not agree(maxima.shape[axis], pooled.shape[axis]):
        problem = f"maxima must have {pooled.shape[axis]} windows along axis {axis}"
        raise ShapeError("pooling", problem, **given)
    shape = checked_broadcast("pooling", x.shape, maxima.shape, **given)
    return tuple(checked_broadcast("pooling", shape, pooled.shape, **given))


@spread_to_maxima_p.vjp("g")
def _(c, input, maxima, axis, size, stride, padding, dilation):
    return pick_at_maxima_p(c, input, maxima, axis, size, stride, padding, dilation)


@at_maxima(name="pick_at_maxima", linear=[{"c"}])
def pick_at_maxima_p(
    xp,
    c: TensorLike,
    input: TensorLike,
    maxima: TensorLike,
    axis: Axis,
    size: int,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """Pick, for each window, the entry of ``c`` at the first maximum of ``input``."""
    count, slices = taps_along(input, axis, size, stride, padding, dilation)
    if maxima.shape[axis] != count or c.shape[axis] != input.shape[axis]:
        raise ValueError("shapes do not fit")  # `infer` says it better
    pooled = resized(c.shape, axis, count)
    shape = tuple(broadcast_shape(pooled, maxima.shape))
    picked = xp.zeros_like(maxima, c.dtype, shape=shape)

    def pick(part):
        target = picked[part]
        for windows, seen, hits in _hits(xp, input[part], maxima[part], axis, slices):
            target[at(axis, windows)] += _keep(xp, c[part][at(axis, seen)], hits)

    parallel_for(pick, parts_in_cache(xp, axis, c, input, maxima, picked), c.size)
    return picked


@pick_at_maxima_p.infer
def _(c, input, maxima, axis, size, stride, padding, dilation):
    window = size, stride, padding, dilation
    _, _, count = window_positions(c.shape[axis], *window)
    pooled = TensorSpec(resized(tuple(c.shape), axis, count), c.dtype)
    shape = _at_maxima("c", pooled, input, maxima, axis, *window)
    return TensorSpec(shape, c.dtype)


@pick_at_maxima_p.vjp("c")
def _(g, input, maxima, axis, size, stride, padding, dilation):
    return spread_to_maxima_p(g, input, maxima, axis, size, stride, padding, dilation)


@spread_to_maxima_p.batch
def _(mapped, g, input, maxima, **attributes):
    return spread_to_maxima_p(g, *_paired(mapped, input, maxima), **attributes)


@pick_at_maxima_p.batch
def _(mapped, c, input, maxima, **attributes):
    return pick_at_maxima_p(c, *_paired(mapped, input, maxima), **attributes)


def _paired(mapped, input, maxima):
    """Give both a mapped axis, or neither; a mapped cotangent broadcasts without help."""
    if mapped[1] == mapped[2]:
        return input, maxima
    return all_mapped(mapped[1:], (input, maxima))


# ------------------------------------------------------------------------------- means


@functools.lru_cache(maxsize=4096)
def shares_of(extent, size, stride, padding, dilation):
    """Return one over the number of entries in each window: a float if always the same."""
    count, slices = taps(extent, size, stride, padding, dilation)
    entries = np.zeros(count)
    for _, windows, _ in slices:
        entries[windows] += 1
    same = count == 0 or (entries == entries[0]).all()
    return 1 / size if count == 0 else 1 / entries[0] if same else 1 / entries


def _shares(xp, dtype, axis, *window):
    """Return `shares_of`, shaped to multiply an array with one entry per window."""
    shares = shares_of(*window)
    if isinstance(shares, np.ndarray):
        return xp.asarray(shares.astype(dtype)).reshape(-1, *(1,) * (-axis - 1))
    return dtype.type(shares)


@spatial_op(
    name="window_mean", type_name="AvgPool", floating=True, linear=True, cost=_cost
)
def window_mean_p(
    xp,
    input: TensorLike,
    axis: Axis,
    size: int,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """Mean of each window along ``axis``; margins do not count."""
    count, slices = taps_along(input, axis, size, stride, padding, dilation)
    extent = input.shape[axis]
    shares = _shares(xp, input.dtype, axis, extent, size, stride, padding, dilation)
    if is_everywhere(slices, count) and input.size < LARGE:
        return _combined_everywhere(xp.add, input, axis, slices) * shares
    out = xp.empty_like(input, shape=resized(input.shape, axis, count))

    def pool(part):
        _combined(xp.add, input[part], out[part], axis, slices, 0)
        xp.multiply(out[part], shares, out=out[part])

    parallel_for(pool, parts_in_cache(xp, axis, input, out), input.size)
    return out


window_mean_p.infer(_pooled)


@window_mean_p.vjp("input")
def _(g, input_shape, axis, size, stride, padding, dilation):
    return spread_means_p(g, input_shape[axis], axis, size, stride, padding, dilation)


@spatial_op(
    name="spread_means",
    type_name="AvgPoolGrad",
    floating=True,
    linear=True,
    cost=per_input(1),
)
def spread_means_p(
    xp,
    g: TensorLike,
    extent: int,
    axis: Axis,
    size: int,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """The adjoint of `window_mean` on an axis of size ``extent``."""
    count, slices = taps(extent, size, stride, padding, dilation)
    if g.shape[axis] != count:
        raise ValueError("shapes do not fit")  # `infer` says it better
    full = xp.empty_like(g, shape=resized(g.shape, axis, extent))
    shares = _shares(xp, g.dtype, axis, extent, size, stride, padding, dilation)
    seen_by_one = stride >= size and dilation == 1  # so that nothing is added up
    covered = sum([len(range(extent)[seen]) for _, _, seen in slices]) == extent

    def spread(part):
        share, target = g[part] * shares, full[part]
        if seen_by_one:
            share += g.dtype.type(0)  # no negative zeros, as in sums from 0
        if not (seen_by_one and covered):
            target[...] = 0
        for _, windows, seen in slices:
            if seen_by_one:
                target[at(axis, seen)] = share[at(axis, windows)]
            else:
                target[at(axis, seen)] += share[at(axis, windows)]

    parallel_for(spread, parts_in_cache(xp, axis, full, g), full.size)
    return full


@spread_means_p.infer
def _(g, extent, axis, size, stride, padding, dilation):
    shape = resized(tuple(g.shape), axis, extent)
    count = window_positions(extent, size, stride, padding, dilation)[-1]
    if g.shape[axis] not in (None, count):
        raise ShapeError("spread_means", f"axis {axis} must have size {count}", g=g)
    return TensorSpec(shape, g.dtype)


@spread_means_p.vjp("g")
def _(c, axis, size, stride, padding, dilation):
    return window_mean_p(c, axis, size, stride, padding, dilation)


# --------------------------------------------------------------------- as in TensorFlow


def _max_pool(rank, *arguments):
    return _pool(f"max_pool{rank}d", window_max_p, rank, *arguments)


def _avg_pool(rank, *arguments):
    return _pool(f"avg_pool{rank}d", window_mean_p, rank, *arguments)


def _pool(who, op, rank, input, ksize, strides, padding, data_format, dilations=None):
    x = convert_to_tensor(input)
    if op is window_mean_p and not x.dtype.is_differentiable:
        advice = cast_advice("input", "float32")
        what = f"input must be floating or complex; {advice}"
        raise DTypeError(who, what, input=x)
    for axis, *window in _windows(
        who, rank, x, ksize, strides, padding, data_format, dilations
    ):
        x = op(x, axis, *window)
    return x


def _windows(who, rank, x, ksize, strides, padding, data_format, dilations):
    """Return ``(axis, size, stride, padding, dilation)`` per axis to pool, the last first."""
    spatial = len(x.shape) - 2
    if spatial != (rank or spatial) or spatial not in CHANNELS_LAST:
        wanted = "3, 4 or 5" if rank is None else rank + 2
        raise ShapeError(who, f"input must have rank {wanted}", input=x)
    first, strides, padding, dilations = window_arguments(
        who, spatial, strides, padding, data_format, dilations
    )
    sizes = spatial_numbers(who, "ksize", ksize, spatial, first)
    paddings = [padding] * spatial if isinstance(padding, str) else padding
    windows = []
    for i in reversed(range(spatial)):
        axis, window = (
            i - spatial - (not first),
            (strides[i], paddings[i], dilations[i]),
        )
        reach = (sizes[i] - 1) * dilations[i] + 1
        if not isinstance(padding, str) and max(paddings[i]) >= reach:
            raise InvalidArgumentError(
                f"{who}: padding must be less than the window size {reach}, got {paddings[i]}"
            )
        count = window_positions(x.shape[axis], sizes[i], *window)[-1]
        if count == 0 and x.shape[axis]:
            raise ShapeError(who, f"ksize {sizes} must not exceed the input", input=x)
        if sizes[i] > 1 or strides[i] > 1:
            windows.append((axis, sizes[i], *window))
    return windows


@composite
def max_pool(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Max pooling in one, two or three dimensions, by the rank of ``input``.

    It calls `max_pool1d`, `max_pool2d` or `max_pool3d`.

    Args:
        input: Tensor ``[batch, *spatial, channels]``; its rank selects the op.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: Layout of input and output, such as "NHWC" or "NCHW"; it must match
            the number of axes. Channels last by default.

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.
    """
    return _pool(
        "max_pool", window_max_p, None, input, ksize, strides, padding, data_format
    )


@composite
def max_pool1d(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """1-D max pooling: `max_pool2d` with one spatial axis.

    Args:
        input: Tensor ``[batch, length, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NWC" or "NCW", the layout of input and output.

    Shapes:
        ``[batch, length, channels]``; the length is divided by ``strides``, rounded up
        for "SAME".

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.

    Example:
        >>> x = [[[1.0], [4.0], [2.0], [3.0]]]
        >>> tw.nn.max_pool1d(x, 2, 2, "VALID").numpy().ravel()
        array([4., 3.], dtype=float32)
    """
    return _max_pool(1, input, ksize, strides, padding, data_format)


@composite
def max_pool2d(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """2-D max pooling: the maximum of each window of ``ksize`` pixels, ``strides`` apart.

    Of equal maxima, the first one receives the gradient, row by row, as in TensorFlow.

    Args:
        input: Images, a tensor ``[batch, height, width, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NHWC" or "NCHW", the layout of input and output.

    Shapes:
        ``[batch, height, width, channels]``; height and width are divided by
        ``strides``, rounded up for "SAME".

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.

    Example:
        >>> image = [[[[1.0], [2.0]], [[4.0], [3.0]]]]
        >>> tw.nn.max_pool2d(image, 2, 2, "VALID").numpy().ravel()
        array([4.], dtype=float32)
    """
    return _max_pool(2, input, ksize, strides, padding, data_format)


@composite
def max_pool3d(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """3-D max pooling: `max_pool2d` with a third spatial axis, depth.

    Args:
        input: Tensor ``[batch, depth, height, width, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NDHWC" or "NCDHW", the layout of input and output.

    Shapes:
        ``[batch, depth, height, width, channels]``; spatial sizes are divided by
        ``strides``, rounded up for "SAME".

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.

    Example:
        >>> tw.nn.max_pool3d(tw.ones([1, 4, 4, 4, 2]), 2, 2, "VALID").shape
        TensorShape([1, 2, 2, 2, 2])
    """
    return _max_pool(3, input, ksize, strides, padding, data_format)


@composite
def avg_pool(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Average pooling in one, two or three dimensions, by the rank of ``input``.

    It calls `avg_pool1d`, `avg_pool2d` or `avg_pool3d`.

    Args:
        input: Floating tensor ``[batch, *spatial, channels]``; its rank selects the op.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: Layout of input and output, such as "NHWC" or "NCHW"; it must match
            the number of axes. Channels last by default.

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.
    """
    return _pool(
        "avg_pool", window_mean_p, None, input, ksize, strides, padding, data_format
    )


@composite
def avg_pool1d(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """1-D average pooling: `avg_pool2d` with one spatial axis.

    Args:
        input: Floating tensor ``[batch, length, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NWC" or "NCW", the layout of input and output.

    Shapes:
        ``[batch, length, channels]``; the length is divided by ``strides``, rounded up
        for "SAME".

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.

    Example:
        >>> x = [[[1.0], [4.0], [2.0], [3.0]]]
        >>> tw.nn.avg_pool1d(x, 2, 2, "VALID").numpy().ravel()
        array([2.5, 2.5], dtype=float32)
    """
    return _avg_pool(1, input, ksize, strides, padding, data_format)


@composite
def avg_pool2d(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """2-D average pooling: the mean of each window; margins of "SAME" do not count.

    Args:
        input: Images, a floating tensor ``[batch, height, width, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NHWC" or "NCHW", the layout of input and output.

    Shapes:
        ``[batch, height, width, channels]``; height and width are divided by
        ``strides``, rounded up for "SAME".

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.

    Example:
        >>> image = [[[[1.0], [2.0]], [[4.0], [5.0]]]]
        >>> tw.nn.avg_pool2d(image, 2, 1, "SAME").numpy()[0, ..., 0]
        array([[3. , 3.5],
               [4.5, 5. ]], dtype=float32)
    """
    return _avg_pool(2, input, ksize, strides, padding, data_format)


@composite
def avg_pool3d(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """3-D average pooling: `avg_pool2d` with a third spatial axis, depth.

    Args:
        input: Floating tensor ``[batch, depth, height, width, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NDHWC" or "NCDHW", the layout of input and output.

    Shapes:
        ``[batch, depth, height, width, channels]``; spatial sizes are divided by
        ``strides``, rounded up for "SAME".

    Raises:
        ShapeError: If a window is larger than the input.
        ValueError: If ``ksize``, ``strides``, ``padding`` or ``data_format`` is
            invalid.

    Example:
        >>> tw.nn.avg_pool3d(tw.ones([1, 4, 4, 4, 2]), 2, 2, "VALID").shape
        TensorShape([1, 2, 2, 2, 2])
    """
    return _avg_pool(3, input, ksize, strides, padding, data_format)


def pool(
    input: TensorLike,
    window_shape: ShapeLike,
    pooling_type: str,
    strides: ShapeLike | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    data_format: str | None = None,
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Max or average pooling, by ``pooling_type``, with optional dilation.

    Args:
        input: Tensor ``[batch, *spatial, channels]``.
        window_shape: Size of a window on each spatial axis.
        pooling_type: "MAX" or "AVG".
        strides: Distance between windows: an int, or one per spatial axis; 1 by
            default.
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: Layout of input and output, such as "NHWC" or "NCHW"; it must match
            the number of axes. Channels last by default.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Raises:
        ValueError: If ``pooling_type`` is neither "MAX" nor "AVG".

    Example:
        >>> x = [[[1.0], [5.0], [2.0], [3.0]]]
        >>> tw.nn.pool(x, [2], "MAX", dilations=[2]).numpy().ravel()
        array([2., 5.], dtype=float32)
    """
    kinds = {"MAX": window_max_p, "AVG": window_mean_p}
    check_choice("pool", "pooling_type", pooling_type, kinds)
    return _pool(
        "pool", kinds[pooling_type], None, input, window_shape, strides, padding,
        data_format, dilations,
    )  # fmt: skip


def max_pool_with_argmax(
    input: TensorLike,
    ksize: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str = "NHWC",
    output_dtype: DTypeLike = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """2-D max pooling that also returns the flat index of each maximum.

    The index is ``(y * width + x) * channels + c``.

    Args:
        input: Images, a tensor ``[batch, height, width, channels]``.
        ksize: Size of a window: an int, or one per spatial axis (or one per axis, with
            1 for batch and channels).
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (margins that never contribute to the
            result), or a list of pairs ``(before, after)`` for all axes.
        data_format: "NHWC", the only supported layout.
        output_dtype: Integer dtype of the indices.
        include_batch_in_index: If True, indices count through all images of the batch,
            not from the start of each image.

    Returns:
        ``(output, argmax)``, of the same shape; see `max_pool2d`.

    Example:
        >>> image = [[[[1.0], [2.0]], [[4.0], [3.0]]]]
        >>> tw.nn.max_pool_with_argmax(image, 2, 2, "VALID")[1].numpy()
        array([[[[2]]]])
    """
    who = "max_pool_with_argmax"
    check_choice(who, "data_format", data_format, ("NHWC",))
    x = convert_to_tensor(input)
    windows = _windows(who, 2, x, ksize, strides, padding, data_format, None)
    images, *image = x.shape
    xp = module_of(x)
    indices = xp.arange(int(np.prod(image)), dtype=xp.int64).reshape(1, *image)
    if include_batch_in_index:
        starts = xp.arange(images, dtype=xp.int64) * int(np.prod(image))
        indices = indices + starts.reshape(-1, 1, 1, 1)
    indices = broadcast_to(new_tensor(indices), tuple(x.shape))
    for window in windows:
        maxima = window_max_p(x, *window)
        indices = pick_at_maxima_p(indices, x, maxima, *window)
        x = maxima
    return x, cast(indices, output_dtype)
