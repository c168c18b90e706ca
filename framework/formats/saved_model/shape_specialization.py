"""The traces of a function that together serve what its signature allows.

A trace for unknown sizes depends on conditions on them (see `core.guards`): that a batch is
not of size 1, say, because the code asks. In the process that traced a function, other
sizes are traced when they come; a file must have them beforehand. So sizes are tried out,
and for those that no trace serves another one is made: with that size fixed. Where ranks
are unknown and one trace cannot serve all, there is one for each. Special sizes, of one
above all, are sought for low ranks first: of traces for them there are `MANY_SIZES` at most.
"""

import itertools

from tapewright.compiler.function.specialization import (
    Specializations,
    Trace,
    first_bound,
    is_open,
    sizes_of,
)
from tapewright.compiler.tracing.custom_calls import CustomCall
from tapewright.core.errors import SavingError, TracingError
from tapewright.core.source_lines import line_of_error
from tapewright.core.symbolic_dim import DimSymbol, NeedsSize

__all__ = ["covered", "reason_of"]

RANKS = 8  # the highest one that is tried, where ranks are unknown
MANY_RANKS = 64  # combinations of ranks
MANY_TRACES = 16  # are sought for one combination of ranks, besides those for ones
MANY_SIZES = 256  # traces for special sizes, of all ranks together
FEW_PLACES = 8  # of which all sets are tried
MANY_MISSES = 8  # sets for which there is no trace, before the rest is given up
TRIED = (1, 0, 2, 3, 4, 5, 7, 8)  # sizes
GENERIC = (1009, 1103, 1201, 1301, 1409, 1511, 1601, 1709)


def reason_of(error):
    """What went wrong while tracing, with the user's line and the kind of error."""
    text, line = str(error), line_of_error(error)
    if not isinstance(error, (TypeError, ValueError, NotImplementedError)):
        text = f"{type(error).__name__}: {text}"
    own = f"{line}: " if line is not None and line not in text else ""
    return f"{own}{text}"


def covered(concrete, shapes, retrace, path, gradients=True):
    """``(traces, refusals)`` for what a signature with these shapes allows.

    Args: ``concrete``: a trace that is there, or None; ``retrace(shapes)``: another one,
    with formulas or numbers for sizes; ``gradients``: whether the gradients of the user's
    own must be traced as well. ``refusals``: pairs of ranks and the reason why they
    cannot be served.

    Raises: `SavingError` if there is none.
    """
    family = None if concrete is None else concrete.specializations
    if getattr(family, "saved", None) is not None:  # it was loaded
        return family.saved, family.refusals
    if not is_open(shapes):
        if concrete is None:
            concrete = retrace(shapes)
        return [Trace(shapes, concrete)], []
    return _Coverage(shapes, retrace, family, path, gradients).found()


