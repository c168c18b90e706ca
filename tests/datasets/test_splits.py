"""Texts and tables: the order and the words of Keras, and files that are refused."""

import inspect
import json
import os
from pathlib import Path

import numpy as np
import pytest

from tapewright import datasets
from tapewright.datasets import boston_housing, california_housing, imdb, npz, reuters
from tapewright.datasets.fetch import DownloadError

RECORDED = json.loads((Path(__file__).parent / "reference/splits.json").read_text())
TEXTS, TABLES = (imdb, reuters), (boston_housing, california_housing)
ALL = (*TEXTS, *TABLES)


def name_of(module):
    return module.__name__.rpartition(".")[2]


def write(path, **entries):
    """An ``.npz`` file in the form of Keras': texts are objects, the rest is numbers."""
    arrays = {}
    for key, rows in entries.items():
        if key in ("x", "x_train", "x_test") and not isinstance(rows, np.ndarray):
            arrays[key] = np.empty(len(rows), object)
            for i, row in enumerate(rows):
                arrays[key][i] = row
        else:
            arrays[key] = np.array(rows)
    np.savez(path, **arrays)
    return path


def made(path, module, **changes):
    entries = RECORDED[name_of(module)]["entries"] | changes
    if module in TABLES and isinstance(entries["x"], list):
        entries["x"] = np.array(entries["x"])
    return write(path, **entries)


def same(found, recorded):
    if isinstance(found, tuple):
        return all(map(same, found, recorded))
    dtype, values = recorded
    return str(found.dtype) == dtype and found.tolist() == values


@pytest.mark.parametrize("module", ALL, ids=name_of)
def test_splits_are_those_of_keras(module, tmp_path):
    path = made(tmp_path / "made.npz", module)
    for arguments, expected in RECORDED[name_of(module)]["cases"]:
        assert same(module.load_data(path=path, **arguments), expected), arguments


def test_texts_of_one_length_are_still_lists(tmp_path):
    path = write(tmp_path / "made.npz", x=[[1, 2], [3, 4], [5, 6]], y=[0, 1, 2])
    (x_train, _), (x_test, _) = reuters.load_data(path, test_split=0.4)
    assert x_train.shape == (1,) and x_test.shape == (2,)
    assert all(type(text) is list and len(text) == 3 for text in x_test)


@pytest.mark.parametrize("module", ALL, ids=name_of)
def test_the_signature_is_that_of_keras(module):
    words = dict(num_words=None, skip_top=0, maxlen=None)
    chars = dict(start_char=1, oov_char=2, index_from=3)
    path = {"path": f"{name_of(module)}.npz"}
    wanted = {
        imdb: path | words | {"seed": 113} | chars,
        reuters: path | words | {"test_split": 0.2, "seed": 113} | chars,
        boston_housing: path | {"test_split": 0.2, "seed": 113},
        california_housing: {"version": "large"} | path | {"test_split": 0.2, "seed": 113},
    }[module]  # fmt: skip
    found = inspect.signature(module.load_data).parameters
    assert {n: p.default for n, p in found.items()} == wanted
    assert list(found) == list(wanted)


def test_a_file_in_the_working_directory_is_found_by_name(tmp_path, monkeypatch, cache):
    monkeypatch.chdir(tmp_path)
    made("imdb.npz", imdb)
    assert len(imdb.load_data()[0][0]) == 12
    (tmp_path / "imdb_word_index.json").write_text('{"film": 1, "né": 2}')
    assert imdb.get_word_index() == {"film": 1, "né": 2}


@pytest.mark.parametrize("module", ALL, ids=name_of)
def test_without_a_network_the_error_says_where_the_file_belongs(
    module, cache, server, monkeypatch
):
    monkeypatch.setattr(module, "MIRRORS", (server.url,))
    calls = [module.load_data]
    calls += [module.get_word_index] if module in TEXTS else []
    for call in calls:
        with pytest.raises(DownloadError, match="404.*\n.*copy the file to .*datasets"):
            call()


