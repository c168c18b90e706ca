"""Datasets of records in files: TFRecord, lines, records of one length, CSV.

File names come from another node, and files are read one after the other. A position
holds the open file and the offset in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.messages.argument_validation import whole
from tapewright.core.tensor import TensorSpec, convert_to_tensor, new_tensor
from tapewright.core.text import is_text, make_text, use_text
from tapewright.ops.strings.numbers import column_defaults
from tapewright.storage.records.columns import Columns
from tapewright.storage.records.lines import (
    check_compression,
    read_fixed,
    read_lines,
    read_rows,
)
from tapewright.storage.records.tf_records import read_records

from .dataset import Dataset
from .files.record_files import Records, as_string

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tapewright.core.typing import IntLike


def _names(who, filenames):
    """Return a dataset of file names."""
    if isinstance(filenames, Dataset):
        spec = filenames.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype.name != "string":
            raise TypeError(
                f"{who}: filenames must be a Dataset of strings, got {spec}"
            )
        return filenames
    if hasattr(filenames, "__fspath__"):
        filenames = filenames.__fspath__()
    if isinstance(filenames, list | tuple):
        filenames = [
            n.__fspath__() if hasattr(n, "__fspath__") else n for n in filenames
        ]
    names = convert_to_tensor(filenames)
    if names.dtype.name != "string":
        if names.shape.num_elements() != 0:
            raise TypeError(f"{who}: filenames must be strings, got {names.dtype.name}")
        names = convert_to_tensor(make_text([], (0,)))
    if names.shape.rank > 1:
        raise ValueError(
            f"{who}: filenames must be a scalar or a vector, got the shape {names.shape}"
        )
    array = np.atleast_1d(names.numpy()) if names.shape.rank else [names.numpy()]
    return Dataset.from_tensor_slices(make_text(list(array), (len(array),)))


class _FileDataset(Dataset):
    """Dataset of the records of files."""

    def _open(self, filenames, read, parallel=None, make=None, spec=None):
        names = _names(type(self).__name__, filenames)
        if parallel is None or int(parallel) == -1 or int(parallel) == 1:
            super().__init__(Records(names._node, read, make, spec))
            return

        def opened(name):
            return Dataset(Records(Dataset.from_tensors(name)._node, read, make, spec))

        cycle = whole(self, "num_parallel_reads", int(parallel))
        super().__init__(names.interleave(opened, cycle)._node)


class _CompressedFiles(_FileDataset):
    """Dataset of the records that ``_reader(path, compression, offset)`` yields."""

    _reader: Callable[..., Any]

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: IntLike | None = None,
        num_parallel_reads: IntLike | None = None,
        name: str | None = None,
    ):
        compression = check_compression(type(self).__name__, compression_type)
        self._open(
            filenames,
            lambda path, offset: self._reader(path, compression, offset),
            num_parallel_reads,
        )


class TFRecordDataset(_CompressedFiles):
    """Dataset of the records of TFRecord files, as strings.

    Checksums of the records are verified.

    Args:
        filenames: One file name, a list or tensor of names, or a `Dataset` of names.
        compression_type: "GZIP" or "ZLIB"; None or "" for no compression.
        buffer_size: Has no effect.
        num_parallel_reads: Number of files that are open at a time and take turns; None
            reads one file after the other.
        name: Has no effect.

    Raises:
        NotFoundError: If a file does not exist, during iteration.
        DataLossError: If a file is damaged, during iteration.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "records")
        >>> with tw.io.TFRecordWriter(path) as writer:
        ...     for text in (b"a", b"b"):
        ...         writer.write(text)
        >>> [x.numpy() for x in tw.data.TFRecordDataset([path])]
        [b'a', b'b']
    """

    _reader = staticmethod(read_records)


class TextLineDataset(_CompressedFiles):
    """Dataset of the lines of text files, as strings without line ends.

    Args:
        filenames: One file name, a list or tensor of names, or a `Dataset` of names.
        compression_type: "GZIP" or "ZLIB"; None or "" for no compression.
        buffer_size: Has no effect.
        num_parallel_reads: Number of files that are open at a time and take turns; None
            reads one file after the other.
        name: Has no effect.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "poem.txt")
        >>> with open(path, "w") as file:
        ...     size = file.write("one\\ntwo\\n")
        >>> list(tw.data.TextLineDataset(path).as_numpy_iterator())
        [b'one', b'two']
    """

    _reader = staticmethod(read_lines)


class FixedLengthRecordDataset(_FileDataset):
    """Dataset of records of a fixed number of bytes, as strings.

    `io.decode_raw` converts the strings to numbers.

    Args:
        filenames: One file name, a list or tensor of names, or a `Dataset` of names.
        record_bytes: Number of bytes of a record.
        header_bytes: Number of bytes to skip at the start of each file.
        footer_bytes: Number of bytes to ignore at the end of each file.
        buffer_size: Has no effect.
        compression_type: "GZIP" or "ZLIB"; None or "" for no compression.
        num_parallel_reads: Number of files that are open at a time and take turns; None
            reads one file after the other.
        name: Has no effect.

    Raises:
        InvalidArgumentError: If the rest of a file is not a whole number of records,
            during iteration (a ``ValueError``).
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: IntLike,
        header_bytes: IntLike | None = None,
        footer_bytes: IntLike | None = None,
        buffer_size: IntLike | None = None,
        compression_type: str | None = None,
        num_parallel_reads: IntLike | None = None,
        name: str | None = None,
    ):
        compression = check_compression("FixedLengthRecordDataset", compression_type)
        sizes = (
            whole(self, "record_bytes", record_bytes),
            whole(self, "header_bytes", header_bytes or 0, 0),
            whole(self, "footer_bytes", footer_bytes or 0, 0),
        )
        self._open(
            filenames,
            lambda path, offset: read_fixed(path, *sizes, compression, offset),
            num_parallel_reads,
        )


