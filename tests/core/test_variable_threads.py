"""Variables that several threads read and write."""

import threading
import time
from functools import partial

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.variable import writing


@pytest.mark.parametrize(("method", "total"), [("assign_add", 8.0), ("assign_sub", -8)])
def test_what_several_threads_add_is_all_counted(method, total, in_threads):
    counter = tw.Variable(np.zeros(1000, np.float32))
    one = tw.ones(1000)

    def count():
        for _ in range(200):
            getattr(counter, method)(one)

    in_threads(*[count] * 8)
    assert (counter.numpy() == 200 * total).all()


def test_an_array_that_is_away_is_waited_for():
    v, seen = tw.Variable([1.0, 2.0]), []
    with writing([v]):
        array = v._array
        del v._array  # as an optimizer does while it writes
        reader = threading.Thread(target=lambda: seen.append(v.numpy().tolist()))
        reader.start()
        time.sleep(0.01)
        assert not seen
        v._array = array + 1
    reader.join()
    assert seen == [[2.0, 3.0]]


def test_writers_of_the_same_variables_in_another_order_do_not_wait_for_ever(
    in_threads,
):
    a, b = tw.Variable(0), tw.Variable(0)

    def work(i):
        for _ in range(200):
            with writing([a, b] if i % 2 else [b, a]), writing([b, a]):
                a.assign(a.numpy() + 1)
                b.assign(b.numpy() + 1)

    in_threads(*[partial(work, i) for i in range(4)])
    assert a.numpy() == b.numpy() == 800


def test_a_missing_attribute_is_named():
    with pytest.raises(AttributeError, match="'Variable'.*'foo'"):
        tw.Variable(1.0).foo  # noqa: B018
