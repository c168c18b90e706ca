"""Configs of layers from the arguments of their constructors, and back."""

import copy
import pickle

import numpy as np
import pytest

from tapewright import layers
from tapewright.errors import SavingError
from tapewright.keras import Input, Sequential
from tapewright.keras.models import load_model
from tapewright.layers import Dense, Layer
from tapewright.layers.initializers import HeNormal
from tapewright.serialization import object_config, registry

from .own_layers import Scale


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

    with pytest.raises(NotImplementedError, match="'size' of __init__"):
        Forgetful(np.float32(3)).get_config()


def test_a_plain_argument_need_not_be_kept():
    class Doubled(Layer):
        def __init__(self, size, sizes=(1, 2), **kwargs):
            super().__init__(**kwargs)
            self.size = 2 * size

    layer = Doubled(3, name="d")
    config = {"name": "d", "trainable": True, "dtype": "float32", "size": 3}
    assert layer.get_config() == config | {"sizes": (1, 2)}
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
    with pytest.raises(NotImplementedError, match=r"Many.*\*args"):
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


class Wrapped(Layer):
    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer

    def call(self, inputs):
        return self.layer(inputs)


def test_a_config_in_place_of_a_layer_is_told_with_the_remedy(tmp_path):
    twin = Wrapped.from_config(Wrapped(Dense(2)).get_config())
    with pytest.raises(TypeError, match="'dict' object is not callable") as caught:
        twin(np.ones((1, 3)))
    note = caught.value.__notes__[-1]
    assert note.startswith("self.layer is a config of class Dense: make the object in ")
    model = Sequential([Input((3,)), Wrapped(Dense(2), name="outer")])
    model.save(tmp_path / "model.keras")
    with pytest.raises(SavingError, match="in layer 'outer' .*Wrapped.from_config"):
        load_model(tmp_path / "model.keras", custom_objects={"Wrapped": Wrapped})


def test_what_no_config_holds_is_told_with_argument_and_layer():
    for layer, name in [
        (Wrapped(object(), name="w"), "'layer' of layer 'w' (Wrapped)"),
        (Dense(2, lambda x: x, name="d"), "'activation' of layer 'd' (Dense)"),
    ]:
        with pytest.raises((TypeError, ValueError), match="cannot hold") as caught:
            layer.get_config()
        assert caught.value.__notes__ == [f"in the argument {name}"]


def test_the_config_of_the_bases_lacks_what_get_config_adds():
    class Scaled(layers.Dense):
        def __init__(self, units, scale=1.0, **kwargs):
            super().__init__(units, **kwargs)
            self.scale = scale

        def get_config(self):
            return dict(scale=self.scale, **super().get_config())

    config = Scaled(3, 2.0, use_bias=False, name="scaled").get_config()
    plain = layers.Dense(3, use_bias=False, name="scaled").get_config()
    assert config == plain | {"scale": 2.0}
    assert Scaled.from_config(config).get_config() == config
