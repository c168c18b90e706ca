"""`name_scope`: prefixes of the names in `tw.summary`."""

from __future__ import annotations

from contextvars import ContextVar

_SCOPE = ContextVar("name_scope", default="")


class name_scope:  # noqa: N801
    """Context manager that prefixes the names in `tw.summary`.

    Its ``as`` value is the name with all enclosing names, such as "block/". Names of
    variables do not change; they have the path of their owners.

    Args:
        name: Name of the scope.

    Raises:
        ValueError: If ``name`` is not a string.

    Example:
        >>> with tw.name_scope("a"), tw.name_scope("b") as scope:
        ...     scope
        'a/b/'
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise ValueError(f"name_scope: name must be a string, got {name!r}")
        self.name = name
        self._tokens = []

    def __enter__(self) -> str:
        # A name that ends in "/" is that of a scope of before, and stands alone.
        outer = "" if self.name.endswith("/") else _SCOPE.get()
        scope = f"{outer}{self.name.rstrip('/')}/" if self.name else ""
        self._tokens.append(_SCOPE.set(scope))
        return scope

    def __exit__(self, *exc: object) -> None:
        _SCOPE.reset(self._tokens.pop())


def current_name_scope() -> str:
    """Return the names of all enclosing `name_scope` contexts, such as "a/b/", or ""."""
    return _SCOPE.get()
