"""Training in half precision: to the accuracy of float32, with a loss scale that recovers
from overflow as Keras' does, eagerly, traced, and from a file on."""

import importlib.util
import threading
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.state.autocast import autocast_dtype
from tapewright.keras import layers
from tapewright.keras.legacy.configs import keras3_compile_config
from tapewright.optimizers import SGD, Adam, LossScaleOptimizer

FOLDER = Path(__file__).parents[2] / "layers/reference"
SPEC = importlib.util.spec_from_file_location(
    "record_policies", FOLDER / "record_policies.py"
)
record = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(record)
VALUES = np.load(FOLDER / "policies.npz")
HALF = ("mixed_float16", "mixed_bfloat16")


@pytest.fixture(autouse=True)
def no_policy():
    keras.utils.set_random_seed(3)
    yield
    keras.config.set_dtype_policy(None)


def small_model():
    model = keras.Sequential(
        [keras.Input((3,)), layers.Dense(4, "tanh"), layers.Dense(1)]
    )
    model.compile(SGD(0.1), "mse", metrics=["mae"])
    return model


X = record.numbers("training", "x", (16, 3))
Y = record.numbers("training", "y", (16, 1))


# ------------------------------------------------------------------------ as Keras does


@pytest.mark.parametrize("name", ["large", "small"])
def test_losses_and_scales_are_those_of_keras(name):
    losses, scales, weights = record.trained(keras, name == "large")
    kept = {part: VALUES[f"trained|{name}|{part}"] for part in ("losses", "weights")}
    assert scales.tolist() == VALUES[f"trained|{name}|scales"].tolist()
    # Keras rounds a product before the bias is added, too: a steep fall shows that most.
    fall = 1e-4 * kept["losses"][0]
    np.testing.assert_allclose(losses, kept["losses"], rtol=2e-3, atol=fall)
    np.testing.assert_allclose(weights, kept["weights"], atol=2e-3)


def test_overflow_is_recovered_by_the_loss_scale():
    losses, scales, _ = record.trained(keras, True)
    halved = 6  # as often as gradients ran over: these steps change nothing
    assert scales.tolist() == [2.0 ** (14 - min(i, halved - 1)) for i in range(10)]
    assert (losses[: halved + 1] == losses[0]).all() and losses[-1] < losses[0] / 50


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_scale_doubles_after_enough_finite_steps_in_fit(run_eagerly):
    keras.config.set_dtype_policy("mixed_float16")
    model = small_model()
    optimizer = LossScaleOptimizer(SGD(0.1), 1024.0, dynamic_growth_steps=3)
    model.compile(optimizer, "mse", run_eagerly=run_eagerly)
    history = model.fit(X, Y, batch_size=4, epochs=2, verbose=0).history
    assert float(optimizer.dynamic_scale) == 4096.0
    assert int(optimizer.step_counter) == 2 and int(optimizer.iterations) == 8
    assert history["loss"][1] < history["loss"][0]


def test_small_gradients_vanish_without_a_scale():
    keras.config.set_dtype_policy("mixed_float16")
    dense = layers.Dense(1, use_bias=False, kernel_initializer="ones")
    x = tw.constant([[2.0**-12]])
    optimizer = LossScaleOptimizer(SGD())

    def gradient(scaled):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.cast(dense(x), "float32")) * 2.0**-14
            loss = optimizer.scale_loss(loss) if scaled else loss
        return tape.gradient(loss, dense.kernel).numpy().item()

    gradient(True)
    assert gradient(False) == 0
    assert gradient(True) / 2.0**15 == 2.0**-26


# ------------------------------------------------------------------ what compile makes


def test_compile_scales_the_loss_in_mixed_float16_alone():
    for policy, scales in (
        ("mixed_float16", True), ("mixed_bfloat16", False), ("float16", False),
        ("float32", False),
    ):  # fmt: skip
        keras.config.set_dtype_policy(policy)
        model = small_model()
        assert (type(model.optimizer) is LossScaleOptimizer) == scales
    keras.config.set_dtype_policy("mixed_float16")
    model = small_model()
    assert type(model.optimizer.inner_optimizer) is SGD
    own = LossScaleOptimizer(Adam())
    model.compile(own, "mse")
    assert model.optimizer is own
    model.compile("adam", "mse", auto_scale_loss=False)
    assert type(model.optimizer) is Adam


