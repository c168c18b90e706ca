"""The settings of the process: each test that makes one does so in a new process."""

import io
import json
import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

from tapewright import config

SWITCHES = [name for name in config.VARIABLES if not name.startswith("LD_")]
EVERY_FLAG = frozenset(flag for flags in config.KERNELS.values() for flag in flags)


def run(code, **variables):
    """Value of ``result`` after ``code`` in a new process, started without switches."""
    environment = {k: v for k, v in os.environ.items() if k not in SWITCHES}
    script = f"""
import json, os, warnings
import numpy as np
from tapewright import config
config.apply_defaults()
{code}
print(json.dumps(result))
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def report_with(**variables):
    return run("result = config.report()", **variables)


@pytest.fixture(scope="module")
def glibc():
    if not run("result = config.report()['malloc']['tuned']"):
        pytest.skip("malloc is not glibc's, or glibc refuses")


@pytest.fixture(scope="module")
def openblas():
    if config.report()["blas"]["core"] is None:
        pytest.skip("NumPy's BLAS is not an OpenBLAS within reach")


@pytest.fixture(scope="module")
def switchable(openblas):
    """Two sets of kernels that this CPU and this OpenBLAS can both run."""
    code = """
cores = []
for core in config.KERNELS:
    try:
        config.set_blas_kernels(core)
        cores.append(core)
    except RuntimeError:
        pass
result = cores
"""
    cores = run(code)
    if len(cores) < 2:
        pytest.skip("OpenBLAS has one set of kernels for this CPU")
    return cores[:2]


# A block of 16 MB is mapped on its own (mallinfo2 counts such blocks) or it is not.
MAPPED = """
import ctypes
class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keep"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
def mapped():
    if mallinfo is None:
        return None
    mallinfo.restype = Info
    before = mallinfo().hblks
    block = np.empty(16 * 2**20, np.uint8)
    return mallinfo().hblks - before
"""


def count_mapped(code, **variables):
    count = run(MAPPED + code + "\nresult = mapped()", **variables)
    if count is None:
        pytest.skip("this glibc does not count mapped blocks (mallinfo2)")
    return count


def test_large_arrays_come_from_the_heap_once_malloc_is_tuned(glibc):
    assert count_mapped("") == 0


def test_large_arrays_are_mapped_one_by_one_where_malloc_is_switched_off(glibc):
    assert count_mapped("", TAPEWRIGHT_MALLOC="0") == 1


def test_malloc_can_be_set_back_and_tuned_again_by_a_call(glibc):
    assert count_mapped("config.set_malloc(False)") == 1
    assert count_mapped("config.set_malloc(False); config.set_malloc(True)") == 0


@pytest.mark.parametrize("value", ["0", "off", "False", "no"])
def test_a_variable_switches_both_settings_off(value):
    report = report_with(TAPEWRIGHT_MALLOC=value, TAPEWRIGHT_BLAS_KERNELS=value)
    assert report["malloc"] == {
        "tuned": False,
        "note": f"off: TAPEWRIGHT_MALLOC={value}",
    }
    assert report["blas"]["switched"] is False
    assert report["blas"]["note"] == f"off: TAPEWRIGHT_BLAS_KERNELS={value}"


@pytest.mark.parametrize(
    "variables",
    [
        {"MALLOC_MMAP_THRESHOLD_": "65536"},
        {"MALLOC_TRIM_THRESHOLD_": "65536"},
        {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=65536"},
        {"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.trim_threshold=65536"},
    ],
)
def test_malloc_is_left_alone_where_the_user_set_a_threshold(variables):
    malloc = report_with(**variables)["malloc"]
    assert not malloc["tuned"]
    assert malloc["note"].startswith("left alone")


def test_another_tunable_of_glibc_does_not_keep_malloc_from_being_tuned(glibc):
    assert report_with(GLIBC_TUNABLES="glibc.malloc.perturb=0")["malloc"]["tuned"]


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_a_preloaded_allocator_is_not_taken_for_glibc(name, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", f"/usr/lib/lib{name}.so.2")
    with pytest.raises(RuntimeError, match="malloc is not glibc's"):
        config.set_malloc(True)


def test_malloc_of_another_c_library_cannot_be_tuned(monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(sys, "platform", "freebsd14")
    with pytest.raises(RuntimeError, match="glibc only"):
        config.set_malloc(True)


def test_settings_stay_unmade_without_ctypes_and_the_report_says_why(openblas):
    code = """
