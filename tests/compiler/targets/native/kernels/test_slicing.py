"""Slice loops: the numbers of the same instructions one after the other.

Arrays are small here, and handed on in slices all the same.
"""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops import group
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.program.instructions.array_instructions import (
    BoundedRead,
    Contract,
)
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.program.passes.rematerialization import rematerialize
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.native.kernels.draws import DrawKernel
from tapewright.compiler.targets.native.kernels.slice_loop import SliceLoop
from tapewright.compiler.targets.native.kernels.slicing import form_slices
from tapewright.compiler.targets.native.products import thin_products
from tapewright.ops.nn.attention import dot_product_attention

from ....changed_passes import change_passes

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("few_passes")

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e30], np.float32)


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setattr(thin_products, "SMALL", 0)  # as if the products were large
    again = {"again_bytes": 0, "again_ratio": 1}
    with use_limits(sliced_bytes=0, slices=2, **again, shared_work=1):
        with config.use_target("native"):
            yield
    config.set_threads(None)


@contextlib.contextmanager
def sliced(on):
    """With slice loops, or without them and what is made again for them."""
    off = () if on else (rematerialize, form_slices)
    with pytest.MonkeyPatch.context() as patch:
        change_passes(patch, program=lambda passes: [p for p in passes if p not in off])
        yield


def numbers(rng, *shape, special=False, dtype=np.float32):
    values = rng.normal(size=shape).astype(dtype)
    if special:
        at = rng.integers(0, values.size, 3)
        values.reshape(-1)[at] = rng.choice(SPECIAL, 3)
    return values


def slice_loops(traced, *args):
    instructions = traced.get_concrete_function(*args).executable.program.instructions
    return [each for each in instructions if type(each) is SliceLoop]


def check(run, *args, least=1, close=2e-6, before=lambda: None):
    """Compare ``run`` traced with slice loops and without, on 1, 2 and 3 threads.

    Returns the slice loops.
    """
    args = [tw.constant(a) for a in args]
    with sliced(False):
        plain = tw.function(run)
        before()
        wanted = [x.numpy() for x in plain(*args)]
    assert not slice_loops(plain, *args)
    config.set_threads(3)
    traced, bits = tw.function(run), None
    for threads in (3, 1, 2):
        before()
        found = [x.numpy() for x in traced(*args)]
        config.set_threads(threads)
        for x, y in zip(found, wanted, strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            size = np.abs(y[np.isfinite(y)]).max(initial=0)
            np.testing.assert_allclose(x, y, rtol=close, atol=close * size)
        own = [x.tobytes() for x in found]
        assert bits in (None, own)  # the same for any number of threads
        bits = own
    loops = slice_loops(traced, *args)
    assert len(loops) >= least
    return loops


def gradients(run):
    """A function that returns what ``run`` does, and the gradients of a sum of it."""

    def both(*args):
        with tw.GradientTape() as tape:
            tape.watch(args)
            out = run(*args)
            loss = tw.reduce_sum(tw.cast(out, "float64") * tw.cast(out, "float64"))
        return [out, *tape.gradient(loss, args)]

    return both


def attention(rng, dtype=np.float32, heads=3, special=False, batch=2, length=5):
    shape = batch, length, heads, 4
    return [numbers(rng, *shape, dtype=dtype, special=special) for _ in range(3)]


PLACES = np.tri(5, dtype=bool)
KEYS = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], bool)[:, None, None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"mask": KEYS},
        {"mask": KEYS & PLACES},
        {"mask": np.broadcast_to(PLACES, (2, 3, 5, 5))},
        {"attn_logits_soft_cap": 2.0},
        {"bias": np.linspace(-1, 1, 75, dtype=np.float32).reshape(1, 3, 5, 5)},
    ],
    ids=["plain", "causal", "keys", "keys and causal", "whole mask", "cap", "bias"],
)
def test_attention_and_its_gradients(options, dtype):
    rng = np.random.default_rng(0)

    def run(q, k, v):
        return dot_product_attention(q, k, v, **options)

    loops = check(gradients(run), *attention(rng, dtype), close=1e-5)
    assert all([loop.count == 6 for loop in loops])
    for loop in loops:  # scores belong to threads
        assert all([out.size < 2 * 3 * 5 * 5 for out in loop.outputs])


def test_special_values_in_attention():
    rng = np.random.default_rng(1)
    given = attention(rng, special=True)
    check(gradients(dot_product_attention), *given, close=1e-5)


