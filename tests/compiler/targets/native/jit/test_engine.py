"""Machine code from the text of a module: compiled, linked, called and given back."""

import ctypes
import gc
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer
from tapewright.core.hardware import cpu

pytest.importorskip("llvmlite")

from tapewright.compiler.targets.native.jit import engine  # noqa: E402
from tapewright.compiler.targets.native.jit.host import describe_host  # noqa: E402

DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", "0")


def adding(number, name="add"):
    """A module with a function that adds a number."""
    writer = Writer()
    with writer.function(name, [("x", float)], float, "nounwind") as (x,):
        writer.ret(x + number)
    return writer.text()


def calling(name):
    """A module with a function that calls another."""
    writer = Writer()
    with writer.function("call", [("x", float)], float, "nounwind") as (x,):
        writer.ret(writer.call(name, [x], np.float64))
    return writer.text()


def called(library, name, *args):
    return DOUBLE(library.address(name))(*args)


def test_a_function_of_a_module_can_be_called():
    assert called(engine.compiled(adding(2.5)), "add", 1.0) == 3.5


def test_this_machine_is_supported():
    assert engine.availability() is None
    assert engine.host().cpu in engine.description()


def roots():
    """A module with a loop of square roots."""
    writer = Writer()
    parameters = [
        ("x", POINTER, "noalias"),
        ("out", POINTER, "noalias"),
        ("n", np.int64),
    ]
    with writer.function("root", parameters, attributes="nounwind") as (x, out, n):
        with writer.loop(0, n) as i:
            root = writer.intrinsic(
                "sqrt", writer.load(writer.at(x, i, np.float32), np.float32)
            )
            writer.store(root, writer.at(out, i, np.float32))
        writer.ret()
    return writer.text()


def check_roots():
    library = engine.compiled(roots())
    x = np.arange(100, dtype=np.float32)
    out = np.zeros_like(x)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    function(library.address("root"))(x.ctypes.data, out.ctypes.data, x.size)
    assert (out == np.sqrt(x)).all()


def test_loops_are_vectorized_with_the_widest_vectors_of_recent_cpus():
    check_roots()
    wide = 64 if {"AVX512_SKX", "AVX512_ICL"} <= used_features() else 32
    assert vector_bytes(engine.object_code(roots())) >= wide


def used_features():
    return {name for name, used in cpu.numpy_features().items() if used}


@pytest.fixture
def features(monkeypatch):
    """NumPy's features, to be switched off."""
    found = dict(cpu.numpy_features())
    monkeypatch.setattr(engine, "numpy_features", lambda: found)
    engine.this_cpu.cache_clear()
    yield found
    engine.this_cpu.cache_clear()


def test_what_numpy_does_not_use_of_a_cpu_is_not_used(features):
    features["AVX512_SKX"] = False
    assert vector_bytes(engine.object_code(roots())) == 32
    check_roots()
    features["AVX2"] = False
    engine.this_cpu.cache_clear()
    assert "switched off" in fresh_availability()


def vector_bytes(code):
    """Width of the widest square root in object code of x86, by its prefix."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("reads instructions of x86")
    evex = re.compile(rb"\x62..(.)\x51", re.DOTALL).findall(code)
    if any(each[0] & 0x60 == 0x40 for each in evex):
        return 64
    vex = re.compile(rb"(?:\xc5|\xc4.)(.)\x51", re.DOTALL).findall(code)
    return 32 if any(each[0] & 0x07 == 0x04 for each in vex) else 4


def test_addresses_of_other_functions_are_bound_when_a_module_is_loaded():
    double, triple = DOUBLE(lambda x: 2 * x), DOUBLE(lambda x: 3 * x)
    first, second = [
        engine.compiled(
            calling("given"),
            symbols={"given": ctypes.cast(each, ctypes.c_void_p).value},
        )
        for each in (double, triple)
    ]
    assert called(first, "call", 5.0) == 10
    assert called(second, "call", 5.0) == 15


def test_functions_of_the_c_library_need_no_address():
    assert called(engine.compiled(calling("logb")), "call", 8.0) == 3


def test_a_function_without_address_is_named():
    with pytest.raises(RuntimeError, match="'steps'.*nowhere_defined"):
        engine.compiled(calling("nowhere_defined"), "steps")


@pytest.mark.parametrize(
    "text, message",
    [
        ("define float @f", "(?s)'steps'.*error: expected"),
        ("define i32 @f() {\n  ret float 1.0\n}", "(?s)'steps'.*function result type"),
        (
            "define i32 @f() {\n  br label %a\na:\n  %x = phi i32 [1, %a]\n  ret i32 %x\n}",
            "(?s)'steps'.*PHI node entries",
        ),
    ],
)
def test_a_wrong_module_is_refused_with_what_llvm_says(text, message):
    with pytest.raises(RuntimeError, match=message):
        engine.compiled(text, "steps")


def test_a_name_that_a_module_does_not_define_is_refused():
    library = engine.compiled(adding(1.0))
    with pytest.raises(LookupError, match="'sub'.*add"):
        library.address("sub")


def test_functions_of_a_modules_own_have_no_address():
    writer = Writer()
    with writer.function("own", [("x", float)], float, linkage="internal") as (x,):
        writer.ret(x * 2.0)
    with writer.function("seen", [("x", float)], float) as (x,):
        writer.ret(writer.call("own", [x], np.float64) + 1.0)
    library = engine.compiled(writer.text())
    assert called(library, "seen", 4.0) == 9
    with pytest.raises(LookupError, match="'own'.*seen"):
        library.address("own")


def test_libraries_of_the_same_names_do_not_meet():
    libraries = [engine.compiled(adding(float(k))) for k in range(5)]
    assert [called(each, "add", 0.0) for each in libraries] == [0, 1, 2, 3, 4]
    del libraries[1:4]
    gc.collect()
    assert [called(each, "add", 0.0) for each in libraries] == [0, 4]


# In a process of its own: the memory of one that runs tests changes by itself.
DROPPED = """
import ctypes, gc, os
from tapewright.compiler.targets.native.jit import engine

