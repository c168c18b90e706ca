"""`tw.gradients` and `tw.hessians` against numbers that TensorFlow gives."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import TracingError

X = [1.0, 2.0]


def run(body, x=X):
    return [None if g is None else tw.convert_to_tensor(g).numpy().tolist()
            for g in tw.function(body)(tw.constant(x))]  # fmt: skip


def inside(body, scale=2.0):
    """A body with a tensor between the argument and the target."""
    return lambda x: body(x, x * scale)


CASES = {
    "cube": (lambda x: tw.gradients(x * x * x, x), [[3, 12]]),
    "lists": (lambda x: tw.gradients([x * x, x * 3.0], [x, x]), [[5, 7], [5, 7]]),
    "seeds": (
        lambda x: tw.gradients([x * x, x], x, [tw.constant([1.0, 10.0]), None]),
        [[3, 41]],
    ),
    "second": (
        lambda x: tw.gradients(tw.gradients(x * x * x * x, x)[0], x),
        [[12, 48]],
    ),
    "third": (
        lambda x: tw.gradients(
            tw.gradients(tw.gradients(x * x * x * x, x)[0], x)[0], x
        ),
        [[24, 48]],
    ),
    "between": (
        inside(lambda x, a: tw.gradients(a * a * x, [a, x])),
        [[4, 16], [12, 48]],
    ),
    "stopped": (
        inside(lambda x, a: tw.gradients(a * a * x, [a, x], stop_gradients=[a])),
        [[4, 16], [4, 16]],
    ),
    "stopped alone": (
        inside(lambda x, a: tw.gradients(a * a * x, x, stop_gradients=a)),
        [[4, 16]],
    ),
    "unconnected": (lambda x: tw.gradients(x * 2.0, [tw.cos(x), x]), [None, [2, 2]]),
    "zeros": (
        lambda x: tw.gradients(x * 2.0, tw.cos(x), unconnected_gradients="zero"),
        [[0, 0]],
    ),
    "itself": (lambda x: tw.gradients(x, x), [[1, 1]]),
    "rows": (lambda x: tw.gradients(tw.gather(x, [0, 0]), x), [[2, 0]]),
    "integers": (lambda x: tw.gradients(tw.cast(x, "int32"), x), [None]),
    "a loop": (
        lambda x: tw.gradients(
            tw.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1], x
        ),
        [[4, 32]],
    ),
    "a branch": (
        lambda x: tw.gradients(tw.cond(x[0] > 0, lambda: x * x, lambda: x), x),
        [[2, 4]],
    ),
    "in a branch": (
        lambda x: [tw.cond(x[0] > 0, lambda: tw.gradients(x * x, x)[0], lambda: x)],
        [[2, 4]],
    ),
    "custom": (
        lambda x: tw.gradients(
            tw.custom_gradient(lambda x: (x * 2.0, lambda g: g * 100.0))(x), x
        ),
        [[100, 100]],
    ),
    "random numbers are drawn once": (
        lambda x: (lambda y: [y - x * tw.gradients(y, x)[0]])(tw.nn.dropout(x, 0.5)),
        [[0, 0]],
    ),
    "hessian": (
        lambda x: tw.hessians(tw.reduce_sum(x * x * x), x),
        [[[6, 0], [0, 12]]],
    ),
    "flat": (lambda x: tw.hessians(tw.reduce_sum(x), x), [[[0, 0], [0, 0]]]),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_tensorflow(name):
    body, wanted = CASES[name]
    assert run(body) == wanted


def test_by_variables():
    v = tw.Variable(X)
    assert run(lambda x: tw.gradients(v * v + v, v)) == [[3, 5]]
    assert run(lambda x: tw.gradients(x, v)) == [None]
    assert run(lambda x: tw.hessians(tw.reduce_sum(v * v * v), v)) == [
        [[6, 0], [0, 12]]
    ]
    with pytest.raises(TypeError, match="assigned"):
        run(lambda x: (v.assign_add(x), tw.gradients(v * v, v))[1])


def test_a_tape_outside_differentiates_the_gradient():
    x = tw.constant(X)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.function(lambda x: tw.gradients(x * x * x, x)[0])(x)
    np.testing.assert_allclose(tape.gradient(y, x), [6, 12])


def test_what_it_cannot_see_is_refused():
    x = tw.constant(X)
    with pytest.raises(RuntimeError, match="eager"):
        tw.gradients(x, x)
    with pytest.raises(TypeError, match="constant of the trace"):
        run(lambda x: tw.gradients(x * 2.0, tw.ones([2])))
    with pytest.raises(TypeError, match="branch"):
        run(inside(lambda x, y: [
            tw.cond(x[0] > 0, lambda: tw.gradients(y, x)[0], lambda: x)
        ]))  # fmt: skip
    with pytest.raises(ValueError, match="grad_ys"):
        run(lambda x: tw.gradients(x, x, [None, None]))
    with pytest.raises(ValueError, match="depend"):
        run(lambda x: tw.hessians(tw.constant(1.0), x))

    def under_a_tape(x):
        with tw.GradientTape():
            return tw.gradients(x * x, x)

    def with_an_effect(x):
        spec = tw.TensorSpec([2], "float32")
        return tw.gradients(tw.py_function(lambda x: x, [x], spec), x)

    for body in (under_a_tape, with_an_effect):
        with pytest.raises(TracingError, match="GradientTape"):
            run(body)
