"""Assignments that overwrite the arrays of variables, as a part of the commit.

A loop nest that reads a variable and computes its new value may write over the old one:
a step of an optimizer then reads and writes half as much memory. As the old value is
lost, such nests run last, in the commit, where it is certain that nobody else holds the
array; if somebody does, they run on a copy.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

from tapewright.core.state.commit import Commit, references

from ...loops.loop_nest import LoopNest
from ...program.instructions.call_instructions import (
    LoadVariable,
    StoreVariable,
    Update,
)
from .jit.output_memory import Piece
from .segments import plain

# Bytes of a new value from which on it pays to overwrite the old one.
WORTH = 1 << 16


def overwrite_variables(program):
    """Move nests whose results are only assigned to the end, if some overwrite variables.

    ``program.in_place`` has for each nest the outputs that overwrite a variable: a dict
    from the buffer to its `StoreVariable` and the buffer of the old value.
    """
    if _ALONE is None or not program.commits_once or program.aliases_inputs:
        return
    # An update may move variables that it does not write: those beside its own in memory.
    if any([type(each) is Update for each in program.instructions]):
        return
    readers, values, overwritten = program.readers(), {}, {}
    for each in program.instructions:
        if type(each) is LoadVariable:
            values.setdefault(id(each.variable), []).append(each.outputs[0])
    results = set(program.outputs)
    for nest in reversed(program.instructions):
        after = [e for out in nest.outputs for e in readers.get(out, ())]
        is_last = all([type(e) is StoreVariable or e in overwritten for e in after])
        if type(nest) is LoopNest and is_last and results.isdisjoint(nest.outputs):
            overwritten[nest] = _overwriting(nest, readers, values)
    kept = {a.base for e in program.instructions for a in e.kept}
    kept.update([a.base for a in program.outputs])
    for nest, pairs in overwritten.items():
        others = {
            a.base for each in overwritten if each is not nest for a in each.reads
        }
        for out, (_, old) in [*pairs.items()]:
            if old in kept or old in others:
                del pairs[out]
    if any(overwritten.values()):

        def position(each):
            return 2 if type(each) in (StoreVariable, Update) else each in overwritten

        program.instructions.sort(key=position)  # assignments come last
        order = [each for each in program.instructions if each in overwritten]
        program.in_place = {each: overwritten[each] for each in order}


def _overwriting(nest, readers, values):
    """Return the outputs that may overwrite a variable as far as this nest is concerned."""
    pairs = {}
    for out in nest.outputs:
        after = readers.get(out, ())
        if out.nbytes < WORTH or len(after) != 1 or type(after[0]) is not StoreVariable:
            continue
        (store,) = after
        old = values.get(id(store.variable), ())
        if len(old) == 1 and old[0].same_spec(out) and nest.is_done_with(old[0], out):
            pairs[out] = store, old[0]
    return pairs


class CommitCall:
    """Makes steps for a commit that call a segment, which overwrites ``variables``.

    ``numbers`` are those of its arguments that are their arrays, of these ``specs``.
    """

    def __init__(self, segment, variables, numbers, specs):
        self.segment, self.variables = segment, variables
        self.numbers, self.specs = numbers, specs

    @classmethod
    def of(cls, segment, olds):
        """Return it for the buffers of old values, a dict to their variables."""
        pairs = [(n, key) for n, key in enumerate(segment.arrays) if key in olds]
        specs = [(key.shape, key.dtype) for _, key in pairs]
        return cls(segment, [olds[k] for _, k in pairs], [n for n, _ in pairs], specs)

    def __call__(self, *arguments):
        """Return a step; None stands for the arrays of variables."""
        arguments = [x if x is None or _is_plain(x) else plain(x) for x in arguments]
        return _Step(self, arguments)


class _Step:
    """One call of a segment in a commit."""

    def __init__(self, call, arguments):
        self.call, self.arguments = call, arguments

    def add_to(self, change):
        """Add the call to a `Commit`, or run it on copies."""
        call = self.call
        arrays = [variable._array for variable in call.variables]
        if change.in_place and all(map(_fits, arrays, call.specs)):
            change.writes.append(partial(call.segment.function, *self._with(arrays)))
            counts = [_ALONE] * len(arrays)
            change.overwrite(call.variables, arrays, arrays, counts)
            return
        arrays = [np.array(plain(array)) for array in arrays]
        if call.segment.function(*self._with(arrays)) is not None:
            given = [f"{a.dtype} {a.shape}" for a in arrays]
            raise RuntimeError(
                f"{call.segment.name} does not accept the arrays {given}"
            )
        change.bind(call.variables, arrays)

    def _with(self, arrays):
        arguments = [*self.arguments]
        for n, array in zip(self.call.numbers, arrays):
            arguments[n] = array
        return arguments


def _is_plain(array):
    """Return whether machine code accepts the layout of an array."""
    is_array = type(array) is np.ndarray
    return is_array and array.flags.carray and array.dtype.isnative


def _fits(array, spec):
    """Return whether an array may be overwritten if nothing references it.

    A view of an array that is a view itself references the array below both.
    """
    counts = array.base is None or type(array.base) is Piece
    return counts and _is_plain(array) and (array.shape, array.dtype) == spec


class _Watched(Commit):
    """Commit that records the arrays it watches."""

    __slots__ = ("watched",)

    def overwrite(self, variables, arrays, watched, counts):
        super().overwrite(variables, arrays, watched, counts)
        self.watched = watched


def _references_alone():
    """Return how often an array is referenced in a commit if only its variable has it.

    Returns None if references are not counted.
    """
    variable, change = SimpleNamespace(_array=np.zeros(1)), _Watched()
    if not change.in_place:
        return None
    spec = variable._array.shape, variable._array.dtype
    segment = SimpleNamespace(function=print)  # which is not called
    CommitCall(segment, [variable], [0], [spec])(None).add_to(change)
    (counts,) = map(references, change.watched)
    return counts


_ALONE = None
_ALONE = _references_alone()
