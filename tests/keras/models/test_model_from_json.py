"""JSON that no model has: refused with one clear ValueError, whatever is wrong in it."""

import json

import pytest

from tapewright import keras
from tapewright.keras import layers, metrics, optimizers, saving
from tapewright.keras.preprocessing.text import Tokenizer, tokenizer_from_json

MODEL = keras.Sequential([keras.Input((3,)), layers.Dense(2, kernel_regularizer="l2")])
MODEL.compile("adam", "mse")
DENSE = ("config", "layers", 1, "config")


def changed(place, value):
    config = json.loads(MODEL.to_json())
    inner = config
    for key in place[:-1]:
        inner = inner[key]
    assert place[-1] in inner
    inner[place[-1]] = value
    return json.dumps(config)


def nested(depth, wrap=lambda inner: [inner]):
    value = 1
    for _ in range(depth):
        value = wrap(value)
    return value


def wrapper(inner):
    return {
        "class_name": "TimeDistributed",
        "module": "keras.layers",
        "config": {"layer": inner},
    }


TEXTS = {
    "a text of brackets": "[" * 100_000,
    "a text of keys": '{"a":' * 100_000,
    "wrappers of wrappers": json.dumps(nested(120, wrapper)),
    "a list in lists": changed((*DENSE, "units"), nested(200)),
    "more lists": changed((*DENSE, "units"), nested(300)),
    "wrappers in a layer": changed((*DENSE, "activation"), nested(120, wrapper)),
    "units of 400 digits": changed((*DENSE, "units"), 10**400),
    "units beyond int64": changed((*DENSE, "units"), 10**30),
    "infinite units": changed((*DENSE, "units"), float("inf")),
    "units that are NaN": changed((*DENSE, "units"), float("nan")),
    "a float beyond float64": changed((*DENSE, "units"), 7).replace("7", "1e999"),
    "a factor beyond float64": changed(
        (*DENSE, "kernel_regularizer", "config", "l2"), 10**39 * 10**300
    ),
    "a rate beyond float64": changed(
        ("compile_config", "optimizer", "config", "learning_rate"), 10**400
    ),
    "no config": changed(DENSE, None),
    "another type": changed((*DENSE, "kernel_initializer"), 3),
    "an unknown argument": changed((*DENSE, "units"), {"a": 1}),
    "no object": "3",
    "no JSON": "{",
    "a key twice": '{"class_name": "Sequential", "class_name": "Dense"}',
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_describes_no_model_is_a_value_error(case):
    for text in (TEXTS[case], TEXTS[case].encode()):
        with pytest.raises(ValueError):
            keras.models.model_from_json(text)


def test_numbers_that_json_lacks_are_read_as_python_writes_them():
    model = keras.Sequential([keras.Input((1,)), layers.Masking(float("inf"))])
    again = keras.models.model_from_json(model.to_json().encode("utf-16"))
    assert again.layers[0].mask_value == float("inf")


@pytest.mark.parametrize(
    "deserialize, config",
    [
        (layers.deserialize, nested(2000, wrapper)),
        (saving.deserialize_keras_object, nested(20_000)),
        (saving.deserialize_keras_object, nested(2000, wrapper)),
        (keras.Sequential.from_config, {"layers": [nested(2000, wrapper)]}),
        (
            optimizers.deserialize,
            {"class_name": "SGD", "config": {"learning_rate": 10**400}},
        ),
        (
            keras.regularizers.deserialize,
            {"class_name": "L2", "config": {"l2": 10**400}},
        ),
        (
            metrics.deserialize,
            {"class_name": "AUC", "config": {"thresholds": [10**400]}},
        ),
    ],
)
def test_nesting_and_giant_numbers_in_any_config_are_value_errors(deserialize, config):
    with pytest.raises(ValueError):
        deserialize(config)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "3", '{"config": {}}', '{"config": {"word_counts": 3}}']
)
def test_a_text_that_describes_no_tokenizer_is_a_value_error(text):
    with pytest.raises(ValueError):
        tokenizer_from_json(text)
    again = tokenizer_from_json(Tokenizer(num_words=7).to_json())
    assert again.num_words == 7
