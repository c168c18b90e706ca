"""`Rescaling`, `Normalization`, categories and bins, `Resizing`, `CenterCrop`."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import (
    CategoryEncoding,
    Discretization,
    Normalization,
    Rescaling,
    Resizing,
)

REFERENCE = Path(__file__).parents[1] / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_spatial", REFERENCE / "record_spatial.py"
)
record = importlib.util.module_from_spec(_spec)


_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "preprocessing.npz", allow_pickle=False))


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


def traced(layer, *shape):
    return tw.function(layer, input_signature=[tw.TensorSpec(shape)])


@pytest.mark.parametrize(
    "name, config, shape", record.IMAGES, ids=[record.key(*c) for c in record.IMAGES]
)
def test_outputs_are_those_of_keras(name, config, shape):
    layer, entry = getattr(layers, name)(**config), record.key(name, config, shape)
    x = record.numbers(entry, shape)
    np.testing.assert_allclose(layer(x), KERAS[entry], rtol=1e-5, atol=1e-5)
    unknown = (None, *shape[1:]) if len(shape) == 4 else shape
    np.testing.assert_allclose(
        traced(layer, *unknown)(x), KERAS[entry], rtol=1e-5, atol=1e-5
    )
    assert layer.compute_output_shape(shape) == KERAS[entry].shape
    again = type(layer).from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), layer(x))


@pytest.mark.parametrize("index", range(4))
def test_adapted_layers_give_the_numbers_of_keras(index):
    name, layer, data = record.statistics(layers)[index]
    layer.adapt(data)
    np.testing.assert_allclose(layer(data), KERAS[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "axis, axes", [(-1, (0, 1)), ((1, 2), (0,)), (None, (0, 1, 2))]
)
def test_adapt_finds_the_exact_mean_and_variance(axis, axes):
    data = (numbers(40, 3, 2) + 1000).astype("float32")
    layer = Normalization(axis=axis)
    layer.adapt(data)
    exact = data.astype("float64")
    np.testing.assert_array_equal(layer.adapt_mean, exact.mean(axes).astype("float32"))
    np.testing.assert_allclose(layer.adapt_variance, exact.var(axes), rtol=1e-6)
    assert layer.mean.shape == np.mean(data, axes, keepdims=True).shape


def test_adapt_takes_arrays_tensors_batches_and_pairs():
    data, labels = numbers(10, 3), np.zeros(10)
    found = []
    for each in (
        data,
        tw.constant(data),
        [data[:3], data[3:]],
        ((data[i : i + 4], labels[i : i + 4]) for i in range(0, 10, 4)),
    ):
        layer = Normalization()
        layer.adapt(each)
        found.append([np.ravel(layer.mean), np.ravel(layer.variance)])
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6)


def test_adapt_starts_anew_each_time():
    layer = Normalization()
    layer.adapt(numbers(5, 2))
    layer.adapt(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert np.ravel(layer.mean).tolist() == [2.0, 2.0]
    assert np.ravel(layer.variance).tolist() == [1.0, 0.0]


def test_a_channel_without_spread_stays_finite():
    layer = Normalization()
    layer.adapt(np.full((4, 1), 3.0))
    assert layer(np.full((1, 1), 3.0)).numpy().tolist() == [[0.0]]


def test_inverting_undoes_the_normalization():
    x, mean, variance = numbers(4, 3), [1.0, 2.0, 3.0], [4.0, 1.0, 9.0]
    there = Normalization(mean=mean, variance=variance)
    back = Normalization(mean=mean, variance=variance, invert=True)
    np.testing.assert_allclose(back(there(x)), x, rtol=1e-5, atol=1e-6)


def test_weights_and_config_are_those_of_keras():
    layer = Normalization()
    layer.build((None, 3))
    assert [w.name for w in layer.weights] == ["mean", "variance", "count"]
    assert layer.trainable_weights == [] and layer.get_config()["axis"] == (-1,)
    given = Normalization(axis=None, mean=np.float32(3), variance=2.0)
    given.build((None, 3))
    assert given.weights == [] and given.get_config()["mean"] == 3.0


def test_adapted_statistics_are_read_by_a_trace_made_before():
    layer = Normalization()
    layer.build((None, 1))
    call = traced(layer, None, 1)
    assert call(np.array([[3.0]], "float32")).numpy().tolist() == [[3.0]]
    layer.adapt(np.array([[1.0], [5.0]]))
    assert call(np.array([[3.0]], "float32")).numpy().tolist() == [[0.0]]


@pytest.mark.parametrize(
    "do, error, said",
    [
        (
            lambda: Normalization(mean=1.0),
            ValueError,
            r"mean and variance.*got mean=1\.0 and variance=None",
        ),
        (
            lambda: Normalization(mean=[1.0], variance=1.0),
            ValueError,
            r"mean and variance.*got \(1,\) and",
        ),
        (
            lambda: Normalization(axis=None, mean=[1.0], variance=[1.0]),
            ValueError,
            r"mean .*axis=\(\), got shape \(1,\)",
        ),
        (
            lambda: Normalization(axis=5).build((2, 3)),
            tw.errors.ShapeError,
            r"axis \(5,\)",
        ),
        (
            lambda: Normalization().build((2, None)),
            tw.errors.ShapeError,
            "must be known",
        ),
        (
            lambda: Normalization().adapt(3),
            TypeError,
            "data .*got int",
        ),
        (
            lambda: Normalization().adapt([1.0]),
            TypeError,
            "data .*got an element of type float",
        ),
        (lambda: Normalization().adapt(iter([])), ValueError, "data .*empty"),
        (
            lambda: Normalization(mean=1.0, variance=1.0).adapt(numbers(2, 2)),
            ValueError,
            "mean and variance were passed",
        ),
        (
            lambda: Normalization().adapt([numbers(2, 2), numbers(2, 3)]),
            tw.errors.ShapeError,
            r"data .*rank 2.*got shape \(2, 3\)",
        ),
    ],
)
def test_wrong_statistics_are_refused(do, error, said):
    with pytest.raises(error, match=said):
        do()


def test_a_failed_adapt_leaves_the_statistics_as_they_were():
    layer = Normalization()
    layer.adapt(np.array([[1.0], [5.0]]))
    with pytest.raises(tw.errors.ShapeError):
        layer.adapt([numbers(2, 1), numbers(2, 3)])
    assert np.ravel(layer.mean).tolist() == [3.0]


@pytest.mark.parametrize(
    "call", [lambda layer: layer, lambda layer: tw.function(layer)]
)
@pytest.mark.parametrize(
    "mode, inputs, expected",
    [
        ("multi_hot", [[0, 1], [2, 2]], [[1, 1, 0], [0, 0, 1]]),
        ("count", [[0, 1], [2, 2]], [[1, 1, 0], [0, 0, 2]]),
        ("one_hot", [[0], [2]], [[1, 0, 0], [0, 0, 1]]),
        ("one_hot", [0, 2], [[1, 0, 0], [0, 0, 1]]),
        ("multi_hot", [0, 2], [1, 0, 1]),
        ("one_hot", [[0, 2]], [[[1, 0, 0], [0, 0, 1]]]),
    ],
)
def test_categories(call, mode, inputs, expected):
    layer = CategoryEncoding(3, mode)
    y = call(layer)(np.array(inputs))
    assert y.dtype == "float32" and y.numpy().tolist() == expected
    assert layer.compute_output_shape(np.shape(inputs)) == y.shape


def test_counts_may_have_weights():
    y = CategoryEncoding(3, "count")([[0, 2, 2]], count_weights=[[1.0, 2.0, 0.5]])
    assert y.numpy().tolist() == [[1.0, 0.0, 2.5]]
    with pytest.raises(ValueError, match="count_weights .*output_mode.*'count'"):
        CategoryEncoding(3)([[0]], count_weights=[[1.0]])


def test_a_value_at_a_boundary_belongs_to_the_bin_above():
    layer = Discretization([0.0, 1.0, 2.0])
    x = [[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]]
    assert layer(x).numpy().tolist() == [[0, 2, 3, 1], [1, 3, 2, 1]]
    one_hot = Discretization([0.0], output_mode="one_hot")
    assert one_hot([[1.0], [-1.0]]).numpy().tolist() == [[0, 1], [1, 0]]


def test_boundaries_may_be_an_array():
    layer = Discretization(np.array([0.0, 1.0]))
    assert layer([[0.5, 2.0]]).numpy().tolist() == [[1, 2]]
    assert layer.get_config()["bin_boundaries"] == [0.0, 1.0]


def test_adapted_boundaries_survive_a_config():
    layer = Discretization(num_bins=4)
    layer.adapt([numbers(50), numbers(70)])
    again = Discretization.from_config(layer.get_config())
    assert again.bin_boundaries == layer.bin_boundaries and again.num_bins == 4
    counts = np.bincount(layer(numbers(1000)).numpy())
    assert len(counts) == 4 and counts.min() > 150


@pytest.mark.parametrize(
    "do, said",
    [
        (lambda: CategoryEncoding(), "num_tokens .*got None"),
        (lambda: CategoryEncoding(3, "int"), "output_mode .*'multi_hot'.*got 'int'"),
        (
            lambda: Discretization([1.0], sparse=True),
            "sparse=True .*other .*than 'int'",
        ),
        (lambda: Discretization(), "bin_boundaries.*num_bins"),
        (lambda: Discretization([1.0], 2), "bin_boundaries.*num_bins"),
        (
            lambda: Discretization([1.0]).adapt(numbers(3)),
            "bin_boundaries",
        ),
        (lambda: Discretization(num_bins=2)(numbers(3)), "call adapt.data. first"),
        (lambda: Discretization([2.0, 0.0]), r"bin_boundaries .*got \[2\.0, 0\.0\]"),
        (lambda: Resizing(0, 2), "height .*got 0"),
        (lambda: Resizing(1, 2, "linear"), "interpolation .*'bilinear'.*got 'linear'"),
        (
            lambda: Resizing(1, 2, fill_mode="wrap"),
            "fill_mode .*'constant'.*got 'wrap'",
        ),
        (
            lambda: Resizing(1, 2, crop_to_aspect_ratio=True, pad_to_aspect_ratio=True),
            "only one of",
        ),
    ],
)
def test_wrong_arguments_are_named(do, said):
    with pytest.raises(ValueError, match=said):
        do()


def test_rescaling_casts_integers():
    y = Rescaling(1 / 255)(np.array([[0, 255]], np.uint8))
    assert y.dtype == "float32" and y.numpy().tolist() == [[0.0, 1.0]]


def test_predict_notices_boundaries_that_were_adapted_again():
    layer = Discretization(num_bins=2)
    layer.adapt(np.array([0.0, 1.0], "float32"))
    model = tw.keras.Sequential([tw.keras.Input((1,)), layer])
    x = np.array([[5.0]], "float32")
    assert model.predict(x, verbose=0) == 1
    layer.adapt(np.array([10.0, 20.0], "float32"))
    assert model.predict(x, verbose=0) == 0
