"""The choice of a tile by timing: any may win, and files only say which one."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tqdm

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops.contractions import contraction_schedule as schedules
from tapewright.compiler.program.limits import DEFAULTS, use_limits
from tapewright.compiler.targets.native import autotune
from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.products import contractions
from tapewright.compiler.targets.native.products.contractions import ContractionKernel
from tapewright.ops.convolution.correlation import (
    convolve,
    filter_gradient,
    input_gradient,
)

pytest.importorskip("llvmlite")

PLAIN = dict(strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1)
CASES = {
    "forward": (convolve, (2, 9, 9, 8), (3, 3, 8, 20), PLAIN),
    "by input": (input_gradient, (2, 5, 5, 20), (3, 3, 8, 20),
                 PLAIN | {"size": (9, 10), "strides": (2, 2)}),
    "by filter": (filter_gradient, (2, 9, 9, 8), (2, 9, 9, 20), PLAIN | {"window": (3, 3)}),
    "depthwise": (convolve, (2, 9, 9, 20), (3, 3, 1, 20), PLAIN | {"groups": 20}),
}  # fmt: skip
FORWARD = CASES["forward"]


@pytest.fixture(autouse=True)
def tuned(monkeypatch, tmp_path):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", str(tmp_path))
    new_process(monkeypatch)
    config.autotune()
    with config.use_target("native"):
        yield
    config.autotune(False)
    config.set_threads(None)


def new_process(monkeypatch):
    monkeypatch.setattr(autotune, "_known", {})


@pytest.fixture
def timed(monkeypatch):
    """The names of the kernels of each time that some are timed, without running them."""
    seen = []

    def timed(kernels):
        seen.append(list(kernels))
        return {name: 1.0 + number for number, name in enumerate(kernels)}

    monkeypatch.setattr(autotune, "_timed", timed)
    return seen


def whole(shape, dtype="float32"):
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def compiled(op, x, y, attributes, dtype="float32"):
    """The executable, its kernel and the operands."""
    arrays = whole(x, dtype), whole(y, dtype)
    traced = tw.function(lambda x, y: op(x, y, **attributes))
    made = traced.get_concrete_function(*map(tw.constant, arrays)).executable
    kernels = [i for i in made.program.instructions if type(i) is ContractionKernel]
    return made, kernels[0], arrays


def check(op, x, y, attributes):
    """Compare with the definition; return the tile."""
    made, kernel, arrays = compiled(op, x, y, attributes)
    wanted = op.primitive.kernel(np, *[a.astype(float) for a in arrays], **attributes)
    np.testing.assert_array_equal(made.run(list(arrays))[0], wanted)
    return str(kernel.schedule.tile)


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_each_tile_that_wins_gives_the_same_sums(case, monkeypatch):
    tiles = []
    monkeypatch.setattr(autotune, "_read", lambda content: None)
    for number in range(DEFAULTS.tiles_tried):

        def timed(kernels, number=number):
            return {name: float(i != number) for i, name in enumerate(kernels)}

        new_process(monkeypatch)
        monkeypatch.setattr(autotune, "_timed", timed)
        tiles.append(check(*case))
    assert len({*tiles}) == len(tiles)


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_tile_that_the_model_finds_the_slowest_gives_the_same_sums(
    case, monkeypatch
):
    def slowest_first(*args):
        *limits, most = args
        return tiles_of(*limits, 1 << 30)[: -most - 1 : -1]

    tiles_of = schedules.tiles_of
    with monkeypatch.context() as patch:
        patch.setattr(schedules, "tiles_of", slowest_first)
        patch.setattr(contractions, "recalled_schedules", schedules.schedules_of)
        slow = check(*case)
    config.autotune(False)
    assert check(*case) != slow


def test_kernels_are_run_and_the_fastest_wins():
    small = compiled(*FORWARD)[1]
    large = compiled(convolve, (8, 30, 30, 8), (3, 3, 8, 20), PLAIN)[1]
    assert autotune.fastest({"large": large, "small": small}, "") == "small"
    assert autotune.fastest({"small": small, "large": large}, "") == "small"


def test_nothing_is_timed_unless_it_is_switched_on(timed):
    config.autotune(False)
    check(*FORWARD)
    assert timed == []


def test_tiles_are_timed_once_and_the_next_process_reads_the_fastest(
    timed, monkeypatch
):
    third = lambda seconds, key: [*seconds][2]  # noqa: E731
    monkeypatch.setattr(autotune, "min", third, raising=False)
    tile = check(*FORWARD)
    assert [len(names) for names in timed] == [DEFAULTS.tiles_tried]
    assert tile == timed[0][2]
    assert check(*FORWARD) == tile
    new_process(monkeypatch)
    assert check(*FORWARD) == tile
    assert len(timed) == 1


def test_without_a_folder_each_process_times_for_itself(timed, monkeypatch):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", "0")
    for _ in range(2):
        new_process(monkeypatch)
        check(*FORWARD)
        check(*FORWARD)
    assert len(timed) == 2


another = dataclasses.replace(engine.host(), cpu="another")
other_vectors = (64, 32) if engine.vector_registers() == (16, 32) else (16, 32)
OTHERS = {
    "shape": lambda patch: compiled(convolve, (2, 9, 9, 8), (3, 3, 8, 21), PLAIN),
    "maps": lambda patch: compiled(*FORWARD[:3], PLAIN | {"dilations": (1, 2)}),
    "dtype": lambda patch: compiled(*FORWARD, "float64"),
    "threads": lambda patch: (config.set_threads(5), compiled(*FORWARD)),
    "cpu": lambda patch: (
        patch.setattr(engine, "host", lambda: another),
        compiled(*FORWARD),
    ),
    "version": lambda patch: (
        patch.setattr(engine, "__version__", "another"),
        compiled(*FORWARD),
    ),
    "limits": lambda patch: use_limits(reuse=63)(compiled)(*FORWARD),
    "vectors": lambda patch: (
        patch.setattr(engine, "vector_registers", lambda: other_vectors),
        compiled(*FORWARD),
    ),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=list(OTHERS))
def test_another_choice_is_made_for_another(other, timed, monkeypatch):
    compiled(*FORWARD)
    with monkeypatch.context() as patch:
        other(patch)
    assert len(timed) == 2


FOREIGN = {
    "nothing": b"",
    "no json": b"\xff{",
    "deep": b"[" * 100_000,
    "a list": b"[1]",
    "no name": b'{"fastest": ["Tile"]}',
    "no tile": b'{"fastest": "Tile(along=9, lanes=16, vectors=1)"}',
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=list(FOREIGN))
def test_other_contents_are_ignored_and_replaced(content, timed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(autotune, "_text", lambda *args: content)
        tile = check(*FORWARD)
    for count in (2, 2):
        new_process(monkeypatch)
        assert check(*FORWARD) == tile
        assert len(timed) == count


def test_damaged_files_are_ignored_and_replaced(timed, monkeypatch, tmp_path):
    tile = check(*FORWARD)
    (path,) = notes(tmp_path)
    content = path.read_bytes()
    other = re.sub(rb"lanes=\d+", b"lanes=15", content, count=1)
    for damaged in (content[:-9], other, b"{}"):
        path.write_bytes(damaged)
        new_process(monkeypatch)
        assert check(*FORWARD) == tile
        assert path.read_bytes() == content
    assert len(timed) == 4


def notes(folder):
    """The files that have names of tiles."""
    files = list(folder.iterdir())
    return [path for path in files if b'{"fastest"' in path.read_bytes()]


def test_a_file_says_how_long_each_tile_took(tmp_path):
    tile = check(*FORWARD)
    (path,) = notes(tmp_path)
    content = path.read_bytes()
    found = json.loads(content[content.index(b'{"fastest"') :])
    times = found["microseconds"]
    assert found["fastest"] == tile
    assert times[tile] == min(times.values())
    assert len(times) == DEFAULTS.tiles_tried


def test_one_bar_is_for_all_kernels_of_a_function(monkeypatch):
    bars = []

    class Bar:
        def __init__(self, **options):
            self.total, self.done, self.is_open = options["total"], 0, True
            bars.append(self)

        def update(self, count):
            assert self.is_open
            self.done += count

        def close(self):
            self.is_open = False

    def two(x, f):
        return convolve(convolve(x, f, **PLAIN), f, **(PLAIN | {"strides": (2, 2)}))

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    arrays = whole((2, 9, 9, 8)), whole((3, 3, 8, 8))
    with use_limits(tiles_tried=2):
        concrete = tw.function(two).get_concrete_function(*map(tw.constant, arrays))
        assert concrete.executable
    (bar,) = bars
    assert (bar.total, bar.done, bar.is_open) == (4, 4, False)
