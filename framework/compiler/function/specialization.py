"""One trace for all sizes: graphs with unknown dimensions, and what they become for known ones.

Where a signature leaves dimensions open the Python code runs once, with a `dimension.Dim`
in the place of each. What the graph then assumes of them is noted (`Guards`), and
checked for each set of sizes that comes. For sizes for which it holds the graph is copied
with numbers in the place of formulas, and that copy is planned like any other: replays are
as fast as those of a function of one size. For other sizes (a batch of one, where the code
asks for it) the Python code is traced again, with other examples or those very sizes.

Code that needs a size as a number (``range(n)``) cannot be traced for all: then there is
one trace for each set of sizes, and ``reason`` tells the line that asked.
"""

import threading
import warnings
from collections import OrderedDict

from tapewright.core.guards import Guards
from tapewright.core.source_lines import user_line
from tapewright.core.symbolic_dim import Dim, NeedsSize, Size
from tapewright.core.symbolic_shape import has_symbolic_shape, product
from tapewright.core.tensor_shape import AnyShape

from ..tracing.binding import bind
from ..tracing.custom_calls import CustomCall
from ..tracing.tracer import EagerFallback

__all__ = ["Specializations", "is_open"]

# Sets of sizes for which a plan is kept: those that came last.
MANY_SIZES = 256
# Traces for other examples, of a function that asks what its sizes are.
MANY_EXAMPLES = 8
# After so many traces for one set of sizes each a word is said.
MANY_TRACES = 8
# Primes: what is true of such sizes is true of most.
_PRIMES = (1009, 1103, 1201, 1301, 1409, 1511, 1601, 1709, 1801, 1901, 2003, 2111)


def is_open(shapes):
    """Whether any of these shapes has an unknown dimension, or is of unknown rank."""
    return any([shape is None or None in shape for shape in shapes])


