"""Writes ``recurrent.npz``: what Keras' recurrent layers and wrappers give.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/layers/reference/record_recurrent.py

An entry holds the outputs of the last call, then the gradients of ``sum(outputs * c)`` by
the inputs and by each trainable weight, all flat and one after the other. Inputs, weights
and ``c`` come from `numbers`.
"""

import os
import pathlib

import numpy as np

SHAPE = (3, 4, 2)
MASK = [[1, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]]
ALL = {"return_sequences": True, "return_state": True}
SEQUENCES = {"return_sequences": True}
STATES = {"states": 2}


def case(layer, config=None, call=(), **options):
    """A layer's name and config; what its call gets: a mask, how many initial states;
    options: the shape of the inputs and of a state, how many calls."""
    return layer, config or {}, dict.fromkeys(call, True), options


def _of(name, **config):
    return {"class_name": name, "config": config}


MASKED = ("mask",)
CASES = {}
for _name, _states in (("SimpleRNN", 1), ("LSTM", 2), ("GRU", 1)):
    for _label, _case in {
        "last": case(_name),
        "all": case(_name, ALL),
        "no bias": case(_name, {"use_bias": False}),
        "masked": case(_name, {}, MASKED),
        "masked, all": case(_name, ALL, MASKED),
        "masked, zeros": case(_name, {**ALL, "zero_output_for_mask": True}, MASKED),
        "masked, unrolled": case(_name, {**ALL, "unroll": True}, MASKED),
        "backwards": case(_name, {**ALL, "go_backwards": True}),
        "backwards, masked": case(_name, {**ALL, "go_backwards": True}, MASKED),
        "states": case(_name, ALL, states=_states),
        "states, masked": case(_name, ALL, MASKED, states=_states),
        "stateful": case(_name, {**ALL, "stateful": True}, calls=3),
        "relu": case(_name, {**SEQUENCES, "activation": "relu"}),
        "elu, masked": case(_name, {**SEQUENCES, "activation": "elu"}, MASKED),
        "one step": case(_name, ALL, shape=(3, 1, 2)),
    }.items():
        CASES[f"{_name}, {_label}"] = _case
CASES |= {
    "LSTM, hard gates": case("LSTM", {"recurrent_activation": "hard_sigmoid"}),
    "GRU, hard gates": case("GRU", {"recurrent_activation": "hard_sigmoid"}),
    "GRU, reset before": case("GRU", {**ALL, "reset_after": False}, MASKED),
    "GRU, reset before, no bias": case(
        "GRU", {"reset_after": False, "use_bias": False}
    ),
    "RNN of a cell": case("RNN", {"cell": _of("GRUCell", units=3), **ALL}, MASKED),
    "RNN of a stack": case(
        "RNN",
        {
            "cell": _of(
                "StackedRNNCells",
                cells=[
                    _of("LSTMCell", units=3),
                    _of("GRUCell", units=2, reset_after=False),
                    _of("SimpleRNNCell", units=4),
                ],
            ),
            **SEQUENCES,
        },
        MASKED,
    ),
    "each step": case("TimeDistributed", {"layer": _of("Dense", units=3)}),
    "each step, normalized": case(
        "TimeDistributed", {"layer": _of("LayerNormalization")}, shape=(2, 3, 4)
    ),
    "each step, a network": case(
        "TimeDistributed", {"layer": _of("LSTM", units=3)}, shape=(2, 3, 4, 2)
    ),
    "embedding": case("Embedding", {"input_dim": 5, "output_dim": 3}, whole=True),
    "masking": case("Masking", {"mask_value": 0.5}, shape=(2, 3, 2)),
}
for _mode in ("concat", "sum", "mul", "ave", None):
    CASES[f"both ways, {_mode}"] = case(
        "Bidirectional",
        {"layer": _of("LSTM", units=2, **SEQUENCES), "merge_mode": _mode},
        MASKED,
    )
    CASES[f"both ways, {_mode}, last"] = case(
        "Bidirectional", {"layer": _of("GRU", units=2), "merge_mode": _mode}
    )
