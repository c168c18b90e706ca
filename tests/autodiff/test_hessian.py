"""tape.hessian: second derivatives by one source and by several, as blocks or one matrix."""

import inspect
import tracemalloc

import numpy as np
import pytest

import tapewright as tw


def weights(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def network(seed=0):
    """Variables of a small network, and its loss."""
    w1 = tw.Variable(weights(3, 4, seed=seed))
    b1 = tw.Variable(weights(4, seed=seed + 1))
    w2 = tw.Variable(weights(4, 2, seed=seed + 2))
    x, y = weights(6, 3, seed=seed + 3), weights(6, 2, seed=seed + 4)

    def loss():
        return tw.reduce_mean((tw.matmul(tw.tanh(tw.matmul(x, w1) + b1), w2) - y) ** 2)

    return [w1, b1, w2], loss


def by_two_tapes(variables, loss):
    """The same blocks, entry by entry, from nested tapes."""
    with tw.GradientTape(persistent=True) as outer:
        with tw.GradientTape() as inner:
            value = loss()
        gradients = inner.gradient(value, variables)
    return [
        [
            outer.jacobian(g, v, unconnected_gradients="zero",
                           experimental_use_pfor=False)
            for v in variables
        ]
        for g in gradients
    ]  # fmt: skip


def test_the_hessian_of_a_cubic_form():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = x[0] * x[1] * x[2]
    np.testing.assert_array_equal(tape.hessian(y, x), [[0, 3, 2], [3, 0, 1], [2, 1, 0]])


def test_one_source_gives_its_shape_twice():
    x = tw.constant(weights(2, 3))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.reduce_sum(x**3)
    h = tape.hessian(y, x)
    assert h.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(np.reshape(h, (6, 6)), np.diag(6 * x.numpy().ravel()))


def test_several_sources_give_blocks_in_their_nest():
    variables, loss = network()
    with tw.GradientTape() as tape:
        value = loss()
    blocks = tape.hessian(value, variables)
    expected = by_two_tapes(variables, loss)
    for i, first in enumerate(variables):
        for j, second in enumerate(variables):
            assert blocks[i][j].shape == first.shape + second.shape
            np.testing.assert_allclose(blocks[i][j], expected[i][j], atol=1e-12)


def test_a_dict_of_sources_gives_a_dict_of_dicts():
    x, y = tw.Variable(2.0), tw.Variable([1.0, 3.0])
    with tw.GradientTape() as tape:
        z = x * x * tw.reduce_sum(y)
    h = tape.hessian(z, {"x": x, "y": y})
    assert float(h["x"]["x"]) == 8.0
    np.testing.assert_array_equal(h["x"]["y"], [4.0, 4.0])
    np.testing.assert_array_equal(h["y"]["x"], [4.0, 4.0])
    np.testing.assert_array_equal(h["y"]["y"], np.zeros((2, 2)))


def test_flat_gives_the_matrix_over_the_entries_of_all():
    variables, loss = network()
    with tw.GradientTape() as tape:
        value = loss()
    matrix = tape.hessian(value, variables, flat=True)
    _, unravel = tw.autodiff.ravel(variables)
    expected = [
        tw.autodiff.ravel(
            tw.autodiff.hvp(lambda *_: loss(), variables, unravel(tw.constant(unit)))
        )[0]
        for unit in np.eye(24)
    ]
    np.testing.assert_allclose(matrix, np.stack(expected), atol=1e-12)
    np.testing.assert_allclose(matrix, np.transpose(matrix), atol=1e-14)


def test_a_newton_step_solves_a_quadratic_at_once():
    a, b = tw.Variable(weights(3, 2)), tw.Variable(weights(2))
    x, y = weights(9, 3, seed=5), weights(9, 2, seed=6)
    with tw.GradientTape(persistent=True) as tape:
        loss = tw.reduce_sum((tw.matmul(x, a) + b - y) ** 2)
    g, unravel = tw.autodiff.ravel(tape.gradient(loss, [a, b]))
    h = tape.hessian(loss, [a, b], flat=True)
    step = tw.linalg.solve(h, g[:, None])[:, 0]
    for variable, change in zip([a, b], unravel(step), strict=True):
        variable.assign_sub(change)
    full = np.column_stack([x, np.ones(9)])
    best, *_ = np.linalg.lstsq(full, y, rcond=None)
    np.testing.assert_allclose(a, best[:3], atol=1e-12)
    np.testing.assert_allclose(b, best[3], atol=1e-12)


def test_a_source_that_is_linear_has_zeros_and_an_unrelated_one_none():
    x, y, z = tw.Variable([1.0, 2.0]), tw.Variable(3.0), tw.Variable(4.0)
    with tw.GradientTape(persistent=True) as tape:
        value = tw.reduce_sum(x * x) + y
    h = tape.hessian(value, [x, y, z])
    np.testing.assert_array_equal(h[0][0], 2 * np.eye(2))
    np.testing.assert_array_equal(h[0][1], [0.0, 0.0])
    assert float(h[1][1]) == 0.0
    assert h[2][2] is h[0][2] is h[2][0] is None
    zero = tape.hessian(value, [x, y, z], unconnected_gradients="zero")
    np.testing.assert_array_equal(zero[0][2], [0.0, 0.0])
    np.testing.assert_array_equal(
        tape.hessian(value, [x, z], flat=True), np.diag([2.0, 2.0, 0.0])
    )


def test_a_target_that_depends_on_nothing():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        value = tw.constant(1.0) * 2.0
    assert tape.hessian(value, x) is None
    np.testing.assert_array_equal(tape.hessian(value, x, flat=True), np.zeros((2, 2)))


def test_rows_picked_from_a_table():
    table = tw.Variable(weights(3, 2))
    with tw.GradientTape() as tape:
        value = tw.reduce_sum(tw.gather(table, [0, 2, 0]) ** 3)
    counts = np.repeat([2.0, 0.0, 1.0], 2)
    h = np.reshape(tape.hessian(value, table), (6, 6))
    np.testing.assert_allclose(h, np.diag(6 * counts * table.numpy().ravel()))


def test_through_a_custom_gradient():
    @tw.custom_gradient
    def softplus(x):
        e = tw.exp(x)
        return tw.math.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    x = tw.Variable([0.3, -0.2])
    with tw.GradientTape() as tape:
        value = tw.reduce_sum(softplus(x))
    s = 1 / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(tape.hessian(value, x), np.diag(s * (1 - s)), rtol=1e-6)


def test_under_an_outer_tape_it_has_derivatives():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as outer:
        with tw.GradientTape() as tape:
            value = tw.reduce_sum(x**4)
        h = tape.hessian(value, x)
        total = tw.reduce_sum(h)
    np.testing.assert_allclose(outer.gradient(total, x), 24 * x.numpy())


def test_under_an_accumulator_it_has_a_tangent():
    x = tw.Variable([1.0, 2.0])
    with tw.autodiff.ForwardAccumulator(x, [1.0, 0.0]) as acc:
        with tw.GradientTape() as tape:
            value = tw.reduce_sum(x**4)
        h = tape.hessian(value, x)
    np.testing.assert_allclose(acc.jvp(h), np.diag([24.0, 0.0]))


@pytest.mark.parametrize("bound", [{"parallel_iterations": 2}, {"memory_limit": 500}])
def test_in_chunks_it_is_the_same(bound):
    variables, loss = network()
    with tw.GradientTape(persistent=True) as tape:
        value = loss()
    whole = tape.hessian(value, variables, flat=True)
    np.testing.assert_allclose(
        tape.hessian(value, variables, flat=True, **bound), whole, atol=1e-14
    )


def test_the_tape_keeps_nothing_of_it():
    variables, loss = network()
    with tw.GradientTape(persistent=True) as tape:
        value = loss()
    before = tape.summary().nbytes
    first = tape.hessian(value, variables, flat=True)
    assert tape.summary().nbytes == before
    np.testing.assert_array_equal(tape.hessian(value, variables, flat=True), first)
    assert all(g is not None for g in tape.gradient(value, variables))


def test_a_tape_that_is_not_persistent_is_spent():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        y = x**3
    assert float(tape.hessian(y, x)) == 12.0
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(y, x)


def test_memory_follows_its_limit(device):
    if device != "cpu":
        pytest.skip("tracemalloc sees host memory")
    x = tw.Variable(weights(40, 40))
    m = weights(40, 40, seed=1)
    excess = {}
    for limit in (None, 2_000_000):
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.tanh(tw.matmul(tw.tanh(tw.matmul(m, x)), x)) ** 2)
        tracemalloc.start()
        h = tape.hessian(y, x, memory_limit=limit)
        excess[limit] = tracemalloc.get_traced_memory()[1] - h.numpy().nbytes
        tracemalloc.stop()
    assert excess[None] > 10_000_000
    assert excess[2_000_000] < 3_000_000


def test_the_target_must_be_one_number():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = x * x
    with pytest.raises(ValueError, match="target .*one entry"):
        tape.hessian(y, x)


def test_one_matrix_needs_one_dtype():
    x, y = tw.Variable(1.0), tw.Variable(np.float64(1.0))
    with tw.GradientTape() as tape:
        z = tw.cast(x, "float64") * y
    with pytest.raises(TypeError, match="one dtype"):
        tape.hessian(z, [x, y], flat=True)


def test_additions_to_tensorflow_do_not_show_in_signatures():
    for method in ("jacobian", "batch_jacobian"):
        names = inspect.signature(getattr(tw.GradientTape, method)).parameters
        assert "memory_limit" not in names and "check" not in names
