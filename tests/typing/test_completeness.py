"""At least nine in ten public symbols have a type that every checker knows.

``basedpyright --verifytypes`` reports on all modules whose names have no underscore, the
internal ones included. Only the public surface counts here: what the `__all__` of the
namespaces of the documentation list, each function and class where it is defined, with the
public members of a class and of its bases. An alias counts once. A module that imports these
is added to the package, and the checker is asked for it alone, in half the time.
"""

import collections
import importlib
import inspect
import json
import os
import subprocess
import sys

import pytest

FLOOR = 0.9

NAMESPACES = """
    tapewright autodiff bitwise callbacks config data debugging dtypes errors image
    initializers layers layers.activations layers.constraints
    layers.initializers layers.regularizers linalg losses math metrics nest nn optimizers
    optimizers.schedules plot profiler random saved_model signal summary
    test train
    keras keras.activations keras.applications
    keras.backend keras.callbacks keras.config keras.constraints
    keras.datasets keras.initializers keras.layers keras.losses keras.metrics keras.models
    keras.ops keras.ops.image keras.ops.linalg keras.ops.nn keras.optimizers
    keras.optimizers.schedules keras.preprocessing.image keras.preprocessing.sequence
    keras.random
    keras.regularizers keras.saving keras.utils
""".split()


def public_homes():
    """Return modules with the names of the public functions, classes and values there.

    A public class brings its bases.
    """
    homes = set()
    for namespace in NAMESPACES:
        full = "tapewright" if namespace == "tapewright" else f"tapewright.{namespace}"
        space = importlib.import_module(full)
        for name in getattr(space, "__all__", None) or public_names(space):
            value = getattr(space, name)
            if not inspect.ismodule(value):
                kinds = value.__mro__ if inspect.isclass(value) else [value]
                found = {home_of(each, name) for each in kinds} - {None}
                homes |= found or {(full, name)}
    return sorted(homes)


def public_names(space):
    return [name for name in vars(space) if not name.startswith("_")]


def home_of(thing, name):
    """Return the module of the package that defines a thing, and its name there."""
    module = str(getattr(thing, "__module__", None))
    name = (getattr(thing, "__qualname__", None) or name).partition(".")[0]
    if module.split(".")[0] == "tapewright":
        if hasattr(importlib.import_module(module), name):
            return module, name


@pytest.fixture(scope="module")
def symbols(python, tmp_path_factory):
    """Return the public symbols of the checker's report, and whether it knows their types."""
    homes = {f"n{i}": home for i, home in enumerate(public_homes())}
    lines = [f"from {home[0]} import {home[1]} as {n}\n" for n, home in homes.items()]
    (package,) = python.parent.parent.glob("lib/python*/site-packages/tapewright")
    (package / "surface.py").write_text("".join(lines) + f"__all__ = {list(homes)}\n")
    command = [sys.executable, "-m", "basedpyright", "--ignoreexternal", "--outputjson"]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "--verifytypes", "tapewright.surface"],
        cwd=tmp_path_factory.mktemp("checked"),
        env={**os.environ, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)["typeCompleteness"]
    named, found = {".".join(home) for home in homes.values()}, {}
    for each in report["symbols"]:
        name = each["name"].removeprefix("tapewright.surface.")
        name = ".".join(homes.get(name, [name]))
        if each["category"] != "module" and not named.isdisjoint(enclosing(name)):
            found[name] = each["isTypeKnown"]
    return found


def enclosing(name):
    """Yield ``name`` and the names of all that contains it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def test_the_types_of_the_public_surface_are_known(symbols):
    assert len(symbols) > 4000
    counts = collections.defaultdict(collections.Counter)
    for name, is_known in symbols.items():
        counts[".".join(name.split(".")[:3])][is_known] += 1
    known = sum(symbols.values())
    print(f"{known} of {len(symbols)} known: {known / len(symbols):.1%}")
    for folder, count in sorted(counts.items(), key=lambda item: -item[1][False])[:20]:
        print(f"{count[False]:5} unknown of {count.total():5}  {folder}")
    assert known / len(symbols) >= FLOOR
