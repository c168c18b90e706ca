"""Looks at values in front of changes of variables."""

import numpy as np
import pytest

import tapewright as tw

from .runtime_runs import asked, executable_of, new_log

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def two_steps():
    """A variable, and two steps of training on it in one function."""
    w = tw.Variable(np.ones((3, 5), np.float32))
    rule = tw.optimizers.SGD(1.0)

    @tw.function
    def step(x, first, second):
        for labels in (first, second):
            with tw.GradientTape() as tape:
                entropy = tw.nn.sparse_softmax_cross_entropy_with_logits
                loss = tw.reduce_mean(entropy(labels, tw.matmul(x, w)))
            rule.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    return w, rule, step


def test_several_steps_with_labels_are_one_graph_that_nobody_waits_for(gpu, unverified):
    _, _, step = two_steps()
    arguments = tw.constant(X), tw.constant([0, 1, 2, 3]), tw.constant([4, 3, 2, 1])
    step(*arguments)
    new_log()
    step(*arguments)
    assert asked().count("graph") == 1 and "synchronize" not in asked()
    assert executable_of(step, *arguments).program.fails_late is False


def test_a_wrong_label_of_the_second_step_stops_the_first(gpu, unverified):
    w, rule, step = two_steps()
    x, right = tw.constant(X), tw.constant([0, 1, 2, 3])
    step(x, right, right)
    before, count = w.numpy(), int(rule.iterations.numpy())
    with pytest.raises(tw.errors.InvalidArgumentError, match="from 0 to 4"):
        step(x, right, tw.constant([0, 1, 2, 5])).numpy()
    assert (w.numpy() == before).all() and int(rule.iterations.numpy()) == count
    step(x, right, right).numpy()
    assert int(rule.iterations.numpy()) == count + 2


def test_a_look_at_what_is_assigned_stops_the_assignment(gpu, unverified):
    v = tw.Variable(np.arange(4.0, dtype=np.float32))

    @tw.function
    def step(x):
        v.assign_add(x)
        return tw.gather(x, tw.cast(v[:1], "int32"))

    v_before = v.numpy()
    with pytest.raises((IndexError, tw.errors.OutOfRangeError, ValueError)):
        step(tw.constant([9.0, 0.0, 0.0, 0.0])).numpy()
    assert (v.numpy() == v_before).all()


def test_a_look_at_updated_weights_stays_behind_and_what_is_before_it_is_restored(gpu):
    w, rule = tw.Variable(np.zeros(2, np.float32)), tw.optimizers.SGD(1.0)

    @tw.function
    def step(x):
        rule.apply_gradients([(x, w)])
        return tw.gather(x, tw.cast(w[:1], "int32"))

    x = tw.constant([-1.0, 7.0])
    assert step(x).numpy() == [7.0]
    with pytest.raises(tw.errors.InvalidArgumentError):
        step(x).numpy()
    assert w.numpy().tolist() == [1.0, -7.0] and int(rule.iterations.numpy()) == 1


def test_a_variable_whose_array_is_held_keeps_its_value_if_a_look_fails(
    gpu, unverified
):
    v = tw.Variable(np.arange(4.0, dtype=np.float32))

    @tw.function
    def step(x, index):
        v.assign_add(x + tw.gather(x, index))

    x = tw.constant([1.0, 2.0, 3.0, 4.0])
    step(x, tw.constant(0))
    held = v.read_value()
    with pytest.raises(tw.errors.InvalidArgumentError):
        step(x, tw.constant(4))
        v.numpy()
    assert v.numpy().tolist() == held.numpy().tolist() == [2.0, 4.0, 6.0, 8.0]


def test_a_region_that_fails_behind_an_update_undoes_it(gpu, unverified):
    w, rule = tw.Variable(np.ones(2, np.float32)), tw.optimizers.Adam(0.1)
    rows = tw.constant([1.0, 2.0, 3.0])

    @tw.function
    def step(index):
        rule.apply_gradients([(w * 1.0, w)])
        return tw.cond(w[0] > 0, lambda: tw.gather(rows, index), lambda: rows[:1])

    step(tw.constant([1]))
    before = w.numpy()
    with pytest.raises(tw.errors.InvalidArgumentError):
        step(tw.constant([7]))
    assert (w.numpy() == before).all() and int(rule.iterations.numpy()) == 1


@pytest.mark.parametrize("call", [tw.linalg.inv, tw.linalg.cholesky])
@pytest.mark.parametrize("in_region", [False, True])
def test_the_error_is_that_of_the_cause(call, in_region, gpu, unverified):
    matrices = tw.constant(np.eye(2, dtype=np.float32) + 1)

    @tw.function
    def step(index):
        if in_region:
            condition = matrices[0, 0] > 0
            return call(
                tw.cond(condition, lambda: tw.gather(matrices, index), lambda: matrices)
            )
        return call(tw.gather(matrices, index))

    with pytest.raises(IndexError, match="indices must be from 0 to 1"):
        step(tw.constant([0, 9]))
    assert tw.function(lambda x: x + 1.0)(tw.constant(1.0)).numpy() == 2.0
