"""`tape.explain`: every cause of a None is told from the others; `tape.summary`."""

import gc
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.explain import REASONS


@pytest.fixture
def x():
    return tw.Variable(3.0, name="x")


@pytest.fixture
def v():
    return tw.Variable(2.0, name="v")


def reason(tape, target, source):
    """The reason of one source; what `gradient` gives must agree with it."""
    (found,) = tape.explain(target, source)
    assert found.reason in REASONS and found.text
    return found.reason


# --------------------------------------------- the causes that the guides show, and more


def test_connected_names_the_ops_on_the_way(x):
    with tw.GradientTape() as tape:
        y = tw.sin(x * 2.0)
    (found,) = tape.explain(y, x)
    assert found.connected and found.path == ("multiply", "sin")
    assert tape.gradient(y, x) is not None


def test_a_variable_that_is_not_trainable_is_not_watched():
    x = tw.Variable(3.0, trainable=False)
    with tw.GradientTape() as tape:
        y = x * x
    assert reason(tape, y, x) == "not_watched"
    assert tape.gradient(y, x) is None


def test_a_tape_that_watches_nothing_says_so(x):
    with tw.GradientTape(watch_accessed_variables=False) as tape:
        y = x * x
    (found,) = tape.explain(y, x)
    assert found.reason == "not_watched" and "watch_accessed_variables" in found.text


def test_a_constant_is_not_watched():
    x = tw.constant(3.0)
    with tw.GradientTape() as tape:
        y = x * x
    (found,) = tape.explain(y, x)
    assert found.reason == "not_watched" and "tape.watch" in found.text


def test_a_variable_plus_a_number_is_a_tensor():
    x = tw.Variable(2.0, name="x2") + 1.0
    with tw.GradientTape() as tape:
        y = x * x
    (found,) = tape.explain(y, x)
    assert found.reason == "rebound" and "x2" in found.text


def test_a_variable_rebound_in_a_loop_is_found_in_the_second_round(x):
    reasons = []
    for _ in range(2):
        with tw.GradientTape() as tape:
            y = x + 1
        reasons.append(reason(tape, y, x))
        assert (tape.gradient(y, x) is None) == (reasons[-1] != "connected")
        x = x + 1
    assert reasons == ["connected", "rebound"]


def test_a_variable_that_does_not_matter_is_unrelated(x, v):
    with tw.GradientTape() as tape:
        y = v * v
    assert reason(tape, y, x) == "unrelated"


def test_a_variable_that_is_read_but_does_not_matter_is_unrelated(x, v):
    with tw.GradientTape() as tape:
        x * 2.0
        y = v * v
    assert reason(tape, y, x) == "unrelated"


def test_numpy_takes_a_value_off_the_tape():
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        y = tw.reduce_mean(np.mean(x**2, axis=0))
    (found,) = tape.explain(y, x)
    assert found.reason == "left_the_tape"
    assert found.path == ("square", "a NumPy function")


@pytest.mark.parametrize(
    "leave",
    [lambda t: t.numpy(), float, lambda t: np.exp(t), lambda t: np.asarray(t)],
    ids=["numpy", "float", "ufunc", "asarray"],
)
def test_every_way_to_numpy_and_python_is_seen(x, leave):
    with tw.GradientTape() as tape:
        y = tw.constant(leave(x * x)) * 2.0
    assert reason(tape, y, x) == "left_the_tape"


