"""Write the counts of names into the table of ``docs/background/limits.md``.

    python tests/reference/count_names.py

The names of TensorFlow and Keras come from ``known_names.txt``; see `record_names`.
"""

import functools
import re
from pathlib import Path

import tapewright
from tapewright.api.names.missing_names import known_names

PAGE = Path(__file__).parents[2] / "docs" / "background" / "limits.md"
ROW = re.compile(r"^\| (`[^|]*`) \| \d+ \| \d+ \|$", re.MULTILINE)
# Public attributes of TensorFlow's class, which is not a namespace.
METHODS = {
    "tf.data.Dataset": """
        apply as_numpy_iterator batch bucket_by_sequence_length cache cardinality
        choose_from_datasets concatenate counter element_spec enumerate filter fingerprint
        flat_map from_generator from_tensor_slices from_tensors get_single_element
        group_by_window ignore_errors interleave list_files load map options padded_batch
        prefetch ragged_batch random range rebatch reduce rejection_resample repeat
        sample_from_datasets save scan shard shuffle skip snapshot sparse_batch take
        take_while unbatch unique window with_options zip
    """.split()
}


def count(spaces):
    """Count the names of namespaces: those available here, and all of them."""
    here = everywhere = 0
    for space in spaces:
        path = space.removeprefix("tf").removeprefix(".").split(".")
        value = functools.reduce(getattr, filter(None, path), tapewright)
        names = METHODS.get(space) or known_names()[space]
        here += sum([hasattr(value, name) for name in names])
        everywhere += len(names)
    return here, everywhere


def with_counts(page):
    """Return the text of the page with up-to-date numbers in its table."""

    def row(match):
        here, everywhere = count(re.findall(r"`([\w.]+)`", match[1]))
        return f"| {match[1]} | {here} | {everywhere} |"

    return ROW.sub(row, page)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_counts(text), encoding="utf-8")
