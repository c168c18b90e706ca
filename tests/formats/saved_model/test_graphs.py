"""Graphs in files: ops, loops, branches and custom gradients are read back as they were."""

import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.tracing.interpret import interpret
from tapewright.core.errors import SavingError
from tapewright.core.nest import flatten
from tapewright.formats.saved_model.functions import read_function, write_function
from tapewright.formats.saved_model.signature_functions import call_of
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

from ...compiler import test_every_op as every_op

ROWS = np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], np.float32)


CASES = [
    each
    for name in sorted(every_op.TABLE.keys() - every_op.SIZED_BY_VALUES)
    for each in every_op.TABLE[name][:2]
]


def through_a_file(functions, folder, variables=()):
    """Functions written into one file, and what is read from there."""
    path, variables = folder / "functions.h5", list(variables)
    with writing(path) as root:
        for i, function in enumerate(functions):
            write_function(root.group(f"f{i}"), function, variables)
    with opened(path) as root:
        return [
            read_function(root.group(f"f{i}"), variables) for i in range(len(functions))
        ]


def traced(*shapes):
    """Decorator: a function traced for float32 tensors of these shapes."""
    return tw.function(input_signature=[tw.TensorSpec(shape) for shape in shapes])


def derivatives(function, inputs, variables=(), orders=3):
    """The value, and gradients up to an order, by inputs and variables."""
    inputs = [tw.constant(x) for x in inputs]
    sources = [*inputs, *variables]
    tapes = [tw.GradientTape(persistent=True) for _ in range(orders)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(sources)
    targets = flatten(function(*inputs))
    found = list(targets)
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        targets = [x for x in targets if x.dtype.is_differentiable]
        gradients = tape.gradient(targets, sources) if targets else []
        found += gradients
        targets = [tw.convert_to_tensor(g) for g in gradients if g is not None]
    return [None if x is None else np.array(tw.convert_to_tensor(x)) for x in found]


def same(found, wanted, rtol=0.0):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol, atol=rtol)


@pytest.mark.parametrize("start", range(4))
def test_every_op_with_its_gradient_gives_the_same_bits_from_a_file(start, tmp_path):
    functions, inputs = [], []
    for each in CASES[start::4]:
        functions.append(tw.function(every_op.with_gradients(each)))
        inputs.append([tw.constant(a) for a in each.inputs])
        functions[-1].get_concrete_function(*inputs[-1])
    loaded = through_a_file(functions, tmp_path)
    for function, twin, tensors in zip(functions, loaded, inputs):
        graph = function.get_concrete_function(*tensors).graph
        with np.errstate(all="ignore"):
            found = interpret(twin.get_concrete_function(*tensors).graph, tensors)
            wanted = interpret(graph, tensors)
        assert [x.dtype for x in found] == [x.dtype for x in wanted]
        for a, b in zip(found, wanted):
            np.testing.assert_array_equal(a, b)


# ----------------------------------------------------------------- branches and loops


def cubed(x):
    """Cubes, with 3.5 in the place of 3 in the first derivative, 2.5 for 2 in the second."""

    @tw.custom_gradient
    def squared(x):
        return x * x, lambda g: 2.5 * g * x

    @tw.custom_gradient
    def cube(x):
        return x * x * x, lambda g: 3.5 * g * squared(x)

    return cube(x)


def halving(x, limit):
    return tw.while_loop(
        lambda i, y: tw.reduce_sum(y * y) > 0.1,
        lambda i, y: (i + 1, y * 0.5 * tw.cos(x)),
        [tw.constant(0), x],
        maximum_iterations=limit,
    )[1]


def written_rows(x):
    def body(i, array):
        return i + 1, array.write(i, tw.sin(x[0] * tw.cast(i, "float32")))

    array = tw.TensorArray("float32", 8)
    return tw.while_loop(lambda i, _: i < 8, body, [tw.constant(0), array])[1].stack()


