"""Weights of layers: their order and names, what holds them, freezing."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras, layers
from tapewright.layers import BatchNormalization, Dense, Dropout, Layer
from tapewright.serialization.constructor_arguments import constructor_arguments

from .own_layers import Outer, Scale


def test_trainable_weights_come_first_and_inner_layers_last():
    class Mixed(Layer):
        def __init__(self):
            super().__init__()
            self.norm = BatchNormalization()
            self.blocks = {"b": Dense(1), "a": [Dense(2)]}

        def build(self, input_shape):
            self.steps = self.add_weight((), "zeros", name="steps", trainable=False)
            self.gain = self.add_weight((), "ones", name="gain")

        def call(self, inputs):
            x = self.blocks["a"][0](self.norm(inputs)) * self.gain
            return self.blocks["b"](x)

    layer = Mixed()
    layer(tw.ones([2, 3]))
    # as Keras orders them: own ones first, layers by attribute; dicts by key, as in nest
    assert [v.path.partition("/")[2].split("/")[-1] for v in layer.weights] == [
        *("gain", "steps", "gamma", "beta", "moving_mean", "moving_variance"),
        *("kernel", "bias", "kernel", "bias"),
    ]
    assert len(layer.trainable_variables) == 7
    assert len(layer.non_trainable_variables) == 3


def test_a_shared_layer_counts_once_at_its_first_place():
    shared, other = Dense(3, name="shared"), Dense(3, name="other")
    layer = Outer(shared, other, shared)
    layer(tw.ones([1, 3]))
    paths = [v.path.split("/")[1] for v in layer.weights]
    assert paths == ["shared", "shared", "other", "other"]


class Plain(Layer):
    """Variables of both kinds, and a module, in attributes."""

    def __init__(self, **options):
        super().__init__(**options)
        self.w = tw.Variable(2.0, name="w")
        self.gain = keras.Variable(1.0, name="gain")
        self.steps = keras.Variable(0, trainable=False, name="steps")
        self.more = {"a": [tw.Variable(1.0), keras.Variable(1.0, name="more")]}
        self.module = tw.Module()
        self.module.dense = Dense(1)
        self.module.dense.build((None, 2))

    def call(self, inputs):
        return inputs * self.w * self.gain + self.more["a"][1]


def test_of_variables_in_attributes_those_of_keras_are_weights():
    layer = Plain()
    for variables in (layer.trainable_weights, layer.trainable_variables):
        assert [v.name for v in variables] == ["gain", "more"]
    assert [v.name for v in layer.non_trainable_weights] == ["steps"]
    model = keras.Sequential([layer])
    model.lam = tw.Variable(1.0)
    assert [v.name for v in model.variables] == ["gain", "more", "steps"]
    holder = tw.Module()  # of TensorFlow, which finds them all
    holder.layer = layer
    assert len(holder.variables) == 7


def test_optimizers_and_tapes_take_a_variable_that_is_no_weight():
    model = keras.Sequential([keras.Input((1,)), Plain()])
    w = model.layers[0].w
    optimizer = keras.optimizers.SGD(0.1)
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(model(tw.ones([1, 1])))
    variables = [*model.trainable_variables, w]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    assert [float(v) for v in variables] == pytest.approx([0.8, 0.9, 1.9])


def test_generator_states_are_variables_but_no_weights():
    layer = Outer(Dropout(0.5, seed=1))
    assert layer.weights == []
    assert len(layer.variables) == len(layer.non_trainable_variables) == 1


def test_names_are_unique_by_class_and_paths_name_the_owners():
    first, second = Scale(), Scale()
    stem, _, number = second.name.partition("_")
    assert stem == "scale" and first.name != second.name
    assert number == str(int(first.name.partition("_")[2] or 0) + 1)
    outer = Outer(Outer(Scale(name="third"), name="inner"), name="outer")
    outer(tw.ones([1, 2]))
    (gamma,) = outer.weights
    assert gamma.name == "gamma" and gamma.path == "outer/inner/third/gamma"


SEPARABLE = {"depthwise_kernel": "depthwise", "pointwise_kernel": "pointwise"}
RECURRENT = {"kernel": "kernel", "recurrent_kernel": "recurrent", "bias": "bias"}


@pytest.mark.parametrize(
    "cls, arguments, shapes, prefixes",
    [
        (layers.Dense, [2], [(1, 3)], {}),
        (layers.EinsumDense, ["ab,bc->ac", 2, None, "c"], [(1, 3)], {}),
        (layers.Conv1D, [2, 2], [(1, 4, 3)], {}),
        (layers.Conv2DTranspose, [2, 2], [(1, 4, 4, 3)], {}),
        (layers.DepthwiseConv1D, [2], [(1, 4, 3)], {"kernel": "depthwise"}),
        (layers.SeparableConv1D, [2, 2], [(1, 4, 3)], SEPARABLE),
        (layers.BatchNormalization, [], [(1, 3)], {}),
        (layers.LayerNormalization, [], [(1, 3)], {}),
        (layers.GroupNormalization, [1], [(1, 3)], {}),
        (layers.Embedding, [5, 2], [(1,)], {}),
        (layers.PReLU, [], [(1, 3)], {}),
        (layers.SimpleRNNCell, [2], [(1, 3)], RECURRENT),
        (layers.GRUCell, [2], [(1, 3)], RECURRENT),
        (layers.LSTMCell, [2], [(1, 3)], RECURRENT),
        (layers.MultiHeadAttention, [1, 2], [(1, 4, 3)] * 2, {}),
        (layers.GroupedQueryAttention, [2, 2, 1], [(1, 4, 3)] * 2, {}),
    ],
)
def test_each_weight_is_made_by_the_arguments_of_its_name(
    cls, arguments, shapes, prefixes
):
    names = [n for n in constructor_arguments(cls) if n.endswith("_constraint")]
    settings = {}
    for i, name in enumerate([n.removesuffix("_constraint") for n in names]):
        settings[f"{name}_initializer"] = layers.initializers.Constant(i + 2)
        settings[f"{name}_regularizer"] = layers.regularizers.L2(i + 2)
        settings[f"{name}_constraint"] = layers.constraints.MaxNorm(i + 2)
    if cls is layers.LSTMCell:
        settings["unit_forget_bias"] = False
    layer = cls(*arguments, **settings)
    layer.build(*shapes)
    penalties = iter(layer.losses)
    for weight in layer.trainable_weights:
        name = weight.path.rpartition("/")[2]
        prefix = prefixes.get(name, name)
        initializer = settings[f"{prefix}_initializer"]
        np.testing.assert_array_equal(weight, initializer(weight.shape))
        assert weight.constraint is settings[f"{prefix}_constraint"]
        expected = settings[f"{prefix}_regularizer"](weight)
        np.testing.assert_allclose(next(penalties), expected, rtol=1e-6)
    assert next(penalties, None) is None
    for argument, value in settings.items():
        assert getattr(layer, argument) is value


def test_add_weight_takes_keywords_as_keras_does():
    layer = Layer(name="l")
    w = layer.add_weight(
        shape=(2,), initializer="zeros", trainable=False, name="w", dtype="int32"
    )
    assert w.dtype == "int32" and not w.trainable and w.path == "l/w"


def test_add_weight_takes_shape_initializer_and_dtype_by_position():
    layer = Layer(name="l")
    assert layer.add_weight((2,), "ones", name="a").numpy().tolist() == [1, 1]
    assert layer.add_weight((2,), "zeros", "int32", name="b").dtype == "int32"
    assert layer.add_weight((2,), initializer="ones", name="c").path == "l/c"
    assert layer.add_weight(shape=(3,), initializer="ones").shape == (3,)


def test_add_weight_refuses_unknown_dimensions_and_names_that_are_none():
    with pytest.raises(ValueError, match=r"layer 'l' .*'w'.*got \(None, 2\)"):
        Layer(name="l").add_weight((None, 2), name="w")
    with pytest.raises(TypeError, match="name .*got 3"):
        Layer().add_weight((2,), "zeros", name=3)
    with pytest.raises(ValueError, match="name by keyword"):
        Layer().add_weight("w", (2,))
    with pytest.raises(TypeError, match="by position"):
        Layer().add_weight((2,), "zeros", "float32", True)
    with pytest.raises(ValueError, match="shape .*twice"):
        Layer().add_weight((2,), shape=(2,))


@pytest.mark.parametrize("value", ["no", "False", None, 2, [True]])
def test_trainable_is_true_or_false(value):
    with pytest.raises(ValueError, match="trainable .*True.*False"):
        Layer(trainable=value)
    with pytest.raises(ValueError, match="trainable .*True.*False"):
        Dense(2, trainable=value)


def test_containers_may_hold_themselves():
    class Cyclic(Layer):
        def __init__(self):
            super().__init__()
            self.parts = [Dense(1)]
            self.parts.append({"again": self.parts, "other": Dense(1)})

        def call(self, inputs):
            return self.parts[0](inputs) + self.parts[1]["other"](inputs)

    layer = Cyclic()
    layer(np.ones((1, 2), "float32"))
    assert len(layer.weights) == 4 and layer.metrics == []


def test_set_weights_checks_all_before_it_assigns():
    layer = Dense(2, name="d")
    layer.build((None, 3))
    before = layer.get_weights()
    with pytest.raises(ValueError, match="set_weights .*layer 'd'.*2.*got 1"):
        layer.set_weights([np.ones((3, 2))])
    with pytest.raises(ValueError, match=r"'d/bias'.*shape \(2,\).*\(3,\)"):
        layer.set_weights([np.ones((3, 2)), np.ones(3)])
    np.testing.assert_array_equal(layer.get_weights()[0], before[0])
    layer.set_weights([np.full((3, 2), 7.0), np.ones(2)])
    assert layer.kernel.numpy().tolist() == [[7, 7]] * 3


def test_count_params_needs_a_built_layer():
    layer = Dense(4)
    with pytest.raises(ValueError, match="not built"):
        layer.count_params()
    layer.build((None, 3))
    assert layer.count_params() == 16


def test_freezing_reaches_the_layers_inside_and_can_be_undone():
    layer = Outer(Dense(2), BatchNormalization())
    layer(tw.ones([2, 2]))
    layer.trainable = False
    assert layer.trainable_variables == [] and not layer.inner[0].trainable
    assert not any(v.trainable for v in layer.variables)
    layer.trainable = True
    assert [v.name for v in layer.non_trainable_variables] == [
        "moving_mean",
        "moving_variance",
    ]


def test_freezing_keeps_the_order_of_the_weights():
    layer = BatchNormalization(trainable=False)
    layer.build((None, 2))
    names = ["gamma", "beta", "moving_mean", "moving_variance"]
    assert [v.name for v in layer.weights] == names
    layer.trainable = True
    assert [v.name for v in layer.weights] == names
    assert len(layer.trainable_variables) == 2


def test_a_layer_frozen_for_a_call_has_gradients_as_in_tensorflow():
    layer = Dense(2)
    layer.build((None, 2))
    layer.trainable = False
    with tw.GradientTape() as tape:
        y = layer(tw.ones([1, 2]))
    assert tape.watched_variables() == (layer.kernel, layer.bias)
    layer.trainable = True
    gradients = tape.gradient(y, layer.trainable_variables)
    assert [g.numpy().tolist() for g in gradients] == [[[1, 1], [1, 1]], [1, 1]]


class Counting(layers.Layer):
    def build(self, input_shape):
        self.count = self.add_weight((), "zeros", trainable=False)

    def call(self, inputs):
        self.count = self.count + 1
        return inputs


class Doubling(layers.Dense):
    """Dense with twice the kernel, which takes its place for the time of a call."""

    def call(self, inputs):
        kernel = self.kernel
        self.kernel = 2 * kernel
        outputs = super().call(inputs)
        self.kernel = kernel
        return outputs


def test_a_call_that_replaces_a_variable_by_a_tensor_is_refused():
    layer = Counting()
    layer.build((None, 2))
    count = layer.count
    calls = [lambda: layer(tw.ones((1, 2))), lambda: Counting()(tw.ones((1, 2))),
             lambda: tw.keras.Sequential([tw.keras.Input((2,)), Counting()])]  # fmt: skip
    for call in calls:
        with pytest.raises(
            TypeError, match="Counting.call replaced.*self.count.assign"
        ):
            call()
    assert layer.count is count


def test_a_tensor_may_take_the_place_of_a_variable_for_a_while_or_from_outside():
    x = tw.ones((1, 2))
    layer = Doubling(1, kernel_initializer="ones")
    assert layer(x).numpy() == 4 == layer(x).numpy()
    assert tw.function(layer)(x).numpy() == 4
    kernel = layer.kernel
    layer.kernel = 3 * kernel
    assert layer(x).numpy() == 12
    layer.kernel = kernel
    assert layer(x).numpy() == 4


class HalvedInBuild(layers.Layer):
    def build(self, input_shape):
        self.scale = self.add_weight((input_shape[-1],), "ones", name="scale")
        self.scale = self.scale / 2.0

    def call(self, inputs):
        return inputs * self.scale


def test_a_tensor_may_take_the_place_of_a_variable_in_build():
    layer = HalvedInBuild()
    assert layer(tw.ones((1, 1))).numpy() == 0.5 == layer(tw.ones((1, 1))).numpy()


class WeightInCall(layers.Layer):
    def call(self, inputs):
        return inputs * self.add_weight((inputs.shape[-1],), name="gamma")


class WeightAfterSuper(layers.Layer):
    def build(self, input_shape):
        super().build(input_shape)
        self.gamma = self.add_weight((input_shape[-1],), "ones", name="gamma")

    def call(self, inputs):
        return inputs * self.gamma


def test_a_layer_that_is_built_takes_no_more_weights():
    message = (
        r"layer '\w+' \(WeightInCall\): weight 'gamma' cannot be added .*built, as "
    )
    with pytest.raises(ValueError, match=message):
        WeightInCall()(tw.ones((1, 2)))
    with pytest.raises(ValueError, match=message):
        tw.keras.Sequential([tw.keras.Input((2,)), WeightInCall()])
    layer = WeightInCall()
    layer.built = True
    with pytest.raises(ValueError, match=message):
        layer(tw.ones((1, 2)))
    layer = WeightAfterSuper()
    assert layer(tw.ones((1, 2))).shape == (1, 2)
    with pytest.raises(
        ValueError, match="'beta' cannot be added to a layer that is al"
    ):
        layer.add_weight((), name="beta")
    assert len(layer.weights) == 1
