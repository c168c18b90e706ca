"""Conditionals as If, loops as Loop.

Regions read the tensors around them by name.
"""

import numpy as np

from ..operands import Operand, Untranslatable


def cond(w, node, operands, known):
    choice, *rest = operands
    return _cases(w, node, choice, rest, known, 0)


def _cases(w, node, choice, rest, known, number):
    """Write regions from a number on as nested Ifs; return their results."""
    regions = node.regions
    if number == len(regions) - 1:
        return _inlined(w, regions[number], rest, known)
    if choice.dtype.kind == "b":
        test = w.emit("Reshape", choice, np.zeros(0, np.int64))
    else:
        is_this = w.emit("Equal", choice, np.asarray(number, choice.dtype))
        test = w.emit("Reshape", is_this, np.zeros(0, np.int64))
    then = w.subgraph("then", lambda: _inlined(w, regions[number], rest, known))
    other = w.subgraph("else", lambda: _cases(w, node, choice, rest, known, number + 1))
    count = len(node.outputs)
    if not count:
        return []
    names = w.emit("If", test, outputs=count, then_branch=then, else_branch=other)
    return [
        Operand(v.shape, v.dtype, w.block, name)
        for v, name in zip(node.outputs, names, strict=True)
    ]


def _inlined(w, region, operands, known):
    inner = dict(known)
    inner.update(zip(region.inputs, operands, strict=True))
    return w.region(region, inner)


def loop(w, node, operands, known):
    if node.variables:
        raise Untranslatable("a loop that assigns variables")
    if any([v.dtype.kind == "O" and not v.shape for v in node.outputs]) or (
        node.stacked and node.capacity is None
    ):
        raise Untranslatable(
            "a loop that makes a list of unknown length; use a fixed number of steps"
        )
    if node.stacked and node.tested:
        raise Untranslatable("a loop with a condition that also stacks values")
    count, carried, sliced, constants = node.grouped(node.OPERANDS, operands)
    body = node.regions[0]
    if count:
        steps = w.emit("Reshape", w.cast(count[0], np.int64), w.axes())
    elif node.tested:
        steps = None if node.maximum is None else np.int64(node.maximum)
    else:
        length = sliced[0].shape[0] if node.length is None else node.length
        steps = w.emit("Reshape", w.size(length), w.axes())
    sums = [w.zeros(v) for v in body.outputs[node.carried : node.carried + node.summed]]
    goes_on = np.bool_(True)
    if node.tested:
        (test,) = _inlined(w, node.regions[1], [*carried, *constants], known)
        goes_on = w.emit("Reshape", test, w.axes())
    counter = [np.int64(0)] if node.tested else []
    number, going = w.new_name("step"), w.new_name("goes_on")
    state = body.inputs[: node.carried]
    names = [w.new_name("carried") for _ in state]
    sum_values = body.outputs[node.carried : node.carried + node.summed]
    sum_names = [w.new_name("sum") for _ in sum_values]
    counted = [w.new_name("count") for _ in counter]
    inputs = [
        w.value_info(number, np.int64, 0),
        w.value_info(going, np.bool_, 0),
        *[w.value_info(n, v.dtype, len(v.shape)) for n, v in zip(names, state)],
        *[
            w.value_info(n, v.dtype, len(v.shape))
            for n, v in zip(sum_names, sum_values)
        ],
        *[w.value_info(n, np.int64, 0) for n in counted],
    ]

    def write():
        block = w.block
        own = [Operand(v.shape, v.dtype, block, n) for n, v in zip(names, state)]
        index = number
        if node.reverse:
            last = w.emit("Sub", steps, np.int64(1))
            index = w.emit("Sub", last, number)
        rows = [
            Operand(x.shape[1:], x.dtype, block, w.emit("Gather", x, index, axis=0))
            for x in sliced
        ]
        outputs = _inlined(w, body, [*own, *rows, *constants], known)
        after, terms, stacks = node.grouped(node.GROUPS[0][1], outputs)
        totals = [
            Operand(t.shape, t.dtype, block, w.emit("Add", name, t))
            for name, t in zip(sum_names, terms)
        ]
        still = Operand((), np.dtype(bool), block, value=np.asarray(True))
        if node.tested:
            (test,) = _inlined(w, node.regions[1], [*after, *constants], known)
            flag = w.emit("Reshape", test, w.axes())
            still = Operand((), np.dtype(bool), block, flag)
        more = [
            Operand((), np.dtype(np.int64), block, w.emit("Add", n, np.int64(1)))
            for n in counted
        ]
        return [still, *after, *totals, *more, *stacks]

    graph = w.subgraph("body", write, inputs)
    initial = [*carried, *sums, *counter]
    results = w.emit(
        "Loop",
        steps,
        goes_on,
        *initial,
        outputs=len(initial) + node.stacked,
        body=graph,
    )
    fixed = node.carried + node.summed
    finals = results[:fixed]
    if node.tested:
        finals.append(w.cast(results[fixed], np.int32))
    stacks = results[fixed + len(counter) :]
    if node.reverse:
        stacks = [w.emit("Slice", s, w.axes(-1), w.axes(-(2**62)), w.axes(0), w.axes(-1))
                  for s in stacks]  # fmt: skip
    return [*finals, *stacks]


CONTROL_FLOW = {"Cond": cond, "LoopNode": loop}
