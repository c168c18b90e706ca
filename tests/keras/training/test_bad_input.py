"""What `compile`, `fit` and the files of weights refuse, before anything is changed."""

import io
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.layers import BatchNormalization, Dense, Layer

X = np.random.default_rng(0).normal(size=(20, 4)).astype("f4")
Y = X.sum(1, keepdims=True)


@pytest.fixture(params=[False, True], ids=["traced", "eager"])
def model(request):
    tw.random.set_seed(0)
    model = Sequential([Input((4,)), BatchNormalization(), Dense(1)])
    model.compile("adam", "mse", run_eagerly=request.param)
    model.fit(X, Y, verbose=0)
    return model


def refused(model, error, match, *args, **options):
    """The call fails as it should; weights and slots are as they were."""
    variables = [*model.weights, *model.optimizer.variables]
    before = [v.numpy().copy() for v in variables]
    with pytest.raises(error, match=match):
        model.fit(*args, **({"verbose": 0} | options))
    assert len(model.weights) + len(model.optimizer.variables) == len(before)
    for variable, value in zip(variables, before):
        np.testing.assert_array_equal(variable.numpy(), value)


# ------------------------------------------------------------------------------ labels


def test_labels_must_not_be_strings(model):
    refused(model, TypeError, "y: labels .*got strings", X, np.array(["1"] * 20))


def test_inputs_must_not_be_strings(model):
    given = np.array([["1"] * 4] * 20)
    refused(model, tw.errors.DTypeError, "strings .*float32", given, Y)


def test_class_weights_must_be_numbers(model):
    refused(
        model,
        TypeError,
        "class_weight: .*got 'a' for class 1",
        X,
        X[:, 0] > 0,
        class_weight={1: "a"},
    )


def test_the_classes_of_weights_must_be_numbers(model):
    weights = {"0": 2.0, "1": 1.0}  # as a JSON file gives them
    refused(
        model,
        TypeError,
        "keys .*got '0'",
        X,
        X[:, 0] > 0,
        class_weight=weights,
    )


# --------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("name", ["epochs", "initial_epoch"])
@pytest.mark.parametrize("value", [1.5, "3", None])
def test_numbers_of_epochs_must_be_integers(model, name, value):
    refused(model, TypeError, f"{name} must be an integer", X, Y, **{name: value})


def test_epochs_may_be_an_integer_of_numpy(model):
    assert model.fit(X, Y, epochs=np.int64(2), verbose=0).epoch == [0, 1]


def test_validation_split_must_be_a_number(model):
    refused(model, ValueError, "validation_split.*'a'", X, Y, validation_split="a")


# -------------------------------------------------------------------------- validation


def test_validation_data_of_another_shape_are_refused_before_the_first_epoch(model):
    refused(
        model,
        tw.errors.ShapeError,
        r"size 4.*axis 1.*got shape \(20, 2\)",
        X,
        Y,
        validation_data=(X[:, :2], Y),
    )


def test_validation_data_without_labels_are_refused_before_the_first_epoch(model):
    refused(model, ValueError, "validation_data.*labels", X, Y, validation_data=X)


