"""Work that is shared out among threads."""

import os
import threading

import pytest

from tapewright.saving.storage.threads import share_out


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_every_item_is_worked_on_once():
    done = []
    share_out(done.append, range(1000))
    assert sorted(done) == list(range(1000))


def test_a_thread_that_takes_long_leaves_the_rest_to_the_other():
    done, enough = [], threading.Event()

    def work(item):
        if not item:
            assert enough.wait(20)
        done.append(item)
        if len(done) == 5:
            enough.set()

    share_out(work, range(6))
    assert sorted(done) == list(range(6))


def test_an_error_of_any_thread_is_raised():
    def work(item):
        if item == 7:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        share_out(work, range(20))
