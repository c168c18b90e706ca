"""Placing on each target: the entries of an array, at their places among zeros."""

import numpy as np
import pytest

from tapewright.ops.array.indexing import as_index, scatter_index

INDICES = [
    np.s_[-1], np.s_[:, 1], np.s_[1:, None, ::-1, ::2], np.s_[..., 1], np.s_[1, 2, 3],
    np.s_[::-1], np.s_[1:-1], np.s_[:, -3:], np.s_[...], np.s_[None], np.s_[:, 3:1:-2],
    np.s_[:, ::-3, 1:4], np.s_[-1::-2, ..., None, 2], np.s_[:, None, 1:2, ...],
]  # fmt: skip


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("large", [False, True])
def test_an_array_is_placed_into_zeros(check, target, index, large):
    shape = {"native": (40, 60, 70), "cuda": (4, 7, 9)}[target] if large else (3, 4, 5)
    g = numbers(*np.empty(shape)[index].shape)
    check(scatter_index, [g], {"shape": shape, "index": as_index(index)})


@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "i8", "?", "c8"])
def test_entries_of_any_width_are_placed(check, dtype):
    index = as_index(np.s_[1:3, ::3])
    check(
        scatter_index, [numbers(2, 3, dtype=dtype)], {"shape": (4, 7), "index": index}
    )


def test_what_lies_in_no_array_is_an_entry_of_its_own(check):
    check(scatter_index, [np.array(2.5)], {"shape": (), "index": as_index(np.s_[...])})
