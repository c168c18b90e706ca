"""Translations of ONNX ops to tapewright ops, one table for each family.

A translation is a function of the inputs of a node, tensors, or None if left out, and of
its attributes by name; defaults are ONNX'. It returns the output, or a tuple. With
several versions, a dict maps the first opset of each to its function. A translation with
the argument ``output_count`` gets the number of outputs of the node.

static          numbers that are needed while tracing: shapes, axes, indices
arithmetic      ops on each entry, products
arrays          shapes and indices
reductions      reductions over axes
windows         convolution and pooling
normalization   normalization and dropout
resizing        resizing
recurrent       LSTM, GRU, RNN
quantization    integers with a scale and a zero point
control_flow    If, Loop, Scan
model_file      reading untrusted files
graph           a graph of a file as a Python function
"""

from . import (
    arithmetic,
    arrays,
    control_flow,
    normalization,
    quantization,
    recurrent,
    reductions,
    resizing,
    windows,
)

__all__ = ["EXPANDED", "LIMITS", "NEWEST", "OLDEST", "OPS", "translation"]

# The opsets that the tables were written for.
OLDEST, NEWEST = 7, 28
_TABLES = (
    arithmetic, arrays, control_flow, normalization, quantization, recurrent,
    reductions, resizing, windows,
)  # fmt: skip
OPS = {name: entry for table in _TABLES for name, entry in table.OPS.items()}
# Ops that ONNX defines by ops of the tables.
EXPANDED = frozenset(
    """
    AffineGrid Attention BlackmanWindow CausalConvWithState CenterCropPad
    DynamicQuantizeLinear HammingWindow HannWindow LinearAttention
    NegativeLogLikelihoodLoss RotaryEmbedding SoftmaxCrossEntropyLoss SwiGLU
""".split()
)
# What a translation refuses: a function of attributes and the node that returns a
# description, or None.
LIMITS = {**recurrent.LIMITS, **windows.LIMITS}


def translation(op, opset):
    """Return the function for an op in an opset, or None."""
    entry = OPS.get(op)
    if isinstance(entry, dict):
        versions = [version for version in entry if version <= opset]
        return entry[max(versions)] if versions else None
    return entry
