"""A part of a file, as a file of its own that is read only."""

import io
import os
import stat
import threading

from tapewright.core.errors import SavingError, saving_error

__all__ = ["Window", "at_once"]

MAX_CALL = 1 << 30  # bytes that one call of the system reads or writes


def at_once(path, flags):
    """An opener that does not wait for the writer of a pipe, should one be there by now."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class Window(io.RawIOBase):
    """``size`` bytes of the file ``path`` from ``start`` on; seekable, nothing is copied.

    ``handle``: that of the file, if it is open, as another one may be at its path by now.
    `read_at` and `read_into` go by a place of their own and serve several threads.
    """

    def __init__(self, path, start=0, size=None, handle=None):
        super().__init__()
        self._file = None
        if handle is not None and hasattr(os, "preadv"):
            path_or_handle = os.dup(handle)  # else both would be at one place
        else:
            path_or_handle = path
        self._file = open(path_or_handle, "rb", buffering=0, opener=at_once)
        found = os.fstat(self._file.fileno())
        if not stat.S_ISREG(found.st_mode):
            self._file.close()
            raise SavingError(path, "is a pipe or device, no file")
        whole = found.st_size
        self.path, self.start, self._at = os.fspath(path), start, 0
        self.size = whole - start if size is None else size
        self._lock = threading.Lock()

    def read_at(self, place, count):
        """``count`` bytes from a place in the window on, fewer at its end."""
        buffer = bytearray(max(min(count, self.size - place), 0))
        return bytes(buffer[: self.read_into(buffer, place)])

    def read_into(self, buffer, place):
        """Fills a buffer from a place in the window on; returns the number of bytes."""
        buffer = memoryview(buffer).cast("B")
        buffer = buffer[: max(self.size - place, 0)]
        done = 0
        while done < len(buffer):
            piece = buffer[done : done + MAX_CALL]
            count = self._read(piece, self.start + place + done)
            if not count:
                break
            done += count
        return done

    def _read(self, buffer, place):
        try:
            if hasattr(os, "preadv"):
                return os.preadv(self._file.fileno(), [buffer], place)
            with self._lock:  # one place for all threads
                self._file.seek(place)
                return self._file.readinto(buffer)
        except OSError as error:
            reason = f"cannot be read: {error}"
            raise saving_error(self.path, reason, cause=error) from None

    def stat(self):
        """What the system knows of the open file."""
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
