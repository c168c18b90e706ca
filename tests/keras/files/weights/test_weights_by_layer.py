"""The layout of whole models in HDF5, held against what Keras writes and reads."""

import json

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential, layers
from tapewright.keras.models import load_model


def saved(model, tmp_path):
    model.save(tmp_path / "m.h5")
    return h5py.File(tmp_path / "m.h5", "r")


def names(group, key="weight_names"):
    return [n.decode() for n in group.attrs[key]]


def test_a_nested_model_lists_all_trainable_weights_before_all_others(tmp_path):
    inner = Sequential(
        [
            Input((4,)),
            layers.Dense(3, name="a"),
            layers.BatchNormalization(name="b"),
            layers.Dense(2, name="c"),
        ],
        name="inner",
    )
    inner.get_layer("c").trainable = False
    model = Sequential([Input((4,)), inner, layers.ReLU(name="r")])
    with saved(model, tmp_path) as file:
        group = file["model_weights"]
        assert names(group, "layer_names") == ["inner", "r"]
        found = [n.split("/", 1)[1] for n in names(group["inner"])]
        assert found == [
            "a/kernel", "a/bias", "b/gamma", "b/beta",
            "b/moving_mean", "b/moving_variance", "c/kernel", "c/bias",
        ]  # fmt: skip
        assert group["r"].attrs["weight_names"].shape == (0,)
        assert group["r"].attrs["weight_names"].dtype == "f8"  # as Keras has it


def test_layers_have_classes_and_configs_only_and_ops_their_modules(tmp_path):
    x = Input((4,), name="x")
    y = layers.Add(name="layer")([x, x]) + 1.0
    with saved(Model(x, y), tmp_path) as file:
        config = json.loads(file.attrs["model_config"])
    entries = {e["name"]: e for e in config["config"]["layers"]}
    assert config["class_name"] == "Functional" and "module" not in config
    assert "module" not in entries["layer"]
    assert "module" in config["config"]["layers"][-1]  # add, or add_1, and so on


def test_the_state_of_the_optimizer_is_where_keras_does_not_look(tmp_path):
    model = Sequential([Input((3,)), layers.Dense(2)])
    model.compile(tw.optimizers.Adam(0.5), "mse", metrics=["mae"])
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    with saved(model, tmp_path) as file:
        training = json.loads(file.attrs["training_config"])
        assert "optimizer_weights" not in file
        assert len(file["tapewright/optimizer/vars"]) == 6
    assert training["loss"] == "mean_squared_error"  # "mse" is not read by Keras here
    assert training["optimizer_config"]["class_name"] == "Adam"
    assert training["optimizer_config"]["config"]["learning_rate"] == 0.5


def test_an_array_is_never_in_the_place_of_another(tmp_path):
    class Two(layers.Layer):
        def build(self, input_shape):
            self.a = self.add_weight((2,), "ones", name="w")
            self.b = self.add_weight((2,), "zeros", name="w")
            self.c = self.add_weight((2,), "ones", name="w/inner")

        def call(self, x):
            return x * self.a + self.b + self.c

    model = Sequential([Input((2,)), Two(name="two")])
    with saved(model, tmp_path) as file:
        group = file["model_weights/two"]
        values = [group[name][0] for name in names(group)]
    assert values == [1.0, 0.0, 1.0]
    found = load_model(tmp_path / "m.h5", custom_objects={"Two": Two}).get_weights()
    np.testing.assert_array_equal(found, [[1, 1], [0, 0], [1, 1]])


def test_long_lists_of_names_are_cut_as_in_keras(tmp_path):
    stem = "a_rather_long_name_for_a_layer_" * 10
    model = Sequential([Input((1,))])
    for i in range(230):
        model.add(layers.ReLU(name=f"{stem}{i}"))
    with saved(model, tmp_path) as file:
        attributes = file["model_weights"].attrs
        assert "layer_names" not in attributes
        pieces = [attributes[f"layer_names{i}"] for i in range(2)]
    assert sum(map(len, pieces)) == 230
    other = load_model(tmp_path / "m.h5")
    assert [layer.name for layer in other.layers] == [
        layer.name for layer in model.layers
    ]


def test_a_layer_count_that_differs_is_told_with_the_names(tmp_path):
    Sequential([Input((3,)), layers.Dense(2, name="a")]).save(tmp_path / "m.h5")
    model = Sequential(
        [Input((3,)), layers.Dense(2, name="a"), layers.Dense(2, name="b")]
    )
    with pytest.raises(
        tw.errors.SavingError, match=r"1 layers .*\('a'\).*2 \('a', 'b'\)"
    ):
        model.load_weights(tmp_path / "m.h5")


def test_a_weights_file_says_that_it_holds_no_model(tmp_path):
    Sequential([Input((3,)), layers.Dense(2)]).save_weights(tmp_path / "a.weights.h5")
    with pytest.raises(tw.errors.SavingError, match="'model_config'.*load_weights"):
        load_model(tmp_path / "a.weights.h5")


def test_a_reserved_name_is_refused(tmp_path):
    model = Sequential([Input((3,)), layers.Dense(2, name="top_level_model_weights")])
    with pytest.raises(ValueError, match="name .*taken"):
        model.save(tmp_path / "m.h5")
    assert not list(tmp_path.iterdir())
