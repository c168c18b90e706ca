"""`Dataset.save`, `Dataset.load` and `Dataset.snapshot`: folders of records."""

import json
import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset
from tapewright.data.files.element_records import decoded, encoded
from tapewright.errors import DataLossError, NotFoundError, SavingError
from tapewright.storage.records.tf_records import put_record

LETTERS = [b"a", b"", "é".encode(), b"\xff\x00"]


def numbers(dataset):
    return [int(x) for x in dataset]


def index(path):
    return json.loads((path / "dataset.json").read_text())


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_every_kind_of_element_comes_back(tmp_path, compression):
    ragged = tw.ragged.constant([[1, 2], [], [3], [4]])
    sparse = tw.sparse.from_dense(np.eye(4, dtype="float32"))
    columns = {"z": tw.constant(LETTERS), "a": (np.arange(4), ragged), "s": sparse}
    rows = Dataset.from_tensor_slices(columns)
    for ds in (rows, rows.batch(3)):
        ds.save(tmp_path / "ds", compression)
        again = Dataset.load(tmp_path / "ds", ds.element_spec, compression)
        assert again.element_spec == ds.element_spec and len(again) == len(ds)
        for found, wanted in zip(again, ds, strict=True):
            assert list(found) == ["z", "a", "s"]
            for one, other in zip(tw.nest.flatten(found), tw.nest.flatten(wanted)):
                assert repr(one) == repr(other)
    assert index(tmp_path / "ds")["compression"] == (compression or "")


def test_elements_of_different_sizes_and_none_at_all(tmp_path):
    sizes = Dataset.from_generator(
        lambda: ([float(n)] * n for n in range(3)),
        output_signature=tw.TensorSpec((None,), "bfloat16"),
    )
    sizes.save(tmp_path / "ds")
    again = Dataset.load(tmp_path / "ds")
    assert [x.numpy().tolist() for x in again] == [[], [1.0], [2.0, 2.0]]
    assert again.element_spec.shape.as_list() == [None]
    sizes.take(0).save(tmp_path / "ds")
    assert list(Dataset.load(tmp_path / "ds")) == []


def test_sizes_that_the_first_element_does_not_have(tmp_path):
    def some(n):  # of a size that no trace knows
        size = int(n.numpy())
        ragged = tw.RaggedTensor.from_row_lengths(tw.range(size + 1), [size, 1])
        return tw.zeros([size, 2]), tw.sparse.eye(size), ragged

    Dataset.range(1, 3).map(some).save(tmp_path / "ds")
    again = Dataset.load(tmp_path / "ds")
    assert again.element_spec[0].shape.as_list() == [None, 2]
    for n, (tensor, sparse, ragged) in enumerate(again, 1):
        assert tensor.shape == (n, 2) and sparse.shape == (n, n)
        assert ragged.to_list() == [list(range(n)), [n]]


def test_shards_are_read_in_turn_or_by_a_function(tmp_path):
    path = tmp_path / "ds"
    Dataset.range(7).save(path, shard_func=lambda x: x % 3)
    assert len(index(path)["shards"]) == 3
    assert numbers(Dataset.load(path)) == [0, 3, 6, 1, 4, 2, 5]

    def read(parts):
        return parts.interleave(lambda part: part, cycle_length=3)

    assert numbers(Dataset.load(path, reader_func=read)) == list(range(7))
    Dataset.load(path).map(lambda x: x * 2).save(path)  # over itself
    assert sorted(os.listdir(path)) == ["dataset.json", "shard_00000.tfrecord"]
    assert numbers(Dataset.load(path)) == [0, 6, 12, 2, 8, 4, 10]


