"""`tw.onnx`: traced functions as ONNX files."""

from tapewright.formats.onnx.save import save

__all__ = ["save"]
