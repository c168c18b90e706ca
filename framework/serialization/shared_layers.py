"""Layers with several entries in one config: an entry in each object that holds them.

A layer that is called several times has one entry, with several calls. A layer that two
objects hold, such as two wrappers, has an entry in each; these have one number, and are
read as one layer. Keras numbers them too, by an address, and leaves the number of the
first entry out where that is in a nested model.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from .constructor_arguments import is_own
from .load_errors import load_error

_SHARED = "shared_object_id"
_LEAST_ADDRESS = 1 << 16  # ours count from 1
_ENTRIES = ContextVar("entries", default=None)  # id of a layer -> `_Entries`
_LAYERS = ContextVar("layers", default=None)  # the `_Layers` read so far


class _Entries(NamedTuple):
    """The configs of a layer; the layer is kept so that its id stays unique."""

    layer: Any
    number: int
    configs: list


def numbering_shared(describe: Callable[[], dict]) -> dict:
    """Return ``describe()`` with a number in each entry of a shared layer."""
    if _ENTRIES.get() is not None:  # inside of another
        return describe()
    entries = {}
    token = _ENTRIES.set(entries)
    try:
        config = describe()
    finally:
        _ENTRIES.reset(token)
    shared = [each for each in entries.values() if len(each.configs) > 1]
    # Keras (3.15) cannot read calls of layers with a number: where two do as well, none.
    shared = [each for each in shared if not _is_stateless(each.layer)]
    for number, each in enumerate(shared, 1):
        for entry in each.configs:
            entry[_SHARED] = number
    return config


def _is_stateless(layer):
    return is_own(type(layer)) and not layer.variables and layer.built


def note_entry(layer: Any, config: dict) -> None:
    """Note that ``config`` is an entry of a layer, for `numbering_shared`."""
    entries = _ENTRIES.get()
    if entries is not None:
        record = _entries_of(layer, entries)
        record.configs.append(config)
        if isinstance(entries, _Copied):
            config[_SHARED] = record.number


def _entries_of(layer, entries):
    new = _Entries(layer, len(entries) + 1, [])
    return entries.setdefault(id(layer), new)


class _Copied(dict):
    """Entries of layers that are copied one by one: all have their numbers in advance."""


class _Layers:
    """The layers that are read, by the numbers of their entries.

    ``numbered`` maps number and name to class name (None for a copy) and layer. The name
    distinguishes the numbers of two configs, if reading one of them reads the other.
    ``unnumbered`` maps class name and name to pairs of config and layer.
    """

    def __init__(self):
        self.numbered, self.unnumbered = {}, {}


@contextmanager
def copying_shared() -> Iterator[Callable[[Any, Callable[[], Any]], Any]]:
    """Yield ``copied(layer, copy)``: return a layer's copy, created once by ``copy()``.

    Copies made from nested configs also contain a shared layer only once.
    """
    entries, layers = _Copied(), _Layers()

    def copied(layer, copy):
        key = _entries_of(layer, entries).number, layer.name
        if key not in layers.numbered:
            layers.numbered[key] = None, copy()
        return layers.numbered[key][1]

    tokens = _ENTRIES.set(entries), _LAYERS.set(layers)
    try:
        yield copied
    finally:
        _ENTRIES.reset(tokens[0])
        _LAYERS.reset(tokens[1])


@contextmanager
def reading_shared() -> Iterator[None]:
    """Create one layer for all entries with the same number that are read inside."""
    if _LAYERS.get() is not None:
        yield
        return
    token = _LAYERS.set(_Layers())
    try:
        yield
    finally:
        _LAYERS.reset(token)


def shared_layer(config: dict) -> Any:
    """Return the layer of an earlier entry with the same number, or None."""
    layers, number, name = _LAYERS.get(), config.get(_SHARED), _name_in(config)
    if layers is None or type(number) is not int:
        return None
    if (number, name) not in layers.numbered:
        return _first_of_keras(layers, number, config)
    class_name, layer = layers.numbered[number, name]
    if class_name not in (None, _class_in(config)):
        raise load_error(
            f"the layers {class_name!r:.80} and {_class_in(config)!r:.80} have the "
            f"same {_SHARED}, {number}"
        )
    return layer


def _first_of_keras(layers, number, config):
    """Return the layer of the first entry, which Keras wrote without a number, or None."""
    if number < _LEAST_ADDRESS:
        return None
    own = _without_numbers(config.get("config"))
    first = [
        layer
        for other, layer in layers.unnumbered.get(_key_of(config), ())
        if _without_numbers(other.get("config")) == own
    ]
    return first[0] if len(first) == 1 else None


def _without_numbers(config):
    if isinstance(config, dict):
        kept = {key: each for key, each in config.items() if key != _SHARED}
        return {key: _without_numbers(each) for key, each in kept.items()}
    if isinstance(config, list):
        return [_without_numbers(each) for each in config]
    return config


def _class_in(entry):
    """Return the class name, which ``.h5`` files prefix with a package in some entries."""
    return entry["class_name"].rpartition(">")[2]


def _key_of(entry):
    return _class_in(entry), _name_in(entry)


def _name_in(entry):
    inner = entry.get("config")
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def keep_shared(config: dict, layer: Any) -> None:
    """Keep the layer of an entry, for later entries with the same number."""
    layers, number = _LAYERS.get(), config.get(_SHARED)
    if layers is None:
        return
    if type(number) is int:
        layers.numbered[number, _name_in(config)] = _class_in(config), layer
    else:
        layers.unnumbered.setdefault(_key_of(config), []).append((config, layer))
