"""Random and fixed transforms of one image, an array, for `ImageDataGenerator`.

Random numbers are drawn from NumPy's global generator (``np.random.seed``), as in
Keras.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.rules import check_choice
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.image.interpolation import interpolate
from tapewright.storage.records.images import pillow

from ...utils.image_utils import array_to_img, img_to_array

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILL_MODES = ("nearest", "constant", "reflect", "wrap")


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
    """Rotate, shift, shear and zoom an image about its center, in this order.

    Args:
        x: Image, an array with three axes.
        theta: Rotation in degrees.
        tx: Shift of the window in pixels; to the right if ``col_axis > row_axis``.
        ty: Shift of the window in pixels; down if ``col_axis > row_axis``.
        shear: Shear in degrees.
        zx: Zoom in the direction of ``tx``; below 1 enlarges.
        zy: Zoom in the direction of ``ty``; below 1 enlarges.
        row_axis: Axis of the rows.
        col_axis: Axis of the columns.
        channel_axis: Axis of the channels.
        fill_mode: Mode of pixels outside the image: "nearest" (the edge), "constant"
            (``cval``), "reflect" (``d c b a | a b c d``) or "wrap" (with the period
            ``size - 1``, as in SciPy).
        cval: Value of pixels outside the image for "constant".
        order: 0 for the nearest pixel, 1 for linear interpolation.

    Shapes:
        ``x`` and the result ``[channels, height, width]``, or in the order given by the
        axes.

    Returns:
        The image in the dtype of ``x``; integers are rounded.

    Raises:
        ValueError: If the axes are not 0, 1 and 2 with the channels first or last,
            ``x`` does not have three axes, or ``fill_mode`` or ``order`` is invalid.
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
    check_choice(who, "fill_mode", fill_mode, _FILL_MODES)
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
    positions = np.tensordot(matrix, np.indices(image.shape[:2]), 1)
    positions += start[:, None, None]
    result = _values(who, image, positions, fill_mode, cval, order)
    return np.moveaxis(result, -1, channel_axis)


def _values(who, image, positions, fill_mode, cval, order):
    """Return the pixels at ``positions``, with edges as in SciPy's ``ndimage``."""
    last = np.array(image.shape[:2])[:, None, None] - 1
    outside = ((positions < 0) | (positions > last)).any(axis=0)
    if fill_mode == "wrap":
        positions = np.where(outside, positions % np.maximum(last, 1), positions)
    if order == 0:
        positions = np.floor(positions + 0.5)
    edges = "reflect" if fill_mode == "reflect" else "nearest"
    tensors = [convert_to_tensor(v) for v in (image.astype("float64"), *positions)]
    pixels = interpolate(who, tensors[0], tensors[1:], order, edges, 0.0).numpy()
    if fill_mode == "constant":
        pixels = np.where(outside[..., None], cval, pixels)
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        pixels = np.clip(
            np.trunc(pixels + np.copysign(0.5, pixels)), limits.min, limits.max
        )
    return pixels.astype(image.dtype)


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
    """Rotate an image by a random angle; see `apply_affine_transform`.

    Args:
        x: Image, an array with three axes.
        rg: Largest angle, in degrees.
        row_axis: Axis of the rows.
        col_axis: Axis of the columns.
        channel_axis: Axis of the channels.
        fill_mode: Mode of pixels outside the image: "nearest", "constant", "reflect" or
            "wrap", see `apply_affine_transform`.
        cval: Value of pixels outside the image for "constant".
        interpolation_order: 0 for the nearest pixel, 1 for linear interpolation.
    """
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
    """Shift an image by a random fraction of its width and height.

    Args:
        x: Image, an array with three axes.
        wrg: Largest shift, as a fraction of the width.
        hrg: Largest shift, as a fraction of the height.
        row_axis: Axis of the rows.
        col_axis: Axis of the columns.
        channel_axis: Axis of the channels.
        fill_mode: Mode of pixels outside the image: "nearest", "constant", "reflect" or
            "wrap", see `apply_affine_transform`.
        cval: Value of pixels outside the image for "constant".
        interpolation_order: 0 for the nearest pixel, 1 for linear interpolation.
    """
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
    """Shear an image by a random angle.

    Args:
        x: Image, an array with three axes.
        intensity: Largest angle, in degrees.
        row_axis: Axis of the rows.
        col_axis: Axis of the columns.
        channel_axis: Axis of the channels.
        fill_mode: Mode of pixels outside the image: "nearest", "constant", "reflect" or
            "wrap", see `apply_affine_transform`.
        cval: Value of pixels outside the image for "constant".
        interpolation_order: 0 for the nearest pixel, 1 for linear interpolation.
    """
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
    """Zoom an image by random factors, one per axis.

    Args:
        x: Image, an array with three axes.
        zoom_range: Pair of the smallest and the largest factor.
        row_axis: Axis of the rows.
        col_axis: Axis of the columns.
        channel_axis: Axis of the channels.
        fill_mode: Mode of pixels outside the image: "nearest", "constant", "reflect" or
            "wrap", see `apply_affine_transform`.
        cval: Value of pixels outside the image for "constant".
        interpolation_order: 0 for the nearest pixel, 1 for linear interpolation.
    """
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
    """Add ``intensity`` to an image, clipped to the range of its values.

    Args:
        x: Image, an array with three axes.
        intensity: Number to add.
        channel_axis: Axis of the channels.
    """
    return np.clip(x + intensity, np.min(x), np.max(x))


def random_channel_shift(
    x: np.ndarray, intensity_range: float, channel_axis: int = 0
) -> np.ndarray:
    """Add a random number to an image, clipped to the range of its values.

    Args:
        x: Image, an array with three axes.
        intensity_range: Largest magnitude of the number.
        channel_axis: Axis of the channels.
    """
    intensity = np.random.uniform(-intensity_range, intensity_range)
    return apply_channel_shift(x, intensity, channel_axis)


def apply_brightness_shift(
    x: np.ndarray, brightness: float, scale: bool = True
) -> np.ndarray:
    """Multiply an image by ``brightness``, as an 8-bit image; needs the extra ``image``.

    The channel axis is given by `keras.config.image_data_format`.

    Args:
        x: Image, an array with three axes.
        brightness: Brightness factor.
        scale: If True, first map the range of values to 0 to 255. Values outside of 0
            to 255 are mapped in any case, and if False they return to their range.
    """
    return brightened(x, brightness, scale, None)


def brightened(
    x: np.ndarray, brightness: float, scale: bool, data_format: str | None
) -> np.ndarray:
    """Compute `apply_brightness_shift` for an image in a given data format."""
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
    """Multiply an image by a random brightness factor.

    Args:
        x: Image, an array with three axes.
        brightness_range: Pair of the smallest and the largest factor.
        scale: If True, first map the range of values to 0 to 255, see
            `apply_brightness_shift`.
    """
    low, high = _pair("random_brightness: brightness_range", brightness_range)
    return apply_brightness_shift(x, np.random.uniform(low, high), scale)