@pytest.mark.parametrize("policy", HALF)
def test_losses_and_metrics_are_in_float32_and_weights_too(policy):
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential(
        [
            layers.Dense(4, kernel_regularizer="l2", activity_regularizer="l1"),
            layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", metrics=["mae", keras.metrics.MeanSquaredError()])
    model.fit(X, Y, verbose=0)
    assert {v.dtype.name for v in model.weights} == {"float32"}
    assert {m.result().dtype.name for m in model.metrics if m.name == "loss"} == {
        "float32"
    }
    assert {v.dtype.name for v in model.metrics_variables} == {"float64"}  # sums
    assert model.compute_loss(X, Y, model(X)).dtype == "float32"
    assert model.predict(X, verbose=0).dtype == policy.removeprefix("mixed_")


# --------------------------------------------------------------- to the accuracy of float32


def test_a_classifier_is_as_accurate_as_in_float32():
    (x, y), (x_test, y_test) = tw.datasets.digits.load_data()
    x, x_test = x[:2000] / np.float32(255), x_test[:500] / np.float32(255)
    accuracy = {}
    for policy in ("float32", *HALF):
        keras.utils.set_random_seed(1)
        keras.config.set_dtype_policy(policy)
        model = keras.Sequential(
            [
                keras.Input((28, 28)),
                layers.AveragePooling1D(2),
                layers.Flatten(),
                layers.Dense(32, activation="relu"),
                layers.BatchNormalization(),
                layers.Dense(10, activation="softmax", dtype="float32"),
            ]
        )
        model.compile(
            Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"]
        )
        model.fit(x, y[:2000], batch_size=50, epochs=6, verbose=0)
        _, accuracy[policy] = model.evaluate(x_test, y_test[:500], verbose=0)
    assert accuracy["float32"] > 0.9
    for policy in HALF:
        assert accuracy[policy] > accuracy["float32"] - 0.02, accuracy


def gan_error(policy, seed, steps=400):
    """How far mean and deviation of generated points are from those of the real ones."""
    keras.utils.set_random_seed(seed)
    keras.config.set_dtype_policy(policy)
    dense, last = layers.Dense, {"dtype": "float32"}  # logits and points
    generator = keras.Sequential(
        [keras.Input((2,)), dense(16, "relu"), dense(2, **last)]
    )
    critic = [keras.Input((2,)), dense(16, "relu"), dense(16, "relu"), dense(1, **last)]
    critic = keras.Sequential(critic)
    scaling = LossScaleOptimizer if policy == "mixed_float16" else lambda x: x
    optimizers = [scaling(Adam(rate, beta_1=0.5)) for rate in (0.003, 0.009)]
    loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
    noise, real = np.random.default_rng(0).normal(size=(2, steps, 64, 2)).astype("f4")
    real = real * np.float32([0.5, 1.0]) + np.float32([1.0, -0.5])

    @tw.function
    def step(z, points):
        with tw.GradientTape(persistent=True) as tape:
            fake = generator(z)
            true, false = critic(points), critic(fake)
            losses = [
                loss_of(tw.ones_like(false), false),
                loss_of(tw.ones_like(true), true)
                + loss_of(tw.zeros_like(false), false),
            ]
            scaled = [o.scale_loss(each) for o, each in zip(optimizers, losses)]
        for model, optimizer, loss in zip((generator, critic), optimizers, scaled):
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for z, points in zip(noise, real):
        step(z, points)
    made, wanted = generator(noise.reshape(-1, 2)[:2000]).numpy(), real.reshape(-1, 2)
    moments = [made.mean(0) - wanted.mean(0), made.std(0) - wanted.std(0)]
    return np.abs(moments).max()


def test_a_gan_gets_as_near_as_in_float32():
    start = np.mean([gan_error("float32", seed, steps=1) for seed in (1, 2, 3)])
    exact = np.mean([gan_error("float32", seed) for seed in (1, 2, 3)])
    assert start > 0.9 and exact < 0.2
    for policy in HALF:
        assert np.mean([gan_error(policy, seed) for seed in (1, 2, 3)]) < exact + 0.1


# ----------------------------------------------------------------------- loops of one's own


def test_a_loop_of_ones_own_is_the_same_traced_and_eager():
    def train(decorate):
        keras.utils.set_random_seed(2)
        keras.config.set_dtype_policy("mixed_float16")
        dense = layers.Dense(2, activation="tanh")
        dense(X)
        optimizer = LossScaleOptimizer(Adam(0.05), 2.0**20, dynamic_growth_steps=2)

        def step(x):
            with tw.GradientTape() as tape:
                y = tw.cast(dense(x), "float32")
                loss = tw.reduce_mean(tw.square(y - 0.5))
                scaled = optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled, dense.trainable_variables)
            optimizer.apply(gradients, dense.trainable_variables)
            return loss

        step, told = decorate(step), []
        for _ in range(12):
            told.append((float(step(X)), float(optimizer.dynamic_scale)))
        return np.array(told), dense.get_weights()

    (eager, weights), (traced, others) = train(lambda f: f), train(tw.function)
    np.testing.assert_allclose(eager, traced, rtol=2e-3)
    for a, b in zip(weights, others):
        np.testing.assert_allclose(a, b, atol=2e-3)
    scales = eager[:, 1]
    assert scales.min() < 2.0**20 and np.diff(scales).max() > 0  # down, and up again
    assert eager[-1, 0] < eager[0, 0] / 2


def test_old_names_say_what_is_right():
    optimizer = LossScaleOptimizer(SGD())
    with pytest.raises(AttributeError, match=r"'get_scaled_loss'.*scale_loss\(loss\)"):
        optimizer.get_scaled_loss(1.0)
    with pytest.raises(AttributeError, match="'get_unscaled_gradients'.*apply"):
        optimizer.get_unscaled_gradients([])
    with pytest.raises(AttributeError, match="no attribute 'speed'"):
        optimizer.speed  # noqa: B018


# ----------------------------------------------------------- reads in another dtype


class Reads(layers.Layer):
    """Gives a weight that is cast, one that is not, and one of integers."""

    def build(self, input_shape):
        add = self.add_weight
        self.cast = add(shape=(), initializer="ones", name="cast")
        self.kept = add(shape=(), initializer="ones", autocast=False, name="kept")
        self.count = add(shape=(), dtype="int32", trainable=False, name="count")

    def call(self, x):
        self.seen = [v.dtype.name for v in (self.cast, self.kept, self.count)]
        weights = self.cast, self.kept, self.count
        found = [tw.convert_to_tensor(v).dtype.name for v in weights]
        assert found == self.seen == [v.value.dtype.name for v in weights]
        return x * 1.0


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, ["float16", "float32", "int32"]),
        ({"dtype": "float32"}, ["float32", "float32", "int32"]),
        ({"dtype": "float64"}, ["float64", "float64", "int32"]),
        ({"dtype": "int32"}, ["int32", "int32", "int32"]),
        ({"autocast": False}, ["float16", "float32", "int32"]),
    ],
    ids=str,
)
def test_a_layer_reads_floating_weights_in_its_own_dtype(options, seen):
    keras.config.set_dtype_policy("mixed_float16")
    alone = Reads(**options)
    alone(tw.ones([2]))
    assert alone.seen == seen
    assert [v.dtype.name for v in alone.weights][1] in ("float32", "float64", "int32")
    inside = keras.Sequential([keras.Input((2,)), Reads(**options)])
    inside(tw.ones([1, 2]))
    is_left = "autocast" in options  # as in Keras: inside of another layer
    assert inside.layers[0].seen == (["float32"] * 2 + ["int32"] if is_left else seen)


