"""The worked example of an op is the code as it stands, and passes its test."""

import re
from pathlib import Path

import numpy as np

from tapewright.test import case, check_op, floats

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "background" / "how_it_is_built.md"
TEXT = PAGE.read_text(encoding="utf-8")
OP, LINE = re.findall(r"```python fragment\n(.*?)```", TEXT, re.DOTALL)


def test_the_op_is_in_its_file_word_for_word():
    assert OP in (ROOT / "framework/ops/nn/activation.py").read_text(encoding="utf-8")


def test_the_line_of_the_table_passes():
    check_op(eval(LINE, {"case": case, "floats": floats, "np": np}))


def test_the_table_of_floors_names_every_folder():
    table = TEXT[TEXT.index("| 0 |") : TEXT.index("## Walks through")]
    listed = {
        name
        for line in table.split("\n")
        for name in re.findall(r"`(\w+)`[:,;]?", line)
    }
    there = {path.stem for path in (ROOT / "framework").glob("*.py")}
    there |= {path.parent.name for path in ROOT.glob("framework/*/__init__.py")}
    assert there | {"layers", "optimizers", "datasets"} <= listed


def test_the_files_of_the_walks_exist_and_occur_once_in_a_walk():
    text = TEXT[TEXT.index("## Walks through") : TEXT.index("## An op, from")]
    for walk in text.split("\n**")[1:]:
        assert len(walk.strip().splitlines()) <= 18
        folder, seen = None, []
        for name in re.findall(r"`([\w/]+\.py)`", walk):
            folder = name.rpartition("/")[0] or folder
            path = name if "/" in name else f"{folder}/{name}"
            assert path not in seen, f"{path} is named twice"
            seen.append(path)
            at_root = path.startswith(("tests/", "layers/", "optimizers/"))
            assert (ROOT / ("" if at_root else "framework") / path).is_file(), path


def test_contributing_is_short_enough_to_be_read():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
