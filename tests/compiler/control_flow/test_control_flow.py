"""Branches and loops that depend on data: eager, traced, and the gradients of both.

Expected values are those of plain Python, of formulas, of differences, and, where a number
stands in the text, of TensorFlow 2.21.
"""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.pipeline import optimize
from tapewright.ops.array.scatter import put_row


def both(f):
    """The function itself and traced."""
    return pytest.mark.parametrize("way", [f, tw.function(f)], ids=["eager", "traced"])


def number(x):
    return tw.constant(x, dtype="float64")


def nested(f, x, order):
    with tw.GradientTape() as tape:
        tape.watch(x)
        found = nested(f, x, order - 1) if order > 1 else [f(x)]
    return [*found, tape.gradient(found[-1], x, unconnected_gradients="zero")]


def check_derivatives(f, x, order=2, places=7):
    """Traced with tapes inside, with tapes outside, and eager: all the same."""
    eager = [d.numpy() for d in nested(f, x, order)]
    inside = [d.numpy() for d in tw.function(lambda x: nested(f, x, order))(x)]
    outside = [d.numpy() for d in nested(tw.function(f), x, order)]
    np.testing.assert_allclose(inside, eager, rtol=10.0**-places, atol=1e-12)
    np.testing.assert_allclose(outside, eager, rtol=10.0**-places, atol=1e-12)
    h = 1e-5
    difference = (f(x + h).numpy() - f(x - h).numpy()) / (2 * h)
    np.testing.assert_allclose(eager[1], difference, rtol=1e-5, atol=1e-8)


# ------------------------------------------------------------------------- branches


def piecewise(x):
    return tw.cond(x > 2.0, lambda: x * x * x, lambda: tw.sin(x))


@both(piecewise)
def test_cond_takes_the_branch_of_the_value(way):
    assert way(number(3.0)).numpy() == 27.0
    assert way(number(1.0)).numpy() == np.sin(1.0)


@pytest.mark.parametrize("x", [3.0, 1.0])
def test_derivatives_of_cond_are_those_of_the_branch_taken(x):
    check_derivatives(piecewise, number(x), order=3)


def test_a_traced_cond_is_traced_once():
    f = tw.function(piecewise)
    f(number(3.0)), f(number(1.0))
    assert f.experimental_get_tracing_count() == 1


def test_cond_with_a_python_condition_runs_one_branch_while_tracing():
    ran = []

    @tw.function
    def f(x):
        return tw.cond(True, lambda: ran.append(1) or x, lambda: ran.append(2) or -x)

    assert f(number(3.0)).numpy() == 3.0
    assert ran == [1]


def test_cond_returns_nests():
    @tw.function
    def f(x):
        return tw.cond(
            x > 0.0, lambda: {"a": x, "b": (x, None)}, lambda: {"a": -x, "b": (x, None)}
        )

    found = f(number(-2.0))
    assert found["a"].numpy() == 2.0 and found["b"][1] is None


def test_a_number_in_one_branch_takes_the_dtype_of_the_other():
    f = tw.function(lambda x: tw.cond(x > 0.0, lambda: x, lambda: 0.0))
    assert f(number(-1.0)).dtype == tw.float64


def test_branches_of_different_structure_are_refused_by_name():
    f = tw.function(lambda x: tw.cond(x > 0.0, lambda: x, lambda: (x, x)))
    with pytest.raises(TypeError, match="true_fn and false_fn .*structure"):
        f(number(1.0))


def test_branches_of_different_dtype_are_refused_by_name():
    f = tw.function(
        lambda x: tw.cond(x > 0.0, lambda: x, lambda: tw.cast(x, "float32"))
    )
    with pytest.raises(TypeError, match=r"true_fn.*shape \(\).*float64.*false_fn"):
        f(number(1.0))


def test_none_in_one_branch_only_is_refused():
    f = tw.function(lambda x: tw.cond(x > 0.0, lambda: x, lambda: None))
    with pytest.raises(TypeError, match="false_fn .*None"):
        f(number(1.0))


def test_a_condition_of_several_values_is_refused():
    f = tw.function(lambda x: tw.cond(x > 0.0, lambda: x, lambda: x))
    with pytest.raises(ValueError, match=r"pred .*got shape \(2,\)"):
        f(tw.constant([1.0, 2.0]))


