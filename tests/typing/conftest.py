"""An environment with an ordinary install of the package, for the type checker."""

import shutil
import sysconfig
import venv
from pathlib import Path

import pytest

import tapewright

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def python(once):
    """Return the interpreter of an environment with a copy of the package.

    The tests run with an ordinary install, or with an editable one, through which the
    checker finds nothing.
    """
    return once("environment", _install)


def _install(folder):
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    unwanted = shutil.ignore_patterns("__pycache__")
    package = Path(tapewright.__file__).parent
    shutil.copytree(package, site / "tapewright", ignore=unwanted)
    if package == ROOT / "framework":
        for name in ("layers", "optimizers", "datasets"):
            shutil.copytree(ROOT / name, site / "tapewright" / name, ignore=unwanted)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"
