"""Which tests a run without ``--all`` leaves out."""

from collections import Counter
from pathlib import Path

import pytest

from . import selection

ROOT = Path(__file__).parent.parent


class Item:
    fixturenames = ()

    def __init__(self, test, case="", markers=()):
        self.name = test + (case and f"[{case}]")
        self.nodeid, self.markers = f"tests/test_x.py::{self.name}", markers

    def get_closest_marker(self, name):
        return name in self.markers


def chosen(items, **seconds):
    cases = Counter(map(selection._test, items))
    seconds = {f"tests/test_x.py::{test}": n for test, n in seconds.items()}
    kept = selection._chosen(items, seconds, cases)
    return [item.name for item in items if item in kept]


def test_quick_tests_and_new_ones_run():
    items = [Item("test_quick"), Item("test_new")]
    assert chosen(items, test_quick=selection.SHARE) == ["test_quick", "test_new"]


def test_a_test_whose_cases_are_all_slow_is_left_out():
    items = [Item("test_slow", "a"), Item("test_slow", "b")]
    assert chosen(items, test_slow=2.1 * selection.LONGEST) == []


@pytest.mark.parametrize("part", [3, 10, 500])
def test_of_many_cases_some_run_and_one_in_any_case(part):
    items = [Item("test_many", str(n)) for n in range(400)]
    names = chosen(items, test_many=part * selection.SHARE)
    assert 0.6 * 400 / part <= len(names) <= max(1.4 * 400 / part, 1)


def test_the_same_cases_run_wherever_the_file_is_and_whatever_cases_are_added():
    few, more = [[Item("test_many", str(n)) for n in range(end)] for end in (100, 120)]
    for item in few:
        item.nodeid = item.nodeid.replace("test_x", "test_y")
    seconds = {f"tests/test_{x}.py::test_many": 2.0 for x in "xy"}
    names = [
        {
            item.name
            for item in selection._chosen(
                items, seconds, Counter(map(selection._test, items))
            )
        }
        for items in (few, more)
    ]
    assert names[0] == names[1] & {item.name for item in few}


def test_a_marked_test_runs_however_slow_it_is():
    items = [Item("test_slow", markers=("always",)), Item("test_other")]
    assert chosen(items, test_slow=60.0, test_other=60.0) == ["test_slow"]


def test_tests_of_numpy_calls_run_on_that_target_alone(monkeypatch):
    item = Item("test_calls")
    item.fixturenames = ("numpy_target",)
    for target, names in (("numpy", ["test_calls"]), ("native", [])):
        monkeypatch.setattr(selection.settings, "target", lambda target=target: target)
        assert chosen([item]) == names


def test_the_recorded_tests_are_there():
    missing = [
        test
        for test in selection._durations()
        if not (path := ROOT / test.partition("::")[0]).exists()
        or test.startswith("tests/")
        and f"def {test.rpartition('::')[2]}(" not in path.read_text(encoding="utf-8")
    ]
    assert not missing, "run pytest -n auto --all --record-durations"
