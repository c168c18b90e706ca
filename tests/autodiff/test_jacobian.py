"""`jacobian`: one batched walk against one walk an entry.

The vectorized Jacobian of a program must equal the sequential one, which is made of
plain gradients, whatever structure the walk finds and however it is cut into chunks.
"""

import math
import tracemalloc

import numpy as np
import pytest

import tapewright as tw

from .jacobian_programs import PROGRAMS, B, jacobians, random_program, weights

# ------------------------------------------------------------------------------ by hand


def test_the_jacobian_of_a_square_is_diagonal():
    x = tw.constant([1.0, 2.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_allclose(tape.jacobian(y, x), [[2.0, 0.0], [0.0, 4.0]])


def test_the_jacobian_of_a_matrix_product_is_the_matrix():
    a, x = weights(3, 2), tw.Variable(weights(2, 1))
    with tw.GradientTape() as tape:
        y = tw.matmul(a, x)
    j = tape.jacobian(y, x)
    assert j.shape == (3, 1, 2, 1)
    np.testing.assert_allclose(j[:, 0, :, 0], a)


def test_a_scalar_source_leaves_the_shape_of_the_target():
    x, delta = tw.linspace(-10.0, 10.0, 201), tw.Variable(0.0)
    with tw.GradientTape() as tape:
        y = tw.nn.sigmoid(x + delta)
    j = tape.jacobian(y, delta)
    assert j.shape == (201,)
    s = 1 / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(j, s * (1 - s), atol=1e-6)


def test_a_scalar_target_leaves_the_shape_of_the_source():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(x * x)
    np.testing.assert_allclose(tape.jacobian(y, x), [2.0, 4.0, 6.0])


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_a_target_with_one_entry_keeps_its_axes(shape):
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = tw.reshape(tw.reduce_sum(x * x), shape)
    j = tape.jacobian(y, x)
    assert j.shape == (*shape, 2)
    np.testing.assert_allclose(np.ravel(j), [2.0, 4.0])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (3, 0, 2)])
def test_an_empty_target_has_an_empty_jacobian(shape):
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = tw.zeros(shape) + tw.reduce_sum(x)
    assert tape.jacobian(y, x).shape == (*shape, 3)


def test_an_empty_source_has_an_empty_jacobian():
    x = tw.Variable(np.ones((0,), np.float32))
    with tw.GradientTape() as tape:
        y = tw.ones([2, 2]) * tw.reduce_sum(x)
    assert tape.jacobian(y, x).shape == (2, 2, 0)


def test_sources_come_back_in_their_nest_and_unconnected_ones_as_none_or_zero():
    x, w, other = tw.Variable([1.0, 2.0]), tw.Variable(3.0), tw.Variable([[1.0]])
    with tw.GradientTape(persistent=True) as tape:
        y = x * w
    j = tape.jacobian(y, {"x": x, "rest": (w, other)})
    np.testing.assert_allclose(j["x"], 3.0 * np.eye(2))
    np.testing.assert_allclose(j["rest"][0], [1.0, 2.0])
    assert j["rest"][1] is None
    zero = tape.jacobian(y, [other], unconnected_gradients="zero")
    assert zero[0].shape == (2, 1, 1) and not zero[0].numpy().any()


def test_a_target_that_is_the_source_gives_the_identity():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape(persistent=True) as tape:
        y = x * 2.0
    np.testing.assert_allclose(tape.jacobian(x, x), np.eye(3))
    np.testing.assert_allclose(tape.jacobian(y, y), np.eye(3))


def test_an_intermediate_is_a_source():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        h = x * x
        y = tw.matmul([[1.0, 2.0], [3.0, 4.0]], tw.reshape(h, [2, 1]))
    np.testing.assert_allclose(
        tape.jacobian(y, h)[:, 0], [[1.0, 2.0], [3.0, 4.0]], rtol=1e-6
    )
    np.testing.assert_allclose(
        tape.jacobian(y, x)[:, 0], [[2.0, 8.0], [6.0, 16.0]], rtol=1e-6
    )


