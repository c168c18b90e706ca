"""Cases of checkpoints, of folders of them, of backups of `fit`, and of configs in JSON."""

import json
import os
import random
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
from golden_cases import Case, as_plain, freshly, now, wave
from golden_models import (
    after_training,
    layers_with_state,
    of_functional,
    of_model,
    trained_functional,
)

import tapewright as tw

__all__ = ["CASES"]

keras, layers = tw.keras, tw.keras.layers


def stored(path):
    """The names in the file, and the values there."""
    reader = tw.train.load_checkpoint(path)
    names = sorted(reader.get_variable_to_shape_map())
    return {"names": names} | {f"kept/{n}": reader.get_tensor(n) for n in names}


def checkpoint_case(name, make, ask, bare=True):
    """A `Checkpoint` with the parts of ``make(seed)``: those of seed 7 are written."""

    def write(folder):
        freshly()
        parts = make(7)
        path = str(folder / f"{name}.h5")
        tw.train.Checkpoint(**parts).write(path)
        return parts, stored(path)

    def read(path):
        freshly(99)
        parts = make(99)
        tw.train.Checkpoint(**parts).read(str(path)).assert_consumed()
        return parts, stored(str(path))

    def told(both):
        parts, found = both
        return found | ask(parts)

    return Case(name, [f"{name}.h5"], write, read, told, bare)


# ------------------------------------------------------------------------- optimizers


def all_optimizers(seed):
    o, rate = keras.optimizers, keras.optimizers.schedules
    made = {
        "adadelta": o.Adadelta(0.5),
        "adagrad": o.Adagrad(rate.PolynomialDecay(0.5, 9, power=2)),
        "adam": o.Adam(rate.InverseTimeDecay(0.1, 2, 0.5), amsgrad=True),
        "adamw": o.AdamW(0.1, use_ema=True, ema_overwrite_frequency=2),
        "adamax": o.Adamax(rate.CosineDecayRestarts(0.1, 3)),
        "ftrl": o.Ftrl(0.1, l1_regularization_strength=0.1),
        "lamb": o.Lamb(0.1),
        "lion": o.Lion(0.1),
        "nadam": o.Nadam(0.1, gradient_accumulation_steps=2),
        "rmsprop": o.RMSprop(0.1, centered=True, momentum=0.9, clipvalue=0.5),
        "sgd": o.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        "plain": o.SGD(0.1, loss_scale_factor=4.0),
        "scaled": o.LossScaleOptimizer(o.Adam(0.1), 8.0, dynamic_growth_steps=2),
    }
    variables = {
        name: tw.Variable(wave(2, shift=seed) + 0.1, name="w") for name in made
    }
    steps_of(made, variables, 3 if seed == 7 else 1)
    return {"optimizers": made, "variables": variables}


def steps_of(optimizers, variables, steps):
    for step in range(steps):
        for name, each in optimizers.items():
            gradient = tw.constant([0.75, -0.5]) + 0.25 * step
            each.apply_gradients([(gradient, variables[name])])


def of_optimizers(parts):
    told = {"configs": {k: v.get_config() for k, v in parts["optimizers"].items()}}
    told["slots"] = [
        v.path for each in parts["optimizers"].values() for v in each.variables
    ]
    steps_of(parts["optimizers"], parts["variables"], 3)
    for name, each in parts["optimizers"].items():
        told |= now(f"trained/{name}", [parts["variables"][name], *each.variables])
    return told


# ------------------------------------------------------------------------- metrics


def all_metrics(seed):
    """Every class of metrics, with what it is updated by."""
    m, few = keras.metrics, {"num_thresholds": 4}
    special = {
        "IoU": (2, [0]), "MeanIoU": (2,), "OneHotIoU": (2, [1]), "OneHotMeanIoU": (2,),
        "PrecisionAtRecall": (0.5, 4), "RecallAtPrecision": (0.5, 4),
        "SensitivityAtSpecificity": (0.5, 4), "SpecificityAtSensitivity": (0.5, 4),
        "TopKCategoricalAccuracy": (1,), "SparseTopKCategoricalAccuracy": (1,),
    }  # fmt: skip
    made = {}
    for name in METRICS:
        options = few if name == "AUC" else {}
        made[name] = getattr(m, name)(*special.get(name, ()), **options)
        updated(made[name], name, 0.0 if seed == 7 else 0.125)
    return {"metrics": made}


