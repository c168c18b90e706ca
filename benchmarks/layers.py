"""Compare all kinds of layers at three sizes, forward and backward, with peers.

    python benchmarks/layers.py                    (about 110 rows, 15 minutes)
    python benchmarks/layers.py --kinds conv,pool --sizes ordinary --peers native,torch
    python benchmarks/layers.py --memory           (peak memory instead of times)
    python benchmarks/layers.py --read FILE --picture FILE.png     (saved figures)

In each row, a layer is called and differentiated with respect to its inputs and weights.
The call is traced: by ``tw.function`` on each target, ``tf.function`` and ``jax.jit``; torch
runs eagerly, with channels last. Each implementation runs in its own process, which is
stopped while another one runs. All get the same arrays, and must compute the same outputs
and gradients; otherwise their times are marked with ``!``. Peers that are not installed are
skipped.

The script prints the median in ms and its ratio to the fastest peer. For layers that are
products, it also prints the rate of the native target and of the fastest peer, to compare
with the rate of one large matrix product on this machine.
"""

import argparse
import importlib
import sys
from functools import partial

import numpy as np
from families import (
    Attention,
    Convolution,
    Dense,
    Embedding,
    Entrywise,
    Join,
    Normalization,
    Pooling,
    Recurrent,
    from_torch,
    to_torch,
)
from tables import Case, arguments, compare, sums
from turns import PACKAGES, serve

__all__ = ["KINDS", "make"]

SIZES = ["small", "ordinary", "large"]

IMAGES = (8, 16, 16, 16), (32, 32, 32, 64), (32, 56, 56, 128)
CONVOLVED = (8, 16, 16, 16, 16), (32, 32, 32, 64, 64), (16, 28, 28, 128, 128)
ENTRIES = (8, 1024), (32, 32, 32, 64), (64, 56, 56, 64)

