"""TFRecord files, written one record after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.tensor import is_tensor
from tapewright.serialization.constructor_call import constructor_call
from tapewright.storage.records.lines import check_compression
from tapewright.storage.records.paths import as_path, file_errors
from tapewright.storage.records.tf_records import RecordWriter

if TYPE_CHECKING:
    from os import PathLike
    from typing import Any, Self

__all__ = ["TFRecordOptions", "TFRecordWriter"]


class TFRecordOptions:
    """Options of a `TFRecordWriter`: ``compression_type`` is "", "GZIP" or "ZLIB".

    ``compression_level``: from 0 to 9, or -1 for that of zlib. The sizes of buffers and the
    other settings of zlib have no effect on what is read, and are ignored.

    Raises: ``InvalidArgumentError`` for another compression.
    """

    def __init__(
        self,
        compression_type: str | TFRecordOptions | None = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ):
        if isinstance(compression_type, TFRecordOptions):
            compression_type = compression_type.compression_type
        self.compression_type = check_compression("TFRecordOptions", compression_type)
        self.compression_level = -1 if compression_level is None else compression_level

    __repr__ = constructor_call


class TFRecordWriter:
    """A writer of TFRecord files; a context manager closes it.

    `data.TFRecordDataset` reads them. ``options``: `TFRecordOptions`, or a compression.

    Example:
        >>> import os, tempfile, tapewright as tw
        >>> path = os.path.join(tempfile.mkdtemp(), "records")
        >>> with tw.io.TFRecordWriter(path) as writer:
        ...     writer.write(b"one")
        >>> list(tw.data.TFRecordDataset(path).as_numpy_iterator())
        [b'one']
    """

    def __init__(
        self,
        path: str | bytes | PathLike[str],
        options: TFRecordOptions | str | None = None,
    ):
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(options)
        path = as_path("TFRecordWriter", path)
        self._records = RecordWriter(
            path, options.compression_type, options.compression_level
        )

    def write(self, record: Any) -> None:
        """Append a record: ``bytes``, or a scalar tensor of strings.

        Raises: ``TypeError`` for anything else, ``ValueError`` if it is closed,
        ``ResourceExhaustedError`` if the disk is full: this closes it.
        """
        if is_tensor(record):
            record = record.numpy()
        if not isinstance(record, bytes | bytearray | memoryview):
            raise TypeError(
                f"TFRecordWriter.write: expects bytes, got {type(record).__name__}"
            )
        with file_errors():
            self._records.write(bytes(record))

    def flush(self) -> None:
        """Write out what is held back."""
        with file_errors():
            self._records.flush()

    def close(self) -> None:
        """Write out what is held back, and close the file."""
        with file_errors():
            self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
