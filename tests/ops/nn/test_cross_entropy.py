"""Cross-entropies: the op table, huge logits, labels of any weight."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.test import case, check_op, floats

POSITIVE = {"low": 0.1, "high": 0.9}


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def dense(labels, logits):
    return -(labels * log_softmax(logits)).sum(-1)


def sparse(labels, logits):
    return -np.take_along_axis(log_softmax(logits), labels[..., None], -1)[..., 0]


def excess(labels, logits):
    return np.exp(log_softmax(logits)) * labels.sum(-1, keepdims=True) - labels


def binary(labels, logits):
    p = 1 / (1 + np.exp(-logits))
    return -labels * np.log(p) - (1 - labels) * np.log(1 - p)


def weighted(labels, logits, pos_weight):
    p = 1 / (1 + np.exp(-logits))
    return -labels * np.log(p) * pos_weight - (1 - labels) * np.log(1 - p)


def poisson(counts, x):
    with np.errstate(all="ignore"):
        stirling = counts * np.log(counts) - counts + np.log(2 * np.pi * counts) / 2
    return np.exp(x) - counts * x + np.where(counts > 1, stirling, 0)


DENSE = "softmax_cross_entropy_with_logits"
SPARSE = "sparse_softmax_cross_entropy_with_logits"
BINARY = "sigmoid_cross_entropy_with_logits"

CASES = [
    case(DENSE, floats(2, 3, **POSITIVE), floats(2, 3), expect=dense),
    case(DENSE, floats(2, 2, 3, **POSITIVE), floats(2, 2, 3), expect=dense),
    case(DENSE, floats(3, **POSITIVE), floats(2, 3), expect=dense),
    case(DENSE, floats(2, 3, **POSITIVE), floats(3), expect=dense),
    case(DENSE, floats(3, **POSITIVE), floats(3), expect=dense),
    case(DENSE, floats(0, 3, **POSITIVE), floats(0, 3), expect=dense),
    case(DENSE, floats(2, 70, **POSITIVE), floats(2, 70), order=0, expect=dense),
    case(SPARSE, np.array([2, 0]), floats(2, 3), expect=sparse),
    case(SPARSE, np.array([[2, 0], [1, 1]]), floats(2, 2, 3), expect=sparse),
    case(SPARSE, np.array(1), floats(3), expect=sparse),
    case(SPARSE, np.array([1], np.int32), floats(1, 70), order=1, expect=sparse),
    case(BINARY, floats(2, 3, **POSITIVE), floats(2, 3), expect=binary),
    case(BINARY, floats(**POSITIVE), floats(), expect=binary),
    case("sparse_softmax_excess", np.array([2, 0]), floats(2, 3),
         expect=lambda labels, x: excess(np.eye(3)[labels], x)),
    case("sigmoid_minus", floats(2, 3), floats(2, 3),
         expect=lambda x, y: 1 / (1 + np.exp(-x)) - y),
    case("softmax_excess", floats(2, 3, **POSITIVE), floats(2, 3), expect=excess),
    case("softmax_excess", floats(3, **POSITIVE), floats(2, 3), expect=excess),
    case("softmax_excess", floats(2, 2, 3, **POSITIVE), floats(2, 2, 3), expect=excess),
    case("l2_loss", floats(2, 3), expect=lambda x: (x * x).sum() / 2),
    case("l2_loss", floats(), expect=lambda x: x * x / 2),
    case("l2_loss", floats(0, 2), expect=lambda x: np.array(0.0)),
    # composed of these
    case(tw.nn.softmax_cross_entropy_with_logits, floats(2, 3, 2, **POSITIVE),
         floats(2, 3, 2), axis=1, label="axis 1",
         expect=lambda p, x: dense(np.moveaxis(p, 1, -1), np.moveaxis(x, 1, -1))),
    case(tw.nn.weighted_cross_entropy_with_logits, floats(4, **POSITIVE), floats(4),
         pos_weight=2.5, expect=lambda p, x: weighted(p, x, 2.5)),
    case(tw.nn.weighted_cross_entropy_with_logits, floats(2, 3, **POSITIVE), floats(2, 3),
         floats(3, low=0.5, high=3), label="a weight for each class", expect=weighted),
    case(tw.nn.log_poisson_loss, floats(4, low=0.1, high=3), floats(4),
         expect=lambda z, x: np.exp(x) - z * x),
    case(tw.nn.log_poisson_loss, np.array([0.0, 0.5, 2.0, 7.5]), floats(4), order=0,
         compute_full_loss=True, expect=poisson),
    case(lambda x: tw.nn.log_poisson_loss([3.0, 4.5], x, True), floats(2), single=False,
         label="log_poisson_loss, full", expect=lambda x: poisson(np.array([3, 4.5]), x)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def value_and_slope(f, logits):
    x = tw.constant(logits)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y.numpy().tolist(), tape.gradient(y, x).numpy().tolist()


def test_dense_labels_beside_huge_logits_are_exact():
    f = tw.nn.softmax_cross_entropy_with_logits
    value, slope = value_and_slope(lambda x: f([[0.0, 1.0]], x), [[1000.0, -1000.0]])
    assert value == [2000.0] and slope == [[1.0, -1.0]]


def test_sparse_labels_beside_huge_logits_are_exact():
    f = tw.nn.sparse_softmax_cross_entropy_with_logits
    value, slope = value_and_slope(lambda x: f([1, 0], x), [[1000.0, -1000.0]] * 2)
    assert value == [2000.0, 0.0] and slope == [[1.0, -1.0], [0.0, 0.0]]


def test_binary_labels_beside_huge_logits_are_exact():
    f = tw.nn.sigmoid_cross_entropy_with_logits
    value, slope = value_and_slope(
        lambda x: f([0.0, 1.0, 1.0], x), [1000.0, -1000.0, 1000.0]
    )
    assert value == [1000.0, 1000.0, 0.0] and slope == [1.0, -1.0, 0.0]


def test_weighted_labels_beside_huge_logits_are_exact():
    f = tw.nn.weighted_cross_entropy_with_logits
    value, slope = value_and_slope(lambda x: f([0.0, 1.0], x, 2.0), [1000.0, -1000.0])
    assert value == [1000.0, 2000.0] and slope == [1.0, -2.0]


def test_a_certain_label_beside_an_impossible_class_is_infinite_and_not_nan():
    f = tw.nn.softmax_cross_entropy_with_logits
    assert f([[0.0, 1.0]], [[0.0, -np.inf]]).numpy().tolist() == [np.inf]


INF = np.inf
LOG_2 = np.log(2.0)


def softmax_entropy(labels, logits):
    return tw.nn.softmax_cross_entropy_with_logits(labels, logits)


def sigmoid_entropy(labels, logits):
    return tw.nn.sigmoid_cross_entropy_with_logits(labels, logits)


def weighted_entropy(labels, logits):
    return tw.nn.weighted_cross_entropy_with_logits(labels, logits, 2.0)


def log_poisson(labels, logits):
    return tw.nn.log_poisson_loss(labels, logits)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "f, labels, logits, value, slope",
    [
        # an impossible class of no weight: the others share log(2), or nothing
        (softmax_entropy, [[1.0, 0, 0]], [[0.0, 0, -INF]], [LOG_2], [[-0.5, 0.5, 0]]),
        (softmax_entropy, [[1.0, 0, 0]], [[0.0, -INF, -INF]], [0.0], [[0.0, 0, 0]]),
        (softmax_entropy, [[0.0, 0, 0]], [[0.0, -INF, -INF]], [0.0], [[0.0, 0, 0]]),
        (softmax_entropy, [[0.5, 0, 0.5]], [[0.0, 0, -INF]], [INF], [[0.0, 0.5, -0.5]]),
        (softmax_entropy, [[0.0, 1]], [[np.nan, 0]], [np.nan], [[np.nan, np.nan]]),
        (softmax_entropy, [[0.0, 0]], [[np.nan, 0]], [np.nan], [[np.nan, np.nan]]),
        (sigmoid_entropy, [0.0, 1.0], [-INF, INF], [0.0, 0.0], [0.0, 0.0]),
        (sigmoid_entropy, [1.0, 0.0], [-INF, INF], [INF, INF], [-1.0, 1.0]),
        (sigmoid_entropy, [0.25, 0.25], [-INF, INF], [INF, INF], [-0.25, 0.75]),
        (sigmoid_entropy, [0.0, 1.0], [np.nan] * 2, [np.nan] * 2, [np.nan] * 2),
        (weighted_entropy, [0.0, 1.0], [-INF, INF], [0.0, 0.0], [0.0, 0.0]),
        (weighted_entropy, [1.0, 0.0], [-INF, INF], [INF, INF], [-2.0, 1.0]),
        (weighted_entropy, [0.0, 1.0], [np.nan] * 2, [np.nan] * 2, [np.nan] * 2),
        (log_poisson, [0.0, 2.0], [-INF, -INF], [0.0, INF], [0.0, -2.0]),
        (log_poisson, [0.0, 2.0], [INF, INF], [INF, INF], [INF, INF]),
    ],
)
def test_infinite_logits_give_the_limit(f, labels, logits, value, slope, traced):
    def slopes(labels, logits):
        with tw.GradientTape() as outer:
            outer.watch(logits)
            with tw.GradientTape() as tape:
                tape.watch(logits)
                loss = f(labels, logits)
            first = tape.gradient(loss, logits)
        return loss, first, outer.gradient(first, logits)

    slopes = tw.function(slopes) if traced else slopes
    labels, logits = np.array(labels), np.array(logits)
    loss, first, second = slopes(tw.constant(labels), tw.constant(logits))
    np.testing.assert_allclose(loss, value, rtol=1e-12)
    np.testing.assert_allclose(first, slope, rtol=1e-12)
    if f is not log_poisson and not np.isnan(logits).any():
        assert np.isfinite(second).all()


def test_labels_that_do_not_sum_to_one_have_exact_gradients():
    # loss = -2 log p0 - log p1 with p = 1/2 each: d/dx0 = -2 + 3/2, d/dx1 = -1 + 3/2
    f = tw.nn.softmax_cross_entropy_with_logits
    _, slope = value_and_slope(lambda x: f([[2.0, 1.0]], x), [[0.0, 0.0]])
    assert slope == [[-0.5, 0.5]]


def test_a_label_out_of_range_is_explained(device):
    if device != "cpu":
        pytest.skip("a GPU would have to be waited for")
    with pytest.raises(ValueError, match="labels .*0.*1.*got 2"):
        tw.nn.sparse_softmax_cross_entropy_with_logits([2], [[0.0, 0.0]])


@pytest.mark.parametrize("label", [2, -1])
def test_a_label_out_of_range_is_explained_by_a_traced_function(label, device):
    if device != "cpu":
        pytest.skip("a GPU would have to be waited for")
    traced = tw.function(tw.nn.sparse_softmax_cross_entropy_with_logits)
    traced(tw.constant([1]), tw.constant([[0.0, 0.0]]))
    with pytest.raises(ValueError, match=f"from 0 to 1, got {label}"):
        traced(tw.constant([label]), tw.constant([[0.0, 0.0]]))


def test_a_label_out_of_range_gives_nan_on_a_gpu(strict):
    with devices.use_module(strict):
        f = tw.nn.sparse_softmax_cross_entropy_with_logits
        loss = f([2, 0, -1], np.zeros((3, 2), np.float32))
    np.testing.assert_allclose(loss.numpy(), [np.nan, np.log(2), np.nan], rtol=1e-6)


def test_labels_must_have_the_shape_of_the_logits_without_the_last_axis():
    with pytest.raises(tw.errors.ShapeError, match="labels .*logits"):
        tw.nn.sparse_softmax_cross_entropy_with_logits([0], [[0.0, 0.0], [0.0, 0.0]])


def test_labels_that_are_not_whole_are_refused():
    with pytest.raises(TypeError, match="integers"):
        tw.nn.sparse_softmax_cross_entropy_with_logits([1.0], [[0.0, 0.0]])


def test_shapes_that_differ_are_explained():
    with pytest.raises(tw.errors.ShapeError, match="the same"):
        tw.nn.sigmoid_cross_entropy_with_logits([1.0], [0.0, 0.0])


def test_the_full_poisson_loss_is_near_the_likelihood():
    # -log of e^-r r^n / n! at n = 10, r = 10
    loss = tw.nn.log_poisson_loss([10.0], np.log([10.0]).astype("f"), True).numpy()
    exact = 10 - 10 * np.log(10.0) + np.log(3628800.0)
    np.testing.assert_allclose(loss, [exact], atol=0.01)


def test_the_full_poisson_loss_has_no_nan_at_a_count_of_zero():
    z = tw.constant([0.0, 1.0])
    with tw.GradientTape() as tape:
        tape.watch(z)
        loss = tw.nn.log_poisson_loss(z, [0.5, 0.25], True)
    assert tape.gradient(loss, z).numpy().tolist() == [-0.5, -0.25]


def test_the_l2_loss_is_of_floating_numbers():
    with pytest.raises(tw.errors.DTypeError, match="l2_loss: t must be floating"):
        tw.nn.l2_loss([1, 2])


def test_poisson_shapes_that_differ_are_explained():
    with pytest.raises(
        tw.errors.ShapeError, match="log_poisson_loss: the shapes must be the same"
    ):
        tw.nn.log_poisson_loss([1.0], [0.0, 0.0])


# --------------------------------------------------- labels that do not sum to 1

WEIGHTS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], "float32")
SCORES = np.array([[0.5, -1, 2], [0, 1, 0], [0.1, 0.2, -0.3]], "float32")


def orders(**options):
    """The losses, their gradient, and the gradient of the sum of its squares."""
    z = tw.constant(SCORES)
    with tw.GradientTape() as outer:
        outer.watch(z)
        with tw.GradientTape() as tape:
            tape.watch(z)
            loss = tw.nn.softmax_cross_entropy_with_logits(WEIGHTS, z, **options)
        gradient = tape.gradient(loss, z)
        square = tw.reduce_sum(gradient * gradient)
    return loss, gradient, outer.gradient(square, z)


def test_the_gradient_is_exact_for_labels_of_any_sum():
    p = np.exp(SCORES) / np.exp(SCORES).sum(-1, keepdims=True)
    _, gradient, _ = orders()
    expected = WEIGHTS.sum(-1, keepdims=True) * p - WEIGHTS
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_labels_assumed_to_sum_to_1_have_the_numbers_of_tensorflow():
    expected = (  # of TensorFlow 2.21
        [1.9826226, 0.0, 3.362483],
        [
            [-0.8247096, 0.03911258, -0.21440297],
            [0.21194157, 0.5761169, 0.21194157],
            [-0.6397034, -0.6018107, -0.7584859],
        ],
        [
            [-0.17993258, 0.02742423, 0.15250833],
            [-0.08893388, 0.17786779, -0.08893388],
            [0.00979942, 0.04100697, -0.05080654],
        ],
    )
    for found, value in zip(orders(assume_normalized=True), expected):
        np.testing.assert_allclose(found, value, atol=1e-6)
    traced = tw.function(lambda: orders(assume_normalized=True))()
    for found, value in zip(traced, expected):
        np.testing.assert_allclose(found, value, atol=1e-6)
