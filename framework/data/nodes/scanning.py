"""Nodes that carry a state from element to element: scan, take_while, unique, and errors."""

import warnings

import numpy as np

from tapewright.core.errors import FailedPreconditionError
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.nest import assert_same_structure, flatten
from tapewright.core.tensor import TensorSpec

from ..elements import as_element, common_spec, describe, spec_of
from ..rng import Draws
from .mapping import Applied, Mapped, as_mapped, truth
from .node import INFINITE, UNKNOWN, Node, Replayed, copy_position
from .processes import is_broken


class Scan(Replayed, Mapped):
    """Second results of ``function(state, element)``, whose first result is the next state."""

    name = "scan"

    def __init__(self, source, initial_state, function):
        super().__init__(source, function)
        self._initial = as_element(initial_state)

    def start(self):
        return Applied.start(self)

    def replay(self, position):
        draws, state = Draws(position), self._initial
        for number, element in enumerate(self.run_input(position), 1):
            state, output = self._checked(self.result(draws, number, (state, element)))
            yield output

    def _checked(self, result):
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                "scan: scan_func must return a pair of the new state and the output, got "
                f"{describe(result)}"
            )
        state, output = map(as_mapped, result)
        wanted, actual = spec_of(self._initial), spec_of(state)
        try:
            assert_same_structure(wanted, actual)
        except (TypeError, ValueError):
            raise self._wrong_state(actual, wanted) from None
        pairs = zip(flatten(wanted), flatten(actual), strict=True)
        if any([a.dtype != b.dtype for a, b in pairs]):
            raise self._wrong_state(actual, wanted)
        return state, output

    def _wrong_state(self, actual, wanted):
        return TypeError(
            "scan: the new state must have the structure and dtypes of initial_state, "
            f"{wanted}, got {actual}"
        )

    def _traced_spec(self):
        """Return the spec of the output once the spec of the state no longer changes."""
        state = spec_of(self._initial)
        while True:
            outputs = self.traced_outputs((state, self.inputs[0].spec()))
            if not isinstance(outputs, tuple) or len(outputs) != 2:
                return None
            try:
                after = common_spec("scan: the states", [state, outputs[0]])
            except TypeError:
                return None  # the first call raises an error that says more
            if after == state:
                return outputs[1]
            state = after


class TakeWhile(Applied):
    """Elements until a function is false for the first time."""

    name = "take_while"

    def start(self):
        return super().start() | {"over": False}

    def next_round(self, position):
        return super().next_round(position) | {"over": False}

    def run(self, position):
        if position["over"]:
            return
        for element, kept in self.results(position):
            if not truth("take_while", kept):
                position["over"] = True
                return
            yield element

    def size(self):
        return UNKNOWN


class Unique(Replayed):
    """Elements that have not occurred before."""

    def replay(self, position):
        seen = set()
        for element in self.run_input(position):
            key = _key(element)
            if key not in seen:
                seen.add(key)
                yield element

    def size(self):
        return UNKNOWN


def _key(tensor):
    spec = spec_of(tensor)
    check_unique(spec)
    array = np.asarray(tensor.array)
    entries = array.tobytes() if array.dtype != object else tuple(array.ravel())
    return array.shape, entries


def check_unique(spec):
    """Raise ``TypeError`` for elements that `unique` does not compare, as in TensorFlow."""
    names = "int32", "int64", "string"
    if not isinstance(spec, TensorSpec) or spec.dtype.name not in names:
        raise TypeError(
            f"unique: elements must be single tensors of int32, int64 or string, got {spec}"
        )


class IgnoreErrors(Node):
    """The elements, without those that raise an error.

    After an error the input continues from its position, past the failed element. The
    end of a worker process is raised: with it, elements would be lost.
    """

    def __init__(self, source, log_warning=False):
        super().__init__(source)
        self._log_warning = log_warning

    def run(self, position):
        stuck = None
        while True:
            try:
                yield from self.inputs[0].run(position["inputs"][0])
                return
            except Exception as error:
                if is_broken(error):  # it is no error of an element
                    raise
                if stuck == position["inputs"][0]:
                    error.add_note(
                        "In Dataset.ignore_errors: the source cannot go on behind the "
                        "error; call ignore_errors directly after what may fail"
                    )
                    raise
                stuck = copy_position(position["inputs"][0])
                if self._log_warning:
                    warnings.warn(
                        f"Dataset.ignore_errors: {type(error).__name__}: {error}",
                        stacklevel=user_stacklevel(),
                    )

    def size(self):
        return 0 if self.inputs[0].size() == 0 else UNKNOWN


class AssertCardinality(Node):
    """The elements, of which there must be exactly ``count``."""

    def __init__(self, source, count):
        super().__init__(source)
        self._count = count

    def start(self):
        return {"given": 0}

    def run(self, position):
        for element in self.run_input(position):
            if position["given"] == self._count:
                raise self._wrong(f"more than {position['given']}")
            position["given"] += 1
            yield element
        if self._count == INFINITE or position["given"] < self._count:
            raise self._wrong(position["given"])

    def _wrong(self, actual):
        wanted = "no end" if self._count == INFINITE else f"{self._count} elements"
        return FailedPreconditionError(
            f"assert_cardinality: the dataset must have {wanted}, got {actual}"
        )

    def size(self):
        return self._count
