"""Commits of several variables: together, whole, and never into what somebody holds."""

import operator
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.commit import (
    Commit,
    bind_all,
    bound_again,
    commit,
    references,
    restoring,
    undoing,
    with_arrays_back,
)

counted = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="counts are not exact"
)


def variables():
    return tw.Variable([1.0, 2.0]), tw.Variable([3.0])


class InPlace:
    """A step that writes 7 into the array of a variable, or into a copy if it is held."""

    def __init__(self, variable):
        self.variable, self.copies = variable, 0

    def add_to(self, change):
        arrays = [self.variable._array]
        alone = [*map(references, [np.empty(0)])][0] + 1  # the variable has it as well
        if change.in_place and [*map(references, arrays)] == [alone]:
            write = partial(operator.setitem, arrays[0], ..., 7)
            change.overwrite([self.variable], arrays, arrays, [alone + 1])
            change.writes.append(write)
            return
        self.copies += 1
        arrays[0] = arrays[0].copy()
        change.bind([self.variable], arrays)
        change.writes.append(partial(operator.setitem, arrays[0], ..., 7))


def test_a_commit_binds_all_arrays():
    v, w = variables()
    commit([], [v, w], [np.float32([5, 6]), np.float32([7])])
    assert v.numpy().tolist() == [5, 6] and w.numpy().tolist() == [7]


def test_numbers_of_numpy_become_arrays():
    v = tw.Variable(1.0)
    commit([], [v], [np.float32(2)])
    assert type(v._array) is np.ndarray and v.numpy() == 2


@counted
def test_an_array_that_nobody_holds_is_written_in_place():
    v, _ = variables()
    place, step = id(v._array), InPlace(v)
    commit([step])
    assert id(v._array) == place and step.copies == 0
    assert v.numpy().tolist() == [7, 7]


def test_an_array_that_is_held_stays_as_it_is():
    v, _ = variables()
    held, step = v.read(), InPlace(v)
    commit([step])
    assert held.numpy().tolist() == [1, 2] and v.numpy().tolist() == [7, 7]
    assert step.copies == 1


@counted
def test_who_takes_an_array_before_the_commit_runs_is_seen_in_time():
    v, _ = variables()
    change, step = Commit(), InPlace(v)
    step.add_to(change)
    held = v.read()
    assert not change.run()
    assert held.numpy().tolist() == [1, 2] and v.numpy().tolist() == [1, 2]


def test_a_commit_gives_up_to_write_in_place_where_somebody_always_reads():
    v, _ = variables()
    step, held = InPlace(v), []
    add = step.add_to

    def add_to(change):
        add(change)
        held.append(v.read())

    step.add_to = add_to
    commit([step])
    assert v.numpy().tolist() == [7, 7] and step.copies >= 1
    assert all([h.numpy().tolist() == [1, 2] for h in held])


def test_an_error_among_the_writes_leaves_every_variable_with_an_array():
    v, w = variables()
    change = Commit()
    change.bind([w], [np.float32([9])])
    InPlace(v).add_to(change)
    change.writes.append(partial(int, "no number"))
    with pytest.raises(ValueError, match="no number"):
        change.run()
    assert v.numpy().shape == (2,) and w.numpy().tolist() == [3]


def test_variables_have_their_arrays_again_after_an_error():
    v, w = variables()

    def fail():
        v.assign([8.0, 8.0])
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        restoring([v, w], fail)
    assert v.numpy().tolist() == [1, 2]
    restoring([v, w], v.assign, [8.0, 8.0])
    assert v.numpy().tolist() == [8, 8]


def test_a_second_interrupt_keeps_no_variable_from_having_its_array_again():
    """The second one comes at each bytecode behind the first, which fails the function."""

    def trace(frame, event, argument):
        nonlocal count, came
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode" and failed and frame.f_code is undoing.__code__:
            count += 1
            if count == n:
                came = True
                raise KeyboardInterrupt
        return trace

    def fail():
        v.assign([8.0, 8.0])
        failed.append(True)
        raise KeyboardInterrupt

    def interrupted():
        sys.settrace(trace)
        with pytest.raises(KeyboardInterrupt):
            undoing(restore, fail)
        sys.settrace(None)

    n, came = 0, True
    while came:
        v, _ = variables()
        failed, came, count, n = [], False, 0, n + 1
        restore = bound_again([v])
        # In a thread: behind an interrupt of its cleanup Python still handles the first one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(interrupted).result()
        assert v.numpy().tolist() == [1, 2]
    assert n > 5


def test_what_is_to_be_bound_again_may_be_given_and_may_be_forgotten():
    v, w = variables()
    names, copies = [v, w], [np.float32([5, 6]), np.float32([7])]
    bound_again(names, copies)()
    assert v.numpy().tolist() == [5, 6] and w.numpy().tolist() == [7]
    restore = bound_again(names)
    v.assign([1.0, 2.0])
    names.clear()
    restore()
    assert v.numpy().tolist() == [1, 2]


def test_variables_have_their_arrays_again_after_a_trial():
    v, w = variables()

    def trial():
        bind_all([v, w], [np.float32([5, 6]), np.float32([7])])
        return v.numpy() + w.numpy()

    assert with_arrays_back([v, w], trial).tolist() == [12, 13]
    assert v.numpy().tolist() == [1, 2] and w.numpy().tolist() == [3]