CASES |= {
    "both ways, states": case(
        "Bidirectional", {"layer": _of("LSTM", units=4, **ALL)}, states=4
    ),
    "both ways, last, masked": case(
        "Bidirectional", {"layer": _of("SimpleRNN", units=2)}, MASKED
    ),
    "both ways, two layers": case(
        "Bidirectional",
        {
            "layer": _of("LSTM", units=2, **SEQUENCES),
            "backward_layer": _of("GRU", units=3, go_backwards=True, **SEQUENCES),
        },
        MASKED,
    ),
}
_CONV = {"filters": 2, "kernel_size": 2}
CASES |= {
    "conv1": case("ConvLSTM1D", {**_CONV, "strides": 2}, shape=(2, 2, 5, 2)),
    "conv1, masked, all": case(
        "ConvLSTM1D", {**_CONV, **ALL, "padding": "same"}, MASKED, shape=(3, 4, 3, 2)
    ),
    "conv2, dilated, backwards": case(
        "ConvLSTM2D",
        {**_CONV, **ALL, "dilation_rate": (1, 2), "go_backwards": True},
        shape=(2, 3, 2, 3, 4),
    ),
    "conv2, states": case(
        "ConvLSTM2D",
        {**_CONV, "kernel_size": (2, 1), "recurrent_activation": "hard_sigmoid"},
        states=2, shape=(2, 2, 3, 2, 2), state=(2, 2, 2),
    ),
    "conv2, stateful": case(
        "ConvLSTM2D", {**_CONV, "stateful": True, "use_bias": False}, calls=2,
        shape=(1, 2, 2, 3, 2),
    ),
    "conv3": case("ConvLSTM3D", _CONV, shape=(1, 2, 2, 3, 2, 2)),
}  # fmt: skip


def numbers(*shape, start=0.0):
    """Numbers from -0.8 to 0.8 that look like nothing in particular."""
    count = int(np.prod(shape))
    found = 0.8 * np.sin(1.7 * np.arange(count) ** 1.1 + start)
    return found.reshape(shape).astype("float32")


def make(layers, name):
    """The layer of a case, out of a module of layers."""
    layer, config, _, _ = CASES[name]
    config = dict(config)
    if hasattr(layers, layer) and layer in ("SimpleRNN", "LSTM", "GRU"):
        config["units"] = 4
    made = {
        key: _made(layers, value) if isinstance(value, dict) else value
        for key, value in config.items()
    }
    return getattr(layers, layer)(**made)


def _made(layers, described):
    config = dict(described["config"])
    if "cells" in config:
        config["cells"] = [_made(layers, cell) for cell in config["cells"]]
    return getattr(layers, described["class_name"])(**config)


def inputs_of(name):
    """Inputs of all calls ``[calls, ...]``, and the other arguments of a call."""
    _, _, call, options = CASES[name]
    shape = options.get("shape", SHAPE)
    if options.get("whole"):
        return np.arange(6).reshape(1, 2, 3) % 4, {}
    found = numbers(options.get("calls", 1), *shape)
    if name == "masking":
        found[:, 0, 1] = 0.5
    more = {}
    if call.get("mask"):
        more["mask"] = np.array(MASK, bool)
    if options.get("states"):
        more["initial_state"] = [
            numbers(shape[0], *options.get("state", (4,)), start=i)
            for i in range(options["states"])
        ]
    return found, more


def fill(layer):
    """Gives a layer that was built weights."""
    layer.set_weights(
        [numbers(*w.shape, start=1 + i) for i, w in enumerate(layer.get_weights())]
    )


def flat(outputs):
    """Outputs, one or several, as a list of tensors."""
    if isinstance(outputs, (list, tuple)):
        return [x for each in outputs for x in flat(each)]
    return [outputs]


def main():
    import tensorflow as tf

    from keras import layers

    found = {}
    for name in CASES:
        batches, more = inputs_of(name)
        layer = make(layers, name)
        more = {
            k: [tf.constant(x) for x in v] if isinstance(v, list) else tf.constant(v)
            for k, v in more.items()
        }
        layer(tf.constant(batches[0]), **more)
        fill(layer)
        if getattr(layer, "stateful", False):
            layer.reset_state()
        for batch in batches:
            x = tf.constant(batch)
            with tf.GradientTape() as tape:
                if x.dtype.is_floating:
                    tape.watch(x)
                outputs = flat(layer(x, **more))
                total = sum(
                    tf.reduce_sum(y * numbers(*y.shape, start=i))
                    for i, y in enumerate(outputs)
                )
        sources = [x] if x.dtype.is_floating else []
        sources += [v.value for v in layer.trainable_variables]
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(total, sources)]
        parts = [np.ravel(x.numpy()) for x in [*outputs, *gradients]]
        found[name] = np.concatenate(parts).astype("float32")
    path = pathlib.Path(__file__).with_name("recurrent.npz")
    np.savez_compressed(path, **found)
    print(f"{len(found)} entries, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
