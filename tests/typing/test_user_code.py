"""The types of the public face, as basedpyright finds them in a file of user code."""

import json
import re
import runpy
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

HERE = Path(__file__).parent
USER_CODE = HERE / "user_code.py"
REVEALED = re.compile(r" *reveal_type\(.*\)  # (.*)")
LINES = dict(enumerate(USER_CODE.read_text().splitlines(), 1))

# The checker writes out what these stand for.
ALIASES = ["TensorLike", "Axes", "ShapeLike", "DTypeLike"]


@pytest.fixture(scope="module")
def found(python, once):
    """What the checker says, as pairs of a line and a text: revealed types, errors."""
    return once("user_code", lambda folder: checked(folder, python))


def checked(folder, python):
    code = f"from tapewright.core.typing import {', '.join(ALIASES)}\n" + "".join(
        f"def f_{name}(x: {name}): reveal_type(x)\n" for name in ALIASES
    )
    (folder / "aliases.py").write_text(code)
    shutil.copy(USER_CODE, folder)
    settings = {"typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson"]
    command += ["--pythonpath", str(python), "aliases.py", "user_code.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    revealed, errors, aliases = {}, {}, {}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        line = each["range"]["start"]["line"] + 1
        told = re.fullmatch(r'Type of "(.*)" is "(.*)"', each["message"], re.DOTALL)
        if each["file"].endswith("aliases.py"):
            assert told, each
            aliases[told[2]] = ALIASES[line - 2]
        elif told:
            revealed[line] = told[2]
        else:
            errors[line] = each["message"]
    for line, text in revealed.items():
        for expansion in sorted(aliases, key=len, reverse=True):
            text = text.replace(expansion, aliases[expansion])
        revealed[line] = text
    return revealed, errors


def test_users_see_the_real_types(found):
    wanted = {n: m[1] for n, text in LINES.items() if (m := REVEALED.match(text))}
    assert found[0] == wanted


def test_wrong_calls_and_no_others_are_refused(found):
    wanted = {n for n, text in LINES.items() if text.endswith("# error")}
    assert set(found[1]) == wanted, found[1]


def test_what_runs_is_of_the_revealed_class(monkeypatch):
    shown = []
    monkeypatch.setattr(typing, "reveal_type", lambda x: shown.append(x) or x)
    runpy.run_path(str(USER_CODE))
    wanted = [m[1] for t in LINES.values() if (m := REVEALED.match(t))]
    checked = 0
    for x, text in zip(shown, wanted, strict=True):
        if text.isidentifier():  # a class without parameters
            assert text in [kind.__name__ for kind in type(x).__mro__], text
            checked += 1
    assert checked > 30
