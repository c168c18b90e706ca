"""The README and the pages of the site do what they say: their code runs, and prints that.

The blocks of a page run in order in one namespace, in an empty folder, as a reader types
them. A ``text`` block below a ``python`` block is its output, word for word, and a
``console`` block shows commands behind ``$`` with theirs. A ``python gpu`` block needs a GPU,
a ``python several`` block several processes, a ``python network`` block a network, a
``python elsewhere`` block another library, and a ``python fragment`` block the rest of its
file; these only have to be valid Python here.
"""

import contextlib
import io
import linecache
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tapewright import config
from tapewright.core.hardware import devices
from tapewright.keras.utils import clear_session, set_random_seed

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("_build", "examples", "reference/names")
PAGES = [ROOT / "README.md"] + [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if not path.relative_to(ROOT / "docs").as_posix().startswith(GENERATED)
]
BLOCK = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^ *```(\{?\w*)", re.MULTILINE)
RUN = {"python", "text", "console"}
COMPILED = {"several", "network", "elsewhere", "fragment"}
SHOWN = {"c", "sh", "slurm"}  # programs, set-up commands, job files: not run here


def blocks(page):
    """The blocks of a page: language, the words behind it, line, content."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        indent, language, words, body = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        lines = [part.removeprefix(indent) for part in body.splitlines(keepends=True)]
        yield language, words.split(), line, "".join(lines)


def name_of(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


def run(source, where, line, namespace):
    """Run a block; return what it prints. Errors name the line of the page."""
    out, source = io.StringIO(), "\n" * (line - 1) + source
    code = compile(source, str(where), "exec")
    # Functions with control flow are converted from their source.
    linecache.cache[str(where)] = 1, None, source.splitlines(True), str(where)
    with contextlib.redirect_stdout(out):
        exec(code, namespace)
    return out.getvalue()


def console(block):
    """Run the commands of a ``console`` block; return it as a terminal would show it."""
    shown = ""
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        words = [sys.executable if w == "python" else w for w in shlex.split(command)]
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        shown += f"$ {command}\n{done.stdout}"
    return shown


@pytest.fixture
def target():
    """A page may choose a target; the tests after it have theirs again."""
    with config.use_target(config.target()):
        yield


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_prints_what_stands_below_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the files land that a page writes
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # pages never need it
    clear_session()  # a page's layers are the first ones: dense, dense_1, ...
    set_random_seed(0)
    namespace, printed = {"__name__": "__main__"}, None
    for language, words, line, content in blocks(page):
        where = f"{name_of(page)}:{line}"
        if language == "python":
            assert not printed, f"the block above {where} prints {printed!r}"
            without_gpu = "gpu" in words and not devices.gpu_count()[0]
            if COMPILED & {*words} or without_gpu:
                compile(content, where, "exec")
                printed = ""
            else:
                printed = run(content, page, line, namespace)
        elif language == "text" and printed is not None:
            assert printed == content, f"{where}: printed is\n{printed}"
            printed = None
        elif language == "console":
            assert console(content) == content, where
    assert not printed, f"the last block of {name_of(page)} prints {printed!r}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_known_language(page):
    text = page.read_text(encoding="utf-8")
    opened = [word for word in FENCE.findall(text)[::2] if word[:1] != "{"]
    assert set(opened) <= RUN | SHOWN, set(opened) - RUN - SHOWN
