"""`custom_gradient`, `grad_pass_through` and `stop_gradient`."""

import functools
import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.interpreters import active_interpreters

from .tapes import gradient_of


@tw.custom_gradient
def clip_gradients(y):
    return y, lambda dy: tw.clip_by_norm(dy, 0.5)


@tw.custom_gradient
def tenfold(x):
    """The identity, with a gradient of ten."""
    return x, lambda dy: dy * 10.0


# ---------------------------------------------------------------------- custom_gradient


def test_the_rule_stands_in_for_the_derivative():
    v = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        output = clip_gradients(v * v)
    assert output.numpy() == 4.0
    assert tape.gradient(output, v).numpy() == 2.0  # 4, clipped to 0.5 on the way


def test_a_stable_log1pexp():
    @tw.custom_gradient
    def log1pexp(x):
        e = tw.exp(x)
        return tw.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    assert gradient_of(log1pexp, 100.0).numpy() == 1.0


def test_returning_the_very_argument_still_applies_the_rule():
    x = tw.constant(3.0)
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tenfold(x)
    assert y is not x
    assert tape.gradient(y, x).numpy() == 10.0
    assert tape.gradient(x, x).numpy() == 1.0


def test_a_variable_may_be_the_argument():
    assert gradient_of(tenfold, 3.0).numpy() == 10.0


def test_without_a_tape_it_is_the_plain_function():
    assert tenfold(3.0).numpy() == 3.0
    assert tenfold(tw.constant([1.0])).numpy() == [1.0]


def test_the_decorator_may_be_called_and_keeps_name_and_docstring():
    @tw.custom_gradient()
    def f(x):
        """Doc."""
        return x, lambda dy: dy

    assert f.__name__ == "f" and f.__doc__ == "Doc."


def test_several_inputs_get_one_gradient_each():
    @tw.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (dy * 100.0, dy * 1000.0)

    by_x, by_y = gradient_of(f, 2.0, 3.0)
    assert (by_x.numpy(), by_y.numpy()) == (100.0, 1000.0)


def test_a_list_of_gradients_is_as_good_as_a_tuple():
    @tw.custom_gradient
    def f(x, y):
        return x * y, lambda dy: [dy, dy * 2.0]

    assert [g.numpy() for g in gradient_of(f, 2.0, 3.0)] == [1.0, 2.0]


def test_several_outputs_bring_one_cotangent_each():
    @tw.custom_gradient
    def f(x):
        return (x + 1.0, x + 2.0), lambda da, db: da * 10.0 + db

    x = tw.Variable(1.0)
    with tw.GradientTape() as tape:
        a, b = f(x)
        y = 3.0 * a + 5.0 * b
    assert tape.gradient(y, x).numpy() == 35.0


def test_an_unused_output_brings_zeros():
    seen = []

    @tw.custom_gradient
    def f(x):
        def gradient(da, db):
            seen.append(db.numpy())
            return da

        return (x, x * [1.0, 2.0]), gradient

    x = tw.Variable(1.0)
    with tw.GradientTape() as tape:
        a, _ = f(x)
    assert tape.gradient(a, x).numpy() == 1.0
    np.testing.assert_array_equal(seen, [[0.0, 0.0]])


def test_inputs_and_outputs_may_be_nested():
    @tw.custom_gradient
    def f(pair, scale):
        a, b = pair["a"], pair["b"]

        def gradient(d_sum, d_product):
            return {"a": d_sum, "b": d_sum * 2.0}, d_product * 3.0

        return {"sum": a + b, "z": a * scale}, gradient

    a, b, s = tw.Variable(1.0), tw.Variable(2.0), tw.Variable(4.0)
    with tw.GradientTape() as tape:
        out = f({"a": a, "b": b}, s)
        y = out["sum"] + out["z"]
    assert out["sum"].numpy() == 3.0
    assert [g.numpy() for g in tape.gradient(y, [a, b, s])] == [1.0, 2.0, 3.0]


def test_keyword_arguments_are_passed_on():
    @tw.custom_gradient
    def f(x, *, scale=1.0, offset):
        return x * scale + offset, lambda dy: dy * scale

    assert gradient_of(functools.partial(f, scale=3.0, offset=1.0), 2.0).numpy() == 3.0


