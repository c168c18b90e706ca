"""What layers, constraints and optimizers refuse: the error names argument and value."""

import numpy as np
import pytest

from tapewright import keras, layers, optimizers
from tapewright.layers import constraints

SEQUENCES = np.ones((2, 5, 4), np.float32)
VECTORS = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: layers.Dropout("a"), "Dropout: rate .*0.*1.*got 'a'"),
        (lambda: layers.Dropout(0.5, 3), "noise_shape .*got 3"),
        (lambda: layers.GaussianDropout("a"), "GaussianDropout: rate .*got 'a'"),
        (
            lambda: layers.Permute(2),
            "dims .*axes 1.*1.*got 2",
        ),
        (lambda: layers.Concatenate("a"), "axis .*got 'a'"),
        (lambda: layers.BatchNormalization(momentum=2), "momentum .*0.*got 2"),
        (lambda: layers.LayerNormalization(epsilon="x"), "epsilon .*0.*got 'x'"),
        (lambda: layers.GroupNormalization(epsilon=-1), "epsilon .*0.*got -1"),
        *[
            (lambda n=n: layers.GroupNormalization(n), "groups must be a positive int")
            for n in (0, -3, 1.5, "32", None, True, (1, 2))
        ],
        (
            lambda: layers.Conv2D(2, 3, data_format=0),
            "data_format .*'channels_last'.*got 0",
        ),
        (
            lambda: layers.Flatten(data_format=()),
            r"data_format .*'channels_last'.*got \(\)",
        ),
        (
            lambda: layers.MultiHeadAttention(2, 3, attention_axes="bad"),
            "attention_axes .*got 'bad'",
        ),
        (
            lambda: layers.Input((3,), batch_shape=(2, 3)),
            r"got shape=\(3,\) and batch_shape=\(2, 3\)",
        ),
        (
            lambda: layers.Input(batch_size=2, batch_shape=(2, 3)),
            r"got batch_size=2 and batch_shape=\(2, 3\)",
        ),
        (
            lambda: layers.Input(batch_size=5, tensor=layers.Input((3,), batch_size=2)),
            r"match the tensor.*\(2, 3\).*batch_size 5",
        ),
        (
            lambda: layers.GroupNormalization(2)(layers.Input((3, None))),
            r"channels .*\(None, 3, None\)",
        ),
        (lambda: layers.RNN([]), "cells .*got none"),
        (
            lambda: layers.Bidirectional(layers.Dense(2)),
            "layer .*recurrent.*got <Dense",
        ),
        (lambda: constraints.MaxNorm(-1), "MaxNorm: max_value .*got -1"),
        (
            lambda: constraints.MinMaxNorm("a"),
            "MinMaxNorm: min_value .*got 'a'",
        ),
        (
            lambda: constraints.MinMaxNorm(2.0, 1.0),
            "MinMaxNorm: min_value .*got 2.0 and 1.0",
        ),
        (
            lambda: layers.EinsumDense("abc,cd->abd", (None, 0)),
            "EinsumDense: a size of output_shape .*got 0",
        ),
        (lambda: optimizers.SGD(clipnorm=-1), "SGD: clipnorm .*got -1"),
        (lambda: optimizers.SGD(clipvalue=0), "SGD: clipvalue must be .*got 0"),
        (lambda: optimizers.Adam(clipvalue="a"), "Adam: clipvalue .*got 'a'"),
        (lambda: optimizers.Adam(weight_decay="a"), "weight_decay .*got 'a'"),
    ],
)
def test_a_constructor_names_the_argument_and_the_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU, layers.SimpleRNN])
@pytest.mark.parametrize("steps", [4, 6])
def test_a_mask_must_have_as_many_steps_as_the_inputs(kind, steps):
    layer = kind(3, return_sequences=True)
    with pytest.raises(ValueError, match=rf"mask .*got \(2, {steps}\)"):
        layer(SEQUENCES, mask=np.ones((2, steps), bool))


@pytest.mark.parametrize(
    "call, named",
    [
        (
            lambda mask: layers.GlobalAveragePooling1D()(SEQUENCES, mask=mask),
            "GlobalAveragePooling1D",
        ),
        (lambda mask: layers.Attention()([SEQUENCES] * 2, [None, mask]), "Attention"),
        (lambda mask: layers.Attention()([SEQUENCES] * 2, [mask, None]), "Attention"),
        (
            lambda mask: layers.MultiHeadAttention(1, 2)(
                SEQUENCES, SEQUENCES, attention_mask=mask[:, None]
            ),
            "dot_product_attention",
        ),
    ],
)
def test_a_mask_of_another_length_is_named(call, named):
    with pytest.raises(ValueError, match=rf"(?s){named}\)?: shapes .*mask: shape"):
        call(np.ones((2, 4), bool))


def test_the_number_of_initial_states_is_checked():
    with pytest.raises(
        ValueError, match=r"initial_state .*sizes \[3, 3\], got sizes \[3\]"
    ):
        layers.LSTM(3)(SEQUENCES, initial_state=[VECTORS])


def test_the_sizes_of_initial_states_are_checked():
    with pytest.raises(
        ValueError, match=r"initial_state .*sizes \[4\], got sizes \[3\]"
    ):
        layers.GRU(4)(SEQUENCES, initial_state=VECTORS)


def test_an_argument_that_a_call_lacks_is_named():
    with pytest.raises(TypeError, match="'value'.*missing"):
        layers.MultiHeadAttention(2, 3)(SEQUENCES)


def test_layers_and_models_refuse_to_be_quantized():
    for thing in (layers.Dense(2), keras.Sequential()):
        with pytest.raises(
            NotImplementedError, match=r"quantize\('int8'\) is not supp"
        ):
            thing.quantize("int8")


def test_models_refuse_to_be_exported():
    with pytest.raises(
        NotImplementedError, match=r"tw\.saved_model\.save\(model, path\)"
    ):
        keras.Sequential().export("folder", format="tf_saved_model")
