"""NVRTC compiles the kernels of the whole op table, with gradients, for old or new GPUs."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.cuda import executable, modules
from tapewright.core import errors

from ....stand_in import nvrtc
from ...test_every_op import each_line, in_single_precision, with_gradients


@pytest.fixture
def launches(gpu, monkeypatch):
    """The launches of all ops on single precision, by name; nothing is run."""

    def noting(xp, steps):
        found.update({each.name: each for each in steps if hasattr(each, "body")})
        return {}

    found = {}
    monkeypatch.setattr(executable, "compiled", noting)
    for _, made in each_line():
        tensors = [tw.constant(a) for a in in_single_precision(made.inputs)]
        try:
            traced = tw.function(with_gradients(made)).get_concrete_function(*tensors)
        except errors.TracingError:
            continue  # its size depends on values
        traced.executable  # noqa: B018
    return found


@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())
@np.errstate(all="ignore")
def test_kernels_of_all_ops_are_compiled_for_the_oldest_or_the_newest_gpu(launches):
    assert len(launches) > 500
    oldest, *_, newest = nvrtc.ARCHITECTURES
    halves = list(launches.values())[::2], list(launches.values())[1::2]
    for arch, half in zip((oldest, newest), halves):  # those of examples for each
        assert nvrtc.compile_for(modules.source_of(half), arch, modules.OPTIONS)
