"""The seal: a checksum of a whole file, checked before HDF5 parses any of it.

It is stored in the user block, the first 512 bytes, which HDF5 leaves to applications,
so that any HDF5 reader opens a sealed file::

    TAPEWRIGHT 2 multilinear/32KiB=<checksum> bytes=<size of the file>

The rest of the file is split into rows of 32 KiB, the last one padded with zeros, and a
row into 4096 words of 64 bits. The digests of a row are two sums, modulo 2**64, of its
words times constant odd weights: one of the words as little-endian, one as big-endian
numbers. NumPy computes them faster than any hash of the standard library. The checksum
is the SHA-256 of all digests, in order.

A change within one word is always found, as odd weights are invertible. Other changes
are missed with probability 2**-32 at most: each byte is in the lower half of one of the
two numbers, where the product with a weight changes at least 32 bits of the sum. A seal
proves that a file is unchanged, not who wrote it.

Seals of version 1, the SHA-256 of the SHA-256 digests of rows of 512 KiB, are checked as
well.
"""

import hashlib
import re
import threading
from functools import cache

import numpy as np

from tapewright.core.errors import SavingError
from tapewright.core.hardware.parallel import parallel_for

from .file_objects import Window

USER_BLOCK = 512
PIECE = 1 << 20  # bytes that a thread digests at a time, a number of rows
ROW, ROW_1 = 32 << 10, 512 << 10
MARK, MARK_1 = b"TAPEWRIGHT 2 ", b"TAPEWRIGHT 1 "
KIND, KIND_1 = b"multilinear/32KiB=", b"sha256/512KiB="
HEAD = re.compile(
    rb"(?:%b|(%b))([0-9a-f]{64}) bytes=(\d{1,20})\n\0*" % (MARK + KIND, MARK_1 + KIND_1)
)


def seal(path, known=None):
    """Write the seal into the user block of a finished file.

    ``known`` are digests of pieces, by number, that were computed during writing.
    """
    with Window(path) as window:
        content = f"{_checksum(window, digest, known or {})} bytes={window.size}\n"
    with open(path, "r+b") as file:
        file.write((MARK + KIND + content.encode()).ljust(USER_BLOCK, b"\0"))


def check_seal(file, dataset=None):
    """Return True if a `Window`, or the file at a path, has a seal.

    Raises:
        SavingError: If the content differs from the sealed content.
    """
    if not isinstance(file, Window):
        with Window(file) as window:
            return check_seal(window, dataset)
    head = file.read_at(0, USER_BLOCK)
    # One of both may be damaged.
    if not head.startswith((MARK, MARK_1)) and KIND not in head and KIND_1 not in head:
        return False
    parts = HEAD.fullmatch(head)
    if parts is None:
        raise SavingError(file.path, "is damaged: its seal cannot be read", dataset)
    version_1, checksum, length = parts.groups()
    if int(length) != file.size:
        reason = f"is damaged: it has {file.size} bytes, {int(length)} were written"
        raise SavingError(file.path, reason, dataset)
    actual = _checksum(file, _digest_1 if version_1 else digest)
    if actual != checksum.decode():
        raise SavingError(
            file.path,
            "is damaged, or was changed after it was written: the checksum of its "
            "content does not match its seal",
            dataset,
        )
    return True


def digest(piece):
    """Return the digests of the rows of a piece of a file, as bytes."""
    if len(piece) % ROW:
        piece = bytes(piece) + bytes(-len(piece) % ROW)
    rows = np.frombuffer(piece, "<u8").reshape(-1, ROW // 8)
    sums = np.empty((len(rows), 2), "<u8")
    np.einsum("ij,j->i", rows, _weights(), out=sums[:, 0])
    np.einsum("ij,j->i", rows.view(">u8"), _weights(), out=sums[:, 1])
    return sums.tobytes()


@cache
def _weights():
    """Return the weights of the words of a row: random, odd, the same in all files."""
    return np.frombuffer(hashlib.shake_128(KIND).digest(ROW), "<u8") | np.uint64(1)


def _digest_1(piece):
    """Return the digests of the rows of a piece, of version 1."""
    rows = [piece[i : i + ROW_1] for i in range(0, len(piece), ROW_1)]
    return b"".join([hashlib.sha256(row).digest() for row in rows])


def _checksum(window, digest, known=()):
    """Return the checksum in hexadecimal; see `seal` for ``known``."""
    starts = range(USER_BLOCK, window.size, PIECE)
    digests = [known[i] if i in known else b"" for i in range(len(starts))]
    local = threading.local()

    def work(i):
        if not hasattr(local, "buffer"):
            local.buffer = np.empty(PIECE, np.uint8)
        count = window.read_into(local.buffer, starts[i])
        digests[i] = digest(local.buffer[:count])

    parallel_for(work, [i for i, each in enumerate(digests) if not each])
    return hashlib.sha256(b"".join(digests)).hexdigest()
