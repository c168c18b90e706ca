"""The metadata of `keras.ops`: what the decorators of its functions say."""

import inspect
import pickle
import typing

import pytest

import tapewright as tw
from tapewright.core.naming import snake_case
from tapewright.core.primitive import get_primitive
from tapewright.keras import ops
from tapewright.keras.ops import image
from tapewright.keras.ops.operation import TRANSLATIONS, OperationFamily, find_class
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


def test_the_ops_that_are_recorded_as_operations_exist():
    for name, (kinds, _) in TRANSLATIONS.items():
        assert get_primitive(name) and kinds and set(kinds) <= set("fciub"), name


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
