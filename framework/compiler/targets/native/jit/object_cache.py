"""Machine code on disk: files that later processes with the same code read back.

A file is named after its key, a hash of everything that determines its object code. It
is written atomically, and checked before use. A file that cannot be read is compiled
again, and failures to write are ignored: `ObjectCache.note` holds the reason, nothing
is raised. The notes of `autotune` are stored here, too, under separate keys.
"""

import functools
import hashlib
import os
import stat
import struct
import tempfile
import time
from contextlib import suppress

LIMIT = 256 << 20  # bytes in a folder
KEPT = 3 / 4  # of the limit, once it is passed
CHECKS = 128  # one store in so many checks the folder, which takes longer than the rest
UNUSED = 3600  # seconds: a file read later is marked as used, one half written is left

HEADER = struct.Struct("<8s32sQ32s")  # magic, key, length and hash of the object
MAGIC = b"tapeobj\1"
SUFFIX = ".obj"


def current():
    """Return the cache selected by the environment variable ``TAPEWRIGHT_CACHE``."""
    variables = ("TAPEWRIGHT_CACHE", "TAPEWRIGHT_HOME")
    return _chosen(*[os.environ.get(name, "") for name in variables])


@functools.cache
def _chosen(cache, home):
    if cache.lower() in ("0", "off", "false", "no"):
        return ObjectCache(None, f"off: TAPEWRIGHT_CACHE={cache}")
    if cache.lower() in ("", "1", "on", "true", "yes"):
        cache = os.path.join(home or "~/.cache/tapewright", "native")
    return ObjectCache(os.path.abspath(os.path.expanduser(cache)))


class ObjectCache:
    """Object code in a folder, or disabled if ``folder`` is None.

    ``note`` holds the folder, and its last problem.
    """

    def __init__(self, folder, note=None):
        self.folder, self.note = folder, note or _short(folder)

    def load(self, key):
        """Return the object code for a 32-byte key, or None if there is no trusted file."""
        if self.folder is None:
            return None
        try:
            self._check(os.lstat(self.folder), stat.S_ISDIR, self.folder)
            path = self.path_of(key)
            with open(path, "rb", opener=_open_no_link) as file:
                status = os.fstat(file.fileno())
                self._check(status, stat.S_ISREG, path)
                content = file.read()
            code = _verified(content, key)
            if code is None:
                raise OSError(None, "is damaged", path)
            self._mark_used(path, status)
            return code
        except FileNotFoundError:
            return None
        except OSError as error:
            self._remember(error)
            return None

    def store(self, key, code):
        """Store object code under a 32-byte key, replacing the old code."""
        if self.folder is None:
            return
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._check(os.lstat(self.folder), stat.S_ISDIR, self.folder)
            if key[0] % CHECKS == 0:  # keys are hashes
                self.trim()
            handle, temporary = tempfile.mkstemp(".tmp", dir=self.folder)  # mode 0600
            try:
                with open(handle, "wb") as file:
                    digest = hashlib.sha256(code).digest()
                    file.write(HEADER.pack(MAGIC, key, len(code), digest) + code)
                os.replace(temporary, self.path_of(key))
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            self._remember(error)

    def path_of(self, key):
        """Return the path of the file for an object, which need not exist."""
        return os.path.join(self.folder, key.hex() + SUFFIX)

    def trim(self, limit=LIMIT):
        """Remove the least recently used files if all take more than ``limit`` bytes.

        Files that a process was writing when it was killed are removed in any case.
        """
        files, now = [], time.time()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):  # another process removes files, too
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(SUFFIX):
                        files.append((status.st_mtime, status.st_size, entry.path))
                    is_old = now - status.st_mtime > UNUSED
                    if is_old and entry.name.endswith(".tmp"):
                        os.unlink(entry.path)
        total = sum([size for _, size, _ in files])
        if total <= limit:
            return
        for _, size, path in sorted(files):
            with suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= KEPT * limit:
                break

    def _check(self, status, is_kind, path):
        """Reject files that another user could have written, as their code would be run."""
        if not is_kind(status.st_mode):
            raise OSError(None, "is a link, or not of the expected kind", path)
        if not hasattr(os, "geteuid"):
            return
        if status.st_uid != os.geteuid():
            raise OSError(None, "belongs to another user", path)
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(None, "can be written by other users", path)

    def _mark_used(self, path, status):
        if time.time() - status.st_mtime > UNUSED:
            with suppress(OSError):
                os.utime(path)

    def _remember(self, error):
        about = error.filename if isinstance(error.filename, str) else self.folder
        about = about if about != self.folder else "the folder"
        reason = error.strerror or error
        self.note = f"{_short(self.folder)} ({os.path.basename(about)}: {reason})"


def _open_no_link(path, flags):
    """Open without following a link, and without blocking on a pipe."""
    for name in ("O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags)


def _verified(content, key):
    """Return the object code in a file if header, key and hash match; else None."""
    if len(content) < HEADER.size:
        return None
    magic, of, length, digest = HEADER.unpack_from(content)
    code = content[HEADER.size :]
    if (magic, of, length) != (MAGIC, key, len(code)):
        return None
    return code if hashlib.sha256(code).digest() == digest else None


def _short(folder):
    """Return a folder as users write it."""
    home = os.path.expanduser("~")
    inside = folder and home != "/" and folder.startswith(home + os.sep)
    return "~" + folder[len(home) :] if inside else folder
