"""Steps of training, also those of a user's own."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.layers import Dense

from .small_models import linear


def test_predict_on_batch_gives_arrays(data):
    answer = linear().predict_on_batch(data[0][:4])
    assert isinstance(answer, np.ndarray) and answer.shape == (4, 1)


def test_train_on_batch_returns_the_loss_before_the_update(data):
    x, y = data
    model = linear()
    loss = ((model(x).numpy() - y) ** 2).mean()
    assert model.train_on_batch(x, y) == pytest.approx(loss, rel=1e-5)
    assert model.test_on_batch(x, y, return_dict=True)["loss"] < loss


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


def test_a_train_step_may_be_a_traced_function_or_an_attribute(data):
    class Own(Sequential):
        @tw.function
        def train_step(self, data):
            return super().train_step(data)

    x, y = data
    model, plain = Own([Dense(1)]), Sequential([Dense(1)])
    for each in (model, plain):
        each.build(x.shape)
        each.set_weights([np.ones((x.shape[1], 1)), np.zeros(1)])
        each.compile("sgd", "mse")
    losses = [each.fit(x, y, epochs=2, shuffle=False, verbose=0).history["loss"]
              for each in (model, plain)]  # fmt: skip
    assert losses[0] == pytest.approx(losses[1])
    plain.train_step = lambda data: {"loss": tw.constant(3.0)}
    plain.compile("sgd", "mse")
    assert plain.fit(x, y, verbose=0).history["loss"] == [3.0]


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
            training = 0.5  # no argument
            return training * super().compute_loss(x, y, y_pred, sample_weight)

    x = Input((3,))
    model = Half(x, Dense(1)(x))
    model.compile("sgd", "mse")
    error = model(data[0]).numpy() - data[1]
    loss = model.evaluate(*data, batch_size=40, verbose=0)
    assert loss == pytest.approx(0.5 * (error**2).mean(), rel=1e-5)


def test_python_that_needs_values_needs_run_eagerly(data):
    class Odd(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(1)

        def call(self, x):
            x = self.dense(x)
            return x if tw.reduce_sum(x).numpy() > 0 else -x

    model = Odd()
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match=r"run_functions_eagerly\(True\)"):
        model.fit(*data, verbose=0)
    model.run_eagerly = True
    model.fit(*data, verbose=0)


class Unbuilt(Model):
    """A model whose layers the first call builds."""

    def __init__(self, transform):
        super().__init__()
        self.dense, self.transform = Dense(1), transform

    def call(self, x):
        return self.dense(self.transform(x))


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_call_that_needs_the_size_of_the_batch_trains(data, run_eagerly):
    model = Unbuilt(lambda x: x * {40: 2.0}[x.shape[0]])
    model.compile("sgd", "mse", run_eagerly=run_eagerly)
    history = model.fit(*data, batch_size=40, verbose=0).history
    assert np.isfinite(history["loss"][0])


@pytest.mark.parametrize(
    "transform",
    [
        lambda x: x if float(tw.reduce_sum(x)) else x * 2.0,
        lambda x: x - x.array.mean(),
    ],
)
def test_a_call_that_needs_values_trains_eagerly_from_the_first_batch(data, transform):
    model = Unbuilt(transform)
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(*data, validation_data=data, verbose=0)
    assert model.dense.built


@pytest.mark.parametrize("needs_values", [False, True])
def test_a_batch_builds_the_model_by_its_values_if_call_needs_them(data, needs_values):
    seen = []

    def noted(x):
        seen.append(hasattr(x.array, "mean"))
        return x - x.array.mean() if needs_values else x

    model = Unbuilt(noted)
    model.compile("sgd", "mse")
    model._tw_build_for_batch([tw.constant(x) for x in data])
    assert model.dense.built and model.optimizer.built
    assert seen == ([False, True] if needs_values else [False])


def test_a_mistake_in_call_is_not_passed_over_while_layers_are_built(data):
    calls = []

    def broken_at_first(x):
        calls.append(x)
        if len(calls) == 1:
            raise RuntimeError("no such table")
        return x

    model = Unbuilt(broken_at_first)
    model.compile("sgd", "mse")
    with pytest.raises(RuntimeError, match="no such table"):
        model.fit(*data, verbose=0)


def test_compiled_loss_is_compute_loss_with_the_penalties(data):
    x, y = data
    model = Sequential([Dense(1, kernel_regularizer="l2")])
    model.compile(loss="mse")
    y_pred = model(x)
    loss = model.compiled_loss(y, y_pred, regularization_losses=model.losses)
    assert float(loss) == float(model.compute_loss(x, y, y_pred))
    assert float(loss) > float(tw.losses.MeanSquaredError()(y, y_pred))


def test_a_compiled_loss_and_metrics_are_those_of_the_logs(data):
    class Own(Model):
        def __init__(self, step):
            super().__init__()
            self.dense = Dense(1)
            self.test_step = step

        def call(self, x):
            return self.dense(x)

    def step(data):
        x, y = data
        y_pred = model(x)
        loss = model.compiled_loss(y, y_pred)
        model.compiled_metrics.update_state(y, y_pred)
        return {metric.name: metric.result() for metric in model.metrics} | {
            "now": loss
        }

    model = Own(step)
    model.compile(loss="mse")
    logs = model.evaluate(*data, batch_size=40, verbose=0, return_dict=True)
    assert logs["loss"] == logs["now"] > 0


@pytest.mark.parametrize("wrapped", [tw.function, tw.function(jit_compile=True)])
def test_steps_may_be_traced_functions_themselves(data, wrapped):
    class Own(Model):
        @wrapped
        def test_step(self, data):
            x, _ = data
            return {"sum": tw.reduce_sum(x)}

    model = Own()
    model.compile()
    logs = model.evaluate(*data, batch_size=len(data[0]), verbose=0, return_dict=True)
    assert logs["sum"] == pytest.approx(data[0].sum(), rel=1e-5)