class CsvDataset(_FileDataset):
    """Dataset of the rows of CSV files: a tuple with one scalar for each column.

    Quoted fields may span several lines.

    Args:
        filenames: One file name, a list or tensor of names, or a `Dataset` of names.
        record_defaults: Dtype of each selected column, or the value of its empty
            fields; see `io.decode_csv`.
        compression_type: "GZIP" or "ZLIB"; None or "" for no compression.
        buffer_size: Has no effect.
        header: If True, skip the first line of each file.
        field_delim: Character between fields.
        use_quote_delim: If True, fields can be quoted.
        na_value: Text that counts as an empty field.
        select_cols: Numbers of the columns to read, ascending; None reads all.
        exclude_cols: Numbers of the columns to leave out, in place of ``select_cols``.

    Raises:
        InvalidArgumentError: If a row does not fit, during iteration (a
            ``ValueError``).

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "table.csv")
        >>> with open(path, "w") as file:
        ...     size = file.write("a,b\\n1,x\\n,y\\n")
        >>> rows = tw.data.experimental.CsvDataset(path, [0, tw.string], header=True)
        >>> [(int(a), b.numpy()) for a, b in rows]
        [(1, b'x'), (0, b'y')]
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: IntLike | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ):
        compression = check_compression("CsvDataset", compression_type)
        defaults = column_defaults(record_defaults)
        if exclude_cols is not None:
            if select_cols is not None:
                raise ValueError(
                    "CsvDataset: give select_cols or exclude_cols, not both"
                )
            left_out = set(exclude_cols)
            numbers = range(len(defaults) + len(left_out))
            select_cols = [n for n in numbers if n not in left_out]
        columns = Columns(
            "CsvDataset", defaults, field_delim, use_quote_delim, na_value, select_cols
        )
        if any([is_text(default.dtype) for default in defaults]):
            use_text()

        def read(path, offset):
            rows = read_rows(path, compression, offset, use_quote_delim)
            if header and not offset:
                next(rows, None)
            return rows

        def make(row):
            values = zip(columns.values(row), defaults, strict=True)
            return tuple([_scalar(value, default.dtype) for value, default in values])

        spec = tuple([TensorSpec((), as_dtype(each.dtype)) for each in defaults])
        self._open(filenames, read, make=make, spec=spec)


def _scalar(value, dtype):
    return as_string(value) if is_text(dtype) else new_tensor(np.asarray(value, dtype))
