"""Indexes of files in the same folder: JSON whose ``weight_map`` names the files."""

import os

from tapewright.core.errors import SavingError

from . import strict_json
from .reader import regular_file

MAX_SHARDS = 1000


def read_index(path):
    """Return the ``weight_map`` of an index: a dict from names to lists of paths.

    Raises:
        SavingError: If the file is not an index, or lists files of other folders.
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
            path, "is JSON without weight_map: neither a model nor an index of weights"
        )
    lists = {
        key: names if isinstance(names, list) else [names]
        for key, names in parts.items()
    }
    names = [name for each in lists.values() for name in each]
    for name in names:
        is_name = isinstance(name, str) and "\0" not in name
        if not is_name or name != os.path.basename(name):
            raise SavingError(
                path, f"lists {name!r}, which is not a file of the same folder"
            )
    paths = {name: _beside(path, name) for name in dict.fromkeys(names)}
    if not 1 <= len(paths) <= MAX_SHARDS:
        raise SavingError(path, f"lists {len(paths)} files, not 1 to {MAX_SHARDS}")
    return {key: [paths[name] for name in names] for key, names in lists.items()}


def _beside(index, name):
    """Return the path of a shard; links must stay in the folder of the index."""
    path = os.path.join(os.path.dirname(index), name)
    folders = [os.path.dirname(os.path.realpath(each)) for each in (index, path)]
    if folders[1] not in (folders[0], os.path.realpath(os.path.dirname(index))):
        raise SavingError(path, "is a link, not a file of this folder")
    return path
