"""Default names of layers, metrics and modules."""

import itertools
import re

_counts = {}  # default name -> an iterator that counts its uses


def unique_name(stem: str) -> str:
    """Return the default name of an object: ``stem``, then ``stem_1``, ``stem_2``, ..."""
    count = count_name(stem)
    return f"{stem}_{count}" if count else stem


def count_name(stem: str) -> int:
    """Count a use of a default name, and return the number of earlier uses."""
    return next(_counts.setdefault(stem, itertools.count()))


def reset_name_counts() -> None:
    """Reset the counts, so the next default name of each stem is the stem again."""
    _counts.clear()


def snake_case(name: str) -> str:
    """Convert a name such as ``BatchNormalization`` to ``batch_normalization``.

    Example:
        >>> from tapewright.core.names.naming import snake_case
        >>> snake_case("MyDense2D")
        'my_dense2d'
    """
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
