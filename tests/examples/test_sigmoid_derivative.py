"""The tapes inside tapes give the sigmoid's derivatives, and the picture shows them."""

import numpy as np
import pytest

import tapewright as tw


def test_each_order_agrees_with_the_formula_by_hand(script):
    values = script.derivatives(tw.nn.sigmoid, tw.constant([0.0, np.log(3)]), order=3)
    # at 0, s is 1/2; at log 3 it is 3/4
    expected = [[1 / 2, 3 / 4], [1 / 4, 3 / 16], [0, -3 / 32], [-1 / 8, -3 / 128]]
    np.testing.assert_allclose([v.numpy() for v in values], expected, atol=1e-7)


def test_any_function_will_do(script):
    values = script.derivatives(lambda x: x**3, tw.constant([2.0]), order=4)
    assert [float(v[0]) for v in values] == [8, 12, 12, 6, 0]


def test_it_prints_the_errors_and_draws(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(script, "--epochs", "1", picture=True)
    path = tmp_path / "sigmoid_derivative.png"
    assert code is None and f"wrote {path}" in printed
    assert "derivative 1: maximum 0.2500" in printed
    assert len(np.unique(image.imread(path))) > 50


def test_without_matplotlib_it_says_so(script, run, without_matplotlib, tmp_path):
    code, printed = run(script, picture=True)
    assert code is None and "matplotlib is not installed" in printed
    assert not list(tmp_path.iterdir())
