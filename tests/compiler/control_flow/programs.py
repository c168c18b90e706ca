"""Programs with branches and loops, and the check of their derivatives.

Expected values of the tests are those of plain Python, of formulas, of differences, and,
where a number stands in the text, of TensorFlow 2.21.
"""

import numpy as np
import pytest

import tapewright as tw


def both(f):
    """The function itself and traced."""
    return pytest.mark.parametrize("way", [f, tw.function(f)], ids=["eager", "traced"])


def number(x):
    return tw.constant(x, dtype="float64")


def nested(f, x, order):
    with tw.GradientTape() as tape:
        tape.watch(x)
        found = nested(f, x, order - 1) if order > 1 else [f(x)]
    return [*found, tape.gradient(found[-1], x, unconnected_gradients="zero")]


def check_derivatives(f, x, order=2, places=7):
    """Traced with tapes inside, with tapes outside, and eager: all the same."""
    eager = [d.numpy() for d in nested(f, x, order)]
    inside = [d.numpy() for d in tw.function(lambda x: nested(f, x, order))(x)]
    outside = [d.numpy() for d in nested(tw.function(f), x, order)]
    np.testing.assert_allclose(inside, eager, rtol=10.0**-places, atol=1e-12)
    np.testing.assert_allclose(outside, eager, rtol=10.0**-places, atol=1e-12)
    h = 1e-5
    difference = (f(x + h).numpy() - f(x - h).numpy()) / (2 * h)
    np.testing.assert_allclose(eager[1], difference, rtol=1e-5, atol=1e-8)


def repeated(n, maximum=None):
    """``x -> sin(x) * x``, so often."""

    def f(x):
        return tw.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tw.sin(x) * x),
            (0, x),
            maximum_iterations=maximum,
        )[1]

    return f


def network(seed=0, steps=7):
    rng = np.random.default_rng(seed)
    xs = rng.normal(size=(steps, 2, 3))
    h = rng.normal(size=(2, 3))
    w = rng.normal(size=(3, 3))
    return tw.constant(xs), tw.constant(h), tw.constant(w * 0.5)
