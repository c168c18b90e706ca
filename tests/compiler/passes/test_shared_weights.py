"""Layers that share their weights, stacked: one product for all rows."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.passes.dead_code import dead_nodes
from tapewright.compiler.passes.shared_weights import Stacker, shared_weights
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.tracing.graph import is_value

from .graphs import graph_of, names, outputs_of


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


class Layers:
    """Weights of two layers and a vector: what several inputs go through."""

    def __init__(self, inputs=8, units=16, seed=1):
        self.w = tw.Variable(numbers(inputs, units, seed=seed) / 3)
        self.b = tw.Variable(numbers(units, seed=seed + 1))
        self.v = tw.Variable(numbers(units, 1, seed=seed + 2) / 3)
        self.weights = [self.w, self.b, self.v]

    def __call__(self, x, activation=tw.nn.relu):
        return activation(x @ self.w + self.b) @ self.v


def stacked(function, *arrays, tolerance=1e-5):
    """The graph of a function after all exact passes, then with shared weights."""
    graph = graph_of(function, *arrays)
    plain = optimize(graph, off=("shared_weights",))
    changed = dead_nodes(shared_weights(plain))
    changed.check()
    for a, b in zip(
        outputs_of(graph, arrays), outputs_of(changed, arrays), strict=True
    ):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    return plain, changed


A, B, C = numbers(6, 8), numbers(6, 8, seed=5), numbers(4, 8, seed=6)


@pytest.mark.parametrize("activation", [tw.nn.relu, tw.tanh, tw.nn.leaky_relu])
@pytest.mark.parametrize("other", [B, C], ids=["as many rows", "other rows"])
def test_two_inputs_of_the_same_layers_go_through_them_as_one(activation, other):
    layers = Layers()

    def f(x, y):
        return layers(x, activation), layers(y, activation)

    before, found = stacked(f, A, other)
    assert names(before).count("matmul") == 4
    assert names(found).count("concat") == 1
    assert names(found).count("matmul") == 2
    assert names(found).count("add") == 1
    assert names(found)[-2:] == ["getitem", "getitem"]


def test_gradients_of_both_are_summed_by_one_product():
    layers = Layers()

    def f(x, y):
        with tw.GradientTape() as tape:
            first, second = layers(x), layers(y)
            loss = tw.reduce_mean(tw.square(first - 1.0))
            loss += tw.reduce_mean(tw.square(second + 1.0))
        return loss, *tape.gradient(loss, layers.weights)

    before, found = stacked(f, A, C)
    shapes = [n.outputs[0].shape for n in found.nodes if n.name == "matmul"]
    assert sorted(shapes) == [(8, 16), (10, 1), (10, 16), (10, 16), (16, 1)]
    assert names(before).count("matmul") == 10
    assert names(found).count("sum_to_shape") == 1


def test_what_only_one_side_needs_is_computed_for_one_side():
    layers = Layers()
    found = stacked(lambda x, y: (layers(x), tw.exp(layers(y))), A, B)[1]
    assert [n.outputs[0].shape for n in found.nodes if n.name == "exp"] == [(6, 1)]


def test_constants_beside_both_sides_are_stacked_once_and_for_all():
    layers = Layers()
    low, high = tw.constant(numbers(6, 16)), tw.constant(numbers(6, 16, seed=9))

    def f(x, y):
        return (x @ layers.w) * low, (y @ layers.w) * high

    found = stacked(f, A, B)[1]
    constants = [x for n in found.nodes for x in n.inputs if not is_value(x)]
    assert [c.array.shape for c in constants] == [(12, 16)]
    assert names(found).count("multiply") == 1


def test_a_copy_that_costs_more_than_it_saves_is_not_made():
    w = tw.Variable(numbers(2000, 2))
    x, y = numbers(500, 2000), numbers(500, 2000, seed=1)
    before, found = stacked(lambda x, y: (x @ w, y @ w), x, y, tolerance=1e-3)
    assert found.nodes == before.nodes


def test_a_layer_applied_to_its_own_output_is_not_stacked():
    w = tw.Variable(numbers(8, 8) / 3)

    def f(x):
        return tw.nn.relu(tw.nn.relu(x @ w) @ w)

    before, found = stacked(f, A)
    assert found.nodes == before.nodes


OTHERS = {
    "other weights": lambda x, y, w, u: (x @ w, y @ u),
    "one of them transposed": lambda x, y, w, u: (x @ w, tw.matmul(y, w, transpose_b=True)),
    "inputs transposed": lambda x, y, w, u: (
        tw.matmul(x, w, transpose_a=True), tw.matmul(y, w, transpose_a=True)),
    "weights on the left": lambda x, y, w, u: (w @ x, w @ y),
    "another dtype": lambda x, y, w, u: (x @ w, tw.cast(y, "float64") @ tw.cast(w, "float64")),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_products_that_are_no_rows_of_one_product_stay_apart(name):
    w, u = tw.Variable(numbers(8, 8)), tw.Variable(numbers(8, 8, seed=3))
    before, found = stacked(
        lambda x, y: OTHERS[name](x, y, w, u), numbers(8, 8), numbers(8, 8, seed=1)
    )
    assert found.nodes == before.nodes


def test_statistics_over_the_rows_of_each_side_stay_apart():
    layers = Layers()

    def f(x, y):
        return [h - tw.reduce_mean(h, axis=0) for h in (x @ layers.w, y @ layers.w)]

    found = stacked(f, A, B)[1]
    assert names(found).count("reduce_mean") == 2


def test_a_weight_that_is_updated_in_between_is_two_weights():
    layers, optimizer = Layers(), tw.keras.optimizers.SGD(0.5)

    def f(x, y):
        first = x @ layers.w
        optimizer.apply_gradients([(tw.ones_like(layers.w), layers.w)])
        return first, y @ layers.w

    graph = graph_of(f, A, B)
    changed = optimize(graph)
    changed.check()
    assert names(changed).count("matmul") == 2
    start = layers.w.numpy()
    first, second = outputs_of(changed, [A, B])
    np.testing.assert_allclose(first, A @ start, rtol=1e-5)
    np.testing.assert_allclose(second, B @ (start - 0.5), rtol=1e-5, atol=1e-5)


def test_products_on_both_sides_of_an_effect_stay_in_their_place():
    layers, optimizer = Layers(), tw.keras.optimizers.SGD(0.5)
    other = tw.Variable(1.0)

    def f(x, y):
        first = x @ layers.w
        optimizer.apply_gradients([(tw.reduce_sum(first), other)])
        return first, y @ layers.w

    assert names(optimize(graph_of(f, A, B))).count("matmul") == 2


def test_layers_applied_in_opposite_orders_are_left_alone():
    w, v = tw.Variable(numbers(8, 8) / 3), tw.Variable(numbers(8, 8, seed=3) / 3)

    def f(x, y):
        first, second = x @ w, y @ v
        return tw.nn.relu(first) @ v, tw.nn.relu(second) @ w

    stacked(f, A, B)


def test_a_long_recurrence_is_walked_without_recursion_to_its_start():
    w, u = tw.Variable(numbers(4, 4) / 4), tw.Variable(numbers(4, 4, seed=1) / 4)

    def f(x, y):
        for _ in range(300):
            x, y = tw.tanh(x @ w), tw.tanh(y @ u)
        return x @ w, y @ w

    stacked(f, A[:, :4], B[:, :4])


def random_layers(seed):
    """A function of three inputs that go through some of the same layers."""
    rng = np.random.default_rng(seed)
    kernels = [tw.Variable(numbers(8, 8, seed=seed + i) / 3) for i in range(3)]
    biases = [tw.Variable(numbers(8, seed=seed + i)) for i in range(3)]
    plan = rng.integers(0, 1 << 30, 40).tolist()
    activations = [tw.nn.relu, tw.tanh, tw.sigmoid, lambda x: x * 0.5, lambda x: -x]

    def program(x, y, z):
        at = iter(plan)

        def pick(items):
            return items[next(at) % len(items)]

        with tw.GradientTape() as tape:
            values = [x, y, z]
            for _ in range(7):
                k, a = pick([0, 0, 0, 1]), pick([x, y, z, *values])
                values.append(pick(activations)(a @ kernels[k] + biases[k]))
            loss = sum([tw.reduce_mean(tw.square(h)) for h in values[3:]])
        found = tape.gradient(loss, kernels + biases, unconnected_gradients="zero")
        return [loss, *values[3:], *[tw.convert_to_tensor(g) for g in found]]

    return program


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_with_shared_layers_give_the_same_numbers(seed):
    stacked(random_layers(seed), A, C, B, tolerance=2e-5)


def test_what_is_below_two_products_is_looked_for_once(monkeypatch):
    layers = Layers()
    graph = graph_of(lambda x, y: (tw.exp(layers(x)), tw.exp(layers(y))), A, B)
    asked, roles = [], Stacker.roles
    monkeypatch.setattr(
        Stacker, "roles", lambda *args: asked.append(args) or roles(*args)
    )
    stacker = Stacker(graph)
    products = [n for n in graph.nodes if n.name == "matmul"]
    last = tuple([n for n in graph.nodes if n.name == "exp"])
    assert stacker.furthest_below(*products[::2]) == last and asked
    asked.clear()
    assert stacker.furthest_below(*products[1::2]) == last and not asked


def test_some_of_the_random_programs_are_stacked():
    counts = []
    for seed in range(8):
        before, found = stacked(random_layers(seed), A, C, B, tolerance=2e-5)
        counts.append(names(before).count("matmul") - names(found).count("matmul"))
    assert sum(counts) >= 4


def test_an_executable_with_stacked_layers_gives_what_eager_mode_gives():
    layers, optimizer = Layers(), tw.keras.optimizers.Adam(0.01)

    def step(x, y):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(
                tw.nn.softplus(layers(x)) + tw.nn.softplus(-layers(y))
            )
        gradients = tape.gradient(loss, layers.weights)
        optimizer.apply_gradients(zip(gradients, layers.weights, strict=True))
        return loss

    start = [w.numpy() for w in layers.weights]
    traced = tw.function(step)
    with tw.config.graph_passes(shared_weights=True):
        found = [traced(tw.constant(A), tw.constant(B)).numpy() for _ in range(4)]
    weights = [w.numpy() for w in layers.weights]
    for variable, value in zip(layers.weights, start, strict=True):
        variable.assign(value)
    optimizer = tw.keras.optimizers.Adam(0.01)
    expected = [step(tw.constant(A), tw.constant(B)).numpy() for _ in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for a, w in zip(weights, layers.weights, strict=True):
        np.testing.assert_allclose(a, w.numpy(), rtol=1e-4, atol=1e-5)