def test_arguments_that_are_no_tensors_take_a_place_among_the_gradients():
    @tw.custom_gradient
    def f(x, n, array):
        return x * float(n), lambda dy: (dy * float(n), None, None)

    assert gradient_of(lambda x: f(x, 4, np.ones(3)), 2.0).numpy() == 4.0


def test_none_means_no_gradient():
    @tw.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (dy, None)

    by_x, by_y = gradient_of(f, 2.0, 3.0)
    assert by_x.numpy() == 1.0 and by_y is None


def test_numbers_and_arrays_are_taken_in_the_dtype_of_the_input():
    for value in (2, 2.0, np.float64(2.0), np.array(2)):
        rule = tw.custom_gradient(lambda x, value=value: (x, lambda dy: value))
        gradient = gradient_of(rule, 1.0)
        assert gradient.numpy() == 2.0 and gradient.dtype == "float32"


def test_a_sparse_gradient_may_be_returned():
    @tw.custom_gradient
    def f(x):
        return x[1], lambda dy: tw.IndexedSlices(tw.reshape(dy, [1]) * 5.0, [1], [3])

    np.testing.assert_allclose(gradient_of(f, [1.0, 2.0, 3.0]), [0.0, 5.0, 0.0])


def test_integer_outputs_are_let_through():
    @tw.custom_gradient
    def f(x):
        return (x * 2.0, tw.cast(x, "int32")), lambda dy, _: dy * 7.0

    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y, whole = f(x)
    assert whole.numpy() == 3 and whole.dtype == "int32"
    assert tape.gradient(y, x).numpy() == 7.0


def test_complex_cotangents_come_in_tensorflows_convention():
    seen = []

    @tw.custom_gradient
    def f(z):
        def gradient(dy):
            seen.append(complex(dy))
            return dy * tw.math.conj(2.0 * z)

        return z * z, gradient

    z = tw.Variable(1 + 2j)
    with tw.GradientTape(persistent=True) as tape:
        y = f(z) * (3 + 1j)
        plain = (z * z) * (3 + 1j)
    np.testing.assert_allclose(tape.gradient(y, z), tape.gradient(plain, z))
    assert seen == [3 - 1j]


def test_what_nobody_asks_for_is_not_called():
    @tw.custom_gradient
    def f(x):
        def gradient(dy):
            raise AssertionError("not on the way to the source")

        return x * 1.0, gradient

    x, y = tw.Variable(1.0), tw.Variable(2.0)
    with tw.GradientTape() as tape:
        z = f(x) + y
    assert tape.gradient(z, y).numpy() == 1.0


# --------------------------------------------------------------------- variables inside


def scale_by(v):
    @tw.custom_gradient
    def f(x):
        def gradient(dy, variables):
            assert [w is v for w in variables] == [True]
            return dy * v, [tw.reduce_sum(dy * x) * 10.0]

        return x * v, gradient

    return f


def test_a_variable_used_inside_gets_its_gradient():
    v, x = tw.Variable(2.0), tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = scale_by(v)(x)
    by_x, by_v = tape.gradient(y, [x, v])
    np.testing.assert_allclose(by_x, [2.0, 2.0])
    assert by_v.numpy() == 30.0


def test_a_variable_both_inside_and_outside_is_summed():
    v, x = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = scale_by(v)(x) + v
    assert tape.gradient(y, v).numpy() == 31.0


def test_a_variable_inside_that_is_an_argument_too_is_an_argument_only():
    v = tw.Variable(2.0)

    @tw.custom_gradient
    def f(x):
        return v * 1.0, lambda dy: dy * 5.0

    with tw.GradientTape() as tape:
        y = f(v)
    assert tape.gradient(y, v).numpy() == 5.0


def test_a_frozen_variable_inside_is_a_constant():
    v = tw.Variable(2.0, trainable=False)
    f = tw.custom_gradient(lambda x: (x * v, lambda dy: dy * 7.0))
    assert gradient_of(f, 3.0).numpy() == 7.0


