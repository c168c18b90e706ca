"""What users make known, by which names, and what a file may find of it."""

import json

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import layers, saving
from tapewright.serialization import object_config, registry
from tapewright.serialization.load_errors import from_file


@pytest.fixture(autouse=True)
def as_before():
    known, names = dict(registry._CUSTOM), dict(registry._CUSTOM_NAMES)
    yield
    for held, before in ((registry._CUSTOM, known), (registry._CUSTOM_NAMES, names)):
        held.clear()
        held.update(before)


class Scale(layers.Layer):
    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs):
        return inputs * self.factor

    def get_config(self):
        config = super().get_config()
        config.update({"factor": self.factor})
        return config


def double(x):
    return 2 * x


def in_a_file(config, **options):
    """The layer of a config that comes from a file."""
    with from_file("net.keras", "config.json"), saving.custom_object_scope(options):
        return saving.deserialize_keras_object(json.loads(json.dumps(config)))


# ------------------------------------------------------------------------------ names


def test_a_class_is_known_by_its_package_and_name():
    assert saving.register_keras_serializable(package="mine")(Scale) is Scale
    assert saving.get_registered_name(Scale) == "mine>Scale"
    assert saving.get_registered_object("mine>Scale") is Scale
    assert saving.get_custom_objects()["mine>Scale"] is Scale


def test_package_and_name_have_defaults():
    saving.register_keras_serializable()(Scale)
    assert saving.get_registered_name(Scale) == "Custom>Scale"
    saving.register_keras_serializable("mine", name="Other")(Scale)
    assert saving.get_registered_name(Scale) == "mine>Other"


def test_what_was_not_registered_goes_by_its_own_name():
    assert saving.get_registered_name(Scale) == "Scale"
    assert saving.get_registered_object("Scale") is None
    assert saving.get_registered_object("Scale", {"Scale": Scale}) is Scale
    assert saving.get_registered_object("S", None, {"S": Scale}) is Scale


def test_a_class_without_a_config_cannot_be_registered():
    with pytest.raises(ValueError, match="Plain .*get_config"):

        @saving.register_keras_serializable()
        class Plain:
            pass


def test_a_decorator_without_brackets_is_told():
    with pytest.raises(TypeError, match="with parentheses"):
        saving.register_keras_serializable(Scale)


def test_what_is_put_into_the_dict_is_known():
    saving.get_custom_objects()["Scale"] = Scale
    assert type(in_a_file(saving.serialize_keras_object(Scale(2.0)))) is Scale


def test_a_scope_may_be_empty_or_reused():
    with saving.CustomObjectScope(None):
        pass
    scope = saving.custom_object_scope({"S": Scale})
    with scope:
        with scope:
            assert saving.get_registered_object("S") is Scale
        assert saving.get_registered_object("S") is Scale
    assert saving.get_registered_object("S") is None
    with pytest.raises(TypeError, match="custom_objects .*dict"):
        saving.custom_object_scope([Scale])


def test_keras_utils_has_the_same_names():
    for name in saving.__all__:
        if hasattr(keras.utils, name):
            assert getattr(keras.utils, name) is getattr(saving, name)
    assert keras.utils.get_custom_objects is saving.get_custom_objects


# ---------------------------------------------------------------------------- configs


def test_a_config_says_the_registered_name():
    saving.register_keras_serializable("mine")(Scale)
    config = saving.serialize_keras_object(Scale(2.0, name="s"))
    assert config == {
        "module": Scale.__module__, "class_name": "Scale",
        "registered_name": "mine>Scale",
        "config": {"name": "s", "trainable": True, "dtype": "float32", "factor": 2.0},
    }  # fmt: skip
    twin = saving.deserialize_keras_object(config)
    assert type(twin) is Scale and twin.factor == 2.0


def test_a_registered_class_is_found_whatever_the_module_says():
    saving.register_keras_serializable("mine")(Scale)
    config = saving.serialize_keras_object(Scale(2.0)) | {"module": "elsewhere"}
    assert type(in_a_file(config)) is Scale
    assert type(in_a_file(config | {"module": None})) is Scale


def test_classes_of_one_name_are_told_apart_by_their_packages():
    first = Scale
    saving.register_keras_serializable("first")(first)
    second = saving.register_keras_serializable("second", "Scale")(
        type("Second", (Scale,), {})
    )
    for cls in (first, second):
        config = saving.serialize_keras_object(cls(2.0))
        assert type(in_a_file(config)) is cls


