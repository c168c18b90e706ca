"""Tensors: how they print, index, and meet Python, NumPy and other libraries."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import TensorSpec
from tapewright.core.hardware.devices import current_module

from .values import same

# ----------------------------------------------------------------------------- printing


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


def test_strings_are_printed_as_bytes():
    assert str(tw.constant("a")) == "tf.Tensor(b'a', shape=(), dtype=string)"
    assert repr(tw.constant("a")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'a'>"
    assert repr(tw.constant(["a", "bc"])) == (
        "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'bc'], dtype=object)>"
    )


# --------------------------------------------------------------- Python's own protocols


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


def test_is_tensor():
    assert tw.is_tensor(tw.constant(1)) and tw.is_tensor(tw.Variable(1))
    assert not tw.is_tensor(1.0) and not tw.is_tensor(np.ones(2))


# ------------------------------------------------------------ NumPy and other libraries


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
    with pytest.raises(BufferError, match="tensors are immutable.*copy"):
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


def test_tensors_are_plotted_on_an_axis_of_names():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    axes.plot(tw.constant(["a", "b"]), tw.constant([1.0, 2.0]))
    for x in (tw.range(2), tw.constant([0.0, 1.0]), tw.Variable([0.0, 1.0])):
        (line,) = axes.plot(x, tw.constant([3.0, 4.0]))
        assert list(line.get_xdata()) == [0, 1] and list(line.get_ydata()) == [3, 4]
    axes.figure.canvas.draw()


# ----------------------------------------------------------------------------- indexing


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


# -------------------------------------------------------------------------------- specs


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
