"""`tw.onnx`: functions and models in ONNX files."""

from tapewright.formats.onnx.load import load
from tapewright.formats.onnx.save import save

__all__ = ["load", "save"]
