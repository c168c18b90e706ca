"""Writes ``core.npz``: what Keras' layers give, core ones to attention and normalization.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/layers/reference/record_core.py

An entry holds the outputs, then the gradients of ``sum(outputs * c)`` by the inputs and
by each trainable weight, then the weights that are not trainable, all flat and one after
the other. Inputs, weights, masks and ``c`` come from `numbers` and `mask`.
"""

import os
import pathlib
import zlib

import numpy as np

TRAINING = {"training": True}
SCORES = {"return_attention_scores": True}
CAUSAL = {"use_causal_mask": True}
HEADS = {"num_heads": 2, "key_dim": 3}
GROUPS = {"head_dim": 2, "num_query_heads": 4, "num_key_value_heads": 2}
QUERY, VALUE = (2, 3, 4), (2, 5, 4)


class Mask(tuple):
    """The shape of a mask that is to be made."""


def case(layer, config, *shapes, masks=None, **call):
    """A layer, its inputs, their masks, and what else its call gets."""
    return layer, config, shapes, masks, call


CASES = [
    case("Dense", {"units": 3, "activation": "tanh"}, (2, 4)),
    case("Dense", {"units": 2, "use_bias": False}, (2, 3, 4)),
    case("EinsumDense", {"equation": "ab,bc->ac", "output_shape": 3}, (2, 4)),
    case(
        "EinsumDense",
        {"equation": "abc,cde->abde", "output_shape": (None, 2, 3), "bias_axes": "de"},
        (2, 3, 4),
    ),
    case(
        "EinsumDense",
        {"equation": "abc,cde->abde", "output_shape": (None, 2, 3), "bias_axes": "d"},
        (2, 3, 4),
    ),
    case(
        "EinsumDense",
        {
            "equation": "abc,bd->adc",
            "output_shape": (5, 4),
            "bias_axes": "dc",
            "activation": "sigmoid",
        },
        (2, 3, 4),
    ),
    case(
        "EinsumDense",
        {"equation": "...x,xy->...y", "output_shape": 3, "bias_axes": "y"},
        (2, 3, 2, 4),
    ),
    case(
        "EinsumDense",
        {"equation": "ab...,bc->ac...", "output_shape": 3, "bias_axes": "c"},
        (2, 4, 3, 2),
    ),
    case("ReLU", {}, (2, 5)),
    case("ReLU", {"max_value": 0.7, "negative_slope": 0.3, "threshold": 0.3}, (4, 5)),
    case("LeakyReLU", {}, (2, 5)),
    case("ELU", {"alpha": 0.7}, (2, 5)),
    case("PReLU", {}, (2, 3, 4)),
    case("PReLU", {"shared_axes": [1, 2]}, (2, 3, 2, 4)),
    case("Softmax", {}, (2, 5)),
    case("Softmax", {"axis": [1, 2]}, (2, 3, 4)),
    case("Softmax", {"axis": 1}, (2, 3, 4), mask=Mask((2, 3, 1))),
    case("Softmax", {"axis": [-1]}, (2, 5), mask=Mask((2, 5))),
    case("Softmax", {"axis": (1, 2)}, (2, 3, 4), mask=Mask((2, 3, 4))),
    case("Add", {}, (2, 3), (2, 3), (2, 3)),
    case("Add", {}, (2, 3, 4), (2, 4)),
    case("Add", {}, (2, 3, 1), (2, 1, 4)),
    case("Subtract", {}, (2, 3), (2, 3)),
    case("Multiply", {}, (2, 3, 4), (2, 4)),
    case("Average", {}, (2, 3), (2, 3), (2, 3)),
    case("Maximum", {}, (2, 3), (2, 3), (2, 3)),
    case("Minimum", {}, (2, 3), (2, 3)),
    case("Concatenate", {}, (2, 3), (2, 2)),
    case("Concatenate", {"axis": 1}, (2, 3, 4), (2, 2, 4)),
    case("Multiply", {}, (2, 3, 4), (2, 3, 4), masks=[Mask((2, 3)), Mask((2, 3))]),
    case("Multiply", {}, (2, 3, 4), (2, 3, 4), masks=[None, Mask((2, 3))]),
    case("Maximum", {}, (2, 3, 4), (2, 3, 4), masks=[Mask((2, 3)), Mask((2, 3))]),
    case("Minimum", {}, (2, 3, 4), (2, 3, 4), masks=[Mask((2, 3)), None]),
    case("Add", {}, (2, 3, 4), (2, 3, 4), masks=[Mask((2, 3)), Mask((2, 3))]),
    case(
        "Concatenate",
        {"axis": 1},
        (2, 3, 4),
        (2, 2, 4),
        masks=[Mask((2, 3)), None],
    ),
    case(
        "Concatenate",
        {},
        (2, 3, 4),
        (2, 3, 1),
        masks=[Mask((2, 3)), Mask((2, 3))],
    ),
    case("Dot", {"axes": 1}, (2, 3), (2, 3)),
    case("Dot", {"axes": (2, 1)}, (2, 3, 4), (2, 4, 5)),
    case("Dot", {"axes": (1, 2)}, (2, 3), (2, 4, 3)),
    case("Dot", {"axes": -1, "normalize": True}, (2, 3, 4), (2, 5, 4)),
    case("Dot", {"axes": (2, -1)}, (2, 3, 4, 2), (2, 4)),
    case("Dot", {"axes": (1, 1)}, (2, 3, 2, 2), (2, 3, 2, 1)),
    case("Attention", {}, QUERY, VALUE),
    case("Attention", {"use_scale": True}, QUERY, (2, 5, 3), VALUE, **SCORES),
    case("Attention", {"score_mode": "concat", "use_scale": True}, QUERY, VALUE),
    case("Attention", {"score_mode": "concat"}, QUERY, VALUE, **CAUSAL),
    case(
        "Attention",
        {},
        QUERY,
        VALUE,
        mask=[Mask((2, 3)), Mask((2, 5))],
        **SCORES,
        **CAUSAL,
    ),
    case("Attention", {}, QUERY, VALUE, masks=[Mask((2, 3)), Mask((2, 5))]),
    case("AdditiveAttention", {}, QUERY, VALUE, **SCORES),
    case(
        "AdditiveAttention",
        {"use_scale": False},
        QUERY,
        VALUE,
        VALUE,
        **CAUSAL,
    ),
    case("MultiHeadAttention", HEADS, QUERY, VALUE),
    case("MultiHeadAttention", HEADS, QUERY, VALUE, (2, 5, 3), **SCORES),
    case(
        "MultiHeadAttention",
        {**HEADS, "value_dim": 2, "output_shape": 5, "use_bias": False},
        QUERY,
        VALUE,
        **CAUSAL,
    ),
    case(
        "MultiHeadAttention",
        {**HEADS, "output_shape": (2, 3), "use_gate": True, "value_dim": 2},
        QUERY,
        VALUE,
        attention_mask=Mask((2, 3, 5)),
    ),
    case(
        "MultiHeadAttention",
        {**HEADS, "sliding_window": 2},
        (2, 4, 3),
        (2, 4, 3),
        **CAUSAL,
        **SCORES,
    ),
    case(
        "MultiHeadAttention",
        HEADS,
        QUERY,
        VALUE,
        value_mask=Mask((2, 5)),
        attention_mask=Mask((3, 5)),
    ),
    case("MultiHeadAttention", HEADS, QUERY, VALUE, masks=[Mask((2, 3)), Mask((2, 5))]),
    case(
        "MultiHeadAttention",
        HEADS,
        QUERY,
        VALUE,
        masks=[Mask((2, 3)), Mask((2, 5))],
        **SCORES,
        **CAUSAL,
    ),
    case("MultiHeadAttention", HEADS, (2, 2, 3, 4), (2, 2, 3, 4)),
    case(
        "MultiHeadAttention",
        {**HEADS, "attention_axes": (2,)},
        (2, 2, 3, 4),
        (2, 2, 5, 4),
        **SCORES,
    ),
    case("GroupQueryAttention", GROUPS, QUERY, VALUE),
    case("GroupQueryAttention", {**GROUPS, "use_gate": True}, QUERY, VALUE, **SCORES),
    case(
        "GroupQueryAttention",
        {**GROUPS, "use_bias": False, "sliding_window": 2},
        QUERY,
        (2, 3, 4),
        value_mask=Mask((2, 3)),
        **CAUSAL,
    ),
    case("BatchNormalization", {}, (4, 3), **TRAINING),
    case("BatchNormalization", {}, (2, 3, 4), **TRAINING, mask=Mask((2, 3))),
    case(
        "BatchNormalization",
        {"center": False, "momentum": 0.8},
        (2, 3, 2, 4),
        **TRAINING,
        mask=Mask((2, 3, 2)),
    ),
    case("BatchNormalization", {}, (2, 3, 4), masks=[Mask((2, 3))]),
    case("BatchNormalization", {"renorm": True}, (4, 3), **TRAINING),
    case(
        "BatchNormalization",
        {
            "renorm": True,
            "renorm_momentum": 0.7,
            "axis": 1,
            "scale": False,
            "renorm_clipping": {"rmin": 0.9, "rmax": 1.1, "dmax": 0.2},
        },
        (2, 3, 4),
        **TRAINING,
    ),
    case(
        "BatchNormalization",
        {"renorm": True, "center": False},
        (2, 3, 4),
        **TRAINING,
        mask=Mask((2, 3)),
    ),
    case("LayerNormalization", {"rms_scaling": True, "axis": [1, 2]}, (2, 3, 4)),
    case("UnitNormalization", {}, (2, 3, 4), masks=[Mask((2, 3))]),
    case(
        "SpectralNormalization", {"layer": ("Dense", {"units": 3})}, (2, 4), **TRAINING
    ),
    case(
        "SpectralNormalization",
        {"layer": ("Dense", {"units": 3}), "power_iterations": 3},
        (2, 4),
        **TRAINING,
    ),
    case("SpectralNormalization", {"layer": ("Dense", {"units": 3})}, (2, 4)),
]