def test_a_list_of_several_values_is_no_condition():
    with pytest.raises(ValueError, match=r"truth value .*shape \(2,\)"):
        tw.cond([True, False], lambda: 1, lambda: 2)
    assert tw.cond([False], lambda: 1, lambda: 2) == 2


def test_cond_wants_functions():
    with pytest.raises(TypeError, match="true_fn .*got int"):
        tw.cond(True, 1, lambda: 2)


def test_a_variable_assigned_in_a_branch_keeps_its_value_in_the_other():
    v = tw.Variable(1.0, trainable=False)

    @tw.function
    def f(x):
        def up():
            v.assign_add(x)
            return v * 10.0

        found = tw.cond(x > 0.0, up, lambda: v * 100.0)
        return found, v + 0.5

    assert [x.numpy() for x in f(tw.constant(2.0))] == [30.0, 3.5]
    assert [x.numpy() for x in f(tw.constant(-2.0))] == [300.0, 3.5]
    assert v.numpy() == 3.0


def test_a_branch_reads_what_was_assigned_before():
    v = tw.Variable(1.0)

    @tw.function
    def f(x):
        v.assign(x)
        return tw.cond(x > 0.0, lambda: v * 2.0, lambda: v * 3.0)

    assert f(tw.constant(5.0)).numpy() == 10.0
    assert f(tw.constant(-5.0)).numpy() == -15.0


def test_gradients_reach_variables_and_closures_of_both_branches():
    v, w = tw.Variable(2.0), tw.Variable(5.0)

    @tw.function
    def f(x):
        with tw.GradientTape() as tape:
            y = x * 3.0
            out = tw.cond(x > 0.0, lambda: y * v, lambda: y * y * w)
        return tape.gradient(out, [v, w], unconnected_gradients="zero")

    assert [g.numpy() for g in f(tw.constant(1.0))] == [3.0, 0.0]
    assert [g.numpy() for g in f(tw.constant(-1.0))] == [0.0, 9.0]


def test_an_optimizer_in_a_branch_updates_only_when_it_is_taken():
    def trained(step):
        w, optimizer = tw.Variable([1.0, 2.0]), tw.optimizers.Adam(0.1)

        def update(x):
            with tw.GradientTape() as tape:
                loss = tw.reduce_sum(w * w) * x
            gradient = tape.gradient(loss, [w])

            def apply():
                optimizer.apply_gradients(zip(gradient, [w]))
                return tw.reduce_sum(w)

            return tw.cond(x > 0.0, apply, lambda: tw.reduce_sum(w) * 0.0)

        update = step(update)
        found = [update(tw.constant(x)).numpy() for x in (1.0, -1.0, 2.0)]
        return [*found, *w.numpy(), int(optimizer.iterations)]

    eager, traced = trained(lambda f: f), trained(tw.function)
    np.testing.assert_allclose(traced, eager, rtol=1e-6)
    assert traced[-1] == 2


def test_random_numbers_are_drawn_in_the_branch_that_is_taken():
    def draws(wrap):
        generator = tw.random.Generator.from_seed(3)
        f = wrap(
            lambda x: tw.cond(
                x > 0.0, lambda: generator.normal([2]), lambda: tw.zeros([2])
            )
        )
        found = [f(tw.constant(x)).numpy() for x in (1.0, -1.0, 1.0)]
        return np.array(found), generator.state.numpy()

    for eager, traced in zip(draws(lambda f: f), draws(tw.function)):
        np.testing.assert_array_equal(eager, traced)


def test_the_gradient_of_a_branch_uses_the_numbers_that_were_drawn():
    def run(wrap):
        generator = tw.random.Generator.from_seed(3)

        def f(x):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = tw.cond(
                    x > 0.0,
                    lambda: x * generator.normal([]),
                    lambda: x * generator.normal([]),
                )
            return y, tape.gradient(y, x)

        f = wrap(f)
        found = [f(tw.constant(x)) for x in (2.0, -4.0)]
        return [[t.numpy() for t in pair] for pair in found], generator.state.numpy()

    (pairs, state), (eager, state_eager) = run(tw.function), run(lambda f: f)
    assert pairs[0][0] == pairs[0][1] * 2.0 and pairs[1][0] == pairs[1][1] * -4.0
    np.testing.assert_array_equal(pairs, eager)
    np.testing.assert_array_equal(state, state_eager)


