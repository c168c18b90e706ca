"""Reductions of `tw.keras.ops`: half precision, infinities, NaN, empties; ranges."""

import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import ops

from ...rounding import same_calls

pytestmark = pytest.mark.gpu_first

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_reductions_of_half_precision_do_not_overflow_on_the_way(wrap):
    x = tw.constant(np.full((100, 100), 60000.0), "float16")
    weights = tw.constant(np.full((100, 100), 3.0), "float16")
    for name, expected in {
        "mean": 60000, "average": 60000, "nanmean": 60000, "std": 0, "var": 0,
        "nanstd": 0, "nanvar": 0, "logsumexp": 60000,
    }.items():  # fmt: skip
        for axis in (None, 0):
            found = wrap(getattr(ops, name))(x, axis=axis)
            assert found.dtype == "float16", name
            # Of a mean in single precision.
            slack = 0 if same_calls() else 60000 * 2.0**-23
            wanted = np.full(found.shape, expected)
            np.testing.assert_allclose(found, wanted, 0, slack, err_msg=name)
    found = wrap(lambda x, w: ops.average(x, weights=w))(x, weights)
    assert found.dtype == "float16" and found.numpy() == 60000
    up_and_down = tw.constant([60000.0, 60000.0, -60000.0, -60000.0], "float16")
    assert wrap(ops.sum)(up_and_down).numpy() == 0
    assert wrap(ops.nansum)(up_and_down).numpy() == 0


def test_a_gradient_passes_through_the_mean_of_half_precision():
    x = tw.Variable(np.full(4, 60000.0), dtype="float16")
    with tw.GradientTape() as tape:
        y = ops.mean(x)
    gradient = tape.gradient(y, x)
    assert gradient.dtype == "float16" and gradient.numpy().tolist() == [0.25] * 4


ROWS = [
    [INF, INF], [-INF, -INF], [INF, -INF], [1.0, INF], [-INF, 1.0], [1.0, 2.0, INF],
    [NAN, INF, INF], [-INF, -INF, 1.0, NAN], [NAN, NAN], [NAN, 1.0], [3.0], [-INF, 2.0, INF],
    [INF, 1.0, 2.0, INF, INF],
]  # fmt: skip


def numpy_of(name, *args, **kwargs):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return getattr(np, name)(*args, **kwargs)


@pytest.mark.parametrize(
    "name",
    """median nanmedian nansum nanmean nanmax nanmin nanprod nanstd nanvar nancumsum
    nancumprod max min sum mean prod std var""".split(),
)
def test_infinities_and_nan_are_as_in_numpy(name):
    for row in ROWS:
        x = np.array([row, row[::-1]], "float32")
        for axis in (1, None):
            with np.errstate(all="ignore"):
                found = getattr(ops, name)(x, axis=axis)
            expected = numpy_of(name, x.astype("float64"), axis=axis)
            with np.errstate(over="ignore"):
                expected = np.asarray(expected).astype("float32")
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=str(row))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_a_quantile_beside_infinities_is_no_nan(method):
    x = np.array([-INF, 1.0, 2.0, INF, INF], "float32")
    places = {  # of 0.125, 0.25, 0.5, 0.75, 0.875
        "linear": [-INF, 1, 2, INF, INF],
        "lower": [-INF, 1, 2, INF, INF],
        "higher": [1, 1, 2, INF, INF],
        "midpoint": [-INF, 1, 2, INF, INF],
        "nearest": [-INF, 1, 2, INF, INF],
    }[method]
    q = [0.125, 0.25, 0.5, 0.75, 0.875]
    assert ops.quantile(x, q, method=method).numpy().tolist() == places
    assert ops.nanquantile([*x, NAN], q, method=method).numpy().tolist() == places
    assert np.isnan(ops.quantile([*x, NAN], q, method=method)).all()


def test_a_median_of_large_numbers_is_finite():
    for row, middle in (([3e38, 3.2e38], 3.1e38), ([-3e38, 3e38], 0.0)):
        np.testing.assert_allclose(ops.median(tw.constant(row)), middle, rtol=1e-6)
        np.testing.assert_allclose(ops.nanmedian(tw.constant(row)), middle, rtol=1e-6)


def test_a_median_of_nothing_is_nan():
    for name in ("median", "nanmedian"):
        assert np.isnan(getattr(ops, name)(np.zeros((0,), "float32")))
        found = getattr(ops, name)(np.zeros((2, 0), "float32"), axis=1)
        assert np.isnan(found).tolist() == [True, True]
        assert getattr(ops, name)(np.zeros((2, 0), "float32"), axis=0).shape == (0,)


def test_a_gradient_passes_through_a_median_beside_infinities():
    x = tw.Variable([3.0, 1.0, INF, 2.0, -INF, 7.0])
    with tw.GradientTape() as tape:
        y = ops.median(x)
    assert tape.gradient(y, x).numpy().tolist() == [0.5, 0, 0, 0.5, 0, 0]


