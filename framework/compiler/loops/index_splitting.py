"""Split loops at the bounds of their accesses (index set splitting).

In each part of a loop, an index is either always within the bounds of a load, or never,
so that the part has neither comparisons nor branches, and its loads are vectors. A loop
with bounds for every second index is unrolled by two. Loops whose code would become long
keep their comparisons.

    for i in 8:                         for i in 1:
      y[i] = x[i - 1] if i >= 1 else 0    y[i] = 0
                                        for i in range(1, 8):
                                          y[i] = x[i - 1]
"""

import itertools
import math

from .statements import (
    Access,
    Axis,
    Compute,
    Load,
    Local,
    Loop,
    Scalar,
    Select,
    Span,
    scalars_read,
    statements_in,
)

# Statements to which a body may grow: more take long to compile. It may also have twice
# as many as before, so that joins of any number of arrays are split into their parts.
MOST = 400


def split_indices(body):
    """Return statements in which loops are split, the inner ones first."""
    bounds = _bounds_in(body)
    for axis in _axes_inside_out(body) if bounds else ():
        if axis not in bounds:
            continue
        parts = ranges_between(range(axis.extent), bounds[axis])
        parts = [*itertools.islice(parts, MOST + 1)]
        is_unrolled = max([each.step for each in parts]) > 1
        if sum([each.step for each in parts]) > MOST:
            continue
        if is_unrolled and axis in _axes_of_strips(body):
            continue
        made = _drop_unused(_Splitter(axis, parts).statements(body, {}, {}))
        if _size(made) <= max(MOST, 2 * _size(body)):
            body = made
    return body


def reads_before_writes(body, operand, out):
    """Return whether split loops read each entry of an operand before they write there.

    ``out`` has its memory. Each iteration reads only entries that it writes afterwards.
    """
    for piece in _pieces(split_indices(body)):
        reads, writes = set(), set()
        for each in piece:
            access = getattr(each, "access", None)
            if access is None or access.array not in (operand, out):
                continue
            if access.array is operand and writes or access.bounds:
                return False
            entry = access.offset, frozenset([p for p in access.strides if p[1]])
            (reads if access.array is operand else writes).add(entry)
        if not reads <= writes:
            return False
    return True


class _Part:
    """The indices of an axis in a part of its loop.

    ``indices`` is a range. Where it has steps, the loop runs over another ``axis``, of
    the positions in the range.
    """

    def __init__(self, axis, indices):
        self.axis, self.indices = axis, indices

    def is_within(self, bound):
        """Return whether the indices are in a bound of the loop: all of them, or none."""
        return self.indices[0] in bound

    def term(self, stride, bound=None):
        """Return the offset and the stride of an index, counted from the start of a bound."""
        start, step = (0, 1) if bound is None else (bound.start, bound.step)
        if self.indices.step > 1:
            first = (self.indices[0] - start) // step
            return first * stride, self.indices.step // step * stride
        if step > 1:  # there is a single index
            return (self.indices[0] - start) // step * stride, 0
        return -start * stride, stride


class _Splitter:
    """Splits the loops over an axis into parts, see `ranges_between`."""

    def __init__(self, axis, parts):
        self.axis, self.parts = axis, parts

    def statements(self, body, parts, known):
        """Return a body for these parts of the axes; ``known`` has new scalars for old."""
        made, known = [], dict(known)
        for each in body:
            made += (
                self.loops(each, parts, known)
                if type(each) is Loop
                else self.statement(each, parts, known)
            )
        return made

    def loops(self, loop, parts, known):
        """Return the parts of a loop."""
        axis = loop.axis
        if loop.span is Span.STRIPS or axis is not self.axis:
            return [loop._replace(body=self.statements(loop.body, parts, known))]
        made = []
        for indices in self.parts:
            count, step = len(indices), indices.step
            if step == 1:
                inner = parts | {axis: _Part(axis, indices)}
                body = self.statements(loop.body, inner, known)
                part = None if count == axis.extent else indices
                made.append(loop._replace(body=body, part=part))
                continue
            turns, phases = Axis(f"{axis.name}_{step}", count), []
            for first in range(indices.start, indices.start + step):
                own = range(first, indices[-1] + first - indices.start + 1, step)
                inner = parts | {axis: _Part(turns, own)}
                phases.append(self.statements(loop.body, inner, known))
            made.append(Loop(turns, Span.WHOLE, 0, _jam(phases)))
        return made

    def statement(self, each, parts, known):
        """Return the statements in place of one; note the new scalar for its result."""
        changes = {}
        if hasattr(each, "access"):
            access = self.access(each.access, parts)
            if access is None:  # a load out of bounds
                known[each.out] = Scalar(None, each.out.dtype, each.out.dtype.type(0))
                return []
            changes["access"] = access
        if hasattr(each, "args"):
            changes["args"] = tuple([known.get(a, a) for a in each.args])
        if hasattr(each, "value"):
            changes["value"] = known.get(each.value, each.value)
        if type(each) is Select:
            left, inside = self.left(each.bounds, parts)
            if not left or not inside:
                known[each.out] = changes["args"][0 if inside else 1]
                return []
            changes["bounds"] = left
        if type(each) is Compute and each.function == "where":
            condition, *args = changes["args"]
            if condition.value is not None:  # a selection that is now known
                known[each.out] = args[0 if condition.value else 1]
                return []
        if type(each) in (Load, Compute, Select):
            out = Scalar(each.out.name, each.out.dtype)
            known[each.out] = changes["out"] = out
        return [each._replace(**changes)]

    def left(self, bounds, parts):
        """Return the bounds on other axes, and whether those on these axes hold."""
        left = tuple([pair for pair in bounds if pair[0] not in parts])
        known = [pair for pair in bounds if pair[0] in parts]
        return left, all([parts[axis].is_within(bound) for axis, bound in known])

    def access(self, access, parts):
        """Return an access for these parts of the axes; None if it is out of bounds."""
        left, inside = self.left(access.bounds, parts)
        if not inside:
            return None
        offset, pairs, bounds = access.offset, [], dict(access.bounds)
        for axis, stride in access.strides:
            if axis in parts:
                start, stride = parts[axis].term(stride, bounds.get(axis))
                offset += start
                axis = parts[axis].axis
            pairs.append((axis, stride))
        return Access(access.array, offset, tuple(pairs), left)


