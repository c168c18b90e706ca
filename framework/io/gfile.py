"""`tw.io.gfile`: local files and folders under the names of ``tf.io.gfile``.

Errors have TensorFlow's classes: ``NotFoundError``, ``AlreadyExistsError``,
``PermissionDeniedError``, ``FailedPreconditionError``; ``UnimplementedError`` for paths
such as ``gs://``.
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
    """Size, modification time and kind of a file.

    Args:
        length: Size in bytes.
        mtime_nsec: Time of the last modification in nanoseconds.
        is_directory: True for a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: Path) -> bool:
    """Return whether a file or folder exists.

    Args:
        path: Path to test.

    Example:
        >>> tw.io.gfile.exists("no such file")
        False
    """
    return os.path.exists(as_path("exists", path))


def isdir(path: Path) -> bool:
    """Return whether a path is an existing folder.

    Args:
        path: Path to test.

    Example:
        >>> import tempfile
        >>> tw.io.gfile.isdir(tempfile.mkdtemp())
        True
    """
    return os.path.isdir(as_path("isdir", path))


def stat(path: Path) -> FileStatistics:
    """Return the size, modification time and kind of a file.

    Args:
        path: Path of a file or folder.

    Raises:
        NotFoundError: If it does not exist.
    """
    with file_errors():
        status = os.stat(as_path("stat", path))
    is_folder = os.path.isdir(as_path("stat", path))
    return FileStatistics(status.st_size, status.st_mtime_ns, is_folder)


def glob(pattern: Path | Sequence[Path]) -> list[str]:
    """Return the paths that match a pattern or several patterns, sorted per pattern.

    Args:
        pattern: Pattern with ``*``, ``?`` and ``[...]``, or a list of patterns.

    Example:
        >>> tw.io.gfile.glob("no such folder/*")
        []
    """
    patterns = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else pattern
    return [path for each in patterns for path in expand_pattern("glob", each)]


def listdir(path: Path) -> list[str]:
    """Return the names of the files and folders in a folder, sorted.

    Args:
        path: Path of the folder.

    Raises:
        NotFoundError: If the folder does not exist.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> tw.io.gfile.mkdir(tw.io.gfile.join(folder, "train"))
        >>> tw.io.gfile.listdir(folder)
        ['train']
    """
    with file_errors():
        return sorted(os.listdir(as_path("listdir", path)))


