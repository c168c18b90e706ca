"""Sliding windows: their positions, their arguments, and patches.

`convolution`, `pooling` and `image` share this module. `unfold` cuts an axis into
windows and `fold` adds windows up to the axis again: each is the adjoint of the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias, Unpack

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.op_definition.costs import per_input
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    diagonal_along_axis,
    known_rank,
    normalize_axis,
)
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, TensorSpec
from tapewright.core.typing import Axis, Kernel, Op, P, TensorLike, as_shape

# ------------------------------------------------------------------ window arithmetic


def as_padding(value):
    """Return plain values: "VALID", "SAME" or a pair (before, after) for each spatial axis."""
    if isinstance(value, str):
        return value
    try:
        return tuple([(int(before), int(after)) for before, after in value])
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            "must be 'SAME', 'VALID' or a pair (before, after) for each axis, got "
            f"{value!r}"
        ) from None


Padding: TypeAlias = Annotated[str | Sequence[tuple[int, int]], as_padding]


def window_positions(size, window, stride, padding, dilation):
    """Return ``(before, after, count)``: margins and number of windows along one axis.

    ``padding`` is "VALID", "SAME" or a pair; ``size`` and ``count`` may be None, for
    unknown.
    """
    if is_symbolic(size):
        return _positions(size, window, stride, padding, dilation)
    return _known_positions(size, window, stride, padding, dilation)


def _positions(size, window, stride, padding, dilation):
    if stride < 1 or window < 1 or dilation < 1:
        raise InvalidArgumentError(
            "windows: size, stride and dilation must be positive, got "
            f"{window}, {stride} and {dilation}"
        )
    if isinstance(padding, str) and padding not in ("SAME", "VALID"):
        raise InvalidArgumentError(
            f"windows: padding must be 'SAME', 'VALID' or a pair, got {padding!r}"
        )
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        if size is None:
            return None, None, None
        count = -(-size // stride)
        if reach == 1:  # adds no condition on an open size
            return 0, 0, count
        total = max((count - 1) * stride + reach - size, 0)
        return total // 2, total - total // 2, count
    before, after = (0, 0) if padding == "VALID" else padding
    if size is None:
        return before, after, None
    count = (size + before + after - reach) // stride + 1
    return before, after, max(count, 0)


_known_positions = functools.lru_cache(maxsize=4096)(_positions)


def positions(size, window, strides, padding, dilations):
    """Return margins and numbers of windows along all axes."""
    each = [padding] * len(size) if isinstance(padding, str) else padding
    per_axis = [
        window_positions(*axis)
        for axis in zip(size, window, strides, each, dilations, strict=True)
    ]
    return [(b, a) for b, a, _ in per_axis], tuple([count for _, _, count in per_axis])


def as_margin(value):
    """Return plain values: "VALID", "SAME" or one pair (before, after)."""
    return value if isinstance(value, str) else (int(value[0]), int(value[1]))


Margin: TypeAlias = Annotated[str | tuple[int, int], as_margin]


@functools.lru_cache(maxsize=4096)
def taps(extent, size, stride, padding, dilation):
    """Return the number of windows, and ``(tap, windows, entries)`` for each tap.

    ``windows`` and ``entries`` are slices: the windows in which the tap meets an entry
    (not a margin), and the entries that it meets.
    """
    before, _, count = window_positions(extent, size, stride, padding, dilation)
    slices = []
    for i in range(size):
        offset = i * dilation - before
        first = max(0, -(offset // stride))
        last = min(count - 1, (extent - 1 - offset) // stride)
        if first <= last:
            start, stop = first * stride + offset, last * stride + offset + 1
            slices.append((i, slice(first, last + 1), slice(start, stop, stride)))
    return count, tuple(slices)


def taps_along(x, axis, *window):
    """Return the `taps` along an axis of an array, counted from the end."""
    _check_from_end(axis, x.ndim)
    return taps(x.shape[axis], *window)


def _check_from_end(axis, rank):
    if not -rank <= axis < 0:
        raise InvalidArgumentError(f"axis must be from {-rank} to -1, got {axis}")


def is_everywhere(slices, count):
    """Return whether each tap meets an entry in every window: no margins."""
    return bool(slices) and all(windows == slice(0, count) for _, windows, _ in slices)


def at(axis, part):
    """Return the index that selects ``part`` of an axis counted from the end."""
    return (..., part) + (slice(None),) * (-axis - 1)


def resized(shape, axis, extent):
    """Return a shape with another size for an axis counted from the end."""
    _check_from_end(axis, len(shape))
    position = len(shape) + axis
    return (*shape[:position], extent, *shape[position + 1 :])


def spatial_op(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator for ops along ``axis``, counted from the end; other axes are kept."""
    own = Traits(batch=batch_leading, diagonal=diagonal_along_axis)
    return primitive(**own | traits)


# ---------------------------------------------------------------------------- patches


