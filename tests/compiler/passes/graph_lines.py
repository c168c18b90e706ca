"""Lines for passes over graphs."""

import tapewright as tw

from .lines import (
    FLOATS,
    REAL,
    UPDATE,
    WHOLE,
    Line,
    cell,
    number,
)


def stored_unchanged(x):
    cell(x).assign(cell(x).read_value())
    return x * number(2, x)


def stored_twice(x):
    cell(x).assign(x)
    first = cell(x).read_value()
    cell(x).assign(first * number(2, x))
    return first, cell(x).read_value()


def stored_after_an_update(x):
    before = cell(x).read_value()
    UPDATE.apply_gradients([(x, cell(x))])
    cell(x).assign(before)
    return before * number(2, x)


def folded(function):
    """A function of a constant that no trace knows, but algebra finds."""

    def run(x):
        c = tw.where(tw.constant(True), number(-0.0, x), x[0, 0])
        return x * function(c)

    return run


def unused(x):
    tw.sin(x)
    return x * number(2, x)


PASSES = {
    "dead_nodes": Line([unused, lambda x: [x + x, tw.square(x)][0]], [lambda x: x + x]),
    "algebra": Line([lambda x: -tw.negative(x)], [tw.square]),
    "dead_stores": Line(
        [stored_unchanged, lambda x: [stored_unchanged(x), cell(x) + x][1]],
        [stored_twice],
        also=[stored_after_an_update],
        dtypes=REAL,
    ),
    "constant_folding": Line(
        [
            *[folded(op) for op in (tw.exp, tw.negative, tw.math.reciprocal)],
            folded(lambda c: tw.sqrt(c - tw.exp(c))),
            folded(lambda c: tw.stack([c / c, c] + 13 * [c])),
        ],
        [
            lambda x: x * number(2, x),
            folded(lambda c: tw.fill([999, 999], c + c)[0, :15]),
        ],
        dtypes=FLOATS,
    ),
    "constant_folding, of whole numbers": Line(
        [folded(lambda c: (c + number(100, c)) * number(100, c))],
        also=[
            folded(lambda c: number(7, c) // c),
            folded(lambda c: tw.gather(tw.constant([1, 2]), c + number(5, c))),
            folded(lambda c: c - number(1, c)),
        ],
        dtypes=WHOLE,
    ),
    "common_subexpressions": Line(
        [
            lambda x, y: (x + y) * (y + x),
            lambda x, y: x * y - y * x,
            lambda x, y: (tw.square(x) + y) / (tw.square(x) - y),
        ],
        [
            lambda x, y: (x - y, y - x),
            lambda x, y: (x / y, y / x),
            lambda x, y: (x * number(0.0, x), y * number(-0.0, x)),
            lambda x, y: (tw.reduce_max(x, 0), tw.reduce_max(x, 1)),
        ],
        also=[lambda x, y: (x * number(0.0, x), x * number(-0.0, x))],
        operands=2,
        dtypes=FLOATS,
    ),
    "common_subexpressions, of complex numbers": Line(
        [lambda x, y: tw.square(x + y) / (x + y)],
        [lambda x, y: (x * y, y * x)],  # their parts are rounded in another order
        operands=2,
        dtypes=("complex64",),
    ),
}