def gradient_inside(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = cubed(x) * tw.sin(x)
    return tape.gradient(y, x)


def switched(x):
    number = tw.cast(tw.reduce_sum(x), "int32")
    return tw.switch_case(number, [lambda: x, lambda: x * x, lambda: tw.sin(x)])


CONTROL = {
    "cond": lambda x: tw.cond(tw.reduce_sum(x) > 0, lambda: x**3, lambda: tw.sin(x)),
    "switch_case": switched,
    "while_loop of a known length": lambda x: tw.while_loop(
        lambda i, y: i < 20, lambda i, y: (i + 1, tw.sin(y) * x), [tw.constant(0), x]
    )[1],
    "while_loop that data ends": lambda x: halving(x, 20),
    "scan": lambda x: tw.scan(
        lambda a, row: tw.sin(a) * row, tw.tile(x, [4, 1]), tw.ones([3])
    ),
    "map_fn": lambda x: tw.map_fn(lambda row: tw.sin(row) * row[0], tw.tile(x, [4, 1])),
    "TensorArray": written_rows,
    "a gradient inside": gradient_inside,
    "a custom gradient in cond": lambda x: tw.cond(
        tw.reduce_sum(x) > 0, lambda: cubed(x), lambda: x
    ),
    "a custom gradient in scan": lambda x: tw.scan(
        lambda a, row: cubed(tw.sin(a)) * row, tw.tile(x, [4, 1]), tw.ones([3])
    ),
    "a custom gradient in while_loop": lambda x: tw.while_loop(
        lambda i, y: tw.reduce_sum(y) < 100.0,
        lambda i, y: (i + 1, cubed(y) * 0.1 + x),
        [tw.constant(0), x],
        maximum_iterations=4,
    )[1],
}


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_has_its_gradients_of_three_orders(name, tmp_path):
    function = traced([None, 3])(CONTROL[name])
    (loaded,) = through_a_file([function], tmp_path)
    same(derivatives(loaded, [ROWS]), derivatives(function, [ROWS]), 1e-6)


def test_a_loop_without_a_bound_has_its_gradients(tmp_path):
    function = traced([2, 3])(lambda x: halving(x, None))
    (loaded,) = through_a_file([function], tmp_path)
    same(
        derivatives(loaded, [ROWS], orders=2),
        derivatives(function, [ROWS], orders=2),
        1e-6,
    )


# ------------------------------------------------------------------ custom gradients


def test_a_nested_custom_gradient_is_kept_in_every_order(tmp_path):
    (loaded,) = through_a_file([traced(None)(cubed)], tmp_path)
    x = np.float32(2.0)
    found = derivatives(loaded, [x])
    np.testing.assert_allclose(
        found, [8.0, 3.5 * 4, 3.5 * 2.5 * 2, 3.5 * 2.5], rtol=1e-6
    )


def test_a_gradient_function_that_calls_itself_is_kept_for_four_orders(tmp_path):
    @tw.custom_gradient
    def shifted(x):
        return tw.sin(x), lambda g: g * shifted(x + 1.0)

    (loaded,) = through_a_file([traced([])(shifted)], tmp_path)
    x = np.float32(0.3)
    found = derivatives(loaded, [x], orders=4)
    np.testing.assert_allclose(found, np.sin(x + np.arange(5)), rtol=1e-5)
    with pytest.raises(LookupError, match="up to order 4"):
        derivatives(loaded, [x], orders=5)


def test_gradients_by_captured_variables_come_from_the_gradient_function(tmp_path):
    w = tw.Variable(1.5)

    @tw.custom_gradient
    def scaled(x):
        def gradient(g, variables=None):
            return g * w, [tw.reduce_sum(10.0 * g * x)]

        return x * w * w, gradient

    function = traced([None, 3])(lambda x: scaled(x) * x)
    (loaded,) = through_a_file([function], tmp_path, [w])
    wanted = derivatives(function, [ROWS], [w])
    same(derivatives(loaded, [ROWS], [w]), wanted, 1e-6)
    assert wanted[2] == np.float32(10.0 * (ROWS * ROWS).sum())


def test_several_inputs_and_outputs_and_no_gradient_for_some(tmp_path):
    @tw.custom_gradient
    def both(a, b):
        return (a * b, a + b), lambda g, h: (2.0 * g * b + h, None)

    function = traced([None, 3], [None, 3])(lambda a, b: both(a, b))
    (loaded,) = through_a_file([function], tmp_path)
    wanted = derivatives(function, [ROWS, ROWS + 1])
    assert wanted[3] is None
    same(derivatives(loaded, [ROWS, ROWS + 1]), wanted, 1e-6)


def test_recompute_grad_and_grad_pass_through_are_kept(tmp_path):
    w = tw.Variable(1.5)
    functions = [
        traced([None, 3])(lambda x: tw.recompute_grad(lambda x: tw.sin(x * w) * x)(x)),
        traced(None)(lambda x: tw.grad_pass_through(tw.round)(x) * x),
    ]
    for function, twin in zip(functions, through_a_file(functions, tmp_path, [w])):
        same(derivatives(twin, [ROWS], [w]), derivatives(function, [ROWS], [w]), 1e-6)


def test_a_gradient_that_was_registered_for_an_op_travels_as_a_graph(tmp_path):
    from tapewright.core.rules import elementwise

    @elementwise
    def doubled_for_files(xp, x):
        return 2 * x

    op = doubled_for_files.primitive

    @tw.RegisterGradient("DoubledForFiles")
    def _(call, g):
        return 3.0 * g * call.inputs[0]

    function = traced([None])(lambda x: doubled_for_files(x) * x)
    wanted = derivatives(function, ROWS[:1])
    (loaded,) = through_a_file([function], tmp_path)
    op.registered = None  # as in a process in which nobody has registered it
    op.recorders.clear()
    same(derivatives(loaded, ROWS[:1]), wanted, 1e-6)


def test_the_gradient_of_a_loaded_function_agrees_with_finite_differences(tmp_path):
    function = tw.function(
        lambda x: tw.reduce_sum(tw.recompute_grad(tw.sin)(x) * x**2),
        input_signature=[tw.TensorSpec([None], "float64")],
    )
    (loaded,) = through_a_file([function], tmp_path)
    tw.test.check_gradients(loaded, [np.array([0.3, -0.4, 1.2])])


# -------------------------------------------------------------------- sizes and ranks


def by_rank(x):
    rank = x.shape.rank
    return cubed(x) * (0.0 if rank is None else float(rank))


def by_size(x):
    if x.shape[0] == 1:
        return x * 2.0
    return x * 5.0 if x.shape[0] > 6 else x * 3.0


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 2, 1), (2, 1, 1, 2), (1,) * 8])
def test_a_function_of_any_rank_serves_every_rank(shape, tmp_path):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    functions = [traced(None)(cubed), traced(None)(by_rank)]
    for function, loaded in zip(functions, through_a_file(functions, tmp_path)):
        same(derivatives(loaded, [x]), derivatives(function, [x]), 1e-6)


