"""`compile`, `fit`, `evaluate`, `predict`, steps of one's own, and what they refuse."""

import gc
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.layers import BatchNormalization, Dense, Dropout, Layer


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3)).astype("f4")
    return x, (x.sum(1, keepdims=True) * 2).astype("f4")


def linear(**options):
    model = Sequential([Input((3,)), Dense(1)])
    model.compile(tw.optimizers.SGD(0.1), "mse", **options)
    return model


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


# -------------------------------------------------------------------------------- fit


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


def test_sample_weights_count_in_the_loss(data):
    x, y = data
    weights = np.r_[np.zeros(20), np.ones(20)]
    model = linear()
    loss = model.evaluate(x, y, batch_size=40, sample_weight=weights, verbose=0)
    error = model(x[20:]).numpy() - y[20:]
    assert loss == pytest.approx((error**2).sum() / 40, rel=1e-5)


def test_class_weights_are_sample_weights():
    x, y = np.eye(4, 3).astype("f4"), np.array([0, 1, 1, 2])
    model = Sequential([Input((3,)), Dense(3)])
    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    given = {0: 2.0, 1: 0.5}
    before = model.get_weights()
    first = model.train_on_batch(x, y, class_weight=given)
    model.set_weights(before)
    second = model.train_on_batch(x, y, sample_weight=np.array([2, 0.5, 0.5, 1]))
    assert first == pytest.approx(second, rel=1e-6)


def test_weighted_metrics_see_the_weights(data):
    x, y = data
    model = linear(metrics=["mae"], weighted_metrics=["mae"])
    weights = np.r_[np.zeros(20), np.ones(20)]
    logs = model.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    error = np.abs(model(x).numpy() - y)
    assert logs["mae"] == pytest.approx(error.mean(), rel=1e-5)
    assert logs["weighted_mae"] == pytest.approx(error[20:].mean(), rel=1e-5)


def test_generators_need_steps_and_go_on_from_epoch_to_epoch(data):
    seen = []

    def batches():
        i = 0
        while True:
            seen.append(i)
            yield data[0][:8], data[1][:8]
            i += 1

    linear().fit(batches(), steps_per_epoch=3, epochs=2, verbose=0)
    assert seen[:6] == [0, 1, 2, 3, 4, 5]


def test_a_generator_that_ends_early_ends_the_training_with_a_word(data):
    model = linear()
    batches = ((data[0][:8], data[1][:8]) for _ in range(4))
    with pytest.warns(UserWarning, match="ran out"):
        history = model.fit(batches, steps_per_epoch=3, epochs=5, verbose=0)
    assert len(history.history["loss"]) == 2
    assert history.epoch == [0, 1]


def test_a_data_set_that_is_short_of_steps_begins_again(data):
    """As in Keras: three batches, the fourth, three, the fourth."""
    dataset = tw.data.Dataset.from_tensor_slices(data).batch(10)
    steps = []
    count = tw.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: steps.append(step)
    )
    with pytest.warns(UserWarning, match="ran out"):
        linear().fit(dataset, steps_per_epoch=3, epochs=4, verbose=0, callbacks=[count])
    assert steps == [0, 1, 2, 0, 0, 1, 2, 0]


@pytest.mark.parametrize("repeat", [False, True])
def test_each_validation_of_some_steps_sees_the_same_batches(data, repeat):
    dataset = tw.data.Dataset.from_tensor_slices(data).batch(10)
    model = linear()
    model.optimizer.learning_rate = 0.0
    history = model.fit(
        *data,
        epochs=2,
        validation_data=dataset.repeat() if repeat else dataset,
        validation_steps=3,
        verbose=0,
    )
    first, second = history.history["val_loss"]
    expected = model.evaluate(data[0][:30], data[1][:30], verbose=0)
    assert first == second == pytest.approx(expected)


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


