"""The metadata of `keras.ops`: what the decorators of its functions say."""

import inspect
import pickle
import typing

import pytest

import tapewright as tw
from tapewright.core.names.naming import snake_case
from tapewright.core.primitive import get_primitive
from tapewright.keras import KerasTensor, ops
from tapewright.keras.ops import image
from tapewright.keras.ops.operation import TRANSLATIONS, OperationFamily, find_class
from tapewright.layers.base.symbolic_tensor import node_of
from tapewright.serialization import registry

# Functions that return no symbolic tensors, or those that other functions return.
NO_NODES = """cond convert_to_numpy custom_gradient dtype image is_tensor jvp shape
    switch""".split()


def public_functions():
    found = {name: getattr(ops, name) for name in ops.__all__ if name != "image"}
    return found | {f"image.{name}": getattr(image, name) for name in image.__all__}


DEFINITIONS = [
    registry.find("operation", f"keras.ops.{name}")
    for name in public_functions()
    if name not in [*NO_NODES, "abs", "conj", "swish", "hard_swish"]
]


def test_every_function_but_those_without_a_node_is_an_operation():
    for name, function in public_functions().items():
        if name in NO_NODES:
            with pytest.raises(ValueError):
                registry.find("operation", f"keras.ops.{name}")
        else:
            definition = registry.find("operation", f"keras.ops.{name}")
            assert function.__wrapped__ is definition.function, name
            assert inspect.signature(function).parameters == definition.parameters


def test_every_argument_and_result_has_a_type():
    bare = []
    for name, function in public_functions().items():
        if typing.get_overloads(function):
            continue
        signature = inspect.signature(function)
        types = [p.annotation for p in signature.parameters.values()]
        if inspect.Signature.empty in [*types, signature.return_annotation]:
            bare.append(name)
    assert bare == []


def test_the_arguments_of_a_call_are_arguments_of_the_function():
    for definition in DEFINITIONS:
        names = [name.lstrip("*") for name in definition.call]
        assert set(names) <= set(definition.parameters), definition.name
        assert not set(definition.fixed) & set(definition.parameters), definition.name


def test_no_two_operations_are_one_class_in_keras():
    classes = [d.class_name for d in DEFINITIONS if d.class_name is not None]
    assert len(set(classes)) == len(classes)
    for definition in DEFINITIONS:
        if definition.class_name is not None:
            assert find_class(definition.class_name) is definition


def test_default_names_are_the_words_of_the_class_as_in_keras():
    assert registry.find("operation", "keras.ops.cdist").default_name == "c_dist"
    assert registry.find("operation", "keras.ops.batch_normalization").default_name == (
        "batch_norm"
    )
    rows = tw.keras.Input((3,), name="rows")
    assert ops.isin(rows, [1.0])._keras_history.operation.name.startswith("is_in")
    for definition in DEFINITIONS:
        if definition.class_name is None:
            assert definition.default_name == definition.name.rpartition(".")[2]
        else:
            assert definition.default_name == snake_case(definition.class_name)


# Kinds of dtypes -> the ops of which calls on tensors of these are recorded as operations.
RECORDED = {
    "b": """
        logical_and logical_not logical_or logical_xor reduce_all reduce_any
        where""",
    "c": """
        angle imag real""",
    "f": """
        acos acosh asin asinh atan atan2 atanh ceil cholesky convolution cos
        cosh cumprod cumsum det divide_no_nan elu erf erfc erfinv exp expm1
        floor gelu gelu_by_tanh inv is_finite is_inf is_nan leaky_relu log log1p
        log_cosh log_softmax nextafter reciprocal reduce_logsumexp relu round
        rsqrt sigmoid sigmoid_cross_entropy_with_logits silu sin sinh softmax
        softplus softsign solve sqrt squared_difference squareplus tan tanh
        tanh_shrink""",
    "fc": """
        divide reduce_mean""",
    "iu": """
        in_top_k invert left_shift one_hot right_shift""",
    "biu": """
        bitwise_and bitwise_or bitwise_xor""",
    "fiu": """
        abs argmax argmin argsort band_part clip_by_value floordiv floormod
        greater greater_equal less less_equal maximum minimum power reduce_max
        reduce_min saturate_cast sign sort top_k""",
    "fciu": """
        add add_n einsum matmul multiply negative reduce_prod reduce_sum square
        subtract""",
    "fciub": """
        broadcast_to cast concat equal expand_dims gather getitem identity
        not_equal pad reshape reverse roll split squeeze stack stop_gradient
        take_along_axis transpose unstack""",
}


def test_calls_of_these_ops_are_recorded_as_operations():
    expected = {op: kinds for kinds, ops in RECORDED.items() for op in ops.split()}
    assert {op: kinds for op, (kinds, _) in TRANSLATIONS.items()} == expected
    assert all([get_primitive(op) for op in expected])


def test_a_normalization_has_all_arguments_in_its_call():
    x = KerasTensor((None, 3))
    calls = [
        (ops.layer_normalization(x), 3),
        (ops.rms_normalization(x), 2),
        (ops.batch_normalization(x, [0.0] * 3, [1.0] * 3, axis=-1), 5),
    ]
    for outputs, count in calls:
        args = node_of(outputs).args
        assert len(args) == count and args[-1] is None


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.map(lambda pair: pair["a"] + pair["b"][0], {"a": x, "b": [x]}),
        lambda x: ops.vectorized_map(lambda nest: nest["a"][0] * 2.0, {"a": [x]}),
        lambda x: ops.scan(lambda c, a: (c, a["x"]), 0.0, {"x": x})[1],
        lambda x: ops.associative_scan(lambda a, b: {"x": a["x"] + b["x"]}, {"x": x})[
            "x"
        ],
        lambda x: ops.while_loop(lambda a: a["i"] < 3, _next, [{"i": 0, "x": x}])[0][
            "x"
        ],
        lambda x: ops.fori_loop(0, 3, lambda i, a: [{"x": a[0]["x"]}], [{"x": x}])[0][
            "x"
        ],
    ],
)
def test_a_symbolic_tensor_deep_in_an_argument_makes_a_node(call):
    outputs = call(KerasTensor((4, 3)))
    assert type(outputs) is KerasTensor and outputs.shape == (4, 3)
    assert node_of(outputs).operation.op.startswith("keras.ops.")


def _next(a):
    return [{"i": a["i"] + 1, "x": a["x"] * 2.0}]


@pytest.mark.parametrize("alias, name", [("abs", "absolute"), ("swish", "silu")])
def test_an_alias_is_the_same_function_and_class(alias, name):
    assert getattr(ops, alias) is getattr(ops, name)
    assert find_class(alias.capitalize()) is find_class(name.capitalize())


def test_a_wrong_word_in_the_metadata_is_an_error():
    operation = OperationFamily(__name__, "numpy")
    with pytest.raises(TypeError, match="clas_name"):
        operation(lambda x: x, clas_name="Wrong")


def test_functions_are_pickled_by_their_names():
    for function in (ops.cos, ops.add, ops.sum, ops.nansum, ops.segment_sum):
        assert pickle.loads(pickle.dumps(function)) is function
