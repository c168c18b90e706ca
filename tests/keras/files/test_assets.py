"""Vocabularies in files: of Keras and ours, in every format; and files that are not as said."""

import importlib.util
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.errors import SavingError
from tapewright.keras.files import assets
from tapewright.keras.models import load_model

HERE = Path(__file__).parent / "reference"
WORDS = "assets/layers/text_vectorization/vocabulary.txt"


def made():
    spec = importlib.util.spec_from_file_location("record", HERE / "record_text.py")
    record = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(record)
    return record.make(keras, tw.constant)


def assert_outputs(model, inputs):
    expected = json.loads((HERE / "text.json").read_text())
    for found, each in zip(model(inputs), expected, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-6)


def test_a_file_of_keras_gives_the_outputs_of_keras():
    assert_outputs(load_model(HERE / "text.keras"), made()[1])


def test_every_format_keeps_the_vocabularies(tmp_path):
    model, inputs = made()
    assert_outputs(model, inputs)
    model.save(tmp_path / "m.keras")
    model.save(tmp_path / "m.h5")
    model.save(tmp_path / "folder", zipped=False)
    for name in ("m.keras", "m.h5", "folder"):
        again = load_model(tmp_path / name)
        assert_outputs(again, inputs)
        again.save(tmp_path / "again.keras")
        assert_outputs(load_model(tmp_path / "again.keras"), inputs)
    with (
        zipfile.ZipFile(tmp_path / "m.keras") as ours,
        zipfile.ZipFile(HERE / "text.keras") as theirs,
    ):
        assert set(ours.namelist()) == set(theirs.namelist())
        for name in theirs.namelist():
            if name.startswith("assets/"):
                assert ours.read(name) == theirs.read(name)
    model.save_weights(tmp_path / "m.weights.h5")
    fresh = made()[0]
    fresh.load_weights(tmp_path / "m.weights.h5")
    fresh.load_weights(tmp_path / "m.keras")
    assert_outputs(fresh, inputs)


@keras.saving.register_keras_serializable("tests")
class Noted(keras.layers.Layer):
    """A layer with files of its own."""

    notes = ()

    def call(self, inputs):
        return inputs

    def save_assets(self, dir_path):
        os.mkdir(os.path.join(dir_path, "notes"))
        for i, note in enumerate(self.notes):
            with open(os.path.join(dir_path, "notes", f"{i}.bin"), "wb") as file:
                file.write(note)

    def load_assets(self, dir_path):
        folder = os.path.join(dir_path, "notes")
        names = sorted(os.listdir(folder))
        self.notes = [Path(folder, name).read_bytes() for name in names]


def test_layers_of_users_have_assets(tmp_path):
    layer = Noted()
    layer.notes = [b"a\0", b""]
    model = keras.Sequential([keras.Input((1,)), layer])
    model.save(tmp_path / "m.keras")
    model.save(tmp_path / "folder", zipped=False)
    for name in ("m.keras", "folder"):
        assert load_model(tmp_path / name).layers[0].notes == layer.notes


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.keras"
    words = keras.layers.TextVectorization(max_tokens=5)
    words.adapt(["b a a"])
    keras.Sequential([keras.Input((1,), dtype="string"), words]).save(path)
    return path


@pytest.mark.parametrize(
    "content, reason",
    {
        None: "vocabulary.txt is missing",
        b"\n[UNK]\n\xff": "must be text in UTF-8",
        b"\n[UNK]\na\na": "duplicate tokens.*'a'",
        b"\n[UNK]\n\nb": "mask token '' at index 0",
        b"\n[UNK]\na\nb\nc\nd": "must have the 4 tokens of the config.*got 6",
        b"\n[UNK]": "must have the 4 tokens of the config.*got 2",
    }.items(),
)
def test_a_faulty_vocabulary_is_refused(saved, tmp_path, content, reason):
    with (
        zipfile.ZipFile(saved) as old,
        zipfile.ZipFile(tmp_path / "m.keras", "w") as new,
    ):
        for name in old.namelist():
            if name != WORDS:
                new.writestr(name, old.read(name))
            elif content is not None:
                new.writestr(name, content)
    with pytest.raises(SavingError, match=reason) as error:
        load_model(tmp_path / "m.keras")
    assert "text_vectorization" in str(error.value)


def test_assets_are_read_from_the_file_alone(saved, tmp_path, monkeypatch):
    model = load_model(saved)
    model.save(tmp_path / "folder", zipped=False)
    outside = tmp_path / "outside.txt"
    outside.write_text("\n[UNK]\nsecret")
    (tmp_path / "folder" / WORDS).unlink()
    (tmp_path / "folder" / WORDS).symlink_to(outside)
    with pytest.raises(SavingError, match="is a link, not a file of this folder"):
        load_model(tmp_path / "folder")
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "config.json":
                whole = json.loads(text)
                whole["config"]["layers"][1]["config"]["vocabulary"] = str(outside)
                text = json.dumps(whole)
            new.writestr(name, text)
    with pytest.raises(SavingError, match="would read its vocabulary from the file"):
        load_model(path)
    monkeypatch.setattr(assets, "MAX_ASSETS", 5)
    with pytest.raises(SavingError, match="more than 5 bytes"):
        load_model(saved)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "assets"])
def test_no_link_leads_out_of_the_folder_of_a_model(saved, tmp_path, name):
    load_model(saved).save(tmp_path / "folder", zipped=False)
    (tmp_path / "folder" / name).rename(tmp_path / name)
    (tmp_path / "folder" / name).symlink_to(tmp_path / name)
    with pytest.raises(SavingError, match="is a link, not a file of this folder"):
        load_model(tmp_path / "folder")


def test_lookups_without_names_for_what_is_unknown(tmp_path):
    lookup = keras.layers.StringLookup(output_mode="tf_idf", oov_token=None)
    empty = keras.layers.StringLookup(mask_token="", num_oov_indices=0)
    lookup.adapt([["a", "b"], ["a", "c"]])
    text = keras.Input((1,), dtype="string")
    model = keras.Model(text, [lookup(text), empty(text)])
    for name in ("m.keras", "m.h5"):
        model.save(tmp_path / name)
        again, unadapted = load_model(tmp_path / name).layers[1:]
        assert again.get_vocabulary() == [None, "a", "c", "b"]
        np.testing.assert_allclose(again.idf_weights, lookup.idf_weights, rtol=1e-6)
        assert unadapted.get_vocabulary() == [""]


def test_configs_hold_the_vocabulary_where_a_file_has_no_assets(saved, tmp_path):
    model = load_model(saved)
    model.save(tmp_path / "m.h5")
    assert model.layers[0].get_config()["vocabulary"] is None
    again = load_model(tmp_path / "m.h5").layers[0]
    assert again.get_config()["vocabulary"] == ["", "[UNK]", "a", "b"]
    assert re.search(
        "already given", str(pytest.raises(ValueError, again.adapt, ["a"]).value)
    )


def test_tokens_in_another_encoding_are_kept_or_refused(tmp_path):
    lookup = keras.layers.StringLookup(encoding="latin-1")
    lookup.adapt(np.array(["é".encode("latin-1"), b"a"], object))
    text = keras.Input((1,), dtype="string")
    model = keras.Model(text, lookup(text))
    model.save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras")
    assert again(tw.constant([["é".encode("latin-1")]])).numpy() == 1
    with pytest.raises(ValueError, match=r"token b'\\xe9' is not UTF-8.*as \.keras"):
        model.save(tmp_path / "m.h5")