def test_sizes_that_the_code_asks_for_have_traces_of_their_own(tmp_path):
    function = traced([None, None])(by_size)
    (loaded,) = through_a_file([function], tmp_path)
    for rows in range(12):
        for columns in (0, 1, 2, rows):
            x = np.ones((rows, columns), np.float32)
            np.testing.assert_array_equal(loaded(x), function(x))


def test_two_inputs_of_unknown_rank_broadcast_as_before(tmp_path):
    (loaded,) = through_a_file(
        [traced(None, None)(lambda x, y: cubed(x) + y)], tmp_path
    )
    for x in (np.float32(2.0), ROWS[0], ROWS):
        for y in (np.float32(1.0), ROWS[0], ROWS[:1], np.ones((4, 2, 3), np.float32)):
            np.testing.assert_allclose(loaded(x, y), x**3 + y, rtol=1e-6)


def test_a_rank_that_the_code_refuses_is_refused_with_its_reason(tmp_path):
    function = traced(None)(tw.linalg.matrix_transpose)
    (loaded,) = through_a_file([function], tmp_path)
    assert loaded(ROWS).shape == (3, 2)
    with pytest.raises(ValueError, match="ranks .0. .* two axes or more"):
        loaded(1.0)


def test_a_gradient_that_needs_the_rank_has_a_graph_for_each(tmp_path):
    @tw.custom_gradient
    def summed(x):
        return 2.0 * x, lambda g: g * tw.reduce_sum(x, axis=0)

    function = traced(None)(lambda x: summed(x))
    (loaded,) = through_a_file([function], tmp_path)
    for x in (ROWS[0], ROWS, ROWS[None]):
        wanted = derivatives(function, [x])
        np.testing.assert_allclose(wanted[1], np.broadcast_to(x.sum(0), x.shape), 1e-6)
        same(derivatives(loaded, [x]), wanted, 1e-6)


def test_code_that_needs_all_sizes_is_saved_for_those_that_it_was_called_with(tmp_path):
    function = traced([None, 3])(
        lambda x: tw.stack([x[i] * i for i in range(x.shape[0])])
    )
    with pytest.raises(
        SavingError, match=r"test_graphs.py:\d+: .* call it before saving"
    ):
        through_a_file([function], tmp_path)
    function(ROWS)
    (loaded,) = through_a_file([function], tmp_path)
    np.testing.assert_array_equal(loaded(ROWS), function(ROWS))
    with pytest.raises(
        ValueError, match=r"without a trace for the shapes \[\(1, 3\)\]"
    ):
        loaded(ROWS[:1])


# ----------------------------------------------------------------------------- state


def test_variables_are_assigned_as_before(tmp_path):
    v = tw.Variable(1.0)

    @traced([])
    def step(x):
        with tw.GradientTape() as tape:
            y = (v - x) ** 2
        v.assign_sub(0.1 * tape.gradient(y, v))
        return y + v

    (loaded,) = through_a_file([step], tmp_path, [v])
    wanted = [float(step(3.0)) for _ in range(4)]
    v.assign(1.0)
    assert [float(loaded(3.0)) for _ in range(4)] == wanted


