"""Files between Keras and tapewright, live: each writes, the other reads and predicts.

    KERAS_BACKEND=numpy python tests/keras/files/interop.py

with Keras 3 installed, on any backend. For each model and each kind of file the
predictions must be equal to 1e-6, in half precision to 4e-3, and the dtype policies of
layers the same, both ways; what differs is printed, and the exit code is then 1.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from random_models import SIZE, RandomModels, leaves  # noqa: E402

ENDINGS = (".keras", ".h5", ".weights.h5")
LIMIT, HALF = 1e-6, 4e-3
RANDOM = (5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17, 18)


def dense(layers, model, sequential):
    net = sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="gelu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5, seed=1),
            layers.Dense(3, activation="softmax", kernel_regularizer="l2"),
        ]
    )
    net.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    return net, (6,)


def convolutional(layers, model, sequential):
    net = [
        layers.Input((8, 8, 2)),
        layers.Conv2D(4, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.SeparableConv2D(3, 3),
        layers.GroupNormalization(3),
        layers.Conv2DTranspose(2, 3, strides=2),
        layers.GlobalAveragePooling2D(),
        layers.Normalization(mean=[0.5, 0.25], variance=[1.0, 2.0]),
    ]
    return sequential(net), (8, 8, 2)


def recurrent(layers, model, sequential):
    x = layers.Input((5, 3))
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    y = layers.MultiHeadAttention(2, 3)(y, y)
    y = layers.TimeDistributed(layers.Dense(4, activation="tanh"))(y)
    y = layers.GRU(3)(layers.LayerNormalization()(y))
    return model(x, y), (5, 3)


def nested(layers, model, sequential):
    inner = sequential(
        [layers.Input((4,)), layers.Dense(3), layers.BatchNormalization()]
    )
    inner.layers[0].trainable = False
    x = layers.Input((4,))
    shared = layers.Dense(4, name="shared")
    once = shared(x)
    joined = layers.Concatenate()([inner(once), inner(shared(once))])
    return model(x, [joined, layers.Add()([once, x])]), (4,)


def operations(layers, model, sequential):
    x = layers.Input((4,))
    y = layers.Dense(4)(x) * 2.0 + x
    return model(x, y[:, 1:] - 1.0), (4,)


OWN = {}  # the layers of a package -> a class of the user's, registered there


def registered(package):
    """A layer with others inside, whose calls go along in files of tapewright."""
    layers = package.layers

    @package.saving.register_keras_serializable("interop")
    class Gated(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units
            self.parts = [layers.Dense(units), layers.Dense(units)]

        def call(self, inputs):
            value, gate = [part(inputs) for part in self.parts]
            return value * package.ops.sigmoid(gate)

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    return Gated


def own_class(layers, model, sequential):
    gated = OWN[layers](3)
    return sequential([layers.Input((4,)), gated, layers.Dense(2)]), (4,)


def mixed(layers, model, sequential):
    half = {"dtype": "mixed_float16"}
    net = sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="tanh", **half),
            layers.BatchNormalization(**half),
            layers.Dense(4, dtype="float16"),
            layers.Dense(3, activation="softmax", dtype="float32"),
        ],
    )
    net.compile(KERAS[layers].mixed_precision.LossScaleOptimizer(
        KERAS[layers].optimizers.Adam(0.5), 64.0
    ), "categorical_crossentropy")  # fmt: skip
    return net, (6,)


def mixed_functional(layers, model, sequential):
    half = {"dtype": "mixed_float16"}
    x = layers.Input((5, 3))
    y = layers.MultiHeadAttention(2, 3, **half)(x, x)
    y = layers.GRU(3, **half)(layers.LayerNormalization(**half)(y))
    return model(x, layers.Dense(2, **half)(y) * 2.0), (5, 3)


def network(layers, model, sequential):
    """A network below a new head, as in transfer learning."""
    base = KERAS[layers].applications.MobileNetV3Small(
        (32, 32, 3), 0.25, include_top=False, weights=None, pooling="avg"
    )
    base.trainable = False
    x = layers.Input((32, 32, 3))
    return model(x, layers.Dense(2)(base(x, training=False))), (32, 32, 3)


def random_graph(seed):
    """Layers and models that are shared at random, where Keras reads its own file."""

    def random(layers, model, sequential):
        draws = RandomModels(KERAS[layers], seed)
        return draws.functional(3, inputs=("tensor",))[0], (SIZE,)

    random.__name__ = f"random_{seed}"
    return random


KERAS = {}  # the layers of a package -> the package
MODELS = (
    network,
    mixed,
    mixed_functional,
    dense,
    convolutional,
    recurrent,
    nested,
    operations,
    own_class,
    *[random_graph(seed) for seed in RANDOM],
)


def randomize(model, seed):
    random = np.random.RandomState(seed)
    weights = [random.rand(*np.shape(w)) * 0.25 for w in model.get_weights()]
    model.set_weights([np.asarray(w, "float32") for w in weights])


def predictions(model, x):
    found = leaves(model.predict(x, verbose=0))
    return [np.asarray(each, "float32") for each in found]


def policies_of(model):
    layers = [each for each in model.layers if hasattr(each, "dtype_policy")]
    kinds = [type(each).__name__.replace("Functional", "Model") for each in layers]
    pairs = zip(kinds, [each.dtype_policy.name for each in layers])
    return [pair for pair in pairs if pair[0] != "InputLayer"]


def difference(make, writer, reader, ending, folder):
    """The largest between predictions before and after, relative where above 1."""
    given = writer.layers, writer.Model, writer.Sequential
    model, shape = make(*given)
    randomize(model, 1)
    path = str(Path(folder) / f"m{ending}")
    if ending == ".weights.h5":
        model.save_weights(path)
        other, _ = make(reader.layers, reader.Model, reader.Sequential)
        randomize(other, 2)
        other.load_weights(path)
    else:
        model.save(path)
        other = reader.models.load_model(path)
    policies = [policies_of(each) for each in (model, other)]
    if policies[0] != policies[1]:
        raise ValueError(f"the policies {policies[0]} became {policies[1]}")
    x = np.random.RandomState(3).rand(3, *shape).astype("float32")
    pairs = zip(predictions(model, x), predictions(other, x), strict=True)
    return max([float(np.abs(a - b).max() / max(np.abs(a).max(), 1)) for a, b in pairs])


def main():
    import keras
    import tapewright.keras

    warnings.simplefilter("ignore")
    packages = {"keras": keras, "tapewright": tapewright.keras}
    KERAS.update({each.layers: each for each in packages.values()})
    OWN.update({each.layers: registered(each) for each in packages.values()})
    failures = 0
    for make in MODELS:
        for ending in ENDINGS:
            for writer, reader in (("tapewright", "keras"), ("keras", "tapewright")):
                title = f"{make.__name__:14s} {ending:12s} {writer} -> {reader}"
                try:
                    with tempfile.TemporaryDirectory() as folder:
                        found = difference(
                            make, packages[writer], packages[reader], ending, folder
                        )
                except Exception as error:
                    print(f"{title}: {type(error).__name__}: {error}")
                    failures += 1
                    continue
                is_equal = found <= (HALF if "mixed" in make.__name__ else LIMIT)
                failures += not is_equal
                print(f"{title}: {found:.1e}{'' if is_equal else '  DIFFERS'}")
    tried = len(MODELS) * len(ENDINGS) * 2
    print(
        f"{tried - failures} of {tried} equal, with Keras {keras.__version__} on "
        f"{keras.backend.backend()}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
