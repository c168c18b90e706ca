"""Losses: their names and configs, and losses of one's own."""

import inspect

import pytest

from tapewright import losses
from tapewright.keras.utils import custom_object_scope


@pytest.mark.parametrize(
    "name, function",
    [
        ("mse", losses.mean_squared_error),
        ("mae", losses.mean_absolute_error),
        ("mean_squared_error", losses.mean_squared_error),
        ("binary_crossentropy", losses.binary_crossentropy),
        ("sparse_categorical_crossentropy", losses.sparse_categorical_crossentropy),
        ("MAPE", losses.mean_absolute_percentage_error),
        ("msle", losses.mean_squared_logarithmic_error),
        ("bce", losses.binary_crossentropy),
        ("kld", losses.kl_divergence),
        ("kullback_leibler_divergence", losses.kl_divergence),
        ("logcosh", losses.log_cosh),
        ("dice", losses.dice),
    ],
)
def test_names_of_functions(name, function):
    assert losses.get(name) is function


def test_names_of_classes_configs_and_callables():
    assert type(losses.get("MeanSquaredError")) is losses.MeanSquaredError
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3)
    twin = losses.get(losses.serialize(loss))
    assert twin.get_config() == loss.get_config()
    assert losses.get(max) is max and losses.get(None) is None
    assert losses.serialize(losses.huber)["config"] == "huber"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="loss 'nothing'; known are BCE, .*Huber"):
        losses.get("nothing")
    with pytest.raises(ValueError, match="Did you mean 'cosine_similarity'"):
        losses.get("cosine")


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one():
    with pytest.raises(ValueError, match="mean 'mean_squared_error'"):
        losses.get("mean_squared_eror")


def classes():
    found = [getattr(losses, name) for name in losses.__all__]
    return [
        cls
        for cls in found
        if isinstance(cls, type)
        and issubclass(cls, losses.Loss)
        and cls not in (losses.Loss, losses.LossFunctionWrapper)
    ]


@pytest.mark.parametrize("cls", classes())
def test_a_config_has_every_argument_and_makes_the_loss_again(cls):
    arguments = {
        name: value
        for name, value in {
            "axis": 1, "delta": 2.5, "alpha": 0.3, "beta": 0.6, "gamma": 3.0, "q": 0.7,
            "margin": 0.1, "from_logits": True, "label_smoothing": 0.2,
            "ignore_class": 1, "apply_class_balancing": True, "remove_diagonal": False,
            "reduction": "sum", "name": "mine", "dtype": "float64",
        }.items()
        if name in inspect.signature(cls).parameters
    }  # fmt: skip
    config = losses.serialize(cls(**arguments))
    assert config == {
        "module": "keras.losses", "class_name": cls.__name__, "config": arguments,
        "registered_name": None,
    }  # fmt: skip
    assert losses.deserialize(config).get_config() == arguments


def test_configs_of_keras_are_read():
    config = {
        "module": "keras.losses",
        "class_name": "CategoricalFocalCrossentropy",
        "config": {
            "name": "focal", "reduction": "sum_over_batch_size", "from_logits": True,
            "label_smoothing": 0.0, "axis": -1, "alpha": 0.5, "gamma": 1.0,
        },
        "registered_name": None,
    }  # fmt: skip
    loss = losses.deserialize(config)
    assert (loss.alpha, loss.gamma, loss.from_logits) == (0.5, 1.0, True)
    assert loss.get_config() == config["config"]
    function = {"module": "builtins", "class_name": "function", "config": "huber"}
    assert losses.deserialize(function) is losses.huber


def test_custom_objects_are_found_by_name():
    def mine(y_true, y_pred):
        return y_pred - y_true

    assert losses.deserialize("mine", {"mine": mine}) is mine
    loss = losses.LossFunctionWrapper(mine, "sum", "its name")
    with custom_object_scope({"mine": mine}):
        twin = losses.get(losses.serialize(loss))
    assert twin.fn is mine and twin.get_config() == loss.get_config()
    assert float(twin([1, 2], [2.0, 4.0])) == 3.0


def test_default_names_are_those_of_keras():
    assert losses.MeanSquaredError().name == "mean_squared_error"
    assert losses.Huber().name == "huber_loss"
    name = "sparse_categorical_crossentropy"
    assert losses.SparseCategoricalCrossentropy().name == name


def test_the_third_argument_of_the_sparse_crossentropy_is_the_reduction():
    assert losses.SparseCategoricalCrossentropy(True, None, "sum").reduction == "sum"
