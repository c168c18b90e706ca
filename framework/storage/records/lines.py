"""Files of lines, of fixed-length records, and of comma-separated values.

The readers yield each record with the position after it, in bytes of the decompressed
file, from which another reader can continue.
"""

import gzip
import io
import os
import zlib
from contextlib import closing

from tapewright.core.errors import DataLossError, InvalidArgumentError

from .paths import file_errors

PIECE = 1 << 16
COMPRESSIONS = "", "GZIP", "ZLIB"


def check_compression(who, compression):
    """Return the name of a compression: "", "GZIP" or "ZLIB".

    Raises:
        InvalidArgumentError: For any other compression (a ValueError).
    """
    name = "" if compression is None else compression
    if name not in COMPRESSIONS:
        raise InvalidArgumentError(
            f"{who}: compression_type must be '', 'GZIP' or 'ZLIB', got {compression!r}"
        )
    return name


def open_compressed(path, compression=""):
    """Open a file of bytes that are decompressed while they are read.

    Raises:
        NotFoundError: If there is no file.
        DataLossError: On reading, if the file is damaged.
    """
    with file_errors():
        file = open(path, "rb")
    if compression == "":
        return file
    return io.BufferedReader(_Inflated(path, file, compression), PIECE)


class _Inflated(io.RawIOBase):
    """The decompressed bytes of a gzip or zlib file, in forward direction."""

    def __init__(self, path, file, compression):
        self._path, self._file, self._compression = path, file, compression
        self._started = False
        if compression == "GZIP":
            self._read = gzip.GzipFile(fileobj=file).read
        else:
            self._inflate, self._read = zlib.decompressobj(), self._read_zlib

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            data = self._read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise DataLossError(
                f"{os.fsdecode(self._path)} is damaged as {self._compression}: {error}"
            ) from error
        buffer[: len(data)] = data
        return len(data)

    def _read_zlib(self, size):
        while not self._inflate.eof:
            piece = self._inflate.unconsumed_tail or self._file.read(PIECE)
            if not piece and not self._started:
                return b""  # an empty file
            self._started = True
            data = self._inflate.decompress(piece, size)
            if data:
                return data
            if not piece:
                raise EOFError("it ends too early")
        return b""

    def close(self):
        self._file.close()
        super().close()


def skip_to(file, offset):
    """Advance to a position of a file that is open at its start."""
    if file.seekable():
        file.seek(offset)
        return
    while offset > 0 and (piece := file.read(min(offset, PIECE))):
        offset -= len(piece)


def read_lines(path, compression="", offset=0):
    """Yield ``(line, position after it)``; carriage returns are removed, as in TensorFlow."""
    with closing(open_compressed(path, compression)) as file:
        skip_to(file, offset)
        for line in file:
            offset += len(line)
            yield line.removesuffix(b"\n").replace(b"\r", b""), offset


def read_fixed(
    path, record_bytes, header_bytes, footer_bytes, compression="", offset=0
):
    """Yield ``(record, position after it)`` for fixed-length records.

    Raises:
        InvalidArgumentError: If the last record is incomplete.
    """
    with closing(open_compressed(path, compression)) as file:
        if not compression:
            _check_body(
                path, os.path.getsize(path), record_bytes, header_bytes, footer_bytes
            )
        skip_to(file, offset or header_bytes)
        offset, held = offset or header_bytes, b""
        while True:
            held += file.read(max(record_bytes, PIECE))
            start, end = 0, len(held) - footer_bytes
            while start + record_bytes <= end:
                offset += record_bytes
                yield held[start : start + record_bytes], offset
                start += record_bytes
            if not start:
                break
            held = held[start:]
        if compression:
            size = offset + len(held)
            _check_body(path, size, record_bytes, header_bytes, footer_bytes)


def _check_body(path, size, record_bytes, header_bytes, footer_bytes):
    body = size - header_bytes - footer_bytes
    if body < 0 or body % record_bytes:
        raise InvalidArgumentError(
            f"{os.fsdecode(path)}: {body} bytes between a header of {header_bytes} "
            f"and a footer of {footer_bytes} are not a multiple of "
            f"record_bytes={record_bytes}"
        )


def read_rows(path, compression="", offset=0, quoted=True):
    """Yield ``(row, position after it)``; a quoted field may span several lines."""
    with closing(open_compressed(path, compression)) as file:
        skip_to(file, offset)
        row = b""
        for line in file:
            offset += len(line)
            row += line
            if quoted and row.count(b'"') % 2:
                continue
            row = row.removesuffix(b"\n").removesuffix(b"\r")
            yield row, offset
            row = b""
        if row:
            raise InvalidArgumentError(
                f"{os.fsdecode(path)}: a quoted field is not closed at the end of the "
                "file"
            )


def split_row(row, delimiter=b",", quoted=True):
    """Split a row of comma-separated values (RFC 4180) into fields, as bytes.

    Raises:
        InvalidArgumentError: For quotes that are neither around a field nor doubled.

    Example:
        >>> from tapewright.storage.records.lines import split_row
        >>> split_row(b'1,"a ""b"", c",')
        [b'1', b'a "b", c', b'']
    """
    if not quoted or b'"' not in row:
        if quoted and (b"\n" in row or b"\r" in row):
            raise InvalidArgumentError(
                f"An unquoted field contains a line break: {row!r}"
            )
        return row.split(delimiter)
    fields, offset = [], 0
    while True:
        if row[offset : offset + 1] == b'"':
            field, offset = _quoted(row, offset + 1)
            if offset < len(row) and row[offset : offset + 1] != delimiter:
                raise InvalidArgumentError(
                    f"A quote in a quoted field must be doubled: {row!r}"
                )
        else:
            end = row.find(delimiter, offset)
            end = len(row) if end < 0 else end
            field, offset = row[offset:end], end
            if any([each in field for each in (b'"', b"\n", b"\r")]):
                raise InvalidArgumentError(
                    f"A field with a quote or a line break must be quoted: {row!r}"
                )
        fields.append(field)
        if offset >= len(row):
            return fields
        offset += 1


def _quoted(row, offset):
    """Return the field whose first quote is before ``offset``, and the position after it."""
    parts = []
    while True:
        end = row.find(b'"', offset)
        if end < 0:
            raise InvalidArgumentError(f"A quoted field is not closed: {row!r}")
        parts.append(row[offset:end])
        if row[end + 1 : end + 2] != b'"':
            return b'"'.join(parts), end + 1
        offset = end + 2
