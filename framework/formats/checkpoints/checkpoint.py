"""`Checkpoint`: save variables and states of objects to a file, and restore them.

Names, arguments and defaults follow ``tf.train``. A checkpoint is one file; its names
follow the attributes that lead to a variable (`object_tree`).
"""

from __future__ import annotations

import os
import re
import warnings
from functools import partial
from typing import Any

import numpy as np

from tapewright.core.errors import SavingError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.names.reserved_names import Reserving
from tapewright.core.state.sharded_variable import ShardedVariable, write_together
from tapewright.core.trackable import Trackable, children
from tapewright.core.variable import Variable
from tapewright.storage.reader import opened
from tapewright.storage.suffixes import check_suffix

from .checkpoint_file import (
    path_of,
    read_content,
    read_info,
    read_shapes,
    write_content,
)
from .object_tree import child_name, explore, is_kept
from .observed_containers import observed
from .restoring import PendingValues, listed, restore_into
from .snapshot import snapshot

ENDING = ".h5"


class Checkpoint(Trackable, Reserving):
    """Save and restore the state of objects: ``Checkpoint(model=model)``.

    Objects may be a `tw.Variable`, a `tw.Module` (layer, model, metric), an optimizer,
    a `tw.random.Generator`, a `tw.data.Dataset` or its iterator, an object with
    ``get_state`` and ``set_state``, or a list or dict of these. Attributes that are set
    later are saved too, and so is the state of the global random generator.

    As in TensorFlow, a tensor, array or number that replaces an attribute is not saved;
    the object that had the name is still saved until ``del checkpoint.name``. Keep
    numbers in variables, and change them with ``assign``.

    Args:
        root: Object whose parts are saved under top-level names, or None.
        **kwargs: Objects to save, by name.

    Raises:
        ValueError: If an argument has a different type.

    Example:
        >>> import os, tempfile
        >>> v = tw.Variable(1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = tw.train.Checkpoint(v=v)
        ...     path = checkpoint.save(f"{folder}/ckpt")
        ...     _ = v.assign(2.0)
        ...     _ = checkpoint.restore(path)
        >>> os.path.basename(path), v.numpy()
        ('ckpt-1', np.float32(1.0))
    """

    def __init__(self, root: Any = None, **kwargs: Any):
        self._tw_root = root
        self._tw_parts = {}
        self._tw_save_counter = None
        self._tw_restoration = None  # the last one
        if isinstance(root, Variable):
            raise ValueError(
                "Checkpoint: root must not be a Variable; pass it by name, (v=variable)"
            )
        if root is not None:
            _check_part("root", root)
        for name, part in kwargs.items():
            _check_part(name, part)
            setattr(self, name, part)

    def __repr__(self) -> str:
        names = ["root"] if self._tw_root is not None else []
        return f"<Checkpoint: {', '.join([*names, *self._tw_parts]) or 'empty'}>"

    def __setattr__(self, name: str, part: Any) -> None:
        if name.startswith("_tw_"):
            super().__setattr__(name, part)
            return
        is_part = is_kept(part)
        if is_part:
            self._tw_parts[name] = part
        elif name in self._tw_parts:
            warnings.warn(
                f"Checkpoint: files still contain the previous {name}, a "
                f"{type(self._tw_parts[name]).__name__}, not the new {part!r:.80}; "
                f"change a Variable with assign, or use `del checkpoint.{name}`",
                stacklevel=user_stacklevel(),
            )
        if is_part and isinstance(part, (list, dict)):
            vars(self).pop(name, None)  # see __getattr__
        else:
            super().__setattr__(name, part)
        if is_part and self._tw_pending_values is not None:
            self._tw_pending_values.take(name, part)

    def __delattr__(self, name: str) -> None:
        is_part = self._tw_parts.pop(name, None) is not None
        if name in vars(self) or not is_part:
            super().__delattr__(name)

    def __getattr__(self, name: str) -> Any:
        """Return a list or dict, as a view that notices new items while values are pending."""
        parts = vars(self).get("_tw_parts", {})
        if name not in parts:
            raise AttributeError(f"the Checkpoint has no part {name!r}", name=name)
        part, pending = parts[name], self._tw_pending_values
        if pending is None:
            return part
        return observed(part, lambda: pending.take(name, part))

    def __children__(self) -> Any:
        children = dict(self._tw_parts)
        if self._tw_save_counter is not None:
            children["save_counter"] = self._tw_save_counter
        return children

    def _tw_pairs(self):
        """Return names and objects; the parts of a root have top-level names."""
        root = [] if self._tw_root is None else [("", self._tw_root)]
        parts = children(self)
        return [*[(child_name("", name), part) for name, part in parts], *root]

    @property
    def save_counter(self) -> Variable:
        """The number of calls of `save`: an int64 variable, which is saved too."""
        if self._tw_save_counter is None:
            with use_interpreters(()):
                self._tw_save_counter = Variable(
                    np.int64(0), trainable=False, name="save_counter", dtype="int64"
                )
        return self._tw_save_counter

    # --- writing

    def save(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Save to the file ``<file_prefix>-<number>.h5``; return its path without ".h5".

        The number is one more than the last number, and than the number of any existing
        file, so no checkpoint is overwritten.

        Args:
            file_prefix: Path of the file without number and suffix.
            options: Ignored.

        Raises:
            SavingError: If the file cannot be written.
        """
        save = partial(save_numbered, self, os.fspath(file_prefix))
        return prefix_of(self._tw_together(save))

    def write(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Save to a file with exactly this name, and return the name.

        Args:
            file_prefix: Path of the file.
            options: Ignored.

        Raises:
            ValueError: If the path has the suffix of another format, such as
                ``.keras``.
        """
        path = os.fspath(file_prefix)
        check_suffix("Checkpoint.write", "file_prefix", path, "a checkpoint in HDF5")
        return self._tw_together(partial(self._tw_write, path))

    def _tw_together(self, write):
        """Return ``write()``; processes that share variables have the same counter after it."""
        variables = self._tw_shared_variables()

        def written():
            result, counter = write(), self._tw_save_counter
            return result, None if counter is None else counter.numpy()

        result, count = write_together(variables, written)
        if count is not None and self.save_counter.numpy() != count:
            self.save_counter.assign(count)
        return result

    def _tw_shared_variables(self):
        """Return the variables if processes may share them, which is seldom; else none."""
        if not ShardedVariable.exist:
            return []
        return [*explore(self._tw_pairs()).variables.values()]

    def _tw_write(self, path, **info):
        content = snapshot(path, self._tw_pairs(), **info)
        self._tw_warn_of_unused(content)
        write_content(content)
        return path

    def _tw_warn_of_unused(self, content):
        """Warn about values of the last restored file that the new file does not have."""
        restoration, self._tw_restoration = self._tw_restoration, None
        if restoration is None or restoration.is_partial:
            return
        written = [*content.arrays.values(), *content.states.values()]
        kept = set(map(id, written))
        values = [*restoration.arrays.items(), *restoration.states.items()]
        unused = [name for name, value in values if id(value) not in kept]
        unused = [name for name in unused if "/compiled/" not in f"/{name}"]
        if unused:
            warnings.warn(
                f"{restoration.path}: no object matched {listed(unused)}, which will "
                "be missing from the checkpoint that is saved now; expect_partial() "
                "silences this warning",
                stacklevel=user_stacklevel(),
            )

    # --- reading

    def restore(
        self, save_path: str | os.PathLike[str] | None, options: Any = None
    ) -> Any:
        """Restore the objects, and the global random generator, from a file.

        Layers and optimizers that are not built yet get their values when they are
        built.

        Args:
            save_path: Path from `save` or `tw.train.latest_checkpoint`, with or without
                ".h5"; None changes nothing.
            options: Ignored.

        Returns:
            A status object; its ``assert_consumed()`` checks that every value was used
            and every variable restored.

        Raises:
            SavingError: If the file cannot be read, or if a shape or dtype differs;
                then nothing has changed.
        """
        if save_path is None:
            return RestoreStatus(self, None, [])
        return restore_content(self, read_content(_file_of(save_path)))

    def read(self, save_path: str | os.PathLike[str], options: Any = None) -> Any:
        """Restore the objects, but not the global random generator, from any file name.

        Args:
            save_path: Path from `write`.
            options: Ignored.

        Returns:
            A status object, as for `restore`.
        """
        return self._tw_apply(read_content(_file_of(save_path)))

    def _tw_apply(self, content, generator=False):
        restoration, missing = restore_into(content, self._tw_pairs(), generator)
        missing = [name for name in missing if name != "save_counter"]
        self._tw_restoration = restoration
        left = bool(restoration.names)
        self._tw_pending_values = PendingValues(restoration, "") if left else None
        status = RestoreStatus(self, restoration, missing)
        status._warn()
        return status


def save_numbered(checkpoint, prefix, number=None, **info):
    """Write the file ``<prefix>-<number>.h5`` with additional ``info``; return its path."""
    counter = checkpoint.save_counter
    before = counter.numpy()
    if number is None:
        number = max([int(before), *numbered_files(prefix)]) + 1
        counter.assign(np.int64(number))
    else:
        counter.assign_add(np.int64(1))
    try:
        return checkpoint._tw_write(f"{prefix}-{number}{ENDING}", **info)
    except BaseException:
        counter.assign(before)
        raise


def restore_content(checkpoint, content):
    """Restore the objects, the save counter, and the global generator from a content."""
    checkpoint.save_counter  # noqa: B018  so that there is one
    return checkpoint._tw_apply(content, generator=True)


def _check_part(name, part):
    if not is_kept(part):
        raise ValueError(
            f"Checkpoint: {name} cannot be saved, got {part!r:.80}; pass a Variable, "
            "Module, optimizer, random Generator, a Dataset or its iterator, an object "
            "with get_state and set_state, or a list or dict of these"
        )


def prefix_of(path):
    """Return the name of a checkpoint as in TensorFlow: its path without the suffix."""
    return path.removesuffix(ENDING)


def _file_of(path):
    """Return the file with that name, or with that name plus the suffix."""
    path = os.fspath(path)
    if not os.path.exists(path) and os.path.exists(path + ENDING):
        return path + ENDING
    return path


# ------------------------------------------------------------------ what was matched


class RestoreStatus:
    """The result of `Checkpoint.restore`, with the methods of TensorFlow's status object."""

    def __init__(self, checkpoint, restoration, missing):
        self._checkpoint, self._restoration = checkpoint, restoration
        self._missing = missing

    def _unmatched(self):
        """Assign to objects created since; return the names of the remaining values."""
        if self._restoration is None:
            raise AssertionError(
                "there was no checkpoint to restore: save_path was None"
            )
        self._restoration.assign(explore(self._checkpoint._tw_pairs()))
        return self._restoration.names

    def assert_consumed(self):
        """Raise ``AssertionError`` unless every value was used and every variable set."""
        unused = self._unmatched()
        if unused:
            raise AssertionError(
                f"{self._restoration.path}: no object matches {listed(unused)}"
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self):
        """Raise ``AssertionError`` unless every existing object was found in the file."""
        self._unmatched()
        if self._missing:
            raise AssertionError(
                f"{self._restoration.path}: the checkpoint does not have "
                f"{listed(self._missing)}"
            )
        return self

    def assert_nontrivial_match(self):
        """Raise ``AssertionError`` if no value of the file was used."""
        unused = len(self._unmatched())
        content = read_shapes(self._restoration.path)
        if unused and unused >= len(content):
            raise AssertionError(f"{self._restoration.path}: no value of it was used")
        return self

    def expect_partial(self):
        """Disable the warning about unused values of the file; return self."""
        if self._restoration is not None:
            self._restoration.is_partial = True
        return self

    def initialize_or_restore(self, session=None):
        """Do nothing: `restore` has done it already."""

    run_restore_ops = initialize_or_restore

    def _warn(self):
        if self._restoration.is_of_others:
            theirs = dict.fromkeys(
                [n.partition("/")[0] for n in self._restoration.names]
            )
            ours = [name for name, _ in children(self._checkpoint)]
            warnings.warn(
                f"{self._restoration.path}: no value of it was used: it has "
                f"{listed(map(repr, theirs))}, the Checkpoint has "
                f"{listed(map(repr, ours)) or 'nothing'}",
                stacklevel=user_stacklevel(),
            )
        kept = [name for name in self._missing if "/compiled/" not in f"/{name}"]
        if kept:
            warnings.warn(
                f"{self._restoration.path}: the checkpoint does not have "
                f"{listed(kept)}, which keep their values",
                stacklevel=user_stacklevel(),
            )


# ------------------------------------------------------------------ files in a folder


def numbered_files(prefix):
    """Return the files ``<prefix>-<number>.h5``: number -> path, in order."""
    folder, name = os.path.split(os.fspath(prefix))
    pattern = re.compile(re.escape(name) + r"-(\d+)" + re.escape(ENDING))
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return {}
    paths = {}
    for each in names:
        match = pattern.fullmatch(each)
        if match:
            paths[int(match[1])] = os.path.join(folder, each)
    return dict(sorted(paths.items()))


def valid_info(path):
    """Return the info of an undamaged checkpoint; warn and return None for a damaged one."""
    try:
        return read_info(path, check=True)
    except SavingError as error:
        warnings.warn(f"a checkpoint is skipped: {error}", stacklevel=user_stacklevel())
        return None


def latest_checkpoint(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> str | None:
    """Return the path of the newest undamaged checkpoint in a folder, or None.

    The path has no ".h5" suffix, as for `tw.train.Checkpoint`. Damaged files are
    skipped with a warning. Among files with different prefixes, the file written last
    is the newest; among files with the same prefix, the file with the highest number.

    Args:
        checkpoint_dir: Folder with checkpoints.
        latest_filename: Ignored; there is no index file.
    """
    folder = os.fspath(checkpoint_dir)
    if not os.path.isdir(folder):
        return None
    prefixes = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"(.*)-(\d+)" + re.escape(ENDING), name)
        if match and not name.startswith("."):
            path = os.path.join(folder, name)
            prefixes.setdefault(match[1], []).append((int(match[2]), path))
    ahead = [sorted(files) for files in prefixes.values()]
    while ahead := [files for files in ahead if files]:
        newest = max(ahead, key=lambda files: os.stat(files[-1][1]).st_mtime_ns)
        _, path = newest.pop()
        if valid_info(path) is not None:
            return prefix_of(path)
    return None


class CheckpointReader:
    """Read a checkpoint without objects to restore."""

    def __init__(self, path):
        self.path = _file_of(path)
        self._shapes = read_shapes(self.path)

    def get_tensor(self, tensor_str):
        """Return the array with that name.

        Raises:
            SavingError: If there is no such array.
        """
        with opened(self.path) as root:
            return root.group("arrays").array(path_of(_plain(tensor_str))).read()

    def has_tensor(self, tensor_str):
        """Return whether there is an array with that name."""
        return _plain(tensor_str) in self._shapes

    def get_variable_to_shape_map(self):
        """Return the shape of each array, by name."""
        return _ByName({name: list(s) for name, (s, _) in self._shapes.items()})

    def get_variable_to_dtype_map(self):
        """Return the dtype of each array, by name."""
        return _ByName({name: dtype for name, (_, dtype) in self._shapes.items()})


class _ByName(dict):
    """A dict whose keys may also have the suffix of TensorFlow's names."""

    def __missing__(self, name):
        if name not in self or _plain(name) == name:
            raise KeyError(name)
        return self[_plain(name)]

    def __contains__(self, name):
        return super().__contains__(_plain(name))

    def get(self, name, default=None):
        return self[name] if name in self else default


def _plain(name):
    """Return a name without the suffix of TensorFlow's names.

    Example:
        >>> from tapewright.formats.checkpoints.checkpoint import _plain
        >>> _plain("net/l1/bias/.ATTRIBUTES/VARIABLE_VALUE")
        'net/l1/bias'
    """
    return name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> Any:
    """Return a reader of a checkpoint, for access without objects to restore.

    Args:
        ckpt_dir_or_file: File, or folder whose newest checkpoint is read.

    Returns:
        A reader with ``get_tensor(name)``, ``has_tensor(name)``,
        ``get_variable_to_shape_map()`` and ``get_variable_to_dtype_map()``.

    Raises:
        SavingError: If there is no such file or it cannot be read.
    """
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"load_checkpoint: there is no checkpoint in {path!r}")
        path = latest
    return CheckpointReader(path)


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, Any]]:
    """Return the names and shapes of all arrays in a checkpoint, sorted by name.

    Args:
        ckpt_dir_or_file: File, or folder whose newest checkpoint is read.

    Returns:
        A list of pairs ``(name, shape)``.

    Raises:
        SavingError: If there is no such file or it cannot be read.
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """Return an array of a checkpoint as a NumPy array.

    Args:
        ckpt_dir_or_file: File, or folder whose newest checkpoint is read.
        name: Name of the array, see `tw.train.list_variables`.

    Raises:
        SavingError: If there is no such file or array, or if it cannot be read.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)
