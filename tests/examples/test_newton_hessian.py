"""The Hessian is symmetric and right; Newton solves a quadratic at once and fits a curve."""

import numpy as np
import pytest

import tapewright as tw


def test_the_gradient_and_hessian_of_the_quadratic_are_those_by_hand(script):
    loss_of, variables = script.quadratic()
    loss, gradient, hessian, _ = script.gradient_and_hessian(loss_of, variables)
    assert loss == 28
    # a = (4, -3), b = 2: 2 (a0 - 1) + b; 6 (a1 + b); a0 + 6 (a1 + b) + 4 b
    np.testing.assert_allclose(gradient.numpy(), [8, -6, 6], rtol=1e-6)
    np.testing.assert_allclose(hessian.numpy(), [[2, 0, 1], [0, 6, 6], [1, 6, 10]])


def test_the_quadratic_is_solved_in_one_step(script):
    loss_of, (a, b) = script.quadratic()
    script.newton_step(loss_of, [a, b], eps=0.0)
    np.testing.assert_allclose(a.numpy(), [8 / 7, 2 / 7], rtol=1e-5)
    np.testing.assert_allclose(b.numpy(), -2 / 7, rtol=1e-5)
    assert float(loss_of()) == pytest.approx(-1 / 7, rel=1e-5)


def test_the_hessian_of_the_network_is_symmetric(script):
    tw.random.set_seed(0)
    model = script.Fit()
    variables = model.trainable_variables
    hessian = script.gradient_and_hessian(model.loss, variables)[2].numpy()
    assert hessian.shape == (61, 61)  # 6 + 6, 36 + 6, 6 + 1
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-13)


def test_the_hessian_of_the_network_is_the_change_of_its_gradient(script):
    tw.random.set_seed(0)
    model = script.Fit()
    variables = model.trainable_variables
    _, _, hessian, unravel = script.gradient_and_hessian(model.loss, variables)
    direction = np.random.default_rng(0).normal(size=61)
    ends = []
    for sign in 1e-5, -2e-5:  # there, and back as far beyond
        for variable, change in zip(variables, unravel(sign * direction), strict=True):
            variable.assign_add(change)
        ends.append(script.gradient_and_hessian(model.loss, variables)[1].numpy())
    difference = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(hessian.numpy() @ direction, difference, atol=1e-7)


def test_no_step_leads_uphill_and_the_descent_outruns_that_of_the_gradient(script):
    losses = []
    for descend in script.descend, script.descend_by_gradient:
        tw.random.set_seed(1)
        losses.append(descend(script.Fit(), 25))
    newton, gradient = losses
    assert newton[0] == gradient[0] and np.all(np.diff(newton) <= 0)
    assert newton[-1] < 0.1 * gradient[-1]


def test_it_reports_and_draws(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(script, "--epochs", "1", picture=True)
    path = tmp_path / "newton_hessian.png"
    assert code is None and f"wrote {path}" in printed
    assert "after one step -0.142857" in printed
    assert len(np.unique(image.imread(path))) > 100
