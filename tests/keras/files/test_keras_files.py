"""Files that Keras 3 and Keras 2 wrote: the same predictions, the same further training."""

import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.keras.models import load_model
from tapewright.layers import BatchNormalization, Dense, Dropout
from tapewright.optimizers import LossScaleOptimizer

HERE = Path(__file__).parent / "reference"
FOUND = np.load(HERE / "keras_files.npz")
X, Y, SEQUENCES = FOUND["x"], FOUND["y"], FOUND["sequences"]


def make():
    layers = [Dense(5, activation="tanh"), BatchNormalization(), Dropout(0.0), Dense(2)]
    return Sequential([Input((6,)), *layers])


def assert_close(found, expected, limit=1e-6):
    np.testing.assert_allclose(found, expected, rtol=limit, atol=limit)


@pytest.mark.parametrize(
    "name", ["trained.keras", "trained.h5", "old.h5", "old.keras"], ids=str
)
def test_a_trained_model_predicts_the_same_and_trains_on_the_same(name):
    kind = name.partition(".")[0]
    model = load_model(HERE / name)
    assert_close(model.predict(X, verbose=0), FOUND[kind])
    model.fit(X, Y, batch_size=8, epochs=1, shuffle=False, verbose=0)
    weights = model.get_weights()
    assert len(weights) == 8
    for i, weight in enumerate(weights):
        assert_close(weight, FOUND[f"{kind}_{i}"])
    assert model.optimizer.iterations.numpy() == 6


@pytest.mark.parametrize("name", ["nested.keras", "nested.h5", "old_nested.h5"])
def test_models_in_models_and_shared_layers_predict_the_same(name):
    model = load_model(HERE / name)
    kind = name.partition(".")[0]
    for i, outputs in enumerate(model.predict(SEQUENCES, verbose=0)):
        assert_close(outputs, FOUND[f"{kind}_{i}"])


@pytest.mark.parametrize(
    "name", ["trained.weights.h5", "shards.weights.json", "trained.keras", "trained.h5"]
)
def test_weights_are_read_from_every_kind_of_file(name):
    model = make()
    model.load_weights(HERE / name)
    assert_close(model.predict(X, verbose=0), FOUND["trained"])


@pytest.mark.parametrize("name", ["old.h5", "old_weights.h5"])
def test_weights_of_keras_2_are_read(name):
    model = make()
    model.load_weights(HERE / name)
    assert_close(model.predict(X, verbose=0), FOUND["old"])


def test_bfloat16_is_read_as_the_numbers_that_it_stands_for():
    model = make()
    model.load_weights(HERE / "bfloat16.weights.h5")
    for i, weight in enumerate(model.get_weights()):
        np.testing.assert_array_equal(weight, FOUND[f"bfloat16_{i}"])


def test_a_model_without_shapes_is_read():
    model = load_model(HERE / "plain.keras")
    assert not model.built and model.layers[0].units == 2


def test_what_is_compiled_comes_back():
    model = load_model(HERE / "trained.keras")
    assert model.optimizer.get_config()["learning_rate"] == np.float32(0.01)
    logs = model.evaluate(X, Y, return_dict=True, verbose=0)
    error = FOUND["trained"] - Y
    assert_close(logs["loss"], np.mean(error**2))
    assert_close(logs["mae"], np.mean(np.abs(error)))


def test_compile_false_leaves_the_model_uncompiled():
    assert not load_model(HERE / "trained.keras", compile=False).compiled


def altered(tmp_path, name, change):
    """A copy of an HDF5 file after ``change(file)``."""
    path = tmp_path / name
    path.write_bytes((HERE / name).read_bytes())
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def test_lists_of_names_in_pieces_are_read(tmp_path):
    def cut(file):
        group = file["model_weights"]
        names = np.array([n.encode() for n in group.attrs["layer_names"]])
        del group.attrs["layer_names"]
        for i, piece in enumerate(np.array_split(names, 3)):
            group.attrs[f"layer_names{i}"] = piece

    model = load_model(altered(tmp_path, "trained.h5", cut))
    assert_close(model.predict(X, verbose=0), FOUND["trained"])


def test_a_file_without_optimizer_state_gives_a_fresh_optimizer_and_says_so(tmp_path):
    def drop(file):
        del file["optimizer_weights"]

    path = altered(tmp_path, "trained.h5", drop)
    with pytest.warns(UserWarning, match="optimizer 'adam'.*no state"):
        model = load_model(path)
    model.fit(X, Y, verbose=0)
    assert model.optimizer.iterations.numpy() == 1


