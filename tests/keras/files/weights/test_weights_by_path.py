"""Weights in HDF5: the layout, whole files, and what is refused."""

import os

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.core.hardware import devices
from tapewright.keras.files.weights.weights_by_path import layer_paths
from tapewright.layers import GRU, LSTM, BatchNormalization, Bidirectional, Dense
from tapewright.storage import parallel_write
from tapewright.storage.atomic import replacing


def nested():
    inner = Sequential([Input((4,)), Dense(3), BatchNormalization(), Dense(2)])
    x = Input((5, 4))
    hidden = Bidirectional(GRU(2))(x)
    return Model(x, inner(Dense(4)(hidden)))


class Own(Model):
    def __init__(self):
        super().__init__()
        self.first = Dense(2)
        self.blocks = [Dense(3), [Dense(1)]]

    def call(self, x):
        x = self.blocks[0](self.first(x))
        return self.blocks[1][0](x)


def own():
    model = Own()
    model.build((None, 4))
    return model


@pytest.mark.parametrize("make", [nested, own])
def test_weights_come_back_to_the_bit(make, tmp_path):
    model, other = make(), make()
    path = tmp_path / "a.weights.h5"
    model.save_weights(path)
    other.load_weights(path)
    assert len(model.get_weights()) == len(other.get_weights()) > 5
    for mine, read in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(mine, read)


def test_models_inside_of_models_keep_all_their_weights():
    def tree(depth):
        x = y = Input((2,))
        for _ in range(2):
            y = (tree(depth - 1) if depth else Dense(2))(y)
        return Model(x, y)

    model = tree(3)  # its parts make lists of their layers, which must not be mixed up
    for used in range(20):  # places in memory
        lists = [[] for _ in range(used)]
        del lists[::2]
        paths = layer_paths(model)
        assert len({v for path in paths for v in map(id, path.variables)}) == 32
        assert len({path.path for path in paths}) == len(paths)


def test_the_paths_are_those_of_keras(tmp_path):
    # as Keras 3.15 writes these models
    def paths(model):
        model.save_weights(tmp_path / "a.weights.h5")
        found = []
        with h5py.File(tmp_path / "a.weights.h5") as file:
            file.visititems(
                lambda name, x: (
                    found.append(name) if isinstance(x, h5py.Dataset) else None
                )
            )
        return sorted({name.rpartition("/")[0] for name in found})

    assert paths(nested()) == [
        "layers/bidirectional/backward_layer/cell/vars",
        "layers/bidirectional/forward_layer/cell/vars",
        "layers/dense/vars",
        "layers/sequential/layers/batch_normalization/vars",
        "layers/sequential/layers/dense/vars",
        "layers/sequential/layers/dense_1/vars",
    ]
    assert paths(own()) == [
        "blocks/container/dense/vars",
        "blocks/dense/vars",
        "first/vars",
    ]
    lstm = Sequential([Input((5, 4)), LSTM(2), Dense(1)])
    assert paths(lstm) == ["layers/dense/vars", "layers/lstm/cell/vars"]


def test_each_weight_stands_in_the_file_once(tmp_path):
    model = nested()
    model.save_weights(tmp_path / "a.weights.h5")
    shapes = []
    with h5py.File(tmp_path / "a.weights.h5") as file:
        file.visititems(
            lambda _, x: shapes.append(x.shape) if isinstance(x, h5py.Dataset) else None
        )
    assert sorted(shapes) == sorted([w.shape for w in model.get_weights()])


def test_the_best_weights_of_a_training_are_kept(tmp_path):
    x = np.ones((8, 3), "f4")
    model = Sequential([Input((3,)), Dense(1)])
    model.compile("sgd", "mse")
    path = tmp_path / "best-{epoch}.weights.h5"
    checkpoint = tw.callbacks.ModelCheckpoint(
        path, monitor="loss", save_best_only=True, save_weights_only=True
    )
    model.fit(x, x[:, :1], epochs=2, callbacks=[checkpoint], verbose=0)
    assert sorted(os.listdir(tmp_path)) == ["best-1.weights.h5", "best-2.weights.h5"]
    after = model.get_weights()
    model.fit(x, x[:, :1], verbose=0)
    model.load_weights(tmp_path / "best-2.weights.h5")
    for mine, read in zip(after, model.get_weights()):
        np.testing.assert_array_equal(mine, read)


