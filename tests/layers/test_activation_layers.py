"""`ReLU`, `LeakyReLU`, `PReLU`, `ELU`, `Softmax`, `ThresholdedReLU`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import ELU, LeakyReLU, PReLU, ReLU, Softmax, ThresholdedReLU
from tapewright.layers.base import masks

POINTS = np.array([[-2.3, -0.71, 0.33, 1.6]])
LAYERS = [
    ReLU(max_value=1.0, negative_slope=0.2, threshold=0.1, dtype="float64"),
    LeakyReLU(dtype="float64"),
    PReLU(alpha_initializer="ones", dtype="float64"),
    ELU(0.5, dtype="float64"),
    Softmax(dtype="float64"),
    Softmax([0, 1], dtype="float64"),
    ThresholdedReLU(0.5, dtype="float64"),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_derivative_agrees_with_differences(layer):
    layer(POINTS)
    args = [POINTS, *layer.weights]
    tw.test.check_gradients(lambda x, *_: layer(x), args, order=2)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_the_config_makes_the_same_layer(layer):
    config = layer.get_config()
    again = type(layer).from_config(config)
    assert again.get_config() == config
    np.testing.assert_array_equal(again(POINTS), layer(POINTS))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_masks_and_shapes_pass_through(layer):
    x, mask = tw.constant(POINTS), tw.constant(np.ones((1, 4), bool))
    masks.attach(x, mask)
    assert masks.mask_of(layer(x)) is mask
    assert layer.compute_output_shape((None, 4)) == (None, 4)


def test_default_names_are_those_of_keras():
    names = [type(layer)(name=None).name.rstrip("_0123456789") for layer in LAYERS[:5]]
    assert names == ["re_lu", "leaky_re_lu", "p_re_lu", "elu", "softmax"]


def test_prelu_shares_slopes_along_axes():
    layer = PReLU(shared_axes=[1, 2])
    layer.build((None, 5, 6, 3))
    assert layer.alpha.shape == (1, 1, 3)
    with pytest.raises(ValueError, match=r"size 3.*axis 3.*got shape \(1, 5, 6, 4\)"):
        layer(tw.ones([1, 5, 6, 4]))
    with pytest.raises(ValueError, match=r"shared_axes .*1.*2.*got \[3\]"):
        PReLU(shared_axes=3).build((None, 2, 2))


def test_thresholded_relu_keeps_what_is_above_theta():
    assert ThresholdedReLU(0.5)([-1.0, 0.5, 0.7]).numpy().tolist() == [
        0,
        0,
        np.float32(0.7),
    ]
    assert ThresholdedReLU()([1.0, 1.5]).numpy().tolist() == [0, 1.5]


def test_softmax_gives_zero_where_nothing_counts():
    y = Softmax()([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]])
    assert y.numpy().tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_a_mask_of_softmax_may_be_of_numbers():
    y = Softmax()([[1.0, 1.0, 1.0]], mask=np.array([1, 0, 1]))
    assert y.numpy().tolist() == [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize("shape", [(2, 3), (1, 1, 3), (1, 2)])
def test_a_mask_of_softmax_broadcasts_to_the_inputs(shape):
    with pytest.raises(ValueError, match="mask .*broadcast"):
        Softmax()(tw.ones([1, 3]), mask=np.ones(shape, bool))


@pytest.mark.parametrize("make, message", [
    (lambda: ReLU(max_value=-1), "ReLU: max_value .*0.*got -1"),
    (lambda: ReLU(negative_slope=None), "ReLU: negative_slope .*0.*got None"),
    (lambda: ReLU(threshold=-0.5), r"ReLU: threshold .*0.*got -0\.5"),
    (lambda: ThresholdedReLU(-1), "ThresholdedReLU: theta .*0.*got -1"),
    (lambda: LeakyReLU(-0.1), r"LeakyReLU: negative_slope .*0.*got -0\.1"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_leaky_relu_takes_its_argument_of_keras_2():
    with pytest.warns(UserWarning, match="Use `negative_slope` instead"):
        assert LeakyReLU(alpha=0.2).get_config()["negative_slope"] == 0.2
