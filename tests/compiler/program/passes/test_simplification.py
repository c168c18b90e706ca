"""Programs made smaller: each step alone does what it says, and off or on the results agree."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.array_instructions import FusedMap
from tapewright.compiler.program.limits import DEFAULTS
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.passes import simplification
from tapewright.compiler.program.passes.map_fusion import row_blocks
from tapewright.compiler.targets.numpy.target import TARGET

from ....rounding import assert_as_eager
from ...changed_passes import change_passes

pytestmark = pytest.mark.gpu_first


def program_of(function, *args):
    graph = tw.function(function).get_concrete_function(*args).graph
    return lower(graph)


def names(program):
    return [each.name for each in program.instructions]


X = tw.constant(np.linspace(-2, 2, 64 * 64, dtype=np.float32).reshape(64, 64))
W = tw.constant(np.linspace(1, 3, 64 * 64, dtype=np.float32).reshape(64, 64))


def test_equal_calls_are_made_once():
    program = program_of(lambda x: (tw.exp(x) + 1.0) * tw.exp(x), X)
    simplification.merge_equal(program)
    assert names(program) == ["exp", "add", "multiply"]


def test_calls_that_differ_in_a_keyword_are_kept_apart():
    program = program_of(lambda x: tw.reduce_max(x, 0) + tw.reduce_max(x, 1), X)
    simplification.merge_equal(program)
    assert len(program.instructions) == 3


def test_views_of_merged_calls_know_their_memory():
    program = program_of(lambda x: tw.transpose(tw.exp(x)) + tw.exp(x), X)
    simplification.merge_equal(program)
    first = program.instructions[0].outputs[0]
    (turned,) = program.instructions[1].outputs
    assert turned.is_view and turned.base is first


def test_a_constant_full_of_one_number_becomes_that_number():
    program = program_of(lambda x: x * tw.fill([64, 64], 3.0), X)
    simplification.uniform_constants(program)
    assert program.instructions[0].operands[1].shape == ()


TALL = tw.constant(
    np.random.default_rng(0)
    .normal(size=(1030, DEFAULTS.fused_entries // 1024 + 8))
    .astype(np.float32)
)
ROW = tw.constant(np.linspace(0, 1, TALL.shape[1], dtype=np.float32))
COLUMN = tw.constant(np.linspace(0, 1, TALL.shape[0], dtype=np.float32)[:, None])


def chains(x, row, column):
    y = tw.tanh(x * row + column)
    z = tw.square(y) - x
    return z, tw.reduce_sum(y, 0), tw.maximum(y, z * 2.0)


def test_a_chain_on_large_arrays_goes_row_block_by_row_block():
    program = program_of(chains, TALL, ROW, COLUMN)
    row_blocks(program)
    fused = [each for each in program.instructions if isinstance(each, FusedMap)]
    assert fused and sum(len(each.steps) for each in fused) >= 5


def test_row_blocks_change_no_bit(numpy_target):
    expected = chains(TALL, ROW, COLUMN)
    found = tw.function(chains)(TALL, ROW, COLUMN)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def train_step():
    v = tw.Variable(W * 0.01)
    optimizer = tw.keras.optimizers.SGD(0.1)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            y = tw.nn.relu(tw.matmul(x, v))
            loss = tw.reduce_mean(y * y) + 0.01 * tw.reduce_sum(v * v)
        g = tape.gradient(loss, v)
        optimizer.apply_gradients([(tw.clip_by_norm(g, 1.0), v)])
        return loss

    return [step(X).numpy() for _ in range(3)], v.numpy()


@pytest.mark.parametrize("step", TARGET.program_passes, ids=lambda p: p.__name__)
def test_without_a_step_the_result_is_the_same(step, numpy_target, monkeypatch):
    losses, weights = train_step()
    change_passes(monkeypatch, program=lambda all_: [e for e in all_ if e is not step])
    plain_losses, plain_weights = train_step()
    np.testing.assert_allclose(losses, plain_losses, rtol=1e-5)
    np.testing.assert_allclose(weights, plain_weights, rtol=1e-5, atol=1e-7)


def test_without_any_step_the_result_is_that_of_eager_mode(monkeypatch):
    change_passes(monkeypatch, program=lambda _: ())
    losses, weights = train_step()
    tw.config.run_functions_eagerly(True)
    try:
        eager_losses, eager_weights = train_step()
    finally:
        tw.config.run_functions_eagerly(False)
    assert_as_eager(losses, eager_losses)
    assert_as_eager(weights, eager_weights)
