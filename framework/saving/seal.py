"""The seal: a checksum of a whole file, looked at before HDF5 parses a byte of it.

It stands in the user block, the 512 bytes in front that HDF5 leaves to others, so that
any reader of HDF5 opens a sealed file. The rest of the file is cut in pieces of 4 MiB;
the checksum is the SHA-256 of the SHA-256 digests of all pieces, which several cores
compute. It proves that a file is as it was written, not who wrote it.
"""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

from ..errors import SavingError

__all__ = ["USER_BLOCK", "is_sealed", "check_seal", "seal"]

USER_BLOCK = 512
PIECE = 4 << 20
MARK = b"TAPEWRIGHT 1 sha256/4MiB="


def seal(path):
    """Writes the seal into the user block of a finished file."""
    digest, size = _digest(path)
    head = MARK + f"{digest} bytes={size}\n".encode()
    with open(path, "r+b") as file:
        file.write(head.ljust(USER_BLOCK, b"\0"))


def is_sealed(path):
    """Whether a file begins with a seal."""
    with open(path, "rb") as file:
        return file.read(len(MARK)) == MARK


def check_seal(path):
    """Whether there is a seal. Raises: `SavingError` if the file is not as sealed."""
    with open(path, "rb") as file:
        head = file.read(USER_BLOCK)
    if not head.startswith(MARK):
        return False
    words = head[len(MARK) :].partition(b"\n")[0].split()
    expected = words[0].decode("ascii", "replace") if words else ""
    length = words[1].partition(b"=")[2] if len(words) > 1 else b""
    size = os.path.getsize(path)
    if length != str(size).encode():
        raise SavingError(
            path, f"is damaged: {size} bytes are there, {length.decode('ascii', 'replace')}"
            " were written",
        )  # fmt: skip
    if _digest(path)[0] != expected:
        raise SavingError(
            path, "is damaged: its content is not what was written (the SHA-256 of its "
            "seal differs)",
        )  # fmt: skip
    return True


def _digest(path):
    """The checksum in hexadecimal, and the size of the file."""
    size = os.path.getsize(path)
    starts = range(USER_BLOCK, size, PIECE)
    workers = min(len(starts), os.cpu_count() or 1, 4)
    if workers < 2:
        digests = _digests(path, starts)
    else:
        digests = [b""] * len(starts)
        with ThreadPoolExecutor(workers) as pool:
            shares = [starts[i::workers] for i in range(workers)]
            for i, found in enumerate(pool.map(_digests, [path] * workers, shares)):
                digests[i::workers] = found
    return hashlib.sha256(b"".join(digests)).hexdigest(), size


def _digests(path, starts):
    """The digests of the pieces that start there."""
    found, buffer = [], memoryview(bytearray(PIECE))
    with open(path, "rb", buffering=0) as file:
        for start in starts:
            file.seek(start)
            filled = 0
            while filled < PIECE:
                count = file.readinto(buffer[filled:])
                if not count:
                    break
                filled += count
            found.append(hashlib.sha256(buffer[:filled]).digest())
    return found
