"""`GradientTape`: what it watches, what it records, when it is spent."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.interpreters import active_interpreters

from .tapes import power_tape

SECOND_GRADIENT = "A non-persistent GradientTape can only be used to compute one set"


# ---------------------------------------------------------------------- what is watched


def test_a_watched_constant_has_a_gradient():
    x = tw.constant(3.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_an_unwatched_constant_has_none():
    x = tw.constant(3.0)
    with tw.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_what_happens_before_watch_is_not_recorded():
    x = tw.constant(3.0)
    with tw.GradientTape() as tape:
        early = x * x
        tape.watch(x)
        late = early * x
    assert tape.gradient(late, x).numpy() == 9.0


def test_watch_before_the_context_counts():
    x, tape = tw.constant(3.0), tw.GradientTape()
    tape.watch(x)
    with tape:
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_watch_takes_any_nest():
    a, b, v = tw.constant(1.0), tw.constant(2.0), tw.Variable(3.0, trainable=False)
    with tw.GradientTape() as tape:
        tape.watch({"a": a, "rest": [b, (v,)]})
        y = a * b * v
    assert [g.numpy() for g in tape.gradient(y, [a, b, v])] == [6.0, 3.0, 2.0]


@pytest.mark.parametrize("thing", [3.0, "x", None, np.ones(2), [tw.ones([2]), 1]])
def test_watch_refuses_what_is_no_tensor(thing):
    with pytest.raises(ValueError, match="watch: tensor must be"):
        tw.GradientTape().watch(thing)


def test_watch_refuses_all_or_nothing():
    x, tape = tw.constant(2.0), tw.GradientTape()
    with pytest.raises(ValueError):
        tape.watch([x, 1.0])
    with tape:
        y = x * x
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("value", [3, True, "text", [1, 2]])
def test_watching_what_has_no_derivative_warns_and_gives_none(value):
    x = tw.constant(value)
    with tw.GradientTape() as tape:
        with pytest.warns(UserWarning, match="will be None"):
            tape.watch(x)
        y = tw.identity(x)
    assert tape.gradient(y, x) is None


def test_trainable_variables_are_watched_when_read():
    v = tw.Variable(2.0)
    frozen = tw.Variable(3.0, trainable=False)
    unread = tw.Variable(1.0)
    with tw.GradientTape() as tape:
        y = v * frozen
    assert tape.watched_variables() == (v,)
    values = tape.gradient(y, [v, frozen, unread])
    assert values[0].numpy() == 3.0 and values[1:] == [None, None]


def test_a_frozen_variable_can_be_watched():
    v = tw.Variable(2.0, trainable=False)
    with tw.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    assert tape.gradient(y, v).numpy() == 4.0


def test_watch_accessed_variables_false_watches_what_is_named_only():
    a, b = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y, z = a**2, b**3
    assert tape.watched_variables() == (a,)
    gradients = tape.gradient([y, z], [a, b])
    assert gradients[0].numpy() == 4.0 and gradients[1] is None


def test_a_variable_watched_after_its_first_read_counts_from_then_on():
    a = tw.Variable(2.0)
    with tw.GradientTape(watch_accessed_variables=False) as tape:
        early = a * a
        tape.watch(a)
        y = early * a
    assert tape.gradient(y, a).numpy() == 4.0


def test_watched_variables_are_in_order_of_construction_and_outlive_the_gradient():
    a, b, c = (tw.Variable(1.0) for _ in range(3))
    with tw.GradientTape() as tape:
        y = c * b * a * c
    assert [v is w for v, w in zip(tape.watched_variables(), (a, b, c))] == [True] * 3
    tape.gradient(y, a)
    assert len(tape.watched_variables()) == 3


def test_a_new_tape_watches_nothing():
    assert tw.GradientTape().watched_variables() == ()


# ----------------------------------------------------------------------- life of a tape


def test_a_second_gradient_needs_a_persistent_tape():
    tape, x, y = power_tape()
    tape.gradient(y, x)
    for method in (tape.gradient, tape.jacobian):
        with pytest.raises(RuntimeError, match=SECOND_GRADIENT):
            method(y, x)
    with pytest.raises(RuntimeError, match=SECOND_GRADIENT):
        tape.watch(x)


def test_a_jacobian_spends_the_tape_too():
    tape, x, y = power_tape([1.0, 2.0])
    tape.jacobian(y, x)
    with pytest.raises(RuntimeError, match=SECOND_GRADIENT):
        tape.gradient(y, x)


def test_a_persistent_tape_answers_again_and_again():
    tape, x, y = power_tape(persistent=True)
    assert [tape.gradient(y, x).numpy() for _ in range(3)] == [6.0] * 3


def test_a_tape_asked_again_by_its_own_walk_is_spent_already():
    @tw.custom_gradient
    def f(x):
        def gradient(dy):
            with pytest.raises(RuntimeError, match=SECOND_GRADIENT):
                tape.gradient(y, x)
            return dy

        return x, gradient

    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
        z = f(y)
    assert tape.gradient(z, x).numpy() == 6.0


def test_a_failed_gradient_still_spends_the_tape_and_frees_it():
    images = tw.Variable(np.ones((2, 2, 1), np.float32))
    with tw.GradientTape() as tape:
        y = tw.image.adjust_contrast(images, 2.0)
    with pytest.raises(LookupError):
        tape.gradient(y, images)
    with pytest.raises(RuntimeError, match=SECOND_GRADIENT):
        tape.gradient(y, images)


def test_entering_an_active_tape_again_is_refused():
    tape = tw.GradientTape()
    with tape:
        with pytest.raises(ValueError, match="already"):
            tape.__enter__()
        assert len(active_interpreters()) == 1


def test_reentering_a_closed_tape_appends():
    x, tape = tw.Variable(3.0), tw.GradientTape()
    with tape:
        y = x * x
    z = y * 5.0  # not seen
    with tape:
        y = y * x
    assert tape.gradient(y, x).numpy() == 27.0
    assert tape.watched_variables() == (x,)
    assert z.numpy() == 45.0


def test_a_spent_tape_can_be_entered_anew():
    tape, x, y = power_tape()
    tape.gradient(y, x)
    with tape:
        z = x * 3.0
    assert tape.gradient(z, x).numpy() == 3.0


def test_ops_after_the_context_are_not_recorded():
    tape, x, y = power_tape()
    assert tape.gradient(y * 2.0, x) is None


def test_a_gradient_inside_its_own_context_stops_the_recording():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        assert active_interpreters() == ()
        with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
            pass


def test_a_persistent_gradient_inside_its_own_context_warns_once_and_is_recorded():
    x = tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        y = x**3
        with pytest.warns(UserWarning, match="inside the tape's context"):
            dy = tape.gradient(y, x)
        again = tape.gradient(y, x)
    assert again.numpy() == 27.0
    assert tape.gradient(dy, x).numpy() == 18.0


# ---------------------------------------------------------------- stop_recording, reset


def test_stop_recording_leaves_a_hole():
    x, y = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        x_sq = x * x
        with tape.stop_recording():
            y_sq = y * y
        z = x_sq + y_sq
    gradients = tape.gradient(z, {"x": x, "y": y})
    assert gradients["x"].numpy() == 4.0 and gradients["y"] is None


def test_stop_recording_hides_the_gradient_itself():
    x = tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        y = x**3
        with tape.stop_recording():
            dy = tape.gradient(y, x)  # no warning: it is not recorded
    assert dy.numpy() == 27.0
    assert tape.gradient(dy, x) is None


def test_stop_recording_leaves_other_tapes_alone():
    x = tw.Variable(3.0)
    with tw.GradientTape() as outer, tw.GradientTape() as inner:
        with outer.stop_recording():
            y = x * x
    assert outer.gradient(y, x) is None
    assert inner.gradient(y, x).numpy() == 6.0


def test_stop_recording_puts_the_tape_back_in_its_place():
    with tw.GradientTape() as first, tw.GradientTape(), tw.GradientTape():
        before = active_interpreters()
        with first.stop_recording():
            assert len(active_interpreters()) == 2
        assert active_interpreters() == before


def test_stop_recording_ends_with_an_error_inside():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        with pytest.raises(KeyError), tape.stop_recording():
            raise KeyError
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_stop_recording_needs_a_recording_tape():
    tape = tw.GradientTape()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
            pass
        with tape:
            pass
    with tape, tape.stop_recording():
        with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
            pass


def test_a_gradient_inside_stop_recording_ends_a_tape_that_is_not_persistent():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            assert tape.gradient(y, x).numpy() == 6.0
        assert active_interpreters() == ()


def test_reset_forgets_what_came_before():
    x, y = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y_sq = y * y
        tape.reset()
        assert tape.watched_variables() == ()
        z = x * x + y_sq
    gradients = tape.gradient(z, {"x": x, "y": y})
    assert gradients["x"].numpy() == 4.0 and gradients["y"] is None


def test_reset_forgets_watched_tensors():
    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        y = x * x
    assert tape.gradient(y, x) is None


def test_reset_after_the_context_empties_the_tape():
    tape, x, y = power_tape(persistent=True)
    tape.reset()
    assert tape.gradient(y, x) is None


# --------------------------------------------------------------------------- many tapes


def test_simultaneous_tapes_watch_their_own_sources():
    x0, x1 = tw.constant(0.0), tw.constant(0.0)
    with tw.GradientTape() as tape0, tw.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        ys = tw.reduce_sum(tw.math.sin(x0) + tw.nn.sigmoid(x1))
    assert tape0.gradient(ys, [x0, x1])[1] is None
    assert tape1.gradient(ys, x1).numpy() == 0.25


def test_tapes_may_be_left_in_another_order_than_entered():
    x = tw.Variable(2.0)
    first, second = tw.GradientTape(), tw.GradientTape()
    first.__enter__()
    a = x * x
    second.__enter__()
    b = a * x
    first.__exit__(None, None, None)
    c = b * x
    second.__exit__(None, None, None)
    assert active_interpreters() == ()
    assert first.gradient(b, x).numpy() == 12.0  # x^3
    assert second.gradient(c, x).numpy() == 4.0 * 2 + 8.0  # 4 x * x, 4 a constant


def test_an_inner_gradient_is_seen_by_the_outer_tape_only():
    x = tw.Variable(1.0)
    with tw.GradientTape() as t2:
        with tw.GradientTape() as t1:
            y = x * x * x
        dy = t1.gradient(y, x)
    assert dy.numpy() == 3.0
    assert t2.gradient(dy, x).numpy() == 6.0


def test_a_gradient_taken_outside_has_no_derivative():
    x = tw.Variable(1.0)
    with tw.GradientTape() as t2, tw.GradientTape() as t1:
        y = x * x * x
    dy = t1.gradient(y, x)
    assert t2.gradient(dy, x) is None


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("f", "derivative"),
    [
        (tw.exp, lambda x, n: math.exp(x)),
        (tw.sin, lambda x, n: math.sin(x + n * math.pi / 2)),
        (lambda x: x**5.0, lambda x, n: math.perm(5, n) * x ** (5 - n)),
        (lambda x: 1.0 / x, lambda x, n: (-1) ** n * math.factorial(n) / x ** (n + 1)),
        (
            tw.math.log,
            lambda x, n: (-1) ** (n - 1) * math.factorial(n - 1) / x**n,
        ),
        (
            lambda x: tw.reduce_sum(tw.reshape(x, [1]) * [[1.0], [2.0]]),
            lambda x, n: 3.0 * (n == 1),
        ),
    ],
)
def test_derivatives_up_to_the_fourth(f, derivative, order):
    x = tw.Variable(0.7, dtype="float64")
    tapes = [tw.GradientTape() for _ in range(order)]
    for tape in tapes:
        tape.__enter__()
    y = f(x)
    for n, tape in enumerate(reversed(tapes), start=1):
        tape.__exit__(None, None, None)
        y = tape.gradient(y, x, unconnected_gradients="zero")
        np.testing.assert_allclose(y, derivative(0.7, n), rtol=1e-12)


def test_mixed_second_derivatives_are_symmetric():
    x, y = tw.Variable(0.3), tw.Variable(0.8)

    def mixed(first, second):
        with tw.GradientTape() as outer:
            with tw.GradientTape() as inner:
                z = tw.sin(x * y) * tw.exp(y)
            d = inner.gradient(z, first)
        return outer.gradient(d, second).numpy()

    np.testing.assert_allclose(mixed(x, y), mixed(y, x), rtol=1e-6)


def test_a_gradient_penalty_reaches_the_weights():
    x, w = tw.constant([[1.0, 2.0]]), tw.Variable([[3.0], [4.0]])
    with tw.GradientTape() as outer:
        with tw.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(x)
            y = tw.matmul(x, w) ** 2
        g = inner.gradient(y, x)  # 2 (x w) w^T
        penalty = tw.reduce_sum(g * g)  # 4 (x w)^2 |w|^2
    s, w2 = 11.0, 25.0
    expected = 8 * s * w2 * np.array([[1.0], [2.0]]) + 8 * s**2 * np.array(
        [[3.0], [4.0]]
    )
    np.testing.assert_allclose(outer.gradient(penalty, w), expected, rtol=1e-6)


def test_an_inner_tape_of_an_inner_function_is_no_hindrance():
    def derivative(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        return tape.gradient(y, x)

    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        z = derivative(x * 1.0) * x  # 3 x^2 * x
    assert tape.gradient(z, x).numpy() == 36.0


# ---------------------------------------------------------------------------- variables


def test_an_assignment_does_not_change_what_was_recorded():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        y = x * x
        x.assign(5.0)
    x.assign(7.0)
    assert tape.gradient(y, x).numpy() == 4.0


def test_reads_before_and_after_an_assignment_are_summed():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        y = x * x
        x.assign_add(3.0)
        y = y + x * x * x
    assert tape.gradient(y, x).numpy() == 4.0 + 75.0


def test_an_assignment_blocks_the_gradient():
    x0, x1 = tw.Variable(3.0), tw.Variable(0.0)
    with tw.GradientTape() as tape:
        x1.assign_add(x0)
        y = x1**2
    assert tape.gradient(y, x0) is None


def test_a_variable_plus_one_is_a_tensor_and_no_longer_watched():
    x, found = tw.Variable(2.0), []
    for _ in range(2):
        with tw.GradientTape() as tape:
            y = x + 1.0
        found.append(tape.gradient(y, x))
        x = x + 1.0
    assert found[0].numpy() == 1.0 and found[1] is None
    assert isinstance(x, tw.Tensor)


# ------------------------------------------------------------------------------- errors


def test_an_error_inside_the_context_leaves_it():
    with pytest.raises(ZeroDivisionError), tw.GradientTape():
        1 / 0  # noqa: B018
    assert active_interpreters() == ()


def test_the_unspent_tape_survives_an_error_in_its_context():
    x, tape = tw.Variable(3.0), tw.GradientTape()
    with pytest.raises(ValueError), tape:
        y = x * x
        tw.matmul(x, x)
    assert tape.gradient(y, x).numpy() == 6.0


def test_a_tape_shows_its_state_and_what_it_watches():
    x = tw.Variable(3.0, name="x")
    tape = tw.GradientTape()
    assert repr(tape) == "<GradientTape: empty>"
    with tape:
        y = x * x
        assert repr(tape) == "<GradientTape: recording, 1 op, watches 'x'>"
        tape.watch(tw.constant(1.0))
    assert repr(tape) == "<GradientTape: 1 op, watches 'x', 1 tensor>"
    tape.gradient(y, x)
    assert repr(tape) == "<GradientTape: spent>"


def test_a_tape_counts_many_variables():
    variables = [tw.Variable(1.0) for _ in range(5)]
    with tw.GradientTape(persistent=True) as tape:
        tw.add_n([v * 1.0 for v in variables])
    assert repr(tape) == "<GradientTape: persistent, 6 ops, watches 5 variables>"
