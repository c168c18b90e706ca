"""Sources of records in files: TFRecord, lines, records of one length, CSV.

Names of files come from another node, one file after the other. A position holds the
file that is open, and the place in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.argument_validation import whole
from tapewright.core.dtypes import as_dtype
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
from .record_files import Records, as_string

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tapewright.core.typing import IntLike

__all__ = [
    "CsvDataset",
    "FixedLengthRecordDataset",
    "TFRecordDataset",
    "TextLineDataset",
]


def _names(who, filenames):
    """A data set of the names of files."""
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
    """A data set of the records of files."""

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
    """A data set of records that ``_reader(path, compression, place)`` finds."""

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
            lambda path, place: self._reader(path, compression, place),
            num_parallel_reads,
        )


class TFRecordDataset(_CompressedFiles):
    """The records of TFRecord files, as strings.

    Checksums are checked. Args: ``filenames``: one, a list, a tensor, or a `Dataset` of
    them; ``compression_type``: "", "GZIP" or "ZLIB"; ``num_parallel_reads``: so many files
    are open at a time, and take turns. ``buffer_size`` and ``name`` have no effect.

    Raises, in a run: ``NotFoundError``; ``DataLossError`` for a file that is damaged.

    Example:
        >>> import os, tempfile, tapewright as tw
        >>> path = os.path.join(tempfile.mkdtemp(), "records")
        >>> with tw.io.TFRecordWriter(path) as writer:
        ...     for text in (b"a", b"b"):
        ...         writer.write(text)
        >>> [x.numpy() for x in tw.data.TFRecordDataset([path])]
        [b'a', b'b']
    """

    _reader = staticmethod(read_records)


class TextLineDataset(_CompressedFiles):
    """The lines of text files, as strings without their ends.

    The arguments are those of `TFRecordDataset`.

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
    """Records of ``record_bytes`` bytes, as strings; `io.decode_raw` makes numbers of them.

    ``header_bytes`` and ``footer_bytes`` at the ends of each file are left out. The other
    arguments are those of `TFRecordDataset`.

    Raises, in a run: ``InvalidArgumentError`` (a ``ValueError``) if the rest of a file is no
    whole number of records.
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
            lambda path, place: read_fixed(path, *sizes, compression, place),
            num_parallel_reads,
        )


class CsvDataset(_FileDataset):
    """Rows of files of comma-separated values: a tuple of one scalar for each column.

    Args: ``record_defaults``, ``field_delim``, ``use_quote_delim``, ``na_value``,
    ``select_cols``: those of `io.decode_csv`; ``header``: the first line of each file is
    left out; ``exclude_cols``: the numbers of columns to leave out, in place of
    ``select_cols``. Quoted fields may have several lines. ``buffer_size`` has no effect.

    Raises, in a run: ``InvalidArgumentError`` (a ``ValueError``) for a row that does not fit.

    Example:
        >>> import os, tempfile, tapewright as tw
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

        def read(path, place):
            rows = read_rows(path, compression, place, use_quote_delim)
            if header and not place:
                next(rows, None)
            return rows

        def make(row):
            values = zip(columns.values(row), defaults, strict=True)
            return tuple([_scalar(value, default.dtype) for value, default in values])

        spec = tuple([TensorSpec((), as_dtype(each.dtype)) for each in defaults])
        self._open(filenames, read, make=make, spec=spec)


def _scalar(value, dtype):
    return as_string(value) if is_text(dtype) else new_tensor(np.asarray(value, dtype))
