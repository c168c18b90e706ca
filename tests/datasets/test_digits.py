"""The drawn digits: their form, their stability, and how hard they are."""

import hashlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

from tapewright.datasets.digits import load_data


@pytest.fixture(scope="module")
def data():
    return load_data(4000, 1000)


def test_the_form_is_that_of_mnist(data):
    (x_train, y_train), (x_test, y_test) = data
    assert x_train.shape == (4000, 28, 28) and y_train.shape == (4000,)
    assert x_test.shape == (1000, 28, 28) and y_test.shape == (1000,)
    assert {a.dtype for a in (x_train, y_train, x_test, y_test)} == {np.dtype("uint8")}


def test_the_defaults_are_10000_and_2000_images_of_seed_0():
    parameters = inspect.signature(load_data).parameters
    assert [p.default for p in parameters.values()] == [10000, 2000, 0]


def test_all_ten_digits_are_about_equally_frequent(data):
    counts = np.bincount(data[0][1], minlength=10)
    assert len(counts) == 10 and counts.min() > 340 and counts.max() < 460


def test_strokes_are_white_on_black(data):
    images = data[0][0]
    assert (images.max(axis=(1, 2)) > 180).all()
    assert (images < 64).mean() > 0.6
    assert np.median(images) < 16


def test_a_sample_has_the_pinned_bits():
    digest = hashlib.sha256()
    for images, labels in load_data(300, 20):
        digest.update(images.tobytes() + labels.tobytes())
    assert (
        digest.hexdigest()
        == "6a146068a1053fd574b7d38923aadb1d2228dd5fc83c4cf6423674f7f2c8a207"
    )


def test_a_fresh_process_draws_the_same_bits():
    code = (
        "import hashlib; from tapewright.datasets import digits; "
        "x = digits.load_data(30, 0, seed=7)[0][0]; "
        "print(hashlib.sha256(x.tobytes()).hexdigest())"
    )
    there = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    here = hashlib.sha256(load_data(30, 0, seed=7)[0][0].tobytes()).hexdigest()
    assert there == here


@pytest.mark.parametrize("n", [1, 249, 250, 251, 700])
def test_asking_for_fewer_gives_the_first_ones(data, n):
    for few, many in zip(load_data(n, n), data, strict=True):
        np.testing.assert_array_equal(few[0], many[0][:n])
        np.testing.assert_array_equal(few[1], many[1][:n])


def test_the_test_set_does_not_depend_on_the_training_set(data):
    np.testing.assert_array_equal(load_data(0, 100)[1][0], data[1][0][:100])


def test_no_image_comes_twice(data):
    images = np.concatenate([data[0][0], data[1][0]])
    assert len({image.tobytes() for image in images}) == len(images)


def test_another_seed_draws_other_images(data):
    other = load_data(100, 0, seed=1)[0]
    assert not (other[0] == data[0][0][:100]).all(axis=(1, 2)).any()


def test_no_images_are_an_empty_array():
    (x, y), _ = load_data(0, 0)
    assert x.shape == (0, 28, 28) and y.shape == (0,)


def test_numpy_integers_are_good_arguments():
    assert len(load_data(np.int64(3), np.uint8(2), np.int32(1))[0][0]) == 3


def test_the_global_generator_is_left_alone():
    np.random.seed(3)
    before = np.random.get_state()[1].copy()
    load_data(5, 5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("name", ["n_train", "n_test", "seed"])
def test_a_negative_argument_is_named(name):
    with pytest.raises(ValueError, match=f"{name} must be 0 or more: got -1"):
        load_data(**{name: -1})


@pytest.mark.parametrize("name", ["n_train", "n_test", "seed"])
@pytest.mark.parametrize("value", [1.0, "5", None, True, np.zeros(2)])
def test_an_argument_that_is_no_int_is_named(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an int: got .* of type"):
        load_data(**{name: value})


def test_a_seed_beyond_64_bits_is_refused():
    load_data(1, 0, seed=2**64 - 1)
    with pytest.raises(ValueError, match="seed .*2.*64.*got 18446744073709551616"):
        load_data(1, 0, seed=2**64)


def test_the_nearest_mean_is_a_poor_guess_and_the_nearest_neighbour_a_good_one(data):
    (x, y), (x_test, y_test) = (
        (images.reshape(len(images), -1) / 255.0, labels) for images, labels in data
    )
    means = np.stack([x[y == digit].mean(axis=0) for digit in range(10)])
    to_means = (means * means).sum(axis=1) - 2 * x_test @ means.T
    to_images = (x * x).sum(axis=1) - 2 * x_test @ x.T
    assert (to_means.argmin(axis=1) == y_test).mean() < 0.8
    assert (y[to_images.argmin(axis=1)] == y_test).mean() > 0.95
