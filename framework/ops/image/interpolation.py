"""Interpolate arrays of any rank at coordinates between entries; scale and shift them.

These are the functions of `keras.ops.image` of the same names. They are composed of
ops, so that gradients pass to the inputs and, where the interpolation is linear, to the
coordinates.
"""

from __future__ import annotations

import itertools
import math
from functools import reduce
from operator import and_
from types import SimpleNamespace

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import ShapeError
from tapewright.core.rules import check_choice, normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axes, IntLike, ShapeLike, TensorLike, as_shape

from ..array.conversion import cast, saturate_cast
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.indexing import getitem
from ..array.joining import unstack
from ..array.shape import expand_dims, reshape, transpose
from ..linalg.contraction import tensordot
from ..math.comparison import greater, greater_equal, less, less_equal, where
from ..math.elementwise import abs, clip_by_value, exp, floor, floormod, maximum, round
from ..math.reduction import reduce_max, reduce_min, reduce_sum
from ..math.smooth import sinc
from .resampling import KERNELS

# -------------------------------------------------------------------------- coordinates

FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(
    inputs: TensorLike,
    coordinates: TensorLike,
    order: IntLike,
    fill_mode: str = "constant",
    fill_value: TensorLike = 0,
) -> Tensor:
    """Interpolate ``inputs`` at ``coordinates``; see `keras.ops.image`."""
    x, positions = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    rank = len(x.shape)
    if len(positions.shape) < 2 or positions.shape[0] != rank:
        raise ShapeError("map_coordinates", f"coordinates must be [{rank}, ...], with an "
                         "entry for each axis of inputs", inputs=x,
                         coordinates=positions)  # fmt: skip
    positions, fill_value = unstack(positions), cast(fill_value, x.dtype)
    values = interpolate("map_coordinates", x, positions, order, fill_mode, fill_value)
    return saturate_cast(round(values), x.dtype) if x.dtype.is_integer else values


def interpolate(who, x, coordinates, order, fill_mode, fill_value, batch=False):
    """Interpolate ``x`` at coordinates along its first axes, or the next ones.

    With ``batch``, the first axis of ``x`` and of the coordinates is the batch axis.
    Axes of ``x`` without coordinates are kept.
    """
    check_choice(who, "order", order, (0, 1))
    check_choice(who, "fill_mode", fill_mode, FILL_MODES)
    if not x.dtype.is_floating:
        x = cast(x, dtypes.float32)
    coordinates = [v if v.dtype.is_floating else cast(v, x.dtype) for v in coordinates]
    sizes = tuple(x.shape)[batch : batch + len(coordinates)]
    rest = tuple(x.shape)[batch + len(coordinates) :]
    rows = reshape(x, (math.prod(tuple(x.shape)[: batch + len(sizes)]), *rest))
    start = 0
    if batch:
        ones = (1,) * (len(coordinates[0].shape) - 1)
        start = reshape(arange(x.shape[0], dtype=dtypes.int64), (-1, *ones))
    nodes = [_nodes(v, size, order, fill_mode) for v, size in zip(coordinates, sizes)]
    total = None
    for corner in itertools.product(*nodes):
        index, weight = start, None
        for (node, _, share), size in zip(corner, sizes):
            index = index * size + node
            weight = share if weight is None or share is None else weight * share
        values = gather(rows, index)
        if fill_mode == "constant":
            inside = _beside(reduce(and_, [exists for _, exists, _ in corner]), rest)
            values = where(inside, values, cast(fill_value, x.dtype))
        if weight is not None:
            values = values * _beside(cast(weight, x.dtype), rest)
        total = values if total is None else total + values
    return total


def _nodes(coordinate, size, order, fill_mode):
    """Return the entries on both sides of a coordinate: ``(index, exists, weight)``."""
    if order == 0:
        return [(*_within(round(coordinate), size, fill_mode), None)]
    low = floor(coordinate)
    up = coordinate - low
    return [
        (*_within(low, size, fill_mode), 1.0 - up),
        (*_within(low + 1.0, size, fill_mode), up),
    ]