def test_an_assignment_in_a_call_is_in_the_dtype_of_the_weight():
    class Total(layers.Layer):
        def build(self, input_shape):
            self.total = self.add_weight((), "zeros", name="total", trainable=False)

        def call(self, x):
            self.total.assign_add(tw.reduce_sum(x))
            self.total.assign(self.total * 3.0)
            self.total.assign_sub(1.0)
            return x * self.total

    layer = Total(dtype="mixed_float16")
    assert layer(tw.ones([2])).numpy().tolist() == [5.0, 5.0]
    assert tw.function(layer)(tw.ones([2])).numpy().tolist() == [20.0, 20.0]
    assert layer.total.dtype == "float32" and layer.total.numpy() == 20.0


def test_derivatives_of_every_kind_arrive_in_float32():
    dense = layers.Dense(2, activation="tanh", dtype="mixed_float16")
    dense(X)
    with tw.GradientTape() as outer:
        with tw.GradientTape(persistent=True) as tape:
            y = dense(X)
            loss = tw.reduce_sum(tw.cast(y, "float32") ** 2)
        gradient = tape.gradient(loss, dense.kernel)
        norm = tw.reduce_sum(gradient * gradient)
    assert outer.watched_variables()
    second = outer.gradient(norm, dense.kernel)
    assert (gradient.dtype, second.dtype) == ("float32", "float32")
    assert np.abs(second.numpy()).max() > 0
    assert tape.jacobian(y, dense.kernel).dtype == "float32"


