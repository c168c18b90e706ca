"""The logger of the library, of Python's `logging`."""

import logging

__all__ = ["get_logger"]


def get_logger() -> logging.Logger:
    """Return the logger of the library, ``logging.getLogger("tapewright")``.

    It gets what `keras.config.disable_interactive_logging` keeps off the console, as
    ``INFO``. Warnings are those of Python's `warnings`, on which its level has no effect.

    >>> get_logger().setLevel("ERROR")
    >>> get_logger().name
    'tapewright'
    """
    return logging.getLogger("tapewright")
