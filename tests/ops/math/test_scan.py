"""Running sums, products and logarithms of sums: the op table, and the corners."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)


def running(function, start):
    """The scan of a NumPy function, in TensorFlow's four kinds."""

    def scan(x, axis=0, exclusive=False, reverse=False):
        x = np.moveaxis(x, axis, 0)
        x = x[::-1] if reverse else x
        if exclusive:
            x = np.concatenate([np.full_like(x[:1], start), x[:-1]])
        result = function(x, axis=0)
        return np.moveaxis(result[::-1] if reverse else result, 0, axis)

    return scan


def logsumexps(x, axis=0):
    return np.log(np.cumsum(np.exp(x), axis))


SCANS = [
    ("cumsum", running(np.cumsum, 0)),
    ("cumprod", running(np.cumprod, 1)),
    (tw.math.cumulative_logsumexp, running(logsumexps, -np.inf)),
]
KINDS = [
    {},
    {"exclusive": True},
    {"reverse": True},
    {"exclusive": True, "reverse": True},
]
ZEROS = np.array([[0.0, 1.5, 0.0, 2.0], [0.7, 0.0, -1.2, 0.4]])


def recurrence(a, b, reverse=False):
    """``h[k] = b[k] + a[k] * h[k - 1]`` along the first axis."""
    if reverse:
        return recurrence(a[::-1], b[::-1])[::-1]
    h = [b[0]]
    for k in range(1, len(b)):
        h.append(b[k] + a[k] * h[-1])
    return np.stack(h)


CASES = [
    *[case(op, floats(4), expect=lambda x, f=f, how=how: f(x, **how), **how)
      for op, f in SCANS[:2] for how in KINDS],
    *[case(op, floats(2, 3, 2), axis=-2, expect=lambda x, f=f, how=how: f(x, 1, **how), **how)
      for op, f in SCANS[:2] for how in (KINDS[0], KINDS[3])],
    *[case(tw.math.cumulative_logsumexp, floats(4), order=0 if "exclusive" in how else 3,
           expect=lambda x, how=how: SCANS[2][1](x, **how), **how) for how in KINDS],
    *[case(lambda x, how=how: tw.math.cumulative_logsumexp(x, **how)[1:-1], floats(5),
           expect=lambda x, how=how: SCANS[2][1](x, **how)[1:-1],
           label=f"cumulative_logsumexp {how}") for how in KINDS[1::2]],
    *[case(op, floats(2, 3), axis=1, expect=lambda x, f=f: f(x, 1)) for op, f in SCANS],
    *[case(op, floats(2, 0), axis=1, exclusive=exclusive, expect=lambda x: x)
      for op, f in SCANS for exclusive in (True, False)],
    *[case(op, floats(0, 2), axis=1, expect=lambda x: x) for op, f in SCANS],
    *[case(op, complexes(3), expect=f) for op, f in SCANS[:2]],
    case("cumsum", complexes(2, 3), axis=1, reverse=True, exclusive=True,
         expect=lambda x: SCANS[0][1](x, 1, True, True)),
    case("cumsum", integers(2, 3), expect=lambda x: x.cumsum(0), label="integers"),
    case("cumprod", integers(4, low=1, high=4), expect=np.cumprod, label="integers"),
    *[case("cumprod", ZEROS, axis=1, label=f"zeros, {how}",
           expect=lambda x, how=how: SCANS[1][1](x, 1, **how), **how) for how in KINDS],
    case("cumprod", np.zeros(3), expect=np.cumprod, label="nothing but zeros"),
    case("cumulative_logsumexp", floats(2, 3), axis=-1, expect=lambda x: logsumexps(x, 1)),
    case("cumulative_logsumexp", floats(3), reverse=True,
         expect=lambda x: SCANS[2][1](x, reverse=True)),
    case("shift", floats(2, 3), axis=1, by=1,
         expect=lambda x: np.pad(x, ((0, 0), (1, 0)))[:, :-1]),
    case("shift", floats(3), axis=0, by=1, expect=lambda x: np.array([0, x[0], x[1]])),
    case("shift", floats(3), axis=-1, by=-1, expect=lambda x: np.array([x[1], x[2], 0])),
    case("shift", floats(0), axis=0, by=1, expect=lambda x: x),
    case("linear_scan", floats(4), floats(4), axis=0, expect=recurrence),
    case("linear_scan", floats(3), floats(3), axis=0, reverse=True,
         expect=lambda a, b: recurrence(a, b, True)),
    case("linear_scan", floats(2, 3), floats(2, 3), axis=-1,
         expect=lambda a, b: recurrence(a.T, b.T).T),
    case("linear_scan", complexes(3), complexes(3), axis=0, expect=recurrence),
    case("linear_scan", floats(9), floats(9), axis=0, order=1, expect=recurrence),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def slope(f, x, g=None):
    x = tw.constant(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, output_gradients=g).numpy()


def test_a_long_product_is_the_same_by_doubling_and_step_by_step():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.8, 1.2, (400, 300)) * rng.choice([-1.0, 1.0], (400, 300))
    wide = slope(tw.math.cumprod, x)  # enough rows to go step by step
    narrow = np.stack([slope(tw.math.cumprod, x[:, i]) for i in (0, 150, 299)], 1)
    np.testing.assert_allclose(wide[:, [0, 150, 299]], narrow, rtol=1e-9, atol=1e-12)


def test_a_zero_in_a_product_leaves_the_slopes_of_tensorflow_s_formula_behind():
    # The derivatives of 2, 2 * 0, 2 * 0 * 3 summed, by hand; TensorFlow gives NaN.
    assert slope(tw.math.cumprod, [2.0, 0.0, 3.0]).tolist() == [1.0, 8.0, 0.0]