def test_functions_have_traces_for_each_dtype_of_reads():
    v = tw.Variable([1.0, 2.0])

    @tw.function
    def scaled(x):
        return v * 1.0, v * tw.cast(x, v.dtype)

    class Scale(layers.Layer):
        def call(self, x):
            return scaled(tw.cast(x, "float32"))

    x = tw.ones(2)
    for run in (lambda f: f, tw.function):
        assert [y.dtype.name for y in scaled(x)] == ["float32"] * 2
        layer = run(Scale(dtype="mixed_float16"))
        assert [y.dtype.name for y in layer(x)] == ["float16"] * 2
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(layer(x)[1] ** 2)
        gradient = tape.gradient(y, v)
        assert (gradient.dtype, gradient.numpy().tolist()) == ("float32", [2.0, 4.0])


def test_branches_and_loops_assign_weights_in_their_own_dtype():
    class Counting(layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight((), "ones", name="scale")
            self.count = self.add_weight((), "zeros", trainable=False, name="count")

        def call(self, x):
            for _ in tw.range(tw.cast(x[0], "int32")):
                self.count.assign_add(0.1)
                if self.count < 0.25:
                    x = x * self.scale
                else:
                    self.scale.assign(self.scale * 2.0)
            return x * self.scale

    found = []
    for run in (lambda f: f, tw.function):
        layer = Counting(dtype="mixed_float16")
        y = run(layer)(tw.constant([4.0, 1.0]))
        assert (y.dtype, layer.count.dtype) == ("float16", "float32")
        found.append([*y.numpy(), layer.count.numpy(), layer.scale.numpy()])
    np.testing.assert_array_equal(*found)
    assert found[0][-1] == 4.0


def test_a_saved_function_computes_in_half_precision(tmp_path):
    class Module(tw.Module):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2, dtype="mixed_float16")

        @tw.function(input_signature=[tw.TensorSpec([None, 3], "float32")])
        def __call__(self, x):
            return self.dense(x)

    module = Module()
    wanted = module(tw.constant(X))
    tw.saved_model.save(module, str(tmp_path / "module"))
    found = tw.saved_model.load(str(tmp_path / "module"))(tw.constant(X))
    assert found.dtype == wanted.dtype == "float16"
    assert np.array_equal(found.numpy(), wanted.numpy())


def test_the_dtype_of_reads_is_left_after_errors_and_belongs_to_one_thread():
    seen = []

    class Fails(layers.Layer):
        def call(self, x):
            seen.append(autocast_dtype())
            thread = threading.Thread(target=lambda: seen.append(autocast_dtype()))
            thread.start()
            thread.join()
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        Fails(dtype="mixed_float16")(tw.ones([1]))
    assert seen == [tw.float16, None] and autocast_dtype() is None


@pytest.mark.parametrize(
    "decorate", [lambda f: f, tw.function], ids=["eager", "traced"]
)
def test_what_is_computed_again_is_computed_in_the_same_dtype(decorate):
    class Again(layers.Layer):
        again = staticmethod(tw.recompute_grad)

        def build(self, input_shape):
            self.kernel = self.add_weight((3, 2), "glorot_uniform", name="kernel")

        def call(self, x):
            return self.again(lambda x: tw.tanh(tw.matmul(x, self.kernel)))(x)

    class Once(Again):
        again = staticmethod(lambda f: f)

    found = []
    for kind in (Again, Once):
        keras.utils.set_random_seed(0)
        layer = kind(dtype="mixed_float16")
        layer(X)

        @decorate
        def gradient(layer=layer):
            with tw.GradientTape() as tape:
                y = tw.reduce_sum(tw.cast(layer(X), "float32"))
            return tape.gradient(y, layer.kernel)

        found.append(gradient())
    assert found[0].dtype == found[1].dtype == "float32"
    np.testing.assert_array_equal(found[0].numpy(), found[1].numpy())


def test_embeddings_keep_sparse_gradients_and_exact_indices():
    layer = layers.Embedding(3000, 2, dtype="mixed_float16")
    with tw.GradientTape() as tape:
        y = layer(tw.constant([2049.0]))  # float16 has no 2049
    gradient = tape.gradient(y, layer.embeddings)
    assert y.dtype == "float16" and isinstance(gradient, tw.IndexedSlices)
    assert gradient.indices.numpy().tolist() == [2049]


