"""Executables: memory used again, results that stay, variables, threads, errors."""

import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.arena import lay_out


def concrete(function, *args):
    return tw.function(function).get_concrete_function(*args)


def test_buffers_are_used_again():
    def chain(x):
        for _ in range(20):
            x = tw.matmul(x, x)
        return x

    x = tw.eye(32)
    executable = concrete(chain, x).executable
    assert executable.arena_size <= 3 * 32 * 32 * 4


def test_spans_that_meet_never_share_memory():
    rng = np.random.default_rng(0)
    spans = []
    for _ in range(60):
        first = int(rng.integers(0, 50))
        spans.append(
            (first, first + int(rng.integers(0, 9)), int(rng.integers(1, 999)))
        )
    starts, size = lay_out(spans)
    for i, (a, b, n) in enumerate(spans):
        assert starts[i] + n <= size
        for j in range(i):
            c, d, m = spans[j]
            if a <= d and c <= b:
                assert starts[i] + n <= starts[j] or starts[j] + m <= starts[i]


def test_an_output_that_is_kept_is_not_overwritten():
    f = tw.function(lambda x: (x * 2.0, tw.transpose(x + 1.0), tw.matmul(x, x)))
    first = f(tw.eye(3))
    kept = [y.numpy() for y in first]
    for n in range(5):
        f(tw.eye(3) * float(n))
    for y, value in zip(first, kept):
        np.testing.assert_array_equal(y.numpy(), value)


def test_an_output_that_is_an_input_is_that_tensor_s_value():
    x = tw.constant([1.0, 2.0])
    y, z = tw.function(lambda x: (x, tw.reshape(x, [2, 1])))(x)
    np.testing.assert_array_equal(y.numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(z.numpy(), [[1.0], [2.0]])


def test_a_variable_s_old_value_may_be_returned_beside_its_update():
    v = tw.Variable([1.0, 2.0])

    @tw.function
    def step(x):
        old = v.read_value()
        v.assign_add(x)
        return old, v.read_value()

    results = [step(tw.constant([1.0, 1.0])) for _ in range(3)]
    for n, (old, new) in enumerate(results):
        np.testing.assert_array_equal(old.numpy(), [1.0 + n, 2.0 + n])
        np.testing.assert_array_equal(new.numpy(), [2.0 + n, 3.0 + n])


def test_a_value_used_after_the_optimizer_s_update_is_the_one_before():
    v = tw.Variable([1.0, 2.0])
    optimizer = tw.keras.optimizers.SGD(0.5)

    @tw.function
    def step():
        old = v.read_value()
        optimizer.apply_gradients([(tw.ones([2]), v)])
        return old * 10.0, v * 10.0

    for n in range(3):
        old, new = step()
        np.testing.assert_array_equal(old.numpy(), [10.0 - 5 * n, 20.0 - 5 * n])
        np.testing.assert_array_equal(new.numpy(), [5.0 - 5 * n, 15.0 - 5 * n])


def test_a_tensor_read_before_a_replay_keeps_its_value():
    v = tw.Variable(tw.ones([3]))
    optimizer = tw.keras.optimizers.Adam(0.1)

    @tw.function
    def step():
        optimizer.apply_gradients([(tw.ones([3]), v)])

    step()
    held = v.read_value()
    value = held.numpy()
    step()
    np.testing.assert_array_equal(held.numpy(), value)
    assert not np.array_equal(v.numpy(), value)


def test_gradients_go_straight_into_the_update_s_slots():
    v, w = tw.Variable(tw.ones([3, 3])), tw.Variable(tw.ones([3]))
    optimizer = tw.keras.optimizers.Adam(0.1)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.tanh(tw.matmul(x, v) + w))
        optimizer.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w]))

    x = tw.ones([2, 3])
    step(x)
    executable = step.get_concrete_function(x).executable
    assert executable.assignment.slots


def test_threads_have_buffers_of_their_own():
    f = tw.function(lambda x: tw.matmul(tw.matmul(x, x), x))
    inputs = [tw.eye(64) * float(n) for n in range(8)]
    f(inputs[0])
    wrong = []

    def work(n):
        for _ in range(30):
            if not np.array_equal(f(inputs[n]).numpy(), np.eye(64) * n**3):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_error_in_a_replay_names_the_op_and_the_line():
    f = tw.function(tw.linalg.cholesky)
    f(tw.eye(2))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        f(-tw.eye(2))
    assert any("cholesky" in note for note in caught.value.__notes__)


def test_a_replay_goes_on_after_an_error():
    f = tw.function(tw.linalg.cholesky)
    with pytest.raises(np.linalg.LinAlgError):
        f(-tw.eye(2))
    np.testing.assert_array_equal(f(tw.eye(2)).numpy(), np.eye(2))


def test_empty_arrays_and_scalars_pass():
    f = tw.function(lambda x, y: (x * 2.0, tw.reduce_sum(x), tw.exp(y) + y))
    empty, total, scalar = f(tw.zeros([0, 3]), tw.constant(0.0))
    assert empty.shape == (0, 3)
    assert (total.numpy(), scalar.numpy()) == (0.0, 1.0)


def test_the_layout_of_an_input_does_not_matter():
    f = tw.function(lambda x: tw.reduce_sum(tw.tanh(x) * x, axis=0))
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    expected = f(tw.constant(x)).numpy()
    turned = tw.transpose(tw.constant(x.T.copy()))
    np.testing.assert_array_equal(f(turned).numpy(), expected)
