"""What pytest needs before it imports a file: settings, and the names of our modules.

Traced functions run on NumPy calls, as to compile the thousands of small ones of all tests
takes half an hour; tests of machine code ask for it, and ``TAPEWRIGHT_TARGET=native pytest``
runs any others on it.
"""

import doctest
import importlib
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("TAPEWRIGHT_VERIFY", "1")  # every program that a test makes
os.environ.setdefault("TAPEWRIGHT_TARGET", "numpy")

if "PYTEST_XDIST_WORKER" in os.environ:  # else threads of workers wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if sys.dont_write_bytecode:  # as in many containers
    # The hundreds of processes that tests start share bytecode in a folder of this run.
    bytecode = tempfile.TemporaryDirectory(prefix="bytecode-")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = bytecode.name
    sys.dont_write_bytecode = False

# The debugger that doctest makes for each docstring would look at all files of `linecache`.
doctest._OutputRedirectingPdb.reset = lambda debugger: None


def _from_module(finder, module, thing, _as_it_was=doctest.DocTestFinder._from_module):
    """Return whether a module defines a thing; the errors have a public module's name."""
    public = getattr(thing, "__module__", None) == "tapewright.errors"
    if public and isinstance(thing, type):
        return module.__name__ == "tapewright.core.errors"
    return _as_it_was(finder, module, thing)


doctest.DocTestFinder._from_module = _from_module

# it starts MPI in the process that imports it, and has no examples
collect_ignore = ["framework/core/communication/mpi.py"]
if not find_spec("cupy"):  # they derive from its classes
    collect_ignore += ["tests/stand_in/arrays.py", "tests/stand_in/held_array.py"]

PACKAGES = {
    "framework": "tapewright",
    "layers": "tapewright.layers",
    "optimizers": "tapewright.optimizers",
    "datasets": "tapewright.datasets",
}
ROOT = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path):
    """Have the doctests of ``layers/core.py`` run in `tapewright.layers.core`.

    pytest names a module after its path. Without this it would import a second copy of
    each file, whose classes are others, and would register them again.
    """
    if file_path.suffix != ".py" or not file_path.is_relative_to(ROOT):
        return
    folders = file_path.relative_to(ROOT).with_suffix("").parts
    if folders[0] not in PACKAGES:
        return
    for end in range(1, len(folders) + 1):  # the packages that hold it, then itself
        name = ".".join(folders[:end]).removesuffix(".__init__")
        package = ".".join([PACKAGES[folders[0]], *folders[1:end]])
        sys.modules[name] = importlib.import_module(package.removesuffix(".__init__"))


def pytest_itemcollected(item):
    """Run the examples of docstrings as a user pastes them, behind two imports."""
    if isinstance(item, pytest.DoctestItem):
        tw = importlib.import_module("tapewright")
        item.dtest.globs = {"__name__": "__main__", "tw": tw, "keras": tw.keras}
