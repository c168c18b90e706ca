"""Large outputs: their memory is taken again, but never while anybody holds it."""

import gc
import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.native.jit import output_memory
from tapewright.compiler.targets.native.jit.output_memory import (
    LEAST,
    Piece,
    new_array,
)

N = LEAST // 4


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(output_memory, "_pieces", [])


def address(array):
    return array.ctypes.data


def array():
    return new_array((N,), np.dtype("f4"))


def test_memory_that_nobody_holds_is_taken_again():
    first = address(array())
    assert address(array()) == first
    held = array()
    assert address(held) == first
    assert address(array()) != first
    del held
    assert {address(each) for each in [array(), array()]} >= {first}


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[1:2],
        lambda a: a.reshape(2, -1).T,
        lambda a: memoryview(a)[1:2],
        lambda a: np.from_dlpack(a),
        lambda a: np.asarray(memoryview(a))[:4].view(np.int32),
        lambda a: [{"a": a}],
    ],
)
def test_memory_is_not_taken_while_a_view_holds_it(view):
    a = array()
    a[:] = 7
    where, held = address(a), view(a)
    del a
    gc.collect()
    others = [array() for _ in range(3)]
    assert where not in map(address, others)
    for other in others:
        other[:] = 8
    if not isinstance(held, list):
        assert (np.asarray(held).view(np.float32) == 7).all()
    del held
    gc.collect()
    assert address(array()) == where


def test_views_hold_the_array_itself():
    a = array()
    assert a[1:].base is a and type(a.base) is Piece and type(a) is np.ndarray
    assert a.flags.writeable and a.flags.c_contiguous and not address(a) % 64


def test_other_sizes_have_memory_of_their_own():
    a = new_array((3, 5), np.dtype("f8"))
    where = address(a)
    del a
    assert address(new_array((5, 3), np.dtype("i8"))) == where
    assert new_array((4, 4), np.dtype("f8")).nbytes == 128
    assert len(output_memory._pieces) == 2


def test_little_is_kept(monkeypatch):
    monkeypatch.setattr(output_memory, "MOST", 3 * 4 * N)
    held = [array() for _ in range(5)]
    assert len({address(each) for each in held}) == 5
    assert len(output_memory._pieces) == 2
    del held
    assert new_array((4 * N,), np.dtype("f4")).base is None
    assert len(output_memory._pieces) == 2


def test_where_references_are_not_counted_memory_is_always_new(monkeypatch):
    monkeypatch.setattr(output_memory, "_is_counted", False)
    assert array().base is None and not output_memory._pieces


def test_threads_never_get_the_same_memory():
    def work(number):
        for _ in range(200):
            a = new_array((64,), np.dtype("i8"))
            a[:] = number
            wrong.extend(a[a != number])

    wrong = []
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_outputs_of_functions_keep_their_values():
    @tw.function
    def run(x):
        return x + 1.0, x * 2.0

    x = np.arange(N, dtype="f4")
    kept = []
    for i in range(6):
        y, z = run(tw.constant(x + i))
        kept.append((y, z.numpy()[3:5]) if i % 2 else (y.numpy()[::2], z))
    v = tw.Variable(kept[1][0])
    for i, (y, z) in enumerate(kept):
        y, z = np.asarray(y), np.asarray(z)
        np.testing.assert_array_equal(y, x + i + 1 if i % 2 else (x + i + 1)[::2])
        np.testing.assert_array_equal(z, (2 * (x + i))[3:5] if i % 2 else 2 * (x + i))
    v.assign_add(tw.ones_like(v))
    np.testing.assert_array_equal(np.asarray(kept[1][0]), x + 2)
    if tw.config.target() == "native":
        kept.clear()
        before = {each.ctypes.data for each in output_memory._pieces}
        run(tw.constant(x))
        assert {each.ctypes.data for each in output_memory._pieces} == before
