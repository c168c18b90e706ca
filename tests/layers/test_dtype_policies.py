"""Dtype policies by name, config and path; the default policy; what is refused."""

import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import DTypePolicy, FloatDTypePolicy, dtype_policies, layers
from tapewright.keras.dtype_policies import DTypePolicyMap


@pytest.fixture(autouse=True)
def no_policy():
    yield
    keras.config.set_dtype_policy(None)
    keras.config.set_floatx("float32")


@pytest.mark.parametrize(
    ("name", "compute", "variable"),
    [
        ("float16", "float16", "float16"),
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
        ("mixed_float16", "float16", "float32"),
        ("int32", "int32", "int32"),
        ("bool", "bool", "bool"),
    ],
)
def test_a_name_says_both_dtypes(name, compute, variable):
    policy = DTypePolicy(name)
    assert (policy.compute_dtype, policy.variable_dtype) == (compute, variable)
    assert policy.name == name and policy.quantization_mode is None
    assert repr(policy) == f'<DTypePolicy "{name}">'
    layer = layers.Activation("linear", dtype=name)
    assert (layer.compute_dtype, layer.input_dtype) == (compute, compute)
    assert (layer.variable_dtype, layer.dtype) == (variable, variable)
    assert layer.quantization_mode is None


def test_the_config_is_that_of_keras():
    config = {
        "module": "keras",
        "class_name": "DTypePolicy",
        "config": {"name": "mixed_float16"},
        "registered_name": None,
    }
    policy = DTypePolicy("mixed_float16")
    assert dtype_policies.serialize(policy) == config
    assert layers.Dense(2, dtype="mixed_float16").get_config()["dtype"] == config
    assert keras.saving.serialize_keras_object(policy) == config
    assert dtype_policies.deserialize(config) == policy
    assert keras.saving.deserialize_keras_object(config) == policy
    of_keras2 = {"class_name": "Policy", "config": {"name": "mixed_float16"}}
    assert dtype_policies.get(of_keras2) == policy
    float_config = dtype_policies.serialize(FloatDTypePolicy("float16"))
    assert float_config["class_name"] == "FloatDTypePolicy"
    assert dtype_policies.get(float_config) == DTypePolicy("float16")


@pytest.mark.parametrize(
    "dtype",
    [
        "mixed_float16",
        DTypePolicy("mixed_float16"),
        FloatDTypePolicy("mixed_float16"),
        {"class_name": "DTypePolicy", "config": {"name": "mixed_float16"}},
    ],
    ids=["name", "policy", "float policy", "config"],
)
def test_a_layer_takes_a_name_a_policy_or_a_config(dtype):
    layer = layers.Dense(2, dtype=dtype)
    assert layer.dtype_policy == DTypePolicy("mixed_float16")
    twin = layers.Dense.from_config(layer.get_config())
    assert twin.dtype_policy == layer.dtype_policy


def test_dtypes_are_policies_too():
    for dtype in (tw.float16, "float16", "half", tw.float16.dtype):
        assert dtype_policies.get(dtype).compute_dtype == "float16"
    assert dtype_policies.get(float) == DTypePolicy("float32")


def test_equal_policies_have_equal_names():
    assert DTypePolicy("float16") == FloatDTypePolicy("float16")
    assert DTypePolicy("float16") != DTypePolicy("mixed_float16")
    assert DTypePolicy("float16") != "float16"
    assert len({DTypePolicy("float16"), FloatDTypePolicy("float16")}) == 1


# ----------------------------------------------------------------------- the default policy


def test_new_layers_have_the_policy_that_is_set():
    before = layers.Dense(2)
    keras.mixed_precision.set_global_policy("mixed_float16")
    assert keras.config.dtype_policy() == keras.mixed_precision.global_policy()
    assert DTypePolicy().name == "mixed_float16"
    model = keras.Sequential([layers.Dense(2)])
    assert model.dtype_policy.name == model.layers[0].dtype_policy.name
    assert model.layers[0].compute_dtype == "float16"
    assert before.compute_dtype == "float32"
    assert layers.Dense(2, dtype="float64").compute_dtype == "float64"
    keras.config.set_dtype_policy(DTypePolicy("float64"))
    assert layers.Dense(2).dtype == "float64"


def test_without_one_it_is_that_of_floatx_and_clear_session_unsets_it():
    assert keras.config.dtype_policy().name == "float32"
    keras.config.set_floatx("float64")
    assert layers.Dense(2).dtype_policy.name == "float64"
    keras.config.set_dtype_policy("mixed_float16")
    keras.config.set_floatx("float32")
    assert keras.config.dtype_policy().name == "mixed_float16"
    keras.backend.clear_session()
    assert keras.config.dtype_policy().name == "float32"


def test_losses_and_metrics_are_in_floatx_whatever_the_policy_is():
    keras.config.set_dtype_policy("mixed_float16")
    assert keras.losses.MeanSquaredError().dtype == "float32"
    metric = keras.metrics.Mean()
    assert metric.dtype == "float32"
    assert {v.dtype.name for v in metric.variables} == {"float64"}  # it counts on
    metric.update_state([1.0, 2.0])
    assert metric.result().dtype.name == "float32"
    assert keras.losses.MeanSquaredError(dtype="mixed_float16").dtype == "float16"
    assert keras.metrics.Mean(dtype=DTypePolicy("float64")).dtype == "float64"


