"""Random and given transforms of one image, an array: those of `ImageDataGenerator`.

Random numbers are drawn from NumPy's global generator (``np.random.seed``), as in Keras.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.rules import check_choice
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.image.interpolation import interpolate
from tapewright.storage.records.images import pillow

from ..utils.image_utils import array_to_img, img_to_array

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "apply_affine_transform",
    "apply_brightness_shift",
    "apply_channel_shift",
    "brightened",
    "random_brightness",
    "random_channel_shift",
    "random_rotation",
    "random_shear",
    "random_shift",
    "random_zoom",
]

FILL_MODES = ("nearest", "constant", "reflect", "wrap")


def apply_affine_transform(
    x: np.ndarray,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> np.ndarray:
    """The image turned, shifted, sheared and zoomed about its middle, in this order.

    Args: ``theta``, ``shear``: degrees; ``tx``, ``ty``: pixels that the window moves, to
    the right and down where ``col_axis > row_axis``; ``zx``, ``zy``: below 1 enlarges;
    ``fill_mode``: what lies outside, "nearest" (the edge), "constant" (``cval``), "reflect"
    (``d c b a | a b c d``) or "wrap" (with the period ``size - 1``, as in SciPy);
    ``order``: 0 takes the nearest pixel, 1 interpolates linearly. The dtype stays;
    integers are rounded.

    Shapes: ``x`` and the result ``[channels, height, width]``, or as the axes say.

    Raises: ``ValueError`` for axes that are not 0, 1 and 2 with the channels first or last,
    an array that has not three axes, or another ``fill_mode`` or ``order``.
    """
    who = "apply_affine_transform"
    axes = (row_axis, col_axis, channel_axis)
    if sorted(axes) != [0, 1, 2] or channel_axis == 1:
        raise ValueError(
            f"{who}: row_axis, col_axis and channel_axis must be 0, 1 and 2, with the "
            f"channels first or last, got {axes}"
        )
    if x.ndim != 3:
        raise ValueError(f"{who}: x must have rank 3, got the shape {x.shape}")
    check_choice(who, "fill_mode", fill_mode, FILL_MODES)
    check_choice(who, "order", order, (0, 1))
    if (theta, tx, ty, shear, zx, zy) == (0, 0, 0, 0, 1, 1):
        return x
    turn, cut = np.deg2rad(theta), np.deg2rad(shear)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    matrix = rotation @ [[1, -np.sin(cut)], [0, np.cos(cut)]] @ np.diag([zx, zy])
    # As in Keras, the middle is (height, width) in the coordinates (x, y) of the matrix:
    # that of an image which is not square lies aside.
    middle = (np.array([x.shape[row_axis], x.shape[col_axis]]) - 1) / 2
    start = middle + rotation @ [tx, ty] - matrix @ middle
    if col_axis > row_axis:  # from (x, y) to (row, column)
        matrix, start = matrix[::-1, ::-1], start[::-1]
    image = np.moveaxis(x, channel_axis, -1)
    places = np.tensordot(matrix, np.indices(image.shape[:2]), 1)
    places += start[:, None, None]
    result = _values(who, image, places, fill_mode, cval, order)
    return np.moveaxis(result, -1, channel_axis)


def _values(who, image, places, fill_mode, cval, order):
    """The pixels at ``places``, with the edges of SciPy's ``ndimage``."""
    last = np.array(image.shape[:2])[:, None, None] - 1
    outside = ((places < 0) | (places > last)).any(axis=0)
    if fill_mode == "wrap":
        places = np.where(outside, places % np.maximum(last, 1), places)
    if order == 0:
        places = np.floor(places + 0.5)
    edges = "reflect" if fill_mode == "reflect" else "nearest"
    tensors = [convert_to_tensor(v) for v in (image.astype("float64"), *places)]
    found = interpolate(who, tensors[0], tensors[1:], order, edges, 0.0).numpy()
    if fill_mode == "constant":
        found = np.where(outside[..., None], cval, found)
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        found = np.clip(
            np.trunc(found + np.copysign(0.5, found)), limits.min, limits.max
        )
    return found.astype(image.dtype)


def random_rotation(
    x: np.ndarray,
    rg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """The image turned by at most ``rg`` degrees; see `apply_affine_transform`."""
    how = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    return apply_affine_transform(x, np.random.uniform(-rg, rg), 0, 0, 0, 1, 1, *how)


def random_shift(
    x: np.ndarray,
    wrg: float,
    hrg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """The image shifted by at most these fractions of its width and height."""
    how = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    tx = np.random.uniform(-hrg, hrg) * x.shape[row_axis]
    ty = np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return apply_affine_transform(x, 0, tx, ty, 0, 1, 1, *how)


def random_shear(
    x: np.ndarray,
    intensity: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """The image sheared by at most ``intensity`` degrees."""
    how = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    shear = np.random.uniform(-intensity, intensity)
    return apply_affine_transform(x, 0, 0, 0, shear, 1, 1, *how)


def random_zoom(
    x: np.ndarray,
    zoom_range: Sequence[float],
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """The image zoomed by factors between the two of ``zoom_range``, one for each axis."""
    how = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    low, high = _pair("random_zoom: zoom_range", zoom_range)
    zx, zy = (1, 1) if low == high == 1 else np.random.uniform(low, high, 2)
    return apply_affine_transform(x, 0, 0, 0, 0, zx, zy, *how)


def _pair(name, given):
    if len(given) != 2:
        raise ValueError(f"{name} must be two floats, got {given}")
    return given


def apply_channel_shift(
    x: np.ndarray, intensity: float, channel_axis: int = 0
) -> np.ndarray:
    """The image plus ``intensity``, within its own least and greatest value."""
    return np.clip(x + intensity, np.min(x), np.max(x))


def random_channel_shift(
    x: np.ndarray, intensity_range: float, channel_axis: int = 0
) -> np.ndarray:
    """The image plus at most ``intensity_range``, within its range of values."""
    intensity = np.random.uniform(-intensity_range, intensity_range)
    return apply_channel_shift(x, intensity, channel_axis)


def apply_brightness_shift(
    x: np.ndarray, brightness: float, scale: bool = True
) -> np.ndarray:
    """The image times ``brightness``, as an image of 8 bits; needs the extra ``image``.

    ``scale``: first spread its values over 0 to 255. Values outside of 0 to 255 are spread
    in any case, and without ``scale`` return to their range. The axis of the channels is
    that of `keras.config.image_data_format`.
    """
    return brightened(x, brightness, scale, None)


def brightened(
    x: np.ndarray, brightness: float, scale: bool, data_format: str | None
) -> np.ndarray:
    """`apply_brightness_shift` of an image of a given format."""
    pil = pillow("apply_brightness_shift")
    low, high = np.min(x), np.max(x)
    spread = low < 0 or high > 255
    image = array_to_img(x, data_format, scale=bool(spread or scale))
    black = pil.new(image.mode, image.size, 0)
    if image.mode == "RGBA":
        black.putalpha(image.getchannel("A"))
    result = img_to_array(pil.blend(black, image, brightness), data_format)
    if spread and not scale:
        result = result / 255 * (high - low) + low
    return result


def random_brightness(
    x: np.ndarray, brightness_range: Sequence[float], scale: bool = True
) -> np.ndarray:
    """The image times a number between the two of ``brightness_range``."""
    low, high = _pair("random_brightness: brightness_range", brightness_range)
    return apply_brightness_shift(x, np.random.uniform(low, high), scale)
