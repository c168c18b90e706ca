"""Rows of the table of layers that ``summary()`` and notebooks show."""

from __future__ import annotations

import math
import re

from tapewright.core.messages.html_table import html_table
from tapewright.core.nest import is_nested

from .weight_tracking import Tracked

HEADER = ["Layer (type)", "Output Shape", "Param #"]


def html_layer(layer):
    """The table of a layer and of the layers inside it."""
    return html_summary(
        layer, f'Layer: "{layer.name}"', HEADER, _rows(layer, "", set())
    )


def _rows(layer, indent, seen):
    seen.add(id(layer))  # a layer may be inside several, or refer to one around it
    title, *cells = summary_row(layer)
    rows = [[indent + title, *cells]]
    for part in layer._tw_parts():
        if isinstance(part, Tracked) and id(part) not in seen:
            rows += _rows(part, f"   {indent or '└ '}", seen)
    return rows


def html_summary(thing, title, header, rows):
    """The table of a model or a layer in a notebook."""
    return html_table(
        title,
        header,
        rows,
        [line.strip() for line in summary_totals(thing)],
        numbers=["Param #"],
    )


def summary_row(operation):
    """Name and class, output shape, and number of weights of a layer or an op."""
    class_name = type(operation).__name__
    if class_name == "Model" and operation._tw_functional is not None:
        class_name = "Functional"
    title = f"{operation.name} ({class_name})"
    shapes = getattr(operation, "_tw_output_shape", None)
    if operation._inbound_nodes:
        outputs = operation._inbound_nodes[-1].output_tensors
        shapes = [tuple(x.shape) for x in outputs]
    if not isinstance(operation, Tracked):  # an op
        title = f"{operation.name} ({operation._tw_display_name})"
        return title, _shape_text(shapes), "0"
    known = operation.built or operation.weights
    params = f"{operation.count_params():,}" if known else "0 (unbuilt)"
    return title, _shape_text(shapes), params


def _shape_text(shapes):
    """A shape, or a nest of them as Python writes it.

    Example:
        >>> from tapewright.layers.base.summary_rows import _shape_text
        >>> _shape_text([(None, 8), (None, 2)]), _shape_text({"a": (None, 8)})
        ('[(None, 8), (None, 2)]', '(None, 8)')
    """
    if shapes is None:
        return "?"
    inner = list(shapes.values() if isinstance(shapes, dict) else shapes)
    if len(inner) == 1 and is_nested(inner[0]):
        return _shape_text(inner[0])
    text = str(shapes).replace("'", "")
    return re.sub(r"\((\w+),\)", r"(\1)", text)  # Keras writes no comma after one size


def summary_totals(model):
    """Lines with the numbers of weights of a model or a layer, and their bytes."""
    lines = []
    groups = [
        ("Total", model.weights),
        ("Trainable", model.trainable_weights),
        ("Non-trainable", model.non_trainable_weights),
    ]
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and getattr(optimizer, "built", False):
        groups[0] = ("Total", [*model.weights, *optimizer.variables])
        groups.append(("Optimizer", optimizer.variables))
    for name, weights in groups:
        count = sum(math.prod(v.shape) for v in weights)
        size = sum(math.prod(v.shape) * v.dtype.size for v in weights)
        lines.append(f" {name} params: {count:,} ({_readable(size)})")
    return lines


def _readable(size):
    """A number of bytes in the largest unit that fits.

    Example:
        >>> from tapewright.layers.base.summary_rows import _readable
        >>> _readable(906 * 4)
        '3.54 KB'
    """
    power = min(int(math.log2(size)) // 10, 5) if size else 0
    return f"{size / 1024**power:.2f} {('B', 'KB', 'MB', 'GB', 'TB', 'PB')[power]}"
