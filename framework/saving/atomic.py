"""Files that are there as a whole or not at all."""

import itertools
import os
import threading
from contextlib import contextmanager, suppress

from ..errors import SavingError, saving_error

__all__ = ["clear_leftovers", "replacing", "sync"]

_number = itertools.count().__next__


@contextmanager
def replacing(path, overwrite=True):
    """Gives a temporary path in the folder of ``path``, which takes its place at the end.

    What was written is flushed to the disk first. On an error ``path`` is left as it was,
    and the temporary file is removed. Writers of one path, in threads or processes, each
    write a file of their own; the last one to finish wins.

    Raises: `SavingError` for whatever the system refuses; it is a ``FileExistsError``
    if there is a file and ``overwrite`` is False.
    """
    path = os.path.abspath(os.fspath(path))
    _check(path, overwrite)
    temporary = _temporary(path)
    try:
        yield temporary
        sync(temporary)
        if overwrite:
            os.replace(temporary, path)
        else:  # a link, unlike a move, fails where another writer was faster
            os.link(temporary, path)
        sync(os.path.dirname(path))  # so that the name is on the disk, too
    except SavingError:
        raise
    except OSError as error:
        raise saving_error(
            path, f"cannot be written, {_reason(error)}; what was there before is kept",
            cause=error,
        ) from error  # fmt: skip
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _check(path, overwrite):
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        cause = IsADirectoryError()
        raise saving_error(path, "cannot be written, a folder is there", cause=cause)
    if not os.path.isdir(folder):
        reason = f"cannot be written, there is no folder {folder!r}"
        raise saving_error(path, reason, cause=FileNotFoundError())
    if not overwrite and os.path.lexists(path):
        reason = "is there already, and overwrite is False"
        raise saving_error(path, reason, cause=FileExistsError())


def _reason(error):
    return (error.strerror or str(error)).lower()


def _temporary(path):
    folder, name = os.path.split(path)
    own = f"{os.getpid()}.{threading.get_ident()}.{_number()}"
    return os.path.join(folder, f".{name}.{own}.tmp")


def sync(path):
    """Flushes a file or folder to the disk."""
    if os.name != "posix" and os.path.isdir(path):
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def clear_leftovers(folder):
    """Removes temporary files whose writers are gone: killed while they wrote."""
    for name in os.listdir(folder):
        parts = name.split(".")
        if name[:1] == "." and parts[-1] == "tmp" and len(parts) > 5:
            writer = parts[-4]
            if writer.isdigit() and not _runs(int(writer)):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
