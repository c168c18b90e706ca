"""What pytest needs before it imports a file: settings, and the names of our modules.

Traced functions run on NumPy calls, as to compile the thousands of small ones of all tests
takes half an hour; tests of machine code ask for it, and ``TAPEWRIGHT_TARGET=native pytest``
runs any others on it.
"""

import importlib
import os
import sys
from pathlib import Path

os.environ.setdefault("TAPEWRIGHT_VERIFY", "1")  # every program that a test makes
os.environ.setdefault("TAPEWRIGHT_TARGET", "numpy")

STARTS_MPI = "framework/core/communication/mpi.py"  # in the process that imports it
collect_ignore = [STARTS_MPI]  # it has no examples

PACKAGES = {
    "framework": "tapewright",
    "layers": "tapewright.layers",
    "optimizers": "tapewright.optimizers",
    "datasets": "tapewright.datasets",
}


def pytest_configure(config):
    """Have the doctests of ``layers/core.py`` run in `tapewright.layers.core`.

    pytest names a module after its path. Without this it would import a second copy of
    each file, whose classes are others, and would register them again.
    """
    root = Path(__file__).parent
    for folder, package in PACKAGES.items():
        for path in sorted((root / folder).rglob("*.py")):
            if path == root / STARTS_MPI:
                continue
            parts = path.relative_to(root / folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            module = importlib.import_module(".".join([package, *parts]))
            sys.modules[".".join([folder, *parts])] = module
