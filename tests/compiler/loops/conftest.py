"""Lets the tests of loop nests import the interpreter beside them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
