"""Files of safetensors: round trips, shards, and files that must be rejected."""

import json
import os
import random
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import SavingError
from tapewright.storage.safetensors_file import (
    DTYPES,
    load_safetensors,
    save_safetensors,
)

VALUES = np.arange(6).reshape(2, 3)


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes(), name


def saved(tmp_path, arrays, **options):
    save_safetensors(tmp_path / "a.safetensors", arrays, **options)
    return tmp_path / "a.safetensors"


@pytest.mark.parametrize("dtype", [*DTYPES.values(), "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (3, 5)])
def test_arrays_of_every_dtype_and_shape_return(tmp_path, dtype, shape):
    dtype = tw.bfloat16.dtype if dtype == "bfloat16" else dtype
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    found = load_safetensors(saved(tmp_path, {"a": array, "b": np.float64(0.5)}))
    assert_same(found, {"a": array, "b": np.array(0.5)})


@pytest.mark.parametrize(
    "array",
    [VALUES.T, VALUES[:, ::2], VALUES[::-1], VALUES.astype(">i8"), VALUES[1:, 1]],
)
def test_arrays_with_strides_or_swapped_bytes_keep_their_values(tmp_path, array):
    found = load_safetensors(saved(tmp_path, {"a": array}))["a"]
    np.testing.assert_array_equal(found, array)
    assert found.dtype == "<i8"


def test_tensors_variables_and_numbers_are_arrays(tmp_path):
    arrays = {"t": tw.constant([1.0, 2.0]), "v": tw.Variable([True]), "n": 3}
    found = load_safetensors(saved(tmp_path, arrays))
    assert [found[key].tolist() for key in "tvn"] == [[1, 2], [True], 3]


def test_arrays_are_read_only_views_of_the_file(tmp_path):
    path = saved(tmp_path, {"a": VALUES, "b": np.ones(3, "i1"), "c": np.ones(3)})
    for array in load_safetensors(path).values():
        assert type(array) is np.ndarray and not array.flags.writeable
        assert array.flags.aligned and not array.flags.owndata


def test_arrays_outlive_the_replacement_of_the_file(tmp_path):
    found = load_safetensors(saved(tmp_path, {"a": VALUES}))
    saved(tmp_path, {"a": VALUES + 1})
    np.testing.assert_array_equal(found["a"], VALUES)


def test_the_package_reads_what_was_written(tmp_path):
    from safetensors import safe_open

    arrays = {"é/x": VALUES, "b": np.ones((2, 0), "f2"), "": np.array(True)}
    with safe_open(saved(tmp_path, arrays, metadata={"k": "ü"}), "np") as file:
        assert file.metadata() == {"k": "ü"}
        assert_same({key: file.get_tensor(key) for key in file.keys()}, arrays)


def test_what_the_package_wrote_is_read(tmp_path):
    from safetensors.numpy import save_file

    arrays = {"a": VALUES, "b": np.float16([1, 2]), "c": np.array(3.0)}
    save_file(arrays, tmp_path / "a.safetensors", {"format": "np"})
    assert_same(load_safetensors(tmp_path / "a.safetensors"), arrays)


@pytest.mark.parametrize(
    ("arrays", "metadata", "reason"),
    [
        ({"a": np.ones(1, "c16")}, None, "'a' must have one of .* got complex128"),
        ({"a": np.array(["x"])}, None, "'a' must have one of"),
        ({"a": np.array([None])}, None, "'a' must have one of"),
        ({"__metadata__": VALUES}, None, "reserved"),
        ({1: VALUES}, None, "a name of arrays must be a str"),
        ({"\ud800": VALUES}, None, "lone surrogates"),
        ({"a": VALUES}, {"k": 1}, "a text of metadata must be a str"),
        ({"a": VALUES}, {"\ud800": "1"}, "lone surrogates"),
    ],
)
def test_what_cannot_be_stored_leaves_the_old_file(tmp_path, arrays, metadata, reason):
    path = saved(tmp_path, {"a": VALUES})
    with pytest.raises(ValueError, match=reason):
        save_safetensors(path, arrays, metadata)
    assert_same(load_safetensors(path), {"a": VALUES})
    assert os.listdir(tmp_path) == [path.name]


def test_an_error_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path, {"a": VALUES})

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SavingError, match="No space left"):
        save_safetensors(path, {"a": VALUES + 1})
    assert_same(load_safetensors(path), {"a": VALUES})
    assert os.listdir(tmp_path) == [path.name]


def test_an_existing_file_is_an_error_without_overwrite(tmp_path):
    path = saved(tmp_path, {"a": VALUES})
    for options in ({}, {"max_shard_size": 1}):
        with pytest.raises(FileExistsError, match="overwrite is False"):
            save_safetensors(path, {"a": VALUES + 1}, overwrite=False, **options)
    assert_same(load_safetensors(path), {"a": VALUES})
    assert os.listdir(tmp_path) == [path.name]


