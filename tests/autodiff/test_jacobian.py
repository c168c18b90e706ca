"""jacobian and batch_jacobian: one batched walk against one walk an entry.

The vectorized Jacobian of a program must equal the sequential one, which is made of
plain gradients, whatever structure the walk finds and however it is cut into chunks.
"""

import math
import tracemalloc

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff import batching, jacobian


def weights(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.3, 1.5, shape)


def jacobians(function, x, **options):
    """The vectorized and the sequential Jacobian of ``function`` at ``x``."""
    x = tw.Variable(x)
    with tw.GradientTape(persistent=True) as tape:
        y = function(x)
    return (
        tape.jacobian(y, x, **options),
        tape.jacobian(y, x, experimental_use_pfor=False),
    )


@pytest.fixture
def widths(monkeypatch):
    """The most cotangents of each pass, in a list that grows."""
    found = []
    pull_back, made = jacobian.JacobianPass._pull_back, jacobian._Bounded.wrap

    def counted_pull_back(self, seeds):
        found.append(seeds.value.array.shape[0])
        return pull_back(self, seeds)

    def counted_made(self, value, axes):
        found[-1] = max(found[-1], value.array.shape[0])
        return made(self, value, axes)

    monkeypatch.setattr(jacobian.JacobianPass, "_pull_back", counted_pull_back)
    monkeypatch.setattr(jacobian._Bounded, "wrap", counted_made)
    return found


# ------------------------------------------------------------------- by hand


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


# ------------------------------------------------- vectorized, chunked, sequential

A, B, C = weights(4, 3, seed=1), weights(3, 3, seed=2), weights(3, seed=3)

PROGRAMS = {
    "elementwise": lambda x: tw.tanh(x) * x + tw.sqrt(x) / (x + 1.0),
    "powers": lambda x: x**2 + x**1.5 - 2.0**x,
    "left product": lambda x: tw.matmul(A, x),
    "right product": lambda x: tw.matmul(x, B),
    "product with itself": lambda x: tw.matmul(x, x),
    "product with its transpose": lambda x: tw.matmul(x, x, transpose_b=True),
    "transposed product": lambda x: tw.matmul(x, B, transpose_a=True),
    "transpose": lambda x: tw.transpose(x) * C,
    "reshape": lambda x: tw.reshape(x, [9]) ** 2,
    "reshape and back": lambda x: tw.reshape(tw.reshape(x, [9]) * 2.0, [3, 3]) * x,
    "sum of rows": lambda x: tw.reduce_sum(x * x, axis=1),
    "sum of columns": lambda x: tw.reduce_sum(x * x, axis=0),
    "mean, kept": lambda x: x - tw.reduce_mean(x, axis=1, keepdims=True),
    "mean of columns": lambda x: x - tw.reduce_mean(x, axis=0),
    "mean of all": lambda x: x * tw.reduce_mean(x),
    "max": lambda x: tw.reduce_max(x, axis=1) * C,
    "product": lambda x: tw.reduce_prod(x, axis=0),
    "logsumexp": lambda x: tw.reduce_logsumexp(x, axis=1),
    "variance": lambda x: tw.math.reduce_variance(x, axis=1),
    "norm": lambda x: tw.norm(x, axis=0),
    "broadcast row": lambda x: x * C + x[0],
    "broadcast column": lambda x: x * tw.reshape(x[:, 0], [3, 1]),
    "broadcast scalar": lambda x: x * x[1, 2],
    "outer": lambda x: tw.expand_dims(x[0], 1) * tw.expand_dims(x[1], 0),
    "gather rows": lambda x: tw.gather(x, [2, 0, 2]) * x,
    "gather columns": lambda x: tw.gather(x, [2, 0], axis=1),
    "index": lambda x: x[1:, ::2] * 2.0,
    "backwards": lambda x: x[::-1] * x,
    "new axis": lambda x: x[:, None] * x[None],
    "concat": lambda x: tw.concat([x, x * x], axis=0),
    "concat columns": lambda x: tw.concat([x, A[:3] * x], axis=1),
    "stack": lambda x: tw.stack([x[0], x[1] * x[2]]),
    "split": lambda x: tw.split(x * x, 3, axis=1)[1] * tw.split(x, 3)[0],
    "unstack": lambda x: tw.unstack(x)[2] * tw.unstack(x, axis=1)[0],
    "where": lambda x: tw.where(x > 0.8, x * x, 3.0 * x),
    "maximum": lambda x: tw.maximum(x, tw.reverse(x, [1])),
    "clip": lambda x: tw.clip_by_value(x, 0.5, 1.0) * x,
    "pad": lambda x: tw.pad(x, [[1, 0], [0, 2]]) ** 2,
    "tile": lambda x: tw.tile(x, [1, 2]),
    "softmax": tw.nn.softmax,
    "softmax of columns": lambda x: tw.nn.softmax(x, axis=0),
    "log softmax": tw.nn.log_softmax,
    "cross entropy": lambda x: tw.nn.softmax_cross_entropy_with_logits(A[:3], x),
    "relu": lambda x: tw.nn.relu(tw.matmul(x - 0.9, B)),
    "affine": lambda x: tw.nn.affine(x, B, C),
    "two layers": lambda x: tw.nn.affine(tw.tanh(tw.nn.affine(x, B, C)), A.T, A[:, 0]),
    "batch norm": lambda x: tw.nn.fused_batch_norm(x, C, C, [0])[0],
    "moments": lambda x: tw.nn.batch_normalization(
        x, *tw.nn.moments(x, [0]), C, C, 1e-3
    ),
    "einsum": lambda x: tw.einsum("ij,kj->ik", x, x),
    "trace": lambda x: tw.einsum("ii->i", x),
    "tensordot": lambda x: tw.tensordot(x, B, 1),
    "solve": lambda x: tw.linalg.solve(x + 3.0 * np.eye(3), B),
    "inverse": lambda x: tw.linalg.inv(x + 3.0 * np.eye(3)),
    "three axes": lambda x: tw.reshape(x, [3, 1, 3]) * weights(3, 2, 3),
    "batched product": lambda x: tw.matmul(
        tw.reshape(x, [3, 1, 3]), weights(3, 3, 2, seed=5)
    ),
    "stopped": lambda x: x * tw.stop_gradient(x * x),
    "constant rows": lambda x: x * [[1.0], [0.0], [2.0]],
}


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


