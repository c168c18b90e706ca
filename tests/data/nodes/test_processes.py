"""Functions of elements in several processes: `map(..., processes=True)`."""

import faulthandler
import gc
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing.pool import RemoteTraceback
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.settings import determinism
from tapewright.data import AUTOTUNE, Dataset
from tapewright.data.nodes import processes
from tapewright.data.nodes.processes import Processes, _new_slot, _opened_slot
from tapewright.data.parts import part_of_batches
from tapewright.data.rng import (
    MOST_OBJECTS,
    Draws,
    captured_generators,
    seed_generators,
)

from ..elements_of import values

forked = pytest.mark.skipif(
    sys.platform != "linux", reason="functions of tests are forked"
)
pytestmark = forked


def alive():
    return multiprocessing.active_children()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def soon(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.01)
    return False


def process_map(ds, function, count=2, **options):
    return ds.map(function, num_parallel_calls=count, processes=True, **options)


def slow_at_even(x):
    time.sleep(0.01 * (int(x) % 2 == 0))
    return x, os.getpid()


def sleep_late(x):
    time.sleep(600 * (int(x) > 2))
    return x


def drawn(x):
    return x, tw.random.uniform([2]), tw.random.normal([]), tw.random.shuffle([1, 2, 3])


def test_elements_keep_their_order_and_come_from_other_processes():
    found = values(process_map(Dataset.range(20), slow_at_even, 3))
    assert [x for x, _ in found] == list(range(20))
    pids = {pid for _, pid in found}
    assert len(pids) > 1 and os.getpid() not in pids
    assert not alive()


def everything(x):
    import ml_dtypes

    words = tw.constant(["a", "", "longer words", "ü"])
    n = np.int64(x)
    return {
        "scalars": (x, True, 2.5, np.float16(n), np.complex64(1j)),
        "strings": (words, b"bytes", np.array([["x"], ["yz"]])),
        "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
        "arrays": (np.ones((2000, 3)) * n, np.ones((70, 50))[:, ::2], np.ones((0, 3))),
        "fortran": np.asfortranarray(np.arange(9000.0).reshape(3, 3000)),
        "other order": np.arange(4, dtype=">i4"),
        "list": [[1, 2], [3, 4]],
        "ragged": tw.ragged.constant([[1.0], [], [2.0, float(n)]]),
        "sparse": tw.SparseTensor([[0, 1]], [n], [2, 2]),
    }


@pytest.mark.parametrize("large", [1, 1 << 12, 1 << 40])
def test_elements_of_all_kinds_are_those_of_threads(large, monkeypatch):
    pytest.importorskip("ml_dtypes")
    monkeypatch.setattr(processes, "LARGE", large)
    source = Dataset.range(5).map(lambda x: (everything(x), x))
    for function in (lambda _, x: everything(x), lambda nest, x: nest):
        ours = list(process_map(source, function))
        theirs = list(source.map(function, num_parallel_calls=2))
        assert len(ours) == len(theirs) == 5
        for one, other in zip(ours, theirs, strict=True):
            tw.nest.assert_same_structure(one, other)
            flat = [
                tw.nest.flatten(each, expand_composites=True) for each in (one, other)
            ]
            for a, b in zip(*flat, strict=True):
                assert (a.dtype, a.shape, type(a)) == (b.dtype, b.shape, type(b))
                np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_list_is_a_tuple_of_components():
    ds = Dataset.range(2)
    assert values(process_map(ds, lambda x: [x, [x, x]])) == [(0, [0, 0]), (1, [1, 1])]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_random_numbers_are_those_of_threads_with_a_shuffle_before_and_after(count):
    def made(**options):
        tw.random.set_seed(1)
        ds = Dataset.range(20).shuffle(20).map(drawn, **options)
        mixed = ds.map(lambda *x: x).shuffle(5).repeat(2)  # calls in groups
        return [values(ds), values(ds.repeat(2)), values(mixed)]

    assert made(num_parallel_calls=count, processes=True) == made()