def test_optimizer_slots_that_do_not_fit_are_left_with_a_warning(tmp_path):
    def drop(file):
        group = file["optimizer_weights"]
        names = list(group.attrs["weight_names"])
        group.attrs["weight_names"] = names[:-1]

    path = altered(tmp_path, "trained.h5", drop)
    with pytest.warns(UserWarning, match="optimizer 'adam'.*13 .*14"):
        model = load_model(path)
    assert model.optimizer.iterations.numpy() == 0


@pytest.mark.parametrize("name", ["old.h5", "trained.h5"])
def test_swapped_layers_are_found(tmp_path, name):
    def swap(file):
        group = file["model_weights"]
        names = list(group.attrs["layer_names"])
        i, j = names.index("first"), names.index("last")
        names[i], names[j] = names[j], names[i]
        group.attrs["layer_names"] = names

    with pytest.raises(tw.errors.SavingError, match="'last'.*'first'|shape"):
        load_model(altered(tmp_path, name, swap))


def test_swapped_weights_of_a_layer_are_found(tmp_path):
    def swap(file):
        group = file["model_weights/normal"]
        names = list(group.attrs["weight_names"])
        names[0], names[1] = names[1], names[0]  # of one shape: gamma and beta
        group.attrs["weight_names"] = names

    with pytest.raises(
        tw.errors.SavingError, match="'beta'.*'gamma' of layer 'normal'"
    ):
        load_model(altered(tmp_path, "trained.h5", swap))


def test_layers_are_found_by_their_names():
    inputs = Input((6,))
    hidden = BatchNormalization(name="normal")(
        Dense(5, activation="tanh", name="first")(inputs)
    )
    model = Model(inputs, [Dense(2, name="last")(hidden), Dense(3, name="new")(hidden)])
    new = model.get_layer("new").get_weights()
    model.load_weights(HERE / "trained.h5", by_name=True)
    assert_close(model.predict(X, verbose=0)[0], FOUND["trained"])
    np.testing.assert_array_equal(new[0], model.get_layer("new").get_weights()[0])


def test_no_layer_by_any_of_the_names_is_told():
    model = Sequential([Input((6,)), Dense(5, name="other")])
    with pytest.warns(UserWarning, match="no stored layer has the name"):
        model.load_weights(HERE / "trained.h5", by_name=True)


def test_by_name_needs_a_file_with_names():
    with pytest.raises(ValueError, match=r"by_name"):
        make().load_weights(HERE / "trained.weights.h5", by_name=True)


def test_loading_draws_no_random_numbers_and_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(HERE / "trained.keras")


HALF = np.load(HERE / "dtypes.npz")


@pytest.mark.parametrize(
    ("name", "limit"),
    [("bfloat16.keras", 2e-2), ("bfloat16.h5", 2e-2)],
)
def test_models_in_bfloat16_compute_in_it(name, limit):
    policy = name.partition(".")[0]
    model = load_model(HERE / name)
    assert {variable.dtype.name for variable in model.weights} == {"bfloat16"}
    outputs = model.predict(HALF["x"], verbose=0)
    assert outputs.dtype == "bfloat16"
    assert_close(outputs.astype("float32"), HALF[policy], limit)
    if name != "bfloat16.h5":  # which Keras leaves without a whole optimizer
        assert model.optimizer.iterations.numpy() == HALF[f"{policy}_steps"]


def test_a_model_with_a_mixed_policy_computes_as_in_keras_and_keeps_its_loss_scale():
    model = load_model(HERE / "mixed_float16.keras")
    first, normal, *_, last = [x for x in model.layers if x.weights]
    for layer in (first, normal, last):
        assert layer.dtype_policy.name == "mixed_float16"
    assert {variable.dtype.name for variable in model.weights} == {"float32"}
    outputs = model.predict(HALF["x"], verbose=0)
    assert outputs.dtype == "float16"
    assert_close(outputs, HALF["mixed_float16"], 2e-3)
    assert type(model.optimizer) is LossScaleOptimizer
    assert model.optimizer.iterations.numpy() == HALF["mixed_float16_steps"]
    assert model.optimizer.step_counter.numpy() == HALF["mixed_float16_steps"]
    assert model.optimizer.dynamic_scale.numpy() == 2.0**14  # a step ran over there


def test_weights_of_half_precision_bring_the_optimizer_without_its_loss_scale():
    model = load_model(HERE / "mixed_float16.keras")
    other = load_model(HERE / "mixed_float16.keras", compile=False)
    other.compile("adam", "mse")
    other.fit(HALF["x"], HALF["x"][:, :2], verbose=0)
    other.load_weights(HERE / "mixed_float16.keras")
    pairs = zip(
        other.optimizer.variables,
        model.optimizer.inner_optimizer.variables,
        strict=True,
    )
    for a, b in pairs:
        assert_close(a.numpy(), b.numpy())
