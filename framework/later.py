"""Names that are there from the start, and whose modules are loaded at first use."""

from importlib import import_module

__all__ = ["load_later"]


def load_later(module, **names):
    """Gives a module names whose values are loaded when they are first asked for.

    ``names``: for each the module that it stands for, or ``"module:name"`` for something
    in one. For what few programs use: `import` need not wait for it.

    >>> from types import ModuleType
    >>> space = ModuleType("space")
    >>> load_later(space, text="json", loads="json:loads")
    >>> space.loads("[1, 2]"), dir(space)[-2:]
    ([1, 2], ['loads', 'text'])
    """
    space = vars(module)

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
