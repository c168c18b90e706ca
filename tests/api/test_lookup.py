"""Tables of keys and values: the results of TensorFlow 2.21."""

import pytest

import tapewright as tw

lookup = tw.lookup
KEYS, VALUES = ["emerson", "lake", "palmer"], [10, 20, 30]


def table_of(keys, values, default, **dtypes):
    initializer = lookup.KeyValueTensorInitializer(keys, values, **dtypes)
    return lookup.StaticHashTable(initializer, default)


@pytest.mark.parametrize(
    ("keys", "values", "default", "asked", "found"),
    [
        (["a", "b"], [1, 2], -1, [["b"], ["z"]], [[2], [-1]]),
        ([1, 2], ["x", "y"], "no", [2, 5], [b"y", b"no"]),
        ([7, -3, 5], [0.5, 1.5, 2.5], 0.0, [5, 7, 6, -3], [2.5, 0.5, 0.0, 1.5]),
        (["a", "a"], [True, True], False, ["a", "b"], [True, False]),
        (["a"], [1], 0, "a", 1),
    ],
)
def test_values_of_keys_and_a_default(keys, values, default, asked, found):
    table = table_of(keys, values, default)
    for get in (table.lookup, tw.function(table.lookup), table.__getitem__):
        assert get(tw.constant(asked)).numpy().tolist() == found
    assert table.size().numpy() == len(set(keys))


def test_keys_and_values_are_exported():
    keys, values = table_of(["a", "b", "a"], [1, 2, 1], -1).export()
    assert keys.numpy().tolist() == [b"a", b"b"] and values.numpy().tolist() == [1, 2]


def test_entries_of_ragged_and_sparse_tensors():
    table = table_of(["a", "b"], [1, 2], -1)
    assert table[tw.ragged.constant([["a"], ["b", "z"]])].to_list() == [[1], [2, -1]]
    sparse = table[tw.sparse.from_dense([["a", ""], ["", "b"]])]
    assert tw.sparse.to_dense(sparse).numpy().tolist() == [[1, 0], [0, 2]]


def vocabulary(keys, buckets, **arguments):
    values = tw.range(len(keys), dtype="int64")
    initializer = lookup.KeyValueTensorInitializer(keys, values)
    return lookup.StaticVocabularyTable(initializer, buckets, **arguments)


def test_buckets_are_those_of_tensorflow():
    words = vocabulary(["a", "b"], 3)
    asked = tw.constant(["a", "zz", "q", "hello", "world"])
    assert words[asked].numpy().tolist() == [0, 3, 4, 3, 3]
    assert words.size().numpy() == 5
    numbers = vocabulary(tw.constant([10, 20], tw.int64), 4, lookup_key_dtype=tw.int32)
    assert numbers[tw.constant([10, 7, 8, 123, -5])].numpy().tolist() == [0, 2, 5, 5, 2]
    buckets = lookup.StaticVocabularyTable(None, 3)
    assert buckets[tw.constant(["a", "b"])].numpy().tolist() == [0, 1]
    initializer = lookup.KeyValueTensorInitializer(
        ["a", "b"], tw.constant([0, 5], tw.int64)
    )
    gaps = lookup.StaticVocabularyTable(initializer, 2)
    assert gaps[tw.constant(["b", "c", "d"])].numpy().tolist() == [5, 2, 3]


INDEX = lookup.TextFileIndex


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(
        "".join(f"{k}\t{v}\n" for k, v in zip(KEYS, VALUES)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    ("arguments", "default", "asked", "found"),
    [
        ((tw.string, 0, tw.int64, 1), -1, ["lake", "x"], [20, -1]),
        (
            (tw.string, INDEX.WHOLE_LINE, tw.int64, INDEX.LINE_NUMBER),
            -1,
            ["lake\t20"],
            [1],
        ),
        ((tw.int64, INDEX.LINE_NUMBER, tw.string, 0), "no", [2, 5], [b"palmer", b"no"]),
        ((tw.string, 0, tw.float32, 1), -1.0, ["lake", "x"], [20.0, -1.0]),
    ],
)
def test_lines_of_a_file(path, arguments, default, asked, found):
    initializer = lookup.TextFileInitializer(path, *arguments)
    keys = tw.constant(asked, initializer.key_dtype)
    table = lookup.StaticHashTable(initializer, default)
    assert table[keys].numpy().tolist() == found


def test_a_file_is_read_in_part_and_its_lines_are_counted_from_any_number(path):
    arguments = path, tw.string, 0, tw.int64, INDEX.LINE_NUMBER
    initializer = lookup.TextFileInitializer(*arguments, 2, value_index_offset=5)
    table = lookup.StaticHashTable(initializer, -1)
    assert table[tw.constant(["lake", "palmer"])].numpy().tolist() == [6, -1]


def test_bad_arguments_are_named(path):
    make, errors = lookup.KeyValueTensorInitializer, tw.errors
    with pytest.raises(errors.InvalidArgumentError, match="b'a' has 1 and 2"):
        make(["a", "a"], [1, 2])
    with pytest.raises(errors.InvalidArgumentError, match=r"\(1,\) and \(2,\)"):
        make(["a"], [1, 2])
    with pytest.raises(
        TypeError, match="keys must be strings or integers, got float32"
    ):
        make([1.0], [1])
    with pytest.raises(TypeError, match="keys must be string, got int32"):
        table_of(["a"], [1], 0).lookup([1])
    with pytest.raises(TypeError, match="int32"):
        table_of(["a"], [1], "x")
    with pytest.raises(errors.InvalidArgumentError, match="default_value"):
        table_of(["a"], [1], [0])
    with pytest.raises(ValueError, match="num_oov_buckets must be 1 or more, got 0"):
        vocabulary(["a"], 0)
    with pytest.raises(
        TypeError, match="values of initializer must be int64, got int32"
    ):
        lookup.StaticVocabularyTable(make(["a"], [0]), 1)
    with pytest.raises(TypeError, match="string cannot be looked up as int64"):
        vocabulary(["a"], 1, lookup_key_dtype=tw.int64)
    read = lookup.TextFileInitializer
    with pytest.raises(errors.NotFoundError, match="no file"):
        read(path.with_name("none"), tw.string, 0, tw.int64, 1)
    for arguments, message in {
        (0, tw.int64, 3): "line 0 of .* must have a column 3, got 2",
        (0, tw.int64, 0): "must have a number of int64, got b'emerson'",
        (0, tw.int64, 1, 5): "vocab_size must be at most 3, .* got 5",
    }.items():
        with pytest.raises(errors.InvalidArgumentError, match=message):
            read(path, tw.string, *arguments)
    with pytest.raises(ValueError, match="key_dtype must be int64"):
        read(path, tw.string, INDEX.LINE_NUMBER, tw.string, 0)
