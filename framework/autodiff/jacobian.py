"""Jacobians: many cotangents of one target in one batched walk, as few as will do.

A walk starts with one cotangent of ones, diagonal in every axis of the target (see
`batching`): it stands for the unit cotangents of all entries. What the ops mix is spread
on the way; what they do not, arrives diagonal, and its zeros are never computed. Within
bounds (a number of cotangents, or of bytes) the axes that would be spread too far are
gone through in chunks instead.
"""

import math
import weakref

import numpy as np

from tapewright.core import devices
from tapewright.core.errors import ShapeError
from tapewright.core.interpreters import ARRAY_EVAL, use_interpreters
from tapewright.core.primitive import kernels_are_wrapped
from tapewright.core.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.user_gradients import conjugate
from tapewright.ops.array.joining import concat
from tapewright.ops.array.shape import broadcast_to, reshape, transpose
from tapewright.ops.linalg.diagonal import embed_diagonal

from .backward import backward_pass, collect, finished, seed_cotangent, source_keys
from .batching import BatchedTensor, BatchInterpreter, NotDiagonal

__all__ = [
    "JacobianPass",
    "check_blocks",
    "examples_first",
    "second_derivatives",
    "side_by_side",
]


class JacobianPass:
    """Backward passes over one tape with many cotangents for one target.

    ``chunk`` bounds the cotangents of a walk, ``limit`` the bytes that it works on.
    """

    def __init__(self, tape, target, key, keys, interpreters, chunk=None, limit=None):
        self.tape, self.target, self.key = tape, target, key
        self.keys, self.interpreters = keys, interpreters
        self.chunk, self.limit = chunk, limit
        self.shape = tuple(target.array.shape)
        self.xp = module_of(target)

    def full(self, sources):
        """For each source ``[target..., source...]``, or None if it does not matter."""
        rank = len(self.shape)
        places = {t: t for t in range(rank)}
        answers = [
            (self.shape + shape, places, shape, range(rank, rank + len(shape)))
            for shape in sources
        ]
        return self._found(answers)

    def by_example(self, source, check):
        """``[batch, target..., source...]`` of each example: the sum over all examples.

        ``check`` makes sure that there is one summand only. Raises: `ShapeError`.
        """
        rank, shape = len(self.shape), self.shape + source[1:]
        places = {t: t for t in range(rank)}
        source_places = [0, *range(rank, len(shape))]
        if check and self.shape[0] > 1:
            try:
                answer = (shape, places, source, source_places)
                return self._found([answer], strict=(0,))[0]
            except NotDiagonal as mixing:
                (full,) = self.full([source])
                check_blocks(full, rank, mixing.op_name)
        del places[0]
        return self._found([(shape, places, source, source_places)])[0]

    def _found(self, answers, strict=()):
        axes = [*answers[0][1]]  # of the target: a cotangent for each of their entries
        explicit = [t for t in axes if self.shape[t] == 0]
        while True:
            given = [_Answer(self, *answer) for answer in answers]
            try:
                self._walk_all(axes, sorted(explicit), given, strict)
                return [answer.result() for answer in given]
            except _TooWide as wide:
                explicit.append(wide.axis)

    def _walk_all(self, axes, explicit, answers, strict):
        """All cotangents: the entries of the ``explicit`` axes in chunks, others at once."""
        sizes = [self.shape[t] for t in explicit]
        count = math.prod(sizes)
        step = count if self.chunk is None else min(self.chunk, count)
        if self.limit is not None and explicit:
            step = min(1, count)  # the first one shows what each costs
        start = 0
        while True:
            picks = ()
            if explicit:
                stop = min(start + step, count)
                picks = np.unravel_index(np.arange(start, stop), sizes)
            meter = None if self.limit is None else _Meter()
            seeds = self._seeds(axes, explicit, picks, strict, meter)
            self._one_walk(seeds, answers, explicit, picks, step >= count)
            if meter is not None and start == 0:
                fit = max(1, int(self.limit // max(meter.most, 1)))
                start, step = start + step, fit
            else:
                start += max(step, 1)
            if start >= count:
                return

    def _one_walk(self, seeds, answers, explicit, picks, alone):
        for answer, g in zip(answers, self._send(seeds)):
            answer.add(g, seeds, explicit, picks, alone)

    def _seeds(self, axes, explicit, picks, strict, meter):
        """The unit cotangents, mapped: ones, but at the picked entries of explicit axes."""
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

    def _send(self, seeds):
        batcher = seeds.owner
        plain = not self.interpreters and not kernels_are_wrapped()
        step = _entrywise_step(batcher) if plain else None
        with use_interpreters((*self.interpreters, batcher)):
            cotangents = {self.key: seeds}
            backward_pass(self.tape, cotangents, self.keys, False, False, step)
            return [collect(cotangents, keys) for keys in self.keys]


def _entrywise_step(batcher):
    """Steps that nobody records, straight on arrays where an op works entry by entry."""

    def step(record, g, cotangents, useful):
        pullback = record.pullback
        if type(g) is not BatchedTensor or not pullback.entrywise:
            return pullback.on_tensors(record, g, cotangents, useful)
        found = {}
        with use_interpreters((ARRAY_EVAL,)):
            pullback.on_arrays(record, g.value.array, found, useful)
        for key, d in found.items():
            old = cotangents.get(key)
            if type(old) is BatchedTensor and old.axes == g.axes:
                d, old = old.value.array + d, None
            made = batcher.made(new_tensor(d), g.axes)
            cotangents[key] = made if old is None else old + made

    return step


# ------------------------------------------------------------------------- within bounds


class _TooWide(Exception):
    """A walk would be spread too far along this axis of the target."""

    def __init__(self, axis):
        self.axis = axis


class _Bounded(BatchInterpreter):
    """A batcher that goes no further than a number of cotangents, or of bytes."""

    __slots__ = ("most", "limit", "meter")

    def __init__(self, sizes, strict, most, limit, meter):
        super().__init__(sizes, strict)
        self.most, self.limit, self.meter = most, limit, meter

    def widen(self, x, t):
        array = x.value.array
        if self.most is not None and array.shape[0] * self.sizes[t] > self.most:
            raise _TooWide(t)
        if self.limit is not None:
            more = array.nbytes * self.sizes[t]
            if self.meter.now + more > self.limit:
                raise _TooWide(t)

    def foresee(self, op, inputs, mapped, attributes, axes, late):
        if self.meter is None or op.infer_rule is None:
            return
        specs = [TensorSpec(x.shape, x.dtype) for x in inputs]
        given = op.infer_rule(*specs, **attributes)
        fronts = [x.value.array.shape[0] for x, m in zip(inputs, mapped) if m]
        count = max(fronts) * (1 if late is None else self.sizes[late])
        for spec in given if isinstance(given, (tuple, list)) else (given,):
            size = math.prod(spec.shape) * spec.dtype.size * count
            if self.meter.now + size > self.limit:
                self._narrow(axes)

    def _narrow(self, axes):
        """Asks for chunks along the longest axis that is spread, if one is."""
        spread = [(n, t) for t, n in enumerate(self.sizes) if n > 1 and axes[t] is None]
        if spread:
            raise _TooWide(max(spread)[1])

    def made(self, value, axes):
        if self.meter is not None:
            self.meter.see(value)
            if self.meter.most > self.limit:
                self._narrow(axes)
        return BatchedTensor(value, self, axes)


class _Meter:
    """The bytes of the values of a walk that are alive, now and at most.

    Values that share memory count once. An op is taken to need as much as it gives once
    more while it works.
    """

    def __init__(self):
        self.now = self.most = 0
        self.seen = {}  # id of a value -> (a weak reference to it, id of its memory)
        self.memory = {}  # id of memory -> [values that use it, bytes]

    def see(self, tensor):
        if id(tensor) in self.seen:
            return
        root = tensor.array
        while isinstance(getattr(root, "base", None), type(root)):
            root = root.base
        name, place = id(tensor), id(root)
        known = self.memory.setdefault(place, [0, root.nbytes])
        if not known[0]:
            self.now += known[1]
        known[0] += 1
        owner = weakref.ref(self)
        gone = weakref.ref(tensor, lambda _: _forget(owner, name))
        self.seen[name] = gone, place
        self.most = max(self.most, self.now + root.nbytes)

    def forget(self, name):
        _, place = self.seen.pop(name)
        known = self.memory[place]
        known[0] -= 1
        if not known[0]:
            self.now -= known[1]
            del self.memory[place]


def _forget(owner, name):
    meter = owner()
    if meter is not None:
        meter.forget(name)


# --------------------------------------------------------------- putting it all together


class _Answer:
    """The Jacobian by one source, put together from what the walks gave.

    ``places``: axis of the target -> axis of the answer; ``source_places``: the same for
    each axis of the source. Two that meet in one place are diagonal there, both of them.
    """

    def __init__(self, walks, shape, places, source, source_places):
        self.walks, self.shape = walks, shape
        self.places, self.source, self.source_places = places, source, source_places
        self.parts = []  # of the answer, one for each chunk
        self.whole = None  # an array to which the chunks are written

    def add(self, g, seeds, explicit, picks, alone):
        """What one walk gave, of the chunk ``picks``; ``alone``: there is no other."""
        if g is None:
            return
        batcher, interpreters = seeds.owner, self.walks.interpreters
        with use_interpreters(interpreters):
            if not (type(g) is BatchedTensor and g.owner is batcher):
                g = batcher.map(batcher.spell_out(g, seeds))
            free = [t for t in self.places if t not in explicit]
            spread = [t for t in free if g.axes[t] is None]
            apart = [  # diagonals of the answer
                (t, g.axes[t])
                for t in free
                if g.axes[t] is not None
                and self.places[t] != self.source_places[g.axes[t]]
            ]
            for t in batcher.strict:
                if t in spread or (t, g.axes[t]) in apart:
                    raise NotDiagonal(None)
            value = g.value if interpreters else g.value.array
            sizes = [batcher.sizes[t] for t in spread]
            count = len(picks[0]) if explicit else 1
            if explicit and spread:  # the chunk in front
                value = _reshaped(value, (*sizes, count, *self.source))
                lead = len(spread)
                order = (lead, *range(lead), *range(lead + 1, len(value.shape)))
                value = _transposed(value, order)
            else:
                value = _reshaped(value, (count, *sizes, *self.source))
            labels = [None, *[self.places[t] for t in spread], *self.source_places]
            if interpreters or (alone and not apart):
                self.parts.append((value, labels, apart, explicit))
            else:
                self._write(value, labels, apart, explicit, picks)

    def result(self):
        """The Jacobian as a tensor, or None."""
        if self.whole is not None:
            return new_tensor(self.whole)
        if not self.parts:
            return None
        value, labels, diagonal, explicit = self.parts[0]
        with use_interpreters(self.walks.interpreters):
            if len(self.parts) > 1:
                value = concat([part for part, *_ in self.parts], axis=0)
            sizes = [self.walks.shape[t] for t in explicit]
            value = _reshaped(value, (*sizes, *value.shape[1:]))
            labels = [*[self.places[t] for t in explicit], *labels[1:]]
            for t, axis in diagonal:
                value = embed_diagonal(value, axis)
                labels.insert(0, self.places[t])
            order = [labels.index(place) for place in sorted(labels)]
            value = _reshaped(_transposed(value, order), self.shape)
        return value if self.walks.interpreters else new_tensor(value)

    def _write(self, piece, labels, diagonal, explicit, picks):
        """Puts a piece where it belongs."""
        xp = self.walks.xp
        if self.whole is None:
            make = xp.zeros if diagonal else xp.empty
            self.whole = make(self.shape, piece.dtype)
        # Indexed axes in front, of the answer and of the piece: chunk, diagonals, others.
        homes, index, own, ndim = [], [], [], 1 + len(diagonal)
        for t, at in zip(explicit, picks):
            homes.append(self.places[t])
            index.append(xp.asarray(at).reshape(-1, *(1,) * (ndim - 1)))
        for i, (t, axis) in enumerate(diagonal, 1):
            at = xp.arange(self.walks.shape[t])
            at = at.reshape(-1, *(1,) * (ndim - 1 - i))
            homes += [self.places[t], self.source_places[axis]]
            index += [at, at]
            own.append(piece.ndim + axis)
        rest = [a for a in range(1, piece.ndim) if a not in own]
        homes += [labels[a] for a in rest]
        piece = piece.transpose(0, *own, *rest)
        self.whole.transpose(homes)[tuple(index)] = piece if explicit else piece[0]


def _reshaped(value, shape):
    """A tensor, by the op; or an array."""
    return reshape(value, shape) if isinstance(value, Tensor) else value.reshape(shape)


def _transposed(value, order):
    if isinstance(value, Tensor):
        return transpose(value, order)
    return value.transpose(order)


# ------------------------------------------------------------------ second derivatives


def second_derivatives(tape, target, key, sources, own, interpreters, chunk, limit):
    """``blocks[i][j]``: the derivative by source j of the gradient by source i, or None.

    The walk to the gradient is recorded in a copy of the tape, which then holds all
    that a Jacobian of the gradient needs. Of two blocks that are the transpose of each
    other one is computed, that with the shorter gradient. ``key`` is the target's, ``own``
    are those of each source: see `walk.ends`.
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
        found = [collect(cotangents, keys) for keys in own]
        found = [
            g if g is None else convert_to_tensor(finished(g, False)) for g in found
        ]
    keys = [source_keys(both, s) or k for s, k in zip(sources, own)]
    shapes = [tuple(s.shape) for s in sources]
    sizes = [math.prod(shape) for shape in shapes]
    real = all([s.dtype.is_floating for s in sources])
    for i, g in enumerate(found):
        columns = [
            j
            for j, other in enumerate(found)
            if g is not None
            and other is not None
            and (not real or (sizes[i], i) <= (sizes[j], j))
        ]
        if not columns:
            continue
        row = [None] * len(columns)
        if g.key in both.known:
            walks = JacobianPass(
                both, g, g.key, [keys[j] for j in columns], interpreters, chunk, limit
            )
            row = walks.full([shapes[j] for j in columns])
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
    """Blocks of second derivatives as one matrix; zeros for those that are None."""
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


# ----------------------------------------------------------------- examples on their own


def check_blocks(full, target_rank, op_name=None):
    """Raises `ShapeError` unless the full Jacobian is zero between different examples."""
    if full is None:
        return
    array = devices.to_numpy(full.array)
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


def examples_first(j, target_shape, source_shape):
    """``[entries, batch, source...]`` to ``[batch, target..., source...]``."""
    j = transpose(j, (1, 0, *range(2, j.array.ndim)))
    return reshape(j, (*target_shape, *source_shape[1:]))
