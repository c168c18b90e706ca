"""`Lambda`: what its function gets, and what its config says."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.layers import Lambda
from tapewright.layers.base import masks
from tapewright.serialization import registry


def test_the_function_gets_the_inputs_and_the_arguments():
    layer = Lambda(
        lambda x, by, plus=0: x * by + plus, arguments={"by": 2.0, "plus": 1}
    )
    assert layer([3.0]).numpy().tolist() == [7.0]


def test_the_function_gets_training_and_mask_if_it_takes_them():
    def keep(x, training, mask):
        return x if training else tw.where(mask, x, 0.0)

    layer = Lambda(keep, mask=lambda inputs, mask: mask)
    mask = tw.constant([True, False])
    assert layer([1.0, 2.0], mask=mask, training=True).numpy().tolist() == [1.0, 2.0]
    assert layer([1.0, 2.0], mask=mask, training=False).numpy().tolist() == [1.0, 0.0]


def test_a_mask_may_be_given_or_computed():
    x, mask = tw.ones([2, 3]), tw.constant([True, False])
    assert masks.mask_of(Lambda(lambda x: x * 1, mask=mask)(x)) is mask
    layer = Lambda(lambda x: x * 1, mask=lambda inputs, mask: inputs[:, 0] > 0)
    assert masks.mask_of(layer(x)).numpy().tolist() == [True, True]


def test_the_shape_of_the_outputs_is_given_computed_or_traced():
    for shape in (None, (4,), lambda s: (s[0], 4)):
        layer = Lambda(lambda x: tw.concat([x, x], 1), output_shape=shape)
        assert layer.compute_output_shape((None, 2)) == (None, 4)


def test_a_name_stands_for_a_registered_function():
    def double(x):
        return x * 2

    with registry.custom_object_scope({"double": double}):
        layer = Lambda("double", name="l")
    assert layer([2.0]).numpy().tolist() == [4.0]
    assert Lambda("relu")([-1.0]).numpy().tolist() == [0.0]
    with pytest.raises(ValueError, match="function .*'double'.*register"):
        Lambda("double")


def test_a_config_names_registered_functions():
    layer = Lambda(tw.keras.activations.gelu, arguments={"approximate": True}, name="l")
    config = layer.get_config()
    assert config["function"]["config"] == "gelu" and "mask" not in config
    again = Lambda.from_config(config)
    assert again.get_config() == config
    np.testing.assert_array_equal(again([0.5]), layer([0.5]))


def test_other_functions_are_never_saved():
    layer = Lambda(lambda x: x, name="mine")
    with pytest.raises(ValueError, match="'mine'.*function.*subclass of Layer"):
        layer.get_config()


def test_code_in_a_config_is_never_run():
    config = {"function": {"class_name": "__lambda__", "config": {"code": "4wEA"}}}
    with pytest.raises(ValueError, match="Python code as function"):
        Lambda.from_config(config)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="function .*got 3"):
        Lambda(3)


def test_python_without_a_shape_is_not_called_for_the_shape_of_the_outputs():
    calls = []

    def double(x):
        calls.append(1)
        return x * 2.0

    class Double(keras.layers.Layer):
        def call(self, inputs):
            return tw.py_function(double, [inputs], "float32")

        def compute_output_shape(self, input_shape):
            return input_shape

    by_function = keras.layers.Lambda(
        lambda x: tw.py_function(double, [x], "float32"), output_shape=(3,)
    )
    for layer in (by_function, Double()):
        inputs = keras.Input((3,))
        model = keras.Model(inputs, layer(inputs))
        assert model.output_shape == (None, 3) and not calls
        assert (
            model.predict(np.ones((4, 3)), batch_size=2, verbose=0).tolist()
            == [[2.0] * 3] * 4
        )
        assert len(calls) == 2
        calls.clear()

    with pytest.raises(tw.errors.TracingError, match="TensorSpec"):
        keras.layers.Lambda(lambda x: tw.py_function(double, [x], "float32"))(inputs)
    assert not calls