@primitive(linear=True, batch=batch_leading)
def unfold(
    xp,
    input: TensorLike,
    axis: Axis,
    size: int,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """Cut ``axis``, counted from the end, into windows: an axis of windows, one of entries.

    Margins are zeros. Maps ``[..., n, ...]`` to ``[..., count, size, ...]``.
    """
    count, slices = taps_along(input, axis, size, stride, padding, dilation)
    before, behind = input.shape[:axis], input.shape[input.ndim + axis + 1 :]
    out = xp.zeros((*before, count, size, *behind), input.dtype)
    for i, windows, entries in slices:
        out[at(axis - 1, windows)][at(axis, i)] = input[at(axis, entries)]
    return out


@unfold.infer
def _(input, axis, size, stride, padding, dilation):
    normalize_axis("unfold", axis, input.shape.rank)
    _, _, count = window_positions(input.shape[axis], size, stride, padding, dilation)
    dims = resized(tuple(input.shape), axis, count)
    position = len(dims) + axis + 1
    return TensorSpec((*dims[:position], size, *dims[position:]), input.dtype)


@unfold.vjp("input")
def _(g, input_shape, axis, stride, padding, dilation):
    return fold(g, input_shape[axis], axis, stride, padding, dilation)


@primitive(linear=True, cost=per_input(1), batch=batch_leading)
def fold(
    xp,
    g: TensorLike,
    extent: int,
    axis: Axis,
    stride: int,
    padding: Margin,
    dilation: int = 1,
):
    """The adjoint of `unfold` on an axis of size ``extent``: add windows up."""
    if not -g.ndim < axis < 0:
        raise ValueError("shapes do not fit")  # `infer` says it better
    size = g.shape[axis]
    count, slices = taps(extent, size, stride, padding, dilation)
    if g.shape[axis - 1] != count:
        raise ValueError("shapes do not fit")  # `infer` says it better
    before, behind = g.shape[: axis - 1], g.shape[g.ndim + axis + 1 :]
    out = xp.zeros((*before, extent, *behind), g.dtype)
    for i, windows, entries in slices:
        out[at(axis, entries)] += g[at(axis - 1, windows)][at(axis, i)]
    return out


@fold.infer
def _(g, extent, axis, stride, padding, dilation):
    rank = known_rank("fold", "g", g)
    if not -rank < axis < 0:
        raise ShapeError("fold", f"axis must be from {1 - rank} to -1, got {axis}", g=g)
    size, count = g.shape[axis], None
    if size is not None:
        _, _, count = window_positions(extent, size, stride, padding, dilation)
    if None not in (count, g.shape[axis - 1]) and g.shape[axis - 1] != count:
        raise ShapeError("fold", f"axis {axis - 1} must have size {count}", g=g)
    dims = list(g.shape)
    dims[axis - 1 : len(dims) + axis + 1] = [extent]
    return TensorSpec(dims, g.dtype)


@fold.vjp("g")
def _(c, g_shape, axis, stride, padding, dilation):
    return unfold(c, axis, g_shape[axis], stride, padding, dilation)


# ------------------------------------------------------------- arguments, as in TensorFlow

CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def is_channels_first(who, data_format, rank):
    """Return whether the channels follow the batch.

    Raises:
        ValueError: If ``data_format`` is unknown.
    """
    if data_format in (None, CHANNELS_LAST[rank]):
        return False
    if data_format == CHANNELS_FIRST[rank]:
        return True
    raise InvalidArgumentError(
        f"{who}: data_format must be {CHANNELS_LAST[rank]!r} or {CHANNELS_FIRST[rank]!r}, "
        f"got {data_format!r}"
    )


def window_arguments(who, rank, strides, padding, data_format, dilations):
    """Return ``(channels_first, strides, padding, dilations)``, plain spatial values."""
    first = is_channels_first(who, data_format, rank)
    strides = spatial_numbers(who, "strides", strides, rank, first)
    dilations = spatial_numbers(who, "dilations", dilations, rank, first)
    return first, strides, spatial_padding(who, padding, rank, first), dilations


def spatial_numbers(who, name, value, rank, first, default=1):
    """Return one positive int for each spatial axis.

    The value may be one int for all axes, a list with one per spatial axis, or a list
    that also has 1 for batch and channels.
    """
    if value is None:
        value = default
    numbers = as_shape(value) if not isinstance(value, int) else (value,)
    if len(numbers) == 1:
        numbers *= rank
    elif len(numbers) == rank + 2:
        others = (numbers[0], numbers[1 if first else -1])
        numbers = numbers[2:] if first else numbers[1:-1]
        if others != (1, 1):
            raise InvalidArgumentError(
                f"{who}: {name} must be 1 for batch and channels, got {value}"
            )
    if len(numbers) != rank or min(numbers) < 1:
        raise InvalidArgumentError(
            f"{who}: {name} must be a positive int, or {rank} or {rank + 2} of them, "
            f"got {value}"
        )
    return numbers


def spatial_padding(who, padding, rank, first):
    """Return plain values of ``padding``: "VALID", "SAME" or pairs for the spatial axes."""
    if isinstance(padding, str):
        if padding.upper() in ("VALID", "SAME"):
            return padding.upper()
    else:
        pairs = as_padding(padding)
        if len(pairs) == rank + 2:
            others = (pairs[0], pairs[1 if first else -1])
            pairs = pairs[2:] if first else pairs[1:-1]
            if any(map(any, others)):
                pairs = ()
        if len(pairs) == rank and all(n >= 0 for pair in pairs for n in pair):
            return pairs
    raise InvalidArgumentError(
        f"{who}: padding must be 'VALID', 'SAME' or a list of {rank + 2} pairs of numbers "
        f">= 0, (0, 0) for batch and channels, got {padding!r}"
    )
