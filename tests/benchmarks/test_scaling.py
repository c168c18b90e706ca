"""`benchmarks/scaling.py` with tapewright alone and tiny sizes."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def run(*options):
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    return subprocess.run(
        [sys.executable, "scaling.py", *options],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_sweeps_are_measured_saved_shown_again_and_drawn(tmp_path):
    file, picture = tmp_path / "figures.json", tmp_path / "times.png"
    small = ("--sweeps", "width,depth", "--sizes", "2,3", "--rounds", "1")
    done = run(*small, "--seconds", "0.01", "--peers", "numpy,eager", "--json", file)
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert list(figures) == ["machine", "width", "depth"]
    assert all(figures["depth"]["3"][name]["ms"] > 0 for name in ("numpy", "eager"))
    shown = run("--read", file, "--picture", picture)
    assert shown.returncode == 0, shown.stderr

    def rows(text):
        return [line for line in text.splitlines() if line.startswith("| ")]

    assert rows(shown.stdout) == rows(done.stdout) and len(rows(done.stdout)) == 6
    assert picture.read_bytes().startswith(b"\x89PNG")
