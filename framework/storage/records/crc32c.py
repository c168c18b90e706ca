"""CRC-32C, the checksum of TFRecord files: Castagnoli's polynomial, bits reversed.

A checksum is linear in the bits of the message. So the contribution of each byte
follows from its value and its distance from the end: one gather from a table, and one
XOR over a row.
"""

from functools import cache

import numpy as np

POLYNOMIAL = 0x82F63B78
ROW = 1024  # bytes of a row; the table of their parts has 1 MB
BLOCK = 64  # rows of one gather, whose memory stays in the cache
SHORT = 48  # bytes up to which Python is faster


def crc32c(data) -> int:
    """Compute the CRC-32C of bytes (RFC 3720, appendix B.4).

    It processes 150 MB/s, and more for large messages.

    Example:
        >>> from tapewright.storage.records.crc32c import crc32c
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    size = len(data)
    if size <= SHORT:
        return _advance(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    rows = -(-size // ROW)
    padded = np.zeros(rows * ROW, np.uint8)  # zeros in front change nothing
    message = padded[-size:]
    message[:] = np.frombuffer(data, np.uint8)
    message[:4] ^= 0xFF  # the register starts with ones
    parts, offsets, (a, b, c, d) = _parts()
    if rows == 1:
        indices = message + offsets[-size:]
        return int(np.bitwise_xor.reduce(parts.take(indices))) ^ 0xFFFFFFFF
    state, padded = 0, padded.reshape(rows, ROW)
    for first in range(0, rows, BLOCK):
        indices = padded[first : first + BLOCK] + offsets
        for row in np.bitwise_xor.reduce(parts.take(indices), axis=1).tolist():
            state = (
                row
                ^ a[state & 255]
                ^ b[state >> 8 & 255]
                ^ c[state >> 16 & 255]
                ^ d[state >> 24]
            )
    return state ^ 0xFFFFFFFF


def masked_crc32c(data) -> int:
    """Compute the checksum of TFRecord files: rotated, plus a constant.

    The mask keeps checksums of data that contains checksums reliable.
    """
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _advance(state, data):
    table = _table()
    for byte in bytes(data):
        state = state >> 8 ^ table[(state ^ byte) & 255]
    return state


@cache
def _table():
    """The register after each byte, as a list."""
    states = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        states = states >> 1 ^ np.where(states & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return states.tolist()


@cache
def _parts():
    """Return the contributions of all bytes of a row, and offsets for bytes and registers.

    The contributions are flat. The lowest byte of a register meets the first byte of
    the row that follows, and so on.
    """
    table = np.array(_table(), np.uint32)
    parts = np.empty((ROW, 256), np.uint32)
    parts[-1] = table
    for i in range(ROW - 2, -1, -1):
        parts[i] = parts[i + 1] >> 8 ^ table[parts[i + 1] & 255]
    return parts.reshape(-1), np.arange(ROW) * 256, parts[:4].tolist()
