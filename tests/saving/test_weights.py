"""Weights in HDF5: the layout, whole files, and what is refused."""

import os

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.layers import GRU, LSTM, BatchNormalization, Bidirectional, Dense
from tapewright.saving.atomic import replacing


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
    with pytest.raises(ValueError, match=r"'layers/dense_1/vars/0' has shape \(2, 2\)"):
        wider.load_weights(path)
    longer = Sequential([Input((3,)), Dense(2), Dense(2), Dense(2)])
    with pytest.raises(ValueError, match="'layers/dense_2/vars' holds 0 arrays"):
        longer.load_weights(path)
    for old, new in zip(before, wider.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_what_cannot_be_saved_is_told(tmp_path):
    model = Sequential([Dense(2)])
    with pytest.raises(ValueError, match="has no weights yet"):
        model.save_weights(tmp_path / "a.weights.h5")
    model.build((None, 3))
    with pytest.raises(ValueError, match=r"must end in \.weights\.h5"):
        model.save_weights(tmp_path / "a.npz")
    model.save_weights(tmp_path / "a.weights.h5")
    with pytest.raises(FileExistsError, match="is there already"):
        model.save_weights(tmp_path / "a.weights.h5", overwrite=False)


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        with open(temporary, "w") as file:
            file.write("half")
        raise RuntimeError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]
