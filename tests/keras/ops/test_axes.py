"""`tw.keras.ops` refuses axes that are not there, and other arguments that make no sense."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import ops

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
REDUCING = """all amax amin any argmax argmin count_nonzero logsumexp max mean median min
    nanargmax nanargmin nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar prod
    ptp std sum var""".split()
SEVERAL = [n for n in REDUCING if "arg" not in n]

# name -> calls with an axis of X, all of which must be from -3 to 2
AXES = {
    **{n: lambda axis, n=n: getattr(ops, n)(X, axis=axis) for n in REDUCING},
    **{
        n: lambda axis, n=n: getattr(ops, n)(X, axis=axis)
        for n in """argsort sort cumsum cumprod nancumsum nancumprod flip squeeze softmax
            log_softmax normalize average diff trapezoid unstack sparsemax""".split()
    },
    **{
        n: lambda axis, n=n: getattr(ops, n)(X, 0.5, axis=axis)
        for n in ("quantile", "nanquantile")
    },
    **{
        n: lambda axis, n=n: getattr(ops, n)(X, 50, axis=axis)
        for n in ("percentile", "nanpercentile")
    },
    **{
        n: lambda axis, n=n: getattr(ops, n)([X, X], axis=axis)
        for n in ("concatenate",)
    },
    "append": lambda axis: ops.append(X, X, axis=axis),
    "argpartition": lambda axis: ops.argpartition(X, 1, axis=axis),
    "array_split": lambda axis: ops.array_split(X, 2, axis=axis),
    "associative_scan": lambda axis: ops.associative_scan(ops.add, X, axis=axis),
    "average_of_weights": lambda axis: ops.average(X, axis, weights=np.ones(3, "f4")),
    "diagonal": lambda axis: ops.diagonal(X, axis1=axis),
    "trace": lambda axis: ops.trace(X, axis2=axis),
    "glu": lambda axis: ops.glu(X, axis=axis),
    "moments": lambda axis: ops.moments(X, axes=[axis]),
    "moveaxis": lambda axis: ops.moveaxis(X, axis, 0),
    "moveaxis_to": lambda axis: ops.moveaxis(X, 0, axis),
    "norm": lambda axis: ops.norm(X, axis=axis),
    "norm_of_order": lambda axis: ops.norm(X, ord=3, axis=axis),
    "norm_of_matrices": lambda axis: ops.norm(X, ord="fro", axis=(0, axis)),
    "repeat": lambda axis: ops.repeat(X, 2, axis=axis),
    "roll": lambda axis: ops.roll(X, 1, axis=axis),
    "rot90": lambda axis: ops.rot90(X, axes=(axis, 1)),
    "split": lambda axis: ops.split(X, 1, axis=axis),
    "swapaxes": lambda axis: ops.swapaxes(X, axis, 1),
    "swapaxes_with": lambda axis: ops.swapaxes(X, 1, axis),
    "take": lambda axis: ops.take(X, [0], axis=axis),
    "take_along_axis": lambda axis: ops.take_along_axis(
        X, X.astype("i4") % 2, axis=axis
    ),
    "transpose": lambda axis: ops.transpose(X, (0, 1, axis)),
    "cross": lambda axis: ops.cross(X[:, :, :3], X[:, :, :3], axis=axis),
    "tensordot": lambda axis: ops.tensordot(X, X, axes=[[axis], [2]]),
    "batch_normalization": lambda axis: ops.batch_normalization(
        X, X[0, 0], X[0, 0], axis
    ),
    "layer_normalization": lambda axis: ops.layer_normalization(X, axis=axis),
    "rms_normalization": lambda axis: ops.rms_normalization(X, axis=axis),
    "categorical_crossentropy": lambda axis: ops.categorical_crossentropy(
        X, X, axis=axis
    ),
}


@pytest.mark.parametrize("name", AXES)
def test_an_axis_out_of_range_is_refused(name):
    call = AXES[name]
    for axis in (3, -4, 17):
        for run in (call, tw.function(call)):
            with pytest.raises((ValueError, IndexError), match=f"{axis}"):
                run(axis)


@pytest.mark.parametrize("name", SEVERAL)
def test_an_axis_is_named_once(name):
    for axes in ((0, 0), (0, -3), (1, 2, 1)):
        with pytest.raises(ValueError, match="twice"):
            getattr(ops, name)(X, axis=axes)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "median", "flip", "norm"])
def test_an_axis_is_a_whole_number(name):
    for axis in (1.0, "a", (0.5,)):
        with pytest.raises((TypeError, ValueError)):
            getattr(ops, name)(X, axis=axis)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.norm(np.ones(3), axis=1), "1"),
        (lambda: ops.flip(X, axis=5), "5"),
        (lambda: ops.moveaxis(X, 0, 5), "5"),
        (lambda: ops.moveaxis(X, (0, 1), (2,)), "source"),
        (lambda: ops.moveaxis(X, (0, 1), (2, 2)), "destination"),
        (lambda: ops.rot90(X, axes=(0, 0)), "axes"),
        (lambda: ops.rot90(X[0, 0]), "2 axes"),
        (lambda: ops.norm(X, ord=1, axis=(0, 1, 2)), "axis"),
        (lambda: ops.histogram(X[0]), "vector"),
        (lambda: ops.histogram(X[0, 0], range=(3, 1)), "range"),
        (lambda: ops.histogram(X[0, 0], range=(3,)), "range"),
        (lambda: ops.histogram(X[0, 0], range=[0.0, 1.0]), "range"),
        (lambda: ops.histogram(X[0, 0], range=(0.0, np.inf)), "range.*inf"),
        (lambda: ops.histogram(X[0, 0], range=(np.nan, 1.0)), "range.*nan"),
        (lambda: ops.histogram(X[0, 0], bins=-1), "bins"),
        (lambda: ops.segment_sum(X[0], [[0, 1], [1, 0]]), "segment_ids"),
        (lambda: ops.segment_max(X[0], [0, 1], 2), "segment_ids"),
        (lambda: ops.bincount([1, 2], minlength=-1), "minlength"),
        (lambda: ops.bincount([1.0, 2.0]), "integers"),
        (lambda: ops.fliplr(X[0, 0]), "2 axes"),
        (lambda: ops.flipud(np.float32(1)), "1 axes"),
        (lambda: ops.vsplit(X[0, 0], 2), "2 axes"),
        (lambda: ops.dsplit(X[0], 2), "3 axes"),
        (lambda: ops.diagonal(X[0, 0]), "2 axes"),
        (lambda: ops.trace(X[0, 0]), "2 axes"),
        (lambda: ops.vander(X[0]), "vector"),
        (lambda: ops.corrcoef(X), "matrix"),
        (lambda: ops.correlate(X[0], X[0]), "vectors"),
        (lambda: ops.array_split(X, 0), "indices_or_sections"),
        (lambda: ops.quantile(X, 1.5), "q"),
        (lambda: ops.percentile(X, [50, -1]), "q"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.take(X, [1.0]),
        lambda: ops.take_along_axis(X, X),
        lambda: ops.gcd([1.5], [2.0]),
        lambda: ops.lcm([1.5], [2.0]),
        lambda: ops.full((2,), 1j),
        lambda: ops.arange(0.1, 1.1, 0.1, dtype="int32"),
        lambda: ops.linspace(0.0, 1.0, 2.5),
        lambda: ops.histogram(X[0, 0], bins=2.5),
        lambda: ops.clip([1, 2], 0.5, 1.5),
        lambda: ops.trunc(tw.constant([1j])),
    ],
)
def test_a_value_is_not_rounded_into_another_kind(call):
    with pytest.raises(TypeError):
        call()
