"""Weights that PyTorch wrote: models that load them have the recorded outputs."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import SavingError
from tapewright.keras import layers

from ..torch_models import MODELS, built, chain, check, lstm, stored


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_pytorch(name):
    model = built(name)
    model.load_weights(stored(name), transpose="torch")
    check(model, name)


@pytest.mark.parametrize("name", MODELS)
def test_an_array_of_another_shape_is_refused_whatever_its_size(tmp_path, name):
    model, path = built(name), tmp_path / "w.safetensors"
    before = model.get_weights()
    stored_arrays = tw.io.load_safetensors(stored(name))
    for key, array in stored_arrays.items():
        if key.endswith("num_batches_tracked"):
            continue
        shapes = {(), (0,), (7,), array.shape[::-1], (1, *array.shape), (array.size,)}
        shapes |= {array.shape[1:], (*array.shape, 1), (array.size, 1), (1, array.size)}
        for shape in shapes - {array.shape}:
            changed = np.resize(array, shape).astype(array.dtype)
            tw.io.save_safetensors(path, stored_arrays | {key: changed})
            with pytest.raises(SavingError, match=rf"\[{key}\]: has shape"):
                model.load_weights(path, transpose="torch")
    for now, then in zip(model.get_weights(), before):
        np.testing.assert_array_equal(now, then)


def test_the_shape_does_not_decide_what_is_transposed(tmp_path):
    kernel = np.float32([[1, 2], [3, 4]])
    tw.io.save_safetensors(
        tmp_path / "w.safetensors", {"0.weight": kernel, "1.weight": kernel}
    )
    model = chain(layers.Embedding(2, 2), layers.Dense(2, use_bias=False))
    model(np.zeros((1, 1), "i4"))
    model.load_weights(tmp_path / "w.safetensors", transpose="torch")
    table, dense = model.get_weights()
    np.testing.assert_array_equal(table, kernel)
    np.testing.assert_array_equal(dense, kernel.T)


def test_a_grouped_convolution_is_not_taken_for_a_depthwise_one(tmp_path):
    # As many numbers as the layer has, with two inputs for each output.
    tw.io.save_safetensors(
        tmp_path / "w.safetensors", {"0.weight": np.ones((4, 2, 3, 3), "f4")}
    )
    model = chain(layers.DepthwiseConv2D(3, depth_multiplier=2, use_bias=False))
    model.build((None, 5, 5, 4))
    with pytest.raises(SavingError, match=r"needs \(8, 1, 3, 3\)"):
        model.load_weights(tmp_path / "w.safetensors", transpose="torch")


# ------------------------------------------------------------------------ what has no rule


class Mixing(layers.Layer):
    def build(self, shape):
        self.matrix = self.add_weight(name="matrix", shape=(3, 3))
        self.shift = self.add_weight(name="shift", shape=(3,))

    def call(self, x):
        return x @ self.matrix + self.shift


def mixing(tmp_path):
    arrays = {"0.matrix": np.ones((3, 3), "f4"), "0.shift": np.float32([1, 2, 3])}
    tw.io.save_safetensors(tmp_path / "w.safetensors", arrays)
    model = chain(Mixing())
    model.build((None, 3))
    return model, tmp_path / "w.safetensors"


def test_a_matrix_of_a_layer_without_rules_is_an_error_that_names_it(tmp_path):
    model, path = mixing(tmp_path)
    before = model.get_weights()[1]
    with pytest.raises(ValueError, match="no rule for 'layers/mixing/matrix'.*Mixing"):
        model.load_weights(path, transpose="torch")
    model.load_weights(path, objects_to_skip=model.layers, transpose="torch")
    np.testing.assert_array_equal(model.get_weights()[1], before)


def test_its_vectors_are_loaded_as_they_are(tmp_path):
    model, path = mixing(tmp_path)
    names = {"layers/mixing/matrix": None, "layers/mixing/shift": "0.shift"}
    with pytest.warns(UserWarning, match="0.matrix"):
        model.load_weights(path, True, name_map=names, transpose="torch")
    np.testing.assert_array_equal(model.get_weights()[1], [1, 2, 3])


def test_a_subclass_has_the_rules_of_its_base():
    class Own(layers.Dense):
        pass

    model = chain(Own(8, "tanh"), Own(3))
    model.build((None, 4))
    model.load_weights(stored("mlp"), transpose="torch")
    check(model, "mlp")


def test_a_gru_with_the_reset_before_is_another_computation():
    model = chain(layers.GRU(3, reset_after=False))
    model.build((None, 5, 4))
    with pytest.raises(ValueError, match="reset_after=True"):
        model.load_weights(stored("gru_bidirectional"), transpose="torch")


def test_a_layer_for_each_time_step_is_the_layer_that_it_repeats():
    model = chain(lstm(), layers.TimeDistributed(layers.Dense(2)))
    model.build((None, 5, 4))
    model.load_weights(stored("lstm"), transpose="torch")
    check(model, "lstm")