class Specializations:
    """What a function runs that was traced for unknown sizes: a graph for each set of them.

    Args: ``trace``: a function of the shapes of all tensors (with formulas in them, or
    plain) that traces the Python code, and gives a `ConcreteFunction`; ``shapes``: those
    of the signature, None where unknown.
    """

    def __init__(self, trace, shapes):
        self._trace, self._shapes = trace, tuple(shapes)
        self.symbols = []
        for i, shape in enumerate(self._shapes):
            axes = enumerate([None] if shape is None else shape)
            found = [axis for axis, n in axes if n is None]
            self.symbols += [Size(i, None if shape is None else a) for a in found]
        self.traces = []  # (function with formulas in its graph, its guards)
        self.reason = None  # why there is no trace for all sizes
        self.depends = False  # on sizes, whether there is one
        self._count = 0  # of traces for one set of sizes
        self._of_rank = {}  # ranks -> specializations, if there is no trace for all
        self._fixed = OrderedDict()  # shapes -> function
        self._lock = threading.RLock()

    # --- picking what runs

    def pick(self, tensors):
        """The function for tensors of these sizes."""
        key = tuple([x.array.shape for x in tensors])
        if has_symbolic_shape(
            key
        ):  # inside the trace of another function for all sizes
            return self._made(key)
        fixed = self._fixed.get(key)
        if fixed is None:
            with self._lock:
                fixed = self._fixed.get(key)
                if fixed is None:
                    fixed = self._fixed[key] = self._made(key)
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

    def _made(self, key):
        sizes = self._sizes(key)
        found = self._bound(sizes) or self._traced_again(key, sizes)
        return found or self._fallback(key)

    def _fallback(self, key):
        """A function for these shapes alone; for this rank, if ranks are unknown."""
        if None not in self._shapes:
            self._count += 1
            if self._count == MANY_TRACES and self.reason:
                warnings.warn(
                    f"a function is traced anew for each size of its arguments, as "
                    f"{self.reason}",
                    stacklevel=2,
                )
            return self._trace(key)
        ranks = tuple([len(shape) for shape in key])
        family = self._of_rank.get(ranks)
        if family is None:
            shapes = [
                (None,) * n if s is None else s for n, s in zip(ranks, self._shapes)
            ]
            family = self._of_rank[ranks] = Specializations(self._trace, shapes)
            family.first(key)
            self.reason = self.reason or family.reason
        return family._made(key)

    def _bound(self, sizes):
        """A trace with these sizes put in; None if there is none for them."""
        for concrete, guards in self.traces:
            if guards.broken_by(sizes) is None:
                try:
                    graph = bind(concrete.graph, sizes)
                except (TypeError, ValueError, LookupError, ArithmeticError):
                    continue  # the trace of the Python code for these sizes will tell
                return type(concrete)(graph, concrete.structure)
        return None

    def _sizes(self, shapes):
        sizes = {}
        for symbol in self.symbols:
            shape = shapes[symbol.input]
            if symbol.axis is None:
                sizes[symbol], sizes[symbol.input, "shape"] = product(shape), shape
            else:
                sizes[symbol] = shape[symbol.axis]
        return sizes

    # --- tracing

    def first(self, shapes=None):
        """The trace for all sizes; one for these shapes, if there cannot be one for all.

        Without shapes it is then None; where the error would be the same for all sizes,
        it is raised.
        """
        sizes = None if shapes is None else self._sizes(shapes)
        error = self._try(sizes)
        if self.traces:
            return self.traces[-1][0]
        if shapes is None:
            if not self.depends:
                raise error
            self.reason = self.reason or str(error)
            return None
        with self._lock:
            fixed = self._fixed[shapes] = self._fallback(shapes)
        return type(fixed)(fixed.graph, fixed.structure)

    def _traced_again(self, key, sizes):
        """A trace for an example like these sizes, if that is likely to be another one."""
        if self.reason or len(self.traces) >= MANY_EXAMPLES or has_symbolic_shape(key):
            return None
        self._try(sizes)
        return self._bound(sizes)

    def _try(self, sizes):
        """Traces for example after example until one holds for these sizes.

        Returns the error of the first, if it has raised one.
        """
        first, examples = None, [_spread(self.symbols, sizes)]
        if sizes is not None:
            examples.append(_near(self.symbols, sizes))
        flips = 2
        while examples:
            example = examples.pop(0)
            if any([a.broken_by(example) is None for _, a in self.traces]):
                continue  # it would be the same trace
            guards = Guards(example, _line, sizes)
            try:
                concrete = self._trace(self._symbolic(guards))
                _trace_gradients(concrete.graph)
                guards.closed = True
            except EagerFallback:
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
            self.traces.append((concrete, guards))
            if sizes is None or guards.broken_by(sizes) is None:
                break
        return first

    def _symbolic(self, guards):
        """The shapes with a formula for each unknown dimension."""
        found = []
        for i, shape in enumerate(self._shapes):
            if shape is None:
                found.append(AnyShape(i, guards))
                continue
            axes = enumerate(shape)
            dims = [Dim.of(Size(i, a), guards) if n is None else n for a, n in axes]
            found.append(tuple(dims))
        return tuple(found)


def _trace_gradients(graph):
    """Traces gradients of custom calls now, as they too may assume something."""
    for node in graph.nodes:
        if type(node) is CustomCall:
            failure = node.failure()
            if isinstance(failure, NeedsSize):  # the trace is not one for all sizes
                raise failure


# ----------------------------------------------------------------------- examples


def _spread(symbols, sizes):
    """Example sizes of which little is true by accident.

    Sizes of one axis are the same for all inputs, where those that came are.
    """
    found, example = {}, {}
    for symbol in symbols:
        like = symbol.axis, None if sizes is None else sizes[symbol]
        found.setdefault(like, _PRIMES[len(found) % len(_PRIMES)])
        example[symbol] = found[like]
        if symbol.axis is None and sizes is not None:
            example[symbol.input, "shape"] = sizes[symbol.input, "shape"]
    return example


def _near(symbols, sizes):
    """The sizes that came; 1 and 0 are special, and stand for others here."""
    example = _spread(symbols, sizes)
    example.update((a, sizes[a]) for a in symbols if sizes[a] > 1)
    return example


def _flipped(guards):
    """The examples changed so that the last "unequal" is "equal"; None if none can be."""
    for (relation, expression), answer in reversed(guards.conditions.items()):
        if relation == "==" and not answer:
            for example in guards.solved(expression):
                if min([example[symbol] for symbol in guards.symbols()]) > 1:
                    return example
    return None


def _line():
    return user_line(always=True)
