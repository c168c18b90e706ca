"""`benchmarks/gpu.py` on a machine without a GPU: the dry run, and the refusal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tapewright.core.hardware import devices

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
OURS = "tapewright,tapewright_eager"


def run(*options):
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    return subprocess.run(
        [sys.executable, "gpu.py", *options],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("works", ["W1,W3,row,epoch_8", "gpt,xception,wgan_gp,pinn"])
def test_a_dry_run_makes_the_table_of_the_works_with_equal_numbers(works, tmp_path):
    file = tmp_path / "figures.json"
    done = run("--dry-run", "--works", works, "--peers", OURS, "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "a dry run on the CPU: no time below is one of a GPU" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row.split()[1] for row in rows[1:]] == works.split(",")
    figures = json.loads(file.read_text())
    for work in works.split(","):
        assert all(figures[work][name]["ms"] > 0 for name in OURS.split(","))
    assert "versions" in figures["machine"]


def test_without_a_gpu_it_says_so_with_a_code_of_its_own():
    if devices.gpu_count()[0]:
        pytest.skip("there is a GPU")
    done = run("--peers", "tapewright")
    assert done.returncode == 3 and not done.stdout
    assert "gpu.py has nothing to measure" in done.stderr and "GPU" in done.stderr


@pytest.fixture
def works(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import works

    return works


@pytest.fixture
def compare(works):
    import compare

    return compare


@pytest.fixture
def programs(works):
    import works_programs

    return works_programs


def shapes_in(module):
    """Return a function from a workload to the shapes of its arrays."""
    return lambda work: [a.shape for a in module.arrays(work, tiny=False).values()]


def test_the_works_have_the_sizes_that_are_listed(works):
    shapes = shapes_in(works)
    assert shapes("W1") == [(784, 128), (128,), (128, 10), (10,), (128, 784), (128, 10)]
    assert shapes("W4")[3:6] == [(1024, 1024), (1024,), (1024,)]
    assert shapes("W10")[4:] == [(1600, 10), (10,), (64, 28, 28, 1), (64, 10)]
    assert shapes("epoch")[4:] == [(60_000, 784), (60_000,)]


def test_all_arrays_are_float32_but_labels(works):
    for work in ("ops", *works.STEPS, *works.DERIVATIVES, *works.FILES):
        for name, array in works.arrays(work, tiny=True).items():
            is_label = name == "y" and work.startswith("epoch")
            assert array.dtype == (np.int64 if is_label else np.float32), (work, name)


def test_all_arrays_of_programs_are_float32_but_tokens_and_labels(programs):
    for work in programs.PROGRAMS:
        integers = {"gpt": ("x", "y"), "xception": ("y",)}.get(work, ())
        for name, array in programs.arrays(work, tiny=True).items():
            right = np.int64 if name in integers else np.float32
            assert array.dtype == right, (work, name)


def test_the_programs_have_the_sizes_that_are_listed(programs):
    shapes = shapes_in(programs)
    gpt, ends = shapes("gpt"), [(256, 2000), (2000,), (16, 128), (16, 128)]
    assert gpt[:2] == [(2000, 256), (128, 256)] and gpt[-4:] == ends
    assert gpt.count((256, 8, 32)) == 3 * 4 and gpt.count((256, 1024)) == 4
    assert shapes("xception")[-3:] == [(10,), (32, 48, 48, 3), (32,)]
    inputs = [(64, 28, 28, 1), (64, 1, 1, 1), (2, 64, 64)]
    assert shapes("wgan_gp")[-3:] == inputs
    kernels = [shape for shape in shapes("pinn")[:-3] if len(shape) == 2]
    assert kernels == [(2, 64), (64, 64), (64, 64), (64, 64), (64, 1)]
    assert shapes("pinn")[-3:] == [(8192, 2), (256, 1), (256, 2)]


def test_a_program_without_its_gradient_penalty_has_other_numbers(
    programs, compare, monkeypatch
):
    def first_numbers():
        step, numbers = compare.make("eager", "wgan_gp", True, "CPU", False, "")
        return [numbers(step()) for _ in range(2)]

    found = first_numbers()
    monkeypatch.setattr("works_programs_tensorflow.PENALTY", 0.0)
    rows = {name: {"ms": 1.0, "numbers": found} for name in ("a", "b")}
    rows["c"] = {"ms": 1.0, "numbers": first_numbers()}
    compare._compare_numbers("wgan_gp", rows, 2e-3)
    assert "error" in rows["c"] and rows["a"] == {"ms": 1.0}


def test_weights_of_queries_keys_and_values_are_found_where_they_are_fused(programs):
    kernels = np.arange(12.0).reshape(3, 2, 2)
    fused = {"block0_qkv_kernel": kernels, "head_bias": np.ones(2)}
    assert np.array_equal(programs.unfused(fused, "block0_key_kernel"), [4, 5, 6, 7])
    assert programs.unfused(fused, "head_bias") is fused["head_bias"]
