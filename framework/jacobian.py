"""Jacobians: many cotangents of one target in one batched walk, as few as will do.

Where each index of an axis of the target meets one index of an axis of the source only,
one cotangent serves all of them (see `batching`); whether it is so, the ops tell.
"""

import math

import numpy as np

from . import backend
from .batching import Batcher, NotDiagonal
from .errors import ShapeError
from .ops.joining import concat
from .ops.shape import broadcast_to, reshape, transpose
from .readers import reading
from .tensor import module_of, new_tensor
from .walk import collect, walk

__all__ = ["JacobianWalk", "check_blocks", "examples_first"]


class JacobianWalk:
    """Walks of one recording with many cotangents for one target."""

    def __init__(self, recording, target, keys, readers):
        self.recording, self.target = recording, target
        self.keys, self.readers = keys, readers
        self.shape = tuple(target.array.shape)
        self.xp = module_of(target)

    def by_structure(self, chunk):
        """Seeds that share the rows of one axis, or None where no axis allows it.

        If each index of an axis of the target meets one index of an axis of each source
        only, one seed serves all of them.
        """
        for axis, rows in enumerate(self.shape):
            if rows > 1:
                try:
                    return self._along(axis, chunk, strict=True)
                except NotDiagonal:
                    continue
        return None

    def by_brute_force(self, chunk):
        """One seed for each entry of the target; rows share seeds as long as they can."""
        if chunk is None and self.shape[0] > 1:
            return self._along(0, None, strict=False)
        size = math.prod(self.shape)
        parts = []
        for seeds in self._seeds(size, self.shape, chunk):
            batcher = Batcher()
            parts.append(self._send(batcher, batcher.map(seeds)))
        return [
            None if j is None else reshape(j, self.shape + tuple(j.array.shape[1:]))
            for j in self._joined(parts)
        ]

    def check_examples(self, chunk):
        """Raises `ShapeError` if an example meets another one of the source."""
        if self.shape[0] < 2:
            return
        try:
            self._along(0, chunk, strict=True)
        except NotDiagonal as mixing:
            (full,) = self.by_brute_force(chunk)
            adjoint = mixing.adjoint
            check_blocks(full, len(self.shape), getattr(adjoint, "op", adjoint).name)

    def by_example(self, chunk):
        """One seed for each entry of one example of the target, for all examples at once."""
        batch, *inner = self.shape
        parts = []
        for seeds in self._seeds(math.prod(inner), (1, *inner), chunk):
            seeds = broadcast_to(seeds, (seeds.array.shape[0], *self.shape))
            batcher = Batcher()
            parts.append(self._send(batcher, batcher.map(seeds)))
        (j,) = self._joined(parts)
        if j is None:
            return None
        return examples_first(j, self.shape, tuple(j.array.shape[1:]))

    def _along(self, axis, chunk, strict):
        rows = self.shape[axis]
        rest = self.shape[:axis] + self.shape[axis + 1 :]
        small = self.shape[:axis] + (1,) + self.shape[axis + 1 :]
        parts = []
        for seeds in self._seeds(math.prod(rest), small, chunk):
            count = seeds.array.shape[0]
            seeds = broadcast_to(seeds, (count, *self.shape))
            batcher = Batcher(strict)
            found = self._send(batcher, batcher.map(seeds, axis - len(self.shape)))
            parts.append(
                [g if g is None else _split_rows(g, rows, count) for g in found]
            )
        return [
            None if j is None else _row_axis_home(j, rows, rest, axis)
            for j in self._joined(parts, 1)
        ]

    def _seeds(self, count, shape, chunk):
        """Unit cotangents ``[chunk, *shape]``, chunk by chunk."""
        dtype = self.target.array.dtype
        step = count if chunk is None else min(chunk, count)
        for start in range(0, max(count, 1), max(step, 1)):
            size = min(step, count - start)
            seeds = self.xp.eye(size, count, start, dtype=dtype)
            yield new_tensor(seeds.reshape(size, *shape))

    def _send(self, batcher, seeds):
        with reading((*self.readers, batcher)):
            cotangents = {self.target.key: seeds}
            walk(self.recording, cotangents, self.keys, bare=False, release=False)
            found = [collect(cotangents, keys) for keys in self.keys]
        with reading(self.readers):
            return [g if g is None else batcher.spell_out(g, seeds) for g in found]

    def _joined(self, parts, axis=0):
        joined = []
        for pieces in zip(*parts):
            if pieces[0] is None:
                joined.append(None)
            else:
                joined.append(
                    pieces[0] if len(pieces) == 1 else concat(pieces, axis=axis)
                )
        return joined


def check_blocks(full, target_rank, op_name=None):
    """Raises `ShapeError` unless the full Jacobian is zero between different examples."""
    if full is None:
        return
    array = backend.to_numpy(full.array)
    inner = tuple([i for i in range(array.ndim) if i not in (0, target_rank)])
    met = (array != 0).any(axis=inner)
    np.fill_diagonal(met, False)
    if met.any():
        i, k = np.argwhere(met)[0]
        cause = "" if op_name is None else f" (through {op_name}, or an op before it)"
        raise ShapeError(
            "batch_jacobian",
            f"the examples are not independent: target[{i}] depends on source[{k}]{cause}; "
            "take the full jacobian",
        )


def _split_rows(j, rows, count):
    return reshape(j, (rows, count, *j.array.shape[1:]))


def _row_axis_home(j, rows, rest, axis):
    """``[rows, entries of the rest, source...]`` to target axes, then source axes."""
    source = tuple(j.array.shape[2:])
    j = reshape(j, (rows, *rest, *source))
    if axis == 0:
        return j
    order = [*range(1, axis + 1), 0, *range(axis + 1, j.array.ndim)]
    return transpose(j, order)


def examples_first(j, target_shape, source_shape):
    """``[entries, batch, source...]`` to ``[batch, target..., source...]``."""
    j = transpose(j, (1, 0, *range(2, j.array.ndim)))
    return reshape(j, (*target_shape, *source_shape[1:]))
