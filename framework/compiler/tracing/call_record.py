"""The record of a call of a traced function: its pullback runs a backward graph."""

import numpy as np

from tapewright.core.errors import TracingError
from tapewright.core.hardware.devices import array_module, is_array
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    use_interpreters,
)
from tapewright.core.op_definition.user_gradients import conjugate, to_user
from tapewright.core.record import Pullback, add_cotangent
from tapewright.core.tensor import IndexedSlices, new_tensor
from tapewright.ops.array.indexed_slices import dense

from .handles import HANDLE, sum_of_lists

_UNBOUNDED = (
    "several gradients through a loop of unknown length cannot be differentiated at "
    "once; pass maximum_iterations"
)


def call_pullback(linearization, sources):
    """Return the `Pullback` of calls of which a tape tracks these sources.

    It works on arrays if no interpreter is active, else on tensors, through the ops of
    the backward graph. The record has the residuals of the linearization.
    """
    position = {number: n for n, number in enumerate(linearization.residuals)}

    def pull_back(record, g, cotangents, useful):
        _, _, inputs, *kept = record
        keys = dict(zip(sources, inputs))
        wanted = sources
        if useful is not None:
            wanted = tuple([i for i in sources if keys[i] in useful])
        targets = dict(zip(linearization.full.present, g))
        present = tuple([k for k, c in targets.items() if c is not None])
        backward = linearization.vjp(present, wanted)
        residuals = [kept[position[n]] for n in backward.residuals]
        seeds = _seeds(linearization, backward, targets)
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
                if part.dtype == HANDLE and keys[i] in cotangents:
                    part = _both(linearization.name, cotangents.pop(keys[i]), part)
                add_cotangent(cotangents, keys[i], part, useful)

    return Pullback(linearization.name, pull_back)


def _both(name, x, y):
    """Add two lists of cotangents."""
    if active_interpreter() is not ARRAY_EVAL:
        raise TracingError(f"{name}: {_UNBOUNDED}")
    return sum_of_lists(x, y)


def _seeds(linearization, backward, targets):
    """Return the cotangents that a backward graph expects, with zeros for missing ones."""
    seeds = []
    for k in backward.present:
        c = targets[k]
        if c is None:
            x = linearization.results[k].array
            c = array_module(type(x)).zeros(x.shape, x.dtype)
            c = c if active_interpreter() is ARRAY_EVAL else new_tensor(c)
        seeds.append(dense(c) if isinstance(c, IndexedSlices) else c)
    return seeds


def _replayed(backward, seeds, residuals):
    """Return the outputs of a backward graph on arrays."""
    arrays = [_conjugated(c if is_array(c) else np.asarray(c)) for c in seeds]
    with use_interpreters(()):
        return backward.function.executable.run(
            [*arrays, *[x.array for x in residuals], *backward.captured]
        )


def _conjugated(array):
    return array.conj() if array.dtype.kind == "c" else array


def _part(gradient, outputs, finish):
    """Return one gradient of the outputs, in the form of the backward pass."""
    if type(gradient) is int:
        return finish(outputs[gradient])
    values, indices, shape = gradient
    return IndexedSlices(finish(outputs[values]), outputs[indices], shape)
