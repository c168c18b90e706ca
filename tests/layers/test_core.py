"""`Dense`, `EinsumDense`, `Activation`, `Identity`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import Activation, Dense, EinsumDense, Identity, Masking


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


# ---------------------------------------------------------------------------- Dense


@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize("use_bias", [True, False])
def test_dense_is_an_affine_map_of_the_last_axis(shape, use_bias):
    layer = Dense(2, use_bias=use_bias, bias_initializer="random_normal")
    x = numbers(*shape)
    y = layer(x)
    expected = x @ layer.kernel.numpy()
    if use_bias:
        expected = expected + layer.bias.numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert layer.compute_output_shape(shape) == y.shape


def test_dense_gradients():
    # y = x W + b, loss = sum(c y): dW = x^T c, db = sum(c), dx = c W^T
    layer, x, c = Dense(2), tw.constant(numbers(5, 3)), numbers(5, 2)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = tw.reduce_sum(layer(x) * c)
    d_x, d_kernel, d_bias = tape.gradient(loss, [x, layer.kernel, layer.bias])
    np.testing.assert_allclose(d_kernel, x.numpy().T @ c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_bias, c.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_x, c @ layer.kernel.numpy().T, rtol=1e-5, atol=1e-6)


def test_dense_defaults_are_glorot_and_zeros():
    layer = Dense(50)
    layer.build((None, 100))
    limit = np.sqrt(6 / 150)
    assert 0.95 * limit < np.abs(layer.kernel).max() <= limit
    assert not layer.bias.numpy().any()


def test_dense_casts_integers():
    layer = Dense(1, kernel_initializer="ones")
    y = layer(np.array([[1, 2]], np.uint8))
    assert y.dtype == "float32" and y.numpy().tolist() == [[3.0]]


def test_dense_regularizes_kernel_and_bias():
    layer = Dense(
        2,
        kernel_initializer="ones",
        bias_initializer="ones",
        kernel_regularizer="l1",
        bias_regularizer=tw.keras.regularizers.L2(0.5),
    )
    layer.build((None, 3))
    assert [float(v) for v in layer.losses] == pytest.approx([0.06, 1.0])


def test_dense_regularizes_its_outputs_per_example():
    layer = Dense(1, activity_regularizer="l2", kernel_initializer="ones")
    layer(np.array([[1.0, 2.0], [0.0, 1.0]]))
    # 0.01 * (3^2 + 1^2) / 2
    assert [float(v) for v in layer.losses] == pytest.approx([0.05])


def test_constraints_belong_to_the_weights():
    layer = Dense(2, kernel_constraint="non_neg", bias_constraint="max_norm")
    layer.build((None, 3))
    assert layer.kernel.constraint is layer.kernel_constraint
    assert layer.bias.constraint is layer.bias_constraint


def test_without_a_bias_there_is_none():
    layer = Dense(2, use_bias=False)
    layer.build((None, 3))
    assert layer.bias is None and len(layer.weights) == 1


@pytest.mark.parametrize("units", [0, -1, 2.5, "3", None, True])
def test_dense_needs_a_positive_number_of_units(units):
    with pytest.raises(ValueError, match="Dense: units must be a positive integer"):
        Dense(units)


def test_dense_config_makes_the_same_layer():
    layer = Dense(
        np.int64(3), "relu", use_bias=False, kernel_regularizer="l2", name="d"
    )
    config = layer.get_config()
    assert config["units"] == 3 and config["activation"] == "relu"
    assert Dense.from_config(config).get_config() == config


def test_the_config_has_the_keys_of_keras():
    assert set(Dense(3).get_config()) == {
        "name", "trainable", "dtype", "units", "activation", "use_bias",
        "kernel_initializer", "bias_initializer", "kernel_regularizer",
        "bias_regularizer", "kernel_constraint", "bias_constraint",
    }  # fmt: skip


# ---------------------------------------------------------------------- EinsumDense


def test_einsum_dense_is_a_sum_of_products_plus_a_bias():
    layer = EinsumDense(
        "abc,cde->abde", (None, 2, 5), bias_axes="e", bias_initializer="ones"
    )
    x = numbers(3, 4, 6)
    expected = np.einsum("abc,cde->abde", x, layer(x) is not None and layer.kernel) + 1
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-5)
    assert layer.kernel.shape == (6, 2, 5) and layer.bias.shape == (5,)


@pytest.mark.parametrize(
    "equation, shape, inputs, outputs",
    [
        ("ab,bc->ac", 4, (None, 3), (None, 4)),
        ("abc,cd->abd", (None, 4), (None, None, 3), (None, None, 4)),
        ("...x,xy->...y", 4, (None, 5, 6, 3), (None, 5, 6, 4)),
        ("...x,xy->...y", 4, (None, 3), (None, 4)),
        ("ab...,bc->ac...", 4, (None, 3, 5, 6), (None, 4, 5, 6)),
        ("abc,cde->abde", (7, 2, 4), (None, 7, 3), (None, 7, 2, 4)),
    ],
)
def test_einsum_dense_knows_the_shape_of_its_outputs(equation, shape, inputs, outputs):
    assert EinsumDense(equation, shape).compute_output_shape(inputs) == outputs


def test_einsum_dense_counts_inputs_and_outputs_by_the_equation():
    # 10 inputs and 20 * 30 outputs, whatever the order of the axes
    layer = EinsumDense("abc,dce->abde", (None, 20, 30))
    layer.build((None, 2, 10))
    limit = np.sqrt(6 / 610)
    assert 0.95 * limit < np.abs(layer.kernel).max() <= limit


@pytest.mark.parametrize("equation", ["ab,bc", "ab,bc->ac...", "...a,ab...->b", "", 3])
def test_einsum_dense_refuses_what_is_no_equation(equation):
    with pytest.raises(ValueError, match="EinsumDense: equation must be like"):
        EinsumDense(equation, 3)


def test_einsum_dense_names_letters_that_stand_alone():
    with pytest.raises(ValueError, match="has d, z in one term only"):
        EinsumDense("ab,bz->ad", 3)


def test_einsum_dense_says_which_shapes_do_not_fit():
    layer = EinsumDense("abc,cd->abd", (4, 5))
    with pytest.raises(ValueError, match=r"size 3.*'b'.*\(4, 5\).*shape \(2, 3, 6\)"):
        layer.build((2, 3, 6))
    with pytest.raises(ValueError, match="requires inputs of rank 3"):
        layer.build((2, 3))
    with pytest.raises(ValueError, match=r"output_shape of length 2.*\(5,\)"):
        EinsumDense("abc,cd->abd", 5).build((2, 3, 6))


def test_the_bias_has_axes_of_the_outputs():
    with pytest.raises(ValueError, match="bias_axes .*'ac'.*got 'b'"):
        EinsumDense("ab,bc->ac", 3, bias_axes="b")


def test_einsum_dense_config_makes_the_same_layer():
    layer = EinsumDense("abc,cd->abd", (None, 5), "relu", bias_axes="d")
    config = layer.get_config()
    assert config["output_shape"] == [None, 5] and config["equation"] == "abc,cd->abd"
    assert EinsumDense.from_config(config).get_config() == config


def test_every_derivative_of_einsum_dense_agrees_with_differences():
    layer = EinsumDense("ab,bcd->adc", (2, 3), "tanh", bias_axes="c", dtype="float64")
    x = np.random.normal(size=(2, 2))
    layer(x)
    tw.test.check_gradients(lambda x, *_: layer(x), [x, *layer.weights], order=2)


# --------------------------------------------------------------- Activation, Identity


@pytest.mark.parametrize(
    "layer, shape",
    [
        (Dense(2, activation="softmax"), (2, 3)),
        (EinsumDense("ab,bc->ac", 2, activation="softmax"), (2, 3)),
        (tw.layers.Conv1D(2, 1, activation="softmax"), (2, 3, 4)),
        (tw.layers.SimpleRNN(2), (2, 3, 4)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_activation_can_be_taken_away(layer, shape):
    x = numbers(*shape)
    layer(x)
    owner = getattr(layer, "cell", layer)
    owner.activation = None
    without = layer(x)
    owner.activation = tw.keras.activations.linear
    np.testing.assert_array_equal(without, layer(x))


def test_activation_applies_its_function():
    assert Activation("relu")([-1.0, 2.0]).numpy().tolist() == [0.0, 2.0]
    assert Activation(tw.nn.tanh).get_config()["activation"] == "tanh"


def test_identity_hands_its_inputs_on():
    x = [tw.ones([2]), tw.zeros([3])]
    assert Identity()(x[0]) is x[0]
    y = Identity()(x)
    assert y[0] is x[0] and y[1] is x[1]
    assert Identity().compute_output_shape((None, 3)) == (None, 3)


def test_dense_hands_masks_on():
    masked = Masking()(np.array([[[1.0], [0.0]]], np.float32))
    assert Dense(2)(masked)._keras_mask.numpy().tolist() == [[True, False]]


def test_an_equation_without_dots_takes_no_further_axes():
    with pytest.raises(ValueError, match="requires inputs of rank 2"):
        EinsumDense("ab,bc->ac", 4).build((2, 3, 5))
