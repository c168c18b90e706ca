"""Limits of the config of a model in a file, checked before anything is made."""

from typing import Any

from tapewright.core.errors import SavingError

__all__ = ["MAX_LAYERS", "MAX_NESTING", "check_size"]

MAX_LAYERS = 10_000
MAX_NESTING = 50  # of models in models


def check_size(config: Any, path: str, place: str | None = None) -> None:
    """Check the number of layers and the nesting of models. Raises: `SavingError`."""
    ahead, layers = [(config, 0)], 0
    while ahead:
        value, depth = ahead.pop()
        inner = value.get("layers") if isinstance(value, dict) else None
        if isinstance(inner, list):
            layers, depth = layers + len(inner), depth + 1
        if layers > MAX_LAYERS:
            reason = f"the config has more than {MAX_LAYERS} layers"
            raise SavingError(path, reason, place)
        if depth > MAX_NESTING:
            reason = f"the config nests models deeper than {MAX_NESTING} levels"
            raise SavingError(path, reason, place)
        if isinstance(value, dict):
            ahead += [(each, depth) for each in value.values()]
        elif isinstance(value, list):
            ahead += [(each, depth) for each in value]
