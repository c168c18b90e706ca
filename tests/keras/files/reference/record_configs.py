"""What Keras 3 writes of its objects and models: ``configs_*.json``.

Run with Keras 3 installed, ``KERAS_BACKEND=numpy python record_configs.py``. There is a
config for each class of layers (``configs_layers``), for each of initializers, optimizers,
losses and so on (``configs_objects``), and some for functional models with shared layers,
models inside of each other, several inputs and outputs, and what `compile` was given
(``configs_models``).
"""

import inspect
import json
from pathlib import Path

HERE = Path(__file__).parent

# Arguments of the classes whose constructors need some, and of a few that say more so.
LAYERS = {
    "Activation": {"activation": "relu"},
    "ActivityRegularization": {"l1": 0.5},
    "AdaptiveAveragePooling1D": {"output_size": 3},
    "AdaptiveAveragePooling2D": {"output_size": 3},
    "AdaptiveAveragePooling3D": {"output_size": (1, 2, 3)},
    "AdaptiveMaxPooling1D": {"output_size": 3},
    "AdaptiveMaxPooling2D": {"output_size": (2, 3)},
    "AdaptiveMaxPooling3D": {"output_size": 2},
    "AlphaDropout": {"rate": 0.25, "seed": 3, "noise_shape": (None, 1)},
    "AveragePooling1D": {"pool_size": 3, "strides": 1, "padding": "same"},
    "AveragePooling2D": {"pool_size": (2, 3), "strides": 2},
    "AveragePooling3D": {"pool_size": 2},
    "BatchNormalization": {"axis": 1, "momentum": 0.5, "center": False},
    "CategoryEncoding": {"num_tokens": 4, "output_mode": "count"},
    "CenterCrop": {"height": 3, "width": 4},
    "Conv1D": {"filters": 2, "kernel_size": 3},
    "Conv1DTranspose": {"filters": 2, "kernel_size": 3},
    "Conv2D": {"filters": 4, "kernel_size": (2, 3), "strides": 2, "padding": "same",
               "groups": 2, "activation": "relu", "use_bias": False},
    "Conv2DTranspose": {"filters": 2, "kernel_size": 3, "strides": 2,
                        "output_padding": 1, "padding": "same"},
    "Conv3D": {"filters": 2, "kernel_size": 1},
    "Conv3DTranspose": {"filters": 2, "kernel_size": 1},
    "ConvLSTM1D": {"filters": 2, "kernel_size": 3, "stateful": True},
    "ConvLSTM2D": {"filters": 2, "kernel_size": (3, 1), "padding": "same",
                   "recurrent_dropout": 0.25, "seed": 3, "return_state": True},
    "ConvLSTM3D": {"filters": 2, "kernel_size": 1, "data_format": "channels_first"},
    "Cropping2D": {"cropping": ((1, 2), (0, 1))},
    "Dense": {"units": 2, "activation": "gelu", "kernel_regularizer": "l2",
              "bias_constraint": "non_neg", "trainable": False},
    "DepthwiseConv1D": {"kernel_size": 3},
    "DepthwiseConv2D": {"kernel_size": 3, "depth_multiplier": 2},
    "Discretization": {"num_bins": 4, "epsilon": 0.5},
    "Dot": {"axes": (1, 2), "normalize": True},
    "Dropout": {"rate": 0.25, "seed": 3},
    "EinsumDense": {"equation": "abc,cde->abde", "output_shape": (None, 3, 4),
                    "bias_axes": "de"},
    "Embedding": {"input_dim": 5, "output_dim": 3, "mask_zero": True},
    "GRU": {"units": 3, "reset_after": False, "return_state": True, "dropout": 0.25,
            "seed": 4, "go_backwards": True, "stateful": True},
    "GRUCell": {"units": 3},
    "GaussianDropout": {"rate": 0.25, "seed": 3},
    "GaussianNoise": {"stddev": 0.25, "seed": 3},
    "GlobalAveragePooling1D": {"keepdims": True},
    "GroupNormalization": {"groups": 2, "axis": 1},
    "GroupQueryAttention": {"head_dim": 4, "num_query_heads": 4,
                            "num_key_value_heads": 2},
    "InputLayer": {"batch_shape": (2, None), "dtype": "int32"},
    "LSTM": {"units": 3, "unit_forget_bias": False, "return_sequences": True},
    "LSTMCell": {"units": 3},
    "LayerNormalization": {"axis": [1, 2], "scale": False},
    "MultiHeadAttention": {"num_heads": 2, "key_dim": 3, "value_dim": 4,
                           "attention_axes": [1], "output_shape": 5},
    "Normalization": {"mean": [1.0, 2.0], "variance": [1.0, 3.0], "invert": True},
    "PReLU": {"shared_axes": [1]},
    "Permute": {"dims": (2, 1)},
    "RandAugment": {"num_ops": 3, "factor": 0.25, "seed": 3},
    "RandomBrightness": {"factor": (-0.5, 0.5), "seed": 3},
    "RandomColorJitter": {"brightness_factor": 0.5, "hue_factor": (0.25, 0.5)},
    "RandomContrast": {"factor": (0.25, 0.5), "seed": 3},
    "RandomCrop": {"height": 3, "width": 4, "seed": 3},
    "RandomFlip": {"mode": "horizontal", "seed": 3},
    "RandomHue": {"factor": 0.5, "value_range": (0, 1), "seed": 3},
    "RandomRotation": {"factor": (-0.5, 0.25), "fill_mode": "nearest", "seed": 3},
    "RandomShear": {"x_factor": (0.25, 0.5), "y_factor": (0.0, 0.5), "seed": 3},
    "RandomTranslation": {"height_factor": 0.25, "width_factor": 0.5, "seed": 3},
    "RandomZoom": {"height_factor": (-0.5, 0.25), "seed": 3},
    "ReLU": {"max_value": 6.0, "negative_slope": 0.5},
    "RepeatVector": {"n": 3},
    "ReversibleEmbedding": {"input_dim": 5, "output_dim": 3, "tie_weights": False,
                            "reverse_dtype": "float32", "logit_soft_cap": 30.0},
    "STFTSpectrogram": {"frame_length": 8, "mode": "psd"},
    "Solarization": {"addition_factor": 0.25, "seed": 3},
    "Rescaling": {"scale": 0.5, "offset": 1.0},
    "Reshape": {"target_shape": (-1, 3)},
    "Resizing": {"height": 3, "width": 4, "crop_to_aspect_ratio": True},
    "SeparableConv1D": {"filters": 3, "kernel_size": 2},
    "SeparableConv2D": {"filters": 3, "kernel_size": 2, "depth_multiplier": 2},
    "SimpleRNN": {"units": 3, "activation": "relu"},
    "SimpleRNNCell": {"units": 3},
    "SpatialDropout1D": {"rate": 0.25},
    "SpatialDropout2D": {"rate": 0.25, "seed": 3},
    "SpatialDropout3D": {"rate": 0.25},
    "UpSampling2D": {"size": (2, 3), "interpolation": "bilinear"},
    "ZeroPadding2D": {"padding": ((1, 2), (0, 1))},
}  # fmt: skip
WITHOUT = """
    Add AdditiveAttention Attention Average Concatenate Cropping1D
    Cropping3D ELU Flatten GlobalAveragePooling2D GlobalAveragePooling3D
    GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D Identity LeakyReLU Masking
    MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum Multiply RMSNormalization
    Softmax Subtract UnitNormalization UpSampling1D UpSampling3D ZeroPadding1D
    ZeroPadding3D""".split()