METRICS = [
    "AUC", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "BinaryIoU",
    "CategoricalAccuracy", "CategoricalCrossentropy", "CategoricalHinge",
    "ConcordanceCorrelation", "CosineSimilarity", "F1Score", "FBetaScore", "FalseNegatives",
    "FalsePositives", "Hinge", "IoU", "KLDivergence", "LogCoshError", "Mean",
    "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanIoU", "MeanSquaredError",
    "MeanSquaredLogarithmicError", "OneHotIoU", "OneHotMeanIoU", "PearsonCorrelation",
    "Poisson", "Precision", "PrecisionAtRecall", "R2Score", "Recall", "RecallAtPrecision",
    "RootMeanSquaredError", "SensitivityAtSpecificity", "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity", "SquaredHinge", "Sum", "TopKCategoricalAccuracy",
    "TrueNegatives", "TruePositives",
]  # fmt: skip


def updated(metric, name, shift=0.0):
    y_pred = np.float32([[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]]) - np.float32(shift)
    y_true = np.float32([[0, 1], [1, 0], [0, 1]])
    if name in ("Mean", "Sum"):
        metric.update_state(y_pred)
    elif name in ("IoU", "MeanIoU"):
        metric.update_state(y_true[:, 0], (y_pred[:, 0] > 0.3).astype("float32"))
    elif name.startswith("Sparse"):
        metric.update_state(y_true[:, 1], y_pred)
    else:
        metric.update_state(y_true, y_pred)


def of_metrics(parts):
    told = {
        "configs": {name: each.get_config() for name, each in parts["metrics"].items()}
    }
    for name, metric in parts["metrics"].items():
        told[f"result/{name}"] = metric.result()
        updated(metric, name, 0.0625)
        told[f"updated/{name}"] = metric.result()
    return told


# ------------------------------------------------------------------------- layers


def all_layers(seed):
    made = {}
    for name, (layer, shape) in layers_with_state().items():
        if "Discretization" in name:
            layer.adapt(wave(8, 2, shift=seed))
        else:
            called(name, layer, shape, training=True)
        made[name] = layer
    q, v = tw.constant(wave(2, 4, 2)), tw.constant(wave(2, 3, 2))
    made["heads"] = layers.MultiHeadAttention(2, 1)
    made["groups"] = layers.GroupQueryAttention(1, 2, 1)
    made["attention"] = layers.Attention(use_scale=True, dropout=0.3, seed=1)
    made["additive"] = layers.AdditiveAttention()
    for name in ("heads", "groups"):
        made[name](q, v)
    for name in ("attention", "additive"):
        made[name]([q, v])
    made["stateful"] = layers.GRU(2, stateful=True)
    made["stateful"](v)
    made["cells"] = layers.RNN([layers.LSTMCell(1), layers.GRUCell(1)], stateful=True)
    made["cells"](v)
    made["adapted"] = layers.Normalization()
    made["adapted"].adapt(wave(8, 2, shift=seed))
    for layer in made.values():
        for i, weight in enumerate(layer.trainable_weights):
            weight.assign(weight + wave(*weight.shape, shift=i + seed) / 8)
    return {"layers": made}


def called(name, layer, shape, training):
    x = np.ones((2, 3), "int32") if "Embedding" in name else wave(2, *shape)
    return (
        layer(x, training=training) if "raining" in layer_arguments(layer) else layer(x)
    )


def layer_arguments(layer):
    import inspect

    return " ".join(inspect.signature(type(layer).call).parameters)


def of_layers(parts):
    told = {}
    for name, layer in parts["layers"].items():
        told[f"names/{name}"] = [v.path for v in layer.variables]
        if name[:2].isdigit():
            _, shape = layers_with_state()[name]
            for training in (False, True):
                told[f"{training}/{name}"] = called(name, layer, shape, training)
    q, v = tw.constant(wave(2, 4, 2)), tw.constant(wave(2, 3, 2))
    made = parts["layers"]
    told |= {name: made[name](q, v) for name in ("heads", "groups")}
    told |= {name: made[name]([q, v]) for name in ("attention", "additive")}
    return told | {name: made[name](v) for name in ("stateful", "cells", "adapted")}


