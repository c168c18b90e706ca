"""Restore the values of a checkpoint, also into objects that are created later.

A `Restoration` holds the values of a checkpoint that are not assigned yet. Nothing
changes unless all values match the existing objects. Owners with pending values
(modules, optimizers, compiled metrics) get `PendingValues`: they assign their values as
soon as the variables are created, before these are used.
"""

import warnings
from contextlib import contextmanager

import numpy as np

from tapewright.core.errors import SavingError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.state.assignment import assign_all
from tapewright.core.trackable import Trackable
from tapewright.ops.random.generators import get_global_generator

from .object_tree import child_name, explore, is_kept, set_state

LISTED = 8  # names in a message


class Restoration:
    """The values of a checkpoint, by name; a value is removed when it is assigned."""

    def __init__(self, content):
        self.path = content.path
        self.arrays = dict(content.arrays)
        self.states = dict(content.states)
        self.is_partial = False  # whether it is known that some are never assigned
        self.generator_state = None  # of the global generator, if it was restored, too
        self.builds = 0  # that run now
        self.is_of_others = False  # whether no value fits an object, by name

    @property
    def names(self):
        return [*self.arrays, *self.states]

    def assign(self, tree, differences=""):
        """Assign the values for a `Tree`; its owners get the values for later children.

        ``differences`` is appended to the message of an error.

        Raises:
            SavingError: If values do not match; it lists them, and nothing has changed.
        """
        self._check(tree, differences)
        for name, item in tree.states.items():
            if name in self.states:
                self._set_state(name, item)
        names = [name for name in tree.variables if name in self.arrays]
        with use_interpreters(()):  # at once, whatever is being traced
            assign_all(
                "restore",
                [tree.variables[name] for name in names],
                [self.arrays[name] for name in names],
            )
        for name in names:
            del self.arrays[name]
        above = self._above()
        for name, container in tree.containers.items():
            if isinstance(container, Trackable):
                pending = PendingValues(self, name) if name in above else None
                if pending is not None or container._tw_pending_values is not None:
                    vars(container)["_tw_pending_values"] = pending

    def _check(self, tree, differences):
        wrong = []
        for name, variable in tree.variables.items():
            array = self.arrays.get(name)
            if array is None:
                continue
            own, shape = variable._array.dtype, tuple(variable.shape)
            fits = array.dtype == own or (
                variable._tw_was_narrower and np.can_cast(array.dtype, own)
            )
            if array.shape != shape or not fits:
                wrong.append(
                    f"'{name}' is {_described(array.dtype, array.shape)}, the variable "
                    f"'{variable.path}' {_described(own, shape)}"
                )
        if wrong:
            raise SavingError(
                self.path, ("the checkpoint does not match the objects, nothing was "
                           "restored: ")
                + listed(wrong, "\n  ") + differences,
            )  # fmt: skip

    def _set_state(self, name, item):
        try:
            set_state(item, self.states[name])
        except SavingError:
            raise
        except Exception as error:
            reason = f"the state does not match '{name}': {error}"
            raise SavingError(self.path, reason, f"/@states[{name}]") from error
        del self.states[name]

    def drop(self, prefix):
        """Discard the values for a container that starts anew."""
        start = f"{prefix}/" if prefix else ""
        for values in (self.arrays, self.states):
            for name in [n for n in values if n.startswith(start)]:
                del values[name]

    def is_below(self, names):
        """Return whether values are left for children created below one of the containers."""
        return not self._above().isdisjoint(names)

    def _above(self):
        """Return the names of all containers below which values are left."""
        above = set()
        for name in self.names:
            while name not in above:
                above.add(name)
                name = name.rpartition("/")[0]
        return above | {""} if self.names else set()

    def rename(self, aliases, known):
        """Move values to another name that led to them, if only that name is known."""
        for alias, name in aliases.items():
            if alias not in known or name in known:
                continue
            for values in (self.arrays, self.states):
                below = [n for n in values if n == name or n.startswith(f"{name}/")]
                for own in below:
                    values[alias + own[len(name) :]] = values.pop(own)

    def warn_of_draws(self):
        """Warn once about an initial value that may have been drawn since the restore."""
        if self.builds or self.generator_state is None:
            return
        if self.generator_state != get_global_generator().state.numpy().tolist():
            self.generator_state = None
            warnings.warn(
                f"{self.path}: variables of a Module were created after the restore, "
                "which may have drawn random numbers for their initial values: later "
                "random numbers may differ from those after the save. Create the "
                "variables before restoring",
                stacklevel=user_stacklevel(),
            )


