"""The C program prints what Python computes."""

import shutil
import subprocess

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.datasets import digits

from .conftest import EXAMPLES

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no cc")


@pytest.fixture
def program(tmp_path):
    """The compiled program, and the function that it was exported from."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    function = tw.function(lambda x: model(x, training=False))
    tw.export_library(function, [tw.TensorSpec([1, 784])], tmp_path / "digits.so")
    source, path = EXAMPLES / "digits.c", tmp_path / "digits"
    command = ["cc", "-Wall", "-Werror", "-std=c99", f"-I{tmp_path}", source]
    library = tmp_path / "digits.so"
    subprocess.run([*command, library, "-o", path], check=True)
    return path, function


def run(path, numbers):
    text = " ".join(map(repr, numbers))
    return subprocess.run([path], input=text, capture_output=True, text=True)


def test_it_prints_the_probabilities_of_python(program):
    path, function = program
    (images, _), _ = digits.load_data(n_train=4, n_test=1)
    for image in images:
        row = (image.reshape(1, 784) / 255).astype("f4")
        done = run(path, row.ravel().tolist())
        printed = np.array([line.split() for line in done.stdout.splitlines()], "f8")
        assert done.returncode == 0 and printed[:, 0].tolist() == [*range(10)]
        expected = function(tw.constant(row)).numpy().ravel()
        np.testing.assert_allclose(printed[:, 1], expected, 1e-5, 1e-8)


def test_a_short_row_is_an_error(program):
    path, _ = program
    done = run(path, [1.0, 2.0])
    assert done.returncode == 1
    assert done.stderr == "digits: expected 784 numbers, got 2\n"
