"""Bytes, comma-separated values, base64 and tensors in strings, as TensorFlow has them."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import InvalidArgumentError


def test_raw_bytes_are_numbers():
    assert tw.io.decode_raw([b"abcd"], tw.int16, False).numpy().tolist() == [
        [24930, 25444]
    ]
    padded = tw.io.decode_raw([b"abcd", b"ef"], tw.uint8, fixed_length=3)
    assert padded.numpy().tolist() == [[97, 98, 99], [101, 102, 0]]
    for texts, dtype, length in [
        ([b"abcd", b"ef"], "uint8", None),
        (["abc"], "int16", None),
        (["abcd"], "int16", 3),
    ]:
        with pytest.raises(InvalidArgumentError):
            tw.io.decode_raw(texts, dtype, fixed_length=length)


def test_columns_of_rows():
    found = tw.io.decode_csv(["1,2.5, x ", '3,,"a,""b"'], [[0], [1.5], ["d"]])
    expected = [[1, 3], [2.5, 1.5], [b" x ", b'a,"b']]
    assert [x.numpy().tolist() for x in found] == expected
    f = tw.function(lambda row: tw.io.decode_csv(row, [[7], [8]], na_value="NA")[0])
    assert int(f(tw.constant("NA,3"))) == 7
    with pytest.raises(InvalidArgumentError, match="row 0 has 2 fields, not 1"):
        tw.io.decode_csv(["1,2"], [[0]])


def test_an_empty_row_has_no_fields():
    for defaults in ([[1]], [["a"], ["b"]]):
        with pytest.raises(ValueError, match="row 1 has 0 fields"):
            tw.io.decode_csv(["7,8"[: 2 * len(defaults) - 1], ""], defaults)


def test_base64_for_the_web():
    encoded = tw.io.encode_base64([b"\xff\xfe\xfd\0", b""])
    assert encoded.numpy().tolist() == [b"__79AA", b""]
    assert tw.io.encode_base64(b"\xff\xfe\xfd\0", pad=True).numpy() == b"__79AA=="
    decoded = tw.io.decode_base64(["__79AA", "__79AA=="])
    assert decoded.numpy().tolist() == [b"\xff\xfe\xfd\0"] * 2
    for wrong in ("//79AA", "a", "__79AA="):
        with pytest.raises(InvalidArgumentError):
            tw.io.decode_base64(wrong)


# tf.io.serialize_tensor([[1, 0, 3]]), of int16 and bool; make_tensor_proto(3.5, shape=[2, 2])
TENSORS = [
    (
        b'\x08\x05\x12\x08\x12\x02\x08\x01\x12\x02\x08\x03"\x06\1\0\0\0\3\0',
        "int16",
        [[1, 0, 3]],
    ),
    (b'\x08\n\x12\x08\x12\x02\x08\x01\x12\x02\x08\x03"\x03\1\0\1', "bool", [[1, 0, 1]]),
]


@pytest.mark.parametrize("data, dtype, values", TENSORS)
def test_tensors_are_bytes_as_tensorflow_writes_them(data, dtype, values):
    assert tw.io.parse_tensor(data, dtype).numpy().tolist() == values
    assert tw.io.serialize_tensor(np.array(values, dtype)).numpy() == data


def test_a_value_may_stand_for_many():
    filled = b"\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02*\x04\0\0`@"
    assert tw.io.parse_tensor(filled, tw.float32).numpy().tolist() == [[3.5] * 2] * 2
    huge = b"\x08\x01\x12\x08\x12\x06\x08\x80\x80\x80\x80\x08*\x04\0\0`@"
    for data, dtype in [(huge, "float32"), (filled, "int32"), (filled[:-1], "float32")]:
        with pytest.raises(InvalidArgumentError):
            tw.io.parse_tensor(data, dtype)
    words = tw.constant([[b"a", b"", b"\xff\0"]])
    again = tw.io.parse_tensor(tw.io.serialize_tensor(words), tw.string)
    assert again.numpy().tolist() == words.numpy().tolist()


def test_rows_of_many_columns_are_decoded():
    count = 50_000
    row = ",".join([str(n) for n in range(count - 2)]) + ",,x"
    defaults = [[0.0]] * (count - 2) + [[7], ["none"]]
    columns = tw.io.decode_csv([row, row], defaults)
    assert columns[12345].numpy().tolist() == [12345.0] * 2
    assert [x.numpy().tolist() for x in columns[-2:]] == [[7, 7], [b"x", b"x"]]


def test_defaults_may_be_rows_of_an_array():
    columns = tw.io.decode_csv([",,"], np.array([[1.0], [2.0], [3.0]], "f4"))
    assert [x.numpy().tolist() for x in columns] == [[1.0], [2.0], [3.0]]


def test_columns_of_one_default_are_read_apart_from_others():
    found = tw.io.decode_csv(
        ["1,a,2,,5.5,7", "3,b,,4,6.5,"], [[0], [""], [9], [9], [0.5], [0]]
    )
    expected = [[1, 3], [b"a", b"b"], [2, 9], [9, 4], [5.5, 6.5], [7, 0]]
    assert [x.numpy().tolist() for x in found] == expected
    same = [np.int64(0)] * 3
    alone = tw.io.decode_csv(",5,6", same)
    assert [x.shape for x in alone] == [()] * 3
    assert [x.numpy() for x in alone] == [0, 5, 6]
