"""`floatx`: the dtype of layers, metrics and data where none is given."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import backend
from tapewright.keras.layers import BatchNormalization, Dense


@pytest.fixture
def double():
    backend.set_floatx("float64")
    yield
    backend.set_floatx("float32")


def test_models_train_in_double_precision(double):
    x = np.random.default_rng(0).normal(size=(20, 3))
    model = tw.Sequential([tw.Input((3,)), Dense(4), BatchNormalization(), Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(x, x[:, :1], verbose=0)
    assert {v.dtype.name for v in model.weights} == {"float64"}
    assert model.predict(x, verbose=0).dtype == np.float64
    assert tw.metrics.Mean().dtype == "float64" == backend.floatx()


def test_float32_is_the_default_again():
    assert backend.floatx() == "float32" and Dense(1).dtype == "float32"


def test_other_dtypes_are_refused():
    names = r"\('float16', 'bfloat16', 'float32', 'float64'\)"
    with pytest.raises(ValueError, match=rf"value .*{names}.*got 'int32'"):
        backend.set_floatx("int32")