# ------------------------------------------------------------------------- compiled models


def compiled_models(seed):
    """Several losses and metrics; layers and metrics as attributes of a user's model."""
    import golden_users as users

    scaled = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.RMSprop(0.01), 16.0, 2
    )
    pair = users.Pair(2, name="pair")
    pair.compile(scaled, "mse", metrics=["mae"], weighted_metrics=[users.Span()])
    pair.fit(wave(4, 3), wave(4, 1), batch_size=2, verbose=0)
    pair.largest.update_state(float(seed))
    return {"net": trained_functional(), "pair": pair}


def of_compiled(parts):
    pair = parts["pair"]
    told = {"largest": pair.largest.result()}
    told |= {f"pair/{k}": v for k, v in of_model(pair, wave(4, 3), wave(4, 1)).items()}
    return told | {f"net/{k}": v for k, v in of_functional(parts["net"]).items()}


# ------------------------------------------------------------------------- a training loop


def loop_parts(seed, user=True):
    import golden_users as users

    random_ = random.Random(seed)
    numbers = np.random.Generator(np.random.PCG64(seed))
    data = (
        tw.data.Dataset.range(20)
        .shuffle(7, seed=3)
        .map(lambda x: x * 2)
        .batch(3)
        .repeat(2)
    )
    batches = iter(data)
    net = keras.Sequential(
        [layers.Dense(2, name="a"), layers.Dense(1, name="b")], name="net"
    )
    net.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    parts = {
        "net": net, "tower": users.Tower(2.0 if seed == 7 else 0.0), "batches": batches,
        "counter": users.Counter(seed), "step": tw.Variable(seed, dtype="int64"),
        "draws": tw.random.Generator.from_seed(seed), "numbers": numbers, "chances": random_,
        "list": [tw.Variable([seed + 0.5]),
                 {"deep": [tw.Variable(seed)], 3: users.Counter(seed)}],
    }  # fmt: skip
    net.fit(wave(4, 3), wave(4, 1), verbose=0)
    parts["draws"].normal([2])
    for _ in range(5 if seed == 7 else 1):
        next(batches)
    parts["counter"].history[seed] = ["a", 1.5, ("b", True)]
    return parts


def write_loop(folder):
    freshly()
    parts = loop_parts(7)
    checkpoint = tw.train.Checkpoint(**parts)
    manager = tw.train.CheckpointManager(
        checkpoint, folder / "manager", 2, step_counter=parts["step"],
        keep_best=("loss", "min"),
    )  # fmt: skip
    manager.save(metrics={"loss": 0.5})
    parts["step"].assign_add(1)
    next(parts["batches"])
    manager.save(metrics={"loss": 1.5})
    return parts, manager, tw.random.get_global_generator().state.numpy()


def read_loop(path):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path.parent, copy := Path(folder) / "manager")
        freshly(99)
        parts = loop_parts(99)
        manager = tw.train.CheckpointManager(
            tw.train.Checkpoint(**parts), copy, 2, step_counter=parts["step"],
            keep_best=("loss", "min"),
        )  # fmt: skip
        manager.restore_or_initialize()
        answers = of_manager(manager)
        state = tw.random.get_global_generator().state.numpy()
    return parts, answers, state


def of_manager(manager):
    return {
        "latest": f"{Path(manager.latest_checkpoint).name}.h5",
        "best": f"{Path(manager.best_checkpoint).name}.h5",
        "all": [f"{Path(each).name}.h5" for each in manager.checkpoints],
        "names": [
            [n, list(s)] for n, s in tw.train.list_variables(manager.latest_checkpoint)
        ],
    }