def leave_by_numpy_function(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        kept = tw.numpy_function(np.sort, [x * x], tw.TensorSpec([2], "float32"))
        y = kept * 2.0
    (found,) = tape.explain(y, x)
    assert (found.reason, found.path[-1]) == ("left_the_tape", "numpy_function")
    return y


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_numpy_function_takes_a_value_off_the_tape(wrap):
    wrap(leave_by_numpy_function)(tw.constant([2.0, 1.0]))


def test_a_variable_itself_leaves_by_numpy(x):
    with tw.GradientTape() as tape:
        y = tw.constant(np.sin(x))
    assert reason(tape, y, x) == "left_the_tape"


def test_an_integer_source_is_not_floating(v):
    x = tw.constant(10)
    with tw.GradientTape() as tape:
        with pytest.warns(UserWarning, match="differentiable"):
            tape.watch(x)
        y = tw.cast(x, tw.float32) * v
    assert reason(tape, y, x) == "not_floating"


def test_an_integer_target_is_not_floating(x):
    with tw.GradientTape() as tape:
        y = tw.cast(x, tw.int32)
    (found,) = tape.explain(y, x)
    assert found.reason == "not_floating" and "target" in found.text


def test_integers_on_the_way_have_no_derivative(x, v):
    with tw.GradientTape() as tape:
        y = tw.cast(tw.cast(x * 2.0, tw.int32), tw.float32) * v
    (found,) = tape.explain(y, x)
    assert found.reason == "no_derivative" and found.path == ("multiply", "cast")


def test_assign_add_hides_how_the_state_came_about(x, v):
    with tw.GradientTape() as tape:
        v.assign_add(x)
        y = v**2
    (found,) = tape.explain(y, x)
    assert found.reason == "assigned" and "'v'" in found.text
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_a_computed_value_that_is_assigned_is_followed_there(x, v, method):
    with tw.GradientTape() as tape:
        getattr(v, method)(tw.exp(x))
        y = v * 2.0
    (found,) = tape.explain(y, x)
    assert found.reason == "assigned" and found.path == ("exp", method)


def test_an_assigned_target_is_explained(x, v):
    with tw.GradientTape() as tape:
        v.assign(x * 2.0)
    assert reason(tape, v, x) == "assigned"


@pytest.mark.parametrize(
    "op", [tw.round, tw.floor, tw.sign], ids=["round", "floor", "sign"]
)
def test_an_op_that_is_flat_is_named(x, v, op):
    with tw.GradientTape() as tape:
        y = op(x * 2.0) * v
    (found,) = tape.explain(y, x)
    if op is tw.sign:  # its derivative is zero, and there
        assert found.connected
    else:
        assert found.reason == "no_derivative"
        assert found.path == ("multiply", op.__name__)


def test_an_op_without_a_rule_is_named():
    images = tw.ones([1, 4, 4, 3])
    with tw.GradientTape() as tape:
        tape.watch(images)
        y = tw.image.adjust_contrast(images, 2.0)
    (found,) = tape.explain(y, images)
    assert found.reason == "no_derivative" and "LookupError" in found.text
    with pytest.raises(LookupError):
        tape.gradient(y, images)


def test_stop_gradient_is_named(x, v):
    with tw.GradientTape() as tape:
        y = tw.stop_gradient(tw.exp(x)) * v
    (found,) = tape.explain(y, x)
    assert found.reason == "stop_gradient" and found.path == ("exp", "stop_gradient")


def test_stop_gradient_on_one_of_two_paths_leaves_the_other(x):
    with tw.GradientTape() as tape:
        y = tw.stop_gradient(tw.exp(x)) * x
    assert reason(tape, y, x) == "connected"


def test_ops_after_stop_gradient_do_not_hide_it(x, v):
    with tw.GradientTape() as tape:
        cut = tw.reduce_sum(tw.tanh(tw.stop_gradient(x * 2.0) + 1.0))
        y = tw.matmul([[1.0]], tw.reshape(cut * v, [1, 1]))
    assert reason(tape, y, x) == "stop_gradient"
    assert reason(tape, y, v) == "connected"


def test_stop_recording_is_named(x, v):
    with tw.GradientTape() as tape:
        before = tw.exp(x)
        with tape.stop_recording():
            inside = before * 2.0
        y = inside * v
    (found,) = tape.explain(y, x)
    assert found.reason == "stop_recording" and found.path == ("exp", "multiply")


def test_what_is_computed_after_the_context_is_outside(x):
    with tw.GradientTape(persistent=True) as tape:
        inside = tw.exp(x)
    y = tw.matmul(tw.reshape(inside, [1, 1]), [[2.0]])
    (found,) = tape.explain(y, x)
    assert found.reason == "outside" and found.path == ("exp", "reshape")


def test_a_variable_read_before_the_context_is_outside(x):
    y = x * x
    with tw.GradientTape() as tape:
        z = y * 2.0
    assert reason(tape, z, x) == "outside"


def test_a_read_after_the_context_is_outside_even_if_there_was_one_inside(x):
    with tw.GradientTape() as tape:
        x * 2.0
    y = x * 3.0
    assert reason(tape, y, x) == "outside"


def test_reset_forgets_source_and_target(x):
    with tw.GradientTape() as tape:
        y = x * x
        tape.reset()
    assert reason(tape, y, x) == "reset"


def test_a_target_from_before_the_reset_is_named(x):
    with tw.GradientTape() as tape:
        y = x * x
        tape.reset()
        x * 3.0
    (found,) = tape.explain(y, x)
    assert found.reason == "reset" and "target" in found.text


def test_an_intermediate_result_is_a_source(x):
    with tw.GradientTape() as tape:
        y = x * x
        z = y * 3.0
    assert reason(tape, z, y) == "connected"


def test_of_several_tapes_each_explains_its_own(x, v):
    with tw.GradientTape(watch_accessed_variables=False) as first:
        first.watch(x)
        with tw.GradientTape(watch_accessed_variables=False) as second:
            second.watch(v)
            y = x * v
    assert [reason(first, y, x), reason(first, y, v)] == ["connected", "not_watched"]
    assert [reason(second, y, x), reason(second, y, v)] == ["not_watched", "connected"]


def test_a_custom_gradient_is_a_step_of_the_path(x):
    @tw.custom_gradient
    def halved(x):
        return x * 1.0, lambda g: g * 0.5

    with tw.GradientTape() as tape:
        y = tw.exp(halved(x))
    assert tape.explain(y, x)[0].path == ("halved", "exp")


# ------------------------------------------------------------------------- the report


def test_a_report_follows_the_sources(x, v):
    with tw.GradientTape() as tape:
        y = x * x
    report = tape.explain(y, {"a": x, "b": [v]})
    assert report.reasons == ["connected", "unrelated"]
    text = str(report)
    assert "variable 'x' () float32: connected" in text and "'v'" in text


def test_a_long_path_is_shortened_in_print_only(x):
    with tw.GradientTape() as tape:
        y = x.read()
        for _ in range(30):
            y = tw.sin(y)
    (found,) = tape.explain(y, x)
    assert len(found.path) == 30 and "... 20 more ..." in str(found)


def test_explaining_takes_nothing_from_the_tape(x):
    with tw.GradientTape() as tape:
        y = x * x
    tape.explain(y, x)
    assert tape.gradient(y, x).numpy() == 6.0
    with pytest.raises(RuntimeError, match="persistent"):
        tape.explain(y, x)


# ------------------------------------------------------------------ after the gradient


def spent(f, sources, **options):
    """A tape that has given gradients of f(tape), its target, and the gradients."""
    with tw.GradientTape(**options) as tape:
        target = f(tape)
    return tape, target, tape.gradient(target, sources)


def _stopped(x, v):
    return tw.sin(tw.stop_gradient(x * 2.0)) + v


def _exported(x, v):
    return float(tw.exp(x * 2.0)) * v


def _rounded(x, v):
    return tw.round(x * 2.0) * v


def _assigned(x, v):
    v.assign(x * 2.0)
    return v * v


def _unused(x, v):
    tw.exp(x * x)
    return tw.sin(v)


CAUSES = [_stopped, _exported, _rounded, _assigned, _unused]


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("f", CAUSES)
def test_a_spent_tape_explains_a_none_as_before(x, v, f, sources):
    with tw.GradientTape() as tape:
        y = f(x, v)
    before = tape.explain(y, x)
    assert tape.gradient(y, [x, v][:sources])[0] is None
    assert str(tape.explain(y, x)) == str(before)


def test_a_spent_tape_tells_sources_with_a_gradient(x, v):
    u = tw.Variable(5.0, name="u")
    tape, y, gradients = spent(lambda _: u + _stopped(x, tw.exp(v)), [x, v, u])
    assert gradients[0] is None
    reasons = ["stop_gradient", "connected", "connected"]
    assert tape.explain(y, [x, v, u]).reasons == reasons


def test_a_spent_tape_explains_each_of_several_targets(x, v):
    with tw.GradientTape() as tape:
        first, second = v * v, _stopped(x, v)
    assert tape.gradient([first, second], x) is None
    assert tape.explain(second, x).reasons == ["stop_gradient"]


def test_a_spent_tape_explains_its_own_target_only(x, v):
    with tw.GradientTape() as tape:
        y, z = v * v, x * x
    assert tape.gradient(y, x) is None
    with pytest.raises(RuntimeError, match="the target of its gradient"):
        tape.explain(z, x)


def test_a_spent_jacobian_of_none_is_explained(x, v):
    with tw.GradientTape() as tape:
        y = _stopped(x, v) * tw.ones([3])
    assert tape.jacobian(y, x) is None
    assert tape.explain(y, x).reasons == ["stop_gradient"]


def test_a_spent_tape_keeps_no_arrays(x, v):
    with tw.GradientTape() as tape:
        big = tw.exp(tw.ones([100]) * v)
        unused = tw.sin(big)
        y = _stopped(x, v) * big
    assert tape.gradient(y, x) is None
    kept = [weakref.ref(each.array) for each in (big, unused, y)]
    assert [each() is None for each in kept] == [False] * 3
    del big, unused, y
    assert [each() is None for each in kept] == [True] * 3


def test_an_explanation_keeps_no_traced_function_alive(x, v):
    def explained():
        captured = tw.constant(np.ones(100, "float32"))
        weighted = tw.function(lambda a: tw.reduce_sum(a * captured))
        tape, y, _ = spent(lambda _: tw.round(weighted(x * 1.0)) * v, x)
        path = tape.explain(y, x)[
            0
        ].path  # with the ops of the function on the stand-in
        assert path[0] == "multiply" and path[-1] == "round"
        return tape, weakref.ref(captured.array)

    tape, kept = explained()
    gc.collect()
    assert kept() is None


def test_an_explanation_keeps_no_other_variable_alive(x):
    v = tw.Variable(2.0)
    spent(lambda _, v=v: _stopped(x, v), [x, v])
    kept = weakref.ref(v)
    del v
    assert kept() is None


def test_a_tape_entered_anew_forgets_what_it_could_explain(x, v):
    tape, y, _ = spent(lambda _: _unused(x, v), x)
    with tape:
        z = x * x
    assert tape.explain(z, x).reasons == ["connected"]
    tape.gradient(z, x)
    with pytest.raises(RuntimeError, match="persistent"):
        tape.explain(y, x)


def test_zeros_in_place_of_none_keep_nothing(x, v):
    with tw.GradientTape() as tape:
        y = _stopped(x, v)
    tape.gradient(y, x, unconnected_gradients="zero")
    with pytest.raises(RuntimeError, match="persistent"):
        tape.explain(y, x)


# ------------------------------------------------------------------------- arguments


def test_explain_takes_one_target(x):
    with tw.GradientTape() as tape:
        y = x * x
    with pytest.raises(TypeError, match="single tensor"):
        tape.explain([y, y], x)
    with pytest.raises(TypeError, match="source"):
        tape.explain(y, 3.0)


def test_the_same_variables_have_the_same_origins_in_each_step():
    a, b, c = tw.Variable(1.0), tw.Variable(2.0), tw.Variable(3.0)
    first, second = [((a + b) * c).key for _ in range(2)]
    assert first is second
    assert [o.key for o in first.origins] == [v._tw_serial for v in (a, b, c)]
    assert ((a * c) + (b * a)).key is not first
    assert [o.key for o in (a + a * b).key.origins] == [a._tw_serial, b._tw_serial]


def test_losses_remember_a_bounded_number_of_origins(v):
    parts = [tw.Variable(float(i)) for i in range(40)]
    with tw.GradientTape() as tape:
        total = tw.add_n([tw.stop_gradient(p * 1.0) for p in parts]) * v
    assert len(tape._tw_tape.untracked_inputs[0][1].origins) == 16
    assert reason(tape, total, parts[0]) == "stop_gradient"


# --------------------------------------------------------------------------- summary


def test_a_summary_counts_ops_and_bytes():
    x = tw.Variable(np.ones([10, 100]))
    with tw.GradientTape() as tape:
        y = tw.exp(x)
        z = tw.sin(y) + tw.reduce_sum(y)
    summary = tape.summary()
    counts = {op: count for op, _, count, _ in summary.rows}
    assert counts == {"exp": 1, "sin": 1, "reduce_sum": 1, "add": 1}
    # exp keeps its output, and sin the same array as its input
    assert summary.nbytes == tape.nbytes == 8000
    assert "exp" in str(summary) and "8,000" in str(summary)
    assert z.shape == (10, 100)


def test_the_arrays_of_variables_are_not_counted():
    x = tw.Variable(np.ones([1000]))
    with tw.GradientTape() as tape:
        tw.sin(x)
    assert tape.nbytes == 0


def test_a_view_counts_for_all_that_it_keeps_alive(device):
    if device == "strict":
        pytest.skip("the stand-in does not say whose memory a view shows")
    x = tw.Variable(np.ones([1000]))
    with tw.GradientTape() as tape:
        tw.sin((x * 2.0)[:10])
    assert tape.nbytes == 8000 + 8  # and the number 2.0


def test_an_empty_tape_holds_nothing():
    with tw.GradientTape() as tape:
        pass
    assert tape.nbytes == 0 and "total" in str(tape.summary())


def test_arguments_of_a_call_to_recompute_count():
    x = tw.Variable(np.ones(1000))
    with tw.GradientTape() as tape:
        y = x * 2.0
        z = tw.recompute_grad(lambda a, *, b: tw.tanh(a["a"]) * b)({"a": y}, b=y * y)
    assert tape.nbytes == 2 * 8000 + 8
    assert tape.gradient(z, x) is not None
