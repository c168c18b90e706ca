"""Gives tests of this folder the op table: as ``any_case``, one by one, or as a whole."""

import pytest

from ..op_table import op_table


def pytest_generate_tests(metafunc):
    if "any_case" in metafunc.fixturenames:
        metafunc.parametrize("any_case", op_table(), ids=str)


@pytest.fixture(scope="session")
def table():
    """All cases of the op table."""
    return op_table()
