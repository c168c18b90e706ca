"""Weights that Keras cut into several files: a ``.weights.json`` is their index.

Its ``weight_map`` gives for each group, ``/layers/dense/vars``, the file in the same folder
that holds it, or several that hold some of its arrays each.
"""

import os
from contextlib import ExitStack, contextmanager

from tapewright.core.errors import SavingError
from tapewright.storage import strict_json
from tapewright.storage.reader import MergedGroup, opened, regular_file

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
    lists = [names if isinstance(names, list) else [names] for names in parts.values()]
    names = [name for each in lists for name in each]
    for name in names:
        if not isinstance(name, str) or name != os.path.basename(name):
            raise SavingError(
                path, f"names {name!r}, which is not a file of the same folder"
            )
    names = list(dict.fromkeys(names))
    if not 1 <= len(names) <= MAX_SHARDS:
        raise SavingError(path, f"names {len(names)} files, not 1 to {MAX_SHARDS}")
    paths = [os.path.join(os.path.dirname(path), name) for name in names]
    with ExitStack() as stack:
        yield MergedGroup([stack.enter_context(opened(each)) for each in paths])
