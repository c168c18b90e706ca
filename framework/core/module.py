"""`Module`: an object that finds the variables and modules in its attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .messages.names_of_pytorch import OF_LAYERS, explain_elsewhere
from .names import name_scopes
from .names.naming import snake_case
from .names.reserved_names import PREFIX, Replaceable, Reserving, check_assignment
from .tensor import Tensor
from .trackable import Opaque, Trackable, child_name, owned
from .typing import P, R
from .variable import Variable, VariableValue

_VALUES = (Tensor, VariableValue)


class Module(Reserving, Trackable):
    """Container of variables and of other modules, in attributes, lists and dicts.

    Subclasses need not call ``super().__init__()``. Attributes are searched in
    alphabetical order; the direct variables of a module precede the variables of its
    submodules.

    Args:
        name: Name of the module, a Python identifier; by default the class name in
            snake case.

    Raises:
        ValueError: If ``name`` is not a Python identifier.

    Example:
        >>> class Scale(tw.Module):
        ...     def __init__(self):
        ...         self.factor = tw.Variable(2.0)
        >>> len(Scale().trainable_variables)
        1
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"

    _tw_name = None
    # A class with methods in which no tensor may replace a variable; see `_tw_reject_replaced`.
    _tw_keeps_variables = False
    # `Opaque`: attribute -> the variable that a tensor replaced.
    _tw_replaced: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:4] == PREFIX:
            check_assignment(type(self), name)
        if self._tw_keeps_variables and isinstance(value, _VALUES):
            known = vars(self).get(name)
            if isinstance(known, Variable):
                replaced = {} if self._tw_replaced is None else self._tw_replaced.value
                vars(self)["_tw_replaced"] = Opaque({name: known, **replaced})
        super(Reserving, self).__setattr__(name, value)  # after that check
        if self._tw_pending_values is not None:
            self._tw_pending_values.take(child_name(self, name), value)

    def __init__(self, name: str | None = None):
        if name is not None and not str(name).isidentifier():
            raise ValueError(
                f"Module: name must be a valid Python identifier, got {name!r}"
            )
        self._tw_name = name

    @property
    def name(self) -> str:
        """The name of the module, by default the class name in snake case."""
        return self._tw_name or snake_case(type(self).__name__)

    @Replaceable
    def name_scope(self) -> name_scopes.name_scope:
        """A `tw.name_scope` with the name of the module."""
        return name_scopes.name_scope(self.name)

    @classmethod
    def with_name_scope(cls, method: Callable[P, R]) -> Callable[P, R]:
        """Decorate a method so that it runs in the `name_scope` of its module.

        Args:
            method: Method of a subclass.

        Example:
            >>> class Scale(tw.Module):
            ...     @tw.Module.with_name_scope
            ...     def __call__(self, x):
            ...         return 2.0 * x
            >>> Scale()(3.0)
            6.0
        """

        @functools.wraps(method)
        def scoped(self, *args, **kwargs):
            with name_scopes.name_scope(self.name):
                return method(self, *args, **kwargs)

        return scoped

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables of the module and its submodules, without duplicates."""
        return self._tw_find(Variable)

    @Replaceable
    def trainable_variables(self) -> tuple[Variable, ...]:
        """All trainable variables, without duplicates."""
        return tuple([v for v in self.variables if v.trainable])

    @Replaceable
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """All variables that are not trainable, without duplicates."""
        return tuple([v for v in self.variables if not v.trainable])

    @Replaceable
    def submodules(self) -> tuple[Module, ...]:
        """All modules inside this module, without duplicates."""
        return self._tw_find(Module)

    def _tw_reject_replaced(self, method):
        """Raise an error if a method has replaced variables by tensors; restore them."""
        replaced = vars(self).pop("_tw_replaced").value
        names = [n for n in replaced if isinstance(vars(self).get(n), _VALUES)]
        for name in names:
            setattr(self, name, replaced[name])
        if names:
            raise TypeError(
                f"{type(self).__name__}.{method} replaced the variable self.{names[0]} by a "
                f"tensor; to change its value, call self.{names[0]}.assign(...) or "
                "assign_add"
            )

    def _tw_find(self, kind):
        matches, seen = [], {id(self)}
        _search(self, kind, matches, seen)
        return tuple(matches)


explain_elsewhere(Module, OF_LAYERS)


def _search(module, kind, matches, seen):
    below = []
    for leaf in owned(module, by_name=True):
        if isinstance(leaf, (Variable, Module)) and id(leaf) not in seen:
            seen.add(id(leaf))
            if isinstance(leaf, kind):
                matches.append(leaf)
            if isinstance(leaf, Module):
                below.append(leaf)
    for submodule in below:
        _search(submodule, kind, matches, seen)
