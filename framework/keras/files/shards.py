"""Weights that Keras cut into several files: a ``.weights.json`` tells what is where.

Its ``weight_map`` gives for each group, ``/layers/dense/vars``, the file in the same folder
that holds it, or several that hold some of its arrays each.
"""

import os
from contextlib import ExitStack, contextmanager

from tapewright.core.errors import SavingError
from tapewright.storage import strict_json
from tapewright.storage.reader import opened, regular_file

__all__ = ["opened_shards"]

MAX_SHARDS = 1000


@contextmanager
def opened_shards(path):
    """The root group of all shards together, as long as the context lasts.

    Raises: `SavingError` for a file that is no such index, or a shard that is not there.
    """
    with open(regular_file(path), "rb") as file:
        raw = file.read(strict_json.MAX_CHARACTERS + 1)
    try:
        index = strict_json.loads(raw.decode(), path)
    except UnicodeDecodeError as error:
        raise SavingError(path, f"is not UTF-8 text: {error}") from None
    parts = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(parts, dict):
        raise SavingError(
            path, "is JSON without weight_map: no model, and no index of weights"
        )
    places = {}
    for place, names in parts.items():
        places[place.strip("/")] = names if isinstance(names, list) else [names]
    names = [name for each in places.values() for name in each]
    for name in names:
        if not isinstance(name, str) or name != os.path.basename(name):
            raise SavingError(
                path, f"names {name!r}, which is not a file of the same folder"
            )
    names = dict.fromkeys(names)
    if len(names) > MAX_SHARDS:
        raise SavingError(path, f"names {len(names)} files, more than {MAX_SHARDS}")
    with ExitStack() as stack:
        shards = {}
        for name in names:
            beside = os.path.join(os.path.dirname(path), name)
            shards[name] = stack.enter_context(opened(beside))
        yield _Whole(path, places, shards)


class _Whole:
    """The root group of all shards together, as far as a reader of weights asks it."""

    place = "/"

    def __init__(self, path, places, shards):
        self.path, self._places, self._shards = path, places, shards

    def __contains__(self, place):
        return self.find(place) is not None

    @property
    def shards(self):
        """The roots of the files, by name."""
        return dict(self._shards)

    @property
    def sealed(self):
        return all([root.sealed for root in self._shards.values()])

    def has(self, key):
        return False

    def keys(self):
        return list(dict.fromkeys([place.partition("/")[0] for place in self._places]))

    def arrays(self):
        return (array for root in self._shards.values() for array in root.arrays())

    def find_group(self, place):
        """The group of arrays there; other groups are told by their names only."""
        names = self._places.get(place)
        if names is not None:
            groups = [self._shards[name].group(place) for name in names]
            return groups[0] if len(groups) == 1 else _Joined(groups)
        below = [each for each in self._places if each.startswith(f"{place}/")]
        return _Below(self, place, below) if below else None

    find = find_group  # there are no arrays beside


class _Below:
    """A group that holds other groups, in any of the shards."""

    def __init__(self, whole, place, below):
        self._whole, self._place, self._below = whole, place, below

    def keys(self):
        names = [each[len(self._place) + 1 :].partition("/")[0] for each in self._below]
        return list(dict.fromkeys(names))

    def find(self, place):
        return self._whole.find(f"{self._place}/{place}")

    def arrays(self):
        for each in self._below:
            yield from self._whole.find(each).arrays()


class _Joined:
    """A group whose arrays lie in several shards."""

    def __init__(self, groups):
        self._groups, first = groups, groups[0]
        self.path, self.place, self.has, self.text = (
            first.path, first.place, first.has, first.text,
        )  # fmt: skip

    def keys(self):
        return [key for group in self._groups for key in group.keys()]

    def array(self, key):
        holder = next((g for g in self._groups if key in g), self._groups[0])
        return holder.array(key)

    def numbered(self):
        keys = self.keys()
        if sorted(keys) != sorted(map(str, range(len(keys)))):
            self._groups[0].fail(f"must hold 0, 1, 2, ..., its shards hold {keys[:20]}")
        return [self.array(str(i)) for i in range(len(keys))]

    def arrays(self):
        for group in self._groups:
            yield from group.arrays()
