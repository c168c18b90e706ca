"""Lines for loops and branches: rows in place, sums of rows, what nobody needs."""

import tapewright as tw
from tapewright.ops.array.scatter import put_row

from .lines import REAL, Line, gradient, number, tame_pairs


def steps(step, x, *carried):
    """A loop of five steps, over numbers that no trace knows."""
    start = tw.cast(tw.not_equal(x[0, 0], x[0, 0]), "int32") * 0
    return tw.while_loop(lambda i, *_: i < 5, step, [start, *carried])[1:]


def written_rows(x, start=None):
    """A carried matrix of which each step replaces a row."""

    def step(i, rows):
        return i + 1, put_row(rows, i, tw.gather(rows, i) + x[0])

    return steps(step, x, x if start is None else start)[0]


def last_rows(x):
    """Rows that are read, then replaced, and returned."""

    def step(i, rows, last):
        return i + 1, put_row(rows, i, last), tw.gather(rows, i)

    return steps(step, x, x, x[0])


def states(x):
    array = tw.TensorArray(x.dtype, size=5).unstack(x[:5])

    def step(i, state, array):
        state = tw.tanh(state * x[1]) - array.read(i)
        return i + 1, state, array.write(i, state)

    return steps(step, x, x[0], array)[1].stack()


def read_afterwards(x):
    """Steps that look at the matrix as it was before a row of it is replaced."""

    def step(i, rows, total):
        new = put_row(rows, i, tw.gather(rows, i) * number(2, x))
        return i + 1, new, total + tw.reduce_max(rows, 0) + new[0]

    return steps(step, x, x, x[0])


def handed_on(x):
    """Steps that carry the matrix before a row of it is replaced as well as after."""

    def step(i, rows, before):
        return i + 1, put_row(rows, i, tw.gather(rows, i) + x[0]), rows

    return steps(step, x, x, x)


def exchanged(x):
    def step(i, a, b):
        return i + 1, b, put_row(a, i, tw.gather(b, i))

    return steps(step, x, x, -x)


def stacked(x):
    """The matrix before each step, all of them."""
    picks = tw.range(5) + tw.cast(tw.not_equal(x[0, 0], x[0, 0]), "int32") * 0
    return tw.scan(lambda a, i: put_row(a, i, tw.gather(a, i) + x[0]), picks, x)


def branches(x):
    return tw.cond(
        x[3, 3] > 0,
        lambda: (x + x, x * x),
        lambda: (x - number(1, x), tw.square(x[0]) * x),
    )


def picked_rows(x):
    picks = tw.constant([3, 1, 3, 0, 4])
    return tw.foldl(lambda a, i: a * number(0.5, x) + tw.gather(x, i), picks, x[0] * 0)


def picked_twice(x):
    picks = tw.constant([[3, 3], [1, 0], [2, 2], [4, 1], [3, 0]])

    def step(a, i):
        return a * number(0.5, x) + tw.reduce_sum(tw.gather(x, i), 0)

    return tw.foldl(step, picks, x[0] * 0)


LOOPS = {
    "owned": Line(
        [written_rows, last_rows, states, lambda x: (written_rows(x), x)],
        [read_afterwards, handed_on, exchanged, stacked],
        also=[lambda x: written_rows(x, tw.broadcast_to(x[:1], x.shape))],
        dtypes=REAL,
    ),
    "sparse": Line(
        [lambda x: gradient(picked_rows, x), lambda x: gradient(picked_twice, x)],
        also=[lambda x: gradient(lambda x: tw.square(picked_rows(x)), x)],
        dtypes=REAL,
        exact=False,
        make=(tame_pairs,),
    ),
    "narrow_control": Line(
        [
            lambda x: read_afterwards(x)[0],
            lambda x: branches(x)[0],
            lambda x: gradient(written_rows, x)[1],
        ],
        [branches, last_rows],
        dtypes=REAL,
        exact=False,
        make=(tame_pairs,),
    ),
}
