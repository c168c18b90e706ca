"""`make_csv_dataset`: batches of named columns from files of comma-separated values."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.text import to_bytes, to_text
from tapewright.storage.records.columns import infer_default
from tapewright.storage.records.lines import check_compression, read_rows, split_row

from ..dataset import AUTOTUNE, Dataset
from ..file_datasets import CsvDataset
from ..nodes.sources import matching_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tapewright.core.typing import IntLike


def make_csv_dataset(
    file_pattern: str | Sequence[str],
    batch_size: IntLike,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[str | int] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: IntLike | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: IntLike = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: IntLike | None = None,
    num_parallel_reads: IntLike | None = None,
    sloppy: bool = False,
    num_rows_for_inference: IntLike | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Create a dataset of batches of rows of CSV files: dicts with one vector per column.

    With ``label_name``, elements are pairs: a dict of features and the vector of
    labels.

    Args:
        file_pattern: File names or patterns with ``*``, ``?`` and ``[...]``.
        batch_size: Number of rows of a batch.
        column_names: Names of all columns; None reads them from the first line.
        column_defaults: Dtype of each selected column, or the value of its empty
            fields. By default 0 or "", of the narrowest of int32, int64, float32,
            float64 and string that the rows need.
        label_name: Name of the column of labels, or None.
        select_columns: Names or numbers of the columns to read; None reads all.
        field_delim: Character between fields; see `io.decode_csv`.
        use_quote_delim: If True, fields can be quoted; see `io.decode_csv`.
        na_value: Text that counts as an empty field.
        header: If True, the first line of each file contains the column names.
        num_epochs: Number of repetitions; None repeats without end.
        shuffle: If True, shuffle the files and the rows.
        shuffle_buffer_size: Number of rows in the buffer of the shuffle.
        shuffle_seed: Integer seed of the shuffle, or None.
        prefetch_buffer_size: Number of batches prepared ahead of use; None for
            `AUTOTUNE`.
        num_parallel_reads: Number of files that are open at a time and take turns, or
            `AUTOTUNE`.
        sloppy: Has no effect.
        num_rows_for_inference: Number of rows from which dtypes are inferred; None
            reads all rows.
        compression_type: "GZIP" or "ZLIB"; None or "" for no compression.
        ignore_errors: If True, drop rows that do not fit.
        encoding: Encoding of the column names.

    Raises:
        ValueError: If no file matches, names are missing, repeated or different between
            files, or rows have different lengths.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "table.csv")
        >>> with open(path, "w") as file:
        ...     size = file.write("height,name\\n1.5,x\\n2,y\\n")
        >>> ds = tw.data.experimental.make_csv_dataset(
        ...     path, 2, label_name="name", num_epochs=1, shuffle=False
        ... )
        >>> for columns, names in ds.as_numpy_iterator():
        ...     print(columns, names)
        {'height': array([1.5, 2. ], dtype=float32)} [b'x' b'y']
    """
    compression = check_compression("make_csv_dataset", compression_type)
    paths = matching_files("make_csv_dataset", file_pattern)

    def rows(path):
        pairs = read_rows(path, compression, 0, use_quote_delim)
        return (
            split_row(row, to_bytes(field_delim), use_quote_delim) for row, _ in pairs
        )

    if column_names is None:
        if not header:
            raise ValueError(
                "make_csv_dataset: column_names must be given if header is False"
            )
        column_names = _names_in(paths, rows, encoding)
    names = list(column_names)
    if len(set(names)) < len(names):
        raise ValueError(f"make_csv_dataset: column names must differ, got {names}")
    selected = _selected(select_columns, names)
    if column_defaults is None:
        body = chain.from_iterable(
            islice(rows(path), bool(header), None) for path in paths
        )
        body = islice(body, num_rows_for_inference)
        column_defaults = _defaults(body, selected, len(names), na_value)
    if len(column_defaults) != len(selected):
        raise ValueError(
            "make_csv_dataset: column_defaults must have one entry for each of "
            f"{len(selected)} columns, got {len(column_defaults)}"
        )
    chosen = [names[n] for n in selected]
    if label_name is not None and label_name not in chosen:
        raise ValueError(
            f"make_csv_dataset: label_name must be one of {chosen}, got {label_name!r}"
        )

    def opened(path):
        lines = CsvDataset(
            path,
            column_defaults,
            compression,
            None,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            selected if select_columns is not None else None,
        )
        return lines.ignore_errors() if ignore_errors else lines

    def by_name(*columns):
        features = dict(zip(chosen, columns, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    files = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    if num_parallel_reads == AUTOTUNE:
        ds = files.interleave(opened, num_parallel_calls=AUTOTUNE)
    else:
        ds = files.interleave(opened, num_parallel_reads or 1)
    if shuffle:
        ds = ds.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        ds = ds.repeat(num_epochs)
    ds = ds.batch(batch_size, drop_remainder=num_epochs is None).map(by_name)
    return ds.prefetch(
        AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    )


def _names_in(paths, rows, encoding):
    """Return the fields of the first line, which must be the same in all files."""
    names = None
    for path in paths:
        fields = next(rows(path), None)
        if fields is None:
            raise ValueError(f"make_csv_dataset: {path} has no line with column names")
        if names is not None and fields != names:
            raise ValueError(
                f"make_csv_dataset: the column names of {path} and {paths[0]} differ"
            )
        names = fields
    try:
        return [field.decode(encoding) for field in names]
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            f"make_csv_dataset: cannot decode the column names as {encoding!r}: "
            f"{[to_text(field) for field in names]}"
        ) from None


def _selected(columns, names):
    """Return the numbers of columns given by number or name, ascending."""
    if columns is None:
        return list(range(len(names)))
    numbers = []
    for column in columns:
        is_number = isinstance(column, int)
        if column not in (range(len(names)) if is_number else names):
            raise ValueError(
                f"make_csv_dataset: select_columns must be numbers below {len(names)} or "
                f"names of {names}, got {column!r}"
            )
        numbers.append(column if is_number else names.index(column))
    if len(set(numbers)) < len(numbers):
        raise ValueError(
            f"make_csv_dataset: select_columns must differ, got {list(columns)}"
        )
    return sorted(numbers)


def _defaults(rows, selected, count, na_value):
    """Defaults of the selected columns of rows of ``count`` fields."""
    columns = [[] for _ in selected]
    missing = b"", to_bytes(na_value)
    for number, fields in enumerate(rows, 1):
        if len(fields) != count:
            raise ValueError(
                f"make_csv_dataset: row {number} has {len(fields)} fields, not {count}, so "
                "that defaults cannot be inferred; give column_defaults"
            )
        for column, n in zip(columns, selected, strict=True):
            if fields[n] not in missing:
                column.append(fields[n])
    empty = np.array(b"", object)
    return [infer_default(fields) if fields else empty for fields in columns]
