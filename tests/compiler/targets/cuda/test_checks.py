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
    assert executable_of(step, *arguments).program.restored == ([], [])


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


def test_a_look_that_needs_the_update_stays_behind_it(gpu, unverified):
    v = tw.Variable(np.arange(4.0, dtype=np.float32))

    @tw.function
    def step(x):
        v.assign_add(x)
        return tw.gather(x, tw.cast(v[:1], "int32"))

    v_before = v.numpy()
    with pytest.raises((IndexError, tw.errors.OutOfRangeError, ValueError)):
        step(tw.constant([9.0, 0.0, 0.0, 0.0])).numpy()
    assert (v.numpy() == v_before).all()
