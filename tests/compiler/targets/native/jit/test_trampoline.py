"""The function through which Python calls programs: what it refuses, runs and returns."""

import ctypes
import gc
import sys
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright import config

pytest.importorskip("llvmlite")

from tapewright.compiler.targets.native.jit import engine, trampoline  # noqa: E402
from tapewright.compiler.targets.native.jit.trampoline import ANY_SIZE  # noqa: E402
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer  # noqa: E402
from tapewright.compiler.targets.native.products import blas
from tapewright.core.hardware import openblas  # noqa: E402

from ..wrong_arrays import WRONG, frozen  # noqa: E402

ERRORS = ("first", "second", "third")


def made(write, *arguments, count=1, **options):
    """A function whose parts ``write(writer, context, part)`` appends; it returns an error.

    ``arguments``: a shape, a dtype and whether it is written, each.
    """
    writer, names = Writer(), [f"part_{n}" for n in range(count)]
    for part, name in enumerate(names):
        with writer.function(name, [("context", POINTER)], np.int64) as (context,):
            writer.ret(writer.index(write(writer, context, part)))
    library = engine.compiled(writer.text(), "test", blas.symbols())
    arguments = [trampoline.Expected(*a[:1], np.dtype(a[1]), a[2]) for a in arguments]
    addresses = options.pop("addresses", [(n, 0) for n in range(len(arguments))])
    return trampoline.function(
        "step", library, names, arguments, addresses, ERRORS, **options
    )


def checker(*arguments):
    """A function that returns None if its arguments are as expected, else True."""
    return made(lambda *_: 0, *arguments)


GOOD = (3, 4), np.float32, True
OTHER = (2, 1, 5), np.int64, False


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_array_that_differs_in_one_property_is_refused(what, place):
    expected = [OTHER, OTHER]
    expected.insert(place, GOOD)
    step = checker(*expected)
    arrays = [np.zeros(shape, dtype) for shape, dtype, _ in expected]
    assert step(*arrays) is None
    arrays[place] = WRONG[what]
    assert step(*arrays) is True


def test_an_input_may_be_read_only():
    step = checker(((3, 4), np.float32, False))
    assert step(frozen(np.zeros((3, 4), np.float32))) is None


def test_the_number_of_arguments_is_checked():
    step = checker(((2,), np.float32, False))
    x = np.zeros(2, np.float32)
    assert (step(), step(x), step(x, x)) == (True, None, True)
    assert (checker()(), checker()(x)) == (None, True)


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdFD")
def test_every_dtype_is_told_from_all_others(dtype):
    step = checker(((2,), dtype, False))
    for other in "?bBhHiIlLqQefdgFDGOSUVMm":
        taken = step(np.zeros(2, other)) is None
        assert taken == (np.dtype(other) == np.dtype(dtype)), other


@pytest.mark.parametrize(
    "shape", [(), (0,), (1,), (0, 3), (2, 1, 3), (1, 2, 1, 2, 1, 3)]
)
def test_arrays_of_every_rank_are_taken(shape):
    step = checker((shape, np.float64, True))
    assert step(np.zeros(shape)) is None
    assert step(np.zeros((*shape, 1))) is True


def test_sizes_that_are_not_known_are_the_same_and_behind_the_addresses():
    def write(writer, context, part):
        out = writer.load(context, POINTER)
        writer.store(writer.load(writer.at(context, 3, np.int64), np.int64), out)
        return 0

    open_, out = ((ANY_SIZE,), np.float32, True), np.zeros((), np.int64)
    step = made(write, ((), np.int64, True), open_, open_)
    for size in (0, 1, 7):
        x = np.zeros(size, "f4")
        assert step(out, x, x) is None and out == size
        for other in {0, 1, 7, 8} - {size}:
            y = np.zeros(other, "f4")
            assert step(out, x, y) is True and step(out, y, x) is True


