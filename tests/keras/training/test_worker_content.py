"""The backups of several workers: what differs between them is kept, and put together."""

import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.communication.communicator import Communicator
from tapewright.formats.checkpoints.checkpoint_file import (
    Content,
    read_content,
    write_content,
)
from tapewright.keras.training.worker_content import (
    content_for_worker,
    count_workers,
    gather_content,
)
from tapewright.keras.training.workers import from_first_worker


class ThreadRank(Communicator):
    """A rank that is a thread."""

    def __init__(self, rank, size, meeting, table):
        self.rank, self.size, self._meeting, self._table = rank, size, meeting, table

    def _exchanged(self, value):
        self._table[self.rank] = value
        self._meeting.wait(5)
        values = list(self._table)
        self._meeting.wait(5)
        return values

    def all_reduce(self, arrays, op="sum", compression=None):
        assert op == "max"
        return list(np.max(self._exchanged(arrays), axis=0))

    def all_gather(self, array):
        return [each.copy() for each in self._exchanged(array)]

    def broadcast(self, arrays, root=0):
        values = self._exchanged(arrays)
        assert [a.shape for a in values[root]] == [a.shape for a in arrays]
        return [array.copy() for array in values[root]]


def on_ranks(size, function):
    """Return what ``function(workers)`` returns on each rank, or its error."""
    meeting, table, results = threading.Barrier(size), [None] * size, [None] * size

    def run(rank):
        try:
            results[rank] = function(ThreadRank(rank, size, meeting, table))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_what_the_first_worker_does_is_done_for_all():
    calls = []

    def read():
        calls.append("read")
        return {"a": np.arange(3)}

    results = on_ranks(3, lambda workers: from_first_worker(workers, read))
    np.testing.assert_equal(results, [{"a": np.arange(3)}] * 3)
    assert calls == ["read"]


def test_an_error_of_the_first_worker_is_raised_on_all():
    def read():
        raise tw.errors.SavingError("latest.h5", "damaged")

    results = on_ranks(3, lambda workers: from_first_worker(workers, read))
    assert {(type(e), str(e)) for e in results} == {
        (tw.errors.SavingError, "latest.h5: damaged")
    }


def test_values_of_any_size_are_gathered_and_flags_agreed_on():
    results = on_ranks(3, lambda workers: workers.all_gather_object("x" * workers.rank))
    assert results == [["", "x", "xx"]] * 3
    assert on_ranks(3, lambda w: w.any(w.rank == 1)) == [True] * 3
    assert on_ranks(3, lambda w: w.any(False)) == [False] * 3


METRICS = {
    "model/compiled/tracker/total": "sum",
    "model/layers/0/peak": "mean",
    "model/layers/0/seen": "only_first_replica",
    "model/layers/0/mine": "none",
}


def part(rank, **states):
    """The content of one worker."""
    arrays = {
        "model/layers/0/kernel": np.arange(4.0),
        "model/compiled/tracker/total": np.float32(rank + 1),
        "model/layers/0/peak": np.float32(10 * rank),
        "model/layers/0/seen": np.int64(rank),
        "model/layers/0/mine": np.int64(rank),
    }
    states = {
        "batches": {"step": 3, "seed": np.array([1, 2])},
        "random/numpy": {"words": np.full(3, rank), "gauss": float("nan")},
        **states,
    }
    return Content("latest.h5", arrays, states, {"generator": [1, 2]})


@pytest.fixture
def saved(tmp_path):
    """Write and read the backup of so many workers."""

    def save(count, parts=part, has_own_data=False):
        def run(workers):
            return gather_content(parts(workers.rank), METRICS, has_own_data, workers)

        contents = on_ranks(count, run) if count > 1 else [run(Communicator())]
        contents[0].path = tmp_path / "latest.h5"
        write_content(contents[0])
        return read_content(contents[0].path)

    return save


def assert_equal(content, expected):
    np.testing.assert_equal(content.arrays, expected.arrays)
    np.testing.assert_equal(content.states, expected.states)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_workers_go_on_with_their_own_values(saved, count):
    content = saved(count)
    assert count_workers(content) == count
    for rank in range(count):
        assert_equal(content_for_worker(content, rank, count), part(rank))


def test_what_is_the_same_on_all_workers_is_kept_once(saved):
    content = saved(3)
    for names in (content.arrays, content.states):
        own = {name.split("/", 2)[2] for name in names if name.startswith("workers/")}
        assert own <= {*METRICS, "random/numpy"} and own


@pytest.mark.parametrize("now", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_workers_has_the_metrics_of_the_whole(saved, count, now):
    content = saved(count)
    if count == now:
        return
    for rank in range(now):
        found = content_for_worker(content, rank, now)
        expected = part(rank if rank < count else 0)
        ranks = np.arange(count)
        totals = np.float32((ranks + 1).sum() if rank == 0 else 0)
        expected.arrays |= {
            "model/compiled/tracker/total": totals,
            "model/layers/0/peak": np.float32((10 * ranks).mean()),
            "model/layers/0/seen": np.int64(0),
        }
        assert_equal(found, expected)
        dtypes = {name: array.dtype for name, array in found.arrays.items()}
        assert dtypes == {name: array.dtype for name, array in expected.arrays.items()}


def test_a_backup_without_a_number_of_workers_is_of_one_process(saved):
    content = saved(1)
    del content.info["workers"]  # as in version 0.1
    totals = [
        content_for_worker(content, rank, 2).arrays["model/compiled/tracker/total"]
        for rank in range(2)
    ]
    assert totals == [1, 0]


def test_workers_that_read_data_of_their_own_cannot_become_more_or_fewer(saved):
    own = lambda rank: part(rank, batches={"step": rank})  # noqa: E731
    content = saved(2, own)
    for rank in range(2):
        assert content_for_worker(content, rank, 2).states["batches"] == {"step": rank}
    for now in (1, 3):
        with pytest.raises(tw.errors.SavingError, match=f"2 workers.*got {now}"):
            content_for_worker(content, 0, now)


@pytest.mark.parametrize("before, now", [(True, False), (False, True)])
def test_batches_of_other_workers_are_others_also_at_the_same_positions(
    saved, before, now
):
    content = saved(2, has_own_data=before)
    assert content_for_worker(content, 1, 2, now).states["batches"]["step"] == 3
    with pytest.raises(tw.errors.SavingError, match="2 workers.*own.*got 3"):
        content_for_worker(content, 0, 3, now)


def test_callbacks_of_one_worker_are_those_of_that_worker_again(saved):
    def some(rank):
        return part(rank, **{f"callbacks/Own{rank}": rank})

    content = saved(2, some)
    for rank in range(2):
        found = content_for_worker(content, rank, 2).states
        assert {n: v for n, v in found.items() if "Own" in n} == {
            f"callbacks/Own{rank}": rank
        }


@pytest.mark.parametrize(
    "info",
    [2, {"lacking": 2}, {"lacking": ["a"]}, {"metrics": {"x": "sum"}}, {"metrics": 3}],
)
def test_a_backup_that_makes_no_sense_is_refused(saved, info):
    content = saved(1)
    content.info["workers"] = info
    with pytest.raises(tw.errors.SavingError, match="latest.h5.*'workers' is invalid"):
        content_for_worker(content, 0, 3)


def test_values_of_workers_that_do_not_exist_are_refused(saved):
    content = saved(2)
    content.states["workers/2/random/numpy"] = {}
    with pytest.raises(tw.errors.SavingError, match="none of the . workers"):
        content_for_worker(content, 0, 2)
