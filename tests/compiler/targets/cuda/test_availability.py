"""Why functions on a GPU cannot be compiled, and what happens then."""

import types

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.cuda.availability import why_unavailable
from tapewright.core.settings import config

from ....stand_in.cublaslt import provided
from .runtime_runs import asked, new_log


def module_that(**attributes):
    return types.SimpleNamespace(__name__="arrays", **attributes)


class Hashable(types.SimpleNamespace):
    __hash__ = object.__hash__


def test_a_module_with_everything_compiles_functions(gpu):
    why_unavailable.cache_clear()
    assert why_unavailable(gpu) is None


def test_a_module_without_cuda_compiles_nothing():
    assert why_unavailable(np) == "numpy cannot compile functions"


def test_a_compiler_that_fails_is_the_reason():
    def fails(**_):
        raise RuntimeError("no such architecture")

    failing = Hashable(__name__="arrays", RawModule=fails, cuda=None)
    assert why_unavailable(failing) == "NVRTC cannot compile: no such architecture"


def test_products_that_cannot_be_loaded_are_the_reason(gpu):
    def missing():
        raise OSError("libcublasLt.so.12: not found")

    why_unavailable.cache_clear()
    with provided(missing):
        assert why_unavailable(gpu) == (
            "cublasLt cannot be loaded: libcublasLt.so.12: not found"
        )
    why_unavailable.cache_clear()


def test_for_a_reason_functions_run_op_by_op(gpu, monkeypatch):
    monkeypatch.setattr(config, "why_op_by_op", lambda xp: "no reason")
    f = tw.function(lambda x: tw.exp(x) * 2.0)
    x = tw.constant([0.0, 1.0])
    new_log()
    np.testing.assert_allclose(f(x).numpy(), np.exp([0, 1]) * 2, 1e-6)
    assert asked() == [] and not f.get_concrete_function(x).is_compiled


@pytest.mark.parametrize("target", ["auto", "native"])
def test_a_target_of_the_cpu_does_not_matter_on_a_gpu(target, gpu):
    with config.use_target(target):
        f = tw.function(lambda x: tw.exp(x))
        x = tw.constant([0.0, 1.0])
        f(x)
        assert f.get_concrete_function(x).executable.target == "cuda"