def test_other_generators_are_seeded_for_each_element(monkeypatch):
    own, old = np.random.default_rng(0), np.random.RandomState(0)
    holder = random.Random(0)

    class Augmentation:
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def __call__(self, scale, x):
            time.sleep(0.002)
            return (
                *(own.random() * scale, old.rand(), holder.random()),
                *(self.rng.random(), random.random(), np.random.rand()),
            )

    def made(count):
        tw.random.set_seed(3)
        return values(
            process_map(Dataset.range(12), partial(Augmentation(), 1.0), count)
        )

    before = own.bit_generator.state, random.getstate()
    one, three = made(1), made(3)
    assert one == three
    assert len({number for element in one for number in element}) == 6 * 12
    assert (own.bit_generator.state, random.getstate()) == before
    assert made(2) != values(
        process_map(Dataset.range(12), partial(Augmentation(), 1.0))
    )


def test_generators_are_found_where_a_function_can_reach_them():
    rng, default = np.random.default_rng(0), random.Random(0)

    def helper():
        return rng, empty

    def function(x, other=default):
        return helper()

    found = [np.random, random, default, rng]
    assert captured_generators(function) == found  # while `empty` has no value
    empty = function
    assert captured_generators(empty) == found


rng = np.random.default_rng(0)
helpers = ModuleType("helpers")
CODE = """
import numpy as np

of_module = np.random.default_rng(3)
noise = lambda: of_module.random()
"""
exec(CODE, helpers.__dict__)


class ClassAttribute:
    own = np.random.default_rng(0)

    def __call__(self):
        return self.own.random()


class Method:
    def __call__(self):
        return self.helper

    @property
    def helper(self):
        return rng.random()

    def __getattr__(self, name):
        raise LookupError("this is code of the user")

    __class__ = property(lambda self: 1 / 0)


class Slots:
    __slots__ = ("generator",)

    def __init__(self, generator):
        self.generator = generator


def chain(length):
    link = lambda: rng.random()  # noqa: E731
    for _ in range(length):
        link = partial(lambda inner: inner(), link)
    return link


def keyword_default(*, generator=rng):
    return generator.random()


def holding(generators):
    return lambda: next(iter(generators)).random()


REACHED = {
    "comprehension": (lambda: [rng.random() for _ in range(1)], rng),
    "nested": (lambda: (lambda: list(rng.random() for _ in range(1)))(), rng),
    "keyword": (keyword_default, rng),
    "module": (lambda: helpers.noise(), helpers.of_module),
    "attribute of a module": (lambda: helpers.of_module.random(), helpers.of_module),
    "class": (ClassAttribute(), ClassAttribute.own),
    "method": (Method(), rng),
    "slots": (Slots(rng), rng),
    "list": (holding([[{}, ({"a": rng},)]]), rng),
    "array": (holding(np.array([None, rng])), rng),
    "bound method": (rng.random, rng),
    "chain": (chain(50), rng),
    "behind large data": (holding([[(i, (i, [])) for i in range(20_000)], [[rng]]]), rng),
}  # fmt: skip


@pytest.mark.parametrize("name", REACHED)
def test_generators_are_found_wherever_a_function_holds_them(name):
    function, generator = REACHED[name]
    assert captured_generators(function) == [np.random, random, generator]


def test_generators_of_a_module_that_the_function_imports_are_found(monkeypatch):
    monkeypatch.setitem(sys.modules, "late_helpers", helpers)

    def function():
        from late_helpers import noise

        return noise()

    assert captured_generators(function)[2:] == [helpers.of_module]


def test_the_search_for_generators_ends():
    things = [[number] for number in range(10 * MOST_OBJECTS)]
    assert captured_generators(lambda: things) == [np.random, random]
    assert MOST_OBJECTS < len(things)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
def test_all_kinds_of_generators_are_seeded(bits):
    def numbers(seed):
        generators = [
            np.random.RandomState(bits(1)),
            bits(1),
            np.random.Generator(bits(1)),
        ]
        old, raw, new = generators
        old.standard_normal()  # makes two, and keeps one
        seed_generators(generators, (seed, 2))
        return old.standard_normal(), old.random(), raw.random_raw(), new.random()

    assert numbers(0) == numbers(0)
    assert len({*numbers(0), *numbers(1)}) == 8


