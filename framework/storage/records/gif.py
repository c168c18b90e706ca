"""GIF files: arrays as giflib decodes them, of frames that Pillow decompresses.

References:
    CompuServe, "Graphics Interchange Format, version 89a" (1990).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tapewright.core.errors import InvalidArgumentError

from .images import check_pixels, pillow, reading

EXTENSION, IMAGE = 0x21, 0x2C
GRAPHIC_CONTROL = b"\xf9\x04"
INTERLACED, HAS_TABLE = 0x40, 0x80


def gif_array(who: str, data: bytes, first_only: bool = False) -> np.ndarray[Any, Any]:
    """Decode the frames of a GIF file to uint8 ``[frames, height, width, 3]``.

    A frame is drawn over the previous one, ignoring its disposal method, as in
    TensorFlow; the first one over black. Frames that are cut off at the end of the file
    are omitted.
    """
    with reading(who, "the GIF file"):
        listed = list(read_frames(data))
        drawn = listed[:1] if first_only else listed
        check_pixels(who, sum([frame.width * frame.height for frame in drawn]))
        rasters, module = [], pillow(who)
        for frame in drawn:
            try:
                rasters.append(_raster(module, frame))
            except ValueError:  # it is cut off
                break
        if not rasters:
            raise ValueError("it has no complete frame")
    listed = listed if first_only else listed[: len(rasters)]
    height = max([frame.height for frame in listed])
    width = max([frame.width for frame in listed])
    check_pixels(who, len(rasters) * height * width)
    frames = np.zeros((len(rasters), height, width, 3), np.uint8)
    for number, (frame, raster) in enumerate(zip(listed, rasters)):
        canvas = frames[number, frame.top :, frame.left :]
        raster = raster[: canvas.shape[0], : canvas.shape[1]]
        if raster.max(initial=0) >= len(frame.colors):
            raise InvalidArgumentError(f"{who}: a pixel of the GIF file has no color")
        if frame.transparent < 0 and raster.shape == (height, width):
            canvas[:] = frame.colors[raster]
            continue
        if number:
            frames[number] = frames[number - 1]
        drawn = raster != frame.transparent
        canvas[: raster.shape[0], : raster.shape[1]][drawn] = frame.colors[
            raster[drawn]
        ]
    return frames


def _raster(module, frame):
    """Return the color indices of one frame, ``[height, width]``.

    Pillow's decoder alone, without its file reader, takes a fifth of the time.

    Raises:
        ValueError: If the frame is cut off.
    """
    size = frame.width, frame.height
    options = frame.pixels[0], bool(frame.flags & INTERLACED)
    pixels = module.frombytes("L", size, frame.pixels[1:], "gif", options).tobytes()
    return np.frombuffer(pixels, np.uint8).reshape(frame.height, frame.width)


class Frame(NamedTuple):
    """One image of a file: its bounds, its colors ``[n, 3]``, its compressed pixels."""

    left: int
    top: int
    width: int
    height: int
    flags: int
    transparent: int  # the index that leaves pixels as they are; -1 for none
    colors: np.ndarray[Any, Any]
    pixels: bytes  # the size of codes, then blocks


def read_frames(data: bytes) -> Iterator[Frame]:
    """Yield the frames of a file, up to its end or to where it is cut off or damaged.

    Raises:
        ValueError: If a frame has no colors.
    """
    if len(data) < 13:
        return
    shared, at = _table(data, 13, data[10])
    transparent = -1
    while at is not None and at + 10 < len(data):
        if data[at] == EXTENSION:
            if data[at + 1 : at + 3] == GRAPHIC_CONTROL:
                transparent = data[at + 6] if data[at + 3] & 1 else -1
            at = _end_of_blocks(data, at + 2)
        elif data[at] == IMAGE:
            *bounds, flags = struct.unpack_from("<HHHHB", data, at + 1)
            colors, start = _table(data, at + 10, flags)
            colors = shared if colors is None else colors
            at = None if start is None else _end_of_blocks(data, start + 1)
            if at is not None:
                if colors is None:
                    raise ValueError("a frame has no color table")
                yield Frame(*bounds, flags, transparent, colors, data[start:at])
            transparent = -1
        else:
            return


def _table(data, at, flags):
    """Return the color table at a position, or None, and its end.

    The end is None if the table is cut off.
    """
    if not flags & HAS_TABLE:
        return None, at
    end = at + 3 * 2 ** ((flags & 7) + 1)
    if end > len(data):
        return None, None
    return np.frombuffer(data[at:end], np.uint8).reshape(-1, 3), end


def _end_of_blocks(data, at):
    """Return the position after blocks that begin with their lengths, the last one 0."""
    while at < len(data):
        if data[at] == 0:
            return at + 1
        at += 1 + data[at]
    return None
