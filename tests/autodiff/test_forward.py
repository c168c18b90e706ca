"""ForwardAccumulator, jvp, hvp, ravel: derivatives forward, mixed with tapes and nested.

The values of TensorFlow beside which some stand were recorded from version 2.21. That
every op has its tangent is checked with the op table, in tests/ops/test_forward_table.py.
"""

import gc

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff import ForwardAccumulator, hvp, jvp, ravel

X, V = np.array([1.0, 2.0]), np.array([1.0, 0.0])


def weights(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


# --------------------------------------------------------------------- one accumulator


def test_the_tangent_of_a_cube():
    x = tw.constant(X)
    with ForwardAccumulator(x, V) as acc:
        y = x**3
    np.testing.assert_allclose(acc.jvp(y), [3.0, 0.0])


def test_the_tangent_of_a_primal_is_what_was_given():
    x = tw.constant(X)
    acc = ForwardAccumulator(x, V)
    np.testing.assert_array_equal(acc.jvp(x), V)


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_tangent_has_the_dtype_of_its_tensor(wrap):
    @wrap
    def f(x):
        single = tw.cast(x, tw.float32)
        return single, -2.0 * single, tw.cast(single, tw.float64) * x

    x = tw.constant(X)
    with ForwardAccumulator(x, tw.constant(V)) as accumulator:
        results = f(x)
    tangents = accumulator.jvp(results)
    assert [t.dtype for t in tangents] == [y.dtype for y in results]
    for tangent, wanted in zip(tangents, [V, -2 * V, 2 * X * V]):
        np.testing.assert_array_equal(tangent, wanted)


def test_several_primals_in_a_nest():
    x, y = tw.constant(2.0), tw.Variable(3.0)
    with ForwardAccumulator({"x": x, "y": [y]}, {"x": 1.0, "y": [10.0]}) as acc:
        z = x * y
    assert float(acc.jvp(z)) == 1.0 * 3.0 + 2.0 * 10.0


def test_a_nest_of_results():
    x = tw.constant(2.0)
    with ForwardAccumulator(x, 1.0) as acc:
        y = {"square": x * x, "others": (x + 1.0, [tw.exp(x)])}
    found = acc.jvp(y)
    assert float(found["square"]) == 4.0 and float(found["others"][0]) == 1.0
    np.testing.assert_allclose(found["others"][1][0], np.exp(2.0), rtol=1e-6)


def test_a_variable_keeps_its_tangent_when_it_is_assigned_to():
    v = tw.Variable(X)
    with ForwardAccumulator(v, V) as acc:
        first = v * v
        v.assign_add([1.0, 1.0])
        second = v * v
    np.testing.assert_allclose(acc.jvp(first), [2.0, 0.0])  # as in TensorFlow
    np.testing.assert_allclose(acc.jvp(second), [4.0, 0.0])
    np.testing.assert_allclose(acc.jvp(v), V)


def test_what_does_not_depend_on_a_primal_has_none_or_zeros():
    x, other = tw.constant(X), tw.constant([1.0, 2.0, 3.0])
    with ForwardAccumulator(x, V) as acc:
        y, place = other * 2.0, tw.argmax(x)
    assert acc.jvp(y) is None and acc.jvp(place) is None
    np.testing.assert_array_equal(acc.jvp(y, "zero"), np.zeros(3))
    assert acc.jvp(tw.stop_gradient(x)) is None


def test_ops_outside_of_the_context_are_not_seen():
    x = tw.constant(X)
    with ForwardAccumulator(x, V) as acc:
        y = x * 2.0
    z = y * 2.0
    assert acc.jvp(z) is None
    with acc:
        z = y * 2.0
    np.testing.assert_allclose(acc.jvp(z), [4.0, 0.0])


def test_complex_tangents_follow_tensorflow():
    z = tw.constant(1 + 2j)
    with ForwardAccumulator(z, 0.5 + 1j) as acc:
        square, length, real = z**2, tw.abs(z), tw.math.real(z * z)
    np.testing.assert_allclose(acc.jvp(square), -3 + 4j)
    np.testing.assert_allclose(acc.jvp(length), 1.118033988749895)
    np.testing.assert_allclose(acc.jvp(real), -3.0)


def test_the_tangent_pairs_with_the_gradient_of_a_network():
    x = tw.constant(weights(5, 3))
    w = tw.Variable(weights(3, 4))
    b = tw.Variable(weights(4))

    def network():
        h = tw.nn.relu(tw.nn.affine(x, w, b))
        return tw.nn.softmax(tw.concat([h, h * h], axis=1))[:, 1:]

    tangents = [weights(3, 4, seed=1), weights(4, seed=2)]
    with ForwardAccumulator([w, b], tangents) as acc:
        y = network()
    with tw.GradientTape() as tape:
        y = network()
    c = weights(*y.shape, seed=3)
    gradients = tape.gradient(y, [w, b], output_gradients=tw.constant(c))
    with acc:
        tangent = acc.jvp(network())
    pairing = sum(
        np.sum(g.numpy() * t) for g, t in zip(gradients, tangents, strict=True)
    )
    np.testing.assert_allclose(np.sum(c * tangent.numpy()), pairing)


def test_rows_gathered_from_a_variable_have_tangents():
    table = tw.Variable(weights(4, 2))
    tangent = weights(4, 2, seed=1)
    with ForwardAccumulator(table, tangent) as acc:
        y = tw.gather(table, [3, 0, 3])
    np.testing.assert_allclose(acc.jvp(y), tangent[[3, 0, 3]])


def test_the_tangents_of_tensors_that_are_gone_are_forgotten():
    x = tw.constant(X)
    gc.disable()
    try:
        with ForwardAccumulator(x, V) as acc:
            y = x
            for _ in range(100):
                y = tw.tanh(y * 2.0)
        assert len(acc._tangents.known) == 2
    finally:
        gc.enable()


# ------------------------------------------------------------ custom gradients, no rules


def test_a_custom_gradient_counts_forward_as_it_does_backward():
    @tw.custom_gradient
    def scaled(x):
        return tw.sin(x), lambda dy: dy * 100.0

    x = tw.constant(X)
    with ForwardAccumulator(x, V) as acc:
        y = scaled(x) * 2.0
    np.testing.assert_allclose(acc.jvp(y), [200.0, 0.0])


def test_a_custom_gradient_of_several_arguments_and_a_variable():
    w = tw.Variable(3.0)

    @tw.custom_gradient
    def f(x, y):
        def gradient(da, db, variables):
            return (2.0 * da, 5.0 * db), [7.0 * da]

        return (x * w, y), gradient

    x, y = tw.constant(1.0), tw.constant(1.0)
    with ForwardAccumulator([x, y, w], [1.0, 1.0, 10.0]) as acc:
        a, b = f(x, y)
    assert float(acc.jvp(a)) == 2.0 + 70.0
    assert float(acc.jvp(b)) == 5.0


def test_an_op_without_gradient_is_named_when_its_tangent_is_asked_for():
    images = tw.constant(np.ones((2, 2, 1)))
    with ForwardAccumulator(images, images) as acc:
        y = tw.image.adjust_contrast(images, 2.0) * 3.0
        fine = images * 2.0
    acc.jvp(fine)
    with pytest.raises(LookupError, match="adjust_contrast"):
        acc.jvp(y)


def test_a_custom_gradient_stands_in_for_an_op_without_one():
    @tw.custom_gradient
    def contrast(images):
        return tw.image.adjust_contrast(images, 2.0), lambda dy: 2.0 * dy

    images = tw.constant(np.ones((2, 2, 1)))
    with ForwardAccumulator(images, images) as acc:
        y = contrast(images)
    np.testing.assert_allclose(acc.jvp(y), np.full((2, 2, 1), 2.0))


def test_tangents_through_recompute_grad():
    x = tw.constant(weights(3, 3))
    block = tw.recompute_grad(lambda x: tw.tanh(tw.matmul(x, x)))
    with ForwardAccumulator(x, tw.ones_like(x)) as acc:
        y, plain = block(x), tw.tanh(tw.matmul(x, x))
    np.testing.assert_allclose(acc.jvp(y), acc.jvp(plain))


# ------------------------------------------------------------------------- mixed orders


def test_forward_over_forward():
    x = tw.constant(X)
    with ForwardAccumulator(x, V) as outer:
        with ForwardAccumulator(x, V) as inner:
            y = x**3
    np.testing.assert_allclose(outer.jvp(inner.jvp(y)), [6.0, 0.0])
    np.testing.assert_allclose(inner.jvp(y), [3.0, 0.0])
    np.testing.assert_allclose(outer.jvp(y), [3.0, 0.0])
    # As in TensorFlow: the inner one comes first.
    assert inner.jvp(outer.jvp(y)) is None


def test_three_accumulators_give_the_third_derivative():
    x = tw.constant(2.0)
    with ForwardAccumulator(x, 1.0) as a:
        with ForwardAccumulator(x, 1.0) as b:
            with ForwardAccumulator(x, 1.0) as c:
                y = x**5
    assert float(a.jvp(b.jvp(c.jvp(y)))) == 60 * 4


def test_forward_over_reverse_is_the_hessian_times_a_vector():
    x = tw.constant(weights(4))
    v = weights(4, seed=1)
    a = weights(4, 4, seed=2)
    with ForwardAccumulator(x, v) as acc:
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.reduce_sum(tw.tanh(tw.linalg.matvec(a, x)) ** 2)
        g = tape.gradient(y, x)
    t = np.tanh(a @ x.numpy())
    curvature = 2 * (1 - t**2) ** 2 - 4 * t**2 * (1 - t**2)
    np.testing.assert_allclose(acc.jvp(g), a.T @ np.diag(curvature) @ a @ v)


def test_reverse_over_forward():
    x = tw.constant(X)
    with tw.GradientTape() as tape:
        tape.watch(x)
        with ForwardAccumulator(x, V) as acc:
            y = x**3
        tangent = acc.jvp(y)
    np.testing.assert_allclose(tape.gradient(tangent, x), [6.0, 0.0])


def test_a_tape_inside_does_not_see_the_tangents():
    x = tw.constant(X)
    with ForwardAccumulator(x, V) as acc:
        with tw.GradientTape() as tape:
            tape.watch(x)
            tangent = acc.jvp(x**3)
        assert tape.gradient(tangent, x) is None  # as in TensorFlow


def test_the_gradient_by_a_tangent():
    x, v = tw.constant(X), tw.Variable(V)
    with tw.GradientTape() as tape:
        with ForwardAccumulator(x, v) as acc:
            y = tw.reduce_sum(x**3)
        tangent = acc.jvp(y)
    np.testing.assert_allclose(tape.gradient(tangent, v), 3 * X**2)


def test_the_tangent_of_a_jacobian():
    x = tw.constant(X)
    with ForwardAccumulator(x, V) as acc:
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        j = tape.jacobian(y, x)
    np.testing.assert_allclose(acc.jvp(j), np.diag([6.0, 0.0]))


# ------------------------------------------------------------------ jvp, hvp and ravel


def test_jvp_gives_value_and_derivative():
    value, derivative = jvp(lambda x, y: [x * y, x], (tw.constant(2.0), tw.constant(3.0)),
                            (1.0, 10.0))  # fmt: skip
    assert [float(v) for v in value] == [6.0, 2.0]
    assert [float(d) for d in derivative] == [23.0, 1.0]


def quadratic(matrix):
    return lambda x: tw.reduce_sum(x * tw.linalg.matvec(matrix, x)) / 2.0


def test_hvp_of_a_quadratic_is_its_matrix_times_the_vector():
    a = weights(4, 4)
    a = a + a.T
    x, v = tw.constant(weights(4, seed=1)), weights(4, seed=2)
    np.testing.assert_allclose(hvp(quadratic(a), x, v), a @ v)


def test_hvp_over_several_variables_has_their_nest():
    w, b = tw.Variable(weights(3, 2)), tw.Variable(weights(2))
    x = weights(5, 3)
    tangents = {"w": weights(3, 2, seed=1), "b": weights(2, seed=2)}

    def loss(_):
        return tw.reduce_mean(tw.tanh(tw.matmul(x, w) + b) ** 2)

    found = hvp(loss, {"w": w, "b": b}, tangents)
    with ForwardAccumulator({"w": w, "b": b}, tangents) as acc:
        with tw.GradientTape() as tape:
            value = loss(None)
        gradients = tape.gradient(value, {"w": w, "b": b})
    for name in "wb":
        np.testing.assert_allclose(found[name], acc.jvp(gradients[name]))


def test_hvp_of_what_is_linear_is_zero_and_of_what_is_unrelated_none():
    x, y, z = tw.constant(X), tw.constant(X), tw.constant(X)
    found = hvp(lambda x, y, z: tw.reduce_sum(x * x + y), [x, y, z], [V, V, V])
    np.testing.assert_allclose(found[0], 2 * V)
    np.testing.assert_allclose(found[1], 0 * V)
    assert found[2] is None


def test_hvp_under_a_tape_has_a_gradient():
    x = tw.Variable(X)
    with tw.GradientTape() as tape:
        product = hvp(lambda x: tw.reduce_sum(x**4), x, V)
    np.testing.assert_allclose(product, 12 * X**2 * V)
    np.testing.assert_allclose(tape.gradient(product, x), 24 * X * V)


def test_ravel_and_back():
    values = {"b": tw.Variable([[1.0, 2.0], [3.0, 4.0]]), "a": (tw.constant(0.0),)}
    vector, unravel = ravel(values)
    # Dicts in order of their keys.
    np.testing.assert_array_equal(vector, [0, 1, 2, 3, 4])
    back = unravel(vector + 1.0)
    assert isinstance(back["a"], tuple) and back["a"][0].shape == ()
    np.testing.assert_array_equal(back["b"], [[2, 3], [4, 5]])


def test_ravel_passes_gradients_both_ways():
    x, y = tw.Variable([1.0, 2.0]), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        vector, unravel = ravel([x, y])
        a, b = unravel(vector * vector)
        loss = tw.reduce_sum(a) * b
    gx, gy = tape.gradient(loss, [x, y])
    np.testing.assert_allclose(gx, [2 * 9.0, 4 * 9.0])
    np.testing.assert_allclose(gy, 5 * 6.0)


def test_ravel_takes_sparse_gradients_and_an_empty_list():
    table = tw.Variable(np.ones((3, 2)))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(tw.gather(table, [0, 2, 2]))
    vector, _ = ravel([tape.gradient(y, table)])
    np.testing.assert_array_equal(vector, [1, 1, 0, 0, 2, 2])
    vector, unravel = ravel([])
    assert vector.shape == (0,) and unravel(vector) == []


# ------------------------------------------------------------------------------ errors


def test_an_accumulator_does_not_enter_twice():
    acc = ForwardAccumulator(tw.constant(X), V)
    with acc, pytest.raises(ValueError, match="already recording"):
        acc.__enter__()


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "message"),
    [
        (tw.constant(X), [1.0, 2.0, 3.0], ValueError, "the shape of its primal"),
        ([tw.constant(X)], [V, V], ValueError, "structures differ"),
        (tw.constant(X), tw.constant([1j, 2j]), TypeError, "dtype .*float64"),
        (X, V, TypeError, "primals .*got ndarray"),
        (tw.constant(X), None, TypeError, "NoneType"),
    ],
)
def test_tangents_that_do_not_fit_are_refused(primals, tangents, error, message):
    with pytest.raises(error, match=message):
        ForwardAccumulator(primals, tangents)