def test_a_position_is_restored_in_a_loaded_data_set(tmp_path):
    Dataset.range(6).save(tmp_path / "ds", shard_func=lambda x: x // 3)
    ds = Dataset.load(tmp_path / "ds").batch(2)
    iterator = iter(ds)
    next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    again = iter(Dataset.load(tmp_path / "ds").batch(2))
    again.restore(state)
    assert [x.numpy().tolist() for x in again] == [[2, 3], [4, 5]]


def test_a_snapshot_is_written_by_the_first_whole_run(tmp_path):
    calls = []

    def square(x):
        calls.append(int(x))
        return x * x

    path = tmp_path / "ds"
    ds = Dataset.range(4).map(lambda x: tw.py_function(square, [x], "int64"))
    ds = ds.snapshot(path, shard_func=lambda x: x % 2)
    assert numbers(ds.take(2)) == [0, 1] and not path.exists()
    assert not os.listdir(tmp_path)
    assert numbers(ds) == [0, 1, 4, 9]
    made = len(calls)
    assert numbers(ds.repeat(2)) == [0, 4, 1, 9] * 2 and len(calls) == made
    iterator = iter(ds)
    next(iterator)
    state, rest = iterator.state(), numbers(iterator)
    iterator.restore(state)
    assert numbers(iterator) == rest == [4, 1, 9]


def test_a_failing_run_leaves_the_older_folder(tmp_path):
    path = tmp_path / "ds"
    Dataset.range(2).save(path)
    with pytest.raises(ZeroDivisionError):
        Dataset.from_tensor_slices([1, 0]).map(lambda x: 1 // int(x)).save(path)
    assert numbers(Dataset.load(path)) == [0, 1]
    assert os.listdir(tmp_path) == ["ds"]


@pytest.mark.parametrize(
    "act, error, words",
    [
        (lambda path: Dataset.load(path), NotFoundError, "no folder"),
        (lambda path: Dataset.range(2).repeat().save(path), ValueError, "infinite"),
        (lambda path: Dataset.range(2).save(path, "SNAPPY"), ValueError, "'SNAPPY'"),
        (
            lambda path: Dataset.range(2).save(path, shard_func=lambda x: x - 1),
            ValueError,
            "shard_func must return 0 or more, got -1",
        ),
        (lambda path: Dataset.range(4).window(2).save(path), TypeError, "got Dataset"),
        (
            lambda path: Dataset.from_tensors({1: 2.0}).save(path),
            TypeError,
            "must have str keys",
        ),
        (
            lambda path: Dataset.range(2).save(path, checkpoint_args={}),
            ValueError,
            "checkpoint_args",
        ),
        (lambda path: Dataset.load(path, wait=True), ValueError, "wait must be False"),
    ],
)
def test_mistakes_are_named_and_leave_nothing(tmp_path, act, error, words):
    with pytest.raises(error, match=words):
        act(tmp_path / "ds")
    assert not os.listdir(tmp_path)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(SavingError, match="no dataset.json"):
        Dataset.load(tmp_path)
    (tmp_path / "dataset_spec.pb").write_bytes(b"")
    with pytest.raises(SavingError, match="in TensorFlow's format"):
        Dataset.load(tmp_path)
    with pytest.raises(SavingError, match="other files, such as 'dataset_spec.pb'"):
        Dataset.range(2).save(tmp_path)
    Dataset.range(2).save(tmp_path / "ds")
    for arguments, words in (
        ({"element_spec": tw.TensorSpec((), "int32")}, "element_spec must be"),
        ({"compression": "GZIP"}, "compression must be"),
    ):
        with pytest.raises(ValueError, match=words):
            Dataset.load(tmp_path / "ds", **arguments)
    with pytest.raises(TypeError, match="reader_func must return a Dataset, got int"):
        Dataset.load(tmp_path / "ds", reader_func=lambda parts: 3)


def shards(**changed):
    return {"shards": [{"file": "shard_00000.tfrecord", "elements": 1, **changed}]}


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"format": "another"}, "must be a tapewright data set"),
        ({"version": 2}, "of version 1"),
        ({"element_spec": {"tensor": [[], "posix.system"]}}, "is damaged"),
        ({"element_spec": {"call": [[], "int64"]}}, "is damaged.*'call'"),
        ({"element_spec": []}, "is damaged"),
        ({"compression": "BZ2"}, "is damaged.*'BZ2'"),
        (shards(file="../../etc/passwd", bytes=1), "not the name of a shard"),
        (shards(elements=-1, bytes=1), "invalid sizes -1 and 1"),
        (shards(elements=10**9, bytes=72), "which cannot hold 1000000000 elements"),
        (shards(bytes=1), "must have 1 bytes, has"),
        (shards(file="shard_00001.tfrecord", bytes=1), "must have 1 bytes, has None"),
        ({"shards": 3}, "is damaged"),
    ],
)
def test_damaged_descriptions_are_refused(tmp_path, changed, words):
    path = tmp_path / "ds"
    Dataset.range(1).save(path)
    (path / "dataset.json").write_text(json.dumps({**index(path), **changed}))
    with pytest.raises(SavingError, match=words):
        Dataset.load(path)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("name", ["dataset.json", "shard_00000.tfrecord"])