def test_losses_that_layers_add_are_part_of_the_loss(data):
    class Penalty(Layer):
        def call(self, inputs):
            self.add_loss(100.0 * tw.reduce_mean(inputs**2))
            return inputs

    x, y = data
    model = Sequential([Input((3,)), Dense(1, kernel_regularizer="l2"), Penalty()])
    model.compile("sgd", "mse")
    out = model(x).numpy()
    expected = ((out - y) ** 2).mean() + 100 * (out**2).mean()
    expected += 0.01 * (model.get_weights()[0] ** 2).sum()
    assert model.evaluate(x, y, batch_size=40, verbose=0) == pytest.approx(
        expected, rel=1e-5
    )
    assert len(model.losses) == 2


def test_added_losses_alone_train_a_model(data):
    class Only(Layer):
        def build(self, input_shape):
            self.w = self.add_weight(shape=(), initializer="ones", name="w")

        def call(self, inputs):
            self.add_loss(self.w**2)
            return inputs

    model = Sequential([Input((3,)), Only()])
    model.compile(tw.optimizers.SGD(0.5))
    model.fit(data[0], batch_size=40, verbose=0)
    assert model.layers[0].w.numpy() == 0.0


def test_activity_regularizers_are_divided_by_the_batch_size(data):
    model = Sequential([Input((3,)), Dense(1, activity_regularizer="l2")])
    model.compile("sgd", "mse")
    x, y = data
    out = model(x).numpy()
    expected = ((out - y) ** 2).mean() + 0.01 * (out**2).sum() / 40
    assert model.evaluate(x, y, batch_size=40, verbose=0) == pytest.approx(
        expected, rel=1e-5
    )


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


# ------------------------------------------------------------- several inputs, outputs


def forked():
    x, z = Input((3,), name="x"), Input((2,), name="z")
    both = tw.concat([x, z], 1)
    return Model([x, z], {"a": Dense(1, name="da")(both), "b": Dense(2)(both)})


def test_losses_and_metrics_by_the_names_of_outputs(data):
    x, y = data
    inputs = {"x": x, "z": x[:, :2]}
    labels = {"a": y, "b": np.zeros(40, "i4")}
    model = forked()
    from_logits = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        "adam",
        loss={"a": "mse", "b": from_logits},
        loss_weights={"a": 0.5, "b": 2.0},
        metrics={"b": ["accuracy"]},
    )
    history = model.fit(inputs, labels, verbose=0).history
    assert sorted(history) == ["a_loss", "b_accuracy", "b_loss", "loss"]
    total = 0.5 * history["a_loss"][0] + 2 * history["b_loss"][0]
    assert history["loss"][0] == pytest.approx(total, rel=1e-5)
    assert sorted(model.predict(inputs, verbose=0)) == ["a", "b"]


def test_labels_and_weights_go_by_name_whatever_the_order_of_the_outputs(data):
    x, _ = data
    inputs = Input((3,))
    zeros = {"kernel_initializer": "zeros"}
    outputs = [Dense(1, name=name, **zeros)(inputs) for name in ("second", "first")]
    model = Model(inputs, outputs)
    names = {"second": ["mae"], "first": ["mae"]}
    model.compile("sgd", {"second": "mae", "first": "mae"}, metrics=names)
    labels = {"first": np.full((40, 1), 1.0), "second": np.full((40, 1), 5.0)}
    logs = model.evaluate(x, labels, verbose=0, return_dict=True)
    assert (logs["first_mae"], logs["second_mae"]) == (1.0, 5.0)
    assert (logs["first_loss"], logs["second_loss"], logs["loss"]) == (1.0, 5.0, 6.0)
    weights = {"first": np.full(40, 3.0), "second": np.full(40, 2.0)}
    logs = model.evaluate(x, labels, sample_weight=weights, verbose=0, return_dict=True)
    assert (logs["first_loss"], logs["second_loss"]) == (3.0, 10.0)


def test_an_output_may_have_no_loss(data):
    x, y = data
    model = forked()
    model.compile("adam", loss={"a": "mse"})
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        history = model.fit({"x": x, "z": x[:, :2]}, {"a": y}, verbose=0).history
    assert list(history) == ["loss"]


