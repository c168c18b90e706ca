"""Files that are there as a whole or not at all."""

import os
from contextlib import contextmanager, suppress

__all__ = ["replacing"]


@contextmanager
def replacing(path):
    """Gives a temporary path in the folder of ``path``, which takes its place at the end.

    What was written is flushed to the disk first. On an error ``path`` is left as it was,
    and the temporary file is removed.
    """
    path = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"cannot write '{path}': a folder is there")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"cannot write '{path}': there is no folder '{folder}'")
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        if os.name == "posix":
            _flush(folder)  # so that the name is on the disk, too
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _flush(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
