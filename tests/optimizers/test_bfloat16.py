"""Updates of variables of bfloat16: computed in float32, and rounded once."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import optimizers

RULES = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax Nadam Ftrl Lion".split()
OPTIONS = [
    {},
    {"clipnorm": 0.1},
    {"clipvalue": 0.05},
    {"global_clipnorm": 0.1},
    {"weight_decay": 0.1},
]
BFLOAT16 = tw.bfloat16.dtype


def values(seed, shape):
    return np.random.default_rng(seed).normal(size=shape).astype(BFLOAT16)


def state(rule):
    return [v for v in rule.variables if tuple(v.shape)]


def copied(narrow, wide):
    """Give float32 variables the values of those of bfloat16."""
    for a, b in zip(narrow, wide, strict=True):
        b.assign(tw.cast(a, b.dtype))


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_step_is_that_of_float32_rounded_once(name, options, target):
    if target == "native":
        pytest.importorskip("llvmlite")
    shapes = (7, 3), (40_000,)
    narrow = [tw.Variable(values(i, s)) for i, s in enumerate(shapes)]
    wide = [tw.Variable(tw.cast(v, tw.float32)) for v in narrow]
    rules = [getattr(optimizers, name)(0.01, **options) for _ in range(2)]
    with tw.config.use_target(target):
        for step in range(3):
            gradients = [values(10 + step, s) * BFLOAT16.type(0.1) for s in shapes]
            rules[0].apply([tw.constant(g) for g in gradients], narrow)
            wider = [tw.constant(np.float32(g)) for g in gradients]
            rules[1].apply(wider, wide)
            for a, b in zip([*narrow, *state(rules[0])], [*wide, *state(rules[1])]):
                assert a.dtype is tw.bfloat16 and b.dtype is tw.float32
                b = b.numpy()
                # A gradient that is clipped is rounded where several are gathered.
                rtol = 2.0**-6 if "clip" in str(options) else 2.0**-8
                np.testing.assert_allclose(
                    np.float32(a), b, rtol, rtol * np.abs(b).max()
                )
            copied([*narrow, *state(rules[0])], [*wide, *state(rules[1])])


def test_learning_rates_are_not_rounded():
    v = tw.Variable([1.0, 0.0], dtype=tw.bfloat16)
    rule = optimizers.SGD(1 / 256 + 1 / 2**17)  # which bfloat16 rounds to 1 / 256
    rule.apply([tw.constant([-1.0, 0.0], tw.bfloat16)], [v])
    assert float(v[0]) == 1 + 2.0**-7


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_rows_of_a_sparse_gradient(name):
    tables = [tw.Variable(tw.ones([5, 2], d)) for d in (tw.bfloat16, tw.float32)]
    for table in tables:
        rows = tw.constant([[1.0, 2.0], [0.5, 0.5]], table.dtype)
        gradient = tw.IndexedSlices(rows, tw.constant([1, 3]), [5, 2])
        getattr(optimizers, name)(0.1).apply([gradient], [table])
    narrow, wide = tables
    expected = tw.cast(wide, tw.bfloat16)
    np.testing.assert_array_equal(np.float32(narrow), np.float32(expected))


@pytest.mark.parametrize(
    "options", [{"use_ema": True}, {"gradient_accumulation_steps": 2}]
)
def test_averages_and_sums(options):
    v = tw.Variable(values(1, (50,)))
    rule = optimizers.Adam(0.1, **options)
    for step in range(4):
        rule.apply([tw.constant(values(step, (50,)))], [v])
    assert v.dtype is tw.bfloat16 and np.isfinite(np.float32(v)).all()


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_a_model_is_trained(target):
    if target == "native":
        pytest.importorskip("llvmlite")
    x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
    y = x.sum(1, keepdims=True)
    layers = tw.keras.layers
    net = [
        layers.Dense(16, "relu", dtype="bfloat16"),
        layers.Dense(1, dtype="bfloat16"),
    ]
    with tw.config.use_target(target):
        model = tw.keras.Sequential([layers.Input((8,), dtype="bfloat16"), *net])
        model.compile(optimizers.Adam(0.05), "mse")
        losses = model.fit(x, y, batch_size=16, epochs=5, verbose=0).history["loss"]
    assert {w.dtype for w in model.weights} == {tw.bfloat16}
    assert losses[-1] < losses[0] / 10
