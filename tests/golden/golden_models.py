"""Cases of whole models and of their weights, in Keras' kinds of files."""

import json

import numpy as np
from golden_cases import Case, freshly, now, wave

import tapewright as tw

__all__ = ["CASES", "after_training", "layers_with_state", "of_model", "zoo"]

keras, layers, ops = tw.keras, tw.keras.layers, tw.keras.ops


# ------------------------------------------------------------------------- questions


def of_model(model, x, y=None, steps=2, prefix=""):
    """Config, names, stored values, outputs, gradients, then training."""
    told = {"config": model.get_config(), "json": json.loads(model.to_json())}
    told["paths"] = [v.path for v in model.weights]
    told["layers"] = [[each.name, type(each).__name__] for each in model.layers]
    told |= now("kept/weights", model.weights)
    if model.compiled:
        told["compile"] = model.get_compile_config()
        told["slots"] = [v.path for v in model.optimizer.variables]
        told |= now("kept/slots", model.optimizer.variables)
    inputs = [tw.constant(each) for each in (x if isinstance(x, list) else [x])]
    with tw.GradientTape() as tape:
        outputs = model(inputs if isinstance(x, list) else inputs[0])
        outputs = [tw.cast(each, "float32") for each in tw.nest.flatten(outputs)]
        loss = tw.add_n([tw.reduce_sum(each * each) for each in outputs])
    gradients = tape.gradient(loss, model.trainable_variables)
    for kind, values in (("outputs", outputs), ("gradients", gradients)):
        for i, value in enumerate(values):
            if value is not None:
                told[f"{prefix}{kind}/{i}"] = tw.convert_to_tensor(value)
    if y is not None:
        told |= after_training(model, x, y, steps, prefix)
    return told


def after_training(model, x, y, steps=2, prefix=""):
    """Losses and metrics of steps on a batch, and all values afterwards."""
    told = {}
    for step in range(steps):
        logs = model.train_on_batch(x, y, return_dict=True)
        told |= {f"{prefix}step/{step}/{name}": logs[name] for name in logs}
    told |= now(f"{prefix}trained/weights", model.weights)
    told |= now(f"{prefix}trained/slots", model.optimizer.variables)
    logs = model.evaluate(x, y, verbose=0, return_dict=True)
    return told | {f"{prefix}evaluated/{k}": np.float32(v) for k, v in logs.items()}


def model_case(name, endings, make, ask, bare=True):
    """A model that `make` gives trained, in a file of each ending."""

    def write(folder):
        freshly()
        model = make()
        for ending in endings:
            model.save(folder / f"{name}{ending}")
        return model

    files = [f"{name}{ending}" for ending in endings]
    return Case(name, files, write, keras.models.load_model, ask, bare)


# ------------------------------------------------------------------------- sequential


def sequential(rate=None):
    rate = rate or keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.9)
    model = keras.Sequential([
        keras.Input((4,)),
        layers.Dense(3, "relu", kernel_regularizer=keras.regularizers.L2(0.01),
                     bias_constraint=keras.constraints.MaxNorm(1.0), name="first"),
        layers.BatchNormalization(name="norm"),
        layers.Dropout(0.3, name="drop"),
        layers.Dense(3, "softmax", name="last"),
    ], name="line")  # fmt: skip
    model.compile(
        keras.optimizers.SGD(rate, momentum=0.9, use_ema=True, ema_momentum=0.8),
        keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)],
    )
    return model


LINE = wave(6, 4), np.array([0, 1, 2, 0, 1, 2])


def trained_sequential():
    model = sequential()
    model.fit(*LINE, epochs=2, batch_size=3, verbose=0)
    return model


def write_weights(folder):
    freshly()
    model = keras.Sequential([keras.Input((2,)), layers.Dense(2, name="a"),
                              layers.Dense(1, name="b")])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01, amsgrad=True), "mse")
    model.fit(wave(4, 2), wave(4, 1), verbose=0)
    model.save_weights(folder / "line.weights.h5")
    return model


