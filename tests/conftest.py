"""What every test gets: fixed seeds, the device asked for, a look at the tapes after it.

``pytest --device cupy`` runs the very same tests on CuPy arrays, on a GPU, and
``pytest --device strict`` on a stand-in for them that runs anywhere (stand_in/arrays.py).
"""

import gc
import os
import pickle
import shutil
import sys
import threading
from contextvars import copy_context
from importlib.util import find_spec

import numpy as np
import pytest

from tapewright import random
from tapewright.compiler.targets.native.jit import engine
from tapewright.core import interpreters
from tapewright.core.hardware import devices, parallel
from tapewright.core.names.naming import reset_name_counts
from tapewright.core.settings import config

from . import machine_code, selection

FLOAT_ERRORS = np.geterr()


def pytest_addoption(parser, pluginmanager):
    pluginmanager.register(selection)
    parser.addoption(
        "--device",
        choices=("cpu", "cupy", "strict"),
        default="cpu",
        help="where the arrays of the tests are made: cpu (NumPy), cupy (a GPU), or strict",
    )
    parser.addoption(
        "--no-passes",
        action="store_true",
        help="compile machine code without LLVM's passes, which take most of the time",
    )


def pytest_configure(config):
    if config.getoption("--device") == "cupy" and (why := _no_gpu()):
        raise pytest.UsageError(f"--device cupy: {why}")
    if config.getoption("--device") == "strict" and not find_spec("cupy"):
        raise pytest.UsageError("--device strict: CuPy is not installed")
    if config.getoption("--no-passes"):
        engine.compiled = machine_code.without_passes


def pytest_collection_modifyitems(config, items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and (why := _no_gpu()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Switch off garbage collection meanwhile: it finds nothing, in a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    _freeze()  # the modules and tests


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    result = yield
    if nextitem is None or nextitem.path != item.path:
        _freeze()  # what tests of the file leave behind, as caches and traces
    return result


def _freeze():
    """Collect garbage; no later collection looks at what stays."""
    gc.collect()
    gc.freeze()


def _no_gpu():
    """Why the GPU cannot be used, or an empty string."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        return "" if cupy.cuda.runtime.getDeviceCount() else "there is no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"there is no usable GPU ({error})"


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """``once(name, make)`` returns ``make(folder)``, called in one process of the run.

    The other workers wait for its result, and see the files in the folder. On Windows, which
    has no `fcntl`, each worker makes its own.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ or not find_spec("fcntl"):
        return lambda name, make: make(tmp_path_factory.mktemp(name))
    import fcntl

    def shared(name, make):
        folder = base.parent / f"once-{name}"
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = folder / "made.pickle"
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of one that failed
                folder.mkdir()
                found = pickle.dumps(make(folder))
                made.write_bytes(found)
            return pickle.loads(made.read_bytes())

    return shared


@pytest.fixture(scope="session")
def strict(request):
    """A stand-in for the module `cupy`, whose arrays NumPy cannot touch."""
    if request.config.getoption("--device") == "cupy":
        pytest.skip("a test of the stand-in, whose products would take GPU addresses")
    pytest.importorskip("cupy", reason="the stand-in reads CuPy's names and signatures")
    from .stand_in.arrays import registered

    return registered()


@pytest.fixture(autouse=True)
def device(request):
    """Where new arrays are made: "cpu", or what --device or the marker gpu says."""
    name = request.config.getoption("--device")
    if request.node.get_closest_marker("gpu"):
        name = "cupy"
    if name == "strict":
        with devices.use_module(request.getfixturevalue("strict")):
            yield name
    else:
        with devices.device("GPU" if name == "cupy" else "CPU"):
            yield name


@pytest.fixture
def few_passes(request, monkeypatch):
    """Run LLVM's passes for the first case of a test alone, on whichever target.

    They take nine tenths of the time, and the test is about the code given to LLVM, which
    is written, loaded and run in each case.
    """
    case = getattr(request.node, "callspec", None)
    if case and any([n for name, n in case.indices.items() if name != "target"]):
        monkeypatch.setattr(engine, "compiled", machine_code.without_passes)


@pytest.fixture
def numpy_target():
    """Functions are compiled to calls of NumPy: the test is about these, or their bits."""
    with config.use_target("numpy"):
        yield


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request, monkeypatch):
    """Work on arrays of any size is shared out among so many threads."""
    monkeypatch.setattr(parallel, "SHARE", 1)
    config.set_threads(request.param)
    yield
    config.set_threads(None)


@pytest.fixture(autouse=True)
def independence(device):
    """The same random numbers and default names in every test, whichever come before.

    Fails a test that leaves a tape, or another reader of ops, behind, or other settings of
    float errors. One fixture, as there are tens of thousands of tests.
    """
    np.random.seed(0)
    random.set_seed(0)
    reset_name_counts()
    yield
    left, _ = interpreters.active_interpreters(), interpreters.set_interpreters(())
    assert left == (), f"the test left readers behind: {left}"
    assert np.seterr(**FLOAT_ERRORS) == FLOAT_ERRORS, "the test left an errstate behind"


@pytest.fixture
def in_threads():
    """Runs functions side by side, with many switches; raises what one of them raised."""

    def run_all(*works):
        errors, gate = [], threading.Barrier(len(works))

        def run(work):
            gate.wait()
            try:
                work()
            except BaseException as error:
                errors.append(error)

        threads = [  # each on the device of the test
            threading.Thread(target=copy_context().run, args=(run, w), daemon=True)
            for w in works
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert not any([thread.is_alive() for thread in threads]), "they wait for ever"
        if errors:
            raise errors[0]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield run_all
    sys.setswitchinterval(before)
