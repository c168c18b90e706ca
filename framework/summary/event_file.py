"""Event files in TensorBoard's format: TFRecord files of messages by tensorboardX.

Only this file imports tensorboardX. Events are written immediately to a buffered file:
a thread that writes them later could not tell when they are on disk.
"""

from __future__ import annotations

import itertools
import os
import time
import weakref
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from tapewright.io.tensor_protos import tensor_proto
from tapewright.storage.records.tf_records import RecordWriter

BUCKETS = 30  # of histograms, as in TensorFlow
_numbers = itertools.count()


def require_tensorboardx(who: str) -> Any:
    """Return the package tensorboardX; raise ``ImportError`` for ``who`` without it."""
    try:
        import tensorboardX
    except ImportError as error:
        raise ImportError(
            f"{who} needs tensorboardX to write event files: "
            "pip install 'tapewright[tensorboard]'"
        ) from error
    return tensorboardX


class EventFile:
    """New event file in ``folder``; it is also closed when it is garbage collected.

    The methods raise an ``OSError`` that names the file if it cannot be written, which
    closes it.

    Args:
        folder: Folder of the file; None drops all events.
        suffix: End of the file name.
        max_queue: Flush after this number of events; None for no limit.
        flush_seconds: Flush with the next event after this time.

    Raises:
        ImportError: If tensorboardX is not installed.
    """

    def __init__(
        self,
        folder: str | PathLike[str] | None,
        suffix: str = "",
        max_queue: int | None = None,
        flush_seconds: float = 120.0,
    ):
        self._make = require_tensorboardx("summary").summary
        self.folder = folder
        self._events = _Nowhere() if folder is None else _open(folder, suffix)
        self._close = weakref.finalize(self, self._events.close)  # also at exit
        self._max_queue, self._flush_seconds = max_queue, flush_seconds
        self._waiting, self._flushed = 0, time.monotonic()

    def add_scalar(
        self, tag: str, value: float, step: int, description: str = ""
    ) -> None:
        """Write a number, as float32."""
        self._add(self._make.scalar(tag, float(value)), step, description)

    def add_histogram(
        self,
        tag: str,
        values: np.ndarray[Any, Any],
        step: int,
        buckets: int = BUCKETS,
        description: str = "",
    ) -> None:
        """Write the counts of finite numbers, at least one, in intervals of equal width."""
        self._add(self._make.histogram(tag, values, buckets), step, description)

    def add_image(
        self,
        tag: str,
        image: np.ndarray[Any, Any],
        step: int,
        description: str = "",
    ) -> None:
        """Write an image ``[height, width]`` or with channels, uint8 or in ``[0, 1]``."""
        axes = "HW" if image.ndim == 2 else "HWC"
        self._add(self._make.image(tag, image, dataformats=axes), step, description)

    def add_text(
        self, tag: str, texts: np.ndarray[Any, Any], step: int, description: str = ""
    ) -> None:
        """Write a text in Markdown, or an array of several."""
        self.add_strings(tag, texts, step, "text", b"", description)

    def add_strings(
        self,
        tag: str,
        texts: np.ndarray[Any, Any],
        step: int,
        plugin: str,
        content: bytes,
        description: str = "",
    ) -> None:
        """Write an array of strings and metadata for a plugin of TensorBoard."""
        from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata
        from tensorboardX.proto.tensor_pb2 import TensorProto

        data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        tensor = TensorProto.FromString(tensor_proto(texts))
        value = Summary.Value(
            tag=tag, metadata=SummaryMetadata(plugin_data=data), tensor=tensor
        )
        self._add(Summary(value=[value]), step, description)

    def add_graph(self, graph: bytes) -> None:
        """Write a graph, the bytes of a ``GraphDef``."""
        from tensorboardX.proto.event_pb2 import Event

        self._write(Event(wall_time=time.time(), graph_def=graph))

    def _add(self, summary, step, description):
        from tensorboardX.proto.event_pb2 import Event

        if description:
            for value in summary.value:
                value.metadata.summary_description = description
        self._write(Event(wall_time=time.time(), step=int(step), summary=summary))

    def _write(self, event):
        with self._closed_by_errors():
            self._events.write(event.SerializeToString())
        self._waiting += 1
        is_full = self._max_queue is not None and self._waiting >= self._max_queue
        if is_full or time.monotonic() - self._flushed > self._flush_seconds:
            self.flush()

    def flush(self) -> None:
        """Write all events to the disk now."""
        with self._closed_by_errors():
            self._events.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    @contextmanager
    def _closed_by_errors(self):
        try:
            yield
        except OSError:
            self._close.detach()  # the file is closed
            raise

    def close(self) -> None:
        """Flush and close the file, if it is open."""
        self._close()

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return not self._close.alive


class _Nowhere:
    """The writer of a process that leaves writing to another process."""

    def write(self, event):
        pass

    def flush(self):
        pass

    def close(self):
        pass


def _open(folder, suffix):
    import socket

    from tensorboardX.proto.event_pb2 import Event

    os.makedirs(folder, exist_ok=True)
    # Names have seconds only: a second file must not write over the first.
    name = f"{str(time.time())[:10]}.{socket.gethostname()}.{os.getpid()}"
    name = f"events.out.tfevents.{name}.{next(_numbers)}{suffix}"
    file = RecordWriter(os.path.join(os.fspath(folder), name))
    version = Event(wall_time=time.time(), file_version="brain.Event:2")
    file.write(version.SerializeToString())
    return file
