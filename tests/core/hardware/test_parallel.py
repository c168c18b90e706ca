"""Independent pieces of work in several threads."""

import os
import threading

import numpy as np
import pytest

from tapewright import config
from tapewright.core.hardware.parallel import SHARE, parallel_for, parallel_map


@pytest.fixture(autouse=True)
def three_threads():
    config.set_threads(3)
    yield
    config.set_threads(None)


def test_every_item_is_worked_on_once():
    done = []
    parallel_for(done.append, range(1000))
    assert sorted(done) == list(range(1000))


def test_results_are_in_order():
    assert parallel_map(lambda i: i * i, range(100)) == [i * i for i in range(100)]


def test_a_thread_that_takes_long_leaves_the_rest_to_the_others():
    done, enough = [], threading.Event()

    def work(item):
        if not item:
            assert enough.wait(20)
        done.append(item)
        if len(done) == 5:
            enough.set()

    parallel_for(work, range(6))
    assert sorted(done) == list(range(6))


@pytest.mark.parametrize(
    ("threads", "entries", "limit"),
    [(1, None, 1), (3, None, 3), (3, 2 * SHARE, 2), (3, 2 * SHARE - 1, 1), (3, 0, 1)],
)
def test_no_more_threads_take_part_than_are_worth_it(threads, entries, limit):
    config.set_threads(threads)
    seen, together = set(), threading.Event()

    def work(item):
        seen.add(threading.get_ident())
        if len(seen) == limit:
            together.set()
        assert together.wait(20)

    parallel_for(work, range(50), entries)
    assert len(seen) == limit and threading.get_ident() in seen


def test_an_error_of_any_thread_is_raised_and_ends_the_work():
    done = []

    def work(item):
        if item == 7:
            raise OSError("the disk is gone")
        done.append(item)

    with pytest.raises(OSError, match="the disk is gone"):
        parallel_for(work, range(100_000))
    assert len(done) < 100_000


def test_an_error_of_a_thread_that_helps_is_raised():
    here, helped = threading.get_ident(), threading.Event()

    def work(item):
        if threading.get_ident() != here:
            helped.set()
            raise OSError("the disk is gone")
        assert helped.wait(20)

    with pytest.raises(OSError, match="the disk is gone"):
        parallel_for(work, range(3))


def test_helpers_are_done_when_an_error_is_raised():
    begun, done = threading.Event(), []

    def work(item):
        if item == 0:
            assert begun.wait(20)
            raise ValueError("0")
        begun.set()
        threading.Event().wait(0.2)
        done.append(item)

    config.set_threads(2)
    with pytest.raises(ValueError, match="0"):
        parallel_for(work, [0, 1])
    assert done == [1]


def test_settings_for_floating_point_errors_hold_in_all_threads():
    barrier, zeros = threading.Barrier(3), np.zeros(4)

    def work(item):
        barrier.wait(20)
        return 1.0 / zeros

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        parallel_for(work, range(3))
    with np.errstate(divide="ignore"):
        parallel_for(work, range(3))


def test_work_inside_of_work_ends():
    done = []
    parallel_for(
        lambda i: parallel_for(lambda j: done.append((i, j)), range(5)), range(5)
    )
    assert sorted(done) == [(i, j) for i in range(5) for j in range(5)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    def together():
        barrier = threading.Barrier(3)
        parallel_for(lambda i: barrier.wait(20), range(3))

    together()
    child = os.fork()
    if child == 0:
        try:
            together()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