# kind -> (family with Keras' class and arguments, input shape and units per size)
KINDS = {
    "conv1d 9": (
        partial(Convolution, "Conv1D", kernel_size=9),
        [(8, 64, 8, 8), (32, 256, 64, 64), (16, 512, 128, 128)],
    ),
    "conv 3x3": (partial(Convolution, "Conv2D", kernel_size=3), CONVOLVED),
    "conv 3x3 stride 2": (
        partial(Convolution, "Conv2D", kernel_size=3, strides=2),
        [(8, 16, 16, 16, 32), (32, 32, 32, 64, 128), (16, 28, 28, 128, 256)],
    ),
    "conv 3x3 rgb": (
        partial(Convolution, "Conv2D", kernel_size=3),
        [(8, 32, 32, 3, 16), (32, 64, 64, 3, 64), (64, 96, 96, 3, 32)],
    ),
    "conv 7x7 stride 2 rgb": (
        partial(Convolution, "Conv2D", kernel_size=7, strides=2),
        [(8, 32, 32, 3, 16), (32, 64, 64, 3, 64), (8, 224, 224, 3, 64)],
    ),
    "conv 1x1": (
        partial(Convolution, "Conv2D", kernel_size=1),
        [(8, 16, 16, 16, 16), (32, 32, 32, 64, 64), (32, 28, 28, 256, 256)],
    ),
    "conv 7x7 to 1": (
        partial(Convolution, "Conv2D", kernel_size=7),
        [(8, 16, 16, 16, 1), (32, 28, 28, 64, 1), (64, 28, 28, 128, 1)],
    ),
    "conv 3x3 dilated": (
        partial(Convolution, "Conv2D", kernel_size=3, dilation_rate=2),
        CONVOLVED,
    ),
    "conv 3x3 grouped": (
        partial(Convolution, "Conv2D", kernel_size=3, groups=4),
        [(8, 16, 16, 16, 16), (32, 32, 32, 64, 64), (16, 28, 28, 256, 256)],
    ),
    "conv3d 3x3x3": (
        partial(Convolution, "Conv3D", kernel_size=3),
        [(4, 8, 8, 8, 8, 8), (8, 16, 16, 16, 32, 32), (2, 8, 28, 28, 64, 64)],
    ),
    "convtranspose 4x4 stride 2": (
        partial(Convolution, "Conv2DTranspose", kernel_size=4, strides=2),
        [(8, 8, 8, 16, 8), (32, 14, 14, 64, 64), (32, 14, 14, 128, 128)],
    ),
    "depthwiseconv 3x3": (
        partial(Convolution, "DepthwiseConv2D", kernel_size=3),
        [(8, 16, 16, 16, None), (32, 56, 56, 64, None), (32, 56, 56, 128, None)],
    ),
    "separableconv 3x3": (
        partial(Convolution, "SeparableConv2D", kernel_size=3),
        [(8, 16, 16, 16, 16), (32, 32, 32, 64, 64), (32, 28, 28, 128, 128)],
    ),
    "maxpool 2": (partial(Pooling, "MaxPooling2D", pool_size=2), IMAGES),
    "maxpool 3 stride 2": (
        partial(Pooling, "MaxPooling2D", pool_size=3, strides=2),
        IMAGES,
    ),
    "avgpool 2": (partial(Pooling, "AveragePooling2D", pool_size=2), IMAGES),
    "avgpool 3 stride 2": (
        partial(Pooling, "AveragePooling2D", pool_size=3, strides=2),
        IMAGES,
    ),
    "globalavgpool": (partial(Pooling, "GlobalAveragePooling2D"), IMAGES),
    "dense relu": (
        partial(Dense, "Dense", activation="relu"),
        [(8, 64, 64), (128, 1024, 1024), (1024, 1024, 1024)],
    ),
    "dense gelu": (
        partial(Dense, "Dense", activation="gelu"),
        [(8, 64, 64), (128, 1024, 1024), (16, 256, 256, 1024)],
    ),
    "embedding": (
        partial(Embedding, "Embedding"),
        [(8, 16, 1000, 16), (32, 128, 10000, 64), (64, 256, 30000, 128)],
    ),
    "layernorm": (
        partial(Normalization, "LayerNormalization"),
        [(8, 32, 64), (32, 128, 256), (64, 256, 512)],
    ),
    "batchnorm": (partial(Normalization, "BatchNormalization"), IMAGES),
    "groupnorm": (partial(Normalization, "GroupNormalization", groups=8), IMAGES),
    "softmax scores": (
        partial(Entrywise, "Softmax"),
        [(8, 4, 16, 16), (32, 8, 64, 64), (16, 8, 256, 256)],
    ),
    "dropout": (partial(Entrywise, "Dropout", rate=0.5), ENTRIES),
    "relu": (partial(Entrywise, "Activation", activation="relu"), ENTRIES),
    "tanh": (partial(Entrywise, "Activation", activation="tanh"), ENTRIES),
    "gelu": (partial(Entrywise, "Activation", activation="gelu"), ENTRIES),
    "lstm 64": (
        partial(Recurrent, "LSTM"),
        [(8, 20, 16, 64), (32, 50, 32, 64), (64, 100, 64, 64)],
    ),
    "lstm 256": (
        partial(Recurrent, "LSTM"),
        [(8, 20, 64, 256), (32, 50, 128, 256), (64, 50, 256, 256)],
    ),
    "gru 128": (
        partial(Recurrent, "GRU"),
        [(8, 20, 32, 128), (32, 50, 64, 128), (64, 100, 128, 128)],
    ),
    "simplernn 128": (
        partial(Recurrent, "SimpleRNN"),
        [(8, 20, 32, 128), (32, 50, 64, 128), (64, 100, 128, 128)],
    ),
    "attention": (
        partial(Attention, "MultiHeadAttention"),
        [(4, 16, 32, 2), (16, 64, 128, 4), (8, 256, 256, 8)],
    ),
    "add": (partial(Join, "Add"), IMAGES),
    "concatenate": (partial(Join, "Concatenate"), IMAGES),
}


