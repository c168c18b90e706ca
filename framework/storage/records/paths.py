"""Local files: user-given paths, and patterns of names."""

import errno
import glob
import os
from contextlib import contextmanager

from tapewright.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SavingError,
    UnimplementedError,
    UnknownError,
)

SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
ERRORS = [
    (FileNotFoundError, NotFoundError),
    (FileExistsError, AlreadyExistsError),
    (PermissionError, PermissionDeniedError),
    ((IsADirectoryError, NotADirectoryError), FailedPreconditionError),
    (OSError, UnknownError),
]


def as_path(who, path):
    """Return a path as text, without the prefix ``file://``.

    As in TensorFlow, a trailing "/" is removed, unless the path is a folder.

    Raises:
        UnimplementedError: For other schemes.
        TypeError: For another type.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"{who}: expects a path, got {type(path).__name__}")
    text = os.fsdecode(path)
    scheme, found, rest = text.partition("://")
    if not found or not scheme.isalnum():
        return _of_file(text)
    if scheme == "file":
        return _of_file(rest)
    raise UnimplementedError(
        f"{who}: only local files are supported, got {text!r}: copy it to the disk first"
    )


def _of_file(text):
    if not text.endswith(SEPARATORS) or os.path.isdir(text):
        return text
    return text.rstrip("".join(SEPARATORS)) or text


def expand_pattern(who, pattern):
    """Return the files that match a pattern with ``*``, ``?`` and ``[...]``, sorted.

    Names that begin with a dot match ``*`` too, as in TensorFlow.
    """
    return sorted(glob.glob(as_path(who, pattern), include_hidden=True))


FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def file_errors(path=None):
    """Convert system errors to TensorFlow's: ``NotFoundError`` and others.

    ``path`` is reported for errors without a path.
    """
    try:
        yield
    except OSError as error:
        kind = next(kind for kinds, kind in ERRORS if isinstance(error, kinds))
        if getattr(error.__cause__ or error, "errno", None) in FULL:
            kind = ResourceExhaustedError
        if isinstance(error, SavingError):
            raise kind(str(error)) from error
        path = path if error.filename is None else error.filename
        name = "" if path is None else f"{os.fsdecode(path)}: "
        raise kind(f"{name}{error.strerror or error}") from error
