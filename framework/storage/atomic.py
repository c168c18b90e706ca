"""Write files atomically: completely or not at all."""

import functools
import itertools
import os
import shutil
import stat
import threading
import time
import zlib
from contextlib import contextmanager, suppress

from tapewright.core.errors import SavingError, as_saving_error, saving_error

LARGE = 16 << 20  # bytes
REFUSED = "cannot be written, the previous file is kept"

FORGOTTEN = 86400  # seconds after which a file is no longer being written, by anyone

_number = itertools.count().__next__
_own = set()  # the temporary files of this process that are in use


@contextmanager
def replacing(path, overwrite=True):
    """Yield a temporary file in the folder of ``path``, which replaces it at the end.

    The content is flushed to disk first. After an error ``path`` is unchanged, and the
    temporary file is removed. Concurrent writers of a path, in threads or processes,
    each write a separate file; the last one to finish wins. If ``path`` is a link, its
    target is replaced; the permissions of an older file are kept. Missing folders are
    created.

    Raises:
        SavingError: If the system reports an error; also a FileExistsError if the file
            exists and ``overwrite`` is False.
    """
    path = os.fspath(path)
    target = os.path.realpath(path)
    _check(path, target, overwrite)
    clear_leftovers(os.path.dirname(target))
    with (
        as_saving_error(path, REFUSED, errors=OSError),
        temporary_beside(target) as temporary,
    ):
        yield temporary
        _keep_mode(target, temporary)
        sync(temporary)
        if overwrite:
            _replace(temporary, target)
        else:
            _move_to_new(temporary, target)
    with suppress(OSError):  # some disks cannot: the name is then written later
        sync(os.path.dirname(target))


@contextmanager
def writing_whole(path):
    """Yield the path of a file to write, which atomically replaces ``path``.

    It is a temporary file as in `replacing`, which waits for the disk and creates
    folders; if ``path`` is a pipe or device, it is ``path``.
    """
    path = os.fspath(path)
    target = os.path.realpath(path)
    if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
        yield path
        return
    _clear_once(os.path.dirname(target))
    with (
        as_saving_error(path, REFUSED, errors=OSError),
        temporary_beside(target) as temporary,
    ):
        yield temporary
        _keep_mode(target, temporary)
        _replace(temporary, target)


@contextmanager
def temporary_beside(path):
    """Yield an empty file in the folder of ``path``, and remove it at the end."""
    folder, name = os.path.split(os.path.realpath(path))
    own = f"{_machine()}.{os.getpid()}.{threading.get_ident()}.{_number()}"
    temporary = os.path.join(folder, f".{name[:40]}.{own}.tmp")
    _own.add(temporary)
    try:
        # Made here, so that a link which somebody left at this name is not followed.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        try:
            yield temporary
        finally:
            with suppress(OSError):
                os.unlink(temporary)
    finally:
        _own.discard(temporary)


def _check(path, target, overwrite):
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        cause = IsADirectoryError()
        raise saving_error(path, "cannot be written: it is a folder", cause=cause)
    with as_saving_error(folder, "the folder cannot be made", errors=OSError):
        os.makedirs(folder, exist_ok=True)
    if not os.path.lexists(target):
        return
    if not overwrite:
        reason = "exists already, and overwrite is False"
        raise saving_error(path, reason, cause=FileExistsError())
    if not os.path.isfile(target):
        raise SavingError(path, "cannot be written: it is a pipe or device")


def _keep_mode(target, temporary):
    with suppress(OSError):
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))


def _replace(temporary, target):
    """Move a file over another.

    Freeing the cache memory of the older file takes 50 ms for 200 MB: this is done in
    the background, when its last handle is closed.
    """
    older = None
    if hasattr(os, "O_NONBLOCK"):  # elsewhere an open file cannot be replaced
        with suppress(OSError):
            older = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    os.replace(temporary, target)
    if older is None:
        return
    if os.fstat(older).st_size >= LARGE:
        with suppress(RuntimeError):  # where no thread can be started any more
            threading.Thread(target=os.close, args=(older,), daemon=True).start()
            return
    os.close(older)


def _move_to_new(temporary, target):
    """Move a file to a path that does not exist.

    Raises:
        FileExistsError: If another writer was faster.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # there are no hard links on this disk: the name is taken first
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, target)


def sync(path):
    """Flush a file or folder to the disk."""
    if os.name != "posix" and os.path.isdir(path):
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def clear_leftovers(folder):
    """Remove temporary files and folders of this user's killed writers.

    These are files of dead processes on this machine, and, after a day, files of other
    machines, such as containers, or with the process id of a newer process.
    """
    folder, names = os.path.realpath(folder), []
    with suppress(OSError):  # of a folder that is not there, or cannot be read
        names = os.listdir(folder)
    for name in names:
        if name.endswith(".tmp") and name.startswith(".") and name.count(".") > 5:
            path = os.path.join(folder, name)
            with suppress(OSError):
                if _is_leftover(path):
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


@functools.lru_cache(1000)
def _clear_once(folder):
    """Clear a folder on its first use, as thousands of files may be written to it."""
    clear_leftovers(folder)


def _is_leftover(path):
    machine, writer, thread, number = path.split(".")[-5:-1]
    if not (writer.isdigit() and thread.isdigit() and number.isdigit()):
        return False  # of another program
    if path in _own:
        return False
    status = os.lstat(path)
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return False
    if machine == _machine():
        if int(writer) == os.getpid() or not _is_running(int(writer)):
            return True
    return time.time() - status.st_mtime > FORGOTTEN


def _machine():
    """Return a name of this machine, to distinguish its writers from others."""
    import platform

    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_running(process):
    if os.name != "posix":  # where os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True
    return True
