"""Order the values of a group by level, and compute each of them once.

For each index of the outer axes, *passes* run over the reduced axes. A pass computes
reductions whose operands do not depend on each other's results; values of the outer
axes alone are computed between two passes. So passes have even *levels*, and the code
between them odd ones.

`LoopSchedule` places the passes in loops, and thread scheduling on threads.
"""

from abc import ABC, abstractmethod

from .accesses import contiguous_entries, longest_stride
from .statements import Compute, Load, Scalar, Select

# Functions that take about as long as a load of a number: an instruction or a few.
CHEAP = frozenset(
    """add subtract multiply negative positive maximum minimum fmax fmin absolute square
    greater greater_equal less less_equal equal not_equal logical_and logical_or logical_not
    logical_xor bitwise_and bitwise_or bitwise_xor invert positive_bits kept_bits cast copy
    where select isnan isfinite isinf signbit copysign sign conjugate fabs rint floor ceil
    trunc""".split()
)
EXPENSIVE = 8  # the cost of any other function, in units of these


def cost_of(function):
    """Return the cost of a scalar function, by name; None for a load."""
    return 1 if function is None or function in CHEAP else EXPENSIVE


class Schedule(ABC):
    """The levels and costs of the values of a group, and where they are kept.

    A value has the first level at which it can be computed: that of a pass if it
    depends on the axes ``inner``, which passes run over; -1 is before all passes.
    ``values`` has loads first, and then operands before results; ``readers`` has the
    values that read one. ``memory`` has the `Access` of each value that earlier
    statements have stored.
    """

    def __init__(self, graph, inner):
        self.group, self.limits = graph.group, graph.group.limits
        self.nodes, self.stores = graph.nodes, graph.stores
        self.reduced, self.outer, self.passed = graph.reduced, graph.outer, graph.passed
        self.values, self.accesses = graph.values, graph.accesses
        self.memory, self.readers = {}, {}
        for node in self.values:
            for a in node.inputs:
                self.readers.setdefault(a, []).append(node)
        self.assign_levels(inner)

    # --- levels

    def assign_levels(self, inner):
        """Number the passes, and assign each value its level and cost."""
        passes = set()
        for node in self.values:
            latest = max([a.level for a in node.inputs], default=-1)
            if node.summed == self.reduced:
                passes.add(_even(latest))
                node.level = _even(latest) + 1  # known after the pass
            elif node.summed is not None:
                node.level = latest  # a total: nothing in the group reads it
            else:
                is_inside = not node.axes.isdisjoint(inner)
                node.level = _even(latest) if is_inside else _odd(latest)
            node.cost = 1
            if node.summed is None:
                read = [self.cost_to_read(a, node.level) for a in node.inputs]
                node.cost = cost_of(node.function) + sum(read)
        evens = [n.level for n in self.nodes.values() if n.level % 2 == 0]
        if evens and max(evens) > max(passes, default=-1):
            passes.add(max(evens))
        self.passes = sorted(passes)

    @abstractmethod
    def cost_to_read(self, node, level):
        """Return the cost of reading a value to compute another one at ``level``."""

    def levels(self):
        """Return the levels of passes, and of values between them, in order."""
        between = [n.level for n in self.nodes.values() if n.level % 2]
        return sorted({*self.passes, *between})

    def level_of_work(self, node):
        """Return the level at which a value is computed: sums in a pass over their terms."""
        if node.summed == self.reduced:
            return node.level - 1
        if node.level % 2:
            return node.level
        return next(each for each in self.passes if each >= node.level)

    def sums_of(self, level):
        """Return the reductions that a pass computes for later code."""
        sums = [n for n in self.nodes.values() if n.summed == self.reduced]
        return [n for n in sums if n.level == level + 1]

    def stored_in(self, level):
        """Return the values that a pass stores: those computed since the previous pass."""
        stored = [n for b, n in self.nodes.items() if b in self.stores]
        even = [n for n in stored if n.summed is None and n.level % 2 == 0]
        return [n for n in even if self.level_of_work(n) == level]

    def is_read_later(self, node):
        """Return whether a pass, or code after it, reads a value computed between passes."""
        readers = self.readers.get(node, ())
        return any([r.level != node.level or r.summed is not None for r in readers])

    # --- order of the axes

    def contiguity(self, axis):
        """Return how well an axis fits the innermost loop, or neighbouring threads.

        These are the entries that arrays have side by side along it; the longer of
        equal axes.
        """
        return contiguous_entries(self.accesses, axis), axis.extent

    def stride(self, axis):
        """Return the longest stride along an axis: inner loops stay in near memory."""
        return longest_stride(self.accesses, axis)

    # --- values

    def access_of(self, node):
        """Return the `Access` that holds a value, or None if it has to be computed."""
        if node.access is not None:
            return node.access
        return self.memory[node] if node.summed is not None else self.memory.get(node)

    def name(self, node, access):
        """Return a name for the scalar of a value, which is loaded if it has an access."""
        return "load" if access is not None else node.function


class Scope:
    """Appends the statements that compute values to ``body``, each once.

    ``known`` has the scalars of values so far.
    """

    def __init__(self, schedule, body):
        self.schedule, self.body, self.known = schedule, body, {}

    def beside(self, node):
        """Return the statements among which a value is computed, and the scalars there."""
        return self.body, self.known

    def value(self, node):
        """Return the scalar of a value, after the statements that it needs."""
        if type(node) is Scalar:
            return node
        stack = [node]
        while stack:  # graphs are deep: no recursion
            current = stack[-1]
            body, known = self.beside(current)
            if current in known:
                stack.pop()
                continue
            access = self.schedule.access_of(current)
            needed = [] if access is not None else current.inputs
            pending = [a for a in needed if a not in self.beside(a)[1]]
            stack += pending
            if not pending:
                known[current] = self.compute(current, access, body)
        return self.beside(node)[1][node]

    def compute(self, node, access, body):
        """Append the statement for a value whose arguments are known; return its scalar."""
        out = Scalar(self.schedule.name(node, access), node.dtype)
        if access is not None:
            body.append(Load(out, access))
            return out
        args = tuple([self.value(a) for a in node.args])
        if node.function == "copy":
            return args[0]
        if node.function == "select":
            body.append(Select(out, node.bounds, args))
        else:
            body.append(Compute(out, node.function, args))
        return out


def _even(level):
    """Return the first pass not before a level."""
    return level + level % 2


def _odd(level):
    """Return the first level between passes that is not before a level."""
    return level + 1 - level % 2
