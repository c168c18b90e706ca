"""`VariableUpdate`: what an optimizer declares of a step, so that it can be compiled."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from tapewright.core.commit import commit

from ..tracing.graph import Graph, Node
from .array_functions import NotTraceable
from .array_tracer import ArrayTracer, Builder
from .limits import DEFAULTS
from .program import Buffer, Kind, Program

__all__ = ["BlockRule", "DeviceUpdate", "Rule", "UpdateGroup", "VariableUpdate"]


class VariableUpdate(ABC):
    """A change of variables by gradients: ``update(*gradients)``.

    It accesses the variables ``writes`` and ``reads``, and nothing else unless
    ``runs_user_code``. If anything else references the array of a variable, it changes a
    copy: the references are counted, so a replay must not hold any without need.
    """

    def __call__(self, *gradients):
        """Make the step; the caller holds the locks of the variables."""
        commit([self.make_step(*gradients)])

    @abstractmethod
    def make_step(self, *gradients):
        """Return the step as a `tapewright.core.commit.Step`."""

    @property
    @abstractmethod
    def reads(self):
        """The variables that it reads and does not change."""

    @property
    @abstractmethod
    def writes(self):
        """The variables that it changes: those that it trains, and its own."""

    @property
    @abstractmethod
    def runs_user_code(self):
        """Return whether the update may fail, or look at other variables."""

    @property
    @abstractmethod
    def gradient_memory(self):
        """For each gradient an array that belongs to the update, or None.

        A gradient that is written there is not copied; after the step the array holds
        another value.
        """

    @abstractmethod
    def with_own_memory(self):
        """Return the same update with memory for gradients of its own."""

    @property
    @abstractmethod
    def block_rule(self):
        """The arithmetic of the step, a `BlockRule`; None where it is not known."""

    def on_device(self):
        """Return the step as a `DeviceUpdate`, or None if Python has to make it."""
        return None


class DeviceUpdate(ABC):
    """A step of an update as arithmetic on flat arrays, which a device computes.

    The host counts the step and chooses its numbers in `advance`; the arithmetic that
    `trace` has described runs on the arrays of `flats`, which the commit of `segments`
    lets it write to. ``groups`` is a list of `UpdateGroup`.
    """

    groups: list

    @abstractmethod
    def trace(self, xp, gradients, groups, empty):
        """Compute a step on traced arrays: return for each group the variable and slots.

        ``groups`` has for each group its flat arrays, the variable and the slots, and its
        numbers; ``empty(x)`` makes an array like ``x`` to write into.
        """

    @abstractmethod
    def is_current(self):
        """Return whether the settings that were read by `trace` are still the same."""

    @property
    @abstractmethod
    def segments(self):
        """The owners of the arrays that the step changes.

        Each is hashable, makes arrays that nobody else holds in ``gather(change)``, and
        lets the writes of the commit change them in ``add_to(change)``.
        """

    @abstractmethod
    def holders(self):
        """Map the ids of the variables that the step changes to what has their arrays.

        It is another object in each optimizer; only one may have the array of a variable.
        """

    @abstractmethod
    def advance(self):
        """Count a step, and return its numbers: a list of floats for each group."""

    @abstractmethod
    def versions(self):
        """Return numbers that change when the addresses of the arrays do."""

    @abstractmethod
    def flats(self):
        """Return a list of arrays for each group, once they are gathered."""

    @abstractmethod
    def arrays(self):
        """Map the ids of variables to their arrays, once they are gathered."""


class UpdateGroup(NamedTuple):
    """Flat arrays of one dtype that a step changes: a variable and its slots.

    ``size`` entries from ``start`` of the arrays on; ``flats`` is the count of arrays,
    ``count`` that of the numbers that a step needs.
    """

    dtype: object
    start: int
    size: int
    flats: int
    count: int


class BlockRule(NamedTuple):
    """``function(xp, gradient, variable, scratch, coefficients, *slots)``.

    It changes arrays of one shape and dtype in place: the variable, and ``slots`` of them.
    ``coefficients`` is the count of numbers that it needs, arrays of rank 0; ``scratch``
    that of further arrays, of which it gets a list.
    """

    function: object
    coefficients: int
    slots: int
    scratch: int

    def program(self, shape, dtype, decays=False, scaled=False):
        """Return the rule as a `Program`, or None if it cannot be traced.

        Inputs: the gradient, the variable, the slots, the coefficients; then, with
        ``decays``, the share by which the variable decays first, and with ``scaled`` a
        factor of the gradient. Outputs: the variable and the slots as they are afterwards.
        """
        program = Program(Graph("update"), limits=DEFAULTS)  # the code is kept
        builder = Builder(program, Node(Rule, (), {}))

        def array(shape):
            buffer = Buffer(shape, np.dtype(dtype), Kind.INPUT)
            return ArrayTracer(buffer, builder, is_new=True)

        gradient, variable = array(shape), array(shape)
        slots = [array(shape) for _ in range(self.slots)]
        coefficients = [array(()) for _ in range(self.coefficients)]
        decay = [array(())] if decays else []
        factor = [array(())] if scaled else []
        inputs = [gradient, variable, *slots, *coefficients, *decay, *factor]
        program.inputs = [x.buffer for x in inputs]
        scratch = [array(shape) for _ in range(self.scratch)]
        try:
            for number in factor:
                gradient = gradient * number
            for number in decay:
                variable -= variable * number
            self.function(np, gradient, variable, scratch, coefficients, *slots)
        except NotTraceable:
            return None
        program.outputs = [x.buffer for x in (variable, *slots)]
        return program


class Rule:
    """The op of the node to which the instructions of a rule belong."""

    name, multiple, collective = "update_block", False, False

    @staticmethod
    def raises_on_values(*dtypes):
        """Return whether the arithmetic may raise: see `Primitive.raises_on_values`."""
        return False
