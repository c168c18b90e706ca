"""`StoreKernel`: copy a value to the array of a variable.

The array of a variable is overwritten in place, at a fixed address, unless something
else references it: then the variable gets a new one (`variables`). So a value that is
read before a store and used behind it must be copied: `copy_overwritten` does so.
"""

import numpy as np

from ....loops.accesses import in_order, layout_of
from ....program.instructions.array_instructions import Copy, View
from ....program.instructions.call_instructions import (
    LoadVariable,
    StoreVariable,
    Update,
)
from ....program.lowering.array_functions import copy_into
from ....program.passes.program_rewriter import ProgramRewriter
from ....program.program import Kind
from ..addresses import Root
from ..kernel import Launch, Parameter

PAIRS = 64  # copies of one launch
THREADS, BLOCKS = 256, 132  # of one copy


class StoreKernel(StoreVariable):
    """A `StoreVariable` that copies. The stored value need not outlive the replay."""

    __slots__ = ()
    is_free, kept = False, ()

    @classmethod
    def of(cls, program, store):
        """Return the kernel for a `StoreVariable`: for a host variable, a `HostStore`."""
        (buffer,) = store.operands
        if isinstance(store.variable._array, np.ndarray):
            is_there = buffer.is_constant or buffer.kind is Kind.HOST
            return None if is_there else HostStore(store.operands, store.node)
        return cls((in_order(program, buffer, store.node),), store.node)

    @property
    def variables_overwritten(self):
        return self.node.writes

    @property
    def root(self):
        """The array of the variable after the store."""
        return Root("stored", self.variable)

    def pair(self, addresses):
        """``(from, to, buffer)`` for `copy_steps`."""
        (buffer,) = self.operands
        return start_of(addresses, buffer), addresses.at(self.root), buffer

    def steps_on(self, addresses):
        return copy_steps([self.pair(addresses)])


class HostStore(StoreVariable):
    """A `StoreVariable` of a device value to a host variable, which gets a copy."""

    __slots__ = ()
    kept = ()


def start_of(addresses, buffer):
    """Return the position of the first entry of a buffer in C order, possibly a view."""
    return addresses.at(buffer, start_in_memory(buffer))


def start_in_memory(buffer):
    """Return the byte offset of a buffer in the memory of the base of its layout."""
    return layout_of(buffer).offset * buffer.dtype.itemsize


def copy_overwritten(program):
    """Copy values of variables that are used after an instruction overwrites them.

    An update also overwrites variables before it has read all its gradients.
    """
    program.overwrites = True
    rewriter, position = ProgramRewriter(program), {}
    overwritten = {}  # id of a variable -> where it is
    for i, each in enumerate(program.instructions):
        position[each] = i
        for variable in each.variables_overwritten:
            overwritten.setdefault(id(variable), []).append(i)
    if not overwritten:
        return
    copies = []
    for instruction, variables in _sharing(program):
        writers = [n for v in variables for n in overwritten.get(v, ())]
        after = min([n for n in writers if n > position[instruction]], default=None)
        if after is None:
            continue
        if isinstance(program.instructions[after], Update):
            after -= 1
        used = [
            out for out in instruction.outputs if _last_reader(program, out) > after
        ]
        made = [_copy(program, rewriter, out) for out in used]
        rewriter.put(instruction, (instruction, *made))
        copies += zip(made, used, strict=True)
    rewriter.apply()
    for copy, out in copies:
        copy.operands = (out,)


def _sharing(program):
    """Yield instructions whose outputs may share memory with variables, with their ids.

    Host variables are left out, as they get new arrays.
    """
    held = {}  # buffer -> ids of variables
    for each in program.instructions:
        if any([out.kind is Kind.HOST for out in each.outputs]):
            continue
        if type(each) is LoadVariable:
            variables = {id(each.variable)}
        elif each.may_alias:
            variables = {v for a in each.operands for v in held.get(a.base, ())}
        else:
            continue
        held.update(dict.fromkeys(each.outputs, variables))
        if variables:
            yield each, variables


def _last_reader(program, buffer):
    """The position of the last instruction that reads a buffer, or a view of it."""
    last = len(program.instructions) if _is_output(program, buffer) else -1
    for i, each in enumerate(program.instructions):
        if type(each) is not View and any([a.base is buffer for a in each.operands]):
            last = max(last, i)
    return last


def _is_output(program, buffer):
    return any([out.base is buffer for out in program.outputs])


def _copy(program, rewriter, buffer):
    """Return the copy of a buffer that replaces it."""
    copy = Copy(copy_into, (buffer,), buffer.instruction.node)
    (copied,) = program.append(copy, (buffer.shape, buffer.dtype))
    program.instructions.pop()
    rewriter.replace(buffer, copied)
    return copy


# ------------------------------------------------------------------------------ copies


def copy_steps(pairs):
    """Return launches that copy ``(from, to, buffer)``: two addresses, and a spec.

    All are done at once: no pair copies from the target of another.
    """
    pairs = [pair for pair in pairs if pair[2].nbytes]
    groups = [pairs[i : i + PAIRS] for i in range(0, len(pairs), PAIRS)]
    return [_launch(group) for group in groups]


def _launch(pairs):
    size = min([buffer.dtype.itemsize for *_, buffer in pairs])
    size = min(size, 8)
    dtype, written = np.dtype(f"u{size}"), {to for _, to, _ in pairs}
    numbers = list(dict.fromkeys([position for pair in pairs for position in pair[:2]]))
    kind = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}
    kind = kind.get(size, "unsigned long long")
    cases = "".join(
        [
            f"    case {i}: from = p{numbers.index(a)}; to = p{numbers.index(b)}; "
            f"n = {buffer.nbytes // size}ull; break;\n"
            for i, (a, b, buffer) in enumerate(pairs)
        ]
    )
    body = f"""  for (unsigned int pair = blockIdx.y; pair < {len(pairs)}; pair += gridDim.y) {{
    const {kind}* from = 0;
    {kind}* to = 0;
    unsigned long long n = 0;
    switch (pair) {{
{cases}    }}
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
         i < n; i += (unsigned long long)gridDim.x * blockDim.x)
      to[i] = from[i];
  }}
"""
    most = max([buffer.nbytes // size for *_, buffer in pairs])
    parameters = tuple([Parameter(n, dtype, n in written) for n in numbers])
    grid = (min(-(-most // THREADS), BLOCKS), len(pairs), 1)
    return Launch(body, parameters, grid, (THREADS, 1, 1))


def guarded(step, status):
    """Return the launch, which now does nothing unless the position ``status`` holds 0."""
    number = len(step.parameters)
    condition = Parameter(status, np.dtype(np.int32), False)
    return step._replace(
        body=f"  if (p{number}[0] != 0) return;\n{step.body}",
        parameters=(*step.parameters, condition),
    )
