"""Layers on symbolic tensors: where the shape tells the outputs, a trace says the same."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras, layers
from tapewright.layers.base import layer as layer_module
from tapewright.layers.base.symbolic_tensor import symbolic_outputs

layers = keras.layers

IMAGE, STEPS, ROW = (None, 8, None, 4), (2, 7, 4), (None, 4)

CASES = [
    (layers.Dense(3), ROW),
    (layers.Dense(3, activation="softmax", use_bias=False), STEPS),
    (layers.Dense(4, activation="glu"), ROW),
    (layers.Dense(4, activation=lambda x: x[:, :2]), ROW),
    (layers.Dense(4, dtype="float64"), ROW),
    (layers.Activation("relu"), IMAGE),
    (layers.Activation(lambda x: x[..., None]), ROW),
    (layers.Dropout(0.5), (None, None, 3)),
    (layers.SpatialDropout1D(0.5), STEPS),
    (layers.GaussianNoise(0.5), ROW),
    (layers.AlphaDropout(0.5), ROW),
    (layers.ReLU(6.0), IMAGE),
    (layers.LeakyReLU(), IMAGE),
    (layers.PReLU(shared_axes=[1, 2]), IMAGE),
    (layers.ELU(), ROW),
    (layers.Softmax(), ROW),
    (layers.BatchNormalization(), IMAGE),
    (layers.LayerNormalization(), STEPS),
    (layers.GroupNormalization(2), IMAGE),
    (layers.Flatten(), IMAGE),
    (layers.Flatten(), STEPS),
    (layers.Flatten(), (None,)),
    (layers.Conv1D(3, 2, padding="causal", dilation_rate=2), STEPS),
    (layers.Conv2D(3, 3, strides=2), IMAGE),
    (layers.Conv2D(4, 3, padding="same", groups=2), IMAGE),
    (layers.DepthwiseConv2D(3, depth_multiplier=2), IMAGE),
    (layers.SeparableConv2D(3, 3, padding="same", strides=2), IMAGE),
    (layers.Conv2DTranspose(3, 3, strides=2, padding="same"), (None, 4, 5, 2)),
    (layers.Conv1DTranspose(3, 2, strides=3), STEPS),
    (layers.MaxPooling2D(3, strides=2), IMAGE),
    (layers.AveragePooling1D(2, padding="same"), STEPS),
    (layers.GlobalMaxPooling2D(keepdims=True), IMAGE),
    (layers.GlobalAveragePooling2D(), IMAGE),
    (layers.GlobalAveragePooling1D(data_format="channels_first"), STEPS),
]


def title(case):
    return type(case).__name__ if isinstance(case, layers.Layer) else str(case)


@pytest.mark.parametrize(("layer", "shape"), CASES, ids=title)
def test_outputs_told_by_a_shape_are_those_of_a_trace(layer, shape):
    x = keras.Input(batch_shape=shape, dtype="float32")
    told = layer.compute_output_spec(x)
    traced = symbolic_outputs(layer._tw_call_as_it_is, (x,), {})
    assert tuple(told.shape) == tuple(traced.shape)
    assert told.dtype == traced.dtype


def test_a_chain_of_dense_layers_is_put_together_without_a_trace(monkeypatch):
    def refuse(*args):
        raise AssertionError("traced")

    monkeypatch.setattr(layer_module, "symbolic_outputs", refuse)
    x = keras.Input((3,))
    y = layers.Dropout(0.5)(layers.Dense(2, activation="relu")(x), training=True)
    assert keras.Model(x, layers.Dense(4)(y)).output_shape == (None, 4)


def test_numbers_beside_a_symbolic_tensor_are_a_tensor():
    class Between(layers.Layer):
        def build(self, first_shape, second_shape):
            self.shapes = first_shape, second_shape

        def call(self, first, second):
            return (first + second) / 2.0

    x, layer = keras.Input((2,)), Between()
    model = keras.Model(x, layer([[1.0, 2.0]], x))
    assert layer.shapes == ((1, 2), (None, 2))
    np.testing.assert_array_equal(model(np.zeros((1, 2))), [[0.5, 1.0]])


def test_a_class_of_the_users_is_traced_whatever_it_inherits():
    class Pair(layers.Dense):
        def call(self, inputs):
            return super().call(inputs)[:, None]

    assert Pair(3)(keras.Input((2,))).shape.as_list() == [None, 1, 3]


def test_a_mask_goes_through_layers_whose_shape_tells():
    x = keras.Input((None,), dtype="int32")
    y = layers.Dense(2)(layers.Embedding(5, 3, mask_zero=True)(x))
    assert y.mask_spec.shape.as_list() == [None, None]
    mask = y._keras_mask  # as Keras' guide to masking prints it
    assert (mask.shape, mask.dtype) == ((None, None), "bool") and x._keras_mask is None
    model = keras.Model(x, layers.LSTM(2)(y))
    short, long = model(tw.constant([[1, 2]])), model(tw.constant([[1, 2, 0]]))
    assert short.numpy().tolist() == long.numpy().tolist()
    with pytest.raises(ValueError, match="_mask"):
        keras.Model(x, layers.LSTM(2)(y, mask=mask))


def test_integers_that_enter_a_dense_layer_come_out_as_floats():
    assert layers.Dense(2)(keras.Input((3,), dtype="int32")).dtype == "float32"


def test_adding_a_layer_does_not_look_at_all_others():
    class Named(layers.Layer):
        looks = 0

        @property
        def name(self):
            Named.looks += 1
            return layers.Layer.name.fget(self)

    keras.Sequential([Named() for _ in range(50)])
    assert Named.looks < 500


def test_a_popped_layer_can_be_added_again():
    model = keras.Sequential([layers.Dense(2, name="a"), layers.Dense(2, name="b")])
    model.add(model.pop())
    model.layers[0].name = "c"
    with pytest.raises(ValueError, match="names .*'c'"):
        model.add(layers.Dense(2, name="c"))
    model.add(layers.Dense(2, name="a"))


def test_shape_and_dtype_of_a_symbolic_tensor_print_as_in_keras():
    x = tw.Input((3, 4), dtype="int32")
    y = layers.Dense(2)(tw.Input((3,)))
    assert repr(x.shape) == str(x.shape) == "(None, 3, 4)"
    assert repr(x.shape[1:]) == "(3, 4)" and repr(x.shape + (1,)) == "(None, 3, 4, 1)"
    assert repr(x.dtype) == "'int32'" and f"{y.dtype}" == "float32"
    assert repr(y.shape) == "(None, 2)" and isinstance(y.shape, tuple)


def test_shape_and_dtype_of_a_symbolic_tensor_are_those_of_tensors():
    x = tw.Input((3, 4), dtype="int32")
    assert x.shape == tw.TensorShape([None, 3, 4]) == (None, 3, 4)
    assert x.shape.rank == 3 and x.shape.as_list() == [None, 3, 4]
    assert x.dtype == tw.int32 and tw.int32 == x.dtype and x.dtype != tw.float32
    assert x.dtype.is_integer and tw.as_dtype(x.dtype) is tw.int32
    assert x.dtype in (tw.int32, tw.int64) and x.dtype not in (tw.float32,)
    assert np.zeros(2, x.dtype).dtype == np.int32
    assert {x.dtype} == {tw.int32} and {tw.int32: 1}[x.dtype] == 1
    assert copy.deepcopy(x.dtype) == pickle.loads(pickle.dumps(x.dtype)) == "int32"


def test_a_symbolic_tensor_by_hand_has_the_arguments_and_methods_of_keras():
    x = keras.KerasTensor((2, 3, 1), "float32", False, False, True, "x")
    assert x.name == "x" and x.ndim == 3
    assert x.reshape((3, 2)).shape == (3, 2) and x.squeeze(-1).shape == (2, 3)
    for wrong in ({"ragged": True}, {"record_history": False}):
        with pytest.raises(ValueError, match="ragged must be False"):
            keras.KerasTensor((2,), **wrong)
