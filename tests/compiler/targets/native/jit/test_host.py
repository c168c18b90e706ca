"""Machine code for other CPUs than this one: made here, without a complaint of LLVM's."""

import dataclasses
import struct

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import cpu

llvm = pytest.importorskip("llvmlite.binding")

from tapewright.compiler.targets.native import atomics  # noqa: E402
from tapewright.compiler.targets.native.jit import engine, runtime, thread_pool  # noqa: E402
from tapewright.compiler.targets.native.jit.host import Host, describe_host  # noqa: E402
from tapewright.compiler.targets.native.llvm_writer import Writer  # noqa: E402
from tapewright.compiler.targets.native.math_functions import (  # noqa: E402
    scalar_function,
)
from tapewright.compiler.targets.native.products import blas, gemm  # noqa: E402

# What NumPy says: each of its wheels lists the features of all architectures.
X86 = ("X86_V4", "AVX512_SKX", "X86_V3", "AVX2", "FMA3")
ARM = ("NEON", "ASIMD", "ASIMDHP", "SVE")
NONE = dict.fromkeys((*X86, *ARM), False)

HOSTS = {
    "Graviton 3": describe_host(
        "aarch64-unknown-linux-gnu",
        "neoverse-v1",
        {"neon": True, "sve": True, "sha2": True},
        NONE | dict.fromkeys(ARM, True),
    ),
    "Graviton 2": describe_host(
        "aarch64-unknown-linux-gnu",
        "neoverse-n1",
        {"neon": True, "sve": False},
        NONE | dict.fromkeys(ARM[:3], True),
    ),
    "an Arm without a name": describe_host(
        "aarch64-unknown-linux-musl",
        "generic",
        {"aes": False, "rand": False, "sha2": False, "sve": False},
        NONE | dict.fromkeys(ARM, True),
    ),
    "Apple Silicon": describe_host(
        "arm64-apple-darwin24.1.0", "apple-m1", {}, NONE | dict.fromkeys(ARM[:3], True)
    ),
    "Windows on Arm": describe_host("aarch64-pc-windows-msvc", "oryon-1", {}, NONE),
    "AmpereOne": describe_host(
        "aarch64-unknown-linux-gnu", "ampere1b", {"neon": True}, NONE
    ),
    "Skylake": describe_host(
        "x86_64-unknown-linux-gnu",
        "skylake-avx512",
        {"avx2": True, "fma": True, "f16c": True, "avx512f": True, "avx512vl": True},
        dict.fromkeys(X86, True),
    ),
    "Ice Lake with AVX-512 switched off": describe_host(
        "x86_64-unknown-linux-gnu",
        "icelake-server",
        {"avx2": True, "fma": True, "avx512f": True, "avx512vl": True}
        | {"avx512vbmi2": True},
        dict.fromkeys(X86, True) | {"X86_V4": False, "AVX512_SKX": False},
    ),
    "an Intel Mac": describe_host(
        "x86_64-apple-darwin23.0.0", "skylake", {"avx2": True, "fma": True}, {}
    ),
    "Windows": describe_host(
        "x86_64-pc-windows-msvc", "znver3", {"avx2": True, "fma": True}, {}
    ),
}
every_host = pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))

# Of the header of an object file: what says for which CPU it is.
MACHINES = {
    ("ELF", "x86_64"): (18, 62),
    ("ELF", "aarch64"): (18, 183),
    ("Mach-O", "x86_64"): (4, 7),
    ("Mach-O", "aarch64"): (4, 12),
    ("COFF", "x86_64"): (0, 0x8664),
    ("COFF", "aarch64"): (0, 0xAA64),
}


