"""bfloat16 in files: two bytes a number, and read back bit for bit."""

import h5py
import numpy as np
import pytest

import tapewright as tw


def bits(x):
    return np.asarray(x).view(np.uint16)


class Scaled(tw.Module):
    def __init__(self, seed):
        self.kernel = tw.Variable(
            tw.random.normal([300, 200], seed=seed, dtype=tw.bfloat16)
        )
        self.shift = tw.Variable(0.1, dtype=tw.bfloat16)

    @tw.function(input_signature=[tw.TensorSpec([None, 300], tw.bfloat16)])
    def __call__(self, x):
        wide = tw.constant(np.arange(200), tw.bfloat16)
        return (
            tw.matmul(x, self.kernel) * tw.constant(0.3, tw.bfloat16)
            + self.shift
            + wide
        )


@pytest.fixture
def x():
    return tw.random.normal([4, 300], seed=2, dtype=tw.bfloat16)


def test_a_saved_module_computes_the_same(tmp_path, x):
    module = Scaled(1)
    tw.saved_model.save(module, tmp_path / "module")
    loaded = tw.saved_model.load(tmp_path / "module")
    assert {v.dtype for v in loaded.variables} == {tw.bfloat16}
    found = loaded(x)
    assert found.dtype is tw.bfloat16
    np.testing.assert_array_equal(bits(found), bits(module(x)))


def test_a_checkpoint_restores_every_bit(tmp_path):
    module, other = Scaled(1), Scaled(5)
    path = tw.train.Checkpoint(module=module).write(tmp_path / "checkpoint")
    tw.train.Checkpoint(module=other).read(path).assert_consumed()
    for a, b in zip(module.variables, other.variables, strict=True):
        assert b.dtype is tw.bfloat16
        np.testing.assert_array_equal(bits(a), bits(b))


def test_a_checkpoint_of_another_dtype_does_not_fit(tmp_path):
    path = tw.train.Checkpoint(v=tw.Variable([1.0, 2.0], dtype=tw.bfloat16)).write(
        tmp_path / "checkpoint"
    )
    with pytest.raises(ValueError, match="bfloat16"):
        tw.train.Checkpoint(v=tw.Variable([1.0, 2.0])).read(path)


def test_weights_are_stored_as_keras_stores_them(tmp_path):
    layers = tw.keras.layers
    net = [layers.Input((300,)), layers.Dense(200, dtype="bfloat16")]
    model, path = tw.keras.Sequential(net), tmp_path / "net.weights.h5"
    model.save_weights(path)
    with h5py.File(path) as file:
        kernel = file["layers/dense/vars/0"]
        assert (kernel.dtype, kernel.attrs["dtype"]) == (np.dtype("V2"), "bfloat16")
        stored = kernel[()].view(np.uint16)
    np.testing.assert_array_equal(stored, bits(model.weights[0]))
    expected = [bits(w) for w in model.get_weights()]
    model.set_weights([w * 0 for w in model.get_weights()])
    model.load_weights(path)
    for a, b in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(bits(a), b)


def test_weights_of_bfloat16_fit_into_float32_and_back(tmp_path):
    layers = tw.keras.layers
    narrow, wide = (
        tw.keras.Sequential([layers.Input((3,)), layers.Dense(2, dtype=dtype)])
        for dtype in ("bfloat16", "float32")
    )
    path = tmp_path / "net.weights.h5"
    narrow.save_weights(path)
    wide.load_weights(path)
    assert {w.dtype for w in wide.get_weights()} == {np.dtype("float32")}
    for a, b in zip(wide.get_weights(), narrow.get_weights(), strict=True):
        np.testing.assert_array_equal(a, np.float32(b))
    wide.save_weights(path)
    narrow.load_weights(path)
    for a, b in zip(wide.get_weights(), narrow.get_weights(), strict=True):
        np.testing.assert_array_equal(a, np.float32(b))


def test_a_config_holds_an_array_of_it():
    values = np.array([1.5, np.inf], tw.bfloat16.dtype)
    config = tw.keras.saving.serialize_keras_object(values)
    found = tw.keras.saving.deserialize_keras_object(config)
    assert found.dtype == values.dtype and found.tolist() == values.tolist()
