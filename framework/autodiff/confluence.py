"""Gradients through factorizations whose values coincide, from second derivatives.

Where eigenvalues or singular values coincide, the VJP rule of `eigh` or `svd` lacks a
part of the gradient: the limit of a quotient, which is a derivative of the cotangents
of the values by the vectors (see `ops.linalg.confluent`). A tape contains everything
needed: the backward pass up to the factorization is recorded in a copy of the tape, and
differentiated. None of this runs unless values on the tape do coincide.
"""

import math
from functools import partial

import numpy as np

from tapewright.core import hooks
from tapewright.core.dtypes import finfo
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.op_definition.user_gradients import conjugate
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tape import Tape
from tapewright.core.tensor import (
    IndexedSlices,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.ops.array.conversion import real
from tapewright.ops.array.creation import ones_like, zeros_like
from tapewright.ops.array.gather import gather_nd, gather_p, scatter_rows
from tapewright.ops.array.indexed_slices import dense
from tapewright.ops.array.joining import concat, stack
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.confluent import (
    LIMITS,
    NO_DERIVATIVE,
    NO_ORDER,
    any_coincide,
    free_of_turns,
)
from tapewright.ops.math.reduction import reduce_sum

from .backward import (
    backward_pass,
    reachable,
    seed_cotangent,
    sum_cotangents,
    to_gradient,
)
from .jacobian import JacobianPass

# The formula of the part is right beside coinciding values up to the square of their
# distance, so that it may be differentiated once.
MOST = 2


def coincide(tape):
    """Return whether values of a factorization on the tape are known to coincide."""
    return any([_coinciding(out) is not None for _, _, out, _ in tape.confluent])


def _coinciding(outputs):
    """Return the flat positions in the batch at which values coincide, or None.

    A singular value of 0 also coincides, with its negative.
    """
    array = outputs[0].array
    if not devices.is_array(array) or not array.size:
        return None
    array = devices.to_numpy(array)
    least = 4.0 * array.shape[-1] * float(finfo(array.dtype).eps)
    least = least * np.abs(array).max(-1, keepdims=True)
    near = (np.abs(np.diff(array)) <= least).any(-1)
    if len(outputs) == 3:
        near |= (np.abs(array) <= least).any(-1)
    return np.flatnonzero(near) if near.any() else None


def pull_back(tape, cotangents, keys, on_arrays, release, interpreters):
    """Run `backward_pass` after adding the parts for coinciding values to the cotangents."""
    known = all([devices.is_array(out[0].array) for _, _, out, _ in tape.confluent])
    inputs = [(op, x.key) for op, x, _, _ in tape.confluent]
    unknown = "values" if len(set(inputs)) == len(inputs) else "unknown"
    adds = coincide(tape) if known else _can_be_traced(tape, interpreters)
    token = LIMITS.set("added" if adds else unknown)
    try:
        if adds and known:
            _add_parts(tape, cotangents, on_arrays, interpreters)
        elif adds:
            _add_traced_parts(tape, cotangents, interpreters)
        backward_pass(tape, cotangents, keys, on_arrays, release)
    finally:
        LIMITS.reset(token)


def second_derivatives(tape, target, key, sources, own, interpreters):
    """Compute `jacobian.second_derivatives` row by row, each with its parts."""
    both, shapes = tape.copied(), [tuple(s.shape) for s in sources]
    inside = (*interpreters, both)
    blocks = []
    with use_interpreters(inside):
        cotangents = {}
        seed_cotangent(cotangents, key, target, None, False)
        pull_back(both, cotangents, own, False, False, inside)
        gradients = [sum_cotangents(cotangents, keys) for keys in own]
        gradients = [
            g if g is None else convert_to_tensor(to_gradient(g, False))
            for g in gradients
        ]
    for g, shape in zip(gradients, shapes):
        rows = []
        for unit in _units(g) if g is not None and g.key in both.known else ():
            seeds = {g.key: unit}
            with use_interpreters(interpreters):
                pull_back(both, seeds, own, False, False, interpreters)
                rows.append([sum_cotangents(seeds, keys) for keys in own])
        columns = zip(*rows) if rows else [(None,)] * len(sources)
        blocks.append(
            [
                None
                if any([x is None for x in column])
                else reshape(
                    stack(
                        [convert_to_tensor(to_gradient(x, False)) for x in column], 0
                    ),
                    (*shape, *other),
                )
                for column, other in zip(columns, shapes)
            ]
        )
    return blocks


def _units(x):
    size, xp = math.prod(x.shape), module_of(x)
    for unit in np.eye(size, dtype=x.array.dtype):
        yield new_tensor(xp.asarray(unit.reshape(tuple(x.shape))))


def _add_parts(tape, cotangents, on_arrays, interpreters):
    """Add the missing part to the cotangent of the input of each factorization."""
    pass_ = _Pass(tape.copied(), interpreters)
    with use_interpreters(pass_.interpreters):
        seeds = {
            key: new_tensor(g) if on_arrays else g for key, g in cotangents.items()
        }
        before = dict(seeds)
        pass_.add_parts(seeds, 0, 0)
    for key, g in seeds.items():
        if g is not before.get(key):
            cotangents[key] = g.array if on_arrays else g


def _can_be_traced(tape, interpreters):
    """Return whether a trace can include the parts, which each replay adds if needed.

    There must be no outer tape (a Jacobian could not map a branch), all sizes must be
    known, and no factorization may depend on another.
    """
    if interpreters != (active_tracer(),):
        return False
    outputs = [out for _, _, out, _ in tape.confluent]
    if any([has_symbolic_shape(x.shape) for each in outputs for x in each]):
        return False
    behind = reachable(tape.records, {x.key for each in outputs for x in each})
    return all([x.key not in behind for _, x, _, _ in tape.confluent])


def _add_traced_parts(tape, cotangents, interpreters):
    """Trace a branch that does the work of `_add_parts` if values coincide."""
    # The parts of one factorization do not enter those of another: the order is free.
    for i, ((op, x, outputs, _), *_) in enumerate(
        _Pass(tape, interpreters).factorizations
    ):
        parts = _Pass(tape.copied(), interpreters).traced_parts
        choices = partial(parts, cotangents, i), lambda: [None]
        (part,) = hooks.branch.call(f"{op.name}_limits", any_coincide(outputs), choices)
        if part is not None:
            old = cotangents.get(x.key)
            cotangents[x.key] = part if old is None else old + part


class _Pass:
    """Backward pass that ``tape``, a copy, records to differentiate it."""

    def __init__(self, tape, interpreters):
        self.tape, self.interpreters = tape, (*interpreters, tape)
        self.outer = [each for each in interpreters if isinstance(each, Tape)]
        # Calls with the same input, which have the same vectors, count as one.
        calls = {}
        for entry in tape.confluent:
            calls.setdefault((entry[0], entry[1].key), []).append(entry)
        self.factorizations = [*calls.values()]
        self.picks = [_coinciding(entries[0][2]) for entries in self.factorizations]

    def add_parts(self, seeds, first, depth):
        """Add to ``seeds`` the parts of the factorizations from ``first`` on.

        ``depth`` is the number of derivatives already taken in this pass.
        """
        # A later factorization first: its part belongs to the cotangents of the others.
        for i in range(len(self.factorizations) - 1, first - 1, -1):
            op, x, outputs, _ = self.factorizations[i][0]
            if self.picks[i] is None:
                continue
            cotangent, vectors = self._cotangents(seeds, self._outputs(i))
            if vectors is None:
                continue
            slopes = self._slopes(cotangent, vectors, i, depth)
            if slopes is None:
                continue
            _, rule, _ = op.confluent_rules
            self._count(i, depth)
            part = rule(outputs, slopes)
            seeds[x.key] = seeds[x.key] + part if x.key in seeds else part

    def traced_parts(self, cotangents, i):
        """Return the part of a factorization in a list; None for results without one.

        Derivatives are taken in a loop: nodes with regions cannot be batched.
        """
        self.interpreters = (*active_interpreters(), self.tape)
        with use_interpreters(self.interpreters):
            seeds = dict(cotangents)
            cotangent, vectors = self._cotangents(seeds, self._outputs(i))
            if vectors is None:
                return [None]
            op, x, outputs, _ = self.factorizations[i][0]
            turn, rule, names = op.confluent_rules
            turns = turn(outputs, vectors)
            combined = reshape(_combination(turns), ())
            if combined.key not in self.tape.known:
                return [None]
            moves = cotangent is not None and cotangent.key in self.tape.known
            first = self._pulled_back(combined, ones_like(combined), i)
            turns += turn(outputs, first)
            sizes, part = [*vectors, *first], zeros_like(x)
            if moves:
                slopes = self._traced_slopes(cotangent, outputs[0], i)
                sizes, part = [*sizes, *slopes], rule(outputs, slopes)
            return [free_of_turns(part, turns, sizes, op.name, names)]

    def _traced_slopes(self, cotangent, values, i):
        """Return the derivatives of the value cotangents by the vectors, as `_slopes`."""
        shape = tuple(values.shape)
        count, batch = shape[-1], math.prod(shape[:-1])

        def slopes(row):
            unit, at = row
            jacobians = self._pulled_back(cotangent, reshape(unit, shape), i)
            return [reshape(v, (batch, *tuple(v.shape)[-2:]))[at] for v in jacobians]

        xp = devices.current_module()
        units = xp.eye(batch * count, dtype=cotangent.array.dtype)
        owners = xp.arange(batch * count) // count
        rows = hooks.map_fn.call(slopes, (new_tensor(units), new_tensor(owners)))
        return [reshape(x, (*shape, *tuple(x.shape)[-2:])) for x in rows]

    def _pulled_back(self, target, seed, i):
        """Return the cotangents of each kind of vectors of a factorization."""
        vectors = self._outputs(i)[1:]
        keys, seeds = [[v.key for v in each] for each in vectors], {target.key: seed}
        backward_pass(self.tape, seeds, keys, False, False)
        totals = [_total(seeds, each) for each in keys]
        return [
            zeros_like(v) if g is None else conjugate(g)
            for (v, *_), g in zip(vectors, totals)
        ]

    def _outputs(self, i):
        """Return the values of all calls, the first kind of vectors of all calls, ..."""
        return list(zip(*[outputs for _, _, outputs, _ in self.factorizations[i]]))

    def _cotangents(self, seeds, outputs):
        """Return the cotangents of values and vectors, None for outputs without one."""
        cotangents, keys = dict(seeds), [[x.key for x in each] for each in outputs]
        backward_pass(self.tape, cotangents, keys, False, False)
        values, *vectors = [_total(cotangents, each) for each in keys]
        if all([g is None for g in vectors]):
            return values, None
        return values, [
            zeros_like(v) if g is None else conjugate(g)
            for (v, *_), g in zip(outputs[1:], vectors)
        ]

    def _count(self, i, depth):
        order = max([entry[3] for entry in self.factorizations[i]]) + depth
        if order >= MOST:
            raise InvalidArgumentError(
                NO_ORDER.format(who=self.factorizations[i][0][0].name)
            )
        same = {id(outputs) for _, _, outputs, _ in self.factorizations[i]}
        for each in self.outer:
            for entry in each.confluent:
                if id(entry[2]) in same:
                    entry[3] = max(entry[3], order + 1)

    def _slopes(self, cotangent, cotangents, i, depth):
        """Return derivatives of the value cotangents by the vectors; None without any.

        Shapes:
            ``[..., n, m, k]`` for each kind of vectors.

        Raises:
            ValueError: If the result depends on the basis of coinciding values: a part
                that must be 0 is not, or does not stay 0 as the vectors rotate.
        """
        op, _, outputs, _ = self.factorizations[i][0]
        values, *vectors = outputs
        turn, _, _ = op.confluent_rules
        shape = tuple(values.shape)
        count, batch = shape[-1], math.prod(shape[:-1])
        rows = (self.picks[i][:, None] * count + np.arange(count)).reshape(-1)
        moves = cotangent is not None and cotangent.key in self.tape.known
        turns = turn(outputs, cotangents)
        entries = [reshape(_combination(turns), (1,))]
        if moves:
            entries.append(gather_p(reshape(cotangent, (batch * count,)), rows, 0))
        entries = concat(entries, axis=0)
        if entries.key not in self.tape.known:
            return None
        derivatives = self._derivatives(entries, i, depth)
        turns += turn(outputs, [each[0] for each in derivatives])
        self._check(op, turns, [*cotangents, *derivatives])
        if not moves:
            return None
        own = np.stack([np.arange(rows.size), rows // count], -1)
        slopes = []
        for v, each in zip(vectors, derivatives):
            inner = tuple(v.shape)[-2:]
            each = reshape(each[1:], (rows.size, batch, *inner))
            each = scatter_rows(
                gather_nd(each, own), rows, shape=(batch * count, *inner), axis=0
            )
            slopes.append(reshape(each, (*shape, *inner)))
        return slopes

    def _check(self, op, turns, sizes):
        size = max([float(np.abs(_numbers(x)).max(initial=0)) for x in sizes])
        for x in turns:
            array = _numbers(x)
            limit = float(finfo(array.dtype).eps) ** 0.5 * size
            if (np.abs(array) > limit).any():
                *_, values = op.confluent_rules
                raise InvalidArgumentError(
                    NO_DERIVATIVE.format(who=op.name, values=values)
                )

    def _derivatives(self, entries, i, depth):
        """Return the Jacobians of a vector of entries by the vectors of a factorization."""
        vectors = [v for each in self._outputs(i)[1:] for v in each]
        keys = [(v.key,) for v in vectors]
        if all([picks is None for picks in self.picks[i + 1 :]]):
            jacobians = JacobianPass(
                self.tape, entries, entries.key, keys, self.interpreters
            ).full([tuple(v.shape) for v in vectors])
        else:
            jacobians = self._row_by_row(entries, keys, i, depth)
        calls, sums = len(self.factorizations[i]), []
        for k in range(0, len(vectors), calls):
            parts = [conjugate(x) for x in jacobians[k : k + calls] if x is not None]
            shape = (entries.shape[0], *vectors[k].shape)
            zeros = module_of(vectors[k]).zeros(shape, vectors[k].array.dtype)
            sums.append(sum(parts[1:], parts[0]) if parts else new_tensor(zeros))
        return sums

    def _row_by_row(self, entries, keys, i, depth):
        """Compute `JacobianPass` with the parts of the factorizations behind ``i``."""
        rows = []
        for unit in _units(entries):
            seeds = {entries.key: unit}
            self.add_parts(seeds, i + 1, depth + 1)
            backward_pass(self.tape, seeds, keys, False, False)
            rows.append([_total(seeds, each) for each in keys])
        return [
            None if any([x is None for x in column]) else stack(list(column), 0)
            for column in zip(*rows)
        ]


def _total(cotangents, keys):
    total = sum_cotangents(cotangents, keys)
    return dense(total) if isinstance(total, IndexedSlices) else total


def _combination(parts):
    """Return a sum of all entries with irregular weights, real and imaginary."""
    total, random = 0.0, np.random.default_rng(0)
    for part in parts:
        xp, dtype = module_of(part), part.array.dtype
        weights = random.normal(size=(2, *part.shape))
        weights = weights[0] + 1j * weights[1] if dtype.kind == "c" else weights[0]
        weights = new_tensor(xp.asarray(weights.astype(dtype)))
        total = reduce_sum(real(part * weights)) + total
    return total


def _numbers(x):
    return devices.to_numpy(x.array)
