"""Operations between layers: Keras' entries in configs, read and written."""

import json
import pathlib
import re

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.files.operations import is_operation
from tapewright.serialization.load_errors import from_file

from .reference import record_operations as reference

keras, ops = tw.keras, tw.keras.ops
FOLDER = pathlib.Path(__file__).parent / "reference"
INPUTS = {}


@pytest.fixture(autouse=True)
def inputs(device):
    INPUTS.update({name: tw.constant(x) for name, x in reference.inputs().items()})


RECORDED = {
    family: json.loads((FOLDER / f"operations_{family}.json").read_text())
    for family in reference.CASES
}
CASES = [
    pytest.param(family, f"{k:03d} {case.name}", case, id=f"{family}-{k}-{case.name}")
    for family, cases in reference.CASES.items()
    for k, case in enumerate(cases)
]


def symbolic():
    """Inputs like those of the recorded models."""
    return {
        name: keras.Input(batch_shape=shape, dtype=dtype, name=name)
        for name, (shape, dtype) in reference.SHAPES.items()
    }


def model_of(make):
    keras.backend.clear_session()
    inputs = symbolic()
    return keras.Model(inputs, make(inputs))


def operations(config):
    return [x for x in config["layers"] if x["class_name"] != "InputLayer"]


def through_json(model):
    text = json.dumps(model.get_config(), allow_nan=False)
    return type(model).from_config(json.loads(text))


def recorded_part(family, key):
    """The config of a model that has this one of the recorded outputs."""
    config = RECORDED[family]["config"]
    layers = {layer["name"]: layer for layer in config["layers"]}
    end = config["output_layers"][key]
    needed, ahead = set(), [end[0]]
    while ahead:
        name = ahead.pop()
        if name not in needed:
            needed.add(name)
            text = json.dumps(layers[name]["inbound_nodes"])
            ahead += re.findall(r'"keras_history": \["(\w+)"', text)
    needed |= set(reference.inputs())
    return {
        "name": "part",
        "layers": [layer for name, layer in layers.items() if name in needed],
        "input_layers": {name: [name, 0, 0] for name in reference.inputs()},
        "output_layers": end,
    }


def flat(tensor):
    array = np.asarray(tensor.numpy())
    return array.real.ravel().astype("float64")


# ------------------------------------------------------------------- what Keras wrote


