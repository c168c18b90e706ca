"""Limits of runs, and the output that messages go to."""

import logging

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import config


@pytest.fixture
def model():
    model = tw.Sequential([tw.Input((1,)), tw.layers.Dense(1)])
    model.compile("sgd", "mse")
    yield model
    config.set_max_epochs(None)
    config.set_max_steps_per_epoch(None)
    config.enable_interactive_logging()


X = np.zeros((100, 1), "float32")


def test_a_limit_shortens_every_run(model):
    config.set_max_epochs(2)
    config.set_max_steps_per_epoch(3)
    seen = []
    count = tw.callbacks.LambdaCallback(
        on_train_batch_end=lambda i, logs: seen.append(i)
    )
    with pytest.warns(UserWarning, match="Limiting") as told:
        model.fit(X, X, epochs=9, verbose=0, callbacks=[count])
    assert seen == [0, 1, 2, 0, 1, 2] and len(told) == 2
    with pytest.warns(UserWarning, match="Limiting steps_per_epoch to 3"):
        assert model.predict(X, verbose=0).shape == (96, 1)  # batches of 32, as ever
    config.set_max_steps_per_epoch(7)
    assert model.predict(X, verbose=0).shape == (100, 1)


def test_messages_go_to_the_logger_if_asked_for(model, capsys, caplog):
    config.disable_interactive_logging()
    assert not config.is_interactive_logging_enabled()
    with caplog.at_level(logging.INFO, tw.get_logger().name):
        model.fit(X, X, verbose=1)
        model.summary()
    assert capsys.readouterr().out == ""
    assert caplog.messages[0].startswith("4/4 - ") and len(caplog.messages) == 2


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_a_limit_is_a_positive_integer(value):
    with pytest.raises(
        ValueError, match="max_epochs must be a positive integer or None"
    ):
        config.set_max_epochs(value)


def test_what_does_not_exist_is_refused_and_off():
    for call in (
        config.enable_flash_attention,
        config.enable_unsafe_deserialization,
        lambda: config.set_backend("jax"),
    ):
        with pytest.raises(ValueError):
            call()
    assert not config.is_flash_attention_enabled() and not config.is_nnx_enabled()
    assert config.backend() == "tapewright"


def test_calls_about_messages_of_tensorflow_are_accepted():
    tw.autograph.set_verbosity(0, alsologtostdout=True)
