"""Configs of models: layers and calls in Keras' form, JSON, and what `compile` was given."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import (
    Input,
    Model,
    Sequential,
    layers,
    losses,
    metrics,
    saving,
)
from tapewright.keras.models import model_from_json
from tapewright.serialization.load_errors import from_file

REFERENCE = Path(__file__).parent / "reference"
MODELS = json.loads((REFERENCE / "configs_models.json").read_text())


def shared():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    dense = layers.Dense(3, name="d")
    x = layers.Concatenate(name="c")([dense(a), dense(b)])
    return Model([a, b], [x, layers.Dense(2, name="e")(x)], name="shared")


def nested():
    i, j = Input((4,), name="i"), Input((3,), name="j")
    inner = Model(j, layers.Dense(2, name="k")(j), name="inner")
    first = inner(layers.Dense(3, name="d")(i))
    second = inner(layers.Dense(3, name="e")(i))
    chain = Sequential([Input((2,), name="l"), layers.ReLU(name="r")], name="s")
    ends = [layers.Add(name="sum")([first, second]), second, chain(first)]
    return Model(i, ends, name="outer")


def with_states():
    i = Input((5, 3), name="i")
    lstm = layers.LSTM(4, return_sequences=True, return_state=True, name="first")
    x, *states = lstm(i)
    end = layers.LSTM(4, name="second")(x, initial_state=states)
    return Model(i, [end, states[1]], name="states")


def dicts():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    ends = {"sum": layers.Add(name="t")([a, b]), "double": layers.ReLU()(a)}
    return Model({"a": a, "b": b}, ends, name="dicts")


MADE = {"shared": shared, "nested": nested, "with_states": with_states, "dicts": dicts}


def wiring(config):
    """Names, classes and places of the tensors in the calls, through all models inside."""
    if not isinstance(config, dict) or "layers" not in config:
        return None
    found = {
        "inputs": config.get("input_layers"),
        "outputs": config.get("output_layers"),
    }
    for layer in config["layers"]:
        places = []
        ahead = [layer.get("inbound_nodes", [])]
        while ahead:
            each = ahead.pop(0)
            if isinstance(each, dict) and "keras_history" in each:
                places.append(each["keras_history"])
            elif isinstance(each, dict):
                ahead += each.values()
            elif isinstance(each, (list, tuple)):
                ahead += each
        name = layer.get("name", layer["config"].get("name"))
        found[name] = layer["class_name"], places, wiring(layer["config"])
    return found


# ------------------------------------------------------------------- as Keras has them


@pytest.mark.parametrize("name", MADE)
def test_calls_are_numbered_as_keras_numbers_them(name):
    keras.utils.clear_session()
    ours = json.loads(MADE[name]().to_json())
    theirs = MODELS[name]
    assert (ours["module"], ours["class_name"]) == (
        theirs["module"], theirs["class_name"],
    )  # fmt: skip
    found, expected = wiring(ours["config"]), wiring(theirs["config"])
    if name == "dicts":  # a default name
        assert len(found) == len(expected)
        found, expected = found["outputs"]["sum"], expected["outputs"]["sum"]
    assert found == expected


@pytest.mark.parametrize("name", MADE)
def test_models_of_keras_are_read(name):
    twin, model = saving.deserialize_keras_object(MODELS[name]), MADE[name]()
    assert twin.name == model.name and twin.input_shape == model.input_shape
    assert twin.output_shape == model.output_shape
    assert [w.shape for w in twin.weights] == [w.shape for w in model.weights]
    twin.set_weights(model.get_weights())
    draw = np.random.default_rng(0)
    x = [draw.normal(size=(2, *i.shape[1:])).astype("float32") for i in model.inputs]
    x = dict(zip("ab", x)) if name == "dicts" else x if len(x) > 1 else x[0]
    for one, other in zip(tw.nest.flatten(model(x)), tw.nest.flatten(twin(x))):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", MADE)
def test_layers_may_stand_in_any_order(name):
    config = copy.deepcopy(MODELS[name])
    config["config"]["layers"].reverse()
    twin = saving.deserialize_keras_object(config)
    assert twin.output_shape == MADE[name]().output_shape


def test_calls_of_models_inside_are_counted_from_1_in_keras_2():
    config = copy.deepcopy(MODELS["nested"]["config"])
    for layer in config["layers"]:
        calls = layer["inbound_nodes"]
        for i, call in enumerate(calls):
            args = (
                call["args"][0] if isinstance(call["args"][0], list) else call["args"]
            )
            places = [list(x["config"]["keras_history"]) for x in args]
            for place in places:
                place[1] += place[0] == "inner"
            calls[i] = [[*place, {}] for place in places]
    outputs = [["sum", 0, 0], ["inner", 2, 0], ["s", 1, 0]]
    config["output_layers"] = outputs
    twin, model = Model.from_config(config), nested()
    twin.set_weights(model.get_weights())
    x = np.ones((2, 4), "float32")
    for one, other in zip(model(x), twin(x)):
        np.testing.assert_array_equal(one, other)


def test_an_entry_of_keras_2_may_name_tensors_among_the_keywords():
    x, y = Input((2, 3), name="x"), Input((4, 3), name="y")
    model = Model([x, y], layers.MultiHeadAttention(2, 3, name="m")(x, y), name="n")
    config = model.get_config()
    entry = next(e for e in config["layers"] if e["name"] == "m")
    entry["inbound_nodes"] = [[["x", 0, 0, {"value": ["y", 0, 0]}]]]
    assert Model.from_config(config).output_shape == model.output_shape


# -------------------------------------------------------------------------- what is wrong


def broken(change):
    """The config of `shared`, made wrong."""
    config = copy.deepcopy(shared().get_config())
    change(config, {entry["name"]: entry for entry in config["layers"]})
    return config


def place(of, *values):
    return {
        "class_name": "__keras_tensor__",
        "config": {"keras_history": [of, *values]},
    }


CALLS = "inbound_nodes"
WRONG = {
    "layer 'nowhere'": lambda c, e: e["e"].update(
        inbound_nodes=[{"args": [place("nowhere", 0, 0)], "kwargs": {}}]
    ),
    "'d'.*2.*call 5": lambda c, e: e["e"].update(
        inbound_nodes=[{"args": [place("d", 5, 0)], "kwargs": {}}]
    ),
    "'d'.*call -1": lambda c, e: c.update(output_layers=[["d", -1, 0]]),
    "'d'.*1.*output 3": lambda c, e: c.update(output_layers=[["d", 0, 3]]),
    "c, e .*cycle": lambda c, e: e["c"].update(
        inbound_nodes=[{"args": [[place("e", 0, 0), place("d", 0, 0)]], "kwargs": {}}]
    ),
    "two .*'d'": lambda c, e: c["layers"].append(e["d"]),
    "class_name.*got 3": lambda c, e: c["layers"].append(3),
    r"layers .*got \{'d': 1\}": lambda c, e: c.update(layers={"d": 1}),
    "inbound_nodes .*'d'.*got 3": lambda c, e: e["d"].update(inbound_nodes=3),
    "'d'.*got a": lambda c, e: e["d"].update(inbound_nodes=["a"]),
    r"args and kwargs.*got \{'args': 3\}": lambda c, e: e["d"][CALLS].append(
        {"args": 3}
    ),
    r"tensor .*got \['d', '0', 0\]": lambda c, e: e["e"].update(
        inbound_nodes=[{"args": [place("d", "0", 0)], "kwargs": {}}]
    ),
    "inputs and outputs .*got 3": lambda c, e: c.update(output_layers=[3]),
    "units .*got -3": lambda c, e: e["d"]["config"].update(units=-3),
    "'e'.*called": lambda c, e: e["e"][CALLS][0].update(kwargs={"wings": 2}),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_in_a_config_is_told(message):
    config = broken(WRONG[message])
    with from_file("net.keras", "config.json"):
        with pytest.raises(
            tw.errors.SavingError, match=rf"net.keras \[config.json\]: .*{message}"
        ):
            Model.from_config(config)


def test_in_the_process_it_is_a_value_error():
    config = broken(WRONG["layer 'nowhere'"])
    with pytest.raises(ValueError, match="Model: .*layer 'nowhere'") as found:
        Model.from_config(config)
    assert not isinstance(found.value, tw.errors.SavingError)


def test_a_sequential_config_must_have_a_list_of_layers():
    with pytest.raises(ValueError, match="config .*got Dense"):
        Sequential.from_config({"name": "s", "layers": "Dense"})


def test_a_long_chain_in_the_wrong_order_is_resolved_in_one_pass():
    x = i = Input((1,), name="i")
    for _ in range(200):
        x = layers.Identity()(x)
    config = Model(i, x).get_config()
    config["layers"].reverse()
    assert len(Model.from_config(config).layers) == 201


# ------------------------------------------------------------------------------- json


def test_json_makes_the_model_again():
    model = shared()
    text = model.to_json(indent=1)
    assert text.startswith("{\n ")
    twin = model_from_json(text)
    assert twin.to_json(indent=1) == text


def test_json_holds_how_the_model_was_compiled():
    model = Sequential([Input((3,)), layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.25), "mse", metrics=["mae"])
    twin = model_from_json(model.to_json())
    assert twin.compiled and twin.optimizer.get_config() == model.optimizer.get_config()
    assert twin.get_compile_config() == model.get_compile_config()


def test_a_sequential_model_is_built_again_if_it_was():
    model = Sequential([layers.Dense(2)], name="s")
    assert not model_from_json(model.to_json()).built
    model.build((None, 3))
    assert model_from_json(model.to_json()).input_shape == (None, 3)


class Doubled(Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2 * units)

    def call(self, inputs):
        return self.dense(inputs)


def test_a_subclass_goes_by_the_arguments_of_its_constructor():
    model = Doubled(3, name="m")
    model(np.ones((2, 4), "float32"))
    config = model.get_config()
    assert config == {"name": "m", "trainable": True, "dtype": "float32", "units": 3}
    twin = model_from_json(model.to_json(), {"Doubled": Doubled})
    assert type(twin) is Doubled
    assert [w.shape for w in twin.weights] == [w.shape for w in model.weights]


def test_a_subclass_that_makes_its_own_network_goes_by_its_arguments():
    class Tower(Model):
        def __init__(self, depth, name=None):
            x = end = Input((3,))
            for _ in range(depth):
                end = layers.Dense(3)(end)
            super().__init__(inputs=x, outputs=end, name=name)

    config = Tower(4, name="t").get_config()
    assert config["depth"] == 4 and "layers" not in config
    assert len(Tower.from_config(config).layers) == 5


def test_other_json_is_refused():
    with pytest.raises(ValueError, match="json_string .*describe"):
        model_from_json(json.dumps(layers.serialize(layers.Dense(2))))
    with pytest.raises(
        TypeError, match=r"json_string .*got \{'class_name': 'Sequential'\}"
    ):
        model_from_json({"class_name": "Sequential"})


# ---------------------------------------------------------------------------- compile


def compiled():
    model = shared()
    rate = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)
    model.compile(
        keras.optimizers.Adam(rate, name="adam"),
        loss=[losses.Huber(), "mse"],
        loss_weights=[1.0, 0.5],
        metrics=[["mae", metrics.AUC(name="auc")], [losses.mean_squared_error]],
        weighted_metrics=[[], ["mse"]],
    )
    return model


def test_the_compile_config_is_that_of_keras():
    keras.utils.clear_session()
    ours, theirs = compiled().get_compile_config(), copy.deepcopy(MODELS["compiled"])
    assert ours["loss"][0]["config"].pop("delta") == 1.0  # which Keras forgets
    assert ours.pop("jit_compile") == "auto" and theirs.pop("jit_compile") is True
    assert ours == theirs


def test_a_model_is_compiled_as_keras_says():
    model = shared()
    model.compile_from_config(MODELS["compiled"])
    assert type(model.optimizer) is keras.optimizers.Adam
    assert type(model.loss[0]) is losses.Huber and model.loss[1] == "mse"
    x, y = [np.ones((4, 4), "float32")] * 2, [np.ones((4, n)) for n in (6, 2)]
    model.fit(x, [each.astype("float32") for each in y], verbose=0)


def test_a_model_that_was_not_compiled_has_an_empty_config():
    model = shared()
    assert model.get_compile_config() == {}
    model.compile_from_config({})
    assert not model.compiled


def test_dicts_of_losses_and_metrics_come_back():
    model = dicts()
    model.compile(
        "sgd",
        {"sum": losses.MeanSquaredError(), "double": "mae"},
        metrics={"sum": [metrics.AUC(num_thresholds=5), "mse"]},
        run_eagerly=True,
        steps_per_execution=2,
        jit_compile=False,
    )
    config = json.loads(json.dumps(model.get_compile_config()))
    twin = dicts()
    twin.compile_from_config(config)
    assert twin.get_compile_config() == config and twin.run_eagerly
    assert twin.loss["double"] == "mae"


def test_a_loss_keeps_every_argument():
    model = shared()
    model.compile("sgd", [losses.Huber(2.5), losses.CosineSimilarity(axis=0)])
    twin = shared()
    twin.compile_from_config(model.get_compile_config())
    assert twin.loss[0].delta == 2.5 and twin.loss[1].axis == 0


def test_a_lambda_for_a_loss_cannot_be_written_down():
    model = shared()
    model.compile("sgd", lambda y_true, y_pred: y_pred)
    with pytest.raises(ValueError, match="compile: loss.*cannot hold a lambda"):
        model.get_compile_config()


def test_unknown_keys_and_names_of_a_compile_config_are_told():
    model = shared()
    with pytest.raises(ValueError, match="'wings'.*2"):
        model.compile_from_config({"optimizer": "sgd", "wings": 2})
    config = {"optimizer": "sgd", "loss": "mse", "metrics": ["wings"]}
    with from_file("net.h5"), pytest.raises(tw.errors.SavingError, match="'wings'"):
        model.compile_from_config(config)
    config = {"optimizer": {"class_name": "Wings", "config": {}}, "loss": "mse"}
    with from_file("net.h5"), pytest.raises(tw.errors.SavingError, match="'Wings'"):
        model.compile_from_config(config)
