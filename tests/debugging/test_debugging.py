"""`tw.debugging`: the user's lines, and the first op that makes a NaN."""

import numpy as np
import pytest

import tapewright as tw

from ..ways import ways


@pytest.fixture
def checked():
    tw.debugging.enable_check_numerics()
    yield
    tw.debugging.disable_check_numerics()


@pytest.fixture
def traced():
    tw.debugging.enable_traceback()
    yield
    tw.debugging.disable_traceback()


def failure(function):
    with pytest.raises(FloatingPointError) as caught:
        function()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


# -------------------------------------------------------------------- check_numerics


def test_the_first_op_that_makes_a_nan_is_named_with_range_line_and_remedy(checked):
    text = failure(lambda: tw.math.log(tw.constant([1.0, -2.0, 4.0])) * 2.0)
    assert text.startswith("log produced NaN (1 of 3 entries)")
    assert "from -2 to 4" in text
    assert f"{__file__}:" in text
    assert "log1p" in text


def test_an_infinity_is_an_accident_too(checked):
    text = failure(lambda: tw.exp(tw.constant(1000.0)))
    assert text.startswith("exp produced an infinity") and "softplus" in text


def test_a_rule_that_overflows_is_caught_and_the_forward_op_named():
    x = tw.Variable(1e-25)
    with tw.GradientTape(persistent=True) as tape:
        y = 1.0 / x
    assert np.isinf(tape.gradient(y, x).numpy())
    tw.debugging.enable_check_numerics()
    try:
        text = failure(lambda: tape.gradient(y, x))
    finally:
        tw.debugging.disable_check_numerics()
    assert "in the gradient of divide" in text


def test_finite_numbers_pass_and_gradients_are_the_same(checked):
    x = tw.Variable([0.5, 2.0])

    def slope():
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.tanh(x) ** 3 / x)
        return tape.gradient(y, x).numpy()

    found = slope()
    tw.debugging.disable_check_numerics()
    np.testing.assert_allclose(found, slope(), rtol=1e-6)


def test_an_infinity_that_is_handed_on_is_no_accident(checked):
    mask = tw.constant([0.0, -np.inf])
    weights = tw.nn.softmax(tw.constant([1.0, 2.0]) + mask)
    np.testing.assert_array_equal(weights.numpy(), [1.0, 0.0])


def test_a_nan_from_outside_stops_at_the_first_op(checked):
    text = failure(lambda: tw.constant([np.nan, 1.0]) + 1.0)
    assert text.startswith("add produced NaN") and "1 not finite" in text


def test_integers_and_booleans_are_left_alone(checked):
    assert (tw.constant([1, 2]) + 1).numpy().tolist() == [2, 3]
    assert bool(tw.constant(1) < 2)


def test_a_jacobian_is_checked(checked):
    x = tw.Variable([1e-25, 1.0])
    with tw.GradientTape() as tape:
        y = tw.math.reciprocal(x)
    assert "in the gradient of reciprocal" in failure(lambda: tape.jacobian(y, x))


def test_switched_off_nothing_is_checked():
    tw.debugging.enable_check_numerics()
    tw.debugging.disable_check_numerics()
    assert np.isinf(tw.exp(tw.constant(1000.0)).numpy())


def test_check_numerics_of_one_tensor():
    assert tw.debugging.check_numerics([1.0], "loss").numpy() == [1.0]
    assert failure(lambda: tw.debugging.check_numerics([np.nan], "loss")).startswith(
        "loss: the tensor has NaN"
    )


# ------------------------------------------------------------------------- traceback


def test_an_explanation_names_the_line_where_the_path_ends(traced):
    x, v = tw.Variable(3.0), tw.Variable(2.0)
    with tw.GradientTape() as tape:
        cut = tw.stop_gradient(x * x)
        y = cut * v
    (found,) = tape.explain(y, x)
    line = (
        test_an_explanation_names_the_line_where_the_path_ends.__code__.co_firstlineno
    )
    assert found.line == f"{__file__}:{line + 3}"
    assert found.line in str(found)


@pytest.mark.parametrize("leave", ["numpy", "assign"])
def test_the_line_where_a_value_leaves_is_named(traced, leave):
    x, v = tw.Variable(3.0), tw.Variable(2.0)
    with tw.GradientTape() as tape:
        if leave == "numpy":
            y = tw.constant((x * x).numpy())
        else:
            v.assign(x * x)
            y = v * 1.0
    (found,) = tape.explain(y, x)
    assert found.line.startswith(f"{__file__}:")


def test_a_summary_is_by_line(traced):
    x = tw.Variable(np.ones(100))
    with tw.GradientTape() as tape:
        y = tw.exp(x)
        z = tw.exp(y)
    rows = tape.summary().rows
    assert [(op, count, size) for op, _, count, size in rows] == [("exp", 1, 800)] * 2
    lines = sorted(int(line.rpartition(":")[2]) for _, line, _, _ in rows)
    assert lines[1] == lines[0] + 1
    np.testing.assert_allclose(tape.gradient(z, x).numpy(), np.exp(np.exp(1) + 1))


def test_lines_inside_the_framework_are_not_the_users(traced):
    layer = tw.layers.Dense(2)
    with tw.GradientTape() as tape:
        layer(tw.ones([1, 3]))
    assert {line.rpartition(":")[0] for _, line, _, _ in tape.summary().rows} == {
        __file__
    }


def test_gradients_do_not_change_when_lines_are_kept(traced):
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as outer:
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(x**3 * x)
        g = tape.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(g, x).numpy(), [12.0, 48.0])


def test_switched_off_no_lines_are_kept():
    tw.debugging.enable_traceback()
    tw.debugging.disable_traceback()
    x = tw.Variable(1.0)
    with tw.GradientTape() as tape:
        y = tw.stop_gradient(x * x) * 2.0
    assert tape.explain(y, x)[0].line is None


def test_code_that_is_in_no_file_has_lines_too(traced):
    scope = {"tw": tw, "x": tw.Variable(1.0)}
    source = "with tw.GradientTape() as tape:\n    y = tw.exp(x)\n    z = y * y"
    exec(compile(source, "<stdin>", "exec"), scope)
    lines = {op: line for op, line, _, _ in scope["tape"].summary().rows}
    assert lines == {"exp": "<stdin>:2", "square": "<stdin>:3"}


# ------------------------------------------------------------------------- placement


@ways
def test_each_op_is_printed_with_its_device(wrap, capsys):
    f = wrap(lambda x: tw.exp(x) * 2.0)
    x = tw.constant([1.0])
    f(x)
    assert not tw.debugging.get_log_device_placement()
    tw.debugging.set_log_device_placement(True)
    try:
        assert tw.debugging.get_log_device_placement()
        f(x)
    finally:
        tw.debugging.set_log_device_placement(False)
    f(x)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"Executing op {op} in device {x.device}" for op in ("Exp", "Mul")]
