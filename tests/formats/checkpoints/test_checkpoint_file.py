"""Files of checkpoints: names of any kind, other files, readers."""

import numpy as np
import pytest

import tapewright as tw

from .training import assert_equal, trained

Checkpoint = tw.train.Checkpoint


@pytest.mark.parametrize(
    "content", [b"", b"not a checkpoint", b"\x89HDF\r\n\x1a\n" * 9]
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "one").write_bytes(content)
    with pytest.raises(tw.errors.SavingError):
        Checkpoint(v=tw.Variable(1.0)).restore(tmp_path / "one")


def test_a_file_of_weights_is_no_checkpoint(tmp_path):
    path = tmp_path / "m.weights.h5"
    trained(2).save_weights(path)
    with pytest.raises(tw.errors.SavingError, match="is not a tapewright checkpoint"):
        Checkpoint(v=tw.Variable(1.0)).restore(path)


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Checkpoint(v=tw.Variable(1.0)).restore(tmp_path / "none")


def test_a_reader_tells_names_shapes_and_values(tmp_path):
    path = Checkpoint(v=tw.Variable([1.0, 2.0])).save(tmp_path / "ckpt")
    reader = tw.train.load_checkpoint(tmp_path)
    assert reader.get_variable_to_shape_map()["v"] == [2]
    assert reader.get_variable_to_dtype_map()["v"] == np.float32
    assert reader.has_tensor("v") and not reader.has_tensor("w")
    assert_equal(reader.get_tensor("v"), np.array([1, 2], "f4"))
    assert_equal(tw.train.load_variable(path, "v"), np.array([1, 2], "f4"))


def test_names_of_any_depth_and_kind_come_back(tmp_path):
    nested = tw.Variable(1.0)
    for key in ["a/b", "%-", "..", "", "%2F"] * 14:
        nested = {key: nested, "other": tw.Variable(2.0)}
    path = Checkpoint(nested=nested).write(tmp_path / "deep")
    Checkpoint(nested=nested).read(path).assert_consumed()
    reader = tw.train.load_checkpoint(path)
    names = [name for name, _ in tw.train.list_variables(path)]
    assert len(names) == 71
    assert {float(reader.get_tensor(name)) for name in names} == {1.0, 2.0}


def test_names_of_tensorflow_are_understood(tmp_path):
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    path = Checkpoint(v=tw.Variable([1.0, 2.0])).save(tmp_path / "ckpt")
    reader = tw.train.load_checkpoint(path)
    assert reader.has_tensor(f"v{ending}") and not reader.has_tensor(f"w{ending}")
    shapes = reader.get_variable_to_shape_map()
    assert shapes[f"v{ending}"] == shapes.get(f"v{ending}") == [2]
    assert f"v{ending}" in shapes and f"w{ending}" not in shapes
    assert reader.get_variable_to_dtype_map()[f"v{ending}"] == "float32"
    assert tw.train.load_variable(tmp_path, f"v{ending}").tolist() == [1, 2]
    with pytest.raises(KeyError, match="w/.ATTR"):
        reader.get_variable_to_shape_map()[f"w{ending}"]