def test_a_sum_over_the_target_is_the_gradient():
    x, w = tw.constant(weights(7, 5)), tw.Variable(weights(5, 4, seed=1))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.nn.relu(tw.matmul(x, w) - 2.0)
    j = tape.jacobian(y, w)
    assert j.shape == (7, 4, 5, 4)
    np.testing.assert_allclose(tw.reduce_sum(j, axis=[0, 1]), tape.gradient(y, w))


def test_the_jacobian_of_gather_is_dense():
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        y = tw.gather(x, [1, 1])
    j = tape.jacobian(y, x)
    expected = np.zeros((2, 2, 2, 2))
    for i in range(2):
        for k in range(2):
            expected[i, k, 1, k] = 1.0
    np.testing.assert_allclose(j, expected)


def test_an_integer_target_has_no_jacobian():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        y = tw.cast(x, "int32")
    assert tape.jacobian(y, x) is None
    assert tape.jacobian(y[0], x) is None


def test_a_complex_jacobian_follows_tensorflow():
    z = tw.Variable([1 + 2j, 3j])
    with tw.GradientTape() as tape:
        y = z * z
    np.testing.assert_allclose(tape.jacobian(y, z), [[2 - 4j, 0], [0, -6j]], atol=1e-12)


def test_a_dtype_of_64_bits_stays():
    x = tw.Variable(weights(3))
    with tw.GradientTape() as tape:
        y = tw.exp(x)
    assert tape.jacobian(y, x).dtype == "float64"


# ------------------------------------------------------ vectorized, chunked, sequential


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_vectorized_jacobian_is_the_sequential_one(name):
    fast, slow = jacobians(PROGRAMS[name], weights(3, 3))
    assert fast.shape == slow.shape and fast.dtype == slow.dtype
    np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    "name", ["elementwise", "right product", "mean of columns", "softmax", "einsum"]
)
def test_chunks_of_any_size_give_the_same(name, chunk):
    fast, slow = jacobians(PROGRAMS[name], weights(3, 3), parallel_iterations=chunk)
    np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_agree_with_the_sequential_jacobian(seed):
    rng = np.random.default_rng(seed)
    program, x = random_program(rng), rng.uniform(-1, 1, (3, 4))
    chunk = [None, 1, 5][seed % 3]
    fast, slow = jacobians(program, x, parallel_iterations=chunk)
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_agree_with_differences(seed):
    rng = np.random.default_rng(1000 + seed)
    program, x = random_program(rng), rng.uniform(-1, 1, (3, 4))
    fast, _ = jacobians(program, x)
    step, columns = 1e-6, []
    for i in range(x.size):
        shift = np.zeros(x.size)
        shift[i] = step
        shift = shift.reshape(x.shape)
        columns.append(
            (program(tw.constant(x + shift)) - program(tw.constant(x - shift))).numpy()
            / (2 * step)
        )
    differences = np.stack(columns, axis=-1).reshape(3, 4, 3, 4)
    np.testing.assert_allclose(fast, differences, rtol=1e-4, atol=1e-5)


# --------------------------------------------------- bounds of cotangents and of memory


def test_chunks_bound_the_cotangents_of_each_walk(widths):
    x = tw.Variable(weights(4, 7))
    with tw.GradientTape() as tape:
        y = tw.matmul(x, weights(7, 7))
    tape.jacobian(y, x, parallel_iterations=3)
    assert widths == [1, 3, 3, 1]  # the first finds out which axis to go through


def net(x, size, columns):
    """Two layers of tanh, of float32."""
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(2, size, size)) / math.sqrt(size)).astype("f4")
    return tw.tanh(tw.matmul(tw.tanh(tw.matmul(x, first)), second[:, :columns]))


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_memory_follows_its_limit(method, device):
    if device != "cpu":
        pytest.skip("tracemalloc sees host memory")
    columns = 256 if method == "batch_jacobian" else 16
    x = tw.Variable(weights(32, 256).astype("f4"))
    excess, found = {}, {}
    for limit in (None, 8_000_000, 1_000_000):
        with tw.GradientTape() as tape:
            y = net(x, 256, columns)
            if method == "jacobian":  # couples the rows
                y = y - tw.reduce_mean(y, axis=0)
        tracemalloc.start()
        j = found[limit] = getattr(tape, method)(y, x, memory_limit=limit)
        excess[limit] = tracemalloc.get_traced_memory()[1] - j.numpy().nbytes
        tracemalloc.stop()
    assert excess[None] > 8_000_000
    assert excess[8_000_000] < 12_000_000
    assert excess[1_000_000] < 1_500_000
    for limit in (8_000_000, 1_000_000):
        np.testing.assert_allclose(found[limit], found[None], atol=1e-6)


