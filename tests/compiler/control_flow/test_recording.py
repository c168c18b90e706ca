"""Branches and loops on tapes, beside what else stands there."""

import numpy as np

import tapewright as tw

from .programs import number


def test_a_custom_gradient_inside_of_branch_and_loop():
    w = tw.Variable(2.0)

    @tw.custom_gradient
    def f(x):
        def gradient(g, variables=None):
            return 10.0 * g * tw.cos(x) * w, [100.0 * g * tw.sin(x)]

        return tw.sin(x) * w, gradient

    def value(x):
        y = tw.foldl(lambda a, x: a * 0.5 + f(x * a), x, initializer=1.0)
        return tw.cond(y > 0.0, lambda: f(y), lambda: y)

    def run(value):
        def both(x):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = value(x)
            return [y, *tape.gradient(y, [x, w])]

        return both

    x = tw.constant([0.1, 0.2, 0.3, 0.4, 0.5])
    expected = run(value)(x)
    for found in (tw.function(run(value))(x), run(tw.function(value))(x)):
        for a, b in zip(found, expected):
            a, b = tw.convert_to_tensor(a).numpy(), tw.convert_to_tensor(b).numpy()
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_jacobian_through_a_traced_scan():
    f = tw.function(lambda x: tw.scan(lambda a, x: a * 0.5 + x * x, x))
    x = tw.constant(np.arange(6.0))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    rows = [[0.5 ** (i - j) * (2 * j if j else 1) * (i >= j) for j in range(6)]
            for i in range(6)]  # fmt: skip
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), rows)


def test_the_gradient_of_a_branch_assigns_nothing():
    v = tw.Variable(0.0, trainable=False)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            tape.watch(x)

            def counted():
                v.assign_add(1.0)
                return x * v

            y = tw.cond(x > 0.0, counted, lambda: x)
        v.assign_add(10.0)
        return tape.gradient(y, x)

    assert step(tw.constant(2.0)).numpy() == 1.0
    assert v.numpy() == 11.0


def test_a_sparse_gradient_goes_into_a_branch():
    def f(x):
        y = tw.cond(tw.reduce_sum(x) > 0.0, lambda: x * x, lambda: x + 1.0)
        return tw.gather(y, [0, 0, 2])

    x = number([1.0, 2.0, 3.0])
    for way in (f, tw.function(f)):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = way(x)
        g = tw.convert_to_tensor(tape.gradient(y, x))
        np.testing.assert_array_equal(g, [4.0, 0.0, 6.0])
