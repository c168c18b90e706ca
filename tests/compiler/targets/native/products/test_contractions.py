"""Convolutions as machine code: the sums of their definition, whatever tiles compute them.

Entries are small whole numbers, so that sums are exact in any order.
"""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops.contractions import contraction_schedule as schedules
from tapewright.compiler.loops.contractions import tiling
from tapewright.compiler.program.instructions.array_instructions import Contract
from tapewright.compiler.program.limits import DEFAULTS, use_limits
from tapewright.compiler.targets.native import segments
from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.jit.output_memory import new_array
from tapewright.compiler.targets.native.products import contractions
from tapewright.compiler.targets.native.segments import code_of
from tapewright.ops.convolution.correlation import (
    convolve,
    filter_gradient,
    input_gradient,
)
from tapewright.ops.convolution.windows import positions

pytest.importorskip("llvmlite")

REGISTERS = [(64, 32), (32, 16), (16, 32)]
CANARY, ROOM = 0xA5, 256
MANY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield
    config.set_threads(None)


@pytest.fixture
def small_blocks():
    """Bands, tiles and parts of sums that small arrays have several of."""
    sizes = {"band_bytes": 256, "tiled_bytes": 128, "parts_bytes": 1 << 14}
    work = {"contraction_work": 4, "summed_entries": 16, "shared_work": 1}
    with use_limits(**sizes, **work, reuse=1):
        yield


