"""`tw.config.optimizer`: settings of TensorFlow's graph optimizer, without effect.

Traced functions are compiled independently of `set_jit`; `tw.config.set_graph_passes`
selects the optimization passes over their graphs.
"""

from typing import Any

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

_jit = {"level": ""}
_options: dict[str, Any] = {
    "disable_model_pruning": False,
    "disable_meta_optimizer": False,
}


def set_jit(enabled: bool | str) -> None:
    """Set the XLA compilation mode; stored, but without effect.

    Args:
        enabled: True or "autoclustering", or False.

    Raises:
        ValueError: If ``enabled`` has another value.

    Example:
        >>> tw.config.optimizer.set_jit(True)
        >>> tw.config.optimizer.get_jit()
        'autoclustering'
    """
    if enabled not in (True, False, "autoclustering", ""):
        raise ValueError(
            f"set_jit: enabled must be True, False or 'autoclustering', got {enabled!r}"
        )
    _jit["level"] = "autoclustering" if enabled else ""


def get_jit() -> str:
    """Return "autoclustering" if `set_jit` turned it on, else ""."""
    return _jit["level"]


def set_experimental_options(options: dict[str, Any]) -> None:
    """Set options of the graph optimizer; stored, but without effect.

    Args:
        options: Options by name, such as ``{"disable_meta_optimizer": True}``.

    Example:
        >>> tw.config.optimizer.set_experimental_options({"constant_folding": True})
        >>> tw.config.optimizer.get_experimental_options()["constant_folding"]
        True
    """
    _options.update(options)


def get_experimental_options() -> dict[str, Any]:
    """Return the options set by `set_experimental_options`, and TensorFlow's defaults."""
    return dict(_options)