def test_cond_inside_cond():
    @tw.function
    def f(x):
        return tw.cond(
            x > 0.0,
            lambda: tw.cond(x > 10.0, lambda: x * 3.0, lambda: x * 2.0),
            lambda: -x,
        )

    assert [f(tw.constant(x)).numpy() for x in (20.0, 5.0, -1.0)] == [60.0, 10.0, 1.0]


def test_an_error_in_a_branch_names_the_op_and_leaves_variables_alone():
    v = tw.Variable(1.0)

    @tw.function
    def f(x, i):
        v.assign(x[0])
        return tw.cond(x[0] > 0.0, lambda: tw.gather(x, i), lambda: x[0])

    f(tw.constant([2.0]), tw.constant(0))
    with pytest.raises(IndexError, match="gather"):
        f(tw.constant([3.0]), tw.constant(7))
    assert v.numpy() == 2.0


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_switch_case_takes_the_last_branch_for_other_numbers(wrap):
    f = wrap(lambda i: tw.switch_case(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]))
    assert [f(tw.constant(i)).__float__() for i in (0, 1, 2, 7, -1)] == [1, 2, 3, 3, 3]


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_switch_case_with_a_default(wrap):
    f = wrap(
        lambda i: tw.switch_case(i, {0: lambda: 1.0, 1: lambda: 2.0}, lambda: -1.0)
    )
    assert [float(f(tw.constant(i))) for i in (0, 1, 2, -5)] == [1, 2, -1, -1]


def test_derivatives_of_switch_case():
    def f(x):
        i = tw.cast(x, "int32")
        return tw.switch_case(i, [lambda: x, lambda: x * x, lambda: tw.exp(x)])

    for x in (0.5, 1.5, 2.5):
        check_derivatives(f, number(x))


def sized(x):
    return tw.case([(x > 10.0, lambda: x * 3.0), (x > 5.0, lambda: x * 2.0)], lambda: x)


@both(sized)
def test_case_takes_the_first_that_is_true(way):
    assert [way(number(x)).numpy() for x in (20.0, 7.0, 1.0)] == [60.0, 14.0, 1.0]


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_case_without_default_wants_one_to_be_true(wrap):
    f = wrap(lambda x: tw.case([(x > 5.0, lambda: x), (x > 2.0, lambda: -x)]))
    assert f(number(3.0)).numpy() == -3.0
    with pytest.raises(tw.errors.InvalidArgumentError, match="none of the conditions"):
        f(number(1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_exclusive_case_refuses_two_that_are_true(wrap):
    f = wrap(
        lambda x: tw.case(
            [(x > 5.0, lambda: x), (x > 2.0, lambda: -x)], lambda: x, exclusive=True
        )
    )
    assert f(number(3.0)).numpy() == -3.0
    with pytest.raises(tw.errors.InvalidArgumentError, match="more than one"):
        f(number(9.0))


# ---------------------------------------------------------------------- while_loop


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


def repeated(n, maximum=None):
    """``x -> sin(x) * x``, so often."""

    def f(x):
        return tw.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tw.sin(x) * x),
            (0, x),
            maximum_iterations=maximum,
        )[1]

    return f


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


def test_forward_mode_through_a_bounded_loop():
    n = tw.constant(4)
    f = tw.function(lambda x: repeated(n, 10)(x))
    x = number(1.3)
    value, tangent = tw.autodiff.jvp(f, [x], [number(1.0)])
    eager = nested(repeated(4), x, 1)
    np.testing.assert_allclose(tangent.numpy(), eager[1].numpy(), rtol=1e-12)


# ------------------------------------------------------------- map_fn, scan and folds


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
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


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_map_fn_of_no_rows_has_the_shape_of_none(wrap):
    f = wrap(lambda x: tw.map_fn(lambda x: x[:2] * 2.0, x))
    assert f(tw.zeros((0, 3))).shape == (0, 2)


