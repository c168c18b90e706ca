"""bfloat16 as CUDA C: 16 bits in memory, float32 in registers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.cuda import executable, modules

from ....stand_in import nvrtc, shim
from .program_runs import compile_launches

BFLOAT16 = tw.bfloat16.dtype


def step(x, w):
    with tw.GradientTape() as tape:
        tape.watch(w)
        y = tw.nn.softmax(tw.nn.gelu(tw.matmul(x, w) * 2.0))
        moved = tw.where(x > 0.0, x, tw.concat([x[:, 4:], x[:, :4]], 1))
        loss = tw.reduce_mean(y) + tw.reduce_sum(moved)
    return y, moved, tape.gradient(loss, w)


def arrays():
    rng = np.random.default_rng(5)
    return [rng.normal(size=(8, 8)).astype(BFLOAT16) for _ in range(2)]


@pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")
def test_a_step_has_the_results_of_the_host(gpu):
    found = tw.function(step)(*map(tw.constant, arrays()))
    with tw.device("CPU"):
        expected = step(*map(tw.constant, arrays()))
    for got, wanted in zip(found, expected, strict=True):
        assert got.dtype is tw.bfloat16
        np.testing.assert_allclose(
            np.float32(got.numpy()), np.float32(wanted), rtol=2.0**-6, atol=2.0**-8
        )


@pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")
def test_float32_is_rounded_as_by_numpy(gpu):
    every = np.arange(1 << 16, dtype=np.uint32) << 16
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):  # below, at and above ties
        values = (every | low).view(np.float32)
        found = tw.function(lambda x: tw.cast(x, tw.bfloat16))(tw.constant(values))
        with np.errstate(all="ignore"):
            expected = values.astype(BFLOAT16)
        np.testing.assert_array_equal(
            found.numpy().view(np.uint16), expected.view(np.uint16)
        )


@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())
def test_nvrtc_compiles_it_for_every_gpu(gpu, monkeypatch):
    def noting(xp, steps):
        found.update({each.name: each for each in steps if hasattr(each, "body")})
        return {}

    found = {}
    monkeypatch.setattr(executable, "compiled", noting)
    tw.function(step).get_concrete_function(*map(tw.constant, arrays())).executable  # noqa: B018
    source = modules.source_of(found.values())
    assert "bfloat16_bits" in source.split("__global__", 1)[1]
    compile_launches(found.values())
