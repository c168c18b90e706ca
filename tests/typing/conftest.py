"""An environment with an ordinary install of the package, for the type checker."""

import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import tapewright

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def python(once):
    """Return the interpreter of an environment with the package and its dependencies.

    The tests run with an ordinary install, or with an editable one, through which the
    checker finds nothing: that is copied as an ordinary one would be.
    """
    if not Path(tapewright.__file__).is_relative_to(ROOT / "framework"):
        return Path(sys.executable)
    return once("environment", _install)


def _install(folder):
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "framework", site / "tapewright", ignore=unwanted)
    for name in ("layers", "optimizers", "datasets"):
        shutil.copytree(ROOT / name, site / "tapewright" / name, ignore=unwanted)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"
