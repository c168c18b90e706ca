"""`Layer`: building, weights and their order, training mode, config, errors."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import BatchNormalization, Dense, Dropout, InputSpec, Layer
from tapewright.layers.initializers import HeNormal
from tapewright.serialization import object_config, registry


class Scale(Layer):
    def __init__(self, gamma_initializer="ones", **kwargs):
        super().__init__(**kwargs)
        self.gamma_initializer = tw.initializers.get(gamma_initializer)

    def build(self, input_shape):
        self.gamma = self.add_weight(
            (input_shape[-1],), self.gamma_initializer, name="gamma"
        )

    def call(self, inputs):
        return inputs * self.gamma


class Mode(Layer):
    """Adds 1 in training."""

    def call(self, inputs, training=None):
        return inputs + 1.0 if training else inputs


class Outer(Layer):
    """Has layers inside, and takes no ``training``."""

    def __init__(self, *inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = list(inner)

    def call(self, inputs):
        for layer in self.inner:
            inputs = layer(inputs)
        return inputs


# ------------------------------------------------------------------------- building


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
            if len(input_shape) != 2:
                raise ValueError("rank")

        def call(self, inputs):
            return inputs

    layer = Fragile()
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
    with pytest.raises(TypeError, match="'inputs' is missing"):
        Scale()()


# -------------------------------------------------------------------------- training


@pytest.mark.parametrize("training, expected", [(True, 1.0), (False, 0.0), (None, 0.0)])
def test_training_reaches_layers_inside_that_do_not_name_it(training, expected):
    layer = Outer(Outer(Mode()))
    assert float(layer(tw.zeros([]), training=training)) == expected


def test_training_given_by_position_is_the_same():
    assert float(Mode()(tw.zeros([]), True)) == 1.0
    assert float(Outer(Mode())(tw.zeros([]), training=True)) == 1.0


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

    assert float(Eager()(tw.zeros([]))) == 1.0


# --------------------------------------------------------------------------- weights


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


def test_variables_set_as_attributes_are_found():
    class Plain(Layer):
        def __init__(self):
            super().__init__()
            self.w = tw.Variable(2.0)
            self.steps = tw.Variable(0, trainable=False)

        def call(self, inputs):
            return inputs * self.w

    layer = Plain()
    assert layer.trainable_variables == [layer.w]
    assert len(layer.weights) == 2


def test_a_module_inside_is_searched_and_a_layer_inside_a_module_too():
    class Holder(tw.Module):
        def __init__(self):
            self.dense = Dense(1)

    holder = Holder()

    class User(Layer):
        def __init__(self):
            super().__init__()
            self.holder = holder

        def call(self, inputs):
            return self.holder.dense(inputs)

    layer = User()
    layer(tw.ones([1, 2]))
    assert len(holder.variables) == 2 and len(layer.weights) == 2


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
    with pytest.raises(ValueError, match=r"layer 'l' \(Layer\).*'w' must be known"):
        Layer(name="l").add_weight((None, 2), name="w")
    with pytest.raises(TypeError, match="name must be a string"):
        Layer().add_weight((2,), "zeros", name=3)
    with pytest.raises(ValueError, match="name by keyword"):
        Layer().add_weight("w", (2,))
    with pytest.raises(TypeError, match="by position"):
        Layer().add_weight((2,), "zeros", "float32", True)
    with pytest.raises(ValueError, match="shape is given twice"):
        Layer().add_weight((2,), shape=(2,))


@pytest.mark.parametrize("value", ["no", "False", None, 2, [True]])
def test_trainable_is_true_or_false(value):
    with pytest.raises(ValueError, match="trainable must be True or False"):
        Layer(trainable=value)
    with pytest.raises(ValueError, match="trainable must be True or False"):
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


def test_set_weights_checks_all_before_it_assigns():
    layer = Dense(2, name="d")
    layer.build((None, 3))
    before = layer.get_weights()
    with pytest.raises(ValueError, match="'d' has 2 weights; got 1"):
        layer.set_weights([np.ones((3, 2))])
    with pytest.raises(ValueError, match=r"'d/bias' is \(2,\), got \(3,\)"):
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


# -------------------------------------------------------------------------- freezing


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


def test_a_tape_does_not_watch_frozen_weights():
    layer = Dense(2, trainable=False)
    with tw.GradientTape() as tape:
        layer(tw.ones([1, 2]))
    assert tape.watched_variables() == ()


# ---------------------------------------------------------------------------- losses


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


# ---------------------------------------------------------------------------- config


def test_the_constructors_arguments_are_the_config():
    layer = Scale(gamma_initializer=HeNormal(), name="s", dtype="float64")
    assert layer.get_config() == {
        "name": "s",
        "trainable": True,
        "dtype": "float64",
        "gamma_initializer": {
            "module": "keras.initializers", "class_name": "HeNormal",
            "config": {"seed": None}, "registered_name": None,
        },
    }  # fmt: skip
    twin = Scale.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()


def test_a_layer_comes_back_by_its_registered_name():
    config = object_config.serialize(Scale(name="s"))
    assert config["class_name"] == "Scale"
    assert type(object_config.deserialize("layer", config)) is Scale


def test_serialized_layers_come_back_with_classes_of_ones_own_inside():
    config = layers.serialize(layers.TimeDistributed(Scale(name="s")))
    twin = layers.deserialize(config, custom_objects={"Scale": Scale})
    assert type(twin.layer) is Scale


def test_what_keras_files_say_of_missing_features_is_read_past_while_switched_off():
    off = {"quantization_config": None, "lora_rank": None}
    assert Dense.from_config({**Dense(2).get_config(), **off}).units == 2
    with pytest.raises(ValueError, match="Dense: lora_rank is not supported.*got 4"):
        Dense(2, lora_rank=4)


def test_a_class_of_the_users_does_not_displace_one_of_ours():
    class Dense(Layer):
        pass

    assert registry.find("layer", "Dense") is not Dense
    with registry.custom_object_scope({"Dense": Dense}):
        assert registry.find("layer", "Dense") is Dense


def test_an_argument_that_is_not_kept_is_named():
    class Forgetful(Layer):
        def __init__(self, size, **kwargs):
            super().__init__(**kwargs)
            self.n = size

    with pytest.raises(NotImplementedError, match="'size'.*is not kept"):
        Forgetful(np.float32(3)).get_config()


def test_a_plain_argument_need_not_be_kept():
    class Doubled(Layer):
        def __init__(self, size, sizes=(1, 2), **kwargs):
            super().__init__(**kwargs)
            self.size = 2 * size

    layer = Doubled(3, name="d")
    config = {"name": "d", "trainable": True, "dtype": "float32", "size": 3}
    assert layer.get_config() == config | {"sizes": [1, 2]}
    assert Doubled.from_config(layer.get_config()).size == 6


def test_plain_keywords_of_any_name_are_in_the_config():
    class Open(Layer):
        def __init__(self, **kwargs):
            self.size = 2 * kwargs.pop("size")
            super().__init__(**kwargs)

    config = Open(size=3, name="o").get_config()
    assert config["size"] == 3 and Open.from_config(config).size == 6


def test_positional_arguments_without_a_name_have_no_config():
    class Many(Layer):
        def __init__(self, *sizes, **kwargs):
            super().__init__(**kwargs)
            self.sizes = sizes

    class Passing(Dense):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    assert Passing.from_config(Passing(3).get_config()).units == 3
    with pytest.raises(NotImplementedError, match=r"Many.*\*args have no names"):
        Many(1, 2).get_config()


def test_name_and_dtype_come_back_where_the_constructor_does_not_take_them():
    class Closed(Layer):
        def __init__(self, size):
            super().__init__()
            self.size = size

        def get_config(self):
            config = super().get_config()
            config.update({"size": self.size})
            return config

    layer = Closed(3)
    layer.trainable = False
    config = layer.get_config()
    assert config == {
        "name": layer.name, "trainable": False, "dtype": "float32", "size": 3
    }  # fmt: skip
    assert Closed.from_config(config | {"dtype": "float64"}).get_config() == (
        config | {"dtype": "float64"}
    )


def test_get_config_may_be_extended():
    class Renamed(Layer):
        def __init__(self, size, **kwargs):
            super().__init__(**kwargs)
            self.n = size

        def get_config(self):
            return {**super().get_config(), "size": self.n}

    config = Renamed(3, name="r").get_config()
    assert config == {"name": "r", "trainable": True, "dtype": "float32", "size": 3}


def test_layers_can_be_copied_and_pickled():
    layer = Dense(2, activation="relu", trainable=False)
    layer.build((None, 2))
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(twin.kernel, layer.kernel)
        assert twin.kernel is not layer.kernel
        twin.trainable = True
        assert len(twin.trainable_variables) == 2
    assert layer.trainable_variables == []


# ---------------------------------------------------------------------------- errors


def test_unknown_arguments_are_answered_with_the_known_ones():
    with pytest.raises(TypeError, match="Dense: unknown argument 'unit'.* are .*units"):
        Dense(3, unit=4)


def test_wrong_inputs_are_answered_with_layer_and_shapes():
    layer = Dense(2, name="head")
    layer(tw.ones([1, 3]))
    message = r"layer 'head' \(Dense\): expected size 3 on axis -1.*got shape \(1, 4\)"
    with pytest.raises(ValueError, match=message):
        layer(tw.ones([1, 4]))
    with pytest.raises(ValueError, match=r"rank 2 or more.*got shape \(3,\)"):
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

    with pytest.raises(RuntimeError, match=r"Hasty: __init__ must call super\(\)"):
        Hasty()(tw.zeros([]))


def test_names_must_be_strings_without_slashes():
    with pytest.raises(ValueError, match="without '/'"):
        Dense(1, name="a/b")


def test_a_layer_without_call_says_so():
    with pytest.raises(NotImplementedError, match="Layer must define call"):
        Layer()(tw.zeros([]))


# ----------------------------------------------------------------------------- masks


def test_the_first_mask_of_a_process_may_be_attached_by_hand(monkeypatch):
    monkeypatch.setattr("tapewright.layers.base.masks._seen", False)
    x = tw.constant([[[1.0], [5.0]]])
    x._keras_mask = tw.constant([[True, False]])
    assert layers.GlobalAveragePooling1D()(x).numpy().tolist() == [[1.0]]


# ---------------------------------------------------------------------------- shapes


def test_the_output_shape_of_a_layer_that_does_not_tell_is_found_on_zeros():
    class Halves(Layer):
        def call(self, inputs):
            return tw.reduce_sum(tw.reshape(inputs, (len(inputs), 2, -1)), 1)

    assert Halves().compute_output_shape((None, 6)) == (None, 3)
    assert Halves().compute_output_shape((5, 6)) == (5, 3)


@pytest.mark.parametrize(
    "spec, shape, problem",
    [
        (InputSpec(ndim=2), (1, 2, 3), "rank 2"),
        (InputSpec(max_ndim=2), (1, 2, 3), "rank 2 or less"),
        (InputSpec(min_ndim=2), (1,), "rank 2 or more"),
        (InputSpec(axes={1: 4}), (1, 2), "size 4 on axis 1"),
        (InputSpec(axes={1: 4}), (1,), "size 4 on axis 1"),
        (InputSpec(shape=(None, 3)), (2, 4), "size 3 on axis 1"),
        (InputSpec(shape=(None, 3, 1), allow_last_axis_squeeze=True), (2, 4), "3, 1"),
    ],
)
def test_an_input_spec_names_the_problem(spec, shape, problem):
    assert problem in spec.problem(shape)


def test_unknown_dimensions_are_no_problem():
    assert InputSpec(ndim=2, axes={-1: 3}).problem((None, None)) is None


def test_a_last_axis_of_size_1_may_be_left_out():
    spec = InputSpec(shape=(None, 3, 1), allow_last_axis_squeeze=True)
    assert spec.problem((2, 3)) is None and spec.problem((2, 3, 1)) is None


def test_an_input_spec_may_demand_a_dtype():
    class Picky(Layer):
        input_spec = InputSpec(dtype="int32")

        def call(self, inputs):
            return inputs

    assert Picky()(np.array([1], np.int32)).numpy().tolist() == [1]
    assert Picky()(tw.Input((2,), dtype="int32")).shape[1] == 2
    for inputs in (np.array([1.0]), tw.Input((2,))):
        with pytest.raises(ValueError, match="expected inputs of dtype int32"):
            Picky()(inputs)
