"""`tw.experimental.numpy`, with TensorFlow's dtypes and values."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
import tapewright.experimental.numpy as tnp
from tapewright.api.names.missing_names import known_names

from ..reference import record_tnp

RECORDED = json.loads(Path(record_tnp.__file__).with_name("tnp.json").read_text())
# Dtypes that differ, see docs/coming_from/tensorflow.md: NumPy's are here.
DIFFERENT = set(
    "angle cumprod cumsum hypot linspace logaddexp logaddexp2 logspace rad2deg".split()
)


def test_all_names_are_there():
    for path, module in (("", tnp), (".random", tnp.random)):
        names = known_names()[f"tf.experimental.numpy{path}"]
        assert {*names} == {*module.__all__}


def test_dtypes():
    found = record_tnp.dtypes(tw, tnp)
    for names, letters in RECORDED["dtypes"].items():
        for name in {*names.split()} - DIFFERENT:
            pairs = zip(letters, found[name], strict=True)
            assert all([a in ("!", b) for a, b in pairs]), (name, letters, found[name])


def same(wanted, found):
    if not isinstance(wanted, list):
        return wanted == found
    entries = [
        [complex(*x) if isinstance(x, list) else x for x in each[2]]
        for each in (wanted, found)
    ]
    same_kind = wanted[:2] == found[:2]
    return same_kind and np.allclose(*entries, rtol=1e-6, atol=1e-12, equal_nan=True)


def test_values():
    found = {call: record_tnp.value(call, tnp) for call in RECORDED["values"]}
    wrong = [
        x for x, wanted in RECORDED["values"].items() if not same(wanted, found[x])
    ]
    assert not wrong, [(call, found[call]) for call in wrong]


X = tw.constant([[0.3, -0.7, 0.45], [0.8, -0.2, 0.6]], tw.float64)
FUNCTIONS = [
    lambda x: tnp.sum(tnp.sinc(x) * tnp.arctan2(x, 2.0)),
    lambda x: tnp.mean(tnp.logaddexp(x, 2 * x) ** 2),
    lambda x: tnp.matmul(tnp.var(x, axis=1, ddof=1), [1.0, 2.0]),
    lambda x: tnp.sum(tnp.dot(tnp.transpose(x), tnp.exp(x)) ** 2),
    lambda x: tnp.prod(tnp.maximum(x, 0.1) + tnp.hypot(x, 1.0)),
    lambda x: tnp.sum(tnp.cross(x[0], tnp.sort(x[1])) ** 3),
    lambda x: tnp.sum(tnp.take_along_axis(x, tnp.argsort(x), 1)[:, 1:] ** 3),
    lambda x: tnp.sum(tnp.polyval(x[0], x[1]) ** 2 + tnp.vander(x[0])[:, 0]),
    lambda x: tnp.average(x**3, weights=tnp.square(x)),
    lambda x: tnp.sum(tnp.einsum("ij,kj->ik", x, tnp.pad(x, 1, "reflect")[:, 1:-1]) ** 2),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives_and_traces(function):
    def gradient(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    with tw.GradientTape() as tape:
        tape.watch(X)
        first = gradient(X)
    second = tape.jacobian(first, X).numpy().reshape(6, 6)
    step = 1e-5
    moves = step * np.eye(6).reshape(6, 2, 3)
    differences = [(gradient(X + m) - gradient(X - m)) / (2 * step) for m in moves]
    np.testing.assert_allclose(
        second, np.reshape([d.numpy() for d in differences], (6, 6)).T, atol=1e-7
    )
    np.testing.assert_allclose(tw.function(function)(X), function(X), rtol=1e-12)
    batched = tw.vectorized_map(function, tw.stack([X, X * 0.5]))
    np.testing.assert_allclose(batched, [function(X), function(X * 0.5)], rtol=1e-9)


def test_the_maximum_of_a_tensor_and_0_has_the_gradient_of_relu():
    x = tw.constant([-1.0, 0.0, 2.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tnp.maximum(x, 0)
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 0.0, 1.0]


def test_random_numbers():
    tnp.random.seed(7)
    first = tnp.random.randn(2, 3)
    tnp.random.seed(7)
    assert tnp.array_equal(first, tnp.random.standard_normal((2, 3)))
    for x, dtype in (
        (tnp.random.rand(4), "float64"),
        (tnp.random.uniform(1, [2, 3]), "float64"),
        (tnp.random.poisson(3.0, 5), "int64"),
        (tnp.random.randint(2, 4, 5, "int32"), "int32"),
    ):
        assert x.dtype == dtype and x.ndim == 1
    with pytest.raises(ValueError, match="dtype must be int32 or int64"):
        tnp.random.randint(3, dtype="uint8")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tnp.add([1]), "missing a required argument: 'x2'"),
        (lambda: tnp.mean([1.0], out=X), "out must be None"),
        (lambda: tnp.take([1], 0, mode="raise"), "mode must be"),
        (lambda: tnp.arange(3, step=0), "step must not be 0"),
        (lambda: tnp.clip([1], None, None), "must not both be None"),
        (lambda: tnp.sort([1], kind="heapsort"), "kind must be 'quicksort'"),
        (lambda: tnp.pad([1], 1, "constant", end_values=2), "end_values"),
        (lambda: tnp.meshgrid([1], sparse=True), "sparse"),
        (lambda: tnp.reshape([1], 1, order="A"), "order must be"),
        (
            lambda: tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all"),
            "dtype_conversion_mode must be",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


SWITCHED = """
import numpy as np, tapewright as tf, tapewright.experimental.numpy as tnp
tnp.experimental_enable_numpy_behavior(prefer_float32=True)
x, v = tf.constant([[1, 2], [3, 4]]), tf.Variable([1.0, 2.0])
one = tf.ones([2])
for each in (
    x + 1.5, 1.5 * x, x + one, one / x, x > one, x == one, -x, v + x, x - v,
    x * np.array([0.5, 0.5]), one + np.float64(2), x.T, x.astype("float32"), x.max(0),
    x.mean(axis=0), x.reshape(4, 1), x.reshape([-1], order="F"), x.clip(2, 3), round(x / 3, 1),
    x.ravel(), x.flatten(), one @ one, x @ one, np.array([1.0, 3.0]) @ v,
    x.transpose(), tnp.array(1.5), np.mean(x), one * True, tf.keras.Variable([1.0]) + 1,
):
    print(each.dtype.name, each.numpy().tolist())
