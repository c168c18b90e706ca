"""Passes that remove dead code: nodes, assignments, operands and results of regions."""

from ..tracing.graph import Read, Write, is_value
from .rewriting import rewrite


def dead_nodes(graph):
    """Drop nodes on which no output, effect or collective depends."""
    needed = graph.live_values(graph.outputs)
    kept = [n for n in graph.nodes if n.is_kept or not needed.isdisjoint(n.outputs)]
    return graph if len(kept) == len(graph.nodes) else graph.replaced(kept)


def dead_stores(graph):
    """Drop assignments that change nothing or are overwritten before they are read."""
    unchanged, gone = {}, set()  # id of a variable -> the value that it has
    for node in graph.nodes:
        if type(node) is Read:
            unchanged[id(node.variable)] = node.outputs[0]
        elif type(node) is Write:
            if unchanged.get(id(node.variable)) is node.inputs[0]:
                gone.add(node)
            else:
                unchanged[id(node.variable)] = node.inputs[0]
        elif node.is_effect:
            unchanged.clear()
    overwritten = set()
    for node in reversed(graph.nodes):
        if node in gone:
            continue
        if type(node) is Write:
            if id(node.variable) in overwritten:
                gone.add(node)
            overwritten.add(id(node.variable))
        elif node.is_effect:
            overwritten.clear()
        else:
            overwritten.difference_update([id(v) for v in node.reads])
    if not gone:
        return graph
    return graph.replaced([node for node in graph.nodes if node not in gone])


def narrow_control(graph):
    """Remove unused results of branches and loops, and operands that only those need."""
    if not any([node.regions for node in graph.nodes]):
        return graph
    needed, narrowed, dead = {x for x in graph.outputs if is_value(x)}, {}, set()
    for node in reversed(graph.nodes):
        if not node.is_kept and needed.isdisjoint(node.outputs):
            dead.add(node)
            continue
        inputs = node.inputs
        narrower = node.narrowed([v in needed for v in node.outputs])
        if narrower is not None:
            narrowed[node] = narrower
            inputs = [inputs[i] for i in narrower[2]]
        needed.update([x for x in inputs if is_value(x)])
    if not narrowed and not dead:
        return graph

    def replaced(rewriter, node, inputs):
        if node in dead:
            return ()
        if node not in narrowed:
            return None
        twin, outputs, taken = narrowed[node]
        twin.inputs = tuple([inputs[i] for i in taken])
        rewriter.nodes.append(twin)
        made = dict(zip(outputs, twin.outputs, strict=True))
        return [made.get(i) for i in range(len(node.outputs))]

    return rewrite(graph, replaced)
