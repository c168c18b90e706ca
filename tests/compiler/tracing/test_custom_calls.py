"""Gradients of the user's own inside traced functions, whoever differentiates them."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.tracing.custom_calls import CustomCall
from tapewright.core.primitive import primitive

RNG = np.random.default_rng(3)


def floats(*shape):
    return tw.constant(RNG.uniform(0.2, 1.4, shape))


def gradients(f, x, orders):
    """``f(x)`` and so many of its derivatives, each by a tape around the last."""
    if orders == 0:
        return [f(x)]
    with tw.GradientTape() as tape:
        tape.watch(x)
        lower = gradients(f, x, orders - 1)
    return [*lower, tape.gradient(lower[-1], x, unconnected_gradients="zero")]


def assert_same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-11, 1e-11)


@tw.custom_gradient
def tripled(x):
    """``x**2``, with a gradient that it has not: ``3 x``."""
    return x * x, lambda g: g * 3.0 * x


@tw.custom_gradient
def log1pexp(x):
    e = tw.exp(x)
    return tw.math.log(1.0 + e), lambda g: g * (1.0 - 1.0 / (1.0 + e))


@tw.custom_gradient
def exponential(x):
    """Its gradient function calls it again, without end."""
    return tw.exp(x), lambda g: g * exponential(x)


@tw.custom_gradient
def doubly_custom(x):
    """The gradient has a gradient of its own, which uses a value of the forward pass."""
    y = x * x

    @tw.custom_gradient
    def slope(g):
        return g * 3.0 * x, lambda h: h * y * 100.0

    return y, slope


CALLS = [tripled, log1pexp, exponential, doubly_custom]


@pytest.mark.parametrize("f", CALLS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("orders", [1, 2, 3])
def test_tapes_outside_use_the_custom_gradient(f, orders):
    def g(x):
        return tw.sin(f(x * 2.0)) * x

    x, traced = tw.constant(0.7, dtype="float64"), tw.function(g)
    assert_same(gradients(traced, x, orders), gradients(g, x, orders))


@pytest.mark.parametrize("f", CALLS, ids=lambda f: f.__name__)
def test_tapes_inside_use_the_custom_gradient(f):
    def slopes(x):
        return gradients(lambda x: f(x * 2.0) * x, x, 2)

    x = tw.constant(0.7, dtype="float64")
    assert_same(tw.function(slopes)(x), slopes(x))


@pytest.mark.parametrize("f", CALLS, ids=lambda f: f.__name__)
def test_one_tape_inside_and_one_outside(f):
    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x * 2.0) * x
        return tape.gradient(y, x)

    x, traced = tw.constant(0.7, dtype="float64"), tw.function(slope)
    assert_same(gradients(traced, x, 2), gradients(slope, x, 2))


@pytest.mark.parametrize("f", CALLS, ids=lambda f: f.__name__)
def test_the_call_survives_in_a_function_that_calls_the_function(f):
    inner = tw.function(lambda x: f(x * 2.0))
    outer = tw.function(lambda x: inner(x) * x)
    x = tw.constant(0.7, dtype="float64")
    wanted = gradients(lambda x: f(x * 2.0) * x, x, 2)
    assert_same(gradients(outer, x, 2), wanted)


def test_a_gradient_function_may_be_traced_itself():
    @tw.custom_gradient
    @tw.function
    def f(x):
        return x**2

    with pytest.raises(TypeError, match="f .*got Tensor"):
        f(tw.constant(1.0))

    @tw.custom_gradient
    def g(x):
        @tw.function
        def gradient(dy):
            return dy * 5.0

        return x**2, gradient

    x = tw.constant(2.0)
    assert_same(gradients(tw.function(g), x, 1), gradients(g, x, 1))


def test_it_is_linearized():
    traced = tw.function(lambda x: tripled(x) * 2.0)
    x = tw.constant(2.0)
    assert gradients(traced, x, 1)[1].numpy() == 12.0
    (concrete,) = traced._concrete.values()
    (found,) = concrete.linearizations.by_tracked.values()
    assert found is not None


def test_gradients_are_clipped_by_a_call_inside_a_traced_function():
    @tw.custom_gradient
    def clip(x):
        return x, lambda g: tw.clip_by_norm(g, 0.5)

    v = tw.Variable(2.0)
    traced = tw.function(lambda: clip(v * v))
    with tw.GradientTape() as tape:
        y = traced()
    assert tape.gradient(y, v).numpy() == 2.0


def test_variables_used_inside_the_call_have_gradients():
    w = tw.Variable([2.0, 3.0], dtype="float64")

    @tw.custom_gradient
    def scaled(x):
        def gradient(g, variables=None):
            assert [v is w for v in variables] == [True]
            return g * 10.0, [g * x * 100.0]

        return x * w, gradient

    x = tw.constant([1.0, 4.0], dtype="float64")

    def both(f):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, w])

    dx, dw = both(tw.function(scaled))
    np.testing.assert_array_equal(dx.numpy(), [10.0, 10.0])
    np.testing.assert_array_equal(dw.numpy(), [100.0, 400.0])
    assert_same([dx, dw], both(scaled))


def test_a_variable_may_be_an_argument():
    w = tw.Variable(3.0)

    @tw.custom_gradient
    def f(v):
        return v * v, lambda g: g * 7.0

    traced = tw.function(lambda: f(w) * 2.0)
    with tw.GradientTape() as tape:
        y = traced()
    assert y.numpy() == 18.0 and tape.gradient(y, w).numpy() == 14.0


def test_several_results_and_arguments_some_without_gradient():
    @tw.custom_gradient
    def f(x, n, y):
        def gradient(dx, dm, dy):
            return dx * 2.0, None, dy * 3.0

        return (x + 1.0, n + 1, y * 1.0), gradient

    def g(x, n, y):
        a, m, b = f(x, n, y)
        return a * tw.cast(m, "float32") + b

    args = [tw.constant(2.0), tw.constant(4), tw.constant(3.0)]
    with tw.GradientTape() as tape:
        tape.watch([args[0], args[2]])
        z = tw.function(g)(*args)
    dx, _, dy = tape.gradient(z, args)
    assert (z.numpy(), dx.numpy(), dy.numpy()) == (18.0, 10.0, 3.0)


def test_a_gradient_of_the_wrong_shape_is_refused():
    @tw.custom_gradient
    def f(x):
        return x * 2.0, lambda g: tw.ones((7,))

    x, traced = tw.constant([1.0, 2.0]), tw.function(f)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = traced(x)
    with pytest.raises(ValueError, match="gradient.*0"):
        tape.gradient(y, x)


def test_a_wrong_number_of_gradients_is_refused():
    @tw.custom_gradient
    def f(x):
        return x * 2.0, lambda g: (g, g)

    x, traced = tw.constant([1.0, 2.0]), tw.function(f)
    with pytest.raises(ValueError, match="expected to return 1 gradients"):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        tape.gradient(y, x)


def test_gradients_pass_straight_through():
    traced = tw.function(lambda x: tw.grad_pass_through(tw.round)(x * 2.0))
    x = tw.constant(1.3)
    assert gradients(traced, x, 1)[1].numpy() == 2.0


def test_no_gradient_passes_where_it_is_stopped():
    traced = tw.function(lambda x: x * tw.stop_gradient(x * 1.0))
    assert gradients(traced, tw.constant(3.0), 1)[1].numpy() == 3.0


def test_what_was_registered_for_an_op_is_used_in_traces_too():
    op = primitive(lambda xp, x: xp.sign(x) * 2.0, name="tests_custom_call_step")
    op.primitive.infer(lambda x: x)

    @tw.RegisterGradient("tests_custom_call_step")
    def _(op, g):
        return g * op.inputs[0]

    traced = tw.function(lambda x: op(x * 2.0))
    x = tw.constant(3.0)
    assert [g.numpy() for g in gradients(traced, x, 2)] == [2.0, 12.0, 4.0]


def test_maps_and_jacobians_go_through_a_call():
    x = floats(3)

    def f(x):
        return log1pexp(x) * tw.reduce_sum(x)

    def jacobians(f):
        with tw.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            j = inner.jacobian(y, x)
            rows = tw.vectorized_map(lambda a: tripled(a * x[0]), x)
        return [j, outer.gradient(j, x), rows, outer.gradient(rows, x)]

    traced = tw.function(f)
    assert_same(jacobians(traced), jacobians(f))
    both = tw.function(lambda: jacobians(f))
    assert_same(both(), jacobians(f))


def test_a_replay_has_no_trace_of_the_call():
    traced = tw.function(lambda x: tripled(x) + 1.0)
    assert traced(tw.constant(3.0)).numpy() == 10.0
    (concrete,) = traced._concrete.values()
    assert any(type(node) is CustomCall for node in concrete.graph.nodes)
    assert "custom" not in concrete.executable.source


def test_the_gradient_function_becomes_a_graph():
    traced = tw.function(lambda x: tripled(x))
    concrete = traced.get_concrete_function(tw.constant(3.0))
    (node,) = [n for n in concrete.graph.nodes if type(n) is CustomCall]
    graph, places = node.backward()
    assert places == [0] and len(graph.inputs) == 1
    assert [n.name for n in graph.nodes] == ["multiply", "multiply"]
    assert graph.parent is concrete.graph


def test_a_custom_gradient_around_a_traced_function_finds_its_variables():
    w = tw.Variable(3.0)
    product = tw.function(lambda x: x * w)

    @tw.custom_gradient
    def f(x):
        def gradient(g, variables=None):
            return g * 2.0, [g * 5.0 for _ in variables]

        return product(x), gradient

    x = tw.constant(4.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 12.0
    assert [g.numpy() for g in tape.gradient(y, [x, w])] == [2.0, 5.0]


def test_what_is_recomputed_is_not_kept_by_an_executable():
    weights = [tw.Variable(floats(16, 16).numpy()) for _ in range(32)]

    def block(number):
        def run(x):
            for w in weights[number : number + 8]:
                x = tw.tanh(tw.matmul(x, w))
            return x

        return run

    def step(decorate):
        def gradients(x):
            with tw.GradientTape() as tape:
                y = x
                for number in (0, 8, 16, 24):
                    y = decorate(block(number))(y)
                y = tw.reduce_sum(y)
            return tape.gradient(y, weights)

        return tw.function(gradients)

    x = floats(512, 16)
    kept, recomputed = step(lambda f: f), step(tw.recompute_grad)
    assert_same(recomputed(x), kept(x))
    less, more = [f.get_concrete_function(x) for f in (recomputed, kept)]
    assert less.peak_bytes < 0.6 * more.peak_bytes


def test_a_gradient_function_in_a_loop_may_give_none_for_a_variable():
    w = tw.Variable(2.0)

    @tw.custom_gradient
    def f(x):
        return x * w, lambda g, variables=None: (g * 3.0, [None for _ in variables])

    def repeated(x, n):
        body = lambda i, y: (i + 1, f(y) * w)  # noqa: E731
        return tw.while_loop(lambda i, y: i < n, body, [0, x])[1]

    x, n = tw.constant(1.5), tw.constant(2)
    for call in (repeated, tw.function(repeated)):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = call(x, n)
        dx, dw = tape.gradient(y, [x, w])
        # y = f(f(x) w) w with f'(x) = 3, and w of the factors alone.
        assert (dx.numpy(), dw.numpy()) == (36.0, 12.0 + 6.0 * 3.0)


@pytest.mark.parametrize("recomputed", [True, False])
def test_functions_inside_of_functions_use_tensors_of_those_around(recomputed):
    w = tw.Variable([2.0, 3.0], dtype=tw.float64)

    def with_a_gradient(outside):
        def f(a):
            return a * a * outside

        @tw.custom_gradient
        def by_hand(a):
            return f(a), lambda dy: 2.0 * a * outside * dy

        return tw.recompute_grad(f) if recomputed else by_hand

    def program(wrap):
        @wrap
        def outermost(x):
            s = tw.sin(x)

            @wrap
            def middle(b):
                @wrap
                def inner(c):
                    picked = tw.recompute_grad(
                        lambda a: tw.cond(a[0] > 0.0, lambda: a * s, lambda: a)
                    )
                    found = with_a_gradient(s * w * c)(b * c) + with_a_gradient(s)(x)
                    return found + picked(c)

                return inner(b * 2.0)

            return middle(x)

        return outermost

    x = tw.constant([0.3, 0.7], tw.float64)

    def derivatives(f):
        with tw.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return y, g, outer.gradient(g, x)

    for a, b in zip(
        derivatives(program(tw.function)), derivatives(program(lambda f: f))
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("size", [[5], [None]])
def test_what_is_recomputed_beside_an_update_uses_tensors_of_the_functions_around(size):
    def slopes(inner, outer):
        w, rule = tw.Variable([1.0, 2.0, 3.0, 4.0, 5.0]), tw.optimizers.SGD(0.1)
        rule.build([w])

        @outer
        def step(x):
            @inner
            def once(y):
                same = tw.recompute_grad(lambda _: tw.sin(x))(tw.identity(y))
                rule.apply_gradients([(tw.ones([5]), w)])
                return tw.linalg.global_norm([same, w])

            return once(2.0 * x) + once(3.0 * x)

        x = tw.ones([5])
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = step(x)
        return tape.gradient(y, [x, w], unconnected_gradients="zero")

    traced = slopes(tw.function, tw.function(input_signature=[tw.TensorSpec(size)]))
    for a, b in zip(traced, slopes(lambda f: f, lambda f: f)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_variable_that_all_branches_read_has_its_gradient_once():
    x, w = tw.constant([1.0, 2.0]), tw.Variable([0.5, 0.25])

    def scaled(x):
        return tw.sin(x * w)

    again = tw.recompute_grad(scaled)
    branches = [lambda: again(x), lambda: scaled(x)], [lambda: again(x)] * 2
    for pair in branches:
        traced = tw.function(lambda x, pair=pair: tw.cond(x[0] > 0, *pair))
        with tw.GradientTape() as tape:
            y = traced(x)
        np.testing.assert_allclose(tape.gradient(y, w), x * tw.cos(x * w), rtol=1e-6)
