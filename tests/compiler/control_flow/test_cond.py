"""`cond`, `switch_case` and `case`: eager, traced, and the gradients of both."""

import numpy as np
import pytest

import tapewright as tw

from ...ways import ways
from .programs import both, check_derivatives, number


def piecewise(x):
    return tw.cond(x > 2.0, lambda: x * x * x, lambda: tw.sin(x))


# --------------------------------------------------------------------------------- cond


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


def test_many_values_at_once_cannot_take_two_branches():
    f = tw.function(lambda x: tw.cond(x > 0.0, lambda: x * 2.0, lambda: -x))
    with pytest.warns(UserWarning, match="in a loop over the elements"):
        found = tw.vectorized_map(f, tw.constant([1.0, -3.0]))
    assert found.numpy().tolist() == [2.0, 3.0]


# ----------------------------------------------------------------- switch_case and case


@ways
def test_switch_case_takes_the_last_branch_for_other_numbers(wrap):
    f = wrap(lambda i: tw.switch_case(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]))
    assert [f(tw.constant(i)).__float__() for i in (0, 1, 2, 7, -1)] == [1, 2, 3, 3, 3]


@ways
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


@ways
def test_case_without_default_wants_one_to_be_true(wrap):
    f = wrap(lambda x: tw.case([(x > 5.0, lambda: x), (x > 2.0, lambda: -x)]))
    assert f(number(3.0)).numpy() == -3.0
    with pytest.raises(tw.errors.InvalidArgumentError, match="none of the conditions"):
        f(number(1.0))


@ways
def test_exclusive_case_refuses_two_that_are_true(wrap):
    f = wrap(
        lambda x: tw.case(
            [(x > 5.0, lambda: x), (x > 2.0, lambda: -x)], lambda: x, exclusive=True
        )
    )
    assert f(number(3.0)).numpy() == -3.0
    with pytest.raises(tw.errors.InvalidArgumentError, match="more than one"):
        f(number(9.0))


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
