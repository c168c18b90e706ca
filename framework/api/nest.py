"""`tw.nest`: nested lists, tuples and dicts, as in ``tf.nest``."""

from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack,
    pack_sequence_as,
)

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack",
    "pack_sequence_as",
]