def test_second_derivatives_of_attention():
    rng = np.random.default_rng(2)
    q, k, v = attention(rng, np.float64)

    def run(q):
        return dot_product_attention(q, tw.constant(k), tw.constant(v))

    def second(q):
        with tw.GradientTape() as outer:
            outer.watch(q)
            with tw.GradientTape() as tape:
                tape.watch(q)
                loss = tw.reduce_sum(run(q) ** 2)
            gradient = tape.gradient(loss, q)
            norm = tw.reduce_sum(gradient**2)
        return [gradient, outer.gradient(norm, q)]

    check(second, q, close=1e-10)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_layers_of_attention(dropout):
    rng = np.random.default_rng(3)
    layer = tw.layers.MultiHeadAttention(
        num_heads=2, key_dim=4, dropout=dropout, seed=7
    )
    x = numbers(rng, 3, 8, 8)
    layer(x, x)
    weights = layer.trainable_variables

    def run(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(layer(x, x, training=True, use_causal_mask=True) ** 2)
        return [loss, *tape.gradient(loss, weights)]

    def before():
        if dropout:
            layer._dropout_layer.seed_generator.state.assign([3, 0])

    loops = check(run, x, close=1e-5, before=before)
    drawn = [type(step) is DrawKernel for loop in loops for step in loop.steps]
    assert any(drawn) == bool(dropout)


@pytest.mark.parametrize("shape", [(6, 8), (4, 3, 5), (8,), (7, 16), (5, 3)], ids=str)
def test_dropout_draws_as_it_multiplies(shape):
    layer = tw.layers.Dropout(0.4, seed=3)

    def run(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
            loss = y * y
        return [y, tape.gradient(loss, x)]

    def before():
        layer.seed_generator.state.assign([5, 1])

    x = numbers(np.random.default_rng(10), *shape)
    layer(x)
    fits = any([math.prod(shape) % (8 * n) == 0 for n in range(2, shape[0] + 1)
                if shape[0] % n == 0])  # fmt: skip
    with use_limits(slice_entries=8):
        loops = check(run, x, least=fits, close=0, before=before)
    assert all([loop.locals for loop in loops])


@pytest.mark.parametrize("width", [3, 4, 8])
def test_dropout_behind_a_stack_of_products_draws_whole_blocks(width):
    layer = tw.layers.Dropout(0.4, seed=3)
    rng = np.random.default_rng(14)
    arrays = numbers(rng, 6, 5, 4), numbers(rng, 6, 4, width), numbers(rng, 6, width, 2)
    layer(arrays[0])

    def run(a, b, c):
        return [tw.matmul(layer(tw.matmul(a, b), training=True), c)]

    def before():
        layer.seed_generator.state.assign([5, 1])

    loops = check(run, *arrays, least=0, before=before)
    drawn = [type(step) is DrawKernel for loop in loops for step in loop.steps]
    assert any(drawn) == (5 * width % 8 == 0)


POOLS = {"max": tw.nn.max_pool2d, "mean": tw.nn.avg_pool2d}


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize(
    "size, stride, padding", [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME")]
)
@pytest.mark.parametrize("special", [False, True])
def test_pooling_and_its_derivatives(kind, size, stride, padding, special):
    x = numbers(np.random.default_rng(11), 6, 7, 9, 3, special=special)

    def run(x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = POOLS[kind](x, size, stride, padding)
                loss = y * y * y
            gradient = tape.gradient(loss, x)
            square = gradient * gradient
        return [y, gradient, outer.gradient(square, x)]

    with use_limits(slice_entries=8):
        loops = check(run, x)
    steps = [step for loop in loops for step in loop.steps]
    nests = [step for step in steps if type(step) is LoopNest]
    assert any([type(each) is BoundedRead for nest in nests for each in nest.steps])


VIEWS = {
    "first": lambda x: x[:3],
    "last": lambda x: x[3:],
    "every other": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "cropped": lambda x: x[:, 1:7],
    "turned": lambda x: tw.transpose(x, [1, 0, 2, 3]),
    "shorter": lambda x: tw.reshape(x, [12, 4, 8, 4]),
    "longer": lambda x: tw.reshape(x, [4, 12, 8, 4]),
}


@pytest.mark.parametrize("view", VIEWS)
def test_windows_of_views(view):
    rng, place = np.random.default_rng(13), [*VIEWS].index(view)
    kind, stride = [*POOLS][place % len(POOLS)], 1 + place // 2 % 2

    def run(x, kernel):
        y = tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "SAME"))
        z = POOLS[kind](VIEWS[view](y), 3, stride, "SAME")
        return tw.tanh(z)

    arrays = numbers(rng, 6, 8, 8, 4), numbers(rng, 3, 3, 4, 4)
    with use_limits(slice_entries=1):
        check(gradients(run), *arrays, least=0, close=1e-4)


MOVES = {
    "joined images": lambda y: tw.concat([y, tw.tanh(y)], 0),
    "joined channels": lambda y: tw.concat([y, tw.tanh(y)], -1),
    "turned images": lambda y: tw.roll(y, 1, 0),
    "turned rows": lambda y: tw.roll(y, 1, 1),
    "padded images": lambda y: tw.pad(y, [[2, 4], [0, 0], [0, 0], [0, 0]]),
    "padded rows": lambda y: tw.pad(y, [[0, 0], [2, 1], [0, 0], [0, 0]]),
    "later images": lambda y: tw.pad(y[1:], [[0, 1], [0, 0], [0, 0], [0, 0]]),
}


@pytest.mark.parametrize("short", [1, 64])
@pytest.mark.parametrize("move", MOVES)
def test_moves_of_convolutions(move, short, monkeypatch):
    monkeypatch.setattr(group, "SHORT", short)
    rng = np.random.default_rng(17)

    def run(x, kernel):
        y = tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "SAME"))
        return tw.tanh(MOVES[move](y) * 2.0)

    arrays = numbers(rng, 6, 8, 8, 4), numbers(rng, 3, 3, 4, 4)
    with use_limits(slice_entries=1):
        check(gradients(run), *arrays, least=0, close=1e-4)


