"""What a checkpoint held on its way back into objects, also those that are made later.

What does not fit is told before anything is changed. Values for which there is no
variable yet are *awaited*: modules, optimizers and compiled metrics, marked with
`Awaited`, take theirs as soon as these are made, before they are used.
"""

from contextlib import contextmanager

import numpy as np

from ... import backend
from ...errors import SavingError
from ...module import Module
from ...ops.generators import Generator, get_global_generator
from ...readers import reading
from ...variable import Variable
from .object_tree import explore, joined, set_state

__all__ = [
    "Awaited",
    "Awaiting",
    "arrays_of",
    "listed",
    "restore_into",
    "settle",
]

LISTED = 8  # so many names are told in a message


class Awaiting:
    """The values of a checkpoint that found no place yet, by name."""

    def __init__(self, content):
        self.path = content.path
        self.arrays = dict(content.arrays)
        self.states = dict(content.states)

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
        if isinstance(value, (Variable, Generator, Module, list, tuple, dict)):
            settle(self._awaiting, explore([(joined(self._name, key), value)]))

    @contextmanager
    def arriving(self, container):
        """Around the building of the container, whose first values are not to be seen.

        The numbers that were drawn for them are taken back from the global generator.
        """
        generator = get_global_generator()
        state, count = generator.state.numpy(), len(self._awaiting.names)
        yield
        self.arrive(container)
        if len(self._awaiting.names) < count:
            with reading(()):
                generator.reset(state)

    def drop(self):
        self._awaiting.drop(self._name)


def restore_into(content, pairs):
    """Sets what the checkpoint has of the objects in pairs of name and object.

    Returns: an `Awaiting` of what it has beyond, and the names of variables and states
    that it does not have.
    Raises: `SavingError` that lists what does not fit; then nothing has changed.
    """
    awaiting, tree = Awaiting(content), explore(pairs)
    missing = [n for n in tree.variables if n not in awaiting.arrays]
    missing += [n for n in tree.states if n not in awaiting.states]
    settle(awaiting, tree)
    return awaiting, missing


def settle(awaiting, tree):
    """Values for the variables and states of a tree; marks what is not complete yet."""
    _check(awaiting, tree)
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
    with reading(()):  # at once, whatever is being traced
        for name, variable in tree.variables.items():
            if name in awaiting.arrays:
                variable.assign(awaiting.arrays.pop(name))
    above = awaiting.above()
    for name, container in tree.containers.items():
        if hasattr(container, "_awaited"):
            wanted = Awaited(awaiting, name) if name in above else None
            if wanted is not None or container._awaited is not None:
                vars(container)["_awaited"] = wanted


def _check(awaiting, tree):
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
            + listed(wrong, "\n  "),
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
    """The values of a tree's variables, in host memory."""
    return {name: backend.to_numpy(v._array) for name, v in tree.variables.items()}
