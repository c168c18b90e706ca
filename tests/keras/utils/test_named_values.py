"""`keras.utils.Config`: values by name, as attributes and entries, until it is frozen."""

import copy
import pickle

import pytest

from tapewright.keras.utils import Config


def test_values_are_attributes_and_entries():
    config = Config(rate=0.1, seed=1)
    config.size = 3
    config["seed"] = 2
    assert config.rate == config["rate"] == 0.1 and config.get("none", 5) == 5
    assert list(config) == ["rate", "seed", "size"] and len(config) == 3
    assert config.as_dict() == {"rate": 0.1, "seed": 2, "size": 3}
    assert config.to_json() == '{"rate": 0.1, "seed": 2, "size": 3}'
    assert repr(config) == "<Config {'rate': 0.1, 'seed': 2, 'size': 3}>"
    assert config.pop("seed") == 2 and "seed" not in config
    for same in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert same == config and same.rate == 0.1


def test_a_frozen_one_refuses_changes():
    config = Config(rate=0.1)
    config.freeze()
    for change in (
        lambda: setattr(config, "rate", 1),
        lambda: config.update(size=3),
        lambda: config.pop("rate"),
    ):
        with pytest.raises(ValueError, match="Config is frozen: '(rate|size)'"):
            change()
    assert config.frozen and config.as_dict() == {"rate": 0.1}
    config.unfreeze()
    config.rate = 0.2
    assert config.rate == 0.2


def test_what_is_not_there_is_named():
    config = Config(rate=0.1)
    with pytest.raises(AttributeError, match="no value 'rat'. Did you mean 'rate'"):
        config.rat  # noqa: B018
    with pytest.raises(KeyError):
        config["rat"]
    with pytest.raises(AttributeError, match="'keys' is a method"):
        config.keys = 3
