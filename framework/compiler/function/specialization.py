"""Specialize traces of unknown sizes to known sizes.

If a signature leaves dimensions open, the Python code runs once, with an `UnknownSize`
(of `symbolic_dim`) for each. The assumptions that the graph then makes are recorded
(`Guards`), and checked for each new set of sizes. For sizes that satisfy them, the
graph is copied with numbers instead of formulas, and the copy is compiled like any
other: replays are as fast as for a function of one size. For other sizes (a batch of
one, if the code checks for it) the Python code is traced again, with other examples or
those very sizes.

Code that needs a size as a number (``range(n)``) cannot be traced for all sizes: then
there is one trace for each set of sizes, and ``reason`` names the line that needs it.
"""

import threading
import warnings
from collections import OrderedDict

from tapewright.core.errors import VerificationError
from tapewright.core.messages.source_lines import user_line, user_stacklevel
from tapewright.core.shapes.guards import Guards
from tapewright.core.shapes.symbolic_dim import DimSymbol, NeedsSize, UnknownSize
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape, product
from tapewright.core.shapes.tensor_shape import UnrankedShape

from ..tracing.binding import bind
from ..tracing.custom_calls import CustomCall
from ..tracing.tracer import EagerFallback

# An executable is kept for so many sets of sizes: those that came last.
MANY_SIZES = 256
# The most traces for different example sizes, if guards fail.
MANY_EXAMPLES = 8
# A warning comes after so many traces that serve one set of sizes only.
MANY_TRACES = 8
# Primes: conditions that hold for these sizes hold for most.
_PRIMES = (1009, 1103, 1201, 1301, 1409, 1511, 1601, 1709, 1801, 1901, 2003, 2111)


def is_open(shapes):
    """Return whether a shape has an unknown dimension, or is of unknown rank."""
    return any([shape is None or None in shape for shape in shapes])


class Trace:
    """A function traced for shapes like ``pattern``, with None for an open rank or size.

    ``guards`` define the sizes that it serves; None if nothing is open.
    """

    def __init__(self, pattern, concrete, guards=None):
        self.pattern, self.concrete = tuple(pattern), concrete
        self.guards = guards

    def fits(self, shapes):
        """Return whether it serves these shapes, or a plain tuple of sizes for each."""
        for own, shape in zip(self.pattern, shapes, strict=True):
            if own is None:
                continue
            if len(own) != len(shape):
                return False
            if any([n is not None and n != m for n, m in zip(own, shape)]):
                return False
        return self.guards is None or self.holds(sizes_of(self.pattern, shapes))

    def holds(self, sizes):
        """Return whether the guards hold for these numbers: `DimSymbol` -> number."""
        return self.guards.broken_by(sizes) is None

    def bound(self, shapes):
        """Return the function for exactly these shapes; raise what an op raises for them."""
        if self.guards is None:
            return self.concrete
        graph = bind(self.concrete.graph, sizes_of(self.pattern, shapes))
        return type(self.concrete)(graph, self.concrete.structure)


def with_ranks(shapes, ranks):
    """Return the shapes, with open sizes on all axes for each open rank."""
    return tuple([(None,) * n if s is None else s for n, s in zip(ranks, shapes)])


def sizes_of(pattern, shapes):
    """Return the values of a pattern's open sizes: `DimSymbol` -> number."""
    sizes = {}
    for i, (own, shape) in enumerate(zip(pattern, shapes, strict=True)):
        if own is None:
            sizes[DimSymbol(i, None)], sizes[i, "shape"] = product(shape), shape
        else:
            sizes.update(
                (DimSymbol(i, a), shape[a]) for a, n in enumerate(own) if n is None
            )
    return sizes


def first_bound(traces, shapes):
    """Return the function of the first trace that fits, or None, and the first error.

    An op may reject sizes for which the guards hold: then the next trace is tried.
    """
    problem = None
    for trace in traces:
        try:
            if trace.fits(shapes):
                return trace.bound(shapes), None
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            problem = problem or error
    return None, problem


