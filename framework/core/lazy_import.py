"""Lazy imports: attributes and aliases of modules, imported at first use."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

__all__ = ["alias_modules", "import_lazily", "keep_public"]


def import_lazily(module, **names):
    """Give a module attributes that are imported at their first use.

    ``names``: for each the module that it stands for, which import statements then find
    under that name, too, or ``"module:name"`` for something in a module.

    >>> from types import ModuleType
    >>> space = ModuleType("space")
    >>> import_lazily(space, text="json", loads="json:loads")
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


def keep_public(module, *packages):
    """Remove from a module the names that its `__all__` does not list.

    ``packages``: packages inside of it that the program may import later. They are imported
    here, since an import that comes later sets the attribute again.

    >>> from types import ModuleType
    >>> space = ModuleType("space")
    >>> space.__all__, space.exp, space.sys = ["exp"], abs, sys
    >>> keep_public(space)
    >>> hasattr(space, "exp"), hasattr(space, "sys")
    (True, False)
    """
    for package in packages:
        import_module(f"{module.__name__}.{package}")
    space = vars(module)
    for name in space.keys() - set(module.__all__):
        if not name.startswith("_"):
            del space[name]


def alias_modules(package, **names):
    """Let import statements find modules, and their submodules, below ``package``.

    ``names``: for each the full name of the module that it stands for. Both names give one
    module, which is executed once.
    """
    for name, target in names.items():
        if target != f"{package}.{name}":
            _ALIASES.targets[f"{package}.{name}"] = target


class _Aliases:
    """A finder and loader that imports a module under its first name for its second.

    It has no base classes, since `importlib.abc` takes 3 ms to import.
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
sys.meta_path.insert(0, _ALIASES)  # in front, or Python's own would load files twice
