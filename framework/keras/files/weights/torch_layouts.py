"""Weights of PyTorch's modules for our layers: names, shapes, and how they convert.

The class of the layer that owns a weight decides, never its shape. Dense and
convolutional kernels have their last two axes first and swapped there; a recurrent layer
has two biases, and a GRU its gates in another order.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapewright.layers.activation_layers import PReLU
from tapewright.layers.attention.multi_head_attention import MultiHeadAttention
from tapewright.layers.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    DepthwiseConv1D,
    DepthwiseConv2D,
)
from tapewright.layers.core import Dense
from tapewright.layers.embedding import Embedding
from tapewright.layers.normalization import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
)
from tapewright.layers.rnn.cells import GRUCell, LSTMCell, SimpleRNNCell
from tapewright.layers.rnn.rnn import RNN
from tapewright.layers.wrappers import Bidirectional, TimeDistributed


class TorchWeight(NamedTuple):
    """Storage of one of our weights in a module of PyTorch.

    ``shape``: the stored shape, for the shape of ours. ``convert``: our array, for our
    shape and the stored arrays. ``pair``: what differs between the names of two stored
    arrays.
    """

    name: str
    shape: Callable[[tuple], tuple] = lambda shape: shape
    convert: Callable[..., Any] = lambda shape, array: array
    pair: tuple[str, str] | None = None


def torch_weights(layer: Any) -> dict[str, TorchWeight]:
    """Return the `TorchWeight`s of a layer, by names relative to it: ``cell/kernel``."""
    for cls in type(layer).__mro__:
        if cls in RULES:
            rules = RULES[cls]
            return rules(layer) if callable(rules) else rules
    return {}


def _kernel(name):
    """``[out, in, *window]`` as ``[*window, in, out]``."""
    return TorchWeight(
        name,
        lambda shape: (shape[-1], shape[-2], *shape[:-2]),
        lambda shape, array: np.moveaxis(array, (0, 1), (-1, -2)),
    )


def _depthwise(name):
    """``[in * multiplier, 1, *window]`` as ``[*window, in, multiplier]``."""

    def convert(shape, array):
        array = array.reshape(shape[-2], shape[-1], *shape[:-2])
        return np.moveaxis(array, (0, 1), (-2, -1))

    return TorchWeight(
        name, lambda shape: (shape[-2] * shape[-1], 1, *shape[:-2]), convert
    )


# Two biases, of the inputs and of the state: bias_ih and bias_hh.
def _biases(convert, shape=lambda shape: shape):
    return TorchWeight("bias_ih", shape, convert, ("bias_ih", "bias_hh"))


def _sum(shape, a, b):
    dtype = np.result_type(a, np.float32)  # half precision would round twice
    return a.astype(dtype) + b.astype(dtype)


_PLAIN_CELL = {
    "kernel": _kernel("weight_ih"),
    "recurrent_kernel": _kernel("weight_hh"),
    "bias": _biases(_sum),
}


def _gru_cell(cell):
    if not cell.reset_after:
        raise ValueError(
            f"load_weights: layer '{cell.name}' must have reset_after=True, as PyTorch's "
            "GRU, for transpose='torch'"
        )

    def kernel(name):
        return TorchWeight(
            name,
            lambda shape: (shape[1], shape[0]),
            lambda shape, array: _gru_gates(array).T,
        )

    def biases(shape, a, b):
        return np.stack([_gru_gates(a), _gru_gates(b)])

    return {
        "kernel": kernel("weight_ih"),
        "recurrent_kernel": kernel("weight_hh"),
        "bias": _biases(biases, lambda shape: shape[1:]),
    }


def _gru_gates(array):
    reset, update, new = np.split(array, 3)
    return np.concatenate([update, reset, new])


def _recurrent(layer):
    return {
        key: rule._replace(name=f"{rule.name}_l0")
        for key, rule in _inside("cell", torch_weights(layer.cell)).items()
    }


def _bidirectional(layer):
    forward, backward = map(torch_weights, (layer.forward_layer, layer.backward_layer))
    return _inside("forward_layer", forward) | {
        key: rule._replace(name=f"{rule.name}_reverse")
        for key, rule in _inside("backward_layer", backward).items()
    }


def _inside(attribute, rules):
    return {f"{attribute}/{key}": rule for key, rule in rules.items()}


def _attention_input(i):
    """Part ``i`` of ``[3 * heads * size, inputs]`` as ``[inputs, heads, size]``."""

    def kernel(shape, array):
        return np.moveaxis(array.reshape(3, *shape[1:], shape[0])[i], -1, 0)

    def bias(shape, array):
        return array.reshape(3, *shape)[i]

    return (
        TorchWeight("in_proj_weight", lambda s: (3 * math.prod(s[1:]), s[0]), kernel),
        TorchWeight("in_proj_bias", lambda s: (3 * math.prod(s),), bias),
    )


def _attention():
    rules = {}
    for i, name in enumerate(("query", "key", "value")):
        kernel, bias = _attention_input(i)
        rules |= {f"{name}_dense/kernel": kernel, f"{name}_dense/bias": bias}
    rules["output_dense/kernel"] = TorchWeight(
        "out_proj.weight",
        lambda s: (s[-1], math.prod(s[:-1])),
        lambda shape, array: array.T.reshape(shape),
    )
    rules["output_dense/bias"] = TorchWeight("out_proj.bias")
    return rules


def _with_bias(kernel):
    return {"kernel": kernel("weight"), "bias": TorchWeight("bias")}


_SCALE_AND_SHIFT = {"gamma": TorchWeight("weight"), "beta": TorchWeight("bias")}
_MOVING = {
    "moving_mean": TorchWeight("running_mean"),
    "moving_variance": TorchWeight("running_var"),
}
# Class of a layer -> its weights, or a function of the layer.
RULES = {
    **dict.fromkeys(
        (
            Dense,
            Conv1D,
            Conv2D,
            Conv3D,
            Conv1DTranspose,  # both frameworks swap inputs and outputs here
            Conv2DTranspose,
            Conv3DTranspose,
        ),
        _with_bias(_kernel),
    ),
    **dict.fromkeys((DepthwiseConv1D, DepthwiseConv2D), _with_bias(_depthwise)),
    Embedding: {"embeddings": TorchWeight("weight")},
    LayerNormalization: _SCALE_AND_SHIFT,
    GroupNormalization: _SCALE_AND_SHIFT,
    BatchNormalization: _SCALE_AND_SHIFT | _MOVING,
    RMSNormalization: {"scale": TorchWeight("weight")},
    PReLU: {
        "alpha": TorchWeight(
            "weight",
            lambda shape: (math.prod(shape),),
            lambda shape, array: array.reshape(shape),
        )
    },
    SimpleRNNCell: _PLAIN_CELL,
    LSTMCell: _PLAIN_CELL,
    GRUCell: _gru_cell,
    RNN: _recurrent,
    Bidirectional: _bidirectional,
    TimeDistributed: lambda layer: _inside("layer", torch_weights(layer.layer)),
    MultiHeadAttention: _attention(),
}
