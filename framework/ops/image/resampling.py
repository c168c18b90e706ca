"""Resizing: resample an axis of an image with any of TensorFlow's methods.

Every method is a linear map along each axis: a banded matrix that depends on the two
sizes only. The op applies the bands, and its adjoint applies the bands of the
transpose. Repeating each entry needs no matrix, and keeps the memory order of the
images.
"""

from __future__ import annotations

import functools

import numpy as np

from tapewright.core.errors import ShapeError
from tapewright.core.rules import check_at_least, check_choice, normalize_axis
from tapewright.core.tensor import TensorSpec
from tapewright.core.typing import Axis, TensorLike

from ..convolution.windows import at, resized, spatial_op

# From so many repetitions on one call for all is quicker than one for each.
MANY = 64


# ---------------------------------------------------------------------------- matrices

METHODS = (
    "area",
    "bicubic",
    "bilinear",
    "gaussian",
    "lanczos3",
    "lanczos5",
    "mitchellcubic",
    "nearest",
)


def _cubic(xp, x, b, c):
    """Cubic kernels of Mitchell & Netravali (1988); ``b, c = 0, 1/2`` is Keys (1981)."""
    near = ((12 - 9 * b - 6 * c) * x + (-18 + 12 * b + 6 * c)) * x * x + (6 - 2 * b)
    far = ((-b - 6 * c) * x + (6 * b + 30 * c)) * x + (-12 * b - 48 * c)
    far = far * x + (8 * b + 24 * c)
    return xp.where(x < 1, near, xp.where(x < 2, far, 0.0)) / 6.0


def _lanczos(xp, x, radius):
    return xp.where(x < radius, xp.sinc(x) * xp.sinc(x / radius), 0.0)


# method -> a function of the distance in pixels; `xp`: NumPy, or ops of the same names
KERNELS = {
    "bicubic": lambda xp, x: _cubic(xp, x, 0, 0.5),
    "bilinear": lambda xp, x: xp.maximum(1.0 - x, 0.0),
    "gaussian": lambda xp, x: xp.where(x < 1.5, xp.exp(-2.0 * x * x), 0.0),
    "lanczos3": lambda xp, x: _lanczos(xp, x, 3.0),
    "lanczos5": lambda xp, x: _lanczos(xp, x, 5.0),
    "mitchellcubic": lambda xp, x: _cubic(xp, x, 1 / 3, 1 / 3),
}


def matrix_of(size, extent, method, antialias):
    """Return ``[size, extent]``: the weight of each old entry in each new one."""
    scale = extent / size
    if method == "nearest":  # in single precision, as TensorFlow has it
        centers = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(
            scale
        )
        picks = np.minimum(np.floor(centers).astype(int), extent - 1)
        return (picks[:, None] == np.arange(extent)).astype(float)
    edges = np.arange(extent)
    if method == "area":  # how much of each old entry lies under a new one
        starts = (np.arange(size) * scale)[:, None]
        ends = np.minimum(starts + scale, extent)
        return (
            np.clip(np.minimum(ends, edges + 1) - np.maximum(starts, edges), 0, None)
            / scale
        )
    kernel = functools.partial(KERNELS[method], np)
    if method == "bilinear" and not antialias:  # beyond the edge lies the edge
        centers = np.clip((np.arange(size) + 0.5) * scale - 0.5, 0, extent - 1)
        return kernel(np.abs(centers[:, None] - edges))
    centers = (np.arange(size) + 0.5) * scale
    width = max(scale, 1) if antialias else 1
    weights = kernel(np.abs(centers[:, None] - edges - 0.5) / width)
    return weights / weights.sum(1, keepdims=True)  # beyond the edge lies nothing


@functools.lru_cache(maxsize=256)
def bands(size, extent, method, antialias, transposed):
    """Return the matrix as ``(indices, weights)``, each ``[band, size]``.

    The weights are None if all are 1.
    """
    matrix = matrix_of(size, extent, method, antialias)
    matrix = matrix.T if transposed else matrix
    used = matrix != 0
    first = used.argmax(1)
    reach = np.where(used.any(1), matrix.shape[1] - used[:, ::-1].argmax(1) - first, 0)
    picks = first + np.arange(max(reach.max(initial=0), 1))[:, None]
    inside = picks < matrix.shape[1]
    picks = np.where(inside, picks, 0)
    weights = np.where(inside, matrix[np.arange(len(matrix)), picks], 0.0)
    return picks, None if len(picks) == 1 and (weights == 1).all() else weights


def _sampled(xp, x, axis, indices, weights):
    if weights is None:
        return xp.take(x, xp.asarray(indices[0]), axis=axis)
    if x.dtype.kind not in "fc":
        raise TypeError("a weighted sum of integers")  # `infer` says it better
    total = None
    for picks, shares in zip(indices, weights.astype(x.dtype)):
        shares = xp.asarray(shares).reshape(-1, *(1,) * (-axis - 1))
        part = xp.take(x, xp.asarray(picks), axis=axis)
        part *= shares
        if total is None:
            total = part
        else:
            total += part
    return total


