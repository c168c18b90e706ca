"""The hostile and faulty files, one case each: how it is made, and what has to come of it.

Each is tried with everything that reads such a file. An expected outcome is OK, ANY (no
crash, no hang, no other error), or a pattern that the message of the `SavingError` matches.
The cases themselves are in file_cases.py, config_cases.py, array_cases.py,
own.py, checkpoint_cases.py, bomb_cases.py and name_cases.py.
"""

import importlib
from dataclasses import dataclass, field

import files

OK, ANY = "OK", "ANY"
CASES = {}


@dataclass
class Case:
    """``make(path, kind)`` makes the file; the rest is what is expected."""

    name: str
    make: object
    kinds: tuple
    expected: dict
    suffix: str | None = None
    facts: dict = field(default_factory=dict)
    placed: bool = False  # whether an error must tell the place in the file

    def actions(self, kind):
        """What is tried with a file of that kind, in this order."""
        loading = {"saved_model": ("load",), "checkpoint": ("restore",)}
        both = ("load_model", "load_weights", "load_fitting")
        return (*loading.get(kind, both), "show", "verify")


def case(name, kinds=files.KINDS, every=None, suffix=None, facts=None, placed=False,
         **expected):  # fmt: skip
    """Decorates a maker; ``every`` is expected where nothing else is said."""
    default = {"load_model": every, "load_weights": every, "verify": every}
    default |= {"load_fitting": ANY, "show": ANY}
    expected = {**default, **expected}

    def decorate(make):
        found = Case(name, make, kinds, expected, suffix, facts or {}, placed)
        CASES[name, kinds] = found
        return make

    return decorate


HOLDERS = []  # processes that end with this one: their input is closed then


def jobs():
    """``(id, case, kind)`` of everything: the modules with cases are imported."""
    for module in (
        "file_cases",
        "config_cases",
        "array_cases",
        "own",
        "checkpoint_cases",
        "bomb_cases",
        "name_cases",
    ):
        importlib.import_module(module)
    for _, each in sorted(CASES.items()):  # whatever was imported first
        for kind in each.kinds:
            yield f"{each.name}-{kind}", each, kind