def test_weights_that_do_not_fit_change_nothing(tmp_path):
    path = tmp_path / "a.weights.h5"
    Sequential([Input((3,)), Dense(2), Dense(2)]).save_weights(path)
    wider = Sequential([Input((3,)), Dense(2), Dense(4)])
    before = wider.get_weights()
    with pytest.raises(ValueError, match=r"/layers/dense_1/vars/0.*shape \(2, 2\)"):
        wider.load_weights(path)
    longer = Sequential([Input((3,)), Dense(2), Dense(2), Dense(2)])
    with pytest.raises(ValueError, match="/layers/dense_2/vars.*0"):
        longer.load_weights(path)
    for old, new in zip(before, wider.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_what_cannot_be_saved_is_told(tmp_path):
    model = Sequential([Dense(2)])
    with pytest.raises(ValueError, match="has no weights yet"):
        model.save_weights(tmp_path / "a.weights.h5")
    model.build((None, 3))
    with pytest.raises(ValueError, match=r"filepath .*\.weights\.h5.*got"):
        model.save_weights(tmp_path / "a.npz")
    model.save_weights(tmp_path / "a.weights.h5")
    with pytest.raises(FileExistsError, match="exists already"):
        model.save_weights(tmp_path / "a.weights.h5", overwrite=False)


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        with open(temporary, "w") as file:
            file.write("half")
        raise RuntimeError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]


def two_layers(first=2, last=2):
    return Sequential([Input((3,)), Dense(first, name="a"), Dense(last, name="b")])


def altered(path, change):
    """A copy of the file, made by HDF5 alone, after ``change(file)``."""
    other = path.with_name("other.weights.h5")
    with h5py.File(path) as old, h5py.File(other, "w") as new:
        for key in old:
            old.copy(key, new)
        change(new)
    return other


def replaced(place, array):
    def change(file):
        del file[place]
        file[place] = array

    return change


@pytest.fixture
def path(tmp_path):
    model = two_layers()
    model.set_weights([w + i for i, w in enumerate(model.get_weights())])
    model.save_weights(tmp_path / "a.weights.h5")
    return tmp_path / "a.weights.h5"


def test_what_is_skipped_is_listed(path):
    model, known = two_layers(last=4), two_layers()
    known.load_weights(path)
    before = model.get_weights()
    with pytest.warns(UserWarning) as told:
        model.load_weights(path, skip_mismatch=True)
    (warning,) = told
    text = str(warning.message)
    assert "2 weights were skipped, 2 were loaded" in text
    assert "/layers/dense_1/vars/0: has shape (2, 2)" in text
    assert "b/kernel' (2, 4)" in text and warning.filename == __file__
    np.testing.assert_array_equal(model.get_weights()[0], known.get_weights()[0])
    np.testing.assert_array_equal(model.get_weights()[2], before[2])


@pytest.mark.parametrize(
    "array, reason",
    [
        (np.ones((3, 2), "i1"), "int8.*'sequential_1/a/kernel'"),
        (np.ones((3, 2), "c8"), "holds complex64, weight"),
        (np.full((3, 2), "x", "S1"), "must hold numbers"),
        (np.full((3, 2), 1e300), "too large for float32"),
    ],
)
def test_other_kinds_of_numbers_are_refused_and_nothing_changes(path, array, reason):
    model = two_layers()
    before = model.get_weights()
    other = altered(path, replaced("layers/dense/vars/0", array))
    with pytest.raises(tw.errors.SavingError, match=reason):
        model.load_weights(other)
    for old, new in zip(before, model.get_weights()):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("dtype", [">f4", "f8", "f2", "<f4"])
def test_floating_numbers_of_other_sizes_and_orders_are_converted(path, dtype):
    array = np.arange(6).reshape(3, 2) / 4
    model = two_layers()
    model.load_weights(
        altered(path, replaced("layers/dense/vars/0", array.astype(dtype)))
    )
    np.testing.assert_array_equal(model.get_weights()[0], array)
    assert model.get_weights()[0].dtype == "float32"


def test_nan_is_a_number_like_others(path):
    model = two_layers()
    array = np.full((3, 2), np.nan, "f4")
    model.load_weights(altered(path, replaced("layers/dense/vars/0", array)))
    assert np.isnan(model.get_weights()[0]).all()


