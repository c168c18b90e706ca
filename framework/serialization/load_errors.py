"""Errors of loading, which name the file that a config comes from.

In the context of `from_file` a file is untrusted: all errors are a `SavingError` that
names the file, and only registered classes of users are found. Outside of it a config is
the caller's own, and an error is a ``ValueError``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tapewright.core.errors import SavingError

__all__ = ["from_file", "load_error", "load_errors", "reading_file", "shortened"]

_FILE = ContextVar("file", default=None)


@contextmanager
def from_file(path: str, dataset: str | None = None) -> Iterator[None]:
    """Mark the configs that are read inside as those of a file.

    ``dataset``: the location of the config in the file, for errors.
    """
    token = _FILE.set((path, dataset))
    try:
        yield
    finally:
        _FILE.reset(token)


def reading_file() -> bool:
    """Return whether a `from_file` context is active."""
    return _FILE.get() is not None


def load_error(reason: str) -> ValueError:
    """Return the error to raise: a `SavingError` inside `from_file`, else a ValueError."""
    if _FILE.get() is None:
        return ValueError(reason)
    path, dataset = _FILE.get()
    return SavingError(path, reason, dataset)


@contextmanager
def load_errors(what: str) -> Iterator[None]:
    """Turn any error inside `from_file` into a `SavingError` that names ``what``."""
    try:
        yield
    except SavingError:
        raise
    except Exception as error:  # classes raise any error for a config
        if not reading_file():
            raise
        why = f"its config lacks {error}" if type(error) is KeyError else error
        notes = "".join([f"; {note}" for note in getattr(error, "__notes__", ())])
        raise load_error(f"{what}: {why}{notes}") from error


def shortened(value: object) -> str:
    """Return the ``repr`` of a value of any size, for an error message."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