# ------------------------------------------------------------------------------ by path


def test_a_map_has_policies_by_path_and_by_pattern():
    policies = DTypePolicyMap("float32", {"encoder/first": "float16"})
    policies["encoder/.*"] = "mixed_float16"
    assert policies["encoder/first"].name == "float16"
    assert policies["encoder/second"].name == "mixed_float16"
    assert policies["decoder"].name == policies.default_policy.name == "float32"
    assert policies.name == "map_float32" and policies.compute_dtype == "float32"
    assert list(policies) == ["encoder/first", "encoder/.*"] and len(policies) == 2
    assert "encoder/second" not in policies
    with pytest.raises(ValueError, match="'encoder/first' has a policy already"):
        policies["encoder/first"] = "float64"
    del policies["encoder/first"]
    policies["encoder/f.*"] = "float64"
    with pytest.raises(ValueError, match=r"'encoder/first' matches several keys, \["):
        policies["encoder/first"]


def test_a_map_comes_back_from_its_config():
    policies = DTypePolicyMap("mixed_float16", {"a": "float16"})
    config = dtype_policies.serialize(policies)
    assert config["module"] == "keras.dtype_policies"
    assert config["config"]["default_policy"]["config"] == {"name": "mixed_float16"}
    assert dtype_policies.deserialize(config) == policies
    assert DTypePolicyMap().get_config()["default_policy"] is None
    assert policies != DTypePolicyMap("mixed_float16")


def test_layers_inside_of_a_layer_find_their_policy_by_path():
    class Block(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.first = layers.Dense(2, name="first", dtype=self.dtype_policy)
            self.second = layers.Dense(2, name="second", dtype=self.dtype_policy)

        def call(self, x):
            return self.second(self.first(x))

    policies = DTypePolicyMap("float32", {"block/first": "mixed_float16"})
    block = Block(name="block", dtype=policies)
    assert block(tw.ones([1, 2])).dtype == "float32"
    assert block.first.compute_dtype == "float16"
    assert block.second.compute_dtype == "float32"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((DTypePolicyMap("float32"),), ValueError, "default_policy .*got a map"),
        (("float32", ["a"]), TypeError, r"policy_map must be a dict.*got \['a'\]"),
        (("float32", {"a": "half precision"}), ValueError, "got 'half precision'"),
        (("float32", {"((a{999}){999}){9}": "float16"}), ValueError, "at most 10000"),
        (("float32", {"[a": "float16"}), ValueError, "'\\[a': unterminated"),
    ],
)
def test_a_map_refuses_what_is_no_dict_of_policies(arguments, error, message):
    with pytest.raises(error, match=message):
        DTypePolicyMap(*arguments)


@pytest.mark.parametrize(
    "key", ["(a*)(a*)(a*)b", "(a+)+!", "(ab|a|)" * 30, "(.+.+)+!", r"\\\\*" * 24 + "!"]
)
def test_expressions_take_linear_time(key):
    policies = DTypePolicyMap("float32", {key: "float16"})
    for text in ("a" * 5000, "\\" * 300):
        assert policies[text].name == "float32"


# ------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "name",
    ["int8_from_float32", "int4_from_mixed_bfloat16", "float8_from_float32", "float8",
     "float8_e4m3fn", "gptq/4/128_from_float32"],
)  # fmt: skip
def test_quantized_policies_and_float8_are_refused(name):
    message = f"'{name}'.*float8.*not supported"
    with pytest.raises(ValueError, match=message):
        DTypePolicy(name)
    with pytest.raises(ValueError, match=message):
        layers.Dense(2, dtype=name)
    with pytest.raises(ValueError, match=message):
        keras.config.set_dtype_policy(name)


@pytest.mark.parametrize(
    "name", ["QuantizedDTypePolicy", "QuantizedFloat8DTypePolicy", "GPTQDTypePolicy"]
)
def test_configs_of_quantized_policies_are_refused(name):
    config = {"mode": "int8", "source_name": "float32"}
    with pytest.raises(ValueError, match=f"'{name}'.*not supported"):
        dtype_policies.deserialize({"class_name": name, "config": config})


@pytest.mark.parametrize(
    ("name", "error"),
    [("float33", ValueError), ("mixed_float32", ValueError), (3, TypeError)],
)
def test_other_names_are_refused(name, error):
    with pytest.raises(error, match=f"DTypePolicy: name must be .*got {name!r}"):
        DTypePolicy(name)


def test_values_that_are_no_policy_are_refused():
    with pytest.raises(ValueError, match="dtype must be .*got 3"):
        layers.Dense(2, dtype=3)
    with pytest.raises(ValueError, match="policy must be .*got 3"):
        keras.config.set_dtype_policy(3)
    with pytest.raises(ValueError, match="config of a dtype_policy.*got {'a': 1}"):
        dtype_policies.deserialize({"a": 1})
