"""The penalty makes the input gradient small, and the classifier harder to fool."""

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def data():
    """Few images and labels, for training and for test."""
    splits = tw.datasets.digits.load_data(n_train=1500, n_test=300)
    return [
        (x.reshape(-1, 784).astype("float32") / 255, y.astype("int64"))
        for x, y in splits
    ]


def test_the_penalty_makes_gradients_small_and_the_classifier_robust(script, data):
    train_data, (images, labels) = data
    squares, attacked = [], []
    for penalty in 0.0, 3.0:
        model = script.train(penalty, *train_data, epochs=7, seed=0)
        assert script.accuracy(model, images, labels) > 0.85
        _, gradients = script.losses_and_input_gradients(
            model, tw.constant(images), labels
        )
        squares.append(float(tw.reduce_sum(gradients**2)) / len(images))
        moved = script.attack(model, images, labels, 0.05)
        attacked.append(script.accuracy(model, moved, labels))
    assert squares[1] < 0.5 * squares[0]
    assert attacked[1] > attacked[0] + 0.1


class Linear:
    """Logits ``[x0 w, 0]``, so that the loss of label 1 is ``log(1 + exp(x0 w))``."""

    def __init__(self, w):
        self.w = tw.Variable(w)
        self.trainable_variables = [self.w]

    def __call__(self, images):
        first = images[:, :1] * self.w
        return tw.concat([first, tw.zeros_like(first)], axis=1)


def test_the_step_follows_the_gradient_of_loss_and_penalty(script):
    x, w, penalty = 0.5, 2.0, 3.0
    s = 1 / (1 + np.exp(-x * w))
    # loss' = s x; the input gradient is s w, its square's slope 2 s w (s + w x s (1 - s))
    expected = s * x + penalty * 2 * s * w * (s + w * x * s * (1 - s))
    received = []

    class Optimizer:
        def apply_gradients(self, pairs):
            received.extend(float(gradient) for gradient, _ in pairs)

    images, labels = tw.constant([[x, 0.3]]), np.array([1])
    step = script.train_step.python_function  # what is received has values
    loss, squares = map(float, step(Linear(w), Optimizer(), images, labels, penalty))
    assert loss == pytest.approx(np.log(1 + np.exp(x * w)), rel=1e-5)
    assert squares == pytest.approx((s * w) ** 2, rel=1e-5)
    assert received == pytest.approx([expected], rel=1e-5)


def test_the_attack_raises_the_loss_by_eps_and_stays_in_range(script):
    images = np.array([[0.5, 0.3], [0.95, 0.3]], "float32")
    moved = script.attack(Linear(2.0), images, np.array([1, 1]), 0.1)
    np.testing.assert_allclose(moved.numpy(), [[0.6, 0.3], [1.0, 0.3]], rtol=1e-6)


def test_it_prints_the_table_and_draws(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(script, "--epochs", "1", picture=True)
    path = tmp_path / "input_gradient_regularization.png"
    assert code == 0 and f"wrote {path}" in printed
    assert printed.count("epoch 1") == 2 and "accuracy for eps" in printed
    assert len(np.unique(image.imread(path))) > 100


def test_ctrl_c_ends_it(script, run, interrupted, tmp_path):
    interrupted(script, 5)
    code, printed = run(script)
    assert code == 130 and not list(tmp_path.iterdir())
