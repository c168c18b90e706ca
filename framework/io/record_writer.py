"""TFRecord files, written record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.tensor import is_tensor
from tapewright.storage.records.lines import check_compression
from tapewright.storage.records.paths import as_path, file_errors
from tapewright.storage.records.tf_records import RecordWriter

if TYPE_CHECKING:
    from os import PathLike
    from typing import Any, Self


class TFRecordOptions:
    """Options of a `TFRecordWriter`: the compression of the file.

    Args:
        compression_type: "", "GZIP" or "ZLIB", or other options; None for no
            compression.
        flush_mode: Ignored.
        input_buffer_size: Ignored.
        output_buffer_size: Ignored.
        window_bits: Ignored.
        compression_level: Level from 0 to 9, or -1 for zlib's default.
        compression_method: Ignored.
        mem_level: Ignored.
        compression_strategy: Ignored.

    Raises:
        InvalidArgumentError: If the compression is unknown (also a ``ValueError``).

    Example:
        >>> options = tw.io.TFRecordOptions("GZIP", compression_level=9)
        >>> writer = tw.io.TFRecordWriter("data.tfrecord.gz", options)  # doctest: +SKIP
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

    def __repr__(self) -> str:
        return f"TFRecordOptions(compression_type={self.compression_type!r})"


class TFRecordWriter:
    """Writer of TFRecord files; `data.TFRecordDataset` reads them.

    As a context manager, it closes the file.

    Args:
        path: Path of the file, which is overwritten.
        options: `TFRecordOptions`, or a compression type.

    Example:
        >>> import os, tempfile
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
        """Append a record to the file.

        Args:
            record: ``bytes``, or a scalar string tensor.

        Raises:
            TypeError: If ``record`` is anything else.
            ValueError: If the writer is closed.
            ResourceExhaustedError: If the disk is full, which closes the writer.
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
        """Write buffered data to the file."""
        with file_errors():
            self._records.flush()

    def close(self) -> None:
        """Write buffered data and close the file."""
        with file_errors():
            self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
