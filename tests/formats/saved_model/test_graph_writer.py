"""Graphs in files: every op with its gradient, control flow, layers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.tracing.interpret import interpret
from tapewright.formats.saved_model.functions import read_function, write_function
from tapewright.formats.saved_model.signature_functions import call_of
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

from ...compiler import test_every_op as every_op
from .saving import ROWS, cubed, derivatives, same, through_a_file, traced

CASES = [
    each
    for name in sorted(every_op.TABLE.keys() - every_op.SIZED_BY_VALUES)
    for each in every_op.TABLE[name][:2]
]


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
        pytest.raises(tw.errors.SavingError, match="there is no variable 0"),
    ):
        read_function(root, [])


def test_an_op_whose_name_another_has_taken_since_the_trace_is_refused(tmp_path):
    from tapewright.core.rules import elementwise

    def tripled_for_files(xp, x):
        return 3 * x

    first = elementwise(tripled_for_files)
    function = traced([None])(lambda x: first(x))
    through_a_file([function], tmp_path)
    elementwise(tripled_for_files)
    with pytest.raises(
        tw.errors.SavingError, match="'tripled_for_files'.* a unique name"
    ):
        through_a_file([function], tmp_path)
