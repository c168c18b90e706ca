"""`tw.keras.ops`: NumPy's functions agree with NumPy, eager, traced and in a model."""

import functools
import importlib
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import ops

RANDOM = np.random.default_rng(3)


def floats(*shape):
    return RANDOM.uniform(-2, 2, shape).astype("float32")


def parts(*shape):
    return RANDOM.uniform(0.1, 0.9, shape).astype("float32")


def ints(*shape):
    return RANDOM.integers(1, 6, shape).astype("int32")


def bools(*shape):
    return RANDOM.random(shape) < 0.5


HOLES = floats(3, 4)
HOLES[0, 1] = np.nan

# name, arguments, keyword arguments: the oracle is NumPy's function of that name
CASES = []


def case(name, *args, **kwargs):
    CASES.append((name, args, kwargs))


for (
    _name
) in """exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh cbrt ceil floor sinc
    deg2rad rad2deg fabs abs negative sign square trunc round signbit isfinite isnan isinf
    isreal real imag conj""".split():
    case(_name, floats(3, 4))
for _name in "log log1p log2 log10 sqrt arcsin arccos arctanh reciprocal".split():
    case(_name, parts(3, 4))
for _name in """add subtract multiply divide maximum minimum fmax fmin equal greater
    less_equal logical_and power mod floor_divide fmod arctan2 hypot logaddexp logaddexp2
    heaviside isclose""".split():
    case(_name, parts(3, 4), parts(4) + 0.1)
    case(_name, parts(3, 4), parts(1, 4))
for (
    _name
) in """sum mean max min prod std var ptp median argmax argmin nansum nanmean nanmax
    nanmin nanstd nanvar""".split():
    case(_name, floats(3, 4))
    case(_name, floats(3, 4), axis=1)
    case(_name, floats(3, 4), axis=0, keepdims=True)
for _name in "nansum nanmean nanmax nanmin nanprod nanstd nanmedian nanargmax".split():
    case(_name, HOLES, axis=1)
for _name in "linear lower higher midpoint nearest".split():
    case("quantile", floats(5, 4), [0.1, 0.5], axis=0, method=_name)
for _k in range(4):
    case("rot90", floats(2, 3, 4), _k)
for _args in [(2,), (1, 1), ((1, 2), (0, 1))]:
    case("roll", floats(2, 3, 4), *_args)
case("all", bools(3, 4), axis=1)
case("any", bools(3, 4), axis=1)
case("count_nonzero", ints(3, 4) % 2, axis=1)
case("cumsum", floats(3, 4), axis=1)
case("cumprod", floats(3, 4))
case("average", floats(3, 4), axis=1, weights=parts(4))
case("percentile", floats(5, 4), 30.0, axis=1)
case("clip", floats(5), -1, 1)
case("nan_to_num", HOLES)
case("gcd", ints(5), ints(5))
case("lcm", ints(5), ints(5))
case("bitwise_xor", ints(4), ints(4))
case("ldexp", floats(3), ints(3))
case("zeros_like", floats(2, 3))
case("full_like", floats(2, 3), 4)
case("tril", floats(2, 3, 4), 1)
case("triu", floats(3, 3), -1)
case("vander", floats(4), 3)
case("meshgrid", floats(3), floats(2))
case("reshape", floats(2, 6), (-1, 4))
case("ravel", floats(2, 3))
case("transpose", floats(2, 3, 4), (0, 2, 1))
case("swapaxes", floats(2, 3, 4), 0, -1)
case("moveaxis", floats(2, 3, 4), (0, 1), (-1, 0))
case("expand_dims", floats(2, 3), 1)
case("squeeze", floats(3, 1), 1)
case("flip", floats(2, 3, 4), 1)
case("pad", floats(2, 3), ((1, 1), (0, 2)))
case("pad", floats(3, 3), ((0, 1), (1, 2)), mode="reflect")
case("concatenate", [floats(2, 3), floats(2, 3)], 1)
case("stack", [floats(3), floats(3)], -1)
case("hstack", [floats(2, 3), floats(2, 1)])
case("vstack", [floats(3), floats(3)])
case("dstack", [floats(2, 3), floats(2, 3)])
case("split", floats(2, 6), [1, 4], axis=1)
case("array_split", floats(2, 7), 3, axis=1)
case("tile", floats(2, 3), (2, 1))
case("repeat", floats(2, 3), 2, axis=1)
case("diagonal", floats(2, 3, 4), -1, 1, 2)
case("diag", floats(3), 1)
case("diag", floats(3, 4))
case("trace", floats(2, 3, 4), 0, 1, 2)
case("where", bools(3, 4), floats(3, 4), floats(3, 4))
case("select", [bools(4), bools(4)], [floats(4), floats(4)])
case("take", floats(2, 3, 4), [0, -1], 1)
case("take_along_axis", floats(3, 4), ints(3, 2) % 4, 1)
case("sort", floats(3, 4), 0)
case("argsort", floats(3, 4))
case("searchsorted", np.sort(floats(5)), floats(3))
case("digitize", floats(4), np.array([-1.0, 0.0, 1.0], "float32"))
case("isin", ints(2, 3), ints(2))
case("diff", floats(3, 5), 2)
case("matmul", floats(5, 2, 3), floats(3, 4))
case("matmul", floats(2, 3), floats(3))
case("dot", floats(2, 3, 4), floats(5, 4, 2))
case("inner", floats(2, 3), floats(4, 3))
case("outer", floats(3), floats(4))
case("vdot", floats(2, 3), floats(2, 3))
case("tensordot", floats(2, 3, 4), floats(4, 5), 1)
case("cross", floats(4, 3), floats(4, 3))
case("kron", floats(2, 3), floats(3, 2))
case("corrcoef", floats(3, 9))
for _name in ("valid", "same", "full"):
    case("correlate", floats(7), floats(4), _name)
