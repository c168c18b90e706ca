"""TFRecord files: records of bytes, each with its length and two checksums.

``uint64 length, uint32 masked CRC-32C of the length, bytes, uint32 masked CRC-32C of the
bytes``, little-endian; the whole file may be compressed by gzip or zlib.
"""

import os
import struct
import zlib
from contextlib import closing, contextmanager

from tapewright.core.errors import DataLossError

from ..file_objects import discard
from .crc32c import masked_crc32c
from .lines import open_compressed, skip_to
from .paths import file_errors

MOST = 1 << 31  # bytes of a record


def read_records(path, compression="", offset=0):
    """Yield ``(record, position after it)`` for each record from ``offset`` on.

    Raises:
        DataLossError: If a checksum differs, or if a file ends early.
    """
    with closing(open_compressed(path, compression)) as file:
        most = MOST if compression else os.path.getsize(path)
        skip_to(file, offset)
        while head := file.read(12):
            (length,) = struct.unpack("<Q", _checked(path, offset, head, 8))
            if length > min(most, MOST):
                raise _loss(path, offset, f"a record of {length} bytes")
            record = _checked(path, offset, file.read(length + 4), length)
            offset += length + 16
            yield record, offset


def _checked(path, offset, data, size):
    """Return the first ``size`` bytes, after comparing the checksum that follows."""
    if len(data) != size + 4:
        raise _loss(path, offset, "it ends too early")
    content = data[:size]
    if masked_crc32c(content) != struct.unpack("<I", data[size:])[0]:
        raise _loss(path, offset, "a checksum (CRC-32C) differs")
    return content


def _loss(path, offset, what):
    name = os.fsdecode(path)
    return DataLossError(f"{name} is damaged in the record at byte {offset}: {what}")


def put_record(record):
    """Return the bytes of a record in a file."""
    length = struct.pack("<Q", len(record))
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, record)]
    return b"".join([length, sums[0], record, sums[1]])


class RecordWriter:
    """A file of records, written one after the other; see `read_records`.

    The first write that fails closes it, so that no record follows an incomplete one.
    The file then ends within a record, which readers report.

    Raises:
        OSError: If a write fails; it names the file.
    """

    def __init__(self, path, compression="", level=-1):
        with file_errors():
            self._file = open(path, "wb")
        self._path = path
        self._compress = None
        if compression:
            bits = 31 if compression == "GZIP" else 15
            self._compress = zlib.compressobj(level, zlib.DEFLATED, bits)

    def write(self, record):
        """Append the bytes of a record; raise ``ValueError`` if the file is closed."""
        data = put_record(record)
        with self._ended_by_errors():
            self._file.write(
                data if self._compress is None else self._compress.compress(data)
            )

    def flush(self):
        """Flush the buffer to the file."""
        with self._ended_by_errors():
            if self._compress is not None:
                self._file.write(self._compress.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self):
        """Flush the buffer, and close the file."""
        if self._file.closed:
            return
        with self._ended_by_errors():
            if self._compress is not None:
                self._file.write(self._compress.flush())
            self._file.close()

    @contextmanager
    def _ended_by_errors(self):
        try:
            yield
        except OSError as error:
            discard(self._file)
            reason = f"{error.strerror}: the file is incomplete"
            raise OSError(error.errno, reason, self._path) from error
