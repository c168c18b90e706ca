"""Rows that a loop replaces in place, or adds to a sum."""

import numpy as np

import tapewright as tw
from tapewright.ops.array.scatter import put_row


def test_rows_of_an_array_are_written_in_place_and_nothing_outside_changes():
    @tw.function
    def f(start, n):
        array = tw.TensorArray("float32", size=4).unstack(start)
        array = tw.while_loop(
            lambda i, a: i < n,
            lambda i, a: (i + 1, a.write(i, a.read(i) + 10.0)),
            (0, array),
        )[1]
        return array.stack(), start + 0.0

    start = tw.constant([1.0, 2.0, 3.0, 4.0])
    first = f(start, tw.constant(2))
    second = f(start, tw.constant(4))
    assert first[0].numpy().tolist() == [11.0, 12.0, 3.0, 4.0]
    assert second[0].numpy().tolist() == [11.0, 12.0, 13.0, 14.0]
    assert first[1].numpy().tolist() == start.numpy().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_an_array_whose_old_state_is_used_is_not_written_in_place():
    @tw.function
    def f(start):
        def step(a, i):
            new = tw.tensor_scatter_nd_update(a, [[i]], [0.0])
            return new + 0.0 * a, a

        return tw.scan(
            lambda state, i: step(state[0], i), tw.range(5), initializer=(start, start)
        )

    new, old = f(tw.ones(5))
    np.testing.assert_array_equal(new.numpy(), np.triu(np.ones((5, 5)), 1))
    np.testing.assert_array_equal(old.numpy(), np.triu(np.ones((5, 5))))


def test_the_gradient_of_rows_read_in_a_loop_is_summed_row_by_row():
    def f(xs, picks):
        with tw.GradientTape() as tape:
            tape.watch(xs)
            y = tw.foldl(
                lambda a, i: a * 0.5 + tw.gather(xs, i) ** 2, picks, initializer=0.0
            )
        return tape.gradient(y, xs)

    xs, picks = tw.constant([1.0, 2.0, 3.0]), tw.constant([0, 2, 2, 1, 0, 2])
    wanted = np.zeros(3)
    for power, i in zip(range(5, -1, -1), picks.numpy()):
        wanted[i] += 0.5**power * 2 * xs.numpy()[i]
    for way in (f, tw.function(f)):
        found = tw.convert_to_tensor(way(xs, picks)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_row_that_is_read_and_then_replaced_keeps_its_value():
    def last_rows(x):
        def step(i, rows, last):
            return i + 1, put_row(rows, i, last + 1.0), tw.gather(rows, i)

        start = tw.cast(tw.not_equal(x[0, 0], x[0, 0]), "int32")
        return tw.while_loop(lambda i, *_: i < 5, step, [start, x, x[0]])[1:]

    x = tw.constant(np.arange(75.0).reshape(5, 15))
    for found, wanted in zip(tw.function(last_rows)(x), last_rows(x), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
