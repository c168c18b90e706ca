"""Weights files: the values of variables in the order and offsets of one library.

A file is a header and the memory image of the variables. The library that it belongs to
knows the layout of the image; the sums find damage. All numbers are little-endian.
"""

import hashlib
import struct

import numpy as np

ALIGNMENT = 64
MAGIC = 0x31_73_74_68_67_69_65_77  # b"weights1"
HEADER = struct.Struct("<QQQQQ24x")  # magic, layout, bytes of the image, two sums


def offsets_of(sizes):
    """Return the offset of each of some sizes in bytes, and the size of all."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, end


def image_of(arrays):
    """Return the memory image of arrays, as bytes."""
    offsets, size = offsets_of([a.nbytes for a in arrays])
    image = np.zeros(size, np.uint8)
    for offset, array in zip(offsets, arrays):
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        image[offset : offset + flat.size] = flat
    return image.tobytes()


def head_of(image, names, arrays):
    """Return the header for an image of arrays with these names."""
    layout = repr([(n, a.shape, a.dtype.str) for n, a in zip(names, arrays)])
    number = int.from_bytes(hashlib.sha256(layout.encode()).digest()[:8], "little")
    return HEADER.pack(MAGIC, number, len(image), *checksums(image))


def checksums(image):
    """Return the sum of 64-bit words, and the sum of those sums, of their first words."""
    words = np.frombuffer(image, "<u8")
    weights = np.arange(words.size, 0, -1, dtype=np.uint64)
    return int(words.sum(dtype=np.uint64)), int((words * weights).sum(dtype=np.uint64))
