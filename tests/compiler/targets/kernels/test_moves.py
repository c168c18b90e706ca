"""Moves on each target: place, concatenate, pad and repeat the entries of arrays."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive
from tapewright.ops.array.indexing import as_index, scatter_index
from tapewright.ops.array.joining import concat_p
from tapewright.ops.image.resampling import upsample
from tapewright.ops.linalg.diagonal import embed_diagonal

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


@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "i8", "?"])
def test_entries_of_any_width_are_placed(check, dtype):
    index = as_index(np.s_[1:3, ::3])
    check(
        scatter_index, [numbers(2, 3, dtype=dtype)], {"shape": (4, 7), "index": index}
    )


def test_complex_numbers_are_moved_as_machine_code(native):
    x = numbers(2, 3, dtype="c8") * 1j
    index = as_index(np.s_[1:3, ::3])
    native(scatter_index, [x], {"shape": (4, 7), "index": index})
    native(concat, [x, x[:, :2]], {"axis": 1})


def test_what_lies_in_no_array_is_an_entry_of_its_own(check):
    check(scatter_index, [np.array(2.5)], {"shape": (), "index": as_index(np.s_[...])})


# --------------------------------------------------------------------- concatenation


def concat(*arrays, axis):
    return concat_p(*arrays, axis=axis)


concat.primitive = concat_p.primitive


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_arrays_are_concatenated(check, dtype, axis):
    sizes = [[2, 3, 5] for _ in range(4)]
    for i, extent in enumerate((1, 7, 2, 4)):
        sizes[i][axis] = extent
    arrays = [numbers(*shape, dtype=dtype) for shape in sizes]
    check(concat, arrays, {"axis": axis})


def test_empty_arrays_take_no_part(check):
    shapes = [(3, 0), (3, 2), (3, 0), (3, 1), (3, 0)]
    check(concat, [numbers(*shape) for shape in shapes], {"axis": 1})


@pytest.mark.parametrize("count", [17, 130])
def test_many_arrays_are_concatenated(check, count):
    check(concat, [numbers(3, 1 + i % 3) for i in range(count)], {"axis": 1})


def test_bits_of_floats_stay_as_they_are(native):
    bits = np.array([0x7FC00001, 0xFFC00002, 0x7F800001, 0x80000000, 1], np.uint32)
    arrays = [bits.view(np.float32), bits[::-1].copy().view(np.float32)]
    joined = tw.function(lambda a, b: tw.concat([a, b], 0))(*arrays)
    assert joined.numpy().view(np.uint32).tolist() == [*bits, *bits[::-1]]


@pytest.mark.parametrize("size", [1000, 70000, 300000])
def test_blocks_of_joined_arrays_are_added_up_once(native, size):
    x = np.random.default_rng(0).integers(0, 5, size).astype(np.float32)
    arrays = [tw.constant(part) for part in np.split(x, [size // 3, size // 2])]

    def f(*parts):
        joined = tw.concat([*parts, parts[0]], 0) * 2.0
        return joined, tw.reduce_sum(joined)

    for a, b in zip(tw.function(f)(*arrays), f(*arrays), strict=True):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ margins, repetition


PADDINGS = [
    ((1, 2), (0, 0), (3, 1)), ((0, 0), (1, 0), (0, 0)), ((0, 0), (0, 0), (0, 0)),
    ((0, 1), (0, 0), (0, 0)), ((0, 0), (2, 2), (1, 1)),
]  # fmt: skip


def padded(*arrays, paddings):
    return pad.general(arrays, {"paddings": paddings})


pad = padded.primitive = get_primitive("pad")


@pytest.mark.parametrize("paddings", PADDINGS, ids=str)
@pytest.mark.parametrize("filling", [0, -0.0, np.nan, 2.5])
def test_an_array_is_padded(check, paddings, filling):
    arrays = [numbers(2, 3, 4), np.array(filling, np.float32)]
    check(padded, arrays, {"paddings": paddings})


@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "i8", "?"])
def test_entries_of_any_width_are_padded(check, dtype):
    arrays = [numbers(3, 4, dtype=dtype), np.array(1, dtype)]
    check(padded, arrays, {"paddings": ((1, 0), (2, 3))})


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "?"])
@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("times", [2, 5, 40])
def test_entries_are_repeated_along_an_axis(check, dtype, axis, times):
    x = numbers(2, 3, 4, dtype=dtype)
    check(upsample, [x], {"axis": axis, "times": times})


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "?"])
@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("shape", [(2, 3, 4), (40, 1, 33), (1, 1, 300)])
def test_a_diagonal_is_embedded(check, dtype, axis, shape):
    x = numbers(*shape, dtype=dtype)
    if x.dtype.kind == "f":
        x.flat[:3] = np.nan, np.inf, -0.0
    check(embed_diagonal, [x], {"axis": axis})
