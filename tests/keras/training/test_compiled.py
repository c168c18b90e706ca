"""`compile`: names, what a second one keeps."""

import pytest

from tapewright import Input, Sequential
from tapewright.layers import Dense

from .small_models import linear


def test_unknown_names_are_refused_by_compile_with_near_ones():
    model = Sequential([Input((3,)), Dense(1)])
    with pytest.raises(ValueError, match="Did you mean 'mean_squared_error'"):
        model.compile("sgd", "mean_squard_error")
    with pytest.raises(ValueError, match="'adm'. Did you mean 'adam'"):
        model.compile("adm", "mse")
    with pytest.raises(ValueError, match="'accuracyy'. Did you mean 'accuracy'"):
        model.compile("sgd", "mse", metrics=["accuracyy"])
    with pytest.raises(ValueError, match="loss 'accuracy'"):
        model.compile("sgd", "accuracy")
    assert not model.compiled


def test_a_second_compile_keeps_what_it_is_not_given(data):
    x, y = data
    model = linear(metrics=["mae"])
    before = model.evaluate(x, y, verbose=0)
    model.compile("adam")
    assert model.evaluate(x, y, verbose=0) == before
    assert list(model.fit(x, y, verbose=0).history) == ["loss", "mae"]
    model.compile("adam", "mae", metrics=[])
    assert list(model.fit(x, y, verbose=0).history) == ["loss"]
    assert model.get_compile_config()["loss"] == "mae"


def test_run_eagerly_may_be_set_before_compile(data):
    model = Sequential([Input((3,)), Dense(1)])
    model.run_eagerly = True
    assert model.run_eagerly
    assert model.predict(data[0], verbose=0).shape == (40, 1)
    model.compile("sgd", "mse")
    assert not model.run_eagerly  # what compile is given counts
    with pytest.raises(ValueError, match="run_eagerly=False"):
        model.compile("sgd", "mse", run_eagerly=True, jit_compile=True)
