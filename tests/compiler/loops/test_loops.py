"""Programs as loop nests: what they compute, what they fuse, and what is refused."""

import numpy as np
import pytest
from nest_interpreter import nests, program_of, run

import tapewright as tw
from tapewright.compiler.loops import loop_scheduling
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.loops.statements import (
    Accumulate,
    Axis,
    Compute,
    Load,
    Local,
    Loop,
    Reset,
    Scalar,
    Span,
    Store,
)
from tapewright.compiler.program.limits import DEFAULTS, use_limits
from tapewright.compiler.program.verifier import verify_program


def numbers(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def softmax(x):
    return tw.nn.softmax(x)


def layer_norm(x):
    mean, variance = tw.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tw.math.rsqrt(variance + 1e-3)


def batch_norm(x):
    mean, variance = tw.nn.moments(x, [0])
    return (x - mean) * tw.math.rsqrt(variance + 1e-3), mean, variance


def group_norm(x):
    """Of the last axis, in groups of up to 3, and its gradients."""
    channels = x.shape[-1]
    gamma = tw.range(1, channels + 1, dtype=x.dtype)
    beta = tw.sqrt(gamma)
    with tw.GradientTape() as tape:
        tape.watch([x, gamma, beta])
        groups = -(-channels // 3) if channels % 3 == 0 else channels
        y = tw.nn.group_normalization(x, groups, gamma, beta)
    g = tw.reshape(tw.sin(tw.range(tw.size(x), dtype=x.dtype)), x.shape)
    return y, *tape.gradient(y, [x, gamma, beta], output_gradients=g)


def maxima_of_groups(x):
    """Reductions of groups that are not sums, and sums of channels beside them."""
    split = tw.reshape(x, (x.shape[0], -1, x.shape[-1] // 3, 3))
    y = split - tw.reduce_max(split, (1, 3), keepdims=True)
    y /= tw.reduce_prod(split, (1, 3), keepdims=True)
    return y, tw.reduce_sum(y), tw.reduce_sum(y, (0, 1))


def maxima_and_sums_of_examples(x):
    split = tw.reshape(x, (x.shape[0], -1, x.shape[-1] // 3, 3))
    y = tw.exp(split - tw.reduce_max(split, (1, 3), keepdims=True))
    return y, tw.reduce_sum(y, (1, 2, 3))


def masked_mean(x):
    kept = tw.cast(x > 0, x.dtype)
    return tw.reduce_sum(x * kept) / tw.reduce_sum(kept)


def gates(x):
    a, b, c = tw.split(x, 3, axis=-1)
    return tw.sigmoid(a) * tw.tanh(b) + tw.nn.relu(c)


def both_sums(x):
    y = tw.exp(x)
    return tw.reduce_sum(y, 0), tw.reduce_sum(y, 1), y


def transposed(x):
    return tw.transpose(x) * 2.0 + tw.reduce_max(tw.transpose(x), 0)


def clipped(x):
    return tw.clip_by_norm(x, 1.0)


def gradient_of_loss(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.log_softmax(layer_norm(x))
        loss = tw.reduce_mean(y * y)
    return loss, tape.gradient(loss, x)


FUNCTIONS = [
    softmax, layer_norm, batch_norm, group_norm, masked_mean, gates, both_sums, transposed,
    clipped, gradient_of_loss,
]  # fmt: skip


@pytest.mark.parametrize(
    "shape", [(5, 6), (1, 9), (9, 3), (130, 3), (2, 3, 6), (70, 66)]
)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_nests_compute_what_eager_mode_computes(function, shape):
    if function is transposed and len(shape) > 2:
        pytest.skip("of matrices")
    x = numbers(*shape)
    wanted = function(tw.constant(x))
    wanted = wanted if isinstance(wanted, (tuple, list)) else [wanted]
    program = program_of(function, x)
    assert nests(program)
    for backwards in (False, True):
        for found, right in zip(run(program, [x], backwards), wanted, strict=True):
            np.testing.assert_allclose(found, right.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_small_blocks_and_strips_change_nothing(function):
    x = numbers(13, 15)
    wanted = function(tw.constant(x))
    wanted = wanted if isinstance(wanted, (tuple, list)) else [wanted]
    with use_limits(block_work=64, strip=4, strips=(8,), local_entries=64, small_sum=8):
        program = program_of(function, x)
    assert max([nest.blocks.extent for nest in nests(program)]) > 1
    for found, right in zip(run(program, [x], True), wanted, strict=True):
        np.testing.assert_allclose(found, right.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "function", [group_norm, maxima_of_groups, maxima_and_sums_of_examples]
)
@pytest.mark.parametrize(
    "shape", [(3, 5, 12), (1, 7, 6), (6, 1, 6), (2, 4, 3, 3), (2, 2, 201), (2, 2, 1026)]
)
def test_groups_of_neighbours(function, shape):
    x = numbers(*shape)
    wanted = [each.numpy() for each in function(tw.constant(x))]
    program = program_of(function, x)
    for backwards in (False, True):
        for found, right in zip(run(program, [x], backwards), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


def loops_in(body):
    for each in body:
        if type(each) is Loop:
            yield each
            yield from loops_in(each.body)


@pytest.mark.parametrize("function, passes", [(group_norm, 4), (maxima_of_groups, 2)])
def test_vectors_go_along_short_groups_side_by_side(function, passes):
    program = program_of(function, numbers(3, 50, 12))
    nest = max(nests(program), key=lambda nest: len(nest.steps))
    bodies = [loop.body for loop in loops_in(nest.body) if loop.axis.extent == 50]
    assert len(bodies) == passes
    assert {loop.axis.extent for body in bodies for loop in loops_in(body)} == {12}


def batch_norm_gradient(x):
    """Of the last axis, with what the gradients of scale and offset take."""
    axes = range(len(x.shape) - 1)
    gamma = tw.range(1, x.shape[-1] + 1, dtype=x.dtype)
    beta = tw.sqrt(gamma)
    with tw.GradientTape() as tape:
        tape.watch([x, gamma, beta])
        y, mean, variance = tw.nn.fused_batch_norm(x, gamma, beta, axes)
    g = tw.reshape(tw.sin(tw.range(tw.size(x), dtype=x.dtype)), x.shape)
    gradients = tape.gradient(y, [x, gamma, beta], output_gradients=g)
    return y, mean, variance, *gradients


def column_extrema(x):
    """Reductions that are not sums, a dear function of rows, and one of columns."""
    y = tw.exp(x - tw.reduce_max(x, 0)) / (1.0 + tw.square(tw.reduce_min(x, 0)))
    return y / tw.reduce_sum(y, 0), y > tw.reduce_mean(y, 0)


STAGED = [
    batch_norm,
    batch_norm_gradient,
    column_extrema,
    softmax,
    group_norm,
    both_sums,
]


@pytest.mark.parametrize(
    "shape", [(5, 6), (9, 1), (130, 3), (1, 9), (7, 5, 6), (3, 70, 66)]
)
@pytest.mark.parametrize("function", STAGED, ids=lambda f: f.__name__)
def test_passes_as_nests_of_their_own(function, shape):
    x = numbers(*shape)
    wanted = [each.numpy() for each in tw.nest.flatten(function(tw.constant(x)))]
    with use_limits(staged_rows=2, block_work=64):
        program = program_of(function, x)
    for backwards in (False, True):
        for found, right in zip(run(program, [x], backwards), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


def test_passes_over_many_rows_of_few_columns_have_blocks_of_rows():
    rows = DEFAULTS.staged_rows
    x = numbers(rows, 3)
    passes = [
        nest for nest in nests(program_of(batch_norm, x)) if nest.blocks.extent > 1
    ]
    assert len(passes) == 3  # for the mean, the variance, the outputs
    for nest in passes:
        axes = {loop.axis.extent for loop in loops_in(nest.body)}
        assert axes == {rows, 3}
    assert len(nests(program_of(batch_norm, x[1:]))) == 1


@pytest.mark.parametrize("function", [softmax, layer_norm, batch_norm, gates, clipped])
def test_chains_become_one_nest(function):
    program = program_of(function, numbers(12, 9))
    assert [type(i) for i in program.instructions if not i.is_free] == [LoopNest]


def test_a_sum_over_all_entries_of_a_large_array_is_read_by_another_nest():
    program = program_of(clipped, numbers(300, 300))
    first, second = nests(program)
    assert first.blocks.extent > 1 and first.finish and second.blocks.extent > 1


def many_sums(x):
    return [tw.reduce_sum(tw.exp(x * (1.0 + n)), 0) for n in range(8)]


def many_statistics(x):
    kept = [tw.reduce_mean(x * (1.0 + n), 0) for n in range(40)]
    return tw.add_n([tw.exp(x - mean) for mean in kept])


@pytest.mark.parametrize("function", [many_sums, many_statistics])
def test_local_arrays_fit_the_stack(function):
    x = numbers(3, 2000)
    program = program_of(function, x)
    for nest in nests(program):
        used = sum([local.size * local.dtype.itemsize for local in nest.locals])
        assert used <= loop_scheduling.STACK
    wanted = function(tw.constant(x))
    wanted = wanted if isinstance(wanted, list) else [wanted]
    for found, right in zip(run(program, [x]), wanted, strict=True):
        np.testing.assert_allclose(found, right.numpy(), rtol=1e-12, atol=1e-14)


def masked_rows(x, b, w, g):
    """Sums per row of terms that depend on row and column, read along a third axis."""
    with tw.GradientTape() as tape:
        tape.watch(b)
        y = tw.nn.relu(tw.transpose(x) + b)
        y = tw.matmul(tw.reduce_mean(y, (1, 2)), w)
    return tape.gradient(y, b, output_gradients=g)


@pytest.mark.parametrize("rows, columns", [(4, 8), (4, 300), (70, 8), (70, 90)])
def test_blocks_are_not_cut_from_the_axis_of_sums(rows, columns):
    arrays = [
        numbers(rows, 3, 5, columns),
        numbers(rows),
        numbers(rows, 3),
        numbers(columns, 3),
    ]
    program = program_of(masked_rows, *arrays)
    expected = masked_rows(*map(tw.constant, arrays))
    for backwards in (False, True):
        (found,) = run(program, arrays, backwards)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


def sums_of_columns(x, g):
    return tw.reduce_sum(x * g, 0), tw.reduce_sum(g, 0), tw.reduce_sum(x, 0)


def sums_of_one_row(x, g):
    return tw.reduce_sum(x * g[:1], 0), tw.reduce_sum(g[:1], 0)


def sums_and_rows(x, g):
    return tw.reduce_sum(x * g, 0), tw.reduce_sum(g, 1), tw.nn.softmax(x) - g


def scaled_and_normalized(x, g):
    normal = layer_norm(x * g)
    return normal, tw.reduce_sum(g, 1), tw.reduce_sum(g, 0), tw.reduce_sum(x * normal)


@pytest.mark.parametrize(
    "function, count",
    [
        (sums_of_columns, 1),
        (sums_of_one_row, 2),
        (sums_and_rows, 3),
        (scaled_and_normalized, 2),
    ],
)
@pytest.mark.parametrize("shape", [(40, 6), (3, 70), (1, 5)])
def test_sums_of_what_a_nest_reads_are_made_beside_it(function, count, shape):
    arrays = [numbers(*shape, seed=i) for i in range(2)]
    program = program_of(function, *arrays)
    if 1 not in shape:
        assert len(nests(program)) == count
    expected = [each.numpy() for each in function(*map(tw.constant, arrays))]
    for backwards in (False, True):
        for found, right in zip(run(program, arrays, backwards), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-12)


def sums_along_equal_axes(x):
    return tw.reduce_sum(tw.sin(x) * tw.transpose(x, (0, 3, 2, 1)), (1, 3))


def sums_of_a_square(x):
    y = tw.sin(x) * tw.transpose(x)
    return tw.reduce_sum(y), tw.reduce_mean(y, 0)


@pytest.mark.parametrize(
    "function, shape",
    [(sums_along_equal_axes, (3, 8, 5, 8)), (sums_of_a_square, (64, 64))],
)
def test_the_order_of_equal_axes_is_that_of_every_process(function, shape, monkeypatch):
    x, found = numbers(*shape), []
    for sign in (1, -1):  # sets of axes, hashed by their addresses, have any order
        axes = {}

        def place(axis, axes=axes, sign=sign):
            return sign * axes.setdefault(id(axis), (len(axes), axis))[0] % 1024

        monkeypatch.setattr(Axis, "__hash__", place)
        bodies = [each.body for each in nests(program_of(function, x))]
        monkeypatch.undo()
        found.append(str(bodies))
    assert found[0] == found[1]


def test_what_only_a_nest_reads_is_not_stored():
    (nest,) = nests(program_of(layer_norm, numbers(12, 9)))
    assert len(nest.outputs) == 1


def statement(nest, kind):
    """A list of statements, and the place of the first one of a kind in it."""

    def find(body):
        for i, each in enumerate(body):
            kept = type(each) is Store and type(each.access.array) is Local
            if type(each) is kind and not kept:
                return body, i
            if type(each) is Loop and (found := find(each.body)):
                return found
        return None

    return find(nest.body)


def drop(kind):
    def damage(nest):
        body, i = statement(nest, kind)
        del body[i]

    return damage


def shift(kind):
    def damage(nest):
        body, i = statement(nest, kind)
        access = body[i].access
        body[i] = body[i]._replace(access=access._replace(offset=access.offset + 1))

    return damage


def stretch(nest):
    body, i = statement(nest, Loop)
    body[i] = body[i]._replace(width=body[i].width - 1)


def twice(nest):
    body, i = statement(nest, Store)
    body.append(body[i])


def read_first(nest):
    body, i = statement(nest, Store)
    value, access = body[i].value, body[i].access
    body.insert(i, Load(Scalar("early", value.dtype), access))


def nest_in_itself(nest):
    body, i = statement(nest, Loop)
    body[i] = body[i]._replace(body=[body[i]])


def add_a_block(nest):
    nest.blocks = Axis("block", nest.blocks.extent + 1)


def run_over_all(nest):
    body, i = statement(nest, Loop)
    body[i] = body[i]._replace(span=Span.WHOLE)


@pytest.mark.parametrize(
    "damage, message",
    [
        (drop(Store), "never written"),
        (drop(Reset), "not begun"),
        (drop(Load), "used before it is computed"),
        (drop(Compute), "used before it is computed"),
        (drop(Accumulate), "reads an entry that was not stored"),
        (shift(Load), "accesses entries 1"),
        (shift(Store), "accesses entries 1"),
        (stretch, "strips of 11.*12.*12"),
        (twice, "written twice"),
        (read_first, "reads an output before it is written"),
        (nest_in_itself, "is nested in itself"),
        (add_a_block, "2 blocks do not match the strips"),
    ],
)
def test_the_verifier_sees_damage(damage, message):
    program = program_of(layer_norm, numbers(12, 9))
    (nest,) = nests(program)
    damage(nest)
    with pytest.raises(tw.errors.VerificationError, match=message):
        verify_program(program, "damage")


@pytest.mark.parametrize(
    "function, message",
    [
        (layer_norm, "is repeated in every block"),
        (batch_norm, "reads entries of .* that were not stored"),
    ],
)
def test_the_verifier_sees_a_loop_over_more_than_its_strip(function, message):
    with use_limits(block_work=32):
        program = program_of(function, numbers(12, 9))
    (nest,) = nests(program)
    run_over_all(nest)
    with pytest.raises(tw.errors.VerificationError, match=message):
        verify_program(program, "damage")


@pytest.mark.parametrize("function, count", [(layer_norm, 0), (transposed, 1)])
def test_an_output_may_overwrite_only_entries_that_are_read_before(function, count):
    (nest,) = nests(program_of(function, numbers(12, 12)))
    found = []
    nest.verify(lambda buffer: (0, 0, 12 * 12 * 8), found.append)
    assert len(found) == count and all(["still in use" in each for each in found])
