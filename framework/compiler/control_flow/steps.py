"""The function that runs a `Loop` on arrays, written as source: a line for each thing.

A step is one call of the body's replay function and little else, so that a loop of many
small steps costs what its ops cost.
"""

import numpy as np

from ..tracing.handles import boxed, opened
from .in_place import add_rows

__all__ = ["runner_of"]


def runner_of(node, replays, owned=(), sparse=()):
    """A function of arrays that returns the tuple of the node's outputs.

    ``owned``, ``sparse``: see `in_place.writing_body`.
    """
    source, bound = _source(node, owned, sparse)
    for name, replay in zip(("body", "test"), replays):
        bound |= {f"{name}_replay": replay}
    scope = {}
    exec(compile(source, "<loop>", "exec"), bound, scope)
    return scope["loop"]


def _source(node, owned=(), sparse=()):
    bound = {
        "np": np,
        "add": np.add,
        "add_rows": add_rows,
        "boxed": boxed,
        "opened": opened,
        "int32": np.int32,
    }
    carried = [f"c{i}" for i in range(node.carried)]
    sliced = [f"x{i}" for i in range(node.sliced)]
    count = len(node.inputs) - node.counted - node.carried - node.sliced
    constants = [f"k{i}" for i in range(count)]
    outputs = node.graphs[0].outputs
    sums = [f"s{i}" for i in range(node.summed)]
    stacks = [f"y{i}" for i in range(node.stacked)]
    lines = [f"    {line}" for line in _opened(node, bound)]
    lines += [f"    {line}" for line in _made(node, outputs, bound)]
    lines += [f"    c{i} = np.array(c{i}, order='C')" for i in owned]
    given = [f"new_s{i}, at_s{i}" if i in sparse else f"new_s{i}"
             for i in range(node.summed)]  # fmt: skip
    step = [*given, *[f"new_{y}" for y in stacks]]
    rows = [f"{x}[i, ...]" for x in sliced]
    for i, value in enumerate(node.graphs[0].inputs[node.carried :][: node.sliced]):
        if value.shape or _is_box(node.inputs[node.counted + node.carried + i]):
            rows[i] = f"x{i}[i]"  # else an array of rank 0, no number
    arguments = ", ".join([*carried, *rows, *constants])
    names = "".join([f"{name}, " for name in (*carried, *step)])
    body = [f"{names}= body({arguments})"] if names else [f"body({arguments})"]
    for i, s in enumerate(sums):
        rows = f"add_rows({s}, new_{s}, at_{s})"
        body.append(rows if i in sparse else f"add({s}, new_{s}, {s})")
    for y, grows in zip(stacks, _growing(node, outputs)):
        body.append(f"{y}.append(new_{y})" if grows else f"{y}[i] = new_{y}")
    if node.tested:
        body.append("i += 1")
        limit = "" if node.maximum is None else f"i < {node.maximum} and "
        test = ", ".join([*carried, *constants])
        head = ["i = 0", f"while {limit}test({test})[0]:"]
    else:
        order = "range(n - 1, -1, -1)" if node.reverse else "range(n)"
        head = [f"for i in {order}:"]
    lines += ["    body = body_replay.borrow()"]
    if node.tested:
        lines += ["    test = test_replay.borrow()"]
    lines += ["    try:", *[f"        {line}" for line in head]]
    lines += [f"            {line}" for line in body]
    lines += ["    except Exception as error:",
              "        error = body_replay.plan.explained(error)"]  # fmt: skip
    if node.tested:
        lines += ["        error = test_replay.plan.explained(error)"]
    lines += [
        "        raise error from None",
        "    finally:",
        "        body_replay.free.append(body)",
    ]
    if node.tested:
        lines += ["        test_replay.free.append(test)"]
    lines.append(f"    return {_results(node, outputs, carried, sums, stacks)}")
    parameters = ["n"] * node.counted + carried + sliced + constants
    return "\n".join([f"def loop({', '.join(parameters)}):", *lines]) + "\n", bound


def _opened(node, bound):
    """Lines that take lists out of their boxes, and say how many steps there are."""
    lines = []
    start, items = node.counted + node.carried, node.graphs[0].inputs[node.carried :]
    for i, value in enumerate(node.inputs[start : start + node.sliced]):
        if _is_box(value):
            bound[f"o{i}"] = items[i].dtype
            lines.append(f"x{i} = opened(x{i}, {items[i].shape}, o{i})")
    if node.counted:
        lines.append("n = int(n)")
    elif not node.tested:
        lines.append("n = len(x0)" if node.length is None else f"n = {node.length}")
    return lines


def _is_box(x):
    return getattr(x, "array", x).dtype == object


def _is_boxed(node, value):
    return node.capacity is None or value.dtype == object


def _growing(node, outputs):
    """For each stack whether it is a list that grows."""
    values = outputs[node.carried + node.summed :]
    return [node.tested and _is_boxed(node, value) for value in values]


def _made(node, outputs, bound):
    """Lines that make sums and stacks."""
    lines = []
    for i, value in enumerate(outputs[node.carried :]):
        bound[f"d{i}"] = value.dtype
        if i < node.summed:
            lines.append(f"s{i} = np.zeros({value.shape}, d{i})")
            continue
        y = f"y{i - node.summed}"
        if _is_boxed(node, value):
            lines.append(f"{y} = []" if node.tested else f"{y} = [None] * n")
        else:  # a loop with a count may stop before the end
            make = "empty" if node.length is not None else "zeros"
            lines.append(f"{y} = np.{make}({(node.capacity, *value.shape)}, d{i})")
    return lines


def _results(node, outputs, carried, sums, stacks):
    names = [*carried, *sums]
    if node.tested:
        names.append("int32(i)")
    for y, value in zip(stacks, outputs[node.carried + node.summed :]):
        names.append(f"boxed({y})" if _is_boxed(node, value) else y)
    return f"({''.join([f'{name}, ' for name in names])})"
