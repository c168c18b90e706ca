"""`benchmarks/programs.py` and `functions.py` with tapewright alone and a small program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "script, program", [("programs.py", "towers"), ("functions.py", "q_learning")]
)
def test_steps_are_measured_and_saved(tmp_path, script, program):
    file = tmp_path / "figures.json"
    options = ["--programs", program, "--peers", "native", "--rounds", "1"]
    environment = {k: v for k, v in os.environ.items() if k != "TAPEWRIGHT_VERIFY"}
    done = subprocess.run(
        [sys.executable, script, *options, "--seconds", "0.05", "--json", file],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"| {program} | " in done.stdout
    assert min(json.loads(file.read_text())[program]["native"]) > 0
