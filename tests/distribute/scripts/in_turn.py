"""Run scripts of this folder one after the other, in one job: ``in_turn.py NAME ...``.

The first rank prints the name of each that has passed.
"""

import gc
import runpy
import sys
from pathlib import Path

from tapewright import keras  # noqa: F401
from tapewright.core.communication.job import communicator

gc.freeze()  # or each collection would look at all that was imported
for name in sys.argv[1:]:
    runpy.run_path(str(Path(__file__).with_name(name)))
    if communicator().rank == 0:
        print(name)
