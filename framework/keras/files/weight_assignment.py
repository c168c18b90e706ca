"""Variables filled from a file: everything is compared first, then all change, or none.

A layout says which array belongs to which variable; here is what holds for all of them.
"""

import warnings

import numpy as np

from tapewright.core.devices import array_module
from tapewright.core.errors import SavingError
from tapewright.core.interpreters import active_interpreter

__all__ = ["Filling", "swapped"]

# How a kind of dtype is called, and which kinds a variable of it takes from files.
KINDS = {
    "f": ("floating", "f"),
    "i": ("an integer", "iu"),
    "u": ("an integer", "iu"),
    "b": ("bool", "b"),
    "c": ("complex", "c"),
}


class Filling:
    """What a file has for the variables of a model, and what it lacks.

    ``skip_mismatch``: what does not fit is left out, and a warning lists it; otherwise it
    is a `SavingError`.
    """

    def __init__(self, path, skip_mismatch=False):
        self.path, self.skip_mismatch = path, skip_mismatch
        self._pairs = []  # of a variable and the array of the file
        self._loaders = []  # a function, what it takes from the file, and from where
        self.problems = []  # pairs of a place in the file and what is wrong with it

    def pair(self, variable, array):
        """Notes that the variable takes the array, if it fits. Returns whether it does."""
        problem = _misfit(variable, array)
        if problem is None:
            self._pairs.append((variable, array))
        else:
            self.problem(array.place, problem)
        return problem is None

    def pairs(self, variables, arrays, place, owner):
        """Notes as many variables as there are arrays, of one layer, in order."""
        if len(variables) != len(arrays):
            hint = ""
            if not arrays:
                hint = "; is it the file of another model?"
            own = ", ".join([f"{v.name} {tuple(v.shape)}" for v in variables[:8]])
            stored = ", ".join([str(array.shape) for array in arrays[:8]])
            self.problem(
                place,
                f"holds {len(arrays)} arrays ({stored}), layer '{owner}' has "
                f"{len(variables)} weights ({own}){hint}",
            )
            return
        for variable, array in zip(variables, arrays):
            self.pair(variable, array)

    def loader(self, load, store, place):
        """Notes that ``load(store)`` is to be called: a layer loads for itself."""
        self._loaders.append((load, store, place))

    def problem(self, place, reason):
        """Notes that something does not fit, or is not there."""
        self.problems.append((place, reason))

    @property
    def count(self):
        """How many arrays were found for variables."""
        return len(self._pairs) + len(self._loaders)

    def check(self):
        """Raises: `SavingError` for the first problem, unless such are skipped."""
        if self.problems and not self.skip_mismatch:
            place, reason = self.problems[0]
            more = len(self.problems) - 1
            if more:
                reason += f" (and {more} more that do not fit)"
            raise SavingError(self.path, reason, place)

    def apply(self, others=()):
        """Assigns; on an error every variable, ``others`` too, is as it was before.

        Raises: `SavingError`, see `check`.
        """
        self.check()
        variables = [variable for variable, _ in self._pairs]
        before = [(v, v._array) for v in (*variables, *others)]
        try:
            for variable, array in self._pairs:
                _assign(variable, array)
            for load, store, place in self._loaders:
                self._load(load, store, place)
        except BaseException:
            for variable, array in before:
                variable._bind(array)
            raise
        if self.problems:
            warnings.warn(self._report(), stacklevel=4)

    def _load(self, load, store, place):
        try:
            load(store)
        except Exception as error:  # the user's, about what the file holds
            reason = f"{load.__qualname__} refuses the stored value: {error!r}"
            raise SavingError(self.path, reason, place) from error

    def _report(self):
        lines = [f"  {place}: {reason}" for place, reason in self.problems]
        head = (
            f"{self.path}: {len(lines)} weights were skipped, {self.count} were loaded:"
        )
        return "\n".join([head, *lines])


def _misfit(variable, array):
    """Why a variable cannot take an array of a file, or None."""
    if array.shape != tuple(variable.shape):
        return (
            f"has shape {array.shape}, weight '{variable.path}' {tuple(variable.shape)}"
        )
    own, stored = variable._array.dtype, array.dtype
    if own == stored:
        return None
    what, kinds = KINDS.get(own.kind, (str(own), ""))
    if stored.kind not in kinds:
        return f"holds {stored}, weight '{variable.path}' is {what} ({own})"
    return None


def _assign(variable, array):
    """Reads the array into memory that becomes the value of the variable."""
    own, value = variable._array, array.read()
    if value.dtype != own.dtype:
        value = _converted(value, own.dtype, array)
    module = array_module(type(own))
    if module is not np:
        value = module.asarray(value)
    if active_interpreter() is None:
        variable._bind(value)
    else:  # a tape or trace that has to know
        variable.assign(value)


def _converted(value, dtype, array):
    """The same numbers, rounded at most. Raises: `SavingError` where one is too large."""
    with np.errstate(all="ignore"):
        converted = value.astype(dtype)
    if dtype.kind == "f" and dtype.itemsize < value.dtype.itemsize:
        if np.isfinite(value).sum() != np.isfinite(converted).sum():
            array.fail(f"holds numbers that are too large for {dtype}")
    elif dtype.kind != "f" and not np.array_equal(converted, value):
        array.fail(f"holds numbers that do not fit into {dtype}")
    return converted


def swapped(found, expected):
    """The first pair of names that differ, if both lists hold the same ones, else None.

    >>> swapped(["b", "a"], ["a", "b"]), swapped(["x", "y"], ["a", "b"])
    (('b', 'a'), None)
    """
    if found == expected or sorted(found) != sorted(expected):
        return None
    return next((a, b) for a, b in zip(found, expected) if a != b)