def test_a_gradient_function_that_cannot_take_variables_is_refused_at_the_call():
    v = tw.Variable(2.0, name="scale")
    f = tw.custom_gradient(lambda x: (x * v, lambda dy: dy))
    with pytest.raises(TypeError, match="'scale'.*argument 'variables'"):
        f(tw.constant(1.0))


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda dy, n: dy, TypeError, "variable_gradients"),
        (lambda dy, n: [dy], TypeError, "variable_gradients"),
        (lambda dy, n: (dy, [dy, dy]), ValueError, "1 variable gradients.*got 2"),
        (lambda dy, n: ((dy, dy), [dy]), ValueError, "expected to return 1 gradients"),
    ],
)
def test_wrong_answers_with_variables_are_refused(answer, error, message):
    v, x = tw.Variable(2.0), tw.Variable(1.0)
    f = tw.custom_gradient(
        lambda x: (x * v, lambda dy, variables: answer(dy, len(variables)))
    )
    with tw.GradientTape() as tape:
        y = f(x)
    with pytest.raises(error, match=message):
        tape.gradient(y, [x, v])


# ------------------------------------------------------------------------ wrong answers


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x,
        lambda x: (x, x),
        lambda x: (x, None),
        lambda x: (x,),
        lambda x: None,
        lambda x: (x, lambda dy: dy, 1),
    ],
)
def test_what_is_not_a_value_and_a_function_is_refused(answer):
    def named(x):
        return answer(x)

    with pytest.raises(TypeError, match=r"named .*\(value, gradient"):
        tw.custom_gradient(named)(tw.constant(1.0))


@pytest.mark.parametrize("answer", [[], lambda dy: [dy, dy], lambda dy: (dy, None, dy)])
def test_a_wrong_number_of_gradients_is_refused(answer):
    f = tw.custom_gradient(
        lambda x: (x, answer if callable(answer) else lambda dy: answer)
    )
    with pytest.raises(
        ValueError, match="expected to return 1 gradients, but returned"
    ):
        gradient_of(f, 1.0)


@pytest.mark.parametrize(
    "name", ["custom_gradient", "recompute_grad", "grad_pass_through"]
)
def test_only_functions_are_wrapped(name):
    with pytest.raises(TypeError, match=f"{name}: f must be a function, got 3"):
        getattr(tw, name)(3)


def test_a_gradient_of_the_wrong_shape_is_refused():
    f = tw.custom_gradient(lambda x: (x, tw.reduce_sum))
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        gradient_of(f, [1.0, 2.0])


def test_an_error_in_the_function_leaves_no_reader_behind():
    @tw.custom_gradient
    def f(x):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"), tw.GradientTape():
        f(tw.constant(1.0))
    assert active_interpreters() == ()


@pytest.mark.parametrize("ask", ["gradient", "jacobian", "outer"])
def test_an_error_in_the_gradient_function_leaves_no_reader_behind(ask):
    f = tw.custom_gradient(lambda x: (x * 1.0, lambda dy: 1 / 0))
    x = tw.Variable([1.0, 2.0])
    with pytest.raises(ZeroDivisionError):
        if ask == "outer":
            with tw.GradientTape(), tw.GradientTape() as tape:
                y = f(x)
                tape.gradient(y, x)
        else:
            with tw.GradientTape() as tape:
                y = f(x)
            getattr(tape, ask)(y, x)
    assert active_interpreters() == ()
    np.testing.assert_allclose(gradient_of(lambda x: x * x, [1.0, 2.0]), [2.0, 4.0])


# ------------------------------------------------------------------ tapes of every kind


def test_a_persistent_tape_asks_each_time():
    calls = []

    @tw.custom_gradient
    def f(x):
        def gradient(dy):
            calls.append(1)
            return dy * 3.0

        return x, gradient

    x = tw.Variable(1.0)
    with tw.GradientTape(persistent=True) as tape:
        y = f(x)
    assert [tape.gradient(y, x).numpy() for _ in range(2)] == [3.0, 3.0]
    assert len(calls) == 2


def test_two_tapes_both_use_the_rule():
    x = tw.Variable(1.0)
    with tw.GradientTape() as first, tw.GradientTape() as second:
        y = tenfold(x)
    assert first.gradient(y, x).numpy() == second.gradient(y, x).numpy() == 10.0


