"""Configs name no files: a model of one would hand out what the file holds."""

import json
import sys
from contextlib import suppress

import pytest

from tapewright import keras
from tapewright.keras import layers, models, saving
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_arguments import constructor_arguments, is_own
from tapewright.serialization.load_errors import trusting_configs

SECRET = "root:x:0:0:secret"
LOOKUPS = ("StringLookup", "IntegerLookup", "TextVectorization")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "passwd"
    file.write_text(f"{SECRET}\nother\n")
    return str(file)


def config(name, path):
    return {
        "module": "keras.layers",
        "class_name": name,
        "config": {"name": "lookup", "vocabulary": path},
        "registered_name": None,
    }


def sequential(entry):
    start = {"batch_shape": [None, 1], "dtype": "string", "name": "i"}
    start = {"module": "keras.layers", "class_name": "InputLayer", "config": start}
    inner = {"name": "s", "layers": [start, entry]}
    return {"module": "keras", "class_name": "Sequential", "config": inner}


def functional(entry):
    start = {"batch_shape": [None, 1], "dtype": "string", "name": "i"}
    history = {"shape": [None, 1], "dtype": "string", "keras_history": ["i", 0, 0]}
    call = {
        "args": [{"class_name": "__keras_tensor__", "config": history}],
        "kwargs": {},
    }
    inner = {
        "name": "f",
        "layers": [
            {
                "module": "keras.layers",
                "class_name": "InputLayer",
                "config": start,
                "name": "i",
                "inbound_nodes": [],
            },
            {**entry, "name": "lookup", "inbound_nodes": [call]},
        ],
        "input_layers": [["i", 0, 0]],
        "output_layers": [["lookup", 0, 0]],
    }
    return {"module": "keras", "class_name": "Functional", "config": inner}


def wrapped(entry):
    inner = {"name": "t", "layer": entry}
    return {"module": "keras.layers", "class_name": "TimeDistributed", "config": inner}


ENTRIES = {
    "deserialize_keras_object": saving.deserialize_keras_object,
    "a list of objects": lambda c: saving.deserialize_keras_object([{"a": c}]),
    "layers.deserialize": layers.deserialize,
    "layers.get": getattr(layers, "get", layers.deserialize),
    "from_config": lambda c: getattr(layers, c["class_name"]).from_config(c["config"]),
    "model_from_json": lambda c: models.model_from_json(json.dumps(sequential(c))),
    "a functional model": lambda c: models.model_from_json(json.dumps(functional(c))),
    "Sequential.from_config": lambda c: keras.Sequential.from_config(
        sequential(c)["config"]
    ),
    "Model.from_config": lambda c: keras.Model.from_config(functional(c)["config"]),
    "a wrapper": lambda c: layers.deserialize(wrapped(c)),
    "an argument": lambda c: layers.TimeDistributed.from_config({"layer": c}),
    "the steps of a pipeline": lambda c: layers.Pipeline.from_config({"layers": [c]}),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("where", ["{}", "file://{}", "missing", "https://host/words"])
def test_a_vocabulary_of_a_path_is_refused(path, entry, name, where):
    with pytest.raises(ValueError, match="a config may not name.*safe_mode=False"):
        ENTRIES[entry](config(name, where.format(path)))


@pytest.mark.parametrize("name", ["StringLookup", "TextVectorization"])
def test_a_trusted_config_may_name_its_vocabulary(path, name):
    entry = (
        wrapped(config(name, path)) if name == "StringLookup" else config(name, path)
    )
    layer = saving.deserialize_keras_object(entry, safe_mode=False)
    assert SECRET in getattr(layer, "layer", layer).get_vocabulary()
    with pytest.raises(ValueError, match="a config may not name"):  # the next one
        saving.deserialize_keras_object(config(name, path))


def test_a_file_may_not_name_a_vocabulary_even_if_configs_are_trusted(path, tmp_path):
    model = keras.Sequential(
        [keras.Input((1,), dtype="string"), layers.StringLookup(vocabulary=["a"])]
    )
    model.save(tmp_path / "m", zipped=False)
    place = tmp_path / "m" / "config.json"
    place.write_text(place.read_text().replace('["a"]', json.dumps(path)))
    with pytest.raises(ValueError, match="not part of this file"), trusting_configs():
        models.load_model(tmp_path / "m", safe_mode=False)


def test_the_caller_may_name_a_vocabulary(path):
    layer = layers.StringLookup(vocabulary=path)
    assert layer.get_vocabulary()[1] == SECRET
    again = layers.StringLookup.from_config(layer.get_config())  # as in Keras, no path
    assert again.get_vocabulary() == ["[UNK]"]
    again.set_vocabulary(path)
    assert again.get_vocabulary() == layer.get_vocabulary()


def test_a_class_that_reads_a_file_for_its_config_is_cloned_but_not_deserialized(path):
    class Words(layers.StringLookup):
        def __init__(self, file, **kwargs):
            super().__init__(**{**kwargs, "vocabulary": file, "vocabulary_size": None})
            self.file = file

        def get_config(self):
            return {**super().get_config(), "file": self.file}

    model = keras.Sequential([keras.Input((1,), dtype="string"), Words(path)])
    clone = models.clone_model(model)
    assert clone.layers[0].get_vocabulary()[1] == SECRET
    with pytest.raises(ValueError, match="a config may not name"):
        models.model_from_json(model.to_json(), {"Words": Words})


def test_no_argument_of_any_class_opens_a_file_that_a_config_names(path):
    opened, watching = [], [True]

    def watch(event, args):
        if watching and event == "open" and args[0] in (path, path.encode()):
            opened.append(args)

    sys.addaudithook(watch)  # for good
    with open(path):
        assert opened.pop()
    tried = 0
    for kind, classes in registry._OBJECTS.items():
        for name, cls in list(classes.items()):
            if not isinstance(cls, type) or not is_own(cls):
                continue
            arguments = constructor_arguments(cls)
            for values in ([a] for a in arguments), [arguments]:
                for names in values:
                    config = {"class_name": name, "config": dict.fromkeys(names, path)}
                    with suppress(Exception):
                        object_config.deserialize(kind, config)
                    tried += 1
                    assert not opened, f"{kind} {name}: {names}"
    watching.clear()
    assert tried > 1000