def random_program(rng):
    """A chain of three to six shape-keeping steps on a ``[3, 4]`` value."""
    m, n = rng.uniform(-1, 1, (4, 4)), rng.uniform(-1, 1, (3, 3))
    rows, columns = rng.integers(0, 3, 3), rng.integers(0, 4, 4)
    cut = int(rng.integers(1, 3))
    steps = [
        lambda x: tw.matmul(x, m),
        lambda x: tw.matmul(n, x),
        lambda x: tw.tanh(x) + x,
        lambda x: x * x * 0.5,
        lambda x: x + tw.reduce_mean(x, axis=0),
        lambda x: x - tw.reduce_sum(x, axis=1, keepdims=True),
        lambda x: x * tw.reduce_logsumexp(x, axis=1, keepdims=True),
        lambda x: tw.gather(x, rows),
        lambda x: tw.gather(x, columns, axis=1),
        lambda x: tw.concat([x[cut:], x[:cut]], axis=0),
        lambda x: tw.concat([x[:, cut:], x[:, :cut] * 2.0], axis=1),
        lambda x: tw.transpose(tw.reshape(tw.transpose(x), [4, 3])),
        lambda x: tw.reshape(tw.transpose(x), [3, 4]),
        lambda x: tw.reshape(tw.reshape(x, [2, 6]) * 1.5, [3, 4]),
        lambda x: tw.where(x > 0.0, x, 0.1 * x),
        lambda x: tw.nn.softmax(x) + x,
        lambda x: tw.nn.softmax(x, axis=0) * x,
        lambda x: tw.nn.fused_batch_norm(x, np.ones(4), np.zeros(4), [0])[0],
        lambda x: tw.sin(x)[::-1],
        lambda x: tw.maximum(x, x[:, ::-1]),
        lambda x: tw.stack(tw.unstack(x, axis=1), axis=1) * tw.norm(x),
    ]
    chosen = rng.choice(len(steps), size=rng.integers(3, 7))

    def program(x):
        for i in chosen:
            x = steps[i](x)
        return x

    return program


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


# ------------------------------------------------------------- rows on their own