def test_the_rule_is_differentiated_by_an_outer_tape():
    @tw.custom_gradient
    def f(x):  # x^2, whose gradient is said to be x^3
        return x * x, lambda dy: dy * x**3

    x = tw.Variable(2.0)
    with tw.GradientTape() as t3:
        with tw.GradientTape() as t2:
            with tw.GradientTape() as t1:
                y = f(x)
            first = t1.gradient(y, x)
        second = t2.gradient(first, x)
    assert (first.numpy(), second.numpy()) == (8.0, 12.0)
    assert t3.gradient(second, x).numpy() == 12.0


def test_the_derivative_by_the_cotangent_is_right():
    x, w = tw.Variable(2.0), tw.Variable(5.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = w * tenfold(x)
        g = inner.gradient(y, x)  # 10 w
    assert outer.gradient(g, w).numpy() == 10.0


def test_a_custom_gradient_nested_in_another_rules_the_second_order():
    @tw.custom_gradient
    def f(x):
        @tw.custom_gradient
        def first_derivative(x):
            return 3.0 * x**2, lambda dy: dy * 1000.0

        return x**3, lambda dy: dy * first_derivative(x)

    x = tw.Variable(2.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = f(x)
        g = inner.gradient(y, x)
    assert g.numpy() == 12.0
    assert outer.gradient(g, x).numpy() == 1000.0


def test_the_true_derivative_of_what_f_computes_never_leaks():
    @tw.custom_gradient
    def f(x):
        hidden = x * x * x
        return hidden, lambda dy: dy

    x = tw.Variable(2.0)
    with tw.GradientTape() as outer, tw.GradientTape() as inner:
        y = f(x)
    assert inner.gradient(y, x).numpy() == 1.0
    assert outer.gradient(y, x).numpy() == 1.0


def test_a_tape_inside_the_function():
    @tw.custom_gradient
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        slope = tape.gradient(y, x)
        return y, lambda dy: dy * slope

    assert gradient_of(f, tw.constant(2.0)).numpy() == 12.0


def test_a_tape_inside_the_gradient_function():
    @tw.custom_gradient
    def f(x):
        x = tw.convert_to_tensor(x)

        def gradient(dy):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = x**3
            return dy * tape.gradient(y, x)

        return x**3, gradient

    assert gradient_of(f, 2.0).numpy() == 12.0
    x = tw.Variable(2.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = f(x)
        g = inner.gradient(y, x)
    assert outer.gradient(g, x).numpy() == 12.0


def test_methods_and_callables_can_be_decorated():
    class Scale:
        factor = 4.0

        @tw.custom_gradient
        def __call__(self, x):
            return x, lambda dy: (None, dy * self.factor)

    assert gradient_of(Scale(), 1.0).numpy() == 4.0


def test_each_thread_has_its_own_calls():
    found = {}

    def work(n):
        f = tw.custom_gradient(lambda x: (x, lambda dy: dy * n))
        found[n] = [gradient_of(f, 1.0).numpy() for _ in range(50)]

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {float(n): [float(n)] * 50 for n in range(4)}


# ----------------------------------------------------- grad_pass_through, stop_gradient


def test_a_rounded_value_passes_its_gradient():
    assert gradient_of(tw.grad_pass_through(tw.round), 1.4).numpy() == 1.0


def test_passing_through_a_function_with_variables():
    v, x = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = tw.grad_pass_through(lambda x: x * v)(x)
    by_x, by_v = tape.gradient(y, [x, v])
    assert y.numpy() == 6.0 and by_x.numpy() == 1.0 and by_v is None


def test_stop_gradient_cuts_one_path_only():
    x, y = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        z = x**2 + tw.stop_gradient(y**2)
    by_x, by_y = tape.gradient(z, [x, y])
    assert by_x.numpy() == 4.0 and by_y is None


def test_a_stopped_softmax_keeps_the_other_term():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(tw.exp(x - tw.stop_gradient(tw.reduce_max(x))))
    np.testing.assert_allclose(tape.gradient(y, x), [np.exp(-1.0), 1.0], rtol=1e-6)
