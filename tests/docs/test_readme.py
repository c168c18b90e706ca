"""The README is short, names files that are there, and gives commands that CI runs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOW_IT_IS_BUILT = ROOT / "docs" / "background" / "how_it_is_built.md"
SETTINGS = ROOT / "docs" / "background" / "configuration.md"


def test_it_is_at_most_100_lines():
    assert len(README.splitlines()) <= 100


def test_its_snippet_is_short_and_has_its_output():
    (source,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert sum(bool(line) for line in source.splitlines()) <= 15
    assert README.count("```text") == 1


def test_the_files_it_names_are_there():
    quoted = re.findall(r"`([\w/]+\.(?:py|md|cff)|LICENSE|\.ci/run|\w+/)`", README)
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(linked) > 20
    for name in (*quoted, *linked):
        assert (ROOT / name).exists(), name


def commands():
    """The commands of the blocks, which `.ci/run` gives in an environment of its own."""
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE))
    each = [part for line in blocks.splitlines() for part in line.split(" && ")]
    made = '"$python" -m venv "$work/venv"'
    each = [part.replace("python3 -m venv .venv", made) for part in each]
    return [re.sub(r"^\.venv/bin/(\S+)", r'"$bin/\1"', part) for part in each]


def test_ci_runs_the_commands_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert len(commands()) == 7
    for command in commands():  # CI may add options
        assert re.search(rf"{re.escape(command)}(?= |$)", script, re.MULTILINE), command


def test_the_map_of_folders_is_complete():
    text = HOW_IT_IS_BUILT.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE))
    assert all((ROOT / folder).is_dir() for folder in listed)
    with_python = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("[a-z]*/*.py")}
    assert with_python <= listed | {folder.partition("/")[0] for folder in listed}


def test_the_environment_variables_of_the_page_on_settings_are_read_somewhere():
    code = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("framework", "datasets")
        for path in (ROOT / folder).rglob("*.py")
    )
    named = re.findall(r"TAPEWRIGHT_\w+", SETTINGS.read_text(encoding="utf-8"))
    assert len(set(named)) > 8
    for name in named:
        assert name in code


def test_the_gallery_shows_every_example():
    order = (ROOT / "docs" / "_ext" / "gallery.py").read_text(encoding="utf-8")
    for path in ROOT.glob("examples/*.py"):
        assert f'"{path.stem}"' in order, path.stem
