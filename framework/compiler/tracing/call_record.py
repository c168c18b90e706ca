"""The backward step of a call that `differentiate` has made: `CallAdjoint`."""

import numpy as np

from tapewright.core.devices import is_array
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    use_interpreters,
)
from tapewright.core.record import add_cotangent, conjugate, to_user
from tapewright.core.tensor import IndexedSlices, new_tensor
from tapewright.ops.array.gather import dense

from .handles import sum_of_boxes

__all__ = ["CallAdjoint"]

_UNBOUNDED = (
    "several gradients through a loop of unknown length cannot be differentiated at once; "
    "give the loop maximum_iterations"
)


class CallAdjoint:
    """The backward step of a call, for the sources that one tape tracks.

    The record ends with the residuals. ``raw`` works on arrays where nobody watches, and
    on tensors, through the backward graph's ops, where somebody does.
    """

    __slots__ = ("linearization", "sources", "width", "name", "index")

    def __init__(self, linearization, sources):
        self.linearization, self.sources = linearization, sources
        self.width, self.name = len(sources), linearization.name
        self.index = {number: n for n, number in enumerate(linearization.residuals)}

    def raw(self, record, g, cotangents, useful):
        keys = dict(zip(self.sources, record[2 : 2 + self.width]))
        wanted = self.sources
        if useful is not None:
            wanted = tuple([i for i in wanted if keys[i] in useful])
        targets = dict(zip(self.linearization.full.present, g))
        present = tuple([k for k, c in targets.items() if c is not None])
        backward = self.linearization.vjp(present, wanted)
        kept = record[2 + self.width :]
        residuals = [kept[self.index[n]] for n in backward.residuals]
        seeds = self._seeds(backward, targets)
        if active_interpreter() is ARRAY_EVAL:
            outputs = _replayed(backward, seeds, residuals)
            finish = _conjugated
        else:
            seeds = [to_user(c, False) for c in seeds]
            outputs = backward.function.flat_call([*seeds, *residuals])
            finish = conjugate
        for i, gradient in zip(backward.wanted, backward.gradients):
            if gradient is not None and i in keys:
                part = _part(gradient, outputs, finish)
                if part.dtype == object and keys[i] in cotangents:
                    part = self._both(cotangents.pop(keys[i]), part)
                add_cotangent(cotangents, keys[i], part, useful)

    ops = raw

    def _both(self, x, y):
        """The sum of two lists of cotangents."""
        if active_interpreter() is not ARRAY_EVAL:
            raise TracingError(f"{self.name}: {_UNBOUNDED}")
        return sum_of_boxes(x, y)

    def _seeds(self, backward, targets):
        """The cotangents that a way back takes; zeros where it takes more than came."""
        seeds = []
        for k in backward.present:
            c = targets[k]
            if c is None:
                x = self.linearization.results[k].array
                c = np.zeros(x.shape, x.dtype)
                c = c if active_interpreter() is ARRAY_EVAL else new_tensor(c)
            seeds.append(dense(c) if isinstance(c, IndexedSlices) else c)
        return seeds


def _replayed(backward, seeds, residuals):
    """The way back on arrays."""
    arrays = [_conjugated(c if is_array(c) else np.asarray(c)) for c in seeds]
    with use_interpreters(()):
        return backward.function.replay(
            [*arrays, *[x.array for x in residuals], *backward.captured]
        )


def _conjugated(array):
    return array.conj() if array.dtype.kind == "c" else array


def _part(gradient, outputs, finish):
    """One gradient, as the walk carries it."""
    if type(gradient) is int:
        return finish(outputs[gradient])
    values, indices, shape = gradient
    return IndexedSlices(finish(outputs[values]), outputs[indices], shape)
