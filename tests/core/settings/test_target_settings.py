"""The target of traced functions, and the threads of native code, as config sets them."""

import json
import os

import pytest

import tapewright as tw
from tapewright.core import hooks
from tapewright.core.settings import config, target_settings

from ...forks import Forks

SWITCHES = ("TAPEWRIGHT_TARGET", "TAPEWRIGHT_CACHE", "TAPEWRIGHT_HOME")


@pytest.fixture(scope="module")
def in_new_process():
    """Returns ``result`` after code in a new process, started without switches."""
    environment = {k: v for k, v in os.environ.items() if k not in SWITCHES}
    script = "import json, sys\nimport tapewright as tw\n{}\nprint(json.dumps(result))"
    with Forks("import numpy", environment) as forks:
        yield lambda code, **variables: json.loads(
            forks.output(script.format(code), **variables).splitlines()[-1]
        )


@pytest.fixture
def offered(monkeypatch):
    """Offer a native target that is unavailable for the last reason in this list."""
    monkeypatch.delenv("TAPEWRIGHT_TARGET", raising=False)
    monkeypatch.setitem(target_settings._asked, "target", None)
    reasons = []
    compiler = hooks.compiler.call()._replace(
        why_native_unavailable=lambda: reasons[-1] if reasons else None,
        native_description=lambda: "LLVM 99, some CPU",
    )
    monkeypatch.setattr(hooks.compiler, "call", lambda: compiler)
    return reasons


def note():
    return config.report()["target"]["note"]


def test_machine_code_is_the_default_where_there_is_any(offered):
    assert config.target() == "native"
    assert note() == "LLVM 99, some CPU"
    offered.append("there is no compiler")
    assert config.target() == "numpy"
    assert note() == "there is no compiler"


@pytest.mark.parametrize("name", ["native", "auto"])
def test_native_is_taken_where_it_is_available(offered, name):
    with config.use_target(name):
        assert config.target() == "native"
        assert note() == "LLVM 99, some CPU"


@pytest.mark.parametrize("name", ["native", "auto"])
def test_numpy_is_taken_where_native_is_not_available_and_the_report_says_why(
    offered, name
):
    offered.append("there is no compiler")
    with config.use_target(name):
        assert config.target() == "numpy"
        assert note() == "there is no compiler"


def test_the_last_call_decides_and_a_block_ends(offered):
    config.set_target("native")
    with config.use_target("numpy"):
        assert config.target() == "numpy"
        assert note() == "set_target"
    assert config.target() == "native"


def test_a_block_ends_also_with_an_error(offered):
    with pytest.raises(KeyError), config.use_target("numpy"):
        raise KeyError
    assert config.target() == "native"


