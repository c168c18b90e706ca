"""`Config`: named values as attributes and as items."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from typing import Any

from tapewright.core.messages.suggestions import suggestion


class Config(MutableMapping[str, Any]):
    """Dict of named values that are also attributes, and that can be frozen.

    Iteration yields the names in alphabetical order.

    Args:
        **kwargs: Initial values by name.

    Raises:
        ValueError: If a frozen config is changed.
        AttributeError: If an attribute does not exist.
        KeyError: If an item does not exist.

    Example:
        >>> config = keras.utils.Config(learning_rate=0.1)
        >>> config.seed = 42
        >>> config["seed"], config.learning_rate, config.to_json()
        (42, 0.1, '{"learning_rate": 0.1, "seed": 42}')
        >>> config.freeze()
        >>> config.seed = 7
        Traceback (most recent call last):
        ValueError: Config is frozen: 'seed' cannot be changed before unfreeze()
    """

    _config: dict[str, Any]
    _frozen: bool

    def __init__(self, **kwargs: Any):
        object.__setattr__(self, "_config", kwargs)
        object.__setattr__(self, "_frozen", False)

    @property
    def frozen(self) -> bool:
        """True after `freeze`: changes raise an error."""
        return self._frozen

    def freeze(self) -> None:
        """Reject all further changes."""
        object.__setattr__(self, "_frozen", True)

    def unfreeze(self) -> None:
        """Allow changes again."""
        object.__setattr__(self, "_frozen", False)

    def as_dict(self) -> dict[str, Any]:
        """Return the names and values in a new dict."""
        return dict(self._config)

    def to_json(self) -> str:
        """Return the names and values as JSON."""
        return json.dumps(self._config)

    def __getitem__(self, key: str) -> Any:
        return self._config[key]

    def __setitem__(self, key: str, item: Any) -> None:
        self._check_changeable(key)
        self._config[key] = item

    def __delitem__(self, key: str) -> None:
        self._check_changeable(key)
        del self._config[key]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._config))

    def __len__(self) -> int:
        return len(self._config)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_config", {})  # absent while a copy is made
        if name in values:
            return values[name]
        raise AttributeError(f"Config has no value {name!r}{suggestion(name, values)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"Config: {name!r} is a method; use config[{name!r}]")
        self[name] = value

    def __repr__(self) -> str:
        return f"<Config {self._config}>"

    def _check_changeable(self, name):
        if self._frozen:
            raise ValueError(
                f"Config is frozen: {name!r} cannot be changed before unfreeze()"
            )
