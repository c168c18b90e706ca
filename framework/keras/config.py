"""`keras.config`: default dtypes, data format, epsilon, limits of training, logging.

Settings of Keras without an equivalent here return their constant value, and raise for
any other value.
"""

from __future__ import annotations

import warnings

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.messages.tracebacks import (
    disable_traceback_filtering,
    enable_traceback_filtering,
    is_traceback_filtering_enabled,
)
from tapewright.core.settings.floatx import (
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from tapewright.layers.dtype_policies import dtype_policy, set_dtype_policy

__all__ = [
    "backend",
    "disable_flash_attention",
    "disable_interactive_logging",
    "disable_traceback_filtering",
    "dtype_policy",
    "enable_flash_attention",
    "enable_interactive_logging",
    "enable_traceback_filtering",
    "enable_unsafe_deserialization",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_flash_attention_enabled",
    "is_interactive_logging_enabled",
    "is_nnx_enabled",
    "is_traceback_filtering_enabled",
    "max_epochs",
    "max_steps_per_epoch",
    "set_backend",
    "set_dtype_policy",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "set_max_epochs",
    "set_max_steps_per_epoch",
]

_limits = {"epochs": None, "steps_per_epoch": None}
_interactive = True


# ------------------------------------------------------------------------ limits of runs


def max_epochs() -> int | None:
    """Return the largest number of epochs of a `fit`; None, the default, for no limit."""
    return _limits["epochs"]


def set_max_epochs(max_epochs: int | None) -> None:
    """Limit the number of epochs of each `fit`, for example to try out a program.

    Args:
        max_epochs: Largest number of epochs; None for no limit.

    Raises:
        ValueError: If ``max_epochs`` is neither a positive integer nor None.

    Example:
        >>> keras.config.set_max_epochs(1)
        >>> keras.config.max_epochs()
        1
        >>> keras.config.set_max_epochs(None)
    """
    _set_limit("epochs", max_epochs)


def max_steps_per_epoch() -> int | None:
    """Return the largest number of batches per epoch; None, the default, for no limit."""
    return _limits["steps_per_epoch"]


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Limit the number of batches in each epoch of `fit`, `evaluate` and `predict`.

    Args:
        max_steps_per_epoch: Largest number of batches; None for no limit.

    Raises:
        ValueError: If ``max_steps_per_epoch`` is neither a positive integer nor None.

    Example:
        >>> keras.config.set_max_steps_per_epoch(None)
    """
    _set_limit("steps_per_epoch", max_steps_per_epoch)


def _set_limit(name, value):
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and (not is_integer or value < 1):
        raise ValueError(
            f"set_max_{name}: max_{name} must be a positive integer or None, got {value!r}"
        )
    _limits[name] = value


def limited(name: str, count: int | None) -> int | None:
    """Return the limited number of "epochs" or "steps_per_epoch"; None means unknown.

    A ``UserWarning`` is issued if the limit reduces the number.
    """
    limit = _limits[name]
    if limit is None or (count is not None and count <= limit):
        return count
    warnings.warn(f"Limiting {name} to {limit}", stacklevel=user_stacklevel())
    return limit


# ------------------------------------------------------------------------------ messages


def enable_interactive_logging() -> None:
    """Print progress bars and messages to standard output, the default."""
    global _interactive
    _interactive = True


def disable_interactive_logging() -> None:
    """Send progress and messages to the logger "tapewright" of ``logging``, at level INFO.

    Each epoch is logged as one line, as on an output without a terminal.
    """
    global _interactive
    _interactive = False


def is_interactive_logging_enabled() -> bool:
    """Return whether progress and messages are printed to standard output."""
    return _interactive


# -------------------------------------------------------------------- what does not exist


def backend() -> str:
    """Return the name of the backend, "tapewright": it runs on NumPy, machine code or CuPy."""
    return "tapewright"


def set_backend(backend: str) -> None:
    """Accept "tapewright", the only backend.

    Args:
        backend: "tapewright".

    Raises:
        ValueError: If ``backend`` has another value.
    """
    if backend != "tapewright":
        raise ValueError(
            f"set_backend: backend must be 'tapewright', got {backend!r}; tapewright "
            "computes itself, see tw.config.set_target"
        )


def enable_flash_attention() -> None:
    """Raise an error: flash attention is not available.

    Raises:
        ValueError: Always.
    """
    raise ValueError(
        "enable_flash_attention: flash attention is not available; leave it disabled"
    )


def disable_flash_attention() -> None:
    """Do nothing: flash attention is always disabled."""


def is_flash_attention_enabled() -> bool:
    """Return False: flash attention is not available."""
    return False


def is_nnx_enabled() -> bool:
    """Return False: variables are not Flax NNX variables."""
    return False


def enable_unsafe_deserialization() -> None:
    """Raise an error: code in files is never run.

    Raises:
        ValueError: Always.
    """
    raise ValueError(
        "enable_unsafe_deserialization: no code is run from a file; define the function "
        "in your program, and decorate it with @keras.saving.register_keras_serializable()"
    )
