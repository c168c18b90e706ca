"""Bounds on indices: what a nest computes, before and after its loops are split."""

import numpy as np
import pytest
from nest_interpreter import nests, program_of, run

import tapewright as tw
from tapewright.compiler.loops import group, index_splitting
from tapewright.compiler.loops.fusion import form_loops
from tapewright.compiler.loops.index_splitting import (
    MOST,
    ranges_between,
    split_indices,
)
from tapewright.compiler.loops.stages import nests_of
from tapewright.compiler.loops.statements import Axis, Load, Select, statements_in
from tapewright.compiler.loops.threads.thread_scheduling import thread_nests
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.instructions.array_instructions import (
    Index,
    read_bounded,
)
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.passes.pass_manager import run_passes
from tapewright.compiler.targets.target import SIMPLIFICATION

pytestmark = pytest.mark.usefixtures("few_passes")


def gradient(pool):
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            loss = tw.reduce_sum(pool(x) ** 2)
        return tape.gradient(loss, x)

    return f


def padded(x):
    return tw.nn.relu(tw.pad(x, [[1, 2], [0, 1], [2, 0]], constant_values=3.0)) + 1.0


def sums_of_padded(x):
    y = tw.pad(x, [[0, 0], [1, 1], [0, 3]], constant_values=2.0)
    return tw.reduce_sum(y, 1), tw.reduce_max(y, [0, 2])


def normalized_padded(x):
    return tw.nn.softmax(tw.pad(x, [[0, 0], [0, 0], [1, 2]]))


def joined(x):
    return tw.exp(tw.concat([x, x[:, :1], 2.0 * x], 1)), tw.concat([x, x], 2)


