"""What a checkpoint held on its way back into objects, also those that are made later.

What does not fit is told before anything is changed. Values for which there is no
variable yet are *awaited*: modules, optimizers and compiled metrics, marked with
`Awaited`, take theirs as soon as these are made, before they are used.
"""

import warnings
from contextlib import contextmanager

import numpy as np

from tapewright.core import devices
from tapewright.core.errors import SavingError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.variable import writing
from tapewright.ops.random.generators import get_global_generator

from .object_tree import explore, is_kept, joined, set_state

__all__ = [
    "Awaited",
    "Awaiting",
    "arrays_of",
    "listed",
    "restore_into",
    "settle",
    "still_awaited",
]

LISTED = 8  # so many names are told in a message


class Awaiting:
    """The values of a checkpoint that found no place yet, by name."""

    def __init__(self, content):
        self.path = content.path
        self.arrays = dict(content.arrays)
        self.states = dict(content.states)
        self.is_partial = False  # whether it is known that some find no place
        self.position = None  # of the global generator, if that was restored, too
        self.builds = 0  # that run now
        self.is_of_others = False  # whether there was no place at all for it

    def warn_of_draws(self):
        """Warns, once, of a first value that may have been drawn since the restore."""
        if self.builds or self.position is None:
            return
        if self.position != get_global_generator().state.numpy().tolist():
            self.position = None
            warnings.warn(
                f"{self.path}: variables of a Module were made after the restore, and "
                "random numbers drawn, maybe for their first values: those that follow "
                "may not be the ones that followed the save. Make the variables first, "
                "then restore",
                stacklevel=5,
            )

    @property
    def names(self):
        return [*self.arrays, *self.states]

    def drop(self, prefix):
        """Gives up what was for a container, which has been set back meanwhile."""
        start = f"{prefix}/" if prefix else ""
        for values in (self.arrays, self.states):
            for name in [n for n in values if n.startswith(start)]:
                del values[name]

    def above(self):
        """The names of all containers below which something is awaited."""
        found = set()
        for name in self.names:
            while name not in found:
                found.add(name)
                name = name.rpartition("/")[0]
        return found | {""} if self.names else set()


class Awaited:
    """What a container of that name is to get when it is built, of an `Awaiting`."""

    def __init__(self, awaiting, name):
        self._awaiting, self._name = awaiting, name

    def arrive(self, container):
        """Gives the container, and all below, what it has for them."""
        settle(self._awaiting, explore([(self._name, container)]))

    def take(self, key, value):
        """Gives what has just become an attribute, and all below, what it has for it."""
        if is_kept(value):
            count = len(self._awaiting.arrays)
            settle(self._awaiting, explore([(joined(self._name, key), value)]))
            if len(self._awaiting.arrays) < count:
                self._awaiting.warn_of_draws()

    @contextmanager
    def arriving(self, container):
        """Around the building of the container, whose first values are not to be seen.

        The numbers that were drawn for them are taken back from the global generator.
        """
        generator = get_global_generator()
        state, count = generator.state.numpy(), len(self._awaiting.names)
        self._awaiting.builds += 1
        try:
            yield
        finally:
            self._awaiting.builds -= 1
        self.arrive(container)
        if len(self._awaiting.names) < count:
            with use_interpreters(()):
                generator.reset(state)

    def drop(self):
        self._awaiting.drop(self._name)

    def arrays(self, name):
        """What there is for the container and all below, if it had the name ``name``."""
        return _moved(self._awaiting.arrays, self._name, name)

    def states(self, name):
        """Likewise the states."""
        return _moved(self._awaiting.states, self._name, name)


def _moved(values, prefix, name):
    """Those below ``prefix``, which becomes ``name``.

    >>> _moved({"a/b": 1, "ab": 2}, "a", "x/y")
    {'x/y/b': 1}
    """
    old = f"{prefix}/" if prefix else ""
    new = f"{name}/" if name else ""
    return {new + n[len(old) :]: v for n, v in values.items() if n.startswith(old)}


