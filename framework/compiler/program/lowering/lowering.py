"""Lower a graph to a `Program`.

An op is lowered by its rule (`lowering_rules`), else by tracing its kernel (`array_tracer`),
else, if the kernel cannot be traced, to one call of the kernel.
"""

from functools import partial

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.errors import VerificationError
from tapewright.core.hardware.devices import array_module, check_fits, to_numpy
from tapewright.core.primitive import widened
from tapewright.core.text import use_text
from tapewright.ops.collective import all_reduce_sum

from ...tracing.graph import Effect, Read, Write, is_value
from ..instructions.all_reduce_instructions import AllReduce
from ..instructions.array_instructions import Copy
from ..instructions.call_instructions import (
    EffectCall,
    LoadVariable,
    Opaque,
    RegionCall,
    StoreVariable,
    Update,
)
from ..instructions.variable_update import VariableUpdate
from ..passes.atomicity import commits_once, fallible_first
from ..program import Buffer, Kind, Program
from .array_functions import NotTraceable, copy_into
from .array_tracer import HOST_FREE, ArrayTracer, Builder, LoopBuilder
from .lowering_rules import (
    CPU_LOOP_RULES,
    HOST_RULES,
    KERNEL_INSTRUCTIONS,
    LOOP_RULES,
    LOWERING_RULES,
)


def lower(
    graph,
    array_type=np.ndarray,
    aliases_inputs=False,
    donated_inputs=(),
    in_loops=False,
    is_supported=None,
    limits=None,
):
    """Return the `Program` of a graph for arrays of a type; see `Program` for the rest.

    ``in_loops``: the target compiles loops, so that kernels are lowered by their
    definitions, not as the calls that are fastest in NumPy.
    ``is_supported(instruction)`` returns whether the target can compile it, where
    nothing else could run it: otherwise the op becomes a call of its kernel.
    """
    program = Program(graph, aliases_inputs, donated_inputs, limits)
    known = {}  # value -> buffer
    for value in (*graph.inputs, *graph.captures):
        known[value] = Buffer(value.shape, value.dtype, Kind.INPUT, source=value)
        program.inputs.append(known[value])

    def buffer_of(x):
        return known[x] if is_value(x) else program.constant(to_numpy(x.array))

    nodes, program.fails_late = fallible_first(graph)
    program.commits_once = commits_once(graph)
    for node in nodes:
        for value in node.outputs:
            check_fits(node.name, value.shape, value.dtype)
        operands = tuple([buffer_of(x) for x in node.inputs])
        if node.is_alias or _is_alone(node):
            outputs = operands[: len(node.outputs)]
        elif node.op is not None:
            how = array_type, in_loops, is_supported
            outputs = _lowered_op(program, node, operands, *how)
        else:
            outputs = _lowered_node(program, node, operands)
        if node.is_collective and not _is_alone(node):
            program.collectives.append(node)
        known.update(zip(node.outputs, outputs, strict=True))
    program.outputs = [buffer_of(x) for x in graph.outputs]
    return program


def _is_alone(node):
    """Return whether a node is a collective in a single-process job: an identity."""
    is_op = node.op is not None and node.op.collective
    return is_op and communicator().size == 1


def _specs(node):
    return [(value.shape, value.dtype) for value in node.outputs]


# ------------------------------------------------------------ variables, effects, loops


def _lowered_node(program, node, operands):
    """Lower a node that is not an op; return its outputs."""
    if type(node) is Read:
        (loaded,) = program.append(LoadVariable((), node), *_specs(node))
        loaded.kind, loaded.source = Kind.VARIABLE, node.variable
        return (loaded,)
    if type(node) is Write:
        (buffer,) = operands
        if program.aliases_inputs and _may_be_an_input(buffer):
            copy = Copy(copy_into, operands, node)
            operands = program.append(copy, (buffer.shape, buffer.dtype))
        return program.append(StoreVariable(operands, node))
    if type(node) is Effect and isinstance(node.call, VariableUpdate):
        return program.append(Update(node.call, operands, node))
    if type(node) is Effect:
        instruction = EffectCall(node.call, operands, node)
    elif node.regions:
        instruction = RegionCall(operands, node)
    elif node.is_effect:
        instruction = EffectCall(node.kernel(), operands, node)
    else:
        instruction = Opaque(node.kernel(), operands, node, donates=node.donates)
    return program.append(instruction, *_specs(node))


