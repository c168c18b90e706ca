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


def test_a_dry_run_makes_the_table_of_the_works_with_equal_numbers(tmp_path):
    file = tmp_path / "figures.json"
    works = "W1,W3,row,epoch_8"
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


def test_the_works_have_the_sizes_that_are_listed(works):
    def shapes(work):
        return [array.shape for array in works.arrays(work, tiny=False).values()]

    assert shapes("W1") == [(784, 128), (128,), (128, 10), (10,), (128, 784), (128, 10)]
    assert shapes("W4")[3:6] == [(1024, 1024), (1024,), (1024,)]
    assert shapes("W10")[4:] == [(1600, 10), (10,), (64, 28, 28, 1), (64, 10)]
    assert shapes("epoch")[4:] == [(60_000, 784), (60_000,)]


def test_all_arrays_are_float32_but_labels(works):
    for work in ("ops", *works.STEPS, *works.DERIVATIVES, *works.FILES):
        for name, array in works.arrays(work, tiny=True).items():
            is_label = name == "y" and work.startswith("epoch")
            assert array.dtype == (np.int64 if is_label else np.float32), (work, name)