class Specializations:
    """The traces of a function for unknown sizes, and a graph for each set of sizes.

    ``trace`` is a function of the shapes of all tensors (with formulas in them, or
    plain) that traces the Python code and returns a `ConcreteFunction`. ``shapes`` are
    the shapes of the signature, None where unknown.
    """

    refusals = None  # of a loaded function: ranks that no trace serves, and the reasons

    def __init__(self, trace, shapes):
        self.trace, self.shapes = trace, tuple(shapes)
        self.symbols = []
        for i, shape in enumerate(self.shapes):
            axes = enumerate([None] if shape is None else shape)
            axes = [axis for axis, n in axes if n is None]
            self.symbols += [DimSymbol(i, None if shape is None else a) for a in axes]
        self.traces = []  # for many sizes: `Trace`
        self.reason = None  # why there is no trace for all sizes
        self.depends = False  # whether the example sizes decide if there is one
        self._count = 0  # of traces for one set of sizes
        self._of_rank = {}  # ranks -> specializations, if there is no trace for all
        self._fixed = OrderedDict()  # shapes -> function
        self._lock = threading.RLock()

    # --- picking what runs

    def pick(self, tensors):
        """Return the function for tensors of these sizes."""
        key = tuple([x.array.shape for x in tensors])
        if has_symbolic_shape(key):  # inside of a trace for all sizes
            return self._find_or_trace(key)
        fixed = self._fixed.get(key)
        if fixed is None:
            with self._lock:
                fixed = self._fixed.get(key)
                if fixed is None:
                    fixed = self._fixed[key] = self._find_or_trace(key)
                    if len(self._fixed) > MANY_SIZES:
                        self._fixed.popitem(last=False)
                    return fixed
        try:
            self._fixed.move_to_end(key)
        except KeyError:  # another thread has just dropped it
            pass
        return fixed

    @property
    def latest(self):
        """The function that was picked last, or None."""
        return next(reversed(self._fixed.values()), None)

    def _find_or_trace(self, key):
        return self._bound(key) or self._traced_again(key) or self._fallback(key)

    def _fallback(self, key):
        """Trace for these shapes alone, or for this rank if ranks are unknown."""
        if None not in self.shapes:
            self._count += 1
            if self._count == MANY_TRACES and self.reason:
                warnings.warn(
                    f"a function is traced anew for each size of its arguments, as "
                    f"{self.reason}",
                    stacklevel=user_stacklevel(),
                )
            return self.trace(key)
        ranks = tuple([len(shape) for shape in key])
        family = self._of_rank.get(ranks)
        if family is None:
            shapes = with_ranks(self.shapes, ranks)
            family = self._of_rank[ranks] = Specializations(self.trace, shapes)
            family.first(key)
            self.reason = self.reason or family.reason
        return family._find_or_trace(key)

    def _bound(self, key):
        """Specialize a trace to these sizes; return None if no trace fits."""
        # If an op refuses them, tracing the Python code for these sizes raises its error.
        return first_bound(self.traces, key)[0]

    # --- all traces

    def fixed_traces(self):
        """Return a `Trace` for each set of sizes of earlier calls, of all ranks."""
        traces = [Trace(*pair) for pair in list(self._fixed.items())]
        for family in list(self._of_rank.values()):
            traces += family.fixed_traces()
        return traces

    def functions(self):
        """Return all functions, for many sizes and for single sets of sizes."""
        families = [self, *self._of_rank.values()]
        functions = [trace.concrete for family in families for trace in family.traces]
        return functions + [trace.concrete for trace in self.fixed_traces()]

    # --- tracing

    def first(self, shapes=None):
        """Return a trace for all sizes; if there is no such trace, one for these shapes.

        Without shapes the latter is None. An error that does not depend on sizes is
        raised.
        """
        error = self.explore(None if shapes is None else sizes_of(self.shapes, shapes))
        if self.traces:
            return self.traces[-1].concrete
        if shapes is None:
            if not self.depends:
                raise error
            self.reason = self.reason or str(error)
            return None
        with self._lock:
            fixed = self._fixed[shapes] = self._fallback(shapes)
        return type(fixed)(fixed.graph, fixed.structure)

    def _traced_again(self, key):
        """Trace for example sizes like these; return the function for them, or None."""
        if self.reason or len(self.traces) >= MANY_EXAMPLES or has_symbolic_shape(key):
            return None
        self.explore(sizes_of(self.shapes, key))
        return self._bound(key)

    def explore(self, sizes):
        """Trace for example sizes until the guards of a trace hold for ``sizes``.

        Returns the first error, or None.
        """
        first, examples = None, [_spread(self.symbols, sizes)]
        if sizes is not None:
            examples.append(_near(self.symbols, sizes))
        flips = 2
        while examples:
            example = examples.pop(0)
            if any([trace.holds(example) for trace in self.traces]):
                continue  # it would be the same trace
            guards = Guards(example, _line, sizes)
            try:
                concrete = self.trace(self._symbolic(guards))
                _trace_gradients(concrete.graph)
                guards.closed = True
            except (EagerFallback, VerificationError):
                raise
            except Exception as error:
                first = first or error
                if isinstance(error, NeedsSize):
                    guards.reason = guards.reason or str(error)
                self.reason = guards.reason or self.reason
                self.depends = bool(guards.reason or guards.conditions)
                if guards.reason or not self.depends:
                    break  # no other example would help
                other = _flipped(guards)
                if other is not None and flips:
                    flips -= 1
                    examples.insert(0, other)
                continue
            self.traces.append(Trace(self.shapes, concrete, guards))
            if sizes is None or self.traces[-1].holds(sizes):
                break
        return first

    def _symbolic(self, guards):
        """Return the shapes with a formula for each unknown dimension."""
        shapes = []
        for i, shape in enumerate(self.shapes):
            if shape is None:
                shapes.append(UnrankedShape(i, guards))
                continue
            axes = enumerate(shape)
            dims = [
                UnknownSize.of(DimSymbol(i, a), guards) if n is None else n
                for a, n in axes
            ]
            shapes.append(tuple(dims))
        return tuple(shapes)


