"""The defaults of Keras: dtype, order of axes, epsilon, where none is given."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import layers, ops
from tapewright.keras.layers import BatchNormalization, Dense
from tapewright.keras.legacy import backend


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


@pytest.fixture
def first():
    backend.set_image_data_format("channels_first")
    yield
    backend.set_image_data_format("channels_last")


IMAGES = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
BY_FORMAT = [
    lambda x, **k: layers.MaxPooling2D(2, **k)(x),
    lambda x, **k: layers.Flatten(**k)(x),
    lambda x, **k: layers.CenterCrop(2, 2, **k)(x),
    lambda x, **k: ops.average_pool(x, 2, **k),
    lambda x, **k: ops.conv_transpose(x, np.ones((2, 2, 4, 3), "float32"), 2, **k),
    lambda x, **k: ops.image.extract_patches(x, 2, **k),
    lambda x, **k: ops.image.affine_transform(x, [1, 0, 1, 0, 1, 0, 0, 0.0], **k),
]


@pytest.mark.parametrize("function", BY_FORMAT)
def test_layers_and_ops_take_the_order_of_axes_that_is_set(first, function):
    expected = function(IMAGES, data_format="channels_first").numpy()
    assert np.array_equal(function(IMAGES), expected)
    x = tw.Input(IMAGES.shape[1:])
    model = tw.Model(x, function(x))
    backend.set_image_data_format("channels_last")
    assert np.array_equal(model(IMAGES), expected)  # the model keeps its own
    twin = tw.Model.from_config(model.get_config())
    assert np.array_equal(twin(IMAGES), expected)


def test_what_was_made_with_the_channels_last_keeps_them(first):
    backend.set_image_data_format("channels_last")
    x = tw.Input(IMAGES.shape[1:])
    model = tw.Model(x, ops.max_pool(tw.nn.max_pool2d(x, 1, 1, "VALID"), 2))
    expected, config = model(IMAGES).numpy(), model.get_config()
    backend.set_image_data_format("channels_first")
    assert np.array_equal(model(IMAGES), expected)
    assert np.array_equal(tw.Model.from_config(config)(IMAGES), expected)
    assert tw.Model(x, tw.nn.max_pool2d(x, 2, 2, "VALID"))(IMAGES).shape == (2, 1, 2, 5)


def test_losses_keep_probabilities_from_zero_by_epsilon():
    backend.set_epsilon(1e-3)
    try:
        loss = tw.losses.categorical_crossentropy([[1.0, 0.0]], [[0.0, 1.0]])
        assert float(loss[0]) == pytest.approx(-np.log(1e-3), rel=1e-6)
    finally:
        backend.set_epsilon(1e-7)
    assert backend.epsilon() == 1e-7


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_epsilon_is_a_positive_number(value):
    with pytest.raises(ValueError, match="value must be a positive number"):
        backend.set_epsilon(value)


def test_other_orders_of_axes_are_refused():
    with pytest.raises(ValueError, match="got 'NHWC'"):
        backend.set_image_data_format("NHWC")