TEXT = "define double @add(double %x) {{ %y = fadd double %x, {0}.0 ret double %y }}"
DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def compile_and_drop(numbers):
    for number in numbers:
        library = engine.compiled(TEXT.format(number))
        assert DOUBLE(library.address("add"))(1.0) == number + 1
    del library
    gc.collect()

compile_and_drop(range(100))
before = resident()
compile_and_drop(range(100, 400))
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_dropped_libraries_give_their_memory_back():
    script = [sys.executable, "-c", DROPPED]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 1 << 20


@pytest.mark.parametrize("name", ["", "a\0b", "/", "a" * 5000])
def test_a_module_may_have_any_name(name):
    assert called(engine.compiled(calling("logb"), name), "call", 8.0) == 3


def test_parts_of_a_library_are_closed_in_order_if_garbage_is_collected_meanwhile():
    closed = []

    class Part:
        def __init__(self, name):
            self.name = name

        def close(self):
            engine._drop()  # another library, found by the collector
            closed.append(self.name)

    engine._drop(Part("tracker"), Part("linker"))
    assert closed == []  # an interrupt may come here
    engine.compiled(adding(0.5))
    assert closed == ["tracker", "linker"]


def test_threads_compile_at_once():
    results = {}

    def work(k):
        for n in range(5):
            library = engine.compiled(adding(float(10 * k + n)))
            results[k, n] = called(library, "add", 0.0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {(k, n): 10 * k + n for k in range(4) for n in range(5)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_compiles_while_its_parent_does():
    engine.availability()
    stop = threading.Event()

    def compile_on():
        number = 0.0
        while not stop.is_set():
            number += 1
            engine.compiled(adding(number))

    thread = threading.Thread(target=compile_on)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                right = called(engine.compiled(adding(4.0)), "add", 3.0) == 7
                os._exit(0 if right else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("llvm_version_info", (14, 0, 6), "LLVM 14.0.6 is too old, 20 is needed"),
        ("initialize_native_target", None, "llvmlite cannot be loaded"),
    ],
)
def test_an_llvmlite_that_does_not_serve_is_told(monkeypatch, name, value, message):
    import llvmlite.binding

    def fail():
        raise RuntimeError("there is no native target")

    monkeypatch.setattr(llvmlite.binding, name, value or fail)
    assert fresh_availability().startswith(message)


def test_a_missing_llvmlite_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)  # then none is found
    assert fresh_availability() == "llvmlite is not installed (pip install llvmlite)"


@pytest.mark.parametrize(
    "triple, features, message",
    [
        ("ppc64le-unknown-linux-gnu", "", "machine code for ppc64le is not supported"),
        ("i386-pc-linux-gnu", "avx2,fma", "machine code for i386 is not supported"),
        ("armv8l-unknown-linux-gnueabihf", "", "machine code for armv8l is not"),
        (
            "x86_64-pc-linux-gnu",
            "avx,sse4.2",
            "this CPU lacks AVX2 or FMA, or they are",
        ),
        ("AMD64-pc-windows-msvc", "avx2", "this CPU lacks AVX2 or FMA, or they are"),
    ],
)
def test_a_machine_that_is_not_known_is_told(monkeypatch, triple, features, message):
    there = dict.fromkeys(features.split(","), True) if features else {}
    there = describe_host(triple, "generic", there, {})
    monkeypatch.setattr(engine, "host", lambda: there)
    assert fresh_availability().startswith(message)


def test_wrong_numbers_of_the_self_test_are_told(monkeypatch):
    monkeypatch.setattr(engine, "_TEST", engine._TEST.replace("1.5", "2.5"))
    assert fresh_availability() == "a test function computes the wrong numbers"


def test_a_self_test_that_cannot_be_compiled_is_told(monkeypatch):
    monkeypatch.setattr(engine, "_TEST", "define nothing")
    assert fresh_availability().startswith("a test function could not be compiled: ")


def fresh_availability():
    engine._llvm.cache_clear()
    try:
        return engine.availability.__wrapped__()
    finally:
        engine._llvm.cache_clear()