def test_errors_come_at_their_elements_with_a_traceback():
    def failing(x):
        return 6 // (2 - int(x))

    iterator = iter(process_map(Dataset.range(5), failing))
    assert [int(next(iterator)) for _ in range(2)] == [3, 6]
    with pytest.raises(ZeroDivisionError) as caught:
        next(iterator)
    assert caught.value.__notes__ == ["In Dataset.map, at element 2"]
    assert isinstance(caught.value.__cause__, RemoteTraceback)
    assert "return 6 // (2 - int(x))" in str(caught.value.__cause__)
    assert not alive()
    assert values(process_map(Dataset.range(4), failing).ignore_errors()) == [3, 6, -6]


def test_errors_of_the_input_come_after_the_elements_before():
    failing = Dataset.range(4).map(lambda x: 6 // (2 - int(x)))
    iterator = iter(process_map(failing, lambda x: x))
    assert [int(next(iterator)) for _ in range(2)] == [3, 6]
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert not alive()


def test_an_error_that_cannot_be_pickled_arrives_as_text():
    class Local(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    def failing(x):
        raise Local("this", "that")

    with pytest.raises(RuntimeError, match="Local: this and that") as caught:
        list(process_map(Dataset.range(2), failing))
    assert "Local: this and that" in str(caught.value.__cause__)
    assert caught.value.__notes__ == ["In Dataset.map, at element 0"]


class Counted(Exception):
    def __init__(self, message, count=0):
        super().__init__(f"{message} ({count} times)")


def test_an_error_that_its_constructor_would_change_arrives_as_text():
    def failing(x):
        raise Counted("late", 3)

    with pytest.raises(RuntimeError, match=r"^Counted: late \(3 times\)(\n|$)"):
        list(process_map(Dataset.range(2), failing))


def test_a_result_that_cannot_be_pickled_is_named():
    with pytest.raises(Exception, match="pickle|_Local") as caught:
        ds = process_map(Dataset.range(2), lambda x: Dataset.range(3).map(lambda y: y))
        list(ds)
    assert caught.value.__notes__ == ["The result of the function could not be sent"]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os._exit(3), "with exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL, perhaps since memory"),
        (lambda: (faulthandler.disable(), os.abort()), "SIGABRT"),
    ],
    ids=["exit", "kill", "crash"],
)
@pytest.mark.parametrize("deterministic", [None, False])
def test_a_process_that_dies_is_an_error(end, words, deterministic):
    def function(x):
        return end() if int(x) == 5 else x

    ds = process_map(Dataset.range(9), function, deterministic=deterministic)
    with pytest.raises(BrokenProcessPool, match=f"Dataset.map: .* ended .*{words}"):
        list(ds)
    assert not alive()


def test_a_process_killed_from_outside_is_an_error_however_idle_it_is():
    iterator = iter(process_map(Dataset.range(99), lambda x: x))
    next(iterator)
    time.sleep(0.1)
    for process in alive():
        os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(BrokenProcessPool):
        list(iterator)


@pytest.mark.parametrize(
    "arranged", [lambda ds: ds, lambda ds: Dataset.range(2).flat_map(lambda _: ds)]
)
def test_elements_of_a_process_that_died_are_not_ignored(arranged):
    def function(x):
        return os.kill(os.getpid(), signal.SIGKILL) if int(x) == 5 else x

    for count in (6, 7, 9):
        ds = arranged(process_map(Dataset.range(count), function))
        with pytest.raises(BrokenProcessPool):
            list(ds.ignore_errors())
    assert not alive()


def test_calls_after_the_end_of_a_process_are_refused():
    pool = Processes("here", lambda draws, number, item: item, 2)
    draws = Draws({"seed": 1, "run": 0, "round": 0})
    try:
        call = pool.submit(draws, 1, "item")
        assert call.result() == "item"
        os.kill(alive()[0].pid, signal.SIGKILL)
        with pytest.raises(BrokenProcessPool) as first:
            pool.receive_until(lambda: False)
        with pytest.raises(BrokenProcessPool) as second:
            pool.submit(draws, 2, "item")
        assert second.value is first.value
    finally:
        pool.close()


