"""Writes splits.json: the order, words and labels that Keras makes of small files.

Run with Keras 3 installed: ``KERAS_BACKEND=numpy python record_splits.py``. For each data
set ``entries``, the arrays of its ``.npz`` file, and ``cases``: arguments, and what
``load_data`` of Keras returns for them.
"""

import importlib
import json
import tempfile
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(0)


def texts(n, most):
    return [RNG.integers(1, most, RNG.integers(1, 9)).tolist() for _ in range(n)]


ENTRIES = {
    "imdb": {
        "x_train": texts(12, 40),
        "y_train": RNG.integers(0, 2, 12).tolist(),
        "x_test": texts(9, 40),
        "y_test": RNG.integers(0, 2, 9).tolist(),
    },
    "reuters": {"x": texts(15, 40), "y": RNG.integers(0, 46, 15).tolist()},
    "boston_housing": {
        "x": RNG.normal(size=(11, 13)).round(3).tolist(),
        "y": RNG.normal(size=11).round(3).tolist(),
    },
    "california_housing": {
        "x": [[i, *range(7)] for i in range(605)],
        "y": list(range(605)),
    },
}
WORDS = [
    {},
    {"num_words": 20},
    {"num_words": 25, "skip_top": 6, "oov_char": 9},
    {"num_words": 20, "oov_char": None},
    {"maxlen": 6},
    {"seed": 7, "start_char": None},
    {"start_char": None, "index_from": 0},
    {"start_char": 5, "index_from": 10},
]
CASES = {
    "imdb": WORDS,
    "reuters": [*WORDS, {"test_split": 0.4}, {"test_split": 0}],
    "boston_housing": [{}, {"test_split": 0.5, "seed": 3}, {"test_split": 0}],
    "california_housing": [{"version": "small"}, {"test_split": 0.33, "seed": 1}],
}


def write(path, entries):
    arrays = {}
    for key, rows in entries.items():
        if isinstance(rows[0], list) and len({len(row) for row in rows}) > 1:
            arrays[key] = np.empty(len(rows), object)
            arrays[key][:] = rows
        else:
            arrays[key] = np.array(rows)
    np.savez(path, **arrays)


def plain(found):
    """Lists of the arrays of ``load_data``, and the dtypes of the labels."""
    if isinstance(found, tuple):
        return [plain(each) for each in found]
    return [str(found.dtype), found.tolist()]


def main():
    recorded = {}
    for name, cases in CASES.items():
        module = importlib.import_module(f"keras.src.datasets.{name}")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "made.npz")
            write(path, ENTRIES[name])
            module.get_file = lambda *args, path=path, **kwargs: path
            done = [[each, plain(module.load_data(**each))] for each in cases]
        recorded[name] = {"entries": ENTRIES[name], "cases": done}
    text = json.dumps(recorded, separators=(",", ":"))
    Path(__file__).with_name("splits.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