def test_permissions_are_those_of_new_files(tmp_path):
    path = saved(tmp_path, {"a": VALUES})
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("call", ["load_safetensors", "save_safetensors"])
def test_without_the_package_the_error_says_how_to_install_it(monkeypatch, call):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'tapewright\[safetensors\]'"):
        getattr(tw.io, call)("a.safetensors", *[{}] * (call[0] == "s"))


# -------------------------------------------------------------------------------- shards

ARRAYS = {name: np.full(4, i, "f4") for i, name in enumerate("abcde")}
SIZE = 32 / 2**30  # two arrays in each file
SHARDS = [f"a-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]


def test_shards_have_an_index_in_the_layout_of_hugging_face(tmp_path):
    path = saved(tmp_path, ARRAYS, metadata={"format": "np"}, max_shard_size=SIZE)
    index = f"{path}.index.json"
    assert sorted(os.listdir(tmp_path)) == [*SHARDS, "a.safetensors.index.json"]
    with open(index) as file:
        assert json.load(file) == {
            "metadata": {"total_size": 80},
            "weight_map": dict(zip("abcde", np.repeat(SHARDS, 2).tolist())),
        }
    for each in (path, index):
        assert_same(load_safetensors(each), ARRAYS)
    save_safetensors(index, {"a": VALUES}, max_shard_size=1)
    assert_same(load_safetensors(path), {"a": VALUES})


def test_shards_replace_a_single_file_of_the_same_name(tmp_path):
    path = saved(tmp_path, {"a": VALUES})
    saved(tmp_path, ARRAYS, max_shard_size=SIZE)
    assert not path.exists()
    assert_same(load_safetensors(path), ARRAYS)


def test_an_error_in_a_shard_leaves_all_old_files(tmp_path):
    path = saved(tmp_path, {"a": VALUES})
    (tmp_path / SHARDS[2]).mkdir()
    with pytest.raises(SavingError, match="it is a folder"):
        saved(tmp_path, ARRAYS, max_shard_size=SIZE)
    assert_same(load_safetensors(path), {"a": VALUES})
    assert sorted(os.listdir(tmp_path)) == [SHARDS[2], path.name]


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (0, "must be positive"),
        (float("nan"), "must be positive"),
        (SIZE / 4, "'a' has 16 bytes, more than 8"),
    ],
)
def test_shards_of_a_wrong_size_are_refused(tmp_path, size, reason):
    with pytest.raises(ValueError, match=reason):
        saved(tmp_path, ARRAYS, max_shard_size=size)
    assert not os.listdir(tmp_path)


def test_a_single_file_is_not_written_to_the_path_of_an_index(tmp_path):
    with pytest.raises(ValueError, match="must not be that of an index"):
        save_safetensors(tmp_path / "a.safetensors.index.json", ARRAYS)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"a": SHARDS[1]}, "which must have the array"),
        ({"a": SHARDS[:2]}, "which must have the array"),
        ({"a": "b.safetensors"}, "no such file"),
        ({"a": "../a.safetensors"}, "not a file of the same folder"),
        ({"a": 3}, "not a file of the same folder"),
        ({"a": "a\0"}, "not a file of the same folder"),
        ({}, "lists 0 files"),
        ([], "without weight_map"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path, parts, reason):
    saved(tmp_path, ARRAYS, max_shard_size=SIZE)
    index = tmp_path / "a.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": parts}))
    with pytest.raises(SavingError, match=reason):
        load_safetensors(index)


# ------------------------------------------------------------------------- hostile files

A = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
EMPTY = {"dtype": "F32", "shape": [0], "data_offsets": [8, 8]}


def file_of(tmp_path, header, data=bytes(8), length=None):
    header = header if isinstance(header, (str, bytes)) else json.dumps(header)
    header = header.encode() if isinstance(header, str) else header
    length = len(header) if length is None else length
    path = tmp_path / "a.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + header + data)
    return path


def entry(**changes):
    return {"a": A | changes}