def test_independent_rows_share_cotangents(widths):
    x = tw.Variable(weights(50, 3))
    with tw.GradientTape() as tape:
        y = tw.tanh(tw.matmul(x, B)) * x
    j = tape.jacobian(y, x)
    assert j.shape == (50, 3, 50, 3)
    assert widths == [3]


def test_an_elementwise_program_needs_one_cotangent(widths):
    x = tw.Variable(weights(40))
    with tw.GradientTape() as tape:
        y = tw.exp(x) * tw.sin(x)
    tape.jacobian(y, x)
    assert widths == [1]


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


def test_axes_are_spread_one_by_one(widths):
    x = tw.Variable(weights(5, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.tanh(tw.matmul(x, B)) - tw.reduce_mean(x, axis=0))
    fast = tape.jacobian(y, x)
    assert widths == [15]
    slow = tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_coupled_rows_are_found_out(widths):
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = x - tw.reduce_mean(x, axis=0)
    j = tape.jacobian(y, x)
    expected = np.einsum("ik,jl->ijkl", np.eye(4) - 0.25, np.eye(3))
    np.testing.assert_allclose(j, expected, atol=1e-12)
    assert widths == [4]  # the columns are on their own


def test_rows_coupled_by_a_weight_that_is_no_source_do_not_matter(widths):
    x, w = tw.Variable(weights(9, 3)), tw.Variable(B)
    with tw.GradientTape() as tape:
        y = tw.matmul(x, w)
    tape.jacobian(y, x)
    assert widths == [3]


def test_one_source_may_be_coupled_and_another_not():
    x, w = tw.Variable(weights(4, 3)), tw.Variable(B)
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.matmul(x, w))
    fast = tape.jacobian(y, [x, w])
    slow = tape.jacobian(y, [x, w], experimental_use_pfor=False)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_one_axis_may_be_the_coupled_one(axis):
    x = weights(2, 3, 2)
    fast, slow = jacobians(lambda x: tw.nn.softmax(x, axis=axis) * x, x)
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_rows_of_size_one_and_axes_of_equal_size_are_not_mixed_up():
    for shape in [(1, 3), (3, 1), (3, 3), (1, 1, 3), (3, 1, 3)]:
        fast, slow = (
            jacobians(
                lambda x: tw.transpose(x) * tw.reduce_sum(x, axis=-1), weights(*shape)
            )
            if len(shape) == 2 and shape[0] == shape[1]
            else jacobians(lambda x: tw.squeeze(x) ** 2, weights(*shape))
        )
        np.testing.assert_allclose(fast, slow, atol=1e-12)


# ----------------------------------------------------------------- higher orders


def test_the_hessian_of_a_sum_of_cubes_is_diagonal():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = tw.reduce_sum(x**3)
        g = inner.gradient(y, x)
    np.testing.assert_allclose(
        outer.jacobian(g, x), np.diag([6.0, 12.0, 18.0]), rtol=1e-6
    )


def hessian(function, x):
    x = tw.Variable(x)
    with tw.GradientTape(persistent=True) as outer:
        with tw.GradientTape() as inner:
            y = tw.reduce_sum(function(x))
        g = tw.convert_to_tensor(inner.gradient(y, x))
    return (
        outer.jacobian(g, x, unconnected_gradients="zero"),
        outer.jacobian(g, x, unconnected_gradients="zero", experimental_use_pfor=False),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_hessian_is_symmetric_and_the_sequential_one(name):
    fast, slow = hessian(PROGRAMS[name], weights(3, 3))
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)
    matrix = np.reshape(fast, (9, 9))
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "pick",
    [
        lambda x: x[0, ...],
        lambda x: x[1:, ...],
        lambda x: x[..., 0],
        lambda x: x[::-1, ...],
        lambda x: x[..., ::-1],
        lambda x: x[::-1],
        lambda x: x[1],
        lambda x: x[:, 1],
        lambda x: x[None, 0, :, None],
    ],
)
def test_the_hessian_through_each_kind_of_index(pick):
    weight = np.arange(1.0, 4.0)
    fast, slow = hessian(
        lambda x: pick(x) ** 3 * tw.reshape(x[0], [3])[1], weights(3, 3)
    )
    np.testing.assert_allclose(fast, slow, atol=1e-12)
    fast, slow = hessian(lambda x: pick(x * weight) ** 3, weights(3, 3))
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_a_jacobian_under_an_outer_tape_gives_third_derivatives():
    x = tw.Variable(weights(3))
    with tw.GradientTape() as t3:
        with tw.GradientTape() as t2:
            with tw.GradientTape() as t1:
                y = tw.reduce_sum(x**4) + x[0] * x[1] * x[2]
            g = t1.gradient(y, x)
        h = t2.jacobian(g, x)
    third = t3.jacobian(h, x).numpy()
    a = x.numpy()
    expected = np.zeros((3, 3, 3))
    for i in range(3):
        expected[i, i, i] = 24 * a[i]
    for i, j, k in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        expected[i, j, k] += 1.0
    np.testing.assert_allclose(third, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["softmax", "two layers", "batch norm", "einsum", "max"]
)
def test_the_gradient_of_a_jacobian_equals_that_of_the_sequential_one(name):
    def derivative(use_pfor):
        x = tw.Variable(weights(3, 3))
        with tw.GradientTape() as outer:
            with tw.GradientTape(persistent=True) as inner:
                y = PROGRAMS[name](x)
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)
            loss = tw.reduce_sum(j * j)
        return outer.gradient(loss, x)

    fast, slow = derivative(True), derivative(False)
    if fast is None or slow is None:  # a constant Jacobian
        assert fast is slow is None
    else:
        np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)


