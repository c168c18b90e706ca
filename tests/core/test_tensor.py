"""Tensor, TensorSpec, TensorShape, IndexedSlices; how Python's values become tensors."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import TensorShape, TensorSpec
from tapewright.core import errors
from tapewright.core.devices import current_module


def same(actual, expected, dtype=None):
    """Checks values, and that ``actual`` is a Tensor of this dtype."""
    assert isinstance(actual, tw.Tensor), type(actual)
    np.testing.assert_array_equal(actual.numpy(), expected)
    assert actual.shape == np.shape(expected)
    if dtype is not None:
        assert actual.dtype == dtype
    return True


# ---------------------------------------------------------------------- conversion


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


def test_numpy_gives_a_copy_and_asarray_a_view_that_cannot_be_written():
    t = tw.constant([1.0, 2.0])
    t.numpy()[0] = 9.0
    assert same(t, [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(t)[0] = 9.0
    np.array(t)[0] = 9.0
    assert same(t, [1.0, 2.0])


@pytest.mark.parametrize("make", [tw.constant, tw.Variable])
@pytest.mark.parametrize("value", [[[1.0, 2.0], [3.0, 4.0]], 3, [True, False]])
def test_other_libraries_get_a_copy_by_dlpack(make, value):
    x = make(value)
    if not hasattr(current_module().ones(1), "__dlpack__"):
        pytest.skip("the stand-in has no DLPack")
    taken = current_module().from_dlpack(x)
    assert same(tw.constant(taken), value, x.dtype)
    taken[...] = 0
    np.testing.assert_array_equal(x, value)
    with pytest.raises(BufferError, match="a tensor never changes.*copy"):
        x.__dlpack__(copy=False)


def test_dlpack_needs_values():
    x = tw.constant([1.0])
    with pytest.raises(tw.errors.TracingError, match="another library needs the value"):
        tw.function(np.from_dlpack)(x)
    with pytest.raises(TypeError, match="another library"):
        np.from_dlpack(tw.keras.Input((3,)))
    with pytest.raises(ValueError, match="no one value to look at"):
        tw.vectorized_map(np.from_dlpack, x, fallback_to_while_loop=False)
    with tw.device("CPU:0"), pytest.raises(BufferError):
        np.from_dlpack(tw.constant("text"))


def test_a_list_of_tensors_keeps_their_dtype():
    for dtype in ("int64", "float64", "float16"):
        t = tw.constant(3, dtype=dtype)
        assert tw.constant([t, t]).dtype == dtype
        assert tw.convert_to_tensor([[t], [t]]).shape == (2, 1)
        assert tw.convert_to_tensor([[t], [t]]).dtype == dtype


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


# ------------------------------------------------------------------------ printing


@pytest.mark.parametrize(
    ("value", "text", "representation"),
    [  # recorded from TensorFlow
        (
            4.0,
            "tf.Tensor(4.0, shape=(), dtype=float32)",
            "<tf.Tensor: shape=(), dtype=float32, numpy=4.0>",
        ),
        (
            [1.0, 2.0],
            "tf.Tensor([1. 2.], shape=(2,), dtype=float32)",
            "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>",
        ),
        (
            [[1, 2], [3, 4]],
            "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)",
            "<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\n"
            "array([[1, 2],\n       [3, 4]], dtype=int32)>",
        ),
        (
            True,
            "tf.Tensor(True, shape=(), dtype=bool)",
            "<tf.Tensor: shape=(), dtype=bool, numpy=True>",
        ),
        (
            [True, False],
            "tf.Tensor([ True False], shape=(2,), dtype=bool)",
            "<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>",
        ),
        (
            [],
            "tf.Tensor([], shape=(0,), dtype=float32)",
            "<tf.Tensor: shape=(0,), dtype=float32, numpy=array([], dtype=float32)>",
        ),
        (
            np.zeros((0, 3)),
            "tf.Tensor([], shape=(0, 3), dtype=float64)",
            "<tf.Tensor: shape=(0, 3), dtype=float64, "
            "numpy=array([], shape=(0, 3), dtype=float64)>",
        ),
        (
            np.int64(3),
            "tf.Tensor(3, shape=(), dtype=int64)",
            "<tf.Tensor: shape=(), dtype=int64, numpy=3>",
        ),
        (
            1 + 2j,
            "tf.Tensor((1+2j), shape=(), dtype=complex128)",
            "<tf.Tensor: shape=(), dtype=complex128, numpy=(1+2j)>",
        ),
    ],
)
def test_a_tensor_prints_as_tensorflow_prints_it(value, text, representation):
    assert str(tw.constant(value)) == text
    assert repr(tw.constant(value)) == representation


def test_a_result_of_an_op_prints_like_a_constant():
    x = tw.constant(1.0) * 4.0  # NumPy gives a scalar here, no array
    assert str(x) == "tf.Tensor(4.0, shape=(), dtype=float32)"
    assert repr(x) == "<tf.Tensor: shape=(), dtype=float32, numpy=4.0>"


def test_a_format_specification_is_that_of_the_number():
    assert (
        f"{tw.constant(3.14159):.2f} {tw.constant(2.0)} {tw.constant(7):03d}"
        == "3.14 2.0 007"
    )
    assert f"{tw.constant([1.0, 2.0])}" == "[1. 2.]"
    with pytest.raises(TypeError, match="format"):
        f"{tw.constant([1.0, 2.0]):.2f}"


def test_shapes_print_as_tensorflow_prints_them():
    shape = tw.zeros([7, 10]).shape
    assert (repr(shape), str(shape)) == ("TensorShape([7, 10])", "(7, 10)")
    assert (repr(TensorShape(None)), str(TensorShape(None))) == (
        "TensorShape(None)",
        "<unknown>",
    )


# ----------------------------------------------------------- Python's own protocols


def test_a_tensor_with_one_element_is_a_number():
    assert float(tw.constant(2.5)) == 2.5 and type(float(tw.constant([2.5]))) is float
    assert int(tw.constant(2.7)) == 2 and complex(tw.constant(1.0)) == 1 + 0j
    assert bool(tw.constant(1.0)) is True and bool(tw.constant([0])) is False
    assert [10, 20, 30][tw.constant(1)] == 20 and list(range(tw.constant(2))) == [0, 1]


@pytest.mark.parametrize("convert", [float, int, complex])
def test_more_elements_are_no_number(convert):
    with pytest.raises(TypeError, match=r"one element.*\(2,\)"):
        convert(tw.constant([1.0, 2.0]))


def test_the_truth_of_many_is_ambiguous():
    with pytest.raises(ValueError, match=r"\(2,\).*reduce_all.*reduce_any"):
        bool(tw.constant([True, True]))


@pytest.mark.parametrize("value", [1.0, [1], True])
def test_only_an_integer_scalar_is_an_index(value):
    with pytest.raises(TypeError, match="index"):
        [1, 2, 3][tw.constant(value)]


def test_length_and_iteration_are_those_of_the_first_axis():
    t = tw.constant([[1, 2], [3, 4], [5, 6]])
    assert len(t) == 3
    assert [row.numpy().tolist() for row in t] == [[1, 2], [3, 4], [5, 6]]
    a, b, c = t
    assert same(c, [5, 6])
    for fails in (len, list, iter):
        with pytest.raises(TypeError, match="rank 0"):
            fails(tw.constant(1.0))


def test_iteration_is_recorded():
    x = tw.Variable([2.0, 3.0])
    with tw.GradientTape() as tape:
        a, b = x
        y = a * b
    np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 2.0])


def test_a_tensor_is_no_key_but_its_reference_is():
    t, u = tw.constant(1.0), tw.constant(1.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)
    seen = {t.ref(): "t"}
    assert seen[t.ref()] == "t" and u.ref() not in seen
    assert t.ref().deref() is t and t.ref() != t
    assert "Reference wrapping" in repr(t.ref())


def test_copies_of_an_immutable_tensor_are_the_tensor():
    t = tw.constant([1.0])
    assert copy.copy(t) is t and copy.deepcopy([t])[0] is t


@pytest.mark.parametrize("value", [1.5, [[1, 2]], True, np.float64(3.0), [], "a", [1j]])
def test_pickling_keeps_value_and_dtype(value):
    t = tw.constant(value)
    twin = pickle.loads(pickle.dumps(t))
    assert same(twin, t.numpy(), t.dtype)


def test_a_tensor_cannot_be_written_to():
    t = tw.constant([1.0])
    with pytest.raises(TypeError, match="item assignment"):
        t[0] = 2.0
    with pytest.raises(AttributeError):
        t.colour = "red"


def test_there_is_no_method_that_numpy_would_call_instead_of_its_own():
    for name in (
        "mean",
        "sum",
        "max",
        "min",
        "reshape",
        "transpose",
        "std",
        "dot",
        "T",
    ):
        assert not hasattr(tw.Tensor, name) and not hasattr(tw.Variable, name)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (np.mean, 2.5),
        (np.sum, 10.0),
        (np.max, 4.0),
        (np.std, np.std([1, 2, 3, 4.0])),
        (np.shape, (2, 2)),
        (np.ravel, [1, 2, 3, 4]),
        (np.exp, np.exp([[1, 2], [3, 4]], dtype=np.float32)),
        (np.transpose, [[1, 3], [2, 4]]),
        (lambda x: np.concatenate([x, x]), [[1, 2], [3, 4], [1, 2], [3, 4]]),
        (lambda x: np.allclose(x, x), True),
        (lambda x: np.asarray(x, np.float64).dtype, np.float64),
    ],
)
def test_numpys_functions_take_tensors_and_give_arrays(function, expected):
    for value in (
        tw.constant([[1.0, 2.0], [3.0, 4.0]]),
        tw.Variable([[1.0, 2.0], [3.0, 4.0]]),
    ):
        result = function(value)
        assert not isinstance(result, tw.Tensor)
        np.testing.assert_allclose(result, expected, rtol=1e-6) if not isinstance(
            expected, type
        ) else None


# ----------------------------------------------------------------------- operators

OPERATIONS = {
    "t + 1": (lambda T: T + 1, [2.0, 3.0]),
    "1 + t": (lambda T: 1 + T, [2.0, 3.0]),
    "t - 1.5": (lambda T: T - 1.5, [-0.5, 0.5]),
    "1.5 - t": (lambda T: 1.5 - T, [0.5, -0.5]),
    "t * list": (lambda T: T * [2, 3], [2.0, 6.0]),
    "list * t": (lambda T: [2.0, 3.0] * T, [2.0, 6.0]),
    "tuple - t": (lambda T: (2.0, 3.0) - T, [1.0, 1.0]),
    "list + t": (lambda T: [2.0, 3.0] + T, [3.0, 5.0]),
    "t / 2": (lambda T: T / 2, [0.5, 1.0]),
    "2 / t": (lambda T: 2 / T, [2.0, 1.0]),
    "t ** 2": (lambda T: T**2, [1.0, 4.0]),
    "2 ** t": (lambda T: 2**T, [2.0, 4.0]),
    "t // 2": (lambda T: T // 2, [0.0, 1.0]),
    "5 % t": (lambda T: 5 % T, [0.0, 1.0]),
    "-t": (lambda T: -T, [-1.0, -2.0]),
    "+t": (lambda T: +T, [1.0, 2.0]),
    "abs(t)": (lambda T: abs(-T), [1.0, 2.0]),
    "array + t": (lambda T: np.array([1.0, 2.0], np.float32) + T, [2.0, 4.0]),
    "double array + t": (lambda T: np.array([1.0, 2.0]) + T, [2.0, 4.0]),
    "t - array": (lambda T: T - np.array([1.0, 2.0]), [0.0, 0.0]),
    "int array * t": (lambda T: np.array([1, 2]) * T, [1.0, 4.0]),
    "float32 scalar * t": (lambda T: np.float32(2.0) * T, [2.0, 4.0]),
    "float64 scalar / t": (lambda T: np.float64(2.0) / T, [2.0, 1.0]),
    "t * mask": (lambda T: T * np.array([True, False]), [1.0, 0.0]),
    "t * list mask": (lambda T: T * [True, False], [1.0, 0.0]),
    "t * True": (lambda T: T * True, [1.0, 2.0]),
    "variable + t": (lambda T: tw.Variable([1.0, 1.0]) + T, [2.0, 3.0]),
    "t + variable": (lambda T: T + tw.Variable([1.0, 1.0]), [2.0, 3.0]),
    "array + variable": (lambda T: np.ones(2) + tw.Variable([1.0, 2.0]), [2.0, 3.0]),
    "list @ variable": (
        lambda T: [[1.0, 2.0]] @ tw.Variable([[1.0], [2.0]]),
        [[5.0]],
    ),
    "array @ t": (lambda T: np.array([[1.0, 2.0]]) @ tw.reshape(T, [2, 1]), [[5.0]]),
    "t @ list": (lambda T: tw.reshape(T, [1, 2]) @ [[1.0], [2.0]], [[5.0]]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_take_numbers_lists_and_arrays_on_both_sides(name):
    operation, expected = OPERATIONS[name]
    assert same(operation(tw.constant([1.0, 2.0])), expected, "float32")


@pytest.mark.parametrize(
    ("operation", "expected", "dtype"),
    [
        (lambda i: i + 1, [-6, 8], "int32"),
        (lambda i: i / 2, [-3.5, 3.5], "float64"),
        (lambda i: i // 2, [-4, 3], "int32"),
        (lambda i: i % 3, [2, 1], "int32"),
        (lambda i: 2 * i, [-14, 14], "int32"),
        (lambda i: i**2, [49, 49], "int32"),
        (lambda i: i & 3, [1, 3], "int32"),
        (lambda i: i | 8, [-7, 15], "int32"),
        (lambda i: 1 ^ i, [-8, 6], "int32"),
        (lambda i: ~i, [6, -8], "int32"),
        (lambda i: i > 0, [False, True], "bool"),
        (lambda i: ~(i > 0), [True, False], "bool"),
        (lambda i: (i > 0) & True, [False, True], "bool"),
        (lambda i: (i > 0) ^ (i < 0), [True, True], "bool"),
    ],
)
def test_integers_and_booleans_have_theirs(operation, expected, dtype):
    assert same(operation(tw.constant([-7, 7])), expected, dtype)


@pytest.mark.parametrize(
    "dtype", ["int8", "int64", "uint8", "float16", "float64", "complex64"]
)
def test_a_python_number_takes_the_dtype_of_the_tensor(dtype):
    t = tw.constant([1, 2], dtype=dtype)
    for result in (t + 1, 1 + t, t * 2, [1, 1] + t):
        assert result.dtype == dtype


@pytest.mark.parametrize(
    "operation",
    [
        lambda: tw.constant(1) + 1.5,
        lambda: tw.constant(1.0) * 1j,
        lambda: tw.constant(1.0) + tw.constant(1),
        lambda: tw.constant(1.0) + tw.constant(1.0, dtype="float64"),
        lambda: tw.constant(1.0) + "a",
        lambda: tw.constant([1], dtype="uint8") + 300,
        lambda: tw.constant(1.0) + None,
        lambda: tw.constant(1.0) + object(),
    ],
)
def test_operands_that_do_not_fit_are_a_type_error(operation):
    with pytest.raises(TypeError):
        operation()


def test_comparisons_are_entry_by_entry():
    t = tw.constant([1.0, 2.0, 3.0])
    assert same(t < 2, [True, False, False], "bool")
    assert same(2 <= t, [False, True, True])
    assert same(t >= [1, 3, 3], [True, False, True])
    assert same(t == tw.constant([1.0, 0.0, 3.0]), [True, False, True])
    assert same(t != 2, [True, False, True])
    assert same(np.array([1.0, 5.0, 3.0]) == t, [True, False, True])
    assert same(np.float32(2.0) < t, [False, False, True])


@pytest.mark.parametrize("make", [tw.constant, tw.Variable, np.float32, list])
def test_tensors_that_do_not_broadcast_are_unequal_as_a_whole(make):
    t, other = tw.constant([1.0, 2.0]), make([1.0, 2.0, 3.0])
    assert same(t == other, False, "bool") and same(other == t, False, "bool")
    assert same(t != other, True, "bool") and same(other != t, True, "bool")


def test_only_the_operators_compare_what_does_not_broadcast():
    t, other = tw.constant([1.0, 2.0]), tw.constant([1.0, 2.0, 3.0])
    for compare in (tw.equal, tw.not_equal, lambda x, y: x < y):
        with pytest.raises(errors.ShapeError, match="do not broadcast together"):
            compare(t, other)


def test_dtypes_are_compared_before_shapes():
    with pytest.raises(errors.DTypeError):
        tw.constant([1.0, 2.0]) == tw.constant([1, 2, 3])  # noqa: B015


def test_a_tensor_is_never_none():
    t = tw.constant([1.0, 2.0])
    assert (t == None) is False and (t != None) is True  # noqa: E711
    assert (None == t) is False  # noqa: E711
    assert tw.constant(1.0) in [tw.constant(2.0), tw.constant(1.0)]


def test_augmented_assignment_makes_a_new_tensor():
    t = old = tw.constant([1.0])
    t += 1.0
    t *= 3.0
    assert t is not old and same(t, [6.0]) and same(old, [1.0])


@pytest.mark.parametrize("constant", [0.0, -0.0, 1, 1.0, -1.0, float("inf"), 1e-30])
def test_the_same_constant_beside_tensors_of_many_kinds(constant):
    for dtype in ("float32", "float64", "float16", "float32"):
        t = tw.constant([2.0], dtype=dtype)
        with np.errstate(all="ignore"):
            expected = np.array([2.0], dtype) * np.array(constant, dtype)
            power = np.copysign(np.array(1.0, dtype), np.array(constant, dtype))
        assert same(t * constant, expected, dtype)
        assert np.copysign(1.0, (t * constant).numpy()) == power


def test_nan_beside_a_tensor_is_nan():
    assert np.isnan((tw.constant(1.0) + float("nan")).numpy())


# ------------------------------------------------------------------------ indexing

GRID = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        (0, 1),
        (1, -1, 2),
        slice(None),
        slice(1, None),
        slice(None, -1),
        slice(-100, 100),
        slice(None, None, -1),
        (slice(None), slice(2, 0, -1)),
        (slice(None), slice(None, None, 2), slice(3, None, -2)),
        (slice(1, 1),),
        ...,
        (..., 0),
        (0, ...),
        (0, ..., 1),
        (..., slice(1, 3)),
        (slice(None), ..., slice(None, None, -1)),
        None,
        (None, 0),
        (..., None),
        (slice(None), None, 1),
        (0, None, slice(None), None, 2),
        (),
        (np.int64(1), np.int32(2)),
        (True.__index__(),),
    ],
    ids=str,
)
def test_basic_indices_are_numpys_and_their_gradient_puts_ones_there(index):
    x = tw.Variable(GRID)
    with tw.GradientTape() as tape:
        y = x[index]
    assert same(y, GRID[index], "float32")
    ones = np.zeros_like(GRID)
    ones[index] = 1.0
    gradient = tape.gradient(y, x)
    np.testing.assert_array_equal(tw.convert_to_tensor(gradient), ones)


def test_tensors_are_indices():
    t = tw.constant(GRID)
    assert same(t[tw.constant(1)], GRID[1])
    assert same(t[tw.constant(0) : tw.constant(1)], GRID[0:1])
    assert same(t[tw.constant(1), :, tw.constant(2)], GRID[1, :, 2])


def test_a_mask_and_a_list_pick_rows():
    t = tw.constant([1, 2, 3])
    assert same(t[tw.constant([True, False, True])], [1, 3])
    assert same(t[t > 1], [2, 3])
    assert same(t[[2, 0]], [3, 1])
    assert same(t[np.array([-1, 0])], [3, 1])


@pytest.mark.parametrize("index", [5, -4, (0, 0, 0, 0), (0, 7), (..., ..., 0)])
def test_an_index_out_of_range_is_an_index_error_with_the_shape(index):
    with pytest.raises(IndexError, match=r"shape \(2, 3, 4\)"):
        tw.constant(GRID)[index]


def test_a_scalar_has_no_entries():
    with pytest.raises(IndexError):
        tw.constant(1.0)[0]


@pytest.mark.parametrize("index", [1.5, "a", {}, tw.constant(1.0), tw.constant([0.5])])
def test_what_is_no_index_is_a_type_error(index):
    with pytest.raises(TypeError):
        tw.constant([1.0, 2.0])[index]


# -------------------------------------------------------------------------- shapes


def test_a_shape_is_a_tuple():
    shape = tw.zeros([2, 3, 4]).shape
    assert shape == (2, 3, 4) == tuple(shape) and shape == [2, 3, 4]
    assert shape[0] == 2 and shape[-1] == 4 and shape[1:] == TensorShape([3, 4])
    assert isinstance(shape[1:], TensorShape) and len(shape) == 3
    a, b, c = shape
    assert (a, b, c) == (2, 3, 4) and hash(shape) == hash((2, 3, 4))
    assert shape + [5] == (2, 3, 4, 5) and [5] + shape == (5, 2, 3, 4)
    assert isinstance(shape + (5,), TensorShape)
    assert (shape.rank, shape.ndims, shape.dims) == (3, 3, [2, 3, 4])
    assert shape.as_list() == [2, 3, 4] and shape.num_elements() == 24
    assert shape[0] * shape[1] == 6 and shape != (2, 3) and shape != 5


def test_a_scalar_shape_is_true_and_empty():
    shape = tw.constant(1.0).shape
    assert shape == () and bool(shape) and shape.num_elements() == 1


def test_unknown_dimensions_and_ranks():
    part, none = TensorShape([None, 3]), TensorShape(None)
    assert part.num_elements() is None and not part.is_fully_defined()
    assert part.is_compatible_with((5, 3)) and not part.is_compatible_with((5, 4))
    assert not part.is_compatible_with((3,)) and none.is_compatible_with((1, 2))
    assert part.merge_with([2, None]) == (2, 3) and none.merge_with([1]) == [1]
    assert none.rank is None and not none and none[1:] == none and none[0] is None
    assert none + [1] == none and none != TensorShape([]) and none == TensorShape(None)
    assert part == [None, 3]
    with pytest.raises(ValueError, match="incompatible"):
        part.assert_is_compatible_with((5, 4))
    with pytest.raises(ValueError, match="unknown"):
        none.as_list()


def test_dimensions_are_whole_and_not_negative():
    assert TensorShape([np.int64(2), tw.constant(3)]) == (2, 3)
    assert TensorShape(3) == (3,)
    with pytest.raises(ValueError, match="-1"):
        TensorShape([-1])
    for wrong in ([1.5], ["a"]):
        with pytest.raises((TypeError, AttributeError)):
            TensorShape(wrong)


def test_shapes_can_be_pickled_and_copied():
    for shape in (TensorShape([1, None]), TensorShape(None), TensorShape([])):
        for twin in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape)):
            assert twin == shape and twin.rank == shape.rank


def test_a_shape_is_a_value_for_ops():
    kernel = tw.zeros([5, 8])
    n = tw.reduce_prod(kernel.shape)
    assert same(n, 40, "int32")
    assert tw.reshape(kernel, [n, 1]).shape == (40, 1)
    assert tw.zeros(kernel.shape).shape == (5, 8)
    assert tw.reshape(kernel, [kernel.shape[0] * kernel.shape[1]]).shape == (40,)
    assert tw.zeros([tw.constant(2), 3]).shape == (2, 3)


def test_set_shape_checks():
    t = tw.zeros([2, 3])
    t.set_shape([2, None])
    assert t.get_shape() == (2, 3)
    with pytest.raises(ValueError, match="incompatible"):
        t.set_shape([3, 3])


# --------------------------------------------------------------------------- specs


def test_a_spec_is_shape_dtype_and_name():
    spec = TensorSpec([None, 3], "int64", name="ids")
    assert repr(spec) == "TensorSpec(shape=(None, 3), dtype=tf.int64, name='ids')"
    assert TensorSpec(None).dtype == "float32" and TensorSpec(None).shape.rank is None
    assert TensorSpec.from_tensor(tw.zeros([2])) == TensorSpec([2])
    assert TensorSpec([2]) != TensorSpec([3]) and TensorSpec([2]) != TensorSpec(
        [2], "int32"
    )
    assert hash(TensorSpec([2])) == hash(TensorSpec((2,), np.float32))
    assert TensorSpec([None, 3]).is_compatible_with(tw.zeros([7, 3]))
    assert not TensorSpec([None, 3]).is_compatible_with(tw.zeros([7, 3], "int32"))


# ------------------------------------------------------------------- IndexedSlices


def test_slices_become_dense_and_repeated_rows_add_up():
    slices = tw.IndexedSlices(
        tw.constant([[1.0], [2.0], [4.0]]), tw.constant([2, 0, 2]), [3, 1]
    )
    assert slices.shape == (3, 1) and slices.dtype == "float32"
    assert same(tw.convert_to_tensor(slices), [[2.0], [0.0], [5.0]])
    assert same(slices + tw.ones([3, 1]), [[3.0], [1.0], [6.0]])
    assert same(tw.ones([3, 1]) + slices, [[3.0], [1.0], [6.0]])
    assert isinstance(slices + slices, tw.IndexedSlices)
    assert repr(slices).startswith("IndexedSlices(indices=") and tw.is_tensor(slices)


def test_ops_take_slices():
    slices = tw.IndexedSlices(tw.constant([[1.0, 2.0]]), tw.constant([1]), [2, 2])
    assert same(tw.reduce_sum(slices, axis=0), [1.0, 2.0])


def test_is_tensor():
    assert tw.is_tensor(tw.constant(1)) and tw.is_tensor(tw.Variable(1))
    assert not tw.is_tensor(1.0) and not tw.is_tensor(np.ones(2))


def test_errors_describe_values():
    assert errors.describe(tw.zeros([2, 3])) == "shape (2, 3), float32"
    assert errors.describe(np.zeros(2)) == "shape (2,), float64"
    assert errors.describe(TensorSpec([None], "int32")) == "shape (None,), int32"
    assert errors.describe(3) == "int"


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


def test_tensors_are_plotted_on_an_axis_of_names():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    axes.plot(tw.constant(["a", "b"]), tw.constant([1.0, 2.0]))
    for x in (tw.range(2), tw.constant([0.0, 1.0]), tw.Variable([0.0, 1.0])):
        (line,) = axes.plot(x, tw.constant([3.0, 4.0]))
        assert list(line.get_xdata()) == [0, 1] and list(line.get_ydata()) == [3, 4]
    axes.figure.canvas.draw()


def test_strings_are_printed_as_bytes():
    assert str(tw.constant("a")) == "tf.Tensor(b'a', shape=(), dtype=string)"
    assert repr(tw.constant("a")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'a'>"
    assert repr(tw.constant(["a", "bc"])) == (
        "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'bc'], dtype=object)>"
    )


def test_numbers_among_strings_are_refused():
    for value in ([1, "a"], [1.0, "a"], [["a"], [2]]):
        with pytest.raises(TypeError):
            tw.constant(value)


def test_slices_without_a_dense_shape_have_no_shape_and_no_dense_form():
    slices = tw.IndexedSlices(tw.constant([[1.0, -2.0]]), tw.constant([1]))
    assert slices.shape.rank is None
    for convert in (tw.convert_to_tensor, tw.abs):
        with pytest.raises(ValueError, match="dense_shape"):
            convert(slices)


@pytest.mark.parametrize("dense_shape", [None, (3, 2)])
def test_what_acts_on_each_entry_keeps_slices_sparse(dense_shape):
    slices = tw.IndexedSlices(tw.constant([[1.0, -2.0]]), tw.constant([1]), dense_shape)
    for made, wanted in (
        (tw.scalar_mul(2.0, slices), [[2.0, -4.0]]),
        (-slices, [[-1.0, 2.0]]),
        (tw.clip_by_value(slices, -1.5, 0.5), [[0.5, -1.5]]),
        (tw.clip_by_norm(slices, 1.0), [[5**-0.5, -2 * 5**-0.5]]),
        (tw.cast(slices, "float64"), [[1.0, -2.0]]),
        (tw.clip_by_global_norm([slices], 5**0.5)[0][0], [[1.0, -2.0]]),
    ):
        assert isinstance(made, tw.IndexedSlices)
        assert made.dense_shape == dense_shape and made.indices.numpy().tolist() == [1]
        np.testing.assert_allclose(made.values.numpy(), wanted, rtol=1e-6)
    assert tw.linalg.global_norm([slices]).numpy() == np.float32(5**0.5)


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
