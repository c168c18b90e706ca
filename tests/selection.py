"""Choose the tests of a run: without ``--all``, those that are quick for what they check.

``durations.txt`` has the seconds that a test takes for all its cases, recorded by a run of
all tests. Of a test that takes longer than `SHARE`, as many cases run as take about that
long, the same ones each time; a test whose cases each take longer than `LONGEST` is left
out. A test that is not in the file is quick or new, and runs whole; so does a test that the
command names (``path::name``), and one with the marker ``always``.
"""

import math
import zlib
from collections import Counter
from pathlib import Path

import pytest

from tapewright.core.settings import config as settings

SHARE = 0.2  # seconds for all cases of a test that run
LONGEST = 0.3  # seconds for one case
RECORDED = 0.1  # seconds, from which on a test is in the file
ROOT = Path(__file__).parent.parent
FILE = Path(__file__).with_name("durations.txt")

_left_out = Counter()  # folder -> cases
_seconds, _paths = Counter(), set()  # of tests that ran, and their files


def pytest_addoption(parser):
    parser.addoption(
        "--all",
        action="store_true",
        help="run slow tests, too, and all cases of those of which some run otherwise",
    )
    parser.addoption(
        "--record-durations",
        action="store_true",
        help="write what tests take to tests/durations.txt; with --all",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "always: runs without --all, however slow it is")
    # "load" hands out a quarter of the tests at once: one worker waits for another at the end.
    if config.getoption("dist", "no") == "load":
        config.option.dist = "worksteal"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    is_worker = hasattr(config, "workerinput")
    if is_worker:  # files with long tests first: the last are short
        longest = _longest_by_file(items)
        items.sort(key=lambda item: -longest[item.path])
    if not config.getoption("--all") and not any(["::" in arg for arg in config.args]):
        kept = chosen(items)
        dropped = [item for item in items if item not in kept]
        items[:] = [item for item in items if item in kept]
        config.hook.pytest_deselected(items=dropped)
        _left_out.update([_folder(item.nodeid) for item in dropped])
    if is_worker:
        config.workeroutput["left_out"] = dict(_left_out)


def _longest_by_file(items):
    """File -> seconds of the longest of its tests, for one case of it."""
    seconds, cases, longest = durations(), Counter(map(_test, items)), Counter()
    for item in items:
        each = seconds.get(_test(item), 0) / cases[_test(item)]
        longest[item.path] = max(longest[item.path], each)
    return longest


def chosen(items):
    """The tests of a run without ``--all``."""
    seconds, cases = durations(), Counter(map(_test, items))
    on_numpy = settings.target() == "numpy"
    quick, first = set(), {}  # test -> its case of the lowest hash
    for item in items:
        test = _test(item)
        if not on_numpy and "numpy_target" in getattr(item, "fixturenames", ()):
            continue  # its functions become calls of NumPy on every target
        part = math.ceil(seconds.get(test, 0) / SHARE)
        if part <= 1 or item.get_closest_marker("always"):
            quick.add(item)
        elif seconds[test] / cases[test] <= LONGEST:
            # A stride would always meet the same values of a second parameter.
            number = zlib.crc32(item.name.encode())
            if number % part == 0:
                quick.add(item)
            first[test] = min(
                first.get(test, (number, item)), (number, item), key=_hash
            )
    met = {_test(item) for item in quick}
    return quick | {item for test, (_, item) in first.items() if test not in met}


def _hash(pair):
    return pair[0]


def durations():
    """Test -> seconds for all of its cases, of those that take long."""
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    return {test: float(n) for n, _, test in [line.partition(" ") for line in lines]}


def _test(item):
    return item.nodeid.partition("[")[0]


def _folder(nodeid):
    parts = nodeid.partition("::")[0].split("/")
    return "/".join(parts[: 2 if parts[0] == "tests" and len(parts) > 2 else 1])


# ----------------------------------------------------------------------- after the tests


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    _left_out.clear()  # all workers leave out the same
    _left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_runtest_logreport(report):
    _seconds[report.nodeid.partition("[")[0]] += report.duration
    _paths.add(report.nodeid.partition("::")[0])


def pytest_sessionfinish(session):
    config = session.config
    if not config.getoption("--record-durations") or hasattr(config, "workerinput"):
        return
    kept = {
        test: seconds
        for test, seconds in durations().items()
        if (path := test.partition("::")[0]) not in _paths and (ROOT / path).exists()
    }
    long = {test: n for test, n in _seconds.items() if n >= RECORDED}
    lines = [f"{n:.1f} {test}\n" for test, n in sorted((kept | long).items())]
    FILE.write_text("".join(lines))


def pytest_terminal_summary(terminalreporter):
    if not _left_out:
        return
    folders = ", ".join([f"{name} {n:,}" for name, n in _left_out.most_common()])
    terminalreporter.section("left out")
    terminalreporter.line(f"{_left_out.total():,} cases of slow tests: {folders}")
    terminalreporter.line("pytest -n auto --all runs them, too.")
