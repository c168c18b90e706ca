"""How Python's values, and objects that hold arrays, become tensors."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import TensorShape

from .values import same


class GivesArray:
    """An object of another library that has an array, as a pandas Series does."""

    def __init__(self, array):
        self.array_inside = array

    def __array__(self, dtype=None, copy=None):
        return self.array_inside


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1.5, "float32", ()),
        (3, "int32", ()),
        (2**31 - 1, "int32", ()),
        (2**31, "int64", ()),
        (-(2**31) - 1, "int64", ()),
        (True, "bool", ()),
        (1 + 2j, "complex128", ()),
        ("text", "string", ()),
        ([1.0, 2], "float32", (2,)),
        ([[1, 2], [3, 4]], "int32", (2, 2)),
        ((1, 2), "int32", (2,)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        (range(3), "int32", (3,)),
        (np.float64(1.0), "float64", ()),
        (np.int64(1), "int64", ()),
        (np.arange(3), "int64", (3,)),
        (np.arange(3.0), "float64", (3,)),
        (np.zeros((2, 0), np.float16), "float16", (2, 0)),
        ([np.float64(1.0), 2.0], "float64", (2,)),
        ([np.float32(1.0), 2.0], "float32", (2,)),
        (TensorShape([2, 3]), "int32", (2,)),
        (GivesArray(np.arange(3)), "int64", (3,)),
        (GivesArray(np.arange(3.0)), "float64", (3,)),
        (GivesArray(np.array(["a"], object)), "string", (1,)),
    ],
)
def test_python_numbers_are_single_and_arrays_keep_their_dtype(value, dtype, shape):
    for make in (tw.constant, tw.convert_to_tensor):
        tensor = make(value)
        assert (tensor.dtype, tensor.shape) == (dtype, shape)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, "float32", 1.0),
        (1.5, "float64", 1.5),
        (2, "complex64", 2 + 0j),
        (True, "float32", 1.0),
        ([True, False], "int32", [1, 0]),
        (255, "uint8", 255),
        (np.arange(3.0) + 0.5, "int32", [0, 1, 2]),
        (np.array([True]), "float32", [1.0]),
        (np.float64(0.1), "float32", np.float32(0.1)),
    ],
)
def test_a_dtype_can_be_demanded(value, dtype, expected):
    assert same(tw.constant(value, dtype=dtype), expected, dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, "int32"),
        ([1.0], "int64"),
        (3, "bool"),
        ("a", "float32"),
        (1j, "float32"),
        (300, "uint8"),
        (-1, "uint8"),
        ([1, 2**40], "int32"),
    ],
)
def test_what_would_lose_something_is_a_type_error(value, dtype):
    with pytest.raises(TypeError):
        tw.constant(value, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16", "bool"])
def test_what_has_an_array_in_it_keeps_its_dtype(dtype):
    class Series:
        def __array__(self, dtype=None, copy=None):
            return array

    array = np.array([1, 0], dtype)
    assert same(tw.constant(Series()), array, dtype)
    assert same(tw.convert_to_tensor(Series(), dtype_hint="int32"), array)
    assert tw.Variable(Series()).dtype == dtype
    assert same(tw.constant(Series(), "float32"), array, "float32")


@pytest.mark.parametrize("value", [None, object(), {}, {1: 2}, lambda: 1, {1.0}])
def test_what_is_no_number_is_a_type_error_that_names_it(value):
    with pytest.raises(TypeError, match=type(value).__name__):
        tw.constant(value)


@pytest.mark.parametrize("value", [["a", 1], [1, None], {1: 2}, np.array([1, {}])])
def test_what_is_no_number_is_a_value_error_too_as_in_tensorflow(value):
    for convert in (tw.constant, tw.convert_to_tensor, tw.Variable):
        with pytest.raises(ValueError, match="Cannot convert"):
            convert(value)
    with pytest.raises(ValueError, match="ragged axes must form a tensor"):
        tw.ragged.constant([["a"], [1]])


@pytest.mark.parametrize("value", [2**70, -(2**70), [1, 2**64]])
def test_an_int_beyond_64_bits_is_refused(value):
    with pytest.raises(TypeError, match="does not fit into int64|Cannot convert"):
        tw.constant(value, dtype="int64")


def test_a_huge_int_says_why():
    with pytest.raises(TypeError, match="does not fit into int64"):
        tw.constant(2**70)


@pytest.mark.parametrize("value", [[[1], [2, 3]], [[1.0], 2.0], [[[1]], [[1, 2]]]])
def test_a_ragged_list_is_a_value_error(value):
    with pytest.raises(ValueError, match="ragged"):
        tw.constant(value)


def test_shape_reshapes_or_repeats():
    assert same(tw.constant([1, 2, 3, 4], shape=[2, 2]), [[1, 2], [3, 4]])
    assert same(tw.constant(5.0, shape=(2, 2)), [[5.0, 5.0], [5.0, 5.0]])
    assert same(tw.constant([7], shape=()), 7)
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*3"):
        tw.constant([1, 2, 3], shape=[2, 2])


def test_a_tensor_is_converted_to_itself():
    t = tw.constant(1.0)
    assert tw.convert_to_tensor(t) is t
    assert tw.convert_to_tensor(t, dtype="float32") is t


def test_a_tensor_of_another_dtype_than_demanded_is_refused():
    with pytest.raises(TypeError, match=r"dtype must be float64.*\n.*float32"):
        tw.convert_to_tensor(tw.constant(1.0), dtype="float64")


def test_a_hint_is_followed_where_nothing_is_lost():
    assert tw.convert_to_tensor(1, dtype_hint="float64").dtype == "float64"
    assert tw.convert_to_tensor(1.5, dtype_hint="int32").dtype == "float32"


def test_a_constant_is_a_copy_of_the_array():
    array = np.arange(3.0)
    t, v = tw.constant(array), tw.convert_to_tensor(array)
    array[:] = 9.0
    assert same(t, [0.0, 1.0, 2.0]) and same(v, [0.0, 1.0, 2.0])


def test_a_list_of_tensors_keeps_their_dtype():
    for dtype in ("int64", "float64", "float16"):
        t = tw.constant(3, dtype=dtype)
        assert tw.constant([t, t]).dtype == dtype
        assert tw.convert_to_tensor([[t], [t]]).shape == (2, 1)
        assert tw.convert_to_tensor([[t], [t]]).dtype == dtype


@pytest.mark.parametrize(
    "value, dtype",
    [
        ([np.int64(1), 2], "int32"),
        ([np.array([1, 2]), [3, 4]], "int32"),
        ((np.uint8(3),), "int32"),
        ([np.int64(1), 2.5], "float32"),
        ([np.int64(2**40)], "int64"),
        ([np.array(True)], "bool"),
        ([np.float64(1), 2], "float64"),
        (np.int64(1), "int64"),
    ],
)
def test_integers_of_numpy_in_a_list_are_as_those_of_python(value, dtype):
    assert tw.constant(value).dtype == tw.convert_to_tensor(value).dtype == dtype


def test_a_stack_of_integers_has_the_dtype_of_a_list_along_the_first_axis():
    rows = [np.array([1, 2]), np.array([3, 4])]
    assert [tw.stack(rows, axis).dtype for axis in (0, 1)] == ["int32", "int64"]
    assert tw.stack([row * 1.0 for row in rows]).dtype == "float64"


def test_a_gradient_passes_through_a_list_that_holds_tensors():
    x, y = tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        z = tw.reduce_sum(
            tw.convert_to_tensor([[x, 1.0], [y, x]]) * [[1.0, 5.0], [7.0, 9.0]]
        )
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [10.0, 7.0]


def test_an_op_takes_a_list_that_holds_tensors():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        y = tw.reduce_sum([x, x * x, 1.0])
    assert tape.gradient(y, x).numpy() == 5.0


@pytest.mark.parametrize("byte_order", ["<f4", ">f4"])
def test_any_byte_order_is_float32(byte_order):
    assert tw.constant(np.array([1.5], byte_order)).dtype == "float32"


def test_an_array_that_is_not_contiguous():
    assert same(
        tw.constant(np.arange(6.0).reshape(2, 3).T[::-1]), [[2, 5], [1, 4], [0, 3]]
    )


def test_a_constant_made_of_a_tensor_is_that_tensor():
    t = tw.constant([1.0, 2.0])
    assert tw.constant(t) is t is tw.constant(t, dtype="float32")
    assert tw.constant(t, dtype="float64").dtype == tw.float64
    with tw.GradientTape() as tape:
        tape.watch(t)
        y = tw.constant(t) * 3.0
    assert tape.gradient(y, t).numpy().tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "dtype", ["int32", "int64", "uint8", "bool", "complex64", "string"]
)
def test_nothing_has_any_dtype(dtype):
    for value, shape in (([], (0,)), ([[]], (1, 0)), ((), (0,)), ([[], []], (2, 0))):
        for make in (tw.constant, tw.convert_to_tensor, tw.Variable):
            made = make(value, dtype=dtype)
            assert (made.dtype, made.shape) == (dtype, shape)
        assert tw.convert_to_tensor(value, dtype_hint=dtype).dtype == dtype
    assert tw.constant([]).dtype == "float32"


def test_a_shape_becomes_whole_numbers():
    for dims in ([], [2, 3]):
        shape = tw.TensorShape(dims)
        assert tw.convert_to_tensor(shape).dtype == "int32"
        assert tw.convert_to_tensor(shape, "int64").numpy().tolist() == dims
    assert tw.convert_to_tensor(tw.TensorShape([2**40])).dtype == "int64"
    with pytest.raises(TypeError, match="float32"):
        tw.convert_to_tensor(tw.TensorShape([]), "float32")
    with pytest.raises(ValueError, match="None"):
        tw.convert_to_tensor(tw.TensorShape([1, None]))


def test_tensors_in_a_list_are_cast_to_the_dtype_that_is_asked_for():
    x = tw.constant(1.5)
    with tw.GradientTape() as tape:
        tape.watch(x)
        packed = tw.convert_to_tensor([tw.constant(1), 2.5, x], "float64")
    assert packed.numpy().tolist() == [1.0, 2.5, 1.5] and packed.dtype == "float64"
    assert tape.gradient(packed, x).numpy() == 1.0
    with pytest.raises(TypeError, match="int32"):
        tw.convert_to_tensor([tw.constant(1), 2.5], "int32")


def test_a_number_beyond_float32_is_no_infinity():
    for value in (1e39, -1e300, [1.0, 1e300]):
        with pytest.raises(ValueError, match="does not fit into float32"):
            tw.constant(value)
    assert tw.constant(1e300, "float64").numpy() == 1e300
    assert tw.constant([np.inf, -np.inf]).numpy().tolist() == [np.inf, -np.inf]


def test_strings_are_bytes_outside():
    for value, wanted in (
        ("a", b"a"),
        ("\u00e9", b"\xc3\xa9"),
        (b"\xff\xfe", b"\xff\xfe"),
    ):
        found = tw.constant(value).numpy()
        assert type(found) is bytes and found == wanted
    for value in (["a", "bc"], [b"a", "bc"], np.array(["a", "bc"]), np.array([b"a", b"bc"]),
                  np.array(["a", b"bc"], object)):  # fmt: skip
        x = tw.constant(value)
        assert x.numpy().dtype == object and x.numpy().tolist() == [b"a", b"bc"]
        assert np.asarray(x).tolist() == [b"a", b"bc"]
        assert tw.reduce_all(x == ["a", "bc"]).numpy()
    assert (tw.constant("a") + "b").numpy().decode() == "ab"


def test_numbers_among_strings_are_refused():
    for value in ([1, "a"], [1.0, "a"], [["a"], [2]]):
        with pytest.raises(TypeError):
            tw.constant(value)


class Column:
    """An object that converts to an array, with a dtype of its own, as one of pandas."""

    dtype = "column"

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


def test_objects_that_convert_to_arrays_keep_the_dtype_of_these():
    x = tw.constant(Column([1.5, 2.5]))
    assert x.dtype == "float64" and x.numpy().tolist() == [1.5, 2.5]
    assert tw.constant(Column([1])).dtype == "int64"
    assert tw.constant(Column([1.5]), "int32").numpy().tolist() == [1]
    assert tw.constant([1.0, 2.0]) + Column([1.0, 2.0]) is not None
    assert tw.constant(Column(["a", "b"])).numpy().tolist() == [b"a", b"b"]
    spec = tw.data.Dataset.from_tensor_slices({"x": Column([1.5])}).element_spec
    assert spec["x"].dtype == "float64"
    lookup = tw.layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=0)
    assert lookup(Column(["b", "a"])).numpy().tolist() == [1, 0]
    assert tw.layers.Rescaling(2.0)(Column([1.5])).dtype == "float32"


def test_objects_that_are_numbers_convert_to_a_dtype_that_is_given():
    table = Column(np.array([[True, 1, 0.5], [False, 2, 1.5]], object))
    for make in (tw.constant, tw.convert_to_tensor, tw.Variable):
        value = make(table, dtype="float32").numpy().tolist()
        assert value == [[1.0, 1.0, 0.5], [0.0, 2.0, 1.5]]
    with pytest.raises(
        TypeError, match="(?s)dtype object.*dtype='float32' to convert it"
    ):
        tw.constant(table)
    for other in (["a", 1.0], [None, 1.0]):
        with pytest.raises(TypeError, match="dtype object"):
            tw.constant(np.array(other, object), "float32")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([np.int64(1), np.int64(2)], "int32"),
        ([np.int64(2**40)], "int64"),
        ([np.uint8(1), 2], "int32"),
        ([np.array([1, 2]), np.array([3, 4])], "int32"),
        ((np.array([1], "uint8"),), "int32"),
        ([np.uint32(2**31 + 1)], "int64"),
        ([np.int64(1), 1.5], "float32"),
        ([np.float64(1), 1], "float64"),
        ([np.array([1.0])], "float64"),
        ([np.bool_(True)], "bool"),
    ],
)
def test_ints_of_numpy_in_a_list_are_int32_as_in_tensorflow(value, dtype):
    """Where they fit; those of an array alone keep their dtype."""
    assert tw.constant(value).dtype == tw.Variable(value).dtype == dtype
    assert tw.stack(value).dtype == dtype
    assert tw.stack([tw.range(1), np.array([1])]).dtype == "int32"
    assert tw.stack([np.array([1])], axis=1).dtype == "int64"
    slices = tw.data.Dataset.from_tensor_slices
    assert slices([np.int64(1)]).element_spec.dtype == "int32"
    assert slices([np.array([1])]).element_spec.dtype == "int64"
    assert slices([[np.array([1], "uint8")]]).element_spec.dtype == "uint8"
    assert slices([np.array([1]), [2]]).element_spec.dtype == "int32"