@st.composite
def cases(draw, most=9):
    """An op, its attributes, and the shapes of its operands."""

    def several(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    kind = draw(st.sampled_from(["plain", "plain", "groups", "depthwise"]))
    depth, each = [draw(st.sampled_from([1, 2, 3, 5, 8, 17, 32])) for _ in range(2)]
    groups = 1 if kind == "plain" else draw(st.integers(2, 3))
    if kind == "depthwise":
        groups, depth, each = draw(st.integers(2, 37)), 1, draw(st.integers(1, 2))
    window = several(1, 4)
    strides, dilations = several(1, 3), several(1, 2)
    reaches = [(w - 1) * d + 1 for w, d in zip(window, dilations)]
    sizes = [r + n for r, n in zip(reaches, several(0, most))]
    padding = draw(st.sampled_from(["VALID", "SAME", "pairs"]))
    if padding == "pairs":
        padding = tuple(zip(several(0, 3), several(0, 3)))
    _, counts = positions(sizes, window, strides, padding, dilations)
    batch = draw(st.integers(1, 5))
    images = (batch, *sizes, groups * depth)
    filters = (*window, depth, groups * each)
    places = (batch, *counts, groups * each)
    attributes = dict(strides=tuple(strides), padding=padding, groups=groups,
                      dilations=tuple(dilations))  # fmt: skip
    op = draw(st.sampled_from([convolve, input_gradient, filter_gradient]))
    if op is convolve:
        return op, attributes, images, filters
    if op is input_gradient:
        return op, {"size": tuple(sizes), **attributes}, places, filters
    return op, {"window": tuple(window), **attributes}, images, places


def whole(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def executable(op, attributes, *arrays):
    traced = tw.function(lambda x, y: op(x, y, **attributes))
    return traced.get_concrete_function(*map(tw.constant, arrays)).executable


def run(op, attributes, *arrays, threads=(1, 2, 3)):
    """The results of machine code for numbers of threads, with canaries around buffers."""
    config.set_threads(max(threads))
    made, rooms, found = executable(op, attributes, *arrays), [], []
    for name, value in made.bound.items():
        if value is np.empty or value is new_array:
            made.bound[name] = lambda *spec: canary_empty(rooms, *spec)
    for number in threads:
        config.set_threads(number)
        found.append(np.array(made.run(list(arrays))[0]))
    for room, size in rooms:
        assert (room[:ROOM] == CANARY).all() and (room[ROOM + size :] == CANARY).all()
    return found, made.program, rooms


def canary_empty(rooms, shape, dtype):
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    room = np.full(size + 2 * ROOM, CANARY, np.uint8)
    rooms.append((room, size))
    return room[ROOM : ROOM + size].view(dtype).reshape(shape)


def check(case, dtype="float32", is_machine_code=True):
    op, attributes, *shapes = case
    arrays = [whole(shape, dtype, i) for i, shape in enumerate(shapes)]
    exact = [x.astype(complex if x.dtype.kind == "c" else float) for x in arrays]
    wanted = op.primitive.kernel(np, *exact, **attributes)
    found, program, rooms = run(op, attributes, *arrays)
    for each in found:
        assert each.dtype == dtype
        np.testing.assert_array_equal(each, wanted)
    assert rooms or not is_machine_code
    if is_machine_code:
        rest = [each for each in program.instructions if not each.is_free]
        assert not [each for each in rest if code_of(each) is None]


@pytest.mark.parametrize("size", [(4,), (4, 5), (9, 40)], ids=str)
def test_phases_with_other_taps_than_the_largest(size, small_blocks):
    rank = len(size)
    plain = dict(strides=(2,) * rank, padding="VALID", dilations=(1,) * rank, groups=1)
    counts = [(n - 3) // 2 + 1 for n in size]
    filters = (*[3] * rank, 1, 1)
    check((input_gradient, {"size": size, **plain}, (2, *counts, 1), filters))


@MANY
@given(cases(), st.sampled_from(["float32", "float64"]))
def test_sums_are_those_of_the_definition(case, dtype):
    check(case, dtype)


@MANY
@given(cases(), st.sampled_from(REGISTERS))
def test_bands_parts_and_tiles_of_other_sizes(small_blocks, case, registers):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "vector_registers", lambda: registers)
        check(case)


@MANY
@given(cases(), st.sampled_from(REGISTERS), st.integers(0, 1 << 30), st.booleans())
def test_all_tiles_give_the_same_sums(small_blocks, case, registers, number, is_far):
    def some_tile(*args):
        found = list(tiling.candidates(*args[:6]))
        return [found[number % len(found)]]

    far = {"near_bytes": 0, "tiled_bytes": DEFAULTS.tiled_bytes} if is_far else {}
    with pytest.MonkeyPatch.context() as patch, use_limits(**far):
        patch.setattr(engine, "vector_registers", lambda: registers)
        patch.setattr(schedules, "tiles_of", some_tile)
        patch.setattr(contractions, "recalled_schedules", schedules.schedules_of)
        check(case)


LARGE = {
    "bands of rows": (convolve, (3, 70, 33, 24), (3, 3, 24, 40), {}),
    "bands of images": (convolve, (9, 9, 10, 16), (5, 5, 16, 33), {}),
    "long sums": (convolve, (5, 7, 7, 256), (3, 3, 256, 64), {}),
    "strides": (input_gradient, (3, 17, 17, 40), (4, 4, 24, 40),
                {"size": (34, 34), "strides": (2, 2)}),
    "parts": (filter_gradient, (9, 30, 31, 24), (9, 30, 31, 20), {"window": (3, 3)}),
    "one channel": (convolve, (4, 28, 28, 64), (7, 7, 64, 1), {}),
    "three channels": (input_gradient, (4, 20, 20, 64), (3, 3, 3, 64), {"size": (20, 20)}),
    "depthwise": (convolve, (3, 30, 30, 48), (3, 3, 1, 48), {"groups": 48}),
    "depthwise back": (filter_gradient, (3, 30, 30, 48), (3, 30, 30, 48),
                       {"window": (3, 3), "groups": 48}),
}  # fmt: skip


@pytest.mark.parametrize("case", LARGE.values(), ids=list(LARGE))
def test_sizes_that_are_shared_by_threads(case):
    op, x, y, attributes = case
    plain = dict(strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1)
    check((op, plain | attributes, x, y))


@pytest.mark.parametrize("case", LARGE.values(), ids=list(LARGE))
def test_bits_do_not_depend_on_threads(case):
    op, x, y, attributes = case
    plain = dict(strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in (x, y)]
    found, *_ = run(op, plain | attributes, *arrays)
    assert len({each.tobytes() for each in found}) == 1
    wanted = op.primitive.kernel(
        np, *[each.astype(float) for each in arrays], **(plain | attributes)
    )
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found[0], wanted, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("channels", [(3, 20), (20, 1), (16, 16)])
def test_what_is_not_finite_reaches_its_own_windows_only(special, channels):
    depth, count = channels
    x = whole((2, 9, 21, depth), "float32")
    f = whole((3, 3, depth, count), "float32") + 9
    x[1, 4, 7, depth - 1] = special
    plain = dict(strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1)
    for found in run(convolve, plain, x, f)[0]:
        reached = np.zeros(found.shape, bool)
        reached[1, 3:6, 6:9] = True
        np.testing.assert_array_equal(~np.isfinite(found), reached)


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_other_dtypes_are_calls_of_numpy(dtype):
    plain = dict(strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1)
    check((convolve, plain, (2, 5, 6, 3), (3, 3, 3, 4)), dtype, is_machine_code=False)


def test_large_products_of_pixels_are_products_of_matrices():
    plain = dict(strides=(1, 1), padding="VALID", dilations=(1, 1), groups=1)
    shapes = (2, 6, 6, 513), (1, 1, 513, 512)
    check((convolve, plain, *shapes))
    made = executable(convolve, plain, *[whole(shape, "float32") for shape in shapes])
    (product,) = [x for x in made.program.instructions if not x.is_free]
    assert type(product) is Contract


def test_equal_contractions_are_compiled_once(monkeypatch):
    def two(x, f):
        for _ in range(3):
            x = convolve(x, f, (1, 1), "SAME", (1, 1))
        return x

    texts = []
    compiled = engine.compiled

    def seen(text, *args, kernels=(), **options):
        texts.extend([each for each, _ in kernels])
        return compiled(text, *args, kernels=kernels, **options)

    monkeypatch.setattr(segments.engine, "compiled", seen)
    arrays = whole((2, 8, 8, 16), "float32"), whole((3, 3, 16, 16), "float32")
    traced = tw.function(two).get_concrete_function(*map(tw.constant, arrays))
    assert traced.executable.segments
    text = "".join(texts)
    assert len(re.findall(r"define .*@tile_\w+\(", text)) == 1
    assert len(re.findall(r"define .*\.thread\(", text)) == 1
