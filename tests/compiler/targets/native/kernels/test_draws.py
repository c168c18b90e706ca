"""Random numbers on the target native: what NumPy draws there, and layers that draw."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.native.kernels.draws import DrawKernel
from tapewright.ops.random.philox import random_uniform

from ...numpy_kernels import assert_same, instruction_of
from ..kernel_runs import run

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("few_passes")


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


@pytest.mark.parametrize("integers", [False, True])
def test_what_has_no_machine_code_is_drawn_by_numpy(integers):
    attributes = {"shape": (9,), "purpose": 0, "dtype": "float16"}
    if integers:
        attributes.update(dtype="int32", minval=0, maxval=9)
    state = [np.array([7, 9], np.int64)]
    _, wanted = instruction_of(random_uniform, state, attributes)
    found, instructions = run(random_uniform, state, attributes)
    for each in found:
        assert_same([each], wanted)
    assert DrawKernel not in map(type, instructions)


def test_a_layer_draws_the_masks_of_eager_mode_step_after_step():
    x = tw.constant(np.ones((33, 17), np.float32))

    def masks(traced):
        layer = tw.keras.layers.Dropout(0.4, seed=5)
        call = tw.function(layer) if traced else layer
        return [call(x, training=True).numpy().tobytes() for _ in range(4)]

    assert masks(True) == masks(False)
    assert len(set(masks(True))) == 4
