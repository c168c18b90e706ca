"""Traces that together serve all sizes and ranks that a signature allows.

A trace for unknown sizes depends on conditions on them (see `core.shapes.guards`), for example
that a batch is not of size 1, because the code checks it. In the process that traced a
function, other sizes are traced at their first call; a file must contain them
beforehand. So sizes are tried out, and for sizes that no trace serves another trace is
made, with that size fixed. If ranks are unknown and one trace cannot serve all, there
is one for each. Special sizes, above all 1, are tried for low ranks first: `MANY_SIZES`
limits the traces for them.
"""

import itertools

from tapewright.core.errors import TracingError
from tapewright.core.messages.source_lines import line_of_error
from tapewright.core.shapes.symbolic_dim import DimSymbol, NeedsSize

from ..tracing.custom_calls import CustomCall
from .specialization import (
    Specializations,
    Trace,
    first_bound,
    is_open,
    sizes_of,
    with_ranks,
)

RANKS = 8  # the highest one that is tried, where ranks are unknown
MANY_RANKS = 64  # combinations of ranks
MANY_TRACES = 16  # are sought for one combination of ranks, besides those for ones
MANY_SIZES = 256  # traces for special sizes, of all ranks together
FEW_AXES = 8  # of which all sets are tried
MANY_MISSES = 8  # sets for which there is no trace, before the rest is given up
TRIED = (1, 0, 2, 3, 4, 5, 7, 8)  # sizes
GENERIC = (1009, 1103, 1201, 1301, 1409, 1511, 1601, 1709)


def reason_of(error):
    """Return the text of an error of a trace, with the user's line and its kind."""
    if isinstance(error, NoTrace):
        return str(error)
    text, line = str(error), line_of_error(error)
    if not isinstance(error, (TypeError, ValueError, NotImplementedError)):
        text = f"{type(error).__name__}: {text}"
    own = f"{line}: " if line is not None and line not in text else ""
    return f"{own}{text}"


class NoTrace(TracingError):
    """No trace serves any sizes that a signature allows."""


def covering_traces(concrete, shapes, retrace, gradients=True):
    """Return ``(traces, refusals)`` for all that a signature with these shapes allows.

    ``concrete`` is an existing trace, or None; ``retrace(shapes)`` makes another one,
    with formulas or numbers for sizes; ``gradients`` says whether custom gradients must
    be traced as well. ``refusals`` are pairs of ranks and the reason why they cannot be
    served.

    Raises:
        NoTrace: If no trace can be made.
    """
    family = None if concrete is None else concrete.specializations
    if family is not None and family.refusals is not None:  # it was loaded
        return family.traces, family.refusals
    if not is_open(shapes):
        if concrete is None:
            concrete = retrace(shapes)
        return [Trace(shapes, concrete)], []
    return _Coverage(shapes, retrace, family, gradients).collect()