# ------------------------------------------------------------------ random programs

MANY = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
MAPS = {
    "tanh": tw.tanh,
    "relu": tw.nn.relu,
    "softmax": tw.nn.softmax,
    "center": lambda x: x - tw.reduce_mean(x, -1, keepdims=True),
    "along": lambda x: x / (1 + tw.reduce_max(tw.abs(x), -2, keepdims=True)),
    "ramp": lambda x: x * tw.reshape(tw.range(x.shape[-1], dtype=x.dtype), [1, -1]),
    "total": lambda x: x + tw.reduce_sum(x),
    "turned": lambda x: tw.transpose(tw.transpose(x * 2, [1, 0, 2, 3]), [1, 0, 2, 3]),
    "stack": lambda x: x + tw.reduce_sum(x, 0, keepdims=True),
}


@MANY
@given(
    st.tuples(*[st.integers(1, 4)] * 2),
    st.tuples(*[st.integers(1, 6)] * 3),
    st.lists(st.sampled_from(sorted(MAPS)), max_size=4),
    st.lists(st.sampled_from(sorted(MAPS)), max_size=2),
    st.booleans(),
    st.integers(0, 999),
)
def test_random_chains_of_stacks(batch, sizes, maps, more, special, seed):
    rng, (m, k, n) = np.random.default_rng(seed), sizes
    shapes = (*batch, m, k), (*batch, k, n), (*batch, n, k)
    a, b, c = [numbers(rng, *shape, dtype=np.float64) for shape in shapes]
    a = numbers(rng, *batch, m, k, special=True, dtype=np.float64) if special else a

    def run(a, b, c):
        x = tw.matmul(a, b)
        for name in maps:
            x = MAPS[name](x)
        x = tw.matmul(x, c)
        for name in more:
            x = MAPS[name](x)
        return x

    check(gradients(run), a, b, c, least=0, close=1e-8)


IMAGES = {
    "relu": tw.nn.relu,
    "tanh": tw.tanh,
    "shift": lambda x: x + tw.range(x.shape[-1], dtype=x.dtype),
    "twice": lambda x: x + x,
    "mean": lambda x: x - tw.reduce_mean(x, [1, 2], keepdims=True),
    "moments": lambda x: x - tw.reduce_mean(x, [0, 1, 2], keepdims=True),
    "means": lambda x: tw.nn.avg_pool2d(x, 2, 1, "SAME"),
    "maxima": lambda x: tw.nn.max_pool2d(x, 3, 2, "SAME"),
    "halves": lambda x: tw.nn.max_pool2d(x, 2, 2, "SAME"),
}


@MANY
@given(
    st.integers(1, 5),
    st.tuples(*[st.integers(2, 6)] * 2),
    st.tuples(*[st.sampled_from([1, 2, 3, 5, 8])] * 3),
    st.lists(st.sampled_from(sorted(IMAGES)), max_size=3),
    st.sampled_from(["SAME", "VALID"]),
    st.integers(1, 2),
    st.integers(0, 999),
)
def test_random_chains_of_convolutions(
    batch, size, channels, maps, padding, stride, seed
):
    rng, (c, d, e) = np.random.default_rng(seed), channels
    shapes = (batch, *size, c), (2, 2, c, d), (3, 3, d, e)
    x, first, second = [numbers(rng, *shape, dtype=np.float64) for shape in shapes]

    def run(x, first, second):
        y = tw.nn.conv2d(x, first, stride, padding)
        for name in maps:
            y = IMAGES[name](y)
        y = tw.nn.conv2d(y, second, 1, "SAME")
        return tw.nn.relu(y + 0.5)

    check(gradients(run), x, first, second, least=0, close=1e-8)


