"""`while_loop`: eager, traced, and the gradients of both."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

import tapewright as tw

from .programs import both, check_derivatives, nested, number, repeated

# ---------------------------------------------------------- loops and their derivatives


def collatz(n):
    return tw.while_loop(
        lambda n, steps: n > 1,
        lambda n, steps: (
            tw.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1),
            steps + 1,
        ),
        [n, 0],
    )


@both(collatz)
def test_collatz(way):
    assert [int(way(tw.constant(n))[1]) for n in (1, 6, 27)] == [0, 8, 111]


def root(a):
    return tw.while_loop(
        lambda x: tw.abs(x * x - a) > 1e-12, lambda x: [0.5 * (x + a / x)], [a]
    )[0]


@both(root)
def test_newtons_iteration(way):
    assert abs(way(number(7.0)).numpy() - 7.0**0.5) < 1e-12


def test_derivatives_of_a_loop_whose_length_depends_on_data():
    check_derivatives(root, number(7.0), order=3)


def test_derivatives_agree_with_those_of_the_root():
    a = number(7.0)
    found = tw.function(lambda a: nested(root, a, 3))(a)
    exact = [7**0.5, 0.5 * 7**-0.5, -0.25 * 7**-1.5, 0.375 * 7**-2.5]
    np.testing.assert_allclose([x.numpy() for x in found], exact, rtol=1e-6)


@pytest.mark.parametrize("maximum", [None, 3, 9])
def test_derivatives_of_a_bounded_loop(maximum):
    n = tw.constant(5)

    def f(x, n):
        return repeated(n, maximum)(x)

    x = number(1.3)
    eager = nested(repeated(5, maximum), x, 3)
    traced = tw.function(lambda x, n: nested(lambda x: f(x, n), x, 3))(x, n)
    for a, b in zip(traced, eager):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)
    g = tw.function(f)
    outside = nested(lambda x: g(x, n), x, 3)
    for a, b in zip(outside, eager):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


@pytest.mark.parametrize("n", [0, 3, 16, 40])
def test_a_loop_of_known_length_is_the_same_traced(n):
    check_derivatives(repeated(n), number(1.2), order=2)


def test_a_traced_loop_may_run_no_time_at_all():
    @tw.function
    def f(x, n):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = repeated(n)(x)
        return y, tape.gradient(y, x)

    assert [t.numpy() for t in f(number(2.0), tw.constant(0))] == [2.0, 1.0]


def test_a_bound_that_is_traced():
    f = tw.function(
        lambda m: tw.while_loop(
            lambda i: True, lambda i: i + 1, [0], maximum_iterations=m
        )
    )
    assert int(f(tw.constant(7))[0]) == 7


def test_the_result_has_the_structure_of_loop_vars():
    f = tw.function(
        lambda n: tw.while_loop(
            lambda i, d: i < n,
            lambda i, d: (i + 1, {"a": d["a"] * 2.0, "b": [d["a"]]}),
            (0, {"a": 1.0, "b": [0.0]}),
        )
    )
    i, d = f(tw.constant(3))
    assert (int(i), float(d["a"]), float(d["b"][0])) == (3, 8.0, 4.0)


def test_captured_tensors_get_the_sum_of_their_gradients():
    w = tw.Variable(0.9, dtype="float64")

    def f(x, n, c):
        with tw.GradientTape() as tape:
            tape.watch(c)
            y = tw.while_loop(
                lambda i, x: i < n, lambda i, x: (i + 1, x * w + c), (0, x)
            )[1]
        return tape.gradient(y, [c, w])

    x, c = number(2.0), number(0.3)
    eager = f(x, 4, c)
    traced = tw.function(f)(x, tw.constant(4), c)
    np.testing.assert_allclose(
        [g.numpy() for g in traced], [g.numpy() for g in eager], rtol=1e-12
    )
    powers = sum(0.9**k for k in range(4))
    np.testing.assert_allclose(traced[0].numpy(), powers, rtol=1e-12)


def test_a_loop_inside_a_loop_with_derivatives():
    def f(x, n):
        def body(i, x):
            inner = tw.while_loop(
                lambda j, y: j < i, lambda j, y: (j + 1, y * 0.5 + tw.sin(x)), (0, x)
            )[1]
            return i + 1, inner * 0.9

        return tw.while_loop(lambda i, x: i < n, body, (0, x))[1]

    x = number(0.7)
    eager = nested(lambda x: f(x, 5), x, 2)
    traced = tw.function(lambda x, n: nested(lambda x: f(x, n), x, 2))(
        x, tw.constant(5)
    )
    for a, b in zip(traced, eager):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_forward_mode_through_a_bounded_loop():
    n = tw.constant(4)
    f = tw.function(lambda x: repeated(n, 10)(x))
    x = number(1.3)
    value, tangent = tw.autodiff.jvp(f, [x], [number(1.0)])
    eager = nested(repeated(4), x, 1)
    np.testing.assert_allclose(tangent.numpy(), eager[1].numpy(), rtol=1e-12)


def test_a_body_may_use_numbers_that_python_knows():
    weights = [float(i) for i in range(20)]
    f = tw.function(
        lambda x: tw.while_loop(
            lambda i, x: i < 20, lambda i, x: (i + 1, x + weights[int(i)]), (0, x)
        )[1]
    )
    assert f(number(0.0)).numpy() == sum(weights)


# --------------------------------------------------------- variables and random numbers


def test_a_variable_in_a_loop_is_read_and_assigned_step_by_step():
    v = tw.Variable(1.0, trainable=False)

    @tw.function
    def f(n):
        def body(i, total):
            v.assign(v * 2.0)
            return i + 1, total + v

        return tw.while_loop(lambda i, total: i < n, body, (0, 0.0)), v * 1.0

    (_, total), last = f(tw.constant(3))
    assert (float(total), float(last), v.numpy()) == (14.0, 8.0, 8.0)
    f(tw.constant(0))
    assert v.numpy() == 8.0


def test_a_condition_sees_the_variable_that_the_body_assigns():
    v = tw.Variable(0)
    f = tw.function(
        lambda n: tw.while_loop(
            lambda i: v < n, lambda i: [i + v.assign_add(3) * 0], [0]
        )
    )
    f(tw.constant(7))
    assert v.numpy() == 9


def test_training_inside_a_loop_is_that_outside():
    def train(wrap):
        w, optimizer = tw.Variable([1.0, 2.0]), tw.optimizers.Adam(0.1)

        def step():
            with tw.GradientTape() as tape:
                loss = tw.reduce_sum((w - 3.0) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
            return loss

        if wrap is None:
            losses = [step() for _ in range(20)]
            return losses[-1].numpy(), w.numpy()

        @tw.function
        def run(n):
            return tw.while_loop(
                lambda i, loss: i < n, lambda i, loss: (i + 1, step()), (0, 0.0)
            )[1]

        return run(tw.constant(20)).numpy(), w.numpy()

    for a, b in zip(train(True), train(None)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_random_numbers_of_a_loop_go_on_from_step_to_step():
    def draw(wrap):
        generator = tw.random.Generator.from_seed(5)

        def f(n):
            return tw.while_loop(
                lambda i, x: i < n,
                lambda i, x: (i + 1, x + generator.uniform([3])),
                (0, tw.zeros([3])),
            )[1]

        return wrap(f)(tw.constant(4)).numpy(), generator.state.numpy()

    for a, b in zip(draw(tw.function), draw(lambda f: f)):
        np.testing.assert_array_equal(a, b)


def test_the_gradient_of_a_loop_uses_the_numbers_that_were_drawn():
    def run(wrap, n):
        generator = tw.random.Generator.from_seed(5)

        def f(x, n):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = tw.while_loop(
                    lambda i, y: i < n,
                    lambda i, y: (i + 1, y * generator.uniform([])),
                    (0, x),
                )[1]
            return y, tape.gradient(y, x)

        return [t.numpy() for t in wrap(f)(tw.constant(2.0), n)]

    traced = run(tw.function, tw.constant(6))
    assert traced == run(lambda f: f, 6)
    np.testing.assert_allclose(traced[0], traced[1] * 2.0, rtol=1e-6)


# ---------------------------------------------------------------------- what is refused


def test_shapes_that_change_are_refused_by_name():
    f = tw.function(
        lambda n: tw.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tw.concat([x, x], 0)),
            (0, tw.zeros(2)),
        )
    )
    with pytest.raises(ValueError, match=r"variable 1 .*shape \(2,\).*\(4,\)"):
        f(tw.constant(3))


def test_dtypes_that_change_are_refused_by_name():
    f = tw.function(
        lambda n: tw.while_loop(
            lambda i, x: i < n, lambda i, x: (i + 1, tw.cast(x, "float64")), (0, 1.0)
        )
    )
    with pytest.raises(TypeError, match="variable 1 .*float32.*float64"):
        f(tw.constant(3))


@both(lambda: tw.while_loop(lambda i: i < 3, lambda i: (i + 1, i), [0]))
def test_another_structure_of_the_body_is_refused(way):
    with pytest.raises(ValueError, match="body .*loop_vars"):
        way()


def test_shapes_may_change_as_long_as_python_runs_the_loop():
    f = tw.function(
        lambda x: tw.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, tw.concat([x, x], 0)), (0, x)
        )[1]
    )
    assert f(tw.zeros(2)).shape == (16,)


def test_while_loop_wants_loop_vars():
    with pytest.raises(ValueError, match="loop_vars .*tuple"):
        tw.while_loop(lambda i: i < 3, lambda i: i + 1, tw.constant(0))


def test_back_prop_false_lets_no_gradient_pass():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        y = tw.while_loop(
            lambda y: y < 5.0, lambda y: [y * x], [x * 1.0], back_prop=False
        )
    assert tape.gradient(y, x) is None


def test_watching_a_variable_assigned_in_the_body_is_refused_where_it_is_unclear():
    v = tw.Variable(1.0)

    @tw.function
    def f(x, n):
        def body(i, y):
            v.assign(v + y)
            return i + 1, y * v

        with tw.GradientTape() as tape:
            y = tw.while_loop(lambda i, y: i < n, body, (0, x * v))[1]
        return tape.gradient(y, v)

    with pytest.raises(tw.errors.TracingError, match="changed and then read in"):
        f(tw.constant(2.0), tw.constant(3))


def test_a_mistake_in_the_step_of_a_loop_is_raised_at_once():
    calls = []

    def step(x, *rest):
        calls.append(x)
        return x.no_such_attribute

    rows, start = tw.zeros((9, 2)), tw.constant(0)
    loops = (
        lambda x: tw.map_fn(lambda row: step(row) + x, rows),
        lambda x: tw.while_loop(lambda i, y: i < 40, step, [start, x]),
    )
    for count, loop in enumerate(loops, 1):
        with pytest.raises(AttributeError, match="no_such_attribute"):
            tw.function(loop)(tw.constant(1.0))
        assert len(calls) == count


# ------------------------------------------------------------------------------ threads


def test_two_threads_run_one_loop():
    f = tw.function(lambda x, n: repeated(n)(x))
    n, wanted = tw.constant(100), {}
    for x in (0.3, 1.1, 2.2, 2.9):
        wanted[x] = f(number(x), n).numpy()

    def run(x):
        return all(f(number(x), n).numpy() == wanted[x] for _ in range(20))

    device = copy_context()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda x: device.copy().run(run, x), wanted))
