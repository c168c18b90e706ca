"""README and docs do what they say: their snippets print what stands below them."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tapewright.keras.utils import clear_session

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(page):
    """Code, and what it prints, of each snippet of a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)


SNIPPETS = snippets(ROOT / "README.md")


@pytest.mark.parametrize(
    "source, printed",
    [
        pytest.param(*snippet, id=f"{page.stem}-{i}")
        for page in PAGES
        for i, snippet in enumerate(snippets(page))
    ],
)
def test_a_snippet_prints_what_stands_below_it(source, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the files land that a page writes
    clear_session()  # a page's layers are the first ones: dense, dense_1, ...
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_every_snippet_has_its_output():
    assert len(SNIPPETS) == README.count("```python") == README.count("```text")


def test_the_first_snippet_is_short():
    source, _ = SNIPPETS[0]
    assert sum(bool(line) for line in source.splitlines()) <= 15


def test_the_table_of_examples_is_complete():
    listed = set(re.findall(r"^\| `(examples/\w+\.py)`", README, re.MULTILINE))
    assert listed == {f"examples/{path.name}" for path in ROOT.glob("examples/*.py")}


def test_the_map_of_folders_is_complete():
    listed = set(re.findall(r"^\| `([\w/]+)/` \|", README, re.MULTILINE))
    assert all((ROOT / folder).is_dir() for folder in listed)
    with_python = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("[a-z]*/*.py")}
    assert with_python <= listed | {folder.partition("/")[0] for folder in listed}


def test_the_files_it_names_are_there():
    for name in re.findall(r"`([\w/]+\.(?:py|md)|LICENSE|\.ci/run)`", README):
        assert (ROOT / name).is_file(), name


def test_the_ci_run_finds_the_commands_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    wanted = re.findall(r"^readme '(.*)'$", script, re.MULTILINE)
    assert len(wanted) == 2
    blocks = "".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL)).splitlines()
    for command in wanted:
        first = next(line for line in README.splitlines() if command in line)
        assert first in blocks


def test_the_environment_variables_it_names_are_read_somewhere():
    code = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("framework", "datasets")
        for path in (ROOT / folder).rglob("*.py")
    )
    for name in re.findall(r"TAPEWRIGHT_\w+", README):
        assert name in code
