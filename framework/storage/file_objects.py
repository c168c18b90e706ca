"""File objects for HDF5 and zip: a window to read, a guarded file to write, a bar.

HDF5 does not survive a failed write: it tries again in destructors, and may crash the
process. So `GuardedFile` reports success to HDF5 and keeps the error for us to raise.
"""

import io
import os
import stat
import threading
from contextlib import suppress

from tapewright.core.errors import SavingError, as_saving_error

MAX_CALL = 1 << 30  # bytes that one call of the system reads or writes
THRESHOLD = 200_000_000  # bytes from which on saving or loading is felt


def at_once(path, flags):
    """Open without waiting for the writer of a pipe, in case the path has become one."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def discard(file):
    """Close a file without writing its buffered content, which has failed before."""
    buffer = getattr(file, "buffer", file)  # of text
    with suppress(OSError):
        buffer.raw.close()


class Window(io.RawIOBase):
    """``size`` bytes of the file ``path`` from ``start`` on; seekable, nothing is copied.

    ``handle`` is the handle of an open file, as the path may lead to another one by
    now. `read_at` and `read_into` accept offsets and are thread-safe.
    """

    def __init__(self, path, start=0, size=None, handle=None):
        super().__init__()
        self._file = None
        if handle is not None and hasattr(os, "preadv"):
            path_or_handle = os.dup(handle)  # else both would share one position
        else:
            path_or_handle = path
        self._file = open(path_or_handle, "rb", buffering=0, opener=at_once)
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise SavingError(path, "is a pipe or device, not a file")
        whole = status.st_size
        self.path, self.start, self._at = os.fspath(path), start, 0
        self.size = whole - start if size is None else size
        self._lock = threading.Lock()

    def read_at(self, offset, count):
        """Return ``count`` bytes from an offset in the window, fewer at its end."""
        buffer = bytearray(max(min(count, self.size - offset), 0))
        return bytes(buffer[: self.read_into(buffer, offset)])

    def read_into(self, buffer, offset):
        """Fill a buffer from an offset in the window; return the number of bytes."""
        buffer = memoryview(buffer).cast("B")
        buffer = buffer[: max(self.size - offset, 0)]
        done = 0
        while done < len(buffer):
            piece = buffer[done : done + MAX_CALL]
            count = self._read(piece, self.start + offset + done)
            if not count:
                break
            done += count
        return done

    def _read(self, buffer, offset):
        with as_saving_error(self.path, "cannot be read", errors=OSError):
            if hasattr(os, "preadv"):
                return os.preadv(self._file.fileno(), [buffer], offset)
            with self._lock:  # one position for all threads
                self._file.seek(offset)
                return self._file.readinto(buffer)

    def stat(self):
        """Return the `os.stat_result` of the open file."""
        return os.fstat(self._file.fileno())

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=os.SEEK_SET):
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError(f"there is nothing at {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self):
        return self._at

    def readinto(self, buffer):
        count = self.read_into(buffer, self._at)
        self._at += count
        return count

    def close(self):
        if self._file is not None:
            self._file.close()
        super().close()


class GuardedFile(io.RawIOBase):
    """A file for HDF5 whose writes never fail; `check` raises the first error.

    `write_at`, for direct use, raises at once and is thread-safe.
    """

    def __init__(self, path):
        super().__init__()
        self._file, self._at = None, 0
        self.error = None  # the first one that HDF5 does not know of
        self._lock = threading.Lock()
        self._file = open(path, "r+b", buffering=0)

    def check(self):
        """Raise ``error``, if there is one."""
        if self.error is not None:
            raise self.error

    def write_at(self, content, offset):
        """Write bytes at an offset in the file."""
        content = memoryview(content).cast("B")
        while len(content):
            count = self._write(content[:MAX_CALL], offset)
            content, offset = content[count:], offset + count

    def _write(self, content, offset):
        if hasattr(os, "pwrite"):
            return os.pwrite(self._file.fileno(), content, offset)
        with self._lock:  # one position for all threads
            self._file.seek(offset)
            return self._file.write(content)

    def reserve(self, offset, size):
        """Reserve disk space for future bytes at once, which halves the time of writing.

        A failure is left to `write_at`, which meets it again.
        """
        if hasattr(os, "posix_fallocate"):
            with suppress(OSError):
                os.posix_fallocate(self._file.fileno(), offset, size)

    def begin_to_flush(self, offset, size):
        """Start writing to the disk (on Linux), which shortens the final flush."""
        if hasattr(os, "posix_fadvise"):
            handle = self._file.fileno()
            os.posix_fadvise(handle, offset, size, os.POSIX_FADV_DONTNEED)

    def _attempt(self, function, *args):
        try:
            function(*args)
        except BaseException as error:  # an interrupt as well, or HDF5 would meet it
            self.error = self.error or error

    def write(self, content):
        size = memoryview(content).nbytes
        self._attempt(self.write_at, content, self._at)
        self._at += size
        return size

    def truncate(self, size=None):
        size = self._at if size is None else size
        if size != os.fstat(self._file.fileno()).st_size:  # else it waits for the disk
            self._attempt(self._file.truncate, size)
        return size

    def readinto(self, buffer):
        with self._lock:
            self._file.seek(self._at)
            count = self._file.readinto(buffer)
        self._at += count
        return count

    def seek(self, offset, whence=os.SEEK_SET):
        if whence == os.SEEK_END:
            offset += os.fstat(self._file.fileno()).st_size
        elif whence == os.SEEK_CUR:
            offset += self._at
        self._at = offset
        return offset

    def tell(self):
        return self._at

    def readable(self):
        return True

    def writable(self):
        return True

    def seekable(self):
        return True

    def close(self):
        if self._file is not None:
            self._file.close()
        super().close()


class Progress:
    """Count bytes; show a bar once they, or their ``total``, reach the threshold.

    Nothing is shown if standard error is not a terminal.
    """

    def __init__(self, label, total=None):
        self._label, self._total, self._count, self._bar = label, total, 0, None

    def add(self, count):
        """Count ``count`` more bytes."""
        self._count += count
        if self._bar is not None:
            self._bar.update(count)
        elif max(self._count, self._total or 0) >= THRESHOLD:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=self._label, total=self._total, unit="B", unit_scale=True,
                unit_divisor=1000, initial=self._count, disable=None, leave=False,
            )  # fmt: skip

    def close(self):
        if self._bar is not None:
            self._bar.close()
