"""Native functions called from Python: what they read of arrays, refuse and return."""

import dataclasses
import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tapewright.compiler.targets.native.jit import engine, entry, object_layout  # noqa: E402
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer  # noqa: E402
from tapewright.core.hardware.openblas import Unavailable  # noqa: E402

from ..wrong_arrays import WRONG, frozen  # noqa: E402


def made(write, constants=()):
    """A Python function whose body ``write(writer, constants, args, count)`` appends."""
    writer = Writer()
    with writer.function("step", entry.PARAMETERS, POINTER) as parameters:
        write(writer, *parameters)
        writer.ret(entry.none(writer, parameters[0]))
    library = engine.compiled(writer.text(), "test", entry.symbols())
    return entry.builtin(library, "step", constants)


def checker(*expected):
    """A function that returns None if its arguments are as expected, else True."""

    def write(writer, constants, args, count):
        right = entry.check_count(writer, count, len(expected))
        entry.refuse_unless(writer, constants, right)
        for n, (shape, dtype, writeable) in enumerate(expected):
            x = entry.argument(writer, args, n)
            ok = entry.check_array(writer, constants, x, shape, dtype, writeable)
            entry.refuse_unless(writer, constants, ok)

    return made(write)


def test_an_array_of_the_expected_kind_is_taken():
    step = checker(((3, 4), np.float32, True))
    assert step(np.zeros((3, 4), np.float32)) is None


@pytest.mark.parametrize("what", WRONG)
def test_an_array_that_differs_in_one_property_is_refused(what):
    step = checker(((3, 4), np.float32, True))
    assert step(WRONG[what]) is True


def test_an_input_may_be_read_only():
    step = checker(((3, 4), np.float32, False))
    assert step(frozen(np.zeros((3, 4), np.float32))) is None


def test_the_number_of_arguments_is_checked():
    step = checker(((2,), np.float32, False))
    x = np.zeros(2, np.float32)
    assert (step(), step(x), step(x, x)) == (True, None, True)


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdFD")
def test_every_dtype_is_told_from_all_others(dtype):
    step = checker(((2,), dtype, False))
    for other in "?bBhHiIlLqQefdFD":
        taken = step(np.zeros(2, other)) is None
        assert taken == (np.dtype(other) == np.dtype(dtype)), other


@pytest.mark.parametrize(
    "shape", [(), (0,), (1,), (0, 3), (2, 1, 3), (1, 2, 1, 2, 1, 3)]
)
def test_arrays_of_every_rank_are_taken(shape):
    step = checker((shape, np.float64, True))
    assert step(np.zeros(shape)) is None
    assert step(np.zeros((*shape, 1))) is True


def test_a_size_that_is_not_known_takes_any():
    step = checker(((None, 4), np.float32, False))
    for rows in (0, 1, 7):
        assert step(np.zeros((rows, 4), np.float32)) is None
        assert step(np.zeros((rows, 3), np.float32)) is True


def test_the_fields_of_an_array_are_read():
    def write(writer, constants, args, count):
        x, out = [entry.argument(writer, args, n) for n in (0, 1)]
        out = entry.array_data(writer, out)
        found = [
            writer.cast(entry.array_rank(writer, x), np.int64),
            *[entry.array_size(writer, x, axis) for axis in (0, 1)],
            *[entry.array_stride(writer, x, axis) for axis in (0, 1)],
        ]
        for n, value in enumerate(found):
            writer.store(value, writer.at(out, n, np.int64))

    out = np.zeros(5, np.int64)
    made(write)(np.zeros((6, 8), np.float32)[::2, 1:4], out)
    assert out.tolist() == [2, 3, 3, 64, 4]


def test_constants_are_read():
    def write(writer, constants, args, count):
        data = [
            entry.array_data(writer, entry.constant(writer, constants, n))
            for n in (0, 1)
        ]
        total = writer.load(data[0], np.float64) + writer.load(data[1], np.float64)
        out = entry.array_data(writer, entry.argument(writer, args, 0))
        writer.store(total, out)

    out = np.zeros(1)
    made(write, (np.full(1, 2.0), np.full(1, 40.0)))(out)
    assert out[0] == 42


def test_the_gil_is_released_and_taken_back():
    def write(writer, constants, args, count):
        entry.retake_gil(writer, entry.release_gil(writer))

    assert made(write)() is None


def test_no_call_changes_a_count_of_references():
    step = checker(((2,), np.float32, False))
    good, bad = np.zeros(2, np.float32), np.zeros(3, np.float32)
    watched = [None, True, good, bad, good.dtype, np.ndarray, step.__self__]
    step(good), step(bad)
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(10_000):
        step(good)
        step(bad)
    after = [sys.getrefcount(thing) for thing in watched]
    assert np.abs(np.subtract(after, before)).max() < 100


def test_a_function_keeps_its_code_and_gives_it_back():
    step = checker(((2,), np.float32, False))
    library = weakref.ref(step.__self__[0].library)
    gc.collect()
    assert step(np.zeros(2, np.float32)) is None
    assert library() is not None
    del step
    gc.collect()
    assert library() is None


def test_a_function_has_a_name():
    assert checker().__name__ == "step"


@pytest.mark.parametrize(
    "field", ["items", "data", "rank", "shape", "strides", "dtype", "flags", "number"]
)
def test_a_wrong_offset_is_found(field):
    right = object_layout.probe()
    wrong = dataclasses.replace(right, **{field: getattr(right, field) + 8})
    if field in ("shape", "strides", "dtype"):  # pointers: swapped with a valid one
        other = right.strides if field == "shape" else right.shape
        wrong = dataclasses.replace(right, **{field: other})
    with pytest.raises(Unavailable):
        object_layout.verify(wrong)


ENDING = """
import threading, time
import numpy as np
from tapewright.compiler.targets.native import atomics
from tapewright.compiler.targets.native.jit import engine, entry
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer

writer = Writer()
head = "step", entry.PARAMETERS, POINTER, ATTRIBUTES
with writer.function(*head) as (constants, args, count):
    state = entry.release_gil(writer)
    place = writer.alloca(np.int64)
    with writer.loop(0, 10**6) as i:
        writer.emit(f"store volatile i64 {i.text}, ptr {place.text}")
    entry.retake_gil(writer, state)
    writer.ret(entry.none(writer, constants))
step = entry.builtin(engine.compiled(writer.text(), "test", entry.symbols()), "step")

def run():
    while True:
        step()

for _ in range(4):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.parametrize("attributes", ["", "nounwind"])
def test_a_process_ends_while_threads_compute_without_the_gil(attributes):
    """Python ends such threads where they take the GIL back: inside the machine code."""
    script = ENDING.replace("ATTRIBUTES", repr(attributes))
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
