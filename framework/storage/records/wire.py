"""The binary format of protocol buffers: fields of a number, a kind and a value.

For untrusted bytes: every length is checked before anything is read, and integers have
at most 64 bits. Messages are parsed one level at a time by functions for their types,
so the bytes cannot determine the depth.
"""

import numpy as np

from tapewright.core.errors import InvalidArgumentError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def check(holds, what):
    """Raise unless the bytes are valid.

    Raises:
        InvalidArgumentError: If ``holds`` is False (a ValueError).
    """
    if not holds:
        raise InvalidArgumentError(f"The bytes are not a protocol buffer: {what}")


def fields(data):
    """Yield ``(number, kind, value)`` for each field of a message, in order.

    Values are unsigned integers for `VARINT`, else views of the bytes.

    Raises:
        InvalidArgumentError: If the bytes are not a message.

    Example:
        >>> from tapewright.storage.records.wire import fields
        >>> [(number, bytes(value)) for number, _, value in fields(bytes([10, 2, 65, 66]))]
        [(1, b'AB')]
    """
    data, offset = memoryview(data), 0
    while offset < len(data):
        tag, offset = read_varint(data, offset)
        number, kind = tag >> 3, tag & 7
        check(0 < number < 1 << 29, f"a field has the number {number}")
        if kind == VARINT:
            value, offset = read_varint(data, offset)
        else:
            if kind == LENGTH:
                size, offset = read_varint(data, offset)
            else:
                check(kind in (FIXED32, FIXED64), f"a field is of the kind {kind}")
                size = 4 if kind == FIXED32 else 8
            check(size <= len(data) - offset, "a field is longer than the rest of it")
            value = data[offset : offset + size]
            offset += size
        yield number, kind, value


def map_entries(data):
    """Yield the name and the value, views of bytes, of each entry of a map message.

    Raises:
        InvalidArgumentError: As in `fields`.
    """
    for number, kind, entry in fields(data):
        if number != 1:
            continue
        check(kind == LENGTH, "an entry of a map is not a message")
        name, value = b"", b""
        for part, kind, content in fields(entry):
            if part <= 2:
                check(kind == LENGTH, "an entry of a map has an integer")
                name, value = (content, value) if part == 1 else (name, content)
        yield name, value


def read_varint(data, offset):
    """Return the unsigned integer at a position, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        check(offset < len(data), "it ends inside an integer")
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, offset
    check(False, "an integer has more than 10 bytes")


def signed(value):
    """Convert an unsigned 64-bit integer to a signed one."""
    return value - (1 << 64) if value >> 63 else value


def packed_float(data):
    """Return an array of float32 from the packed values of a field."""
    check(len(data) % 4 == 0, f"{len(data)} bytes are not a whole number of floats")
    return np.frombuffer(data, "<f4").astype(np.float32)


def packed_varints(data):
    """Return an array of int64 from the packed integers of a field."""
    bits = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(bits < 128) + 1
    check(not bits.size or ends.size and ends[-1] == bits.size, "it ends in an integer")
    starts = np.concatenate([[0], ends[:-1]]) if ends.size else ends
    sizes = ends - starts
    longest = sizes.max(initial=0)
    check(longest <= 10, "an integer has more than 10 bytes")
    values = np.zeros(ends.size, np.uint64)
    for i in range(longest):
        there = np.flatnonzero(sizes > i)
        part = (bits[starts[there] + i] & 127).astype(np.uint64)
        values[there] |= part << np.uint64(7 * i)
    return values.view(np.int64)


def put_varint(value):
    """Return the bytes of an integer, as 64 bits if it is negative."""
    value &= (1 << 64) - 1
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def put_packed_varints(values):
    """Return the concatenated bytes of integers."""
    rest = np.asarray(values, np.int64).view(np.uint64)
    groups = rest[:, None] >> (7 * np.arange(10)).astype(np.uint64)
    bits = (groups & 127).astype(np.uint8)
    further = groups[:, 1:] != 0  # there are more bytes after this one
    bits[:, :-1] |= further.astype(np.uint8) << 7
    kept = np.concatenate([np.ones((len(rest), 1), bool), further], axis=1)
    return bits[kept].tobytes()


def put_int(number, value):
    """Return an integer field."""
    return put_varint(number << 3 | VARINT) + put_varint(value)


def put_bytes(number, value):
    """Return a field of bytes, text or a message."""
    return put_varint(number << 3 | LENGTH) + put_varint(len(value)) + bytes(value)
