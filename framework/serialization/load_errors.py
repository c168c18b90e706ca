"""Errors of loading, which name the file that a config comes from.

In the context of `from_file` a file is untrusted: every error is a `SavingError` that
names the file, and only registered user classes are found. Outside of it an error is a
``ValueError``. No config, from a file or elsewhere, may name a file to be read, unless
the caller trusts it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tapewright.core.errors import SavingError

_FILE = ContextVar("file", default=None)
_ESCAPES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
)
_MAY_NAME_FILES = ContextVar("may_name_files", default=None)  # None: outside of configs


@contextmanager
def from_file(path: str, dataset: str | None = None) -> Iterator[None]:
    """Mark the configs that are read inside as coming from a file.

    ``dataset`` is the location of the config in the file, for errors.
    """
    token = _FILE.set((path, dataset))
    try:
        yield
    finally:
        _FILE.reset(token)


def reading_file() -> bool:
    """Return whether a `from_file` context is active."""
    return _FILE.get() is not None


@contextmanager
def reading_config() -> Iterator[None]:
    """Treat objects created in this context as read from an untrusted config."""
    with _naming_files(bool(_MAY_NAME_FILES.get())):
        yield


@contextmanager
def trusting_configs() -> Iterator[None]:
    """Allow configs read in this context to name files, unless `from_file` is active."""
    with _naming_files(True):
        yield


@contextmanager
def _naming_files(allowed):
    token = _MAY_NAME_FILES.set(allowed)
    try:
        yield
    finally:
        _MAY_NAME_FILES.reset(token)


def names_no_file(who: str, what: str, path: str) -> None:
    """Reject a path that a config names: its content would leak through the model.

    Args:
        who: Name of the class, for the error.
        what: Name of the argument, for the error.
        path: The path that the class is about to read.

    Raises:
        ValueError: If an untrusted config is being read; a `SavingError` in `from_file`.
    """
    if reading_file():
        raise load_error(
            f"{who} would read its {what} from the file {path!r:.200}, which is not "
            "part of this file"
        )
    if _MAY_NAME_FILES.get() is False:
        raise ValueError(
            f"{who} would read its {what} from the file {path!r:.200}, which a config "
            "may not name. Remove it from the config and pass it to the object, or, "
            "for a config that you trust, call "
            "keras.saving.deserialize_keras_object(config, safe_mode=False)"
        )


def load_error(reason: str) -> ValueError:
    """Return the error to raise: a `SavingError` inside `from_file`, else a ValueError."""
    if _FILE.get() is None:
        return ValueError(reason)
    path, dataset = _FILE.get()
    return SavingError(path, reason, dataset)


@contextmanager
def load_errors(
    what: str, errors: type[Exception] | tuple[type[Exception], ...] = _ESCAPES
) -> Iterator[None]:
    """Convert any error inside `from_file` to a `SavingError` that names ``what``.

    Outside of it, ``errors`` are converted to a ``ValueError``; by default errors that
    do not describe the config, such as unlimited nesting or numbers.
    """
    try:
        yield
    except SavingError:
        raise
    except Exception as error:  # classes raise any error for a config
        is_clear = isinstance(error, ValueError) or not isinstance(error, errors)
        if not reading_file() and is_clear:
            raise
        why = f"its config lacks {error}" if type(error) is KeyError else error
        notes = "".join([f"; {note}" for note in getattr(error, "__notes__", ())])
        raise load_error(f"{what}: {why}{notes}") from error


def shortened(value: object) -> str:
    """Return the shortened ``repr`` of a value, for an error message."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
