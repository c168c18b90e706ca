"""`fit`, `evaluate`, `predict`: numbers, histories, memory."""

import gc
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.layers import BatchNormalization, Dense, Dropout, Layer

from .small_models import linear, unchanged


def manual_epoch(kernel, bias, x, y, batch_size, rate=0.1):
    """Gradient descent by hand; the mean of the losses, weighted by batch size."""
    total = 0
    for i in range(0, len(x), batch_size):
        xs, ys = x[i : i + batch_size], y[i : i + batch_size]
        error = xs @ kernel + bias - ys
        total += (error**2).sum()
        kernel = kernel - rate * 2 * xs.T @ error / len(xs)
        bias = bias - rate * 2 * error.mean(0)
    return kernel, bias, total / len(x)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_fit_is_gradient_descent_batch_by_batch(data, run_eagerly):
    x, y = data
    model = linear(run_eagerly=run_eagerly)
    kernel, bias = model.get_weights()
    history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    losses = []
    for _ in range(3):
        kernel, bias, loss = manual_epoch(kernel, bias, x, y, 16)
        losses.append(loss)
    np.testing.assert_allclose(history.history["loss"], losses, rtol=1e-5)
    np.testing.assert_allclose(model.get_weights()[0], kernel, rtol=1e-4, atol=1e-6)
    assert history.epoch == [0, 1, 2] and model.history is history
    assert int(model.optimizer.iterations) == 9


def test_shuffling_follows_the_seed(data):
    def run(seed):
        tw.keras.utils.set_random_seed(seed)
        model = linear()
        return model.fit(*data, batch_size=8, epochs=2, verbose=0).history["loss"]

    assert run(1) == run(1) != run(2)


def test_a_seed_gives_the_same_numbers_traced_and_eager(data):
    def run(run_eagerly):
        tw.keras.utils.set_random_seed(3)
        model = Sequential([Dense(8), Dropout(0.5), Dense(1)])
        model.compile("sgd", "mse", run_eagerly=run_eagerly)
        return model.fit(*data, epochs=2, verbose=0).history["loss"]

    np.testing.assert_allclose(run(True), run(False), rtol=1e-6)


def test_metrics_and_validation_are_in_the_history(data):
    x, y = data
    model = linear(metrics=["mae", tw.keras.metrics.RootMeanSquaredError(name="rms")])
    history = model.fit(x, y, validation_split=0.25, epochs=2, verbose=0).history
    assert sorted(history) == ["loss", "mae", "rms", "val_loss", "val_mae", "val_rms"]
    error = model(x[30:]).numpy() - y[30:]
    assert history["val_mae"][-1] == pytest.approx(np.abs(error).mean(), rel=1e-5)
    assert history["val_rms"][-1] == pytest.approx((error**2).mean() ** 0.5, rel=1e-5)


def test_validation_may_be_rare(data):
    history = linear().fit(
        *data, epochs=4, validation_data=data, validation_freq=2, verbose=0
    )
    assert len(history.history["loss"]) == 4 and len(history.history["val_loss"]) == 2
    history = linear().fit(
        *data, epochs=3, validation_data=data, validation_freq=[3], verbose=0
    )
    assert len(history.history["val_loss"]) == 1


def test_training_goes_on_at_the_initial_epoch(data):
    history = linear().fit(*data, epochs=5, initial_epoch=3, verbose=0)
    assert history.epoch == [3, 4]


def test_datasets_are_taken(data):
    dataset = tw.data.Dataset.from_tensor_slices(data).batch(16)
    model = linear()
    history = model.fit(dataset, epochs=2, validation_data=dataset, verbose=0)
    assert len(history.history["val_loss"]) == 2
    assert model.predict(dataset, verbose=0).shape == (40, 1)


def test_frozen_layers_stay_and_thawed_ones_train_again(data):
    model = Sequential([Input((3,)), Dense(4), Dense(1)])
    model.compile("sgd", "mse")
    model.fit(*data, verbose=0)
    first, second = model.layers
    first.trainable = False
    before = [w.copy() for w in model.get_weights()]
    model.fit(*data, verbose=0)
    after = model.get_weights()
    np.testing.assert_array_equal(before[0], after[0])
    assert (before[2] != after[2]).any()


def test_a_layer_frozen_after_an_epoch_stays_in_the_next(data):
    model = Sequential([Input((3,)), Dense(4), Dense(1)])
    model.compile("sgd", "mse")
    kernels = []

    def freeze(epoch, logs):
        model.layers[0].trainable = False
        kernels.append([layer.kernel.numpy().copy() for layer in model.layers])

    callback = tw.keras.callbacks.LambdaCallback(on_epoch_end=freeze)
    model.fit(*data, epochs=2, verbose=0, callbacks=[callback])
    (first, second), (first_after, second_after) = kernels
    np.testing.assert_array_equal(first, first_after)
    assert (second != second_after).any()


