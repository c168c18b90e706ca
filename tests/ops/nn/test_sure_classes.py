"""Softmax and its losses where one class is sure: derivatives beside those of mpmath.

`reference/record_sure_classes.py` recorded them. Each must be right relative to its own
size: ``1 - p`` is lost where the share ``p`` has been rounded to 1.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices

RECORDED = np.load(Path(__file__).parent / "reference" / "sure_classes.npz")
ROW = [0.0, -1.0, 0.5, -0.25]
LEADS = {
    "float32": [3.0, 12.0, 17.0, 30.0, 60.0],
    "float64": [3.0, 20.0, 36.0, 40.0, 200.0],
}
WEIGHTS = [1.5, -0.75, 0.5, 2.25]
ALONG = [0.25, 1.5, -1.25, 0.75], [-0.5, 1.25, 2.0, 0.375]
LABELS = {
    "the true class": [0.0, 1.0, 0.0, 0.0],
    "a wrong class": [0.0, 0.0, 1.0, 0.0],
    "all classes": [0.125, 0.5, 0.25, 0.125],
    "a sum of 2.75": [0.25, 2.0, 0.5, 0.0],
}
SPARSE = {"the true class": 1, "a wrong class": 2}
NAMES = [
    *("softmax", "log_softmax", "reduce_logsumexp"),
    *LABELS,
    *[f"sparse, {name}" for name in SPARSE],
]
MODES = ["eager", "numpy", "native"]
PLACES = [(4, 1), (4, 3), (70, 0)]  # kernels turn rows of up to 64 classes


class Rows:
    """The recorded rows, as ``classes`` columns with the sure one at ``place``.

    The columns that are not recorded are impossible classes.
    """

    def __init__(self, dtype, classes, place):
        self.dtype, self.classes = dtype, classes
        self.columns = (np.arange(4) + place - 1) % classes
        rows = np.full((len(LEADS[dtype]), classes), -np.inf)
        rows[:, self.columns] = ROW
        rows[:, place] += LEADS[dtype]
        self.logits = tw.constant(rows, dtype)
        self.along = [self.spread(v) for v in ALONG]

    def spread(self, values):
        row = np.zeros(self.classes)
        row[self.columns] = values
        return tw.constant(row, self.dtype)

    def function(self, name):
        count = self.logits.shape[0]
        if name in LABELS:
            labels = tw.tile(self.spread(LABELS[name])[None], [count, 1])
            return lambda x: tw.nn.softmax_cross_entropy_with_logits(labels, x)
        if name.startswith("sparse, "):
            place = self.columns[SPARSE[name.removeprefix("sparse, ")]]
            labels = tw.constant(np.full(count, place))
            return lambda x: tw.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        if name == "reduce_logsumexp":
            return lambda x: tw.reduce_logsumexp(x, -1)
        f, weights = getattr(tw.nn, name), self.spread(WEIGHTS)
        kept = tw.constant(weights.numpy() != 0)
        return lambda x: tw.where(kept, f(x), 0.0) * weights

    def check(self, name, found):
        wanted = RECORDED[f"{self.dtype}|{name.removeprefix('sparse, ')}"]
        found = np.array(found)[..., self.columns]
        limits = np.finfo(self.dtype)
        bounds = {"rtol": 600 * float(limits.eps), "atol": 100 * float(limits.tiny)}
        np.testing.assert_allclose(found, wanted, **bounds)


def gradient(f, x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def gradients(f, along, x):
    """The gradient of ``f``, and those of its derivatives along directions."""

    def first(x):
        return gradient(f, x)

    def second(x):
        return gradient(lambda x: first(x) * along[0], x)

    def third(x):
        return gradient(lambda x: second(x) * along[1], x)

    return tw.stack([first(x), second(x), third(x)], 1)


def run(mode, f, *inputs):
    if mode == "eager":
        return f(*inputs).numpy()
    if mode == "native":
        pytest.importorskip("llvmlite")
    with tw.config.use_target(mode):
        return tw.function(f)(*inputs).numpy()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", LEADS)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_at_a_sure_class_are_those_of_mpmath(name, dtype, mode):
    for classes, place in PLACES:
        rows = Rows(dtype, classes, place)
        found = run(
            mode, partial(gradients, rows.function(name), rows.along), rows.logits
        )
        rows.check(name, found)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_so_on_a_gpu(name, strict):
    with devices.use_module(strict):
        rows = Rows("float32", 4, 1)
        rows.check(
            name, gradients(rows.function(name), rows.along, rows.logits).numpy()
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", LEADS)
def test_derivatives_by_the_labels_are_so(dtype, mode):
    rows = Rows(dtype, 4, 1)

    def by_labels(logits, labels):
        def slope(labels):
            def loss(x):
                return tw.nn.softmax_cross_entropy_with_logits(labels, x)

            return gradient(loss, logits) * rows.along[0]

        return gradient(slope, labels)

    labels = tw.tile(rows.spread(LABELS["all classes"])[None], [len(LEADS[dtype]), 1])
    rows.check("labels", run(mode, by_labels, rows.logits, labels))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("classes", [4, 70])
def test_rows_that_are_sure_stand_beside_others_in_any_layout(classes, mode):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, classes))
    labels = rng.integers(0, classes, (2, 3))
    logits[1, ::2] += 50.0 * (np.arange(classes) == labels[1, ::2, None])
    labels[0, 1], logits[0, 1, :2] = 0, 5.0  # two lead
    weights = np.eye(classes)[labels]
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    others = np.where(weights, 0, shares).sum(-1, keepdims=True)
    wanted = np.where(weights, -others, shares) / shares.sum(-1, keepdims=True)

    def both(x, dense, sparse):
        f = tw.nn.softmax_cross_entropy_with_logits
        g = tw.nn.sparse_softmax_cross_entropy_with_logits
        return tw.stack(
            [gradient(lambda x: f(dense, x), x), gradient(lambda x: g(sparse, x), x)]
        )

    for axes in [(0, 1, 2), (2, 1, 0)]:  # rows in memory, and columns
        back = np.argsort(axes)
        laid = np.ascontiguousarray(logits.transpose(axes)).transpose(back)
        found = run(mode, both, *map(tw.constant, (laid, weights, labels)))
        np.testing.assert_allclose(found, np.stack([wanted] * 2), rtol=1e-11)