def key_of(case):
    layer, config, shapes, masks, call = case
    parts = [*config.items(), *shapes, ("masks", masks), *call.items()]
    return f"{layer} " + " ".join([str(p) for p in parts if p != ("masks", None)])


def numbers(key, name, shape):
    """Values between -1 and 1 that follow from the names alone."""
    random = np.random.default_rng(zlib.crc32(f"{key} {name}".encode()))
    return (random.random(shape) * 2 - 1).astype("float32")


def mask(key, name, shape):
    """A mask that keeps two entries of three, the first of each row among them."""
    kept = numbers(key, name, shape) > -0.35
    kept[..., 0] = True
    return kept


def made(key, call):
    """The arguments of a call with the masks made."""
    found = {}
    for name, value in call.items():
        if isinstance(value, Mask):
            value = mask(key, name, value)
        elif isinstance(value, list):
            value = [mask(key, f"{name} {i}", v) for i, v in enumerate(value)]
        found[name] = value
    return found


def layer_of(layers, name, config):
    """A layer of Keras' or of ours; a layer in its config stands there as a pair."""
    config = {k: layer_of(layers, *v) if k == "layer" else v for k, v in config.items()}
    return getattr(layers, name)(**config)


def by_position(layer):
    """Whether several inputs are arguments of their own, not a list."""
    return layer.startswith(("Multi", "Group")) and layer.endswith("Attention")


