"""Arrays as messages and back: TensorFlow's bytes, its text and its checks."""

from types import SimpleNamespace

import numpy as np
import pytest

import tapewright as tw


# ``str(message)`` without its line ends, and the bytes, as TensorFlow writes them.
@pytest.mark.parametrize("values, arguments, text, data", [
    (1.5, {}, "dtype: DT_FLOAT tensor_shape { } float_val: 1.5", "080112002a040000c03f"),
    ([1, 2, 3], {}, "dtype: DT_INT32 tensor_shape { dim { size: 3 } } tensor_content: "
     r'"\001\000\000\000\002\000\000\000\003\000\000\000"',
     "0803120412020803220c010000000200000003000000"),
    (["a", b"b"], {}, "dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "
     '"a" string_val: "b"', "0807120412020802420161420162"),
    ([True, False], {}, "dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: true "
     "bool_val: false", "080a1204120208025a020100"),
    (1 + 2j, {}, "dtype: DT_COMPLEX128 tensor_shape { } dcomplex_val: 1 dcomplex_val: 2",
     "081212006210000000000000f03f0000000000000040"),
    ([1, 2], {"shape": [2, 2]}, "dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { "
     "size: 2 } } int_val: 1 int_val: 2", "0803120812020802120208023a020102"),
    (np.float16(1.5), {}, "dtype: DT_HALF tensor_shape { } half_val: 15872",
     "081312006a02807c"),
    (np.int8(-3), {}, "dtype: DT_INT8 tensor_shape { } int_val: -3",
     "080612003a0afdffffffffffffffff01"),
    (np.array([1.5]), {"dtype": "int32"}, "dtype: DT_INT32 tensor_shape { dim { size: 1 "
     "} } int_val: 1", "08031204120208013a0101"),
    (np.zeros([2, 0]), {}, "dtype: DT_DOUBLE tensor_shape { dim { size: 2 } dim { } }",
     "08021206120208021200"),
])  # fmt: skip
def test_messages_are_those_of_tensorflow(values, arguments, text, data):
    message = tw.make_tensor_proto(values, **arguments)
    assert " ".join(str(message).split()) == text
    assert message.SerializeToString().hex() == data


@pytest.mark.parametrize("values", [
    7, [[1.0, 2.0]], [True], ["x", "yy"], [1 + 2j, 3], np.array(3, np.uint64),
    np.array([2**63], np.uint64), np.array([-1, 2]), np.array([0.5], np.float16),
])  # fmt: skip
def test_an_array_comes_back(values):
    array = np.asarray(tw.constant(values))
    found = tw.make_ndarray(tw.make_tensor_proto(values))
    assert found.dtype == array.dtype and found.tolist() == array.tolist()


def test_the_last_value_fills_the_shape():
    message = tw.make_tensor_proto([1, 2], shape=[2, 2])
    assert tw.make_ndarray(message).tolist() == [[1, 2], [2, 2]]
    assert message.dtype == 3 and [d.size for d in message.tensor_shape.dim] == [2, 2]
    assert tw.make_tensor_proto(message) is message


def test_messages_of_other_libraries_and_parsed_ones_are_read():
    data = tw.make_tensor_proto([0.5, 1.0]).SerializeToString()
    other = SimpleNamespace(SerializeToString=lambda: data)  # as TensorBoard's
    parsed = type(tw.make_tensor_proto(0)).FromString(data)
    for message in other, parsed:
        assert tw.make_ndarray(message).tolist() == [0.5, 1.0]
    assert tw.io.parse_tensor(data, "float32").numpy().tolist() == [0.5, 1.0]


@pytest.mark.parametrize("values, arguments, error, message", [
    ([1, 2, 3], {"shape": [2]}, ValueError, r"at most 2 values for the shape \(2,\), got 3"),
    ([1, 2], {"shape": [2, 1], "verify_shape": True}, TypeError, r"\(2, 1\), got \(2,\)"),
    ([1, 2], {"shape": [2, 2], "allow_broadcast": True}, TypeError, r"\(2, 2\), got"),
    (1, {"verify_shape": True, "allow_broadcast": True}, ValueError, "cannot both be"),
    (1.5, {"dtype": "int32"}, TypeError, "1.5 to int32"),
    (None, {}, ValueError, "values must be .*got None"),
])  # fmt: skip
def test_values_that_do_not_fit_are_refused(values, arguments, error, message):
    with pytest.raises(error, match=message):
        tw.make_tensor_proto(values, **arguments)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="tensor must be a TensorProto.*got bytes"):
        tw.make_ndarray(b"")
    with pytest.raises(TypeError, match="dtype number 0 is not supported"):
        tw.make_ndarray(SimpleNamespace(SerializeToString=lambda: b""))
    with pytest.raises(ValueError, match="not a protocol buffer"):
        tw.make_ndarray(SimpleNamespace(SerializeToString=lambda: b"\x08"))
