"""Derivatives of factorizations where eigenvalues or singular values coincide.

The references are functions of the same matrices without a factorization: powers, the
exponential, the trace of powers, and difference quotients of NumPy's factorizations.
"""

import functools

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.test import case, check_op, complexes, floats

pytestmark = pytest.mark.usefixtures("few_passes")

RNG = np.random.default_rng(5)
TURN = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
OTHER = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
COMPLEX_TURN = np.linalg.qr(RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4)))[0]


def turned(values, by):
    return (by * np.array(values)) @ by.conj().T


HERMITIAN = {
    "unit": np.eye(3),
    "zeros": np.zeros((3, 3)),
    "three of four": turned([1.0, 1.0, 1.0, 2.0], TURN),
    "two pairs": turned([-1.0, -1.0, 2.0, 2.0], TURN),
    "complex unit": np.eye(3) + 0j,
    "complex": turned([1.0, 1.0, 1.0, 2.0], COMPLEX_TURN),
    "batch": np.stack([np.eye(3), np.diag([1.0, 2.0, 3.0]), turned([2, 2, 1], OTHER)]),
}
ANY = {
    "unit": np.eye(3),
    "zeros": np.zeros((3, 3)),
    "tall zeros": np.zeros((4, 2)),
    "wide zeros": np.zeros((2, 4)),
    "a pair": (TURN[:, :3] * [2.0, 2.0, 1.0]) @ OTHER,
    "rank 1": (TURN[:, :3] * [2.0, 0.0, 0.0]) @ OTHER,
    "exact rank 1": np.diag([2.0, 0.0, 0.0]),
    "tall rank 2": np.eye(4)[:, :3] * [2.0, 2.0, 0.0],
    "complex": COMPLEX_TURN[:, :3] * [2.0, 2.0, 1.0],
    "complex zeros": np.zeros((3, 2)) + 0j,
    "batch": np.stack([np.eye(3), np.diag([1.0, 2.0, 3.0]), np.zeros((3, 3))]),
}


GAPS = np.array([[9.0, 1.0, 3.0], [-1.0, 9.0, 2.0], [-3.0, -2.0, 9.0]])
NAMES = {"who": "eigh", "values": "eigenvalues", "strict": True}
CASES = [
    case("over_gaps", floats(3, 3), floats(3, 3), floats(1, 3), GAPS, **NAMES,
         expect=lambda part, along, slopes, gaps: part / gaps),
    case("over_gaps", complexes(3, 3), complexes(3, 3), floats(1, 3), GAPS + 0j, **NAMES,
         expect=lambda part, along, slopes, gaps: part / gaps),
    case("over_gaps_turned", floats(3, 3), GAPS, strict=True, expect=np.divide),
    case("over_gaps_turned", complexes(3, 3), GAPS + 0j, strict=True, expect=np.divide),
    case("unless_turned", floats(3, 3), np.float64(-1), who="eigh", values="eigenvalues",
         order=2, expect=lambda part, excess: part),
    case("counting_derivatives", floats(3, 3), floats(3, 3), who="eigh", left=3, order=2,
         expect=lambda g, part: g),
    case("unknown_order", np.zeros((3, 3)), who="eigh", order=0, expect=lambda g: g),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def adjoint(x):
    return tw.linalg.adjoint(x)


def as_read(x):
    """The Hermitian matrix of the lower triangle, which is all that eigh reads."""
    lower = tw.linalg.band_part(x, -1, 0)
    diagonal = tw.cast(tw.math.real(tw.linalg.diag_part(x)), x.dtype)
    return lower + adjoint(lower) - tw.linalg.diag(diagonal)


def by_eigh(f):
    def function(x):
        e, v = tw.linalg.eigh(x)
        return tw.matmul(v * f(e)[..., None, :], v, adjoint_b=True)

    return function


def by_svd(f, full_matrices=False):
    def function(x):
        s, u, v = tw.linalg.svd(x, full_matrices)
        u, v = u[..., : s.shape[-1]], v[..., : s.shape[-1]]
        return tw.matmul(u * tw.cast(f(s), u.dtype)[..., None, :], v, adjoint_b=True)

    return function


def cube(x):
    return tw.matmul(tw.matmul(x, x, adjoint_b=True), x)


def trace_of_fourth_power(x):
    square = tw.matmul(x, x, adjoint_a=True)
    return tw.linalg.trace(tw.matmul(square, square))


def derivative(f, x, order):
    return gradient(f, tw.constant(x), order).numpy()


def gradient(f, x, order):
    """The gradient of ``f`` along a random direction, ``order`` - 1 times."""

    def direction(like):
        random, shape = np.random.default_rng(1), tuple(like.shape)
        made = random.normal(size=shape)
        if like.dtype.is_complex:
            made = made + 1j * random.normal(size=shape)
        return tw.constant(made, like.dtype)

    def along(y):
        return tw.reduce_sum(tw.math.real(tw.math.conj(direction(y)) * y))

    def lower(k):
        if k == 0:
            return along(f(x))
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = lower(k - 1)
        g = tape.gradient(y, x)
        return g if k == order else along(g)

    return lower(order)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", HERMITIAN)
def test_a_function_by_eigenvalues_is_smooth_where_they_coincide(name, order):
    x = HERMITIAN[name]
    expected = derivative(lambda x: tw.linalg.expm(as_read(x)), x, order)
    found = derivative(by_eigh(tw.exp), x, order)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", ANY)
def test_an_odd_function_by_singular_values_is_smooth_where_they_coincide(
    name, order, full_matrices
):
    expected = derivative(cube, ANY[name], order)
    found = derivative(by_svd(lambda s: s**3, full_matrices), ANY[name], order)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ANY)
