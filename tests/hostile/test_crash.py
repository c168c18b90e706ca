"""Files of a process that is killed while it saves."""

import os
import subprocess
import sys

import pytest

SCRIPT = os.path.join(os.path.dirname(__file__), "crash.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_after_fifty_kills_at_random_moments_every_file_is_whole(tmp_path):
    command = [sys.executable, SCRIPT, "50", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("50 kills in ")
