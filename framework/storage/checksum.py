"""The seal: a checksum of a whole file, checked before HDF5 parses any of it.

It is stored in the user block, the first 512 bytes, which HDF5 leaves to applications,
so that any HDF5 reader opens a sealed file. The rest of the file is split into pieces
of 512 KiB; the checksum is the SHA-256 of the SHA-256 digests of all pieces, which
several cores compute. It proves that a file is unchanged, not who wrote it.
"""

import re
import threading

from tapewright.core.errors import SavingError
from tapewright.core.parallel import parallel_for

from .file_objects import Window

__all__ = ["PIECE", "USER_BLOCK", "check_seal", "seal"]

USER_BLOCK = 512
PIECE = 512 << 10
MARK = b"TAPEWRIGHT 1 "
KIND = b"sha256/512KiB="
HEAD = re.compile(MARK + KIND + rb"([0-9a-f]{64}) bytes=(\d{1,20})\n\0*")


def seal(path, known=None):
    """Write the seal into the user block of a finished file.

    ``known`` are digests of pieces, by number, that were computed during writing.
    """
    with Window(path) as window:
        content = f"{_digest(window, known or {})} bytes={window.size}\n"
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
    if not (head.startswith(MARK) or KIND in head):  # one of both may be damaged
        return False
    parts = HEAD.fullmatch(head)
    if parts is None:
        raise SavingError(file.path, "is damaged: its seal cannot be read", dataset)
    digest, length = (each.decode() for each in parts.groups())
    if int(length) != file.size:
        reason = f"is damaged: it has {file.size} bytes, {length} were written"
        raise SavingError(file.path, reason, dataset)
    if _digest(file) != digest:
        raise SavingError(
            file.path,
            "is damaged, or was changed after it was written: the SHA-256 of its "
            "content does not match its seal",
            dataset,
        )
    return True


def _digest(window, known=()):
    """Return the checksum in hexadecimal."""
    import hashlib

    starts = range(USER_BLOCK, window.size, PIECE)
    digests = [known[i] if i in known else b"" for i in range(len(starts))]
    local = threading.local()

    def work(i):
        if not hasattr(local, "buffer"):
            local.buffer = memoryview(bytearray(PIECE))
        count = window.read_into(local.buffer, starts[i])
        digests[i] = hashlib.sha256(local.buffer[:count]).digest()

    parallel_for(work, [i for i, digest in enumerate(digests) if not digest])
    return hashlib.sha256(b"".join(digests)).hexdigest()
