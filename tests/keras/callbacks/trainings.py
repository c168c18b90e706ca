"""Trainings of many kinds, to be interrupted: each gives a model and what `fit` takes."""

import numpy as np

import tapewright as tw

layers, callbacks = tw.keras.layers, tw.keras.callbacks

N = 44  # samples: of the batches of 8 the last is shorter


def arrays(*shape):
    random = np.random.default_rng(0)
    x = random.normal(size=(N, *shape)).astype("float32")
    return x, (x.reshape(N, -1)[:, :1] * 2 - 1).astype("float32")


def dense(optimizer="adam", **options):
    model = tw.keras.Sequential(
        [
            layers.Dense(8, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dropout(0.2, seed=5),
            layers.Dense(1),
        ]
    )
    model.compile(optimizer, "mse", metrics=["mae"], **options)
    return model


def shuffled_arrays():
    x, y = arrays(3)
    validation = (x[:10], y[:10])
    return dense(), {"x": x, "y": y, "batch_size": 8, "validation_data": validation}


def data_set():
    data = tw.data.Dataset.from_tensor_slices(arrays(3))
    validation = data.take(12).shuffle(12).batch(4)
    data = data.shuffle(20).map(lambda x, y: (x * 2, y)).batch(8).prefetch(2)
    return dense(), {"x": data, "validation_data": validation}


def endless_data_set():
    data = tw.data.Dataset.from_tensor_slices(arrays(3)).shuffle(50).repeat().batch(8)
    return dense(), {"x": data, "steps_per_epoch": 5}


def one_data_set():
    """Its runs serve training and validation by turns."""
    data = tw.data.Dataset.from_tensor_slices(arrays(3)).shuffle(20).batch(8)
    return dense(), {"x": data, "validation_data": data, "validation_freq": 2}


def noisy_data_set():
    """Noise without a seed, before the order is drawn."""
    data = tw.data.Dataset.from_tensor_slices(arrays(3))
    data = data.map(lambda x, y: (x + tw.random.normal(x.shape), y))
    return dense(), {"x": data.shuffle(20).batch(8)}


def plateaus():
    x, y = arrays(3)
    rate = callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
    plateau = callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.2)
    early = callbacks.EarlyStopping("val_loss", patience=1, min_delta=0.3,
                                    restore_best_weights=True)  # fmt: skip
    settings = {"x": x, "y": y, "batch_size": 8, "validation_split": 0.3}
    return dense(tw.keras.optimizers.Adam(0.05)), {
        **settings, "callbacks": [rate, plateau, early],
    }  # fmt: skip


def averages():
    rate = tw.keras.optimizers.schedules.ExponentialDecay(0.05, 4, 0.8)
    optimizer = tw.keras.optimizers.SGD(
        rate, momentum=0.9, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=7,
        gradient_accumulation_steps=3, clipnorm=1.0,
    )  # fmt: skip
    x, y = arrays(3)
    return dense(optimizer), {"x": x, "y": y, "batch_size": 8}


def swapped_averages():
    x, y = arrays(3)
    optimizer = tw.keras.optimizers.Nadam(0.01, use_ema=True)
    settings = {"x": x, "y": y, "batch_size": 8, "validation_split": 0.3}
    return dense(optimizer), {**settings, "callbacks": [callbacks.SwapEMAWeights(True)]}


def scaled_loss():
    inner = tw.keras.optimizers.AdamW(0.01)
    optimizer = tw.keras.optimizers.LossScaleOptimizer(inner, dynamic_growth_steps=3)
    x, y = arrays(3)
    return dense(optimizer), {"x": x, "y": y, "batch_size": 8}


def stateful_recurrence():
    model = tw.keras.Sequential(
        [
            layers.Input(batch_shape=(4, 5, 2)),
            layers.LSTM(4, stateful=True, dropout=0.2),
            layers.Dense(1),
        ]
    )
    model.compile("rmsprop", "mse")
    x, y = arrays(5, 2)
    return model, {"x": x, "y": y, "batch_size": 4, "shuffle": False}


class Own(tw.keras.Model):
    """Layers, a metric and a generator as attributes, one layer made in `build`."""

    def __init__(self):
        super().__init__()
        self.first = [layers.Dense(6, activation="tanh")]
        self.largest = tw.keras.metrics.Mean(name="largest")
        self.generator = tw.random.Generator.from_seed(3)

    def build(self, input_shape):
        self.last = layers.Dense(1)

    def call(self, inputs):
        return self.last(self.first[0](inputs))

    def train_step(self, data):
        x, y = data
        with tw.GradientTape() as tape:
            noise = self.generator.normal(tw.shape(x), stddev=0.1)
            loss = tw.reduce_mean((self(x + noise, training=True) - y) ** 2)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.largest.update_state(loss)
        return {"loss": loss, "largest": self.largest.result()}


def own_step():
    model = Own()
    model.compile("adagrad")
    x, y = arrays(3)
    return model, {"x": x, "y": y, "batch_size": 8}


def eager():
    model, settings = shuffled_arrays()
    model.run_eagerly = True
    return model, settings


class Batches(tw.keras.utils.PyDataset):
    """Batches with noise of NumPy's global generator."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        x, y = arrays(3)
        rows = slice(8 * index, 8 * index + 8)
        return x[rows] + np.random.normal(size=(8, 3)).astype("float32"), y[rows]


def py_dataset():
    return dense(), {"x": Batches()}


class Loader:
    """Batches whose number nobody knows."""

    def __iter__(self):
        for index in range(4):
            yield Batches()[index]


def loader():
    return dense(), {"x": Loader()}


def generator():
    return dense(), {"x": (batch for _ in range(4) for batch in Loader()),
                     "steps_per_epoch": 4}  # fmt: skip


def two_outputs():
    inputs = tw.keras.Input((3,))
    hidden = layers.GaussianNoise(0.1)(layers.Dense(4, activation="relu")(inputs))
    outputs = {
        "a": layers.Dense(1, name="a")(hidden),
        "b": layers.Dense(1, name="b")(hidden),
    }
    model = tw.keras.Model(inputs, outputs)
    model.compile("adamax", {"a": "mse", "b": "mae"}, metrics={"a": ["mae"]})
    x, y = arrays(3)
    return model, {"x": x, "y": {"a": y, "b": -y}, "batch_size": 8}


ALL = [
    shuffled_arrays, data_set, endless_data_set, one_data_set,
    noisy_data_set, plateaus, averages, swapped_averages,
    scaled_loss, stateful_recurrence, own_step, eager, py_dataset, loader, generator,
    two_outputs,
]  # fmt: skip


def train(make, epochs=4, more=(), seed=1):
    """`fit`; the model, and all that is to be the same without an interruption."""
    tw.keras.utils.set_random_seed(seed)
    model, settings = make()
    given = [*settings.pop("callbacks", []), *more]
    history = model.fit(**settings, epochs=epochs, verbose=0, callbacks=given)
    return model, outcome(model, history)


def outcome(model, history):
    """Weights, optimizer, generators and history: name -> array."""
    found = {f"variable {i}": v.numpy() for i, v in enumerate(model.variables)}
    slots = enumerate(model.optimizer.variables)
    found |= {f"slot {i}": v.numpy() for i, v in slots}
    found |= {name: np.array(values) for name, values in history.history.items()}
    found["epochs"] = np.array(history.epoch)
    found["generator"] = tw.random.get_global_generator().state.numpy()
    return found
