"""The result of `pip install`: one package of the four folders, and nothing beside it.

It holds of an ordinary install, as by a wheel, if the tests run with one. If they run with
an editable install, one is made of a copy of the checkout.
"""

import functools
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest

import tapewright

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"]
FOLDERS = tuple(SOURCES)


def names(requirements):
    return [re.match(r"[\w.-]+", requirement)[0] for requirement in requirements]


@functools.cache
def python(source):
    """What a fresh interpreter prints that knows of the checkout only by its install."""
    done = subprocess.run(
        [sys.executable, "-c", source], cwd="/", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def packages():
    """Return the folder of each package: every one with Python files, by its name."""
    folders = {file.parent for each in FOLDERS for file in (ROOT / each).rglob("*.py")}
    found = {}
    for folder in folders:
        top, *rest = folder.relative_to(ROOT).parts
        found[".".join([SOURCES[top].replace("/", "."), *rest])] = folder
    return found


def test_the_package_is_made_of_four_folders():
    assert SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == [
        *FOLDERS
    ]
    assert SOURCES == {
        "framework": "tapewright",
        "layers": "tapewright/layers",
        "optimizers": "tapewright/optimizers",
        "datasets": "tapewright/datasets",
    }


def test_every_package_has_an_init_file():
    for folder in packages().values():
        assert (folder / "__init__.py").is_file(), folder


EVERY_MODULE = """
import importlib, pkgutil, sys, tapewright
subpackages = tapewright.datasets, tapewright.layers, tapewright.optimizers
for package in (tapewright, *subpackages):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
for name, module in {id(m): (n, m) for n, m in reversed(sys.modules.items())}.values():
    if file := getattr(module, "__file__", None):
        print(name, file, sep="=")
"""


def own_modules():
    """Names and files of the modules that are ours, once all of them are imported.

    A module that answers to two names (``tapewright.keras.layers``) is still one.
    """
    pairs = [line.split("=", 1) for line in python(EVERY_MODULE)]
    ours = tuple(str(ROOT / folder) + os.sep for folder in FOLDERS)
    return [
        (name, file)
        for name, file in pairs
        if name.partition(".")[0] == "tapewright" or file.startswith(ours)
    ]


def test_no_file_is_loaded_under_two_names():
    files = [file for _, file in own_modules()]
    assert len(files) == len(set(files))


def test_every_module_can_be_imported_under_its_full_name():
    loaded = {name for name, _ in own_modules()}
    for package, folder in packages().items():
        for file in folder.glob("*.py"):
            stem = "" if file.stem == "__init__" else f".{file.stem}"
            assert package + stem in loaded


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_no_module_of_its_own_name(folder):
    found = f"import importlib.util as u; print(getattr(u.find_spec({folder!r}), 'origin', ''))"
    assert not any(str(ROOT) in line for line in python(found))


def test_the_tests_run_without_the_checkout_on_the_path():
    assert str(ROOT) not in [os.path.abspath(p) for p in sys.path]


LOADED = "import sys, tapewright; print(*sys.modules, sep='\\n')"


@pytest.mark.parametrize(
    "module",
    [
        "h5py",
        "cupy",
        "llvmlite",
        "matplotlib",
        "pydot",
        "PIL",
        "tqdm",
        "torch",
        "tensorflow",
        "pytest",
    ],
)
def test_importing_tapewright_does_not_import(module):
    assert module not in python(LOADED)


def test_the_dependencies_are_three():
    assert names(SETTINGS["project"]["dependencies"]) == ["numpy", "h5py", "tqdm"]


def test_the_extras_are_sixteen():
    extras = SETTINGS["project"]["optional-dependencies"]
    expected = (
        "cuda12 cuda13 bfloat16 native mpi nccl plot graphviz image tensorboard onnx "
        "safetensors docs test test-cuda lint"
    )
    assert list(extras) == expected.split()
    assert names(extras["cuda12"]) == ["cupy-cuda12x"]
    assert names(extras["cuda13"]) == ["cupy-cuda13x"]
    assert names(extras["bfloat16"]) == ["ml_dtypes"]
    assert names(extras["native"]) == ["llvmlite"]


def test_the_version_is_the_same_everywhere():
    assert tapewright.__version__ == SETTINGS["project"]["version"]
    assert f"## {tapewright.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_citation_is_of_the_newest_version_in_the_changelog():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    heading = re.search(
        r"^## ([\d.]+) \(([\d-]+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert heading[1] == SETTINGS["project"]["version"]
    assert f"\nversion: {heading[1]}\ndate-released: {heading[2]}\n" in citation
    assert f"\nlicense: {SETTINGS['project']['license']}\n" in citation


def test_the_changelog_has_one_line_for_a_change():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    assert sum(line.startswith("- ") for line in lines) > 100
    assert not [line for line in lines if line.startswith("  ")]


@pytest.fixture(scope="module")
def site(once):
    """The folder into which the package is installed in the ordinary way."""
    here = Path(tapewright.__file__)
    return once("site", built_site) if here.is_relative_to(ROOT) else here.parents[1]


def built_site(folder):
    """A folder into which a copy of the checkout was installed."""
    install(sys.executable, "--target", folder / "site", checkout(folder))
    return folder / "site"


def checkout(folder):
    """Copy to a folder what a build reads, so that it changes nothing here."""
    copy = folder / "checkout"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    shutil.copytree(ROOT / ".build", copy / ".build", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def install(python, *arguments):
    """Have pip install something for an interpreter, without the network."""
    pytest.importorskip("hatchling", reason="building needs the extra test")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    alone = "--no-deps --no-index --no-build-isolation --no-cache-dir".split()
    done = subprocess.run([*pip, *alone, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(site):
    """The files that the install has brought, relative to ``site``, without bytecode."""
    (metadata,) = importlib.metadata.distributions(name="tapewright", path=[str(site)])
    return {Path(path) for path in metadata.files if path.suffix != ".pyc"}


def test_an_install_adds_one_package_and_its_metadata(site, installed):
    version = SETTINGS["project"]["version"]
    added = {path.parts[0] for path in installed}
    assert added == {"tapewright", f"tapewright-{version}.dist-info"}
    assert all((site / path).is_file() for path in installed)


def test_an_install_holds_every_module_and_no_other_file(installed):
    expected = {
        Path(package.replace(".", "/"), file.name)
        for package, folder in packages().items()
        for file in folder.glob("*.py")
    }
    marker = Path("tapewright/py.typed")  # tells type checkers that there are types
    names = Path("tapewright/api/names/known_names.txt")
    packaged = {path for path in installed if path.parts[0] == "tapewright"}
    assert packaged == expected | {marker, names}


def test_an_install_carries_its_licence(site):
    (licence,) = site.glob("tapewright-*.dist-info/**/LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_pre_commit_has_the_ruff_of_the_tests():
    hooks = ROOT / ".pre-commit-config.yaml"
    if not hooks.exists():  # no part of an sdist
        pytest.skip("a checkout is needed")
    extra = SETTINGS["project"]["optional-dependencies"]["lint"]
    (ruff,) = [each for each in extra if names([each]) == ["ruff"]]
    pinned = re.findall(r"additional_dependencies: (.*)", hooks.read_text())
    assert pinned and set(pinned) == {f'["{ruff}"]'}


# ---------------------------------------------------------------------- editable installs


@pytest.fixture(scope="module")
def editable(once):
    """A copy of the checkout, and an environment into which it is installed by ``-e``."""
    return once("editable", built_editable)


def built_editable(folder):
    venv.create(folder / "venv", symlinks=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python, copy = folder / "venv" / "bin" / "python", checkout(folder)
    install(python, "--editable", copy)
    # Written after the install, which must find it all the same.
    source = "def half(x: float) -> float:\n    return x / 2\n"
    (copy / "layers" / "added_later.py").write_text(source)
    return copy, python


@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
def test_an_editable_install_finds_a_file_that_is_added_later(editable):
    copy, python = editable
    code = "from tapewright.layers.added_later import half; print(half(3.0), half.__module__)"
    # -E, as a PYTHONPATH comes before the install.
    done = subprocess.run([python, "-E", "-c", code], capture_output=True, text=True)
    assert done.stdout == "1.5 tapewright.layers.added_later\n", done.stderr


@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
def test_an_sdist_of_a_checkout_with_an_editable_install_has_the_sources(
    editable, tmp_path
):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    subprocess.run([*build, "--directory", tmp_path], cwd=editable[0], check=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "framework/core/tensor.py",
        "layers/core.py",
        ".build/build_hooks.py",
    } <= files
    assert not any(name.startswith(".editable") for name in files)


REVEALED = {
    "tw.constant(1.0)": "Tensor",
    "tw.exp(tw.constant(1.0))": "Tensor",
    "tw.keras.layers.Dense(3)": "Dense",
    "tw.keras.Sequential()": "Sequential",
    "tw.layers.Dense(3)": "Dense",
    "tw.optimizers.Adam()": "Adam",
    "tw.datasets.digits.load_data": "(n_train: int = 10000",
    "half(3)": "float",  # of a module that the copy alone has
}


@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
def test_a_type_checker_sees_the_types_of_an_editable_install(editable, tmp_path):
    pytest.importorskip("basedpyright", reason="the checker comes with the extra lint")
    lines = [
        "import tapewright as tw",
        "from tapewright.layers.added_later import half",
    ]
    lines += [f"reveal_type({expression})" for expression in REVEALED]
    (tmp_path / "seen.py").write_text("\n".join(lines))
    checker = [sys.executable, "-m", "basedpyright", "--outputjson"]
    done = subprocess.run(
        [*checker, "--pythonpath", editable[1], "seen.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    messages = json.loads(done.stdout)["generalDiagnostics"]
    found = [each["message"].split(" is ", 1)[-1].strip('"') for each in messages]
    assert len(found) == len(REVEALED), found
    for expected, text in zip(REVEALED.values(), found):
        assert text.startswith(expected), found


# ------------------------------------------------------------------ the README of an index


@pytest.fixture(scope="module")
def metadata(site):
    (found,) = importlib.metadata.distributions(name="tapewright", path=[str(site)])
    return found.metadata


RELATIVE = re.compile(r"\]\((?!https?:|#)")


def test_the_readme_of_an_index_has_no_relative_links(metadata):
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "# tapewright" in metadata.get_payload()
    assert RELATIVE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert not RELATIVE.search(metadata.get_payload())


def test_links_and_pictures_lead_to_the_address_of_the_source():
    sys.path.insert(0, str(ROOT / ".build"))
    try:
        pytest.importorskip("hatchling", reason="building needs the extra test")
        from build_hooks import with_absolute_links
    finally:
        sys.path.remove(str(ROOT / ".build"))
    text = "![A b](docs/c.png), [d](docs/e.md#f), [g](https://h.i) and [j](#k)"
    assert with_absolute_links(text, "https://l.m/n", "v1") == (
        "![A b](https://l.m/n/raw/v1/docs/c.png), [d](https://l.m/n/blob/v1/docs/e.md#f), "
        "[g](https://h.i) and [j](#k)"
    )
    assert with_absolute_links(text, None, "v1") == (
        "*A b*, d, [g](https://h.i) and [j](#k)"
    )
