"""`benchmarks/programs.py` with tapewright alone and its smallest program."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def test_steps_are_measured_and_saved(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--programs", "towers", "--peers", "native", "--rounds", "1"]
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    done = subprocess.run(
        [sys.executable, "programs.py", *options, "--seconds", "0.05", "--json", file],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| towers | " in done.stdout
    assert min(json.loads(file.read_text())["towers"]["native"]) > 0
