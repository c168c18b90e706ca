"""Row blocks, on arrays small enough for many tries: the same bits as call by call."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program import map_fusion
from tapewright.compiler.program.array_instructions import FusedMap

pytestmark = pytest.mark.usefixtures("numpy_target")  # row blocks are its

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(map_fusion, "LEAST", 1 << 10)
    monkeypatch.setattr(map_fusion, "ROWS", 1 << 9)


def normal(*shape):
    return tw.constant(RNG.normal(size=shape).astype(np.float32))


def blocks_of(function, *args):
    executable = tw.function(function).get_concrete_function(*args).executable
    return [i for i in executable.program.instructions if isinstance(i, FusedMap)]


def check(function, *args):
    """Traced as eager, bit by bit, the second time as well; some of it in blocks."""
    expected = function(*args)
    traced = tw.function(function)
    for _ in range(2):
        for a, b in zip(traced(*args), expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert blocks_of(function, *args)


def test_what_a_chain_reads_again_is_not_written_over():
    def function(a, b):
        x = tw.matmul(a, b)
        y = tw.tanh(x) * 2.0
        z = x + y * 3.0
        return tw.reduce_max(y, 1), tw.reduce_max(z, 1)

    check(function, normal(60, 4), normal(4, 30))


def test_what_a_chain_sees_through_a_view_is_not_written_over():
    def function(a, b):
        x = tw.matmul(a, b)
        y = tw.tanh(x) + tw.transpose(x)
        return tw.reduce_max(y, 1), tw.reduce_max(y * y, 0)

    check(function, normal(40, 4), normal(4, 40))


@pytest.mark.parametrize("shape", [(700,), (12, 7, 9), (10, 3, 4, 5)])
def test_arrays_of_any_rank_are_cut_along_their_first_axis(shape):
    def function(x, row):
        y = tw.tanh(x * row) + x
        return y, tw.reduce_max(tw.square(y) - x)

    check(function, normal(*shape), normal(shape[-1]))


def test_what_has_as_many_columns_as_there_are_rows_is_not_cut():
    check(lambda x, row: (tw.exp(x * row) - x,), normal(40, 40), normal(40))
    lead = normal(12, 12)
    check(lambda x, lead: (tw.exp(x * lead) - x,), normal(12, 12, 12), lead)


def test_few_long_rows_are_left_alone():
    x = normal(2, 4000)
    assert not blocks_of(lambda x: tw.exp(x * x) - x, x)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains(seed):
    rng = np.random.default_rng(seed)
    unary = [tw.tanh, tw.square, tw.negative, tw.transpose, lambda x: x * 0.5]
    binary = [tw.add, tw.subtract, tw.multiply, tw.maximum]
    choices = rng.integers(0, 1 << 30, (8, 4))

    def function(a, b, row):
        known = [tw.matmul(a, b), tw.matmul(b, a)[:1] + row]
        for op, first, second, kind in choices:
            x, y = known[first % len(known)], known[second % len(known)]
            if kind % 3:
                known.append(binary[op % len(binary)](x, y))
            else:
                known.append(unary[op % len(unary)](x))
        return [tw.reduce_max(known[i % len(known)], 1) for i in choices[:3, 3]]

    args = normal(24, 24), normal(24, 24), normal(24)
    found = tw.function(function)(*args)
    for a, b in zip(found, function(*args), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
