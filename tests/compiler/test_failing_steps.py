"""A step that fails leaves all as it was; what is held stays as it is."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.control_flow.effects import host_effect
from tapewright.compiler.control_flow.printing import assert_true
from tapewright.compiler.targets.numpy.executable import Executable


def values(tensors):
    return [np.array(t) for t in tensors]


def assert_same(found, wanted, what):
    assert len(found) == len(wanted), what
    for a, b in zip(found, wanted):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        np.testing.assert_array_equal(a, b, err_msg=what)


def optimizer(name):
    if name == "momentum":
        return tw.optimizers.SGD(0.1, momentum=0.9)
    return tw.optimizers.Adam(0.05, **({"clipnorm": 0.5} if name == "clipped" else {}))


def test_a_tape_and_a_tensor_from_before_keep_the_old_value_of_a_variable():
    w, rule = tw.Variable(np.ones((4, 3))), optimizer("momentum")
    traced = tw.function(lambda x: rule.apply_gradients([(w * x, w)]))
    for _ in range(3):
        before = w.numpy()
        old = w.read()
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(w * w)
        traced(tw.constant(2.0, tw.float64))
        assert (w.numpy() != before).any()
        np.testing.assert_array_equal(old, before)
        np.testing.assert_array_equal(tape.gradient(y, w), 2 * before)


# ------------------------------------------------------ an exception in mid-replay

X = np.array([[2.0, 1.0], [1.0, 3.0]])
BAD = -X  # not positive definite


def fallible(x, where):
    """Fails for `BAD`: in the matrix, an index, or a number drawn."""
    return {
        "matrix": lambda: tw.linalg.cholesky(x),
        "index": lambda: tw.gather(x, tw.cast(x[0], tw.int32) - 1),
        "draw": lambda: tw.random.poisson((2,), x[0, 0]),
    }[where]()


@pytest.mark.parametrize("where", ["matrix", "index", "draw"])
@pytest.mark.parametrize("place", ["before", "between", "after"])
@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_an_exception_leaves_all_as_before_the_step(where, place, kind):
    rule = optimizer(kind)
    w, count = tw.Variable(np.ones((2, 2))), tw.Variable(0)
    last = tw.Variable(np.zeros((2, 2)))

    @tw.function
    def step(x):
        count.assign_add(1)
        noise = tw.random.normal((2, 2), dtype=tw.float64)
        results = [fallible(x, where)] if place == "before" else []
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.square(w @ x + noise))
        rule.apply_gradients([(tape.gradient(loss, w), w)])
        results += [fallible(x, where)] if place == "between" else []
        last.assign(w * 2.0)
        results += [fallible(x, where)] if place == "after" else []
        return loss, results

    tw.random.set_seed(3)
    step(tw.constant(X))
    generator = tw.random.get_global_generator()
    held = [w, count, last, generator.state, rule.iterations, *rule.variables]
    before = values(held)
    with pytest.raises((ValueError, IndexError, np.linalg.LinAlgError)):
        step(tw.constant(BAD))
    assert_same(values(held), before, "after the exception")
    step(tw.constant(X))  # and goes on
    assert int(count) == 2


def test_of_two_updates_in_a_step_neither_is_made_if_the_second_cannot_be():
    first, second = (tw.Variable(np.ones((2, 2))) for _ in range(2))
    rules = tw.optimizers.SGD(0.5), tw.optimizers.SGD(0.5)

    @tw.function
    def step(x):
        rules[0].apply_gradients([(x * 1.0, first)])
        rules[1].apply_gradients([(tw.linalg.cholesky(x), second)])

    step(tw.constant(X))
    before = values([first, second])
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        step(tw.constant(BAD))
    assert_same(values([first, second]), before, "variables")


def test_what_needs_an_update_and_fails_takes_the_update_back():
    w, rule = tw.Variable(X), tw.optimizers.SGD(1.0, momentum=0.9)
    count = tw.Variable(0)

    @tw.function
    def step(x):
        count.assign_add(1)
        rule.apply_gradients([(x, w)])
        w.assign_add(x)
        rule.apply_gradients([(x, w)])
        return tw.linalg.cholesky(w)

    held = [w, count, rule.iterations, *rule.variables]
    step(tw.constant(X * 0.1))
    before = values(held)
    for _ in range(2):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            step(tw.constant(X * 9.0))
        assert_same(values(held), before, "variables")
    step(tw.constant(X * 0.1))
    assert int(rule.iterations) == 4


def test_what_is_shown_before_and_after_an_update_is_shown_in_this_order():
    w, rule, seen = tw.Variable(1.0), tw.optimizers.SGD(1.0), []

    @tw.function
    def step(x):
        host_effect("print", lambda w: seen.append(float(w)), [w])
        rule.apply_gradients([(x, w)])
        host_effect("print", lambda w: seen.append(float(w)), [w])
        host_effect("print", lambda x: seen.append(float(x)), [x])

    step(tw.constant(0.25))
    step(tw.constant(-0.5))
    assert seen == [1.0, 0.75, 0.25, 0.75, 1.25, -0.5]


@pytest.mark.parametrize("of", ["the input", "the update"])
def test_an_assertion_after_an_update_leaves_it_unmade(of):
    w, rule = tw.Variable(1.0), tw.optimizers.SGD(1.0)

    @tw.function
    def step(x):
        rule.apply_gradients([(x, w)])
        assert_true(x > 0.0 if of == "the input" else w < 1.0, "it grows")

    step(tw.constant(0.25))
    with pytest.raises(tw.errors.InvalidArgumentError, match="it grows"):
        step(tw.constant(-0.5))
    assert w.numpy() == 0.75 and int(rule.iterations) == 1


SPEC = tw.TensorSpec([2])


def test_a_host_call_that_may_not_change_a_variable_leaves_it_as_it_was():
    w = tw.Variable([1.0, 2.0])

    def assigning(x):
        w.assign(x)
        return x

    @tw.function
    def step(x, count):
        with tw.GradientTape() as tape:
            tape.watch(w)
            (y,) = tw.while_loop(
                lambda i, _: i < count,
                lambda i, y: (i + 1, y * w + tw.py_function(assigning, [x], SPEC)),
                [tw.constant(0), x],
            )[1:]
        return tape.gradient(y, w)

    with pytest.raises(tw.errors.TracingError, match="put the tape inside"):
        step(tw.constant([3.0, 4.0]), tw.constant(2))
    np.testing.assert_array_equal(w, [1.0, 2.0])


def test_a_function_that_finds_no_memory_for_its_arrays_names_itself(
    monkeypatch, numpy_target
):
    def full(*args):
        raise MemoryError("Unable to allocate 2 TiB")

    v = tw.Variable([1.0, 2.0])

    @tw.function
    def step(x):
        return v.assign_add(tw.exp(x) * 2.0 + x)

    x = tw.constant([0.0, 1.0])
    step.get_concrete_function(x)
    monkeypatch.setattr(Executable, "new_memory", full)
    message = "^the function 'step': Unable to allocate 2 TiB"
    with pytest.raises(tw.errors.ResourceExhaustedError, match=message):
        step(x)
    assert v.numpy().tolist() == [1.0, 2.0]
    monkeypatch.undo()
    assert step(x).numpy()[0] == 3.0