@pytest.mark.parametrize("shape, bands", [((16, 6, 6, 8), 1), ((2, 96, 96, 16), 3)])
def test_what_follows_a_convolution_is_in_its_loop(shape, bands):
    rng, depth = np.random.default_rng(5), shape[-1]
    x, kernel = numbers(rng, *shape), numbers(rng, 3, 3, depth, depth)
    bias, rest = numbers(rng, depth), numbers(rng, *shape)

    def run(x, kernel, bias, rest):
        return [tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "SAME") + bias + rest)]

    (loop,) = check(run, x, kernel, bias, rest)
    assert len(loop.steps) == 2 and loop.steps[0].schedule.row_bands == bands
    assert [a.size for a in loop.locals] == [x.size]


def test_totals_are_read_behind_all_slices():
    rng = np.random.default_rng(9)
    shapes = (4, 6, 3), (4, 3, 4), (4, 5, 3), (4, 3, 2)

    def run(a, b, c, d):
        totals = tw.reduce_sum(tw.matmul(a, b), [0, 1])  # as many as there are slices
        return [tw.matmul(c, d) * tw.reshape(totals, [4, 1, 1])]

    check(run, *[numbers(rng, *shape) for shape in shapes], least=0)


def test_code_that_is_written_later_has_memory_for_its_threads():
    rng = np.random.default_rng(12)
    x, kernel = numbers(rng, 16, 6, 6, 8), numbers(rng, 3, 3, 8, 8)
    x, kernel = tw.constant(x), tw.constant(kernel)
    config.set_threads(1)
    traced = tw.function(lambda x: tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "SAME")))
    wanted = traced(x).numpy()
    config.set_threads(4)
    traced.explain(x)  # writes it anew
    (loop,) = slice_loops(traced, x)
    *_, memory, _ = loop.operands
    (convolution, _) = loop.steps
    assert loop.threads == memory.shape[0] == convolution.threads == 1
    np.testing.assert_array_equal(traced(x).numpy(), wanted)


# ------------------------------------------------------------------ made again


def test_scores_are_not_kept_for_the_backward_pass():
    rng = np.random.default_rng(6)
    given = [tw.constant(x) for x in attention(rng, batch=4, length=64)]
    sizes = []
    for on in (False, True):
        with sliced(on):
            traced = tw.function(gradients(dot_product_attention))
            traced(*given)
            program = traced.get_concrete_function(*given).executable.program
            made = [out for each in program.instructions for out in each.outputs]
            sizes.append(max([out.size for out in made]))
    assert sizes[0] == 4 * 3 * 64 * 64
    assert sizes[1] == 4 * 3 * 64 * 4


def test_nothing_is_made_again_behind_a_change_of_a_variable():
    rng = np.random.default_rng(7)
    start, change = numbers(rng, 4, 6, 3), tw.constant(numbers(rng, 4, 6, 3))
    key, value = [tw.constant(numbers(rng, 4, 5, 3)) for _ in range(2)]
    optimizer = tw.optimizers.SGD(0.1)

    def step(variable):
        with tw.GradientTape() as tape:
            tape.watch(value)
            weights = tw.nn.softmax(tw.matmul(variable, key, transpose_b=True))
            loss = tw.reduce_sum(tw.matmul(weights, value) ** 2)
        optimizer.apply_gradients([(change, variable)])
        return loss, tape.gradient(loss, value)

    found = []
    for on in (False, True):
        variable = tw.Variable(start)
        optimizer = tw.optimizers.SGD(0.1)
        with sliced(on):
            traced = tw.function(step)
            found.append([x.numpy() for _ in range(3) for x in traced(variable)])
    for x, y in zip(*found):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------ the verifier


def share_place(loop):
    loop.locals = dict.fromkeys(loop.locals, 0)


def lose(loop):
    loop.steps = loop.steps[1:]


def recount(loop):
    loop.count //= 2


def cut_elsewhere(loop):
    nest = next(step for step in loop.steps if type(step) is LoopNest)
    nest.grid = tuple([(axis, width + 1) for axis, width in nest.grid])


@pytest.mark.parametrize(
    "damage, message",
    [
        (share_place, "holds another slice"),
        (lose, "read before it is computed"),
        (recount, "other slices"),
        (cut_elsewhere, "do not match the strips of"),
    ],
)
def test_the_verifier_sees_damage(damage, message):
    rng = np.random.default_rng(8)
    given = [tw.constant(x) for x in attention(rng)]
    traced = tw.function(gradients(dot_product_attention))
    program = traced.get_concrete_function(*given).executable.program
    (loop,) = [each for each in program.instructions if type(each) is SliceLoop]
    assert any([type(step) is Contract for step in loop.steps])
    damage(loop)
    with pytest.raises(tw.errors.VerificationError, match=message):
        verify_program(program, "damage")
