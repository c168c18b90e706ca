"""Uncompressed BMP files of 8, 24 and 32 bits per pixel: arrays as in TensorFlow."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tapewright.core.errors import InvalidArgumentError


def bmp_array(who: str, data: bytes, channels: int) -> np.ndarray[Any, Any]:
    """Decode a BMP file to uint8 ``[height, width, channels]``, ``channels`` 0, 3 or 4.

    As in TensorFlow, images with 8 bits per pixel are gray; the palette is ignored.
    """
    if channels not in (0, 3, 4):
        raise InvalidArgumentError(
            f"{who}: channels must be 0, 3 or 4 for BMP, got {channels}"
        )
    if len(data) < 32:
        raise InvalidArgumentError(f"{who}: the header of the BMP file is cut off")
    start, width, height, bits = struct.unpack_from("<10xI4xii2xH", data)
    own = bits // 8
    if bits not in (8, 24, 32) or width <= 0 or height == 0:
        raise InvalidArgumentError(
            f"{who}: a BMP file must have at least one pixel, of 8, 24 or 32 bits, "
            f"got {width} x {height} of {bits} bits"
        )
    step = (own * width + 3) // 4 * 4  # rows are multiples of 4 bytes
    if len(data) < start + step * abs(height):
        raise InvalidArgumentError(
            f"{who}: the BMP file is cut off: its {width} x {height} pixels take "
            f"{start + step * abs(height)} bytes, it has {len(data)}"
        )
    rows = np.frombuffer(data, np.uint8, step * abs(height), start)
    array = rows.reshape(abs(height), step)[:: -1 if height > 0 else 1, : own * width]
    array = array.reshape(abs(height), width, own)
    colors, alpha = array[..., 2::-1], array[..., 3:]
    channels = channels or own
    if own == 1 and channels > 1:
        colors = np.repeat(array, 3, -1)
    if channels == 4 and own != 4:
        alpha = np.full((*colors.shape[:2], 1), 255, np.uint8)
    return np.concatenate([colors, alpha][: 2 if channels == 4 else 1], -1)
