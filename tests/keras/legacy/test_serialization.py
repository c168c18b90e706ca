"""`keras.utils.legacy`, in the words of libraries that describe their own objects."""

import pytest

from tapewright import keras
from tapewright.keras.legacy import serialization as legacy


class Choice:
    def __init__(self, values, penalty=None):
        self.values, self.penalty = values, penalty

    def get_config(self):
        return {"values": self.values, "penalty": self.penalty}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def twice(x):
    return 2 * x


def test_objects_of_a_library_become_configs_and_come_back():
    config = legacy.serialize_keras_object(Choice([4, 8]))
    assert config == {
        "class_name": "Choice",
        "config": {"values": [4, 8], "penalty": None},
    }
    for tables in ({"Choice": Choice}, None), (None, {"Choice": Choice}):
        assert legacy.deserialize_keras_object(config, *tables).values == [4, 8]
    nested = legacy.serialize_keras_object(Choice([], keras.regularizers.L1(0.1)))
    assert nested["config"]["penalty"] == {"class_name": "L1", "config": {"l1": 0.1}}


def test_names_of_functions_and_classes():
    assert legacy.serialize_keras_object(None) is None
    assert legacy.serialize_keras_object(twice) == "twice"
    assert legacy.deserialize_keras_object("twice", {"twice": twice}) is twice
    assert legacy.deserialize_keras_object(twice) is twice
    made = legacy.deserialize_keras_object("L2", None, {"L2": keras.regularizers.L2})
    assert isinstance(made, keras.regularizers.L2)


@pytest.mark.parametrize("wrong", ["thrice", 3, {"class_name": "Thrice", "config": {}}])
def test_what_is_unknown_is_refused(wrong):
    with pytest.raises(ValueError, match="thrice|must be a config .*, got 3|Thrice"):
        legacy.deserialize_keras_object(wrong, {"twice": twice})
    with pytest.raises(ValueError, match="must have get_config or a name"):
        legacy.serialize_keras_object(3)
