"""Jacobians through custom gradients, which see many cotangents at once."""

import math

import numpy as np
import pytest

import tapewright as tw

from .jacobian_programs import B, weights


def test_a_custom_gradient_is_asked_with_all_cotangents_at_once():
    calls = []

    @tw.custom_gradient
    def doubled(x):
        def gradient(dy):
            calls.append(dy)
            return 10.0 * dy

        return 2.0 * x, gradient

    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = doubled(x)
    np.testing.assert_allclose(tape.jacobian(y, x), 10.0 * np.eye(3))
    assert len(calls) == 1


def test_a_custom_gradient_that_ignores_its_cotangent():
    @tw.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: tw.constant([5.0, 7.0])

    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        y = f(x) * [2.0, 3.0]
        z = f(x) * 2.0 + x
    np.testing.assert_allclose(tape.jacobian(y, x), [[5.0, 7.0], [5.0, 7.0]])
    np.testing.assert_allclose(tape.jacobian(z, x), [[6.0, 7.0], [5.0, 8.0]])
    for chunk in (1, 2):
        np.testing.assert_allclose(
            tape.jacobian(z, x, parallel_iterations=chunk), [[6.0, 7.0], [5.0, 8.0]]
        )


def test_a_custom_gradient_that_couples_rows_is_found_out():
    @tw.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: dy[::-1] + tw.reduce_sum(dy)

    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = f(x)
    np.testing.assert_allclose(tape.jacobian(y, x), np.eye(3)[::-1] + 1.0)


def test_a_custom_gradient_that_looks_at_values_is_told_how_to_go_on():
    @tw.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: dy if float(tw.reduce_sum(dy)) > 0 else -dy

    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        y = f(x)
    with pytest.raises(TypeError, match="experimental_use_pfor=False"):
        tape.jacobian(y, x)
    j = tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_allclose(j, np.eye(2))


def test_clipping_a_gradient_clips_each_row_of_a_jacobian():
    @tw.custom_gradient
    def clipped(x):
        return x, lambda dy: tw.clip_by_norm(dy, 0.5)

    x = tw.Variable([3.0, 4.0])
    with tw.GradientTape() as tape:
        y = tw.matmul([[1.0, 1.0], [0.1, 0.1]], tw.reshape(clipped(x), [2, 1]))
    row = 0.5 / math.sqrt(2)
    np.testing.assert_allclose(
        tape.jacobian(y, x)[:, 0], [[row, row], [0.1, 0.1]], rtol=1e-6
    )


def test_custom_gradients_inside_custom_gradients_under_an_outer_tape():
    @tw.custom_gradient
    def sine(x):
        return tw.sin(x), lambda dy: dy * tw.cos(x)

    @tw.custom_gradient
    def half_square(x):
        return x * x / 2.0, lambda dy: sine(dy * x)

    a = np.array([0.3, 0.7])
    for use_pfor in (True, False):
        x = tw.Variable(a)
        with tw.GradientTape() as outer:
            with tw.GradientTape(persistent=True) as inner:
                y = half_square(x)
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)  # diag(sin x)
        np.testing.assert_allclose(j, np.diag(np.sin(a)))
        np.testing.assert_allclose(outer.gradient(j, x), np.cos(a))


def test_a_rule_of_a_custom_gradient_counts_under_an_outer_tape_not_the_true_one():
    @tw.custom_gradient
    def scaled(x):
        return x * 1.0, lambda dy: dy * 100.0

    @tw.custom_gradient
    def half_square(x):
        return x * x / 2.0, lambda dy: scaled(dy * x)

    found = []
    for use_pfor in (True, False):
        x = tw.Variable([0.3, 0.7])
        with tw.GradientTape() as outer:
            with tw.GradientTape(persistent=True) as inner:
                y = half_square(x)
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)
        found.append(outer.gradient(j, x))
    np.testing.assert_allclose(found[0], [100.0, 100.0])
    np.testing.assert_allclose(found[1], [100.0, 100.0])


def test_a_jacobian_through_recompute_grad():
    x = tw.Variable(weights(3, 3))

    def block(x):
        return tw.tanh(tw.matmul(x, B)) * x

    with tw.GradientTape(persistent=True) as tape:
        plain, saved = block(x), tw.recompute_grad(block)(x)
    np.testing.assert_allclose(
        tape.jacobian(saved, x), tape.jacobian(plain, x), atol=1e-12
    )
