"""Configs that are faulty, too large, or would have code executed."""

import base64
import json
import marshal
import os

import files
import h5py
import numpy as np
from cases import ANY, OK, case


def config_text(depth):
    """JSON of lists in lists."""
    return "[" * depth + "]" * depth


# Configs. The weights of such a file may still be read by load_weights.


def config_case(name, phrase, kinds=("h5", "keras"), load_weights=OK, verify=None):
    """Decorates ``change(config, kind)``, which changes the config or gives a text."""

    def decorate(change):
        expected = {"load_weights": load_weights, "verify": verify or phrase}

        @case(name, kinds, phrase, placed=True, **expected)
        def _(path, kind):
            config = files.sequential(kind)
            changed = change(config, kind)
            files.write(path, kind, config if changed is None else changed)

        return change

    return decorate


@case("no config", ("h5",), every="no model|model_config", load_weights=OK, verify=ANY)
def _(path, kind):
    files.write(path, kind)
    with h5py.File(path, "a") as file:
        del file.attrs["model_config"]


@case("no config in the zip", ("keras",), every="config.json", load_weights=ANY)
def _(path, kind):
    files.write_zip(path, [("model.weights.h5", files.hdf5_bytes())])


@config_case("config truncated", "JSON", load_weights=ANY)
def _(config, kind):
    return json.dumps(config)[:200]


@config_case("config 200,000 levels deep", "deeper|JSON",
             load_weights=ANY)  # fmt: skip
def _(config, kind):
    return config_text(200_000)


@config_case("config with duplicate keys", "twice", load_weights=ANY)
def _(config, kind):
    return json.dumps(config).replace('"units": 4', '"units": 4, "units": 5')


@config_case("config with NaN", "NaN", load_weights=ANY)
def _(config, kind):
    return json.dumps(config).replace('"units": 4', '"units": 4, "rate": NaN')


@config_case("config with 1e999", "1e999|infinit|Infinity|too large|finite",
             load_weights=ANY)  # fmt: skip
def _(config, kind):
    return json.dumps(config).replace('"units": 4', '"units": 1e999')


@config_case("config is a list", "object|model", load_weights=ANY)
def _(config, kind):
    return json.dumps([config])


@config_case("config is a number", "object|model", load_weights=ANY)
def _(config, kind):
    return "7"


@case("config attribute is an array", ("h5",), "text", load_weights=ANY)
def _(path, kind):
    files.write(path, kind)
    with h5py.File(path, "a") as file:
        file.attrs["model_config"] = np.arange(5)


@config_case("units are a text", "units")
def _(config, kind):
    config["config"]["layers"][1]["config"]["units"] = "four"


@config_case("units are a list", "units")
def _(config, kind):
    config["config"]["layers"][1]["config"]["units"] = [4]


@config_case("units are negative", "units")
def _(config, kind):
    config["config"]["layers"][1]["config"]["units"] = -4


@config_case("units of 10^9", "shape|units|store|larger|bytes")
def _(config, kind):
    config["config"]["layers"][1]["config"]["units"] = 10**9


@config_case("units of 10^30", "shape|units|store|larger|large|bytes")
def _(config, kind):
    config["config"]["layers"][1]["config"]["units"] = 10**30


@config_case("a layer with no weights of 10^9 outputs", ANY)
def _(config, kind):
    repeat = files.entry("RepeatVector", kind, name="r", n=10**9)
    config["config"]["layers"].append(repeat)


@config_case("embedding of 10^12 rows", ".")
def _(config, kind):
    config["config"]["layers"][1] = files.entry(
        "Embedding", kind, name="first", input_dim=10**12, output_dim=4
    )


@config_case("the layers are a number", "layers")
def _(config, kind):
    config["config"]["layers"] = 3


@config_case("a layer is a text", ".")
def _(config, kind):
    config["config"]["layers"][1] = "Dense"


@config_case("a class_name is a list", "class_name|class")
def _(config, kind):
    config["config"]["layers"][1]["class_name"] = ["Dense"]


@config_case("a config is null", ".")
def _(config, kind):
    config["config"]["layers"][1]["config"] = None


@config_case("a name is a number", "name|not in the config")
def _(config, kind):
    config["config"]["layers"][1]["config"]["name"] = 7


@config_case("an activation is a number", "activation")
def _(config, kind):
    config["config"]["layers"][1]["config"]["activation"] = 7


@config_case("an unknown argument", "nonsense")
def _(config, kind):
    config["config"]["layers"][1]["config"]["nonsense"] = 1


@config_case("20,000 layers", "layers")
def _(config, kind):
    layers = [files.entry("ReLU", kind, name=f"r{i}") for i in range(20_000)]
    config["config"]["layers"][1:] = layers


