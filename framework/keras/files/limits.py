"""How large the config of a model in a file may be: looked at before anything is made."""

from tapewright.core.errors import SavingError

__all__ = ["MAX_LAYERS", "MAX_NESTING", "check_size"]

MAX_LAYERS = 10_000
MAX_NESTING = 50  # of models in models


def check_size(config, path, place=None):
    """Raises: `SavingError` for more than MAX_LAYERS layers, or deeper models."""
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
