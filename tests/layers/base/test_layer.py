"""`Layer`: building, training mode, losses, masks, shapes, errors."""

from unittest import mock

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import Dense, Layer

from .own_layers import Outer, Scale


class Mode(Layer):
    """Adds 1 in training."""

    def call(self, inputs, training=None):
        return inputs + 1.0 if training else inputs


def test_weights_are_made_on_the_first_call_only():
    layer = Scale()
    assert layer.variables == [] and not layer.built
    layer(tw.ones([2, 3]))
    gamma = layer.gamma
    layer(tw.ones([2, 3]))
    assert layer.built and layer.gamma is gamma and len(layer.weights) == 1


def test_an_explicit_build_is_not_repeated_by_the_first_call():
    layer = Scale()
    layer.build((None, 3))
    gamma = layer.gamma
    layer(tw.ones([2, 3]))
    layer.build((None, 3))
    assert layer.gamma is gamma and len(layer.weights) == 1


def test_a_subclass_may_extend_build():
    class Shifted(Scale):
        def build(self, input_shape):
            super().build(input_shape)
            self.beta = self.add_weight((input_shape[-1],), "zeros", name="beta")

        def call(self, inputs):
            return super().call(inputs) + self.beta

    layer = Shifted()
    layer(tw.ones([2, 3]))
    assert [v.name for v in layer.weights] == ["gamma", "beta"]


def test_a_failed_build_leaves_no_weights_behind():
    class Fragile(Layer):
        def build(self, input_shape):
            self.add_weight((1,), "zeros", name="first")
            self.built = True  # as some set it by hand, too early here
            if len(input_shape) != 2:
                raise ValueError("rank")

        def call(self, inputs):
            return inputs

    class Around(Layer):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def call(self, inputs):
            return self.inner(inputs)

    layer = Fragile()
    Around(layer).build((None,))  # which leaves errors to the first call
    for _ in range(2):
        with pytest.raises(ValueError, match="rank"):
            layer(tw.ones([2]))
    layer(tw.ones([2, 2]))
    assert len(layer.weights) == 1


def test_building_inside_a_tape_records_the_weights_as_any_other():
    layer = Dense(2, kernel_initializer="he_normal")
    with tw.GradientTape() as tape:
        y = layer(tw.ones([1, 3]))
    kernel, bias = tape.gradient(y, layer.trainable_variables)
    assert kernel.numpy().tolist() == [[1, 1]] * 3 and bias.numpy().tolist() == [1, 1]


def test_lists_and_arrays_become_tensors_of_the_layers_dtype():
    layer = Scale()
    assert layer([[1.0, 2.0]]).dtype == "float32"
    assert layer(np.ones((1, 2))).dtype == "float32"
    assert Scale(dtype="float64")(tw.ones([1, 2])).dtype == "float64"


def test_the_cast_of_inputs_passes_gradients():
    x = tw.constant([[2.0]], dtype=tw.float64)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = Scale(gamma_initializer=tw.initializers.Constant(3.0))(x)
    g = tape.gradient(y, x)
    assert g.dtype == "float64" and g.numpy().tolist() == [[3.0]]


def test_integers_are_not_cast():
    class Same(Layer):
        def call(self, inputs):
            return inputs

    assert Same()(np.arange(3)).dtype == "int64"


def test_several_inputs_keep_their_structure():
    class Add(Layer):
        def build(self, input_shape):
            self.shapes = input_shape

        def call(self, inputs):
            return inputs[0] + inputs[1]

    layer = Add()
    y = layer([np.ones((2, 3)), tw.ones([2, 1])])
    assert y.dtype == "float32" and layer.shapes == [(2, 3), (2, 1)]


def test_the_inputs_may_be_given_by_name():
    assert Scale()(inputs=tw.ones([1, 2])).shape == (1, 2)
    with pytest.raises(TypeError, match="'inputs'.*missing"):
        Scale()()


@pytest.mark.parametrize("training, expected", [(True, 1.0), (False, 0.0), (None, 0.0)])
def test_training_reaches_layers_inside_that_do_not_name_it(training, expected):
    layer = Outer(Outer(Mode()))
    assert float(layer(tw.zeros([]), training=training)) == expected


def test_training_given_by_position_is_the_same():
    assert float(Mode()(tw.zeros([]), True)) == 1.0
    assert float(Outer(Mode())(tw.zeros([]), training=True)) == 1.0


