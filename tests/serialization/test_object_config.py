"""Objects as JSON: `get`, `serialize` and `deserialize` of a kind, functions by name."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.serialization import object_config
from tapewright.serialization.object_config import ObjectFamily


@pytest.mark.parametrize("identifier", ["l2", "L2", {"class_name": "l2"}])
def test_a_name_or_config_gives_a_new_object(identifier):
    found = ObjectFamily("regularizer").get(identifier)
    assert type(found) is keras.regularizers.L2 and found.l2 == pytest.approx(0.01)


def test_none_and_callables_stay():
    family = ObjectFamily("regularizer")
    assert family.get(None) is None and family.get(abs) is abs


def test_what_is_no_identifier_is_a_type_error_that_names_the_kind():
    with pytest.raises(TypeError, match="regularizer.*got 3"):
        ObjectFamily("regularizer").get(3)


def test_a_family_writes_functions_by_name_or_as_configs():
    mse = tw.keras.losses.mean_squared_error
    assert ObjectFamily("loss").serialize(mse) == "mean_squared_error"
    config = ObjectFamily("loss", function_names=False).serialize(mse)
    assert config == object_config.function_config("mean_squared_error")
    assert ObjectFamily("loss").deserialize(config) is mse


def test_deserialize_looks_among_the_custom_objects_first():
    class Mine(keras.regularizers.L2):
        pass

    family = ObjectFamily("regularizer")
    assert type(family.deserialize("L2", {"L2": Mine})) is Mine
    assert type(family.deserialize("L2")) is keras.regularizers.L2


def test_an_unknown_function_is_told_with_those_of_all_kinds_that_fit():
    with pytest.raises(ValueError, match="function 'relus'.*mean 'relu'"):
        object_config.function_of("layer", "relus")


def test_the_functions_of_a_module_are_those_of_its_family():
    for module in (keras.losses, keras.metrics, keras.initializers, keras.regularizers,
                   keras.constraints):  # fmt: skip
        for function in (module.get, module.serialize, module.deserialize):
            assert isinstance(function.__self__, ObjectFamily) and function.__doc__


def logcosh(y_true, y_pred):
    return tw.reduce_mean(1000.0 * (y_true - y_pred) ** 2, -1)


def relu(x):
    return 5.0 * x


@pytest.mark.parametrize("suffix", ["keras", "h5"])
@pytest.mark.parametrize(
    "arguments",
    [{"loss": logcosh}, {"loss": "mse", "metrics": [logcosh]}, {"loss": [logcosh]}],
    ids=["loss", "metric", "list"],
)
def test_a_function_with_the_name_of_one_of_keras_is_not_saved(
    arguments, suffix, tmp_path
):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", **arguments)
    with pytest.raises(ValueError, match="your function 'logcosh' .*Keras loss: dec"):
        model.save(tmp_path / f"model.{suffix}")


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_an_activation_with_the_name_of_one_of_keras_is_saved_if_registered(
    suffix, tmp_path
):
    def model_with(activation):
        layer = keras.layers.Dense(2, activation, kernel_initializer="ones")
        return keras.Sequential([keras.Input((3,)), layer])

    path = tmp_path / f"model.{suffix}"
    with pytest.raises(ValueError, match="your function 'relu' .*Keras activation"):
        model_with(relu).save(path)

    @keras.saving.register_keras_serializable("tests", "relu")
    def registered(x):
        return 5.0 * x

    model_with(registered).save(path)
    assert float(keras.models.load_model(path)([[-1.0, 0, 0]])[0, 0]) == -5.0


@pytest.mark.parametrize("op", [tw.sin, keras.ops.sin, keras.ops.gelu])
def test_an_op_that_no_name_stands_for_is_not_saved(op):
    with pytest.raises(
        ValueError, match=f"the op '{op.__name__}', .*your own function, dec"
    ):
        keras.activations.serialize(op)


@pytest.mark.parametrize("op", [tw.nn.relu, tw.tanh, keras.ops.softmax, tw.nn.gelu])
def test_an_op_that_is_an_activation_is_saved_by_its_name(op):
    name = keras.activations.serialize(op)
    x = tw.constant([[-1.5, 0.5, 2.0]])
    np.testing.assert_array_equal(keras.activations.get(name)(x), op(x))


VALUES = [
    [-np.inf, -1e4, -2.5, -1.0, -0.0],
    [0.25, 0.9, 3.0, 1e4, np.inf],
    [np.nan] * 5,
]
SHARES = tw.nn.softmax(np.random.default_rng(0).normal(size=(4, 5)).astype("float32"))
# Family of functions -> the arguments on which two of them are compared.
COMPARED = {
    "activations": (tw.constant(VALUES),),
    "losses": (tw.one_hot([0, 4, 2, 2], 5), SHARES),
    "metrics": (tw.one_hot([0, 4, 2, 2], 5), SHARES),
    "initializers": ([2, 3], "float32"),
}
SPACES = (tw, tw.math, tw.nn, tw.linalg, keras.ops, keras.activations, keras.losses,
          keras.metrics)  # fmt: skip


def own_functions():
    found = {}
    for space in SPACES:
        names = getattr(space, "__all__", None) or [
            n for n in dir(space) if n[0] != "_"
        ]
        for value in [getattr(space, name) for name in names]:
            if callable(value) and not isinstance(value, type):
                found[id(value)] = value
    return found.values()


@pytest.mark.parametrize("name", COMPARED)
@np.errstate(all="ignore")
def test_every_function_of_ours_is_refused_or_comes_back_with_its_numbers(name):
    family, arguments, compared = getattr(keras, name), COMPARED[name], []
    for function in own_functions():
        try:
            expected = function(*arguments)
        except Exception:  # it takes other arguments
            continue
        if not tw.is_tensor(expected):
            continue
        try:
            config = family.serialize(function)
            again = family.deserialize(config)
        except ValueError as error:  # an activation is refused when it is saved
            assert name != "activations" or "cannot hold the op" in str(error)
            continue
        given = again(*arguments)
        problem = f"{function.__module__}.{function.__name__} is saved as {config!r}"
        np.testing.assert_allclose(given, expected, 1e-6, err_msg=problem)
        compared.append(function.__name__)
    assert len(compared) > 1, compared