def _within(coordinate, size, fill_mode):
    """Return the entry that continues the axis at a whole coordinate; whether it is inside."""
    size = cast(size, coordinate.dtype)
    last = size - 1.0
    exists = greater_equal(coordinate, 0.0) & less_equal(coordinate, last)
    if fill_mode == "wrap":
        coordinate = floormod(coordinate, size)
    elif fill_mode == "reflect":
        coordinate = floormod(coordinate, size * 2.0)
        coordinate = where(
            less(coordinate, size), coordinate, size * 2.0 - 1.0 - coordinate
        )
    elif fill_mode == "mirror":
        period = maximum(last * 2.0, 1.0)
        coordinate = floormod(coordinate, period)
        coordinate = where(less(coordinate, size), coordinate, period - coordinate)
    return cast(clip_by_value(coordinate, 0.0, last), dtypes.int64), exists


def _beside(x, rest):
    """Append an axis of size 1 for each axis of ``rest``."""
    return reshape(x, (*x.shape, *(1,) * len(rest))) if rest else x


# ------------------------------------------------------------------- scaled and shifted

_METHODS = {
    "linear": "bilinear", "bilinear": "bilinear", "trilinear": "bilinear",
    "triangle": "bilinear", "cubic": "bicubic", "bicubic": "bicubic",
    "tricubic": "bicubic", "lanczos3": "lanczos3", "lanczos5": "lanczos5",
}  # fmt: skip


def scale_and_translate(
    images: TensorLike,
    output_shape: ShapeLike,
    scale: TensorLike,
    translation: TensorLike,
    spatial_dims: Axes,
    method: str,
    antialias: bool = True,
) -> Tensor:
    """Map the point ``x`` of an axis to ``x * scale + translation``; see `keras.ops.image`.

    Gradients pass to ``images``, ``scale`` and ``translation``.
    """
    who = "scale_and_translate"
    check_choice(who, "method", method, tuple(_METHODS))
    images, output_shape = convert_to_tensor(images), as_shape(output_shape)
    scale, translation = convert_to_tensor(scale), convert_to_tensor(translation)
    axes = normalize_axis(who, spatial_dims, len(images.shape), "spatial_dims")
    wanted = [
        new if axis in axes else old
        for axis, (new, old) in enumerate(zip(output_shape, images.shape))
    ]
    given = {"images": images, "scale": scale, "translation": translation}
    if len(output_shape) != len(images.shape) or list(output_shape) != wanted:
        raise ShapeError(who, f"output_shape {tuple(output_shape)} must equal the shape of "
                         f"images except along the axes {axes}", **given)  # fmt: skip
    if any([tuple(v.shape) != (len(axes),) for v in (scale, translation)]):
        raise ShapeError(who, f"scale and translation must be [{len(axes)}], a number "
                         "for each of spatial_dims", **given)  # fmt: skip
    x = images if images.dtype.is_floating else cast(images, dtypes.float32)
    wide = dtypes.float64 if x.dtype == dtypes.float64 else dtypes.float32
    scale, translation = cast(scale, wide), cast(translation, wide)
    rank = len(images.shape)
    for i, axis in enumerate(axes):
        weights = _weights(
            images.shape[axis], output_shape[axis], getitem(scale, i),
            getitem(translation, i), _METHODS[method], antialias,
        )  # fmt: skip
        x = tensordot(x, cast(weights, x.dtype), ((axis,), (0,)))
        x = transpose(x, (*range(axis), rank - 1, *range(axis, rank - 1)))
    if images.dtype.is_floating:
        return x
    x = clip_by_value(
        round(x), *[cast(f(images), x.dtype) for f in (reduce_min, reduce_max)]
    )
    return saturate_cast(x, images.dtype)


def _weights(old, new, scale, translation, method, antialias):
    """Return ``[old, new]``: the weight of each old entry in each new one."""
    step = 1.0 / scale
    centers = (arange(new, dtype=scale.dtype) + 0.5 - translation) * step - 0.5
    width = maximum(step, 1.0) if antialias else 1.0
    entries = expand_dims(arange(old, dtype=scale.dtype), 1)
    weights = KERNELS[method](_OPS, abs(centers - entries) / width)
    total = reduce_sum(weights, 0, True)
    some = greater(abs(total), 1000.0 * float(np.finfo(np.float32).eps))
    weights = where(some, weights / where(some, total, 1.0), 0.0)
    last = cast(old, scale.dtype) - 0.5
    inside = greater_equal(centers, -0.5) & less_equal(centers, last)
    return where(inside, weights, 0.0)


_OPS = SimpleNamespace(where=where, maximum=maximum, exp=exp, sinc=sinc)
