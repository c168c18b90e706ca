"""Attributes of untrusted files."""

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage.reader import opened

from .hdf5_files import VALUES, make


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.h5"


# Attributes


def attribute(path, value, **kwargs):
    with h5py.File(path, "w") as file:
        file.attrs.create("key", value, **kwargs)


@pytest.mark.parametrize(
    "value", ["ü", "ü".encode(), np.array(["ü"], h5py.string_dtype())]
)
def test_texts_are_read_however_they_are_stored(path, value):
    attribute(path, value)
    with opened(path) as root:
        assert root.text("key") == "ü"
        assert root.texts("key") == ["ü"]


LIST = np.empty(1, object)
LIST[0] = np.arange(3, dtype="i4")


@pytest.mark.parametrize(
    "value, kwargs",
    [
        (1.0, {}),
        (np.arange(3), {}),
        (b"\xff\xfe", {}),
        (h5py.Empty("f4"), {}),
        (h5py.Empty(h5py.string_dtype()), {}),
        (np.zeros(1, [("a", "f4")]), {}),
        (np.void(b"abc"), {}),
        (["a", "b"], {}),
        (LIST, {"dtype": h5py.vlen_dtype("i4")}),
        (np.array([True]), {}),
        (np.zeros((2, 3)), {"dtype": np.dtype(("f8", (3,))), "shape": (2, 3)}),
    ],
)
def test_attributes_of_other_types_are_no_text(path, value, kwargs):
    attribute(path, value, **kwargs)
    with (
        opened(path) as root,
        pytest.raises(tw.errors.SavingError, match="attribute") as caught,
    ):
        root.text("key")
    assert caught.value.dataset == "/@key"


def test_references_in_attributes_are_refused(path):
    with h5py.File(path, "w") as file:
        file.attrs["key"] = file.ref
        file.attrs.create("keys", [file.ref] * 2, dtype=h5py.ref_dtype)
    with opened(path) as root:
        for call in (root.text, root.texts, root.integer, root.json):
            for key in ("key", "keys"):
                with pytest.raises(tw.errors.SavingError, match="attribute"):
                    call(key)


def test_large_attributes_are_refused(path):
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["key"] = np.zeros(9 << 20)
        file.attrs.create("many", [""] * 70_000, dtype=h5py.string_dtype())
    with opened(path) as root:
        with pytest.raises(tw.errors.SavingError, match="attribute .*75497472"):
            root.integer("key")
        with pytest.raises(tw.errors.SavingError, match="attribute .*70000"):
            root.texts("many")


@pytest.mark.parametrize("value", [1.5, "1", [1, 2], np.zeros(0, int), True])
def test_whole_numbers_are_whole_and_one(path, value):
    attribute(path, value)
    with (
        opened(path) as root,
        pytest.raises(tw.errors.SavingError, match="attribute .*an integer"),
    ):
        root.integer("key")


def test_json_tells_its_place(path):
    with h5py.File(path, "w") as file:
        file.create_group("g").attrs["config"] = '{"a": NaN}'
    with opened(path) as root, pytest.raises(tw.errors.SavingError) as caught:
        root.group("g").json("config")
    assert str(caught.value) == f"{path} [/g@config]: the JSON has the value NaN"


def test_an_attribute_that_is_missing_is_told(path):
    make(path, a=VALUES)
    with opened(path) as root:
        assert not root.has("key")
        for call in (root.text, root.texts, root.integer, root.json, root.json_object):
            with pytest.raises(tw.errors.SavingError, match="attribute.*'key'"):
                call("key")


def test_names_of_many_layers_stand_beside_their_long_configs(tmp_path):
    """771 names beside a config of 689 kB are what Keras writes of NASNetMobile."""
    names = [f"layer_{i}" for i in range(771)]
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs["model_config"] = "x" * 688_881
        file.attrs.create("layer_names", names, dtype=h5py.string_dtype())
    with opened(tmp_path / "f.h5") as root:
        assert root.texts("layer_names") == names
