"""JSON from files: what is refused, and that nothing unreadable is written."""

import json

import pytest

import tapewright as tw
from tapewright.storage import strict_json
from tapewright.storage.strict_json import dumps, loads

HOSTILE = {
    "a key twice": ('{"a": 1, "a": 2}', "'a' twice"),
    "a key twice inside": ('[{"b": {"a": 1, "a": 2}}]', "'a' twice"),
    "NaN": ('{"rate": NaN}', "value NaN"),
    "infinity": ("[-Infinity]", "-Infinity"),
    "a number beyond float64": ("[1e999]", "1e999"),
    "a number of many digits": ("9" * 41, "41 digits"),
    "a number of a million digits": ("9" * 1_000_000, "1000000 digits"),
    "200,000 levels": ("[" * 200_000, "JSON .*250"),
    "200,000 closed levels": ("[" * 200_000 + "]" * 200_000, "JSON .*250"),
    "300 levels of objects": ('{"a":' * 300 + "1" + "}" * 300, "JSON .*250"),
    "half a character": (r'["\ud800"]', "surrogate"),
    "half a character in a key": (r'{"\uDC00": 1}', "surrogate"),
    "half a character undecoded": ('["\udcff"]', "surrogate"),
    "no end": ('{"a": [1, 2', "cannot be read"),
    "nothing": ("", "cannot be read"),
    "more after the end": ("{} {}", "cannot be read"),
    "a byte order mark": ("\ufeff{}", "cannot be read"),
    "control characters": ('["a\x00b"]', "cannot be read"),
}


@pytest.mark.parametrize("text, reason", HOSTILE.values(), ids=HOSTILE)
def test_what_no_file_should_hold_is_refused(text, reason):
    with pytest.raises(tw.errors.SavingError, match=reason) as caught:
        loads(text, "m.h5", "/@model_config")
    assert caught.value.path == "m.h5"
    assert caught.value.dataset == "/@model_config"


def test_long_texts_are_refused_before_they_are_parsed(monkeypatch):
    monkeypatch.setattr(strict_json, "MAX_CHARACTERS", 10)
    with pytest.raises(tw.errors.SavingError, match="11 characters"):
        loads('["12345678"', "m.h5")


def test_many_items_are_refused_before_they_are_parsed(monkeypatch):
    monkeypatch.setattr(strict_json, "MAX_ITEMS", 100)
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(tw.errors.SavingError, match="items"):
        loads("[" + "[]," * 100 + "[]]", "m.h5")


def test_values_come_back_as_they_were():
    value = {"a": [1, -2.5, 1e-300, None, True, "\U0001f600 ü"], "b": {"": []}}
    assert loads(dumps(value), "m.h5") == value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), ["\ud800"], {1: 0, "1": 0}, 10**50],
    ids=["nan", "infinity", "surrogate", "equal keys", "digits"],
)
def test_what_would_not_be_read_is_not_written(value):
    with pytest.raises(ValueError):
        dumps(value)


def test_a_number_that_json_lacks_is_told_with_its_place():
    value = {"layers": [{"config": {"max_value": float("inf")}}]}
    with pytest.raises(ValueError, match=r"\['layers'\]\[0\].*'max_value'\] .*inf"):
        dumps(value)


def test_nothing_too_deep_is_written():
    value = []
    for _ in range(300):
        value = [value]
    with pytest.raises(ValueError, match="deeper"):
        dumps(value)


def test_nothing_that_holds_itself_is_written():
    value = []
    value.append(value)
    with pytest.raises(ValueError):
        dumps(value)
