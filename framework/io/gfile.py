"""`tw.io.gfile`: files and folders, under the names of ``tf.io.gfile``; local ones only.

Errors are those of TensorFlow: ``NotFoundError``, ``AlreadyExistsError``,
``PermissionDeniedError``, ``FailedPreconditionError``; ``UnimplementedError`` for ``gs://``
and its like.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapewright.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from tapewright.serialization.constructor_call import constructor_call
from tapewright.storage.atomic import writing_whole
from tapewright.storage.records.paths import as_path, expand_pattern, file_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from typing import Any, Self

    Path = str | bytes | PathLike[str]

__all__ = [
    "FileStatistics",
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


@dataclass
class FileStatistics:
    """Size in bytes, time of the last change in nanoseconds, and kind of a file."""

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: Path) -> bool:
    """Return whether there is a file or folder."""
    return os.path.exists(as_path("exists", path))


def isdir(path: Path) -> bool:
    """Return whether there is a folder of that name."""
    return os.path.isdir(as_path("isdir", path))


def stat(path: Path) -> FileStatistics:
    """Size, time and kind of a file.

    Raises: ``NotFoundError``.
    """
    with file_errors():
        found = os.stat(as_path("stat", path))
    is_folder = os.path.isdir(as_path("stat", path))
    return FileStatistics(found.st_size, found.st_mtime_ns, is_folder)


def glob(pattern: Path | Sequence[Path]) -> list[str]:
    """The paths that match a pattern, or one of several; sorted for each.

    Example:
        >>> tw.io.gfile.glob("no such folder/*")
        []
    """
    patterns = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else pattern
    return [path for each in patterns for path in expand_pattern("glob", each)]


def listdir(path: Path) -> list[str]:
    """The names of what is in a folder, sorted.

    Raises: ``NotFoundError`` if there is no such folder.
    """
    with file_errors():
        return sorted(os.listdir(as_path("listdir", path)))


def walk(
    top: Path,
    topdown: bool = True,
    onerror: Callable[[OSError], Any] | None = None,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """``(folder, names of folders in it, names of files in it)``, as ``os.walk``, sorted."""
    path = as_path("walk", top)
    for folder, folders, names in os.walk(path, topdown=topdown, onerror=onerror):
        folders.sort()
        yield folder, folders, sorted(names)


def mkdir(path: Path) -> None:
    """Make a folder in a folder that exists.

    Raises: ``AlreadyExistsError``, ``NotFoundError``.
    """
    with file_errors():
        os.mkdir(as_path("mkdir", path))


def makedirs(path: Path) -> None:
    """Make a folder, and those that it is in; it may exist."""
    with file_errors():
        os.makedirs(as_path("makedirs", path), exist_ok=True)


def remove(path: Path) -> None:
    """Remove a file.

    Raises: ``NotFoundError``; ``FailedPreconditionError`` for a folder.
    """
    path = as_path("remove", path)
    if os.path.isdir(path) and not os.path.islink(path):
        raise FailedPreconditionError(f"remove: {path} is a folder; see rmtree")
    with file_errors():
        os.remove(path)


def rmtree(path: Path) -> None:
    """Remove a folder and all that is in it; links in it are removed, not followed.

    Raises: ``NotFoundError``; ``FailedPreconditionError`` for a file.
    """
    with file_errors():
        shutil.rmtree(as_path("rmtree", path))


def _refuse_other(who, target, overwrite):
    if os.path.exists(target) and not overwrite:
        raise AlreadyExistsError(f"{who}: {target} exists; overwrite=True replaces it")


def copy(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Copy the content of a file.

    Raises: ``AlreadyExistsError`` if there is a file ``dst``, unless ``overwrite``.
    """
    source, target = as_path("copy", src), as_path("copy", dst)
    _refuse_other("copy", target, overwrite)
    with file_errors(target), writing_whole(target) as place:
        shutil.copyfile(source, place)


def rename(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Give a file or folder another path on the same disk.

    Raises: ``AlreadyExistsError`` if there is a file ``dst``, unless ``overwrite``.
    """
    source, target = as_path("rename", src), as_path("rename", dst)
    if os.path.exists(source):
        _refuse_other("rename", target, overwrite)
    with file_errors():
        os.replace(source, target)


def join(path: Path, *paths: Path) -> str:
    """Join parts of a path, as ``os.path.join``."""
    return os.path.join(os.fsdecode(path), *map(os.fsdecode, paths))


def get_registered_schemes() -> list[str]:
    """The schemes of paths: none, and "file"."""
    return ["", "file"]


class GFile:
    """An open file: text in UTF-8, or bytes with a "b" in ``mode``.

    Modes are "r", "w", "a", "r+", "w+", "a+", each also with "b". Ends of lines stay as
    they are. A context manager closes it.

    Raises: ``NotFoundError``; ``InvalidArgumentError`` for another mode.
    """

    def __init__(self, name: Path, mode: str = "r"):
        if sorted(mode.replace("b", "", 1)) not in [
            sorted(each) for each in ("r", "w", "a", "r+", "w+", "a+")
        ]:
            raise InvalidArgumentError(f"GFile: mode must be one as 'r', got {mode!r}")
        self.name, self.mode = name, mode
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with file_errors():
            self._file = open(as_path("GFile", name), mode, **text)

    __repr__ = constructor_call

    def read(self, n: int = -1) -> Any:
        """The next ``n`` characters or bytes, or all that follow."""
        return self._file.read(n)

    def readline(self) -> Any:
        """The next line, with its end; empty at the end of the file."""
        return self._file.readline()

    def readlines(self) -> list[Any]:
        """All lines that follow."""
        return self._file.readlines()

    def write(self, file_content: Any) -> None:
        """Write text, or bytes."""
        with file_errors(self.name):
            self._file.write(file_content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Set the position, in bytes."""
        self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position, in bytes."""
        return self._file.tell()

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """The size of the file in bytes."""
        if self._file.writable():
            self._file.flush()
        return os.path.getsize(as_path("GFile", self.name))

    def flush(self) -> None:
        """Write out what is held back."""
        with file_errors(self.name):
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with file_errors(self.name):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file.readline, self._file.read(0))