def of_loop(live):
    parts, manager, state = live
    told = dict(manager) if isinstance(manager, dict) else of_manager(manager)
    tower, counter = parts["tower"], parts["counter"]
    told |= {
        "kept/global": state,
        "counters": [counter.value, str(counter.history), parts["list"][1][3].value],
        "chances": [parts["chances"].random() for _ in range(3)],
    }  # fmt: skip
    told |= now("kept/values", [
        parts["step"], tower.w, tower._hidden, tower.parts[0].bias, tower.parts[1]["a/b"],
        tower.table[1], tower.table["two"][0], parts["list"][0], parts["list"][1]["deep"][0],
    ])  # fmt: skip
    for i in range(4):
        told[f"kept/batch/{i}"] = next(parts["batches"])
        told[f"draw/{i}"] = parts["draws"].normal([3])
        told[f"tower/{i}"] = tower.draws.uniform([2])
        told[f"kept/integers/{i}"] = parts["numbers"].integers(0, 1000, 3)
    return told | after_training(parts["net"], wave(4, 3), wave(4, 1))


# ------------------------------------------------------------------------- backups


class Interrupt(keras.callbacks.Callback):
    """Ends `fit` after so many batches, when the backup was made."""

    comes_last = True

    def __init__(self, after):
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def fitted(name, seed, folder=None, after=None):
    """Trains; with a backup in a folder, and with an interruption."""
    freshly(seed)
    model = keras.Sequential([layers.Dense(3, "tanh", name="a"), layers.Dropout(0.3, name="d"),
                              layers.BatchNormalization(name="n"), layers.Dense(1, name="b")],
                             name="fitted")  # fmt: skip
    x, y = wave(14, 3), wave(14, 1)
    told = [
        keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=5.0),
        keras.callbacks.EarlyStopping("loss", patience=3, restore_best_weights=True),
    ]
    if name != "epoch_end":
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse", metrics=["mae"])
        given = {"x": x, "y": y, "batch_size": 4, "validation_data": (x[:4], y[:4])}
        freq, after = 1, after and 6
    else:
        model.compile(keras.optimizers.SGD(0.01, use_ema=True), "mse")
        data = tw.data.Dataset.from_tensor_slices((x, y)).shuffle(9).batch(4)
        given, freq, after = {"x": data}, "epoch", after and 7
    if folder is not None:
        told.append(
            keras.callbacks.BackupAndRestore(
                folder, freq, name == "double", delete_checkpoint=False
            )
        )
    told += [Interrupt(after)] if after else []
    history = model.fit(**given, epochs=4, callbacks=told, verbose=0)
    return model, history


def backup_case(name):
    def write(folder):
        try:
            fitted(name, 7, folder / name, after=True)
        except KeyboardInterrupt:
            pass
        return fitted(name, 7)

    def read(path):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(path.parent, copy := Path(folder) / "backup")
            with warnings.catch_warnings():
                if name == "double":  # the backup before the last one has to do
                    os.truncate(copy / "latest.h5", 1000)
                    warnings.filterwarnings("ignore", "skipping a backup")
                return fitted(name, 99, copy)

    def ask(both):
        model, history = both
        told = now("weights", model.weights) | now("slots", model.optimizer.variables)
        told["epochs"] = history.epoch
        return told | {
            f"history/{k}": np.asarray(v) for k, v in history.history.items()
        }

    beside = [f"{name}/previous.h5"] if name == "double" else []
    return Case(
        f"backup_{name}", [f"{name}/latest.h5"], write, read, ask, beside=beside
    )


# ------------------------------------------------------------------------- JSON


def objects():
    """One of every class that has a config, where it stands in a file."""
    o, c = keras.regularizers, keras.constraints
    i = keras.initializers
    found = {
        "regularizers": [o.L1(0.1), o.L2(0.2), o.L1L2(0.1, 0.2)],
        "constraints": [c.MaxNorm(2.0), c.NonNeg(), c.UnitNorm(0), c.MinMaxNorm(0.1, 1.0)],
        "initializers": [i.Zeros(), i.Ones(), i.Constant(0.5), i.GlorotUniform(3),
                         i.HeNormal(1), i.Orthogonal(0.5, 2), i.TruncatedNormal(0.0, 0.1, 4),
                         i.RandomUniform(-0.1, 0.2, 1), i.VarianceScaling(2.0, "fan_out")],
        "optimizers": [*all_optimizers(7)["optimizers"].values()],
        "metrics": [*all_metrics(7)["metrics"].values()],
        "losses": [getattr(keras.losses, name)() for name in LOSSES],
        "layers": [*[layer for layer, _ in layers_with_state().values()], *stateless()],
    }  # fmt: skip
    return [each for group in found.values() for each in group]