def test_a_fork_of_the_program_does_not_take_elements():
    iterator = iter(process_map(Dataset.range(50), lambda x: x))
    next(iterator)

    def taken():
        with pytest.raises(RuntimeError, match="belong to another process.*create an"):
            next(iterator)

    child = multiprocessing.get_context("fork").Process(target=taken)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert [int(x) for x in iterator] == list(range(1, 50))


def test_the_limit_of_open_files_is_named():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (files + 20, before[1]))
    try:
        with pytest.raises(OSError, match=f"40 processes need .* have {files + 20} in"):
            next(iter(process_map(Dataset.range(3), lambda x: x, 40)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not alive() and len(os.listdir("/proc/self/fd")) <= files


def test_an_interrupt_is_left_to_the_parent():
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        iterator = iter(process_map(Dataset.range(99), slow_at_even))
        for process in (next(iterator), *alive())[1:]:
            os.kill(process.pid, signal.SIGINT)
        assert [int(x) for x, _ in iterator] == list(range(1, 99))
        iterator = iter(process_map(Dataset.range(9), slow_at_even))
        next(iterator)
        alive()[0].terminate()  # as `multiprocessing` does at the end of a program
        assert soon(lambda: len(alive()) == 1)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("deterministic", [None, False])
def test_processes_end_with_the_iterator_without_a_garbage_collection(deterministic):
    gc.disable()
    try:
        ds = process_map(
            Dataset.range(9).repeat(), lambda x: x, deterministic=deterministic
        )
        for _ in ds.batch(2):
            assert len(alive()) == 2
            break
        assert not alive()
        for _ in ds.prefetch(1):
            break
        assert soon(lambda: not alive())
        with pytest.raises(LookupError):
            for number, _ in enumerate(process_map(Dataset.range(9), sleep_late)):
                if number:
                    raise LookupError
        assert not alive()
    finally:
        gc.enable()


def test_shared_memory_is_released_with_the_iterator():
    def mapped():
        with open("/proc/self/maps") as maps:
            return maps.read().count("memfd:tapewright")

    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd"))
        assert mapped() == 0
        iterator = iter(process_map(Dataset.range(9), lambda x: x))
        next(iterator)
        assert mapped() == 4
        del iterator
        assert mapped() == 0
        assert len(os.listdir("/proc/self/fd")) <= before
    finally:
        gc.enable()


def test_results_may_grow_and_shrink():
    sizes = [0, 10, *range(100_000, 100_012), 5, 1, 0, 3_000_000, 2, *[200_000] * 12, 3]

    def function(size):
        return np.arange(size), size

    found = list(process_map(Dataset.from_tensor_slices(sizes), function))
    assert [len(array) for array, _ in found] == sizes
    for array, size in found:  # none was written over
        np.testing.assert_array_equal(array.numpy(), np.arange(int(size)))


def test_large_arguments_are_not_written_over_by_results():
    x = np.random.default_rng(0).normal(size=(12, 50_000))
    kept = []

    def function(row):
        kept.append(row)
        return np.stack([row, -row]), kept[0]

    for number, (pair, first) in enumerate(
        process_map(Dataset.from_tensor_slices(x), function, 1)
    ):
        np.testing.assert_array_equal(pair, [x[number], -x[number]])
        np.testing.assert_array_equal(first, x[0])


@pytest.mark.parametrize("named", [False, True])
def test_a_slot_holds_one_value_that_both_of_its_processes_see(monkeypatch, named):
    monkeypatch.setattr(processes, "METHOD", "spawn" if named else "fork")
    slot = _new_slot()
    other = _opened_slot(slot._file.name) if named else slot
    for value in ([1, "two"], np.arange(100_000), [np.ones(5000)] * 3 + [b"x" * 9999]):
        slot.write(value)
        np.testing.assert_equal(other.read(), value)
        other.write((value, value))
        np.testing.assert_equal(slot.read(), (value, value))
    slot.close()
    other.close()


@pytest.mark.parametrize("deterministic", [None, False])
def test_positions_are_interchangeable_with_those_of_threads(
    deterministic, monkeypatch
):
    def chain(**options):
        tw.random.set_seed(5)
        ds = Dataset.range(12).shuffle(12)
        return ds.map(drawn, deterministic=deterministic, **options).repeat(2)

    make = {"num_parallel_calls": 2, "processes": True}, {"num_parallel_calls": 2}
    expected = sorted(values(chain()))
    for given in (make, make[::-1]):
        for count in (0, 5, 13):
            iterator = iter(chain(**given[0]))
            head = [next(iterator) for _ in range(count)]
            state = json.loads(json.dumps(iterator.state()))
            tail = values(iterator)
            other = iter(chain(**given[1]))
            other.restore(state)
            restored = values(other)
            assert sorted(values(head) + restored) == expected
            if deterministic is None:
                assert restored == tail
    assert not alive()


def test_numbers_of_numpy_are_restored_without_a_warning():
    ds = process_map(Dataset.range(8), lambda x: (x, np.random.rand()))
    iterator = iter(ds)
    for _ in range(3):
        next(iterator)
    state = iterator.state()
    rest = values(iterator)
    iterator.restore(state)
    assert values(iterator) == rest


def test_each_iteration_sees_the_state_of_its_start():
    seen = {"epoch": 0}
    ds = process_map(Dataset.range(3), lambda x: seen["epoch"])
    for epoch in range(3):
        seen["epoch"] = epoch
        assert values(ds) == [epoch] * 3


@pytest.mark.parametrize(
    "repeated",
    [
        lambda ds: ds.repeat(4),
        lambda ds: ds.repeat(2).repeat(2),
        lambda ds: ds.prefetch(2).repeat(4).batch(1).unbatch(),
        lambda ds: ds.shuffle(2).repeat(4),
    ],
    ids=["repeat", "twice", "prefetch", "shuffle"],
)
def test_rounds_share_the_processes_of_an_iteration(repeated):
    def pids(ds):
        return {pid for _, pid in values(ds)}

    ds = repeated(process_map(Dataset.range(4), slow_at_even))
    first, second = pids(ds), pids(ds)
    assert len(first) == len(second) == 2 and not first & second
    assert not alive()
    both = iter(ds), iter(ds)
    found = [{int(next(each)[1]) for _ in range(12)} for each in both]
    assert not found[0] & found[1] and len(alive()) == 4
    del both
    assert soon(lambda: not alive())


def test_calls_left_over_from_a_round_do_not_disturb_the_next():
    def function(x):
        if int(x) == 3:
            raise LookupError
        return x, tw.random.uniform([])

    def made(**options):
        tw.random.set_seed(4)
        return values(Dataset.range(9).map(function, **options).take(3).repeat(5))

    assert made(num_parallel_calls=2, processes=True) == made()


def test_processes_start_before_threads_of_the_input():
    started = []

    def noted(x):
        started.append(len(alive()))
        return x

    ds = Dataset.range(6).map(noted, num_parallel_calls=2)
    list(process_map(process_map(ds, lambda x: x), lambda x: x))
    assert set(started) == {4}


@pytest.fixture
def starters(monkeypatch):
    """Return a list of the threads that start processes."""
    threads, init = [], Processes.__init__

    def noted(self, *args):
        threads.append(threading.current_thread())
        init(self, *args)

    monkeypatch.setattr(Processes, "__init__", noted)
    return threads


def test_all_processes_start_with_the_iteration_in_the_thread_that_takes_elements(
    starters,
):
    late = process_map(Dataset.range(4), abs)
    ds = Dataset.range(2).concatenate(late.shuffle(4, seed=1).batch(1).unbatch())
    assert sorted(values(ds.prefetch(1))) == [0, 0, 1, 1, 2, 3]
    assert starters == [threading.main_thread()]
    iterator = iter(ds.prefetch(1))
    next(iterator)
    assert len(starters) == 2


@pytest.mark.parametrize("keep", ["memory", "file", "snapshot"])
def test_elements_that_are_kept_need_no_processes(keep, starters, tmp_path):
    ds = process_map(Dataset.range(4), abs)
    path = str(tmp_path / "elements")
    ds = {
        "memory": ds.cache,
        "file": partial(ds.cache, path),
        "snapshot": partial(ds.snapshot, path),
    }[keep]()
    assert values(ds) == values(ds) == [0, 1, 2, 3]
    assert len(starters) == 1


def test_processes_make_parts_of_batches(starters):
    def part(index):
        tw.random.set_seed(2)
        ds = process_map(Dataset.range(7), drawn).batch(4).repeat(2).prefetch(1)
        return part_of_batches(ds, 2, index)

    tw.random.set_seed(2)
    whole = values(Dataset.range(7).map(drawn).repeat(2))
    rows = [
        [x for batch in part(index) for x in batch.rows[0].numpy().tolist()]
        for index in (0, 1)
    ]
    assert rows == [[0, 1, 4] * 2, [2, 3, 5, 6] * 2]
    found = [
        leaves
        for pair in zip(*map(part, (0, 1)), strict=True)
        for each in pair
        for leaves in values(Dataset.from_tensor_slices(each.rows))
    ]
    assert found == whole
    assert set(starters) == {threading.main_thread()} and not alive()


def test_iterators_of_the_same_run_share_processes_until_both_have_ended(starters):
    ds = process_map(Dataset.range(30), abs).prefetch(1)
    first = iter(ds)
    next(first)
    second = iter(ds)
    second.restore(first.state())
    found = [[int(next(each)) for each in (first, second)] for _ in range(9)]
    assert found == [[k, k] for k in range(1, 10)]
    del first
    gc.collect()
    assert [int(x) for x in second] == list(range(10, 30))
    assert len(starters) == 1


def test_assignments_to_variables_are_refused():
    counter = tw.Variable(0, name="counter")
    with pytest.raises(RuntimeError, match="assigns to the variable 'counter.*threads"):
        list(process_map(Dataset.range(3), lambda x: counter.assign_add(1)))
    with tw.device("CPU"):
        layer = tw.keras.layers.RandomFlip("horizontal", seed=3)
    images = Dataset.from_tensor_slices(np.ones((2, 4, 4, 1), "f4"))
    with pytest.raises(RuntimeError, match="assigns to the variable"):
        list(process_map(images, lambda x: layer(x, training=True)))
    assert counter.numpy() == 0


def test_traced_functions_run_in_processes():
    @tw.function
    def function(x):
        return tw.reduce_sum(tw.tanh(x) * x, axis=-1)

    x = np.random.default_rng(0).normal(size=(12, 40, 50)).astype("float32")
    slices = Dataset.from_tensor_slices(x)
    function(slices.as_numpy_iterator().next())  # traced before the fork, and after it
    for each in (function, lambda x: tw.function(lambda y: function(y) * 1)(x)):
        found = np.stack(list(process_map(slices, each).as_numpy_iterator()))
        np.testing.assert_allclose(
            found, (np.tanh(x) * x).sum(-1), rtol=1e-4, atol=1e-5
        )


def test_the_number_of_processes_is_that_of_cores_unless_told():
    for count in (None, AUTOTUNE):
        iterator = iter(process_map(Dataset.range(9), lambda x: x, count))
        next(iterator)
        assert len(alive()) == len(os.sched_getaffinity(0))
        del iterator


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"processes": 4},
            TypeError,
            "map: processes must be True or False, got 4; num_",
        ),
        ({"processes": True, "num_parallel_calls": 0}, ValueError, "at least 1, got 0"),
    ],
)
def test_mistakes_are_named(options, error, words):
    with pytest.raises(error, match=words):
        Dataset.range(3).map(lambda x: x, **options)


