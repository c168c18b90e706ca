"""What `describe` tells of files, and `report` prints."""

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.inspection.description import describe
from tapewright.inspection.report import report
from tapewright.inspection.verification import verify
from tapewright.keras.files.class_names import custom_classes

from ..hostile import files


@pytest.fixture
def trained():
    layers = [
        tw.keras.layers.Dense(3, name="d"),
        tw.keras.layers.Dropout(0.5, name="o"),
    ]
    model = tw.keras.Sequential(layers, name="net")
    model.compile(tw.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(np.ones((4, 2), "f4"), np.ones((4, 3), "f4"), batch_size=2, verbose=0)
    return model


@pytest.mark.parametrize("kind", ["h5", "keras"])
def test_a_model_of_keras_is_told_layer_by_layer(kind, tmp_path):
    path = tmp_path / "model"
    files.write(path, kind, training=files.TRAINING)
    told = describe(path)
    assert told["model"] == {"class": "Sequential", "name": "net", "layers": 3}
    rows = [(row["name"], row["class"], row["parameters"]) for row in told["layers"]]
    assert rows == [
        ("first", "Dense", 20),
        ("second", "Dense", 20),
        ("third", "Dense", 10),
    ]
    weights = [(w["shape"], w["dtype"]) for w in told["layers"][2]["weights"]]
    assert weights == [([4, 2], "float32"), ([2], "float32")]
    assert told["totals"] == {"weights": 6, "parameters": 50, "bytes": 200}
    assert told["training"] == {"loss": "mse", "metrics": ["mae"]}
    assert told["seal"] == "none"
    assert told["written_by"]["keras_version"] == "3.15.1"


def test_weights_alone_are_told_by_place(tmp_path):
    files.write(tmp_path / "w", "weights")
    told = describe(tmp_path / "w")
    assert told["format"] == "weights in Keras 3's layout (.weights.h5)"
    assert [row["place"] for row in told["layers"]] == [
        "layers/dense/vars", "layers/dense_1/vars", "layers/dense_2/vars",
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_our_models_are_sealed_and_keep_the_optimizer(suffix, trained, tmp_path):
    path = tmp_path / f"m.{suffix}"
    trained.save(path)
    told = describe(path)
    assert told["seal"] == "intact"
    optimizer = told["optimizer"]
    assert (optimizer["class"], optimizer["iterations"]) == ("Adam", 2)
    assert optimizer["learning_rate"] == pytest.approx(0.01)
    assert optimizer["arrays"] == 6


def test_every_count_of_a_model_is_that_of_the_model(trained, tmp_path):
    trained.save(tmp_path / "m.keras")
    assert (
        describe(tmp_path / "m.keras")["totals"]["parameters"] == trained.count_params()
    )


def test_a_checkpoint_tells_step_and_versions(trained, tmp_path):
    path = tw.train.Checkpoint(model=trained).save(tmp_path / "c")
    told = describe(f"{path}.h5")
    assert told["format"] == "tapewright checkpoint"
    assert told["facts"]["step"] == 2
    assert told["written_by"]["numpy"] == np.__version__
    names = [row["array"] for row in told["tables"][0]["rows"]]
    assert "model/layers/0/kernel" in names


def test_a_saved_model_tells_functions_and_custom_gradients(tmp_path):
    class Clipped(tw.Module):
        def __init__(self):
            super().__init__()
            self.v = tw.Variable([1.0, 2.0], name="v", trainable=False)

        @tw.function(input_signature=[tw.TensorSpec([None, 2])])
        def __call__(self, x):
            @tw.custom_gradient
            def clip(x):
                return tw.identity(x), lambda g: g * 0.5

            return clip(x) * self.v

    tw.saved_model.save(Clipped(), tmp_path / "s")
    told = describe(tmp_path / "s")
    assert told["format"] == "tapewright saved_model"
    assert told["facts"]["root"] == "Clipped"
    variables, functions = told["tables"]
    assert variables["rows"] == [
        {
            "variable": "v",
            "shape": [2],
            "dtype": "float32",
            "trainable": False,
            "bytes": 8,
        }
    ]
    (call,) = functions["rows"]
    assert call["function"] == "__call__"
    assert call["arguments"] == "float32[None, 2]"
    assert call["custom gradients"] == "clip"


def test_a_file_of_another_program_is_listed(tmp_path):
    with h5py.File(tmp_path / "x", "w") as file:
        file["a/b"], file["a/c"], file["d"] = np.zeros(3), np.zeros(5), 1
    told = describe(tmp_path / "x")
    assert told["format"] == "HDF5 file of another program"
    assert told["others"] == [
        {"besides": "a", "arrays": 2, "bytes": 64},
        {"besides": "d", "arrays": 1, "bytes": 8},
    ]


@pytest.mark.parametrize(
    "config, expected",
    [
        ({"class_name": "Dense", "config": {}}, set()),
        ({"class_name": "my>Block", "config": {}}, {"my>Block"}),
        ({"module": "m", "class_name": "A", "registered_name": "p>A"}, {"p>A"}),
        ({"module": "m", "class_name": "A", "registered_name": None}, {"A"}),
        ({"module": "keras.layers", "class_name": "ReLU", "registered_name": None}, set()),
        (
            {"module": "keras.src.backend.torch.x", "class_name": "Adam",
             "registered_name": "Adam"},
            set(),
        ),
        (
            {"module": "builtins", "class_name": "function", "config": "f",
             "registered_name": "my>f"},
            {"my>f"},
        ),
    ],
)  # fmt: skip
def test_classes_of_the_user_are_told(config, expected):
    assert custom_classes({"layers": [config]}) == expected


@pytest.mark.parametrize("ending", ["h5", "keras"])
def test_a_class_whose_calls_the_file_holds_is_not_needed(tmp_path, ending):
    class Doubled(tw.layers.Layer):
        def call(self, inputs):
            return 2 * inputs

    @tw.keras.saving.register_keras_serializable(package="inspection")
    class InPython(tw.layers.Layer):  # of which a file can have no graph
        def call(self, inputs):
            return tw.numpy_function(np.negative, [inputs], tw.TensorSpec([2, 3]))

    model = tw.Sequential([tw.Input((3,), batch_size=2), Doubled()])
    path = tmp_path / f"m.{ending}"
    model.save(path)
    assert "custom_classes" not in describe(path)
    assert verify(path) == ([], [])
    model.add(InPython())
    model.save(path)
    needed = describe(path)["custom_classes"]  # a call is missing, and may be of either
    assert needed[-1] == "inspection>InPython"


def test_a_line_of_the_report_fits_a_terminal(tmp_path):
    name = "a_layer_with_quite_a_long_name_" * 5
    layers = [files.entry("Dense", name=name, units=4)]
    weights = {name: files.arrays()["first"]}
    files.write(tmp_path / "m", "h5", files.sequential(layers=layers), weights=weights)
    text = report(describe(tmp_path / "m"))
    body = text.split("\n", 1)[1]
    assert max(map(len, body.splitlines())) <= 100
    assert "20" in text


def test_what_steers_a_terminal_is_printed_harmlessly(tmp_path):
    name = "red\x1b[31m\x07\u202e"
    layers = [files.entry("Dense", name=name, units=4)]
    weights = {name: files.arrays()["first"]}
    files.write(tmp_path / "m", "h5", files.sequential(layers=layers), weights=weights)
    text = report(describe(tmp_path / "m"))
    assert r"red\x1b[31m\x07\u202e" in text
    assert "\x1b" not in text


def test_the_report_tells_what_has_to_be_registered(tmp_path):
    layers = [files.entry("my>Block", name="first")]
    files.write(tmp_path / "m", "h5", files.sequential(layers=layers))
    assert "my>Block: must be registered" in report(describe(tmp_path / "m"))


class Twice(tw.keras.layers.Layer):
    def call(self, inputs):
        return inputs * 2.0


def unregistered_loss(y_true, y_pred):
    return tw.reduce_mean((y_true - y_pred) ** 2)


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_every_layer_of_the_summary_is_listed(suffix, tmp_path):
    layers = [tw.keras.layers.Dense(2, name="d"), tw.keras.layers.ReLU(name="r")]
    block = tw.keras.Sequential([tw.keras.layers.Dense(2, name="inner")], name="block")
    model = tw.keras.Sequential([tw.keras.Input((2,)), *layers, Twice(name="t"), block])
    model.save(tmp_path / f"m.{suffix}")
    told = describe(tmp_path / f"m.{suffix}")
    assert told["model"]["layers"] == len(model.layers) == 4
    last = "block" if suffix == "h5" else "inner"
    assert [row["name"] for row in told["layers"] if row["name"] != last] == [
        "d",
        "r",
        "t",
    ]
    assert [row["parameters"] for row in told["layers"]].count(0) == 2


def test_the_report_tells_of_each_class_whether_the_file_loads_without_it(tmp_path):
    model = tw.keras.Sequential([tw.keras.Input((2,)), Twice()])
    model.compile("sgd", unregistered_loss)
    model.save(tmp_path / "m.keras")
    text = report(describe(tmp_path / "m.keras"))
    assert "graphs      Twice: load without their class\n" in text
    assert (
        "needs       unregistered_loss: must be passed to load_model as custo" in text
    )


def test_a_model_without_a_list_of_layers_is_told_without_their_number(tmp_path):
    class Net(tw.keras.Model):
        def call(self, inputs):
            return inputs * 2.0

    model = Net(name="net")
    model(np.ones((1, 2), "f4"))
    model.save(tmp_path / "m.keras")
    assert "model       Net 'net'\n" in report(describe(tmp_path / "m.keras"))


def test_what_is_damaged_is_not_described(trained, tmp_path):
    path = tmp_path / "m.h5"
    trained.save(path)
    files.flip(path, 3000)
    with pytest.raises(tw.errors.SavingError, match="damaged"):
        describe(path)