@pytest.mark.parametrize("shape", [(600,), (20, 600)])
def test_a_zero_cotangent_of_a_product_that_overflows_gives_zero(shape):
    x = np.full(shape, 1e3, np.float32).T
    assert not slope(tw.math.cumprod, x, tw.zeros(x.shape)).any()


def test_a_running_logsumexp_does_not_overflow():
    result = tw.math.cumulative_logsumexp([1e4, 1e4, -1e4]).numpy()
    np.testing.assert_allclose(
        result, [1e4, 1e4 + np.log(2), 1e4 + np.log(2)], rtol=1e-7
    )
    assert slope(tw.math.cumulative_logsumexp, [1e4, -1e4]).tolist() == [2.0, 0.0]


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_minus_infinity_adds_nothing_and_has_no_slope(exclusive, reverse):
    x = np.full(3, -np.inf)
    how = {"exclusive": exclusive, "reverse": reverse}
    assert (tw.math.cumulative_logsumexp(x, **how).numpy() == -np.inf).all()
    assert slope(lambda x: tw.math.cumulative_logsumexp(x, **how), x).tolist() == [
        0,
        0,
        0,
    ]


def test_leading_minus_infinities_leave_the_slopes_of_the_rest_right_at_every_order():
    x = tw.constant([-np.inf, -np.inf, 0.5, 1.0], tw.float64)
    with tw.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.math.cumulative_logsumexp(x)[3]
        g = tape.gradient(y, x)
    p = 1 / (1 + np.exp(-0.5))  # the share of the last entry
    np.testing.assert_allclose(g.numpy(), [0, 0, 1 - p, p], rtol=1e-12)
    second = outer.jacobian(g, x).numpy()
    wanted = np.zeros((4, 4))
    wanted[2:, 2:] = p * (1 - p) * np.array([[1, -1], [-1, 1]])
    np.testing.assert_allclose(second, wanted, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at", [0.0, 90.0, 800.0])
@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_a_running_logsumexp_do_not_overflow(at, reverse, dtype):
    # log(exp(a) + exp(a + 1)), whose derivatives by the second are those of the sigmoid
    entries = [at, at + 1, -np.inf]
    entries = entries[::-1] if reverse else entries
    x = [tw.constant(v, dtype) for v in entries]
    tapes = [tw.GradientTape() for _ in range(3)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x[1])
    y = tw.reduce_sum(
        tw.math.cumulative_logsumexp(tw.stack(x), reverse=reverse) * [1.0, 2.0, 4.0]
    )
    found = []
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        y = tape.gradient(y, x[1])
        found.append(y.numpy())
    s = 1 / (1 + np.exp(-1.0))
    weight = 3.0 if reverse else 6.0  # of the places that count both
    wanted = weight * np.array([s, s * (1 - s), s * (1 - s) * (1 - 2 * s)])
    np.testing.assert_allclose(
        found, wanted, rtol=1e-12 if dtype == np.float64 else 3e-4
    )


def test_an_exclusive_running_logsumexp_starts_with_minus_infinity():
    x = [1.0, 2.0, 3.0]  # as TensorFlow gives it
    result = tw.math.cumulative_logsumexp(x, exclusive=True).numpy()
    np.testing.assert_allclose(result, [-np.inf, 1.0, 2.3132617], rtol=1e-6)


@pytest.mark.parametrize("scan", [tw.cumsum, tw.math.cumprod])
@pytest.mark.parametrize("dtype", ["int32", "float16", "uint8", "complex64"])
def test_a_scan_keeps_the_dtype(scan, dtype):
    x = tw.cast([1, 2, 3], dtype)
    assert scan(x).dtype == scan(x, exclusive=True).dtype == dtype


@pytest.mark.parametrize("scan", [tw.cumsum, tw.math.cumprod,
                                  tw.math.cumulative_logsumexp])  # fmt: skip
def test_what_has_no_such_axis_is_refused(scan):
    with pytest.raises(ValueError, match="axis .*-2.*1.*rank 2.*got 2"):
        scan(tw.zeros((2, 3)), axis=2)
    with pytest.raises(ValueError, match="scalar has no axis 0"):
        scan(1.0)


@pytest.mark.parametrize("scan", [tw.cumsum, tw.math.cumprod,
                                  tw.math.cumulative_logsumexp])  # fmt: skip
def test_booleans_are_refused(scan):
    with pytest.raises(tw.errors.DTypeError, match="use, for example, tw.cast"):
        scan(tw.constant([True, False]))


def test_a_logsumexp_of_integers_is_refused():
    with pytest.raises(tw.errors.DTypeError, match="x .*floating"):
        tw.math.cumulative_logsumexp([1, 2])


def test_a_matrix_of_scans_stays_diagonal_beside_its_axis():
    x = tw.constant(np.arange(1.0, 7.0).reshape(2, 3))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.math.cumprod(tw.cumsum(x, axis=1), axis=1)
    found = tape.batch_jacobian(y, x).numpy()
    step = 1e-6
    for k in range(3):
        moved = x.numpy() + step * np.eye(3)[k]
        back = x.numpy() - step * np.eye(3)[k]
        wanted = [np.cumprod(np.cumsum(v, 1), 1) for v in (moved, back)]
        wanted = (wanted[0] - wanted[1]) / (2 * step)
        np.testing.assert_allclose(found[:, :, k], wanted, rtol=1e-6)