def read_weights(path):
    freshly(99)
    model = keras.Sequential([keras.Input((2,)), layers.Dense(2, name="a"),
                              layers.Dense(1, name="b")])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01, amsgrad=True), "mse")
    model.optimizer.build(model.trainable_variables)
    model.load_weights(path)
    return model


# ------------------------------------------------------------------------- functional


def functional():
    a, b = keras.Input((3,), name="a"), keras.Input((2, 2), name="b")
    shared = layers.Dense(3, "tanh", name="shared")
    inner = keras.Input((3,), name="inner_input")
    nested = keras.Model(inner, layers.Dense(2, name="deep")(inner), name="nested")
    flat = ops.reshape(b, (-1, 4))
    x = shared(a) + shared(a * 2.0 - 1.0)
    x = ops.concatenate([nested(x), nested(shared(a)), flat[:, 1:3]], axis=-1)
    x = ops.sin(x) / (1.0 + ops.square(x))
    first = layers.Dense(1, name="first")(x)
    second = layers.Dense(2, "softmax", name="second")(ops.mean(x, -1, keepdims=True))
    return keras.Model({"a": a, "b": b}, {"first": first, "second": second}, name="net")


def trained_functional():
    model = functional()
    rate = keras.optimizers.schedules.CosineDecay(0.01, 10, warmup_target=0.02,
                                                  warmup_steps=3)  # fmt: skip
    model.compile(
        keras.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0),
        {"first": keras.losses.Huber(0.5), "second": "categorical_crossentropy"},
        loss_weights={"first": 2.0, "second": 0.5},
        metrics={"first": ["mae"], "second": [keras.metrics.AUC(num_thresholds=5)]},
    )
    model.fit(*NET, epochs=2, batch_size=2, verbose=0)
    return model


NET = (
    {"a": wave(4, 3), "b": wave(4, 2, 2)},
    {"first": wave(4, 1), "second": np.eye(2, dtype="float32")[[0, 1, 1, 0]]},
)


def of_functional(model):
    x, y = NET
    with tw.GradientTape() as tape:
        outputs = model(x)
        loss = tw.reduce_sum(outputs["first"] ** 2) + outputs["second"][0, 0]
    told = {f"gradients/{i}": tw.convert_to_tensor(g) for i, g in
            enumerate(tape.gradient(loss, model.trainable_variables))}  # fmt: skip
    told |= {f"outputs/{k}": v for k, v in outputs.items()}
    told |= now("kept/slots", model.optimizer.variables)
    told |= now("kept/weights", model.weights)
    told |= {
        "config": model.get_config(), "compile": model.get_compile_config(),
        "paths": [v.path for v in model.weights],
        "rate": float(model.optimizer.learning_rate.numpy()),
    }  # fmt: skip
    return told | after_training(model, x, y)


# ------------------------------------------------------------------------- all layers


