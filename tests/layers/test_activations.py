"""Activations by name."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import Dense, LeakyReLU, activations

# Recorded from Keras 3.15 with TensorFlow:
#   keras.activations.get(name)(tf.constant([[-3.0, -0.5, 0.0, 0.5, 8.0]]))
EXPECTED = {
    "relu": [0.0, 0.0, 0.0, 0.5, 8.0],
    "relu6": [0.0, 0.0, 0.0, 0.5, 6.0],
    "leaky_relu": [-0.6, -0.1, 0.0, 0.5, 8.0],
    "elu": [-0.950213, -0.3934693, 0.0, 0.5, 8.0],
    "selu": [-1.670569, -0.6917582, 0.0, 0.5253505, 8.405608],
    "sigmoid": [0.04742587, 0.3775407, 0.5, 0.6224594, 0.9996647],
    "silu": [-0.1422776, -0.1887703, 0.0, 0.3112297, 7.997317],
    "swish": [-0.1422776, -0.1887703, 0.0, 0.3112297, 7.997317],
    "softplus": [0.04858735, 0.474077, 0.6931472, 0.974077, 8.000336],
    "softsign": [-0.75, -0.3333333, 0.0, 0.3333333, 0.8888889],
    "softmax": [1.66832e-05, 0.000203243, 0.0003350911, 0.0005524718, 0.9988925],
    "log_softmax": [-11.00111, -8.501108, -8.001108, -7.501108, -0.001108151],
    "tanh": [-0.9950547, -0.4621171, 0.0, 0.4621171, 1.0],
    "exponential": [0.04978707, 0.6065307, 1.0, 1.648721, 2980.958],
    "linear": [-3.0, -0.5, 0.0, 0.5, 8.0],
    "gelu": [-0.004049696, -0.1542688, 0.0, 0.3457312, 8.0],
    "celu": [-0.950213, -0.3934693, 0.0, 0.5, 8.0],
    "hard_shrink": [-3.0, 0.0, 0.0, 0.0, 8.0],
    "hard_sigmoid": [0.0, 0.4166667, 0.5, 0.5833333, 1.0],
    "hard_silu": [0.0, -0.2083333, 0.0, 0.2916667, 8.0],
    "hard_swish": [0.0, -0.2083333, 0.0, 0.2916667, 8.0],
    "hard_tanh": [-1.0, -0.5, 0.0, 0.5, 1.0],
    "log_sigmoid": [-3.048587, -0.974077, -0.6931472, -0.474077, -0.0003354064],
    "mish": [-0.1456475, -0.2207438, 0.0, 0.3752452, 8.0],
    "soft_shrink": [-2.5, 0.0, 0.0, 0.0, 7.5],
    "sparse_plus": [0.0, 0.0625, 0.25, 0.5625, 8.0],
    "sparse_sigmoid": [0.0, 0.25, 0.5, 0.75, 1.0],
    "squareplus": [0.3027756, 0.7807764, 1.0, 1.280776, 8.123106],
    "tanh_shrink": [-2.004945, -0.03788286, 0.0, 0.03788286, 7.0],
}
ALIASES = {"swish", "hard_swish"}

# Recorded likewise: slopes at the corners. Not Keras' is that of celu at 0, which has no
# corner there; Keras gives 2.
SLOPES = [
    ("celu", {}, [-1.0, 0.0, 1.0], [0.36787945, 1.0, 1.0]),
    ("elu", {}, [0.0], [1.0]),
    ("elu", {"alpha": 0.5}, [-2.0, 0.0, 2.0], [0.06766763, 0.5, 1.0]),
    ("gelu", {}, [-1.0, 0.0, 1.0], [-0.08331549, 0.5, 1.0833155]),
    ("gelu", {"approximate": True}, [-1.0, 0.0, 1.0], [-0.08296409, 0.5, 1.0829641]),
    ("hard_shrink", {}, [-0.5, 0.0, 0.5], [0.0, 0.0, 0.0]),
    ("hard_sigmoid", {}, [-3.0, 0.0, 3.0], [0.0, 0.16666667, 0.0]),
    ("hard_silu", {}, [-3.0, 0.0, 3.0], [0.0, 0.5, 1.0]),
    ("hard_tanh", {}, [-1.0, 0.0, 1.0], [1.0, 1.0, 1.0]),
    ("leaky_relu", {}, [0.0], [0.2]),
    ("mish", {}, [0.0], [0.6]),
    ("relu", {}, [0.0], [0.0]),
    ("relu", {"max_value": 3.0}, [0.0, 3.0, 4.0], [0.0, 1.0, 0.0]),
    ("relu", {"max_value": 6}, [0.0, 3.0, 6.0], [0.0, 1.0, 0.0]),
    ("relu", {"threshold": 1.0}, [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]),
    ("relu", {"negative_slope": 0.1}, [-2.0, 0.0, 2.0], [0.1, 0.1, 1.0]),
    ("relu", {"negative_slope": 0.1, "max_value": 3.0}, [-2.0, 0.0, 2.0, 3.0, 4.0],
     [0.1, 0.0, 1.0, 1.0, 0.0]),
    ("relu", {"negative_slope": 0.1, "max_value": 3.0, "threshold": 1.0},
     [0.0, 1.0, 2.0, 3.0, 4.0], [0.1, 0.0, 1.0, 1.0, 0.0]),
    ("relu6", {}, [0.0, 6.0], [0.0, 0.0]),
    ("selu", {}, [0.0], [1.050701]),
    ("soft_shrink", {}, [-0.5, 0.0, 0.5], [0.0, 0.0, 0.0]),
    ("sparse_plus", {}, [-1.0, 0.0, 1.0], [0.0, 0.5, 1.0]),
    ("sparse_sigmoid", {}, [-1.0, 0.0, 1.0], [0.0, 0.5, 0.0]),
    ("squareplus", {}, [0.0], [0.5]),
    ("tanh_shrink", {}, [0.0], [0.0]),
    ("threshold", {"threshold": 1.0, "default_value": -2.0}, [0.5, 1.0, 2.0], [0.0, 0.0, 1.0]),
]  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_a_name_means_what_it_means_in_keras(name):
    x = tw.constant([[-3.0, -0.5, 0.0, 0.5, 8.0]])
    np.testing.assert_allclose(
        activations.get(name)(x), [EXPECTED[name]], rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("name, options, points, slopes", SLOPES)
def test_slopes_at_corners_are_those_of_keras(name, options, points, slopes):
    x = tw.constant(points)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = activations.get(name)(x, **options)
    np.testing.assert_allclose(tape.gradient(y, x), slopes, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name, options, x, values", [  # recorded likewise
    ("gelu", {"approximate": True}, [-3.0, -0.5, 8.0], [-0.003637433, -0.154286, 8.0]),
    ("glu", {}, [-3.0, -0.5, 0.5, 8.0], [-1.867378, -0.4998323]),
    ("elu", {"alpha": 0.5}, [-2.0, 0.0, 2.0], [-0.4323324, 0.0, 2.0]),
    ("relu", {"negative_slope": 0.1, "max_value": 3.0, "threshold": 1.0},
     [0.0, 1.0, 2.0, 3.0, 4.0], [-0.1, 0.0, 2.0, 3.0, 3.0]),
    ("threshold", {"threshold": 1.0, "default_value": -2.0}, [0.5, 1.0, 2.0], [-2, -2, 2]),
])  # fmt: skip
def test_options_mean_what_they_mean_in_keras(name, options, x, values):
    result = activations.get(name)(tw.constant(x), **options)
    np.testing.assert_allclose(result, values, rtol=1e-5, atol=1e-7)


# where each is smooth, a random handful of points
SMOOTH = sorted({*EXPECTED, "glu"} - ALIASES - {"softmax", "log_softmax", "linear"})


@pytest.mark.parametrize("name", SMOOTH)
def test_every_derivative_agrees_with_differences(name):
    tw.test.check_gradients(activations.get(name), [np.array([-2.3, -0.71, 0.33, 1.6])])


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_celu_is_smooth_for_any_alpha(alpha):
    x = np.array([-2.3, -0.71, 0.33, 1.6])
    tw.test.check_gradients(lambda x: activations.celu(x, alpha), [x])
    value = activations.celu(x, alpha).numpy()
    smooth = np.where(x > 0, x, alpha * (np.exp(x / alpha) - 1))
    np.testing.assert_allclose(value, smooth, rtol=1e-12)


@pytest.mark.parametrize(
    "x", [[1.0, 0.8, 0.1], [3.0, 1.0, 0.2], [0.1, 0.2, 0.3], [2.0, 2.0]]
)
def test_sparsemax_is_the_nearest_point_of_the_simplex(x):
    # Martins & Astudillo, algorithm 1; Keras' own does not sum to 1
    z = np.sort(np.array(x))[::-1]
    size = max(k for k in range(1, len(z) + 1) if 1 + k * z[k - 1] > z[:k].sum())
    expected = np.maximum(np.array(x) - (z[:size].sum() - 1) / size, 0)
    y = activations.sparsemax(np.array([x])).numpy()
    np.testing.assert_allclose(y, [expected], rtol=1e-12)
    np.testing.assert_allclose(y.sum(), 1, rtol=1e-12)


def test_every_derivative_of_sparsemax_agrees_with_differences():
    x = np.array([[0.3, 0.9, -0.4, 1.1], [2.0, 0.1, 0.2, 0.3]])
    tw.test.check_gradients(activations.sparsemax, [x], order=2)
    tw.test.check_gradients(lambda x: activations.sparsemax(x, axis=0), [x], order=1)


def test_glu_wants_an_axis_of_even_size():
    with pytest.raises(ValueError, match=r"glu: .*axis -1.*got shape \(3,\)"):
        activations.glu([1.0, 2.0, 3.0])
    halves = activations.glu(np.ones((4, 3)), axis=0)
    assert halves.shape == (2, 3)


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - ALIASES))
def test_a_name_survives_the_round_trip(name):
    assert activations.serialize(activations.get(name)) == name


def test_the_op_itself_is_known_by_its_name():
    assert Dense(1, activation=tw.nn.relu).get_config()["activation"] == "relu"
    assert activations.serialize(tw.nn.swish) == "silu"
    assert activations.serialize(tw.nn.gelu) == "gelu"
    assert activations.serialize(activations.hard_swish) == "hard_silu"


def test_none_is_linear():
    assert activations.serialize(activations.get(None)) == "linear"


def test_any_callable_will_do():
    layer = Dense(1, activation=lambda x: x * 2.0, kernel_initializer="ones")
    assert layer([[3.0]]).numpy().tolist() == [[6.0]]


def test_a_function_of_the_users_comes_back_through_a_scope():
    def double(x):
        return x * 2.0

    config = Dense(1, activation=double).get_config()
    assert config["activation"]["config"] == "double"
    with tw.keras.utils.custom_object_scope({"double": double}):
        assert Dense.from_config(config).activation is double


def test_deserialize_takes_names_layers_and_functions_of_ones_own():
    def double(x):
        return x * 2.0

    assert activations.deserialize("tanh") is activations.tanh
    assert activations.deserialize("double", {"double": double}) is double
    config = {"class_name": "function", "config": "double"}
    assert activations.deserialize(config, {"double": double}) is double
    layer = activations.get(activations.serialize(LeakyReLU(0.5)))
    assert layer([-2.0]).numpy().tolist() == [-1.0]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="activation 'rleu'. Did you mean 'relu'"):
        activations.get("rleu")


def test_what_is_neither_name_nor_callable_is_refused():
    with pytest.raises(TypeError, match="name.*callable.*None.*got 3"):
        activations.get(3)
