"""Names of PyTorch's weights for those of a model."""

import re

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.errors import SavingError
from tapewright.keras import layers

from ..torch_models import bidirectional, built, chain, check, lstm, stored


def test_a_stack_with_two_directions_in_one_module_is_named_by_pairs():
    model = bidirectional()
    pairs = [
        (r"^layers/bidirectional/", "rnn."),
        (r"^layers/bidirectional_1/(for|back)ward_layer/cell/", r"rnn.\1."),
        (r"\.(for|back)\.kernel", r".\1.weight_ih"),
        (r"\.(for|back)\.recurrent_kernel", r".\1.weight_hh"),
        (r"\.(for|back)\.bias", r".\1.bias_ih"),
        (r"\.for\.(.*)", r".\1_l1"),
        (r"\.back\.(.*)", r".\1_l1_reverse"),
        (r"^layers/dense/", "head/"),
    ]
    model.load_weights(stored("lstm_bidirectional"), name_map=pairs, transpose="torch")
    check(model, "lstm_bidirectional")


NAME_MAPS = {
    "function": lambda name: name.replace("layers/dense_1/", "2.").replace(
        "layers/dense/", "0."
    ),
    "dict": {
        "layers/dense/kernel": "0.weight",
        "layers/dense/bias": "0.bias",
        "layers/dense_1/kernel": "2.weight",
        "layers/dense_1/bias": "2.bias",
    },
    "pairs": [("^layers/dense_1", "2"), ("^layers/dense", "0")],
}


@pytest.mark.parametrize("form", NAME_MAPS)
def test_a_name_map_has_three_forms(form):
    model = built("mlp")
    model.load_weights(stored("mlp"), name_map=NAME_MAPS[form], transpose="torch")
    check(model, "mlp")


def test_none_leaves_a_weight_as_it_is():
    model = built("mlp")
    kernel, bias = model.get_weights()[:2]
    names = NAME_MAPS["dict"] | {"layers/dense/kernel": None}
    with pytest.raises(SavingError, match="has unexpected '0.weight'"):
        model.load_weights(stored("mlp"), name_map=names, transpose="torch")
    with pytest.warns(UserWarning, match="0.weight: belongs to no weight"):
        model.load_weights(
            stored("mlp"), skip_mismatch=True, name_map=names, transpose="torch"
        )
    np.testing.assert_array_equal(model.get_weights()[0], kernel)
    assert not np.array_equal(model.get_weights()[1], bias)


def test_layers_with_the_names_of_modules_need_no_name_map(tmp_path):
    x = keras.Input((5, 4))
    y = layers.Dense(2, name="head")(lstm(name="rnn")(x))
    model = keras.Model(x, y)
    arrays = tw.io.load_safetensors(stored("lstm"))
    renamed = {
        key.replace("0.", "rnn.").replace("2.", "head."): array
        for key, array in arrays.items()
    }
    tw.io.save_safetensors(tmp_path / "w.safetensors", renamed)
    model.load_weights(tmp_path / "w.safetensors", transpose="torch")
    check(model, "lstm")


def test_layers_in_a_list_match_modules_in_a_list(tmp_path):
    class Stack(layers.Layer):
        def __init__(self):
            super().__init__()
            self.layers = [layers.ReLU(), layers.Dense(2, use_bias=False)]

        def call(self, x):
            return self.layers[1](self.layers[0](x))

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.stack = Stack()

        def call(self, x):
            return self.stack(x)

    model = Net()
    model(np.ones((1, 2), "f4"))
    kernel = np.float32([[1, 2], [3, 4]])
    tw.io.save_safetensors(
        tmp_path / "w.safetensors", {"stack.layers.1.weight": kernel}
    )
    model.load_weights(tmp_path / "w.safetensors", transpose="torch")
    np.testing.assert_array_equal(model.get_weights()[0], kernel.T)


def test_a_chain_of_layers_matches_numbered_modules_in_order():
    x = keras.Input((4,))
    y = layers.Dense(3)(layers.Dense(8, "tanh")(x))
    model = keras.Model(x, y)
    model.load_weights(stored("mlp"), transpose="torch")
    check(model, "mlp")