config.apply_defaults.cache_clear()
config._openblas.cache_clear()
config._malloc["tuned"] = config._kernels["switched"] = False
config.ctypes = None
config.apply_defaults()
result = config.report()
"""
    report = run(code)
    assert not report["malloc"]["tuned"]
    assert not report["blas"]["switched"]
    assert "ctypes" in report["blas"]["note"]
    assert report["blas"]["core"] is None


def test_kernels_are_switched_where_and_only_where_the_report_says_so(openblas):
    plain = report_with(TAPEWRIGHT_BLAS_KERNELS="0")["blas"]
    tuned = report_with()["blas"]
    assert tuned["switched"] == (tuned["core"] != plain["core"])
    assert not tuned["switched"] or tuned["core"] == "SkylakeX"


def test_kernels_of_a_new_core_compute_the_same_products(switchable):
    code = f"""
rng = np.random.default_rng(0)
a, b = rng.normal(size=(2, 200, 200))
def results():
    single = a.astype("f4") @ b.astype("f4")
    return a @ b, single, np.linalg.solve(a, b), np.linalg.svd(a)[1]
config.set_blas_kernels({switchable[0]!r})
first, expected = config.report()["blas"]["core"], results()
config.set_blas_kernels({switchable[1]!r})
second, given = config.report()["blas"]["core"], results()
for x, y in zip(expected, given):
    tolerance = 1e-4 if x.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
result = first, second
"""
    assert run(code) == switchable


def test_none_returns_to_the_choice_of_the_library(switchable):
    code = """
from tapewright import config
before = config.report()["blas"]
for core in {cores}:
    config.set_blas_kernels(core)
config.set_blas_kernels(None)
after = config.report()["blas"]
result = before, after
"""
    code = code.format(cores=switchable)
    before, after = run(code, TAPEWRIGHT_BLAS_KERNELS="0")
    assert after["core"] == before["core"]
    assert after["threads"] == before["threads"]
    assert after["switched"] is False


@pytest.mark.parametrize("users", [None, "Haswell"])
def test_the_environment_is_left_as_it_was(switchable, users):
    code = f"""
config.set_blas_kernels({switchable[0]!r})
result = os.environ.get("OPENBLAS_CORETYPE")
"""
    variables = {} if users is None else {"OPENBLAS_CORETYPE": users}
    if users and users not in switchable:
        pytest.skip(f"this CPU or OpenBLAS has no {users} kernels")
    assert run(code, **variables) == users


def test_kernels_are_left_alone_where_the_user_chose_a_core(switchable):
    blas = report_with(OPENBLAS_CORETYPE=switchable[0])["blas"]
    assert blas["core"] == switchable[0]
    assert blas["note"] == f"left alone: OPENBLAS_CORETYPE={switchable[0]}"


def test_kernels_that_compute_other_products_are_taken_back(switchable):
    code = f"""
config.set_blas_kernels({switchable[0]!r})
products = iter([[np.zeros(2)], [np.ones(2)]])
config._products = lambda: next(products)
try:
    config.set_blas_kernels({switchable[1]!r})
except RuntimeError as error:
    result = str(error), config.report()["blas"]["core"]
"""
    message, core = run(code)
    assert "computed other products" in message
    assert core == switchable[0]


def test_kernels_that_the_library_does_not_hold_are_taken_back(switchable):
    code = f"""
config.set_blas_kernels({switchable[0]!r})
config.KERNELS["Prescott II"] = ()  # unknown to OpenBLAS, which falls back
try:
    config.set_blas_kernels("Prescott II")
except RuntimeError as error:
    result = str(error), config.report()["blas"]["core"]
"""
    message, core = run(code)
    assert "asked for Prescott II" in message
    assert core == switchable[0]


def test_a_forked_child_computes_with_the_switched_kernels(switchable):
    code = f"""
