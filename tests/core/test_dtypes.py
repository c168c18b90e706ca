"""DType objects: names, comparisons, limits, conversions to and from NumPy."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright.core import dtypes

ALIASES = {"half": "float16", "double": "float64"}
NAMES = [
    name
    for name in dtypes.__all__
    if isinstance(getattr(dtypes, name), dtypes.DType) and name not in ALIASES
]


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_is_known_by_name_by_numpy_dtype_and_by_itself(name):
    dtype = getattr(tw, name)
    assert dtypes.as_dtype(name) is dtype is dtypes.as_dtype(dtype)
    assert (
        dtypes.as_dtype(dtype.dtype) is dtype is dtypes.as_dtype(dtype.as_numpy_dtype)
    )
    assert dtype == name and name == dtype and dtype == dtype.dtype
    assert np.dtype(dtype) == dtype.dtype
    assert repr(dtype) == f"tf.{name}" and str(dtype) == f"<dtype: {name!r}>"
    assert copy.deepcopy(dtype) is dtype is pickle.loads(pickle.dumps(dtype))


def test_comparisons_with_what_is_no_dtype_are_false():
    for other in (None, 3, "no such", object(), [1], (1, 2, "a"), ("f4", ("x",)), 1.5):
        assert (tw.float32 == other) is False and (tw.float32 != other) is True


def test_different_dtypes_differ():
    assert tw.float32 != tw.float64 and tw.float32 != "int32" and tw.float32 != np.int32
    assert np.float32 == tw.float32 and np.dtype("float32") == tw.float32


def test_dtypes_are_keys():
    assert {tw.float32: 1}[dtypes.as_dtype("float32")] == 1
    assert len({tw.float32, tw.float64, dtypes.as_dtype(np.float32)}) == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float, "float32"),
        (int, "int32"),
        (bool, "bool"),
        (complex, "complex128"),
        (str, "string"),
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        (">f4", "float32"),
        ("<U3", "string"),
        (np.dtype("O"), "string"),
        ("f8", "float64"),
    ],
)
def test_pythons_types_and_other_spellings(value, expected):
    assert dtypes.as_dtype(value).name == expected


@pytest.mark.parametrize(
    "value", [None, "foo", 3, object(), "datetime64[s]", np.datetime64]
)
def test_what_names_no_dtype_is_a_type_error_that_lists_the_known(value):
    with pytest.raises(TypeError, match="known are bool, int8"):
        dtypes.as_dtype(value)


def test_kinds():
    assert tw.float16.is_floating and not tw.int8.is_floating
    assert tw.uint8.is_integer and tw.uint8.is_unsigned and not tw.int8.is_unsigned
    assert tw.bool.is_bool and not tw.bool.is_integer
    assert tw.complex64.is_complex and tw.complex64.real_dtype is tw.float32
    assert tw.complex128.real_dtype is tw.float64 and tw.int8.real_dtype is tw.int8
    differentiable = {n for n in NAMES if getattr(tw, n).is_differentiable}
    assert differentiable == {
        "bfloat16",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    }
    assert tw.float32.base_dtype is tw.float32


def test_sizes_and_limits():
    assert (tw.float16.size, tw.complex128.size, tw.bool.size) == (2, 16, 1)
    assert (tw.uint8.min, tw.uint8.max) == (0, 255)
    assert tw.int64.max == 2**63 - 1
    assert tw.float32.max == np.finfo(np.float32).max
    for dtype in (tw.bool, tw.string, tw.complex64):
        with pytest.raises(TypeError, match="no smallest and largest"):
            dtype.max  # noqa: B018


@pytest.mark.parametrize("dtype", [tw.float64, "float64", np.float64, np.dtype("f8")])
def test_every_dtype_argument_takes_every_spelling(dtype):
    for tensor in (
        tw.zeros([1], dtype),
        tw.cast(1, dtype),
        tw.constant(1, dtype),
        tw.Variable(1, dtype=dtype),
        tw.ones_like(tw.constant(1), dtype=dtype),
        tw.random.normal([1], dtype=dtype),
    ):
        assert tensor.dtype is tw.float64


@pytest.mark.parametrize("alias", ALIASES)
def test_the_names_of_c_are_aliases(alias):
    assert getattr(tw, alias) is dtypes.as_dtype(alias) is getattr(tw, ALIASES[alias])


def test_a_dtype_equals_the_python_type_that_stands_for_it_and_is_another_key():
    assert [tw.float32, tw.bool] == [float, bool]  # as in TensorFlow
    assert [tw.float64, tw.int64] != [float, bool]
    assert float not in {tw.float32} and np.dtype("float32") in {tw.float32}
    numbers = {float: "a number", tw.float32: "a tensor's dtype"}
    assert len(numbers) == 2