OTHERS = {
    "initializers": {
        "Zeros": {}, "Ones": {}, "Constant": {"value": 2.0}, "GlorotUniform": {},
        "GlorotNormal": {"seed": 3}, "HeNormal": {}, "HeUniform": {},
        "LecunNormal": {}, "LecunUniform": {}, "Orthogonal": {"gain": 2.0},
        "RandomNormal": {"mean": 1.0, "seed": 3}, "Identity": {},
        "RandomUniform": {"minval": -1.0}, "TruncatedNormal": {},
        "VarianceScaling": {"scale": 2.0, "mode": "fan_avg"},
        "STFT": {"side": "imag", "window": "hamming", "scaling": None},
    },
    "regularizers": {
        "L1": {"l1": 0.5}, "L2": {"l2": 0.5}, "L1L2": {"l1": 0.5, "l2": 0.25},
        "OrthogonalRegularizer": {"factor": 0.5, "mode": "columns"},
    },
    "constraints": {
        "MaxNorm": {"max_value": 3, "axis": 1}, "MinMaxNorm": {"min_value": 0.5},
        "NonNeg": {}, "UnitNorm": {"axis": 1},
    },
    "optimizers.schedules": {
        "CosineDecay": {"initial_learning_rate": 0.5, "decay_steps": 10},
        "CosineDecayRestarts": {"initial_learning_rate": 0.5, "first_decay_steps": 9},
        "ExponentialDecay": {"initial_learning_rate": 0.5, "decay_steps": 10,
                             "decay_rate": 0.5, "staircase": True},
        "InverseTimeDecay": {"initial_learning_rate": 0.5, "decay_steps": 10,
                             "decay_rate": 0.5},
        "PiecewiseConstantDecay": {"boundaries": [3, 5], "values": [0.5, 0.25, 1.0]},
        "PolynomialDecay": {"initial_learning_rate": 0.5, "decay_steps": 10},
    },
}  # fmt: skip
NEEDED = {"num_classes": 3, "target_class_ids": [0, 1], "specificity": 0.5,
          "sensitivity": 0.5, "recall": 0.5, "precision": 0.5,
          "normalizer": [1.0, 2.0]}  # fmt: skip