@pytest.mark.parametrize("limit", [1, 2000, 10**9])
@pytest.mark.parametrize(
    "name", ["elementwise", "mean of columns", "softmax", "einsum"]
)
def test_any_limit_of_memory_gives_the_same(name, limit):
    fast, slow = jacobians(PROGRAMS[name], weights(3, 3), memory_limit=limit)
    np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-12)


def test_a_limit_of_memory_holds_under_an_outer_tape():
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = tw.nn.softmax(tw.matmul(x, B)) ** 2
        j = inner.jacobian(y, x, memory_limit=500)
        total = tw.reduce_sum(j * j)
    with tw.GradientTape() as again:
        with tw.GradientTape() as inner:
            y = tw.nn.softmax(tw.matmul(x, B)) ** 2
        j = inner.jacobian(y, x)
        whole = tw.reduce_sum(j * j)
    np.testing.assert_allclose(outer.gradient(total, x), again.gradient(whole, x))


# ------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_the_sequential_way_needs_a_persistent_tape(method):
    x = tw.Variable(weights(2, 2))
    with tw.GradientTape() as tape:
        y = x * x
    with pytest.raises(RuntimeError, match=r"GradientTape\(persistent=True\)"):
        getattr(tape, method)(y, x, experimental_use_pfor=False)


@pytest.mark.parametrize("target", [[], [tw.ones([2]), tw.ones([2])], None, 1.0])
def test_a_target_that_is_not_one_tensor_is_refused(target):
    with pytest.raises(TypeError, match="target must be a single tensor"):
        tw.GradientTape().jacobian(target, tw.ones([2]))


@pytest.mark.parametrize("bound", [0, -1])
@pytest.mark.parametrize("name", ["parallel_iterations", "memory_limit"])
def test_bounds_must_be_positive(name, bound):
    with pytest.raises(ValueError, match=name):
        tw.GradientTape().jacobian(tw.ones([2]), tw.ones([2]), **{name: bound})


def test_an_op_without_gradient_is_the_same_lookup_error():
    images = tw.Variable(np.ones((2, 2, 1)))
    with tw.GradientTape() as tape:
        y = tw.image.adjust_contrast(images, 2.0)
    with pytest.raises(LookupError, match="adjust_contrast"):
        tape.jacobian(y, images)


@pytest.mark.parametrize("unconnected", ["none", "zero"])
@pytest.mark.parametrize(
    ("target", "source"),
    [
        ((0,), (3,)),
        ((0, 2), (0, 2)),
        ((2, 0), (2, 3)),
        ((2, 3), (2, 0)),
        ((0, 3), (0, 0)),
    ],
)
def test_an_empty_jacobian_is_none_only_where_nothing_is_connected(
    target, source, unconnected
):
    x, other = tw.zeros(source), tw.zeros(source)
    for pfor in (True, False):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch([x, other])
            y = tw.reduce_sum(x) * tw.ones(target)
        how = {"unconnected_gradients": unconnected, "experimental_use_pfor": pfor}
        found = tape.jacobian(y, [x, other], **how)
        assert found[0].shape == (*target, *source)
        assert found[1] is None if unconnected == "none" else found[1].shape == (
            *target, *source,
        )  # fmt: skip
        if len(target) > 1:
            assert tape.batch_jacobian(y, x, **how).shape == (*target, *source[1:])
            found = tape.batch_jacobian(y, other, **how)
            assert (found is None) == (unconnected == "none")
