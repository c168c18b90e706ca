"""The worked example of CONTRIBUTING.md is the code as it stands, and passes its test."""

import re
from pathlib import Path

import numpy as np

from tapewright.testing import case, check_op, floats

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
OP, LINE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_op_is_in_its_file_word_for_word():
    assert OP in (ROOT / "framework/ops/activation.py").read_text(encoding="utf-8")


def test_the_line_of_the_table_passes():
    check_op(eval(LINE, {"case": case, "floats": floats, "np": np}))


def test_the_files_of_the_floors_are_the_files_there_are():
    table = TEXT[TEXT.index("| ground |") : TEXT.index("`datasets/*` stands")]
    listed = set(re.findall(r"`([\w/*]+)`", table))
    there = {path.stem for path in (ROOT / "framework").glob("*.py")}
    there |= {f"{path.parent.name}/*" for path in ROOT.glob("framework/*/__init__.py")}
    assert listed == there | {"layers/*", "optimizers/*"}
