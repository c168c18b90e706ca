"""Configs of Keras 2 become those of Keras 3: keys, dtypes, calls, compile configs."""

import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras.legacy.configs import (
    keras3_calls,
    keras3_compile_config,
    keras3_config,
)
from tapewright.serialization.load_errors import from_file


def place(name, number=0, index=0):
    return {
        "class_name": "__keras_tensor__",
        "config": {"keras_history": [name, number, index]},
    }


def network(*layers, outputs):
    entries = [
        {"name": name, "class_name": kind, "config": config, "inbound_nodes": nodes}
        for name, kind, config, nodes in layers
    ]
    return {"layers": entries, "input_layers": [], "output_layers": outputs}


def calls(config):
    return {each["name"]: each["inbound_nodes"] for each in config["layers"]}


def test_keys_that_ask_for_nothing_go_and_others_stay():
    lstm = {"class_name": "LSTM", "config": {"units": 2, "time_major": True, "lr": 1}}
    assert keras3_config([lstm, {"dtype": "bfloat16"}]) == [
        {
            "class_name": "LSTM",
            "config": {"units": 2, "time_major": True, "learning_rate": 1},
        },
        {"dtype": "bfloat16"},
    ]


def test_calls_become_args_and_kwargs():
    config = network(
        ("x", "InputLayer", {}, []),
        ("a", "Dense", {}, [[["x", 0, 0, {}]], [["x", 0, 0, {"training": True}]]]),
        ("b", "Add", {}, [[["a", 0, 0, {"mask": ["x", 0, 0]}], ["a", 1, 0]]]),
        ("c", "TFOpLambda", {}, [["_CONSTANT_VALUE", -1, 2.0, {"y": ["b", 0, 0]}]]),
        outputs=[["c", 0, 0]],
    )
    found = calls(keras3_calls(config))
    assert [(each["args"], each["kwargs"]) for each in found["a"]] == [
        ([place("x")], {}),
        ([place("x")], {"training": True}),
    ]
    assert found["b"][0]["args"] == [[place("a"), place("a", 1)]]
    assert found["b"][0]["kwargs"] == {"mask": place("x")}
    assert found["c"][0] == {
        "args": [2.0], "kwargs": {"y": place("b")}, "keeps_training": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "inner, end", [({}, 0), ({"input_layers": []}, 1)], ids=["sequential", "functional"]
)
def test_calls_of_a_model_inside_are_counted_from_0(inner, end):
    config = network(
        ("x", "InputLayer", {}, []),
        ("inside", "Model", inner, [[["x", 0, 0, {}]]]),
        ("d", "Dense", {}, [[["inside", 1, 0, {}]]]),
        outputs=[["inside", 1, 0], ["d", 0, 0]],
    )
    found = keras3_calls(config)
    assert calls(found)["d"][0]["args"] == [place("inside")]
    assert found["output_layers"] == [["inside", end, 0], ["d", 0, 0]]


def test_a_network_of_keras_3_stays_as_it_is():
    x = keras.Input((3,))
    config = keras.Model(x, keras.layers.Dense(2)(x)).get_config()
    assert keras3_calls(config) is config


@pytest.mark.parametrize("node", [[["x", 0]], [["x", 0, 0, {}, 1]], [["x", 0, 0, 5]]])
def test_a_list_that_is_no_call_is_a_saving_error(node):
    config = network(("a", "Dense", {}, [node]), outputs=[])
    with (
        from_file("old.h5"),
        pytest.raises(tw.errors.SavingError, match="'a' is called"),
    ):
        keras3_calls(config)


def test_a_training_config_becomes_a_compile_config():
    training = {
        "optimizer_config": {"class_name": "Custom>Adam", "config": {"lr": 0.5}},
        "loss": "mse",
        "metrics": [[{"class_name": "MeanMetricWrapper", "config": {"fn": "mae"}}]],
        "sample_weight_mode": None,
    }
    assert keras3_compile_config(training) == {
        "optimizer": {"class_name": "Adam", "config": {"lr": 0.5}},
        "loss": "mse",
        "metrics": [["mae"]],
        "weighted_metrics": None,
    }


def test_a_users_optimizer_of_that_name_is_the_users():
    config = {"class_name": "Custom>Adam", "config": {}}
    with keras.saving.custom_object_scope({"Custom>Adam": keras.optimizers.SGD}):
        found = keras3_compile_config({"optimizer_config": config})
    assert found["optimizer"] == config