def layers_with_state():
    """Layers with weights or random states: name -> layer and the shape of its inputs."""
    adapted = layers.Normalization(mean=[0.5, 1.0], variance=[2.0, 3.0])
    image, row, seq, cube = (4, 4, 2), (4, 2), (3, 2), (2, 2, 2, 2)
    einsum = layers.EinsumDense("abc,cd->abd", (None, 2), bias_axes="d")
    backward = layers.SimpleRNN(1, go_backwards=True)
    cells = [layers.LSTMCell(2), layers.GRUCell(2)]
    made = [
        (layers.Dense(2, use_bias=False), row),
        (einsum, row),
        (layers.Embedding(7, 2), (3,)),
        (layers.PReLU(), row),
        (layers.Conv1D(2, 2), row),
        (layers.Conv2D(2, 2, padding="same"), image),
        (layers.Conv3D(1, 2), cube),
        (layers.Conv1DTranspose(1, 2), row),
        (layers.Conv2DTranspose(1, 2), image),
        (layers.Conv3DTranspose(1, 1), cube),
        (layers.DepthwiseConv1D(2), row),
        (layers.DepthwiseConv2D(2), image),
        (layers.SeparableConv1D(2, 2), row),
        (layers.SeparableConv2D(2, 2), image),
        (layers.BatchNormalization(), row),
        (layers.LayerNormalization(), row),
        (layers.GroupNormalization(2), image),
        (layers.RMSNormalization(), row),
        (layers.SpectralNormalization(layers.Dense(2)), (2,)),
        (adapted, (2,)),
        (layers.Discretization(num_bins=3), (2,)),
        (layers.LSTM(2, return_sequences=True), seq),
        (layers.GRU(2), seq),
        (layers.SimpleRNN(2, dropout=0.2), seq),
        (layers.RNN(cells), seq),
        (layers.RNN(layers.SimpleRNNCell(2)), seq),
        (layers.Bidirectional(layers.LSTM(1)), seq),
        (layers.Bidirectional(layers.GRU(1), backward_layer=backward), seq),
        (layers.TimeDistributed(layers.Dense(1)), seq),
        (layers.Dropout(0.4, seed=1), row),
        (layers.SpatialDropout1D(0.4), row),
        (layers.SpatialDropout2D(0.4), image),
        (layers.SpatialDropout3D(0.4), cube),
        (layers.AlphaDropout(0.3, seed=3), row),
        (layers.GaussianDropout(0.3), row),
        (layers.GaussianNoise(0.3), row),
        (layers.RandomBrightness(0.3, seed=1), image),
        (layers.RandomContrast(0.3), image),
        (layers.RandomCrop(3, 3), image),
        (layers.RandomFlip(seed=2), image),
        (layers.RandomRotation(0.2), image),
        (layers.RandomTranslation(0.2, 0.2), image),
        (layers.RandomZoom(0.2), image),
    ]
    return {
        f"{i:02d}_{type(x).__name__}": (x, shape) for i, (x, shape) in enumerate(made)
    }


KEPT_WHOLE = (
    "Embedding", "PReLU", "SeparableConv2D", "Conv3D", "GroupNormalization",
    "SpectralNormalization", "Normalization", "RNN", "Bidirectional", "TimeDistributed",
    "RandomFlip", "GaussianNoise",
)  # fmt: skip


def zoo():
    """A model of some of them, with attention and masks."""
    inputs, ends = {}, []
    for layer, shape in layers_with_state().values():
        if type(layer).__name__ not in KEPT_WHOLE:
            continue
        dtype = "int32" if isinstance(layer, layers.Embedding) else "float32"
        x = inputs.setdefault((shape, dtype), keras.Input(shape, dtype=dtype))
        ends.append(layer(x))
    seq, row = inputs[(3, 2), "float32"], inputs[(4, 2), "float32"]
    ends.append(layers.MultiHeadAttention(2, 1)(row, seq))
    ends.append(layers.GroupQueryAttention(1, 2, 1)(row, seq))
    ends.append(layers.Attention(use_scale=True)([row, seq]))
    ends.append(layers.LSTM(1, name="masked")(layers.Masking(0.0)(seq)))
    return keras.Model([*inputs.values()], ends, name="zoo")


def drawn_zoo():
    model = zoo()
    model(inputs_of(model), training=True)
    return model


def inputs_of(model):
    return [
        (np.arange(6).reshape(2, 3) % 7).astype("int32")
        if each.dtype == "int32"
        else wave(2, *each.shape[1:], shift=i)
        for i, each in enumerate(model.inputs)
    ]


def of_zoo(model):
    x = inputs_of(model)
    told = {"paths": [v.path for v in model.weights], "config": model.get_config()}
    told |= now("kept/weights", model.weights)
    for training in (False, True, True):
        for layer, each in zip(model.output_names, model(x, training=training)):
            told[f"{training}/{layer}"] = each
    return told


# ------------------------------------------------------------------------- dtypes


def trained_dtypes():
    model = keras.Sequential([
        keras.Input((3,)), layers.Dense(2, dtype="float64", name="double"),
        layers.Dense(2, dtype="float16", name="small"),
    ], name="dtypes")  # fmt: skip
    inner = keras.optimizers.RMSprop(0.01, centered=True, momentum=0.5)
    model.compile(keras.optimizers.LossScaleOptimizer(inner, 1024.0, 3), "mse")
    model.fit(wave(4, 3), wave(4, 2), epochs=2, verbose=0)
    return model


