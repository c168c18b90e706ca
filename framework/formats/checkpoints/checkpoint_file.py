"""The file of a checkpoint: arrays by name, states of objects, and metadata.

/arrays/<name>   each variable, in groups by the parts of its name
/states/<n>      arrays that are parts of states
@format          "tapewright checkpoint", and @version
@states          JSON: name -> state, see `state_codec`
@info            JSON: step, versions, metrics, the state of the global generator, other
                 names ("aliases") that lead to the same objects
"""

from dataclasses import dataclass

import numpy as np

from tapewright.core.interpreters import check_not_traced
from tapewright.storage.reader import Group, check_format, opened
from tapewright.storage.writer import write_format, writing

from .state_codec import decode_state, encode_state

FORMAT = "tapewright checkpoint"
VERSION = 1
DEPTH = 30  # of groups; what is nested deeper has its last names in one


@dataclass
class Content:
    """The content of a checkpoint; ``path`` is its file."""

    path: str
    arrays: dict
    states: dict
    info: dict


def write_content(content) -> None:
    """Write the file of ``content``: sealed and atomic.

    Raises:
        TypeError: If a state cannot be saved.
        SavingError: If the file cannot be written.
    """
    kept = []
    states = {
        name: encode_state(state, kept, f"the state of '{name}'")
        for name, state in content.states.items()
    }
    check_not_traced(content.path)
    with writing(content.path) as root:
        write_format(root, FORMAT, VERSION)
        root.json("info", content.info | {"versions": _versions()})
        root.json("states", states)
        group = root.group("arrays")
        for name, array in content.arrays.items():
            group.array(path_of(name), array)
        group = root.group("states")
        for number, array in enumerate(kept):
            group.array(str(number), array)


def _versions():
    import platform
    import sys

    ours = getattr(sys.modules.get(__name__.partition(".")[0]), "__version__", "")
    return {"tapewright": ours, "numpy": np.__version__,
            "python": platform.python_version()}  # fmt: skip


def read_content(path) -> Content:
    """Read the whole file; raise `SavingError` if it is damaged or not a checkpoint."""
    with opened(path) as root:
        info = _checked(root)
        arrays = {name: array.read() for name, array in _arrays(root.group("arrays"))}
        kept = [array.read() for array in root.group("states").numbered()]
        states = {
            name: decode_state(value, kept, root.path, f"/@states[{name}]")
            for name, value in root.json_object("states").items()
        }
    return Content(root.path, arrays, states, info)


def read_info(path, check=False) -> dict:
    """Read the metadata of a checkpoint; with ``check``, also check the file's seal."""
    with opened(path, check=check) as root:
        return _checked(root)


def read_shapes(path) -> dict:
    """Read the shape and dtype of each array, by name."""
    with opened(path) as root:
        _checked(root)
        pairs = list(_arrays(root.group("arrays")))
        return {name: (array.shape, array.dtype) for name, array in pairs}


def _arrays(group):
    skipped = len(group.name) + 1
    for array in group.arrays():
        yield array.name[skipped:].replace("%-", "/"), array


def path_of(name):
    """Return the path of an array in the file: no deeper than `Group.walk` descends.

    Example:
        >>> from tapewright.formats.checkpoints.checkpoint_file import path_of
        >>> path_of("/".join("abc" * 11)).count("/")
        29
    """
    parts = name.split("/")
    return "/".join([*parts[: DEPTH - 1], "%-".join(parts[DEPTH - 1 :])]).rstrip("/")


def _checked(root: Group):
    """Return the info after checking that this is a checkpoint of a supported version."""
    check_format(root, FORMAT, VERSION, "Checkpoint.save")
    info = root.json_object("info")
    state = info.get("generator")
    if state is not None and not _is_position(state):
        root.fail(f"'generator' must be two int64 numbers, got {state!r:.80}", "info")
    aliases = info.get("aliases", {})
    texts = isinstance(aliases, dict) and all(
        [type(n) is str for n in aliases.values()]
    )
    if not texts:
        root.fail(f"'aliases' must map names to names, got {aliases!r:.80}", "info")
    return info


def _is_position(state):
    """Return whether this is the state of a random generator: its key and a counter."""
    if not isinstance(state, list) or len(state) != 2:
        return False
    return all([type(n) is int and -(2**63) <= n < 2**63 for n in state])
