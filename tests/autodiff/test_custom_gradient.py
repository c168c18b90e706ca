"""custom_gradient, RegisterGradient, recompute_grad, grad_pass_through, stop_gradient."""

import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.interpreters import active_interpreters
from tapewright.core.primitive import get_primitive, primitive, register_gradient


@tw.custom_gradient
def clip_gradients(y):
    return y, lambda dy: tw.clip_by_norm(dy, 0.5)


@tw.custom_gradient
def tenfold(x):
    """The identity, with a gradient of ten."""
    return x, lambda dy: dy * 10.0


def gradient_of(function, *values, **options):
    """Gradients of ``function`` by variables of these values."""
    variables = [tw.Variable(v) for v in values]
    with tw.GradientTape() as tape:
        y = function(*variables)
    found = tape.gradient(y, variables, **options)
    return found[0] if len(found) == 1 else found


# ----------------------------------------------------------------- custom_gradient


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


# ------------------------------------------------------------ variables inside


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


# ------------------------------------------------------------------ wrong answers


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


# ---------------------------------------------------------- tapes of every kind


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


# ---------------------------------------------------------------- RegisterGradient


@pytest.fixture
def bare_op():
    """An op without any gradient; its name is free again afterwards."""

    @primitive(name="thrice_for_a_test", type_name="ThriceForATest")
    def thrice(xp, x):
        return x * 3

    return thrice


def test_an_op_learns_its_gradient_by_name(bare_op):
    with pytest.raises(LookupError, match="ThriceForATest"):
        gradient_of(bare_op, 2.0)

    @tw.RegisterGradient("ThriceForATest")
    def _(op, grad):
        assert op.type == "ThriceForATest" and op.name == "thrice_for_a_test"
        assert op.inputs[0].numpy() == 2.0 and op.outputs[0].numpy() == 6.0
        return grad * 30.0

    assert gradient_of(bare_op, 2.0).numpy() == 30.0


def test_our_own_name_works_too(bare_op):
    tw.RegisterGradient("thrice_for_a_test")(lambda op, grad: [grad * 7.0])
    assert gradient_of(bare_op, 2.0).numpy() == 7.0