# ------------------------------------------------------------------------- random states


def trained_seeded():
    """Layers with seeds of their own, and arguments that are none of the defaults."""
    gru = layers.GRU(3, reset_after=False, return_sequences=True)
    model = keras.Sequential(
        [
            keras.Input((3, 2)),
            layers.Bidirectional(gru, merge_mode="sum", name="both"),
            layers.Dropout(0.5, seed=3, name="drop"),
            layers.LSTM(2, go_backwards=True, unit_forget_bias=False, name="back"),
            layers.GaussianNoise(0.5, seed=4, name="noise"),
            layers.Dense(1, "gelu", use_bias=False, name="last"),
        ],
        name="seeded",
    )
    model.compile(keras.optimizers.SGD(0.01), keras.losses.MeanAbsoluteError())
    model.fit(wave(4, 3, 2), wave(4, 1), batch_size=2, verbose=0)
    return model


# ------------------------------------------------------------------------- users' classes


def trained_registered():
    import golden_users as users

    inputs = keras.Input((3,))
    x = users.Packed(name="packed")(users.Scale(1.5, name="scale")(inputs))
    model = keras.Model(inputs, layers.Dense(1, name="last")(x), name="registered")
    model.compile(
        keras.optimizers.Nadam(0.01), users.cubed_error, metrics=[users.Span()]
    )
    model.fit(wave(4, 3), wave(4, 1), epochs=2, batch_size=2, verbose=0)
    return model


def trained_pair():
    import golden_users as users

    model = users.Pair(4, name="pair")
    model(wave(4, 3))
    model.compile(keras.optimizers.Adagrad(0.05), "mean_squared_error", metrics=["mae"])
    model.fit(wave(4, 3), wave(4, 1), verbose=0)
    return model


def trained_unregistered():
    import golden_users as users

    inputs = keras.Input((3,))
    x = users.Clipped(name="clipped")(layers.Dense(3, name="dense")(inputs))
    model = keras.Model(inputs, layers.Dense(2, name="last")(x), name="unregistered")
    model.get_layer("clipped").scale.assign([1.0, 2.0, 3.0])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    model.fit(wave(4, 3), wave(4, 2), batch_size=2, verbose=0)
    return model


def of_unregistered(model):
    x, told = tw.constant(wave(4, 3)), {}
    for training in (False, True):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = tw.reduce_sum(model(x, training=training) ** 2)
            first = tape.gradient(y, [x, *model.trainable_variables])
        second = outer.gradient(first[0], [x, *model.trainable_variables])
        for i, each in enumerate([y, *first, *second]):
            told[f"{training}/{i}"] = tw.convert_to_tensor(
                0.0 if each is None else each
            )
    return told | after_training(model, wave(4, 3), wave(4, 2))


CASES = [
    model_case("sequential", [".keras", ".h5"], trained_sequential,
               lambda model: of_model(model, *LINE)),
    Case("weights", ["line.weights.h5"], write_weights, read_weights,
         lambda model: of_model(model, wave(4, 2), wave(4, 1))),
    model_case("functional", [".keras", ".h5"], trained_functional, of_functional),
    model_case("seeded", [".keras", ".h5"], trained_seeded,
               lambda model: of_model(model, wave(4, 3, 2), wave(4, 1))),
    model_case("zoo", [".keras"], drawn_zoo, of_zoo),
    model_case("dtypes", [".keras"], trained_dtypes, lambda model: of_model(
        model, wave(4, 3), wave(4, 2), prefix="coarse/")),
    model_case("registered", [".keras", ".h5"], trained_registered,
               lambda model: of_model(model, wave(4, 3), wave(4, 1)), bare=False),
    model_case("pair", [".keras", ".h5"], trained_pair,
               lambda model: of_model(model, wave(4, 3), wave(4, 1)), bare=False),
    model_case("unregistered", [".keras", ".h5"], trained_unregistered, of_unregistered),
]  # fmt: skip
