"""The settings of the process: each test that makes one does so in a new process."""

import io
import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from tapewright.core.settings import config

from ...forks import Forks
from ...stand_in.gpu import install

SWITCHES = [name for name in config.ENVIRONMENT if not name.startswith("LD_")]


REPORT = "result = config.report()"
SCRIPT = """
import json, os, warnings
import numpy as np
from tapewright.core.settings import config
config.apply_defaults()
{}
print(json.dumps(result))
"""


def without_switches():
    return {k: v for k, v in os.environ.items() if k not in SWITCHES}


def run(code, **variables):
    """Value of ``result`` after ``code`` in a new process, started without switches."""
    command = [sys.executable, "-c", SCRIPT.format(code)]
    done = subprocess.run(
        command, env=without_switches() | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def run_fork():
    """As `run`, but for what C reads from the variables when a process starts."""
    with Forks("import numpy", without_switches()) as forks:
        yield lambda code, **variables: json.loads(
            forks.output(SCRIPT.format(code), **variables).splitlines()[-1]
        )


@pytest.fixture(scope="module")
def glibc(run_fork):
    if not run_fork("result = config.report()['malloc']['tuned']"):
        pytest.skip("malloc is not glibc's, or glibc refuses")


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


def count_mapped(run, code, **variables):
    count = run(MAPPED + code + "\nresult = mapped()", **variables)
    if count is None:
        pytest.skip("this glibc does not count mapped blocks (mallinfo2)")
    return count


def test_large_arrays_come_from_the_heap_once_malloc_is_tuned(glibc, run_fork):
    assert count_mapped(run_fork, "") == 0


def test_large_arrays_are_mapped_one_by_one_where_malloc_is_switched_off(
    glibc, run_fork
):
    assert count_mapped(run_fork, "", TAPEWRIGHT_MALLOC="0") == 1


def test_malloc_can_be_set_back_and_tuned_again_by_a_call(glibc, run_fork):
    off = "config.set_malloc(False)"
    assert count_mapped(run_fork, off) == 1
    assert count_mapped(run_fork, f"{off}; config.set_malloc(True)") == 0


@pytest.mark.parametrize("value", ["0", "off", "False", "no"])
def test_a_variable_switches_the_setting_off(value, run_fork):
    assert run_fork(REPORT, TAPEWRIGHT_MALLOC=value)["malloc"] == {
        "tuned": False,
        "note": f"off: TAPEWRIGHT_MALLOC={value}",
    }


@pytest.mark.parametrize(
    "variables",
    [
        {"MALLOC_MMAP_THRESHOLD_": "65536"},
        {"MALLOC_TRIM_THRESHOLD_": "65536"},
        {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=65536"},
        {"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.trim_threshold=65536"},
    ],
)
def test_malloc_is_left_alone_where_the_user_set_a_threshold(variables, run_fork):
    malloc = run_fork(REPORT, **variables)["malloc"]
    assert not malloc["tuned"]
    assert malloc["note"].startswith("unchanged")


def test_another_tunable_of_glibc_does_not_keep_malloc_from_being_tuned(glibc):
    report = run(REPORT, GLIBC_TUNABLES="glibc.malloc.perturb=0")
    assert report["malloc"]["tuned"]


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_a_preloaded_allocator_is_not_taken_for_glibc(name, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", f"/usr/lib/lib{name}.so.2")
    with pytest.raises(RuntimeError, match="malloc .*glibc"):
        config.set_malloc(True)


def test_malloc_of_another_c_library_cannot_be_tuned(monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(sys, "platform", "freebsd14")
    with pytest.raises(RuntimeError, match="only be tuned with glibc"):
        config.set_malloc(True)


def test_malloc_stays_untuned_without_ctypes_and_the_report_says_why(run_fork):
    code = """
from tapewright.core.hardware import openblas
config.apply_defaults.cache_clear()
openblas.symbol.cache_clear()
config._malloc["tuned"] = False
openblas.ctypes = None
config.apply_defaults()
result = config.report()
"""
    report = run_fork(code)
    assert not report["malloc"]["tuned"]
    assert "ctypes" in report["malloc"]["note"]
    assert "ctypes" in report["blas"]["calls"]
    assert report["blas"]["core"] is None


def test_kernels_are_those_that_openblas_chose():
    chosen = run("import tapewright; result = config.report()['blas']['core']")
    if chosen is None:
        pytest.skip("NumPy's BLAS is not an OpenBLAS within reach")
    alone = subprocess.run(
        [sys.executable, "-c", CHOICE], capture_output=True, text=True, check=True,
        env=without_switches(),
    )  # fmt: skip
    assert chosen == alone.stdout.strip()


# Of a process that never saw tapewright.
CHOICE = """
import ctypes, os
import numpy as np
from numpy._core import _multiarray_umath as extension
library = ctypes.PyDLL(extension.__file__, mode=os.RTLD_NOLOAD)
names = [f"{a}openblas_get_corename{b}" for a in ("", "scipy_") for b in ("", "64_")]
function = next(f for name in names if (f := getattr(library, name, None)))
function.restype = ctypes.c_char_p
print(function().decode())
"""


def test_the_report_can_be_written_as_json_and_names_every_switch():
    report = json.loads(json.dumps(config.report()))
    assert report["numpy"] == np.__version__
    assert list(report["environment"]) == list(config.ENVIRONMENT)
    assert set(report["malloc"]) == {"tuned", "note"}


def test_passes_have_their_defaults_before_a_function_is_compiled(run_fork):
    names = ["algebra", "pool_first"]
    code = f"result = [config.graph_pass_is_on(name) for name in {names}]"
    assert run_fork("import tapewright\n" + code) == [True, True]


def test_show_prints_aligned_lines_with_core_and_notes():
    stream = io.StringIO()
    config.show(file=stream)
    text, report = stream.getvalue(), config.report()
    assert all(line[12] == " " and line[13] != " " for line in text.splitlines())
    assert report["malloc"]["note"] in text
    assert f"kernels    {report['blas']['core'] or 'unknown'}\n" in text


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


@pytest.mark.parametrize(
    ("reason", "shown"),
    [(None, "CUDA graphs"), ("no cublasLt", "op by op (no cublasLt)")],
)
def test_show_tells_of_the_gpu_and_how_functions_run_there(
    monkeypatch, strict, reason, shown
):
    install(monkeypatch, strict)
    monkeypatch.setitem(sys.modules, "cupy", strict)
    monkeypatch.setattr(strict, "__version__", "14.2", raising=False)
    monkeypatch.setattr(config, "why_op_by_op", lambda xp: reason)
    stream = io.StringIO()
    config.show(file=stream)
    text = stream.getvalue()
    assert "Card 0 (GPU:0), compute capability 9.0" in text
    assert "CUDA       12.9, driver for 13.0" in text
    assert "3 MiB in use, 80 of 100 MiB free" in text and shown in text
    assert all(line[12] == " " and line[13] != " " for line in text.splitlines())
