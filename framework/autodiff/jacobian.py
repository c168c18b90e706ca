"""Jacobians: many cotangents of one target in one batched backward pass.

A pass starts with one cotangent of ones, diagonal in every axis of the target (see
`batching`), which represents the unit cotangents of all entries. Axes that ops mix
become dense on the way; the others arrive diagonal, and their zeros are never computed.
With a bound (on the number of cotangents, or on bytes), an axis whose dense form would
be too large is *explicit*: several passes process its entries in chunks.
"""

import math
import weakref

import numpy as np

from tapewright.core.dtypes import is_bfloat16
from tapewright.core.errors import ShapeError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import ARRAY_EVAL, use_interpreters
from tapewright.core.op_definition.user_gradients import conjugate
from tapewright.core.primitive import kernels_are_wrapped
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.ops.array.joining import concat
from tapewright.ops.array.shape import broadcast_to, reshape, transpose
from tapewright.ops.linalg.diagonal import embed_diagonal

from .backward import (
    backward_pass,
    seed_cotangent,
    source_keys,
    sum_cotangents,
    to_gradient,
)
from .batching import BatchedTensor, BatchInterpreter, NotDiagonal


class JacobianPass:
    """Backward passes over one tape with many cotangents for one target.

    ``chunk`` bounds the number of cotangents of a pass, ``limit`` its bytes.
    """

    def __init__(self, tape, target, key, keys, interpreters, chunk=None, limit=None):
        self.tape, self.target, self.key = tape, target, key
        self.keys, self.interpreters = keys, interpreters
        self.chunk, self.limit = chunk, limit
        self.shape = tuple(target.array.shape)
        self.xp = module_of(target)

    def full(self, sources):
        """Return ``[target..., source...]`` for each source, None if the target ignores it."""
        rank = len(self.shape)
        axes = {t: t for t in range(rank)}
        blocks = [
            (self.shape + shape, axes, shape, range(rank, rank + len(shape)))
            for shape in sources
        ]
        return self._jacobians(blocks)

    def by_example(self, source, check):
        """Return ``[batch, target..., source...]``, summed over all examples.

        ``check``: raise `ShapeError` unless the sum has only one summand.
        """
        rank, shape = len(self.shape), self.shape + source[1:]
        axes = {t: t for t in range(rank)}
        source_axes = [0, *range(rank, len(shape))]
        if check and self.shape[0] > 1:
            try:
                block = (shape, axes, source, source_axes)
                return self._jacobians([block], strict=(0,))[0]
            except NotDiagonal as mixing:
                (full,) = self.full([source])
                check_blocks(full, rank, mixing.op_name)
        del axes[0]
        return self._jacobians([(shape, axes, source, source_axes)])[0]

    def _jacobians(self, blocks, strict=()):
        axes = [*blocks[0][1]]  # of the target: a cotangent for each of their entries
        explicit = [t for t in axes if self.shape[t] == 0]
        while True:
            given = [_Block(self, *block) for block in blocks]
            try:
                self._all_passes(axes, sorted(explicit), given, strict)
                return [block.result() for block in given]
            except _TooLarge as error:
                explicit.append(error.axis)

    def _all_passes(self, axes, explicit, blocks, strict):
        """Pull back all cotangents: ``explicit`` axes in chunks, the others at once."""
        sizes = [self.shape[t] for t in explicit]
        count = math.prod(sizes)
        step = count if self.chunk is None else min(self.chunk, count)
        if self.limit is not None and explicit:
            step = min(1, count)  # the first pass measures the bytes of a cotangent
        start = 0
        while True:
            picks = ()
            if explicit:
                stop = min(start + step, count)
                picks = np.unravel_index(np.arange(start, stop), sizes)
            meter = None if self.limit is None else _Meter()
            seeds = self._seeds(axes, explicit, picks, strict, meter)
            for block, g in zip(blocks, self._pull_back(seeds)):
                block.add(g, seeds, explicit, picks, step >= count)
            if meter is not None and start == 0:
                fit = max(1, int(self.limit // max(meter.most, 1)))
                start, step = start + step, fit
            else:
                start += max(step, 1)
            if start >= count:
                return

    def _seeds(self, axes, explicit, picks, strict, meter):
        """Return the unit cotangents as one batched tensor: ones at the picked entries."""
        shape, rank = self.shape, len(self.shape)
        free = [t in axes and t not in explicit and shape[t] > 1 for t in range(rank)]
        sizes = [n if is_free else 1 for n, is_free in zip(shape, free)]
        batcher = _Bounded(sizes, strict, self.chunk, self.limit, meter)
        if explicit:
            count = len(picks[0])
            small = [n if t in explicit else 1 for t, n in enumerate(shape)]
            ones = self.xp.zeros((count, *small), self.target.array.dtype)
            index = [0] * rank
            for t, at in zip(explicit, picks):
                index[t] = self.xp.asarray(at)
            ones[(self.xp.arange(count), *index)] = 1
            ones = self.xp.broadcast_to(ones, (count, *shape))
        else:
            full = (1,) * rank if has_symbolic_shape(shape) else shape
            ones = self.xp.ones((1, *full), self.target.array.dtype)
        axes = tuple([t - rank if is_free else None for t, is_free in enumerate(free)])
        ones = new_tensor(ones)
        if has_symbolic_shape(shape):
            ones = broadcast_to(ones, (1, *shape))
        return batcher.map(ones, axes)

    def _pull_back(self, seeds):
        batcher = seeds.owner
        plain = not self.interpreters and not kernels_are_wrapped()
        step = _entrywise_step(batcher) if plain else None
        with use_interpreters((*self.interpreters, batcher)):
            cotangents = {self.key: seeds}
            backward_pass(self.tape, cotangents, self.keys, False, False, step)
            return [sum_cotangents(cotangents, keys) for keys in self.keys]


def _entrywise_step(batcher):
    """Return a ``step`` of `backward_pass` that pulls back elementwise ops on arrays."""

    def step(record, g, cotangents, useful):
        pullback, *_ = record
        plain = type(g) is BatchedTensor and pullback.entrywise
        if not plain or is_bfloat16(g.value.array.dtype):
            return pullback.on_tensors(record, g, cotangents, useful)
        slopes = {}
        with use_interpreters((ARRAY_EVAL,)):
            pullback.on_arrays(record, g.value.array, slopes, useful)
        for key, d in slopes.items():
            old = cotangents.get(key)
            if type(old) is BatchedTensor and old.axes == g.axes:
                d, old = old.value.array + d, None
            mapped = batcher.wrap(new_tensor(d), g.axes)
            cotangents[key] = mapped if old is None else old + mapped

    return step


# ------------------------------------------------------------------------------ bounds


class _TooLarge(Exception):
    """A pass would exceed its bounds if this axis of the target were dense."""

    def __init__(self, axis):
        self.axis = axis


class _Bounded(BatchInterpreter):
    """Batch interpreter with a bound on the number of cotangents, or on bytes."""

    __slots__ = ("most", "limit", "meter")

    def __init__(self, sizes, strict, most, limit, meter):
        super().__init__(sizes, strict)
        self.most, self.limit, self.meter = most, limit, meter

    def before_densify(self, x, t):
        array = x.value.array
        if self.most is not None and array.shape[0] * self.sizes[t] > self.most:
            raise _TooLarge(t)
        if self.limit is not None:
            more = array.nbytes * self.sizes[t]
            if self.meter.now + more > self.limit:
                raise _TooLarge(t)

    def check_cost(self, op, inputs, mapped, attributes, axes, deferred):
        if self.meter is None or op.infer_rule is None:
            return
        specs = [TensorSpec(x.shape, x.dtype) for x in inputs]
        given = op.infer_rule(*specs, **attributes)
        fronts = [x.value.array.shape[0] for x, m in zip(inputs, mapped) if m]
        count = max(fronts) * (1 if deferred is None else self.sizes[deferred])
        for spec in given if isinstance(given, (tuple, list)) else (given,):
            size = math.prod(spec.shape) * spec.dtype.size * count
            if self.meter.now + size > self.limit:
                self._narrow(axes)

    def _narrow(self, axes):
        """Raise `_TooLarge` for the longest dense axis, if there is one."""
        dense = [(n, t) for t, n in enumerate(self.sizes) if n > 1 and axes[t] is None]
        if dense:
            raise _TooLarge(max(dense)[1])

    def wrap(self, value, axes):
        if self.meter is not None:
            self.meter.see(value)
            if self.meter.most > self.limit:
                self._narrow(axes)
        return BatchedTensor(value, self, axes)


class _Meter:
    """Meter of the bytes of the live values of a pass, now and at most.

    Values that share memory count once. While an op runs, it is assumed to need the
    bytes of its output twice.
    """

    def __init__(self):
        self.now = self.most = 0
        self.seen = {}  # id of a value -> (a weak reference to it, id of its memory)
        self.memory = {}  # id of memory -> [values that use it, bytes]

    def see(self, tensor):
        if id(tensor) in self.seen:
            return
        root = devices.memory_owner(tensor.array)
        name, root_key = id(tensor), id(root)
        known = self.memory.setdefault(root_key, [0, root.nbytes])
        if not known[0]:
            self.now += known[1]
        known[0] += 1
        owner = weakref.ref(self)
        gone = weakref.ref(tensor, lambda _: _forget(owner, name))
        self.seen[name] = gone, root_key
        self.most = max(self.most, self.now + root.nbytes)

    def forget(self, name):
        _, root_key = self.seen.pop(name)
        known = self.memory[root_key]
        known[0] -= 1
        if not known[0]:
            self.now -= known[1]
            del self.memory[root_key]


def _forget(owner, name):
    meter = owner()
    if meter is not None:
        meter.forget(name)


# ------------------------------------------------------------------- assembling blocks


class _Block:
    """The Jacobian by one source, assembled from the results of backward passes.

    ``target_axes`` maps an axis of the target to an axis of the block; ``source_axes`` has
    the axis of the block for each axis of the source. If both are one axis, the block
    is their diagonal.
    """

    def __init__(self, passes, shape, target_axes, source, source_axes):
        self.passes, self.shape = passes, shape
        self.target_axes, self.source_axes = target_axes, source_axes
        self.source = source
        self.parts = []  # results to be concatenated, one for each chunk
        self.whole = None  # or an array into which the chunks are written

    def add(self, g, seeds, explicit, picks, alone):
        """Add the result of one pass, of the chunk ``picks``; ``alone`` if the only one."""
        if g is None:
            return
        batcher, interpreters = seeds.owner, self.passes.interpreters
        with use_interpreters(interpreters):
            if not (type(g) is BatchedTensor and g.owner is batcher):
                g = batcher.map(batcher.densify_like(g, seeds))
            free = [t for t in self.target_axes if t not in explicit]
            dense = [t for t in free if g.axes[t] is None]
            apart = [  # diagonals, over two axes of the block
                (t, g.axes[t])
                for t in free
                if g.axes[t] is not None
                and self.target_axes[t] != self.source_axes[g.axes[t]]
            ]
            for t in batcher.strict:
                if t in dense or (t, g.axes[t]) in apart:
                    raise NotDiagonal(None)
            value = g.value if interpreters else g.value.array
            sizes = [batcher.sizes[t] for t in dense]
            value = self._chunk_first(value, sizes, len(picks[0]) if explicit else 1)
            labels = [None, *[self.target_axes[t] for t in dense], *self.source_axes]
            if interpreters or (alone and not apart):
                self.parts.append((value, labels, apart, explicit))
            else:
                self._write(value, labels, apart, explicit, picks)

    def _chunk_first(self, value, sizes, count):
        """Split the mapped axis, ``[*sizes, count]``, and move the chunk to the front."""
        if count == 1 or not sizes:
            return _reshape(value, (count, *sizes, *self.source))
        value = _reshape(value, (*sizes, count, *self.source))
        lead, rank = len(sizes), len(value.shape)
        return _transpose(value, (lead, *range(lead), *range(lead + 1, rank)))

    def result(self):
        """Return the Jacobian as a tensor, or None."""
        if self.whole is not None:
            return new_tensor(self.whole)
        if not self.parts:
            return None
        value, labels, diagonal, explicit = self.parts[0]
        with use_interpreters(self.passes.interpreters):
            if len(self.parts) > 1:
                value = concat([part for part, *_ in self.parts], axis=0)
            sizes = [self.passes.shape[t] for t in explicit]
            value = _reshape(value, (*sizes, *value.shape[1:]))
            labels = [*[self.target_axes[t] for t in explicit], *labels[1:]]
            for t, axis in diagonal:
                value = embed_diagonal(value, axis)
                labels.insert(0, self.target_axes[t])
            order = [labels.index(axis) for axis in sorted(labels)]
            value = _reshape(_transpose(value, order), self.shape)
        return value if self.passes.interpreters else new_tensor(value)

    def _write(self, piece, labels, diagonal, explicit, picks):
        """Write a piece into the whole block."""
        xp = self.passes.xp
        if self.whole is None:
            make = xp.zeros if diagonal else xp.empty
            self.whole = make(self.shape, piece.dtype)
        # Transpose both so that the indexed axes are in front: chunk, diagonals, others.
        homes, index, own, ndim = [], [], [], 1 + len(diagonal)
        for t, at in zip(explicit, picks):
            homes.append(self.target_axes[t])
            index.append(xp.asarray(at).reshape(-1, *(1,) * (ndim - 1)))
        for i, (t, axis) in enumerate(diagonal, 1):
            at = xp.arange(self.passes.shape[t])
            at = at.reshape(-1, *(1,) * (ndim - 1 - i))
            homes += [self.target_axes[t], self.source_axes[axis]]
            index += [at, at]
            own.append(piece.ndim + axis)
        rest = [a for a in range(1, piece.ndim) if a not in own]
        homes += [labels[a] for a in rest]
        piece = piece.transpose(0, *own, *rest)
        self.whole.transpose(homes)[tuple(index)] = piece if explicit else piece[0]


def _reshape(value, shape):
    """Return a tensor or an array in another shape."""
    return reshape(value, shape) if isinstance(value, Tensor) else value.reshape(shape)


def _transpose(value, order):
    if isinstance(value, Tensor):
        return transpose(value, order)
    return value.transpose(order)


# ------------------------------------------------------------------ second derivatives


def second_derivatives(tape, target, key, sources, own, interpreters, chunk, limit):
    """Return ``blocks[i][j]``: the derivative of gradient i by source j, or None.

    The backward pass is recorded in a copy of the tape, which then holds all records
    for a Jacobian of the gradient. Of two blocks that are transposes of each other,
    only the one with the shorter gradient is computed. ``key`` is the key of the
    target, ``own`` the keys of each source: see `backward.endpoints`.
    """
    count = len(sources)
    blocks = [[None] * count for _ in range(count)]
    if key is None:
        return blocks
    both = tape.copied()
    with use_interpreters((*interpreters, both)):
        cotangents = {}
        seed_cotangent(cotangents, key, target, None, False)
        backward_pass(both, cotangents, own, False, False)
        gradients = [sum_cotangents(cotangents, keys) for keys in own]
        gradients = [
            g if g is None else convert_to_tensor(to_gradient(g, False))
            for g in gradients
        ]
    keys = [source_keys(both, s) or k for s, k in zip(sources, own)]
    shapes = [tuple(s.shape) for s in sources]
    sizes = [math.prod(shape) for shape in shapes]
    real = all([s.dtype.is_floating for s in sources])
    for i, g in enumerate(gradients):
        columns = [
            j
            for j, other in enumerate(gradients)
            if g is not None
            and other is not None
            and (not real or (sizes[i], i) <= (sizes[j], j))
        ]
        if not columns:
            continue
        row = [None] * len(columns)
        if g.key in both.known:
            passes = JacobianPass(
                both, g, g.key, [keys[j] for j in columns], interpreters, chunk, limit
            )
            row = passes.full([shapes[j] for j in columns])
        for j, block in zip(columns, row):
            if block is None:  # the gradient is constant
                block = _zeros(shapes[i] + shapes[j], g)
            blocks[i][j] = conjugate(block)
            if real and i != j:
                split = len(shapes[i])
                order = [*range(split, block.array.ndim), *range(split)]
                blocks[j][i] = transpose(block, order)
    return blocks


def side_by_side(blocks, shapes, like):
    """Join blocks of second derivatives into one matrix; None counts as zeros."""
    sizes = [math.prod(shape) for shape in shapes]
    rows = []
    for n, row in zip(sizes, blocks):
        parts = [
            _zeros((n, m), like) if block is None else reshape(block, (n, m))
            for m, block in zip(sizes, row)
        ]
        rows.append(parts[0] if len(parts) == 1 else concat(parts, axis=1))
    return rows[0] if len(rows) == 1 else concat(rows, axis=0)


def _zeros(shape, like):
    return new_tensor(module_of(like).zeros(shape, like.array.dtype))


# --------------------------------------------------------------- independent examples


def check_blocks(full, target_rank, op_name=None):
    """Raise `ShapeError` unless the full Jacobian is zero between different examples."""
    if full is None:
        return
    cause = "" if op_name is None else f" (through {op_name}, or an op before it)"
    if not devices.is_array(full.array):
        raise ShapeError(
            "batch_jacobian",
            f"the examples could depend on each other{cause}, and while a function is "
            "traced there are no values to check; check outside, or take the full jacobian",
        )
    array = devices.to_numpy(full.array)
    inner = tuple([i for i in range(array.ndim) if i not in (0, target_rank)])
    met = (array != 0).any(axis=inner)
    np.fill_diagonal(met, False)
    if met.any():
        i, k = np.argwhere(met)[0]
        raise ShapeError(
            "batch_jacobian",
            f"the examples are not independent: target[{i}] depends on source[{k}]{cause}; "
            "take the full jacobian",
        )


def examples_first(j, target_shape, source_shape):
    """Transpose ``[entries, batch, source...]`` to ``[batch, target..., source...]``."""
    j = transpose(j, (1, 0, *range(2, j.array.ndim)))
    return reshape(j, (*target_shape, *source_shape[1:]))
