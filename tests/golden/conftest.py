"""The files of this folder find each other by name, here and in child processes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore_glob = [
    "golden_*.py",
    "opened.py",
    "write.py",
]  # read by their own names
