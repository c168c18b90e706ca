"""Sparse tensors as strings; the bytes are those of TensorFlow 2.21."""

import numpy as np
import pytest

import tapewright as tw

PAIR = tw.sparse.from_dense([[0, 1], [2, 0]])
WORDS = tw.SparseTensor([[0, 0], [2, 1]], ["a", "bc"], [3, 4])


def numbers(*values):
    return b'"' + bytes([8 * len(values)]) + np.array(values, "<i8").tobytes()


def small(*values):
    return b'"' + bytes([4 * len(values)]) + np.array(values, "<i4").tobytes()


def test_bytes_are_those_of_tensorflow():
    one, two = b"\x12\x02\x08\x01", b"\x12\x02\x08\x02"
    shape = b"\x08\t\x12\x04" + two + numbers(2, 2)
    assert tw.io.serialize_sparse(PAIR).numpy().tolist() == [
        b"\x08\t\x12\x08" + two + two + numbers(0, 1, 1, 0),
        b"\x08\x03\x12\x04" + two + small(1, 2),
        shape,
    ]
    row = b"\x08\t\x12\x08" + one + one
    rest = b"\x08\x03\x12\x04" + one, b"\x08\t\x12\x04" + one + numbers(2)
    for serialize in (
        tw.io.serialize_many_sparse,
        tw.function(tw.io.serialize_many_sparse),
    ):
        assert serialize(PAIR).numpy().tolist() == [
            [row + numbers(1), rest[0] + small(1), rest[1]],
            [row + numbers(0), rest[0] + small(2), rest[1]],
        ]


@pytest.mark.parametrize("sparse", [PAIR, WORDS], ids=["numbers", "strings"])
def test_rows_come_back(sparse):
    strings = tw.io.serialize_many_sparse(sparse)
    again = tw.io.deserialize_many_sparse(strings, sparse.dtype, rank=2)
    assert again.dtype == sparse.dtype
    for one, other in zip(again._tw_components(), sparse._tw_components(), strict=True):
        assert one.numpy().tolist() == other.numpy().tolist()


def test_strings_of_tensorflow_are_read():
    shape = b"\x08\t\x12\x04\x12\x02\x08\x01" + numbers(4)
    rows = [
        [
            b"\x08\t\x12\x08\x12\x02\x08\x01\x12\x02\x08\x01" + numbers(0),
            b'\x08\x07\x12\x04\x12\x02\x08\x01"\x03\x02bc',
            shape,
        ],
        [b"\x08\t\x12\x06\x12\x00\x12\x02\x08\x01", b"\x08\x07\x12\x02\x12\x00", shape],
    ]
    sparse = tw.io.deserialize_many_sparse(rows, "string")
    assert sparse.indices.numpy().tolist() == [[0, 0]]
    assert sparse.values.numpy().tolist() == [b"bc"]
    assert sparse.dense_shape.numpy().tolist() == [2, 4]


def test_sizes_become_the_largest_ones():
    wide = tw.sparse.from_dense([[1, 0, 1]])
    strings = tw.stack([tw.io.serialize_sparse(PAIR), tw.io.serialize_sparse(wide)])
    sparse = tw.io.deserialize_many_sparse(strings, "int32")
    assert sparse.dense_shape.numpy().tolist() == [2, 2, 3]
    places = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 2]]
    assert sparse.indices.numpy().tolist() == places


def parts(indices, values, shape):
    return [[tw.io.serialize_tensor(x).numpy() for x in (indices, values, shape)]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tw.io.serialize_sparse([1]), TypeError, "must be a SparseTensor"),
        (lambda: tw.io.serialize_sparse(PAIR, "variant"), (TypeError, ValueError), "."),
        (lambda: tw.io.serialize_sparse(PAIR, "int32"), ValueError, "must be string"),
        (
            lambda: tw.io.serialize_many_sparse(tw.sparse.from_dense([1])),
            ValueError,
            "rank of 2 or more",
        ),
        (lambda: tw.io.deserialize_many_sparse(["a"], "int32"), ValueError, "n, 3"),
        (
            lambda: tw.io.deserialize_many_sparse([["a", "b", "c"]], "int32"),
            ValueError,
            "not a protocol buffer",
        ),
        (
            lambda: tw.io.deserialize_many_sparse(
                tw.io.serialize_many_sparse(PAIR), "int32", rank=1
            ),
            ValueError,
            r"result of rank 1, got ranks \[2\]",
        ),
        (
            lambda: tw.io.deserialize_many_sparse(
                parts(np.int64([[7]]), np.int32([1]), np.int64([4])), "int32"
            ),
            ValueError,
            "do not form a sparse tensor",
        ),
        (
            lambda: tw.io.deserialize_many_sparse(
                parts(np.int64([[0]]), np.int32([1, 2]), np.int64([4])), "int32"
            ),
            ValueError,
            "do not form a sparse tensor",
        ),
        (
            lambda: tw.io.deserialize_many_sparse(
                [[*parts(np.int64([[0]]), np.int32([1]), np.int64([4]))[0][:1],
                  b'\x08\x07\x12\x04\x12\x02\x08\x01"\x02\x05a',
                  *parts(np.int64([[0]]), np.int32([1]), np.int64([4]))[0][2:]]],
                "string",
            ),
            ValueError,
            "2 bytes do not match the lengths",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