def test_processes_within_processes_are_refused():
    def nested(x):
        return next(iter(process_map(Dataset.range(3), lambda y: y)))

    with pytest.raises(RuntimeError, match="worker process cannot start processes"):
        list(process_map(Dataset.range(2), nested))


def test_prints_arrive(capfd):
    def function(x):
        os.write(1, b"")
        print(f"at {int(x)}", file=sys.__stdout__)
        sys.__stdout__.flush()
        return x

    list(process_map(Dataset.range(3), function, 1))
    assert capfd.readouterr().out == "at 0\nat 1\nat 2\n"


def test_op_determinism_keeps_the_order(monkeypatch):
    monkeypatch.setitem(determinism._enforced, "on", True)
    ds = process_map(Dataset.range(8), slow_at_even, 2, deterministic=False)
    assert [x for x, _ in values(ds)] == list(range(8))


def test_without_an_order_slow_elements_let_others_pass(tmp_path):
    def wait(x):
        while int(x) == 1 and not (tmp_path / "released").exists():
            time.sleep(0.01)
        return x

    iterator = iter(process_map(Dataset.range(6), wait, deterministic=False))
    first = [int(next(iterator)) for _ in range(5)]
    assert 1 not in first
    (tmp_path / "released").touch()
    assert [int(x) for x in iterator] == [1]