def test_a_jacobian_inside_its_own_persistent_tape_is_recorded():
    x = tw.Variable(weights(2))
    with tw.GradientTape(persistent=True) as tape:
        y = x**3
        with pytest.warns(UserWarning, match="inside its own context") as caught:
            j = tape.jacobian(y, x)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(tape.gradient(j, x), 6 * x.numpy())


# ------------------------------------------------------------- custom gradients


def test_a_custom_gradient_is_asked_with_all_cotangents_at_once():
    calls = []

    @tw.custom_gradient
    def doubled(x):
        def gradient(dy):
            calls.append(dy)
            return 10.0 * dy

        return 2.0 * x, gradient

    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = doubled(x)
    np.testing.assert_allclose(tape.jacobian(y, x), 10.0 * np.eye(3))
    assert len(calls) == 1


def test_a_custom_gradient_that_ignores_its_cotangent():
    @tw.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: tw.constant([5.0, 7.0])

    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        y = f(x) * [2.0, 3.0]
        z = f(x) * 2.0 + x
    np.testing.assert_allclose(tape.jacobian(y, x), [[5.0, 7.0], [5.0, 7.0]])
    np.testing.assert_allclose(tape.jacobian(z, x), [[6.0, 7.0], [5.0, 8.0]])
    for chunk in (1, 2):
        np.testing.assert_allclose(
            tape.jacobian(z, x, parallel_iterations=chunk), [[6.0, 7.0], [5.0, 8.0]]
        )


def test_a_custom_gradient_that_couples_rows_is_found_out():
    @tw.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: dy[::-1] + tw.reduce_sum(dy)

    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        y = f(x)
    np.testing.assert_allclose(tape.jacobian(y, x), np.eye(3)[::-1] + 1.0)


def test_a_custom_gradient_that_looks_at_values_is_told_how_to_go_on():
    @tw.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: dy if float(tw.reduce_sum(dy)) > 0 else -dy

    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        y = f(x)
    with pytest.raises(TypeError, match="experimental_use_pfor=False"):
        tape.jacobian(y, x)
    j = tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_allclose(j, np.eye(2))


def test_clipping_a_gradient_clips_each_row_of_a_jacobian():
    @tw.custom_gradient
    def clipped(x):
        return x, lambda dy: tw.clip_by_norm(dy, 0.5)

    x = tw.Variable([3.0, 4.0])
    with tw.GradientTape() as tape:
        y = tw.matmul([[1.0, 1.0], [0.1, 0.1]], tw.reshape(clipped(x), [2, 1]))
    row = 0.5 / math.sqrt(2)
    np.testing.assert_allclose(
        tape.jacobian(y, x)[:, 0], [[row, row], [0.1, 0.1]], rtol=1e-6
    )


def test_custom_gradients_inside_custom_gradients_under_an_outer_tape():
    @tw.custom_gradient
    def sine(x):
        return tw.sin(x), lambda dy: dy * tw.cos(x)

    @tw.custom_gradient
    def half_square(x):
        return x * x / 2.0, lambda dy: sine(dy * x)

    a = np.array([0.3, 0.7])
    for use_pfor in (True, False):
        x = tw.Variable(a)
        with tw.GradientTape() as outer:
            with tw.GradientTape(persistent=True) as inner:
                y = half_square(x)
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)  # diag(sin x)
        np.testing.assert_allclose(j, np.diag(np.sin(a)))
        np.testing.assert_allclose(outer.gradient(j, x), np.cos(a))


