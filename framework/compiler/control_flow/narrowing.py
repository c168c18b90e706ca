"""Branches and loops cut down to what is used of them.

``narrowed(used)`` of a node takes a flag for each output. It returns the smaller node, the
numbers of the outputs that it keeps, and of the inputs that it takes; None: it stays.
"""

__all__ = ["narrowed_cond", "narrowed_loop"]


def narrowed_cond(node, used):
    """The `Cond` with the outputs ``used``: ``(node, its outputs, its inputs)`` by number."""
    outputs = _numbers(used)
    live = set()
    for graph in node.graphs:
        live |= graph.live_values([graph.outputs[i] for i in outputs])
    columns = list(zip(*[graph.inputs for graph in node.graphs]))
    inputs = _numbers([not live.isdisjoint(column) for column in columns])
    if len(outputs) == len(used) and len(inputs) == len(columns):
        return None
    place = {old: new for new, old in enumerate(inputs)}
    variables = [(v, place[i]) for v, i in node.of_variables if i in place]
    graphs = [_cut(graph, outputs, inputs) for graph in node.graphs]
    twin = type(node)(graphs, variables, node.title, node.line)
    return twin, outputs, [0, *[i + 1 for i in inputs]]


def narrowed_loop(node, used):
    """The `Loop` with the outputs ``used``: ``(node, its outputs, its inputs)`` by number."""
    body, carried = node.graphs[0], node.carried
    fixed = carried + node.summed
    outside = used[:fixed] + used[fixed + node.tested :]  # in the order of the body
    outputs = _needed_outputs(node, outside)
    live = _live(node, outputs)
    stop = carried + node.sliced
    inputs = [
        i
        for i, value in enumerate(body.inputs)
        if (i in outputs if i < carried else value in live)
    ]
    if node.sliced and not node.tested and not node.counted and node.length is None:
        inputs = sorted({carried, *inputs})  # it says how many steps there are
    if len(outputs) == len(body.outputs) and len(inputs) == len(body.inputs):
        return None
    graphs = [_cut(body, outputs, inputs)]
    if node.tested:
        numbers = [
            i - node.sliced * (i >= stop) for i in inputs if not carried <= i < stop
        ]
        graphs.append(_cut(node.graphs[1], [0], numbers))
    place = {old: new for new, old in enumerate(inputs)}
    twin = node.again(
        graphs,
        carried=len([i for i in outputs if i < carried]),
        summed=len([i for i in outputs if carried <= i < fixed]),
        stacked=len([i for i in outputs if i >= fixed]),
        sliced=len([i for i in inputs if carried <= i < stop]),
        of_variables=[(v, place[i]) for v, i in node.of_variables if i in place],
    )
    given = [i for i in outputs if i < fixed]
    given += [fixed] * node.tested
    given += [i + node.tested for i in outputs if i >= fixed]
    taken = [0] * node.counted + [i + node.counted for i in inputs]
    return twin, given, taken


def _needed_outputs(node, used):
    """The outputs of the body that are used: outside, by the test or in a later step."""
    body, own = node.graphs[0], node.carried - len(node.variables)
    needed = {i for i, flag in enumerate(used) if flag}
    needed.update(range(own, node.carried))
    before = None
    while before != needed:
        before = set(needed)
        live = _live(node, needed)
        needed.update([i for i in range(node.carried) if body.inputs[i] in live])
    return sorted(needed)


def _live(node, outputs):
    """The inputs of the body that these outputs need, and what the test needs."""
    body = node.graphs[0]
    live = body.live_values([body.outputs[i] for i in outputs])
    if node.tested:
        test = node.graphs[1]
        wanted = test.live_values(test.outputs)
        for i, value in enumerate(test.inputs):
            if value in wanted:
                live.add(body.inputs[i if i < node.carried else i + node.sliced])
    return live


def _cut(graph, outputs, inputs):
    """The graph with these of its outputs and inputs, by number."""
    twin = graph.replaced(graph.nodes, [graph.outputs[i] for i in outputs])
    twin.inputs = [graph.inputs[i] for i in inputs]
    return twin


def _numbers(flags):
    return [i for i, flag in enumerate(flags) if flag]