LOSSES = [
    "BinaryCrossentropy", "BinaryFocalCrossentropy", "CTC", "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy", "CategoricalGeneralizedCrossEntropy", "CategoricalHinge",
    "Circle", "CosineSimilarity", "Dice", "Hinge", "Huber", "KLDivergence", "LogCosh",
    "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError",
    "MeanSquaredLogarithmicError", "Poisson", "SparseCategoricalCrossentropy",
    "SquaredHinge", "Tversky",
]  # fmt: skip


def stateless():
    n, two = layers, 2
    plain = (n.Flatten, n.Identity, n.ReLU, n.ELU, n.LeakyReLU, n.Softmax, n.Masking, n.Add,
             n.Subtract, n.Multiply, n.Average, n.Maximum, n.Minimum, n.Concatenate,
             n.UnitNormalization, n.GlobalAveragePooling1D, n.GlobalAveragePooling2D,
             n.GlobalAveragePooling3D, n.GlobalMaxPooling1D, n.GlobalMaxPooling2D,
             n.GlobalMaxPooling3D, n.ActivityRegularization)  # fmt: skip
    sized = (n.MaxPooling1D, n.MaxPooling2D, n.MaxPooling3D, n.AveragePooling1D,
             n.AveragePooling2D, n.AveragePooling3D, n.UpSampling1D, n.UpSampling2D,
             n.UpSampling3D, n.ZeroPadding1D, n.ZeroPadding2D, n.ZeroPadding3D, n.Cropping1D,
             n.Cropping2D, n.Cropping3D, n.RepeatVector, n.AdaptiveAveragePooling1D,
             n.AdaptiveAveragePooling2D, n.AdaptiveAveragePooling3D, n.AdaptiveMaxPooling1D,
             n.AdaptiveMaxPooling2D, n.AdaptiveMaxPooling3D)  # fmt: skip
    return [
        *[kind() for kind in plain], *[kind(two) for kind in sized], n.Activation("gelu"),
        n.Permute((2, 1)), n.Reshape((-1, 2)), n.Dot(1), n.Rescaling(0.5, 1.0),
        n.Resizing(4, 4), n.CenterCrop(2, 2), n.CategoryEncoding(3, "one_hot"),
    ]  # fmt: skip


def write_objects(folder):
    freshly()
    configs = [keras.saving.serialize_keras_object(each) for each in objects()]
    text = [json.dumps(as_plain(each), sort_keys=True) for each in configs]
    (folder / "objects.json").write_text("[\n" + ",\n".join(text) + "\n]\n")
    return configs


def read_objects(path):
    freshly(99)
    made = [
        keras.saving.deserialize_keras_object(c) for c in json.loads(path.read_text())
    ]
    return [keras.saving.serialize_keras_object(each) for each in made]


def write_json(folder):
    from golden_models import functional, zoo

    freshly()
    models = [functional(), zoo()]
    texts = [json.dumps(json.loads(each.to_json()), sort_keys=True) for each in models]
    (folder / "models.json").write_text("[\n" + ",\n".join(texts) + "\n]\n")
    return models


def read_json(path):
    freshly(99)
    return [
        keras.models.model_from_json(json.dumps(c))
        for c in json.loads(path.read_text())
    ]


def of_json(models):
    return {
        "configs": [json.loads(each.to_json()) for each in models],
        "paths": [[v.path for v in each.weights] for each in models],
        "shapes": [[list(v.shape) for v in each.weights] for each in models],
    }


CASES = [
    checkpoint_case("optimizers", all_optimizers, of_optimizers),
    checkpoint_case("metrics", all_metrics, of_metrics),
    checkpoint_case("layers", all_layers, of_layers),
    checkpoint_case("compiled", compiled_models, of_compiled, bare=False),
    Case("manager", ["manager/ckpt-2.h5"], write_loop, read_loop, of_loop, False,
         beside=["manager/ckpt-1.h5"]),
    backup_case("middle"),
    backup_case("epoch_end"),
    backup_case("double"),
    Case("objects", ["objects.json"], write_objects, read_objects,
         lambda configs: {"configs": configs}),
    Case("models", ["models.json"], write_json, read_json, of_json),
]  # fmt: skip