SCRIPT = """
import os, pathlib, signal, sys, time
from tapewright.data import Dataset

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may ignore

def function(x):
    pathlib.Path(sys.argv[1], str(os.getpid())).touch()
    if int(x) > 3:
        if sys.argv[2] == "busy":
            while True:
                pass
        time.sleep(600)
    return x

ds = Dataset.range(99).map(function, num_parallel_calls=2, processes=True)
ds = ds.map(lambda x: x, num_parallel_calls=1, processes=True)
if __name__ == "__main__":
    for x in ds.prefetch(2) if sys.argv[2] == "prefetch" else ds:
        print(int(x), flush=True)
        if int(x) == 1 and sys.argv[2] == "exit":
            sys.exit(7)
        if int(x) == 1 and sys.argv[2] == "held":
            raise KeyError(iter(ds), next(iter(ds)))
"""


@pytest.fixture
def started(tmp_path):
    """``started(how)``: start the script; return its process, and a function of its pids."""
    processes = []

    def pids():
        return [int(name) for name in os.listdir(tmp_path / "pids")]

    def start(how):
        (tmp_path / "script.py").write_text(SCRIPT)
        (tmp_path / "pids").mkdir()
        command = [sys.executable, tmp_path / "script.py", tmp_path / "pids", how]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, **pipes, start_new_session=True)
        processes.append(process)
        return process, pids

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.always
@pytest.mark.parametrize("how", ["sleeping", "busy", "prefetch"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_no_process_is_left_after_a_signal(started, how, number):
    process, pids = started(how)
    lines = [process.stdout.readline() for _ in range(2)]
    assert lines == [b"0\n", b"1\n"] and soon(lambda: len(pids()) == 2)
    everyone = [*pids(), *children(process.pid)]
    assert len(set(everyone)) == 3
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (-number, 1)
    assert errors.count(b"KeyboardInterrupt") == (number == signal.SIGINT)
    assert soon(lambda: not any(map(is_running, everyone)))


@pytest.mark.parametrize(("how", "code"), [("exit", 7), ("held", 1)])
def test_no_process_is_left_after_the_end_of_the_program(started, how, code):
    process, pids = started(how)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code and (how == "held") == (b"KeyError" in errors)
    assert pids() and soon(lambda: not any(map(is_running, pids())))


def children(pid):
    threads = os.listdir(f"/proc/{pid}/task")
    files = [Path(f"/proc/{pid}/task/{each}/children") for each in threads]
    return [int(each) for file in files for each in file.read_text().split()]


SPAWNED = """
import sys
import tapewright as tw
from tapewright.data import Dataset
from tapewright.data.nodes import processes

processes.METHOD = "spawn"

def square(x):
    return x * x, tw.random.uniform([]), tw.ones([5000]) * float(x)

def made(function=square, **options):
    tw.random.set_seed(2)
    found = Dataset.range(3).map(function, **options)
    return [[float(tw.reduce_sum(x)) for x in element] for element in found]

if __name__ == "__main__":
    assert made(num_parallel_calls=1, processes=True) == made()
    made(lambda x: x, num_parallel_calls=1, processes=True)
"""


def test_spawned_processes_need_a_function_of_a_module(tmp_path):
    (tmp_path / "script.py").write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True
    )
    words = (
        "TypeError: Dataset.map: processes are spawned on this system, so the function"
    )
    assert words in done.stderr and "<lambda>" in done.stderr.splitlines()[-1]
    assert "AssertionError" not in done.stderr
