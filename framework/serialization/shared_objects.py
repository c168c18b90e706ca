"""Shared layers in configs: a layer in several places of a model is read as one.

All entries of such a layer have the same number, ``shared_object_id`` as in Keras.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .load_errors import load_error

__all__ = [
    "keep_shared",
    "number_shared",
    "numbering_shared",
    "reading_shared",
    "shared_layer",
]

KEY = "shared_object_id"
_WRITTEN = ContextVar("written", default=None)
_READ = ContextVar("read", default=None)


def numbering_shared(describe: Callable[[], dict]) -> dict:
    """Return ``describe()`` with a number in each entry of a shared layer."""
    if _WRITTEN.get() is not None:  # inside of another
        return describe()
    seen = _Seen()
    token = _WRITTEN.set(seen)
    try:
        config = describe()
        if seen.number_shared_ones():
            config = describe()
    finally:
        _WRITTEN.reset(token)
    return config


class _Seen:
    """The count of each layer, then the numbers of the shared ones."""

    def __init__(self):
        self.met, self.numbers = {}, None

    def number_shared_ones(self):
        often = [key for key, (_, times) in self.met.items() if times > 1]
        self.numbers = {key: i for i, key in enumerate(often, 1)}
        return bool(often)


def number_shared(thing: object, config: dict) -> None:
    """Count an entry of a layer, or write its number into ``config``."""
    seen = _WRITTEN.get()
    if seen is None:
        return
    key = id(thing)
    if seen.numbers is None:
        _, times = seen.met.get(key, (None, 0))
        seen.met[key] = thing, times + 1  # kept, so that the id stays its own
    elif key in seen.numbers:
        config[KEY] = seen.numbers[key]


@contextmanager
def reading_shared() -> Iterator[None]:
    """Make one layer of all entries with one number that are read inside."""
    if _READ.get() is not None:
        yield
        return
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def shared_layer(config: dict) -> Any:
    """Return the layer of an earlier entry with the number of this one, or None.

    Raises: ``ValueError``, or ``SavingError`` from a file, if its class differs.
    """
    made, key = _READ.get(), config.get(KEY)
    if made is None or type(key) is not int or key not in made:
        return None
    name, thing = made[key]
    if name != config["class_name"]:
        raise load_error(
            f"the layers {name!r:.80} and {config['class_name']!r:.80} have one "
            f"{KEY}, {key}"
        )
    return thing


def keep_shared(config: dict, thing: object) -> None:
    """Keep the layer of an entry for later entries."""
    made, key = _READ.get(), config.get(KEY)
    if made is not None and type(key) is int:
        made[key] = config["class_name"], thing
