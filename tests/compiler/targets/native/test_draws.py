"""Random numbers as machine code: the bits that NumPy draws."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.native.draws import DrawKernel
from tapewright.ops.random.philox import dropout_mask, random_uniform

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("few_passes")

SHAPES = [(), (1,), (3,), (7, 11), (8, 4), (4099,), (3, 8192), (130, 701)]
STATES = [[0, 0], [1, 2], [-1, -(2**63)], [2**63 - 1, 12345678901234567]]


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


def check(run, *args):
    """Compare the bits of a traced function with eager mode, for 1, 2 and 4 threads."""
    wanted, traced, threads = run(*args).numpy(), tw.function(run), config.threads()
    try:
        for n in (1, 2, 4):
            config.set_threads(n)
            found = traced(*args).numpy()
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            assert found.tobytes() == wanted.tobytes()
    finally:
        config.set_threads(threads)
    instructions = traced.get_concrete_function(*args).executable.program.instructions
    return any([type(each) is DrawKernel for each in instructions])


@pytest.mark.parametrize("purpose", [0, 1, 3])
@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_uniform_numbers_are_those_of_numpy(shape, state, purpose):
    for dtype in ("float32", "float64"):
        assert check(
            lambda s, dtype=dtype: random_uniform(
                s, shape=shape, dtype=dtype, purpose=purpose
            ),
            tw.constant(state, "int64"),
        )


@pytest.mark.parametrize(
    "bounds", [(0, 3), (-1, 1), (0.25, 0.5), (1, 1.0000001), (5, 2)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_lie_in_their_range(bounds, dtype):
    low, high = bounds
    state = tw.constant([3, 4], "int64")
    assert check(
        lambda s: random_uniform(s, shape=(999,), dtype=dtype, minval=low, maxval=high),
        state,
    )


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1 / 3, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dropout_masks_are_those_of_numpy(shape, dtype, rate):
    state = tw.constant([7, 1 << 40], "int64")
    assert check(lambda s: dropout_mask(s, shape=shape, rate=rate, dtype=dtype), state)


def test_what_has_no_machine_code_is_drawn_by_numpy():
    state = tw.constant([7, 9], "int64")
    assert not check(lambda s: random_uniform(s, shape=(9,), dtype="float16"), state)
    assert not check(
        lambda s: random_uniform(s, shape=(9,), dtype="int32", minval=0, maxval=9),
        state,
    )


def test_a_layer_draws_the_masks_of_eager_mode_step_after_step():
    x = tw.constant(np.ones((33, 17), np.float32))

    def masks(traced):
        layer = tw.keras.layers.Dropout(0.4, seed=5)
        call = tw.function(layer) if traced else layer
        return [call(x, training=True).numpy().tobytes() for _ in range(4)]

    assert masks(True) == masks(False)
    assert len(set(masks(True))) == 4