def test_names_that_no_output_has_are_refused(data):
    x, y = data
    model = forked()
    model.compile("adam", loss={"aa": "mse"})
    before = model.get_weights()
    with pytest.raises(
        ValueError, match=r"no output 'aa'; .*\['a', 'b'\]; did you mean"
    ):
        model.fit({"x": x, "z": x[:, :2]}, {"a": y}, verbose=0)
    for old, new in zip(before, model.get_weights()):
        np.testing.assert_array_equal(old, new)


# ---------------------------------------------------------------- evaluate and predict


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


def test_predict_on_batch_gives_arrays(data):
    answer = linear().predict_on_batch(data[0][:4])
    assert isinstance(answer, np.ndarray) and answer.shape == (4, 1)


def test_what_predict_returns_may_be_changed(data):
    model = linear()
    first = model.predict(data[0][:4], verbose=0)
    kept = first.copy()
    model.predict(data[0][4:8], verbose=0)
    np.testing.assert_array_equal(first, kept)
    first += 1


def test_train_on_batch_returns_the_loss_before_the_update(data):
    x, y = data
    model = linear()
    loss = ((model(x).numpy() - y) ** 2).mean()
    assert model.train_on_batch(x, y) == pytest.approx(loss, rel=1e-5)
    assert model.test_on_batch(x, y, return_dict=True)["loss"] < loss


