"""Table of the steps of a dataset, for notebooks."""

from tapewright.core.messages.html_table import html_table
from tapewright.core.nest import map_structure

from .nodes.node import INFINITE, UNKNOWN

_NUMBERS = {INFINITE: "endless", UNKNOWN: "unknown"}


def html_pipeline(node):
    """Return a table of the steps up to ``node``, with specs and cardinalities.

    Nothing is traced or read: elements that are not yet known are shown as "?".
    """
    rows = _rows(node, "")
    *_, number = rows[-1]
    title = f"Dataset, cardinality: {number}"
    return html_table(
        title, ["Step", "Elements", "Cardinality"], rows, numbers=["Cardinality"]
    )


def _rows(node, indent):
    rows = []
    inner = f"   {indent or '└ '}" if len(node.inputs) > 1 else indent
    for each in node.inputs:
        rows += _rows(each, inner)
    size = node.size()
    number = _NUMBERS.get(size) or f"{size:,}"
    rows.append((indent + type(node).__name__, _elements(node), number))
    return rows


def _elements(node):
    if node.traces() or not node.declares():
        return "?"
    return str(map_structure(_Leaf, node.spec()))


class _Leaf:
    """Spec in a nest, printed as ``float32 (None, 3)``."""

    def __init__(self, spec):
        self._spec = spec

    def __repr__(self):
        spec = self._spec
        if not hasattr(spec, "dtype") or not hasattr(spec, "shape"):
            return str(spec)
        shape = "unknown" if spec.shape.rank is None else tuple(spec.shape)
        return f"{spec.dtype.name} {shape}"
