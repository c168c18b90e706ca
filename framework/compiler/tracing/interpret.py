"""Interpret a graph: run its nodes through their ops, seen by tapes and tracers.

This is how traced functions are differentiated, mapped over, and inlined into another
trace. An `Executable` runs the same nodes at a tenth of the cost, unseen by
interpreters.
"""

import numpy as np

from tapewright.core.hardware.devices import array_module, copy_to, is_array, to_numpy
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    notify_of_writes,
)
from tapewright.core.shapes.symbolic_shape import sizes_in_use, substitute
from tapewright.core.tape import Tape
from tapewright.core.tensor import Tensor, convert_to_tensor, new_tensor
from tapewright.core.variable import writing

from .graph import Effect, Read, Value, Write


def interpret(graph, inputs, env=None, constants=None):
    """Return the outputs of a graph for these tensors.

    ``env`` receives the tensor of each value. ``constants`` maps the id of a constant
    tensor to its replacement.
    """
    env = {} if env is None else env
    env.update(zip(graph.inputs, inputs, strict=True))
    for value, tensor in graph.captures.items():
        env.setdefault(value, tensor)
    for other, value in graph.aliases.items():
        env[other] = env[value]
    tracer = active_tracer()
    if tracer is None:
        with writing([v for node in graph.nodes for v in node.writes]):
            _run(graph, env, constants, None)
    else:
        line = tracer.line
        try:
            _run(graph, env, constants, tracer)
        finally:
            tracer.line = line
    return [_found(x, env, constants) for x in graph.outputs]


def _run(graph, env, constants, tracer):
    sizes = sizes_in_use()
    for node in graph.nodes:
        if tracer is not None:
            tracer.line = node.line
        args = [_found(x, env, constants) for x in node.inputs]
        if type(node) is Read:
            outputs = (node.variable._tw_read_uncast(),)
        elif type(node) is Write:
            node.variable.assign(args[0])
            continue
        elif type(node) is Effect:
            specs = [
                (v.shape if sizes is None else substitute(v.shape, sizes), v.dtype)
                for v in node.outputs
            ]
            outputs = perform_effect(
                node.kind,
                node.call,
                args,
                node.attributes,
                specs,
                node.reads,
                node.writes,
            )
        elif node.op is None:
            outputs = node.interpret(args, env)
        else:
            attributes = node.attributes
            if sizes is not None:
                attributes = substitute(attributes, sizes)
            args = _in_one_module(node.inputs, args)
            if node.op.values_of is not None and _is_on_tape():
                # A tape knows values and vectors of one call, see `autodiff.confluence`.
                outputs = node.op.values_of.entry(*args)[:1]
            else:
                outputs = node.op.general(tuple(args), attributes)
            outputs = outputs if type(outputs) is tuple else (outputs,)
        env.update(zip(node.outputs, outputs))


def _is_on_tape():
    return any([isinstance(each, Tape) for each in active_interpreters()])


def _found(x, env, constants):
    if type(x) is Value:
        return env[x]
    return x if constants is None else constants.get(id(x), x)


def _in_one_module(inputs, args):
    """Return ``args`` with constants of the graph copied to the device of the other arrays.

    A step counter and the state of a generator are on the host, while a constant that
    was traced or loaded with them may be on a GPU. Strings stay on the host.
    """
    fixed = [i for i, x in enumerate(inputs) if type(x) is not Value]
    if not fixed or any([type(a) is not Tensor for a in args]):
        return args
    modules = [array_module(type(a.array)) for a in args]
    others = {m for i, m in enumerate(modules) if i not in fixed}
    if len(others) != 1:
        return args
    (module,) = others
    for i in fixed:
        if modules[i] is not module and not args[i].array.dtype.hasobject:
            args[i] = new_tensor(copy_to(module, args[i].array))
    return args


def perform_effect(kind, call, inputs, attributes=None, specs=(), reads=(), writes=()):
    """Execute the call of an effect, or add an `Effect` to the active trace."""
    notify_of_writes(writes, kind)
    tracer = active_tracer()
    if tracer is not None:
        return tracer.effect(kind, call, inputs, attributes, specs, reads, writes)
    arrays = [convert_to_tensor(x).array for x in inputs]
    if not (reads or writes):  # Python code expects arrays of NumPy
        arrays = [to_numpy(a) for a in arrays]
    outputs = call(*arrays) or ()
    return tuple([new_tensor(a if is_array(a) else np.asarray(a)) for a in outputs])
