"""The registry: objects by name, configs, scopes."""

import pytest

from tapewright.core.primitive import get_primitive
from tapewright.serialization import object_config, registry
from tapewright.serialization.load_errors import from_file


class Thing:
    """Something with a config."""

    def __init__(self, size):
        self.size = size

    def get_config(self):
        return {"size": self.size}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@pytest.fixture
def kind():
    """A kind of our own, emptied afterwards."""
    registry.register("thing-for-a-test", "Thing", Thing)
    yield "thing-for-a-test"
    for key in [k for k in registry._OBJECTS if k[0] == "thing-for-a-test"]:
        del registry._OBJECTS[key]


def test_what_was_registered_is_found_among_its_kind_only(kind):
    assert registry.find(kind, "Thing") is Thing
    assert registry.registered_name(kind, Thing) == "Thing"
    assert registry.registered_name("op", Thing) is None
    with pytest.raises(ValueError, match="Unknown layer 'Thing'"):
        registry.find("layer", "Thing")


def test_an_unknown_name_is_a_value_error_that_lists_the_known(kind):
    with pytest.raises(ValueError, match=f"Unknown {kind} 'other'; known are Thing"):
        registry.find(kind, "other")


def test_a_config_makes_the_object_again(kind):
    config = object_config.serialize(Thing(3))
    assert config == {
        "module": Thing.__module__, "class_name": "Thing", "config": {"size": 3},
        "registered_name": "Thing",
    }  # fmt: skip
    twin = object_config.deserialize(kind, config)
    assert type(twin) is Thing and twin.size == 3


def test_a_scope_comes_before_the_registry_and_ends(kind):
    class Other(Thing):
        pass

    with registry.custom_object_scope({"Thing": Other, "Mine": Other}):
        assert registry.find(kind, "Thing") is Other
        with registry.custom_object_scope({"Thing": Thing}):
            assert registry.find(kind, "Thing") is Thing
            assert registry.find(kind, "Mine") is Other
        assert registry.find(kind, "Thing") is Other
    assert registry.find(kind, "Thing") is Thing
    with pytest.raises(ValueError):
        registry.find(kind, "Mine")


def test_a_scope_ends_with_an_error_too(kind):
    with pytest.raises(KeyError), registry.custom_object_scope({"Mine": Thing}):
        raise KeyError
    with pytest.raises(ValueError):
        registry.find(kind, "Mine")


def test_ops_are_registered_under_both_names():
    assert get_primitive("add") is get_primitive("AddV2")


def test_a_scope_comes_before_registered_names():
    class Other(Thing):
        pass

    registered = registry.register_keras_serializable("mine", "Other")(Other)
    try:
        with registry.custom_object_scope({"mine>Other": Thing}):
            assert registry.get_registered_object("mine>Other") is Thing
        assert registry.get_registered_object("mine>Other") is registered
    finally:
        del registry.get_custom_objects()["mine>Other"]


def test_any_spelling_is_found_only_if_asked_for(kind):
    assert registry.find(kind, "t_hing", any_spelling=True) is Thing
    with pytest.raises(ValueError, match="mean 'Thing'"):
        registry.find(kind, "t_hing")


def test_a_users_class_is_found_by_its_module_but_not_in_a_file(kind):
    class Other(Thing):
        pass

    Other.__name__ = "Thing"
    registry.register(kind, "Thing", Other)
    assert registry.find_in_module(kind, Thing.__module__, "Thing") is Other
    assert registry.find_in_module(kind, "elsewhere", "Thing") is None
    with from_file("net.keras"):
        assert registry.find_in_module(kind, Thing.__module__, "Thing") is None


def test_names_of_a_prefix_are_loaded_at_the_first_lookup(kind):
    loaded = []

    def load():
        loaded.append(1)
        registry.register(kind, "late.Thing", Thing)

    registry.register_later("late.", load)
    assert registry.find(kind, "Thing") is Thing and not loaded
    assert registry.find(kind, "late.Thing") is registry.find(kind, "late.Thing")
    assert loaded == [1]
