"""What a missing part of native code means: NumPy is called, and the report says why."""

import pytest

import tapewright as tw
from tapewright.compiler.targets.native.availability import availability
from tapewright.compiler.targets.native.jit import engine, entry, runtime
from tapewright.compiler.targets.native.products import blas

pytest.importorskip("llvmlite")


def broken(message, error=RuntimeError):
    def fail(*args):
        raise error(message)

    return fail


@pytest.fixture(autouse=True)
def asked_again():
    yield
    availability.cache_clear()


@pytest.mark.parametrize(
    "module, name, replacement, reason",
    [
        (engine, "availability", lambda: "this CPU lacks AVX2 or FMA", "lacks AVX2"),
        (blas, "symbols", broken("NumPy's BLAS has no cblas_sgemm"), "no cblas_sgemm"),
        (runtime, "symbols", broken("no futex", OSError), "no futex"),
        (runtime, "symbols", broken("an odd version", TypeError), "an odd version"),
        (entry, "probe", broken("arrays are laid out otherwise"), "laid out otherwise"),
    ],
)
def test_numpy_takes_over_from_what_is_missing(
    monkeypatch, module, name, replacement, reason, capsys
):
    monkeypatch.setattr(module, name, replacement)
    availability.cache_clear()
    with tw.config.use_target("native"):
        assert tw.config.target() == "numpy"
        f = tw.function(lambda x: tw.tanh(tw.matmul(x, x)) * 2.0)
        assert float(f(tw.ones([1, 1]))[0, 0]) == pytest.approx(1.5231884)
        tw.config.show()
        assert reason in tw.config.report()["target"]["note"]
    shown = " ".join(capsys.readouterr().out.split())
    assert reason in shown


def test_machine_code_runs_without_a_cache(monkeypatch):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", "/proc/nowhere")
    with tw.config.use_target("native"):
        f = tw.function(lambda x: tw.sin(x) * 17.25)
        assert float(f(tw.constant(0.0))) == 0
        assert "/proc/nowhere" in tw.config.report()["target"]["note"]
