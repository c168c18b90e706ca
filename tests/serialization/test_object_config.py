"""Objects as JSON: `get`, `serialize` and `deserialize` of a kind, functions by name."""

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