def still_awaited(tree):
    """Arrays and states that objects of a tree are to get when they are built.

    They belong into the next file, too: it may be written before.
    """
    arrays, states, waits = {}, {}, {}
    for name, container in tree.containers.items():  # the outer ones first
        awaited = getattr(container, "_awaited", None)
        if awaited is None:
            continue
        waits[name] = not getattr(container, "built", False)
        for found, values in ((arrays, awaited.arrays), (states, awaited.states)):
            found |= {n: (name, v) for n, v in values(name).items()}
    known = tree.variables.keys() | tree.states.keys()
    return [
        {n: v for n, (name, v) in each.items() if waits[name] and n not in known}
        for each in (arrays, states)
    ]


def restore_into(content, pairs):
    """Sets what the checkpoint has of the objects in pairs of name and object.

    Returns: an `Awaiting` of what it has beyond, and the names of variables and states
    that it does not have.
    Raises: `SavingError` that lists what does not fit; then nothing has changed.
    """
    awaiting, tree = Awaiting(content), explore(pairs)
    _follow(content.info.get("aliases", {}), awaiting, tree)
    missing = [n for n in tree.variables if n not in awaiting.arrays]
    missing += [n for n in tree.states if n not in awaiting.states]
    count = len(awaiting.names)
    beyond = [name for name in awaiting.arrays if name not in tree.variables]
    settle(awaiting, tree, _also(missing, beyond))
    above = awaiting.above()
    waits = any([name in above for name in tree.containers])
    awaiting.is_of_others = bool(count) and len(awaiting.names) == count and not waits
    return awaiting, missing


def _follow(aliases, awaiting, tree):
    """Values go by another name that led to them, if only that is known in the tree."""
    known = tree.variables.keys() | tree.states.keys() | tree.containers.keys()
    for alias, name in aliases.items():
        if alias not in known or name in known:
            continue
        for values in (awaiting.arrays, awaiting.states):
            below = [n for n in values if n == name or n.startswith(f"{name}/")]
            for own in below:
                values[alias + own[len(name) :]] = values.pop(own)


def _also(missing, beyond):
    """What else differs, for the message on values that do not fit."""
    lines = [("it does not have", missing), ("and has besides", beyond)]
    return "".join([f"\n  {what} {listed(names)}" for what, names in lines if names])


def settle(awaiting, tree, also=""):
    """Values for the variables and states of a tree; marks what is not complete yet.

    ``also``: what an error tells behind what does not fit.
    """
    _check(awaiting, tree, also)
    for name, item in tree.states.items():
        if name in awaiting.states:
            try:
                set_state(item, awaiting.states[name])
            except SavingError:
                raise
            except Exception as error:
                reason = f"the state does not fit '{name}': {error}"
                raise SavingError(awaiting.path, reason, f"/@states[{name}]") from error
            del awaiting.states[name]
    with use_interpreters(()):  # at once, whatever is being traced
        for name, variable in tree.variables.items():
            if name in awaiting.arrays:
                variable.assign(awaiting.arrays.pop(name))
    above = awaiting.above()
    for name, container in tree.containers.items():
        if hasattr(container, "_awaited"):
            wanted = Awaited(awaiting, name) if name in above else None
            if wanted is not None or container._awaited is not None:
                vars(container)["_awaited"] = wanted


def _check(awaiting, tree, also):
    wrong = []
    for name, variable in tree.variables.items():
        array = awaiting.arrays.get(name)
        if array is None:
            continue
        own = variable._array
        if array.shape != own.shape or array.dtype != own.dtype:
            wrong.append(
                f"'{name}' is {_kind(array)}, the variable '{variable.path}' {_kind(own)}"
            )
    if wrong:
        raise SavingError(
            awaiting.path, "the checkpoint is of other objects, nothing was restored: "
            + listed(wrong, "\n  ") + also,
        )  # fmt: skip


def _kind(array):
    return f"{np.dtype(array.dtype).name} {tuple(array.shape)}"


def listed(names, between=", "):
    """The first of many names.

    >>> listed("abcdefghij")
    'a, b, c, d, e, f, g, h and 2 more'
    """
    names = list(names)
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    first = between if between.startswith("\n") else ""
    return first + between.join(map(str, names[:LISTED])) + rest


def arrays_of(tree):
    """The values of a tree's variables at one moment, in host memory."""
    with writing(tree.variables.values()):
        return {name: devices.to_numpy(v._array) for name, v in tree.variables.items()}
