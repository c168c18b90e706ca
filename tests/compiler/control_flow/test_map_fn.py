"""`map_fn`, `scan` and folds: eager, traced, and the gradients of both."""

import numpy as np
import pytest

import tapewright as tw

from ...ways import ways
from .programs import check_derivatives, network, number

# ------------------------------------------------------------------------------- map_fn


@ways
@pytest.mark.parametrize("count", [1, 3, 9])
def test_map_fn_goes_along_nests(wrap, count):
    f = wrap(
        lambda e: tw.map_fn(
            lambda e: {"s": e["a"] + e["b"][0], "p": (e["a"] * 2.0,)},
            e,
            fn_output_signature={"s": "float64", "p": ("float64",)},
        )
    )
    a, b = np.arange(count, dtype=float), np.arange(count, dtype=float) ** 2
    found = f({"a": tw.constant(a), "b": [tw.constant(b)]})
    np.testing.assert_array_equal(found["s"].numpy(), a + b)
    np.testing.assert_array_equal(found["p"][0].numpy(), 2 * a)


def test_map_fn_holds_results_to_their_signature():
    with pytest.raises(TypeError, match="dtype .*float32"):
        tw.map_fn(lambda x: x, tw.constant([1, 2]), fn_output_signature="float32")


@ways
def test_map_fn_of_no_rows_has_the_shape_of_none(wrap):
    f = wrap(lambda x: tw.map_fn(lambda x: x[:2] * 2.0, x))
    assert f(tw.zeros((0, 3))).shape == (0, 2)


def test_rows_of_different_number_are_refused():
    with pytest.raises(ValueError, match="elems .*first"):
        tw.map_fn(lambda x: x[0], (tw.zeros(3), tw.zeros(2)))


def test_a_step_that_python_has_to_run_is_written_down_for_each_row():
    rows = tw.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    traced = tw.function(
        lambda x: tw.map_fn(lambda row: x * row if float(row) > 3 else x, rows)
    )
    assert traced(tw.constant(2.0)).numpy().tolist() == [2.0, 2.0, 2.0, 8.0, 10.0, 12.0]


# ----------------------------------------------------------------------- scan and folds


@ways
@pytest.mark.parametrize("count", [3, 12])
def test_scans_and_folds(wrap, count):
    x = np.arange(1, count + 1)
    add = lambda a, x: a * 2 + x  # noqa: E731
    rows = tw.constant(x)

    def expected(start, rows):
        states = []
        for row in rows:
            start = row if start is None else start * 2 + row
            states.append(start)
        return states

    def check(f, wanted):
        np.testing.assert_array_equal(wrap(f)(rows).numpy(), wanted)

    check(lambda e: tw.scan(add, e), expected(None, x))
    check(lambda e: tw.scan(add, e, tw.constant(3, "int64")), expected(3, x))
    check(lambda e: tw.scan(add, e, reverse=True), expected(None, x[::-1])[::-1])
    check(lambda e: tw.foldl(add, e), expected(None, x)[-1])
    check(lambda e: tw.foldr(add, e), expected(None, x[::-1])[-1])
    check(lambda e: tw.foldr(add, e, tw.constant(1, "int64")), expected(1, x[::-1])[-1])


def recurrent(xs, h, w):
    """A recurrent network by `scan`."""
    return tw.scan(lambda h, x: tw.tanh(tw.matmul(h, w) + x), xs, initializer=h)


def recurrent_by_hand(xs, h, w):
    states = []
    for i in range(xs.shape[0]):
        h = tw.tanh(tw.matmul(h, w) + xs[i])
        states.append(h)
    return tw.stack(states)


def recurrent_by_loop(xs, h, w):
    """The same by `while_loop` and `TensorArray`."""
    states = tw.TensorArray("float64", size=xs.shape[0])

    def body(i, h, states):
        h = tw.tanh(tw.matmul(h, w) + tw.gather(xs, i))
        return i + 1, h, states.write(i, h)

    count = tw.reduce_sum(tw.ones_like(xs[:, 0, 0]))  # known in a replay only
    i = tw.constant(0)
    return tw.while_loop(
        lambda i, h, states: tw.cast(i, "float64") < count, body, (i, h, states)
    )[2].stack()


