"""Data sets of the records of files."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from tapewright.data.file_datasets import CsvDataset


@pytest.fixture
def paths(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("".join([f"{name}{n}\n" for n in range(3)]))
    return [str(tmp_path / name) for name in "ab"]


def elements(ds):
    return list(ds.as_numpy_iterator())


IN_TURN = [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


def test_files_follow_each_other_or_take_turns(paths):
    assert elements(TextLineDataset(paths)) == IN_TURN
    names = tw.data.Dataset.from_tensor_slices(paths)
    assert elements(TextLineDataset(names)) == IN_TURN
    assert elements(TextLineDataset(tw.constant(paths[1]))) == IN_TURN[3:]
    turns = TextLineDataset(paths, num_parallel_reads=2)
    assert elements(turns) == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
    assert TextLineDataset(paths).element_spec == tw.TensorSpec([], tw.string)


def test_records_of_one_length_become_numbers(paths, tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(b"H" + np.arange(4, dtype="<i2").tobytes())
    ds = FixedLengthRecordDataset(path, 4, header_bytes=1)
    ds = ds.map(lambda x: tw.io.decode_raw(x, tw.int16, fixed_length=4))
    assert [x.tolist() for x in elements(ds)] == [[0, 1], [2, 3]]


def test_examples_are_parsed_and_batched(tmp_path):
    path = str(tmp_path / "examples")
    with tw.io.TFRecordWriter(path, "ZLIB") as writer:
        for n in range(5):
            example = tw.train.Example()
            example.features.feature["n"].int64_list.value.append(n)
            writer.write(example.SerializeToString())
    wanted = {"n": tw.io.FixedLenFeature([], tw.int64)}
    ds = TFRecordDataset([path], compression_type="ZLIB")
    ds = ds.map(lambda text: tw.io.parse_single_example(text, wanted)["n"])
    assert [x.tolist() for x in elements(ds.batch(2))] == [[0, 1], [2, 3], [4]]
    assert ds.element_spec == tw.TensorSpec([], tw.int64)


def test_rows_of_csv_files_as_tensorflow_reads_them(tmp_path):
    """Recorded with TensorFlow."""
    path = str(tmp_path / "table.csv")
    with open(path, "w") as file:
        file.write('a,b,c\n1,"x",2.5\n3,,\r\n4,"q""",1\n')
    ds = CsvDataset(path, [tw.int32, ["d"], [9.0]], header=True)
    assert elements(ds) == [(1, b"x", 2.5), (3, b"d", 9.0), (4, b'q"', 1.0)]
    ds = CsvDataset(path, [[0], [1.0]], header=True, exclude_cols=[1])
    assert elements(ds) == [(1, 2.5), (3, 1.0), (4, 1.0)]


def test_other_names_and_files_are_refused(paths):
    with pytest.raises(TypeError, match="filenames must be strings"):
        TextLineDataset([1])
    with pytest.raises(ValueError, match="compression_type"):
        TFRecordDataset(paths, "BZ2")
    with pytest.raises(tw.errors.UnimplementedError, match="only local files"):
        elements(TextLineDataset("gs://bucket/file"))
    with pytest.raises(tw.errors.DataLossError):
        elements(TFRecordDataset(paths))
