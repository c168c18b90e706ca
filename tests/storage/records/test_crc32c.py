"""CRC-32C: the vectors of RFC 3720, and every length around the sizes of blocks."""

import numpy as np
import pytest

from tapewright.storage.records.crc32c import crc32c, masked_crc32c


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_vectors_of_the_rfc(data, expected):
    assert crc32c(data) == expected


def bit_by_bit(data):
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [48, 49, 1023, 1024, 1025, 2049, 65 * 1024 + 3])
def test_rows_join_to_the_sum_of_single_bits(size):
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == bit_by_bit(data)


def test_a_masked_checksum_is_that_of_tensorflow():
    """``(crc >> 15 | crc << 17) + 0xa282ead8`` in 32 bits."""
    assert masked_crc32c(b"123456789") == (
        (0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8
    ) & (2**32 - 1)