def test_links_out_of_the_folder_are_not_followed(tmp_path, name):
    Dataset.range(3).save(tmp_path / "ds")
    (tmp_path / "ds" / name).rename(tmp_path / name)
    (tmp_path / "ds" / name).symlink_to(tmp_path / name)
    with pytest.raises(SavingError, match="is a link, not a file of this folder"):
        Dataset.load(tmp_path / "ds")
    (tmp_path / "ds" / name).unlink()
    (tmp_path / name).rename(tmp_path / "ds" / "kept")
    (tmp_path / "ds" / name).symlink_to("kept")  # it stays inside
    assert numbers(Dataset.load(tmp_path / "ds")) == [0, 1, 2]


@pytest.mark.parametrize(
    "spec, count",
    [
        ({"tensor": [[10**30], "int64"]}, 1),
        ({"ragged": [[None], "int64", 10**30, "int64"]}, 1),
        ({"tensor": [[], "int64"]}, 10**30),
        ({"tuple": []}, -1),
        ([], 1),
        (None, 1),
    ],
)
def test_numbers_without_bound_in_a_description_are_refused(tmp_path, spec, count):
    path = tmp_path / "ds"
    Dataset.range(1).save(path)
    changed = index(path)
    changed["element_spec"] = spec
    changed["shards"][0]["elements"] = count
    (path / "dataset.json").write_text(json.dumps(changed))
    with pytest.raises((SavingError, DataLossError)):
        list(Dataset.load(path))


@pytest.mark.parametrize(
    "head",
    [
        b"[" * 100_000,
        b'{"tuple": [' * 100_000,
        b'{"tuple": [' * 600 + b'{"dtype": "int64", "shape": []}' + b"]}" * 600,
        b'{"dtype": "int64", "shape": [' + b"9" * 400 + b"]}",
        b'{"dtype": "int64", "shape": [1e999]}',
        b'{"dtype": "string", "shape": [], "lengths": [' + b"9" * 400 + b"]}",
        b'{"dict": 1}',
        b"1",
    ],
)
def test_a_record_of_nested_lists_or_giant_numbers_is_refused(head):
    with pytest.raises(DataLossError, match="not an element of a dataset"):
        decoded(len(head).to_bytes(4, "little") + head + bytes(8))


def test_records_that_do_not_fit_the_spec_are_refused(tmp_path):
    path = tmp_path / "ds"
    for element in (
        (tw.constant(1.0),),
        (tw.constant([1]),),
        (tw.constant(1), tw.constant(1)),
        (),
    ):
        Dataset.from_tensors(1).save(path)
        shard = path / "shard_00000.tfrecord"
        shard.write_bytes(put_record(encoded(element)))
        changed = index(path)
        changed["shards"][0]["bytes"] = shard.stat().st_size
        (path / "dataset.json").write_text(json.dumps(changed))
        with pytest.raises(DataLossError, match="not an element of TensorSpec"):
            list(Dataset.load(path))


def test_a_record_is_json_and_bytes():
    record = encoded((tw.constant([1, 2], "int16"), {"t": tw.constant(["é", "b"])}))
    head = b'{"tuple": [{"dtype": "int16", "shape": [2]}, {"dict": {"t": {"dtype": '
    head += b'"string", "shape": [2], "lengths": [2, 1]}}}]}'
    body = b"\x01\x00\x02\x00" + "éb".encode()
    assert record == len(head).to_bytes(4, "little") + head + body
    for bad in (b"", record[:-1], record + b"x", record.replace(b"tuple", b"topel")):
        with pytest.raises(DataLossError, match="not an element of a dataset"):
            decoded(bad)
