"""Folders of files that are written atomically, and read like a zip file."""

import os
import shutil
from contextlib import contextmanager, suppress

from tapewright.core.errors import SavingError, as_saving_error, saving_error

from . import strict_json
from .atomic import REFUSED, clear_leftovers, sync, temporary_beside
from .file_objects import Window
from .reader import opened, regular_file
from .writer import writing

MAX_TEXT = 64 << 20  # bytes of a file that is read into memory


@contextmanager
def writing_folder(path, members, overwrite=True):
    """Yield a `FolderWriter` of a new folder, which replaces ``path`` at the end.

    An older folder is replaced if it contains nothing but these ``members``.

    Raises:
        SavingError: If it cannot be written; an older folder is then unchanged.
    """
    target = os.path.realpath(path)
    _check(path, target, members, overwrite)
    with as_saving_error(path, REFUSED, errors=OSError):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with replacing_folder(target) as new:
            yield FolderWriter(new, os.fspath(path))
        with suppress(OSError):
            sync(os.path.dirname(target))


@contextmanager
def replacing_folder(target, mode=0o777):
    """Yield an empty folder beside ``target``, which replaces it at the end."""
    target = os.path.realpath(target)
    clear_leftovers(os.path.dirname(target))
    with temporary_beside(target) as new:
        os.unlink(new)  # a folder takes the name
        os.mkdir(new, mode)
        try:
            yield new
            sync(new)
            _move(new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _check(path, target, members, overwrite):
    if not os.path.lexists(target):
        return
    if not overwrite:
        reason = "exists already, and overwrite is False"
        raise saving_error(path, reason, cause=FileExistsError())
    if not os.path.isdir(target):
        raise SavingError(path, "cannot be written: a file is there, not a folder")
    others = sorted(set(os.listdir(target)) - set(members))
    if others:
        raise SavingError(
            path,
            f"cannot be written: the folder has other files, such as {others[0]!r}",
        )


def _move(new, target):
    """Move a folder over an older one, which then has the name of the new folder."""
    if not os.path.isdir(target):
        os.rename(new, target)
    elif not _exchange(new, target):
        aside = f"{new}.old"
        os.rename(target, aside)
        try:
            os.rename(new, target)
        except OSError:
            os.rename(aside, target)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(one, other):
    """Exchange the names of two folders at once; return False where the system cannot."""
    try:
        import ctypes
    except ImportError:  # a Python built without libffi
        return False
    AT_FDCWD, RENAME_EXCHANGE = -100, 2  # Linux's fcntl.h and fs.h
    rename = (
        getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    )
    paths = [os.fsencode(path) for path in (one, other)]
    return rename is not None and not rename(
        AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE
    )


class FolderWriter:
    """A new folder, see `writing_folder`, written like a `ZipWriter`."""

    def __init__(self, folder, path):
        self._folder, self.path = folder, path

    def json(self, name, value):
        """Write a JSON file."""
        path = os.path.join(self._folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(strict_json.dumps(value))
        sync(path)

    def location(self, name):
        """Return the path at which to write a file; call `storage.atomic.sync` on it."""
        return os.path.join(self._folder, name)

    def file(self, name, path):
        """Write a file with the bytes of another file."""
        copy = os.path.join(self._folder, name)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copyfile(path, copy)
        sync(copy)

    def hdf5(self, name):
        """Return the root `GroupWriter` of an HDF5 file, which is sealed at the end."""
        return writing(os.path.join(self._folder, name))


class FolderReader:
    """A folder read like a `ZipReader`: each file is checked before it is used."""

    def __init__(self, path):
        self.path = os.fspath(path)

    def __contains__(self, name):
        return os.path.isfile(os.path.join(self.path, name))

    def file(self, name):
        """Return the path of a file; raise `SavingError` if a link leads out of the folder."""
        path, inside = os.path.join(self.path, name), os.path.realpath(self.path)
        if not os.path.realpath(path).startswith(os.path.join(inside, "")):
            raise SavingError(path, "is a link, not a file of this folder")
        return path

    def names_below(self, folder):
        """Return the names of the files below a folder, relative to it."""
        start, names = os.path.join(self.path, folder), []
        if os.path.isdir(start):
            self.file(folder)
        for path, _, files in os.walk(start):
            names += [os.path.relpath(os.path.join(path, f), start) for f in files]
        return [name.replace(os.sep, "/") for name in sorted(names)]

    def read(self, name, limit=MAX_TEXT):
        """Return the bytes of a file.

        Raises:
            SavingError: If there are more than ``limit``, or if a link leads out of the
                folder.
        """
        path = self.file(name)
        with Window(regular_file(path)) as file:
            read = file.read_at(0, limit + 1)
        if len(read) > limit:
            raise SavingError(path, f"has more than {limit} bytes")
        return read

    def json_object(self, name):
        """Return the content of a file with a JSON object.

        Raises:
            SavingError: If the file does not exist, is too large, or is not a JSON
                object.
        """
        raw = self.read(name, strict_json.MAX_CHARACTERS)
        path = self.file(name)
        try:
            value = strict_json.loads(raw.decode(), path)
        except UnicodeDecodeError as error:
            raise SavingError(path, f"is not UTF-8 text: {error}") from None
        if not isinstance(value, dict):
            raise SavingError(
                path, f"must be a JSON object, got {type(value).__name__}"
            )
        return value

    def hdf5(self, name):
        """Yield the root `Group` of an HDF5 file while the context is active."""
        return opened(self.file(name))