def test_modules_from_ten_on_are_in_order(tmp_path):
    model = chain(*[layers.Dense(2, use_bias=False) for _ in range(12)])
    model.build((None, 2))
    arrays = {f"{i}.weight": np.full((2, 2), i, "f4") for i in range(12)}
    tw.io.save_safetensors(tmp_path / "w.safetensors", arrays)
    model.load_weights(tmp_path / "w.safetensors", transpose="torch")
    assert [int(w[0, 0]) for w in model.get_weights()] == list(range(12))


def unmatched(model, path):
    with pytest.raises(SavingError, match="pass name_map") as caught:
        model.load_weights(path, transpose="torch")
    return str(caught.value)


def two_branches(x, a, b):
    return a(x) + b(x)


def one_layer_twice(x, a, b):
    return b(a(a(x)))


def two_outputs(x, a, b):
    return [a(x), b(x)]


@pytest.mark.parametrize("call", [two_branches, one_layer_twice, two_outputs])
def test_what_is_no_chain_is_not_matched_by_order(tmp_path, call):
    path = tmp_path / "w.safetensors"
    kernel = np.ones((4, 4), "f4")
    tw.io.save_safetensors(path, {"0.weight": kernel, "1.weight": kernel})
    x = keras.Input((4,))
    parts = [layers.Dense(4, use_bias=False) for _ in range(2)]
    model = keras.Model(x, call(x, *parts))
    assert "layers/dense_1/kernel (4, 4)" in unmatched(model, path)
    pairs = [("^layers/dense_1/", "1."), ("^layers/dense/", "0.")]
    model.load_weights(path, name_map=pairs, transpose="torch")


def test_what_cannot_be_matched_is_listed_with_shapes_on_both_sides():
    model = bidirectional()
    message = unmatched(model, stored("lstm_bidirectional"))
    assert "layers/dense/kernel (6, 2), not found as 'dense" in message
    assert "rnn.weight_hh_l1_reverse (12, 3)" in message


def test_another_number_of_modules_is_not_matched():
    unmatched(built("lstm"), stored("mlp").with_name("torch_lstm_stack.safetensors"))


# --------------------------------------------------------------------------- all or none


def test_after_an_error_no_weight_has_changed():
    model = chain(layers.Dense(8, "tanh"), layers.Dense(4))
    model.build((None, 4))
    before = model.get_weights()
    expected = (
        "has shape (3, 8), weight 'layers/dense_1/kernel' (8, 4) needs (4, 8) in "
        "PyTorch's layout (and 1 more that do not fit)"
    )
    with pytest.raises(SavingError, match=re.escape(expected)):
        model.load_weights(stored("mlp"), transpose="torch")
    for now, then in zip(model.get_weights(), before):
        np.testing.assert_array_equal(now, then)


def test_missing_and_unexpected_keys_are_named():
    model = chain(layers.Dense(8, use_bias=False), layers.BatchNormalization())
    model.build((None, 4))
    with pytest.raises(SavingError) as caught:
        model.load_weights(stored("mlp"), transpose="torch")
    message = str(caught.value)
    assert "lacks '2.running_mean' (for 'layers/batch_normalization/moving" in message
    assert message.endswith("has unexpected '0.bias'")


def test_the_first_of_two_biases_must_be_named():
    model = built("rnn")
    names = {"layers/simple_rnn/cell/bias": "0.bias"}
    with pytest.raises(ValueError, match="key with 'bias_ih'"):
        model.load_weights(stored("rnn"), name_map=names, transpose="torch")


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"transpose": "tf"}, ValueError, "transpose must be 'torch' or None"),
        ({"name_map": {"dense": "0"}}, ValueError, "'dense', which is no weight"),
        ({"name_map": lambda name: 3}, TypeError, "must return a str or None, got 3"),
        ({"by_name": True}, ValueError, "older .h5 file"),
    ],
)
def test_wrong_arguments_are_refused(options, error, reason):
    with pytest.raises(error, match=reason):
        built("mlp").load_weights(stored("mlp"), **options)


def test_name_map_and_transpose_are_for_safetensors(tmp_path):
    model = built("mlp")
    model.save_weights(tmp_path / "w.weights.h5")
    for options in ({"name_map": {}}, {"transpose": "torch"}):
        with pytest.raises(ValueError, match="are for .safetensors files"):
            model.load_weights(tmp_path / "w.weights.h5", **options)
