"""`VariableUpdate`: an optimizer's declaration of a step, so that it can be compiled."""

from abc import ABC, abstractmethod
from collections import Counter
from typing import NamedTuple

import numpy as np

from tapewright.core.state.commit import commit
from tapewright.ops.collective import all_reduce_sum

from ...tracing.graph import Effect, Graph, Node, is_value
from ..limits import DEFAULTS
from ..lowering.array_functions import NotTraceable
from ..lowering.array_tracer import ArrayTracer, Builder
from ..program import Buffer, Kind, Program


class VariableUpdate(ABC):
    """A change of variables by gradients: ``update(*gradients)``.

    It accesses the variables ``writes`` and ``reads``, and nothing else unless
    ``runs_user_code``. If anything else references the array of a variable, the update
    writes to a copy: references are counted, so a replay must not hold any
    unnecessarily.
    """

    def __call__(self, *gradients):
        """Run the step; the caller holds the locks of the variables."""
        commit([self.make_step(*gradients)])

    @abstractmethod
    def make_step(self, *gradients):
        """Return the step as a `tapewright.core.state.commit.Step`."""

    @property
    @abstractmethod
    def reads(self):
        """The variables that it reads but does not change."""

    @property
    @abstractmethod
    def writes(self):
        """The variables that it changes: trained variables and optimizer variables."""

    @property
    @abstractmethod
    def runs_user_code(self):
        """Return whether the update may fail or access other variables."""

    @property
    @abstractmethod
    def gradient_memory(self):
        """For each gradient an array owned by the update, or None.

        A gradient that is written there is not copied; after the step the array holds
        another value.
        """

    @abstractmethod
    def with_own_memory(self):
        """Return the same update with separate memory for gradients."""

    @property
    @abstractmethod
    def block_rule(self):
        """The arithmetic of the step, a `BlockRule`; None if it is unknown."""

    def on_device(self):
        """Return the step as a `DeviceUpdate`, or None if it must run in Python."""
        return None

    def reducing(self, op, compression):
        """Return an update that all-reduces its gradients itself, or None.

        Args:
            op: "sum" or "mean".
            compression: As in `tapewright.ops.collective.all_reduce`.
        """
        return None

    def inlined(self):
        """Return a new graph of the step, whose inputs are gradients, or None.

        None: the step is not made of ops, or its Python code must run in each step.
        """
        return None

    def guard(self):
        """Return a function that checks the settings of the latest graph of `inlined`.

        None: there is no such graph, or nothing can change it.
        """
        return None


class DeviceUpdate(ABC):
    """A step of an update as arithmetic on flat arrays, which a device computes.

    The host counts the step and computes its coefficients in `advance`; the arithmetic
    traced by `trace` runs on the arrays of `flats`, which the commit of `segments`
    makes writable. ``groups`` is a list of `UpdateGroup`.
    """

    groups: list

    @abstractmethod
    def trace(self, xp, gradients, groups, empty):
        """Compute a step on traced arrays: return for each group the variable and slots.

        ``groups`` has for each group its flat arrays, the variable and the slots, and
        its coefficients; ``empty(x)`` creates an array like ``x`` to write into. The
        arrays of a group of one variable may have its shape.
        """

    @abstractmethod
    def trace_advance(self, load):
        """Compute on traced arrays what `advance` computes in Python.

        Args:
            load: Function that returns the value of a variable.

        Returns:
            For each group the coefficients, numbers or traced arrays of rank 0; and
            pairs of the other variables that change and their new values.

        Raises:
            NotTraceable: If the step runs code that is not arithmetic.
        """

    @abstractmethod
    def columns(self):
        """Return for each group, and each of its flat arrays, the variables in it."""

    @abstractmethod
    def is_current(self):
        """Return whether the settings that `trace` read are unchanged."""

    @property
    @abstractmethod
    def segments(self):
        """The owners of the arrays that the step changes.

        Each is hashable, creates unshared arrays in ``gather(change)``, and makes them
        writable for the commit in ``add_to(change)``.
        """

    @abstractmethod
    def holders(self):
        """Map the ids of the variables that the step changes to the owners of their arrays.

        The owner is another object in each optimizer; only one may own the array of a
        variable.
        """

    @abstractmethod
    def advance(self):
        """Count a step, and return its coefficients: a list of floats for each group."""

    @abstractmethod
    def versions(self):
        """Return numbers that change whenever the addresses of the arrays do."""

    @abstractmethod
    def flats(self):
        """Return a list of arrays for each group, after they are gathered."""

    @abstractmethod
    def arrays(self):
        """Map the ids of variables to their arrays, after they are gathered."""


