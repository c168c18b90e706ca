"""Resizing: each entry of the result is a weighted sum of a few entries along each axis.

The weights depend on sizes only and are computed with NumPy while tracing; a trace for all
sizes ends where a size that changes is open.
"""

from __future__ import annotations

from operator import index

import numpy as np

from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import gather
from tapewright.ops.array.shape import reshape
from tapewright.ops.math.comparison import where

from .static import axes_of, dims, numbers


def _resize(
    x, roi=None, scales=None, sizes=None, antialias=0, axes=None,
    coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75,
    exclude_outside=0, extrapolation_value=0.0, keep_aspect_ratio_policy="stretch",
    mode="nearest", nearest_mode="round_prefer_floor",
):  # fmt: skip
    shape = dims(x)
    axes = list(range(len(shape))) if axes is None else axes_of(axes, len(shape))
    scales, sizes = numbers(scales), numbers(sizes)
    rois = numbers(roi)
    rule = _Rule(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
        bool(exclude_outside), bool(antialias),
    )  # fmt: skip
    kind, outside, targets = x.dtype, {}, {}  # axis -> scale and size
    for i, axis in enumerate(axes):
        n = shape[axis]
        if sizes and sizes[i] != n:
            targets[axis] = index(sizes[i]) / index(n), index(sizes[i])
        elif not sizes and scales[i] != 1.0:
            targets[axis] = scales[i], int(np.floor(index(n) * scales[i]))
        elif rule.crops:
            targets[axis] = 1.0, index(n)
    if sizes and keep_aspect_ratio_policy != "stretch":
        pick = max if keep_aspect_ratio_policy == "not_smaller" else min
        scale = pick([m / index(shape[a]) for m, a in zip(sizes, axes)])
        targets = {a: (scale, int(shape[a] * scale + 0.5)) for a in axes}
    for axis, (scale, size) in targets.items():
        n, i = index(shape[axis]), axes.index(axis)
        crop = (rois[i], rois[len(axes) + i]) if rule.crops else (0.0, 1.0)
        at = rule.coordinates(n, size, scale, *crop)
        if rule.crops:
            outside[axis] = (at < 0) | (at > n - 1)
        x = _along(x, axis, *rule.taps(at, n, scale))
    for axis, beyond in outside.items():
        beyond = beyond.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        x = where(convert_to_tensor(beyond), cast(extrapolation_value, x.dtype), x)
    return cast(x, kind)


def _along(x, axis, indices, weights):
    """Return the sums of ``weights * x`` at ``indices``, both ``[size, taps]``."""
    if weights is None:
        return gather(x, indices[:, 0], axis=axis)
    kind = x.dtype if x.dtype.is_floating else "float32"
    x, total = cast(x, kind), None
    around = [-1 if i == axis else 1 for i in range(len(dims(x)))]
    for i, w in zip(indices.T, weights.T):
        part = gather(x, i, axis=axis) * reshape(convert_to_tensor(w, kind), around)
        total = part if total is None else total + part
    return total


class _Rule:
    """Map entries of the result to entries along an axis, with weights."""

    def __init__(self, mode, transformation, nearest, cubic, exclude, antialias):
        self.mode, self.transformation, self.nearest = mode, transformation, nearest
        self.cubic, self.exclude, self.antialias = cubic, exclude, antialias

    @property
    def crops(self):
        return self.transformation == "tf_crop_and_resize"

    def coordinates(self, old, new, scale, start, end):
        """Return the position in the input of each entry of the result."""
        i = np.arange(new, dtype=np.float64)
        length = old * scale  # which may not be whole
        if self.transformation == "asymmetric":
            return i / scale
        if self.transformation == "align_corners":
            return i * (old - 1) / (length - 1) if length != 1 else i * 0
        if self.crops:
            if new == 1:
                return np.full(1, 0.5 * (start + end) * (old - 1))
            return start * (old - 1) + i * (end - start) * (old - 1) / (new - 1)
        at = (i + 0.5) / scale - 0.5
        if self.transformation == "pytorch_half_pixel":
            return at if length > 1 else np.zeros_like(at)
        if self.transformation == "half_pixel_symmetric":
            return at + old / 2 * (1 - new / length)
        return at

    def taps(self, at, old, scale):
        """Return the indices and weights of the entries to sum, ``[size, taps]``."""
        if self.mode == "nearest":
            rounded = {
                "round_prefer_floor": lambda: np.ceil(at - 0.5),
                "round_prefer_ceil": lambda: np.floor(at + 0.5),
                "floor": lambda: np.floor(at),
                "ceil": lambda: np.ceil(at),
            }[self.nearest]()
            return np.clip(rounded, 0, old - 1).astype(np.int64)[:, None], None
        wide = min(scale, 1.0) if self.antialias else 1.0
        reach = 1 if self.mode == "linear" else 2
        span = int(np.ceil(reach / wide))
        first = np.floor(at).astype(np.int64) - span + 1
        indices = first[:, None] + np.arange(2 * span)
        away = np.abs(at[:, None] - indices) * wide
        weights = self._linear(away) if reach == 1 else self._cubic(away)
        inside = (indices >= 0) & (indices < old)
        if self.exclude:
            weights = weights * inside
        weights = weights / weights.sum(1, keepdims=True)
        return np.clip(indices, 0, old - 1), weights

    def _linear(self, d):
        return np.maximum(1 - d, 0)

    def _cubic(self, d):
        a = self.cubic
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _resize_10(x, scales=None, mode="nearest"):
    return _resize(x, None, scales, None, mode=mode, nearest_mode="floor",
                   coordinate_transformation_mode="asymmetric")  # fmt: skip


OPS = {
    "Resize": {10: _resize_10, 11: _resize},
    "Upsample": _resize_10,
}
