"""Gradients of a user's own in saved functions, in every order."""

import numpy as np
import pytest

import tapewright as tw

from .saving import ROWS, cubed, derivatives, same, through_a_file, traced


def test_a_nested_custom_gradient_is_kept_in_every_order(tmp_path):
    (loaded,) = through_a_file([traced(None)(cubed)], tmp_path)
    x = np.float32(2.0)
    found = derivatives(loaded, [x])
    np.testing.assert_allclose(
        found, [8.0, 3.5 * 4, 3.5 * 2.5 * 2, 3.5 * 2.5], rtol=1e-6
    )


def test_a_gradient_function_that_calls_itself_is_kept_for_four_orders(tmp_path):
    @tw.custom_gradient
    def shifted(x):
        return tw.sin(x), lambda g: g * shifted(x + 1.0)

    (loaded,) = through_a_file([traced([])(shifted)], tmp_path)
    x = np.float32(0.3)
    found = derivatives(loaded, [x], orders=4)
    np.testing.assert_allclose(found, np.sin(x + np.arange(5)), rtol=1e-5)
    with pytest.raises(LookupError, match="order 4"):
        derivatives(loaded, [x], orders=5)


def test_gradients_by_captured_variables_come_from_the_gradient_function(tmp_path):
    w = tw.Variable(1.5)

    @tw.custom_gradient
    def scaled(x):
        def gradient(g, variables=None):
            return g * w, [tw.reduce_sum(10.0 * g * x)]

        return x * w * w, gradient

    function = traced([None, 3])(lambda x: scaled(x) * x)
    (loaded,) = through_a_file([function], tmp_path, [w])
    wanted = derivatives(function, [ROWS], [w])
    same(derivatives(loaded, [ROWS], [w]), wanted, 1e-6)
    assert wanted[2] == np.float32(10.0 * (ROWS * ROWS).sum())


def test_several_inputs_and_outputs_and_no_gradient_for_some(tmp_path):
    @tw.custom_gradient
    def both(a, b):
        return (a * b, a + b), lambda g, h: (2.0 * g * b + h, None)

    function = traced([None, 3], [None, 3])(lambda a, b: both(a, b))
    (loaded,) = through_a_file([function], tmp_path)
    wanted = derivatives(function, [ROWS, ROWS + 1])
    assert wanted[3] is None
    same(derivatives(loaded, [ROWS, ROWS + 1]), wanted, 1e-6)


def test_recompute_grad_and_grad_pass_through_are_kept(tmp_path):
    w = tw.Variable(1.5)
    functions = [
        traced([None, 3])(lambda x: tw.recompute_grad(lambda x: tw.sin(x * w) * x)(x)),
        traced(None)(lambda x: tw.grad_pass_through(tw.round)(x) * x),
    ]
    for function, twin in zip(functions, through_a_file(functions, tmp_path, [w])):
        same(derivatives(twin, [ROWS], [w]), derivatives(function, [ROWS], [w]), 1e-6)


def test_a_gradient_that_was_registered_for_an_op_travels_as_a_graph(tmp_path):
    from tapewright.core.rules import elementwise

    @elementwise
    def doubled_for_files(xp, x):
        return 2 * x

    op = doubled_for_files.primitive

    @tw.RegisterGradient("DoubledForFiles")
    def _(call, g):
        return 3.0 * g * call.inputs[0]

    function = traced([None])(lambda x: doubled_for_files(x) * x)
    wanted = derivatives(function, ROWS[:1])
    (loaded,) = through_a_file([function], tmp_path)
    op.registered = None  # as in a process in which nobody has registered it
    op.recorders.clear()
    same(derivatives(loaded, ROWS[:1]), wanted, 1e-6)


def test_the_gradient_of_a_loaded_function_agrees_with_finite_differences(tmp_path):
    function = tw.function(
        lambda x: tw.reduce_sum(tw.recompute_grad(tw.sin)(x) * x**2),
        input_signature=[tw.TensorSpec([None], "float64")],
    )
    (loaded,) = through_a_file([function], tmp_path)
    tw.test.check_gradients(loaded, [np.array([0.3, -0.4, 1.2])])


def test_a_custom_gradient_that_cannot_be_traced_is_refused_with_its_line(tmp_path):
    @tw.custom_gradient
    def bad(x):
        return x * 2.0, lambda g: g * x.numpy()

    with pytest.raises(
        tw.errors.SavingError, match=r"test_custom_gradients.py:\d+: .*bad"
    ):
        through_a_file([traced([])(lambda x: bad(x))], tmp_path)


def test_python_code_in_a_gradient_is_not_advised_where_it_cannot_be_saved(tmp_path):
    @tw.custom_gradient
    def bad(x):
        return x * 2.0, lambda g: g * g.numpy()

    with pytest.raises(
        tw.errors.SavingError, match="A file can contain only ops, no py_function$"
    ):
        through_a_file([traced([])(lambda x: bad(x))], tmp_path)