class UpdateGroup(NamedTuple):
    """Flat arrays of one dtype that a step changes: a variable and its slots.

    The group is ``size`` entries of the arrays, from ``start`` on; ``flats`` is the
    number of arrays, ``count`` the number of coefficients of a step.
    """

    dtype: object
    start: int
    size: int
    flats: int
    count: int


class BlockRule(NamedTuple):
    """``function(xp, arrays, scratch, numbers, decays)``.

    ``arrays`` are the gradient, the variable and ``slots`` slots, of one shape and
    dtype; it changes all but the gradient in place. ``numbers`` arrays of rank 0 are
    the share by which the variable decays first, if ``decays``, and coefficients;
    ``scratch`` is the number of scratch arrays. Arrays come in lists.
    """

    function: object
    numbers: int
    slots: int
    scratch: int

    def program(self, shape, dtype, decays=False, scaled=False):
        """Return the rule as a `Program`, or None if it cannot be traced.

        Inputs: the gradient, the variable, the slots, the numbers; then, with
        ``scaled``, a factor of the gradient. Outputs: the updated variable and slots.
        """
        program = Program(Graph("update"), limits=DEFAULTS)  # the code is kept
        builder = Builder(program, Node(Rule, (), {}))

        def array(shape):
            buffer = Buffer(shape, np.dtype(dtype), Kind.INPUT)
            return ArrayTracer(buffer, builder, is_new=True)

        arrays = [array(shape) for _ in range(2 + self.slots)]
        numbers = [array(()) for _ in range(self.numbers)]
        factor = [array(())] if scaled else []
        program.inputs = [x.buffer for x in (*arrays, *numbers, *factor)]
        scratch = [array(shape) for _ in range(self.scratch)]
        try:
            for number in factor:
                arrays[0] = arrays[0] * number
            self.function(np, arrays, scratch, numbers, decays)
        except NotTraceable:
            return None
        program.outputs = [x.buffer for x in arrays[1:]]
        return program


class Rule:
    """The op of the node to which the instructions of a rule belong."""

    name, multiple, collective = "update_block", False, False

    @staticmethod
    def raises_on_values(*dtypes):
        """Return whether the arithmetic may raise: see `Primitive.raises_on_values`."""
        return False


def inline_updates(graph):
    """Replace each update whose rule is traced by the nodes of its step.

    They read and store variables like nodes of the graph: a step is fused with what is
    around it, and a replay calls no Python for it.
    """
    nodes = []
    for node in graph.nodes:
        inner = node.call.inlined() if _is_update(node) else None
        nodes += [node] if inner is None else _nodes_for(inner, node.inputs)
    return graph if nodes == graph.nodes else graph.replaced(nodes)


def defer_all_reduces(graph):
    """Let updates reduce their gradients, if the all-reduces have no other use.

    An update that is divided among processes needs a part of the sums alone.
    """
    inputs = [x for node in graph.nodes for x in node.inputs]
    uses = Counter([x for x in (*inputs, *graph.outputs) if is_value(x)])
    nodes, dropped = [], set()
    for node in graph.nodes:
        sources = [getattr(x, "node", None) for x in node.inputs]
        if _is_update(node) and all([_is_sum(s) for s in sources]):
            options = [source.attributes for source in sources]
            own = all([uses[x] == 1 for x in node.inputs])
            if own and options and options.count(options[0]) == len(options):
                reduction = options[0]["reduction"], options[0]["compression"]
                call = node.call.reducing(*reduction)
                if call is not None:
                    dropped.update(sources)
                    node = node.calling(call, [s.inputs[0] for s in sources])
        nodes.append(node)
    if not dropped:
        return graph
    return graph.replaced([node for node in nodes if node not in dropped])


def _is_sum(node):
    return node is not None and node.op is all_reduce_sum.primitive


def _nodes_for(inner, inputs):
    """Return the nodes of a new graph, with other inputs."""
    inputs = dict(zip(inner.inputs, inputs, strict=True)) | inner.captures
    for node in inner.nodes:
        node.inputs = tuple(
            [inputs.get(x, x) if is_value(x) else x for x in node.inputs]
        )
    return inner.nodes


def updates_in(graph):
    """Return the `VariableUpdate` calls of a graph and its regions."""
    updates = [node.call for node in graph.nodes if _is_update(node)]
    regions = [region for node in graph.nodes for region in node.regions]
    return updates + [update for region in regions for update in updates_in(region)]


def _is_update(node):
    return type(node) is Effect and isinstance(node.call, VariableUpdate)