def test_a_matrix_is_restored_from_its_singular_values(name):
    expected = derivative(tw.identity, ANY[name], 1)
    found = derivative(by_svd(tw.identity), ANY[name], 1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", HERMITIAN)
def test_sums_of_powers_of_eigenvalues_are_traces(name, order):
    def powers(x):
        return tw.reduce_sum(tw.math.real(tw.linalg.eigvalsh(x)) ** 4, -1)

    def trace(x):
        return tw.math.real(trace_of_fourth_power(as_read(x)))

    x = HERMITIAN[name]
    expected = derivative(trace, x, order)
    np.testing.assert_allclose(derivative(powers, x, order), expected, atol=1e-10)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", ANY)
def test_sums_of_powers_of_singular_values_are_traces(name, order):
    def powers(x):
        return tw.reduce_sum(tw.linalg.svd(x, compute_uv=False) ** 4, -1)

    def trace(x):
        return tw.math.real(trace_of_fourth_power(x))

    expected = derivative(trace, ANY[name], order)
    np.testing.assert_allclose(
        derivative(powers, ANY[name], order), expected, atol=1e-10
    )


def test_float32_finds_coinciding_values_too():
    x = HERMITIAN["two pairs"]
    expected = derivative(lambda x: tw.linalg.expm(as_read(x)), x, 1)
    found = derivative(by_eigh(tw.exp), x.astype("float32"), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_jacobians_and_hessians_know_coinciding_eigenvalues():
    x = tw.constant(np.eye(2))
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = by_eigh(tw.exp)(x)
        squares = tw.reduce_sum(tw.linalg.eigvalsh(x) ** 2)
        rows = by_eigh(tw.exp)(x[None])
    jacobian = np.zeros((2, 2, 2, 2))
    jacobian[0, 0, 0, 0] = jacobian[1, 1, 1, 1] = np.e
    jacobian[0, 1, 1, 0] = jacobian[1, 0, 1, 0] = np.e
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), jacobian, atol=1e-14)
    np.testing.assert_allclose(tape.jacobian(rows, x).numpy()[0], jacobian, atol=1e-14)
    hessian = tape.hessian(squares, x).numpy().reshape(4, 4)
    np.testing.assert_allclose(hessian, np.diag([2.0, 0.0, 4.0, 2.0]), atol=1e-14)


