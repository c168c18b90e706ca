"""Instructions with machine code of their own: gather, scatter, concat, checks of labels."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.native.segments import code_of
from tapewright.ops.array.indexing import scatter_index

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("few_passes")


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


def arrays_of(outputs):
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [np.asarray(tw.convert_to_tensor(x)) for x in outputs]


def calls_of_numpy(function, *args):
    """The names of what is still called in the replay of a function."""
    executable = function.get_concrete_function(*args).executable
    rest = [each for each in executable.program.instructions if code_of(each) is None]
    return {each.name for each in rest if not each.is_free}


def check(run, *arrays, called=(), rtol=0.0):
    """Compare a traced function with eager mode, for 1, 2 and 4 threads."""
    tensors = [tw.constant(a) for a in arrays]
    wanted, traced, before = arrays_of(run(*tensors)), tw.function(run), None
    threads = config.threads()
    try:
        for n in (1, 2, 4):
            config.set_threads(n)
            found = arrays_of(traced(*tensors))
            for a, b in zip(found, wanted, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_allclose(a, b, rtol, rtol)
            if before is not None:
                assert [a.tobytes() for a in found] == before
            before = [a.tobytes() for a in found]
    finally:
        config.set_threads(threads)
    assert calls_of_numpy(traced, *tensors) == set(called)
    return traced


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def picks(size, *shape, dtype=np.int64):
    return np.random.default_rng(1).integers(0, size, shape).astype(dtype)


# ---------------------------------------------------------------------------- gather


def test_many_rows_are_gathered_by_several_threads():
    check(lambda x, i: tw.gather(x, i) + 1.0, numbers(1000, 33), picks(1000, 701, 11))


def test_rows_of_a_transposed_array_are_gathered():
    check(lambda x, i: tw.gather(tw.transpose(x), i), numbers(6, 40), picks(40, 17))


@pytest.mark.parametrize("wrong", [-1, 7, 2**40])
def test_an_index_out_of_range_raises_what_eager_mode_raises(wrong):
    def run(x, i):
        return tw.gather(x * 2.0, i * 1) + 1.0

    indices = picks(7, 3, 4)
    traced = check(run, numbers(7, 5), indices)
    indices[2, 1] = wrong
    args = tw.constant(numbers(7, 5)), tw.constant(indices)
    with pytest.raises(IndexError) as eager:
        run(*args)
    with pytest.raises(IndexError) as found:
        traced(*args)
    assert str(found.value) == str(eager.value)
    assert __file__ in found.value.__notes__[-1]
    np.testing.assert_array_equal(  # and it goes on
        traced(args[0], tw.constant(picks(7, 3, 4))), run(args[0], picks(7, 3, 4))
    )


def test_each_of_several_instructions_that_may_fail_names_its_own_line():
    @tw.function
    def run(x, i, j):
        a = tw.gather(x, i)
        return a + tw.gather(x, j)

    good, bad = tw.constant([0, 1]), tw.constant([0, 9])
    x, lines = tw.constant(numbers(4, 3)), []
    run(x, good, good)
    for args in ((x, bad, good), (x, good, bad)):
        with pytest.raises(IndexError) as found:
            run(*args)
        lines.append(found.value.__notes__[-1])
    assert len(set(lines)) == 2


def test_a_step_that_fails_changes_no_variable():
    model = tw.keras.Sequential(
        [tw.keras.layers.Embedding(10, 4), tw.keras.layers.Dense(3)]
    )
    optimizer, x = tw.keras.optimizers.Adam(0.1), picks(10, 6)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(model(x) ** 2.0)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    step(tw.constant(x))
    before = [v.numpy() for v in model.variables + optimizer.variables]
    x[3] = 10
    with pytest.raises(IndexError):
        step(tw.constant(x))
    for old, variable in zip(before, model.variables + optimizer.variables):
        np.testing.assert_array_equal(old, variable.numpy())


# --------------------------------------------------------------------------- scatter


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("size", [1, 5, 900])
def test_equal_indices_add_up(dtype, axis, size):
    shape = {0: (size, 3, 7), 1: (2, size, 7), -1: (2, 3, size)}[axis]

    def run(x, i):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.gather(x, i, axis=axis)
            loss = tw.reduce_sum(y * y * 0.5)
        return tape.gradient(loss, x)

    check(run, numbers(*shape, dtype=dtype), picks(size, 13, 8), rtol=1e-6)


def test_a_scatter_refuses_an_index_that_is_too_large():
    @tw.function
    def run(x, i):
        return tw.math.unsorted_segment_sum(x, i, 4)

    run(tw.constant(numbers(3, 2)), tw.constant([0, 3, 0]))
    with pytest.raises(ValueError):
        run(tw.constant(numbers(3, 2)), tw.constant([0, 4, 0]))


# ------------------------------------------------------------------- concat, placing


@pytest.mark.parametrize("shape", [(3, 4, 5), (41, 63, 70), (1, 1, 1)])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_arrays_are_concatenated(shape, axis):
    def run(x, y):
        return tw.concat([x * 2.0, y, x], axis), tw.concat([x > 0.0, y > 0.0], axis)

    check(run, numbers(*shape), numbers(*shape))


def test_views_and_empty_arrays_are_concatenated():
    def run(x, y):
        return tw.concat([tw.transpose(x), y[:, ::2], y[:, :0]], 1)

    check(run, numbers(3, 40), numbers(40, 7))


@pytest.mark.parametrize(
    "index",
    [
        np.s_[-1], np.s_[:, 1], np.s_[1:, None, ::-1, ::2], np.s_[..., 1],
        np.s_[1, 2, 3], np.s_[::-1], np.s_[1:-1], np.s_[:, -3:],
    ],
    ids=str,
)  # fmt: skip
def test_the_gradient_of_an_index_is_placed_into_zeros(index):
    def run(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            loss = tw.reduce_sum(x[index] * x[index] * 0.5)
        return tape.gradient(loss, x)

    check(run, numbers(3, 4, 5), rtol=1e-6)


def test_what_is_placed_has_the_shape_of_its_place():
    def run(g):
        return scatter_index(g, shape=(2, 3), index=("...", 1))

    check(run, numbers(2))
    with pytest.raises(tw.errors.ShapeError, match="must have shape"):
        run(tw.constant(numbers(1)))


# ----------------------------------------------------------- labels, and what is traced


@pytest.mark.parametrize("rows, classes", [(5, 3), (32, 10), (1, 1), (700, 130)])
def test_the_loss_of_labels_is_one_nest_with_its_gradient(rows, classes):
    def run(labels, logits):
        with tw.GradientTape() as tape:
            tape.watch(logits)
            losses = tw.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tw.reduce_mean(losses)
        return loss, tape.gradient(loss, logits)

    labels, logits = picks(classes, rows), numbers(rows, classes)
    traced = check(run, labels, logits, rtol=1e-5)
    labels[-1] = classes
    args = tw.constant(labels), tw.constant(logits)
    with pytest.raises(ValueError) as eager:
        run(*args)
    with pytest.raises(ValueError) as found:
        traced(*args)
    assert str(found.value) == str(eager.value)


def test_the_loss_of_labels_is_nan_for_nan_logits_and_infinite_for_ruled_out_ones():
    logits = numbers(4, 5)
    logits[0, 2], logits[1, 3], logits[2, 1] = np.nan, -np.inf, -np.inf

    def run(labels, logits):
        return tw.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    check(run, np.array([0, 3, 0, 1]), logits, rtol=1e-5)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: tw.one_hot(tw.cast(x, "int32"), 5, axis=0),
        lambda x: tw.reverse(x, [1]),
        lambda x: tw.roll(x, [2, -1], [0, 1]),
        lambda x: tw.stack([x, x + 1.0], 1),
        lambda x: tw.reduce_all(x > 0.0, 1),
        lambda x: tw.reduce_any(x > 0.0),
        lambda x: tw.reduce_sum(tw.cast(x, "int32"), 1),
        lambda x: tw.where(x > 0.0, x, 0.0) + tw.where(x > 1.0, 0.0, x),
        lambda x: tw.linalg.band_part(x, 1, 2),
        lambda x: tw.nn.softmax_cross_entropy_with_logits(tw.nn.softmax(x), x[:1]),
    ],
)
@pytest.mark.parametrize("shape", [(4, 6), (1, 3), (90, 70)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_kernels_are_traced_for_loops(run, shape, dtype):
    check(run, numbers(*shape, dtype=dtype) * 3, rtol=1e-5)


def test_booleans_of_no_entries_are_all_true_and_none():
    x = tw.constant(np.zeros((0, 3), bool))
    for run in (lambda x: tw.reduce_all(x, 0), lambda x: tw.reduce_any(x)):
        np.testing.assert_array_equal(tw.function(run)(x), run(x))


# --------------------------------------------------------------------- normalization


def gradients_of_norm(norm):
    def run(x, g, gamma, beta):
        with tw.GradientTape() as tape:
            tape.watch([x, gamma, beta])
            outputs = tw.nest.flatten(norm(x, gamma, beta))
        return *outputs, *tape.gradient(outputs[0], [x, gamma, beta], g)

    return run


@pytest.mark.parametrize(
    "shape", [(9, 25, 30, 12), (3, 701, 64), (2, 2049, 2), (2, 40, 40, 96)]
)
@pytest.mark.parametrize("kind", ["batch", "group"])
def test_normalization_of_few_channels_by_threads(kind, shape):
    def batch(x, gamma, beta):
        axes = list(range(x.ndim - 1))
        return tw.nn.fused_batch_norm(x, gamma, beta, axes)

    def group(x, gamma, beta):
        return tw.nn.group_normalization(x, 2, gamma, beta)

    run = gradients_of_norm(batch if kind == "batch" else group)
    x, g = np.random.default_rng(0).standard_normal((2, *shape))
    gamma, beta = np.random.default_rng(1).standard_normal((2, shape[-1]))
    check(run, 3 + 2 * x, g, gamma, beta, rtol=1e-9)