def _trace_gradients(graph):
    """Trace gradients of custom calls now, as they may add guards."""
    for node in graph.nodes:
        if type(node) is CustomCall:
            failure = node.failure()
            if isinstance(failure, NeedsSize):  # the trace is not one for all sizes
                raise failure


# ----------------------------------------------------------------------- examples


def _spread(symbols, sizes):
    """Return example sizes that satisfy few conditions by accident.

    Sizes of one axis are equal for all inputs if the actual sizes are.
    """
    by_size, example = {}, {}
    for symbol in symbols:
        like = symbol.axis, None if sizes is None else sizes[symbol]
        by_size.setdefault(like, _PRIMES[len(by_size) % len(_PRIMES)])
        example[symbol] = by_size[like]
        if symbol.axis is None and sizes is not None:
            example[symbol.input, "shape"] = sizes[symbol.input, "shape"]
    return example


def _near(symbols, sizes):
    """Return the actual sizes as an example, with other numbers for 0 and 1."""
    example = _spread(symbols, sizes)
    example.update((a, sizes[a]) for a in symbols if sizes[a] > 1)
    return example


def _flipped(guards):
    """Return an example that turns the last "unequal" into "equal", or None."""
    for (relation, expression), answer in reversed(guards.conditions.items()):
        if relation == "==" and not answer:
            for example in guards.solutions(expression):
                if min([example[symbol] for symbol in guards.symbols()]) > 1:
                    return example
    return None


def _line():
    return user_line(always=True)