def placed(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = tw.reduce_sum(x[:, 1::3, ::-2] ** 2)
    return tape.gradient(loss, x)


def rolled(x):
    return tw.roll(x, [1, -2], [0, 2]) * x


def maps_in_front(x):
    row = x[:1, :1]
    y = tw.concat([tw.nn.relu(x + row), tw.tanh(x[:, :2] * row)], 1)
    y = tw.pad(tw.abs(y) * 2.0 - 1.0, [[0, 0], [1, 2], [2, 0]], constant_values=7.0)
    return tw.nn.avg_pool1d(tw.exp(y) - row[..., :1], 2, 2, "VALID")


def pooled_padded(x):
    return tw.nn.max_pool1d(tw.pad(x, [[0, 0], [2, 1], [0, 0]]), 3, 2, "SAME")


def gradient_of_normalized(pool):
    def normalized(x):
        centered = x - tw.reduce_mean(x, -1, keepdims=True)
        return pool(
            centered
            * tw.math.rsqrt(tw.reduce_mean(centered**2, -1, keepdims=True) + 0.1)
        )

    return gradient(normalized)


def centered_gradient(x):
    g = gradient(lambda x: tw.nn.avg_pool1d(x, 2, 2, "SAME"))(x)
    return g - tw.reduce_mean(g, -1, keepdims=True)


def padded_joined(x):
    return tw.pad(tw.concat([x, x[:, ::-1]], 1), [[0, 0], [1, 1], [0, 2]])


FUNCTIONS = [
    padded, sums_of_padded, normalized_padded, joined, placed, rolled, maps_in_front,
    pooled_padded, padded_joined, centered_gradient,
    gradient_of_normalized(lambda x: tw.nn.max_pool1d(x, 2, 2, "SAME")),
    gradient_of_normalized(lambda x: tw.nn.max_pool1d(x, 3, 2, "SAME")),
    gradient_of_normalized(lambda x: tw.nn.avg_pool1d(x, 2, 2, "SAME")),
    gradient_of_normalized(lambda x: x[:, ::2]),
    gradient_of_normalized(lambda x: tw.nn.avg_pool2d(x[None], [2, 1], 2, "SAME")),
    lambda x: tw.nn.max_pool1d(x, 3, 2, "SAME"),
    lambda x: tw.nn.avg_pool1d(x, 2, 3, "SAME"),
    gradient(lambda x: tw.nn.max_pool1d(x, 3, 2, "SAME")),
    gradient(lambda x: tw.nn.max_pool1d(x, 2, 2, "VALID")),
    gradient(lambda x: tw.nn.max_pool1d(x, 5, 3, "SAME")),
    gradient(lambda x: tw.nn.avg_pool1d(x, 3, 2, "SAME")),
    gradient(lambda x: tw.nn.avg_pool1d(x, 2, 3, "SAME")),
]  # fmt: skip


@pytest.mark.parametrize("short", [1, 64])
@pytest.mark.parametrize("most", [0, 40, MOST])
@pytest.mark.parametrize("shape", [(2, 7, 5), (5, 2, 4), (3, 12, 1)], ids=str)
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_split_loops_compute_the_same(number, shape, most, short, monkeypatch):
    monkeypatch.setattr(index_splitting, "MOST", most)
    monkeypatch.setattr(group, "SHORT", short)
    x, f = np.random.default_rng(0).integers(-4, 5, shape) * 0.5, FUNCTIONS[number]
    with use_limits(block_work=16, strip=2, strips=(4,)):
        program = program_of(f, x)
        for rewrite in (None, split_indices):
            found = run(program, [x], rewrite=rewrite)
            for a, b in zip(found, tw.nest.flatten(f(tw.constant(x))), strict=True):
                np.testing.assert_allclose(a, b, 1e-12)
    left = [s for nest in nests(program) for s in _bounded(split_indices(nest.body))]
    always_split = padded, joined, placed, rolled, pooled_padded, padded_joined
    assert most < MOST or not left or f not in always_split


POOLS_OF_ROWS = {
    "max 2": lambda x: tw.nn.max_pool1d(x, 2, 2, "SAME"),
    "max 3": lambda x: tw.nn.max_pool1d(x, 3, 2, "SAME"),
    "mean 2": lambda x: tw.nn.avg_pool1d(x, 2, 2, "SAME"),
    "slice": lambda x: x[:, ::2],
}


@pytest.mark.parametrize("name", POOLS_OF_ROWS)
def test_unrolled_iterations_do_not_share_local_arrays(name):
    x, f = np.random.default_rng(0).normal(size=(2, 6, 64)), POOLS_OF_ROWS[name]
    f = gradient_of_normalized(f)
    program = program_of(f, x)
    assert any([len(nest.locals) for nest in nests(program)])
    for rewrite in (None, split_indices):
        (found,) = run(program, [x], rewrite=rewrite)
        np.testing.assert_allclose(found, f(tw.constant(x)), 1e-9, 1e-12)


@pytest.mark.parametrize("count", [10, 60, 150])
def test_joins_are_split_into_their_parts(count, monkeypatch):
    monkeypatch.setattr(group, "SHORT", 1)
    arrays = [np.full((2, 1 + i % 3), i) for i in range(count)]

    def f(*arrays):
        return tw.concat(
            [x if i % 2 else tw.negative(x) for i, x in enumerate(arrays)], 1
        )

    for nest in nests(program_of(f, *arrays)):
        assert not [*_bounded(split_indices(nest.body))]


def _bounded(body):
    """The statements with bounds in a body."""
    for _, each in statements_in(body):
        if type(each) is Select or type(each) is Load and each.access.bounds:
            yield each


@pytest.mark.parametrize("seed", range(50))
def test_parts_of_a_loop_are_all_of_it_and_within_bounds_or_not(seed):
    rng = np.random.default_rng(seed)
    extent, bounds = int(rng.integers(1, 20)), []
    for _ in range(rng.integers(1, 4)):
        start, step = int(rng.integers(extent)), int(rng.integers(1, 4))
        bounds.append(range(start, int(rng.integers(start, extent)) + 1, step))
    parts, found = [*ranges_between(range(extent), bounds)], []
    for part in parts:
        own = [range(p, part[-1] + part.step, part.step) for p in part[:1]]
        if part.step > 1:
            own = [
                range(part[0] + k, part[-1] + k + 1, part.step)
                for k in range(part.step)
            ]
        for phase in own:
            found += phase
            for bound in bounds:
                assert len({index in bound for index in phase}) == 1, (phase, bound)
    assert sorted(found) == [*range(extent)]


@pytest.mark.parametrize("seed", range(60))
def test_bounded_reads_are_those_of_their_definition(seed):
    rng = np.random.default_rng(seed)
    n, extent, offset = int(rng.integers(1, 8)), int(rng.integers(1, 12)), 0
    offset = int(rng.integers(-9, 10))
    factors = (int(rng.integers(1, 4)), offset, 1), (1, offset, int(rng.integers(1, 4)))
    x = np.arange(10.0, 10 + n)
    for index in map(Index._make, factors):
        wanted = np.full(extent, -1.0)
        for i in range(extent):
            at, rest = divmod(index.factor * i + index.offset, index.divisor)
            if not rest and 0 <= at < n:
                wanted[i] = x[at]
        found = read_bounded(x, -1.0, [index], (extent,))
        np.testing.assert_array_equal(found, wanted)


def test_maps_in_front_of_reads_are_not_stored(monkeypatch):
    monkeypatch.setattr(group, "SHORT", 1)
    x = np.ones((3, 4, 5))
    for f in (maps_in_front, pooled_padded):
        (nest,) = nests(program_of(f, x))
        assert [each.size for each in nest.operands] == [x.size] * len(nest.operands)


def test_maps_stay_where_more_is_computed_or_read_otherwise(monkeypatch):
    monkeypatch.setattr(group, "SHORT", 1)
    x = np.ones((3, 4, 5))

    def overlapping(x):
        return tw.nn.avg_pool1d(tw.exp(x), 3, 1, "SAME")

    def read_twice(x):
        y = tw.exp(x)
        return tw.pad(y, [[0, 0], [1, 1], [0, 0]]), y

    def read_twice_before(x):
        y = tw.exp(x)
        return tw.pad(y * 2.0, [[0, 0], [1, 1], [0, 0]]), y

    for f in (overlapping, read_twice, read_twice_before):
        found = nests(program_of(f, x))
        assert len(found) == 2
        assert [step.name for nest in found for step in nest.steps].count("exp") == 1


@pytest.mark.parametrize("seed", range(40))
def test_an_index_at_an_index_is_one(seed):
    rng = np.random.default_rng(seed)

    def drawn():
        a, b = int(rng.integers(1, 4)), int(rng.integers(-5, 6))
        return Index(a, b, 1) if rng.random() < 0.5 else Index(1, b, a)

    def at(index, i):
        return (index.factor * i + index.offset) / index.divisor

    outer, inner = drawn(), drawn()
    both = outer.of(inner)
    if both is None:
        assert outer.divisor * inner.divisor > 1 and outer.factor * inner.factor > 1
        return
    for i in range(12):
        assert at(both, i) == pytest.approx(at(outer, at(inner, i)))


def bounded_vector(schedule):
    """The nest of a vector, read from the third index on, on a matrix of its rows."""

    def f(x, y):
        return tw.pad(x, [[2, 0]])[None] * y

    arrays = np.ones(70), np.ones((3, 72))
    program = lower(
        optimize(tw.function(f).get_concrete_function(*arrays).graph), in_loops=True
    )
    run_passes(program, SIMPLIFICATION)
    form_loops(
        program, lambda _: True, schedule=schedule, has_totals=schedule is nests_of
    )
    return program.instructions[-1]


def with_bounds(body, change):
    """Statements with other bounds; ``change`` returns them for an axis and its range."""
    made = []
    for each in body:
        if hasattr(each, "body"):
            each = each._replace(body=with_bounds(each.body, change))
        elif type(each) is Select:
            each = each._replace(bounds=change(*each.bounds[0]))
        elif type(each) is Load and each.access.bounds:
            bounds = change(*each.access.bounds[0])
            each = each._replace(access=each.access._replace(bounds=bounds))
        made.append(each)
    return made


@pytest.mark.parametrize("schedule", [nests_of, thread_nests])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda axis, r: ((axis, r),), None),
        (lambda axis, r: ((axis, range(r.start, r.stop + 1)),), "does not have"),
        (lambda axis, r: ((axis, range(-1, r.stop)),), "does not have"),
        (lambda axis, r: ((axis, range(r.stop)),), "out of bounds of"),
        (lambda axis, r: ((axis, range(0)),), "does not have"),
        (lambda axis, r: ((Axis("other", 72), r),), "needs an index for other"),
        (lambda axis, r: (), "out of bounds of"),
    ],
)
def test_the_verifier_sees_wrong_bounds(schedule, change, message, monkeypatch):
    monkeypatch.setattr(group, "SHORT", 1)
    nest, found = bounded_vector(schedule), []
    nest.body = with_bounds(nest.body, change)
    nest.verify_statements(found.append)
    assert bool(found) == bool(message)
    assert not message or any([message in each for each in found]), found
