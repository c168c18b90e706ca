"""At least nine in ten public symbols have a type that every checker knows.

``basedpyright --verifytypes`` reports on all modules whose names have no underscore, the
internal ones included. Only the public surface counts here: what the `__all__` of the
namespaces of the documentation list, each function and class where it is defined, with the
public members of a class and of its bases. An alias counts once.
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
    initializers layers layers.activations layers.applications layers.constraints
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


def public_homes(reported):
    """Return the names of the public functions, classes and values, where defined.

    ``reported``: the names in the report of the checker. A public class brings its bases.
    """
    homes = set()
    for namespace in NAMESPACES:
        full = "tapewright" if namespace == "tapewright" else f"tapewright.{namespace}"
        space = importlib.import_module(full)
        for name in getattr(space, "__all__", None) or public_names(space):
            value = getattr(space, name)
            if inspect.ismodule(value):
                continue
            found = set()
            for each in value.__mro__ if inspect.isclass(value) else [value]:
                home = getattr(each, "__qualname__", None) or name
                found.add(f"{getattr(each, '__module__', None)}.{home}")
            found &= reported
            homes |= found or {f"{space.__name__}.{name}"}
    return homes


def public_names(space):
    return [name for name in vars(space) if not name.startswith("_")]


def enclosing(name):
    """Yield ``name`` and the names of all that contains it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


@pytest.fixture(scope="module")
def symbols(python, tmp_path_factory):
    """The public symbols of the checker's report."""
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "tapewright"]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "--ignoreexternal", "--outputjson"],
        cwd=tmp_path_factory.mktemp("checked"),
        env={**os.environ, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)["typeCompleteness"]
    named = [each for each in report["symbols"] if each["category"] != "module"]
    homes = public_homes({each["name"] for each in named})
    return [each for each in named if not homes.isdisjoint(enclosing(each["name"]))]


def test_the_types_of_the_public_surface_are_known(symbols):
    assert len(symbols) > 2500
    counts = collections.defaultdict(collections.Counter)
    for symbol in symbols:
        folder = ".".join(symbol["name"].split(".")[:3])
        counts[folder][symbol["isTypeKnown"]] += 1
    known = sum([count[True] for count in counts.values()])
    print(f"{known} of {len(symbols)} known: {known / len(symbols):.1%}")
    for folder, count in sorted(counts.items(), key=lambda item: -item[1][False])[:20]:
        print(f"{count[False]:5} unknown of {count.total():5}  {folder}")
    assert known / len(symbols) >= FLOOR
