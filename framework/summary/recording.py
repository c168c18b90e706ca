"""The writers of event files, and the defaults of a thread: writer, step, condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from tapewright.compiler.control_flow.effects import host_effect
from tapewright.core.dtypes import as_dtype, kind_of
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.names.name_scopes import current_name_scope
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from .event_file import EventFile


class _State(NamedTuple):
    """The defaults of a thread: its writer, its step, and the condition to write."""

    writer: SummaryWriter | None = None
    step: Any = None
    condition: Any = True


_NOTHING = _State()
_STATE: ContextVar[_State] = ContextVar("summary", default=_NOTHING)


@contextmanager
def _defaults(**changes):
    token = _STATE.set(_STATE.get()._replace(**changes))
    try:
        yield
    finally:
        _STATE.reset(token)


# ------------------------------------------------------------------------ writers


class SummaryWriter:
    """Writer of summaries to an event file; see `create_file_writer`.

    A traced function writes to the default writer at the time of tracing.

    Args:
        file: Event file to write to.
    """

    def __init__(self, file: EventFile):
        self._file: EventFile = file

    def __repr__(self) -> str:
        return f"<SummaryWriter {str(self._file.folder)!r}>"

    @contextmanager
    def as_default(self, step: TensorLike | None = None) -> Iterator[SummaryWriter]:
        """Context manager in which this is the default writer.

        Args:
            step: Default step inside the context, or None to keep the current one.
        """
        changes = {} if step is None else {"step": step}
        with _defaults(writer=self, **changes):
            yield self

    def set_as_default(self, step: TensorLike | None = None) -> None:
        """Make this the default writer of the thread from now on.

        Args:
            step: Default step, or None to keep the current one.
        """
        state = _STATE.get()
        step = state.step if step is None else step
        _STATE.set(state._replace(writer=self, step=step))

    def init(self) -> None:
        """Do nothing: the file is already open."""

    def flush(self) -> None:
        """Write all buffered events to disk now."""
        host_effect("summary_flush", self._flush)

    def _flush(self):
        self._open_file().flush()

    def close(self) -> None:
        """Flush and close the file; later events raise ``RuntimeError``."""
        host_effect("summary_close", self._file.close)

    def _open_file(self) -> EventFile:
        """Return the event file.

        Raises:
            RuntimeError: If it is closed.
        """
        if self._file.is_closed:
            raise RuntimeError("summary: the writer is closed")
        return self._file


def create_file_writer(
    logdir: str | PathLike[str],
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """Create an event file in a folder, for ``tensorboard --logdir logdir``.

    Args:
        logdir: Folder of the file, which is created if it does not exist.
        max_queue: Flush after this number of events, by default 10.
        flush_millis: Flush with the next event after this time in milliseconds, by
            default two minutes.
        filename_suffix: End of the file name, by default ".v2".

    Raises:
        ImportError: If tensorboardX is not installed.

    Example:
        >>> writer = tw.summary.create_file_writer("logs")  # doctest: +SKIP
        >>> with writer.as_default():  # doctest: +SKIP
        ...     tw.summary.scalar("loss", 0.5, step=1)
    """
    suffix = ".v2" if filename_suffix is None else filename_suffix
    millis = 120_000 if flush_millis is None else flush_millis
    max_queue = 10 if max_queue is None else max_queue
    return SummaryWriter(EventFile(logdir, suffix, max_queue, millis / 1000))


def default_writer() -> SummaryWriter | None:
    """Return the default writer of this thread, or None."""
    return _STATE.get().writer


def write_event(
    kind: str, name: str, step: TensorLike | None, write: Callable[..., Any], *data: Any
) -> Tensor:
    """Call ``write(file, tag, step, *arrays)`` for the default writer, in each call."""
    writer, default_step, _ = _STATE.get()
    if writer is None:
        return convert_to_tensor(False)
    step = default_step if step is None else step
    if step is None:
        raise ValueError(
            f"summary.{kind}: step must be set: pass it here or to as_default, or call "
            "summary.experimental.set_step"
        )
    tag, condition = current_name_scope() + name, should_record_summaries()

    def call(condition, step, *arrays):
        if to_numpy(condition):
            arrays = [np.asarray(to_numpy(array)) for array in arrays]
            write(writer._open_file(), tag, int(to_numpy(step)), *arrays)

    host_effect(f"summary_{kind}", call, [condition, _int_step(kind, step), *data])
    return condition


def _int_step(kind, step):
    step = convert_to_tensor(np.int64(step) if isinstance(step, int) else step)
    if step.shape.rank != 0 or kind_of(step.dtype.dtype) not in "iu":
        raise ValueError(
            f"summary.{kind}: step must be an int of rank 0, got {step.dtype.name} of "
            f"shape {tuple(step.shape)}"
        )
    return step


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write all buffered events of a writer to its file.

    Args:
        writer: Writer to flush, by default the default writer.
    """
    writer = _STATE.get().writer if writer is None else writer
    if writer is not None:
        writer.flush()


# ----------------------------------------------------------------- steps, conditions


@contextmanager
def record_if(condition: TensorLike | Callable[[], TensorLike]) -> Iterator[None]:
    """Context manager in which summaries are written only if a condition is true.

    Args:
        condition: Bool, boolean tensor, or function without arguments, which is called
            for each event; in a traced function its result is evaluated in each call.

    Example:
        >>> with tw.summary.record_if(False):
        ...     tw.summary.should_record_summaries().numpy()
        np.False_
    """
    with _defaults(condition=condition):
        yield


def should_record_summaries() -> Tensor:
    """Return whether summaries are written: depends on the writer and on `record_if`."""
    writer, _, condition = _STATE.get()
    if writer is None:
        return convert_to_tensor(False)
    value = convert_to_tensor(condition() if callable(condition) else condition)
    if value.shape.rank != 0 or value.dtype != as_dtype("bool"):
        raise ValueError(
            f"summary.record_if: condition must be a bool, got {condition!r}"
        )
    return value


def set_step(step: TensorLike | None) -> None:
    """Set the default step of summaries in this thread.

    Args:
        step: Integer, variable, which is read for each event, or None to unset the
            step.

    Example:
        >>> tw.summary.experimental.set_step(3)
        >>> tw.summary.experimental.get_step()
        3
        >>> tw.summary.experimental.set_step(None)
    """
    _STATE.set(_STATE.get()._replace(step=step))


def get_step() -> Any:
    """Return the default step of this thread, or None."""
    return _STATE.get().step


class experimental:  # noqa: N801  (a namespace)
    """The default step, under the names of ``tf.summary.experimental``."""

    get_step = staticmethod(get_step)
    set_step = staticmethod(set_step)
