"""Train models of many kinds for three epochs; rank 0 writes weights and logs to a file.

    mpiexec -n 2 python same_numbers.py FILE [--sharded] [NAME ...]

With ``--sharded`` the optimizers are divided among the processes. The names are those of
the `CASES`. Losses and metrics of each step, and of evaluations, are among the logs. The
ranks must hold the same bits.
"""

import gc
import sys

import numpy as np

import tapewright as tw
from tapewright import layers, optimizers

CASES = {}
ROWS = 45  # four batches of 12, of which the last is partial: 9 rows, or 1 of 37


def case(function):
    CASES[function.__name__] = function
    return function


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def digits(classes, count=ROWS):
    return np.random.default_rng(1).integers(0, classes, count)


def dense(optimizer="sgd", **options):
    model = tw.Sequential(
        [
            tw.Input((5,)),
            layers.Dense(8, activation="tanh", kernel_regularizer="l2"),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(
        *(optimizer, "sparse_categorical_crossentropy"),
        metrics=["accuracy"],
        **options,
    )
    return model


@case
def sgd():
    return dense(), numbers(ROWS, 5), digits(3), {}


@case
def one_row_is_left():
    return dense(), numbers(37, 5), digits(3, 37), {}


@case
def fewer_rows_than_workers():
    model = dense(optimizers.SGD(0.1, momentum=0.9))
    return model, numbers(7, 5), digits(3, 7), {"batch_size": 2}


@case
def run_eagerly():
    return dense("adam", run_eagerly=True), numbers(37, 5), digits(3, 37), {}


@case
def clipping_and_class_weights():
    optimizer = optimizers.Adam(0.01, global_clipnorm=0.5)
    options = {"class_weight": {0: 0.2, 1: 3.0}}
    return dense(optimizer), numbers(ROWS, 5), digits(3), options


@case
def sample_weights():
    optimizer = optimizers.SGD(0.1, clipnorm=0.3, momentum=0.9, nesterov=True)
    options = {"sample_weight": np.abs(numbers(ROWS)), "validation_split": 0.3}
    model = dense(optimizer, weighted_metrics=["accuracy"])
    return model, numbers(ROWS, 5), digits(3), options


@case
def convolutions():
    model = tw.Sequential(
        [
            tw.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(synchronized=True),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(3),
        ]
    )
    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizers.SGD(0.05, momentum=0.9, clipvalue=0.1), loss)
    return model, numbers(ROWS, 8, 8, 1), digits(3), {}


@case
def lstm_with_masks():
    model = tw.Sequential(
        [
            tw.Input((6,)),
            layers.Embedding(20, 4, mask_zero=True),
            layers.LSTM(5, return_sequences=True),
            layers.Dense(2),
        ]
    )
    model.compile(optimizers.Adam(0.01), "mse", metrics=["mae"])
    words = np.random.default_rng(2).integers(0, 20, (ROWS, 6))
    words[np.arange(6) > np.arange(ROWS)[:, None] % 6] = 0
    return model, words, numbers(ROWS, 6, 2), {}


@case
def sparse_embedding():
    model = tw.Sequential(
        [tw.Input((4,)), layers.Embedding(500, 3), layers.Flatten(), layers.Dense(1)]
    )
    model.compile(optimizers.Adagrad(0.1), "mse")
    words = np.random.default_rng(3).integers(0, 500, (ROWS, 4))
    return model, words, numbers(ROWS, 1), {}


@case
def several_outputs():
    x = tw.Input((5,))
    hidden = layers.Dense(6, activation="relu", activity_regularizer="l2")(x)
    outputs = {"a": layers.Dense(1, name="a")(hidden), "b": layers.Dense(2)(hidden)}
    model = tw.Model(x, outputs)
    model.compile(
        optimizers.Adam(0.01, ema_momentum=0.9, use_ema=True),
        {"a": "mse", "b": tw.losses.MeanAbsoluteError(reduction="sum")},
        loss_weights={"a": 0.3, "b": 1.0},
        metrics={"a": ["mae"], "b": [tw.metrics.RootMeanSquaredError()]},
    )
    return model, numbers(ROWS, 5), {"a": numbers(ROWS, 1), "b": numbers(ROWS, 2)}, {}


@case
def losses_of_examples():
    x = tw.Input((5,))
    hidden = layers.Dense(6, activation="relu", kernel_regularizer="l2")(x)
    outputs = {"a": layers.Dense(1, name="a")(hidden), "b": layers.Dense(2)(hidden)}
    model = tw.Model(x, outputs)
    model.compile(
        "sgd", {"a": tw.losses.MeanSquaredError(reduction="none"), "b": "mae"}
    )
    return model, numbers(37, 5), {"a": numbers(37, 1), "b": numbers(37, 2)}, {}


@case
def metrics_with_sums_over_replicas():
    model = dense()
    labels = np.eye(3, dtype="f4")[digits(3, 37)]
    model.compile("sgd", tw.losses.dice, metrics=["mse", tw.losses.tversky])
    return model, numbers(37, 5), labels, {"batch_size": 9}


@case
def masks_in_evaluations():
    model, words, y, options = lstm_with_masks()
    return model, words[:31], y[:31], options  # 1 row is left by batches of 10


class OwnStep(tw.Model):
    """A model with a `train_step` and a metric of its own."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)
        self.error = tw.metrics.MeanAbsoluteError(name="error")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tw.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        self.error.update_state(y, y_pred)
        return {"error": self.error.result()}

    @property
    def metrics(self):
        return [self.error]


@case
def own_step():
    model = OwnStep()
    model.compile(optimizers.RMSprop(0.01), tw.losses.Huber())
    return model, numbers(37, 5), numbers(37, 1), {}


@case
def nothing_to_train():
    model = tw.Sequential([tw.Input((5,)), layers.Activation("tanh")])
    model.compile(None, "mse")
    return model, numbers(ROWS, 5), numbers(ROWS, 5), {}


@case
def batches_of_a_dataset():
    data = tw.data.Dataset.from_tensor_slices((numbers(ROWS, 5), digits(3)))
    return dense(), data.shuffle(ROWS).batch(12).prefetch(1), None, {}


@case
def batches_of_a_generator():
    def batches():
        while True:
            yield numbers(7, 5), digits(3, 7)

    options = {"steps_per_epoch": 4, "class_weight": {2: 0.5}}
    return dense("adam"), batches(), None, options


@case
def double_precision():
    tw.keras.config.set_floatx("float64")
    model = dense(optimizers.Adam(0.01, global_clipnorm=1.0))
    return model, numbers(ROWS, 5), digits(3), {}


class Steps(tw.callbacks.Callback):
    """Logs of all steps."""

    def __init__(self):
        super().__init__()
        self.logs = []

    def on_train_batch_end(self, batch, logs=None):
        self.logs += [logs[name] for name in sorted(logs)]


def train(name, sharded=False):
    tw.keras.utils.set_random_seed(5)
    with tw.keras.distribution.DataParallel(shard_optimizer=sharded).scope():
        model, x, y, options = CASES[name]()
    is_arrays = isinstance(x, np.ndarray)
    if is_arrays:
        options = {"batch_size": 12, **options}
    steps = Steps()
    options = {"epochs": 3, "verbose": 0, "callbacks": [steps], **options}
    history = model.fit(x, y, **options).history
    results = {f"logs of {key}": np.array(value) for key, value in history.items()}
    results["steps"] = np.array(steps.logs)
    for i, weight in enumerate(model.get_weights()):
        results[f"weight {i}"] = weight
    if is_arrays and name != "own_step":
        model.stop_evaluating = False
        logs = model.evaluate(x, y, batch_size=10, verbose=0, return_dict=True)
        results["evaluation"] = np.array([logs[key] for key in sorted(logs)])
        results["prediction"] = tw.nest.flatten(model.predict(x, verbose=0))[0]
    tw.keras.config.set_floatx("float32")
    for key, value in results.items():
        everywhere = tw.distribute.all_gather(value.reshape(1, -1).view(np.uint8))
        same = (everywhere.numpy() == everywhere.numpy()[0]).all()
        assert same, f"{name}: {key} differs between the ranks"
    return {f"{name}: {key}": value for key, value in results.items()}


def main(path, *names):
    results, sharded = {}, "--sharded" in names
    names = [name for name in names if name != "--sharded"]
    gc.freeze()  # or each collection would look at all that was imported
    for name in names or CASES:
        results |= train(name, sharded)
    if tw.distribute.rank() == 0:
        np.savez(path, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
