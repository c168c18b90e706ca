"""Passes over graphs: what each makes of a graph, and that the numbers stay the same."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.passes.algebra import algebra
from tapewright.compiler.passes.common_subexpressions import common_subexpressions
from tapewright.compiler.passes.constant_folding import constant_folding
from tapewright.compiler.passes.dead_code import dead_nodes, dead_stores
from tapewright.compiler.passes.rewriting import GraphRewriter, hashable
from tapewright.compiler.passes.shared_weights import shared_weights
from tapewright.compiler.pipeline import GRAPH_PASSES, optimize
from tapewright.compiler.tracing.graph import Read, Store, is_value
from tapewright.compiler.tracing.interpret import interpret
from tapewright.core import config

X = np.array([[1.5, -0.0, 3.0], [-2.0, 0.0, np.inf]], np.float32)
NAMES = [each.__name__ for each in GRAPH_PASSES]
Y = np.array([[-0.0, 4.0, 0.1], [7.0, -1e-40, 1.0]], np.float32)


def graph_of(function, *arrays):
    """The graph of a function as it was traced."""
    tensors = [tw.constant(a) for a in arrays]
    return tw.function(function).get_concrete_function(*tensors).graph


def names(graph):
    return [node.name for node in graph.nodes]


def after(pass_, function, *arrays):
    """The graph of a function after one pass, and without what is dead."""
    graph = graph_of(function, *arrays)
    changed = pass_(graph)
    changed.check()
    assert_same(graph, changed, arrays)
    return dead_nodes(changed)


def outputs_of(graph, arrays):
    with np.errstate(all="ignore"):
        return [x.numpy() for x in interpret(graph, [tw.constant(a) for a in arrays])]


def assert_same(graph, other, arrays):
    """Both give the same bits; the sign of a NaN is not looked at."""
    expected, found = outputs_of(graph, arrays), outputs_of(other, arrays)
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            signed = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[signed], np.signbit(b)[signed])


# ------------------------------------------------------------------------ dead nodes


def test_nodes_that_lead_to_no_output_go():
    def f(x):
        tw.exp(tw.tanh(x))
        return x * 2.0

    assert names(after(dead_nodes, f, X)) == ["multiply"]


def test_reads_of_variables_that_nobody_needs_go():
    v = tw.Variable([1.0, 2.0, 3.0])

    def f(x):
        tw.square(v)
        return x + x

    assert names(after(dead_nodes, f, X)) == ["add"]


def test_an_assignment_is_kept_with_what_it_needs():
    v = tw.Variable(X)

    def f(x):
        v.assign(tw.tanh(x))
        return x

    assert names(after(dead_nodes, f, X)) == ["tanh", "store"]


def test_a_graph_without_dead_nodes_is_returned_as_it_is():
    graph = graph_of(lambda x: tw.exp(x), X)
    assert dead_nodes(graph) is graph


def test_a_variable_assigned_its_own_value_is_not_stored():
    v = tw.Variable(X)

    def f(x):
        v.assign(v.read())
        return x * v

    graph = algebra(graph_of(f, X))
    assert "store" in names(graph)
    assert names(dead_stores(graph)) == ["read", "multiply"]


def test_no_store_of_the_own_value_is_left_by_all_passes():
    v = tw.Variable(X)

    def f(x):
        v.assign(v.read())
        return x * v

    assert names(optimize(graph_of(f, X))) == ["read", "multiply"]


def test_of_two_stores_without_a_look_between_them_the_second_is_kept():
    v = tw.Variable(X)

    def f(x):
        v.assign(x)
        return tw.exp(x)

    graph = graph_of(f, X)
    *nodes, store = graph.nodes
    first = Store(v, graph.inputs[0])
    last = Store(v, nodes[0].outputs[0])
    twice = graph.replaced([*nodes, first, last])
    assert dead_stores(twice).nodes == [*nodes, last]


def test_a_store_is_kept_where_the_variable_is_read_before_the_next():
    v = tw.Variable(X)
    graph = graph_of(lambda x: tw.exp(x), X)
    first, read = Store(v, graph.inputs[0]), Read(v)
    last = Store(v, graph.nodes[0].outputs[0])
    nodes = [graph.nodes[0], first, read, last]
    assert dead_stores(graph.replaced(nodes)).nodes == nodes


# ---------------------------------------------------------------------- duplicates


def test_an_op_applied_twice_to_the_same_is_computed_once():
    graph = after(common_subexpressions, lambda x: tw.exp(x) + 2.0 * tw.exp(x), X)
    assert names(graph).count("exp") == 1


def test_chains_of_duplicates_become_one_chain():
    def f(x, y):
        return tw.tanh(x @ y) - tw.sigmoid(tw.tanh(x @ y))

    graph = after(common_subexpressions, f, X, Y.T)
    assert names(graph) == ["matmul", "tanh", "sigmoid", "subtract"]


def test_sums_and_products_are_the_same_in_both_orders():
    graph = after(common_subexpressions, lambda x, y: (x * y) - tw.square(y * x), X, Y)
    assert names(graph).count("multiply") == 1


def test_differences_are_not_the_same_in_both_orders():
    def f(x, y):
        return tw.exp(x - y) * (y - x)

    graph = after(common_subexpressions, f, X, Y)
    assert names(graph).count("subtract") == 2


def test_products_of_complex_numbers_round_otherwise_in_the_other_order():
    z = np.array([0.3 + 2j, -1.7 + 0.1j], np.complex64)
    changed = after(common_subexpressions, lambda a, b: (a * b, b * a), z, z[::-1])
    assert names(changed) == ["multiply", "multiply"]


def test_strings_are_not_joined_in_another_order():
    a, b = np.array(["a"]), np.array(["b"])
    graph = graph_of(lambda x, y: (x + y, y + x), a, b)
    assert len(common_subexpressions(graph).nodes) == 2


def test_ops_with_other_attributes_stay_two():
    def f(x):
        return tw.reduce_sum(x, axis=0), tw.reduce_sum(x, axis=1)

    assert len(after(common_subexpressions, f, X).nodes) == 2


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (1, 1.0), (1, True)])
def test_attributes_that_python_calls_equal_are_told_apart(first, second):
    assert hashable((first,)) != hashable((second,))
    assert hashable({"a": [first]}) == hashable({"a": [first]})


def test_attributes_of_an_unknown_kind_are_not_compared():
    assert hashable({"a": np.ones(3)}) is None


def test_constants_with_the_same_bytes_are_the_same():
    def f(x):
        return x + tw.constant([1.0, 2.0, 3.0]), x + tw.constant([1.0, 2.0, 3.0])

    assert len(after(common_subexpressions, f, X).nodes) == 1


def test_zeros_of_both_signs_are_two_constants():
    def f(x):
        return x + tw.constant(0.0), x + tw.constant(-0.0)

    assert len(after(common_subexpressions, f, X).nodes) == 2


def test_calls_of_the_world_outside_are_never_merged():
    generator = tw.random.Generator.from_seed(1)

    def f(x):
        return generator.normal([2, 3]) + x, generator.normal([2, 3]) + x

    graph = graph_of(f, X)
    changed = optimize(graph)
    effects = [node for node in graph.nodes if node.is_effect]
    assert len([node for node in changed.nodes if node.is_effect]) == len(effects)
    first, second = outputs_of(changed, [X])
    assert (first[0] != second[0]).any()


def test_the_gradient_of_a_sigmoid_loss_shares_what_its_branches_share():
    def f(x):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tw.tanh(x)
            a, b = tw.exp(y), tw.square(y)
        return tape.gradient(a, x), tape.gradient(a + b, x)

    before = names(graph_of(f, Y))
    found = names(after(common_subexpressions, f, Y))
    assert before.count("tanh_slope") == 2 or len(found) < len(before)


# ------------------------------------------------------------------------- folding


def folded(function, *arrays):
    return after(constant_folding, function, *arrays)


def with_constant_input(function, array, *arrays):
    """A graph whose first input is a constant, as rules leave it behind."""
    graph = graph_of(function, array, *arrays)
    value, constant = graph.inputs[0], tw.constant(array)
    rewriter = GraphRewriter(graph)
    rewriter.replace(value, constant)
    for node in graph.nodes:
        rewriter.keep(node)
    result = rewriter.result()
    result.inputs = graph.inputs[1:]
    return result


def test_ops_on_constants_alone_are_computed_when_compiled():
    graph = with_constant_input(lambda c, x: x * tw.exp(tw.tanh(c)), Y, X)
    changed = constant_folding(graph)
    assert names(changed) == ["multiply"]
    assert_same(graph, changed, [X])


def test_a_large_result_is_not_kept_as_a_constant():
    graph = with_constant_input(
        lambda c, x: tw.tile(c, [999, 99]) + x, Y[:1, :1], X[:1, :1]
    )
    changed = constant_folding(graph)
    assert (
        max([x.array.size for n in changed.nodes for x in n.inputs if not is_value(x)])
        == 1
    )


def test_an_op_that_fails_is_left_to_the_replay():
    index, ones = np.array([1], np.int32), np.ones((1, 1), np.int32)
    graph = with_constant_input(lambda c, x: x + tw.unravel_index(c, [3]), index, ones)
    bad = [x if is_value(x) else tw.constant([7]) for x in graph.nodes[0].inputs]
    graph.nodes[0].inputs = tuple(bad)
    assert names(constant_folding(graph)) == names(graph)


# ------------------------------------------------------------------------- algebra


def simplified(function, *arrays):
    """Names of the ops that are left of a function."""
    return names(after(algebra, function, *arrays))


GONE = {
    "x * 1": lambda x: x * 1.0,
    "1 * x": lambda x: 1.0 * x,
    "ones * x": lambda x: tw.ones([2, 3]) * x,
    "a row of ones * x": lambda x: tw.ones([3]) * x,
    "x / 1": lambda x: x / 1.0,
    "x - 0": lambda x: x - 0.0,
    "x + -0": lambda x: x + (-0.0),
    "-(-x)": lambda x: tw.negative(-x),
    "identity": lambda x: tw.identity(x),
    "stop_gradient": lambda x: tw.stop_gradient(x),
    "reshape to its shape": lambda x: tw.reshape(x, [2, 3]),
    "reshape and back": lambda x: tw.reshape(tw.reshape(x, [6]), [2, 3]),
    "expand and squeeze": lambda x: tw.squeeze(tw.expand_dims(x, 1), 1),
    "transpose twice": lambda x: tw.transpose(tw.transpose(x)),
    "transpose by nothing": lambda x: tw.transpose(x, [0, 1]),
    "transpose from both ends": lambda x: tw.transpose(tw.transpose(x, [1, 0]), [-1, -2]),
    "cast and back": lambda x: tw.cast(tw.cast(x, "float64"), "float32"),
    "broadcast to its shape": lambda x: tw.broadcast_to(x, [2, 3]),
    "concat of one": lambda x: tw.concat([x], 0),
    "where true": lambda x: tw.where(tw.constant([[True]]), x, tw.zeros([2, 3])),
    "where false": lambda x: tw.where(tw.fill([2, 3], False), tw.zeros([2, 3]), x),
    "several at once": lambda x: -(tw.identity(-(x * 1.0)) / 1.0) - 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_what_changes_nothing_goes(name):
    assert simplified(GONE[name], X) == []


KEPT = {
    "x + 0 makes 0.0 of -0.0": lambda x: x + 0.0,
    "x - -0 too": lambda x: x - (-0.0),
    "0 + x too": lambda x: 0.0 + x,
    "x * 2": lambda x: x * 2.0,
    "x / 3": lambda x: x / 3.0,
    "x * 1 that makes it larger": lambda x: x * tw.ones([4, 2, 3]),
    "cast to a narrower dtype and back": lambda x: tw.cast(tw.cast(x, "float16"), "float32"),
    "cast to int and back": lambda x: tw.cast(tw.cast(x, "int32"), "float32"),
    "almost ones": lambda x: x * tw.constant([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]]),
    "where that broadcasts": lambda x: tw.where(tw.constant(True), x[0], x),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_changes_a_bit_stays(name):
    array = Y if "int" in name else X
    before = names(graph_of(KEPT[name], array))
    assert simplified(KEPT[name], array) == before


def test_whole_numbers_plus_zero_stay_themselves():
    assert simplified(lambda n: n + 0, np.array([1, -2], np.int32)) == []


def test_a_quotient_of_whole_numbers_by_one_is_a_float_and_stays():
    assert simplified(lambda n: n / 1, np.array([1, -2], np.int32)) == ["divide"]


@pytest.mark.parametrize("divisor", [128.0, 0.25, -2.0, 2.0**-126])
def test_a_quotient_by_a_power_of_two_becomes_a_product(divisor):
    assert simplified(lambda x: x / divisor, Y) == ["multiply"]


@pytest.mark.parametrize("divisor", [3.0, 0.0, 1e30, 2.0**127, 2.0**-140, np.inf])
def test_a_quotient_by_anything_else_stays(divisor):
    assert simplified(lambda x: x / tw.constant(divisor, "float32"), Y) == ["divide"]


SHORTER = {
    "x + (-y)": (lambda x, y: x + (-y), ["subtract"]),
    "(-x) + y": (lambda x, y: (-x) + y, ["subtract"]),
    "x - (-y)": (lambda x, y: x - (-y), ["add"]),
    "(-x) * (-y)": (lambda x, y: (-x) * (-y), ["multiply"]),
    "(-x) / (-y)": (lambda x, y: (-x) / (-y), ["divide"]),
    "(-x) * 3": (lambda x, y: (-x) * 3.0, ["multiply"]),
    "(-x) / 3": (lambda x, y: (-x) / 3.0, ["divide"]),
    "3 / (-x)": (lambda x, y: 3.0 / (-x), ["divide"]),
    "three reshapes": (
        lambda x, y: tw.reshape(tw.expand_dims(tw.reshape(x, [3, 2]), 0), [6]),
        ["reshape"],
    ),
    "two broadcasts": (
        lambda x, y: tw.broadcast_to(tw.broadcast_to(x[0], [2, 3]), [4, 2, 3]),
        ["getitem", "broadcast_to"],
    ),
    "x + broadcast": (
        lambda x, y: x + tw.broadcast_to(tw.reduce_sum(y), [2, 3]),
        ["reduce_sum", "add"],
    ),
    "product of transposed": (
        lambda x, y: tw.transpose(x) @ y,
        ["matmul"],
    ),
    "product with transposed": (
        lambda x, y: x @ tw.transpose(y, [1, 0]),
        ["matmul"],
    ),
}


@pytest.mark.parametrize("name", SHORTER)
def test_two_ops_become_one(name):
    function, expected = SHORTER[name]
    assert simplified(function, X, Y) == expected


def test_transposes_inside_of_a_product_cancel_its_flags():
    def f(x, y):
        return tw.matmul(tw.transpose(x), y, transpose_a=True, transpose_b=True)

    graph = after(algebra, f, X, Y)
    assert names(graph) == ["matmul"]
    assert graph.nodes[0].attributes == {"transpose_a": False, "transpose_b": True}


def test_stacks_of_matrices_take_over_a_swap_of_the_last_two_axes_only():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def swapped(x):
        return tw.transpose(x, [0, 2, 1]) @ x

    def turned(x):
        return tw.transpose(x, [1, 0, 2]) @ tw.transpose(x, [1, 2, 0])

    assert simplified(swapped, x) == ["matmul"]
    assert simplified(turned, x) == ["transpose", "transpose", "matmul"]


def test_a_constant_of_one_number_becomes_that_number():
    graph = after(algebra, lambda x: x * tw.fill([2, 3], 0.5), X)
    constant = next(x for x in graph.nodes[0].inputs if not is_value(x))
    assert constant.array.shape == ()


def test_the_seed_of_a_mean_does_not_multiply_entry_by_entry():
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            mean = tw.reduce_mean(tw.exp(x))
        return tape.gradient(mean, x)

    graph = after(algebra, f, Y)
    constants = [x for n in graph.nodes for x in n.inputs if not is_value(x)]
    assert [c.array.shape for c in constants] == [()]


# ------------------------------------------------------------------ passes in general


def step():
    """A train step: a model, two layers, and its update."""
    rng = np.random.default_rng(0)
    w = tw.Variable(rng.standard_normal((3, 5)).astype("f4"))
    b = tw.Variable(np.zeros(5, "f4"))
    optimizer = tw.keras.optimizers.SGD(0.1, momentum=0.9)

    def step(x, y):
        with tw.GradientTape() as tape:
            error = tw.nn.relu(x @ w + b) @ tw.transpose(w) - y
            loss = tw.reduce_mean(tw.square(error)) + 0.1 * tw.reduce_sum(w * w)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
        return loss

    return step, [w, b, *optimizer.variables]


def test_the_graph_that_is_given_stays_as_it_was():
    function, _ = step()
    graph = graph_of(function, X, Y)
    before = [(n, n.inputs, n.outputs, dict(n.attributes)) for n in graph.nodes]
    outputs = list(graph.outputs)
    optimize(graph)
    assert [(n, n.inputs, n.outputs, n.attributes) for n in graph.nodes] == before
    assert graph.outputs == outputs
    graph.check()


def test_nodes_keep_the_line_of_the_user():
    function, _ = step()
    changed = optimize(graph_of(function, X, Y))
    assert all(__file__ in node.line for node in changed.nodes)


def test_a_graph_knows_the_passes_that_made_it():
    graph = graph_of(lambda x: x * 1.0, X)
    assert graph.passes == ()
    with config.graph_passes(True):
        assert optimize(graph).passes == tuple(NAMES)
    assert "algebra" not in optimize(graph, off=("algebra",)).passes


def test_a_pass_that_is_switched_off_is_not_made():
    def f(x):
        return x * 1.0

    with config.graph_passes(algebra=False):
        assert names(optimize(graph_of(f, X))) == ["multiply"]
        assert "algebra" not in optimize(graph_of(f, X)).passes
    assert names(optimize(graph_of(f, X))) == []


def test_with_all_passes_off_the_graph_is_that_of_the_trace():
    function, _ = step()
    graph = graph_of(function, X, Y)
    with config.graph_passes(False):
        assert optimize(graph).nodes == graph.nodes


def test_a_pass_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match="pass foldd"):
        config.set_graph_passes(foldd=False)
    with pytest.raises(ValueError, match="algebra"):
        config.set_graph_passes(everything=False)


def test_the_configuration_report_tells_which_passes_are_off(capsys):
    config.show()
    assert "graph passes all but shared_weights\n" in capsys.readouterr().out
    with config.graph_passes(algebra=False, dead_nodes=False):
        config.show()
    assert "graph passes all but dead_nodes, algebra, " in capsys.readouterr().out
    with config.graph_passes(True):
        config.show()
    assert "graph passes all on" in capsys.readouterr().out


@pytest.mark.parametrize("name", [None, *NAMES])
def test_a_train_step_gives_the_same_bits_with_each_pass_alone_and_with_none(name):
    X2 = np.where(np.isfinite(X), X, 1.0).astype("f4")
    results = []
    for switches in ({}, {name: True} if name else {}):
        function, variables = step()
        with config.graph_passes(False, **switches):
            traced = tw.function(function)
            losses = [traced(X2, Y).numpy() for _ in range(3)]
        results.append([*losses, *[v.numpy() for v in variables]])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


# ----------------------------------------------------------------- random programs

CONSTANTS = [1.0, -1.0, 0.0, -0.0, 2.0, 0.5, 3.0]


MAKERS = [
    lambda a, b, c: a + b,
    lambda a, b, c: a - b,
    lambda a, b, c: a * b,
    lambda a, b, c: a / b,
    lambda a, b, c: -a,
    lambda a, b, c: a * c,
    lambda a, b, c: a + c,
    lambda a, b, c: c - a,
    lambda a, b, c: a - c,
    lambda a, b, c: a / c,
    lambda a, b, c: c / a,
    lambda a, b, c: tw.identity(a),
    lambda a, b, c: tw.stop_gradient(a),
    lambda a, b, c: tw.transpose(tw.transpose(a)),
    lambda a, b, c: tw.cast(tw.cast(a, "float64"), "float32"),
    lambda a, b, c: tw.reshape(tw.expand_dims(tw.reshape(a, [3, 2]), 1), [2, 3]),
    lambda a, b, c: tw.where(c > 0, a, b),
    lambda a, b, c: a + tw.broadcast_to(b[:1], [2, 3]),
    lambda a, b, c: a @ tw.transpose(b) @ b,
    lambda a, b, c: tw.maximum(a, b),
    lambda a, b, c: tw.transpose(tw.transpose(a) @ tw.transpose(b[:, :2])),
]


def random_program(seed):
    """A function of two matrices and a vector, of ops for which there are rules."""
    rng = np.random.default_rng(seed)
    choices = rng.integers(0, 1 << 30, 100).tolist()

    def program(x, y, v):
        at = iter(choices)

        def pick(items):
            return items[next(at) % len(items)]

        values = [x, y, x * v, tw.transpose(tw.reshape(y, [3, 2]))]
        for _ in range(14):
            constant = tw.fill(pick([[], [3], [2, 3], [2, 1]]), pick(CONSTANTS))
            values.append(pick(MAKERS)(pick(values), pick(values), constant))
        return values[-1], values[-2], tw.reduce_sum(values[-3] * values[-4])

    return program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_give_the_same_bits_after_each_pass_and_after_all(seed):
    rng = np.random.default_rng(seed)
    arrays = [
        rng.choice([-1.5, -0.0, 0.0, 1.0, 3.7, 1e-3], s).astype("f4")
        for s in ((2, 3), (2, 3), (3,))
    ]
    graph = graph_of(random_program(seed), *arrays)
    exact = {p.__name__: p for p in GRAPH_PASSES if p is not shared_weights}
    for changed in [p(graph) for p in exact.values()]:
        changed.check()
        assert_same(graph, changed, arrays)
    for name in [None, *exact]:
        changed = optimize(graph, off=("shared_weights", name))
        changed.check()
        assert_same(graph, changed, arrays)
        assert len(changed.nodes) <= len(graph.nodes)


# ------------------------------------------------------------------ shared weights


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


def test_an_op_on_broadcast_numbers_is_folded_to_a_broadcast_number(numpy_target):
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            loss = 0.25 * tw.reduce_sum(tw.square(x))
        return tape.gradient(loss, x)

    x = tw.constant(np.linspace(-1.0, 1.0, 30000))
    traced = tw.function(f)
    np.testing.assert_array_equal(traced(x).numpy(), 0.5 * x.numpy())
    program = traced.get_concrete_function(x).executable.program
    (product,) = program.instructions
    assert product.scalar == "multiply"
    assert () in [a.shape for a in product.operands]
