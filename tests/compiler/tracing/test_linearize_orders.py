"""Traced functions under several tapes: gradients of every order, as in eager mode."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import autodiff

from ..conftest import assert_linearized, assert_same, floats, nested


def network(x, w):
    return tw.tanh(tw.matmul(x, w)) * tw.reduce_mean(x, axis=1, keepdims=True)


def normalized(x, gamma):
    mean, variance = tw.nn.moments(x, axes=[0])
    return (x - mean) / tw.sqrt(variance + 1e-3) * gamma


def cross_entropy(x, w):
    labels = tw.constant([0, 2, 1, 1])
    logits = tw.matmul(x, w)
    return tw.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def chosen(x, y):
    return tw.where(x > y, tw.sqrt(x) * y, x * x)


def indexed(x, y):
    return x[1:, ::2] * tw.gather(y, [2, 0, 2]) + tw.concat([x[:1], x[2:]], 0)[:, 1:]


def soft(x, y):
    return tw.nn.softmax(x * y) * tw.nn.log_softmax(x)


def joined(x, y):
    parts = tw.split(x * y, 2, axis=1)
    return tw.stack(parts) ** 2.0


FUNCTIONS = {
    "matmul": (network, (4, 3), (3, 3)),
    "normalization": (normalized, (4, 3), (3,)),
    "cross-entropy": (cross_entropy, (4, 3), (3, 3)),
    "where": (chosen, (4, 3), (4, 3)),
    "indexing": (indexed, (4, 3), (3, 2)),
    "softmax": (soft, (4, 3), (3,)),
    "split": (joined, (2, 4), (2, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_three_orders_are_those_of_eager_mode(name):
    f, *shapes = FUNCTIONS[name]
    args = [floats(*shape) for shape in shapes]
    traced = tw.function(f)
    traced(*args)
    assert_same(nested(traced, args, 3), nested(f, args, 3))
    assert_linearized(traced)


@pytest.mark.parametrize("name", ["matmul", "cross-entropy", "softmax"])
def test_two_orders_agree_with_finite_differences(name):
    f, *shapes = FUNCTIONS[name]
    args = [floats(*shape) for shape in shapes]
    tw.test.check_gradients(tw.function(f), args, order=2)


# ------------------------------------------------------------------------ several tapes


def test_tapes_side_by_side_each_have_their_gradients():
    a, b = tw.constant(2.0), tw.constant(3.0)
    traced = tw.function(lambda a, b: a * a * b)
    with tw.GradientTape() as first, tw.GradientTape() as second:
        first.watch(a)
        second.watch(b)
        y = traced(a, b)
    assert first.gradient(y, [a, b])[0].numpy() == 12.0
    da, db = second.gradient(y, [a, b])
    assert da is None and db.numpy() == 4.0


def test_a_persistent_tape_differentiates_its_own_gradient():
    x, traced = tw.constant(2.0), tw.function(lambda x: x**4)
    with pytest.warns(UserWarning, match="persistent"):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = traced(x)
            first = tape.gradient(y, x)
            second = tape.gradient(first, x)
            third = tape.gradient(second, x)
    values = [g.numpy() for g in (first, second, third)]
    np.testing.assert_allclose(values, [32.0, 48.0, 48.0])


def test_the_hessian_needs_no_second_tape():
    x = floats(4)

    def f(x):
        return tw.reduce_sum(tw.exp(x) * x[::-1])

    def hessian(f):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.hessian(y, x)

    traced = tw.function(f)
    assert_same([hessian(traced)], [hessian(f)])
    assert_linearized(traced)


def test_jacobians_are_those_of_eager_mode():
    x, w = floats(3, 4), tw.Variable(floats(4, 2).numpy())

    def f(x):
        return tw.nn.softmax(tw.matmul(x, w)) * tw.reduce_sum(x * x, 1, keepdims=True)

    def jacobians(f):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        return [*tape.jacobian(y, [x, w]), tape.batch_jacobian(y, x)]

    traced = tw.function(f)
    assert_same(jacobians(traced), jacobians(f))
    assert_linearized(traced)


def test_a_jacobian_of_a_gradient():
    x, traced = floats(3), tw.function(lambda x: tw.reduce_prod(x) * tw.sin(x))

    def hessian(f):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return outer.jacobian(g, x)

    assert_same([hessian(traced)], [hessian(traced.python_function)])


def test_a_map_over_a_traced_function():
    x, traced = floats(5, 3), tw.function(lambda row: tw.reduce_sum(row**3))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.vectorized_map(traced, x)
    np.testing.assert_allclose(y.numpy(), (x.numpy() ** 3).sum(1))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 * x.numpy() ** 2)


def test_forward_mode_goes_through_a_call():
    x, t, traced = floats(3), floats(3), tw.function(lambda x: tw.sin(x) * x)
    with autodiff.ForwardAccumulator(x, t) as accumulator:
        y = traced(x)
    wanted = (np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())) * t.numpy()
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), wanted)


def test_a_hessian_vector_product_forward_over_backward():
    x, t, traced = floats(3), floats(3), tw.function(lambda x: tw.reduce_sum(x**4))
    with autodiff.ForwardAccumulator(x, t) as accumulator:
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        g = tape.gradient(y, x)
    wanted = 12 * x.numpy() ** 2 * t.numpy()
    np.testing.assert_allclose(accumulator.jvp(g).numpy(), wanted)


def test_a_hessian_vector_product_backward_over_backward():
    x, t, traced = floats(3), floats(3), tw.function(lambda x: tw.reduce_sum(x**4))
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as inner:
            inner.watch(x)
            y = traced(x)
        g = inner.gradient(y, x)
    found = outer.gradient(g, x, output_gradients=t)
    np.testing.assert_allclose(found.numpy(), 12 * x.numpy() ** 2 * t.numpy())


# ----------------------------------------------------------- tapes inside and outside


def test_a_tape_inside_and_one_outside():
    @tw.function
    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = x**4
        return tape.gradient(y, x)

    x = tw.constant(3.0, dtype="float64")
    with tw.GradientTape() as second:
        second.watch(x)
        with tw.GradientTape() as first:
            first.watch(x)
            g = slope(x)
        h = first.gradient(g, x)
    np.testing.assert_allclose([g.numpy(), h.numpy()], [108.0, 108.0])
    np.testing.assert_allclose(second.gradient(h, x).numpy(), 72.0)
    assert_linearized(slope)


def test_a_gradient_penalty():
    w = tw.Variable(floats(3, 4).numpy())
    u = tw.Variable(floats(4, 1).numpy())
    x = floats(5, 3)

    def critic(x):
        return tw.matmul(tw.tanh(tw.matmul(x, w)), u)

    def penalty(critic):
        with tw.GradientTape() as outer:
            with tw.GradientTape() as inner:
                inner.watch(x)
                score = critic(x)
            slope = inner.gradient(score, x)
            length = tw.sqrt(tw.reduce_sum(slope**2, axis=1))
            loss = tw.reduce_mean((length - 1.0) ** 2) + tw.reduce_mean(score)
        return [loss, *outer.gradient(loss, [w, u])]

    traced = tw.function(critic)
    assert_same(penalty(traced), penalty(critic))
    assert_linearized(traced)
    assert_same(tw.function(lambda: penalty(traced))(), penalty(critic))


def test_one_traced_function_calls_another_under_a_tape():
    inner = tw.function(lambda x: tw.sin(x) * x)
    outer = tw.function(lambda x: inner(x) * inner(x * 2.0))
    x = floats(3)
    args = [x]
    plain = lambda x: tw.sin(x) * x * (tw.sin(x * 2.0) * (x * 2.0))  # noqa: E731
    assert_same(nested(outer, args, 2), nested(plain, args, 2))
    assert_linearized(outer)


def test_a_recomputed_function():
    def block(x):
        return tw.tanh(x) * tw.exp(x)

    x = floats(4)
    traced = tw.function(block)
    args = [x]
    recomputed = tw.recompute_grad(traced)
    assert_same(nested(recomputed, args, 2), nested(block, args, 2))
    inside = tw.function(lambda x: tw.recompute_grad(block)(x))
    assert_same(nested(inside, args, 2), nested(block, args, 2))


# ------------------------------------------------------------------------------- stress

UNARY = [
    tw.sin,
    tw.exp,
    tw.nn.softmax,
    tw.nn.relu,
    tw.transpose,
    tw.grad_pass_through(tw.round),
    lambda x: x * x,
    lambda x: tw.reduce_mean(x, axis=0, keepdims=True) + x,
    lambda x: tw.stop_gradient(x) * x,
    lambda x: tw.where(x > 0.0, x, 0.1 * x),
    lambda x: tw.gather(x, [2, 0, 1]),
    lambda x: tw.sort(x, axis=-1),
    lambda x: tw.cast(tw.cast(x, "complex128") * (1 + 2j), "float64"),
    lambda x: tw.recompute_grad(lambda y: tw.sin(y) * y)(x),
]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - b[0],
    tw.matmul,
    tw.maximum,
]


def random_program(rng, weight):
    """A function of two matrices that gives one or several of what it computes."""
    steps, count = [], 3
    for _ in range(rng.integers(3, 9)):
        table = UNARY if rng.random() < 0.6 else BINARY
        arity = 1 if table is UNARY else 2
        op = table[rng.integers(len(table))]
        steps.append((op, rng.integers(count, size=arity)))
        count += 1
    results = rng.integers(2, count, size=rng.integers(1, 4))

    def program(x, y):
        values = [x, y, weight.read()]
        for op, places in steps:
            values.append(op(*[values[i] for i in places]) * 0.5)
        return [values[i] for i in results]

    return program


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_have_the_gradients_of_eager_mode(seed):
    rng = np.random.default_rng(seed)
    x, y, w = [tw.constant(rng.normal(size=(3, 3))) for _ in range(3)]
    weight = tw.Variable(w)
    program = random_program(rng, weight)
    watched = [x, y] if seed % 3 else [x]
    sources = [x, y, weight]

    def derivatives(f):
        with tw.GradientTape() as outer:
            outer.watch(watched)
            with tw.GradientTape(persistent=True) as inner:
                inner.watch(watched)
                results = f(x, y)
            all_of_it = inner.gradient(results, sources)
            first = inner.gradient(results[0], sources)
            found = [None if g is None else tw.convert_to_tensor(g)
                     for g in [*all_of_it, *first]]  # fmt: skip
        seconds = outer.gradient([g for g in found if g is not None], sources)
        seconds = [None if g is None else tw.convert_to_tensor(g) for g in seconds]
        return [*results, *found, *seconds]

    traced = tw.function(program)
    assert_same(derivatives(traced), derivatives(program), 1e-9)
