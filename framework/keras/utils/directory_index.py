"""Index the files of a directory, labeled by folder, in Keras' order and shuffle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import is_interactive_logging_enabled

_LABEL_MODES = ("int", "categorical", "binary", None)
_SUBSETS = ("training", "validation", "both", None)


@dataclass(frozen=True)
class Index:
    """Paths, with a label for each or None, and the names of the classes or None."""

    paths: list[str]
    labels: Sequence[Any] | None
    class_names: list[str] | None

    def parts(
        self, who: str, validation_split: float | None, subset: str | None
    ) -> list:
        """Return the files of the subset, one `Index`; or two of them for "both".

        Raises:
            ValueError: If a subset has no files.
        """
        count = int((validation_split or 0) * len(self.paths))
        cut = len(self.paths) - count
        wanted = {"both": ("training", "validation")}.get(subset, (subset,))
        bounds = {"training": (0, cut), "validation": (cut, len(self.paths))}
        parts = []
        for name in wanted:
            start, stop = bounds.get(name, (0, len(self.paths)))
            if name is not None:
                report(f"Using {stop - start} files for {name}.")
            if start == stop:
                raise ValueError(
                    f"{who}: the directory must contain files{f' for {name}' if name else ''} "
                    "with a supported suffix, got none"
                )
            labels = None if self.labels is None else self.labels[start:stop]
            parts.append(Index(self.paths[start:stop], labels, self.class_names))
        return parts


def index_directory(
    who: str,
    directory: str | os.PathLike[str],
    suffixes: tuple[str, ...],
    *,
    labels: Any,
    label_mode: str | None,
    class_names: Sequence[str] | None,
    shuffle: bool,
    seed: int | None,
    validation_split: float | None,
    subset: str | None,
    follow_links: bool,
    verbose: bool,
) -> tuple[Index, int]:
    """Return the files with these suffixes, sorted or shuffled, and the seed.

    Raises:
        ValueError: If arguments do not fit together, or do not fit the files.
    """
    if not (
        labels is None or isinstance(labels, list | tuple) or _is(labels, "inferred")
    ):
        raise ValueError(
            f"{who}: labels must be 'inferred', None, or a list of one int for each file, "
            f"got {labels!r}"
        )
    _check_choice(who, "label_mode", label_mode, _LABEL_MODES)
    if label_mode is None:
        labels = None
    if class_names is not None and not _is(labels, "inferred"):
        raise ValueError(
            f"{who}: class_names can be given only with labels='inferred', got "
            f"{labels!r}"
        )
    _check_split(who, validation_split, subset, shuffle, seed)
    if seed is None:
        seed = np.random.randint(10**6)
    directory = os.fspath(directory)
    if _is(labels, "inferred"):
        folders = _folders(who, directory, class_names)
        by_folder = [
            files_below(directory, name, follow_links, suffixes) for name in folders
        ]
        numbers = np.repeat(
            np.arange(len(by_folder), dtype="int32"), list(map(len, by_folder))
        )
        index = Index([path for paths in by_folder for path in paths], numbers, folders)
    else:
        paths = files_below(directory, "", follow_links, suffixes)
        if labels is not None and len(labels) != len(paths):
            raise ValueError(
                f"{who}: labels must have one entry for each file: got {len(labels)} for "
                f"{len(paths)} files in {directory}"
            )
        names = None if labels is None else [str(x) for x in sorted(set(labels))]
        index = Index(paths, None if labels is None else list(labels), names)
    if verbose:
        classes = index.class_names
        end = "." if classes is None else f" belonging to {len(classes)} classes."
        report(f"Found {len(index.paths)} files{end}")
    if label_mode == "binary" and labels is not None and len(index.class_names) != 2:
        raise ValueError(
            f"{who}: label_mode='binary' needs two classes, got {index.class_names}"
        )
    if shuffle:
        for entries in (index.paths, index.labels):
            if entries is not None:
                np.random.RandomState(seed).shuffle(entries)
    return index, seed


def _is(value, name):
    return isinstance(value, str) and value == name


def _check_choice(who, name, value, choices):
    if value not in choices:
        raise ValueError(f"{who}: {name} must be one of {choices}, got {value!r}")


def _check_split(who, validation_split, subset, shuffle, seed):
    _check_choice(who, "subset", subset, _SUBSETS)
    if validation_split and not 0 < validation_split < 1:
        raise ValueError(
            f"{who}: validation_split must be between 0 and 1, got {validation_split}"
        )
    if bool(validation_split) != bool(subset):
        raise ValueError(
            f"{who}: validation_split and subset must be given together, got "
            f"{validation_split} and {subset!r}"
        )
    if validation_split and shuffle and seed is None:
        raise ValueError(
            f"{who}: seed must be given with validation_split and shuffle=True, so "
            "that training and validation files do not overlap"
        )


def _folders(who, directory, class_names):
    """Return the folders in a directory except hidden folders; or ``class_names``."""
    with os.scandir(directory) as entries:
        folders = sorted(e.name for e in entries if e.is_dir() and e.name[0] != ".")
    if class_names is None:
        return folders
    if not set(class_names) <= set(folders):
        raise ValueError(
            f"{who}: class_names must be names of folders in {directory}, which has "
            f"{folders}, got {class_names}"
        )
    return list(class_names)


def files_below(
    directory: str | os.PathLike[str],
    folder: str,
    follow_links: bool,
    suffixes: tuple[str, ...],
) -> list[str]:
    """Return the paths below a folder, folder by folder, each sorted by name."""
    path = os.path.join(directory, folder) if folder else directory
    walk = os.walk(path, followlinks=follow_links)
    return [
        os.path.join(root, name)
        for root, _, names in sorted(walk, key=lambda each: each[0])
        for name in sorted(names)
        if name.lower().endswith(suffixes)
    ]


def report(message: str) -> None:
    """Print a line, unless `keras.config.disable_interactive_logging` is in effect."""
    if is_interactive_logging_enabled():
        print(message)