class _Coverage:
    def __init__(self, shapes, retrace, family, path, gradients):
        self.shapes, self.retrace, self.path = tuple(shapes), retrace, path
        self.gradients = gradients
        self.traces, self.refusals, self.error = [], [], None
        self.called = family  # that of the function, if it was called
        self.families, self.taken = {}, set()
        self.most = MANY_SIZES  # traces: what is used most is sought first
        self.general, self.of_ranks = [], {}  # for all ranks; for each the traces

    def found(self):
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
            raise SavingError(self.path, self._reason()) from self.error
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
        own = self.of_ranks.get(tuple(map(len, shapes)), ())
        return any(trace.fits(shapes) for trace in (*self.general, *own))

    def keep(self, trace):
        self.traces.append(trace)
        if None in trace.pattern:
            self.general.append(trace)
        else:
            self.of_ranks.setdefault(tuple(map(len, trace.pattern)), []).append(trace)

    # --- adding traces

    def add(self, pattern, example=None):
        """Traces for a pattern, and such shapes; whether there is any that is new."""
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
        self.keep(Trace(pattern, concrete))
        return True

    def _take(self, pattern):
        """Takes what the family of a pattern has, but for what cannot be written."""
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
            self.keep(trace)
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
        """A trace for these ranks, unless there is one for all; their pattern."""
        pattern = tuple(
            [(None,) * n if s is None else s for n, s in zip(ranks, self.shapes)]
        )
        example = _example(pattern)
        fitting = [trace for trace in self.general if trace.fits(example)]
        if first_bound(fitting, example)[0] is None:
            error, self.error = self.error, None
            if not self.add(pattern):
                self.refusals.append((list(ranks), reason_of(self.error)))
            self.error = error or self.error
        return pattern

    def fill(self, pattern):
        """Traces for sizes that are tried, and not served yet, one after the other."""
        base = self.example(pattern)
        if not self.serves(base):
            return  # the code needs all sizes as numbers
        count, ahead, seen = 0, list(_tried(pattern, base)), set()
        while ahead and count < MANY_TRACES and len(self.traces) < self.most:
            places, n = ahead.pop(0)
            if (places, n) in seen:
                continue
            seen.add((places, n))
            narrowed, example = _fixed(pattern, places, n), _fixed(base, places, n)
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
        """Traces for a size of one in several places, as inputs broadcast."""
        places = _places(pattern)
        free = [place for place in places if self.serves(_fixed(base, (place,), 1))]
        misses = 0
        for ones in _several(free):
            example = _fixed(base, ones, 1)
            if misses == MANY_MISSES or len(self.traces) >= self.most:
                return
            if not self.serves(example):
                self.add(_fixed(pattern, ones, 1), example)
                misses += not self.serves(example)

    def example(self, pattern):
        """Shapes of a pattern that a trace is known to serve, if there is one."""
        for trace in self.traces:
            if trace.pattern == pattern and trace.guards is not None:
                known = trace.guards.examples
                return tuple([
                    tuple([known[i, a] if n is None else n for a, n in enumerate(shape)])
                    for i, shape in enumerate(pattern)
                ])  # fmt: skip
        return _example(pattern)

    def borders(self, pattern, start):
        """Sizes at which a condition of these traces changes: ``(places, number)``."""
        found = []
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
                    at, place = -constant // c, ((*monomial[0],),)
                    found += [(place, n) for n in (at - 1, at, at + 1) if n >= 0]
        return found

    def add_fixed(self):
        """What was traced for the shapes with which the function was called."""
        for trace in [] if self.called is None else self.called.fixed_traces():
            if all([trace.pattern != other.pattern for other in self.traces]):
                self.keep(trace)


def _ranks(shapes):
    """The combinations of ranks that are tried."""
    count = sum(s is None for s in shapes)
    highest = RANKS
    while highest and (highest + 1) ** count > MANY_RANKS:
        highest -= 1
    choices = [range(highest + 1) if s is None else [len(s)] for s in shapes]
    return itertools.product(*choices)


def _example(pattern, sizes=GENERIC):
    """Shapes of a pattern, with sizes of which little is true by accident.

    All first axes are the same, and so on: as inputs of one batch are.
    """
    return tuple([
        tuple([sizes[a % len(sizes)] if n is None else n for a, n in enumerate(shape)])
        for shape in pattern
    ])  # fmt: skip


def _places(pattern):
    """What is open in it: ``(input, axis)``."""
    axes = [(i, a, n) for i, shape in enumerate(pattern) for a, n in enumerate(shape)]
    return [(i, a) for i, a, n in axes if n is None]


def _tried(pattern, base):
    """Pairs of places and a size for them that the code may ask for.

    ``base``: an example; places of one size there are likely to be equal always.
    """
    places, alike = _places(pattern), {}
    for i, a in places:
        alike.setdefault(base[i][a], []).append((i, a))
    few = [(place,) for place in places] + [tuple(each) for each in alike.values()]
    many = [*few, *itertools.combinations(places, 2), tuple(places)]
    for n in TRIED:
        for group in many if n < 2 else few:
            yield group, n


def _several(places):
    """Sets of two places and more: all, or, if they are many, runs in one input."""
    if len(places) <= FEW_PLACES:
        for count in range(2, len(places) + 1):
            yield from itertools.combinations(places, count)
        return
    for i in sorted({i for i, _ in places}):
        own = [place for place in places if place[0] == i]
        for n in range(2, len(own) + 1):
            yield tuple(own[:n])
            yield tuple(own[-n:])


def _fixed(pattern, places, n):
    """The pattern with these places of one size."""
    return tuple([
        None if shape is None
        else tuple([n if (i, a) in places else m for a, m in enumerate(shape)])
        for i, shape in enumerate(pattern)
    ])  # fmt: skip