class PendingValues:
    """The part of a `Restoration` for children of one container that are created later."""

    def __init__(self, restoration, name):
        self._restoration, self._name = restoration, name

    def assign_to(self, container):
        """Assign the available values to the container and its descendants."""
        self._restoration.assign(explore([(self._name, container)]))

    def take(self, key, value):
        """Assign the available values to a new attribute and its descendants."""
        if is_kept(value):
            count = len(self._restoration.arrays)
            name = child_name(self._name, key)
            self._restoration.assign(explore([(name, value)]))
            if len(self._restoration.arrays) < count:
                self._restoration.warn_of_draws()

    @contextmanager
    def replacing_initial(self, container):
        """Context manager that builds the container, whose initial values are replaced.

        The random numbers drawn for them are returned to the global generator.
        """
        generator = get_global_generator()
        state, count = generator.state.numpy(), len(self._restoration.names)
        self._restoration.builds += 1
        try:
            yield
        finally:
            self._restoration.builds -= 1
        self.assign_to(container)
        if len(self._restoration.names) < count:
            with use_interpreters(()):
                generator.reset(state)

    def drop(self):
        self._restoration.drop(self._name)

    def arrays(self, name):
        """Return the arrays for the container and its descendants, renamed to ``name``."""
        return _moved(self._restoration.arrays, self._name, name)

    def states(self, name):
        """Return the states for the container and its descendants, renamed to ``name``."""
        return _moved(self._restoration.states, self._name, name)


def _moved(values, prefix, name):
    """Return the values below ``prefix``, renamed to ``name``.

    Example:
        >>> from tapewright.formats.checkpoints.restoring import _moved
        >>> _moved({"a/b": 1, "ab": 2}, "a", "x/y")
        {'x/y/b': 1}
    """
    old = f"{prefix}/" if prefix else ""
    new = f"{name}/" if name else ""
    return {new + n[len(old) :]: v for n, v in values.items() if n.startswith(old)}


def restore_into(content, pairs, generator=False):
    """Assign the content of a checkpoint to the objects in pairs of name and object.

    If ``generator`` is True, the global random generator gets its state too.

    Returns:
        A `Restoration` of the remaining values, and the names of variables and states
        that the checkpoint does not have.

    Raises:
        SavingError: If values do not match; it lists them, and nothing has changed.
    """
    restoration, tree = Restoration(content), explore(pairs)
    known = tree.variables.keys() | tree.states.keys() | tree.containers.keys()
    restoration.rename(content.info.get("aliases", {}), known)
    missing = [n for n in tree.variables if n not in restoration.arrays]
    missing += [n for n in tree.states if n not in restoration.states]
    count = len(restoration.names)
    beyond = [name for name in restoration.arrays if name not in tree.variables]
    restoration.assign(tree, _differences(missing, beyond))
    unused = bool(count) and len(restoration.names) == count
    restoration.is_of_others = unused and not restoration.is_below(tree.containers)
    if generator and content.info.get("generator") is not None:
        restoration.generator_state = content.info["generator"]
        with use_interpreters(()):
            get_global_generator().reset(restoration.generator_state)
    return restoration, missing


def _differences(missing, beyond):
    """Describe further differences, for the message about values that do not match."""
    lines = [("it does not have", missing), ("and has besides", beyond)]
    return "".join([f"\n  {what} {listed(names)}" for what, names in lines if names])


def _described(dtype, shape):
    return f"{np.dtype(dtype).name} {tuple(shape)}"


def listed(names, between=", "):
    """Format the first of many names.

    Example:
        >>> from tapewright.formats.checkpoints.restoring import listed
        >>> listed("abcdefghij")
        'a, b, c, d, e, f, g, h and 2 more'
    """
    names = list(names)
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    first = between if between.startswith("\n") else ""
    return first + between.join(map(str, names[:LISTED])) + rest