def _jam(bodies):
    """Return several bodies as one, with common inner loops (unroll and jam).

    All loads come first: those in common stay in registers, and what is stored may
    overwrite what is loaded. Bodies with local arrays, which each iteration overwrites,
    follow each other.
    """
    cut = [_cut_at_loops(body) for body in bodies]
    heads = {tuple([loop._replace(body=None) for loop in loops]) for _, loops in cut}
    if len(heads) > 1 or any(map(_uses_locals, bodies)):
        return [each for body in bodies for each in body]
    made = []
    for i in range(len(cut[0][0])):
        made += _loads_first([each for pieces, _ in cut for each in pieces[i]])
        inner = [loops[i] for _, loops in cut if i < len(loops)]
        if inner:
            made.append(inner[0]._replace(body=_jam([x.body for x in inner])))
    return made


def _uses_locals(body):
    arrays = [
        each.access.array for _, each in statements_in(body) if hasattr(each, "access")
    ]
    return any([type(array) is Local for array in arrays])


def _loads_first(piece):
    """Return statements in an order where loads come before stores to other arrays."""
    stored = {x.access.array for x in piece if type(x) not in (Load, Compute, Select)}
    is_first = [type(x) is Load and x.access.array not in stored for x in piece]
    order = sorted(range(len(piece)), key=lambda i: not is_first[i])
    return [piece[i] for i in order]


def _pieces(body):
    """Yield the statements between loops, wherever they are."""
    pieces, loops = _cut_at_loops(body)
    yield from pieces
    for loop in loops:
        yield from _pieces(loop.body)


def _cut_at_loops(body):
    """Return the statements in front of, between and behind loops, and the loops."""
    pieces, loops = [[]], []
    for each in body:
        if type(each) is Loop:
            loops.append(each)
            pieces.append([])
        else:
            pieces[-1].append(each)
    return pieces, loops


def ranges_between(indices, bounds):
    """Yield ranges of indices; all steps of one are in a bound, or out of it."""
    low, high = indices.start, indices.stop
    cuts, step = {low, high}, math.lcm(*[bound.step for bound in bounds])
    for bound in bounds:
        cuts |= {bound.start - bound.step + 1, bound[-1] + bound.step}
    cuts = sorted([cut for cut in cuts if low <= cut <= high])
    for start, stop in zip(cuts, cuts[1:]):
        turns = (stop - start) // step
        if step == 1:
            yield range(start, stop)
            continue
        if turns:
            yield range(start, start + turns * step, step)
        for index in range(start + turns * step, stop):
            yield range(index, index + 1)


def _bounds_in(body):
    """Return the bounds on each axis, in the order of the statements."""
    by_axis = {}
    for _, each in statements_in(body):
        access = getattr(each, "access", None)
        bounds = getattr(each, "bounds", ()) if access is None else access.bounds
        for axis, bound in bounds:
            by_axis.setdefault(axis, {})[bound] = None
    return {axis: list(each) for axis, each in by_axis.items()}


def _size(body):
    """Return the number of statements, without loops."""
    return len([*statements_in(body)])


def _axes_of_strips(body):
    """Return the axes of loops over a strip."""
    loops = [loop for path, _ in statements_in(body) for loop in path]
    return {loop.axis for loop in loops if loop.span is Span.STRIP}


def _axes_inside_out(body):
    """Return the axes of loops, the innermost ones first."""
    depths = {}
    for path, _ in statements_in(body):
        for depth, loop in enumerate(path):
            if loop.span is not Span.STRIPS:
                depths[loop.axis] = max(depth, depths.get(loop.axis, 0))
    return sorted(depths, key=depths.get, reverse=True)


def _drop_unused(body, used=None):
    """Return statements without loads and computations whose results nothing reads."""
    used, kept = set() if used is None else used, []
    for each in reversed(body):
        if type(each) is Loop:
            each = each._replace(body=_drop_unused(each.body, used))
            kept += [each] if each.body else []
        elif type(each) not in (Load, Compute, Select) or each.out in used:
            used.update(scalars_read(each))
            kept.append(each)
    return kept[::-1]
