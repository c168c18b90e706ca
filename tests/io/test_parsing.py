"""Tensors from serialized examples, eager and traced."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.io import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from tapewright.train import Example, SequenceExample


def serialized(**features):
    example = Example()
    for name, values in features.items():
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}
        part = getattr(example.features.feature[name], kind[type(values[0])])
        part.value.extend(values)
    return example.SerializeToString()


FIRST = serialized(x=[1.0, 2.0], n=[5], s=[b"a"], m=[8])
SECOND = serialized(x=[3.0, 4.0], n=[6, 7])
WANTED = {
    "x": FixedLenFeature([2], tw.float32),
    "s": FixedLenFeature([], tw.string, "none"),
    "n": FixedLenSequenceFeature([], tw.int64, True, -1),
}


def test_an_example_gives_tensors_of_the_shapes_that_are_asked_for():
    found = tw.io.parse_single_example(FIRST, WANTED)
    assert found["x"].numpy().tolist() == [1, 2] and found["s"].numpy() == b"a"
    assert found["n"].numpy().tolist() == [5] and found["n"].dtype == tw.int64
    rows = FixedLenSequenceFeature([2], tw.float32, allow_missing=True)
    found = tw.io.parse_single_example(FIRST, {"x": rows, "y": rows})
    assert found["x"].numpy().tolist() == [[1, 2]] and found["y"].shape == (0, 2)


@pytest.mark.parametrize("traced", [False, True])
def test_features_of_any_length_are_sparse_or_ragged(traced):
    """As TensorFlow gives them."""
    both = [serialized(i=[3, 0], j=[1, 0], w=[1.0, 2.0]), serialized(t=[b"a", b"b"])]
    wanted = {
        "w": VarLenFeature("float32"),
        "t": VarLenFeature("string"),
        "rows": RaggedFeature("float32", value_key="w"),
        "one": SparseFeature("i", "w", "float32", 5),
        "two": SparseFeature(["i", "j"], "w", "float32", [5, 4]),
        "unsorted": SparseFeature("i", "w", "float32", 5, already_sorted=True),
    }
    parse = tw.function(tw.io.parse_example) if traced else tw.io.parse_example
    found = parse(tw.constant(both), wanted)
    parts = {
        name: [x.indices.numpy().tolist(), x.values.numpy().tolist(), x.shape.as_list()]
        for name, x in found.items()
        if name != "rows"
    }
    assert parts == {
        "w": [[[0, 0], [0, 1]], [1, 2], [2, 2]],
        "t": [[[1, 0], [1, 1]], [b"a", b"b"], [2, 2]],
        "one": [[[0, 0], [0, 3]], [2, 1], [2, 5]],
        "two": [[[0, 0, 0], [0, 3, 1]], [2, 1], [2, 5, 4]],
        "unsorted": [[[0, 3], [0, 0]], [1, 2], [2, 5]],
    }
    assert found["rows"].to_list() == [[1, 2], []]
    assert found["rows"].row_splits.dtype == tw.int32
    single = tw.io.parse_single_example(both[0], wanted)
    assert single["one"].indices.numpy().tolist() == [[0], [3]]
    assert single["rows"].numpy().tolist() == [1, 2]
    assert single["t"].shape == (0,)


def test_a_batch_is_padded_by_the_default():
    found = tw.io.parse_example([FIRST, SECOND], WANTED)
    assert found["x"].numpy().tolist() == [[1, 2], [3, 4]]
    assert found["s"].numpy().tolist() == [b"a", b"none"]
    assert found["n"].numpy().tolist() == [[5, -1], [6, 7]]


def test_it_runs_in_each_call_of_a_traced_function():
    wanted = {name: WANTED[name] for name in "xs"}
    f = tw.function(lambda text: tw.io.parse_single_example(text, wanted)["x"] * 2)
    for text, expected in [(FIRST, [2, 4]), (SECOND, [6, 8])]:
        assert f(tw.constant(text)).numpy().tolist() == expected
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "feature, error, match",
    [
        (
            FixedLenFeature([3], tw.float32),
            ValueError,
            "'x' must have 3 values .*got 2",
        ),
        (FixedLenFeature([2], tw.int64), ValueError, "has dtype float32"),
        (FixedLenFeature([2], tw.float64), TypeError, "float32, int64 or string"),
        (FixedLenFeature([None], tw.float32), ValueError, "sizes must be known"),
        (FixedLenFeature([2], tw.float32, [1.0]), ValueError, "default_value"),
        (FixedLenSequenceFeature([], tw.float32), ValueError, "allow_missing=True"),
        (
            FixedLenSequenceFeature([3], tw.float32, True),
            ValueError,
            "divided into rows",
        ),
        (VarLenFeature(tw.int64), ValueError, "has dtype float32"),
        (VarLenFeature(tw.int32), TypeError, "float32, int64 or string"),
        (
            RaggedFeature(tw.float32, partitions=[1]),
            tw.errors.UnimplementedError,
            "empty",
        ),
        (SparseFeature("x", "x", tw.float32, 4), ValueError, "has dtype float32"),
        (SparseFeature(["n"], "x", tw.float32, [4, 4]), ValueError, "size"),
        (SparseFeature("n", "x", tw.float32, 9), ValueError, "as many indices"),
        (SparseFeature("n", "m", tw.int64, 5), IndexError, "from 0 to 4"),
        (tw.float32, TypeError, "must be a FixedLenFeature"),
    ],
)
def test_what_does_not_fit_is_refused(feature, error, match):
    with pytest.raises(error, match=match):
        tw.io.parse_single_example(FIRST, {"x": feature})


def test_a_missing_feature_is_named():
    with pytest.raises(tw.errors.InvalidArgumentError, match="no feature 'y'"):
        tw.io.parse_single_example(FIRST, {"y": FixedLenFeature([], tw.int64)})


def test_a_sequence_has_a_row_for_each_step():
    example = SequenceExample()
    example.context.feature["c"].int64_list.value.append(7)
    for i in range(3):
        step = example.feature_lists.feature_list["s"].feature.add()
        step.float_list.value.extend([i, i + 0.5])
    text = example.SerializeToString()
    context, sequences = tw.io.parse_single_sequence_example(
        text,
        {"c": FixedLenFeature([], tw.int64)},
        {
            "s": FixedLenSequenceFeature([2], tw.float32),
            "t": FixedLenSequenceFeature([], tw.int64, allow_missing=True),
        },
    )
    assert int(context["c"]) == 7 and sequences["t"].shape == (0,)
    assert np.array_equal(sequences["s"], [[0, 0.5], [1, 1.5], [2, 2.5]])
    with pytest.raises(ValueError, match="no feature 't'"):
        wanted = {"t": FixedLenSequenceFeature([], tw.int64)}
        tw.io.parse_single_sequence_example(text, sequence_features=wanted)


def test_texts_of_a_batch_are_bytes():
    text = tw.train.Feature(bytes_list=tw.train.BytesList(value=[b"cat"]))
    example = tw.train.Example(features=tw.train.Features(feature={"s": text}))
    wanted = {"s": tw.io.FixedLenFeature([], "string")}
    parsed = tw.io.parse_example([example.SerializeToString()] * 2, wanted)["s"].numpy()
    assert [type(text) for text in parsed] == [bytes, bytes]