def _may_be_an_input(buffer):
    """Return whether a buffer may share the memory of an input."""
    base = buffer.base
    if base.instruction is None or not base.instruction.may_alias:
        return base.kind is Kind.INPUT
    return any([_may_be_an_input(a) for a in base.instruction.operands])


# --------------------------------------------------------------------------------- ops


def _lowered_op(program, node, operands, array_type, in_loops, is_supported):
    """Lower an op; return its outputs."""
    op = node.op
    if op.collective:
        return _collective(program, node, operands, array_type)
    if any([x.dtype.hasobject for x in (*operands, *node.outputs)]):  # strings
        use_text()
        attributes = dict(node.attributes)
        call = Opaque(op.kernels.plain(np.ndarray), operands, node, attributes)
        return program.append(call, *_specs(node))
    if in_loops:
        count = len(program.instructions)
        outputs = _lowered_in_loops(program, node, operands, array_module(array_type))
        made = program.instructions[count:]
        if outputs and (is_supported is None or all(map(is_supported, made))):
            return outputs
        del program.instructions[count:]
    if array_type is np.ndarray:
        rule = LOWERING_RULES.get(op)
        kernel = op.device_kernels.get("numpy", op.kernel)
        outputs = rule and _traced(Builder(program, node), np, operands, rule)
        outputs = outputs or _traced(Builder(program, node), np, operands, kernel, np)
        if outputs:
            return outputs
    function = op.kernels.plain(array_type)
    kind = KERNEL_INSTRUCTIONS.get(op, Opaque)
    attributes = dict(node.attributes)
    instruction = kind(function, operands, node, attributes, op.new_memory)
    return program.append(instruction, *_specs(node))


def _collective(program, node, operands, array_type):
    """Lower an op that all processes call to a call of its kernel, without tracing."""
    keywords = dict(node.attributes)
    if array_type is np.ndarray and node.op is all_reduce_sum.primitive:
        instruction = AllReduce(operands, node, keywords)
    else:
        kernel = node.op.kernels.plain(array_type)
        instruction = Opaque(kernel, operands, node, keywords, new_memory=True)
    return program.append(instruction, *_specs(node))


def _lowered_in_loops(program, node, operands, xp):
    """Lower an op to maps and reductions; return its outputs, or None.

    An op that raises on some values is computed by NumPy, which checks them.
    """
    op = node.op
    if op in CPU_LOOP_RULES and xp is np:
        return _traced(LoopBuilder(program, node), xp, operands, CPU_LOOP_RULES[op])
    if op in LOOP_RULES:
        return _traced(LoopBuilder(program, node), xp, operands, LOOP_RULES[op])
    if op.raises_on_values(*[a.dtype for a in operands]) or op in KERNEL_INSTRUCTIONS:
        return None
    rule = LOWERING_RULES.get(op)
    if rule in HOST_RULES:
        rule = None
    outputs = rule and _traced(Builder(program, node), xp, operands, rule)
    return outputs or _traced(
        LoopBuilder(program, node), xp, operands, op.kernel, HOST_FREE
    )


def _traced(builder, xp, operands, function, *first):
    """Trace a rule or kernel, for arrays of a module; return its outputs.

    Returns None if it cannot be traced.
    """
    program, node = builder.program, builder.node
    count = len(program.instructions)
    tracers = [ArrayTracer(a, builder) for a in operands]
    traced = widened(node.op, partial(function, *(first or (builder,))), xp)
    try:
        result = traced(*tracers, **node.attributes)
        results = result if type(result) is tuple else (result,)
        buffers = [builder.buffer(r) for r in results]
    except Exception as error:
        # NumPy turns a refusal into a ValueError if values are put into its own array.
        if not (isinstance(error, NotTraceable) or builder.refused):
            raise node.op.explain_kernel(error, operands) from None
        del program.instructions[count:]
        return None
    made = [(x.shape, x.dtype) for x in buffers]
    if made != _specs(node):
        raise VerificationError(
            f"the kernel of {node.name} returns {made}, but its shape rule {_specs(node)}"
        )
    return buffers