def test_a_users_class_of_a_name_of_ours_comes_back_as_itself():
    class Dense(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

    config = layers.serialize(Dense(2))
    assert type(layers.deserialize(config)) is Dense
    assert type(layers.deserialize(layers.serialize(layers.Dense(2)))) is layers.Dense


@pytest.mark.parametrize("argument", ["activation", "kernel_initializer"])
def test_functions_come_back_by_their_registered_names(argument):
    saving.register_keras_serializable("mine")(double)
    config = saving.serialize_keras_object(layers.Dense(2, **{argument: double}))
    assert config["config"][argument]["config"] == "mine>double"
    assert getattr(in_a_file(config), argument) is double


def test_a_registered_function_may_be_that_of_a_lambda_layer():
    saving.register_keras_serializable("mine")(double)
    layer = in_a_file(saving.serialize_keras_object(layers.Lambda(double)))
    assert layer([3.0]).numpy().tolist() == [6.0]


@pytest.mark.parametrize(
    ("base", "arguments", "inside"),
    [
        (keras.losses.Loss, {"reduction": "sum"}, "loss"),
        (keras.metrics.Mean, {}, "metric"),
        (keras.optimizers.SGD, {"learning_rate": 0.5}, "optimizer"),
        (keras.optimizers.schedules.LearningRateSchedule, {}, "schedule"),
        (keras.regularizers.L2, {"l2": 0.5}, "regularizer"),
        (keras.constraints.MaxNorm, {"max_value": 3}, "constraint"),
        (keras.initializers.Constant, {"value": 2.0}, "initializer"),
    ],
)
def test_classes_of_every_kind_are_registered(base, arguments, inside):
    own = saving.register_keras_serializable("mine")(type("Own", (base,), {}))
    config = saving.serialize_keras_object(own(**arguments))
    assert config["registered_name"] == "mine>Own"
    found = in_a_file(config)
    assert type(found) is own and own._tw_kind == inside
    for name, value in arguments.items():
        assert found.get_config()[name] == value


# -------------------------------------------------------------------------- from files


def test_a_class_that_was_only_defined_is_not_found_from_a_file():
    config = saving.serialize_keras_object(Scale(2.0))
    assert type(saving.deserialize_keras_object(config, kind="layer")) is Scale
    message = r"net.keras \[config.json\]: .*'Scale' is unknown.*register_keras"
    with pytest.raises(tw.errors.SavingError, match=message):
        in_a_file(config)
    with from_file("net.h5"), pytest.raises(tw.errors.SavingError, match="'Scale'"):
        object_config.deserialize(
            "layer", {"class_name": "Scale", "config": {"factor": 2}}
        )


def test_an_unregistered_name_in_a_file_is_answered_with_custom_objects_first():
    with pytest.raises(tw.errors.SavingError) as error:
        in_a_file(saving.serialize_keras_object(Scale(2.0)))
    assert error.value.reason == (
        "the class 'Scale' is unknown: pass custom_objects={'Scale': Scale}. Register it "
        "with @keras.saving.register_keras_serializable() before saving, and "
        "custom_objects is not needed"
    )


def test_a_registered_name_in_a_file_is_answered_with_its_decorator():
    config = saving.serialize_keras_object(Scale(2.0))
    with pytest.raises(tw.errors.SavingError) as error:
        in_a_file({**config, "registered_name": "other>Scale"})
    assert error.value.reason == (
        "the class 'other>Scale' is unknown: decorate 'Scale' with "
        "@keras.saving.register_keras_serializable('other') before loading, or pass "
        "custom_objects={'other>Scale': Scale}"
    )


def test_custom_objects_are_found_from_a_file():
    assert (
        type(in_a_file(saving.serialize_keras_object(Scale(2.0)), Scale=Scale)) is Scale
    )
    config = {"class_name": "Scale", "config": {"factor": 2.0}}
    with from_file("net.h5"):
        twin = saving.deserialize_keras_object(config, {"Scale": Scale}, kind="layer")
    assert type(twin) is Scale


def test_functions_that_were_only_defined_are_not_found_from_a_file():
    config = saving.serialize_keras_object(layers.Dense(2, activation=double))
    with pytest.raises(tw.errors.SavingError, match="'double'"):
        in_a_file(config)
    assert in_a_file(config, double=double).activation is double


def test_the_code_of_a_lambda_layer_is_never_run_from_a_file():
    code = {"class_name": "__lambda__", "config": {"code": "4wEA", "defaults": None}}
    config = {
        "module": "keras.layers", "class_name": "Lambda", "registered_name": None,
        "config": {"name": "l", "function": code},
    }  # fmt: skip
    with pytest.raises(tw.errors.SavingError, match="Lambda 'l'.*Python code"):
        in_a_file(config)


def test_functions_of_python_are_none_that_a_file_may_name():
    for name in ("eval", "exec", "open", "os.system", "__import__"):
        function = object_config.function_config(name)
        config = saving.serialize_keras_object(layers.Dense(2))
        config["config"]["activation"] = function
        with pytest.raises(tw.errors.SavingError, match=f"{name}.*is unknown"):
            in_a_file(config)
        with (
            from_file("x.keras"),
            pytest.raises(tw.errors.SavingError, match="is unknown"),
        ):
            saving.deserialize_keras_object(function)


def test_a_registered_name_that_is_unknown_is_not_taken_for_one_of_ours():
    config = saving.serialize_keras_object(layers.Dense(2))
    with pytest.raises(tw.errors.SavingError, match="'mine>Dense'"):
        in_a_file(config | {"registered_name": "mine>Dense"})


def test_an_error_of_the_class_itself_names_the_file():
    saving.register_keras_serializable("mine")(Scale)
    config = saving.serialize_keras_object(Scale(2.0, name="s"))
    del config["config"]["factor"]
    with pytest.raises(tw.errors.SavingError, match="net.keras.*Scale 's'.*factor"):
        in_a_file(config)


# ------------------------------------------------------------- layers that build themselves


def test_a_layer_that_says_how_it_is_built_is_asked_inside_of_models():
    @saving.register_keras_serializable("mine")
    class Table(layers.Layer):
        def make(self, size):
            self.table = self.add_weight((size,), "ones", name="table")
            self.built = True

        def get_build_config(self):
            return {"size": int(self.table.shape[0])}

        def build_from_config(self, config):
            self.make(config["size"])

        def call(self, inputs):
            return inputs * tw.reduce_sum(self.table)

    table = Table()
    table.make(5)
    model = keras.Sequential([table])
    twin = keras.Sequential.from_config(model.get_config())
    assert tuple(twin.layers[0].table.shape) == (5,)
    np.testing.assert_array_equal(twin(np.ones((1, 2))), 5 * np.ones((1, 2)))