def test_weights_that_no_layer_asks_for_are_told(path):
    other = altered(path, lambda file: file.copy("layers/dense", "layers/dense_2"))
    with pytest.raises(tw.errors.SavingError, match=r"layers/dense_2\]: .*layer"):
        two_layers().load_weights(other)


def test_swapped_names_of_layers_are_found(path):
    def swap(file):
        file["layers/dense/vars"].attrs["name"] = "b"
        file["layers/dense_1/vars"].attrs["name"] = "a"

    with pytest.raises(tw.errors.SavingError, match="'b'.*'a'"):
        two_layers().load_weights(altered(path, swap))


def test_other_names_of_layers_do_not_matter(path):
    def rename(file):
        file["layers/dense/vars"].attrs["name"] = "b"
        file["layers/dense_1/vars"].attrs["name"] = "c"

    two_layers().load_weights(altered(path, rename))


def test_a_missing_array_is_told(path):
    def drop(file):
        del file["layers/dense/vars/1"]

    with pytest.raises(tw.errors.SavingError, match="/layers/dense/vars.*1"):
        two_layers().load_weights(altered(path, drop))


def test_layers_can_be_left_alone(path):
    model = two_layers()
    before = model.get_weights()
    model.load_weights(path, objects_to_skip=[model.get_layer("b")])
    np.testing.assert_array_equal(model.get_weights()[2], before[2])
    assert not np.array_equal(model.get_weights()[0], before[0])


def test_a_missing_file_and_a_folder_are_told_as_such(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        two_layers().load_weights(tmp_path / "none.weights.h5")
    with pytest.raises(IsADirectoryError):
        two_layers().load_weights(tmp_path)


def test_an_optimizer_in_use_gets_its_state_back_and_a_new_one_keeps_its_rate(tmp_path):
    x = np.ones((8, 3), "f4")
    models = [two_layers() for _ in range(3)]
    for model, rate in zip(models, (0.1, 0.2, 0.3)):
        model.compile(tw.optimizers.Adam(rate), "mse")
    for model in models[:2]:
        model.fit(x, x[:, :2], verbose=0)
    models[0].save_weights(tmp_path / "a.weights.h5")
    models[1].load_weights(tmp_path / "a.weights.h5")
    with pytest.warns(UserWarning, match="not restored: it is not built yet"):
        models[2].load_weights(tmp_path / "a.weights.h5")
    rates = [model.optimizer.learning_rate.numpy() for model in models]
    np.testing.assert_array_equal(rates, np.float32([0.1, 0.1, 0.3]))
    states = [[v.numpy() for v in m.optimizer.variables] for m in models[:2]]
    for mine, theirs in zip(*states, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_loading_into_another_kind_of_optimizer_says_what_is_left(tmp_path):
    x, one, other = np.ones((8, 3), "f4"), two_layers(), two_layers()
    one.compile("adam", "mse")
    other.compile(tw.optimizers.SGD(0.1, momentum=0.5), "mse")
    for model in (one, other):
        model.fit(x, x[:, :2], verbose=0)
    one.save_weights(tmp_path / "a.weights.h5")
    with pytest.warns(UserWarning, match="optimizer 'sgd'.*restored"):
        other.load_weights(tmp_path / "a.weights.h5")


@pytest.mark.parametrize("name", ["m.weights.h5", "m.keras", "m.h5"])
def test_weights_on_another_device_are_copied_in_parts(
    tmp_path, monkeypatch, strict, name
):
    array_type, sizes = type(strict.zeros(())), []
    to_numpy = devices._TO_NUMPY[array_type]

    def counted(array):
        sizes.append(array.nbytes)
        return to_numpy(array)

    with devices.use_module(strict):
        model = Sequential([Input((300,)), Dense(200)])
        monkeypatch.setitem(devices._TO_NUMPY, array_type, counted)
        monkeypatch.setattr(parallel_write, "BLOCK", 100_000)
        save = model.save_weights if "weights" in name else model.save
        save(tmp_path / name)
    assert len(sizes) >= 4 and max(sizes) <= 100_000


def test_a_functional_model_inside_is_named_after_its_class_in_keras(tmp_path):
    inputs = tw.Input((3,))
    inner = tw.Model(inputs, Dense(2)(inputs), name="inner")
    outer = tw.Sequential([tw.Input((3,)), inner])
    outer.save_weights(tmp_path / "m.weights.h5")
    with h5py.File(tmp_path / "m.weights.h5") as file:
        assert "layers/functional/layers/dense/vars/0" in file
