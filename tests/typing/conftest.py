"""An environment with an ordinary install of the package, for the type checker."""

import shutil
import sysconfig
import venv
from pathlib import Path

import pytest

import tapewright


@pytest.fixture(scope="session")
def python(once):
    """Return the interpreter of an environment with a copy of the package."""
    pytest.importorskip("basedpyright", reason="the checker comes with the extra lint")
    return once("environment", _install)


def _install(folder):
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    unwanted = shutil.ignore_patterns("__pycache__")
    package = Path(tapewright.__file__).parent
    shutil.copytree(package, site / "tapewright", ignore=unwanted)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"