case("linalg.det", floats(2, 3, 3))
case("linalg.inv", floats(3, 3))
case("linalg.solve", floats(3, 3), floats(3, 2))
case("linalg.pinv", floats(3, 4))
for _ord in (None, 1, -1, 2, np.inf, -np.inf, "fro", "nuc"):
    case("linalg.norm", floats(3, 4), _ord)
for _ord in (None, 0, 1, 2, 3, np.inf, -np.inf):
    case("linalg.norm", floats(3, 4), _ord, axis=1)


def function(module, name):
    return functools.reduce(getattr, name.split("."), module)


def described(c):
    name, args, kwargs = c
    shown = [list(a.shape) if isinstance(a, np.ndarray) else a for a in args[:3]]
    shown = ["lists" if isinstance(a, list) else a for a in shown]
    return f"{name}{shown}{kwargs or ''}"


def leaves(result):
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def check(name, args, kwargs, found):
    expected = leaves(function(np, name)(*args, **kwargs))
    found = leaves(found)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        assert x.dtype.itemsize <= 4  # single precision, as Keras has it
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)
        assert x.shape == y.shape


@pytest.mark.parametrize("c", CASES, ids=described)
def test_a_function_agrees_with_that_of_numpy(c):
    name, args, kwargs = c
    check(name, args, kwargs, function(ops, name)(*args, **kwargs))


def arrays_of(args):
    """The arrays among the arguments, and a function that puts others in their places."""
    nest = tw.keras.ops.core.nest
    flat = nest.flatten(list(args))
    places = [i for i, x in enumerate(flat) if isinstance(x, np.ndarray)]

    def filled(*values):
        new = dict(zip(places, values))
        return nest.pack(list(args), [new.get(i, x) for i, x in enumerate(flat)])

    return [flat[i] for i in places], filled


@pytest.mark.parametrize("c", CASES, ids=described)
def test_a_function_can_be_traced_for_any_size(c):
    name, args, kwargs = c
    given, filled = arrays_of(args)
    specs = [tw.TensorSpec([None, *x.shape[1:]], x.dtype) for x in given]

    @tw.function(input_signature=specs)
    def traced(*values):
        return function(ops, name)(*filled(*values), **kwargs)

    check(name, args, kwargs, traced(*given))