# ------------------------------------------------------------------- steps of one's own


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_train_step_of_ones_own(data, run_eagerly):
    class Own(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(1)
            self.seen = tw.metrics.Mean(name="seen")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tw.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.seen.update_state(loss)
            return {"seen": self.seen.result()}

        @property
        def metrics(self):
            return [self.seen]

    x, y = data
    model = Own()
    model.compile(tw.optimizers.SGD(0.1), "mse", run_eagerly=run_eagerly)
    history = model.fit(x, y, epochs=3, batch_size=40, verbose=0).history
    assert list(history) == ["seen"] and history["seen"][2] < history["seen"][0]


def test_a_gan_is_a_model():
    class Gan(Model):
        def __init__(self):
            super().__init__()
            self.generator = Sequential([Input((2,)), Dense(3)])
            self.discriminator = Sequential([Input((3,)), Dense(1)])

        def compile(self, d_optimizer, g_optimizer, loss_fn):
            super().compile()
            self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
            self.loss_fn = loss_fn
            self.d_loss = tw.metrics.Mean(name="d_loss")
            self.g_loss = tw.metrics.Mean(name="g_loss")

        @property
        def metrics(self):
            return [self.d_loss, self.g_loss]

        def train_step(self, real):
            if isinstance(real, tuple):
                real = real[0]
            n = tw.shape(real)[0]
            noise = tw.random.normal(shape=(n, 2))
            both = tw.concat([self.generator(noise), real], 0)
            labels = tw.concat([tw.ones((n, 1)), tw.zeros((n, 1))], 0)
            with tw.GradientTape() as tape:
                d_loss = self.loss_fn(labels, self.discriminator(both))
            weights = self.discriminator.trainable_weights
            grads = tape.gradient(d_loss, weights)
            self.d_optimizer.apply_gradients(zip(grads, weights))
            with tw.GradientTape() as tape:
                fake = self.discriminator(self.generator(noise))
                g_loss = self.loss_fn(tw.zeros((n, 1)), fake)
            weights = self.generator.trainable_weights
            grads = tape.gradient(g_loss, weights)
            self.g_optimizer.apply_gradients(zip(grads, weights))
            self.d_loss.update_state(d_loss)
            self.g_loss.update_state(g_loss)
            return {m.name: m.result() for m in self.metrics}

    gan = Gan()
    gan.compile(
        d_optimizer=tw.optimizers.Adam(),
        g_optimizer=tw.optimizers.Adam(),
        loss_fn=tw.losses.BinaryCrossentropy(from_logits=True),
    )
    history = gan.fit(np.ones((20, 3), "f4"), epochs=2, batch_size=8, verbose=0)
    assert sorted(history.history) == ["d_loss", "g_loss"]
    assert int(gan.d_optimizer.iterations) == 6 == int(gan.g_optimizer.iterations)


def test_a_compute_loss_of_ones_own(data):
    class Half(Model):
        def compute_loss(self, x, y, y_pred, sample_weight):
            return 0.5 * super().compute_loss(x, y, y_pred, sample_weight)

    x = Input((3,))
    model = Half(x, Dense(1)(x))
    model.compile("sgd", "mse")
    error = model(data[0]).numpy() - data[1]
    loss = model.evaluate(*data, batch_size=40, verbose=0)
    assert loss == pytest.approx(0.5 * (error**2).mean(), rel=1e-5)


def test_python_conditions_on_tensors_need_run_eagerly(data):
    class Odd(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(1)

        def call(self, x):
            x = self.dense(x)
            return x if tw.reduce_sum(x) > 0 else -x

    model = Odd()
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match="run_eagerly=True"):
        model.fit(*data, verbose=0)
    model.run_eagerly = True
    model.fit(*data, verbose=0)


def test_a_callback_stops_the_training(data):
    class Stop(tw.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    model = linear()
    model.fit(*data, batch_size=8, epochs=3, callbacks=[Stop()], verbose=0)
    assert int(model.optimizer.iterations) == 2


# ------------------------------------------------------------------------- bad input


def unchanged(model, call, error, match):
    before = [*model.get_weights(), model.optimizer.iterations.numpy()]
    with pytest.raises(error, match=match):
        call()
    after = [*model.get_weights(), model.optimizer.iterations.numpy()]
    for old, new in zip(before, after):
        np.testing.assert_array_equal(old, new)


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


def test_unknown_names_are_refused_by_compile_with_near_ones():
    model = Sequential([Input((3,)), Dense(1)])
    with pytest.raises(ValueError, match="(?s)mean_squard_error.*mean_squared_error"):
        model.compile("sgd", "mean_squard_error")
    with pytest.raises(ValueError, match="(?s)adm.*adam"):
        model.compile("adm", "mse")
    with pytest.raises(ValueError, match="(?s)accuracyy.*Accuracy"):
        model.compile("sgd", "mse", metrics=["accuracyy"])
    assert not model.compiled


def test_inputs_of_another_shape_change_nothing(data):
    model = linear()
    x, y = data
    unchanged(model, lambda: model.fit(x[:, :2], y, verbose=0), ValueError, "axis -1|3")


def test_arrays_of_different_lengths_are_refused(data):
    model = linear()
    x, y = data
    unchanged(model, lambda: model.fit(x, y[:-1], verbose=0), ValueError, "(?s)40.*39")


@pytest.mark.parametrize("source", ["arrays", "generator"])
def test_nan_labels_change_nothing(data, source):
    model = linear()
    x, y = data[0], data[1].copy()
    y[7] = np.nan
    given = (x, y) if source == "arrays" else (iter([(x, y)]),)
    unchanged(model, lambda: model.fit(*given, verbose=0), ValueError, "NaN")


def test_a_loss_of_ones_own_may_make_something_of_nan_labels(data):
    x, y = data[0], data[1].copy()
    y[7] = np.nan

    def loss(y_true, y_pred):
        known = tw.where(tw.math.is_nan(y_true), y_pred, y_true)
        return tw.reduce_mean((known - y_pred) ** 2)

    model = Sequential([Input((3,)), Dense(1)])
    model.compile("sgd", loss)
    assert np.isfinite(model.fit(x, y, verbose=0).history["loss"][0])


def test_labels_are_needed_where_there_is_a_loss(data):
    model = linear()
    unchanged(model, lambda: model.fit(data[0], verbose=0), ValueError, "labels|y must")


def test_wrong_arguments_are_named(data):
    model = linear()
    for arguments, match in (
        ({"verbose": 3}, "verbose"),
        ({"batch_size": 0}, "batch_size"),
        ({"validation_split": 1.5}, "validation_split"),
        ({"validation_freq": 0, "validation_data": data}, "validation_freq"),
        ({"callbacks": [3]}, "callbacks must be Callbacks"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            model.fit(*data, **({"verbose": 0} | arguments))


def test_an_error_in_a_callback_leaves_a_model_that_trains_on(data):
    class Broken(tw.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise RuntimeError("broken")

    model = linear()
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(*data, callbacks=[Broken()], verbose=0)
    model.fit(*data, verbose=0)


# --------------------------------------------------------------------------- memory


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


# ------------------------------------------------------------------ losses in structures


def affine(name, x):
    return Dense(1, name=name, kernel_initializer="ones")(x)


def two_outputs(container):
    x = Input((3,), name="x")
    return Model(x, container([affine("a", x), affine("b", x)]))


def as_dict(pair):
    return dict(zip("ab", pair))


@pytest.mark.parametrize(
    ("container", "loss", "loss_weights"),
    [
        (list, ["mse", "mae"], None),
        (tuple, ("mse", "mae"), (2.0, 3.0)),
        (list, ["mse", ["mae"]], [2.0, 3.0]),
        (tuple, (["mse"], "mae"), None),
        (as_dict, {"a": ["mse"], "b": ["mae"]}, {"a": 2.0, "b": 3.0}),
        (as_dict, {"a": "mse", "b": "mae"}, None),
        (list, {"a": "mse", "b": "mae"}, {"a": 2.0, "b": 3.0}),
        (as_dict, ["mse", "mae"], None),
    ],
)
def test_a_loss_may_be_given_for_each_output_in_a_structure(
    data, container, loss, loss_weights
):
    x, y = data
    model = two_outputs(container)
    model.compile("sgd", loss, loss_weights=loss_weights)
    error = x.sum(1, keepdims=True) - y
    a, b = np.mean(error**2), np.mean(abs(error))
    first, second = (1.0, 1.0) if loss_weights is None else (2.0, 3.0)
    found = model.evaluate(x, container([y, y]), verbose=0, return_dict=True)
    expected = {"loss": first * a + second * b, "a_loss": a, "b_loss": b}
    assert found == pytest.approx(expected, rel=1e-5)
    assert model.fit(x, container([y, y]), verbose=0).history.keys() == expected.keys()


@pytest.mark.parametrize("container", [list, as_dict])
def test_one_loss_for_all_outputs_takes_one_weight(data, container):
    x, y = data
    model = two_outputs(container)
    model.compile("sgd", "mse", loss_weights=0.5)
    found = model.evaluate(x, container([y, y]), verbose=0, return_dict=True)
    error = np.mean((x.sum(1, keepdims=True) - y) ** 2)
    expected = {"loss": error, "a_loss": error, "b_loss": error}
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_loss_may_be_given_for_several_outputs_together(data):
    def total(y_true, y_pred):
        return tw.reduce_mean(
            abs(y_true["p"][0] - y_pred["p"][0]) + abs(y_true["q"] - y_pred["q"])
        )

    def pair(y_true, y_pred):
        return abs(y_true[0] - y_pred[0]) + abs(y_true[1] - y_pred[1])

    x, y = data
    start = Input((3,), name="x")
    a, b, c = (affine(name, start) for name in "abc")
    model = Model(start, {"p": (a, b), "q": c})
    labels = {"p": (y, y), "q": y}
    error = np.mean(abs(x.sum(1, keepdims=True) - y))
    cases = [
        ([total, {"q": "mae"}], {"loss": 3, "a_b_c_loss": 2, "q_loss": 1}),
        ({"p": [pair, (None, "mae")], "q": "mae"},
         {"loss": 4, "p_loss": 2, "p/b_loss": 1, "q_loss": 1}),
        ({"p": ["mae", "mae"]}, {"loss": 2, "p/a_loss": 1, "p/b_loss": 1}),
        ("mae", {"loss": 3, "p/a_loss": 1, "p/b_loss": 1, "q_loss": 1}),
    ]  # fmt: skip
    for loss, times in cases:
        model.compile("sgd", loss)
        found = model.evaluate(x, labels, verbose=0, return_dict=True)
        expected = {name: n * error for name, n in times.items()}
        assert found == pytest.approx(expected, rel=1e-5), loss


def test_metrics_may_be_given_in_the_structure_of_the_outputs(data):
    x, y = data
    start = Input((3,), name="x")
    a, b, c = (affine(name, start) for name in "abc")
    model = Model(start, {"p": (a, b), "q": c})
    metrics = {"p": (["mae"], None), "q": ["mse", "mae"]}
    model.compile("sgd", "mse", metrics=metrics)
    found = model.evaluate(x, {"p": (y, y), "q": y}, verbose=0, return_dict=True)
    assert {"a_mae", "c_mse", "c_mae"} <= set(found)


@pytest.mark.parametrize(
    ("loss", "loss_weights", "message"),
    [
        ({"c": "mse"}, None, "no output 'c'"),
        (["mse", "mse", "mse"], None, "3 were given for 2 outputs"),
        ({"a": {"x": "mse"}}, None, "'x'"),
        (["mse", "mae"], [1.0], "1 were given for 2 losses"),
        (["mse", "mae"], 2.0, "loss_weights must be a list or dict"),
        ({"a": "mse"}, {"c": 1.0}, "no output 'c'"),
    ],
)
def test_losses_that_fit_no_structure_are_refused(data, loss, loss_weights, message):
    x, y = data
    model = two_outputs(list if isinstance(loss, list) else as_dict)
    model.compile("sgd", loss, loss_weights=loss_weights)
    with pytest.raises(ValueError, match=message):
        model.evaluate(x, [y, y] if isinstance(loss, list) else as_dict([y, y]))


# ------------------------------------------------------------- as Keras does, or not


def test_a_second_compile_keeps_what_it_is_not_given(data):
    x, y = data
    model = linear(metrics=["mae"])
    before = model.evaluate(x, y, verbose=0)
    model.compile("adam")
    assert model.evaluate(x, y, verbose=0) == before
    assert list(model.fit(x, y, verbose=0).history) == ["loss", "mae"]
    model.compile("adam", "mae", metrics=[])
    assert list(model.fit(x, y, verbose=0).history) == ["loss"]
    assert model.get_compile_config()["loss"] == "mae"


def test_the_losses_of_outputs_are_means_over_examples_also_of_a_short_last_batch():
    x = Input((1,))
    a = Dense(1, name="a", kernel_initializer="zeros")(x)
    model = Model(x, [a, Dense(1, name="b", kernel_initializer="zeros")(x)])
    model.compile("sgd", ["mse", "mae"])
    y = np.arange(5.0, dtype="float32")[:, None]
    found = model.evaluate(y, [y, y], batch_size=3, verbose=0, return_dict=True)
    assert found == {"loss": 8.0, "a_loss": 6.0, "b_loss": 2.0}  # not (5/3 + 12.5) / 2


class StopAfter(tw.keras.callbacks.Callback):
    def __init__(self, count):
        super().__init__()
        self.count, self.seen = count, 0

    def _note(self, flag):
        self.seen += 1
        if self.seen == self.count:
            setattr(self.model, flag, True)

    def on_test_batch_end(self, batch, logs=None):
        self._note("stop_evaluating")

    def on_predict_batch_end(self, batch, logs=None):
        self._note("stop_predicting")


def endless(*arrays):
    while True:
        yield arrays


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_evaluate_and_predict_end_when_they_are_told_to(run_eagerly):
    model, x, y = linear(run_eagerly=run_eagerly), np.ones((2, 3)), np.ones((2, 1))
    for count in (3, 1):  # what was set before does not count
        stop = StopAfter(count)
        model.evaluate(endless(x, y), callbacks=[stop], verbose=0)
        assert stop.seen == count and model.stop_evaluating
        stop = StopAfter(count)
        outputs = model.predict(endless(x), callbacks=[stop], verbose=0)
        assert stop.seen == count and len(outputs) == 2 * count
    stop = StopAfter(2)  # in the evaluations of fit
    model.fit(x, y, validation_data=endless(x, y), callbacks=[stop], verbose=0)
    assert stop.seen == 2


def test_run_eagerly_may_be_set_before_compile(data):
    model = Sequential([Input((3,)), Dense(1)])
    model.run_eagerly = True
    assert model.run_eagerly
    assert model.predict(data[0], verbose=0).shape == (40, 1)
    model.compile("sgd", "mse")
    assert not model.run_eagerly  # what compile is given counts
    with pytest.raises(ValueError, match="run_eagerly must be False"):
        model.compile("sgd", "mse", run_eagerly=True, jit_compile=True)
