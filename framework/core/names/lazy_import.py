"""Lazy imports: attributes and aliases of modules, imported at first use.

A missing name raises an error, which may include the reason: see `explain_missing`.
"""

import builtins
import os
import sys
import threading
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from types import ModuleType
from typing import NamedTuple


@contextmanager
def lazy_imports(space):
    """Delay the imports of a ``with`` block until their names are first used.

    As the ``lazy`` imports of PEP 810, for all Pythons. A module may have one block, of
    ``from module import name``. A name may also be assigned to another one; names with a
    leading underscore are not kept. Import statements find a module under its name here,
    too. For type checkers, editors and tools that freeze programs, the imports are
    ordinary ones.

    Args:
        space: ``globals()`` of the module that has the block.

    Example::

        with lazy_imports(globals()):
            from .files import save_model
            from .ops import sampling as _sampling

            random = _sampling
    """

    def delay(name, globals=None, locals=None, fromlist=(), level=0):
        if globals is not space:  # of another thread
            return run(name, globals, locals, fromlist, level)
        if not fromlist or "*" in fromlist:
            raise ImportError("lazy_imports: expected 'from module import name'")
        return _Source(resolve_name("." * level + name, space["__package__"]))

    with _PATCHING:
        run, builtins.__import__ = builtins.__import__, delay
        try:
            yield
        finally:
            builtins.__import__ = run
    delayed = {n: value for n, value in space.items() if type(value) is _Delayed}
    for name in delayed:
        del space[name]
    import_at_first_use(space, {n: v for n, v in delayed.items() if n[0] != "_"})


class _Source:
    """Stand-in for a module while names are imported from it."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        return _Delayed(self._module, name)


class _Delayed(NamedTuple):
    module: str
    member: str


def import_at_first_use(space, delayed):
    """Delay imports as `lazy_imports` does, for names that another module lists.

    Args:
        space: ``globals()`` of the module.
        delayed: For each name the module, by its full name, and the name there.
    """
    package = space["__name__"]
    alias_modules(package, **{name: ".".join(place) for name, place in delayed.items()})

    def find(name):
        if name not in delayed:
            raise _missing(sys.modules[package], name)
        module, member = delayed[name]
        with nullcontext() if _is_importing() else _LOCK:
            if module == package:  # it would look for its submodule here
                value = import_module(f"{module}.{member}")
            else:
                value = getattr(__import__(module, fromlist=[member]), member)
        space[name] = value
        return value

    space["__getattr__"] = find
    space["__dir__"] = lambda: sorted({*space, *delayed})


# Modules import each other in circles: threads that start at two points of a circle would
# find modules that are half made. So one thread at a time imports what it uses first. It
# must not wait inside an import, where it holds locks that the other one may need.
_LOCK = threading.RLock()
_PATCHING = threading.RLock()  # held while `__import__` is replaced


def _renew_lock():
    global _LOCK, _PATCHING
    _LOCK, _PATCHING = threading.RLock(), threading.RLock()


if hasattr(os, "register_at_fork"):  # the thread that holds it may not be in the child
    os.register_at_fork(after_in_child=_renew_lock)


def _is_importing():
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_find_and_load" and code.co_filename.startswith("<frozen "):
            return True
        frame = frame.f_back
    return False


def keep_public(module, *packages):
    """Remove the names from a module that its `__all__` does not list.

    A module without `__all__` gets one: its lazy imports, and all other names that have
    no leading underscore and are no modules.

    ``packages`` are subpackages that the program may import later. They are imported
    here, since a later import would set the attribute again.

    Example:
        >>> import sys
        >>> from tapewright.core.names.lazy_import import keep_public
        >>> from types import ModuleType
        >>> space = ModuleType("space")
        >>> space.sqrt, space.sys, space._one = abs, sys, 1
        >>> keep_public(space)
        >>> space.__all__, hasattr(space, "sys")
        (['sqrt'], False)
    """
    for package in packages:
        import_module(f"{module.__name__}.{package}")
    space = vars(module)
    if "__all__" not in space:
        names = [name for name in dir(module) if not name.startswith("_")]
        module.__all__ = [n for n in names if not isinstance(space.get(n), ModuleType)]
    for name in space.keys() - set(module.__all__):
        if not name.startswith("_"):
            del space[name]


def explain_missing(module, package, *namespaces):
    """Let namespaces explain why they lack a name when code looks it up.

    A namespace that is not imported yet gets the explanation when it is.
    ``from namespace import name`` still raises Python's ``ImportError``.

    Args:
        module: Full name of a module with ``reason(namespace, name, known)``, which
            returns a text or "". It is imported at the first missing name.
        package: Package of the namespaces.
        *namespaces: Names of the namespaces within the package, "" for the package.
    """
    for each in namespaces:
        public = f"{package}.{each}".rstrip(".")
        name = _ALIASES.resolve(public) or public
        _ALIASES.reasons[name] = public, module
        if name in sys.modules:
            _give_reasons(sys.modules[name])


def _give_reasons(module):
    def find(name):
        raise _missing(module, name)

    vars(module).setdefault("__getattr__", find)


def _missing(module, name):
    """Return the `AttributeError` for a name that a module lacks."""
    public, explaining = _ALIASES.reasons.get(module.__name__, (module.__name__, None))
    text = f"module {public!r} has no attribute {name!r}"
    if explaining is not None and name[0] != "_":
        text += import_module(explaining).reason(public, name, dir(module))
    return AttributeError(text, name=name, obj=None)  # no second guess in tracebacks


def alias_modules(package, **names):
    """Let import statements find modules and their submodules below ``package``.

    ``names`` maps each alias to the full name of a module. Both names refer to the same
    module, which is executed once.
    """
    for name, target in names.items():
        if target != f"{package}.{name}":
            _ALIASES.targets[f"{package}.{name}"] = target


def _is_module(name):
    """Return whether there is a module of a name, whose package this imports."""
    package = import_module(name.rpartition(".")[0])
    return hasattr(package, "__path__") and find_spec(name) is not None


class _Aliases:
    """Finder and loader that imports a module by its original name for its alias.

    It also sets the explanations of missing names when namespaces are imported. It has
    no base classes, since importing `importlib.abc` takes 3 ms.
    """

    def __init__(self):
        self.targets = {}
        self.specs = {}  # first name of a module -> its spec under that name
        self.reasons = {}  # full name of a module -> its public name, who has the reasons

    def find_spec(self, fullname, path=None, target=None):
        original = self.resolve(fullname)
        if original:
            return ModuleSpec(fullname, self) if _is_module(original) else None
        return self._with_reasons(fullname, path) if fullname in self.reasons else None

    def _with_reasons(self, fullname, path):
        finders = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, [f.find_spec(fullname, path) for f in finders]), None)
        if spec is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (
                execute(module),
                _give_reasons(module),
            )
        return spec

    def create_module(self, spec):
        # The module itself: another thread may take it before `exec_module` runs.
        module = import_module(self.resolve(spec.name))
        self.specs.setdefault(module.__name__, module.__spec__)
        return module

    def exec_module(self, module):
        # That of the alias is in its place.
        module.__spec__ = self.specs[module.__name__]

    def resolve(self, fullname):
        stem, rest = fullname, ""
        while stem and stem not in self.targets:
            stem, _, last = stem.rpartition(".")
            rest = f".{last}{rest}"
        return self.targets[stem] + rest if stem else None


_ALIASES = _Aliases()
sys.meta_path.insert(0, _ALIASES)  # in front, or Python's own would load files twice