def test_metrics_in_a_layer_count_in_float32():
    class Total(keras.metrics.Metric):
        def __init__(self):
            super().__init__()
            self.total = self.add_variable((), "zeros")

        def update_state(self, values):
            new = tw.reduce_sum(tw.cast(values, self.total.dtype))
            self.total.assign(self.total + new)

        def result(self):
            return self.total.read()

    class Counts(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.metric = Total()

        def call(self, x):
            self.metric.update_state(x)
            return x

    layer = Counts(dtype="mixed_float16")
    for _ in range(2):
        layer(tw.fill([2], 40000.0))
    assert layer.metric.result().numpy() == 160000.0


def test_a_cell_keeps_its_policy_where_that_of_its_layer_changes():
    x = record.numbers("cell", "x", (2, 5, 3))
    layer = layers.LSTM(4)
    wanted = tw.cast(layer(x), "float16").numpy()
    layer.dtype_policy = "mixed_float16"
    found = layer(tw.cast(x, "float32"))
    assert found.dtype == "float16" and layer.cell.compute_dtype == "float32"
    np.testing.assert_array_equal(found.numpy(), wanted)


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize("ending", [".keras", ".h5"])
@pytest.mark.parametrize("policy", HALF)
@pytest.mark.parametrize("kind", ["sequential", "functional"])
def test_a_file_keeps_policies_weights_and_the_loss_scale(
    ending, policy, kind, tmp_path
):
    keras.config.set_dtype_policy(policy)
    model = small_model()
    if kind == "functional":
        x = keras.Input((3,))
        model = keras.Model(x, layers.Dense(1)(layers.Dense(4, "tanh")(x)))
        model.compile(SGD(0.1, momentum=0.5), "mse")
    if policy == "mixed_float16":
        model.compile(LossScaleOptimizer(SGD(0.1), 2.0**19, 5), "mse")
    model.fit(X, Y, epochs=3, verbose=0)
    model.save(tmp_path / f"model{ending}")
    keras.config.set_dtype_policy(None)
    twin = keras.models.load_model(tmp_path / f"model{ending}")
    assert twin.dtype_policy == model.dtype_policy
    for a, b in zip(twin.layers, model.layers, strict=True):
        assert a.dtype_policy == b.dtype_policy
    assert {v.dtype.name for v in twin.weights} == {"float32"}
    assert type(twin.optimizer) is type(model.optimizer)
    assert twin.optimizer.get_config() == model.optimizer.get_config()
    for a, b in zip(twin.optimizer.variables, model.optimizer.variables, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
    for each in (model, twin):
        each.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    for a, b in zip(twin.get_weights(), model.get_weights(), strict=True):
        assert np.array_equal(a, b)


def test_weights_files_have_the_scale_too(tmp_path):
    keras.config.set_dtype_policy("mixed_float16")
    model, twin = small_model(), small_model()
    model.compile(LossScaleOptimizer(SGD(0.1), 2.0**20), "mse")
    for each in (model, twin):
        each.fit(X, Y, verbose=0)
    assert float(model.optimizer.dynamic_scale) != float(twin.optimizer.dynamic_scale)
    model.save_weights(tmp_path / "m.weights.h5")
    twin.load_weights(tmp_path / "m.weights.h5")
    assert float(model.optimizer.dynamic_scale) == float(twin.optimizer.dynamic_scale)


def test_configs_of_keras_2_keep_their_policies():
    policy = {"class_name": "Policy", "config": {"name": "mixed_float16"}}
    config = {"name": "d", "units": 2, "dtype": policy}
    config = {"class_name": "Dense", "config": config}
    layer = keras.saving.deserialize_keras_object(config, kind="layer")
    assert layer.dtype_policy.name == "mixed_float16"
    inner = {"class_name": "SGD", "config": {"learning_rate": 0.5}}
    scaled = {"inner_optimizer": inner, "dynamic": True, "initial_scale": 8.0,
              "dynamic_growth_steps": 4}  # fmt: skip
    training = {"optimizer_config": {"class_name": "LossScaleOptimizerV3",
                                     "config": scaled}, "loss": "mse"}  # fmt: skip
    config = keras3_compile_config(training)
    model = small_model()
    model.compile_from_config(config)
    assert model.optimizer.initial_scale == 8.0
    assert type(model.optimizer.inner_optimizer) is SGD
