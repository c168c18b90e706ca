"""Batches are what they should be, images move in training only, the network learns."""

import re

import numpy as np
import pytest

import tapewright as tw
from tapewright.datasets import digits


@pytest.fixture
def data():
    return digits.load_data(n_train=200, n_test=1)[0]


def test_each_image_comes_once_with_its_label_in_another_order(script, data):
    images, labels = data
    batches = list(script.batches(images, labels, training=True))
    assert [tuple(x.shape) for x, _ in batches] == [(128, 28, 28, 1), (72, 28, 28, 1)]
    shown = np.concatenate([x.numpy() for x, _ in batches])[..., 0] * 255
    places = [int(np.abs(images - one).sum((1, 2)).argmin()) for one in shown]
    assert sorted(places) == list(range(200)) != places
    found = np.concatenate([y.numpy() for _, y in batches])
    np.testing.assert_array_equal(found, labels[places])


def test_images_move_in_training_alone_and_by_two_pixels_at_most(script):
    image = np.zeros((1, 28, 28, 1), "float32")
    image[0, 14, 14] = 1.0
    images, move = tw.constant(image.repeat(64, 0)), script.mover()
    np.testing.assert_array_equal(move(images, training=False).numpy(), images.numpy())
    moved = move(images, training=True).numpy()[..., 0]
    places = np.array([np.unravel_index(one.argmax(), one.shape) for one in moved])
    assert len(np.unique(places, axis=0)) > 5
    assert np.abs(places - 14).max() <= 3  # turned by half a pixel more


def test_it_learns(script, run):
    code, printed = run(script, "--epochs", "4")
    accuracies = re.findall(r"test accuracy ([\d.]+)%, ([\d.]+)% on aug", printed)[-1]
    assert code == 0 and min(map(float, accuracies)) > 60


def test_a_seed_brings_the_run_back(script, run):
    runs = [
        run(script, "--epochs", "1", "--seed", seed, images=400)[1].splitlines()[-1]
        for seed in "33"
    ]
    assert runs[0] == runs[1]


def test_it_draws_what_it_was_shown_the_matrix_and_the_mistakes(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    _, printed = run(script, "--epochs", "1", "--still", picture=True, images=400)
    paths = [tmp_path / f"mnist_cnn_{n}.png" for n in ("moved", "matrix", "mistakes")]
    assert printed.endswith(f"wrote {' '.join(map(str, paths))}\n")
    assert all([len(np.unique(image.imread(path))) > 100 for path in paths])


def test_ctrl_c_reports_what_was_reached(script, run, interrupted_fit):
    interrupted_fit(3)
    code, printed = run(script)
    assert code == 130
    assert re.search(r"stopped early: test loss [\d.]+, test accuracy", printed)


def test_a_folder_that_is_not_there_is_named(script, run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(script, "--data", "no/such/folder")
    assert "--data no/such/folder" in capsys.readouterr().err
