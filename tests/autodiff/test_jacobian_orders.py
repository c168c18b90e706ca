"""Jacobians of gradients, and gradients of Jacobians."""

import numpy as np
import pytest

import tapewright as tw

from .jacobian_programs import PROGRAMS, weights


def test_the_hessian_of_a_sum_of_cubes_is_diagonal():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = tw.reduce_sum(x**3)
        g = inner.gradient(y, x)
    np.testing.assert_allclose(
        outer.jacobian(g, x), np.diag([6.0, 12.0, 18.0]), rtol=1e-6
    )


def hessian(function, x):
    x = tw.Variable(x)
    with tw.GradientTape(persistent=True) as outer:
        with tw.GradientTape() as inner:
            y = tw.reduce_sum(function(x))
        g = tw.convert_to_tensor(inner.gradient(y, x))
    return (
        outer.jacobian(g, x, unconnected_gradients="zero"),
        outer.jacobian(g, x, unconnected_gradients="zero", experimental_use_pfor=False),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_hessian_is_symmetric_and_the_sequential_one(name):
    fast, slow = hessian(PROGRAMS[name], weights(3, 3))
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)
    matrix = np.reshape(fast, (9, 9))
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "pick",
    [
        lambda x: x[0, ...],
        lambda x: x[1:, ...],
        lambda x: x[..., 0],
        lambda x: x[::-1, ...],
        lambda x: x[..., ::-1],
        lambda x: x[::-1],
        lambda x: x[1],
        lambda x: x[:, 1],
        lambda x: x[None, 0, :, None],
    ],
)
def test_the_hessian_through_each_kind_of_index(pick):
    weight = np.arange(1.0, 4.0)
    fast, slow = hessian(
        lambda x: pick(x) ** 3 * tw.reshape(x[0], [3])[1], weights(3, 3)
    )
    np.testing.assert_allclose(fast, slow, atol=1e-12)
    fast, slow = hessian(lambda x: pick(x * weight) ** 3, weights(3, 3))
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_a_jacobian_under_an_outer_tape_gives_third_derivatives():
    x = tw.Variable(weights(3))
    with tw.GradientTape() as t3:
        with tw.GradientTape() as t2:
            with tw.GradientTape() as t1:
                y = tw.reduce_sum(x**4) + x[0] * x[1] * x[2]
            g = t1.gradient(y, x)
        h = t2.jacobian(g, x)
    third = t3.jacobian(h, x).numpy()
    a = x.numpy()
    expected = np.zeros((3, 3, 3))
    for i in range(3):
        expected[i, i, i] = 24 * a[i]
    for i, j, k in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        expected[i, j, k] += 1.0
    np.testing.assert_allclose(third, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["softmax", "two layers", "batch norm", "einsum", "max"]
)
def test_the_gradient_of_a_jacobian_equals_that_of_the_sequential_one(name):
    def derivative(use_pfor):
        x = tw.Variable(weights(3, 3))
        with tw.GradientTape() as outer:
            with tw.GradientTape(persistent=True) as inner:
                y = PROGRAMS[name](x)
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)
            loss = tw.reduce_sum(j * j)
        return outer.gradient(loss, x)

    fast, slow = derivative(True), derivative(False)
    if fast is None or slow is None:  # a constant Jacobian
        assert fast is slow is None
    else:
        np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)


def test_a_jacobian_inside_its_own_persistent_tape_is_recorded():
    x = tw.Variable(weights(2))
    with tw.GradientTape(persistent=True) as tape:
        y = x**3
        with pytest.warns(UserWarning, match="inside the tape's context") as caught:
            j = tape.jacobian(y, x)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(tape.gradient(j, x), 6 * x.numpy())
