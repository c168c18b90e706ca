"""The residual is that of Burgers' equation, and making it small solves the equation."""

import re

import numpy as np
import pytest

import tapewright as tw


def column(values):
    return tw.constant(np.reshape(values, (-1, 1)), tw.float32)


def test_the_residual_of_a_known_function_is_that_by_hand(script, monkeypatch):
    # u = t x^2: u_t = x^2, u_x = 2 t x, u_xx = 2 t
    monkeypatch.setattr(script, "wave", lambda model, t, x: t * x**2)
    t, x = np.array([0.2, 0.7, 1.0]), np.array([-0.5, 0.3, 0.9])
    expected = x**2 + 2 * t**2 * x**3 - 2 * t * script.NU
    left = script.residual(None, column(t), column(x))
    np.testing.assert_allclose(left.numpy()[:, 0], expected, rtol=1e-5)


def test_start_and_walls_hold_for_any_network(script):
    tw.random.set_seed(0)
    model, x = script.network(), np.linspace(-1, 1, 9)
    start = script.wave(model, column(np.zeros(9)), column(x))
    np.testing.assert_allclose(start.numpy()[:, 0], -np.sin(np.pi * x), atol=1e-6)
    walls = script.wave(model, column([0.1, 0.5, 0.9]), column([-1.0, 1.0, 1.0]))
    np.testing.assert_allclose(walls.numpy(), 0, atol=1e-6)


def test_the_exact_solution_solves_the_equation(script):
    h = 1e-3
    t, x = np.array([0.2, 0.5, 0.9, 0.5]), np.array([-0.7, 0.05, 0.4, -0.2])
    u = script.exact(t, x)
    u_t = (script.exact(t + h, x) - script.exact(t - h, x)) / (2 * h)
    right, left = script.exact(t, x + h), script.exact(t, x - h)
    u_x, u_xx = (right - left) / (2 * h), (right - 2 * u + left) / h**2
    np.testing.assert_allclose(u_t + u * u_x - script.NU * u_xx, 0, atol=2e-3)
    np.testing.assert_allclose(script.exact(0 * x, x), -np.sin(np.pi * x), atol=1e-12)


def test_a_brief_run_comes_close_to_the_exact_solution(script, run):
    code, printed = run(script, "--epochs", "6")
    first, *_, last = [float(e) for e in re.findall(r"error ([\d.]+)%", printed)]
    assert code == 0 and first > 20 and last < 8


def test_it_draws_the_solution_and_ctrl_c_stops_it(script, run, interrupted, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    interrupted(script, 10)
    code, printed = run(script, picture=True)
    path = tmp_path / "pinn.png"
    assert code == 130 and "after 9 steps" in printed and f"wrote {path}" in printed
    assert len(np.unique(image.imread(path))) > 100