@pytest.fixture(autouse=True, scope="module")
def all_targets():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@pytest.fixture
def silent(capfd):
    """Nothing is printed, not even by LLVM, which writes past `sys.stderr`."""
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def compiled_for(host, text, level=engine.SPEED_LEVEL):
    """The object code of a module for a host, checked to be for that architecture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "host", lambda: host)
        code = engine.object_code(text, level=level)
    kind = "ELF"
    if "windows" in host.triple:
        kind = "COFF"
    elif "apple" in host.triple:
        kind = "Mach-O"
    place, number = MACHINES[kind, host.architecture]
    assert struct.unpack_from("<H", code, place) == (number,)
    return code


@pytest.fixture(scope="module")
def step_texts():
    """The modules of a training step with products, windows, draws, sums and functions."""
    runtime.symbols(), blas.symbols()  # their instructions are this machine's alone
    texts, made = [], engine.compiled

    def compiled(text, *args, kernels=(), **options):
        texts.extend([text, *[each for each, _ in kernels]])
        return made(text, *args, kernels=kernels, **options)

    @tw.function
    def step(x, kernel, weights):
        with tw.GradientTape() as tape:
            tape.watch([kernel, weights])
            y = tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "SAME"))
            y = tw.nn.max_pool2d(y, 2, 2, "VALID") + tw.random.normal([2, 4, 4, 8])
            y = tw.matmul(tw.reshape(y, [2, -1]), weights)
            half = tw.cast(tw.cast(tw.math.erf(y), tw.float16) + 1, tw.float32)
            loss = tw.reduce_mean(tw.nn.softmax(half) ** 2) + tw.reduce_max(tw.tanh(y))
        return tape.gradient(loss, [kernel, weights])

    with pytest.MonkeyPatch.context() as patch, tw.config.use_target("native"):
        patch.setattr(engine, "compiled", compiled)
        rng = np.random.default_rng(0)
        shapes = [(2, 8, 8, 3), (3, 3, 3, 8), (128, 10)]
        step(*[tw.constant(rng.standard_normal(s), "float32") for s in shapes])
    assert texts
    return texts


@every_host
def test_a_step_is_compiled_without_a_complaint(host, step_texts, silent):
    for text in step_texts:
        compiled_for(host, text)


@every_host
def test_the_self_test_is_compiled_without_a_complaint(host, silent):
    assert host.why_unavailable is None
    compiled_for(host, engine._TEST)


@every_host
def test_threads_and_locks_have_the_instructions_of_their_machine(
    host, monkeypatch, silent
):
    monkeypatch.setattr(engine, "host", lambda: host)
    monkeypatch.setattr(atomics.sys, "platform", "linux")
    assert atomics.has_futex()
    other = {"x86_64": "llvm.aarch64.", "aarch64": "llvm.x86."}[host.architecture]
    for write in (thread_pool.write_thread_pool, blas._write_threads):
        writer = Writer()
        write(writer)
        assert other not in writer.text()
        compiled_for(host, writer.text(), level=0)


@every_host
def test_products_have_tiles_for_the_registers_of_their_machine(
    host, monkeypatch, silent
):
    monkeypatch.setattr(engine, "host", lambda: host)
    for dtype in map(np.dtype, ("float32", "float64")):
        tile = gemm.tile_of(dtype)
        width, count = host.vector_registers
        assert tile.lanes * dtype.itemsize == width
        writer = Writer()
        gemm._Functions(writer, dtype, tile).write()
        compiled_for(host, writer.text(), level=0)


@every_host
def test_arm_takes_its_own_instructions_for_the_larger_of_two(
    host, monkeypatch, silent
):
    monkeypatch.setattr(engine, "host", lambda: host)
    writer, number = Writer(), np.dtype(np.float32)
    for name in ("maximum", "minimum", "fmax", "fmin"):
        with writer.function(name, [("x", number), ("y", number)], number) as (x, y):
            writer.ret(scalar_function(writer, name, (x, y), number))
    text = writer.text()
    is_arm = host.architecture == "aarch64"
    for name in ("maximum", "minimum"):
        assert text.count(f"call contract float @llvm.{name}.f32") == 2 * is_arm
    compiled_for(host, text)


def test_this_machine_is_described_without_a_complaint(silent):
    engine.this_cpu.cache_clear()
    engine.object_code(engine._TEST)


def test_features_are_those_of_the_architecture_alone():
    off = dict.fromkeys([*X86, *ARM], False)
    assert describe_host("aarch64-unknown-linux-gnu", "a", {}, off).features == (
        "-sve",
    )
    assert describe_host("arm64-apple-darwin", "a", {}, off).features == ("-sve",)
    features = describe_host("x86_64-unknown-linux-gnu", "a", {}, off).features
    assert set(features) == {"-avx512f", "-avx2", "-fma"}
    assert describe_host("riscv64-unknown-linux-gnu", "a", {}, off).features == ()


def test_architectures_have_one_name_each():
    for triple, name in {
        "arm64-apple-darwin24.1.0": "aarch64",
        "aarch64-unknown-linux-gnu": "aarch64",
        "x86_64-pc-windows-msvc": "x86_64",
        "AMD64-unknown-freebsd": "x86_64",
        "armv7l-unknown-linux-gnueabihf": "armv7l",
    }.items():
        assert Host(triple, "generic").architecture == name


def test_a_feature_that_is_switched_off_later_is_off():
    host = Host("x86_64-linux", "generic", ("+avx2", "+fma", "-avx2"))
    assert not host.has("avx2") and host.has("fma")
    assert (
        host.why_unavailable == "this CPU lacks AVX2 or FMA, or they are switched off"
    )
    host = dataclasses.replace(host, features=("-avx2", "+fma", "+avx2"))
    assert host.why_unavailable is None


def test_every_arm_converts_halves_by_itself():
    assert HOSTS["Apple Silicon"].converts_halves and HOSTS["Skylake"].converts_halves
    assert not Host("x86_64-linux", "generic", ("+avx2", "+fma")).converts_halves


@pytest.mark.parametrize(
    ("machine", "lines", "numpy", "expected"),
    [
        ("x86_64", "flags\t\t: fpu sse avx avx2 fma", {"AVX2": True}, "avx avx2 fma"),
        ("x86_64", "flags\t\t: avx avx2 avx512f", {"AVX512F": False}, "avx avx2"),
        (
            "aarch64",
            "Features\t: fp asimd sve",
            {"SVE": True, "AVX2": False},
            "asimd sve",
        ),
        ("aarch64", "flags\t\t: avx avx2 fma", {"ASIMD": True, "AVX2": False}, "asimd"),
        ("arm64", None, {"NEON": True, "ASIMD": True, "SVE": False}, "asimd neon"),
        ("riscv64", "isa\t: rv64imafdcv", {"RVV": True}, "rvv"),
    ],
)
def test_flags_are_those_of_the_machine(
    machine, lines, numpy, expected, monkeypatch, tmp_path
):
    file = tmp_path / "cpuinfo"
    if lines is not None:
        file.write_text(f"processor\t: 0\nbogomips\t: 5000\n{lines}\n")
    monkeypatch.setattr(cpu, "CPUINFO", str(file))
    monkeypatch.setattr(cpu, "_architecture", lambda: machine)
    monkeypatch.setattr(cpu, "numpy_features", lambda: numpy)
    assert sorted(cpu.vector_flags.__wrapped__()) == expected.split()
