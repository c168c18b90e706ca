"""Models of any kind: subclasses and their weights, layers by name, the summary."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model
from tapewright.layers import (
    LSTM,
    BatchNormalization,
    Dense,
    Flatten,
    GlobalMaxPooling2D,
)

from .two_inputs import two_inputs

# --------------------------------------------------------------------------- subclasses


def test_a_subclass_made_of_inputs_and_outputs_keeps_its_own_methods(data):
    class Doubled(Model):
        def doubled(self, x):
            return 2 * self(x)

    x = Input((3,))
    model = Doubled(x, Dense(2)(x))
    np.testing.assert_allclose(model.doubled(data[0]), 2 * model(data[0]).numpy())

    class Own(Model):
        def __init__(self, units, **kwargs):
            x = Input((3,))
            super().__init__(inputs=x, outputs=Dense(units)(x), **kwargs)
            self.units = units

    assert Own(4)(data[0]).shape == (5, 4)


def test_layers_of_a_subclass_are_found_and_built(data):
    class Two(Model):
        def __init__(self):
            super().__init__()
            self.flatten = Flatten()
            self.blocks = [Dense(4), BatchNormalization()]

        def call(self, inputs, training=None):
            x = self.flatten(inputs)
            for block in self.blocks:
                x = block(x, training=training)
            return x

    model = Two()
    model.build((None, 3))
    assert model.built and model.count_params() == 3 * 4 + 4 + 16
    assert [type(layer).__name__ for layer in model.layers] == [
        "Flatten",
        "Dense",
        "BatchNormalization",
    ]
    with pytest.raises(AttributeError, match="no symbolic inputs"):
        _ = model.inputs


def test_build_of_a_subclass_may_go_on_to_that_of_the_model():
    class Built(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(2)

        def build(self, input_shape):
            super().build(input_shape)
            self.shape = input_shape

        def call(self, inputs):
            return self.dense(inputs)

    model = Built()
    assert model(np.ones((4, 3))).shape == (4, 2) and len(model.weights) == 2
    assert model.shape == (4, 3) and model.built
    with pytest.raises(ValueError, match="input"):
        Built().build((None, None))


def test_a_model_whose_build_ends_in_that_of_its_base_has_its_weights():
    class Shifted(Model):
        def build(self, input_shape):
            self.shift = self.add_weight(shape=(input_shape[-1],), initializer="ones")
            self.dense = tw.keras.layers.Dense(2)
            super().build(input_shape)

        def call(self, inputs):
            return self.dense(inputs + self.shift)

    model = Shifted()
    assert model(tw.ones([3, 4])).shape == (3, 2) and model.built
    assert len(model.trainable_variables) == 3
    model = Shifted()
    model.build((None, 4))
    assert model.built and model(tw.ones([3, 4])).shape == (3, 2)


# -------------------------------------------------------------------- layers and losses


def test_get_layer_names_what_there_is():
    model = two_inputs()
    assert model.get_layer(index=1).name == "hidden"
    with pytest.raises(ValueError, match="no layer 'x'; there are a, hidden"):
        model.get_layer("x")
    with pytest.raises(ValueError, match="either name or index"):
        model.get_layer()


@pytest.mark.parametrize(
    "loss, expected",
    [
        ("mse", [5.0, 4.0, 1.0]),
        ({"b": "mse", "a": "mse"}, [5.0, 4.0, 1.0]),
        ({"a": "mse", "b": "mse"}, [5.0, 1.0, 4.0]),
    ],
)
def test_losses_of_a_dict_are_listed_as_it_was_written(loss, expected):
    x = Input((1,))
    model = Model(x, {"b": x * 2.0, "a": x * 1.0})
    model.compile("sgd", loss)
    zeros = np.zeros((4, 1), "float32")
    found = model.evaluate(zeros + 1, {"a": zeros, "b": zeros}, verbose=0)
    assert found == expected


# ------------------------------------------------------------------------------ summary


def test_the_summary_shows_what_is_connected_to_what(capsys):
    two_inputs().summary(show_trainable=True)
    text = capsys.readouterr().out
    assert (
        "Connected to" in text and "hidden[0][0]" in text and "Total params: 37" in text
    )


def test_the_summary_shows_all_output_shapes_of_a_layer(capsys):
    x = Input((5, 3))
    outputs, h, c = LSTM(4, return_state=True)(x)
    model = Model(x, {"last": outputs, "states": [h, c]}, name="inner")
    model.summary()
    assert "[(None, 4), (None," in capsys.readouterr().out
    y = Input((5, 3))
    Model(y, model(y)).summary()
    assert "[(None, 4), (None," in capsys.readouterr().out


def test_the_summary_lists_a_tensor_as_often_as_it_is_an_argument(capsys):
    x = Input((5, 4), name="x")
    Model(x, tw.layers.MultiHeadAttention(1, 2)(x, x)).summary()
    assert capsys.readouterr().out.count("x[0][0]") == 2


def test_the_summary_of_a_line_of_layers_has_three_columns(capsys):
    x = Input((3,))
    Model(x, Dense(2)(x), name="line").summary()
    text = capsys.readouterr().out
    assert 'Model: "line"' in text and "Connected" not in text


def test_the_summary_fits_a_line_of_80(capsys):
    """Rows as Keras prints them."""
    x = Input((8, 8, 3), name="image")
    y = GlobalMaxPooling2D(name="a_name_of_some_length")(x)
    inner = Model(x, y, name="inner")
    a, b = Input((8, 8, 3), name="a"), Input((8, 8, 3), name="b")
    model = Model([a, b], tw.keras.layers.Add(name="sum")([inner(a), inner(b)]))
    model.summary(expand_nested=True)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for row in (
        "│ inner (Functional)  │ (None, 3)         │          0 │ a[0][0], b[0][0]  │",
        "│    └ image          │ (None, 8, 8, 3)   │          0 │ -                 │",
        "│ a_name_of_some_len… │                   │            │                   │",
        "│ sum (Add)           │ (None, 3)         │          0 │ inner[0][0],      │",
        "│                     │                   │            │ inner[1][0]       │",
    ):
        assert row in text


def test_the_summary_may_tell_what_trains_and_what_is_inside():
    inner = tw.Sequential([Input((3,)), Dense(2, name="inside")], name="inner")
    inner.trainable = False
    model = tw.Sequential([Input((3,)), inner, Dense(1, name="last")])
    said = []
    model.summary(print_fn=said.append, show_trainable=True, expand_nested=True)
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in said[0].splitlines()
        if line.startswith("│")
    ]
    assert [(row[0].split(" (")[0].strip("└ "), row[3]) for row in rows] == [
        ("inner", "N"),
        ("inside", "N"),
        ("last", "Y"),
    ]
    assert "Trainable" in said[0].splitlines()[2]