# -------------------------------------------------------------------- one step, by peer


def make(name, kind, size):
    """Return ``(step, numbers)``; ``numbers`` summarizes outputs and gradients."""
    layer = layer_of(kind, size)
    rng = np.random.default_rng(0)
    inputs, weights = layer.inputs(rng), layer.weights(rng)
    made = {"torch": torch_step, "jax": jax_step}.get(name, keras_step)
    step, numbers = made(name, layer, inputs, weights)
    return step, (numbers if layer.comparable else lambda outputs: [])


def layer_of(kind, size):
    family, sizes = KINDS[kind]
    return family(sizes[SIZES.index(size)])


def cotangent(y):
    return np.random.default_rng(1).standard_normal(y.shape, "f4")


def keras_step(name, layer, inputs, weights):
    tf = importlib.import_module(PACKAGES[name])
    module = layer.keras(tf.keras.layers)
    inputs = [tf.constant(x) for x in inputs]
    g = tf.constant(cotangent(layer.keras_call(module, inputs)))
    variables = module.trainable_variables
    for variable, value in zip(variables, weights, strict=True):
        variable.assign(value)

    @tf.function
    def run(inputs, g):
        sources = [*([] if layer.integers else inputs), *variables]
        with tf.GradientTape() as tape:
            for x in sources[: len(sources) - len(variables)]:
                tape.watch(x)
            y = layer.keras_call(module, inputs)
        gradients = tape.gradient(y, sources, output_gradients=g)
        return [y, *map(tf.convert_to_tensor, gradients)]  # of rows; converted to dense

    return (lambda: run(inputs, g)), (lambda found: sums([a.numpy() for a in found]))


def jax_step(name, layer, inputs, weights):
    import jax

    call = partial(layer.jax, jax)
    tensors = [jax.numpy.asarray(a) for a in (*inputs, *weights)]
    g = jax.numpy.asarray(cotangent(jax.eval_shape(call, *tensors)))
    fixed = len(inputs) if layer.integers else 0

    @jax.jit
    def run(tensors, g):
        y, pull = jax.vjp(partial(call, *tensors[:fixed]), *tensors[fixed:])
        return [y, *pull(g)]

    return (lambda: jax.block_until_ready(run(tensors, g))), sums


def torch_step(name, layer, inputs, weights):
    import torch

    call = partial(layer.torch, torch)
    tensors = layer.for_torch([*inputs, *weights])
    sources = tensors[len(inputs) if layer.integers else 0 :]
    for tensor in sources:
        tensor.requires_grad_()
    with torch.no_grad():
        y = from_torch(call(*tensors), layer.output_layout)
    g = to_torch(cotangent(y), layer.output_layout)

    def step():
        y = call(*tensors)
        return [y, *torch.autograd.grad(y, sources, g)]

    def numbers(found):
        y, *gradients = found
        gradients = [None] * (len(tensors) - len(sources)) + gradients
        gradients = layer.from_torch(gradients)
        return sums([from_torch(y, layer.output_layout), *gradients])

    return step, numbers


# ------------------------------------------------------------------------------- rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default="", help="parts of names, such as conv,pool")
    parser.add_argument("--sizes", default=",".join(SIZES), help="sizes to run")
    parser.add_argument("--quick", action="store_true", help="ordinary sizes, 3 rounds")
    options = arguments(parser)
    sizes = options.sizes.split(",")
    if options.quick:
        sizes, options.rounds = ["ordinary"], 3
    parts = options.kinds.split(",")
    kinds = [kind for kind in KINDS if any(part in kind for part in parts)]
    compare(
        [
            Case(kind, size, layer_of(kind, size).product)
            for kind in kinds
            for size in sizes
        ],
        options,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:], checked=1)
    else:
        main()