def record(case):
    import tensorflow as tf

    import keras

    layer, config, shapes, masks, call = case
    key = key_of(case)
    inputs = [tf.constant(numbers(key, i, s)) for i, s in enumerate(shapes)]
    for i, shape in enumerate(masks or []):
        if shape is not None:
            inputs[i]._keras_mask = tf.constant(mask(key, f"of {i}", shape))
    call = {
        k: [tf.constant(m) for m in v] if isinstance(v, list)
        else tf.constant(v) if isinstance(v, np.ndarray) else v
        for k, v in made(key, call).items()
    }  # fmt: skip
    built = layer_of(keras.layers, layer, config)
    args = inputs if by_position(layer) or len(inputs) == 1 else [inputs]
    built(*args, **call)
    for i, shape in enumerate(masks or []):
        if shape is not None:
            inputs[i]._keras_mask = tf.constant(mask(key, f"of {i}", shape))
    for i, weight in enumerate(built.weights):
        weight.assign(weight_of(key, f"{i} {weight.name}", weight.shape))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = built(*args, **call)
        first = outputs if isinstance(outputs, tuple) else (outputs,)
        loss = sum(
            [
                tf.reduce_sum(y * numbers(key, f"c{i}", y.shape))
                for i, y in enumerate(first)
            ]
        )
    trainable = [w.value for w in built.trainable_weights]
    slopes = tape.gradient(loss, [*inputs, *trainable], unconnected_gradients="zero")
    kept = [] if len(first) > 1 else [getattr(first[0], "_keras_mask", None)]
    found = [*first, *slopes, *built.non_trainable_weights]
    found += [m for m in kept if m is not None]
    return np.concatenate([np.ravel(np.asarray(x, "float32")) for x in found])


def weight_of(key, name, shape):
    """The value of a weight; what has to be positive is."""
    values = numbers(key, name, shape)
    return np.abs(values) + 0.5 if "variance" in name else values


def main():
    results = {key_of(c): record(c) for c in CASES}
    path = pathlib.Path(__file__).with_name("core.npz")
    np.savez_compressed(path, **results)
    print(path, path.stat().st_size, "bytes,", len(results), "entries")


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    main()
