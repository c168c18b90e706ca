"""Gradients of every kind: accumulated, clipped, sparse, missing."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.communication.communicator import Communicator
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context
from tapewright.optimizers import SGD, Adagrad, Adam, LossScaleOptimizer
from tapewright.optimizers.base import gradients

from ..steps import run, stepped, variable


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_are_averaged_over_the_calls_of_an_update(traced):
    v = variable(1.0)
    optimizer = SGD(1.0, gradient_accumulation_steps=2)
    run(optimizer, [v], [[1.0]], traced=traced)
    assert v.numpy() == 1.0 and optimizer.iterations.numpy() == 0
    assert optimizer.variables[2].path == "sgd/v_gradient_accumulator"
    assert optimizer.variables[2].numpy() == 1.0
    run(optimizer, [v], [[3.0]], traced=traced)
    assert v.numpy() == -1.0 and optimizer.iterations.numpy() == 1
    assert optimizer.variables[2].numpy() == 0.0
    assert optimizer.variables[0].numpy() == 2


def test_accumulated_steps_are_those_of_one_batch():
    big, small = variable(1.0, -1.0), variable(1.0, -1.0)
    run(Adam(0.1), [big], [[2.0, 1.0]], [[4.0, -1.0]])
    optimizer = Adam(0.1, gradient_accumulation_steps=2)
    grads = [[1.0, 2.0]], [[3.0, 0.0]], [[4.0, -3.0]], [[4.0, 1.0]]
    run(optimizer, [small], *grads)
    np.testing.assert_allclose(small.numpy(), big.numpy(), rtol=1e-6)


def test_a_repeated_row_counts_twice_in_a_sum():
    v = tw.Variable(np.zeros((4, 2), np.float32))
    optimizer = SGD(1.0, gradient_accumulation_steps=2)
    rows = tw.IndexedSlices(tw.ones((3, 2)), tw.constant([1, 3, 1]), (4, 2))
    for _ in range(2):
        optimizer.apply([rows], [v])
    assert v.numpy()[:, 0].tolist() == [0.0, -2.0, 0.0, -1.0]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"clipnorm": 1.0}, [0.6, 0.8]),
        ({"clipvalue": 3.5}, [3.0, 3.5]),
        ({"global_clipnorm": 10.0}, [3.0, 4.0]),
    ],
)
def test_gradients_are_clipped_for_those_who_ask(arguments, expected):
    found, none = SGD(**arguments)._clip_gradients([tw.constant([3.0, 4.0]), None])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    assert none is None


@pytest.mark.parametrize("gradient", [np.ones(2), [1.0, 1.0], np.ones(2, "float32")])
def test_arrays_and_lists_are_gradients_too(gradient):
    v = variable(1.0, 2.0)
    SGD(1.0).apply_gradients([(gradient, v)])
    assert v.numpy().tolist() == [0.0, 1.0]


def test_a_broadcast_view_is_a_gradient():
    v, big = variable(1.0, 2.0), tw.Variable(np.zeros((300, 100), np.float32))
    row = np.broadcast_to(np.float32(1), (2,))
    rows = np.broadcast_to(np.arange(100, dtype=np.float32), (300, 100))
    SGD(1.0).apply_gradients([(tw.constant(row), v), (rows, big)])
    assert v.numpy().tolist() == [0.0, 1.0]
    assert (big.numpy() == -np.arange(100)).all()


def test_a_transposed_gradient_lands_in_the_right_places():
    big = tw.Variable(np.zeros((300, 100), np.float32))
    g = np.arange(30000, dtype=np.float32).reshape(100, 300)
    SGD(1.0).apply_gradients([(tw.transpose(g), big)])
    assert (big.numpy() == -g.T).all()


def test_two_variables_may_share_one_gradient():
    a, b, g = variable(1.0), variable(5.0), tw.constant([2.0])
    SGD(0.5, clipvalue=1.0).apply_gradients([(g, a), (g, b)])
    assert (a.numpy(), b.numpy(), g.numpy()) == (0.5, 4.5, 2.0)


def test_a_variable_may_be_its_own_gradient():
    v = variable(1.0, 2.0)
    optimizer = SGD(0.5)
    for _ in range(2):
        optimizer.apply_gradients([(v, v)])
    assert v.numpy().tolist() == [0.25, 0.5]


def test_a_gradient_of_none_is_skipped_with_a_warning_that_names_the_variable():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    with pytest.warns(UserWarning, match=r"variables \['a'\]") as caught:
        SGD(1.0).apply_gradients([(None, a), (tw.constant([1.0]), b)])
    assert (a.numpy(), b.numpy()) == (1.0, 0.0)
    assert caught[0].filename == __file__


def test_no_gradient_at_all_is_an_error():
    v = variable(1.0)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        SGD().apply_gradients([(None, v)])
    with pytest.raises(ValueError, match="must contain pairs"):
        SGD().apply_gradients([])


def _applied(f, *variables):
    """Apply the gradients of f() by these variables, as a custom loop does."""
    with tw.GradientTape() as tape:
        loss = f()
    SGD(1.0).apply_gradients(zip(tape.gradient(loss, variables), variables))


def test_the_warning_of_a_missing_gradient_names_reason_and_op():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    reason = r"\n  'a' \(no_derivative\): round lets .*; path: multiply -> round$"
    with pytest.warns(UserWarning, match=reason):
        _applied(lambda: tw.round(a * 2.0) * b, a, b)


@pytest.mark.parametrize("whole", [True, False])
def test_the_reason_is_known_in_traced_functions(whole):
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    with pytest.warns(
        UserWarning, match=r"'a' \(stop_gradient\): .*path: .*stop_gradient$"
    ):
        if whole:
            tw.function(lambda: _applied(lambda: tw.stop_gradient(a * 2.0) * b, a, b))()
        else:
            f = tw.function(lambda: tw.stop_gradient(a * 2.0) * b)
            _applied(f, a, b)


def test_the_reason_speaks_of_the_variable_by_its_name():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    lines = r"values\.\n  'b' \(unrelated\): the target does not depend on 'b'$"
    with pytest.warns(UserWarning, match=lines):
        _applied(lambda: a * 2.0 if b.shape else b, a, b)


@pytest.mark.parametrize("make", [SGD, lambda: LossScaleOptimizer(SGD())])
def test_apply_without_lists_says_how_it_is_called(make):
    v = variable(1.0)
    with pytest.raises(TypeError, match=r"must be lists: apply\(\[gradient\], \[v"):
        make().apply(tw.constant([1.0]), v)


@pytest.mark.parametrize("make", [SGD, lambda: LossScaleOptimizer(SGD())])
def test_apply_gradients_of_two_lists_says_to_zip_them(make):
    v = variable(1.0)
    with pytest.raises(
        TypeError, match=r"apply_gradients\(zip\(gradients, variables\)"
    ):
        make().apply_gradients([tw.constant([1.0])], [v])


def test_the_error_for_no_gradient_at_all_names_the_reasons():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    with pytest.raises(ValueError) as caught:
        _applied(lambda: tw.constant(np.mean(a * b)), a, b)
    first, *lines = str(caught.value).splitlines()
    assert first == (
        "No gradients provided for any variable: for ['a', 'b'] the gradient is None."
    )
    assert [line[:21] for line in lines] == [
        "  'a' (left_the_tape)",
        "  'b' (left_the_tape)",
    ]
    assert "a NumPy function took a value" in lines[0]


def test_of_many_missing_gradients_the_first_three_are_explained():
    unused = [variable(1.0, name=f"v{i}") for i in range(8)]
    used = variable(1.0, name="used")
    with pytest.warns(UserWarning, match="Gradients do not exist") as caught:
        _applied(lambda: used * used, used, *unused)
    lines = str(caught[0].message).splitlines()
    assert len(lines) == 5 and lines[-1] == "  and 5 more"


def test_a_gradient_function_that_returns_none_is_the_reason():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")

    @tw.custom_gradient
    def first(x, y):
        return x * y, lambda g: (None, g * x)

    frozen = variable(1.0, name="frozen")
    with pytest.warns(UserWarning, match="'a' .*a gradient function .* returned None"):
        _applied(lambda: first(a, b) * frozen, a, b)


def test_infinite_gradients_make_no_noise():
    assert np.isnan(stepped(Adam(), [1.0], [np.inf])).all()


def test_clipnorm_limits_each_variable():
    a, b = variable(0.0, 0.0), variable(0.0)
    grads = [tw.constant([3.0, 4.0]), tw.constant([0.5])]
    SGD(1.0, clipnorm=1.0).apply_gradients(zip(grads, [a, b]))
    np.testing.assert_allclose(a.numpy(), [-0.6, -0.8], rtol=1e-6)
    assert b.numpy() == -0.5


def test_global_clipnorm_limits_all_together():
    a, b = variable(0.0), variable(0.0)
    grads = [tw.constant([3.0]), tw.constant([4.0])]
    SGD(1.0, global_clipnorm=1.0).apply_gradients(zip(grads, [a, b]))
    np.testing.assert_allclose([a.numpy()[0], b.numpy()[0]], [-0.6, -0.8], rtol=1e-6)


def test_a_global_norm_that_is_not_finite_spoils_every_gradient():
    a, b = variable(0.0), variable(0.0)
    grads = [tw.constant([np.inf]), tw.constant([4.0])]
    SGD(1.0, global_clipnorm=1.0).apply_gradients(zip(grads, [a, b]))
    assert np.isnan(a.numpy()) and np.isnan(b.numpy())


@pytest.mark.parametrize("size", [1000, 100_000])
@pytest.mark.parametrize("length", [0.5, 30.0, 1e7, 1e16, 1e25])
def test_adam_clips_gradients_of_every_length(size, length):
    """A long block of a gradient is not scaled by itself; its squares may not overflow."""
    rng = np.random.default_rng(0)
    directions = [rng.standard_normal(size) for _ in range(3)]
    v = tw.Variable(np.zeros(size, "float32"))
    optimizer = Adam(0.1, clipnorm=1.0)
    momentum = velocity = 0.0
    for direction in directions:
        gradient = direction / np.linalg.norm(direction) * length
        optimizer.apply([tw.constant(gradient, "float32")], [v])
        # Beyond 1e19 the norm overflows, and what is divided by it is lost, as in Keras.
        clipped = gradient * (min(1.0, 1 / length) if length < 1e19 else 0.0)
        momentum = 0.9 * momentum + 0.1 * clipped
        velocity = 0.999 * velocity + 0.001 * clipped**2
    slots = {w.path.rpartition("_")[2]: w.numpy() for w in optimizer.variables[2:]}
    np.testing.assert_allclose(slots["momentum"], momentum, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(slots["velocity"], velocity, rtol=1e-5, atol=1e-12)


def test_weight_decay_spares_excluded_variables():
    kernel, bias, other = (variable(1.0, name=n) for n in ("kernel", "bias", "other"))
    optimizer = SGD(0.5, weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_list=[other], var_names=["bias"])
    zero = tw.constant([0.0])
    optimizer.apply_gradients((zero, v) for v in (kernel, bias, other))
    assert kernel.numpy() == np.float32(0.95)
    assert bias.numpy() == other.numpy() == 1.0
    with pytest.raises(ValueError, match="before the optimizer is built"):
        optimizer.exclude_from_weight_decay(var_names=["kernel"])


@pytest.mark.parametrize(
    "bad, error, message",
    [
        (tw.ones((3,)), ValueError, "gradient .*'b'"),
        (tw.constant(1.0), ValueError, "gradient .*'b'"),
        (tw.ones((2,), "complex64"), TypeError, "gradient .*'b'"),
        (
            tw.IndexedSlices(tw.ones((1,)), tw.constant([2]), (2,)),
            ValueError,
            "gradient of 'b' .*2 rows",
        ),
        (
            tw.IndexedSlices(tw.ones((1,)), tw.constant([0]), (3,)),
            ValueError,
            "gradient .*'b'.*dense_shape",
        ),
        (
            tw.IndexedSlices(tw.ones((1, 2)), tw.constant([0]), (2,)),
            ValueError,
            "one row of values per entry",
        ),
        (
            tw.IndexedSlices(tw.ones((1,)), tw.constant([0.0]), (2,)),
            TypeError,
            "indices .*gradient",
        ),
    ],
)
@pytest.mark.parametrize("rule", [SGD, Adam])
def test_a_gradient_that_does_not_fit_changes_nothing(rule, bad, error, message):
    a, b = variable(1.0, 2.0, name="a"), variable(3.0, 4.0, name="b")
    optimizer = rule(weight_decay=0.5)
    optimizer.apply([tw.ones((2,)), tw.ones((2,))], [a, b])
    before = [v.numpy() for v in [a, b, *optimizer.variables]]
    with pytest.raises(error, match=message):
        optimizer.apply([tw.ones((2,)), bad], [a, b])
    for v, old in zip([a, b, *optimizer.variables], before):
        assert np.array_equal(v.numpy(), old)


def test_sums_over_replicas_leave_gradients_on_their_device(strict, monkeypatch):
    """How they travel between GPUs is up to the communicator."""

    class Seen(Communicator):
        def all_reduce(self, arrays, op="sum", compression=None):
            assert [type(array) for array in arrays] == [type(dense)]
            return super().all_reduce(arrays, op, compression)

    dense = strict.asarray(np.array([1, 2], np.float32))
    monkeypatch.setattr(gradients, "communicator", Seen)
    with in_replica_context(ReplicaContext(1, 0, 1.0)):
        (total,) = gradients.all_reduce_gradients([dense])
    assert total.held.tolist() == [1, 2]


CLIPPED = [  # of a column with the entries 2, 1, 0, 0, beside another gradient of 2
    ({"clipnorm": 1.0}, [2 / 5**0.5, 1 / 5**0.5, 0, 0]),
    ({"global_clipnorm": 1.0}, [2 / 3, 1 / 3, 0, 0]),
    ({"clipvalue": 1.5}, [1.5, 1.0, 0, 0]),
]


def repeated_rows(values=((1.0,), (1.0,), (1.0,))):
    return tw.IndexedSlices(tw.constant(values), tw.constant([0, 0, 1]), (4, 1))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("updates_itself", [False, True])
@pytest.mark.parametrize("every", [None, 2])
@pytest.mark.parametrize("limits, expected", CLIPPED)
def test_repeated_rows_are_summed_before_they_are_clipped(
    limits, expected, every, updates_itself, traced
):
    class Own(SGD):
        def update_step(self, gradient, variable, learning_rate):
            variable.assign_sub(learning_rate * gradient)

    rows, other = tw.Variable(np.zeros((4, 1), np.float32)), variable(0.0)
    rule = Own if updates_itself else SGD
    optimizer = rule(1.0, gradient_accumulation_steps=every, **limits)

    def step(values, second):
        optimizer.apply([repeated_rows(values), second], [rows, other])

    step = tw.function(step) if traced else step
    for _ in range(every or 1):
        step(tw.ones((3, 1)), tw.constant([2.0]))
    np.testing.assert_allclose(rows.numpy()[:, 0], np.negative(expected), rtol=1e-6)


@pytest.mark.parametrize("traced", [False, True])
def test_rows_of_several_replicas_are_summed_before_they_are_clipped(
    monkeypatch, traced
):
    class Twin(Communicator):
        """Another process with the same rows."""

        def all_gather(self, array):
            return [array, array]

    v = tw.Variable(np.zeros((4, 1), np.float32))
    monkeypatch.setattr(gradients, "communicator", Twin)
    optimizer = SGD(1.0, clipnorm=1.0)

    def step(values):
        optimizer.apply([repeated_rows(values)], [v])

    step = tw.function(step) if traced else step
    with in_replica_context(ReplicaContext(1, 0, 1.0)):
        step(tw.ones((3, 1)))
    expected = [-2 / 5**0.5, -1 / 5**0.5, 0, 0]
    np.testing.assert_allclose(v.numpy()[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("limits", [{}, {"clipnorm": 1.0}])
@pytest.mark.parametrize("rule", [SGD, Adagrad, Adam])
@pytest.mark.parametrize("count, height", [(40, 30), (2000, 700), (3, 20000)])
def test_traced_steps_with_repeated_rows_compute_as_eager_steps(
    count, height, rule, limits, target
):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(height, 16)).astype(np.float32)
    batches = [
        (rng.integers(0, height, count), rng.normal(size=(count, 16))) for _ in range(3)
    ]

    def run(wrap):
        table, bias = tw.Variable(start), tw.Variable(tw.ones(16))
        optimizer = rule(0.1, **limits)

        def step(indices, values):
            rows = tw.IndexedSlices(values, indices, table.shape)
            optimizer.apply([rows, tw.reduce_mean(values, 0)], [table, bias])

        step = wrap(step)
        for indices, values in batches:
            step(tw.constant(indices), tw.constant(values, "float32"))
        return [v.numpy() for v in (table, bias, *optimizer.variables)]

    with tw.config.use_target(target):
        for traced, eager in zip(run(tw.function), run(lambda step: step)):
            np.testing.assert_allclose(traced, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "rule, height, is_dense",
    [(Adam, 10**5, True), (SGD, 10**5, False), (SGD, 99, True)],
)
def test_a_traced_step_updates_all_rows_where_that_is_faster(rule, height, is_dense):
    with tw.device("CPU"):
        v, optimizer = tw.Variable(tw.zeros((height, 16))), rule(0.1)

        @tw.function
        def step(indices):
            rows = tw.IndexedSlices(tw.ones((4, 16)), indices, v.shape)
            optimizer.apply([rows], [v])

        graph = str(step.get_concrete_function(tw.constant([1, 2, 3, 3])).graph)
    assert ("scatter_rows" in graph) == is_dense


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_traced_sparse_gradient_takes_the_dtype_of_the_variable(dtype):
    v = tw.Variable(tw.ones((4, 2), dtype))

    @tw.function
    def step(values):
        SGD(0.5).apply([tw.IndexedSlices(values, [1, 1], (4, 2))], [v])

    step(tw.ones((2, 2)))
    assert v.dtype == dtype and v.numpy()[:, 0].tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("ids, shape", [([[0], [1]], (4, 2)), ([0, 1], (5, 2))])
def test_a_traced_sparse_gradient_of_another_shape_is_refused(ids, shape):
    v = tw.Variable(tw.ones((4, 2)))

    @tw.function
    def step(values):
        SGD(0.5).apply([tw.IndexedSlices(values, ids, shape)], [v])

    with pytest.raises(ValueError, match="shape"):
        step(tw.ones((2, 2)))
    assert v.numpy().min() == 1


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("rule", [SGD, Adam])
def test_an_index_out_of_range_changes_nothing_in_a_traced_step(rule, target):
    v, optimizer = tw.Variable(tw.ones((4, 2))), rule(0.1)

    @tw.function
    def step(indices):
        optimizer.apply([tw.IndexedSlices(tw.ones((2, 2)), indices, (4, 2))], [v])

    with tw.config.use_target(target):
        step(tw.constant([0, 1]))
        before = [each.numpy() for each in (v, *optimizer.variables)]
        for bad in (4, -1):
            with pytest.raises(
                (ValueError, IndexError), match=f"from 0 to 3, got {bad}"
            ):
                step(tw.constant([0, bad]))
        for new, old in zip((v, *optimizer.variables), before):
            np.testing.assert_array_equal(new.numpy(), old)