@pytest.mark.parametrize("c", CASES, ids=described)
def test_a_function_is_part_of_a_model(c):
    name, args, kwargs = c
    given, filled = arrays_of(args)
    inputs = [tw.keras.Input(batch_shape=x.shape, dtype=x.dtype) for x in given]
    outputs = function(ops, name)(*filled(*inputs), **kwargs)
    model = tw.keras.Model(inputs, outputs)
    check(name, args, kwargs, model([tw.constant(x) for x in given]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.std(x),
        lambda x: ops.zeros_like(x),
        lambda x: ops.repeat(x, 2, axis=1),
        lambda x: ops.tile(x, (1, 2)),
        lambda x: ops.tensordot(x, np.ones((4, 2), "float32"), 1),
        lambda x: ops.quantile(x, [0.2, 0.5], axis=1),
        lambda x: ops.take(x, [0, -1], axis=1),
        lambda x: ops.linalg.norm(x, axis=-1),
        lambda x: ops.reshape(x, (ops.shape(x)[0], 2, 2)),
        lambda x: ops.softmax(x) * ops.cast(ops.arange(4), "float32"),
        lambda x: ops.one_hot(ops.argmax(x, axis=1), 4),
        lambda x: ops.concatenate([ops.tril(x[:, None]), x[:, None]], axis=1),
    ],
)
def test_a_model_takes_batches_of_any_size(call):
    inputs = tw.keras.Input((4,))
    model = tw.keras.Model(inputs, call(inputs))
    copy = tw.keras.Model.from_config(model.get_config())
    for size in (2, 5):
        x = tw.constant(floats(size, 4))
        expected = call(x)
        np.testing.assert_allclose(model(x), expected, rtol=1e-6)
        np.testing.assert_allclose(copy(x), expected, rtol=1e-6)


def test_a_model_with_such_a_call_is_made_from_its_config_in_another_process():
    inputs = tw.keras.Input((4,))
    model = tw.keras.Model(inputs, ops.repeat(inputs, [2, 0, 1, 1], axis=1))
    code = f"""
import sys, tapewright as tw
assert "tapewright.keras.ops" not in sys.modules  # it is loaded when it is needed
model = tw.keras.Model.from_config({model.get_config()!r})
print(model(tw.constant([[1, 2, 3, 4]], "float32")).numpy().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[[1.0, 1.0, 3.0, 4.0]]", done.stderr


# --------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda: ops.mean(ints(3)), "float32"),
        (lambda: ops.sum(ints(3)), "int32"),
        (lambda: ops.sum(bools(3)), "int32"),
        (lambda: ops.sum(ints(3).astype("uint8")), "uint32"),
        (lambda: ops.divide(ints(3), ints(3)), "float32"),
        (lambda: ops.exp(ints(3).astype("int64")), "float32"),
        (lambda: ops.add(ints(3), 1.5), "float32"),
        (lambda: ops.add(ints(3), floats(3)), "float32"),
        (lambda: ops.add(floats(3).astype("float16"), 1), "float16"),
        (lambda: ops.add(floats(3).astype("float16"), ints(3)), "float16"),
        (lambda: ops.multiply(ints(3), ints(3).astype("int64")), "int64"),
        (lambda: ops.maximum(ints(3).astype("uint8"), ints(3).astype("int8")), "int16"),
        (lambda: ops.where(bools(3), 1, 2.0), "float32"),
        (lambda: ops.concatenate([ints(3), floats(3)]), "float32"),
        (lambda: ops.arange(3), "int32"),
        (lambda: ops.arange(0, 1, 0.5), "float32"),
        (lambda: ops.argmax(floats(3)), "int32"),
        (lambda: ops.one_hot(ints(3), 6), "float32"),
        (lambda: ops.floor(ints(3)), "float32"),
        (lambda: ops.power(ints(3), 2), "int32"),
    ],
)
def test_the_dtype_is_that_of_keras(call, dtype):
    assert call().dtype == dtype


def test_sparse_vectors_of_integers_are_the_dense_ones():
    x = np.array([[1, 3, -1], [0, 0, 7]])
    for axis in (-1, 0, 1):
        sparse = ops.one_hot(x, 4, axis, "float16", sparse=True)
        assert sparse.dtype == "float16" and sparse.indices.shape[0] == 6
        dense = tw.sparse.to_dense(tw.sparse.reorder(sparse)).numpy()
        assert dense.tolist() == ops.one_hot(x, 4, axis).numpy().tolist()
    traced = tw.function(lambda x: ops.one_hot(x, 4, sparse=True))
    assert traced(x).values.numpy().tolist() == [1, 1, 0, 1, 1, 0]
    for each in (x, x[0], np.stack([x, x])):
        for dtype in (None, "bool"):
            dense = ops.multi_hot(each, 4, dtype=dtype)
            sparse = ops.multi_hot(each, 4, dtype=dtype, sparse=True)
            assert sparse.dtype == dense.dtype
            assert np.all(tw.sparse.to_dense(sparse).numpy() == dense.numpy())


# ------------------------------------------------------- what NumPy does not have


def softmax(x, axis):
    shares = np.exp(x - x.max(axis, keepdims=True))
    return shares / shares.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [-1, 0, (0, 2)])
def test_softmax_is_over_any_axes(axis):
    x = floats(2, 3, 4)
    np.testing.assert_allclose(ops.softmax(x, axis), softmax(x, axis), rtol=1e-5)


def test_top_k_gives_values_and_places():
    values, places = ops.top_k([1.0, 4.0, 2.0], 2)
    assert values.numpy().tolist() == [4, 2] and places.numpy().tolist() == [1, 2]


def test_extremes_of_booleans_may_start_from_one():
    assert ops.max([False, False], initial=True).numpy()
    assert not ops.min([True, True], initial=False).numpy()
    assert ops.max([[True], [False]], 1, initial=False).numpy().tolist() == [
        True,
        False,
    ]


def test_crossentropies_are_not_averaged():
    p = parts(3, 4)
    p /= p.sum(1, keepdims=True)
    rows = np.arange(3), np.array([1, 3, 0])
    expected = -np.log(p[rows])
    found = ops.sparse_categorical_crossentropy(rows[1], p)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    found = ops.categorical_crossentropy(np.eye(4, dtype="float32")[rows[1]], p)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    found = ops.binary_crossentropy(np.ones((3, 4), "float32"), p)
    np.testing.assert_allclose(found, -np.log(p), rtol=1e-5)


def test_segments_are_summed():
    found = ops.segment_sum([1.0, 2.0, 4.0], [0, 2, 0], num_segments=3)
    assert found.numpy().tolist() == [5, 0, 2]


def test_a_convolution_is_a_sum_over_windows():
    x, kernel = floats(2, 6, 3), floats(2, 3, 4)
    windows = np.stack([x[:, i : i + 2] for i in range(5)], 1)
    expected = np.einsum("bwic,ico->bwo", windows, kernel)
    np.testing.assert_allclose(ops.conv(x, kernel), expected, rtol=1e-4, atol=1e-5)


def test_a_transposed_convolution_is_the_adjoint():
    x, y, kernel = floats(1, 7, 2), floats(1, 3, 3), floats(3, 2, 3)
    there = (ops.conv(x, kernel, strides=2).numpy() * y).sum()
    back = (ops.conv_transpose(y, kernel, strides=2).numpy() * x).sum()
    np.testing.assert_allclose(there, back, rtol=1e-4)


def test_pools_take_either_order_of_axes():
    x = floats(2, 4, 4, 3)
    expected = x.reshape(2, 2, 2, 2, 2, 3).max((2, 4))
    np.testing.assert_array_equal(ops.max_pool(x, 2), expected)
    found = ops.max_pool(np.moveaxis(x, -1, 1), 2, data_format="channels_first")
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, 1))


def test_fold_is_the_adjoint_of_unfold():
    x, y = floats(2, 3, 5, 6), floats(2, 12, 20)
    there = (ops.unfold(x, 2).numpy() * y).sum()
    back = (ops.fold(y, (5, 6), 2).numpy() * x).sum()
    np.testing.assert_allclose(there, back, rtol=1e-4)


def test_the_inverse_short_time_transform_restores_the_signal():
    x = floats(2, 64)
    found = ops.istft(ops.stft(x, 16, 4, 16), 16, 4, 16, length=64)
    inside = slice(8, -8)  # at the ends fewer pieces overlap than the window counts on
    np.testing.assert_allclose(found[:, inside], x[:, inside], atol=1e-5)


def test_colours_go_there_and_back():
    x = parts(2, 4, 4, 3)
    hsv = ops.image.rgb_to_hsv(x)
    np.testing.assert_allclose(ops.image.hsv_to_rgb(hsv), x, atol=1e-6)
    np.testing.assert_allclose(hsv[..., 2], x.max(-1))


def test_images_are_resized_in_either_order_of_axes():
    x = parts(2, 3, 4, 4)
    found = ops.image.resize(x, (2, 6), data_format="channels_first")
    expected = ops.image.resize(np.moveaxis(x, 1, -1), (2, 6)).numpy()
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, 1))


def test_unique_tells_places_and_counts():
    x = ints(9)
    kwargs = {f"return_{n}": True for n in ("index", "inverse", "counts")}
    for found, expected in zip(ops.unique(x, **kwargs), np.unique(x, **kwargs)):
        np.testing.assert_array_equal(found, expected)


# --------------------------------------------------------------------- control flow


def running_sum(xs):
    return ops.scan(lambda total, x: (total + x, total * x), tw.constant(0.0), xs)


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_loops_agree_eager_and_traced(wrap):
    xs = tw.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    total, products = wrap(running_sum)(xs)
    assert float(total) == 21 and products.numpy().tolist() == [0, 2, 9, 24, 50, 90]
    power = wrap(lambda n: ops.fori_loop(0, n, lambda i, x: x * 2, 1))
    assert int(power(tw.constant(5))) == 32
    halved = wrap(lambda x: ops.while_loop(lambda v: v > 1.0, lambda v: v / 2, x))
    assert float(halved(tw.constant(10.0))) == 0.625
    either = wrap(lambda x: ops.cond(ops.sum(x) > 0, lambda: x, lambda: -x))
    assert either(-xs).numpy().tolist() == xs.numpy().tolist()
    squares = wrap(lambda x: ops.map(lambda row: row * row, x))
    assert squares(xs).numpy().tolist() == [1, 4, 9, 16, 25, 36]
    sums = wrap(lambda x: ops.associative_scan(ops.add, x, reverse=True))
    assert sums(xs).numpy().tolist() == [21, 20, 18, 15, 11, 6]
    chosen = wrap(lambda i: ops.switch(i, [ops.add, ops.subtract], xs, xs))
    assert not chosen(tw.constant(1)).numpy().any()


def test_a_gradient_passes_through_a_scan():
    xs = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        loss = ops.sum(running_sum(xs)[1])
    # (x1) x2 + (x1 + x2) x3
    assert tape.gradient(loss, xs).numpy().tolist() == [5, 4, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.sinc(x),
        lambda x: ops.hypot(x, x + 1),
        lambda x: ops.logaddexp(x, 2 * x),
        lambda x: ops.quantile(x, 0.3),
        lambda x: ops.take_along_axis(x, np.array([0, 0, 2]), 0),
        lambda x: ops.linalg.norm(x, -1, axis=0),
        lambda x: ops.cbrt(x),
    ],
)
def test_a_gradient_is_the_slope(call):
    x = np.array([0.3, -1.2, 2.1])
    variable = tw.Variable(x)
    with tw.GradientTape() as tape:
        loss = ops.sum(call(variable))
    slopes = [
        float(ops.sum(call(x + step)) - ops.sum(call(x - step))) / 2e-5
        for step in np.eye(3) * 1e-5
    ]
    np.testing.assert_allclose(tape.gradient(loss, variable), slopes, rtol=1e-4)


@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanvar", "nanmax"])
def test_no_gradient_comes_from_nan(name):
    x = tw.Variable([1.0, np.nan, 3.0])
    with tw.GradientTape() as tape:
        y = getattr(ops, name)(x)
    gradient = tape.gradient(y, x).numpy()
    assert gradient[1] == 0 and np.isfinite(gradient).all() and gradient.any()


def test_complex_numbers_with_nan_are_left_out_too():
    x = np.array([complex(np.nan, 1), 2])
    assert (
        ops.nansum(x).numpy() == ops.nanmean(x).numpy() == ops.nanprod(x).numpy() == 2
    )


def test_tens_and_hundreds_are_rounded_exactly():
    x = np.arange(-1000, 1000)
    for decimals in (-1, -2):
        assert np.array_equal(ops.round(x, decimals), np.round(x, decimals))


def test_parts_of_a_tensor_are_written():
    found = ops.scatter_update([1.0, 2.0, 3.0], [[0], [0]], [2.0, 5.0], reduction="mul")
    assert found.numpy().tolist() == [10, 2, 3]
    found = ops.slice_update(np.zeros((3, 3)), (2, 0), np.ones((2, 2)))  # moved back
    assert found.numpy().sum(1).tolist() == [0, 2, 2]


# ------------------------------------------------------------------- errors, modules


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.quantile([1.0], 0.5, method="best"), "method .*got 'best'"),
        (lambda: ops.argpartition([3, 1, 2], 3), "kth must be from -3 to 2 .*got 3"),
        (lambda: ops.where([True], 1.0), "x1 and x2 must both be given"),
        (
            lambda: ops.multi_hot([[1]], 2, axis=0, sparse=True),
            "axis must be -1 .*got 0",
        ),
        (
            lambda: ops.one_hot(tw.keras.Input((), dtype="int32"), 2, sparse=True),
            "one_hot: sparse=True needs tensors",
        ),
        (lambda: ops.scan(lambda c, x: (c, x), 0), "length must be given"),
        (
            lambda: ops.scan(lambda c, x: (c, x), 0, [1]),
            "xs must have at least one axis",
        ),
        (lambda: ops.concatenate([]), "concat: values .*at least one tensor"),
        (lambda: ops.histogram([1.0, 2.0], bins=0), "bins .*positive.*got 0"),
        (lambda: ops.scatter_update([1], [[0]], [1], reduction="avg"), "reduction"),
        (
            lambda: ops.conv(floats(2, 3), floats(1, 1)),
            r"inputs .*3.*4.*5.*got shape \(2, 3\)",
        ),
        (
            lambda: ops.image.resize(floats(2, 3), (1, 1)),
            r"images .*3.*4.*got shape \(2, 3\)",
        ),
        (lambda: ops.correlate([1.0], [1.0], "whole"), "mode .*'valid'.*got 'whole'"),
        (
            lambda: ops.depth_to_space(floats(1, 1, 1, 4), 2, "NCHW"),
            "data_format .*'channels_last'.*got 'NCHW'",
        ),
        (
            lambda: ops.einsum("i->i", [1.0], optimize="best"),
            "optimize .*'greedy'.*got 'best'",
        ),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_scan_wants_a_function():
    with pytest.raises(TypeError, match="scan: f must be callable, got 3"):
        ops.scan(3, 0, [1])


def test_the_families_are_modules():
    import tapewright.keras.ops.image
    from tapewright.keras.ops import linalg, mean

    assert mean is ops.mean and linalg.norm is ops.norm
    assert ops.nn.relu is ops.relu and tapewright.keras.ops.image.resize
    assert importlib.import_module("tapewright.keras.ops.nn") is ops.nn
    assert {"einsum", "image", "softmax"} < set(dir(ops))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "complex64"])
@pytest.mark.parametrize(
    "name, call",
    [
        ("fft", lambda x: ops.fft((x, x))),
        ("fft2", lambda x: ops.fft2((x, x))),
        ("ifft2", lambda x: ops.ifft2((x, x))),
        ("rfft", lambda x: ops.rfft(x)),
        ("irfft", lambda x: ops.irfft((x, x))),
        ("stft", lambda x: ops.stft(x, 4, 2, 4)),
        ("istft", lambda x: ops.istft((x, x), 4, 2, 6)),
    ],
)
def test_transforms_cast_no_integers_as_in_keras(name, call, dtype):
    x = tw.cast(np.ones((4, 4)), dtype)
    error = TypeError if name == "stft" else ValueError  # those of Keras
    with pytest.raises(error, match=f"{name}: x must be .*tw.cast"):
        call(x)
    with pytest.raises(error, match=f"{name}: x must be .*tw.cast"):
        tw.function(call)(x)
    call(tw.cast(np.ones((4, 4)), "float32"))


ROWS = [[1.0, 1.0, 0.0, 3.0], [2.0, 2.0, 2.0, 2.0], [1.0, 1.5, 0.0, 3.0]]


@pytest.mark.parametrize("row", ROWS)
def test_the_median_of_an_even_number_is_half_of_each_of_the_two_in_the_middle(row):
    """At ties they are the entries that a stable sort puts there."""
    x = tw.constant(row, "float64")
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = ops.median(x)
    expected = np.zeros(4)
    expected[np.argsort(row, kind="stable")[1:3]] = 0.5
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_those_of_numpy_in_all_dtypes(method, dtype):
    x = np.float64([[1, 4, 2, 8], [3, 3, 3, 3]])
    found = ops.quantile(tw.constant(x, dtype), [0.25, 0.5], -1, method)
    assert found.dtype == dtype
    expected = np.quantile(x, [0.25, 0.5], -1, method=method)
    np.testing.assert_allclose(tw.cast(found, "float64").numpy(), expected, 1e-2)


@pytest.mark.parametrize("method", ["linear", "midpoint"])
def test_quantiles_between_infinite_and_large_entries_are_no_nan(method):
    x = tw.constant([[np.inf, np.inf, 1.0, 2.0], [-3e38, -3e38, 3e38, 3e38]])
    found = ops.quantile(x, [0.5, 1.0], -1, method).numpy()
    np.testing.assert_array_equal(found, [[np.inf, 0.0], [np.inf, np.float32(3e38)]])


def test_arange_without_stop_keeps_its_step():
    assert ops.arange(5, step=2).numpy().tolist() == [0, 2, 4]
