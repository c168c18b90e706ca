"""Gathers the op table: the lines of `CASES` in every test module of this folder."""

import importlib.util
from pathlib import Path

import pytest

TABLE = []


def pytest_generate_tests(metafunc):
    if "any_case" in metafunc.fixturenames:
        metafunc.parametrize("any_case", _table(), ids=str)


@pytest.fixture(scope="session")
def table():
    """All cases of the op table."""
    return _table()


def _table():
    if not TABLE:
        for path in sorted(Path(__file__).parent.rglob("test_*.py")):
            spec = importlib.util.spec_from_file_location(f"table_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            TABLE.extend(getattr(module, "CASES", ()))
    return TABLE
