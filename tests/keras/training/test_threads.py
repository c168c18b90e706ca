"""Models that several threads build, ask and train."""

import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware.devices import current_module
from tapewright.keras.models import load_model

pytestmark = pytest.mark.gpu_first

X = np.random.default_rng(0).normal(size=(100, 20)).astype("f4")


@pytest.mark.parametrize("method", ["__call__", "predict"])
@pytest.mark.parametrize("_", range(5))
def test_a_model_is_built_once(method, _, in_threads):
    layers = [tw.layers.Dense(30), tw.layers.BatchNormalization(), tw.layers.Dense(3)]
    model, found = tw.Sequential(layers), []
    options = {"verbose": 0} if method == "predict" else {}

    def work():
        found.append(np.asarray(getattr(model, method)(X, **options)))

    in_threads(*[work] * 4)
    assert len(model.weights) == 8
    assert all([np.array_equal(found[0], each) for each in found])


def test_four_threads_predict(in_threads):
    model = tw.Sequential([tw.layers.Dense(64, activation="relu"), tw.layers.Dense(1)])
    parts = [X, X[:50], X[:7], X[:33]]
    expected = [model(part).numpy() for part in parts]

    def work(part, right):
        for _ in range(5):
            found = model.predict(part, batch_size=32, verbose=0)
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6)

    in_threads(*[lambda p=p, r=r: work(p, r) for p, r in zip(parts, expected)])


def uniform_model():
    """Two matrices of one number ``a``; the outputs for ones are ``600 * a * a``."""
    options = {"kernel_initializer": "ones", "use_bias": False}
    layers = [tw.layers.Dense(n, **options) for n in (200, 30)]
    model = tw.Sequential([tw.Input((3,)), *layers])
    model.compile(tw.optimizers.SGD(1.0), "mse")
    return model


def test_predictions_beside_training_are_those_of_one_step(in_threads):
    if tw.config.target() == "numpy" and current_module() is not np:
        pytest.skip("op by op on a GPU, a prediction may see variables within a step")
    model, training = uniform_model(), threading.Event()
    weights = model.trainable_variables
    gradients = [-tw.ones(w.shape) for w in weights]
    step = tw.function(lambda: model.optimizer.apply(gradients, weights))
    steps = {600.0 * a * a for a in range(1, 102)}
    training.set()

    def train():
        try:
            for _ in range(100):
                step()
        finally:
            training.clear()

    def predict():
        while training.is_set():
            found = model.predict(np.ones((1, 3), "f4"), verbose=0)
            assert set(found.ravel().tolist()) <= steps

    in_threads(train, predict, predict)
    assert (weights[0].numpy() == 101).all()


def test_fit_trains_the_same_while_others_predict(in_threads):
    x, y = np.ones((64, 3), "f4"), np.zeros((64, 30), "f4")

    def trained(*others):
        model, training = uniform_model(), threading.Event()
        model.optimizer.learning_rate = 1e-5
        training.set()

        def fit():
            try:
                model.fit(x, y, epochs=20, batch_size=16, verbose=0)
            finally:
                training.clear()

        def predict():
            while training.is_set():
                assert np.isfinite(model.predict(x, verbose=0)).all()

        in_threads(fit, *[predict for _ in others])
        return model.get_weights()

    for found, expected in zip(trained(1, 2), trained()):
        assert np.array_equal(found, expected)


def test_files_written_beside_training_are_of_one_step(in_threads, tmp_path):
    model, training = uniform_model(), threading.Event()
    model.compile(tw.optimizers.Adam(0.01), "mse")
    weights = model.trainable_variables
    gradients = [tw.ones(w.shape) for w in weights]
    step = tw.function(lambda: model.optimizer.apply(gradients, weights))
    step()
    training.set()

    def save():
        try:
            for i in range(4):
                model.save(tmp_path / f"{i}.keras")
                model.save(tmp_path / f"{i}.h5")
                tw.train.Checkpoint(model=model).write(tmp_path / f"{i}.ckpt")
        finally:
            training.clear()

    def train():
        while training.is_set():
            step()

    in_threads(train, save)
    checkpoint = uniform_model()
    for i in range(4):
        tw.train.Checkpoint(model=checkpoint).restore(tmp_path / f"{i}.ckpt")
        files = [load_model(tmp_path / f"{i}.{ending}") for ending in ("keras", "h5")]
        for each in (*files, checkpoint):
            first, second = each.get_weights()
            assert np.ptp(first) == np.ptp(second) == 0 and first[0, 0] == second[0, 0]
        _, _, *slots = [v.numpy().flat[0] for v in files[0].optimizer.variables]
        assert slots[0] == slots[2] and slots[1] == slots[3]
