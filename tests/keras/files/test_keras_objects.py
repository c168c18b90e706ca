"""Objects in the form of Keras' configs: read from what Keras wrote, and written as it does."""

import json
from pathlib import Path

import numpy as np
import pytest

from tapewright import keras
from tapewright.keras import initializers, layers, losses, regularizers, saving
from tapewright.keras.files.class_names import strip_defaults
from tapewright.serialization import object_config
from tapewright.serialization.load_errors import from_file

REFERENCE = Path(__file__).parent / "reference"
LAYERS = json.loads((REFERENCE / "configs_layers.json").read_text())
# Layers of Keras 2, which Keras 3 has under another module.
LAYERS += [
    {"module": "keras._legacy.layers", "class_name": name, "registered_name": None,
     "config": {"name": "old", "trainable": True, "dtype": "float32", **config}}
    for name, config in {
        "ThresholdedReLU": {"theta": 0.5},
        "RandomHeight": {"factor": 0.2, "interpolation": "bilinear", "seed": 1},
        "RandomWidth": {"factor": [-0.3, 0.4], "interpolation": "area", "seed": None},
    }.items()
]  # fmt: skip
OBJECTS = json.loads((REFERENCE / "configs_objects.json").read_text())

# Keys of ours that Keras takes, but leaves out of its own configs.
MORE = {
    ("CategoryEncoding", "sparse"), ("SimpleRNN", "seed"), ("Identity", "gain"),
    ("CosineSimilarity", "axis"), ("Huber", "delta"),
    ("SparseCategoricalCrossentropy", "axis"),
}  # fmt: skip
# What Keras has for features that are not here, and ours agrees with.
OFF = {
    "input_axes": None, "output_axes": None, "quantization_config": None,
    "activity_regularizer": None, "renorm": False, "renorm_clipping": None,
    "renorm_momentum": 0.99, "synchronized": False, "sparse": False, "ragged": False,
    "optional": False,
}  # fmt: skip


def policies_as_names(config):
    """A config with the names of dtypes instead of Keras' dtype policies."""
    if isinstance(config, dict):
        if config.get("class_name") == "DTypePolicy":
            return config["config"]["name"]
        if config.get("class_name") == "__tensor__":
            return config["config"]["value"]
        return {key: policies_as_names(value) for key, value in config.items()}
    if isinstance(config, list):
        return [policies_as_names(value) for value in config]
    return config