@config_case("models nested 300 deep", "deep|nested", load_weights=ANY)
def _(config, kind):
    for i in range(300):
        config["config"]["name"] = f"net{i}"
        config = files.sequential(kind, [config])
    return json.dumps(config)


@config_case("models nested 70 deep", "deep|nested|holds")
def _(config, kind):
    for i in range(70):
        config["config"]["name"] = f"net{i}"
        config = files.sequential(kind, [config])
    return json.dumps(config)


@config_case("a cycle", "wait for|cycle|loop|each other|itself")
def _(config, kind):
    return json.dumps(files.functional(kind, ("second", "first", "second")))


@config_case("a layer of itself", "wait for|cycle|loop|each other|itself")
def _(config, kind):
    return json.dumps(files.functional(kind, ("first", "first", "second")))


@config_case("a dangling input", "nowhere")
def _(config, kind):
    return json.dumps(files.functional(kind, ("in", "nowhere", "second")))


@config_case("a dangling output", "nowhere")
def _(config, kind):
    changed = files.functional(kind)
    changed["config"]["output_layers"] = [["nowhere", 0, 0]]
    return json.dumps(changed)


@config_case("a node index out of range", "node|call|index|9")
def _(config, kind):
    changed = files.functional(kind)
    changed["config"]["output_layers"] = [["third", 9, 0]]
    return json.dumps(changed)


@config_case("a class that nobody knows", "Nonsense")
def _(config, kind):
    config["config"]["layers"][1]["class_name"] = "Nonsense"


@config_case("two layers of one name", "name|twice|order|unique")
def _(config, kind):
    config["config"]["layers"][2]["config"]["name"] = "first"


# Code. What is executed would make the file of CANARY.


def code(path):
    """Python bytecode as Keras keeps it for a Lambda layer."""
    source = compile(f"lambda x: (open({path!r}, 'w').close(), x)[1]", "f", "eval")
    function = next(each for each in source.co_consts if hasattr(each, "co_code"))
    return base64.encodebytes(marshal.dumps(function)).decode()


@config_case("Lambda bytecode", "Lambda")
def _(config, kind):
    value = {"code": code(os.environ["CANARY"]), "defaults": None, "closure": None}
    function = {"class_name": "__lambda__", "config": value}
    layer = files.entry("Lambda", kind, name="first", function=function, arguments={})
    config["config"]["layers"][1] = layer


@config_case("Lambda bytecode of Keras 2", "Lambda", kinds=("h5",))
def _(config, kind):
    config["config"]["layers"][1] = files.entry(
        "Lambda",
        kind,
        name="first",
        function=[code(os.environ["CANARY"]), None, None],
        function_type="lambda",
    )


@config_case("Lambda of a function in a module", "Lambda|hostile_module|system")
def _(config, kind):
    function = {"module": "os", "class_name": "function", "config": "system"}
    function["registered_name"] = "system"
    arguments = {"command": f"touch {os.environ['CANARY']}"}
    config["config"]["layers"][1] = files.entry(
        "Lambda", kind, name="first", function=function, arguments=arguments
    )


@config_case("a class of a module to be imported", "Thing", verify=ANY)
def _(config, kind):
    thing = {"module": "hostile_module", "class_name": "Thing", "config": {"name": "t"}}
    config["config"]["layers"][1] = {**thing, "registered_name": None}


@config_case("a class registered as of a module", "Thing", verify=ANY)
def _(config, kind):
    thing = {"module": "hostile_module", "class_name": "Thing", "config": {"name": "t"}}
    config["config"]["layers"][1] = {**thing, "registered_name": "hostile_module>Thing"}


@config_case("a function of a module as activation", "system|activation")
def _(config, kind):
    function = {"module": "os", "class_name": "function", "config": "system"}
    function["registered_name"] = "function"
    config["config"]["layers"][1]["config"]["activation"] = function


@config_case("eval as activation", "eval|activation")
def _(config, kind):
    config["config"]["layers"][1]["config"]["activation"] = "builtins.eval"


@config_case("a class that reads files", "TFSMLayer")
def _(config, kind):
    config["config"]["layers"][1] = files.entry(
        "TFSMLayer", kind, name="first", filepath=os.environ["PIPE"]
    )


@config_case("a layer that reads its words from a file", "StringLookup")
def _(config, kind):
    config["config"]["layers"][1] = files.entry(
        "StringLookup", kind, name="first", vocabulary=os.environ["PIPE"]
    )


@config_case("a function that downloads", "get_file")
def _(config, kind):
    function = {"module": "keras.utils", "class_name": "get_file", "config": {}}
    function["config"] = {"fname": "x", "origin": f"file://{os.environ['PIPE']}"}
    config["config"]["layers"][1]["config"]["kernel_initializer"] = function
