"""The all-reduce, by ranks of one process that hand each other the messages."""

import numpy as np
import pytest

from tapewright.core.communication import reduction
from tapewright.core.communication.reduction import SMALL, packed_all_reduce


class Rank:
    """One of several ranks, whose requests `reduced` answers."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def all_to_all(self, sent, bounds, received):
        return "all_to_all", [sent[slice(*each)] for each in bounds], received

    def all_gather_bytes(self, own, received):
        return "gather", own, received.reshape(self.size, -1)

    def all_gather_in_place(self, flat, bounds):
        pieces = [flat[slice(*each)] for each in bounds]
        return "gather", pieces[self.rank].copy(), pieces


def reduced(arrays, op, compression=None):
    """What each rank gets for its array; all make the same requests."""
    size = len(arrays)
    ranks = [
        packed_all_reduce(Rank(r, size), [a], op, compression)()
        for r, a in enumerate(arrays)
    ]
    return [result for (result,) in exchanged(ranks)]


def exchanged(ranks):
    """What generators of all ranks return, which make the same requests."""
    results = []
    while len(results) < len(ranks):
        requests = []
        for each in ranks:
            try:
                requests.append(next(each))
            except StopIteration as stop:
                results.append(stop.value)
        for r, (name, _, received) in enumerate(requests):
            for other, (name_of_other, sent, _) in enumerate(requests):
                assert name_of_other == name
                if name == "gather":
                    received[other][...] = sent
                else:  # the own row is not for others
                    received[other] = sent[r] if r != other else np.nan
    return results


def drawn(count, size):
    return np.random.default_rng(count).normal(size=(count, size)).astype("f")


@pytest.mark.parametrize("compression", [None, "float16"])
@pytest.mark.parametrize("farthest", [0, 1 << 30])
@pytest.mark.parametrize("ends", [(0, 500), (0, 0, 7), (300, 300, 1000), (5, 905, 907)])
def test_pieces_of_any_sizes_are_reduced_and_gathered(
    ends, farthest, compression, monkeypatch
):
    monkeypatch.setattr(reduction, "CHUNK", 1000)  # bytes: they go in several parts
    monkeypatch.setattr(reduction, "FARTHEST", farthest)
    size, bounds = len(ends), [*zip([0, *ends], ends)]
    arrays = drawn(size, ends[-1])
    channels = [Rank(r, size) for r in range(size)]
    pieces = exchanged(
        [
            reduction.reduce_scatter(channel, array, bounds, "mean", compression)
            for channel, array in zip(channels, arrays)
        ]
    )
    expected = arrays.mean(axis=0)
    flats = np.full_like(arrays, np.nan)
    for flat, piece, (start, stop) in zip(flats, pieces, bounds):
        tolerance = 1e-6 if compression is None else 2e-3
        np.testing.assert_allclose(piece, expected[start:stop], 0, tolerance)
        flat[start:stop] = piece
    exchanged(
        [
            reduction.all_gather_pieces(channel, flat, bounds)
            for channel, flat in zip(channels, flats)
        ]
    )
    for flat in flats:
        np.testing.assert_array_equal(flat, np.concatenate(pieces))


REDUCED = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@pytest.mark.parametrize("size", [0, 7, SMALL, SMALL + 1])
@pytest.mark.parametrize("op", REDUCED)
def test_each_rank_gets_the_reduction_over_all(op, size, monkeypatch):
    monkeypatch.setattr(reduction, "CHUNK", SMALL)  # large ones go in several parts
    arrays = drawn(3, size)
    found = reduced(arrays, op)
    expected = REDUCED[op](arrays, axis=0)
    for each in found:
        assert each.dtype == np.float32
        np.testing.assert_array_equal(each, found[0])
        np.testing.assert_allclose(each, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1.0, 1e20, 5e37])
def test_half_precision_has_a_scale_for_each_part(scale):
    arrays = np.float32(scale) * np.linspace(0.01, 1, 100, dtype="f") * np.ones((3, 1))
    for each in reduced(arrays.astype("f"), "mean", "float16"):
        np.testing.assert_allclose(each, arrays[0], 0, max(scale * 2**-9, 2e-45))


def test_half_precision_rounds_and_keeps_what_is_not_finite():
    arrays = drawn(3, 100)
    arrays[1, 7] = np.inf
    found = reduced(arrays, "sum", "float16")
    assert found[0][7] == np.inf
    finite = np.delete(arrays, 7, axis=1)
    error = np.abs(np.delete(found[0], 7) - finite.sum(0)).max()
    assert 0 < error < np.abs(finite).max() * 3 * 2**-10
    np.testing.assert_array_equal(found[0], found[2])
