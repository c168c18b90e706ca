"""Wrong values: the error that names op and line, and what is as it was before."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.errors import InvalidArgumentError

from ....stand_in import driver
from .runtime_runs import asked, executable_of, graphs, new_log, numbers_of, on_numpy

GOOD, BAD = np.array([0, 1, 2]), np.array([0, 7, 2])


class Classifier:
    """A step of training with labels, which counts steps and draws random numbers."""

    def __init__(self, rule=None):
        tw.random.set_seed(0)
        self.w = tw.Variable(tw.ones([4, 3]) * 0.1)
        self.rule = rule or tw.optimizers.Adam(0.1)
        self.total = tw.Variable(tw.zeros([]))
        self.dropout = tw.layers.Dropout(0.3, seed=1)
        self.x = tw.constant(np.arange(12, dtype="f").reshape(3, 4) / 10)
        self.step = tw.function(self.train)

    def train(self, labels):
        with tw.GradientTape() as tape:
            logits = self.dropout(self.x, training=True) @ self.w
            losses = tw.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tw.reduce_mean(losses)
        self.rule.apply_gradients([(tape.gradient(loss, self.w), self.w)])
        self.total.assign_add(loss)
        return loss

    def variables(self):
        own = [self.w, self.total, *self.dropout.variables]
        return [*own, *self.rule.variables]

    def values(self):
        return numbers_of(self.variables())


def labels(values):
    return tw.constant(values)


def test_wrong_labels_are_an_error_at_once_where_programs_are_verified(gpu):
    s = Classifier()
    s.step(labels(GOOD))
    before = s.values()
    with pytest.raises((InvalidArgumentError, ValueError)) as caught:
        s.step(labels(BAD))
    assert "test_memory.py" in "".join(caught.value.__notes__)
    assert "softmax_cross_entropy" in "".join(caught.value.__notes__)
    assert s.values() == before


def test_the_error_is_that_of_numpy(gpu):
    with on_numpy(), pytest.raises(ValueError) as wanted:
        Classifier().step(labels(BAD))
    with pytest.raises(ValueError) as found:
        Classifier().step(labels(BAD))
    assert type(found.value) is type(wanted.value)
    assert str(found.value).splitlines()[0] == str(wanted.value).splitlines()[0]


LOOKS = {
    "the loss": lambda s, loss: loss.numpy(),
    "a number": lambda s, loss: float(loss),
    "a variable": lambda s, loss: s.w.numpy(),
    "the next call": lambda s, loss: s.step(labels(GOOD)),
    "another tensor": lambda s, loss: tw.constant([1.0]).numpy(),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("held", [False, True])
def test_wrong_labels_are_an_error_at_the_next_look(look, held, gpu, unverified):
    s, other = Classifier(), Classifier()
    s.step(labels(GOOD))
    other.step(labels(GOOD))
    before = s.values()
    kept = [v.read() for v in s.variables()] if held else []
    loss = s.step(labels(BAD))
    with pytest.raises(ValueError) as caught:
        LOOKS[look](s, loss)
    assert "test_memory.py" in "".join(caught.value.__notes__)
    assert s.values() == before
    assert [k.numpy().tolist() for k in kept] == (before if held else [])
    s.step(labels(GOOD))
    other.step(labels(GOOD))
    assert s.values() == other.values()


@pytest.mark.parametrize("later", [1, 3])
def test_steps_that_are_launched_behind_a_wrong_one_change_nothing(
    later, gpu, unverified
):
    s, other = Classifier(), Classifier()
    good, bad = labels(GOOD), labels(BAD)
    for each in (s, other):
        each.step(good)
        each.step(good)
    before, kept = s.values(), []
    with driver.deferred():
        kept += [s.step(x) for x in [bad, *[good] * later]]
    with pytest.raises(ValueError):
        kept[0].numpy()
    assert s.values() == before
    assert kept[-1].numpy() is not None  # the error was raised once
    s.step(good)
    other.step(good)
    assert s.values() == other.values()


def test_steps_that_were_good_stay_when_a_later_one_is_wrong(gpu, unverified):
    s, other = Classifier(), Classifier()
    good, bad = labels(GOOD), labels(BAD)
    for each in (s, other):
        each.step(good)
    with driver.deferred():
        kept = [s.step(x) for x in (good, good, bad, good)]
    other.step(good)
    other.step(good)
    with pytest.raises(ValueError):
        kept[0].numpy()
    assert s.values() == other.values()


def test_a_gather_that_is_out_of_range_stores_nothing(gpu, unverified):
    v = tw.Variable(tw.zeros([2]))
    table = tw.constant(np.arange(10, dtype="f").reshape(5, 2))

    @tw.function
    def look_up(i):
        v.assign(tw.gather(table, i)[0])
        return v * 1.0

    look_up(labels([3]))
    for wrong in ([5], [-1]):
        result = look_up(labels(wrong))
        with pytest.raises((IndexError, ValueError)):
            result.numpy()
        assert v.numpy().tolist() == [6.0, 7.0]
    look_up(labels([1]))
    assert v.numpy().tolist() == [2.0, 3.0]


def test_a_variable_that_changes_before_the_check_is_restored(gpu, unverified):
    v = tw.Variable(tw.zeros([], "int64"))
    table = tw.constant(np.arange(4, dtype="f"))

    @tw.function
    def next_entry():
        v.assign_add(1)
        return tw.gather(table, v)

    for n in (1, 2, 3):
        assert next_entry().numpy() == n
    with pytest.raises((IndexError, ValueError)):
        next_entry().numpy()
    assert v.numpy() == 3


def test_a_region_that_finds_a_wrong_value_keeps_the_program_from_storing(
    gpu, unverified
):
    v = tw.Variable(tw.zeros([2]))
    table = tw.constant(np.arange(10, dtype="f").reshape(5, 2))

    @tw.function
    def look_up(i):
        _, row = tw.while_loop(
            lambda n, _: n < 2,
            lambda n, _: (n + 1, tw.gather(table, i + n)),
            (0, table[0]),
        )
        v.assign(row)
        return row

    look_up(tw.constant(0))
    before = v.numpy().tolist()
    with pytest.raises((IndexError, ValueError)):
        look_up(tw.constant(4)).numpy()
    assert v.numpy().tolist() == before
    look_up(tw.constant(1))
    assert v.numpy().tolist() == [4.0, 5.0]


def test_a_branch_that_finds_a_wrong_value_keeps_the_program_from_storing(
    gpu, unverified
):
    v = tw.Variable(tw.zeros([2]))
    table = tw.constant(np.arange(10, dtype="f").reshape(5, 2))

    @tw.function
    def look_up(i):
        row = tw.cond(i > 0, lambda: tw.gather(table, i), lambda: table[0])
        v.assign(row * 2.0)

    look_up(tw.constant(1))
    with pytest.raises((IndexError, ValueError)):
        look_up(tw.constant(5))
        v.numpy()
    assert v.numpy().tolist() == [4.0, 6.0]


def test_a_function_that_fails_does_not_disturb_another(gpu, unverified):
    s, other = Classifier(), Classifier()
    s.step(labels(GOOD)), other.step(labels(GOOD))
    loss = s.step(labels(BAD))
    other.step(labels(GOOD))
    with pytest.raises(ValueError):
        loss.numpy()
    assert other.rule.iterations.numpy() == 2 and s.rule.iterations.numpy() == 1


def test_python_between_graphs_sees_no_wrong_values(gpu, unverified):
    seen = []

    @tw.function
    def f(i):
        row = tw.gather(tw.constant([1.0, 2.0]), i)
        spec = tw.TensorSpec([], "float32")
        return tw.py_function(lambda x: seen.append(float(x)) or x, [row], spec)

    f(tw.constant(1))
    with pytest.raises((IndexError, ValueError)):
        f(tw.constant(2))
    assert seen == [2.0]


def test_two_threads_look_at_results_at_once(gpu, unverified, in_threads):
    s = Classifier()

    def look():
        for _ in range(200):
            devices.check_later(s.check)
            devices.check_results()

    s.check = type("Check", (), {"look": lambda self: None})().look
    in_threads(look, look)


def test_a_step_that_can_fail_does_not_wait(gpu, unverified):
    s = Classifier()
    s.step(labels(GOOD))
    good = labels(GOOD)
    s.step(good)
    new_log()
    s.step(good)
    assert "synchronize" not in asked() and graphs() == (0, 1)
    assert executable_of(s.step, good).checks


def test_the_error_knows_values_whose_memory_would_be_used_again(gpu, unverified):
    table = tw.constant(np.arange(5, dtype="f"))

    def f(i):
        indices = tw.cumsum(i)
        entries = tw.gather(table, indices)
        other = tw.cumsum(i * 3)
        for _ in range(3):
            other = tw.cumsum(tw.reverse(other, [0]))
        return tw.reduce_sum(entries) + tw.cast(tw.reduce_sum(other), "float32")

    given = np.array([1, 1, 5, 1])
    with on_numpy(), pytest.raises((IndexError, ValueError)) as wanted:
        tw.function(f)(tw.constant(given))
    with pytest.raises((IndexError, ValueError)) as found:
        tw.function(f)(tw.constant(given)).numpy()
    assert type(found.value) is type(wanted.value)
    assert str(found.value).splitlines()[0] == str(wanted.value).splitlines()[0]


def test_an_index_that_the_host_has_sent_is_named(gpu, unverified):
    rule, v = tw.optimizers.SGD(0.1), tw.Variable(tw.ones([2]))
    rule.build([v])

    @tw.function
    def step():
        rate = tw.gather(v, rule.iterations)
        rule.apply_gradients([(v * rate, v)])

    step(), step()
    before = v.numpy().tolist()
    step()
    with pytest.raises((IndexError, ValueError), match="2"):
        v.numpy()
    assert v.numpy().tolist() == before and rule.iterations.numpy() == 2
