"""`CudaSegment`: consecutive instructions on a GPU, captured as one CUDA graph.

A graph has fixed addresses. The arrays of inputs and variables are used in place, so a
graph is captured for each set of their addresses. Addresses of variables are the same
from step to step as long as nothing references an old value. Inputs with changing
addresses are copied to static memory instead. Results are copied out of it.
"""

import numpy as np

from ...program.program import Kind
from .addresses import Addresses, Root
from .kernel import STATUS, Launch, Parameter
from .kernels.stores import StoreKernel, copy_steps, guarded
from .kernels.updates import UpdateKernel
from .steps import is_on_device, steps_of

PINNED = "pinned"  # the root of what the host learns: see `DeviceInstance.report`
# Tell the number of a failure; else count the report, of which none follows a failure.
REPORT = """\
  if (threadIdx.x == 0 && p0[0] != 0) p1[0] = p0[0];
  if (threadIdx.x == 0 && p0[0] == 0) p1[1] = p0[1] = p0[1] + 1;
"""


def can_fail(instruction):
    """Return whether the steps of an instruction may find invalid values."""
    return getattr(instruction, "can_fail", False)


class CudaSegment:
    """Instructions, the steps that compute them, and the memory that these use.

    ``inputs`` are the buffers that come from outside, ``hosts`` the buffers whose
    values the host sends, ``results`` the buffers copied out of static memory.
    ``addresses.where`` has the roots of all addresses. ``numbers`` are the numbers of the
    instructions that can fail.
    """

    def __init__(self, name, plan, numbers):
        self.name, self.plan = name, plan
        self.instructions, self.steps = [], []
        # Sets in the order in which they are met.
        self.inputs, self.hosts, self.results = {}, {}, {}
        self.addresses = Addresses(self._root_of)
        self._stored = {}  # id of a variable -> its root from here on
        self._pairs, self._copied = [], set()  # copies to make, what they touch
        self._numbers = numbers  # of failures
        self.synchronizes = False  # whether a replay waits for the end
        self.is_last = False  # whether its launch is the last commit of a replay
        self.functions = None  # by name, once they are compiled

    def append(self, instruction, may_have_failed):
        """Add an instruction. ``may_have_failed``: whether an earlier check may have."""
        self.instructions.append(instruction)
        if can_fail(instruction):
            instruction.number = self._numbers[instruction]
        if type(instruction) is StoreKernel:
            self._store(instruction, may_have_failed)
            return
        self._flush(may_have_failed)
        steps = steps_of(instruction, self.addresses)
        if type(instruction) is UpdateKernel:
            for root, dtype in instruction.numbers:
                self.plan.number(root, dtype.itemsize)
            steps = [self._guarded(step) if may_have_failed else step for step in steps]
        self.steps += steps
        for out in instruction.outputs:
            if not out.size:  # no step needs to write it
                self.addresses[out]
        workspaces = [getattr(step, "workspace_bytes", 0) for step in steps]
        self.plan.workspace = max([self.plan.workspace, *workspaces])

    def close(self, may_have_failed):
        """Create the final steps: stores, and the report of a failure."""
        self._flush(may_have_failed)
        if self.reports:
            status, pinned = self.addresses[STATUS], self.addresses[PINNED]
            whole = np.dtype(np.int32)
            parameters = Parameter(status, whole, True), Parameter(pinned, whole, True)
            self.steps.append(Launch(REPORT, parameters, (1, 1, 1), (1, 1, 1)))

    def takes(self, instruction):
        """Return whether an instruction may join the graph of the instructions before it.

        A variable must not be both stored to and updated, nor updated by two
        optimizers, as each uses another array.
        """
        own = _holders(instruction)
        for each in self.instructions if own else ():
            for variable, holder in _holders(each).items():
                if own.get(variable, holder) is not holder:
                    return False
        return True

    def writes(self, variable):
        """Return whether the segment changes a variable."""
        written = [v for each in self.instructions for v in each.variables_written]
        return any([v is variable for v in written])

    def uses(self, variable):
        """Return whether the updates of the segment read or change a host variable."""
        used = [
            v for e in self.updates for v in (*e.variables_read, *e.variables_written)
        ]
        return any([v is variable for v in used])

    @property
    def reports(self):
        """Return whether the segment may find invalid values."""
        return any(map(can_fail, self.instructions))

    def number_specs(self):
        """The shape and dtype of each host value, by its root."""
        for base in self.hosts:
            yield self.root_of_host(base), (base.shape, base.dtype)
        for kernel in self.updates:
            yield from [(root, ((), dtype)) for root, dtype in kernel.numbers]

    @staticmethod
    def root_of_host(base):
        """Return the root of a host value."""
        return Root("number", base)

    @property
    def updates(self):
        return [each for each in self.instructions if type(each) is UpdateKernel]

    @property
    def stores(self):
        """The variables that are stored to, without duplicates."""
        variables = [e.variable for e in self.instructions if type(e) is StoreKernel]
        return list({id(v): v for v in variables}.values())

    # --- stores

    def _store(self, store, may_have_failed):
        """Copy together with earlier stores, unless that overwrites one of their operands."""
        pair = store.pair(self.addresses)
        touched = {self._owner_of(position) for position in pair[:2]}
        if not self._copied.isdisjoint(touched):
            self._flush(may_have_failed)
        self._pairs.append(pair)
        self._copied |= touched
        self._stored[id(store.variable)] = store.root

    def _owner_of(self, position):
        """Return a key of the memory at a position: a variable may be overwritten in place."""
        root, offset = self.addresses.where[position]
        return id(root.key) if root.kind in ("variable", "stored") else (root, offset)

    def _flush(self, may_have_failed):
        pairs, self._pairs, self._copied = self._pairs, [], set()
        for step in copy_steps(pairs):
            self.steps.append(self._guarded(step) if may_have_failed else step)

    def _guarded(self, step):
        if type(step) is not Launch:
            raise NotImplementedError(f"a library call changes variables: {step!r}")
        return guarded(step, self.addresses[STATUS])

    # --- memory

    def _root_of(self, base):
        """Return ``(root, offset)`` of a base buffer; record values copied in or out."""
        if base.is_constant:
            self.plan.constants.setdefault(base)
            return Root("constant", base), 0
        if base.kind is Kind.HOST:
            root = self.root_of_host(base)
            self.plan.number(root, base.nbytes)
            self.hosts.setdefault(base)
            return root, 0
        if base.offset is not None:
            return Root("arena"), base.offset
        if base.kind is Kind.SLOT:
            return Root("slot", base), 0
        if base.kind is Kind.VARIABLE:
            variable = base.source
            return self._stored.get(id(variable), Root("variable", variable)), 0
        if base.instruction is None or not is_on_device(base.instruction):
            self.inputs.setdefault(base)
            return Root("input", base), 0
        if base.instruction in self.instructions:
            self.results.setdefault(base)
        self.plan.keep(base)
        return Root("static", base), 0


def _holders(instruction):
    """Map ids of variables that an instruction changes to the owners of their arrays."""
    if type(instruction) is UpdateKernel:
        return instruction.step.holders()
    is_store = type(instruction) is StoreKernel
    return {id(instruction.variable): StoreKernel} if is_store else {}
