"""The layout of ``.keras`` files, and such files that are damaged."""

import io
import json
import zipfile

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Sequential, layers
from tapewright.keras.models import load_model

X = np.ones((4, 3), "f4")


def trained():
    model = Sequential([Input((3,)), layers.Dense(2), layers.Dropout(0.5, seed=1)])
    model.compile(tw.optimizers.Adam(0.01), "mse")
    model.fit(X, X[:, :2], verbose=0)
    return model


@pytest.fixture
def path(tmp_path):
    trained().save(tmp_path / "m.keras")
    return tmp_path / "m.keras"


def rewritten(path, name=None, content=None, compression=zipfile.ZIP_STORED, **more):
    """A copy with another member of that name, and further ones."""
    other = path.with_name("other.keras")
    with zipfile.ZipFile(path) as old:
        members = {each: old.read(each) for each in old.namelist()}
    members |= more if name is None else {name: content, **more}
    with zipfile.ZipFile(other, "w", compression) as new:
        for each, content in members.items():
            if content is not None:
                new.writestr(each, content)
    return other


def test_the_members_are_those_of_keras_stored_and_not_deflated(path):
    with zipfile.ZipFile(path) as zipped:
        infos = {info.filename: info for info in zipped.infolist()}
        config = json.loads(zipped.read("config.json"))
        metadata = json.loads(zipped.read("metadata.json"))
        inside = io.BytesIO(zipped.read("model.weights.h5"))
    assert list(infos) == ["metadata.json", "config.json", "model.weights.h5"]
    assert {info.compress_type for info in infos.values()} == {zipfile.ZIP_STORED}
    assert set(metadata) == {"keras_version", "date_saved"}
    assert config["class_name"] == "Sequential" and config["module"] == "keras"
    assert config["compile_config"]["optimizer"]["module"] == "keras.optimizers"
    with h5py.File(inside) as file:
        assert len(file["optimizer/vars"]) == 6
        assert file["layers/dense/vars"].attrs["name"] == config["config"]["layers"][1][
            "config"]["name"]  # fmt: skip
        assert len(file["tapewright/random"]) == 1  # of the Dropout


def test_deflated_members_are_read(path):
    other = rewritten(path, compression=zipfile.ZIP_DEFLATED)
    expected = load_model(path).predict(X, verbose=0)
    np.testing.assert_array_equal(load_model(other).predict(X, verbose=0), expected)


@pytest.mark.parametrize(
    "name, content, reason",
    [
        ("config.json", b"{", r"\[config\.json\].*JSON"),
        ("config.json", b"[]", r"must be a JSON object, got list"),
        ("config.json", b'{"a": 1, "a": 2}', r"'a' twice"),
        ("config.json", None, r"'config\.json'"),
        ("model.weights.h5", b"nothing", r"\[model\.weights\.h5\].*HDF5"),
        ("model.weights.h5", None, r"'model\.weights\.h5'"),
        ("../evil", b"", r"\.\./evil.*relative path"),
    ],
)
def test_a_member_that_is_wrong_is_named(path, name, content, reason):
    with pytest.raises(tw.errors.SavingError, match=reason):
        load_model(rewritten(path, name, content))


def test_weights_load_from_a_file_with_a_damaged_config(path):
    model = Sequential([Input((3,)), layers.Dense(2)])
    model.load_weights(rewritten(path, "config.json", b"{"))
    np.testing.assert_array_equal(model(X), load_model(path)(X))


def test_a_model_that_cannot_be_built_as_saved_is_an_error_of_the_file(tmp_path):
    @tw.keras.saving.register_keras_serializable(package="model_file")
    class Narrow(tw.Model):
        def build(self, input_shape):
            if input_shape[-1] > 3:
                raise RuntimeError("too wide")
            self.w = self.add_weight((input_shape[-1],), name="w")

        def call(self, x):
            return x * self.w

    model = Narrow()
    model(X)
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as zipped:
        config = zipped.read("config.json").replace(b"[4, 3]", b"[4, 9]")
    other = rewritten(tmp_path / "m.keras", "config.json", config)
    with pytest.raises(
        tw.errors.SavingError, match="config.json.*cannot be built.*too wide"
    ):
        load_model(other)


def test_a_flipped_bit_is_found(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(tw.errors.SavingError, match="m.keras.*damaged"):
        load_model(path)


def test_half_a_file_is_no_file(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(tw.errors.SavingError, match="damaged zip file"):
        load_model(path)


def test_the_place_of_a_misfit_names_the_member(path):
    model = Sequential([Input((3,)), layers.Dense(5)])
    with pytest.raises(
        tw.errors.SavingError, match=r"\[model.weights.h5:/layers/dense/vars/0\]"
    ):
        model.load_weights(path)


def test_an_optimizer_that_was_never_used_comes_back_so(tmp_path):
    model = Sequential([Input((3,)), layers.Dense(2)])
    model.compile(tw.optimizers.Adam(0.25), "mse")
    model.save(tmp_path / "m.keras")
    other = load_model(tmp_path / "m.keras")
    assert not other.optimizer.built
    assert other.optimizer.learning_rate.numpy() == 0.25