def test_layers_added_after_a_model_built_itself_are_called(data):
    model = Sequential([Dense(2)])
    assert model.predict(data[0], verbose=0).shape == (40, 2)
    model.add(Dense(5))
    assert model.predict(data[0], verbose=0).shape == (40, 5)
    model.pop()
    assert model.predict(data[0], verbose=0).shape == (40, 2)


def test_layers_added_after_training_are_trained(data):
    model = Sequential([Input((3,)), Dense(1)])
    model.compile("sgd", "mse")
    model.fit(*data, verbose=0)
    model.add(Dense(1))
    model.compile("sgd", "mse")
    before = model.layers[1].kernel.numpy()
    model.fit(*data, verbose=0)
    assert (model.layers[1].kernel.numpy() != before).any()


def test_a_short_last_batch_and_many_lengths_are_trained():
    class Mean(Layer):
        def call(self, inputs):
            return tw.reduce_mean(inputs, 1)

    model = Sequential([Mean(), Dense(1)])
    model.compile("sgd", "mse")

    def batches():
        for n in range(2, 12):
            yield np.ones((4, n, 3), "f4"), np.ones((4, 1), "f4")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = model.fit(batches(), verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert int(model.optimizer.iterations) == 10


def test_evaluate_returns_loss_and_metrics_in_order(data):
    model = linear(metrics=["mae", "mape"])
    loss, mae, mape = model.evaluate(*data, verbose=0)
    logs = model.evaluate(*data, verbose=0, return_dict=True)
    assert [logs["loss"], logs["mae"], logs["mape"]] == [loss, mae, mape]


def test_evaluate_gives_losses_of_several_outputs_before_their_metrics(data):
    x = Input((3,))
    model = Model(x, [Dense(1, name="a")(x), Dense(1, name="b")(x)])
    model.compile("sgd", "mse", metrics=[["mae"], ["mae"]])
    logs = model.evaluate(data[0], [data[1], data[1]], verbose=0, return_dict=True)
    values = model.evaluate(data[0], [data[1], data[1]], verbose=0)
    assert values == [logs[n] for n in ("loss", "a_loss", "b_loss", "a_mae", "b_mae")]


def test_evaluate_trains_nothing_and_uses_no_dropout(data):
    model = Sequential([Input((3,)), Dropout(0.9), BatchNormalization(), Dense(1)])
    model.compile("sgd", "mse")
    before = model.get_weights()
    assert model.evaluate(*data, verbose=0) == model.evaluate(*data, verbose=0)
    for old, new in zip(before, model.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_predict_joins_batches_and_needs_no_compile(data):
    model = Sequential([Input((3,)), Dense(2)])
    answer = model.predict(data[0], batch_size=7, verbose=0)
    assert isinstance(answer, np.ndarray) and answer.shape == (40, 2)
    np.testing.assert_allclose(answer, model(data[0]), rtol=1e-6, atol=1e-6)


def test_what_predict_returns_may_be_changed(data):
    model = linear()
    first = model.predict(data[0][:4], verbose=0)
    kept = first.copy()
    model.predict(data[0][4:8], verbose=0)
    np.testing.assert_array_equal(first, kept)
    first += 1


def test_a_callback_stops_the_training(data):
    class Stop(tw.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    model = linear()
    model.fit(*data, batch_size=8, epochs=3, callbacks=[Stop()], verbose=0)
    assert int(model.optimizer.iterations) == 2


def test_hooks_are_called_around_each_step_in_the_order_of_keras(data):
    calls = []

    class Noting(Sequential):
        def train_step(self, batch):
            calls.append("train_step")
            return super().train_step(batch)

        def test_step(self, batch):
            calls.append("test_step")
            return super().test_step(batch)

        def predict_step(self, batch):
            calls.append("predict_step")
            return super().predict_step(batch)

        def reset_metrics(self):
            calls.append("reset_metrics")
            super().reset_metrics()

    def note(name):
        def hook(self, *args, **kwargs):
            calls.append(name.removeprefix("on_"))

        return hook

    hooks = [n for n in dir(tw.callbacks.Callback) if n.startswith("on_")]
    hooks = [name for name in hooks if not name.startswith("on_batch")]
    callback = type("Notes", (tw.callbacks.Callback,), {n: note(n) for n in hooks})()
    x, y = data
    model = Noting([Input((3,)), Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    options = {"batch_size": 20, "callbacks": [callback], "verbose": 0}
    model.fit(x, y, validation_data=(x[:8], y[:8]), **options)
    test = ["reset_metrics", "test_begin"]
    test_batch = ["test_batch_begin", "test_step", "test_batch_end"]
    train_batch = ["train_batch_begin", "train_step", "train_batch_end"]
    assert calls == [
        *("train_begin", "reset_metrics", "epoch_begin", *train_batch, *train_batch),
        *(*test, *test_batch, "test_end", "epoch_end", "train_end", "close"),
    ]
    calls.clear()
    model.evaluate(x, y, **options)
    assert calls == [*test, *test_batch, *test_batch, "test_end", "close"]
    calls.clear()
    model.predict(x, **options)
    batch = ["predict_batch_begin", "predict_step", "predict_batch_end"]
    assert calls == ["predict_begin", *batch, *batch, "predict_end", "close"]


def test_fit_needs_compile(data):
    model = Sequential([Input((3,)), Dense(1)])
    with pytest.raises(
        RuntimeError, match=r"call compile\(optimizer, loss\) before fit"
    ):
        model.fit(*data)
    with pytest.raises(RuntimeError, match="before evaluate"):
        model.evaluate(*data)


def test_fit_needs_a_loss(data):
    model = Sequential([Input((3,)), Dense(1)])
    model.compile("sgd")
    unchanged(
        model, lambda: model.fit(*data, verbose=0), ValueError, "pass loss= to compile"
    )


def test_inputs_of_another_shape_change_nothing(data):
    model = linear()
    x, y = data
    unchanged(model, lambda: model.fit(x[:, :2], y, verbose=0), ValueError, "axis -1|3")


def test_arrays_of_different_lengths_are_refused(data):
    model = linear()
    x, y = data
    unchanged(model, lambda: model.fit(x, y[:-1], verbose=0), ValueError, "(?s)40.*39")


def test_wrong_arguments_are_named(data):
    model = linear()
    for arguments, match in (
        ({"verbose": 3}, "verbose"),
        ({"batch_size": 0}, "batch_size"),
        ({"validation_split": 1.5}, "validation_split"),
        ({"validation_freq": 0, "validation_data": data}, "validation_freq"),
        ({"callbacks": [3]}, "callbacks must be Callback objects"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            model.fit(*data, **({"verbose": 0} | arguments))


class Scaled(tw.keras.Model):
    """One number in an attribute, as programs for inverse problems have it."""

    def __init__(self, lam):
        super().__init__()
        self.lam = lam
        self.dense = tw.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs) * tw.cast(self.lam, "float32")


def test_fit_says_once_which_variable_it_does_not_train(data):
    model = Scaled(tw.Variable(1.0, name="lam"))
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="'lam'.*add_weight.*keras.Variable") as found:
        model.fit(*data, epochs=3, verbose=0)
    assert float(model.lam) == 1.0 and len(found) == 1
    model = Scaled(tw.Variable(1.0, trainable=False))
    model.module = tw.Module()
    model.module.dense = tw.layers.Dense(1)
    model.module.dense.build((None, 1))
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="not train the variable 'kernel', 'bias'"):
        model.fit(*data, verbose=0)


@pytest.mark.parametrize("kind", ["weight", "constant", "annealed", "trained", "count"])
def test_fit_is_silent_about_other_variables(data, kind):
    kinds = {
        "weight": tw.keras.Variable(1.0),
        "constant": tw.Variable(1.0, trainable=False),
        "count": tw.Variable(1),
    }
    model = Scaled(kinds.get(kind, tw.Variable(1.0)))
    assign = tw.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: model.lam.assign(1.0)
    )
    if kind == "trained":
        model = OwnStep(tw.Variable(1.0))
    model.compile("sgd", "mse")
    for _ in range(2):  # the second time in the memory of the optimizer
        model.fit(*data, verbose=0, callbacks=[assign] if kind == "annealed" else [])
    assert (float(model.lam) != 1.0) == (kind in ("weight", "trained"))


class OwnStep(Scaled):
    def train_step(self, batch):
        x, y = batch
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean((self(x) - y) ** 2)
        variables = [*self.trainable_variables, self.lam]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return {"loss": loss}


def test_an_error_in_a_callback_leaves_a_model_that_trains_on(data):
    class Broken(tw.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise RuntimeError("broken")

    model = linear()
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(*data, callbacks=[Broken()], verbose=0)
    model.fit(*data, verbose=0)


def test_a_model_that_was_trained_goes_when_nobody_holds_it(data):
    model = linear()
    model.fit(*data, verbose=0)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_memory_stays_flat_over_epochs_and_predictions(data):
    model = linear(metrics=["mae"])
    model.fit(*data, epochs=2, verbose=0)
    model.predict(data[0], verbose=0)
    gc.collect()
    tracemalloc.start()
    try:
        model.fit(*data, epochs=2, verbose=0)
        before = tracemalloc.get_traced_memory()[0]
        model.fit(*data, epochs=20, verbose=0)
        for _ in range(200):
            model.predict(data[0], verbose=0)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 50_000
