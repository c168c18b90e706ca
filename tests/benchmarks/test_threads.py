"""`benchmarks/threads.py` with tapewright alone and tiny sizes: rows, failures, summary."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
pytestmark = pytest.mark.skipif(not CORES, reason="needs the affinity of Linux")

# Each row fails in another way in one of the implementations.
FAILING = """
import os, sys
sys.path.insert(0, {folder!r})
import threads

def make(name, row, tiny):
    calls = []

    def step():
        calls.append(row)
        if (name, row) == ("numpy", "W3") and len(calls) > 4:
            raise ValueError("while it is measured")
        return float((name, row) == ("numpy", "W4"))

    if (name, row) == ("numpy", "W1"):
        raise ValueError("no such layer")
    if (name, row) == ("numpy", "W2"):
        os._exit(1)
    return step, lambda found: [[1 + found]]

if sys.argv[1] == "--worker":
    threads.serve(make, sys.argv[2])
else:
    sys.exit(threads.main())
"""


def run(*options, script="threads.py"):
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    return subprocess.run(
        [sys.executable, script, *options],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def lines(done):
    return [line for line in done.stdout.splitlines() if line.startswith("| ")][1:]


@pytest.fixture
def threads(monkeypatch):
    monkeypatch.delitem(sys.modules, "layers", raising=False)  # as a test folder
    monkeypatch.syspath_prepend(FOLDER)
    import threads

    return threads


def test_rows_are_measured_for_each_number_of_threads_and_shown_again(tmp_path):
    file, picture = tmp_path / "figures.json", tmp_path / "times.png"
    rows, counts = "W1,dense relu", [1, 2][:CORES]
    asked = ("--threads", ",".join(map(str, counts)), "--rows", rows)
    done = run("--dry-run", *asked, "--peers", "native", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text())
    assert figures["threads"] == counts
    assert [row["name"] for row in figures["rows"]] == rows.split(",")
    for row in figures["rows"]:
        assert len(row["at"]) == len(counts)
        for at in row["at"]:
            assert at["ms"]["native"] > 0 and not at["wrong"]
    shown = run("--read", str(file), "--picture", str(picture))
    assert shown.returncode == 0, shown.stderr
    assert lines(shown) == lines(done) and len(lines(done)) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_after_a_failure_the_others_and_the_next_rows_are_measured(tmp_path):
    file, script = tmp_path / "figures.json", tmp_path / "failing.py"
    script.write_text(FAILING.format(folder=str(FOLDER)))
    rows = ("--rows", "W1,W2,W3,W4,W10", "--json", str(file))
    asked = ("--dry-run", "--threads", "1", "--peers", "native,numpy", *rows)
    done = run(*asked, script=str(script))
    assert done.returncode == 1, done.stderr
    found = {row["name"]: row["at"][0] for row in json.loads(file.read_text())["rows"]}
    assert all(found[work]["ms"]["native"] > 0 for work in found) and len(found) == 5
    failed = [work for work in found if "numpy" not in found[work]["ms"]]
    assert failed == ["W1", "W2", "W3"] == [w for w in found if found[w]["errors"]]
    assert found["W4"]["wrong"] and not found["W10"]["wrong"]
    assert "FAILS: W1, threads=1, numpy: ValueError: no such layer" in done.stdout
    assert "OTHER NUMBERS: W4, threads=1, numpy" in done.stdout


def test_no_row_starts_when_the_time_is_over():
    done = run("--dry-run", "--peers", "numpy", "--rows", "W1,gelu", "--minutes", "0")
    assert done.returncode == 0 and not lines(done)
    assert "not measured within 0 minutes: W1, gelu" in done.stdout


def row(name, native, torch):
    pairs = [{"native": a, "torch": b} for a, b in zip(native, torch)]
    at = [{"ms": pair, "errors": {}, "wrong": []} for pair in pairs]
    return {"name": name, "at": at}


def test_the_summary_lists_rows_that_fall_behind_or_become_slower(threads):
    rows = [
        row("scales", [8, 4, 1], [8, 5, 2]),
        row("falls behind", [8, 4, 2], [8, 4, 1]),
        row("ahead", [4, 2, 1], [8, 6, 2]),
        row("slower", [4, 2, 3], [9, 9, 9]),
    ]
    names, counts = ["native", "torch"], [1, 2, 16]
    found = threads.summary({"names": names, "threads": counts, "rows": rows})
    medians, _, after = found.partition("Larger ratios with 16 threads than with 2: ")
    behind, _, slower = after.partition("Slower with 16 threads than with fewer:")
    assert "threads=2: median 0.57, largest 1.00 of 4" in medians
    assert behind.splitlines() == [
        "3, of which 1 above 1",
        "  falls behind: 1.00, then 2.00 (torch)",
        "  ahead: 0.33, then 0.50 (torch)",
        "  slower: 0.22, then 0.33 (torch)",
    ]
    assert slower.split("\n")[1:] == ["  slower: 3 ms, 2 ms with 2"]


def test_each_row_has_a_step_with_finite_numbers(threads):
    with tw.config.use_target("numpy"):
        for name in threads.ROWS:
            step, numbers = threads.make("numpy", name, tiny=True)
            if name not in ("resnet20", "unet"):  # as vit, and slower
                assert np.isfinite(numbers(step())).all(), name


def test_places_have_the_cores_of_their_threads(threads, monkeypatch):
    monkeypatch.setattr(threads, "usable_cores", lambda: ([0, 2, 1, 3, 5], 5))
    found = threads.places(["native", "jax"], [1, 2, 4])
    assert found["native", 1] == [0] and found["jax", 1] == [2]
    assert found["native", 2] == [0, 2] and found["jax", 2] == [1, 3]
    assert found["native", 4] == found["jax", 4] == [0, 2, 1, 3]
