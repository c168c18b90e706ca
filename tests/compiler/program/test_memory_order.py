"""Maps of transposed arrays: on NumPy, a replay has the bits of eager mode."""

import numpy as np
import pytest

import tapewright as tw

pytestmark = pytest.mark.usefixtures("numpy_target")

CASES = [
    ((300, 400), (1, 0)), ((64, 64), (1, 0)), ((20, 30, 40), (0, 2, 1)),
    ((20, 30, 40), (2, 1, 0)), ((20, 30, 40), (1, 2, 0)), ((1, 30, 40), (2, 0, 1)),
]  # fmt: skip
MAPS = {
    "alone": lambda t, y, b: tw.exp(t) * 1.5,
    "first": lambda t, y, b: t + y,
    "second": lambda t, y, b: y - t,
    "with a row": lambda t, y, b: t + b,
    "with both": lambda t, y, b: y * t * b,
    "chosen": lambda t, y, b: tw.where(t > 0.0, y, t),
    "sliced": lambda t, y, b: tw.exp(t[1:]) * 2.0,
    "transposed back": lambda t, y, b: tw.transpose(tw.transpose(y) + 1.0) * t,
}
SUMS = {
    "all": tw.reduce_sum,
    "columns": lambda x: tw.reduce_sum(x, 0),
    "rows": lambda x: tw.reduce_sum(x, -1),
    "softmax": tw.nn.softmax,
    "mean square": lambda x: tw.reduce_mean(x * x, -1),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("shape", "order"), CASES, ids=str)
def test_sums_of_maps_have_the_bits_of_eager_mode(shape, order, name):
    rng, turned = np.random.default_rng(0), tuple([shape[i] for i in order])
    shapes = shape, turned, turned[-1:]
    arrays = [tw.constant(rng.normal(size=s).astype(np.float32)) for s in shapes]

    def f(x, y, b):
        made = MAPS[name](tw.transpose(x, order), y, b)
        return [each(made) for each in SUMS.values()]

    for a, b, kind in zip(tw.function(f)(*arrays), f(*arrays), SUMS, strict=True):
        np.testing.assert_array_equal(a, b, kind)