def test_a_call_that_a_class_is_given_later_has_arguments_of_its_own():
    class Later(tw.keras.Model):
        pass

    model = Later()
    Later.call = lambda self, inputs: 2.0 * inputs
    model.compile(loss="mse")
    assert model.evaluate(np.ones([1, 2]), np.ones([1, 2]), verbose=0) == 1.0
    Later.call = lambda self, inputs, training=None: inputs + (1.0 if training else 0.0)
    assert float(model(tw.zeros([]), training=True)) == 1.0
    with mock.patch.object(Later, "call", return_value=tw.ones([2])):
        assert model(tw.zeros([])).shape == (2,)


def test_training_ends_with_the_call():
    layer = Outer(Mode())
    layer(tw.zeros([]), training=True)
    assert float(layer(tw.zeros([]))) == 0.0


def test_training_ends_with_a_call_that_fails():
    class Failing(Layer):
        def call(self, inputs):
            raise KeyError("no")

    with pytest.raises(KeyError):
        Failing()(tw.zeros([]), training=True)
    assert float(Mode()(tw.zeros([]))) == 0.0


def test_an_inner_call_may_decide_for_itself():
    class Frozen(Layer):
        def __init__(self):
            super().__init__()
            self.mode, self.other = Mode(), Mode()

        def call(self, inputs):
            return self.mode(inputs, training=False) + self.other(inputs)

    assert float(Frozen()(tw.zeros([]), training=True)) == 1.0


def test_the_default_of_call_holds_when_nothing_is_said():
    class Eager(Layer):
        def __init__(self):
            super().__init__()
            self.mode = Mode()

        def call(self, inputs, training=True):
            return self.mode(inputs)

    class ByName(Eager):
        def call(self, inputs, *, training=True):
            return self.mode(inputs)

    assert float(Eager()(tw.zeros([]))) == float(ByName()(tw.zeros([]))) == 1.0


def test_layers_without_weights_are_built_from_the_start():
    for layer in (
        layers.Dropout(0.5), layers.Activation("relu"), layers.ReLU(), layers.Softmax(),
        layers.Masking(), layers.Identity(), layers.MaxPooling2D(), layers.Reshape((2,)),
        layers.GlobalAveragePooling1D(), layers.GaussianNoise(0.1), layers.Flatten(),
        layers.SpatialDropout1D(0.1), layers.UnitNormalization(),
    ):  # fmt: skip
        assert layer.built, layer
        with_build = type("WithBuild", (type(layer),), {"build": lambda self, s: None})
        assert not with_build.built
    assert not layers.Dense(2).built and not Layer().built


def test_a_layer_that_is_built_from_the_start_notes_the_shape_of_its_outputs():
    class Outer(tw.keras.Model):
        def __init__(self):
            super().__init__()
            self.flat = layers.Flatten(name="flat")

        def call(self, inputs):
            return self.flat(inputs)

    model, lines = Outer(), []
    model(np.ones((2, 3, 4), "float32"))
    model.summary(print_fn=lines.append)
    assert any("(2, 12)" in line for line in "\n".join(lines).splitlines())


def test_regularizers_make_losses_through_which_gradients_flow():
    layer = Outer(Dense(1, kernel_regularizer="l2", kernel_initializer="ones"))
    layer(tw.ones([1, 2]))
    with tw.GradientTape() as tape:
        (penalty,) = layer.losses
    assert float(penalty) == pytest.approx(0.01 * 2)
    gradient = tape.gradient(penalty, layer.inner[0].kernel)
    np.testing.assert_allclose(gradient, [[0.02], [0.02]], rtol=1e-6)


def test_frozen_weights_have_no_penalty():
    layer = Dense(1, kernel_regularizer="l1")
    layer.build((None, 2))
    layer.trainable = False
    assert layer.losses == []


def test_unknown_arguments_are_answered_with_the_known_ones():
    with pytest.raises(TypeError, match="Dense: unknown argument 'z'.* are .*units"):
        Dense(3, z=4)
    with pytest.raises(TypeError, match="'unit' .*Did you mean 'units'"):
        Dense(3, unit=4)


