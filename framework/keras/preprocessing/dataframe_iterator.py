"""Iterator over batches of images that a table names, for `flow_from_dataframe`."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.source_lines import user_stacklevel

from ..utils.directory_index import report
from .image_iterators import FileIterator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any

    from .image_data_generator import ImageDataGenerator

__all__ = ["DataFrameIterator"]

BY_CLASS = ("categorical", "binary", "sparse")


class DataFrameIterator(FileIterator):
    """Batches of the images that a table names, such as a ``DataFrame`` of pandas.

    Args: ``dataframe``: gives columns by name; ``directory`` of the paths, if they are
    relative to one; ``x_col``: the column of the paths; ``y_col``: that of the targets, or a
    list of columns; ``weight_col``: that of the weights of samples; ``classes``: the classes
    to use, in the order of the labels; rows of others are left out; ``class_mode``: also
    "raw", the values of ``y_col``, or "multi_output", a list with those of each column;
    "categorical" takes lists of classes too; ``validate_filenames``: leave out rows whose
    file is not there or no image by its suffix, with a warning; those of
    `DirectoryIterator`.

    Raises: ``ValueError`` for another mode or subset, or "binary" without two classes;
    ``TypeError`` for columns that hold other types than they must.
    """

    class_modes = (*BY_CLASS, "input", "multi_output", "raw", None)

    def __init__(
        self,
        dataframe: Any,
        directory: str | PathLike[str] | None = None,
        image_data_generator: ImageDataGenerator | None = None,
        x_col: str = "filename",
        y_col: str | list[str] = "class",
        weight_col: str | None = None,
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = "channels_last",
        save_to_dir: str | PathLike[str] | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: Any = "float32",
        validate_filenames: bool = True,
    ):
        self._set_processing(
            image_data_generator, target_size, color_mode, class_mode, data_format,
            save_to_dir, save_prefix, save_format, subset, interpolation,
            keep_aspect_ratio, dtype,
        )  # fmt: skip
        self.directory = directory or ""
        names = list(dataframe[x_col])
        _check_types(f"x_col {x_col!r}", names, (str,))
        is_by_class = class_mode in BY_CLASS
        if is_by_class:
            values = list(dataframe[y_col])
            types = (str, list, tuple) if class_mode == "categorical" else (str,)
            _check_types(f"y_col {y_col!r}", values, types)
            if class_mode == "binary":
                _check_two(set(classes or values))
        elif classes:
            warnings.warn(
                f"DataFrameIterator: classes are not used with class_mode={class_mode!r}",
                stacklevel=user_stacklevel(),
            )
        if class_mode == "multi_output" and not isinstance(y_col, list):
            raise TypeError(
                "DataFrameIterator: y_col must be a list with class_mode='multi_output', "
                f"got {y_col!r}"
            )
        weights = _weights(dataframe, weight_col)
        rows = list(range(len(names)))
        if validate_filenames:
            rows = self._valid(names, x_col)
        if is_by_class:
            labels = [_listed(value) for value in values]
            if classes:
                rows = [row for row in rows if set(labels[row]) & set(classes)]
            else:
                classes = sorted({label for row in rows for label in labels[row]})
            classes = list(dict.fromkeys(classes))
            self.class_indices = {name: label for label, name in enumerate(classes)}
        rows = self._part(rows)
        self.classes = None
        if is_by_class:
            self.classes = [self._label(values[row]) for row in rows]
        elif class_mode == "raw":
            self._targets = np.asarray(dataframe[y_col])[rows]
        elif class_mode == "multi_output":
            columns = [list(dataframe[column]) for column in y_col]
            self._targets = [np.array([each[row] for row in rows]) for each in columns]
        self._sample_weight = None if weights is None else weights[rows]
        kind = "validated" if validate_filenames else "non-validated"
        end = f" belonging to {len(classes)} classes" if is_by_class else ""
        report(f"Found {len(rows)} {kind} image filenames{end}.")
        self._set_files([names[row] for row in rows], batch_size, shuffle, seed)

    def _valid(self, names, x_col):
        """The rows whose file is an image by its suffix, and there."""
        rows = []
        for row, name in enumerate(names):
            path = os.path.join(self.directory, name)
            if path.lower().endswith(self.white_list_formats) and os.path.isfile(path):
                rows.append(row)
        if len(rows) < len(names):
            warnings.warn(
                f"Found {len(names) - len(rows)} invalid image filename(s) in "
                f'x_col="{x_col}". These filename(s) will be ignored.',
                stacklevel=user_stacklevel(),
            )
        return rows

    def _label(self, value):
        """The label of a class, or those of a list of classes that are in use."""
        if isinstance(value, str):
            return self.class_indices[value]
        return [
            self.class_indices[name] for name in value if name in self.class_indices
        ]

    @property
    def labels(self) -> Any:
        """The label or the target of each image."""
        is_target = self.class_mode in ("multi_output", "raw")
        return self._targets if is_target else self.classes

    @property
    def sample_weight(self) -> np.ndarray | None:
        """The weight of each image, or None."""
        return self._sample_weight


def _listed(value):
    return [value] if isinstance(value, str) else value


def _check_types(name, values, types):
    for value in values:
        if not isinstance(value, types):
            wanted = " or ".join(each.__name__ for each in types)
            raise TypeError(
                f"DataFrameIterator: {name} must hold {wanted}, got {value!r} of type "
                f"{type(value).__name__}"
            )


def _check_two(classes):
    if len(classes) != 2:
        raise ValueError(
            "DataFrameIterator: class_mode='binary' takes two classes, got "
            f"{len(classes)}: {sorted(classes)[:5]}"
        )


def _weights(dataframe, column):
    if not column:
        return None
    weights = np.asarray(dataframe[column])
    if not np.issubdtype(weights.dtype, np.number):
        raise TypeError(
            f"DataFrameIterator: weight_col {column!r} must hold numbers, got "
            f"{weights.dtype}"
        )
    return weights