def test_the_context_has_addresses_at_offsets():
    def write(writer, context, part):
        values = [
            writer.load(
                writer.load(writer.at(context, n, POINTER), POINTER), np.float64
            )
            for n in range(3)
        ]
        out = writer.load(writer.at(context, 3, POINTER), POINTER)
        for n, value in enumerate(values):
            writer.store(value, writer.at(out, n, np.float64))
        return 0

    step = made(
        write,
        ((4,), np.float64, False),
        ((2, 2), np.float64, False),
        ((3,), np.float64, True),
        addresses=[(1, 24), (0, 0), (0, 16), (2, 0)],
    )
    out = np.zeros(3)
    assert step(np.arange(4.0), np.arange(4.0, 8).reshape(2, 2), out) is None
    assert out.tolist() == [7, 0, 2]


@pytest.mark.parametrize("failing", [None, 0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"long": True}, {"calls_blas": True}])
def test_functions_run_until_one_fails(failing, options):
    def write(writer, context, part):
        out = writer.load(context, POINTER)
        writer.store(writer.load(out, np.int64) * 10 + (part + 1), out)
        return part + 1 if part == failing else 0

    step = made(write, ((), np.int64, True), count=3, **options)
    out = np.zeros((), "i8")
    assert step(out) is (None if failing is None else ERRORS[failing])
    assert out == {None: 123, 0: 1, 1: 12, 2: 123}[failing]


@pytest.mark.parametrize("failed", [0, 1])
@pytest.mark.parametrize("calls_blas", [False, True])
def test_products_of_blas_run_on_one_thread_meanwhile(calls_blas, failed):
    count, set_count = [
        openblas.symbol(f"openblas_{each}_num_threads") for each in ("get", "set")
    ]
    before, symbols, writer = count(), blas.symbols(), Writer()
    with writer.function("part", [("context", POINTER)], np.int64) as (context,):
        out = writer.load(context, POINTER)
        writer.store(writer.call("tw_get_num_threads", [], np.int32), out)
        writer.ret(writer.index(failed))
    symbols["tw_get_num_threads"] = ctypes.cast(count, ctypes.c_void_p).value
    library = engine.compiled(writer.text(), "test", symbols)
    expected = trampoline.Expected((), np.dtype(np.int32), True)
    step = trampoline.function(
        "step", library, ["part"], [expected], [(0, 0)], ERRORS, calls_blas=calls_blas
    )
    found = np.zeros((), np.int32)
    set_count(2)
    try:
        assert step(found) is (ERRORS[0] if failed else None)
        assert found == (1 if calls_blas else 2) and count() == 2
    finally:
        set_count(before)


def test_programs_with_products_of_blas_run_them_on_one_thread():
    with config.use_target("native"):
        for columns, calls in ((1, True), (64, False)):
            product = tw.function(lambda x, y: tw.matmul(x, y))
            x, y = tw.ones((64, 64)), tw.ones((64, columns))
            made = product.get_concrete_function(x, y).executable
            (segment,) = made.segments
            enter, leave = segment.function.__self__[4][4:6]
            assert (enter != 0) == (leave != 0) == calls == segment.calls_blas


def test_no_call_changes_a_count_of_references():
    step = made(lambda *_: 1, ((2,), np.float32, False))
    good, bad = np.zeros(2, np.float32), np.zeros(3, np.float32)
    things = [None, True, good, bad, good.dtype, np.ndarray, ERRORS[0], step.__self__]
    step(good), step(bad)
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(10_000):
        step(good)
        step(bad)
    after = [sys.getrefcount(thing) for thing in things]
    assert np.abs(np.subtract(after, before)).max() < 100


def test_a_function_keeps_its_code_and_gives_it_back():
    step = checker(((2,), np.float32, False))
    (library,) = [x for x in step.__self__ if type(x) is engine.Library]
    library = weakref.ref(library)
    gc.collect()
    assert step(np.zeros(2, np.float32)) is None
    assert library() is not None
    del step
    gc.collect()
    assert library() is None


def test_a_function_has_a_name():
    assert checker().__name__ == "step"
