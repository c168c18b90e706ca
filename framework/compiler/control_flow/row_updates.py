"""Updates of rows in place in a loop body: of carried values, and of sums.

A carried array of which a step replaces some rows (a `TensorArray`) belongs to the loop
alone and need not be copied in each step. A sum to which a step adds some rows (the
gradient of a gather) need not be computed from whole arrays.
"""

import numpy as np

from tapewright.ops.array.gather import gather_p, scatter_rows
from tapewright.ops.array.scatter import (
    clear_row,
    clear_rows,
    put_row,
    put_rows,
    row_number,
)
from tapewright.ops.array.shape import reshape

from ..tracing.graph import Node, is_value

GATHER, RESHAPE = gather_p.primitive, reshape.primitive
WRITES = tuple(op.primitive for op in (put_rows, clear_rows, put_row, clear_row))


class WriteRows(Node):
    """Write rows, or zeros, into the first input at the indices in the second."""

    __slots__ = ()
    donates = 0

    @property
    def name(self):
        return "write_rows"

    def kernel(self):
        return _write_rows if self.inputs[1].shape else _write_row


def _write_rows(matrix, indices, rows=0):
    matrix[indices] = rows
    return (matrix,)


def _write_row(array, index, row=0):
    array[row_number(index, len(array)), ...] = row
    return (array,)


def writing_body(node, body):
    """Return ``(body, owned, sparse)``: the body of a `LoopNode`, writing in place.

    ``owned`` are the numbers of the carried arrays that it writes to; ``sparse`` are
    the numbers of the sums for which it returns rows, followed by the row indices.
    """
    body = body.replaced(list(body.nodes), list(body.outputs))
    owned = [k for k in range(node.carried) if _write_in_place(body, k)]
    sparse, outputs = [], list(body.outputs[: node.carried])
    for k, value in enumerate(body.outputs[node.carried :]):
        rows = _added_rows(body, value) if k < node.summed else None
        if rows is None:
            outputs.append(value)
        else:
            sparse.append(k)
            outputs += rows
    body.outputs = outputs
    return body, owned, sparse


def _users(body, value):
    return [n for n in body.nodes for x in n.inputs if x is value]


def _is_private(body, value, user=None):
    """Return whether a value is used once: by a node, or (None) as an output."""
    outputs = [x for x in body.outputs if x is value]
    users = _users(body, value)
    if user is None:
        return len(outputs) == 1 and not users
    return not outputs and len(users) == 1


def _node_of(body, value):
    node = value.node if is_value(value) else None
    return node if node is not None and node in body.nodes else None


def _write_in_place(body, k):
    """Make the body write into its carried array ``k``; return whether this is possible."""
    value, out = body.inputs[k], body.outputs[k]
    tail, node, private = [], _node_of(body, out), _is_private(body, out)
    while private and node is not None and node.op is RESHAPE:
        tail.append(node)
        private = _is_private(body, node.inputs[0], node)
        node = _node_of(body, node.inputs[0])
    if not private or node is None or node.op not in WRITES:
        return False
    if not _leads_to(body, node.inputs[0], value, node):
        return False
    twin = WriteRows(None, node.inputs, {}, node.line)
    twin.outputs = node.outputs
    last = [twin, *tail[::-1]]  # when all who read the array have done so
    body.nodes = [n for n in body.nodes if n is not node and n not in tail] + last
    return True


def _leads_to(body, matrix, value, write):
    """Return whether ``matrix`` is the carried value and otherwise only its rows are read."""
    chain, user = [write], matrix
    while True:
        if any([x is user for x in body.outputs]):
            return False
        for node in _users(body, user):
            if node in chain:
                continue
            reads = node.op is GATHER and node.inputs[1] is not user
            if not reads and not (node.op is RESHAPE and _only_read(body, node)):
                return False
        if user is value:
            return True
        node = _node_of(body, user)
        if node is None or node.op is not RESHAPE:
            return False
        chain.append(node)
        user = node.inputs[0]


def _only_read(body, node):
    """Return whether only rows of a node's output are read."""
    (value,) = node.outputs
    if any([x is value for x in body.outputs]):
        return False
    users = _users(body, value)
    return all([n.op is GATHER and n.inputs[1] is not value for n in users])


def _added_rows(body, value):
    """Return the rows added to a sum and their indices, or None if no rows are added."""
    node = _node_of(body, value)
    if node is None or node.op is not scatter_rows.primitive:
        return None
    rank = len(node.attributes["shape"])
    if node.attributes["axis"] % rank or not _is_private(body, value):
        return None
    return node.inputs


def add_rows(total, rows, indices):
    """Add rows to the rows of ``total`` at ``indices``."""
    if indices.size == 1:
        total[int(indices.reshape(()))] += rows.reshape(total.shape[1:])
    else:
        np.add.at(total, indices, rows)
