"""The logger of the library, from Python's `logging`."""

import logging
import sys
from typing import TextIO


def get_logger() -> logging.Logger:
    """Return the logger of the library, ``logging.getLogger("tapewright")``.

    It receives the output that `keras.config.disable_interactive_logging` keeps off the
    console, at level ``INFO``. Warnings use Python's `warnings`; the level of the
    logger does not affect them. Messages are printed to ``sys.stderr`` unless the
    program configures `logging`.

    Example:
        >>> tw.get_logger().setLevel("ERROR")
        >>> tw.get_logger().name
        'tapewright'
    """
    logger = logging.getLogger("tapewright")
    if not logger.handlers:
        logger.addHandler(_Console())
    return logger


class _Console(logging.StreamHandler[TextIO]):
    """Handler that prints ``LEVEL:tapewright:message``, like TensorFlow."""

    def __init__(self):
        super().__init__()
        self.setFormatter(logging.Formatter(logging.BASIC_FORMAT))

    def emit(self, record):
        if not logging.getLogger().handlers:  # else those show the message
            self.stream = sys.stderr  # as it is now
            super().emit(record)