@pytest.mark.parametrize("name", ["cuda", "", None, "NumPy"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match="name .*'auto'.*'native'.*'numpy'"):
        config.set_target(name)


@pytest.mark.parametrize("value", ["native", "auto", "Native"])
def test_the_environment_chooses(offered, monkeypatch, value):
    monkeypatch.setenv("TAPEWRIGHT_TARGET", "numpy")
    assert config.target() == "numpy"
    assert note() == "TAPEWRIGHT_TARGET=numpy"
    monkeypatch.setenv("TAPEWRIGHT_TARGET", value)
    assert config.target() == "native"
    with config.use_target("numpy"):
        assert config.target() == "numpy"


def test_a_wrong_name_in_the_environment_is_told(offered, monkeypatch):
    monkeypatch.setenv("TAPEWRIGHT_TARGET", "gpu")
    assert config.target() == "numpy"
    assert note() == "TAPEWRIGHT_TARGET=gpu is not one of 'auto', 'native', 'numpy'"


def test_show_has_a_line_of_the_target_and_its_threads(offered, capsys):
    config.set_threads(3)
    try:
        config.show()
    finally:
        config.set_threads(None)
    with config.use_target("numpy"):
        config.show()
    offered.append("there is no compiler")
    config.show()
    lines = [s for s in capsys.readouterr().out.splitlines() if s.startswith("target ")]
    assert lines == [
        "target       native (LLVM 99, some CPU, 3 threads)",
        "target       numpy (set_target)",
        "target       numpy (there is no compiler)",
    ]


def test_a_function_for_numpy_does_not_import_llvmlite(in_new_process):
    code = """
f = tw.function(lambda x: tw.reduce_sum(x * x))
with tw.config.use_target("numpy"):
    f(tw.ones([3]))
    tw.config.show()
result = "llvmlite" in sys.modules
"""
    assert in_new_process(code) is False


HIDDEN = "sys.modules['llvmlite'] = sys.modules['llvmlite.binding'] = None\n"


RUNNING = """
value = tw.function(lambda x: x * 2.0)(tw.constant(21.0))
result = [float(value), tw.config.target(), tw.config.report()["target"]["note"]]
"""


@pytest.mark.parametrize("variables", [{}, {"TAPEWRIGHT_TARGET": "native"}])
def test_a_missing_llvmlite_is_told_and_functions_run(variables, in_new_process):
    missing = "llvmlite is not installed (pip install llvmlite)"
    found = in_new_process(HIDDEN + RUNNING, **variables)
    assert found == [42.0, "numpy", missing]


@pytest.mark.parametrize(
    "binding, reason",
    [
        ("raise OSError('libllvmlite.so: no such file')", "libllvmlite.so: no such"),
        ("raise TypeError('nothing for this Python')", "nothing for this Python"),
        ("", "has no attribute 'initialize_native_target'"),
    ],
)
def test_an_llvmlite_that_does_not_work_is_told_and_functions_run(
    binding, reason, tmp_path, in_new_process
):
    package = tmp_path / "llvmlite"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '9.9'\n")
    (package / "binding.py").write_text(binding)
    first = f"sys.path.insert(0, {str(tmp_path)!r})\n"
    value, target, note = in_new_process(first + RUNNING)
    assert (value, target) == (42.0, "numpy")
    assert note.startswith("llvmlite cannot be loaded: ")
    assert reason in note


def test_the_report_names_compiler_and_cache(tmp_path, in_new_process):
    pytest.importorskip("llvmlite")
    found = in_new_process(
        "result = [tw.config.target(), tw.config.report()['target']['note']]",
        TAPEWRIGHT_TARGET="auto",
        TAPEWRIGHT_HOME=str(tmp_path),
    )
    assert found[0] == "native"
    assert found[1].startswith("LLVM ")
    assert found[1].endswith(f", cache {tmp_path}{os.sep}native")


def test_autotune_is_off_until_it_is_asked_for(offered, capsys):
    assert not config.report()["target"]["autotune"]
    config.autotune()
    try:
        assert config.autotune_is_on()
        assert config.report()["target"]["autotune"]
        config.show()
    finally:
        config.autotune(False)
    count = config.threads()
    assert (
        f"{count} thread{'s' if count > 1 else ''}, autotune)"
        in capsys.readouterr().out
    )
    assert not config.autotune_is_on()


# --- threads


@pytest.fixture
def threads():
    yield
    config.set_threads(None)


def test_there_is_one_thread_for_each_processor(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert target_settings._first_threads.__wrapped__() == 3


@pytest.mark.parametrize("name", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize("given, count", [("2", 2), ("9", 3), ("0", 3), ("many", 3)])
def test_the_environment_limits_threads(monkeypatch, name, given, count):
    for each in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setenv(name, given)
    assert target_settings._first_threads.__wrapped__() == count


def test_who_follows_is_told_each_change(threads, monkeypatch):
    config.set_threads(2)
    told = []
    monkeypatch.setattr(hooks.threads_changed, "listeners", [])
    hooks.threads_changed.add(told.append)
    for n in (3, 3, tw.constant(5).numpy(), 1):
        config.set_threads(n)
    assert told == [3, 5, 1]
    assert config.threads() == 1


@pytest.mark.parametrize("n", [0, -1, 65])
def test_a_number_of_threads_beyond_the_limits_is_refused(n):
    with pytest.raises(ValueError, match=f"n must be from 1 to 64, got {n}"):
        config.set_threads(n)


@pytest.mark.parametrize("n", [1.5, "2"])
def test_a_number_of_threads_is_an_integer(n):
    with pytest.raises(TypeError, match="n must be an integer or None"):
        config.set_threads(n)
