"""The classifier learns, says what it did, and can be stopped."""

import gzip
import re

import numpy as np
import pytest

from tapewright.datasets import digits


def test_it_learns(mnist_mlp, run):
    code, printed = run(mnist_mlp, "--epochs", "6")
    last = float(re.findall(r"test accuracy ([\d.]+)%", printed)[-1])
    assert (code, last > 80) == (0, True)


def test_a_seed_brings_the_run_back(mnist_mlp, run):
    _, first = run(mnist_mlp, "--epochs", "1", "--seed", "3")
    _, again = run(mnist_mlp, "--epochs", "1", "--seed", "3")
    _, other = run(mnist_mlp, "--epochs", "1", "--seed", "4")
    assert first == again != other


def test_every_image_counts_the_last_partial_batch_included(mnist_mlp, run):
    _, printed = run(mnist_mlp, "--epochs", "2")
    # 1500 images: 11 batches of 128 and a rest.
    assert f"after {2 * 12} steps" in printed


def test_the_step_is_that_of_the_formulas(mnist_mlp):
    model = mnist_mlp.MLP()
    weights = [v.numpy().astype("float64") for v in model.trainable_variables]
    b1, b2, w1, w2 = weights  # Module lists attributes by name
    rng = np.random.default_rng(0)
    images = rng.random((32, 784), "float32")
    labels = np.eye(10, dtype="float32")[rng.integers(0, 10, 32)]

    hidden = np.maximum(images @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    d_logits = (chances - labels) / 32
    d_hidden = d_logits @ w2.T * (hidden > 0)
    gradients = [
        d_hidden.sum(0),
        d_logits.sum(0),
        images.T @ d_hidden + 0.02 * w1,
        hidden.T @ d_logits + 0.02 * w2,
    ]
    expected = [g / max(1, np.linalg.norm(g)) for g in gradients]

    received = []

    class Optimizer:
        def apply_gradients(self, pairs):
            received.extend(pairs)

    step = mnist_mlp.train_step.python_function  # what is received has values
    loss = float(step(model, Optimizer(), images, labels))
    assert loss == pytest.approx(-np.log(chances[labels == 1]).mean(), rel=1e-5)
    assert [v for _, v in received] == list(model.trainable_variables)
    for (gradient, _), g in zip(received, expected, strict=True):
        np.testing.assert_allclose(gradient.numpy(), g, rtol=1e-3, atol=1e-6)


def test_it_draws_the_loss_and_the_digits(mnist_mlp, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    _, printed = run(mnist_mlp, "--epochs", "1", picture=True)
    path = tmp_path / "mnist_mlp.png"
    assert f"wrote {path}" in printed
    picture = image.imread(path)
    assert picture.shape[0] > 300 and len(np.unique(picture)) > 100


def test_without_matplotlib_it_says_so_and_goes_on(
    mnist_mlp, run, without_matplotlib, tmp_path
):
    code, printed = run(mnist_mlp, "--epochs", "1", picture=True)
    assert code == 0 and "matplotlib is not installed" in printed
    assert not list(tmp_path.iterdir())


def test_ctrl_c_reports_what_was_reached(mnist_mlp, run, interrupted, tmp_path):
    pytest.importorskip("matplotlib")
    interrupted(mnist_mlp, 15)
    code, printed = run(mnist_mlp, "--epochs", "5", picture=True)
    assert code == 130
    assert (tmp_path / "mnist_mlp.png").is_file()
    assert re.search(r"stopped after 14 steps: test accuracy [\d.]+%", printed)
    assert "epoch 2" not in printed


def test_ctrl_c_before_the_first_step_is_no_error(mnist_mlp, run, interrupted):
    interrupted(mnist_mlp, 1)
    code, printed = run(mnist_mlp)
    assert code == 130 and "stopped after 0 steps" in printed


@pytest.fixture
def folder(tmp_path):
    """A folder with the t10k files alone, 500 images."""
    (images, labels), _ = digits.load_data()
    header = {"images": [0, 0, 8, 3], "labels": [0, 0, 8, 1]}
    for name, array in ("images", images[:500]), ("labels", labels[:500]):
        path = tmp_path / f"t10k-{name}-idx{array.ndim}-ubyte.gz"
        sizes = np.array(array.shape, ">i4").tobytes()
        path.write_bytes(gzip.compress(bytes(header[name]) + sizes + array.tobytes()))
    return tmp_path


def test_a_folder_with_test_images_alone_is_split_and_the_script_says_so(
    mnist_mlp, run, folder
):
    code, printed = run(mnist_mlp, "--epochs", "1", "--data", str(folder))
    assert code == 0
    assert "400 training, 100 test images" in printed
    assert "no training images" in printed


def test_a_folder_that_is_not_there_is_named(mnist_mlp, run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(mnist_mlp, "--data", "no/such/folder")
    assert "--data no/such/folder" in capsys.readouterr().err
