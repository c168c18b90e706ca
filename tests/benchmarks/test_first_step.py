"""`benchmarks/first_step.py` with tapewright alone and its smallest program."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def test_first_steps_are_measured_and_saved(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--programs", "mlp", "--peers", "none", "--rounds", "1", "--json", file]
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    done = subprocess.run(
        [sys.executable, "first_step.py", *options],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| mlp | " in done.stdout
    figures = json.loads(file.read_text())["mlp"]
    assert set(figures) == {"cold", "changed", "cached"} and min(figures.values()) > 0
