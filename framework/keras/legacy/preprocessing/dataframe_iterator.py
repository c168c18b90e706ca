"""Iterator over batches of images listed in a table, for `flow_from_dataframe`."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.messages.source_lines import user_stacklevel

from ...utils.directory_index import report
from .image_iterators import FileIterator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any

    from .image_data_generator import ImageDataGenerator

_BY_CLASS = ("categorical", "binary", "sparse")


class DataFrameIterator(FileIterator):
    """Iterator over batches of the images listed in a table, such as a pandas DataFrame.

    Args:
        dataframe: Table that returns columns by name.
        directory: Directory of relative paths, or None.
        image_data_generator: `ImageDataGenerator` that transforms the images, or None.
        x_col: Column of the paths.
        y_col: Column of the classes or targets, or a list of columns.
        weight_col: Column of the sample weights, or None.
        target_size: Size ``(height, width)`` to which images are resized.
        color_mode: "rgb", "rgba" or "grayscale".
        classes: Classes to use, in the order of the labels; rows of other classes are
            dropped.
        class_mode: As for `DirectoryIterator`, with lists of classes allowed for
            "categorical"; also "raw" for the values of ``y_col``, or "multi_output" for
            a list with the values of each column.
        batch_size: Size of the batches; the last batch of an epoch may be smaller.
        shuffle: If True, shuffle the samples in each epoch.
        seed: Seed of NumPy's global generator, plus the number of batches so far, set
            before each batch; None to leave the generator alone.
        data_format: "channels_last" or "channels_first".
        save_to_dir: Directory to which every image of a batch is written, as
            ``PREFIX_INDEX_NUMBER.FORMAT``; None to write no files.
        save_prefix: Prefix of the names of written files.
        save_format: Format of written files, such as "png".
        subset: "training" or "validation", by ``validation_split`` of the generator;
            None for all samples.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: If True, crop images to the aspect ratio of ``target_size``
            before resizing.
        dtype: Dtype of the images.
        validate_filenames: If True, drop rows whose file does not exist or has no image
            suffix, with a warning.

    Raises:
        ValueError: If ``class_mode`` or ``subset`` is invalid, or "binary" is used
            without exactly two classes.
        TypeError: If a column has values of the wrong type.
    """

    class_modes = (*_BY_CLASS, "input", "multi_output", "raw", None)

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
        is_by_class = class_mode in _BY_CLASS
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
        """Return the rows whose file exists and has an image suffix."""
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
        """Return the label of a class, or the labels of the used classes in a list."""
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
        """The sample weight of each image, or None."""
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
            "DataFrameIterator: class_mode='binary' needs two classes, got "
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
