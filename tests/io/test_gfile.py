"""Files and folders: the errors and results of TensorFlow."""

import pytest

import tapewright as tw
from tapewright.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    UnimplementedError,
)
from tapewright.io import gfile


def test_files_and_folders_come_and_go(tmp_path):
    top = str(tmp_path / "top")
    gfile.makedirs(gfile.join(top, "sub"))
    with gfile.GFile(f"{top}/a", "w") as file:
        file.write("one\ntwo\n")
        assert file.size() == 8
    with gfile.GFile(f"{top}/a") as file:
        assert list(file) == ["one\n", "two\n"]
    with gfile.GFile(f"{top}/a", "rb") as file:
        assert file.read(3) == b"one"
    gfile.copy(f"{top}/a", f"{top}/b")
    gfile.rename(f"{top}/b", f"{top}/c")
    assert gfile.listdir(top) == ["a", "c", "sub"]
    assert gfile.glob(f"{top}/[ab]") == [f"{top}/a"]
    assert list(gfile.walk(top))[0] == (top, ["sub"], ["a", "c"])
    assert gfile.stat(top).is_directory and gfile.stat(f"{top}/a").length == 8
    gfile.remove(f"{top}/a")
    assert not gfile.exists(f"{top}/a")
    gfile.rmtree(top)
    assert not gfile.isdir(top)


def test_errors_are_those_of_tensorflow(tmp_path):
    there, missing = str(tmp_path / "a"), str(tmp_path / "none")
    tw.io.write_file(there, "x")
    tw.io.write_file(f"{tmp_path}/b", "y")
    for call in (gfile.stat, gfile.listdir, gfile.remove, gfile.rmtree, gfile.GFile):
        with pytest.raises(NotFoundError):
            call(missing)
    for call in (gfile.copy, gfile.rename):
        with pytest.raises(AlreadyExistsError):
            call(there, f"{tmp_path}/b")
    with pytest.raises(AlreadyExistsError):
        gfile.mkdir(str(tmp_path))
    with pytest.raises(FailedPreconditionError):
        gfile.remove(str(tmp_path))
    with pytest.raises(UnimplementedError, match="only local files"):
        gfile.exists("gs://bucket/file")


def test_files_are_read_and_found_in_traced_functions(tmp_path):
    path = str(tmp_path / "sub" / "a.txt")
    tw.io.write_file(path, b"\xff\0")
    assert tw.function(tw.io.read_file)(tw.constant(path)).numpy() == b"\xff\0"
    found = tw.io.matching_files([f"{tmp_path}/*/*.txt", f"{tmp_path}/none*"])
    assert found.numpy().tolist() == [path.encode()]
    with pytest.raises(NotFoundError):
        tw.io.read_file(str(tmp_path / "none"))


def test_a_slash_behind_the_name_of_a_file_does_not_count(tmp_path):
    path = f"{tmp_path}/x"
    with tw.io.TFRecordWriter(f"{path}/") as writer:
        writer.write(b"one")
    assert [str(each) for each in tmp_path.iterdir()] == [path]
    for name in (path, f"{path}//"):
        assert list(tw.data.TFRecordDataset(name).as_numpy_iterator()) == [b"one"]
        assert tw.io.gfile.exists(name) and not tw.io.gfile.isdir(name)
    with pytest.raises(tw.errors.FailedPreconditionError, match="Is a directory"):
        tw.io.TFRecordWriter(f"{tmp_path}/")
    with pytest.raises(tw.errors.NotFoundError, match="no/x: No such file"):
        tw.io.TFRecordWriter(f"{tmp_path}/no/x/")