def agree(ours, theirs, name=""):
    """Whether two configs say the same, apart from `MORE` and `OFF`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        name = ours.get("class_name", name)
        own, their = set(ours), set(theirs)
        assert all((name, key) in MORE for key in own - their), (name, own - their)
        assert all(theirs[key] == OFF[key] for key in their - own), (name, their - own)
        for key in own & their:
            agree(ours[key], theirs[key], name)
    elif isinstance(ours, list) and isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            agree(one, other, name)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=1e-7)
    else:
        assert ours == theirs, name


def ids(configs):
    return [f"{config['class_name']}-{i}" for i, config in enumerate(configs)]


@pytest.mark.parametrize("config", LAYERS, ids=ids(LAYERS))
def test_what_keras_says_of_a_layer_is_read_and_written_again(config):
    layer = saving.deserialize_keras_object(config)
    written = json.loads(json.dumps(saving.serialize_keras_object(layer)))
    agree(written, policies_as_names(config))


@pytest.mark.parametrize("config", OBJECTS, ids=ids(OBJECTS))
def test_what_keras_says_of_other_objects_is_read_and_written_again(config):
    found = saving.deserialize_keras_object(config)
    ours = saving.serialize_keras_object(found)
    if ours["config"].get("dtype") in ("int32", "int64"):  # Keras': by its backend
        config["config"]["dtype"] = ours["config"]["dtype"]
    agree(ours, policies_as_names(config))


@pytest.mark.parametrize("config", LAYERS, ids=ids(LAYERS))
def test_the_short_form_for_files_says_the_same(config):
    full = saving.serialize_keras_object(saving.deserialize_keras_object(config))
    short = strip_defaults(full)
    assert set(short["config"]) <= set(full["config"])
    again = saving.serialize_keras_object(saving.deserialize_keras_object(short))
    assert again == full


def test_the_short_form_has_no_defaults():
    config = strip_defaults(
        saving.serialize_keras_object(layers.Conv2D(4, 3, name="c"))
    )
    assert config["config"] == {
        "name": "c", "dtype": "float32", "filters": 4, "kernel_size": [3, 3],
        "data_format": "channels_last",
    }  # fmt: skip


def test_the_short_form_keeps_what_is_not_the_default():
    config = strip_defaults(saving.serialize_keras_object(losses.Huber(0.5)))
    assert config["config"]["delta"] == 0.5
    layer = layers.Dense(2, kernel_initializer=initializers.GlorotUniform(3))
    config = strip_defaults(saving.serialize_keras_object(layer))
    assert config["config"]["kernel_initializer"]["config"] == {"seed": 3}


# --------------------------------------------------------------------------- values


def test_values_and_nests_of_them_are_written_as_they_are():
    assert saving.serialize_keras_object({"a": [1, 2.5, None], "b": (True, "x")}) == {
        "a": [1, 2.5, None], "b": [True, "x"],
    }  # fmt: skip


@pytest.mark.parametrize("value", [slice(1, None, 2), ..., b"text"])
def test_slices_ellipsis_and_bytes_have_forms(value):
    config = json.loads(json.dumps(saving.serialize_keras_object(value)))
    assert config["class_name"].startswith("__")
    assert saving.deserialize_keras_object(config) == value


def test_arrays_come_back_with_their_dtype():
    array = np.array([[1, 2], [3, 4]], "int16")
    config = saving.serialize_keras_object(array)
    assert config == {
        "class_name": "__numpy__",
        "config": {"value": [[1, 2], [3, 4]], "dtype": "int16"},
    }
    found = saving.deserialize_keras_object(config)
    assert found.dtype == np.int16 and (found == array).all()


def test_tensors_come_back_as_tensors():
    config = saving.serialize_keras_object(keras.ops.ones((2,), "float64"))
    found = saving.deserialize_keras_object(config)
    assert config["class_name"] == "__tensor__" and found.dtype == "float64"


def test_symbolic_tensors_tell_where_they_come_from():
    x = keras.Input((3,), name="i")
    assert saving.serialize_keras_object(x)["config"] == {
        "shape": [None, 3], "dtype": "float32", "keras_history": ["i", 0, 0],
    }  # fmt: skip


@pytest.mark.parametrize(
    "value", [[["x"]], [1, [2, 3]], {"a": 1}, "0123", None], ids=str
)
def test_arrays_of_no_numbers_are_refused(value):
    config = {"class_name": "__numpy__", "config": {"value": value, "dtype": "int32"}}
    with pytest.raises(ValueError, match="__numpy__"):
        saving.deserialize_keras_object(config)


# ---------------------------------------------------------------------------- objects


def test_functions_go_by_their_names():
    config = saving.serialize_keras_object(losses.mean_squared_error)
    assert config == {
        "module": "builtins", "class_name": "function",
        "config": "mean_squared_error", "registered_name": "function",
    }  # fmt: skip
    found = saving.deserialize_keras_object(config)
    assert found is losses.mean_squared_error


def test_lambdas_are_never_written():
    with pytest.raises(ValueError, match="cannot hold a lambda.*code is never saved"):
        saving.serialize_keras_object(lambda x: x)


def test_code_is_never_run():
    config = {"class_name": "__lambda__", "config": {"value": ["4wEA", None, None]}}
    with pytest.raises(ValueError, match="Python code, which is never run"):
        saving.deserialize_keras_object(config)
    with pytest.raises(ValueError, match="never run, regardless of safe_mode"):
        saving.deserialize_keras_object(config, safe_mode=False)


def test_the_module_tells_losses_from_metrics_of_the_same_name():
    for module, kind in (("keras.losses", losses), ("keras.metrics", keras.metrics)):
        config = {"module": module, "class_name": "Poisson", "config": {}}
        assert type(saving.deserialize_keras_object(config)) is kind.Poisson


def test_modules_of_backends_and_of_old_versions_are_known():
    for module in ("keras.src.backend.torch.optimizers.torch_adam", "keras.optimizers"):
        config = {
            "module": module, "class_name": "Adam", "config": {"learning_rate": 0.5},
            "registered_name": "Adam",
        }  # fmt: skip
        found = saving.deserialize_keras_object(config)
        assert type(found) is keras.optimizers.Adam
    config = {"module": "keras.layers.core.dense", "class_name": "Dense"}
    assert saving.deserialize_keras_object(config | {"config": {"units": 2}}).units == 2


def test_a_class_of_another_module_is_none_of_ours():
    config = {
        "module": "somewhere.else", "class_name": "Dense", "config": {"units": 2},
        "registered_name": "Dense",
    }  # fmt: skip
    with pytest.raises(ValueError, match="'Dense'"):
        saving.deserialize_keras_object(config)


def test_nothing_is_imported_whatever_the_module_says():
    config = {"module": "antigravity", "class_name": "Dense", "config": {"units": 2}}
    with pytest.raises(ValueError, match="'Dense'"):
        saving.deserialize_keras_object(config)
    import sys

    assert "antigravity" not in sys.modules


def test_dtype_policies_are_read():
    policy = {"module": "keras", "class_name": "DTypePolicy", "registered_name": None}
    config = {"module": "keras.layers", "class_name": "Dense", "registered_name": None}
    given = {"units": 2, "dtype": policy | {"config": {"name": "float16"}}}
    found = saving.deserialize_keras_object(config | {"config": given})
    assert found.dtype == "float16"
    given = {"units": 2, "dtype": policy | {"config": {"name": "mixed_float16"}}}
    found = saving.deserialize_keras_object(config | {"config": given})
    assert (found.compute_dtype, found.variable_dtype) == ("float16", "float32")
    assert found.get_config()["dtype"] == given["dtype"]
    quantized = {"mode": "int8", "source_name": "float32"}
    given["dtype"] = policy | {
        "class_name": "QuantizedDTypePolicy", "config": quantized
    }  # fmt: skip
    with pytest.raises(ValueError, match="'QuantizedDTypePolicy'.*not supported"):
        saving.deserialize_keras_object(config | {"config": given})


def test_a_built_layer_says_for_what_shape():
    layer = layers.Dense(2)
    assert "build_config" not in saving.serialize_keras_object(layer)
    layer.build((None, 3))
    config = saving.serialize_keras_object(layer)
    assert config["build_config"] == {"input_shape": (None, 3)}
    assert tuple(saving.deserialize_keras_object(config).kernel.shape) == (3, 2)


class Holder(layers.Layer):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def call(self, x):
        return self.inner(x)

    def get_config(self):
        return super().get_config() | {"inner": layers.serialize(self.inner)}

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"inner": layers.deserialize(config["inner"])})


def test_users_containers_build_their_layers_in_their_own_place():
    model = keras.Sequential([Holder(layers.Dense(2, name="d"), name="h")], name="s")
    model(np.ones((1, 3)))
    twin = keras.models.clone_model(model)
    assert twin(np.ones((1, 5))).shape == (1, 2)  # of any size
    assert [v.path for v in twin.weights] == [v.path for v in model.weights]


def test_a_users_build_config_may_hold_arrays_and_bytes():
    class Own(keras.losses.Loss):  # never built
        def get_build_config(self):
            return {"a": np.float32([1, 2]), "b": b"x", "c": slice(1, 2)}

    config = saving.serialize_keras_object(Own())["build_config"]
    assert [config[k]["class_name"] for k in "abc"] == [
        "__numpy__", "__bytes__", "__slice__"
    ]  # fmt: skip
    assert "build_config" not in object_config.serialize(Own())


def test_layers_inside_of_others_are_built_in_their_own_place():
    policy = keras.dtype_policies.DTypePolicyMap("float32")
    policy["outer/dense"] = keras.DTypePolicy("float64")
    outer = keras.Sequential(
        [layers.Dense(2, dtype=policy, name="dense")], name="outer"
    )
    outer(np.ones((1, 3)))
    assert "build_config" not in outer.get_config()["layers"][0]
    twin = saving.deserialize_keras_object(saving.serialize_keras_object(outer))
    assert [v.path for v in twin.weights] == [v.path for v in outer.weights]
    assert twin.layers[0].kernel.dtype.name == "float64"


def test_a_layer_of_several_inputs_is_built_again():
    layer = layers.MultiHeadAttention(2, 3)
    layer(np.ones((1, 2, 4), "float32"), np.ones((1, 5, 6), "float32"))
    config = json.loads(json.dumps(saving.serialize_keras_object(layer)))
    twin = saving.deserialize_keras_object(config)
    assert [w.shape for w in twin.weights] == [w.shape for w in layer.weights]


# ------------------------------------------------------------------------- from files


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([1], "config .*class_name"),
        ({"class_name": 3, "config": {}}, "config .*class_name"),
        ({"class_name": "Dense", "config": [1]}, r"config.*dict.*got \[1\]"),
        ({"class_name": "Dense", "config": {"name": "d"}}, "Dense 'd'.*units"),
        ({"class_name": "Dense", "config": {"units": -1}}, "units .*got -1"),
        ({"class_name": "Dense", "config": {"units": 2, "lora_rank": 4}}, "lora_rank"),
        ({"class_name": "Dense", "config": {"units": 2, "wings": 4}}, "'wings'"),
        ({"class_name": "TimeDistributed", "config": {}}, "'layer'"),
        ({"class_name": "os.system", "config": {}}, r"'os\.system'"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(config, message):
    with from_file("net.h5", "model_config"):
        with pytest.raises(OSError, match=rf"net.h5 \[model_config\]: .*{message}"):
            object_config.deserialize("layer", config)


def test_regularizers_inside_of_wrappers_come_back():
    inner = layers.Dense(2, kernel_regularizer=regularizers.L1L2(0.5, 0.25))
    config = json.loads(json.dumps(layers.serialize(layers.TimeDistributed(inner))))
    twin = layers.deserialize(config)
    assert twin.layer.kernel_regularizer.get_config() == {"l1": 0.5, "l2": 0.25}


def test_a_config_of_another_kind_is_named():
    with pytest.raises(ValueError, match="the config of an optimizer .*got 3"):
        keras.optimizers.deserialize(3)
