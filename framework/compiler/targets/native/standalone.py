"""A traced function as machine code that needs neither Python nor this process.

All instructions are one segment on one thread, with products by `gemm` in place of BLAS.
Whoever calls its functions provides the memory: `Standalone` says where each address of
their context points to.
"""

from dataclasses import replace
from typing import NamedTuple

from ...passes.pooling_passes import pool_first
from ...program.buffer_assignment import BufferAssignment
from ...program.instructions.array_instructions import Copy
from ...program.instructions.call_instructions import (
    LoadVariable,
    RegionCall,
    StoreVariable,
    Update,
)
from ...program.instructions.instruction import Memory
from ...program.instructions.variable_update import Rule
from ...program.limits import limits_in_use
from ...program.lowering.array_functions import copy_into
from ...program.lowering.update_lowering import lower_updates
from ...program.program import Program
from ...tracing.graph import Node
from ..target import SIMPLIFICATION
from .jit import engine, thread_pool
from .llvm_writer import Writer
from .loop_support import reason_for_numpy
from .products import gemm
from .segments import Kernels, NativeSegment, code_of
from .target import TARGET


class Standalone(NamedTuple):
    """The code of a program, and what its functions need.

    Attributes:
        program: The `Program`, with its memory assigned.
        modules: Pairs ``(text, level)``, see `engine.joined_object_code`.
        functions: Names of functions ``i64 f(ptr context)``, to be called in this order
            until one returns the number of an instruction of ``fallible``, from 1.
        addresses: The words of the context: integers, names of functions, or pairs of a
            buffer (or `segments.ARENA`) and an offset in bytes.
        fallible: The instructions that can fail, before any variable has changed.
        stores: Pairs of a variable and the buffer of its new value; None if the program
            overwrites the old one.
        arena_size: Bytes of the arena.
        packed_size: Bytes that `gemm.STANDALONE_MEMORY` returns.
    """

    program: Program
    modules: list
    functions: list
    addresses: list
    fallible: list
    stores: list
    arena_size: int
    packed_size: int


def standalone(steps, host):
    """Return the code of a graph.

    Args:
        steps: The `stages` of the graph for the target `STANDALONE`, an iterator.
        host: The `Host` that runs the code.

    Raises:
        NotImplementedError: If an instruction has no machine code; lists all of them.
    """
    for name, _ in steps:
        if name == "lower":
            break  # up to here, kernels may run on this CPU: constants are folded
    with engine.compiling_for(host):
        *_, (_, program) = steps
        _refuse_others(program)
        return _code_of(program)


def _own_results(program):
    """Allocate separate memory in C order for results and new values of variables."""
    taken = set()

    def own(buffer):
        made = buffer.instruction
        is_new = made is not None and made.memory is Memory.ASSIGNED
        if not is_new or buffer in taken:
            node = Node(Rule, (), {}) if made is None else made.node
            copy = Copy(copy_into, (buffer,), node)
            (buffer,) = program.append(copy, (buffer.shape, buffer.dtype))
        taken.add(buffer)
        return buffer

    program.outputs = [own(buffer) for buffer in program.outputs]
    stores = [each for each in program.instructions if type(each) is StoreVariable]
    for each in stores:
        each.operands = (own(*each.operands),)
    program.instructions.sort(key=lambda each: type(each) is StoreVariable)


STANDALONE = TARGET._replace(
    name="standalone",
    graph_passes=tuple(
        [each for each in TARGET.graph_passes if each is not pool_first]
    ),
    lowering=lambda: {
        **TARGET.lowering(),
        "limits": replace(limits_in_use(), is_standalone=True),
    },
    program_passes=(
        lower_updates,
        *SIMPLIFICATION,
        _own_results,
        *[each for each in TARGET.program_passes if each not in SIMPLIFICATION],
    ),
)


def _refuse_others(program):
    """Raise an error that lists the instructions without machine code."""
    known = (LoadVariable, StoreVariable)
    others = [
        each
        for each in program.instructions
        if code_of(each) is None and type(each) not in known and each.viewed is None
    ]
    if others or not program.commits_once:
        listed = [f"{_reason(each)}: {_describe(each)}" for each in others]
        if not program.commits_once:
            listed.append("variables are read after they were assigned")
        raise NotImplementedError(
            f"the function {program.graph.name!r} has parts without machine code:\n  "
            + "\n  ".join(listed)
        )


def _reason(instruction):
    if type(instruction) is RegionCall:
        return "a branch or a loop"
    if type(instruction) is Update:
        return "an optimizer step that Python computes"
    return reason_for_numpy(instruction)


def _describe(instruction):
    return f"the op {instruction.node.name}, {instruction.node.line}"


def _code_of(program):
    assignment = BufferAssignment(program)
    segment = NativeSegment("program", assignment.arena_size, program.limits)
    pairs = {}
    for outputs in program.in_place.values():
        pairs.update(outputs)
    segment.overwrites = {out: old for out, (_, old) in pairs.items()}
    packed = 0
    for each in program.instructions:
        code = code_of(each)
        if code is not None:
            segment.append(each)
            packed = max(packed, code.packed_bytes)
    writer, kernels = Writer(program.limits), Kernels(program.limits)
    written = segment.write(writer, kernels)
    keys = [*segment.arrays]
    return Standalone(
        program,
        [
            (writer.text(), 0),
            *kernels.modules.values(),
            *[
                (text, 0)
                for text in gemm.texts(
                    kernels.declared | {*writer.declared}, program.limits
                )
            ],
            (_serial_pool(), 0),
        ],
        written["symbols"],
        [
            word if argument < 0 else (keys[argument], word)
            for argument, word in written["addresses"]
        ],
        segment.fallible,
        [
            (each.variable, None if out in pairs else out)
            for each in program.instructions
            if type(each) is StoreVariable
            for out in each.operands
        ],
        assignment.arena_size,
        packed,
    )


def _serial_pool():
    writer = Writer()
    thread_pool.write_serial_pool(writer)
    return writer.text()