def test_a_rule_of_a_custom_gradient_counts_under_an_outer_tape_not_the_true_one():
    @tw.custom_gradient
    def scaled(x):
        return x * 1.0, lambda dy: dy * 100.0

    @tw.custom_gradient
    def half_square(x):
        return x * x / 2.0, lambda dy: scaled(dy * x)

    found = []
    for use_pfor in (True, False):
        x = tw.Variable([0.3, 0.7])
        with tw.GradientTape() as outer:
            with tw.GradientTape(persistent=True) as inner:
                y = half_square(x)
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)
        found.append(outer.gradient(j, x))
    np.testing.assert_allclose(found[0], [100.0, 100.0])
    np.testing.assert_allclose(found[1], [100.0, 100.0])


def test_a_jacobian_through_recompute_grad():
    x = tw.Variable(weights(3, 3))

    def block(x):
        return tw.tanh(tw.matmul(x, B)) * x

    with tw.GradientTape(persistent=True) as tape:
        plain, saved = block(x), tw.recompute_grad(block)(x)
    np.testing.assert_allclose(
        tape.jacobian(saved, x), tape.jacobian(plain, x), atol=1e-12
    )


# -------------------------------------------------------------------- batch_jacobian


def test_the_example_of_the_documentation():
    x = tw.constant([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    expected = [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
    np.testing.assert_allclose(tape.batch_jacobian(y, x), expected)


def test_a_batch_jacobian_is_the_stack_of_the_jacobians_of_examples():
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.nn.elu(tw.matmul(x, B) - 1.5) ** 2
    jb, j = tape.batch_jacobian(y, x), tape.jacobian(y, x)
    assert jb.shape == (4, 3, 3)
    np.testing.assert_allclose(jb, tw.einsum("bxby->bxy", j), atol=1e-12)
    np.testing.assert_allclose(jb, tw.reduce_sum(j, axis=2), atol=1e-12)


def test_a_coupled_batch_jacobian_is_the_derivative_of_the_sum():
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.nn.fused_batch_norm(x, C, C, [0])[0] ** 2
    jb, j = tape.batch_jacobian(y, x), tape.jacobian(y, x)
    np.testing.assert_allclose(jb, tw.einsum("iynx->nyx", j), atol=1e-10)


@pytest.mark.parametrize("use_pfor", [True, False])
def test_a_check_finds_what_couples_the_examples(use_pfor):
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.nn.fused_batch_norm(tw.matmul(x, B), C, C, [0])[0])
        z = tw.concat([x * x, x[:1], x[1:]], axis=0)[:4]
    message = r"not independent: target\[0\] depends on source\[1\]"
    message += ".*standardize" if use_pfor else ""
    with pytest.raises(ValueError, match=message):
        tape.batch_jacobian(y, x, check=True, experimental_use_pfor=use_pfor)
    checked = tape.batch_jacobian(z, x, check=True, experimental_use_pfor=use_pfor)
    np.testing.assert_allclose(checked, tape.batch_jacobian(z, x))


@pytest.mark.parametrize("use_pfor", [True, False])
def test_a_check_of_coupled_examples_fails_in_a_trace(use_pfor):
    @tw.function
    def coupled(x):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tw.nn.fused_batch_norm(x, C, C, [0])[0]
        return tape.batch_jacobian(y, x, check=True, experimental_use_pfor=use_pfor)

    message = "batch_jacobian: the examples could depend on each other.*"
    message += "through standardize.*" if use_pfor else ""
    with pytest.raises(tw.errors.ShapeError, match=message + "take the full jacobian"):
        coupled(weights(4, 3))


def test_a_check_is_not_content_with_rows_that_meet_columns():
    x = tw.Variable(weights(3, 3))
    with tw.GradientTape() as tape:
        y = tw.transpose(x) ** 2
    with pytest.raises(ValueError, match=r"target\[0\].*source\[1\]"):
        tape.batch_jacobian(y, x, check=True)


def test_a_check_of_independent_examples_computes_no_full_jacobian(widths):
    x = tw.Variable(weights(6, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.matmul(x, B))
    checked = tape.batch_jacobian(y, x, check=True)
    assert widths == [3]
    np.testing.assert_allclose(checked, tape.batch_jacobian(y, x))
    assert tape.batch_jacobian(y, tw.Variable(weights(6, 2)), check=True) is None


@pytest.mark.parametrize("chunk", [None, 1, 2, 7])
@pytest.mark.parametrize("seed", range(5))
def test_batch_jacobians_of_random_programs_agree_with_the_sequential_ones(seed, chunk):
    rng = np.random.default_rng(seed)
    program, x = random_program(rng), tw.Variable(rng.uniform(-1, 1, (3, 4)))
    with tw.GradientTape(persistent=True) as tape:
        y = program(x)
    fast = tape.batch_jacobian(y, x, parallel_iterations=chunk)
    slow = tape.batch_jacobian(y, x, experimental_use_pfor=False)
    full = tw.einsum("iynx->nyx", tape.jacobian(y, x))
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fast, full, rtol=1e-8, atol=1e-10)


def test_a_batch_jacobian_keeps_all_inner_axes():
    x = tw.Variable(weights(2, 3, 2))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.transpose(x, [0, 2, 1]) ** 2
    jb = tape.batch_jacobian(y, x)
    assert jb.shape == (2, 2, 3, 3, 2)
    np.testing.assert_allclose(
        jb, tape.batch_jacobian(y, x, experimental_use_pfor=False)
    )


def test_a_batch_jacobian_of_an_unconnected_source_is_none_or_zero():
    x, other = tw.Variable(weights(4, 3)), tw.Variable(weights(4, 2))
    with tw.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.batch_jacobian(y, other) is None
    zero = tape.batch_jacobian(y, other, unconnected_gradients="zero")
    assert zero.shape == (4, 3, 2) and not zero.numpy().any()


def test_a_batch_of_one_and_a_batch_of_none():
    for rows in (1, 0):
        x = tw.Variable(weights(rows, 3))
        with tw.GradientTape() as tape:
            y = tw.matmul(x, B)
        jb = tape.batch_jacobian(y, x)
        np.testing.assert_allclose(jb, np.broadcast_to(B.T, (rows, 3, 3)))


def test_a_batch_jacobian_has_derivatives():
    x = tw.Variable(weights(3, 2))
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = x**3
        jb = inner.batch_jacobian(y, x)
    np.testing.assert_allclose(outer.gradient(jb, x), 6 * x.numpy())


@pytest.mark.parametrize(
    ("y_shape", "x_shape", "message"),
    [
        ((4,), (4, 3), "target .*rank 2"),
        ((4, 3), (4,), "source .*rank 2"),
        ((4, 3), (3, 4), "first dimension"),
    ],
)
def test_shapes_that_make_no_batch_are_refused(y_shape, x_shape, message):
    x = tw.Variable(np.ones(x_shape))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(x) * np.ones(y_shape)
    with pytest.raises(ValueError, match=message):
        tape.batch_jacobian(y, x)


# ------------------------------------------------------------------------- errors


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


def test_a_source_of_a_batch_jacobian_must_be_one_tensor():
    with pytest.raises(TypeError, match="source .*got list"):
        tw.GradientTape().batch_jacobian(tw.ones([2, 2]), [tw.ones([2, 2])])


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


def test_an_op_without_a_batch_rule_is_mapped_by_a_loop(monkeypatch):
    op = tw.tanh.primitive
    monkeypatch.setattr(op, "batch_rule", None)
    mul = tw.multiply.primitive
    monkeypatch.setattr(mul, "batch_rule", None)
    monkeypatch.setattr(mul, "diagonal_rule", None)
    fast, slow = jacobians(lambda x: tw.tanh(x) * x, weights(2, 2))
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_a_mapped_value_shows_itself_and_refuses_to_be_one_array():
    mapped = batching.BatchInterpreter().map(tw.ones([5, 2, 3]))
    assert repr(mapped) == "<BatchedTensor: 5 times shape=(2, 3)>"
    assert mapped.shape == (2, 3) and len(mapped) == 2 and mapped.dtype == "float32"
    for look in (np.asarray, float, bool, lambda m: m.numpy()):
        with pytest.raises(TypeError, match="many at once"):
            look(mapped)


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
