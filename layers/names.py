"""Names that layers go by when none is given: ``dense``, ``dense_1``, and so on."""

__all__ = ["forget_names", "unique_name"]

_counts = {}  # how often a default name was given


def unique_name(stem):
    """``stem``, then ``stem_1``, ``stem_2`` and so on."""
    count = _counts[stem] = _counts.get(stem, -1) + 1
    return f"{stem}_{count}" if count else stem


def forget_names():
    """Counts anew: the next name of a stem is the stem itself."""
    _counts.clear()
