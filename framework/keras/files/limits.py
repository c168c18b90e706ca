"""Walk of configs, and limits of configs in files, checked before objects exist."""

import math
from collections.abc import Iterator
from typing import Any

from tapewright.core.errors import SavingError

MAX_LAYERS = 10_000
MAX_NESTING = 50  # of models in models
# Numbers that a model may have beyond those in its file: counters, seeds, states.
SLACK = 1 << 16


def walk(value: Any) -> Iterator[Any]:
    """Yield a nest of dicts, lists and tuples and all its parts, in pre-order.

    Example:
        >>> from tapewright.keras.files.limits import walk
        >>> list(walk([1, {"a": (2,)}]))
        [[1, {'a': (2,)}], 1, {'a': (2,)}, (2,), 2]
    """
    ahead = [value]
    while ahead:
        value = ahead.pop()
        yield value
        if isinstance(value, dict):
            ahead += reversed(value.values())
        elif isinstance(value, (list, tuple)):
            ahead += reversed(value)


def check_size(config: Any, path: str, location: str | None = None) -> None:
    """Check the number of layers and the nesting of models.

    Raises:
        SavingError: If a limit is exceeded.
    """
    ahead, layers = [(config, 0)], 0
    while ahead:
        value, depth = ahead.pop()
        inner = value.get("layers") if isinstance(value, dict) else None
        if isinstance(inner, list):
            layers, depth = layers + len(inner), depth + 1
        if layers > MAX_LAYERS:
            reason = f"the config has more than {MAX_LAYERS} layers"
            raise SavingError(path, reason, location)
        if depth > MAX_NESTING:
            reason = f"the config nests models deeper than {MAX_NESTING} levels"
            raise SavingError(path, reason, location)
        if isinstance(value, dict):
            ahead += [(each, depth) for each in value.values()]
        elif isinstance(value, list):
            ahead += [(each, depth) for each in value]


class WeightLimit:
    """Reject weights with more numbers in total than the file holds.

    A short config may request 4 TB of weights.

    Args:
        path: Path of the file, for messages.
        numbers: Count of the numbers in the file.
        location: Location of the config in the file.
    """

    def __init__(self, path: str, numbers: int, location: str | None = None):
        self.path, self.numbers, self.location = path, numbers, location
        self._left = numbers + SLACK

    def __call__(self, weight: str, shape: tuple[int, ...]) -> None:
        """Count a weight with this shape.

        Raises:
            SavingError: If the limit is exceeded.
        """
        self._left -= math.prod(shape)
        if self._left < 0:
            raise SavingError(
                self.path,
                f"the weight {weight} would have shape {shape}, but the file holds "
                f"{self.numbers} numbers for all weights together",
                self.location,
            )
