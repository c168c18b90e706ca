"""Names that are there from the start, and whose modules are loaded at first use."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

__all__ = ["alias_modules", "load_later"]


def load_later(module, **names):
    """Gives a module names whose values are loaded when they are first asked for.

    ``names``: for each the module that it stands for, which import statements find under
    that name, too, or ``"module:name"`` for something in one. For what few programs use:
    `import` need not wait for it.

    >>> from types import ModuleType
    >>> space = ModuleType("space")
    >>> load_later(space, text="json", loads="json:loads")
    >>> space.loads("[1, 2]"), dir(space)[-2:]
    ([1, 2], ['loads', 'text'])
    """
    space = vars(module)
    alias_modules(module.__name__, **{n: m for n, m in names.items() if ":" not in m})

    def find(name):
        if name not in names:
            raise AttributeError(
                f"module {module.__name__!r} has no attribute {name!r}"
            )
        place, _, member = names[name].partition(":")
        value = import_module(place)
        space[name] = value = getattr(value, member) if member else value
        return value

    space["__getattr__"] = find
    space["__dir__"] = lambda: sorted({*space, *names})


def alias_modules(package, **names):
    """Lets import statements find modules, and what lies in them, below ``package``.

    ``names``: for each the full name of the module that it stands for. The module is the
    same under both names, and is executed once.
    """
    for name, target in names.items():
        if target != f"{package}.{name}":
            _ALIASES.targets[f"{package}.{name}"] = target


class _Aliases:
    """Finds a module under its second name by importing it under its first.

    A finder and a loader without the base classes of `importlib.abc`, which takes 3 ms to
    load.
    """

    def __init__(self):
        self.targets = {}

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if self._resolve(fullname) else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = import_module(self._resolve(module.__name__))

    def _resolve(self, fullname):
        stem, rest = fullname, ""
        while stem and stem not in self.targets:
            stem, _, last = stem.rpartition(".")
            rest = f".{last}{rest}"
        return self.targets[stem] + rest if stem else None


_ALIASES = _Aliases()
sys.meta_path.insert(0, _ALIASES)  # before the finder that would load a file twice
