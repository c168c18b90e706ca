"""The memory of a program on a GPU: the plan, and the memory of each instance.

In addition to the arena there is static memory, for inputs that are copied to fixed
addresses and for results before they are copied out; the numbers that the host sends
with each replay; and the status, the number of the instruction that has found an
invalid value.
"""

from collections import deque
from operator import call

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import check_later
from tapewright.core.state.commit import bound_again

from ...program.program import Kind
from ..numpy.executable import Instance, explained
from .addresses import Root
from .copies import copies

ALIGNMENT = 256  # bytes: cublasLt and wide loads ask for less
WORD = 8


class MemoryPlan:
    """Offsets of everything at a fixed address: ``static`` and ``numbers``, in bytes.

    ``numbers`` are by root. ``constants`` are constant buffers, ``workspace`` is the
    size of the workspace of library calls.
    """

    def __init__(self):
        self.static, self.static_size = {}, 0
        self.numbers, self.numbers_size = {}, 0
        self.constants, self.workspace = {}, 0

    def keep(self, buffer):
        """Assign an offset in static memory to a buffer."""
        if buffer not in self.static:
            self.static[buffer] = self.static_size
            self.static_size += -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT

    def number(self, root, nbytes):
        """Assign an offset among the numbers to a host value."""
        if root not in self.numbers:
            self.numbers[root] = self.numbers_size
            self.numbers_size += -(-nbytes // WORD) * WORD


class DeviceInstance(Instance):
    """The memory of one instance of an executable, on the current GPU."""

    def __init__(self, executable, replacing):
        self.name = executable.name
        self.xp, self.plan = xp, plan = executable.xp, executable.plan
        super().__init__(executable.assignment, replacing, xp)
        self.last, self.regions = executable.commits.last, executable.regions
        self.checks, self.host_variables = executable.checks, executable.host_variables
        # Variables that get their arrays again if the last commit does not come.
        self.kept = []
        self.restore = None  # while a replay keeps variables: a function in C
        self.outer = None  # the instance whose last commit is one of this instance
        self.blocks = {
            "static": xp.empty(max(plan.static_size, 1), np.uint8),
            "number": xp.empty(max(plan.numbers_size, WORD), np.uint8),
            "status": xp.zeros(2, np.int32),  # a failure, and the count of reports
            "workspace": xp.empty(max(plan.workspace, 1), np.uint8),
        }
        self.constants = {
            base: xp.asarray(np.array(base.source, order="C"))
            for base in plan.constants
        }
        self.pinned = xp.cuda.alloc_pinned_memory(8)
        self.report = np.frombuffer(self.pinned, np.int32, 2)  # as in "status"
        self.report[:] = 0
        self.launched = 0  # reports that are on their way, or have come
        # Before each replay whose end is not known: reports, host variables with arrays.
        self.before = deque()
        self.inputs = {}  # buffer -> array, of the segments that may find wrong values

    def block(self, buffer):
        """Return the static memory of a buffer as an array."""
        start = self.plan.static[buffer]
        part = self.blocks["static"][start : start + buffer.nbytes]
        return part.view(buffer.dtype).reshape(buffer.shape)

    def address(self, root):
        """Return the address of a root, None if it differs between replays."""
        kind, key = root.kind, root.key
        if kind == "arena":
            return self.arena.data.ptr
        if kind == "static":
            return self.block(key).data.ptr
        if kind == "constant":
            return self.constants[key].data.ptr
        if kind == "slot":
            return self.array(key).data.ptr
        if kind == "pinned":
            return self.pinned.ptr
        if kind == "number":
            return self.blocks["number"].data.ptr + self.plan.numbers[root]
        return self.blocks[kind].data.ptr if kind in self.blocks else None

    # --- commits

    def replacement(self, instruction):
        kernel = super().replacement(instruction)
        if kernel is not None or instruction is not self.last:
            return kernel
        regions = [_LastRegion(each, self) for each in self.regions[instruction]]
        return instruction.node.kernel(regions, **instruction.settings)

    def keep(self, held, copied):
        """Make `restore` rebind the current arrays of variables, and copies of some."""
        arrays = [variable._array for variable in held]
        if copied:
            arrays += copies(self.xp, [variable._array for variable in copied])
        self.kept = [*held, *copied]
        self.restore = bound_again(self.kept, arrays)

    def forgetting(self):
        """Return functions in C that cancel `restore`."""
        own, functions = self, []
        while own is not None:
            functions.append(own.kept.clear)
            own = own.outer
        return functions

    def forget(self):
        """Cancel `restore`: all commits were made."""
        deque(map(call, self.forgetting()), 0)

    # --- wrong values

    def begin(self):
        """Raise the error found by a replay, and record the arrays of host variables."""
        self.check()
        self._forget(self.report[1])
        arrays = [(v, v._array) for v in self.host_variables]
        self.before.append((self.launched, arrays))

    def note_launch(self, inputs, stream):
        """Make the next access to results on the host check whether values were valid."""
        self.inputs.update(inputs)
        self.stream = stream
        self.launched += 1
        check_later(self.check)

    def check(self):
        """Raise the error of a replay that has found an invalid value, if it has finished."""
        number = int(self.report[0])
        if number:
            self.stream.synchronize()  # replays that were launched since change nothing
            self._forget(self.report[1])
            if self.restore is not None:  # what changed in the replay that looks
                self.restore()
            _, arrays = self.before[0]
            for variable, array in arrays:
                variable._bind(array)
            with self.stream:
                self.blocks["status"].fill(0)
            self.report[:] = self.launched = 0
            self.before.clear()
            raise self._error(self.checks[number - 1])

    def _forget(self, reports):
        """Discard the state saved for replays that have succeeded."""
        while len(self.before) > 1 and self.before[1][0] <= reports:
            self.before.popleft()

    def _error(self, kernel):
        """Return the error that the replaced instruction raises for its operands."""
        replaced = kernel.replaced
        operands = kernel.reads[: len(replaced.operands)]  # those that there are now
        try:
            replaced.function(*map(self._value, operands), **replaced.keywords)
        except Exception as error:
            return explained(error, kernel.node, self.name)
        # A later replay, which was launched meanwhile, has overwritten the operands.
        error = InvalidArgumentError("a value is out of range")
        return explained(error, kernel.node, self.name)

    def _value(self, buffer):
        """Return the array of a buffer after a replay."""
        if buffer.is_view:
            return buffer.instruction.apply(self._value(buffer.instruction.viewed))
        if buffer.is_constant:
            return self.xp.asarray(np.array(buffer.source))
        if buffer.offset is not None:
            return self.array(buffer)
        if buffer in self.inputs:
            return self.inputs[buffer]
        if buffer in self.plan.static:
            return self.block(buffer)
        if buffer.kind is Kind.HOST:
            return self._number(buffer)
        return buffer.source._array

    def _number(self, buffer):
        """Return the array of a value that the host has sent."""
        start = self.plan.numbers[Root("number", buffer)]
        part = self.blocks["number"][start : start + buffer.nbytes]
        return part.view(buffer.dtype).reshape(buffer.shape)


class _LastRegion:
    """An executable of a region whose last commit is also the outer instance's last."""

    def __init__(self, executable, outer):
        self.executable, self.outer = executable, outer

    def run(self, arrays):
        return self.executable.run(arrays, self.outer)
