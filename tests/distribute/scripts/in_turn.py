"""Run scripts of this folder one after the other, in one job: ``in_turn.py NAME ...``."""

import runpy
import sys
from pathlib import Path

for name in sys.argv[1:]:
    runpy.run_path(str(Path(__file__).with_name(name)))
