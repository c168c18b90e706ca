"""Writes ``text.keras``, a model of texts and categories of Keras, and its outputs.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/keras/files/reference/record_text.py
"""

import json
import os
import pathlib

import numpy as np

TEXTS = [["A cat, Zoë"], ["a dog"], ["the cat"]]
NUMBERS = [[1, 4], [2, 0], [0, 9]]


def make(keras, constant):
    """The model, and its inputs."""
    layers = keras.layers
    text = keras.Input((1,), dtype="string", name="text")
    number = keras.Input((2,), dtype="int64", name="number")
    words = layers.TextVectorization(output_sequence_length=3, name="words")
    weights = layers.TextVectorization(
        output_mode="tf_idf", ngrams=2, split="whitespace"
    )
    whole = layers.StringLookup(output_mode="count", name="whole")
    integers = layers.IntegerLookup(output_mode="multi_hot", mask_token=0)
    for each in (words, weights, whole):
        each.adapt(constant(TEXTS))
    integers.adapt(constant(NUMBERS))
    outputs = [words(text), weights(text), whole(text), integers(number)]
    given = layers.IntegerLookup(vocabulary=[4, 5], output_mode="one_hot")
    outputs += [given(number), layers.Hashing(5, salt=[1, 2])(text)]
    crossed = layers.HashedCrossing(7)
    outputs.append(crossed([text, number[:, :1]]))
    return keras.Model([text, number], outputs), [constant(TEXTS), constant(NUMBERS)]


def main():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import tensorflow as tf

    import keras

    folder = pathlib.Path(__file__).parent
    model, inputs = make(keras, tf.constant)
    model.save(folder / "text.keras")
    outputs = [np.asarray(x).tolist() for x in model(inputs)]
    (folder / "text.json").write_text(json.dumps(outputs) + "\n")


if __name__ == "__main__":
    main()
