"""Record nodes with regions on tapes: one record, whose pullback is another such node.

Intermediate results of a region are not kept as residuals. The backward pass recomputes
them from the operands (in a loop, from the state before each step) and from the results
of effects. It consists of nodes of the same kinds, which outer tapes record in the same
way, so gradients of every order exist.
"""

from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.op_definition.user_gradients import from_user, to_user
from tapewright.core.record import Pullback, add_cotangent
from tapewright.core.tape import Tape
from tapewright.core.tensor import IndexedSlices, convert_to_tensor, next_key
from tapewright.ops.array.indexed_slices import dense

from ..tracing.custom_calls import CustomCall
from ..tracing.graph import reads_by_time
from ..tracing.handles import HANDLE
from ..tracing.interpret import interpret
from .effects import refuse_mapped


def emit(node, tensors):
    """Add a node with regions to the trace and return its outputs.

    Tapes above the tracer record it as one call; see `RegionNode.recorded` for the
    record.
    """
    interpreters = active_interpreters()
    at = max(i for i, interpreter in enumerate(interpreters) if interpreter.traces)
    refuse_mapped(f"{node.name} of a traced function", tensors)
    above = [r for r in interpreters[at + 1 :] if r.takes_records]
    _refuse_inner_sources(node, above)
    above = [r for r in above if _tracked(r, node, tensors).count(True)]
    if not above:
        return interpreters[at].append_with_variables(node, tensors)
    count = len(node.outputs)
    node, gradient = node.recorded()
    outputs = interpreters[at].append_with_variables(node, tensors)
    for i, interpreter in enumerate(interpreters[at + 1 :], at + 1):
        if interpreter in above:
            _record(interpreter, node, tensors, outputs, gradient, interpreters[:i])
    return outputs[:count]


def _tracked(interpreter, node, tensors):
    """Return for each operand whether it needs a gradient."""
    kinds = node.operand_kinds(tensors)
    return [
        x.key in interpreter.known and kind in "fc"
        for x, kind in zip(tensors, kinds, strict=True)
    ]


def _refuse_inner_sources(node, tapes):
    """Raise if a variable would be a source of gradients in the middle of a region."""
    for graph in node.regions if tapes else ():
        for each in [read for reads in reads_by_time(graph) for read in reads]:
            if any([_follows(tape, each.variable) for tape in tapes]):
                raise TracingError(
                    f"{each.line}: the variable '{each.variable.path}' is changed "
                    f"and then read in {node.name}, under an outer tape that watches "
                    "it: put the tape inside as well, or make the variable "
                    "trainable=False"
                )


def _follows(tape, variable):
    watched = getattr(tape, "variables", ())
    return id(variable) in watched or (
        variable._tw_is_accessible and getattr(tape, "accessed", False)
    )


def _record(interpreter, node, tensors, outputs, gradient, below):
    tracked = _tracked(interpreter, node, tensors)
    for out in outputs:
        if type(out.key) is not int:
            out.key = next_key()
    record = (
        Pullback(node.name, _pull_back),
        tuple([out.key for out in outputs]),
        tuple([x.key for x, is_tracked in zip(tensors, tracked) if is_tracked]),
        *(node, gradient, tracked, tensors, outputs),
    )
    interpreter.process_record(record, outputs, below)
    lists = [
        out.key
        for out, kind in zip(outputs, node.result_kinds(outputs))
        if is_list(out) and kind in "fc"
    ]
    if lists and not isinstance(interpreter, Tape):
        raise TracingError(
            f"{node.name}: forward mode through a loop of a traced function needs a "
            "bound on its steps: pass maximum_iterations"
        )
    for key in lists:
        interpreter.known.add(key)


def _pull_back(record, g, cotangents, useful):
    """Add the cotangents of the operands of one node."""
    _, _, inputs, node, gradient, tracked, tensors, outputs = record
    on_arrays = active_interpreter() is ARRAY_EVAL
    keys = dict(zip([i for i, t in enumerate(tracked) if t], inputs))
    wanted = [i for i, key in keys.items() if useful is None or key in useful]
    with use_interpreters(() if on_arrays else active_interpreters()):
        dense_g = [_dense(c) for c in g]
        given = [c if is_list(c) else to_user(c, on_arrays) for c in dense_g]
        gradients = gradient(tensors, outputs, given, wanted)
        for i, part in zip(wanted, gradients, strict=True):
            if not is_list(part):
                part = from_user(part, on_arrays)
            elif keys[i] in cotangents:
                part = node.sum_of_lists(i, cotangents.pop(keys[i]), part)
            add_cotangent(cotangents, keys[i], part, useful)


def is_list(x):
    """Return whether a tensor is a list value, the output of a loop of unknown length."""
    return x is not None and x.array.dtype == HANDLE


def _dense(g):
    return dense(g) if isinstance(g, IndexedSlices) else g


def region_gradients(graph, inputs, wanted, cotangents, of_variables=()):
    """Return the gradients of a graph by its inputs ``wanted``, and its outputs.

    ``wanted`` are input numbers; ``cotangents`` has one entry per output, a tensor or
    None; ``of_variables`` are pairs of a variable and the number of its input.
    """
    with active_tracer().assigning_nothing():  # the forward pass has assigned already
        return _traced_gradients(graph, inputs, wanted, cotangents, of_variables)


def _traced_gradients(graph, inputs, wanted, cotangents, of_variables):
    by_variable = {}  # one input for each, though two branches may have one of their own
    for v, i in of_variables:
        if i in wanted and _has_gradient_by(graph, v):
            by_variable.setdefault(id(v), (v, i))
    pairs = list(by_variable.values())
    sources = [*[inputs[i] for i in wanted], *[v for v, _ in pairs]]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        outputs = interpret(graph, inputs)
    present = [(out, c) for out, c in zip(outputs, cotangents) if c is not None]
    if not present:
        return [None] * len(wanted), outputs
    targets, seeds = zip(*present)
    gradients = tape.gradient(list(targets), sources, output_gradients=list(seeds))
    gradients = [g if g is None else convert_to_tensor(_dense(g)) for g in gradients]
    for (_, i), more in zip(pairs, gradients[len(wanted) :]):
        n = wanted.index(i)
        if more is not None:
            gradients[n] = more if gradients[n] is None else gradients[n] + more
    return gradients[: len(wanted)], outputs


def _has_gradient_by(graph, variable):
    """Return whether a custom gradient in the graph includes a gradient by this variable."""
    return any(
        v is variable
        for node in graph.nodes
        if isinstance(node, CustomCall)
        for v in (*node.variables, *node.sources)
    )
