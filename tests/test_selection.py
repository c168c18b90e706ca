"""Which tests a run without ``--all`` leaves out."""

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


@pytest.fixture
def chosen(monkeypatch):
    """Names of the items that are chosen if tests take so many seconds."""

    def names(items, file="test_x", **seconds):
        recorded = {f"tests/{file}.py::{test}": n for test, n in seconds.items()}
        monkeypatch.setattr(selection, "durations", lambda: recorded)
        kept = selection.chosen(items)
        return [item.name for item in items if item in kept]

    return names


def test_quick_tests_and_new_ones_run(chosen):
    items = [Item("test_quick"), Item("test_new")]
    assert chosen(items, test_quick=selection.SHARE) == ["test_quick", "test_new"]


def test_a_test_whose_cases_are_all_slow_is_left_out(chosen):
    items = [Item("test_slow", "a"), Item("test_slow", "b")]
    assert chosen(items, test_slow=2.1 * selection.LONGEST) == []


@pytest.mark.parametrize("part", [3, 10, 500])
def test_of_many_cases_some_run_and_one_in_any_case(chosen, part):
    items = [Item("test_many", str(n)) for n in range(400)]
    names = chosen(items, test_many=part * selection.SHARE)
    assert 0.6 * 400 / part <= len(names) <= max(1.4 * 400 / part, 1)


def test_the_same_cases_run_wherever_the_file_is_and_whatever_cases_are_added(chosen):
    few, more = [[Item("test_many", str(n)) for n in range(end)] for end in (100, 120)]
    for item in few:
        item.nodeid = item.nodeid.replace("test_x", "test_y")
    names = [chosen(few, "test_y", test_many=2.0), chosen(more, test_many=2.0)]
    assert names[0] == [name for name in names[1] if name in {i.name for i in few}]


def test_a_marked_test_runs_however_slow_it_is(chosen):
    items = [Item("test_slow", markers=("always",)), Item("test_other")]
    assert chosen(items, test_slow=60.0, test_other=60.0) == ["test_slow"]


def test_tests_of_numpy_calls_run_on_that_target_alone(chosen, monkeypatch):
    item = Item("test_calls")
    item.fixturenames = ("numpy_target",)
    for target, names in (("numpy", ["test_calls"]), ("native", [])):
        monkeypatch.setattr(selection.settings, "target", lambda target=target: target)
        assert chosen([item]) == names


def test_the_recorded_tests_are_there():
    missing = [
        test
        for test in selection.durations()
        if not (path := ROOT / test.partition("::")[0]).exists()
        or test.startswith("tests/")
        and f"def {test.rpartition('::')[2]}(" not in path.read_text(encoding="utf-8")
    ]
    assert not missing, "run pytest -n auto --all --record-durations"