LEFT_OUT = ("Adafactor", "MeanMetricWrapper", "MultiOptimizer", "Muon", "OptimizerMap",
            "ScheduleFreeAdamW", "LossScaleOptimizer", "Loss", "Metric",
            "Optimizer")  # fmt: skip


def main():
    write("configs_layers", [*of_layers(), *around_layers()])
    write("configs_objects", of_others())
    models = {name: without_builds(each) for name, each in of_models()}
    HERE.joinpath("configs_models.json").write_text(json.dumps(models) + "\n")


def write(name, configs):
    lines = [json.dumps(without_builds(each)) for each in configs]
    HERE.joinpath(f"{name}.json").write_text("[" + ",\n".join(lines) + "]\n")


def of_layers():
    from keras import layers, saving

    for name in sorted([*LAYERS, *WITHOUT]):
        layer = getattr(layers, name)(**LAYERS.get(name, {}))
        yield saving.serialize_keras_object(layer)


def around_layers():
    """Layers with layers inside, and with objects for arguments."""
    from keras import initializers, layers, regularizers, saving

    cells = [layers.GRUCell(2), layers.LSTMCell(3)]
    for layer in (
        layers.Bidirectional(layers.LSTM(2), merge_mode="sum"),
        layers.TimeDistributed(layers.Dense(2)),
        layers.SpectralNormalization(layers.Dense(2), power_iterations=2),
        layers.StackedRNNCells(cells),
        layers.RNN(cells, return_sequences=True),
        layers.RNN(layers.SimpleRNNCell(2)),
        layers.Dense(2, activation=layers.LeakyReLU(0.5)),
        layers.Pipeline([layers.CenterCrop(2, 3), layers.RandomFlip(seed=1)], "p"),
        layers.Dense(2, kernel_initializer=initializers.Constant([1.0, 2.0])),
        layers.Dense(
            2,
            dtype="float64",
            kernel_initializer=initializers.HeNormal(3),
            activity_regularizer=regularizers.L1(0.5),
        ),
    ):
        yield saving.serialize_keras_object(layer)


