"""Which kernels replace which instructions, and what stays with CuPy and Python."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops.threads.thread_nest import ThreadNest
from tapewright.compiler.program.instructions.array_instructions import View
from tapewright.compiler.targets.cuda.steps import is_on_device, steps_of

from ..runtime_runs import executable_of

X = np.arange(12, dtype="f").reshape(3, 4) / 10


def instructions_of(function, *args):
    function = tw.function(function)
    function(*args)
    return executable_of(function, *args).program.instructions


WHOLE = {
    "a map": lambda x: tw.exp(x) * 2.0,
    "a reduction": lambda x: tw.reduce_logsumexp(x, axis=1),
    "a product": lambda x: tw.matmul(x, x, transpose_b=True),
    "a gather": lambda x: tw.gather(x, tw.constant([2, 0])),
    "a concatenation": lambda x: tw.concat([x, x * 2.0], 1),
    "an argmax": lambda x: tw.argmax(x, 1),
    "a cumulative sum": lambda x: tw.cumsum(x),
}


@pytest.mark.parametrize("what", WHOLE)
def test_these_are_work_of_the_device_alone(what, gpu):
    made = instructions_of(WHOLE[what], tw.constant(X))
    assert all([is_on_device(e) or e.is_free for e in made]), made


def test_what_has_no_kernel_stays_a_call(gpu):
    made = instructions_of(lambda x: tw.linalg.qr(x)[0] * 2.0, tw.constant(X))
    assert [is_on_device(e) for e in made].count(False) >= 1
    assert any(map(is_on_device, made))


def test_maps_that_follow_each_other_are_one_nest(gpu):
    made = instructions_of(lambda x: tw.sin(tw.exp(x) + 1.0) * x, tw.constant(X))
    assert [type(e) for e in made if type(e) is not View] == [ThreadNest]


def test_without_fusion_each_map_is_a_nest(gpu):
    config.set_graph_passes(loop_fusion=False)
    try:
        made = instructions_of(lambda x: tw.sin(tw.exp(x) + 1.0) * x, tw.constant(X))
    finally:
        config.set_graph_passes(loop_fusion=True)
    assert [type(e) for e in made].count(ThreadNest) > 1


def test_every_instruction_of_the_device_has_steps(gpu):
    f = tw.function(lambda x: tw.gather(tw.exp(x), tw.constant([0])))
    f(tw.constant(X))
    (segment,) = executable_of(f, tw.constant(X)).segments
    for each in segment.instructions:
        assert steps_of(each, segment.addresses)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("what", ["reduce_sum", "reduce_prod", "reduce_all"])
def test_reductions_over_nothing_give_their_neutral_number(what, axis, gpu):
    kind = "bool" if what == "reduce_all" else "float32"
    f = tw.function(lambda x: getattr(tw, what)(tw.cast(x[:0] + 1.0, kind), axis=axis))
    wanted = getattr(np, what.removeprefix("reduce_"))(np.zeros((0, 4)) + 1, axis=axis)
    assert np.array_equal(f(tw.constant(X)).numpy(), wanted)