@pytest.mark.parametrize("family, key, case", CASES)
def test_an_operation_that_keras_wrote_computes_what_it_does_in_keras(
    family, key, case
):
    model = keras.Model.from_config(recorded_part(family, key))
    expected = np.array(RECORDED[family]["outputs"][key], "float64")
    np.testing.assert_allclose(flat(model(INPUTS)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family, key, case", CASES)
def test_a_function_of_keras_ops_is_written_as_keras_does(family, key, case):
    model = model_of(lambda inputs: case.make(ops, inputs))
    ours = operations(model.get_config())
    theirs = operations(recorded_part(family, key))
    assert [places(x) for x in ours] == [places(x) for x in theirs]
    for mine, its in zip(ours, theirs):
        assert set(mine["config"]) <= set(its["config"]) | {"name"}
        assert re.sub(r"_\d+$", "", mine["name"]) == re.sub(r"_\d+$", "", its["name"])
        given, taken = (arguments(x["inbound_nodes"][0]) for x in (mine, its))
        assert given[: len(taken)] == taken[: len(given)]
    expected = np.array(RECORDED[family]["outputs"][key], "float64")
    for each in (model, through_json(model)):
        np.testing.assert_allclose(flat(each(INPUTS)), expected, rtol=1e-5, atol=1e-6)


def places(entry):
    return entry["module"], entry["class_name"], entry["registered_name"]


def arguments(node):
    """Those of a call in order, with tensors by their shapes, defaults left out."""
    found = [*node["args"], *node["kwargs"].values()]
    text = re.sub(r'"keras_history": \[.*?\]', '"keras_history": []', json.dumps(found))
    text = text.replace("complex64", "float32")  # what Keras says of complex tensors
    return [x for x in json.loads(text) if x is not None]


@pytest.mark.parametrize(
    "make",
    [
        lambda ops, t: ops.softmax(t["x"] * 2.0)[:, 0],
        lambda ops, t: ops.einsum("bij,bkj->bik", t["x"], t["y"]),
        lambda ops, t: ops.std(t["x"], axis=1) + ops.max(t["y"], axis=1),
        lambda ops, t: ops.where(t["x"] > 0.0, t["x"] ** 2, -t["y"]),
        lambda ops, t: ops.stop_gradient(t["x"]) * t["y"],
        lambda ops, t: ops.take(t["x"], [0, -1, 0], axis=1),
    ],
)
def test_gradients_pass_through_operations(make):
    model = through_json(model_of(lambda inputs: make(ops, inputs)))
    found = []
    for function in (model, lambda inputs: make(ops, inputs)):
        with tw.GradientTape() as tape:
            tape.watch([INPUTS["x"], INPUTS["y"]])
            outputs = tw.reduce_sum(function(INPUTS) ** 2)
        found.append(
            tape.gradient(
                outputs, [INPUTS["x"], INPUTS["y"]], unconnected_gradients="zero"
            )
        )
    for ours, expected in zip(*found):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


# ----------------------------------------------------------------- what ops are in Keras

OPS = {
    "x + 1": (lambda t: t["x"] + 1, ["Add"]),
    "1 - i": (lambda t: 1 - t["i"], ["Subtract"]),
    "x * array": (lambda t: t["x"] * np.arange(4.0, dtype="f4"), ["Multiply"]),
    "x / 2": (lambda t: t["x"] / 2, ["TrueDivide"]),
    "i / 2, in float64": (lambda t: t["i"] / 2, ["OpCall"]),
    "half * 0.1": (lambda t: tw.cast(t["x"], "float16") * 0.1, ["Cast", "Multiply"]),
    "i // 2": (lambda t: t["i"] // 2, ["FloorDivide"]),
    "x % 0.7": (lambda t: t["x"] % 0.7, ["Mod"]),
    "x ** 2": (lambda t: t["x"] ** 2, ["Square"]),
    "2 ** x": (lambda t: 2.0 ** t["x"], ["Power"]),
    "-x": (lambda t: -t["x"], ["Negative"]),
    "abs(x)": (lambda t: abs(t["x"]), ["Absolute"]),
    "x > y": (lambda t: t["x"] > t["y"], ["Greater"]),
    "i == 1": (lambda t: t["i"] == 1, ["Equal"]),
    "b & c": (lambda t: t["b"] & t["c"], ["LogicalAnd"]),
    "~b": (lambda t: ~t["b"], ["LogicalNot"]),
    "i ^ j": (lambda t: t["i"] ^ t["j"], ["BitwiseXor"]),
    "m @ x": (lambda t: t["m"] @ t["x"], ["Matmul"]),
    "matmul": (
        lambda t: tw.matmul(t["x"], t["y"], transpose_b=True),
        ["Swapaxes", "Matmul"],
    ),
    "x[:, 0]": (lambda t: t["x"][:, 0], ["GetItem"]),
    "x[None]": (lambda t: t["x"][None], ["GetItem"]),
    "x[0]": (lambda t: t["x"][0], ["GetItem"]),
    "x[..., ::-1]": (lambda t: t["x"][..., ::-1], ["GetItem"]),
    "x[:, [0, 2]]": (lambda t: t["x"][:, [0, 2]], ["Take"]),
    "reduce_mean": (lambda t: tw.reduce_mean(t["x"], 1), ["Mean"]),
    "reduce_sum": (lambda t: tw.reduce_sum(t["x"], [1, 2], True), ["Sum"]),
    "int8 sum": (lambda t: tw.reduce_sum(tw.cast(t["i"], "int8")), ["Cast", "OpCall"]),
    "reduce_max": (lambda t: tw.reduce_max(t["i"], -1), ["Max"]),
    "reduce_any": (lambda t: tw.reduce_any(t["b"], 1), ["Any"]),
    "argmax": (lambda t: tw.argmax(t["x"], 1), ["Argmax", "Cast"]),
    "cumsum": (lambda t: tw.cumsum(t["x"], 1), ["Cumsum"]),
    "cumsum back": (lambda t: tw.cumsum(t["x"], 1, reverse=True), ["OpCall"]),
    "sort": (lambda t: tw.sort(t["x"], 1), ["Sort"]),
    "top_k": (lambda t: tw.math.top_k(t["x"], 2)[0], ["TopK"]),
    "reshape": (lambda t: tw.reshape(t["x"], (-1, 12)), ["Reshape"]),
    "transpose": (lambda t: tw.transpose(t["x"], [0, 2, 1]), ["Transpose"]),
    "expand_dims": (lambda t: tw.expand_dims(t["x"], 1), ["ExpandDims"]),
    "concat": (lambda t: tw.concat([t["x"], t["y"]], 1), ["Concatenate"]),
    "stack": (lambda t: tw.stack([t["x"], t["y"]], 1), ["Stack"]),
    "split": (lambda t: tw.split(t["x"], [1, 3], axis=2)[1], ["Split"]),
    "unstack": (lambda t: tw.unstack(t["x"], axis=1)[2], ["Unstack"]),
    "pad": (lambda t: tw.pad(t["v"], [[0, 0], [1, 2]], constant_values=2.0), ["Pad"]),
    "roll": (lambda t: tw.roll(t["x"], 1, 1), ["Roll"]),
    "where": (lambda t: tw.where(t["b"], t["v"], 0.0), ["Where"]),
    "where, infinite": (lambda t: tw.where(t["b"], t["v"], -np.inf), ["Where"]),
    "where, constants": (lambda t: tw.where(t["b"], 1.0, 0.0), ["Where"]),
    "gather": (lambda t: tw.gather(t["x"], [0, 1], axis=1), ["Take"]),
    "lookup": (lambda t: tw.gather(tw.constant([1.5, 2.5, 3.5]), t["i"]), ["Take"]),
    "one_hot": (lambda t: tw.one_hot(t["i"], 4), ["OneHot"]),
    "stop_gradient": (lambda t: tw.stop_gradient(t["x"]), ["StopGradient"]),
    "clip": (lambda t: tw.clip_by_value(t["x"], -1, 1), ["Clip"]),
    "einsum": (lambda t: tw.einsum("bij->bj", t["x"]), ["Einsum"]),
    "softmax": (lambda t: tw.nn.softmax(t["x"], axis=1), ["Softmax"]),
    "relu": (lambda t: tw.nn.relu(t["x"]), ["Relu"]),
    "leaky_relu": (lambda t: tw.nn.leaky_relu(t["x"], 0.1), ["LeakyRelu"]),
    "gelu": (lambda t: tw.nn.gelu(t["x"]), ["Gelu"]),
    "silu": (lambda t: tw.nn.silu(t["x"]), ["Silu"]),
    "squareplus": (lambda t: keras.activations.squareplus(t["x"], 3), ["Squareplus"]),
    "tanh_shrink": (lambda t: keras.activations.tanh_shrink(t["x"]), ["TanhShrink"]),
    "conv": (lambda t: tw.nn.conv1d(t["x"], reference.KERNEL, 1, "SAME"), ["Conv"]),
    "squared_difference": (
        lambda t: tw.math.squared_difference(t["x"], t["y"]),
        ["Subtract", "Square"],
    ),
    "add_n": (lambda t: tw.add_n([t["x"], t["y"], t["p"]]), ["Add", "Add"]),
    "tile": (lambda t: tw.tile(t["x"], [1, 2, 1]), ["Tile"]),
    "repeat": (lambda t: tw.repeat(t["x"], 2, axis=1), ["Repeat"]),
    "ones_like": (lambda t: tw.ones_like(t["x"]) * t["x"], ["OnesLike", "Multiply"]),
    "tensordot": (lambda t: tw.tensordot(t["x"], tw.ones((4, 2)), 1), ["Tensordot"]),
    "norm": (lambda t: tw.norm(t["x"], axis=1), ["Norm"]),
    "norm of order 1": (lambda t: tw.norm(t["x"], 1, axis=1), ["Absolute", "Sum"]),
    "reduce_std": (lambda t: tw.math.reduce_std(t["x"], 1), ["Std"]),
    "reduce_variance": (lambda t: tw.math.reduce_variance(t["x"], 1), ["Var"]),
    "moments": (lambda t: tw.nn.moments(t["x"], [0, 1])[1], ["Moments"]),
    "max_pool2d": (
        lambda t: tw.nn.max_pool2d(t["im"], 2, [1, 2, 2, 1], "SAME"),
        ["MaxPool"],
    ),
    "avg_pool": (lambda t: tw.nn.avg_pool(t["x"], 2, 1, "VALID"), ["AveragePool"]),
    "resize": (lambda t: tw.image.resize(t["im"], (3, 4)), ["Resize"]),
    "l2_normalize": (
        lambda t: tw.nn.l2_normalize(t["x"], -1),
        ["Square", "Sum", "Maximum", "Rsqrt", "Multiply"],
    ),
    "lgamma": (lambda t: tw.math.lgamma(t["p"]), ["OpCall"]),
}


@pytest.mark.parametrize("make, classes", OPS.values(), ids=OPS)
def test_an_op_on_symbolic_tensors_is_the_operation_that_does_the_same(make, classes):
    model = model_of(make)
    entries = operations(model.get_config())
    assert [entry["class_name"] for entry in entries] == classes
    assert all([is_operation(entry) for entry in entries])
    expected = make(INPUTS)
    for each in (model, through_json(model)):
        found = each(INPUTS)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_operations_are_called_and_shown_as_in_keras():
    keras.backend.clear_session()
    inputs = keras.Input((3, 4))
    model = keras.Model(inputs, ops.mean((inputs + 1.0)[:, 0] + 2.0, axis=-1))
    lines = []
    model.summary(print_fn=lines.append)
    for shown in ("add (Add)", "get_item (GetItem)", "add_1 (Add)", "mean (Mean)"):
        assert shown in lines[0]


def test_a_call_on_a_list_of_tensors_is_one_node_with_the_list():
    model = model_of(lambda t: ops.concatenate([t["x"], t["y"], t["p"]], axis=-1))
    (entry,) = operations(model.get_config())
    (tensors,) = entry["inbound_nodes"][0]["args"]
    assert [x["config"]["keras_history"][0] for x in tensors] == ["x", "y", "p"]


def test_a_tensor_where_keras_takes_a_number_makes_an_entry_of_our_own():
    model = model_of(lambda t: ops.clip(t["x"], -1.0, t["p"]))
    (entry,) = operations(model.get_config())
    assert places(entry) == ("tapewright", "OpCall", "OpCall")
    expected = ops.clip(INPUTS["x"], -1.0, INPUTS["p"])
    np.testing.assert_array_equal(through_json(model)(INPUTS), expected)


def test_infinite_arguments_are_kept_though_json_has_none():
    model = model_of(lambda t: ops.clip(t["x"], -np.inf, 0.5))
    expected = ops.clip(INPUTS["x"], -np.inf, 0.5)
    np.testing.assert_array_equal(through_json(model)(INPUTS), expected)


def test_a_list_as_an_index_picks_entries_after_reading_as_before():
    model = model_of(lambda t: ops.get_item(t["x"], [0, 1, 0]))
    expected = ops.get_item(INPUTS["x"], [0, 1, 0])
    np.testing.assert_array_equal(through_json(model)(INPUTS), expected)


def test_arrays_for_sizes_are_written_as_lists():
    model = model_of(lambda t: ops.repeat(t["x"], np.array([2, 0, 1]), axis=1))
    (entry,) = operations(model.get_config())
    assert entry["config"]["repeats"] == [2, 0, 1]


def test_a_clone_computes_the_same():
    model = model_of(lambda t: ops.softmax(t["x"] @ reference.KERNEL[0])[:, 1])
    np.testing.assert_array_equal(
        keras.models.clone_model(model)(INPUTS), model(INPUTS)
    )


def test_a_batch_of_any_size_passes_operations():
    inputs = keras.Input((3, 4))
    outputs = ops.reshape(ops.tile(inputs, (1, 2, 1)), (-1, 24)) - ops.std(inputs)
    model = through_json(keras.Model(inputs, outputs))
    for size in (1, 5):
        assert model(tw.ones((size, 3, 4))).shape == (size, 24)


# ----------------------------------------------------------------------- files of HDF5


def test_entries_without_modules_are_operations_where_layers_are_called_otherwise():
    x = {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}

    def entry(class_name, args, **config):
        node = {"args": args, "kwargs": {}}
        return {"class_name": class_name, "config": config, "inbound_nodes": [node]}

    assert is_operation(entry("Add", [x, 1.0], name="add"))
    assert not is_operation(entry("Add", [[x, x]], name="add"))
    assert not is_operation(entry("Add", [[x, x]], name="add", trainable=True))
    assert is_operation(entry("Reshape", [x], name="reshape", newshape=[-1]))
    assert not is_operation(entry("Reshape", [x], name="reshape", target_shape=[-1]))
    assert is_operation(entry("GetItem", [x, 0], name="get_item"))
    assert not is_operation(entry("Dense", [x], name="dense", units=2))
    ours = own_entry("reverse", axis=[1])
    del ours["module"]  # as version 0.2 wrote
    assert read(ours)(tw.constant([[1.0, 2.0, 3.0]] * 2)).numpy()[0, 0] == 3.0


# ---------------------------------------------------------------------- what is refused


def read(entry, node=None):
    """A model of one operation, as if its config came from a file."""
    x = {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}
    node = {"args": [x], "kwargs": {}} if node is None else node
    start = {
        "module": "keras.layers",
        "class_name": "InputLayer",
        "config": {"batch_shape": [2, 3], "dtype": "float32", "name": "x"},
        "registered_name": None,
        "name": "x",
        "inbound_nodes": [],
    }
    entry = {"name": "op", "inbound_nodes": [node], **entry}
    with from_file("model.keras", "config.json"):
        return keras.Model.from_config(
            {
                "name": "m",
                "layers": [start, entry],
                "input_layers": ["x", 0, 0],
                "output_layers": ["op", 0, 0],
            }
        )


def keras_entry(name, module="keras.src.ops.numpy", **config):
    return {"module": module, "class_name": name, "config": {"name": "op", **config}}


def own_entry(op, **attributes):
    config = {"op": op, "attributes": attributes, "name": "op"}
    return {"module": "tapewright", "class_name": "OpCall", "config": config}


def test_what_is_refused_here_is_otherwise_read():
    assert read(keras_entry("Sum", axis=1)).output_shape == (2,)
    assert read(own_entry("reverse", axis=[1])).output_shape == (2, 3)


@pytest.mark.parametrize(
    "entry, words",
    [
        (keras_entry("System"), "'System' of Keras is unknown"),
        (keras_entry("system", "keras.src.ops.os"), "is unknown"),
        (keras_entry("Sum", axes=1), "no argument 'axes'"),
        (keras_entry("Sum", x=[1.0]), "no argument 'x'"),
        (keras_entry("Sum", axis="all"), "cannot be called"),
        (keras_entry("Sum", axis=7), "cannot be called"),
        (keras_entry("Linspace", num=10**12), "1000000000000 for 'num'"),
        (keras_entry("Tile", repeats=[1, 10**15]), "for 'repeats'"),
        (keras_entry("Reshape", newshape=[2**60]), "for 'newshape'"),
        (
            own_entry(
                "keras.ops.linspace",
                num={
                    "class_name": "__numpy__",
                    "config": {"value": 10**12, "dtype": "int64"},
                },
            ),
            "for 'num'",
        ),
        (own_entry("no_such_op"), "no_such_op"),
        (own_entry("reverse"), "attributes"),
        (own_entry("reverse", axis=[1], code="x"), "attributes"),
        (own_entry("keras.ops.no_such"), "no_such"),
        (own_entry("keras.ops.sum", code="x"), "no argument 'code'"),
        ({**own_entry("add"), "config": {"op": 3}}, "OpCall"),
        ({**own_entry("add"), "config": None}, "must be a dict"),
    ],
)
def test_an_entry_that_is_none_is_refused_with_the_reason(entry, words):
    with pytest.raises(tw.errors.SavingError, match=re.escape(words)) as error:
        read(entry)
    assert "model.keras" in str(error.value)


@pytest.mark.parametrize(
    "entry, kwargs, words",
    [
        (keras_entry("Linspace"), {"stop": 1.0, "num": 10**12}, "for 'num'"),
        (keras_entry("Tile"), {"repeats": [[10**15]]}, "for 'repeats'"),
        (keras_entry("Sum"), {"code": "x"}, "cannot be called"),
        (own_entry("reverse", axis=[1]), {"axis": [0]}, "no keyword arguments"),
    ],
)
def test_arguments_of_calls_are_checked_as_those_of_configs(entry, kwargs, words):
    x = {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}
    with pytest.raises(tw.errors.SavingError, match=re.escape(words)):
        read(entry, {"args": [x], "kwargs": kwargs})


@pytest.mark.parametrize(
    "argument",
    [
        {"class_name": "__lambda__", "config": {"value": ["4wEA", None, None]}},
        {"class_name": "function", "config": "system", "module": "os"},
        {"class_name": "__numpy__", "config": {"value": [[1.0], [1.0, 2.0]]}},
        {"class_name": "__numpy__", "config": {"value": ["x"], "dtype": "float32"}},
        {"class_name": "__numpy__", "config": {"value": [1.0], "dtype": "object"}},
        {"class_name": "__slice__", "config": {"start": "0", "stop": 1}},
    ],
)
def test_arguments_of_calls_hold_no_code_and_no_objects(argument):
    x = {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}
    with pytest.raises(tw.errors.SavingError):
        read(keras_entry("Add"), {"args": [x, argument], "kwargs": {}})


@pytest.mark.parametrize("entry", [keras_entry("Full", shape=[9]), own_entry("arange")])
def test_an_operation_on_no_tensor_is_refused_for_it_would_compute_at_once(entry):
    if entry["class_name"] == "OpCall":
        entry["config"]["attributes"] = {"count": 10, "dtype": "int64"}
    with pytest.raises(tw.errors.SavingError, match="called on no tensor"):
        read(entry, {"args": [], "kwargs": {}})


def test_a_variable_in_a_call_is_an_error_as_it_would_be_a_constant():
    variable = tw.Variable(2.0, name="scale")
    with pytest.raises(TypeError, match="variable 'scale'.*constant"):
        ops.multiply(keras.Input((3,)), variable)


def test_a_function_with_a_custom_gradient_is_refused_between_layers():
    @tw.custom_gradient
    def doubled(x):
        return x * 1.0, lambda g: g * 2.0

    with pytest.raises(TypeError, match="doubled .*custom gradient"):
        doubled(keras.Input((3,)))


def test_a_traced_function_called_between_layers_gives_its_ops():
    @tw.function
    def scaled(x):
        return x * 2.0

    model = model_of(lambda t: scaled(t["x"]))
    assert [x["class_name"] for x in operations(model.get_config())] == ["Multiply"]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tw.shape(x),
        lambda x: tw.map_fn(lambda y: y, x),
        lambda x: tw.vectorized_map(lambda y: tw.reduce_sum(y) * y, x),
        lambda x: tw.boolean_mask(x, x > 0.0),
        lambda x: tw.nn.dropout(x, 0.5),
        lambda x: tw.cond(x[0, 0] > 0.0, lambda: x, lambda: -x),
        lambda x: np.sqrt(x),
    ],
)
def test_what_asks_for_sizes_or_values_tells_where_it_can_stand(call):
    with pytest.raises(TypeError, match=r"KerasTensor.*call\(\) of a Layer"):
        call(keras.Input((4,)))


def test_a_batch_of_any_size_passes_functions_that_ask_for_sizes():
    inputs = keras.Input((4,))
    outputs = tw.tile(tw.zeros_like(inputs) + inputs, [1, 2])
    model = through_json(keras.Model(inputs, outputs))
    for size in (1, 3):
        assert model(tw.ones((size, 4))).shape == (size, 8)


def test_what_no_config_can_hold_is_an_error_when_it_is_written():
    model = model_of(lambda t: ops.top_k(t["x"], 2, sorted=object())[0])
    with pytest.raises(TypeError, match="A config cannot hold object"):
        model.get_config()
