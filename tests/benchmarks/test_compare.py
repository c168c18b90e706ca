"""`benchmarks/compare.py` with tapewright alone and tiny sizes: numbers, tables, files."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
OURS = "numpy,eager"


def run(*options, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    return subprocess.run(
        [sys.executable, "compare.py", *options],
        cwd=FOLDER, env=environment | variables, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import compare

    return compare


@pytest.fixture
def figures(tmp_path):
    """A file as `--json` writes it, of a run with peers."""
    step = {"native": 1.0, "eager": 3.0, "torch": 2.0, "torch_compile": 4.0}
    rows = {name: {"ms": ms, "peak": 100 * ms} for name, ms in step.items()}
    once = {"native": {"first": 300.0, "again": 80.0}, "torch": {"first": 20.0}}
    figures = {"machine": {"CPU": "one"}, "W1": rows, "hessian": rows, "first": once}
    file = tmp_path / "figures.json"
    file.write_text(json.dumps(figures))
    return file


def test_a_dry_run_times_works_with_equal_numbers(tmp_path):
    file, works = tmp_path / "figures.json", "ops,ops_gradient,W1,batch_jacobian,epoch"
    options = ("--dry-run", "--works", works, "--peers", OURS, "--json", str(file))
    done = run(*options, OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    dropped = "^environment: without .*OPENBLAS_NUM_THREADS=1"  # it pins OpenBLAS
    assert re.search(dropped, done.stdout, re.M)
    assert "FAILS" not in done.stderr
    figures = json.loads(file.read_text())
    for work in works.split(","):
        assert all(figures[work][name]["ms"] > 0 for name in OURS.split(","))
    assert "cores" in figures["machine"]["CPU"]
    assert "numpy" in figures["machine"]["versions"]
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert sum("digits step: MLP 784-128-10" in row for row in rows) == 1


def test_what_happens_once_is_measured_in_new_processes(tmp_path):
    file, works = tmp_path / "figures.json", "first,import,write,read"
    done = run("--dry-run", "--works", works, "--peers", OURS, "--json", str(file))
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert figures["first"]["numpy"]["first"] > 0
    assert "| peak memory of the digits step" in done.stdout
    # one for each package
    assert all(list(figures[work]) == ["numpy"] for work in works.split(",")[1:])


def test_saved_figures_are_shown_again_with_ratios_and_a_picture(figures, tmp_path):
    picture = tmp_path / "ratios.png"
    done = run("--read", str(figures), "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert "| work | eager / torch, eager | traced / torch compile |" in done.stdout
    assert "| Hessian `[20, 20, 20, 20]` | 1.5 | 0.25 |" in done.stdout
    assert "| 300 |  | 20 |  |" in done.stdout and "| 80 |  |  |  |" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_other_numbers_are_an_error_instead_of_a_time(compare):
    rows = {name: {"ms": 1.0, "numbers": [[1.0, 2.0]]} for name in ("a", "b", "c")}
    rows["b"]["numbers"] = [[1.0, 2.1]]
    compare._compare_numbers("W1", rows, 2e-3)
    assert rows["a"] == rows["c"] == {"ms": 1.0}
    assert "b: [[1.0, 2.1]]" in rows["b"]["error"]


def test_steps_that_train_return_to_their_first_weights(compare, monkeypatch):
    import works_tensorflow

    step, numbers = works_tensorflow.make("eager", "W1", True, "CPU", "")
    try:
        found = [numbers(step()) for _ in range(3)]
        step.reset()
        assert [numbers(step()) for _ in range(3)] == found
        assert found[0] != found[1]
    finally:
        works_tensorflow._STACK.close()