def test_a_primal_that_comes_twice_is_refused():
    x = tw.constant(X)
    with pytest.raises(ValueError, match="multiple times"):
        ForwardAccumulator([x, x], [V, V])


def test_integers_have_no_tangent():
    n = tw.constant([1, 2])
    with pytest.warns(UserWarning, match="only real and complex"):
        acc = ForwardAccumulator(n, [1, 1])
    with acc:
        y = n * 2
    assert acc.jvp(y) is None


def test_a_jvp_of_something_else_is_refused():
    acc = ForwardAccumulator(tw.constant(X), V)
    with pytest.raises(TypeError, match="left|no tangent"):
        acc.jvp(X)
    with pytest.raises(ValueError, match="nothing"):
        acc.jvp(tw.constant(X), "nothing")


def test_ravel_refuses_none_mixed_dtypes_and_other_lengths():
    with pytest.raises(ValueError, match="unconnected_gradients='zero'"):
        ravel([tw.constant(1.0), None])
    with pytest.raises(TypeError, match="dtypes must be the same"):
        ravel([tw.constant(1.0), tw.constant(np.float64(1.0))])
    _, unravel = ravel([tw.constant([1.0, 2.0])])
    with pytest.raises(ValueError, match=r"\(2,\)"):
        unravel(tw.constant([1.0]))


@pytest.mark.parametrize("product", [tw.autodiff.jvp, tw.autodiff.hvp])
def test_a_warning_of_integers_names_the_line_of_the_call(product):
    x, n = tw.constant(2.0), tw.constant(1)
    with pytest.warns(UserWarning, match="int32: it has no tangent") as caught:
        product(lambda x, n: x * x, [x, n], [x, n])
    assert [warning.filename for warning in caught] == [__file__]