def walk(
    top: Path,
    topdown: bool = True,
    onerror: Callable[[OSError], Any] | None = None,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield ``(folder, names of subfolders, names of files)`` for a folder tree, sorted.

    Args:
        top: Path of the root folder.
        topdown: If True, yield a folder before its subfolders, otherwise after them.
        onerror: Function that is called with each ``OSError``, or None to ignore
            errors.
    """
    path = as_path("walk", top)
    for folder, folders, names in os.walk(path, topdown=topdown, onerror=onerror):
        folders.sort()
        yield folder, folders, sorted(names)


def mkdir(path: Path) -> None:
    """Create a folder in an existing folder.

    Args:
        path: Path of the new folder.

    Raises:
        AlreadyExistsError: If the path exists.
        NotFoundError: If the parent folder does not exist.
    """
    with file_errors():
        os.mkdir(as_path("mkdir", path))


def makedirs(path: Path) -> None:
    """Create a folder and its missing parents, unless it exists.

    Args:
        path: Path of the folder.

    Example:
        >>> import tempfile
        >>> path = tw.io.gfile.join(tempfile.mkdtemp(), "logs", "run1")
        >>> tw.io.gfile.makedirs(path)
        >>> tw.io.gfile.isdir(path)
        True
    """
    with file_errors():
        os.makedirs(as_path("makedirs", path), exist_ok=True)


def remove(path: Path) -> None:
    """Remove a file.

    Args:
        path: Path of the file.

    Raises:
        NotFoundError: If the file does not exist.
        FailedPreconditionError: If the path is a folder.
    """
    path = as_path("remove", path)
    if os.path.isdir(path) and not os.path.islink(path):
        raise FailedPreconditionError(f"remove: {path} is a folder; use rmtree")
    with file_errors():
        os.remove(path)


def rmtree(path: Path) -> None:
    """Remove a folder and its contents; links in it are removed, not followed.

    Args:
        path: Path of the folder.

    Raises:
        NotFoundError: If the folder does not exist.
        FailedPreconditionError: If the path is a file.
    """
    with file_errors():
        shutil.rmtree(as_path("rmtree", path))


def _refuse_other(who, target, overwrite):
    if os.path.exists(target) and not overwrite:
        raise AlreadyExistsError(
            f"{who}: {target} exists; pass overwrite=True to replace it"
        )


def copy(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Copy the contents of a file.

    Args:
        src: Path of the file.
        dst: Path of the copy.
        overwrite: If True, replace an existing file.

    Raises:
        AlreadyExistsError: If ``dst`` exists, unless ``overwrite``.
    """
    source, target = as_path("copy", src), as_path("copy", dst)
    _refuse_other("copy", target, overwrite)
    with file_errors(target), writing_whole(target) as temporary:
        shutil.copyfile(source, temporary)


def rename(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Rename or move a file or folder on the same disk.

    Args:
        src: Current path.
        dst: New path.
        overwrite: If True, replace an existing file.

    Raises:
        AlreadyExistsError: If ``dst`` exists, unless ``overwrite``.
    """
    source, target = as_path("rename", src), as_path("rename", dst)
    if os.path.exists(source):
        _refuse_other("rename", target, overwrite)
    with file_errors():
        os.replace(source, target)


def join(path: Path, *paths: Path) -> str:
    """Join parts of a path, like ``os.path.join``.

    Args:
        path: First part.
        *paths: Further parts.

    Example:
        >>> tw.io.gfile.join("logs", "run1", "events")
        'logs/run1/events'
    """
    return os.path.join(os.fsdecode(path), *map(os.fsdecode, paths))


def get_registered_schemes() -> list[str]:
    """Return the supported schemes of paths: none and "file"."""
    return ["", "file"]


class GFile:
    """File object for text in UTF-8, or for bytes with "b" in ``mode``.

    Line endings are not converted. As a context manager, it closes the file.

    Args:
        name: Path of a local file.
        mode: "r", "w", "a", "r+", "w+" or "a+", also with "b".

    Raises:
        NotFoundError: If the file to read does not exist.
        InvalidArgumentError: If ``mode`` is unknown.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "a.txt")
        >>> with tw.io.gfile.GFile(path, "w") as file:
        ...     file.write("hello")
        >>> with tw.io.gfile.GFile(path) as file:
        ...     file.read()
        'hello'
    """

    def __init__(self, name: Path, mode: str = "r"):
        if sorted(mode.replace("b", "", 1)) not in [
            sorted(each) for each in ("r", "w", "a", "r+", "w+", "a+")
        ]:
            raise InvalidArgumentError(
                "GFile: mode must be 'r', 'w', 'a', 'r+', 'w+' or 'a+', possibly with 'b', "
                f"got {mode!r}"
            )
        self.name, self.mode = name, mode
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with file_errors():
            self._file = open(as_path("GFile", name), mode, **text)

    def __repr__(self) -> str:
        return f"GFile(name={self.name!r}, mode={self.mode!r})"

    def read(self, n: int = -1) -> Any:
        """Return the next ``n`` characters or bytes, or the rest of the file.

        Args:
            n: Number of characters or bytes; negative for all.
        """
        return self._file.read(n)

    def readline(self) -> Any:
        """Return the next line with its line ending; empty at the end of the file."""
        return self._file.readline()

    def readlines(self) -> list[Any]:
        """Return all remaining lines as a list."""
        return self._file.readlines()

    def write(self, file_content: Any) -> None:
        """Write text or bytes.

        Args:
            file_content: Text, or bytes in a binary mode.
        """
        with file_errors(self.name):
            self._file.write(file_content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Set the position in the file.

        Args:
            offset: Offset in bytes.
            whence: 0 to count from the start, 1 from the current position, 2 from the
                end.
        """
        self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in the file, in bytes."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Return True: all files are seekable."""
        return True

    def size(self) -> int:
        """Return the size of the file in bytes."""
        if self._file.writable():
            self._file.flush()
        return os.path.getsize(as_path("GFile", self.name))

    def flush(self) -> None:
        """Write buffered data to the file."""
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