def test_reuters_names_its_topics():
    names = reuters.get_label_names()
    assert len(set(names)) == 46
    assert (names[0], names[3], names[19], names[45]) == (
        "cocoa", "earn", "money-fx", "lead",
    )  # fmt: skip


# Refused


class Runs:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("module", ALL, ids=name_of)
def test_code_in_a_file_never_runs(module, tmp_path):
    key = "x_test" if module is imdb else "x"
    entries = RECORDED[name_of(module)]["entries"] | {
        key: [[1], Runs(tmp_path / "made")]
    }
    path = write(tmp_path / "hostile.npz", **entries)
    with pytest.raises(ValueError, match=r"hostile.npz: unreadable .npz file \("):
        module.load_data(path=path)
    assert not (tmp_path / "made").exists()


SAME = [1] * 500


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": [[1, "a"]], "y": [1]}, "x must be an array of lists of ints"),
        ({"x": [[1, True]], "y": [1]}, "x must be an array of lists of ints"),
        ({"x": [1, 2], "y": [1, 2]}, "x must be an array of lists of ints"),
        ({"x": np.eye(3), "y": [1, 2, 3]}, "x must be an array of lists of ints"),
        ({"x": [[1]], "y": [1, 2]}, r"y must be \[1\] ints: got int64 of shape \(2,\)"),
        ({"x": [[1]], "y": [0.5]}, r"y must be \[1\] ints: got float64"),
        ({"x": [SAME] * 400, "y": [0] * 400}, "fewer bytes than entries"),
    ],
)
def test_other_texts_are_refused(tmp_path, changes, message):
    path = write(tmp_path / "odd.npz", **changes)
    with pytest.raises(ValueError, match=f"odd.npz: .*{message}"):
        reuters.load_data(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.ones((11, 12))}, r"x must be \[n, 13\] numbers: got .* \(11, 12\)"),
        ({"x": np.full((11, 13), "a")}, r"x must be \[n, 13\] numbers: got <U1"),
        ({"y": [1.0] * 10}, r"y must be \[11\] numbers"),
        ({"y": ["1"] * 11}, r"y must be \[11\] numbers: got <U1"),
    ],
)
def test_other_tables_are_refused(tmp_path, changes, message):
    path = made(tmp_path / "odd.npz", boston_housing, **changes)
    with pytest.raises(ValueError, match=f"odd.npz: {message}"):
        boston_housing.load_data(path)


def test_a_pickle_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "LARGEST", 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        imdb.load_data(made(tmp_path / "made.npz", imdb))


def test_other_arguments_are_refused(tmp_path):
    for module in (reuters, boston_housing, california_housing):
        path = made(tmp_path / f"{name_of(module)}.npz", module)
        for wrong in (1, -0.1):
            with pytest.raises(ValueError, match=f"{name_of(module)}.*test_split"):
                module.load_data(path=path, test_split=wrong)
    for module in TEXTS:
        path = made(tmp_path / f"{name_of(module)}.npz", module)
        with pytest.raises(ValueError, match=f"{name_of(module)}.*maxlen=1"):
            module.load_data(path, maxlen=1)
    with pytest.raises(ValueError, match="version .*'tiny'"):
        california_housing.load_data("tiny")


@pytest.mark.parametrize(
    "text", ["[1]", '{"a": 1.5}', '{"a": true}', "<html>", "[" * 9999]
)
def test_other_word_indices_are_refused(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ValueError, match="index.json: (no JSON|a word index must)"):
        reuters.get_word_index(tmp_path / "index.json")


def test_every_data_set_is_in_keras_datasets_too():
    from tapewright.keras import datasets as keras_datasets

    assert keras_datasets.__all__ == datasets.__all__
    for name in datasets.__all__:
        assert getattr(keras_datasets, name) is getattr(datasets, name)
