"""All variables of a model as dicts: those of Keras 3.15, by name."""

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def model():
    layers = [
        tw.Input((3,)),
        tw.layers.Dense(2, name="top"),
        tw.layers.BatchNormalization(name="n"),
    ]
    model = tw.Sequential(layers, name="m")
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return model


def test_the_keys_are_those_of_keras(model):
    tree = model.get_state_tree()
    assert {k: sorted(v) for k, v in tree["trainable_variables"]["m"].items()} == {
        "top": ["bias", "kernel"],
        "n": ["beta", "gamma"],
    }
    assert sorted(tree["non_trainable_variables"]["m"]["n"]) == [
        "moving_mean",
        "moving_variance",
    ]
    assert set(tree["optimizer_variables"]["adam"]) >= {
        "iteration", "learning_rate", "m_top_kernel_momentum", "m_n_beta_velocity"
    }  # fmt: skip
    assert tree["metrics_variables"].keys() == {"loss", "mean_absolute_error"}


def test_a_tree_restores_a_model(model):
    tree = model.get_state_tree("numpy_array")
    x = np.float32([[1, 2, 3]])
    expected = model.predict(x, verbose=0)
    model.fit(np.zeros((4, 3)), np.ones((4, 2)), epochs=2, verbose=0)
    assert not np.array_equal(model.predict(x, verbose=0), expected)
    model.set_state_tree(tree)
    assert np.array_equal(model.predict(x, verbose=0), expected)
    assert model.optimizer.iterations.numpy() == 1


def test_a_tree_that_does_not_fit_assigns_nothing(model):
    before = model.get_weights()
    tree = model.get_state_tree("numpy_array")["trainable_variables"]
    tree["m"]["top"]["kernel"] = np.zeros((3, 2), "float32")
    for path, value, match in (
        ("bias", np.ones(3, "float32"), "shape"),
        ("bais", 1, "no variable"),
    ):
        tree["m"]["top"][path] = value
        with pytest.raises(ValueError, match=match):
            model.set_state_tree({"trainable_variables": tree})
        del tree["m"]["top"][path]
    with pytest.raises(ValueError, match="unknown key 'weights'"):
        model.set_state_tree({"weights": {}})
    for old, new in zip(before, model.get_weights()):
        assert np.array_equal(old, new)