config.set_blas_kernels({switchable[0]!r})
a = np.arange(10000.0).reshape(100, 100)
expected = a @ a
reader, writer = os.pipe()
warnings.simplefilter("ignore")  # of forking beside the threads of BLAS: the very point
if os.fork() == 0:
    same = np.array_equal(a @ a, expected)
    core = config.report()["blas"]["core"] if same else "other products"
    os.write(writer, core.encode())
    os._exit(0)
os.wait()
result = os.read(reader, 100).decode()
"""
    assert run(code) == switchable[0]


def test_kernels_beyond_the_cpu_are_refused(monkeypatch):
    monkeypatch.setattr(config, "_cpu_flags", lambda: EVERY_FLAG - {"avx512vl"})
    with pytest.raises(RuntimeError, match="need a CPU with avx512vl"):
        config.set_blas_kernels("SkylakeX")


def test_an_unknown_core_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match="Haswell, SkylakeX or None;\n  .*'Pentium'"):
        config.set_blas_kernels("Pentium")


@pytest.fixture
def decide(monkeypatch):
    """The default decision on a made-up machine: the core it asks for."""

    def decide(core="Haswell", flags=EVERY_FLAG):
        asked = []
        monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
        monkeypatch.delenv("TAPEWRIGHT_BLAS_KERNELS", raising=False)
        monkeypatch.setattr(config, "_core", lambda: core)
        monkeypatch.setattr(config, "_cpu_flags", lambda: flags)
        monkeypatch.setattr(config, "set_blas_kernels", asked.append)
        config._default_kernels()
        return asked

    return decide


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setattr(sys, "_current_frames", lambda: {threading.get_ident(): None})


@pytest.mark.parametrize("core", ["Haswell", "Zen"])
def test_avx2_kernels_on_an_avx512_cpu_are_replaced(core, decide, alone):
    assert decide(core) == ["SkylakeX"]


@pytest.mark.parametrize("core", ["SkylakeX", "Cooperlake", "Sandybridge"])
def test_kernels_other_than_avx2_are_kept(core, decide, alone):
    with pytest.raises(RuntimeError, match=f"OpenBLAS chose {core}"):
        decide(core)


@pytest.mark.parametrize("flag", config.AVX512)
def test_avx2_kernels_are_kept_where_a_part_of_avx512_is_missing(flag, decide, alone):
    with pytest.raises(RuntimeError, match="no AVX-512"):
        decide(flags=EVERY_FLAG - {flag})


def test_kernels_are_kept_while_another_thread_runs(decide):
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="other threads run"):
            decide()
    finally:
        done.set()
        thread.join()


def test_the_report_can_be_written_as_json_and_names_every_switch():
    report = json.loads(json.dumps(config.report()))
    assert report["numpy"] == np.__version__
    assert list(report["environment"]) == list(config.VARIABLES)
    assert set(report["malloc"]) == {"tuned", "note"}


def test_show_prints_aligned_lines_with_core_and_notes():
    stream = io.StringIO()
    config.show(file=stream)
    text, report = stream.getvalue(), config.report()
    assert all(line[12] == " " and line[13] != " " for line in text.splitlines())
    assert report["blas"]["note"] in text
    assert report["malloc"]["note"] in text
    assert f"{report['blas']['core'] or 'unknown'} (" in text


def test_cupy_is_reported_without_being_imported(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise AssertionError('imported')")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert config.report()["cupy"] == "installed, not imported"
    assert "cupy" not in sys.modules


def test_imported_cupy_is_reported_with_its_devices(monkeypatch):
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 2)
    cuda = types.SimpleNamespace(runtime=runtime)
    cupy = types.SimpleNamespace(__version__="13.0", cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert config.report()["cupy"] == "13.0, devices: 2"


def test_a_cuda_failure_is_part_of_the_report(monkeypatch):
    def fail():
        raise RuntimeError("no driver")

    cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=fail))
    cupy = types.SimpleNamespace(__version__="13.0", cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert config.report()["cupy"] == "imported, devices unknown: no driver"