print(x.size, x.tolist())
"""


def test_the_switch():
    done = subprocess.run(
        [sys.executable, "-c", SWITCHED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXPECTED.lstrip()


EXPECTED = """
float64 [[2.5, 3.5], [4.5, 5.5]]
float64 [[1.5, 3.0], [4.5, 6.0]]
float64 [[2.0, 3.0], [4.0, 5.0]]
float64 [[1.0, 0.5], [0.3333333333333333, 0.25]]
bool [[False, True], [True, True]]
bool [[True, False], [False, False]]
int32 [[-1, -2], [-3, -4]]
float64 [[2.0, 4.0], [4.0, 6.0]]
float64 [[0.0, 0.0], [2.0, 2.0]]
float64 [[0.5, 1.0], [1.5, 2.0]]
float32 [3.0, 3.0]
int32 [[1, 3], [2, 4]]
float32 [[1.0, 2.0], [3.0, 4.0]]
int32 [3, 4]
float64 [2.0, 3.0]
int32 [[1], [2], [3], [4]]
int32 [1, 3, 2, 4]
int32 [[2, 2], [3, 3]]
float64 [[0.3, 0.7], [1.0, 1.3]]
int32 [1, 2, 3, 4]
int32 [1, 2, 3, 4]
float32 2.0
float64 [3.0, 7.0]
float64 7.0
int32 [[1, 3], [2, 4]]
float32 1.5
float64 2.5
float32 [1.0, 1.0]
float32 [2.0]
4 [[1, 2], [3, 4]]
"""
