"""Layers of several inputs: `Add` to `Dot`, and their functions."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import Add, Average, Concatenate, Dot, Multiply, Subtract
from tapewright.layers.base import masks

X = np.array([[1.0, -2.0, 0.5]], "float32")
Y = np.array([[3.0, 4.0, -1.0]], "float32")


@pytest.mark.parametrize("name, expected", [
    ("add", X + Y), ("subtract", X - Y), ("multiply", X * Y), ("average", (X + Y) / 2),
    ("maximum", np.maximum(X, Y)), ("minimum", np.minimum(X, Y)),
    ("concatenate", np.concatenate([X, Y], 1)), ("dot", [[-5.5]]),
])  # fmt: skip
def test_functions_do_what_their_layers_do(name, expected):
    np.testing.assert_allclose(getattr(layers, name)([X, Y]), expected)


def test_functions_take_what_the_layers_take():
    y = layers.dot([X, Y], axes=1, normalize=True, name="cosine")
    cosine = -5.5 / np.sqrt((X * X).sum() * (Y * Y).sum())
    np.testing.assert_allclose(y, [[cosine]], rtol=1e-6)
    assert layers.concatenate([X, Y], axis=0).shape == (2, 3)


def test_lower_ranks_get_axes_behind_the_batch():
    x, y = np.random.normal(size=(2, 2, 3, 4)), np.random.normal(size=(2, 4))
    np.testing.assert_allclose(Add()([x, y]), x + y[:, None, None], rtol=1e-5)
    layer = Add()
    assert layer.compute_output_shape([(None, 3, 4), (None, 4)]) == (None, 3, 4)
    assert layer.compute_output_shape([(None, 1), (5, 4)]) == (5, 4)


def test_one_input_is_enough():
    assert Add()([X]).numpy().tolist() == X.tolist()


def test_averages_of_integers_are_no_integers():
    y = Average()([np.array([[1]]), np.array([[2]])])
    assert y.numpy().tolist() == [[1.5]] and y.dtype == "float32"


@pytest.mark.parametrize("layer, shapes, message", [
    (Add(), [(2, 3), (2, 4)], r"broadcast, got \(2, 3\), \(2, 4\)"),
    (Add(), [(2, 3), (4, 3)], r"batch size.*got \(2, 3\), \(4, 3\)"),
    (Subtract(), [(2, 3)] * 3, "list of 2 tensors, got 3"),
    (Concatenate(), [(2, 3), (4, 3)], r"inputs .*-1.*got shapes \(2, 3\), \(4, 3\)"),
    (Concatenate(2), [(2, 3), (2, 3)], "axis .*-2.*1.*got 2"),
    (Concatenate(), [(2, 3), (2, 3, 4)], r"inputs .*-1.*got shapes \(2, 3\), \(2, 3, 4\)"),
    (Dot(1), [(2, 3), (2, 4)], r"axis 1.*axis 1.*same size.*got shapes \(2, 3\) and \(2, 4\)"),
    (Dot(1), [(2, 3)], r"2 tensors, got shapes \[\(2, 3\)\]"),
    (Dot(2), [(2, 3), (2, 3)], r"axes .*got 2 for shapes \(2, 3\), \(2, 3\)"),
    (Dot((0, 1)), [(2, 2), (2, 2)], "axes .*input"),
], ids=str)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(layer, shapes, message):
    with pytest.raises(ValueError, match=message):
        type(layer).from_config(layer.get_config())([tw.ones(s) for s in shapes])
    with pytest.raises(ValueError, match=message):
        layer.compute_output_shape(shapes)


def test_a_single_tensor_is_no_list_of_inputs():
    for layer in (Add(), Concatenate()):
        with pytest.raises(ValueError, match="inputs must be a list"):
            layer(tw.ones([2, 3]))


@pytest.mark.parametrize("axes", [1.5, (1,), (1, 2, 3), "12"])
def test_dot_takes_one_axis_or_two(axes):
    with pytest.raises(ValueError, match="Dot: axes must be an int or a pair of ints"):
        Dot(axes)


@pytest.mark.parametrize("layer", [Add(), Concatenate(1), Dot((1, 2), True)])
def test_the_config_makes_the_same_layer(layer):
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config


def test_one_layer_serves_inputs_of_several_lengths():
    layer = Concatenate(axis=1)
    for length in (2, 3):
        assert (
            layer([tw.ones([1, length, 4]), tw.ones([1, 1, 4])]).shape[1] == length + 1
        )


def test_what_any_input_keeps_is_kept():
    x, y = tw.ones([1, 3, 2]), tw.fill([1, 3, 2], 5.0)
    masks.attach(x, tw.constant([[True, True, False]]))
    masks.attach(y, tw.constant([[True, False, False]]))
    product = Multiply()([x, y])
    assert masks.mask_of(product).numpy().tolist() == [[True, True, False]]
    assert product.numpy()[0, :, 0].tolist() == [5.0, 1.0, 0.0]
    assert masks.mask_of(Add()([x, tw.ones([1, 3, 2])])) is None


def test_every_derivative_agrees_with_differences():
    x, y = np.random.normal(size=(2, 3, 2)), np.random.normal(size=(2, 2, 3))
    for layer in (Dot((1, 2), dtype="float64"), Dot((2, 1), True, dtype="float64")):
        tw.test.check_gradients(lambda *z, f=layer: f(list(z)), [x, y], order=2)
    for name in ("Add", "Multiply", "Maximum", "Average"):
        layer = getattr(layers, name)(dtype="float64")
        tw.test.check_gradients(
            lambda *z, f=layer: f(list(z)), [x, y[:, :1, :2]], order=2
        )


@pytest.mark.parametrize(
    "shapes, axes",
    [([(2, 3), (2, 3)], 1), ([(2, 3), (2, 3, 4)], 1), ([(2, 3, 4), (2, 5, 4)], 2),
     ([(2, 3, 4, 5), (2, 6, 3, 7)], (1, 2))],
)  # fmt: skip
def test_a_dot_product_knows_its_shape(shapes, axes):
    layer = layers.Dot(axes)
    outputs = layer([np.ones(shape, np.float32) for shape in shapes])
    assert tuple(outputs.shape) == layer.compute_output_shape(shapes)


def test_masks_of_every_entry_are_joined_as_they_are():
    x = tw.ones((1, 2, 2))
    layer = layers.Concatenate(axis=1)
    masks = [tw.constant([[[True, False]] * 2]), tw.constant([[[False, False]] * 2])]
    joined = layer.compute_mask([x, x], masks)
    assert joined.numpy().tolist() == [[True, True, False, False]]


@pytest.mark.parametrize(
    "name", "Add Subtract Multiply Average Maximum Minimum Concatenate".split()
)
def test_masks_given_by_hand_are_merged(name):
    layer, inputs = getattr(layers, name)(), [tw.ones((2, 3, 4))] * 2
    first = np.array([[True, False, False], [True, True, False]])
    second = np.array([[True, True, False], [False, False, False]])
    found = layer.compute_mask(inputs, mask=[first, second])
    assert found.dtype == "bool"
    np.testing.assert_array_equal(found, first | second)
    numbers = [first.astype("float32"), tw.Variable(second.astype("float32"))]
    np.testing.assert_array_equal(layer.compute_mask(inputs, numbers), first | second)
    assert layer.compute_mask(inputs, [None, None]) is None
    assert layer.compute_mask(inputs) is None


@pytest.mark.parametrize("name", ["Add", "Concatenate"])
def test_masks_that_are_no_list_for_the_inputs_are_refused(name):
    layer, x = getattr(layers, name)(), tw.ones((2, 3, 4))
    mask = np.ones((2, 3), bool)
    for inputs, masks_given, message in (
        ([x, x], mask, "mask must be a list"),
        (x, [mask, mask], "inputs must be a list"),
        ([x, x], [mask], "mask must .* got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            layer.compute_mask(inputs, masks_given)