def of_others():
    import keras
    from keras import saving

    for module, classes in OTHERS.items():
        place = keras
        for part in module.split("."):
            place = getattr(place, part)
        for name, arguments in classes.items():
            yield saving.serialize_keras_object(getattr(place, name)(**arguments))
    for place in (keras.losses, keras.metrics, keras.optimizers):
        for name, cls in sorted(vars(place).items()):
            if not inspect.isclass(cls) or name in LEFT_OUT:
                continue
            parameters = inspect.signature(cls).parameters
            arguments = {key: NEEDED[key] for key in parameters if key in NEEDED
                         and parameters[key].default is inspect.Parameter.empty}  # fmt: skip
            yield saving.serialize_keras_object(cls(**arguments))
    optimizers = keras.optimizers
    rules = {".*/bias": optimizers.Adam(0.5, name="a")}
    rules = optimizers.OptimizerMap(optimizers.SGD(0.25, name="s"), rules)
    several = optimizers.MultiOptimizer(rules, loss_scale_factor=2.0, name="several")
    yield saving.serialize_keras_object(several)


def of_models():
    import keras
    from keras import saving

    for make in (shared, nested, with_states, dicts):
        yield make.__name__, saving.serialize_keras_object(make(keras))
    model = shared(keras)
    rate = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)
    model.compile(
        keras.optimizers.Adam(rate, name="adam"),
        loss=[keras.losses.Huber(), "mse"],
        loss_weights=[1.0, 0.5],
        metrics=[
            ["mae", keras.metrics.AUC(name="auc")],
            [keras.losses.mean_squared_error],
        ],
        weighted_metrics=[[], ["mse"]],
    )
    yield "compiled", model.get_compile_config()


def shared(keras):
    """One layer called on two inputs."""
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    dense = keras.layers.Dense(3, name="d")
    x = keras.layers.Concatenate(name="c")([dense(a), dense(b)])
    return keras.Model([a, b], [x, keras.layers.Dense(2, name="e")(x)], name="shared")


def nested(keras):
    """A model called twice inside of another, whose outputs name both calls."""
    i, j = keras.Input((4,), name="i"), keras.Input((3,), name="j")
    inner = keras.Model(j, keras.layers.Dense(2, name="k")(j), name="inner")
    first = inner(keras.layers.Dense(3, name="d")(i))
    second = inner(keras.layers.Dense(3, name="e")(i))
    chain = keras.Sequential(
        [keras.Input((2,), name="l"), keras.layers.ReLU(name="r")], name="s"
    )
    ends = [keras.layers.Add(name="sum")([first, second]), second, chain(first)]
    return keras.Model(i, ends, name="outer")


def with_states(keras):
    """Tensors as keyword arguments, one of several outputs."""
    i = keras.Input((5, 3), name="i")
    x, *states = keras.layers.LSTM(
        4, return_sequences=True, return_state=True, name="first"
    )(i)
    end = keras.layers.LSTM(4, name="second")(x, initial_state=states)
    return keras.Model(i, [end, states[1]], name="states")


def dicts(keras):
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    ends = {"sum": keras.layers.Add(name="t")([a, b]), "double": keras.layers.ReLU()(a)}
    return keras.Model({"a": a, "b": b}, ends, name="dicts")


def without_builds(config):
    """Without how the layers were built, and what of compile is empty."""
    if isinstance(config, dict):
        return {
            key: without_builds(value)
            for key, value in config.items()
            if key != "build_config" and (key, value) != ("compile_config", {})
        }
    if isinstance(config, (list, tuple)):
        return [without_builds(each) for each in config]
    return config


if __name__ == "__main__":
    main()