def test_random_numbers_go_on_where_they_were(tmp_path):
    generator = tw.random.Generator.from_seed(3)
    function = traced([4])(lambda x: tw.nn.dropout(x, 0.5) + generator.normal([4]))
    function(tw.ones(4))
    before = [v.numpy() for v in function.get_concrete_function().variables]
    states = list(function.get_concrete_function().variables)
    (loaded,) = through_a_file([function], tmp_path, states)
    wanted = [function(tw.ones(4)).numpy() for _ in range(3)]
    for state, value in zip(states, before):
        state.assign(value)
    np.testing.assert_array_equal([loaded(tw.ones(4)) for _ in range(3)], wanted)


def test_prints_and_assertions_are_kept(tmp_path, capsys):
    @traced([3])
    def checked(x):
        tw.print("x:", x, [x[0], 3], output_stream=sys.stdout, summarize=2)
        tw.debugging.check_numerics(x, "numbers")
        tw.debugging.assert_less(x, 10.0, message="too large")
        tw.debugging.assert_near(x, x)
        tw.debugging.Assert(tw.reduce_sum(x) < 9.0, ["sum", x])
        return x

    (loaded,) = through_a_file([checked], tmp_path)
    loaded([1.0, 2.0, 3.0])
    assert capsys.readouterr().out == "x: [1 2 3] [1, 3]\n"
    with pytest.raises(ValueError, match="too large"):
        loaded([11.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="sum"):
        loaded([5.0, 5.0, 5.0])
    with pytest.raises(FloatingPointError, match="numbers"):
        loaded([float("-inf"), 0.0, 0.0])


REFUSED = {
    "py_function": lambda x: tw.py_function(lambda a: a, [x], tw.TensorSpec([3])),
    "numpy_function": lambda x: tw.numpy_function(np.sin, [x], tw.TensorSpec([3])),
    r"float\(\)": lambda x: tw.constant(float(x[0])),
    "print": lambda x: (tw.print(x, output_stream=str), x)[1],
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_file_can_keep_is_refused_with_its_line(words, tmp_path):
    with pytest.raises(SavingError, match=rf"test_graphs.py:\d+: {words}"):
        through_a_file([traced([3])(REFUSED[words])], tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_update_of_an_optimizer_is_refused_with_its_line(tmp_path):
    v, optimizer = tw.Variable(1.0), tw.keras.optimizers.SGD(0.1)

    @traced([])
    def step(x):
        optimizer.apply_gradients([(x * v, v)])
        return x

    step(1.0)
    with pytest.raises(SavingError, match=r"test_graphs.py:\d+: apply_gradients"):
        through_a_file([step], tmp_path)


def test_a_custom_gradient_that_cannot_be_traced_is_refused_with_its_line(tmp_path):
    @tw.custom_gradient
    def bad(x):
        return x * 2.0, lambda g: g * float(x)

    with pytest.raises(
        SavingError, match=r"test_graphs.py:\d+: .*gradient function of bad"
    ):
        through_a_file([traced([])(lambda x: bad(x))], tmp_path)


# ---------------------------------------------------------------------------- layers


class ClippedScale(tw.layers.Layer):
    """Scales; the gradient of the inputs is clipped, that of the weight is doubled."""

    def build(self, shape):
        self.scale = self.add_weight(
            shape=(shape[-1],), initializer="ones", name="scale"
        )

    def call(self, inputs):
        @tw.custom_gradient
        def scaled(x):
            def gradient(g, variables=None):
                weights = [2.0 * tw.reduce_sum(g * x, axis=0)]
                return tw.clip_by_norm(g * self.scale, 0.5), weights

            return x * self.scale, gradient

        return scaled(inputs)


@pytest.mark.parametrize("training", [False, True])
def test_the_call_of_a_layer_runs_on_weights_from_outside(training, tmp_path):
    inputs = tw.Input((3,))
    layer = ClippedScale()
    tw.Model(inputs, layer(tw.layers.Dense(3)(inputs)))
    layer.scale.assign([1.0, 2.0, 3.0])
    path = tmp_path / "model.h5"
    with writing(path) as root:
        group = root.group("tapewright/calls/clipped_scale")
        write_function(group, call_of(layer, training), list(layer.weights))
    weight = tw.Variable([1.0, 2.0, 3.0])
    with opened(path) as root:
        group = root.group("tapewright/calls/clipped_scale")
        call = read_function(group, [weight])
    wanted = derivatives(layer, [ROWS], [layer.scale], orders=1)
    same(derivatives(call, [ROWS], [weight], orders=1), wanted, 1e-6)
    np.testing.assert_allclose(np.linalg.norm(wanted[1]), 0.5, 1e-6)


def test_a_function_of_more_variables_than_there_are_is_refused(tmp_path):
    v = tw.Variable(2.0)
    path = tmp_path / "f"
    with writing(path) as root:
        write_function(root, traced([])(lambda x: x * v), [])
    with (
        opened(path) as root,
        pytest.raises(SavingError, match="there is no variable 0"),
    ):
        read_function(root, [])
