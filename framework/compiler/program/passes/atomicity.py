"""Atomic steps: a step that fails or is interrupted leaves all variables unchanged.

Assignments and optimizer steps are *commits*. Usually no other node needs their
results, and all of them are made at once at the end (`commits_once`). A graph may also
use the new values: then the old arrays are held during a replay, so that they are not
overwritten, and bound again if the replay does not complete.

On a GPU new arrays would have new addresses, for which graphs are captured again, and
all commits of a graph are one. There, nodes that may fail move in front of the commits,
with all their dependencies; where a node cannot, because it depends on a commit, or
where Python runs between two commits, the variables are copied before the step: see
`targets/cuda/commits.py`.
"""

from ...tracing.graph import Effect, Read, Write, is_value
from ..instructions.variable_update import VariableUpdate


def may_fail(node):
    """Return whether a node may raise when it runs."""
    if node.is_alias or type(node) in (Read, Write):
        return False
    if node.op is None:
        inner = [n for graph in node.regions for n in graph.nodes]
        if inner:
            return any([may_fail(n) for n in inner])
        return node.is_effect and not _is_safe_update(node)
    return node.op.raises_on_values(
        *[getattr(x, "array", x).dtype for x in node.inputs]
    )


def _is_safe_update(node):
    """Return whether a node updates variables without running user code."""
    is_update = type(node) is Effect and isinstance(node.call, VariableUpdate)
    return is_update and not node.call.runs_user_code


def _sees_no_variables(node):
    """Return whether an effect cannot observe its order relative to the commits."""
    return not (node.is_host_call or node.writes)


def fallible_first(graph):
    """Move nodes that may fail before commits, where that is possible.

    Returns ``(nodes, fails_late)``: the nodes in their new order, and whether a node
    that may fail remains behind a commit, or is one.
    """
    nodes = graph.nodes
    first = next((i for i, node in enumerate(nodes) if _commits(node)), len(nodes))
    tail = nodes[first:]
    if not any([may_fail(node) for node in tail]):
        return nodes, False
    fixed, wanted, moved = _fixed_nodes(tail), set(), set()
    for node in reversed(tail):
        needed = may_fail(node) or node.is_collective
        needed = needed or not wanted.isdisjoint(node.outputs)
        if needed and node not in fixed:
            moved.add(node)
            wanted.update(_values(node))
    early = [node for node in tail if node in moved]
    late = [node for node in tail if node not in moved]
    commits = [i for i, node in enumerate(late) if _commits(node)]
    fails_late = bool(commits) and any(map(may_fail, late[commits[0] :]))
    return [*nodes[:first], *early, *late], fails_late


def commits_once(graph):
    """Return whether all commits of a graph can be made at one moment, at its end.

    They are assignments and optimizer steps, of different variables, whose results
    nothing else needs.
    """
    nodes = graph.nodes
    first = next((i for i, node in enumerate(nodes) if _commits(node)), len(nodes))
    tail, written = nodes[first:], set()
    fixed = _fixed_nodes(tail)
    for node in tail:
        if node not in fixed:
            continue
        is_update = type(node) is Effect and isinstance(node.call, VariableUpdate)
        own = {id(v) for v in node.writes}
        seen = own if type(node) is Write else own | {id(v) for v in node.reads}
        if type(node) is not Write and not is_update:
            return False
        if type(node) is not Write and node.call.runs_user_code and written:
            return False  # its code may look at all that was assigned before
        if type(node) is not Write and not written.isdisjoint(seen):
            return False
        written |= own
    return True


def written_variables(graph):
    """Return the variables that the nodes of a graph change, without duplicates."""
    return list({id(v): v for node in graph.nodes for v in node.writes}.values())


def _commits(node):
    """Return whether a node changes the value of a variable."""
    return type(node) is Write or (node.is_effect and bool(node.writes))


def _fixed_nodes(tail):
    """Return the nodes that must not move: they commit, or depend on a commit."""
    fixed, made, written, ordered = set(), set(), set(), False
    called = False  # whether a host call may have assigned to any variable
    for node in tail:
        needs = not made.isdisjoint(_values(node))
        needs = needs or any([called or id(v) in written for v in node.reads])
        seen = node.is_effect and type(node) is not Write and not _is_safe_update(node)
        free = _sees_no_variables(node)
        if needs or _commits(node) or (seen and (ordered or not free)):
            fixed.add(node)
            made.update(node.outputs)
            written.update([id(v) for v in node.writes])
            ordered = ordered or seen
            called = called or (seen and not free)
    return fixed


def _values(node):
    return [x for x in node.inputs if is_value(x)]
