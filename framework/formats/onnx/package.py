"""The package onnx: the schema of its protocol buffers, and its checks.

Only this file imports it.
"""

from __future__ import annotations

from typing import Any


def require_onnx(who: str) -> Any:
    """Return the package onnx; raise ``ImportError`` for ``who`` without it."""
    try:
        import onnx
        import onnx.inliner
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            f"{who} needs the package onnx: pip install 'tapewright[onnx]'"
        ) from error
    return onnx