def test_rows_of_different_number_are_refused():
    with pytest.raises(ValueError, match="elems .*first"):
        tw.map_fn(lambda x: x[0], (tw.zeros(3), tw.zeros(2)))


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
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


def network(seed=0, steps=7):
    rng = np.random.default_rng(seed)
    xs, h, w = (
        rng.normal(size=(steps, 2, 3)),
        rng.normal(size=(2, 3)),
        rng.normal(size=(3, 3)),
    )
    return tw.constant(xs), tw.constant(h), tw.constant(w * 0.5)


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
    with pytest.raises(ValueError, match="give an initializer"):
        tw.scan(lambda a, x: a + x, tw.zeros(0))
    assert tw.scan(lambda a, x: a + x, tw.zeros(0), initializer=0.0).shape == (0,)


# --------------------------------------------------------------------- TensorArray


def test_elements_that_were_never_written_are_zero():
    array = tw.TensorArray("float32", size=3)
    array.write(0, 1.0)
    array.write(2, 3.0)
    np.testing.assert_array_equal(array.stack().numpy(), [1.0, 0.0, 3.0])


def test_an_array_grows_only_if_it_may():
    grows = tw.TensorArray("float32", size=0, dynamic_size=True)
    np.testing.assert_array_equal(grows.write(2, 5.0).stack().numpy(), [0.0, 0.0, 5.0])
    with pytest.raises(IndexError, match="index .*0.*1.*got 5"):
        tw.TensorArray("float32", size=2).write(5, 1.0)


def test_elements_have_one_dtype_and_shape():
    array = tw.TensorArray("float32", size=2, element_shape=(2,))
    with pytest.raises(ValueError, match="elements .*shape"):
        array.write(0, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="dtype .*float32"):
        array.write(0, tw.constant([1, 2]))