def test_wrong_inputs_are_answered_with_layer_and_shapes():
    layer = Dense(2, name="head")
    layer(tw.ones([1, 3]))
    message = r"layer 'head' \(Dense\): expected size 3 on axis -1.*got shape \(1, 4\)"
    with pytest.raises(ValueError, match=message):
        layer(tw.ones([1, 4]))
    with pytest.raises(ValueError, match=r"rank 2.*got shape \(3,\)"):
        layer(tw.ones([3]))


def test_other_errors_carry_a_note_that_names_the_layer():
    class Failing(Layer):
        def call(self, inputs):
            raise KeyError("no")

    with pytest.raises(KeyError) as caught:
        Outer(Failing(name="f"), name="o")(tw.zeros([]))
    assert caught.value.__notes__ == ["in layer 'f' (Failing)", "in layer 'o' (Outer)"]


def test_a_forgotten_super_init_is_named():
    class Hasty(Layer):
        def __init__(self):
            self.units = 3

        def call(self, inputs):
            return inputs

    with pytest.raises(RuntimeError, match=r"Hasty: __init__ .*super\(\)"):
        Hasty()(tw.zeros([]))


def test_names_must_be_strings_without_slashes():
    with pytest.raises(ValueError, match="name .*'/'.*got 'a/b'"):
        Dense(1, name="a/b")


def test_a_layer_without_call_says_so():
    with pytest.raises(NotImplementedError, match="Layer must define call"):
        Layer()(tw.zeros([]))


def test_the_first_mask_of_a_process_may_be_attached_by_hand(monkeypatch):
    monkeypatch.setattr("tapewright.layers.base.masks._seen", False)
    x = tw.constant([[[1.0], [5.0]]])
    x._keras_mask = tw.constant([[True, False]])
    assert layers.GlobalAveragePooling1D()(x).numpy().tolist() == [[1.0]]


def test_the_output_shape_of_a_layer_that_does_not_tell_is_found_on_zeros():
    class Halves(Layer):
        def call(self, inputs):
            return tw.reduce_sum(tw.reshape(inputs, (len(inputs), 2, -1)), 1)

    assert Halves().compute_output_shape((None, 6)) == (None, 3)
    assert Halves().compute_output_shape((5, 6)) == (5, 3)


class TwoInside(Layer):
    def __init__(self, words=False, **kwargs):
        super().__init__(**kwargs)
        self.first = layers.Embedding(5, 3) if words else layers.Dense(3)
        self.last = layers.Dense(2)

    def call(self, inputs):
        return self.last(self.first(inputs))


def test_build_without_a_build_of_its_own_builds_the_layers_inside():
    layer = TwoInside(name="outer")
    layer.build((None, 4))
    paths = [w.path for w in layer.weights]
    assert layer.built and len(paths) == 4 and paths[0].startswith("outer/dense")
    layer(tw.ones((1, 4)))
    assert [w.path for w in layer.weights] == paths
    with tw.keras.saving.custom_object_scope({"TwoInside": TwoInside}):
        config = tw.keras.saving.serialize_keras_object(layer)
        twin = tw.keras.saving.deserialize_keras_object(config)
    assert twin.built and twin.weights[0].path.startswith("outer/")


def test_what_a_shape_does_not_build_the_first_call_builds():
    class Words(TwoInside):
        def call(self, inputs):
            if inputs.dtype.is_floating:
                raise TypeError("words must be integers")
            return super().call(inputs)

    layer = Words(words=True, name="outer")
    layer.build((None, 4))
    assert not layer.built and not layer.weights
    layer(tw.constant([[1, 2]]))
    assert layer.built and all([w.path.startswith("outer/") for w in layer.weights])


def test_an_error_of_a_trace_names_the_layer_that_is_traced():
    class Branching(Layer):
        def call(self, inputs):
            return inputs if float(tw.reduce_sum(inputs).numpy()) > 0 else -inputs

    with pytest.raises(
        tw.errors.TracingError, match="'Branching.call' is being traced"
    ):
        Branching()(tw.keras.Input((3,)))


@pytest.mark.parametrize("name", ["dtype", "compute_dtype", "variable_dtype"])
def test_an_attribute_that_is_taken_is_named(name):
    layer = Dense(2)
    assert getattr(layer, name) == "float32"
    with pytest.raises(AttributeError, match=f"'{name}'"):
        setattr(layer, name, "float64")
