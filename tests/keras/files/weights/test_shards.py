"""Weights in several files, under one index."""

import json
import os

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import SavingError
from tapewright.keras.files.weights.shards import opened_shards
from tapewright.storage.writer import writing

KERNEL, BIAS = np.ones((3, 2), "f4"), np.float32([4, 5])


def shards(folder, *contents, index=None):
    """An index of files ``0.h5``, ``1.h5``, ... with these arrays each."""
    files = {}
    for i, arrays in enumerate(contents):
        with h5py.File(folder / f"{i}.h5", "w") as file:
            for name, array in arrays.items():
                file[name] = array
                files.setdefault(f"/{name.rpartition('/')[0]}", []).append(f"{i}.h5")
    path = folder / "m.weights.json"
    path.write_text(json.dumps({"weight_map": files if index is None else index}))
    return path


def test_groups_of_several_files_are_one(tmp_path):
    path = shards(
        tmp_path,
        {"layers/a/vars/0": KERNEL, "layers/b/vars/0": BIAS},
        {"layers/a/vars/1": BIAS, "layers/c/cell/vars/0": KERNEL},
    )
    with opened_shards(path) as root:
        assert root.keys() == ["layers"]
        assert root.group("layers").keys() == ["a", "b", "c"]
        first, second = root.group("layers/a/vars").numbered()
        np.testing.assert_array_equal(first.read(), KERNEL)
        np.testing.assert_array_equal(second.read(), BIAS)
        assert root.array("layers/c/cell/vars/0").shape == (3, 2)
        assert root.find("layers/d") is None and "layers/b/vars" in root
        names = [array.name for array in root.arrays()]
        assert len(names) == 4 and names[0] == "/layers/a/vars/0"
        assert [array.name for array in root.group("layers/a").arrays()] == [
            "/layers/a/vars/0",
            "/layers/a/vars/1",
        ]


def test_weights_cut_in_the_middle_of_a_layer_load(tmp_path):
    path = shards(
        tmp_path, {"layers/dense/vars/1": BIAS}, {"layers/dense/vars/0": KERNEL}
    )
    model = tw.keras.Sequential([tw.keras.Input((3,)), tw.layers.Dense(2)])
    model.load_weights(path)
    for weight, expected in zip(model.get_weights(), [KERNEL, BIAS]):
        np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"layers/a/vars/0": BIAS}, "in several files"),
        ({"layers/a": BIAS}, "in several files"),
        ({"layers/a/vars/2": BIAS}, "without a gap"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path, second, reason):
    path = shards(tmp_path, {"layers/a/vars/0": KERNEL}, second)
    with (
        opened_shards(path) as root,
        pytest.raises(tw.errors.SavingError, match=reason),
    ):
        root.group("layers/a/vars").numbered()


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ({}, "lists 0 files"),
        ({"/a": "../0.h5"}, "not a file of the same folder"),
        ({"/a": ["0.h5", 3]}, "not a file of the same folder"),
        ({"/a": "/dev/zero"}, "not a file of the same folder"),
        ({"/a": "a\0.h5"}, "not a file of the same folder"),
        ({"/a": "gone.h5"}, "no such file"),
        ({"/a": [f"{i}.h5" for i in range(1001)]}, "lists 1001 files"),
        ([], "weight_map"),
    ],
)
def test_an_index_of_other_files_is_refused(tmp_path, index, reason):
    path = shards(tmp_path, {"a/vars/0": BIAS}, index=index)
    with pytest.raises(tw.errors.SavingError, match=reason):
        with opened_shards(path):
            pass


def test_shards_are_sealed_if_all_are(tmp_path):
    path = shards(tmp_path, {"a/vars/0": BIAS}, {"b/vars/0": BIAS})
    for number in (0, 1):
        with writing(tmp_path / f"{number}.h5") as root:
            root.array(f"{number}/vars/0", BIAS)
        with opened_shards(path) as root:
            assert root.sealed == bool(number)


@pytest.fixture
def model():
    layers = [tw.Input((3,)), tw.layers.Dense(4), tw.layers.Dense(2)]
    model = tw.Sequential(layers)
    model.compile(tw.optimizers.SGD(0.1, momentum=0.9), "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return model


def bytes_in(group):
    items = group.values()
    return sum(
        [x.nbytes if isinstance(x, h5py.Dataset) else bytes_in(x) for x in items]
    )


def test_weights_are_cut_into_files_of_the_size_asked_for(model, tmp_path):
    model.save_weights(tmp_path / "w.weights.h5", max_shard_size=60 / 2**30)
    index = json.loads((tmp_path / "w.weights.json").read_text())
    names = sorted(path.name for path in tmp_path.glob("*.h5"))
    assert (
        names == [f"w_{i:05}.weights.h5" for i in range(len(names))] and len(names) > 3
    )
    # with the count of iterations, and the learning rate
    assert index["metadata"]["total_size"] == 2 * 26 * 4 + 8 + 4
    assert sum(map(len, index["weight_map"].values())) >= len(names)
    for name in names:
        with h5py.File(tmp_path / name) as file:
            assert 0 < bytes_in(file) <= 60
            weight_map = index["weight_map"].items()
            groups = [group for group, files in weight_map if name in files]
            assert groups and all("name" in file[group].attrs for group in groups)
    twin = tw.keras.models.clone_model(model)
    twin.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    twin.load_weights(tmp_path / "w.weights.json")
    for mine, other in zip(model.variables, twin.variables):
        np.testing.assert_array_equal(mine, other)
    assert twin.optimizer.iterations.numpy() == 1


def test_after_an_error_the_older_files_are_as_they_were(model, tmp_path):
    model.save_weights(tmp_path / "w.weights.json", max_shard_size=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model.set_weights([w + 1 for w in model.get_weights()])
    for size, match in (
        (40 / 2**30, "at least the size of each weight"),
        (0, "positive"),
    ):
        with pytest.raises(ValueError, match=match):
            model.save_weights(tmp_path / "w.weights.json", max_shard_size=size)
    with pytest.raises(ValueError, match=r"must end in \.weights\.json"):
        model.save_weights(tmp_path / "w.json", max_shard_size=1)
    with pytest.raises(FileExistsError):
        model.save_weights(
            tmp_path / "w.weights.json", overwrite=False, max_shard_size=1
        )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_shard_elsewhere_is_refused(tmp_path):
    folder = tmp_path / "downloaded"
    folder.mkdir()
    path = shards(folder, {"layers/dense/vars/0": KERNEL})
    (folder / "0.h5").rename(tmp_path / "0.h5")
    (folder / "0.h5").symlink_to(tmp_path / "0.h5")
    with pytest.raises(SavingError, match="is a link, not a file of this folder"):
        with opened_shards(path):
            pass
    path.rename(tmp_path / "index")
    path.symlink_to(tmp_path / "index")  # as in the folder of a download cache
    with opened_shards(path) as root:
        assert root.keys() == ["layers"]
