"""Limits: what programs are lowered with reaches all that compiles them."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import compiler
from tapewright.compiler.loops.contractions.contraction_schedule import schedules_of
from tapewright.compiler.loops.contractions.tiling import VectorUnit
from tapewright.compiler.loops.fusion import form_loops
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.loops.threads.thread_scheduling import thread_nests
from tapewright.compiler.pipeline import make_program
from tapewright.compiler.program.instructions.array_instructions import (
    Contract,
    FusedMap,
)
from tapewright.compiler.program.instructions.call_instructions import RegionCall
from tapewright.compiler.program.limits import (
    DEFAULTS,
    Limits,
    limits_in_use,
    use_limits,
)
from tapewright.compiler.program.lowering.lowering import lower

X = tw.constant(np.linspace(-1, 1, 60 * 40, dtype=np.float32).reshape(60, 40))
NAMES = [each.name for each in dataclasses.fields(Limits)]


def concrete_of(function, *args):
    return tw.function(function).get_concrete_function(*args)


def chain(x):
    return tw.exp(x * x) - x


def program_of(function, *args):
    return concrete_of(function, *args).executable.program


# ----------------------------------------------------------------------------- values


def test_the_defaults_are_in_use_and_strips_end_with_the_least():
    assert limits_in_use() is DEFAULTS and DEFAULTS == Limits()
    assert program_of(chain, X).limits is DEFAULTS
    assert DEFAULTS.strips[-1] == DEFAULTS.strip
    assert [*DEFAULTS.strips] == sorted(DEFAULTS.strips, reverse=True)


def test_limits_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULTS.slices = 3


def test_each_limit_is_read():
    folder = Path(compiler.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    read = set(re.findall(r"limits\.(\w+)", "\n".join(texts)))
    assert not set(NAMES) - read


# ------------------------------------------------------------------------ use_limits


def test_changes_add_up_and_end_with_the_block():
    with pytest.raises(ZeroDivisionError), use_limits(slices=3):
        with use_limits(reuse=2) as inner:
            assert limits_in_use() is inner
            assert inner == Limits(slices=3, reuse=2)
        assert limits_in_use() == Limits(slices=3)
        with use_limits(inner, slices=4):
            assert limits_in_use() == Limits(slices=4, reuse=2)
        1 / 0  # noqa: B018
    assert limits_in_use() is DEFAULTS


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(
        ValueError, match="unknown limits sizes;\n  use the fields of Limits:"
    ) as error:
        with use_limits(slices=3, sizes=4):
            pass
    assert all([name in str(error.value) for name in NAMES])
    assert limits_in_use() is DEFAULTS


# --------------------------------------------------------------------------- programs


def test_a_program_keeps_its_limits_and_so_do_those_of_its_regions():
    def function(x):
        return tw.cond(tw.reduce_sum(x) > 0, lambda: chain(x), lambda: x)

    concrete = concrete_of(function, X)
    with use_limits(slices=3) as limits:
        program = make_program(concrete.graph)
    (branch,) = [each for each in program.instructions if type(each) is RegionCall]
    assert {each.limits for each in (program, *branch.programs)} == {limits}
    assert make_program(concrete.graph).limits is DEFAULTS


def test_a_change_reaches_numpy(numpy_target):
    with use_limits(fused_entries=64, row_block_bytes=1 << 10):
        program = program_of(chain, X)
    (fused,) = program.instructions
    assert type(fused) is FusedMap and 1 <= fused.rows < 60
    assert FusedMap not in map(type, program_of(chain, X).instructions)


def test_a_change_reaches_machine_code():
    pytest.importorskip("llvmlite")
    small = {"block_work": 64, "shared_work": 1, "kernel_work": 16}
    texts = {}
    with tw.config.use_target("native"):
        for name, changes in {"large": {}, "small": small}.items():
            with use_limits(**changes):
                concrete = concrete_of(lambda x: chain(tw.concat([x, x], 0)), X)
                texts[name] = concrete.pretty()
                nests = concrete.executable.program.instructions
    blocks = [nest.blocks.extent for nest in nests if type(nest) is LoopNest]
    assert min(blocks) > 1
    assert "in parallel" in texts["small"] and "in parallel" not in texts["large"]


def test_a_change_reaches_nests_of_threads():
    graph = concrete_of(chain, X).graph
    with use_limits(grid_blocks=3):
        program = lower(graph, in_loops=True)
    how = {"schedule": thread_nests, "has_totals": False}
    (nest,) = form_loops(program, lambda _: True, **how).instructions
    assert nest.geometry.blocks == 3


def test_schedules_are_kept_for_the_limits_that_they_are_of():
    def convolve(x):
        return tw.nn.conv2d(x, tw.ones([3, 3, 8, 8]), 1, "SAME")

    images = tw.zeros([4, 12, 12, 8])
    with tw.config.use_target("numpy"):
        graph = concrete_of(convolve, images).graph
        program = lower(graph, in_loops=True)
    (contract,) = [e for e in program.instructions if type(e) is Contract]
    shapes = [a.shape for a in (*contract.operands[:2], *contract.outputs)]

    def rows(limits):
        (found,) = schedules_of(contract.maps, *shapes, 4, VectorUnit(8, 16), limits)
        return found.rows

    large, small, again = map(rows, (DEFAULTS, Limits(band_bytes=256), DEFAULTS))
    assert small < large == again
