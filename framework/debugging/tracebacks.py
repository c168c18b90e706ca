"""The frames of tracebacks: calls of TensorFlow and Keras, which change nothing here."""

__all__ = [
    "disable_traceback_filtering",
    "enable_traceback_filtering",
    "is_traceback_filtering_enabled",
]


def enable_traceback_filtering() -> None:
    """Accept the call: tracebacks have all frames here, and errors name the layer."""


def disable_traceback_filtering() -> None:
    """Let tracebacks have all frames, as they always do here."""


def is_traceback_filtering_enabled() -> bool:
    """Return False: tracebacks have all frames."""
    return False
