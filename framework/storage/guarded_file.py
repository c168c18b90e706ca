"""The file under HDF5 while it is written.

HDF5 does not survive that a write fails: it tries again in destructors, and may crash the
process. So it is told that all went well, and the error is kept for us to raise.
"""

import io
import os
import threading
from contextlib import suppress

__all__ = ["Sink"]

MAX_CALL = 1 << 30  # bytes that one call of the system writes


class Sink(io.RawIOBase):
    """A file for HDF5 whose writes never fail; `check` raises what the first one met.

    `write_at`, for us, raises at once, and serves several threads.
    """

    def __init__(self, path):
        super().__init__()
        self._file, self._at = None, 0
        self.error = None  # the first one that HDF5 was not told of
        self._lock = threading.Lock()
        self._file = open(path, "r+b", buffering=0)

    def check(self):
        """Raises ``error``, if there is one."""
        if self.error is not None:
            raise self.error

    def write_at(self, content, place):
        """Writes bytes to a place in the file."""
        content = memoryview(content).cast("B")
        while len(content):
            count = self._write(content[:MAX_CALL], place)
            content, place = content[count:], place + count

    def _write(self, content, place):
        if hasattr(os, "pwrite"):
            return os.pwrite(self._file.fileno(), content, place)
        with self._lock:  # one place for all threads
            self._file.seek(place)
            return self._file.write(content)

    def reserve(self, place, size):
        """Has the disk keep a place for bytes to come, all at once: writing then takes half.

        What cannot be kept is told by `write_at`.
        """
        if hasattr(os, "posix_fallocate"):
            with suppress(OSError):
                os.posix_fallocate(self._file.fileno(), place, size)

    def begin_to_flush(self, place, size):
        """Linux begins to write to the disk now, and flushing has less to wait for."""
        if hasattr(os, "posix_fadvise"):
            handle = self._file.fileno()
            os.posix_fadvise(handle, place, size, os.POSIX_FADV_DONTNEED)

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