def test_a_registered_gradient_has_higher_orders(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad * op.inputs[0] ** 2)
    x = tw.Variable(2.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = bare_op(x)
        g = inner.gradient(y, x)
    assert (g.numpy(), outer.gradient(g, x).numpy()) == (4.0, 4.0)


def test_a_registered_gradient_serves_jacobians(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad * op.inputs[0])
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = bare_op(x)
    np.testing.assert_allclose(tape.jacobian(y, x), [[1.0, 0.0], [0.0, 2.0]])


def test_an_op_defined_later_finds_its_gradient():
    tw.RegisterGradient("LateForATest")(lambda op, grad: grad * op.get_attr("factor"))

    @primitive(type_name="LateForATest")
    def late_for_a_test(xp, x, *, factor=2.0):
        return x * factor

    assert gradient_of(lambda x: late_for_a_test(x, factor=5.0), 1.0).numpy() == 5.0


def test_complex_cotangents_reach_a_registered_gradient(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad * 3.0)
    found = gradient_of(lambda z: bare_op(z) * (2 + 1j), 1 + 2j)
    np.testing.assert_allclose(found, 3 * (2 - 1j))


def test_registering_twice_is_a_key_error(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad)
    with pytest.raises(KeyError, match="two gradients.*thrice_for_a_test"):
        tw.RegisterGradient("thrice_for_a_test")(lambda op, grad: grad)


def test_registering_twice_before_the_op_exists_is_a_key_error():
    register_gradient("NeverDefinedForATest", lambda op, grad: grad)
    with pytest.raises(KeyError, match="NeverDefinedForATest"):
        register_gradient("NeverDefinedForATest", lambda op, grad: grad)


@pytest.mark.parametrize(
    "name", ["MatMul", "matmul", "Tanh", "AddV2", "Floor", "ArgMax"]
)
def test_ops_that_have_a_gradient_keep_it(name):
    with pytest.raises(KeyError, match=name):
        tw.RegisterGradient(name)(lambda op, grad: grad)


def test_the_name_must_be_a_string():
    with pytest.raises(TypeError, match="op_type .*string"):
        tw.RegisterGradient(tw.matmul)


def test_adjust_contrast_can_be_taught(monkeypatch):
    op = get_primitive("adjust_contrast")
    monkeypatch.setattr(op, "registered", None)
    try:
        tw.RegisterGradient("AdjustContrastv2")(lambda op, grad: [grad * 2.0, None])
        images = np.ones((2, 2, 1), np.float32)
        g = gradient_of(lambda x: tw.image.adjust_contrast(x, 3.0), images)
        np.testing.assert_allclose(g, np.full((2, 2, 1), 2.0))
    finally:
        op.recorders.clear()


def test_a_wrong_number_of_registered_gradients_is_refused(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: [grad, grad])
    with pytest.raises(ValueError, match="2.*gradients.*1.*inputs"):
        gradient_of(bare_op, 2.0)


# ------------------------------------------------------------------ recompute_grad


def test_recomputing_changes_no_gradient():
    w = tw.Variable([[1.0, 2.0], [3.0, 4.0]])

    def block(x, scale=1.0):
        return tw.tanh(tw.matmul(x, w)) * scale

    x = tw.Variable([[0.1, -0.2]])
    with tw.GradientTape(persistent=True) as tape:
        plain = block(x, scale=3.0)
        saved = tw.recompute_grad(block)(x, scale=3.0)
    np.testing.assert_array_equal(plain, saved)
    for a, b in zip(tape.gradient(plain, [x, w]), tape.gradient(saved, [x, w])):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_recomputing_keeps_nothing_of_the_forward_pass():
    kept = []

    def block(x):
        for _ in range(5):
            x = tw.exp(x * 0.1)  # whose rule keeps it
            kept.append(weakref.ref(x))
        return x

    x = tw.Variable([0.1, 0.2])
    gc.disable()
    try:
        with tw.GradientTape() as tape:
            y = tw.recompute_grad(block)(x)
        assert [r() for r in kept[:4]] == [None] * 4
        del y
        with tw.GradientTape() as tape:
            y = block(x)
        assert None not in [r() for r in kept[5:]]
        assert tape.gradient(y, x) is not None
    finally:
        gc.enable()


def test_recomputing_calls_the_function_once_more_for_each_gradient():
    calls = []

    def block(x):
        calls.append(1)
        return x * x

    x = tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        y = tw.recompute_grad(block)(x)
    assert len(calls) == 1
    assert tape.gradient(y, x).numpy() == 6.0 and len(calls) == 2
    assert tape.gradient(y, x).numpy() == 6.0 and len(calls) == 3


def test_the_second_order_of_what_is_recomputed_is_right():
    w = tw.Variable(2.0)
    x = tw.Variable(3.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = tw.recompute_grad(lambda x: w * x**3)(x)
        g = inner.gradient(y, x)  # 3 w x^2
    assert g.numpy() == 54.0
    assert [d.numpy() for d in outer.gradient(g, [x, w])] == [36.0, 27.0]


def test_several_outputs_and_integers_can_be_recomputed():
    def block(x, n):
        return x * tw.cast(n, "float32"), n

    x, n = tw.Variable(3.0), tw.constant(4)
    with tw.GradientTape() as tape:
        y, m = tw.recompute_grad(block)(x, n)
    assert m.numpy() == 4
    assert tape.gradient(y, x).numpy() == 4.0


def test_recomputed_blocks_can_be_stacked_and_nested():
    block = tw.recompute_grad(tw.recompute_grad(lambda x: tw.sin(x) * x))
    x = tw.Variable(0.7, dtype="float64")
    with tw.GradientTape() as tape:
        y = block(block(x))
    inner = np.sin(0.7) * 0.7
    slope = np.cos(0.7) * 0.7 + np.sin(0.7)
    expected = (np.cos(inner) * inner + np.sin(inner)) * slope
    np.testing.assert_allclose(tape.gradient(y, x), expected)


def _derivatives(block, x):
    """The output, and its derivatives up to the third order."""
    with tw.GradientTape() as third:
        third.watch(x)
        with tw.GradientTape() as second:
            second.watch(x)
            with tw.GradientTape() as first:
                first.watch(x)
                y = block(x)
            g = first.gradient(y, x)
        h = second.gradient(g, x)
    return y, g, h, third.gradient(h, x)


def _draws_of_the_global_generator(x):
    for _ in range(2):
        x = tw.nn.dropout(x * x, 0.4)
    return x


def _draws_in_control_flow(x):
    for _ in tw.range(2):
        x = tw.nn.dropout(x * x, 0.2)
    return tw.cond(tw.reduce_sum(x) > 0, lambda: x * tw.random.uniform([6]), lambda: x)


def _draws_of_generators():
    generator = tw.random.Generator.from_seed(5)
    seeds = tw.keras.random.SeedGenerator(3)
    dropout = tw.keras.layers.Dropout(0.3, seed=4)

    def block(x):
        x = dropout(x * x * x, training=True) * generator.normal([6])
        return tw.keras.random.dropout(x, 0.3, seed=seeds)

    return block


@pytest.mark.parametrize(
    "block",
    [
        lambda: _draws_of_the_global_generator,
        lambda: _draws_in_control_flow,
        lambda: tw.function(_draws_of_the_global_generator),
        _draws_of_generators,
    ],
)
def test_what_is_recomputed_draws_the_same_numbers(block):
    x = tw.constant(np.linspace(1.0, 1.5, 6), "float32")

    def run(wrap, inside, outside):
        tw.random.set_seed(1)
        recomputed = inside(wrap(block()))
        step = outside(lambda x: _derivatives(recomputed, x))
        steps = [step(x), step(x), [tw.random.uniform([3])]]
        return [np.asarray(result) for results in steps for result in results]

    def as_it_is(f):
        return f

    expected = run(as_it_is, as_it_is, as_it_is)
    assert not np.allclose(expected[0], expected[4])  # each step draws anew
    jitted = functools.partial(tw.function, jit_compile=True)
    for inside, outside in [
        (as_it_is, as_it_is),
        (as_it_is, tw.function),
        (as_it_is, jitted),
        (tw.function, as_it_is),
    ]:
        for found, wanted in zip(
            run(tw.recompute_grad, inside, outside), expected, strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("traced", [False, True])
def test_assignments_in_what_is_recomputed_count_once(traced):
    def run(wrap):
        w = tw.Variable([1.0, 2.0])
        count = tw.Variable(1.0, trainable=False)

        def block(x):
            y = tw.tanh(x * w) * count
            w.assign(w * 0.5)
            count.assign_add(1.0)
            return y * w * (count + x)

        block = wrap(block)

        def step(x):
            with tw.GradientTape() as outer:
                outer.watch(x)
                with tw.GradientTape() as inner:
                    inner.watch(x)
                    y = block(x)
                by_x, by_w = inner.gradient(y, [x, w])
            return y, by_x, by_w, outer.gradient(by_x, x)

        step = tw.function(step) if traced else step
        x = tw.constant([0.3, 0.4])
        return [*step(x), *step(x), w, count]

    plain, recomputed = run(lambda f: f), run(tw.recompute_grad)
    assert plain[-1].numpy() == recomputed[-1].numpy() == 3.0
    for a, b in zip(plain, recomputed, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {}])
def test_a_recomputed_part_of_a_layer_trains_like_the_layer(options):
    layers = tw.keras.layers

    class Block(layers.Layer):
        def __init__(self, wrap):
            super().__init__()
            self.inner = [layers.BatchNormalization(), layers.Dropout(0.4, seed=1)]
            self.hidden = wrap(self.hidden_part)

        def hidden_part(self, x):
            for layer in self.inner:  # they train if the layer around does
                x = layer(x)
            return x

        def call(self, x):
            return self.hidden(x)

    def trained(wrap):
        tw.keras.utils.set_random_seed(0)
        model = tw.keras.Sequential([layers.Dense(3), Block(wrap), layers.Dense(1)])
        model.compile("sgd", "mse", **options)
        x = np.linspace(-1.0, 1.0, 24, dtype="float32").reshape(8, 3)
        losses = model.fit(
            x, x[:, :1], batch_size=4, epochs=2, verbose=0, shuffle=False
        )
        return [*losses.history["loss"], *model.get_weights()]

    for a, b in zip(trained(lambda f: f), trained(tw.recompute_grad), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_generator_of_the_trace_is_refused_unless_f_makes_it():
    def step(x, state, made_by_f):
        outside = tw.random.Generator.from_state(state)

        def block(x):
            inside = tw.random.Generator.from_state(state)
            return x * (inside if made_by_f else outside).normal([2])

        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.recompute_grad(block)(x)
        return y, tape.gradient(y, x)

    step = tw.function(step)
    x, state = tw.constant([1.0, 1.0]), tw.constant([4, 0], "int64")
    np.testing.assert_array_equal(*step(x, state, True))
    with pytest.raises(tw.errors.TracingError, match="outside of .*, or in f"):
        step(x, state, False)


def test_a_loss_inside_of_what_is_recomputed_is_refused():
    layer = tw.keras.layers.Dense(2, activity_regularizer="l2")
    x = tw.constant([[1.0, 2.0]])
    tw.recompute_grad(layer)(x)
    assert len(layer.losses) == 1
    with tw.GradientTape(), pytest.raises(ValueError, match="add_loss .* no gradient"):
        tw.recompute_grad(layer)(x)


# --------------------------------------------------- grad_pass_through, stop_gradient


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