@pytest.mark.parametrize("f", [recurrent, recurrent_by_loop])
def test_a_recurrent_network_with_gradients_of_second_order(f):
    def run(f, *sources):
        with tw.GradientTape() as outer:
            outer.watch(sources)
            with tw.GradientTape() as tape:
                tape.watch(sources)
                loss = tw.reduce_sum(f(*sources) ** 3)
            first = tape.gradient(loss, sources)
            norm = sum(tw.reduce_sum(tw.convert_to_tensor(g) ** 2) for g in first)
        return [loss, *first, *outer.gradient(norm, sources)]

    sources = network()
    expected = run(recurrent_by_hand, *sources)
    for found in (
        tw.function(lambda *s: run(f, *s))(*sources),
        run(tw.function(f), *sources),
        run(f, *sources),
    ):
        for a, b in zip(found, expected, strict=True):
            a, b = tw.convert_to_tensor(a).numpy(), tw.convert_to_tensor(b).numpy()
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_the_gradient_of_a_scan_agrees_with_differences():
    xs, h, w = network()

    @tw.function
    def f(w):
        with tw.GradientTape() as tape:
            tape.watch(w)
            loss = tw.reduce_sum(recurrent(xs, h, w) ** 2)
        return loss, tape.gradient(loss, w)

    base, step = w.numpy(), 1e-6
    wanted = np.zeros((3, 3))
    for index in np.ndindex(3, 3):
        shift = np.zeros((3, 3))
        shift[index] = step
        up, down = f(tw.constant(base + shift))[0], f(tw.constant(base - shift))[0]
        wanted[index] = (up.numpy() - down.numpy()) / (2 * step)
    np.testing.assert_allclose(f(w)[1].numpy(), wanted, rtol=1e-6, atol=1e-8)


def test_a_scan_over_integers_beside_a_state_that_has_a_gradient():
    def f(x):
        return tw.scan(
            lambda a, i: (a[0] * x + tw.cast(i, "float64"), a[1] + i),
            tw.range(8),
            initializer=(x, 0),
        )[0][-1]

    check_derivatives(f, number(0.8), order=3)


def test_a_scan_with_a_branch_and_dropout_inside():
    def run(wrap):
        generator = tw.random.Generator.from_seed(11)

        def f(xs):
            def step(a, x):
                return tw.cond(
                    x > 0.0, lambda: a * generator.uniform([]) + x, lambda: a - x
                )

            with tw.GradientTape() as tape:
                tape.watch(xs)
                y = tw.reduce_sum(tw.scan(step, xs, initializer=1.0) ** 2)
            return y, tape.gradient(y, xs)

        found = wrap(f)(tw.constant([0.5, -1.0, 2.0, -0.5, 1.0, 0.3]))
        return [t.numpy() for t in found], generator.state.numpy()

    (traced, state), (eager, eager_state) = run(tw.function), run(lambda f: f)
    for a, b in zip(traced, eager):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_array_equal(state, eager_state)


def test_a_scan_must_keep_the_structure_of_its_state():
    with pytest.raises(ValueError, match="fn .*initializer"):
        tw.scan(lambda a, x: (a, x), tw.zeros(6), initializer=0.0)


def test_a_traced_scan_must_keep_shapes():
    f = tw.function(
        lambda x: tw.scan(lambda a, x: tw.stack([x, x]), x, initializer=0.0)
    )
    with pytest.raises(TypeError, match="fn .*shapes"):
        f(tw.zeros(6))


def test_a_scan_without_rows_needs_an_initializer():
    with pytest.raises(ValueError, match="pass an initializer"):
        tw.scan(lambda a, x: a + x, tw.zeros(0))
    assert tw.scan(lambda a, x: a + x, tw.zeros(0), initializer=0.0).shape == (0,)


def test_a_scan_that_python_knows_is_a_constant_of_the_trace():
    @tw.function
    def f(x):
        powers = tw.scan(lambda a, _: a * 2, tw.range(20), initializer=1)
        return x * int(powers[9])

    assert f(tw.constant(2)).numpy() == 2048


def test_unknown_dimensions():
    @tw.function(input_signature=[tw.TensorSpec([None, 3], "float64")])
    def f(x):
        total = tw.scan(lambda a, x: tw.tanh(a * 0.5 + x), x)
        return tw.cond(
            total[-1][0] > 0.0, lambda: tw.reduce_sum(total), lambda: tw.reduce_max(x)
        )

    def by_hand(x):
        states = [x[0]]
        for row in x[1:]:
            states.append(np.tanh(states[-1] * 0.5 + row))
        return np.sum(states) if states[-1][0] > 0 else x.max()

    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 30):
        for sign in (1, -1):
            x = sign * np.abs(rng.normal(size=(count, 3)))
            np.testing.assert_allclose(
                f(tw.constant(x)).numpy(), by_hand(x), rtol=1e-12
            )
    assert f.experimental_get_tracing_count() == 1