def test_the_other_ways_in_and_out():
    array = tw.TensorArray("float32", size=3)
    np.testing.assert_array_equal(
        array.unstack([[1.0], [2.0], [3.0]]).concat().numpy(), [1.0, 2.0, 3.0]
    )
    array = tw.TensorArray("float32", size=3).unstack([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(array.gather([2, 0]).numpy(), [3.0, 1.0])
    assert array.read(1).numpy() == 2.0 and array.size().numpy() == 3
    array = tw.TensorArray("float32", size=3).scatter([2, 0], [1.0, 2.0])
    np.testing.assert_array_equal(array.stack().numpy(), [2.0, 0.0, 1.0])
    array = tw.TensorArray("float32", size=2, infer_shape=False)
    parts = array.split([1.0, 2.0, 3.0], [1, 2])
    np.testing.assert_array_equal(parts.concat().numpy(), [1.0, 2.0, 3.0])


def test_gradients_pass_through_an_array():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        array = tw.TensorArray("float32", size=3).unstack(x)
        array.write(1, array.read(0) * 10.0)
        y = tw.reduce_sum(array.stack() * [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(
        tw.convert_to_tensor(tape.gradient(y, x)).numpy(), [21.0, 0.0, 3.0]
    )


def test_fibonacci_in_an_array_that_is_read_and_written():
    @tw.function
    def f(n):
        array = tw.TensorArray("int32", size=10, element_shape=())
        array = array.write(0, 1).write(1, 1)
        return tw.while_loop(
            lambda i, a: i < n,
            lambda i, a: (i + 1, a.write(i, a.read(i - 1) + a.read(i - 2))),
            (2, array),
        )[1].stack()

    assert f(tw.constant(7)).numpy().tolist() == [1, 1, 2, 3, 5, 8, 13, 0, 0, 0]


def test_an_array_written_in_one_branch_does_not_show_in_the_other():
    @tw.function
    def f(x):
        array = tw.TensorArray("float32", size=2, element_shape=())
        array = tw.cond(x > 0.0, lambda: array.write(0, x), lambda: array.write(1, x))
        return array.stack()

    assert f(tw.constant(2.0)).numpy().tolist() == [2.0, 0.0]
    assert f(tw.constant(-2.0)).numpy().tolist() == [0.0, -2.0]


def test_a_function_in_which_a_traced_index_makes_an_array_grow_runs_eagerly():
    f = tw.function(
        lambda i: (
            tw.TensorArray("float32", size=0, dynamic_size=True).write(i, 1.0).stack()
        )
    )
    assert f(tw.constant(1)).numpy().tolist() == [0.0, 1.0]
    with pytest.raises(tw.errors.TracingError, match="cannot grow"):
        f.get_concrete_function(tw.constant(1))

    @tw.function
    def after_a_first_element(n):
        array = tw.TensorArray("float32", size=0, dynamic_size=True).write(0, 1.0)
        for i in tw.range(n):
            array = array.write(i + 1, array.read(i) * 2.0)
        return array.stack()

    assert after_a_first_element(tw.constant(2)).numpy().tolist() == [1.0, 2.0, 4.0]


# --------------------------------------------------------------- what the graph becomes


def nodes_of(f, *args):
    """The nodes that are compiled, by name."""
    graph = optimize(f.get_concrete_function(*args).graph)
    return {node.name: node for node in graph.nodes}


def test_a_loop_of_many_known_steps_is_one_node():
    f = tw.function(lambda x: repeated(100)(x))
    found = nodes_of(f, number(1.0))
    assert list(found) == ["while_loop"]
    assert found["while_loop"].length == 100


def test_a_loop_of_few_known_steps_is_written_out():
    f = tw.function(lambda x: repeated(3)(x))
    assert "while_loop" not in nodes_of(f, number(1.0))


def test_a_body_may_use_numbers_that_python_knows():
    weights = [float(i) for i in range(20)]
    f = tw.function(
        lambda x: tw.while_loop(
            lambda i, x: i < 20, lambda i, x: (i + 1, x + weights[int(i)]), (0, x)
        )[1]
    )
    assert f(number(0.0)).numpy() == sum(weights)


def test_states_are_kept_only_where_the_gradient_needs_them():
    def gradient(f):
        def run(xs):
            with tw.GradientTape() as tape:
                tape.watch(xs)
                y = tw.foldl(f, xs, initializer=1.0)
            return tape.gradient(y, xs)

        return nodes_of(tw.function(run), tw.zeros(9))

    linear = gradient(lambda a, x: a * 0.5 + x)
    assert "foldl" not in linear  # its gradient does not depend on any state
    assert gradient(lambda a, x: a * x)["foldl"].stacked == 1


def test_the_gradient_of_a_recurrent_network_computes_no_state_again():
    xs, h, w = network()

    def run(w):
        with tw.GradientTape() as tape:
            tape.watch(w)
            # The rule of exp needs the new state alone.
            step = lambda h, x: tw.exp(tw.matmul(h, w) + x)  # noqa: E731
            loss = tw.reduce_sum(tw.scan(step, xs, initializer=h))
        return tape.gradient(loss, w)

    back = nodes_of(tw.function(run), w)["scan_gradient"]
    names = [node.name for node in optimize(back.regions[0]).nodes]
    assert "exp" not in names and names.count("matmul") == 2


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


# ------------------------------------------------------------------ with other machinery


def test_a_custom_gradient_inside_of_branch_and_loop():
    w = tw.Variable(2.0)

    @tw.custom_gradient
    def f(x):
        def gradient(g, variables=None):
            return 10.0 * g * tw.cos(x) * w, [100.0 * g * tw.sin(x)]

        return tw.sin(x) * w, gradient

    def value(x):
        y = tw.foldl(lambda a, x: a * 0.5 + f(x * a), x, initializer=1.0)
        return tw.cond(y > 0.0, lambda: f(y), lambda: y)

    def run(value):
        def both(x):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = value(x)
            return [y, *tape.gradient(y, [x, w])]

        return both

    x = tw.constant([0.1, 0.2, 0.3, 0.4, 0.5])
    expected = run(value)(x)
    for found in (tw.function(run(value))(x), run(tw.function(value))(x)):
        for a, b in zip(found, expected):
            a, b = tw.convert_to_tensor(a).numpy(), tw.convert_to_tensor(b).numpy()
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_jacobian_through_a_traced_scan():
    f = tw.function(lambda x: tw.scan(lambda a, x: a * 0.5 + x * x, x))
    x = tw.constant(np.arange(6.0))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    rows = [[0.5 ** (i - j) * (2 * j if j else 1) * (i >= j) for j in range(6)]
            for i in range(6)]  # fmt: skip
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), rows)


def test_many_values_at_once_cannot_take_two_branches():
    f = tw.function(lambda x: tw.cond(x > 0.0, lambda: x * 2.0, lambda: -x))
    with pytest.warns(UserWarning, match="one element after the other"):
        found = tw.vectorized_map(f, tw.constant([1.0, -3.0]))
    assert found.numpy().tolist() == [2.0, 3.0]


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


def test_a_scan_that_python_knows_is_a_constant_of_the_trace():
    @tw.function
    def f(x):
        powers = tw.scan(lambda a, _: a * 2, tw.range(20), initializer=1)
        return x * int(powers[9])

    assert f(tw.constant(2)).numpy() == 2048


def test_the_gradient_of_a_branch_assigns_nothing():
    v = tw.Variable(0.0, trainable=False)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            tape.watch(x)

            def counted():
                v.assign_add(1.0)
                return x * v

            y = tw.cond(x > 0.0, counted, lambda: x)
        v.assign_add(10.0)
        return tape.gradient(y, x)

    assert step(tw.constant(2.0)).numpy() == 1.0
    assert v.numpy() == 11.0


def test_a_row_that_is_read_and_then_replaced_keeps_its_value():
    def last_rows(x):
        def step(i, rows, last):
            return i + 1, put_row(rows, i, last + 1.0), tw.gather(rows, i)

        start = tw.cast(tw.not_equal(x[0, 0], x[0, 0]), "int32")
        return tw.while_loop(lambda i, *_: i < 5, step, [start, x, x[0]])[1:]

    x = tw.constant(np.arange(75.0).reshape(5, 15))
    for found, wanted in zip(tw.function(last_rows)(x), last_rows(x), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


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


def test_a_step_that_python_has_to_run_is_written_down_for_each_row():
    rows = tw.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    traced = tw.function(
        lambda x: tw.map_fn(lambda row: x * row if float(row) > 3 else x, rows)
    )
    assert traced(tw.constant(2.0)).numpy().tolist() == [2.0, 2.0, 2.0, 8.0, 10.0, 12.0]


@pytest.mark.parametrize(
    "branches",
    [
        lambda f, g: [(0, f), (0, g)],
        lambda f, g: [(0, f), (2, g)],
        lambda f, g: {0: f, 2: g},
        lambda f, g: [(1, f), (2, g)],
        lambda f, g: [(-1, f), (0, g)],
    ],
)
def test_the_numbers_of_branches_have_no_gap_and_no_repetition(branches):
    functions = branches(lambda: tw.constant(1), lambda: tw.constant(2))
    for call in (tw.switch_case, tw.function(tw.switch_case)):
        with pytest.raises(ValueError, match="branch_fns"):
            call(tw.constant(0), functions)


def test_a_tensor_array_takes_parts_of_several_sizes():
    def parts(x):
        array = tw.TensorArray("float32", 3).split(x, [1, 0, 3])
        return [array.read(i) for i in range(3)], array.concat()

    x = tw.constant([1.0, 2.0, 3.0, 4.0])
    for f in (parts, tw.function(parts)):
        (first, none, rest), whole = f(x)
        assert first.numpy().tolist() == [1.0] and none.shape == (0,)
        assert rest.numpy().tolist() == [2.0, 3.0, 4.0]
        assert whole.numpy().tolist() == x.numpy().tolist()
    with pytest.raises(ValueError, match="lengths"):
        tw.TensorArray("float32", 3).split(x, [1, 3])


def test_a_sparse_gradient_goes_into_a_branch():
    def f(x):
        y = tw.cond(tw.reduce_sum(x) > 0.0, lambda: x * x, lambda: x + 1.0)
        return tw.gather(y, [0, 0, 2])

    x = number([1.0, 2.0, 3.0])
    for way in (f, tw.function(f)):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = way(x)
        g = tw.convert_to_tensor(tape.gradient(y, x))
        np.testing.assert_array_equal(g, [4.0, 0.0, 6.0])