def test_validation_without_labels_is_for_a_test_step_of_ones_own():
    class Own(Sequential):
        def test_step(self, data):
            return {"loss": tw.reduce_mean(self(data))}

    model = Own([Input((4,)), Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(X, Y, validation_data=X, verbose=0).history
    expected = model.predict(X, verbose=0).mean()
    np.testing.assert_allclose(history["val_loss"], expected, rtol=1e-5)


def test_validation_of_a_model_that_branches_on_values_runs_eagerly():
    class Branching(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(1)

        def call(self, inputs):
            return self.dense(inputs) if tw.reduce_sum(inputs) < 1e9 else inputs

    model = Branching()
    model(X)
    model.compile("sgd", "mse", run_eagerly=True)
    history = model.fit(X, Y, validation_data=(X, Y), verbose=0).history
    assert list(history) == ["loss", "val_loss"]


# ----------------------------------------------------------------------------- compile


@pytest.mark.parametrize(
    "arguments, match",
    [
        ({"loss": 3}, "loss: must be a name"),
        ({"loss": ["mse", 3]}, "loss: must be a name"),
        ({"metrics": [3]}, "metric: must be a name"),
        ({"weighted_metrics": [3]}, "metric: must be a name"),
        ({"loss": "mse", "loss_weights": ["1"]}, "loss_weights.*'1'"),
    ],
)
def test_compile_refuses_what_names_nothing(model, arguments, match):
    compiled = model._tw_compiled
    with pytest.raises(TypeError, match=match):
        model.compile("adam", **arguments)
    assert model._tw_compiled is compiled


def test_training_needs_an_optimizer():
    model = Sequential([Input((4,)), Dense(1)])
    model.compile(None, "mse")
    assert model.evaluate(X, Y, verbose=0) > 0
    with pytest.raises(ValueError, match="there is no optimizer"):
        model.fit(X, Y, verbose=0)


# ------------------------------------------------------------------- a missing `return`


def test_a_loss_must_return_something():
    model = Sequential([Input((4,)), Dense(1)])
    model.compile("sgd", lambda y_true, y_pred: None)
    with pytest.raises(TypeError, match="loss '<lambda>' .*None"):
        model.fit(X, Y, verbose=0)


class Silent(Layer):
    def call(self, inputs):
        inputs + 1


def test_a_layer_after_one_without_return_says_so():
    with pytest.raises(tw.errors.ShapeError, match="'dense'.*got None"):
        Dense(3)(Silent()(X))


def test_a_layer_without_return_cannot_become_part_of_a_model():
    with pytest.raises(TypeError, match=r"Silent\): call\(\) .*None"):
        Silent()(Input((4,)))


def test_a_model_must_return_something():
    class Mute(Model):
        def call(self, inputs):
            inputs * 2

    model = Mute()
    model.compile("sgd", "mse")
    for run in (
        lambda: model.fit(X, Y, verbose=0),
        lambda: model.predict(X, verbose=0),
    ):
        with pytest.raises(TypeError, match=r"call\(\) .*None"):
            run()


def test_a_train_step_must_return_a_dict():
    class Own(Sequential):
        def train_step(self, data):
            return tw.constant(1.0)

    model = Own([Input((4,)), Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match="dict.*train_step.*got Tensor"):
        model.fit(X, Y, verbose=0)


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "content, reason",
    [("", "is empty"), ("garbage", "begins with b'xxxx"), ("a part", "is damaged")],
)
def test_a_file_that_is_damaged_is_named(model, tmp_path, content, reason):
    pytest.importorskip("h5py")
    path = tmp_path / "a.weights.h5"
    model.save_weights(path)
    whole = path.read_bytes()
    path.write_bytes({"": b"", "garbage": b"x" * 5000, "a part": whole[:-50]}[content])
    before = model.get_weights()
    with pytest.raises(OSError, match=rf"a\.weights\.h5.*{reason}"):
        model.load_weights(path)
    for value, old in zip(model.get_weights(), before):
        np.testing.assert_array_equal(value, old)


def test_a_file_that_is_missing_is_named(model, tmp_path):
    pytest.importorskip("h5py")
    with pytest.raises(FileNotFoundError, match=r"b\.weights\.h5: .*no such file"):
        model.load_weights(tmp_path / "b.weights.h5")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.load_weights(tmp_path)


def test_folders_that_are_missing_are_made(model, tmp_path):
    pytest.importorskip("h5py")
    model.save_weights(tmp_path / "new" / "a.weights.h5")
    model.save(tmp_path / "other" / "b" / "model.keras")
    tw.saved_model.save(model, tmp_path / "third" / "c")
    tw.train.Checkpoint(model=model).write(tmp_path / "fourth" / "d")
    tw.train.Checkpoint(model=model).save(tmp_path / "fifth" / "e")
    assert len(list(tmp_path.iterdir())) == 5
    tw.keras.models.load_model(tmp_path / "other" / "b" / "model.keras")


# ------------------------------------------------------------------------------ output


def test_a_process_without_a_console_trains_in_silence(model, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        history = model.fit(X, Y, verbose=2)
        model.evaluate(X, Y)
    assert history.epoch == [0]


def test_the_table_of_layers_is_drawn_in_ascii_where_that_is_all_there_is(
    model, monkeypatch
):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        model.summary()
    stdout.seek(0)
    lines = stdout.read().splitlines()
    assert lines[1].startswith("+===") and lines[2].startswith("| Layer (type)")
    assert "?" not in "".join(lines)


# --------------------------------------------------------------------- arrays of others


@pytest.mark.parametrize("items", [[1.0, None], [1, 2], [{}, []]])
def test_arrays_of_objects_are_no_tensors(items):
    array = np.empty(2, object)
    array[:] = items
    for convert in (tw.constant, tw.convert_to_tensor, Dense(3)):
        with pytest.raises(TypeError, match="dtype object"):
            convert(array)


def test_an_array_of_objects_that_are_strings_is_one_of_strings():
    tensor = tw.constant(np.array(["a", "bc"], dtype=object))
    assert tensor.dtype == tw.string and tensor.numpy().tolist() == [b"a", b"bc"]


class Length(tw.keras.layers.Layer):
    def call(self, inputs):
        return tw.cast(tw.strings.length(inputs), "float32")


@pytest.mark.parametrize("kind", [str, object, np.bytes_, tw.constant, list])
def test_models_take_strings_of_any_kind(kind):
    x = np.array([["a"], ["bb"], ["ccc"]])
    x = (
        tw.constant(x)
        if kind is tw.constant
        else x.astype(kind)
        if kind is not list
        else x
    )
    x = x.tolist() if kind is list else x
    inputs = tw.keras.Input((1,), dtype="string")
    model = tw.keras.Model(inputs, Length()(inputs))
    model.compile(loss="mse")
    assert model.predict(x, batch_size=2, verbose=0).ravel().tolist() == [1, 2, 3]
    assert model.evaluate(x, Y[:3] * 0, verbose=0) == pytest.approx(14 / 3)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("traced", [False, True])
def test_strings_are_not_read_as_numbers(dtype, traced):
    cast = tw.function(tw.cast) if traced else tw.cast
    with pytest.raises(tw.errors.DTypeError, match=f"cannot cast strings to {dtype}"):
        cast(tw.constant(["1"]), dtype)
    with pytest.raises(TypeError, match="Cannot convert"):
        tw.convert_to_tensor(np.array(["1"]), dtype)