# --------------------------------------------------------------------------------- ops


@spatial_op(type_name="ScaleAndTranslate", grows=True, strict=True, linear=True)
def resample(
    xp, images: TensorLike, axis: Axis, size: int, method: str, antialias: bool = False
):
    """Resample ``images`` to ``size`` entries along ``axis``, which counts from the end."""
    picked = bands(size, images.shape[axis], method, antialias, False)
    return _sampled(xp, images, axis, *picked)


@resample.infer
def _(images, axis, size, method, antialias):
    normalize_axis("resize", axis, images.shape.rank)
    check_choice("resize", "method", method, METHODS)
    check_at_least("resize", 1, size=size)
    if images.shape[axis] == 0:
        raise ShapeError("resize", f"axis {axis} of images is empty", images=images)
    if method != "nearest" and not images.dtype.is_differentiable:
        raise TypeError(f"resize: method {method!r} needs floating images, got "
                        f"{images.dtype.name}")  # fmt: skip
    return TensorSpec(resized(tuple(images.shape), axis, size), images.dtype)


@resample.vjp("images")
def _(g, images_shape, axis, size, method, antialias):
    return resample_back(g, images_shape[axis], axis, size, method, antialias)


@spatial_op(type_name="ScaleAndTranslateGrad", strict=True, linear=True)
def resample_back(
    xp,
    g: TensorLike,
    extent: int,
    axis: Axis,
    size: int,
    method: str,
    antialias: bool = False,
):
    """The adjoint of `resample` on an axis of size ``extent``."""
    if g.shape[axis] != size:
        raise ValueError("shapes do not fit")  # `infer` says it better
    return _sampled(xp, g, axis, *bands(size, extent, method, antialias, True))


@resample_back.infer
def _(g, extent, axis, size, method, antialias):
    normalize_axis("resize", axis, g.shape.rank)
    check_choice("resize", "method", method, METHODS)
    check_at_least("resize", 1, size=size, extent=extent)
    if method != "nearest" and not g.dtype.is_differentiable:
        raise TypeError(f"resize: method {method!r} needs floating images, got "
                        f"{g.dtype.name}")  # fmt: skip
    if g.shape[axis] not in (None, size):
        raise ShapeError("resample_back", f"axis {axis} must have size {size}", g=g)
    return TensorSpec(resized(tuple(g.shape), axis, extent), g.dtype)


@resample_back.vjp("g")
def _(c, axis, size, method, antialias):
    return resample(c, axis, size, method, antialias)


@spatial_op(grows=True, strict=True, linear=True)
def upsample(xp, images: TensorLike, axis: Axis, times: int):
    """Repeat each entry along ``axis``, which counts from the end, ``times`` times."""
    if times > MANY:
        return xp.repeat(images, times, axis)
    extent = images.shape[axis] * times
    out = xp.empty_like(images, shape=resized(images.shape, axis, extent))
    for i in range(times):
        out[at(axis, slice(i, None, times))] = images
    return out


@upsample.infer
def _(images, axis, times):
    normalize_axis("upsample", axis, images.shape.rank)
    check_at_least("upsample", 1, times=times)
    size = images.shape[axis]
    size = None if size is None else size * times
    return TensorSpec(resized(tuple(images.shape), axis, size), images.dtype)


@upsample.vjp("images")
def _(g, axis, times):
    return _add_neighbours(g, axis, times)


@spatial_op(strict=True, linear=True)
def _add_neighbours(xp, g: TensorLike, axis: Axis, times: int):
    """The adjoint of `upsample`: sum groups of ``times`` neighbours."""
    if g.shape[axis] % times:
        raise ValueError("shapes do not fit")  # `infer` says it better
    if times > MANY:
        rows = g.shape[axis] // times
        apart = g.shape[:axis] + (rows, times) + g.shape[axis:][1:]
        return g.reshape(apart).sum(axis)
    out = g[at(axis, slice(0, None, times))]
    for i in range(1, times):
        out = out + g[at(axis, slice(i, None, times))]
    return out


@_add_neighbours.infer
def _(g, axis, times):
    normalize_axis("add_neighbours", axis, g.shape.rank)
    check_at_least("add_neighbours", 1, times=times)
    size = g.shape[axis]
    if size is not None and size % times:
        raise ShapeError("add_neighbours", f"axis {axis} must have a multiple of {times} "
                         "entries", g=g)  # fmt: skip
    size = None if size is None else size // times
    return TensorSpec(resized(tuple(g.shape), axis, size), g.dtype)


@_add_neighbours.vjp("g")
def _(c, axis, times):
    return upsample(c, axis, times)
