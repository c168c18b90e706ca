"""The result of `pip install`: one package of the four folders, and nothing beside it.

It holds of an ordinary install, as by a wheel, if the tests run with one. If they run with
an editable install, one is made of a copy of the checkout.
"""

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tapewright

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("framework", "layers", "optimizers", "datasets")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


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


def test_every_folder_with_python_in_it_is_a_listed_package():
    setuptools = SETTINGS["tool"]["setuptools"]
    with_python = {
        file.parent.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*.py")
    }
    assert with_python == set(setuptools["package-dir"].values())
    assert set(setuptools["packages"]) == set(setuptools["package-dir"])


def test_a_package_is_named_after_its_folder():
    for package, folder in SETTINGS["tool"]["setuptools"]["package-dir"].items():
        expected = f"tapewright/{folder}".replace("tapewright/framework", "tapewright")
        assert package == expected.replace("/", ".")


def test_every_package_has_an_init_file():
    for folder in SETTINGS["tool"]["setuptools"]["package-dir"].values():
        assert (ROOT / folder / "__init__.py").is_file(), folder


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
    for package, folder in SETTINGS["tool"]["setuptools"]["package-dir"].items():
        for file in (ROOT / folder).glob("*.py"):
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


def test_the_extras_are_twelve():
    extras = SETTINGS["project"]["optional-dependencies"]
    expected = (
        "cuda12 cuda13 bfloat16 native mpi nccl plot graphviz image tensorboard docs "
        "test"
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
    """A folder into which a copy of the checkout was installed, without the network."""
    pytest.importorskip("setuptools", reason="building needs setuptools")
    version = importlib.metadata.version("setuptools")
    if int(version.partition(".")[0]) < 77:
        pytest.skip(f"building needs setuptools 77 or newer, not {version}")
    copy, site = folder / "checkout", folder / "site"
    copy.mkdir()
    for item in (*FOLDERS, "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / item).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / item, copy / item, ignore=ignored)
        else:
            shutil.copy(ROOT / item, copy)
    options = (
        "--quiet --no-deps --no-index --no-build-isolation --no-cache-dir --target"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options.split(), site, copy],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return site


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
        for package, folder in SETTINGS["tool"]["setuptools"]["package-dir"].items()
        for file in (ROOT / folder).glob("*.py")
    }
    marker = Path("tapewright/py.typed")  # tells type checkers that there are types
    names = Path("tapewright/api/known_names.txt")
    packaged = {path for path in installed if path.parts[0] == "tapewright"}
    assert packaged == expected | {marker, names}


def test_an_install_carries_its_licence(site):
    (licence,) = site.glob("tapewright-*.dist-info/**/LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_pre_commit_has_the_ruff_of_the_tests():
    hooks = ROOT / ".pre-commit-config.yaml"
    if not hooks.exists():  # no part of an sdist
        pytest.skip("a checkout is needed")
    extra = SETTINGS["project"]["optional-dependencies"]["test"]
    (ruff,) = [each for each in extra if names([each]) == ["ruff"]]
    pinned = re.findall(r"additional_dependencies: (.*)", hooks.read_text())
    assert pinned and set(pinned) == {f'["{ruff}"]'}