@pytest.mark.parametrize(
    "args",
    [
        (0.1, 1.1, 0.1), (0, 1, 0.1), (0.0, 1.0, 0.3), (2.0, -2.0, -0.7), (0, 1, 1 / 3),
        (-2.0, 1.0, 3 / 800), (1.5,), (5,), (1, 7, 2), (10, 0, -3), (-3.3, 3.3, 1.1),
    ],
)  # fmt: skip
def test_a_range_has_the_entries_of_numpy(args):
    expected = np.arange(*args)
    found = ops.arange(*args)
    assert found.dtype == ("int32" if expected.dtype.kind == "i" else "float32")
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    for dtype in ("float16", "float64"):
        assert ops.arange(*args, dtype=dtype).shape == expected.shape


def test_a_range_of_tensors_meets_in_their_dtype():
    half = tw.constant(1.0, "float16")
    assert ops.arange(half).dtype == "float16"
    assert ops.arange(0, half, tw.constant(0.5)).dtype == "float32"
    assert ops.arange(tw.constant(3, "int64")).dtype == "int64"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint16", "int32", "int64"])
def test_weights_are_counted_for_integers_of_any_size(dtype):
    x = np.array([1, 0, 1, 1], dtype)
    found = ops.bincount(x, weights=np.array([0.5, 1.0, 2.0, 4.0], "float32"))
    assert found.dtype == "float32" and found.numpy().tolist() == [1, 6.5]
    found = ops.bincount(x, minlength=4)
    assert found.dtype == "int32" and found.numpy().tolist() == [1, 3, 0, 0]
    rows = ops.bincount(np.stack([x, x]), weights=np.ones((2, 4), "float16"))
    assert rows.dtype == "float16" and rows.numpy().tolist() == [[1, 3], [1, 3]]


def test_a_scalar_is_sorted_as_one_entry():
    for axis in (-1, None):
        assert ops.argsort(3.0, axis=axis).numpy().tolist() == [0]
        assert ops.sort(3.0, axis=axis).numpy().tolist() == [3]


def test_absolute_leaves_booleans():
    for name in ("abs", "absolute"):
        found = getattr(ops, name)([True, False])
        assert found.dtype == "bool" and found.numpy().tolist() == [True, False]


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([300, -5, 7], "uint8", [255, 0, 7]),
        ([1e5, -1e5], "float16", [65504, -65504]),
        ([-3, 0, 5], "bool", [False, False, True]),
        ([0.5, -0.5], "bool", [True, False]),
        ([True, False], "int8", [1, 0]),
    ],
)
def test_a_saturating_cast_ends_at_the_extremes(value, dtype, expected):
    found = ops.saturate_cast(value, dtype)
    assert found.dtype == dtype and found.numpy().tolist() == expected


def test_a_bound_beyond_the_dtype_limits_nothing():
    x = np.array([0, 5, 200], "uint8")
    found = ops.clip(x, -1, 100)
    assert found.dtype == "uint8" and found.numpy().tolist() == [0, 5, 100]
    assert ops.clip(x, 3, 1000).numpy().tolist() == [3, 5, 200]
    assert ops.clip(x, -9, np.array(300, "int32")).numpy().tolist() == [0, 5, 200]


def test_sums_so_far_of_booleans_are_counts():
    for dtype in (None, "bool"):
        found = ops.cumsum([True, True, False], dtype=dtype)
        assert found.dtype == "int32" and found.numpy().tolist() == [1, 2, 2]


def test_conditions_of_a_choice_may_be_integers():
    found = ops.select([np.array([0, 2])], [np.array([1.0, 2.0], "float32")], 9)
    assert found.numpy().tolist() == [9, 2]


def test_integers_are_moved_and_compared_exactly():
    large = np.array([2**30 + 1, 5, 2**30 - 1, 7], "int32")
    for name, args in {"max_pool": (2,), "adaptive_max_pool": (2,)}.items():
        found = getattr(ops, name)(large.reshape(1, 4, 1), *args)
        assert found.dtype == "int32"
        assert found.numpy().ravel().tolist() == [2**30 + 1, 2**30 - 1]
    image = large.reshape(1, 1, 2, 2)
    columns = ops.unfold(image, 1)
    assert (
        columns.dtype == "int32" and columns.numpy().ravel().tolist() == large.tolist()
    )
    back = ops.fold(columns, (2, 2), 1)
    assert back.dtype == "int32" and back.numpy().ravel().tolist() == large.tolist()
    patches = ops.image.extract_patches(large.reshape(2, 2, 1), 2)
    assert (
        patches.dtype == "int32" and patches.numpy().ravel().tolist() == large.tolist()
    )


def test_warped_integers_are_rounded():
    image = np.array([[[10], [21], [255]]], "uint8")
    found = ops.image.affine_transform(image, [1, 0, 0.25, 0, 1, 0, 0, 0])
    assert found.dtype == "uint8"  # 12.75, 79.5, 191.25
    assert found.numpy().ravel().tolist() == [13, 80, 191]


def test_a_pool_of_integers_is_part_of_a_model():
    inputs = tw.keras.Input((4, 1), dtype="int32")
    model = tw.keras.Model(inputs, ops.max_pool(inputs=inputs, pool_size=2))
    copy = tw.keras.Model.from_config(model.get_config())
    x = tw.constant([[[1], [5], [7], [2]]])
    for found in (model(x), copy(x), ops.max_pool(inputs=x, pool_size=2)):
        assert found.dtype == "int32" and found.numpy().ravel().tolist() == [5, 7]
