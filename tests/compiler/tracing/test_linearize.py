"""Traced functions under tapes: gradients of every order, from compiled graphs."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import primitive

from ..conftest import (
    RNG,
    assert_linearized,
    assert_same,
    derivatives_of,
    floats,
    nested,
)

# --------------------------------------------------------------------- what is tracked


def test_variables_read_inside_are_watched():
    w = tw.Variable([1.0, 2.0], dtype="float64")
    traced = tw.function(lambda x: tw.reduce_sum(x * w * w))
    x = tw.constant([3.0, 4.0], dtype="float64")
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = traced(x)
    assert tape.watched_variables()[0] is w
    dx, dw = tape.gradient(y, [x, w])
    np.testing.assert_allclose(dx.numpy(), [1.0, 4.0])
    np.testing.assert_allclose(dw.numpy(), [6.0, 16.0])
    assert_linearized(traced)


def test_variables_of_a_tape_that_watches_none_are_constants():
    w = tw.Variable(2.0)
    traced = tw.function(lambda x: x * w)
    x = tw.constant(3.0)
    with tw.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = traced(x)
    dx, dw = tape.gradient(y, [x, w])
    assert dx.numpy() == 2.0 and dw is None
    assert tape.watched_variables() == ()


def test_nothing_tracked_is_just_a_replay():
    traced = tw.function(lambda x: x * 2.0)
    with tw.GradientTape() as tape:
        y = traced(tw.constant(3.0))
    assert y.numpy() == 6.0 and derivatives_of(traced) == []
    assert tape.nbytes == 0


def test_a_tensor_watched_outside_is_a_source_also_when_it_was_found_in_a_closure():
    c = tw.constant(3.0)
    traced = tw.function(lambda x: x * c * c)
    traced(tw.constant(1.0))  # the trace does not know that it will be watched
    with tw.GradientTape() as tape:
        tape.watch(c)
        y = traced(tw.constant(2.0))
    assert tape.gradient(y, c).numpy() == 12.0
    assert_linearized(traced)


def test_gradients_go_on_before_and_behind_the_call():
    v = tw.Variable(2.0)
    traced = tw.function(lambda x: x**3)
    with tw.GradientTape() as tape:
        y = traced(v * 2.0) * 5.0
    assert tape.gradient(y, v).numpy() == 5.0 * 3 * 16.0 * 2


def test_whole_numbers_have_no_gradient():
    traced = tw.function(lambda x, n: (x * tw.cast(n, "float32"), n + 1))
    x, n = tw.constant(3.0), tw.constant(4)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y, m = traced(x, n)
    assert tape.gradient(y, [x, n])[0].numpy() == 4.0
    assert m.numpy() == 5


def test_unconnected_results_give_none_or_zeros():
    traced = tw.function(lambda a, b: (a * 2.0, tw.stop_gradient(b) * 3.0))
    a, b = tw.constant(1.0), tw.constant(2.0)
    for kind, wanted in (("none", None), ("zero", 0.0)):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch([a, b])
            y, z = traced(a, b)
        found = tape.gradient([y, z], [a, b], unconnected_gradients=kind)
        assert found[0].numpy() == 2.0
        assert (found[1] if wanted is None else found[1].numpy()) == wanted
        assert tape.gradient(z, a) is None


def test_an_input_that_is_returned_keeps_its_gradient():
    traced = tw.function(lambda x: (x, x * 2.0))
    x = tw.constant(3.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        same, double = traced(x)
        z = same * double
    assert tape.gradient(z, x).numpy() == 12.0


def test_one_result_of_several_can_be_differentiated():
    def f(x):
        h = tw.exp(x)
        return h, tw.reduce_sum(h * x), x * 1.0

    x, traced = floats(3), tw.function(f)
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        h, total, y = traced(x)
    e = np.exp(x.numpy())
    np.testing.assert_allclose(tape.gradient(h, x).numpy(), e)
    np.testing.assert_allclose(tape.gradient(total, x).numpy(), e * (1 + x.numpy()))
    np.testing.assert_allclose(tape.gradient([h, y], x).numpy(), e + 1)


def test_output_gradients_are_the_cotangents():
    traced = tw.function(lambda x: (x * x, tw.sin(x)))
    x, u, v = floats(3), floats(3), floats(3)
    with tw.GradientTape() as tape:
        tape.watch(x)
        targets = traced(x)
    found = tape.gradient(targets, x, output_gradients=[u, v])
    wanted = 2 * x.numpy() * u.numpy() + np.cos(x.numpy()) * v.numpy()
    np.testing.assert_allclose(found.numpy(), wanted)


def test_complex_gradients_follow_tensorflows_convention():
    traced = tw.function(lambda z: z * z)
    z = tw.constant(1 + 2j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        y = traced(z)
    assert tape.gradient(y, z).numpy() == 2 - 4j


def test_rows_that_were_gathered_come_back_as_slices():
    table = tw.Variable(np.ones((5, 2)))
    traced = tw.function(lambda i: tw.gather(table, i) * 3.0)
    with tw.GradientTape() as tape:
        y = traced(tw.constant([1, 3]))
    found = tape.gradient(y, table)
    assert isinstance(found, tw.IndexedSlices)
    np.testing.assert_array_equal(found.indices.numpy(), [1, 3])
    np.testing.assert_array_equal(
        tw.convert_to_tensor(found).numpy(), [[0, 0], [3, 3], [0, 0], [3, 3], [0, 0]]
    )


def test_an_op_without_a_gradient_is_an_error_only_if_it_is_asked_for():
    op = primitive(lambda xp, x: x * 3.0, name="tests_without_gradient")
    op.primitive.infer(lambda x: x)
    traced = tw.function(lambda x: (x * 2.0, op(x)))
    x = tw.constant(1.0)
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = traced(x)
    assert tape.gradient(y, x).numpy() == 2.0
    with pytest.raises(LookupError, match="No gradient defined"):
        tape.gradient(z, x)


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_a_function_for_all_batch_sizes_is_differentiated_for_each(batch):
    w = tw.Variable(np.arange(6.0).reshape(3, 2))
    traced = tw.function(
        lambda x: tw.reduce_mean(tw.nn.softmax(tw.matmul(x, w)) ** 2),
        input_signature=[tw.TensorSpec([None, 3], "float64")],
    )
    x = floats(batch, 3)

    def gradients(f):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, w])

    assert_same(gradients(traced), gradients(traced.python_function))


# ------------------------------------------------------------------ variables and effects


def test_a_variable_that_is_assigned_is_a_source_at_its_old_value():
    v = tw.Variable(3.0)

    @tw.function
    def step(x):
        y = v * x
        v.assign_add(10.0)
        return y * v

    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = step(x)
    # Both reads count: d(v1 x v2) = x v2 + v1 x.
    dx, dv = tape.gradient(y, [x, v])
    assert y.numpy() == 78.0 and v.numpy() == 13.0
    assert dx.numpy() == 39.0 and dv.numpy() == 2.0 * 13.0 + 6.0


def test_no_gradient_passes_through_an_assignment():
    v = tw.Variable(3.0, trainable=False)

    @tw.function
    def step(x):
        v.assign(v * x)
        return v * x

    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = step(x)
    assert y.numpy() == 12.0 and v.numpy() == 6.0
    assert tape.gradient(y, x).numpy() == 6.0
    assert_linearized(step)


def test_a_variable_assigned_after_the_call_does_not_change_its_gradient():
    v = tw.Variable([1.0, 2.0])
    traced = tw.function(lambda: tw.reduce_sum(v**3))
    with tw.GradientTape() as tape:
        y = traced()
        v.assign([10.0, 10.0])
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), [3.0, 12.0])


def test_an_optimizer_between_call_and_gradient_does_not_change_it():
    v = tw.Variable([1.0, 2.0])
    optimizer = tw.optimizers.SGD(0.5)
    traced = tw.function(lambda: tw.reduce_sum(v**3))
    for _ in range(3):
        before = v.numpy()
        with tw.GradientTape() as tape:
            y = traced()
        optimizer.apply_gradients([(tw.constant([1.0, 1.0]), v)])
        np.testing.assert_allclose(tape.gradient(y, v).numpy(), 3 * before**2)


def test_effects_happen_once():
    count = tw.Variable(0, trainable=False)
    seen = []

    @tw.function
    def f(x):
        count.assign_add(1)
        seen.append("traced")
        return x**3

    x = tw.constant(2.0)
    for calls in (1, 2, 3):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        assert outer.gradient(g, x).numpy() == 12.0
        assert count.numpy() == calls
    assert seen == ["traced"]


def test_random_numbers_are_drawn_once_for_both_ways():
    generator = tw.random.Generator.from_seed(5)
    f = tw.function(lambda x: x * generator.normal((4,)))
    x = tw.constant(np.ones(4, "float32"))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())
    again = tw.random.Generator.from_seed(5)
    np.testing.assert_array_equal(y.numpy(), again.normal((4,)).numpy())


def test_an_optimizer_inside_the_function_takes_its_step_once():
    v = tw.Variable(2.0)
    optimizer = tw.optimizers.SGD(0.25)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = v * v * x
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    x = tw.constant(1.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = step(x)
    assert tape.gradient(loss, x).numpy() == 4.0
    assert v.numpy() == 1.0 and optimizer.iterations.numpy() == 1


def an_update_then_a_read(v, update, x):
    update()
    return v * x


def a_read_on_both_sides_of_an_update(v, update, x):
    y = v * x
    update()
    return y + v * x * x


def a_read_then_an_update(v, update, x):
    y = v * v * x
    update()
    return y


def a_value_read_after_an_update_is_returned(v, update, x):
    update()
    return v.read_value(), x


def an_update_in_a_branch(v, update, x):
    tw.cond(
        tw.reduce_sum(x) > 0, lambda: (update(), x * 0.0)[1], lambda: tw.zeros_like(x)
    )
    return v * x


def an_update_and_a_read_in_a_branch(v, update, x):
    def updated():
        update()
        return v * x

    return tw.cond(tw.reduce_sum(x) > 0, updated, lambda: x)


def an_update_in_a_loop(v, update, x):
    def body(i):
        update()
        return (i + 1,)

    tw.while_loop(lambda i: i < twice(x), body, (tw.constant(0),))
    return v * x


def an_update_and_a_read_in_a_loop(v, update, x):
    def body(i, y):
        update()
        return i + 1, y * v

    return tw.while_loop(lambda i, y: i < twice(x), body, (tw.constant(0), x))[1]


def an_update_and_a_read_for_each_row(v, update, x):
    def row(r):
        update()
        return r * v

    return tw.map_fn(row, tw.stack([x] * 6))


def an_update_in_another_function(v, update, x):
    tw.function(lambda: update())()
    return v * x


def an_update_in_py_function(v, update, x):
    tw.py_function(lambda: (update(), [])[1], [], [])
    return v * x


def an_assignment_in_py_function(v, update, x):
    tw.py_function(lambda: (v.assign(v * 2.0), [])[1], [], [])
    return v * x


def an_assignment_in_numpy_function(v, update, x):
    tw.numpy_function(lambda: (v.assign(v * 2.0), [])[1], [], [])
    return v * x


def an_assignment_that_py_function_sees(v, update, x):
    v.assign(v * x)
    spec = tw.TensorSpec([3], "float32")
    return x * tw.py_function(lambda: v.numpy() * 2, [], spec) + v


def an_assignment_in_py_function_of_a_branch(v, update, x):
    def changed():
        tw.py_function(lambda: (v.assign(v * 2.0), [])[1], [], [])
        return x * v

    return tw.cond(tw.reduce_sum(x) > 0, changed, lambda: x) * v


def an_assignment_in_py_function_of_a_loop(v, update, x):
    def body(i, y):
        tw.py_function(lambda: (v.assign(v * 2.0), [])[1], [], [])
        return i + 1, y * v

    return tw.while_loop(lambda i, y: i < twice(x), body, (tw.constant(0), x))[1]


def a_check_and_an_update(v, update, x):
    tw.debugging.assert_greater(x, tw.zeros_like(x))
    y = v * x
    update()
    return y * v


def twice(x):
    """The number 2, unknown while tracing."""
    return tw.cast(tw.reduce_sum(x * 0.0), "int32") + 2


PROGRAMS = [
    an_update_then_a_read,
    a_read_on_both_sides_of_an_update,
    a_read_then_an_update,
    a_value_read_after_an_update_is_returned,
    an_update_in_a_branch,
    an_update_and_a_read_in_a_branch,
    an_update_in_a_loop,
    an_update_and_a_read_in_a_loop,
    an_update_and_a_read_for_each_row,
    an_update_in_another_function,
    an_update_in_py_function,
    an_assignment_in_py_function,
    an_assignment_in_numpy_function,
    an_assignment_that_py_function_sees,
    an_assignment_in_py_function_of_a_branch,
    an_assignment_in_py_function_of_a_loop,
    a_check_and_an_update,
]


def derivatives_of_two_orders(program, watched, trainable, wrap):
    """What two calls in a row give, and derivatives of two orders, as arrays."""
    v = tw.Variable([3.0, 3.0, 3.0], trainable=trainable)
    optimizer = tw.optimizers.SGD(0.5)
    gradient, x = tw.ones(3), tw.constant([1.0, 2.0, 3.0])
    f = wrap(
        lambda x: program(v, lambda: optimizer.apply_gradients([(gradient, v)]), x)
    )
    found = []
    for _ in range(2):
        with tw.GradientTape(persistent=True) as outer, tw.GradientTape() as inner:
            if watched:
                outer.watch(x), inner.watch(x)
            outputs = [y * y for y in tw.nest.flatten(f(x))]
            with inner.stop_recording():
                first = inner.gradient(outputs, [x, v])
            squares = [tw.reduce_sum(g * g) for g in first if g is not None]
        second = outer.gradient(squares, [x, v]) if squares else []
        found += [*outputs, *first, *second, v.read_value()]
    return [None if y is None else tw.convert_to_tensor(y).numpy() for y in found]


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_read_of_a_variable_is_of_its_own_time(program, trainable, watched):
    setting = program, watched, trainable
    eager = derivatives_of_two_orders(*setting, wrap=lambda f: f)
    for got, wanted in zip(
        derivatives_of_two_orders(*setting, wrap=tw.function), eager, strict=True
    ):
        assert (got is None) == (wanted is None)
        if got is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_the_value_after_an_update_is_that_of_the_gradient():
    v, optimizer = tw.Variable(3.0), tw.optimizers.SGD(0.5)

    @tw.function
    def step(x):
        optimizer.apply_gradients([(tw.constant(1.0), v)])
        return v * x

    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = step(x)
    assert [g.numpy() for g in tape.gradient(y, [x, v])] == [2.5, 2.0]
    assert_linearized(step)


def test_a_tensor_read_before_an_update_is_not_the_source_of_what_is_read_after_it():
    v, optimizer = tw.Variable(3.0), tw.optimizers.SGD(0.5)

    @tw.function
    def step(x):
        y = v * v
        optimizer.apply_gradients([(tw.constant(1.0), v)])
        return y + v * x

    step(tw.constant(2.0))  # the optimizer lays its variables out
    v.assign(3.0)
    with tw.GradientTape(persistent=True) as tape:
        before = v.read_value()
        y = step(tw.constant(2.0))
    assert tape.gradient(y, before).numpy() == 6.0  # 2 v, of the first read
    assert tape.gradient(y, v).numpy() == 6.0 + 2.0


def test_reading_a_changed_variable_in_a_branch_of_another_trace_is_refused_under_its_tape():
    v, optimizer = tw.Variable(3.0), tw.optimizers.SGD(0.5)

    @tw.function
    def inner(x):
        def updated():
            optimizer.apply_gradients([(tw.constant(1.0), v)])
            return v * x

        return tw.cond(x > 0, updated, lambda: x)

    @tw.function
    def outer(x):
        with tw.GradientTape() as tape:
            y = inner(x)
        return tape.gradient(y, v)

    with pytest.raises(tw.errors.TracingError, match="'Variable'"):
        outer(tw.constant(2.0))


def test_a_defect_in_a_rule_surfaces_in_the_call(monkeypatch):
    sin = tw.sin.primitive
    monkeypatch.setitem(sin.rules, "x", lambda g, x: g.no_such_attribute)
    sin.recorders.clear()
    x = tw.constant(1.0)
    try:
        with tw.GradientTape() as tape, pytest.raises(AttributeError, match="no_such"):
            tape.watch(x)
            tw.function(lambda x: tw.sin(x) * 2.0)(x)
    finally:
        sin.recorders.clear()


def test_a_gradient_function_that_raises_is_an_error_only_if_it_is_asked_for():
    @tw.custom_gradient
    def f(x):
        def gradient(g):
            raise OSError("no gradient today")

        return x * 2.0, gradient

    x, traced = tw.constant(3.0), tw.function(lambda x: (f(x), x * x))
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = traced(x)
    assert y.numpy() == 6.0 and tape.gradient(z, x).numpy() == 6.0
    with pytest.raises(OSError, match="today"):
        tape.gradient(y, x)


# ---------------------------------------------------------------------- looking inside


def test_explain_sees_a_call_as_one_op():
    @tw.function
    def double(x):
        return x * 2.0

    x = tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        y = double(x)
    report = tape.explain(y, x)
    assert report[0].reason == "connected"
    assert report[0].path == ("double",)


def test_explain_finds_what_lets_no_gradient_pass_inside_a_call():
    @tw.function
    def f(a, b):
        return a * 2.0 + tw.stop_gradient(b * 3.0)

    a, b = tw.constant(1.0), tw.constant(2.0)
    with tw.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        y = f(a, b)
    assert [r.reason for r in tape.explain(y, [a, b])] == ["connected", "stop_gradient"]


def test_what_is_computed_while_the_tape_pauses_is_not_on_it():
    traced = tw.function(lambda x: x * 2.0)
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        with tape.stop_recording():
            y = traced(x)
        z = y * x
    assert tape.gradient(z, x).numpy() == 6.0


def test_the_tape_keeps_no_more_than_in_eager_mode():
    w = [tw.Variable(RNG.normal(size=(32, 32))) for _ in range(4)]

    def f(x):
        for v in w:
            x = tw.nn.relu(tw.matmul(x, v)) + 1.0
        return tw.reduce_sum(x * x)

    def kept(f):
        x = floats(64, 32)
        with tw.GradientTape(persistent=True) as tape:
            y = f(x)
        assert y is not None
        return tape.nbytes

    traced = tw.function(f)
    assert kept(traced) <= kept(f)


def test_what_was_recorded_dies_with_the_gradient():
    traced = tw.function(lambda x: tw.exp(x) * x)
    traced(floats(3))
    x = floats(3)
    gc.disable()
    try:
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        _, _, _, *residuals = tape._tw_tape.records[0]
        kept = [weakref.ref(t) for t in residuals]
        del residuals
        assert kept
        tape.gradient(y, x)
        del y, x
        assert [r() for r in kept] == [None] * len(kept)
    finally:
        gc.enable()


# ------------------------------------------------------------------------------ threads


def test_two_threads_under_tapes_of_their_own():
    w = tw.Variable(floats(3, 3).numpy())
    traced = tw.function(lambda x: tw.reduce_sum(tw.tanh(tw.matmul(x, w)) ** 2))

    def work(seed):
        x = tw.constant(np.random.default_rng(seed).normal(size=(4, 3)))
        args = [x]
        return [nested(traced, args, 2) for _ in range(10)], nested(
            traced.python_function, args, 2
        )

    device = copy_context()
    with ThreadPoolExecutor(4) as pool:
        for rounds, wanted in pool.map(lambda n: device.copy().run(work, n), range(4)):
            for found in rounds:
                assert_same(found, wanted)


@pytest.mark.parametrize("traced", [False, True])
def test_a_value_read_before_the_tape_is_a_constant_to_it(traced):
    v = tw.Variable(3.0)

    def slope():
        old = v.read_value()
        with tw.GradientTape() as tape:
            y = old * v
        return tape.gradient(y, v)

    assert (tw.function(slope) if traced else slope)().numpy() == 3.0


@pytest.mark.parametrize("traced", [False, True])
def test_a_value_read_before_the_tape_and_watched_is_a_source_of_its_own(traced):
    v = tw.Variable(3.0)

    def slopes():
        old = v.read_value()
        with tw.GradientTape() as tape:
            tape.watch(old)
            y = old * old * v
        return tape.gradient(y, [old, v])

    found = (tw.function(slopes) if traced else slopes)()
    assert [g.numpy() for g in found] == [18.0, 9.0]


@pytest.mark.parametrize("traced", [False, True])
def test_a_value_read_under_the_outer_tape_only_is_a_constant_to_the_inner(traced):
    v = tw.Variable(3.0)

    def orders():
        with tw.GradientTape() as outer:
            old = v.read_value()
            with tw.GradientTape() as inner:
                y = old * v
            slope = inner.gradient(y, v)
        return slope, outer.gradient(slope, v)

    found = (tw.function(orders) if traced else orders)()
    assert [g.numpy() for g in found] == [3.0, 1.0]


def test_a_call_that_is_interpreted_and_fails_changes_no_variable():
    v, count = tw.Variable(2.0), tw.Variable(0, trainable=False)
    optimizer = tw.optimizers.SGD(0.5)

    @tw.function
    def step(x, n):
        def updated():
            optimizer.apply_gradients([(tw.constant(1.0), v)])
            return v * x

        count.assign_add(1)
        return tw.cond(x > 0, updated, lambda: x) * tw.cast(7 // n, "float32")

    def call(n):
        with tw.GradientTape() as tape:
            y = step(tw.constant(1.0), tw.constant(n))
        return tape.gradient(y, v)

    assert call(1).numpy() == 7.0 and v.numpy() == 1.5
    with pytest.raises(ValueError, match="divided.*0"):
        call(0)
    assert (v.numpy(), count.numpy(), optimizer.iterations.numpy()) == (1.5, 1, 1)


def test_a_row_of_a_traced_number_has_a_dense_gradient_as_in_eager_mode():
    w = tw.Variable([[1.0, 2.0], [3.0, 4.0]])

    def gradient(i):
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(w[i] ** 2)
        return tape.gradient(y, w)[::-1]

    for f in (gradient, tw.function(gradient)):
        assert f(tw.constant(1)).numpy().tolist() == [[6.0, 8.0], [0.0, 0.0]]
