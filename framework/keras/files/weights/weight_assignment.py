"""Assign arrays of a file to variables: first check all, then change all.

The layout of a file determines which array belongs to which variable
(`weights_by_path`, `weights_by_layer`); the rules here hold for all layouts.
"""

import warnings

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError
from tapewright.core.hardware.devices import array_module
from tapewright.core.interpreters import active_interpreter
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.state.assignment import unchanged_on_error

# `kind_of` the dtype of a variable -> its name, and those that it takes from files.
_DTYPE_KINDS = {
    "f": ("floating", "f"),
    "i": ("an integer", "iu"),
    "u": ("an integer", "iu"),
    "b": ("bool", "b"),
    "c": ("complex", "c"),
}


class WeightAssignment:
    """Pairs of variable and array, and the mismatches among them.

    ``skip_mismatch``: mismatches are skipped with a warning that lists them; otherwise
    the first one raises a `SavingError`.
    """

    def __init__(self, path, skip_mismatch=False):
        self.path, self.skip_mismatch = path, skip_mismatch
        self._pairs = []  # of a variable and the array of the file
        self._hooks = []  # `load_own_variables` of a layer, its store, its location
        self.problems = []  # pairs of a location in the file and a reason

    def add(self, variable, array):
        """Add a pair, or a problem if the array does not fit the variable."""
        problem = _mismatch(variable, array)
        if problem is None:
            self._pairs.append((variable, array))
        else:
            self.add_problem(array.location, problem)

    def add_layer(self, variables, arrays, location, owner, before=()):
        """Add the variables of a layer and as many arrays, in order.

        ``before``: the variables that 0.2 wrote for the layer, if it wrote more.
        """
        if len(before) == len(arrays):
            variables = before
        if len(variables) != len(arrays):
            hint = ""
            if not arrays:
                hint = "; is it a file of another model?"
            expected = ", ".join([f"{v.name} {tuple(v.shape)}" for v in variables[:8]])
            stored = ", ".join([str(array.shape) for array in arrays[:8]])
            self.add_problem(
                location,
                f"holds {len(arrays)} arrays ({stored}), layer '{owner}' has "
                f"{len(variables)} weights ({expected}){hint}",
            )
            return
        for variable, array in zip(variables, arrays):
            self.add(variable, array)

    def add_hook(self, load, store, location):
        """Add a call ``load(store)`` by which a layer loads its own variables."""
        self._hooks.append((load, store, location))

    def add_problem(self, location, reason):
        """Add a mismatch or a missing item."""
        self.problems.append((location, reason))

    def check(self):
        """Raise `SavingError` for the first problem, unless problems are skipped."""
        if self.problems and not self.skip_mismatch:
            location, reason = self.problems[0]
            more = len(self.problems) - 1
            if more:
                reason += f" (and {more} more that do not fit)"
            raise SavingError(self.path, reason, location)

    def apply(self, others=()):
        """Assign all arrays; after an error all variables, and ``others``, are unchanged.

        Raises:
            SavingError: As in `check`.
        """
        self.check()
        variables = [variable for variable, _ in self._pairs]
        with unchanged_on_error([*variables, *others]):
            for variable, array in self._pairs:
                _assign(variable, array)
            for load, store, location in self._hooks:
                self._load(load, store, location)
        if self.problems:
            warnings.warn(self._report(), stacklevel=user_stacklevel())

    def _load(self, load, store, location):
        try:
            load(store)
        except Exception as error:  # the user's, about what the file holds
            reason = f"{load.__qualname__} rejects the stored value: {error!r}"
            raise SavingError(self.path, reason, location) from error

    def _report(self):
        lines = [f"  {location}: {reason}" for location, reason in self.problems]
        loaded = len(self._pairs) + len(self._hooks)
        head = f"{self.path}: {len(lines)} weights were skipped, {loaded} were loaded:"
        return "\n".join([head, *lines])


def _mismatch(variable, array):
    """Return the reason why a variable cannot accept an array of a file, or None."""
    if array.shape != tuple(variable.shape):
        return (
            f"has shape {array.shape}, weight '{variable.path}' {tuple(variable.shape)}"
        )
    dtype, stored = variable._array.dtype, array.dtype
    if dtype == stored:
        return None
    name, kinds = _DTYPE_KINDS.get(kind_of(dtype), (str(dtype), ""))
    if kind_of(stored) not in kinds:
        return f"holds {stored}, weight '{variable.path}' is {name} ({dtype})"
    return None


def _assign(variable, array):
    """Read an array into new memory, which becomes the value of the variable."""
    current, value = variable._array, array.read()
    if value.dtype != current.dtype:
        value = _converted(value, current.dtype, array)
    module = array_module(type(current))
    if module is not np:
        value = module.asarray(value)
    if active_interpreter() is None:
        variable._tw_bind_whole(value)
    else:  # a tape or trace that has to know
        variable.assign(value)


def _converted(value, dtype, array):
    """Return the same numbers, at most rounded.

    Raises:
        SavingError: If a number is too large.
    """
    with np.errstate(all="ignore"):
        converted = value.astype(dtype)
    if kind_of(dtype) == "f" and dtype.itemsize < value.dtype.itemsize:
        if np.isfinite(value).sum() != np.isfinite(converted).sum():
            array.fail(f"holds numbers that are too large for {dtype}")
    elif kind_of(dtype) != "f" and not np.array_equal(converted, value):
        array.fail(f"holds numbers that do not fit into {dtype}")
    return converted


def first_swap(stored, expected):
    """Return the first pair of different names if both lists have the same names, or None.

    Example:
        >>> from tapewright.keras.files.weights.weight_assignment import first_swap
        >>> first_swap(["b", "a"], ["a", "b"]), first_swap(["x", "y"], ["a", "b"])
        (('b', 'a'), None)
    """
    if stored == expected or sorted(stored) != sorted(expected):
        return None
    return next((a, b) for a, b in zip(stored, expected) if a != b)
