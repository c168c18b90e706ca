"""Row blocks, on arrays small enough for many tries: the same bits as call by call."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.array_instructions import FusedMap
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.numpy.fused_maps import BlockFunction

pytestmark = pytest.mark.usefixtures("numpy_target", "threads")  # row blocks are its

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_blocks():
    with use_limits(fused_entries=1 << 8, row_block_bytes=1 << 9):
        yield


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


def test_a_chain_goes_on_where_a_variable_is_read():
    v, w = (tw.Variable(RNG.normal(size=(40, 30)).astype("f4")) for _ in range(2))
    check(lambda x: (tw.exp(x * v) - w,), normal(40, 30))
    (block,) = blocks_of(lambda x: (tw.exp(x * v) - w,), normal(40, 30))
    assert len(block.steps) == 3


def test_reductions_of_rows_join_a_chain():
    def function(x, y):
        p = tw.nn.softmax(x)
        q = tw.nn.log_softmax(tw.reshape(x, (20, 6, 5)))
        return p * y, tw.reduce_max(tw.exp(x) - y, -1, keepdims=True) + p, q

    x, y = normal(20, 30), normal(20, 30)
    check(function, x, y)
    steps = [[s.name for s in each.steps] for each in blocks_of(function, x, y)]
    assert sum(name == "reduce" for names in steps for name in names) >= 3
    bad = x.numpy().copy()
    bad[3, 4], bad[7, 8], bad[11, 2] = np.nan, np.inf, -np.inf
    check(function, tw.constant(bad), y)


def test_threads_have_scratch_memory_of_their_own():
    with use_limits(fused_entries=1 << 13, row_block_bytes=1 << 18):
        check(lambda x, y: (tw.exp(tw.sin(x * y) + x),), normal(96, 8192), normal(8192))


def test_threads_share_what_is_reduced(monkeypatch):
    used = set()
    made = BlockFunction._new_block
    monkeypatch.setattr(
        BlockFunction,
        "_new_block",
        lambda self: used.add(self._entries) or made(self),
    )
    check(lambda x: (tw.reduce_max(tw.exp(x), -1, keepdims=True),), normal(20, 30))
    assert used == {600}


def test_reductions_that_do_not_keep_rows_end_a_chain():
    def function(x):
        y = tw.exp(x)
        z = y - tw.reduce_max(y, 0, keepdims=True)
        return z * z, tw.reduce_max(tw.exp(z), 1)

    check(function, normal(20, 30))


@pytest.mark.parametrize("shape", [(40, 30), (5, 40, 30)])
def test_rows_of_a_transposed_array_are_reduced_alone(shape):
    def function(x):
        rows = tw.reduce_max(tw.transpose(x), -1, keepdims=True)
        return tw.tanh(rows + tw.transpose(x) * 0.5)

    steps = [s.name for each in blocks_of(function, normal(*shape)) for s in each.steps]
    assert "reduce" not in steps


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_and_its_slope_share_their_formula(approximate):
    def step(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.nn.gelu(x, approximate)
        return y, tape.gradient(y, x)

    x = normal(40, 30).numpy()
    x[:5, 0] = np.nan, np.inf, -np.inf, 0.0, -0.0
    for dtype in ["float32", "float64"] if approximate else ["float32"]:
        given = tw.constant(x, dtype)
        check(step, given)
        check(lambda x: (tw.nn.gelu(x, approximate),), given)
        (block,) = blocks_of(step, given)
        assert [each.name for each in block.steps].count("exp") == 1 + approximate


@pytest.mark.parametrize("seed", range(40))
def test_random_chains(seed):
    rng = np.random.default_rng(seed)
    unary = [
        tw.tanh, tw.square, tw.negative, tw.transpose, lambda x: x * 0.5, tw.nn.softmax,
        lambda x: x - tw.reduce_max(x, 1, keepdims=True),
        lambda x: x - tw.reduce_max(x, 0, keepdims=True),
    ]  # fmt: skip
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
