"""Check all collectives of a communicator against NumPy on the arrays of all ranks.

Each rank draws the arrays of all, from one generator, and so knows the results.
"""

import itertools
import threading

import numpy as np

from tapewright.core.communication import reduction
from tapewright.core.communication.job import communicator
from tapewright.errors import DTypeError

job = communicator()
random = np.random.default_rng(0)
FLOATS = (np.float16, np.float32, np.float64)
SIZES = (0, 1, 3, 64, 65, 1001)


def draw(shape, dtype):
    """Arrays of all ranks, and that of this one."""
    shape = (job.size, *np.atleast_1d(shape))
    if np.dtype(dtype).kind == "c":
        arrays = (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(
            dtype
        )
    elif np.dtype(dtype).kind == "f":
        arrays = (random.normal(size=shape) * 100).astype(dtype)
    else:
        arrays = random.integers(0, 100, shape).astype(dtype)
    return arrays, arrays[job.rank].copy()


def in_order(arrays, op="sum"):
    """The reduction of the arrays of all ranks, one after the other."""
    combine = {"max": np.maximum, "min": np.minimum}.get(op, np.add)
    with np.errstate(all="ignore"):
        total = arrays[0].copy()
        for array in arrays[1:]:
            total = combine(total, array)
        return total / total.dtype.type(job.size) if op == "mean" else total


def same(result, expected):
    """Same dtype, shape and bits, those of NaN included."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.tobytes() == expected.tobytes(), (result, expected)


def same_on_all(arrays):
    """All ranks have the same bits."""
    for array in arrays:
        for other in job.all_gather(np.frombuffer(array.tobytes(), np.uint8)):
            assert other.tobytes() == array.tobytes()


def check_sums():
    dtypes = (*FLOATS, np.complex64, np.int8, np.int32, np.int64, np.uint8)
    for dtype, size in itertools.product(dtypes, SIZES):
        arrays, own = draw(size, dtype)
        (total,) = job.all_reduce([own])
        same(total, in_order(arrays))
        assert not np.shares_memory(total, own)
        assert total.flags.c_contiguous
        same(own, arrays[job.rank])


def check_other_operations():
    for dtype, op in itertools.product(
        (*FLOATS, np.int32, bool), ("max", "min", "mean")
    ):
        if op == "mean" and np.dtype(dtype).kind != "f":
            continue
        for size in (1, 65, 1001):
            arrays, own = draw(size, dtype)
            same(job.all_reduce([own], op)[0], in_order(arrays, op))


def check_special_values():
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1e-45]
    payload = np.array([0x7FC00000 + job.rank, 0xFFC00123], np.uint32).view(np.float32)
    for op, times in itertools.product(("sum", "mean", "max", "min"), (1, 50)):
        arrays = np.tile(random.permuted([values] * job.size, axis=1), times)
        arrays = arrays.astype(np.float32)
        (total,) = job.all_reduce([arrays[job.rank]], op)
        np.testing.assert_array_equal(total, in_order(arrays, op))
        same_on_all([total])
        same_on_all(job.all_reduce([np.tile(payload, times)], op))


def check_several_arrays():
    shapes = [(), (3, 4), (0, 2), (2, 1, 5), (7,)]
    dtypes = [np.float32, np.float64, np.float32, np.int32, np.float32]
    drawn = [draw(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
    drawn = [
        (arrays.reshape(job.size, *s), own.reshape(s))
        for (arrays, own), s in zip(drawn, shapes)
    ]
    totals = job.all_reduce([own for _, own in drawn])
    for total, (arrays, _) in zip(totals, drawn, strict=True):
        same(total, np.asarray(in_order(arrays)))
        total += 1  # results may be written to
    assert job.all_reduce([]) == []


def check_arrays_that_are_not_contiguous():
    arrays, own = draw((40, 30), np.float32)
    same(job.all_reduce([own.T])[0], np.ascontiguousarray(in_order(arrays).T))
    same(job.all_reduce([own[::2, ::-3]])[0], in_order(arrays)[::2, ::-3].copy())
    same(job.all_reduce([np.asfortranarray(own)])[0], in_order(arrays))
    frozen = own.copy()
    frozen.setflags(write=False)
    same(job.all_reduce([frozen])[0], in_order(arrays))
    for size in (5, 1001):
        arrays, own = draw(size, np.float32)
        same(
            job.all_reduce([np.broadcast_to(own[:1], size)])[0],
            np.repeat(in_order(arrays)[:1], size),
        )


def check_half_precision_on_the_way():
    for dtype, size, op in itertools.product(
        (np.float32, np.float64), SIZES, ("sum", "mean")
    ):
        arrays, own = draw(size, dtype)
        (total,) = job.all_reduce([own], op, "float16")
        assert total.dtype == dtype
        expected, scale = in_order(arrays, op), np.abs(arrays).max(initial=0) * job.size
        np.testing.assert_allclose(total, expected, rtol=0, atol=scale * 2**-10)
        same_on_all([total])
    for scale in (1e-44, 1e-38, 1e-20, 1e20, 5e37):  # beyond the range of float16
        own = np.float32(scale) * np.linspace(0.01, 1, 100, dtype=np.float32)
        (mean,) = job.all_reduce([own], "mean", "float16")
        np.testing.assert_allclose(mean, own, rtol=0, atol=max(scale * 2**-9, 2e-45))
    (total,) = job.all_reduce([np.zeros(100, np.float32)], "sum", "float16")
    same(total, np.zeros(100, np.float32))
    own = np.ones(100, np.float32)
    own[7] = [np.nan, np.inf][job.rank % 2]
    (total,) = job.all_reduce([own], "sum", "float16")
    assert not np.isfinite(total[7])
    np.testing.assert_array_equal(np.delete(total, 7), job.size)
    same_on_all([total])


def check_gathering():
    lengths = [[3, 0, 5, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    for dtype, counts, inner in itertools.product(
        (np.float16, np.complex64, bool), lengths, ((), (4,), (2, 0))
    ):
        arrays = [np.full((counts[i], *inner), i + 1, dtype) for i in range(job.size)]
        parts = job.all_gather(arrays[job.rank])
        for part, expected in zip(parts, arrays, strict=True):
            same(part, expected)
    scalars = job.all_gather(np.float32(job.rank) * np.ones((), np.float32))
    assert [float(s) for s in scalars] == list(range(job.size))
    assert all(np.shape(s) == () for s in scalars)
    same(
        job.all_gather(np.arange(12.0).reshape(3, 4).T)[-1],
        np.arange(12.0).reshape(3, 4).T.copy(),
    )


def check_broadcasting():
    for root, dtype in itertools.product(
        range(job.size), (*FLOATS, bool, np.complex64)
    ):
        arrays, own = draw((5, 3), dtype)
        _, empty = draw((0, 3), dtype)
        received = job.broadcast([own.T, empty, own[0, 0].reshape(())], root)
        same(received[0], np.ascontiguousarray(arrays[root].T))
        same(received[1], empty)
        same(received[2], arrays[root, 0, 0].reshape(()))
        same(own, arrays[job.rank])
    for root in (-1, job.size):
        try:
            job.broadcast([], root)
        except ValueError as error:
            assert str(root) in str(error)
        else:
            raise AssertionError(root)


def check_collectives_beside_the_caller():
    pending, expected = [], []
    for step in range(30):
        arrays, own = draw(1 + step * 37 % 500, np.float32)
        expected.append(in_order(arrays))
        pending.append(job.start_all_reduce([own]))
        if step % 4 == 0:
            arrays, own = draw(10, np.float64)
            same(job.all_reduce([own])[0], in_order(arrays))
        if step % 5 == 0:
            job.barrier()
            same(pending[3 * step // 5].wait()[0], expected[3 * step // 5])
    for handle, total in reversed(list(zip(pending, expected, strict=True))):
        same(handle.wait()[0], total)
        same(handle.wait()[0], total)  # and again


def check_threads_that_take_turns():
    arrays, own = draw(200, np.float32)
    expected, turn, errors = in_order(arrays), threading.Condition(), []
    order = [0]

    def work(number):
        try:
            for step in range(number, 30, 3):
                with turn:
                    turn.wait_for(lambda: order[0] == step)  # noqa: B023
                    if step % 2:
                        same(job.all_reduce([own])[0], expected)
                    else:
                        same(job.start_all_reduce([own]).wait()[0], expected)
                    order[0] += 1
                    turn.notify_all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def check_refused_operands():
    refused = [
        (np.ones(3, bool), "sum", None),
        (np.ones(3, np.int32), "mean", None),
        (np.ones(3, np.complex64), "max", None),
        (np.ones(3, np.int32), "sum", "float16"),
        (np.ones(3), "max", "float16"),
        (np.ones(3), "product", None),
        (np.ones(3), "sum", "int8"),
        (np.array(["text"]), "sum", None),
    ]
    for array, op, compression in refused:
        try:
            job.all_reduce([array], op, compression)
        except (DTypeError, ValueError):
            pass
        else:
            raise AssertionError(array.dtype, op, compression)
    job.barrier()  # all goes on


checks = [value for name, value in list(globals().items()) if name.startswith("check_")]
for check in checks:
    check()
defaults = reduction.SMALL, reduction.CHUNK
for reduction.SMALL, reduction.CHUNK in [(0, 64), (200, 1000)]:  # bytes
    check_sums()
    check_special_values()
    check_half_precision_on_the_way()
reduction.SMALL, reduction.CHUNK = defaults
job.barrier()
assert len(checks) == 11
