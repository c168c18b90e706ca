"""Weights in files of safetensors, under names that follow the objects of a model."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.errors import SavingError
from tapewright.keras import layers


def dense(units=2, **options):
    return keras.Sequential([keras.Input((3,)), layers.Dense(units, **options)])


class Encoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.norm = layers.LayerNormalization()
        self.steps = [layers.Dense(2), layers.Dense(2)]
        self.head = dense()
        self._own = layers.Dense(3)
        self.scale = self.add_weight(name="scale", shape=())
        self.unnamed = [self.add_weight(shape=(2,)) for _ in range(2)]

    def call(self, x):
        return self.head(self._own(self.steps[1](self.steps[0](self.norm(x)))))


def encoder():
    model = Encoder()
    model(np.ones((1, 3), "f4"))
    return model


NAMES = """
    _own/bias _own/kernel head/layers/dense/bias head/layers/dense/kernel norm/beta
    norm/gamma scale steps/dense/bias steps/dense/kernel steps/dense_1/bias
    steps/dense_1/kernel variable variable_1
""".split()


def names(path):
    return sorted(tw.io.load_safetensors(path))


def check_same(model, other):
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "w.safetensors"


def test_names_follow_attributes_and_never_counters(path):
    for _ in range(2):  # names of layers and variables count on
        encoder().save_weights(path)
        assert names(path) == NAMES


def test_layers_in_a_list_are_named_after_their_classes(path):
    model = keras.Sequential(
        [keras.Input((4, 3))]
        + [layers.Dense(3, name="a"), layers.Dense(3), layers.LSTM(2, name="b")]
    )
    model.save_weights(path)
    cell = [f"layers/lstm/cell/{key}" for key in ("bias", "kernel", "recurrent_kernel")]
    of_dense = [
        f"layers/{i}/{key}" for i in ("dense", "dense_1") for key in ("bias", "kernel")
    ]
    assert names(path) == [*of_dense, *cell]  # fmt: skip


@pytest.mark.parametrize("max_shard_size", [None, 64 / 2**30])
def test_weights_return(path, max_shard_size):
    model, other = encoder(), encoder()
    model.save_weights(path, max_shard_size=max_shard_size)
    assert path.exists() == (max_shard_size is None)
    other.load_weights(path)
    check_same(model, other)
    if max_shard_size:
        third = encoder()
        third.load_weights(f"{path}.index.json")
        check_same(model, third)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_return(path, dtype):
    model, other = dense(dtype=dtype), dense(dtype=dtype)
    model.save_weights(path)
    arrays = tw.io.load_safetensors(path)
    assert {tw.as_dtype(array.dtype).name for array in arrays.values()} == {dtype}
    other.load_weights(path)
    check_same(model, other)


def test_other_floating_dtypes_are_converted(path):
    model = dense(dtype="float64")
    model.save_weights(path)
    other = dense()
    other.load_weights(path)
    np.testing.assert_allclose(other.get_weights()[0], model.get_weights()[0], 1e-6)


def test_integers_bools_and_scalars_return(path):
    class Counts(layers.Layer):
        def build(self, shape):
            for name, dtype in (("n", "int64"), ("on", "bool"), ("small", "uint8")):
                weight = self.add_weight(
                    name=name,
                    shape=(),
                    dtype=dtype,
                    trainable=False,
                    initializer="zeros",
                )
                setattr(self, name, weight)

        def call(self, x):
            return x

    model, other = (keras.Sequential([keras.Input((1,)), Counts()]) for _ in range(2))
    model.set_weights([7, True, 255])
    model.save_weights(path)
    other.load_weights(path)
    check_same(model, other)


def test_a_tied_weight_is_stored_once(path):
    model = keras.Sequential(
        [keras.Input((4, 4, 2)), layers.SpectralNormalization(layers.Conv2D(3, 2))]
    )
    model.save_weights(path)
    assert len(names(path)) == len(model.weights) == 3
    before = model.get_weights()
    for weight in model.weights:
        weight.assign(weight * 0)
    model.load_weights(path)
    for now, then in zip(model.get_weights(), before):
        np.testing.assert_array_equal(now, then)


def test_the_optimizer_is_not_in_the_file(path):
    model = dense()
    model.compile("adam", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    model.save_weights(path)
    assert names(path) == ["layers/dense/bias", "layers/dense/kernel"]
    model.load_weights(path)
    assert model.optimizer.iterations == 1


class Quantized(layers.Dense):
    """A layer that stores its kernel in its own way."""

    def save_own_variables(self, store):
        store["scale"] = np.float32(0.5)
        store["steps"] = np.round(self.kernel.numpy() / 0.5).astype("i1")

    def load_own_variables(self, store):
        self.kernel.assign(np.float32(store["scale"]) * store["steps"])


def test_layers_with_hooks_store_what_they_choose(path):
    model = keras.Sequential([keras.Input((2,)), Quantized(2, use_bias=False)])
    model.set_weights([np.float32([[1, 2], [-1, 0.5]])])
    model.save_weights(path)
    assert names(path) == ["layers/quantized/scale", "layers/quantized/steps"]
    other = keras.Sequential([keras.Input((2,)), Quantized(2, use_bias=False)])
    other.load_weights(path)
    check_same(model, other)


# --------------------------------------------------------------------------- what differs


def changed(path, model, **arrays):
    model.save_weights(path)
    stored = {key: np.array(v) for key, v in tw.io.load_safetensors(path).items()}
    tw.io.save_safetensors(path, {**stored, **arrays})


def test_missing_and_unexpected_names_are_all_named(path):
    model = dense()
    model.save_weights(path)
    other = keras.Sequential([keras.Input((3,)), layers.EinsumDense("ab,bc->ac", 2)])
    before = other.get_weights()
    with pytest.raises(SavingError) as caught:
        other.load_weights(path)
    assert str(caught.value).endswith(
        "lacks 'layers/einsum_dense/kernel' (for 'layers/einsum_dense/kernel'); has "
        "unexpected 'layers/dense/bias', 'layers/dense/kernel'"
    )
    np.testing.assert_array_equal(other.get_weights(), before)


@pytest.mark.parametrize(
    ("bias", "reason"),
    [
        (np.ones(3, "f4"), r"has shape \(3,\), weight .*bias' \(2,\)"),
        (np.ones(2, "i4"), "holds int32, weight .*bias' is floating"),
        (np.ones(2, bool), "holds bool"),
    ],
)
def test_a_weight_that_does_not_fit_leaves_all_as_they_are(path, bias, reason):
    changed(path, dense(), **{"layers/dense/bias": bias})
    model = dense()
    before = model.get_weights()
    with pytest.raises(SavingError, match=reason):
        model.load_weights(path)
    for now, then in zip(model.get_weights(), before):
        np.testing.assert_array_equal(now, then)
    with pytest.warns(UserWarning, match="1 weights were skipped, 1 were loaded"):
        model.load_weights(path, skip_mismatch=True)
    assert not np.array_equal(model.get_weights()[0], before[0])


def test_a_number_that_is_too_large_leaves_all_as_they_are(path):
    changed(path, dense(), **{"layers/dense/bias": np.array([1, 1e300])})
    model = dense()
    before = model.get_weights()
    with pytest.raises(SavingError, match="too large for float32"):
        model.load_weights(path)
    for now, then in zip(model.get_weights(), before):
        np.testing.assert_array_equal(now, then)


def test_skipped_layers_may_be_in_the_file_or_not(path):
    model = encoder()
    model.save_weights(path)
    other = encoder()
    before = other.head.get_weights()
    other.load_weights(path, objects_to_skip=[other.head])
    np.testing.assert_array_equal(other.norm.get_weights(), model.norm.get_weights())
    for now, then in zip(other.head.get_weights(), before):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    "name_map",
    [
        lambda name: name.replace("layers/dense/", "fc."),
        {"layers/dense/kernel": "fc.kernel", "layers/dense/bias": "fc.bias"},
        [(r"^layers/(\w+)/", r"\1."), ("^dense", "fc")],
    ],
)
def test_a_name_map_has_three_forms(path, name_map):
    kernel, bias = np.ones((3, 2), "f4"), np.float32([1, 2])
    tw.io.save_safetensors(path, {"fc.kernel": kernel, "fc.bias": bias})
    model = dense()
    model.load_weights(path, name_map=name_map)
    np.testing.assert_array_equal(model.get_weights()[0], kernel)
    np.testing.assert_array_equal(model.get_weights()[1], bias)


def test_none_and_names_that_a_dict_lacks(path):
    tw.io.save_safetensors(path, {"layers/dense/kernel": np.ones((3, 2), "f4")})
    model = dense(bias_initializer="ones")
    model.load_weights(path, name_map={"layers/dense/bias": None})
    assert model.get_weights()[0].all() and model.get_weights()[1].all()


# ---------------------------------------------------------------------------------- saving


def test_an_old_file_is_kept_after_an_error(path):
    model = dense()
    model.save_weights(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        model.save_weights(path, overwrite=False)
    with pytest.raises(ValueError, match="max_shard_size must be at least"):
        model.save_weights(path, max_shard_size=1e-9)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_a_model_without_weights_yet_is_refused(path):
    model = keras.Sequential([layers.Dense(2)])
    for call in (model.save_weights, model.load_weights):
        with pytest.raises(ValueError, match="has no weights yet"):
            call(path)


def test_the_package_is_imported_at_first_use():
    code = "import sys, tapewright as tw; tw.io.load_safetensors; tw.keras.Sequential()"
    code += "; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
