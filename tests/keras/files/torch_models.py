"""Models for the modules of PyTorch whose weights are recorded, with their outputs."""

from pathlib import Path

import numpy as np

from tapewright import keras
from tapewright.keras import layers

REFERENCE = Path(__file__).parent / "reference"
OUTPUTS = np.load(REFERENCE / "torch_outputs.npz")


def stored(name):
    return REFERENCE / f"torch_{name}.safetensors"


def chain(*parts):
    return keras.Sequential(list(parts))


def lstm(**options):
    return layers.LSTM(3, return_sequences=True, **options)


class Block(keras.Model):
    """The names of its attributes are those of the recorded module."""

    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 3)
        self.norm = layers.LayerNormalization(epsilon=1e-5)
        self.steps = [layers.Dense(8, "tanh"), layers.Dense(6, "tanh")]

    def call(self, x):
        x = self.norm(x + self.attention(x, x))
        for step in self.steps:
            x = step(x)
        return x


MODELS = {
    "mlp": lambda: chain(layers.Dense(8, "tanh"), layers.Dense(3)),
    "convnet": lambda: chain(
        layers.Conv2D(6, (3, 5), padding="same"),
        layers.BatchNormalization(epsilon=1e-5),
        layers.ReLU(),
        layers.Conv2D(4, 3, strides=2, groups=2, use_bias=False),
        layers.Permute((3, 1, 2)),  # PyTorch flattens channels first
        layers.Flatten(),
        layers.Dense(2),
    ),
    "depthwise": lambda: chain(
        layers.DepthwiseConv2D((2, 3), depth_multiplier=2),
        layers.GroupNormalization(2, epsilon=1e-5),
        layers.PReLU(shared_axes=[1, 2]),
        layers.DepthwiseConv2D(2),
        layers.RMSNormalization(epsilon=1e-6),
    ),
    "transposed": lambda: chain(
        layers.Conv2DTranspose(5, (3, 2), strides=2, activation="relu"),
        layers.Conv2DTranspose(4, 3),
    ),
    "one_axis": lambda: chain(layers.Conv1D(6, 3), layers.Conv1DTranspose(3, 2)),
    "three_axes": lambda: chain(
        layers.Conv3D(3, (1, 2, 3)), layers.Conv3DTranspose(2, (2, 1, 2))
    ),
    "lstm": lambda: chain(lstm(), layers.Dense(2)),
    "lstm_stack": lambda: chain(lstm(), lstm(), layers.Dense(2)),
    "gru": lambda: chain(*[layers.GRU(3, return_sequences=True) for _ in range(2)]),
    "gru_bidirectional": lambda: chain(
        layers.Bidirectional(layers.GRU(3, return_sequences=True))
    ),
    "rnn": lambda: chain(layers.SimpleRNN(3, return_sequences=True)),
    "text": lambda: chain(
        layers.Embedding(11, 6),
        layers.LayerNormalization(epsilon=1e-5),
        layers.Dense(3),
    ),
    "attention": Block,
}


def built(name):
    model = MODELS[name]()
    model(OUTPUTS[f"{name}_inputs"])
    return model


def check(model, name):
    outputs = model(OUTPUTS[f"{name}_inputs"]).numpy()
    np.testing.assert_allclose(outputs, OUTPUTS[f"{name}_outputs"], atol=1e-5)


def bidirectional():
    model = chain(
        layers.Bidirectional(lstm()), layers.Bidirectional(lstm()), layers.Dense(2)
    )
    model(OUTPUTS["lstm_bidirectional_inputs"])
    return model
