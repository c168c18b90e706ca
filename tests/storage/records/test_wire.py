"""The format of protocol buffers: integers of all sizes, and hostile bytes."""

import numpy as np
import pytest

from tapewright.errors import InvalidArgumentError
from tapewright.storage.records.wire import (
    fields,
    packed_float,
    packed_varints,
    put_bytes,
    put_int,
    put_packed_varints,
    put_varint,
)

NUMBERS = [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)]


def test_integers_take_as_many_groups_of_7_bits_as_they_need():
    assert put_varint(300) == b"\xac\x02"  # the documentation of protocol buffers
    packed = put_packed_varints(NUMBERS)
    assert packed == b"".join(map(put_varint, NUMBERS))
    assert packed_varints(packed).tolist() == NUMBERS
    assert packed_varints(b"").tolist() == []


def test_fields_are_read_in_order():
    data = put_int(1, 300) + put_bytes(2, b"ab") + b"\x1d\1\2\3\4" + b"\x21" + b"8" * 8
    assert [
        (number, kind, value if kind == 0 else bytes(value))
        for number, kind, value in fields(data)
    ] == [(1, 0, 300), (2, 2, b"ab"), (3, 5, b"\1\2\3\4"), (4, 1, b"8" * 8)]


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"\x0a\x05ab", "longer than the rest"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "longer than the rest"),
        (b"\x08", "ends inside an integer"),
        (b"\x08" + b"\xff" * 11, "more than 10 bytes"),
        (b"\x0d\1\2", "longer than the rest"),
        (b"\x0b", "of the kind 3"),
        (b"\x02\0", "the number 0"),
    ],
)
def test_hostile_bytes_are_refused(data, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        list(fields(data))


def test_packed_values_are_whole():
    for read, data in [
        (packed_varints, b"\x01\x80"),
        (packed_varints, b"\xff" * 10 + b"\x01"),
        (packed_float, bytes(5)),
    ]:
        with pytest.raises(InvalidArgumentError, match="not a protocol buffer"):
            read(np.frombuffer(data, np.uint8))