def test_examples_of_a_batch_have_jacobians_of_their_own():
    x = tw.constant(np.stack([np.eye(2), np.diag([0.0, 1.0])]))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = by_eigh(tw.exp)(x)
    found = tape.batch_jacobian(y, x).numpy()
    np.testing.assert_allclose(found[0, 0, 1, 1, 0], np.e, rtol=1e-14)
    np.testing.assert_allclose(found[1, 0, 1, 1, 0], np.e - 1, rtol=1e-14)


@pytest.mark.parametrize("x", [np.eye(3), np.zeros((3, 3)), turned([1, 1, 2], OTHER)])
def test_a_function_of_a_function_of_a_matrix(x):
    """Both factorizations have coinciding values."""

    def twice(x):
        return by_eigh(tw.exp)(as_read(by_eigh(lambda e: e * e)(x)))

    def expected(x):
        x = as_read(x)
        return tw.linalg.expm(tw.matmul(x, x))

    expected = derivative(expected, x, 1)
    np.testing.assert_allclose(derivative(twice, x, 1), expected, atol=1e-12)


def test_values_and_vectors_may_come_from_several_calls():
    def function(x):
        e = tw.linalg.eigvalsh(x)
        v, other = tw.linalg.eigh(x)[1], tw.linalg.eigh(x)[1]
        return tw.matmul(v * tw.exp(e)[..., None, :], other, adjoint_b=True)

    for x in (HERMITIAN["unit"], HERMITIAN["two pairs"]):
        for order in (1, 2):
            expected = derivative(lambda x: tw.linalg.expm(as_read(x)), x, order)
            np.testing.assert_allclose(
                derivative(function, x, order), expected, atol=1e-11
            )


def test_gathered_eigenvalues_have_sparse_cotangents():
    def function(x):
        e, v = tw.linalg.eigh(x)
        return tw.matmul(
            v * tw.gather(e, [0, 1, 2]), tw.gather(v, [0, 1, 2]), adjoint_b=True
        )

    expected = derivative(as_read, np.eye(3), 1)
    np.testing.assert_allclose(derivative(function, np.eye(3), 1), expected, atol=1e-14)


def test_arrays_of_a_gpu_have_the_same_derivatives(strict):
    x, weights = turned([1.0, 1.0, 2.0], OTHER), RNG.normal(size=(3, 3))
    found = []
    for module in (np, strict):
        with devices.use_module(module):
            a = tw.constant(x)
            for f in (by_eigh(tw.exp), by_svd(tw.sin)):
                with tw.GradientTape() as tape:
                    tape.watch(a)
                    y = tw.reduce_sum(f(a) * weights)
                found.append(tape.gradient(y, a).numpy())
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-12)


