"""`tw.compat.v1.logging`: messages to the logger that `tw.get_logger` returns."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator
from logging import DEBUG, ERROR, FATAL, INFO, WARN
from typing import Any

from tapewright.core.messages.logger import get_logger

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "log_if",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]

_counts: dict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)


def set_verbosity(v: int | str) -> None:
    """Set the lowest level of messages that are logged.

    Args:
        v: Level such as ``logging.ERROR``, or its name "ERROR".
    """
    get_logger().setLevel(v)


def get_verbosity() -> int:
    """Return the lowest level of messages that are logged, by default ``WARN``."""
    return get_logger().getEffectiveLevel()


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at a level.

    Args:
        level: Level of the message, such as ``logging.INFO``.
        msg: Message, a format string for ``args``.
        *args: Values to insert into the message.
        **kwargs: Keyword arguments of ``logging.Logger.log``.
    """
    _log(level, msg, args, kwargs)


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at the level ``DEBUG``.

    Args:
        msg: Message, a format string for ``args``.
        *args: Values to insert into the message.
        **kwargs: Keyword arguments of ``logging.Logger.log``.
    """
    _log(DEBUG, msg, args, kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at the level ``INFO``.

    Args:
        msg: Message, a format string for ``args``.
        *args: Values to insert into the message.
        **kwargs: Keyword arguments of ``logging.Logger.log``.
    """
    _log(INFO, msg, args, kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at the level ``WARN``.

    Args:
        msg: Message, a format string for ``args``.
        *args: Values to insert into the message.
        **kwargs: Keyword arguments of ``logging.Logger.log``.
    """
    _log(WARN, msg, args, kwargs)


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at the level ``ERROR``.

    Args:
        msg: Message, a format string for ``args``.
        *args: Values to insert into the message.
        **kwargs: Keyword arguments of ``logging.Logger.log``.
    """
    _log(ERROR, msg, args, kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at the level ``FATAL``.

    Args:
        msg: Message, a format string for ``args``.
        *args: Values to insert into the message.
        **kwargs: Keyword arguments of ``logging.Logger.log``.
    """
    _log(FATAL, msg, args, kwargs)


vlog = log
warn = warning


def log_if(level: int, msg: Any, condition: object, *args: Any) -> None:
    """Log ``msg % args`` if a condition is true.

    Args:
        level: Level of the message.
        msg: Message, a format string for ``args``.
        condition: Value that is tested for truth.
        *args: Values to insert into the message.
    """
    if condition:
        _log(level, msg, args, {})


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log ``msg % args`` in the first ``n`` calls of a line of the program.

    Args:
        level: Level of the message.
        msg: Message, a format string for ``args``.
        n: Number of calls that log.
        *args: Values to insert into the message.
    """
    if _count() < n:
        _log(level, msg, args, {})


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log ``msg % args`` in the first of every ``n`` calls of a line of the program.

    Args:
        level: Level of the message.
        msg: Message, a format string for ``args``.
        n: Number of calls for one message.
        *args: Values to insert into the message.
    """
    if _count() % n == 0:
        _log(level, msg, args, {})


def _count():
    """Return the number of earlier calls by the line that calls the caller."""
    frame = sys._getframe(2)
    return next(_counts[frame.f_code.co_filename, frame.f_lineno])


def _log(level, msg, args, kwargs):
    stacklevel = kwargs.pop("stacklevel", 1) + 2  # the line of the user
    get_logger().log(level, msg, *args, stacklevel=stacklevel, **kwargs)