TEXT = json.dumps(A)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (entry(data_offsets=[0, 4]), "not a valid"),
        (entry(data_offsets=[4, 12]), "not a valid"),
        (entry(data_offsets=[8, 0]), "not a valid"),
        (entry(data_offsets=[-8, 0]), "not a valid"),
        (entry(data_offsets=[0, 2**63]), "not a valid"),
        (entry(shape=[3]), "not a valid"),
        (entry(shape=[-2]), "not a valid"),
        (entry(shape=[2**62, 2**62]), "not a valid"),
        (entry(shape=[2**70]), "not a valid"),
        (entry(shape=2), "not a valid"),
        (entry(shape=[2.0]), "not a valid"),
        (entry(dtype="F33"), "not a valid"),
        (entry(dtype=None), "not a valid"),
        (entry(dtype="F8_E4M3", shape=[8]), "holds F8_E4M3, a dtype that NumPy lacks"),
        (entry(shape=[2] + [1] * 99), "a shape that NumPy lacks"),
        ({"a": A, "b": A}, "not a valid"),  # overlapping
        ({"a": A, "b": A | {"data_offsets": [4, 12]}}, "not a valid"),
        ({}, "not a valid"),  # bytes that belong to no array
        ({"__metadata__": A}, "not a valid"),
        ({"a": A, "__metadata__": {"x": 1}}, "not a valid"),
        ({"a": ["F32", [2], [0, 8]]}, "has list, not an object"),
        (f'{{"a": {TEXT}, "a": {TEXT}}}', "has the key 'a' twice"),
        (f'{{"a": {TEXT}, "\\u0061": {TEXT}}}', "has the key 'a' twice"),
        (f'{{"a": {TEXT.replace("}", ",")} "shape": [2]}}}}', "not a valid"),
        (f'{{"a": {TEXT}', "not a valid"),
        (f'{{"\\ud800": {TEXT}}}', "not a valid"),
        (b'{"\xff": 1}', "not a valid"),
        ("[" * 100_000, "not a valid"),
        ("", "not a valid"),
        ("null", "not a valid"),
        ({"a": A, "b": EMPTY | {"shape": [0, 2**63]}}, "a shape that NumPy lacks"),
    ],
)
def test_an_invalid_header_is_refused(tmp_path, header, reason):
    with pytest.raises(SavingError, match=reason):
        load_safetensors(file_of(tmp_path, header))


@pytest.mark.parametrize("length", [0, 1, 2**27, 2**32, 2**63, 2**64 - 1])
def test_a_header_of_another_length_is_refused(tmp_path, length):
    with pytest.raises(SavingError, match="not a valid"):
        load_safetensors(file_of(tmp_path, entry(), length=length))


def test_a_file_that_is_cut_or_too_long_is_refused(tmp_path):
    path = file_of(tmp_path, entry())
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(SavingError, match="not a valid"):
            load_safetensors(path)
    path.write_bytes(content + b"0")
    with pytest.raises(SavingError, match="not a valid"):
        load_safetensors(path)


def test_bytes_that_are_no_bool_are_refused(tmp_path):
    path = file_of(tmp_path, entry(dtype="BOOL", shape=[8]), b"\0\1\0\0\2\0\0\0")
    with pytest.raises(SavingError, match="other than 0 and 1 as bool"):
        load_safetensors(path)


def test_an_array_that_is_not_aligned_is_copied(tmp_path):
    header = json.dumps(entry())
    header += " " * (-len(header) % 8 + 1)
    path = file_of(tmp_path, header, np.float32([1, 2]).tobytes())
    array = load_safetensors(path)["a"]
    assert array.tolist() == [1, 2]
    assert array.flags.aligned and not array.flags.writeable


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_safetensors(tmp_path / "b.safetensors")
    with pytest.raises(IsADirectoryError):
        load_safetensors(tmp_path)
    if not hasattr(os, "mkfifo"):
        return
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SavingError, match="pipe"):
        load_safetensors(tmp_path / "pipe")


def test_a_changed_header_is_refused_or_reads_the_same_bytes(tmp_path):
    """Each file that is accepted has the values that its header declares."""
    arrays = {
        "kernel": np.arange(12, dtype="f4").reshape(3, 4),
        "mask": np.array([True, False]),
        "count": np.array(7),
        "empty": np.zeros((0, 2), "f2"),
    }
    path = saved(tmp_path, arrays, metadata={"format": "np"})
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    accepted, choose = 0, random.Random(0)
    pieces = [
        b'"',
        b"{",
        b"}",
        b"[",
        b",",
        b"0",
        b"9",
        b"-",
        b"\\u0061",
        b"null",
        b"\xff",
    ]
    pieces += [b"F64", b"BOOL", b"BF16", b"shape", b"99999999999999999999", b"1e3"]
    for _ in range(1500):
        header = bytearray(content[:start])
        for _ in range(choose.choice((1, 1, 2, 4))):
            at, length = choose.randrange(start), choose.choice((0, 1, 1, 2))
            new = choose.choice((choose.choice(pieces), bytes([choose.randrange(256)])))
            header[at : at + length] = new
        if choose.random() < 0.8:  # so that most have a header of this length
            header[:8] = (len(header) - 8).to_bytes(8, "little")
        path.write_bytes(bytes(header) + content[start:])
        try:
            found = load_safetensors(path)
        except SavingError:
            continue
        accepted += 1
        entries = json.loads(
            bytes(header[8 : 8 + int.from_bytes(header[:8], "little")])
        )
        for name, array in found.items():
            begin, end = entries[name]["data_offsets"]
            assert list(array.shape) == entries[name]["shape"]
            assert array.tobytes() == content[start + begin : start + end]
    assert accepted > 20
