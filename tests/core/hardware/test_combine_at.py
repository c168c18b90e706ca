"""Rows that meet at one place are combined as NumPy does, in one order."""

import numpy as np
import pytest

from tapewright.core.hardware.combine_at import combine_at

PLACES = np.array([2, 0, 2, 3, 2, 0])


def combined(xp, name, target, places, rows):
    target = xp.array(target)
    with np.errstate(invalid="ignore"):
        combine_at(xp, getattr(xp, name), target, xp.asarray(places), xp.asarray(rows))
    return np.asarray(target.get() if hasattr(target, "get") else target)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", "int8 uint64 float16 float32 float64".split())
@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (0,)])
def test_rows_meet_as_in_numpy(strict, name, dtype, shape):
    rng = np.random.default_rng(0)
    target, rows = (rng.integers(-3, 4, (n, *shape)).astype(dtype) for n in (5, 6))
    expected = target.copy()
    getattr(np, name).at(expected, PLACES, rows)
    for xp in (np, strict):
        found = combined(xp, name, target, PLACES, rows)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [bool, "complex64"])
def test_dtypes_without_atomics_are_added(strict, dtype):
    rows = np.array([1, 0, 1, 1, 1, 0]).astype(dtype)
    expected = np.zeros(4, dtype)
    np.add.at(expected, PLACES, rows)
    for xp in (np, strict):
        found = combined(xp, "add", np.zeros(4, dtype), PLACES, rows)
        np.testing.assert_array_equal(found, expected)


def test_nan_wins_and_infinities_meet(strict):
    rows = np.array([1.0, np.nan, 5.0, np.inf, -np.inf, -0.0])
    for xp in (np, strict):
        found = combined(xp, "maximum", np.full(4, -9.0), PLACES, rows)
        np.testing.assert_array_equal(found, [np.nan, -9.0, 5.0, np.inf])
        found = combined(xp, "add", np.zeros(1), np.zeros(2, int), rows[3:5])
        assert np.isnan(found).all()


@pytest.mark.parametrize("count", [0, 1])
def test_few_rows_meet_none(strict, count):
    rows = np.full((count, 2), 3.0)
    for xp in (np, strict):
        found = combined(xp, "add", np.ones((4, 2)), PLACES[:count], rows)
        assert found.sum() == 8 + 6 * count


def test_one_place_takes_all_rows(strict):
    rows = np.arange(1.0, 101.0)
    for xp in (np, strict):
        found = combined(xp, "add", np.zeros(2), np.zeros(100, int), rows)
        assert found.tolist() == [5050.0, 0.0]


def test_a_target_may_be_a_view_in_any_order(strict):
    for xp in (np, strict):
        full = xp.zeros((3, 4))
        rows = xp.asarray(np.ones((6, 3)))
        combine_at(xp, xp.add, full.T, xp.asarray(PLACES), rows)
        assert full.sum(axis=0).tolist() == [6.0, 0.0, 9.0, 3.0]


def test_floats_are_not_added_by_atomics(strict, monkeypatch):
    """Their order would be another one in each run."""

    def refuse(*_):
        raise AssertionError("atomics")

    monkeypatch.setattr(strict.add, "at", refuse, raising=False)
    combined(strict, "add", np.zeros(4), PLACES, np.ones(6))