def test_mapped_functions_raise_or_are_exact():
    def gradient(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.linalg.trace(by_eigh(tw.exp)(x))
        return tape.gradient(y, x)

    apart = np.stack([np.diag([1.0, 2.0]), np.diag([2.0, 3.0])])
    found = tw.vectorized_map(gradient, tw.constant(apart)).numpy()
    np.testing.assert_allclose(found, np.exp(apart) * np.eye(2))
    with pytest.raises(ValueError, match="eigh: where eigenvalues coincide"):
        tw.vectorized_map(gradient, tw.constant(np.stack([np.eye(2)] * 2)))


def by_eig(x):
    e, v = tw.linalg.eig(x)
    return tw.math.real(tw.matmul(v * tw.exp(e), tw.linalg.inv(v)))


def test_limits_of_eig_are_unknown_and_raise():
    with pytest.raises(ValueError, match="eig: where eigenvalues coincide"):
        derivative(by_eig, np.eye(2), 1)
    with pytest.raises(ValueError, match="eig: where eigenvalues coincide"):
        derivative(lambda x: tw.math.real(tw.linalg.eigvals(x) ** 2), np.eye(2), 2)
    trace = derivative(
        lambda x: tw.math.real(tw.reduce_sum(tw.linalg.eigvals(x))), np.eye(2), 1
    )
    assert (trace / trace[0, 0] == np.eye(2)).all()


def on_the_tape(f, order):
    return lambda x: gradient(f, x, order)


TRACED = {
    "tape in the function": lambda f, order: tw.function(on_the_tape(f, order)),
    "function on the tape": lambda f, order: on_the_tape(tw.function(f), order),
    "gradient of a function of a gradient": lambda f, order: on_the_tape(
        tw.function(on_the_tape(f, 1)), order - 1
    ),
}


def once_for_each_spec(make):
    """``of(array)``: what ``make()`` returned for the first array of its shape and dtype."""
    made = functools.cache(lambda shape, dtype: make())
    return lambda array: made(array.shape, array.dtype)


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("order, how", [
    (1, "tape in the function"), (1, "function on the tape"), (2, "function on the tape"),
    (2, "gradient of a function of a gradient"),
])  # fmt: skip
def test_traced_functions_find_the_limit_where_values_coincide(order, how, target):
    cases = [
        (by_eigh(tw.exp), lambda x: tw.linalg.expm(as_read(x)), HERMITIAN),
        (by_svd(lambda s: s**3), cube, ANY),
    ]
    with tw.config.use_target(target):
        for f, reference, matrices in cases:
            traced = once_for_each_spec(lambda f=f: TRACED[how](f, order))
            for x in matrices.values():
                found = traced(x)(tw.constant(x)).numpy()
                expected = derivative(reference, x, order)
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def by_values(f, kind):
    """The sum of a function of eigenvalues, or of singular values."""

    def function(x):
        values = tw.linalg.eigvalsh(x) if kind == "eigh" else singular_values(x)
        return tw.reduce_sum(f(tw.math.real(values)), -1)

    return function


def singular_values(x):
    return tw.linalg.svd(x, compute_uv=False)


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("kind", ["eigh", "svd"])
def test_functions_of_values_alone_find_the_limit_on_a_tape(kind, order, target):
    read = (lambda x: x) if kind == "svd" else as_read
    traced = once_for_each_spec(lambda: tw.function(by_values(lambda x: x**4, kind)))

    def reference(x):
        return tw.math.real(trace_of_fourth_power(read(x)))

    with tw.config.use_target(target):
        for x in (HERMITIAN if kind == "eigh" else ANY).values():
            found = gradient(traced(x), tw.constant(x), order).numpy()
            expected = derivative(reference, x, order)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
def test_a_branch_with_values_alone_finds_the_limit(order):
    f = by_values(lambda x: x**4, "eigh")
    x = HERMITIAN["two pairs"]

    def branched(x):
        big = tw.linalg.trace(x) > 0.0
        return tw.cond(big, lambda: f(x), lambda: tw.reduce_sum(x))

    traced = tw.function(lambda x: gradient(branched, x, order))
    expected = derivative(lambda x: trace_of_fourth_power(as_read(x)), x, order)
    np.testing.assert_allclose(traced(tw.constant(x)).numpy(), expected, atol=1e-10)
    found = gradient(tw.function(branched), tw.constant(x), order).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_a_trace_for_distinct_values_serves_for_coinciding_ones(target):
    apart, equal = np.diag([1.0, 2.0, 3.0]), np.eye(3)
    with tw.config.use_target(target):
        traced = tw.function(lambda x: gradient(by_eigh(tw.exp), x, 1))
        for x in (apart, equal, turned([2.0, 2.0, 1.0], OTHER), apart):
            expected = derivative(lambda x: tw.linalg.expm(as_read(x)), x, 1)
            np.testing.assert_allclose(traced(tw.constant(x)).numpy(), expected, 1e-12)
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("f", [
    lambda x: tw.cond(tw.linalg.trace(x) > 0.0, lambda: by_eigh(tw.exp)(x), lambda: x),
    lambda x: by_eigh(tw.exp)(x) + by_svd(tw.sin)(as_read(x) * 2.0),
    lambda x: tw.matmul(by_eigh(tw.exp)(x), by_eigh(tw.sin)(x * 2.0)),
    lambda x: tw.matmul(tw.linalg.eigh(x)[1] * tw.exp(tw.linalg.eigvalsh(x)),
                        tw.linalg.eigh(x)[1], adjoint_b=True),
    lambda x: by_eigh(tw.exp)(x) + tw.reduce_sum(tw.linalg.eigvalsh(x) ** 2),
], ids=["in a branch", "a sum", "a product", "several calls", "values alone"])  # fmt: skip
def test_traced_functions_of_several_factorizations_find_the_limit(f, target):
    x = turned([1.0, 1.0, 3.0], OTHER)
    expected = derivative(f, x, 1)
    with tw.config.use_target(target):
        traced = tw.function(lambda x: gradient(f, x, 1))
        np.testing.assert_allclose(traced(tw.constant(x)).numpy(), expected, rtol=1e-10)


def test_a_loop_of_a_traced_function_finds_the_limit():
    def function(x, count):
        for _ in tw.range(count):
            x = by_eigh(tw.exp)(x) * 0.5
        return x

    x, count = HERMITIAN["two pairs"], tw.constant(2)
    expected = derivative(lambda x: function(x, count), x, 1)
    traced = tw.function(lambda x, n: gradient(lambda x: function(x, n), x, 1))
    np.testing.assert_allclose(traced(tw.constant(x), count).numpy(), expected, 1e-10)


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_the_sum_of_squared_eigenvalues_has_two_derivatives_in_a_traced_function(
    target,
):
    def squares(x):
        return tw.reduce_sum(tw.linalg.eigvalsh(x) ** 2)

    expected = derivative(lambda x: tw.reduce_sum(as_read(x) ** 2), np.eye(3), 2)
    with tw.config.use_target(target):
        traced = tw.function(lambda x: gradient(squares, x, 2))
        found = traced(tw.constant(np.eye(3))).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def twice_by_eigh(x):
    return by_eigh(tw.exp)(as_read(by_eigh(tw.exp)(x)))


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("f, order", [
    (by_eigh(tw.exp), 2), (by_svd(tw.exp), 2), (twice_by_eigh, 1), (by_eig, 1),
], ids=["eigh", "svd", "a function of a function", "eig"])  # fmt: skip
def test_traced_functions_raise_where_a_limit_is_unknown(f, order, target, device):
    if device != "cpu" and target == "numpy":
        pytest.skip("functions are not compiled: they give the limit")
    x = tw.constant([[1.0, 0.5], [0.5, 2.0]], "float64")
    with tw.config.use_target(target):
        traced = tw.function(lambda x: gradient(f, x, order))
        expected = derivative(f, x, order)
        np.testing.assert_allclose(traced(x).numpy(), expected, rtol=1e-10)
        with pytest.raises(ValueError, match="where .* coincide"):
            traced(tw.constant(np.eye(2)))


def test_a_trace_for_any_batch_raises_where_values_coincide():
    spec = tw.TensorSpec([None, 3, 3], "float64")
    traced = tw.function(
        lambda x: gradient(lambda x: tw.reduce_sum(by_eigh(tw.exp)(x), 0), x, 1),
        input_signature=[spec],
    )
    apart = tw.constant(np.stack([np.diag([1.0, 2.0, 3.0])] * 2))
    assert np.isfinite(traced(apart).numpy()).all()
    with pytest.raises(ValueError, match="for known sizes"):
        traced(tw.constant(np.stack([np.eye(3)] * 2)))


def test_third_derivatives_by_functions_of_gradients_raise():
    first = tw.function(lambda x: gradient(by_eigh(tw.exp), x, 1))
    with pytest.raises(ValueError, match="up to the second order"):
        gradient(first, tw.constant(np.eye(2)), 2)


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_traced_functions_know_what_has_no_limit_to_miss(target):
    """Sums of functions of eigenvalues, projectors, zero cotangents, unused vectors."""

    def gradient(x, weight):
        with tw.GradientTape() as tape:
            tape.watch(x)
            v = tw.linalg.eigh(x)[1][:, :2]
            y = tw.reduce_sum(tw.linalg.eigvalsh(x) ** 2)
            y += tw.reduce_sum(tw.matmul(v, v, adjoint_b=True)) * weight
        return tape.gradient(y, x)

    x = tw.constant(np.diag([1.0, 1.0, 3.0]))
    with tw.config.use_target(target):
        traced = tw.function(lambda x: gradient(x, 0.0))
        np.testing.assert_allclose(traced(x).numpy(), np.diag([2.0, 2.0, 6.0]))


def test_the_projector_on_all_vectors_of_a_value_is_smooth():
    def projector(x):
        v = tw.linalg.eigh(x)[1][:, :2]
        return tw.matmul(v, v, adjoint_b=True)

    def expected(x):  # of the eigenvalues 1, 1 and 3, the first derivative
        return (as_read(x) - 3 * np.eye(3)) / -2

    x = turned([1.0, 1.0, 3.0], OTHER)
    weights = derivative(expected, x, 1)
    found = derivative(projector, x, 1)
    steps = np.eye(9).reshape(9, 3, 3) * 1e-6
    random = np.random.default_rng(1).normal(size=(3, 3))

    def value(x):
        v = np.linalg.eigh(x)[1][:, :2]
        return np.sum(v @ v.T * random)

    slopes = [(value(x + s) - value(x - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(found, np.reshape(slopes, (3, 3)), atol=1e-8)
    assert found.shape == weights.shape


NO_DERIVATIVE = {
    "an entry of an eigenvector": lambda x: tw.linalg.eigh(x)[1][0, 0],
    "an entry beside": lambda x: tw.linalg.eigh(x)[1][0, 1],
    "a projector on one of two": lambda x: tw.linalg.eigh(x)[1][:, 0] * np.arange(2.0),
    "a singular vector": lambda x: tw.linalg.svd(x)[1][0, 0],
    "values and vectors": lambda x: tw.linalg.eigh(x)[0] * tw.linalg.eigh(x)[1][1],
}


@pytest.mark.parametrize("name", NO_DERIVATIVE)
def test_a_result_that_depends_on_the_basis_has_no_derivative(name):
    x = tw.constant(np.eye(2))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = NO_DERIVATIVE[name](x)
    with pytest.raises(ValueError, match="(eigh|svd): where .* values coincide|eigenv"):
        tape.gradient(y, x)


def test_a_zero_cotangent_gives_a_zero_gradient():
    x = tw.constant(np.zeros((2, 3, 3)))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.linalg.eigh(x)[1] * tw.zeros((2, 3, 3), "float64")
    assert not tape.gradient(y, x).numpy().any()


def test_what_is_not_known_raises():
    x = np.eye(2)
    with pytest.raises(ValueError, match="up to the second order"):
        derivative(by_eigh(tw.exp), x, 3)
    with tw.autodiff.ForwardAccumulator(
        x := tw.constant(x), tw.ones((2, 2), "float64")
    ) as forward:
        y = by_eigh(tw.exp)(x)
    assert np.isnan(forward.jvp(y).numpy()).any()


def test_vectors_that_no_result_uses_may_belong_to_coinciding_values():
    """The first component of a matrix of rank 1, whose other eigenvalues are 0."""

    def first(x):
        e, v = tw.linalg.eigh(x)
        return e[-1] * v[:, -1:] * v[:, -1]

    a = OTHER[:, :1]
    x = 2.0 * a @ a.T
    random = np.random.default_rng(1).normal(size=(3, 3))

    def value(x):
        e, v = np.linalg.eigh(x)
        return np.sum(e[-1] * np.outer(v[:, -1], v[:, -1]) * random)

    steps = np.eye(9).reshape(9, 3, 3) * 1e-6
    slopes = [(value(x + s) - value(x - s)) / 2e-6 for s in steps]
    found = derivative(first, x, 1)
    np.testing.assert_allclose(found, np.reshape(slopes, (3, 3)), atol=1e-8)
