"""GIF files: the blocks of GIF89a, one frame at a time, not decompressed.

Reference: CompuServe, "Graphics Interchange Format, version 89a" (1990).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Frame", "read_frames"]

EXTENSION, IMAGE = 0x21, 0x2C
GRAPHIC_CONTROL = 0xF9
INTERLACED, HAS_TABLE, TABLE_OF_256 = 0x40, 0x80, 0x87
ANY_COLORS = bytes([value for value in range(256) for _ in "RGB"])


@dataclass(frozen=True)
class Frame:
    """One image of a file: its place, its colors ``[n, 3]``, its compressed pixels."""

    left: int
    top: int
    width: int
    height: int
    flags: int
    transparent: int  # the index that leaves pixels as they are; -1 for none
    colors: np.ndarray[Any, Any]
    pixels: bytes

    def as_file(self) -> bytes:
        """A GIF file of these pixels alone, with all of 256 colors."""
        size = struct.pack("<HH", self.width, self.height)
        head = b"GIF89a" + size + bytes([TABLE_OF_256, 0, 0]) + ANY_COLORS
        descriptor = (
            bytes([IMAGE, 0, 0, 0, 0]) + size + bytes([self.flags & INTERLACED])
        )
        return head + descriptor + self.pixels + b";"


def read_frames(data: bytes) -> Iterator[Frame]:
    """The frames of a file, up to its end or to where it is cut off.

    Raises: ``ValueError`` for other blocks, or a frame without colors.
    """
    if len(data) < 13:
        raise ValueError("its header is cut off")
    shared, at = _table(data, 13, data[10])
    transparent = -1
    while at < len(data):
        kind = data[at]
        if kind == EXTENSION:
            if data[at + 1 : at + 3] == bytes([GRAPHIC_CONTROL, 4]) and at + 6 < len(
                data
            ):
                transparent = data[at + 6] if data[at + 3] & 1 else -1
            end = _end_of_blocks(data, at + 2)
        elif kind == IMAGE and at + 10 < len(data):
            left, top, width, height, flags = struct.unpack_from("<HHHHB", data, at + 1)
            colors, start = _table(data, at + 10, flags)
            end = _end_of_blocks(data, start + 1)
            colors = shared if colors is None else colors
            if end is not None:
                if colors is None:
                    raise ValueError("a frame has no table of colors")
                pixels = data[start:end]
                yield Frame(
                    left, top, width, height, flags, transparent, colors, pixels
                )
            transparent = -1
        elif kind == ord(";"):
            return
        else:
            raise ValueError(f"a block of an unknown kind, {kind}")
        if end is None:
            return
        at = end


def _table(data, at, flags):
    """The table of colors at a position, or None if there is none; and its end."""
    if not flags & HAS_TABLE:
        return None, at
    end = at + 3 * 2 ** ((flags & 7) + 1)
    if end > len(data):
        raise ValueError("a table of colors is cut off")
    return np.frombuffer(data[at:end], np.uint8).reshape(-1, 3), end


def _end_of_blocks(data, at):
    """The position behind blocks that begin with their lengths, the last one 0."""
    while at < len(data):
        if data[at] == 0:
            return at + 1
        at += 1 + data[at]
    return None
