"""The op table: the lines of ``CASES`` in the test modules of ``ops``.

The modules are imported under the names that pytest gives them: each is executed once,
whether its own tests or those of the whole table come first.
"""

import functools
import importlib
from pathlib import Path

HERE = Path(__file__).parent


@functools.cache
def op_table():
    """All cases, in the order of the files."""
    found = []
    for path in sorted((HERE / "ops").rglob("test_*.py")):
        name = ".".join(path.relative_to(HERE).with_suffix("").parts)
        module = importlib.import_module(f".{name}", __package__)
        found.extend(getattr(module, "CASES", ()))
    return found
