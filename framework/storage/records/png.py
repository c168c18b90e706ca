"""PNG files: arrays as libpng decodes them, by Pillow's decoder; files by zlib alone.

References:
    RFC 2083, "PNG Specification" (1997).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from .images import opened_image, reading

SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = b"IEND\xae\x42\x60\x82"
Array = np.ndarray[Any, Any]


def png_array(who: str, data: bytes, channels: int, wide: bool = False) -> Array:
    """Decode a PNG file to uint8, or to uint16 if ``wide``.

    ``channels`` is 1, 2, 3, 4, or 0 for the channels of the file (4 for a palette with
    transparent entries). Gray is ``0.299 * red + 0.587 * green + 0.114 * blue``.
    Without transparent parts alpha is the largest value of the dtype; TensorFlow
    returns the largest value of the file's depth, 15 for 4 bits.
    """
    with reading(who, "the PNG file"):
        colors, alpha, gamma = _samples(who, data)
    own = colors.shape[-1]
    if channels == 0:
        has_alpha = alpha is not None and data[25] in (3, 4, 6)
        channels = own + (1 if has_alpha else 0)
    if channels < 3 and own == 3:
        colors = _gray(colors, gamma)
    elif channels > 2 and own == 1:
        colors = np.repeat(colors, 3, -1)
    if channels % 2 == 0:
        if alpha is None:
            alpha = np.full(colors.shape[:2], np.iinfo(colors.dtype).max, colors.dtype)
        colors = np.concatenate([colors, alpha[..., None]], -1)
    if wide:
        return colors * np.uint16(257) if colors.dtype == np.uint8 else colors
    return colors if colors.dtype == np.uint8 else (colors >> 8).astype(np.uint8)


def _gray(colors, gamma):
    """Convert colors to gray in linear light, with libpng's weights in ``2 ** -15``."""
    most = np.iinfo(colors.dtype).max
    red, green = 29900 * 2**15 // 100000, 58700 * 2**15 // 100000
    weights = np.array([red, green, 2**15 - red - green], np.int64)
    if abs(gamma - 1) < 0.05:  # libpng's limit
        rounding = 0 if most == 255 else 2**14
        return ((colors @ weights + rounding) >> 15).astype(colors.dtype)[..., None]
    light = _power(colors, 1 / gamma, most)
    gray = _power((light @ weights + 2**14) >> 15, gamma, most)[..., None]
    is_gray = (colors == colors[..., :1]).all(-1, keepdims=True)
    return np.where(is_gray, colors[..., :1], gray).astype(colors.dtype)


def _power(values, exponent, most):
    return np.floor(most * (values / most) ** exponent + 0.5).astype(np.int64)


def _opened(who, data):
    return opened_image(who, data, "PNG")


def _samples(who, data):
    """Return colors, alpha (or None) and gamma of a file.

    Colors are ``[height, width, 1 or 3]`` in the depth of the file, at least 8 bits;
    alpha is ``[height, width]``.
    """
    image = _opened(who, data)
    if END not in data:  # Pillow does not need it
        raise ValueError("it is cut off")
    depth, kind = data[24], data[25]
    transparent = image.info.get("transparency")
    gamma = 0.45455 if "srgb" in image.info else image.info.get("gamma") or 1
    if depth == 16 and kind == 4:  # as four bytes, for which there is a reader
        header = data[12:24] + b"\x08\x06" + data[26:29]
        checksum = struct.pack(">I", zlib.crc32(header))
        pairs = np.asarray(_opened(who, data[:12] + header + checksum + data[33:]))
        array = _as_uint16(pairs[..., ::2], pairs[..., 1::2])
    elif depth == 16 and kind & 2:  # Pillow reads one byte of each sample
        low = _opened(who, data)
        low.tile = [low.tile[0]._replace(args=f"{low.mode};16L")]
        array = _as_uint16(np.asarray(image), np.asarray(low))
    else:
        array = np.asarray(image)
    if kind == 3:
        entries = _entries(image, transparent)[array]
        alpha = None if transparent is None else entries[..., 3]
        return entries[..., :3], alpha, gamma
    if array.dtype == bool:
        array = array * np.uint8(255)
    array = array[..., None] if array.ndim == 2 else array
    if kind & 4:
        return array[..., :-1], array[..., -1], gamma
    if transparent is None:
        return array, None, gamma
    # Pillow has scaled that of 1 bit.
    scale = 255 // (2**depth - 1) if depth in (2, 4) else 1
    alpha = (array != np.multiply(transparent, scale)).any(-1)
    return array, alpha * np.array(np.iinfo(array.dtype).max, array.dtype), gamma


def _as_uint16(high, low):
    return high.astype(np.uint16) << 8 | low


def _entries(image, transparent):
    """Return the palette as ``[256, 4]``: red, green, blue, alpha."""
    entries = np.zeros((256, 4), np.uint8)
    colors = np.array(image.getpalette("RGB"), np.uint8).reshape(-1, 3)
    entries[: len(colors), :3] = colors
    entries[:, 3] = 255
    if isinstance(transparent, int):
        entries[transparent, 3] = 0
    elif transparent is not None:
        entries[: len(transparent), 3] = np.frombuffer(transparent, np.uint8)
    return entries


def encode_png(array: Array, compression: int = -1) -> bytes:
    """Encode uint8 or uint16 ``[height, width, 1 to 4 channels]`` as a PNG file.

    Each row uses the filter (RFC 2083, section 6) with the smallest sum of absolute
    values.
    """
    height, width, channels = array.shape
    wide = array.dtype == np.uint16
    rows = array.astype(">u2" if wide else np.uint8).reshape(height, -1).view(np.uint8)
    left = np.pad(rows, ((0, 0), (channels << wide, 0)))[:, : rows.shape[1]]
    above = np.pad(rows, ((1, 0), (0, 0)))[:-1]
    filtered = np.stack([rows, rows - left, rows - above])
    cost = np.abs(filtered.view(np.int8).astype(np.int32)).sum(-1)
    best = np.argmin(cost, 0)
    lines = np.take_along_axis(filtered, best[None, :, None], 0)[0]
    content = np.concatenate([best[:, None].astype(np.uint8), lines], 1).tobytes()
    header = struct.pack(
        ">IIBBBBB", width, height, 8 << wide, (0, 4, 2, 6)[channels - 1], 0, 0, 0
    )
    return SIGNATURE + b"".join([
        _chunk(b"IHDR", header),
        _chunk(b"IDAT", zlib.compress(content, compression)),
        _chunk(b"IEND", b""),
    ])  # fmt: skip


def _chunk(kind, content):
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum
