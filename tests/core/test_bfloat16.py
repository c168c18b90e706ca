"""bfloat16: loaded at its first use, rounded once an op, with derivatives of every order."""

import ml_dtypes
import numpy as np
import pytest

import tapewright as tw
from tapewright.core import dtypes
from tapewright.core.primitive import get_primitive

from ..forks import Forks

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def bits(x):
    return np.asarray(x).view(np.uint16)


def rounded(x):
    """float32 as bfloat16 by the definition: the nearer one, of two as near the even one."""
    whole = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16).astype(np.uint16)


@pytest.fixture(scope="module")
def in_a_new_process():
    """Returns what code prints that is the first to import tapewright."""
    with Forks("import numpy") as forks:
        yield forks.output


# --- loading


def test_ml_dtypes_is_imported_when_the_dtype_is_first_read(in_a_new_process):
    assert in_a_new_process("""
import sys, tapewright as tw
tw.as_dtype("bfloat16"), tw.bfloat16 == tw.float32, tw.bfloat16.is_floating, repr(tw.bfloat16)
tw.exp([1.0, 2.0])
print("ml_dtypes" in sys.modules)
tw.bfloat16.size
print("ml_dtypes" in sys.modules, type(tw.bfloat16) is type(tw.float32))
""").split() == ["False", "True", "True"]


def test_arrays_of_ml_dtypes_may_be_the_first_use(in_a_new_process):
    assert (
        in_a_new_process("""
import ml_dtypes, numpy as np, tapewright as tw
x = np.ones(300, ml_dtypes.bfloat16)
print(tw.reduce_sum(x), tw.Variable(x).dtype is tw.bfloat16)
print(tw.as_dtype(ml_dtypes.bfloat16) is tw.bfloat16)
""")
        == "tf.Tensor(300, shape=(), dtype=bfloat16) True\nTrue\n"
    )


def test_without_ml_dtypes_an_error_names_the_extra(in_a_new_process):
    assert (
        in_a_new_process("""
import sys
sys.modules["ml_dtypes"] = None
import tapewright as tw
assert tw.bfloat16 == "bfloat16" and tw.bfloat16 != "float16"
for use in (lambda: tw.constant(1.0, tw.bfloat16), lambda: tw.cast(1.0, "bfloat16")):
    try:
        use()
    except ImportError as error:
        print(error)
""")
        == 2 * "bfloat16 needs ml_dtypes: pip install tapewright[bfloat16]\n"
    )


# --- the dtype


def test_it_is_a_floating_dtype_of_16_bits():
    dtype = tw.bfloat16
    assert dtype.is_floating and dtype.is_differentiable and not dtype.is_complex
    assert not dtype.is_integer and not dtype.is_bool and dtype.size == 2
    assert dtype.as_numpy_dtype is ml_dtypes.bfloat16 and dtype.real_dtype is dtype
    assert float(dtype.max) == -float(dtype.min) == 2.0**127 * (2 - 2.0**-7)
    assert dtypes.kind_of(BFLOAT16) == "f" and dtypes.kind_of(np.dtype("V2")) == "V"


def test_other_dtypes_of_ml_dtypes_are_refused():
    with pytest.raises(TypeError, match="float8"):
        tw.constant(np.ones(2, ml_dtypes.float8_e5m2))


# --- conversion


def test_float32_is_rounded_to_the_nearest_ties_to_even():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    x = x[np.isfinite(x)]
    ties = (rng.integers(0, 0x7F00, 1000, dtype=np.uint32) << 16 | 0x8000).view(
        np.float32
    )
    for values in (x, ties, -ties):
        with np.errstate(over="ignore"):
            assert (bits(tw.cast(values, tw.bfloat16)) == rounded(values)).all()


def test_nan_and_infinities_stay():
    x = np.float32([np.nan, -np.nan, np.inf, -np.inf, -0.0])
    y = tw.cast(tw.cast(x, tw.bfloat16), tw.float32).numpy()
    assert np.isnan(y[:2]).all() and (y[2:] == x[2:]).all() and np.signbit(y[4])
    payload = np.uint32([0x7F800001]).view(np.float32)  # a NaN in its lower half alone
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.float32(tw.cast(payload, tw.bfloat16)))


def test_float64_is_rounded_by_way_of_float32_as_in_tensorflow():
    above_a_tie = 1 + 2.0**-8 + 2.0**-40
    for x in (
        tw.constant(above_a_tie, tw.bfloat16),
        tw.constant([above_a_tie], tw.bfloat16)[0],
        tw.constant(np.float64(above_a_tie), tw.bfloat16),
        tw.cast(tw.constant(above_a_tie, tw.float64), tw.bfloat16),
    ):
        assert float(x) == 1.0


def test_integers_are_rounded_and_cut():
    assert float(tw.constant(257, tw.bfloat16)) == 256.0
    assert float(tw.cast(16843009, tw.bfloat16)) == 129 * 2.0**17
    assert tw.cast(tw.constant([1.9, -1.9], tw.bfloat16), "int32").numpy().tolist() == [
        1,
        -1,
    ]


def test_saturate_cast_stops_at_the_ends():
    top = float(tw.bfloat16.max)
    x = tw.constant([1e39, -1e39, 1.0], tw.float64)
    assert tw.saturate_cast(x, tw.bfloat16).numpy().tolist() == [top, -top, 1.0]
    wide = tw.constant([1e30, 300.0], tw.bfloat16)
    assert tw.saturate_cast(wide, tw.int8).numpy().tolist() == [127, 127]
    assert np.isfinite(tw.saturate_cast(wide, tw.float16).numpy()).all()
    assert tw.saturate_cast(wide, tw.float32).dtype is tw.float32


def test_a_tensor_prints_as_in_tensorflow():
    x = tw.constant([1.0, 2.0, 3.14159], tw.bfloat16)
    values = "array([1, 2, 3.14062], dtype=bfloat16)"
    assert repr(x) == f"<tf.Tensor: shape=(3,), dtype=bfloat16, numpy={values}>"
    assert repr(x[2]) == "<tf.Tensor: shape=(), dtype=bfloat16, numpy=3.140625>"
    assert str(x[2]) == "tf.Tensor(3.14062, shape=(), dtype=bfloat16)"
    assert f"{tw.cast(x, 'float32')[2]:.3f}" == "3.141"


def test_numpy_gives_an_array_of_ml_dtypes():
    x = tw.constant([[1.0, 2.0]], tw.bfloat16)
    assert x.numpy().dtype == BFLOAT16 and type(x[0, 0].numpy()) is ml_dtypes.bfloat16
    assert tw.constant(x.numpy()).dtype is tw.bfloat16
    assert np.asarray(x, np.float32).tolist() == [[1.0, 2.0]]


# --- ops


def test_python_numbers_adopt_it_and_other_dtypes_do_not_mix():
    x = tw.constant([1.0, 3.0], tw.bfloat16)
    for y in (x * 2.0, 2.0 * x, x + 1, 1 / x, x**2, -x, x - [1.0, 2.0]):
        assert y.dtype is tw.bfloat16
    for dtype in (tw.float16, tw.float32, tw.float64, tw.int32):
        with pytest.raises(TypeError, match="the same, got bfloat16"):
            x + tw.ones(2, dtype)


def test_sums_are_made_in_float32():
    x = tw.fill([1000], tw.constant(0.1, tw.bfloat16))
    exact = 1000 * float(x[0])
    assert bits(tw.reduce_sum(x)) == rounded(exact)
    assert tw.reduce_mean(x).numpy() == x[0].numpy()
    ones = tw.ones([1, 1000], tw.bfloat16)
    assert float(tw.matmul(ones, ones, transpose_b=True)[0, 0]) == 1000.0
    kernel = tw.ones([30, 30, 1, 1], tw.bfloat16)
    assert (
        float(tw.nn.conv2d(tw.ones([1, 30, 30, 1], tw.bfloat16), kernel, 1, "VALID"))
        == 900.0
    )


def test_an_op_is_rounded_once():
    rng = np.random.default_rng(1)
    x = tw.constant(rng.normal(size=1000).astype(BFLOAT16))
    wide = tw.cast(x, tw.float32)
    for op in (tw.exp, tw.sin, tw.nn.gelu, tw.nn.softmax, tw.nn.softplus, tw.math.erf):
        assert (bits(op(x)) == rounded(op(wide))).all(), op


@pytest.mark.parametrize(
    "op",
    [tw.linalg.cholesky, tw.linalg.inv, tw.linalg.svd, tw.linalg.det, tw.signal.rfft],
    ids=lambda op: op.__name__,
)
def test_what_lapack_and_ffts_lack_is_refused_eager_and_traced(op):
    x = tw.eye(2, dtype=tw.bfloat16)
    for call in (op, tw.function(op)):
        with pytest.raises(TypeError, match="must not be of half precision|float64"):
            call(x)


def test_kernels_keep_the_names_by_which_targets_know_them():
    for name in ("cumsum", "gather", "tanh"):
        kernel = get_primitive(name).kernels.plain(np.ndarray)
        assert getattr(kernel, "__name__", name) == name


# --- derivatives


def test_derivatives_of_every_order_are_of_bfloat16():
    x = tw.Variable([0.5, 1.0, 2.0], dtype=tw.bfloat16)
    with tw.GradientTape(persistent=True) as outer:
        with tw.GradientTape() as inner:
            y = tw.reduce_sum(x**3 * 2.0 / 3.0 + tw.erf(x) * 0.0)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    jacobian = outer.jacobian(first, x)
    assert {g.dtype for g in (first, second, jacobian)} == {tw.bfloat16}
    x = np.float32([0.5, 1, 2])
    np.testing.assert_allclose(np.float32(first), 2 * x**2, rtol=2**-6)
    np.testing.assert_allclose(np.float32(second), 4 * x, rtol=2**-6)
    np.testing.assert_allclose(np.float32(jacobian), np.diag(4 * x), rtol=2**-6)


def test_gradients_pass_between_bfloat16_and_float32():
    w = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    x = tw.constant([[1.0, 2.0]], tw.bfloat16)
    with tw.GradientTape() as tape:
        y = tw.cast(tw.matmul(x, tw.cast(w, tw.bfloat16)) * 0.5, tw.float32)
    g = tape.gradient(y, w)
    assert g.dtype is tw.float32 and g.numpy().tolist() == [[0.5, 0.5], [1.0, 1.0]]


def test_rows_of_an_embedding_have_sparse_gradients():
    table = tw.Variable(tw.ones([4, 2], tw.bfloat16))
    with tw.GradientTape() as tape:
        y = tw.gather(table, [1, 1, 3]) * 3.0
    g = tape.gradient(y, table)
    assert isinstance(g, tw.IndexedSlices) and g.dtype is tw.bfloat16
    assert tw.convert_to_tensor(g).numpy()[:, 0].tolist() == [0.0, 6.0, 0.0, 3.0]


def test_forward_mode_and_vectorized_map():
    x = tw.constant([0.5, 1.0], tw.bfloat16)
    with tw.autodiff.ForwardAccumulator(x, tw.ones_like(x)) as acc:
        y = x * x * 2.0
    assert acc.jvp(y).dtype is tw.bfloat16 and acc.jvp(y).numpy().tolist() == [2.0, 4.0]
    y = tw.vectorized_map(
        lambda row: tw.reduce_sum(row) * 2.0, tw.ones([3, 300], tw.bfloat16)
    )
    assert y.dtype is tw.bfloat16 and y.numpy().tolist() == [600.0] * 3


# --- variables, functions, random numbers


def test_a_variable_keeps_it():
    v = tw.Variable([1.0, 2.0], dtype=tw.bfloat16)
    v.assign_add([0.5, 0.5])
    v.assign_sub(tw.constant([1.0, 1.0], tw.bfloat16))
    assert v.dtype is tw.bfloat16 and v.numpy().tolist() == [0.5, 1.5]
    assert repr(v).endswith("dtype=bfloat16, numpy=array([0.5, 1.5], dtype=bfloat16)>")
    with pytest.raises(TypeError):
        v.assign(tw.ones(2))


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_a_traced_function_gives_the_same(target):
    if target == "native":
        pytest.importorskip("llvmlite")

    def step(x, w):
        with tw.GradientTape() as tape:
            tape.watch(w)
            y = tw.nn.softmax(tw.nn.gelu(tw.matmul(x, w) + 0.5))
            loss = tw.reduce_mean(y * tw.cast(x > 0.0, y.dtype))
        return loss, tape.gradient(loss, w), tw.concat([y, x], 0)[::-1]

    rng = np.random.default_rng(3)
    x, w = (tw.constant(rng.normal(size=(8, 8)).astype(BFLOAT16)) for _ in range(2))
    with tw.config.use_target(target):
        spec = tw.TensorSpec([8, 8], tw.bfloat16)
        found = tw.function(step, input_signature=[spec, spec])(x, w)
    for got, expected in zip(found, step(x, w), strict=True):
        assert got.dtype is tw.bfloat16 and got.shape == expected.shape
        if target == "numpy":
            assert (bits(got) == bits(expected)).all()
        else:
            np.testing.assert_allclose(
                np.float32(got), np.float32(expected), 2**-7, 2**-9
            )


@pytest.mark.parametrize("pair", [("float16", "bfloat16"), ("bfloat16", "float16")])
def test_a_trace_keeps_a_cast_between_the_dtypes_of_16_bits(pair):
    own, other = pair  # neither holds the other's numbers
    x = tw.cast([1 + 2.0**-10, 1e-30, 1.0], own)
    back = tw.function(lambda x: tw.cast(tw.cast(x, other), own))
    assert back(x).numpy().tolist() == tw.cast(tw.cast(x, other), own).numpy().tolist()
    assert back(x).numpy().tolist() != x.numpy().tolist()
    wide = tw.function(lambda x: tw.cast(tw.cast(x, tw.float32), own))
    assert wide(x).numpy().tolist() == x.numpy().tolist()


def test_random_numbers():
    for draw in (tw.random.normal, tw.random.uniform, tw.random.truncated_normal):
        x = draw([5000], seed=4, dtype=tw.bfloat16)
        assert x.dtype is tw.bfloat16 and len(np.unique(np.float32(x))) > 100
    assert float(tw.reduce_max(tw.random.uniform([100_000], dtype=tw.bfloat16))) < 1


def test_ranges_are_rounded_entry_by_entry():
    x = tw.range(0.0, 1.0, 0.1, dtype=tw.bfloat16)
    step = float(tw.constant(0.1, tw.bfloat16))
    assert (bits(x) == rounded(np.float32(step) * np.arange(len(x)))).all()