class _Coverage:
    """A search for sizes that no trace serves yet."""

    def __init__(self, shapes, retrace, family, gradients):
        self.shapes, self.retrace = tuple(shapes), retrace
        self.gradients = gradients
        self.traces, self.refusals, self.error = [], [], None
        self.called = family  # that of the function, if it was called
        self.families, self.taken = {}, set()
        self.most = MANY_SIZES  # traces

    def collect(self):
        self.add(self.shapes)
        if None in self.shapes:
            patterns = [self.add_ranks(ranks) for ranks in _ranks(self.shapes)]
            self.most = len(self.traces) + MANY_SIZES
            for pattern in sorted(patterns, key=lambda p: max(map(len, p))):
                self.fill(pattern)
        else:
            self.fill(self.shapes)
        if not self.traces:
            self.add_fixed()
        if not self.traces:
            raise NoTrace(self._reason()) from self.error
        return self.traces, self.refusals

    def _reason(self):
        text = reason_of(self.error)
        if isinstance(self.error, NeedsSize):
            text += (
                ". Such a function can be saved for the shapes that it was called with: "
                "call it before saving"
            )
        if self.refusals:  # what one rank has against it says more than what all have
            ranks, reason = self.refusals[-1]
            text += f". For the ranks {ranks}: {reason}"
        return text

    def serves(self, shapes):
        return any(trace.fits(shapes) for trace in self.traces)

    # --- adding traces

    def add(self, pattern, example=None):
        """Add traces for a pattern and its example shapes; return whether any is new."""
        if pattern in self.families:
            return False
        family = self.families[pattern] = self._family(pattern)
        if not is_open(pattern):
            return self._add_plain(pattern)
        if not family.traces:
            sizes = None if example is None else sizes_of(pattern, example)
            self._note(family.explore(sizes))
        return self._take(pattern)

    def _family(self, pattern):
        known = self.called
        if known is not None and known.shapes == pattern:
            return known
        return Specializations(self.retrace, pattern)

    def _add_plain(self, pattern):
        try:
            concrete = self.retrace(pattern)
            self._check_gradients(concrete)
        except Exception as error:
            self._note(error)
            return False
        self.traces.append(Trace(pattern, concrete))
        return True

    def _take(self, pattern):
        """Add the traces of a pattern's family, except those without gradients."""
        new = False
        for trace in self.families[pattern].traces:
            if trace in self.taken:
                continue
            self.taken.add(trace)
            trace.guards.closed = False  # what gradients assume is noted, too
            try:
                self._check_gradients(trace.concrete)
            except Exception as error:
                self._note(error)
                continue
            finally:
                trace.guards.closed = True
            self.traces.append(trace)
            new = True
        return new

    def _check_gradients(self, concrete):
        for node in concrete.graph.nodes if self.gradients else ():
            if type(node) is not CustomCall:
                continue
            try:
                node.backward()
            except NeedsSize:
                raise
            except Exception as error:
                raise TracingError(
                    f"{node.line}: the gradient function of {node.title} cannot be traced: "
                    f"{reason_of(error)}"
                ) from error

    def _note(self, error):
        self.error = self.error or error

    def add_ranks(self, ranks):
        """Add a trace for these ranks, unless one exists; return their pattern."""
        pattern = with_ranks(self.shapes, ranks)
        if first_bound(self.traces, _example(pattern))[0] is None:
            error, self.error = self.error, None
            if not self.add(pattern):
                self.refusals.append((list(ranks), reason_of(self.error)))
            self.error = error or self.error
        return pattern

    def fill(self, pattern):
        """Add traces, one by one, for tried sizes that are not served yet."""
        base = self.example(pattern)
        if not self.serves(base):
            return  # the code needs all sizes as numbers
        count, ahead, seen = 0, list(_tried(pattern, base)), set()
        while ahead and count < MANY_TRACES and len(self.traces) < self.most:
            axes, n = ahead.pop(0)
            if (axes, n) in seen:
                continue
            seen.add((axes, n))
            narrowed, example = _fixed(pattern, axes, n), _fixed(base, axes, n)
            if self.serves(example):
                continue
            before, count = len(self.traces), count + 1
            if n > 1 and pattern in self.families:  # one of many such sizes, it may be
                self.families[pattern].explore(sizes_of(pattern, example))
                self._take(pattern)
            if not self.serves(example):
                self.add(narrowed, example)
            ahead = [*self.borders(pattern, before), *ahead]
        self.fill_ones(pattern, base)

    def fill_ones(self, pattern, base):
        """Add traces for size 1 on several axes, since inputs broadcast."""
        axes = _open_axes(pattern)
        free = [axis for axis in axes if self.serves(_fixed(base, (axis,), 1))]
        misses = 0
        for ones in _several(free):
            example = _fixed(base, ones, 1)
            if misses == MANY_MISSES or len(self.traces) >= self.most:
                return
            if not self.serves(example):
                self.add(_fixed(pattern, ones, 1), example)
                misses += not self.serves(example)

    def example(self, pattern):
        """Return shapes of a pattern, if possible shapes that a trace serves."""
        for trace in self.traces:
            if trace.pattern == pattern and trace.guards is not None:
                known = trace.guards.examples
                return tuple([
                    tuple([known[i, a] if n is None else n for a, n in enumerate(shape)])
                    for i, shape in enumerate(pattern)
                ])  # fmt: skip
        return _example(pattern)

    def borders(self, pattern, start):
        """Return the sizes at which conditions of these traces change: ``(axes, size)``."""
        borders = []
        for trace in self.traces[start:]:
            if trace.pattern != pattern:
                continue
            for relation, form in trace.guards.conditions:
                if relation == "shape" or form[0] != "poly":
                    continue
                terms = dict(form[1])
                constant = terms.pop((), 0)
                if len(terms) != 1:
                    continue
                ((monomial, c),) = terms.items()
                if len(monomial) == 1 and type(monomial[0]) is DimSymbol:
                    at, axis = -constant // c, ((*monomial[0],),)
                    borders += [(axis, n) for n in (at - 1, at, at + 1) if n >= 0]
        return borders

    def add_fixed(self):
        """Add the traces for the shapes with which the function was called."""
        for trace in [] if self.called is None else self.called.fixed_traces():
            if all([trace.pattern != other.pattern for other in self.traces]):
                self.traces.append(trace)


def _ranks(shapes):
    """Return the combinations of ranks that are tried."""
    count = sum(s is None for s in shapes)
    highest = RANKS
    while highest and (highest + 1) ** count > MANY_RANKS:
        highest -= 1
    choices = [range(highest + 1) if s is None else [len(s)] for s in shapes]
    return itertools.product(*choices)


def _example(pattern, sizes=GENERIC):
    """Return shapes of a pattern with generic sizes.

    They satisfy few conditions by accident. All first axes are equal, and so on, as for
    inputs of one batch.
    """
    return tuple([
        tuple([sizes[a % len(sizes)] if n is None else n for a, n in enumerate(shape)])
        for shape in pattern
    ])  # fmt: skip


def _open_axes(pattern):
    """Return the open axes of a pattern: ``(input, axis)``."""
    axes = [(i, a, n) for i, shape in enumerate(pattern) for a, n in enumerate(shape)]
    return [(i, a) for i, a, n in axes if n is None]


def _tried(pattern, base):
    """Yield pairs of axes and a size for them that the code may check.

    ``base`` is an example; axes of equal size there are likely to be equal always.
    """
    axes, alike = _open_axes(pattern), {}
    for i, a in axes:
        alike.setdefault(base[i][a], []).append((i, a))
    few = [(axis,) for axis in axes] + [tuple(each) for each in alike.values()]
    many = [*few, *itertools.combinations(axes, 2), tuple(axes)]
    for n in TRIED:
        for group in many if n < 2 else few:
            yield group, n


def _several(axes):
    """Yield sets of two or more axes: all, or, if there are many, runs in one input."""
    if len(axes) <= FEW_AXES:
        for count in range(2, len(axes) + 1):
            yield from itertools.combinations(axes, count)
        return
    for i in sorted({i for i, _ in axes}):
        own = [axis for axis in axes if axis[0] == i]
        for n in range(2, len(own) + 1):
            yield tuple(own[:n])
            yield tuple(own[-n:])


def _fixed(pattern, axes, n):
    """Return the pattern with one size on these axes."""
    return tuple([
        None if shape is None
        else tuple([n if (i, a) in axes else m for a, m in enumerate(shape)])
        for i, shape in enumerate(pattern)
    ])  # fmt: skip
