"""`model_to_dot` and `plot_model`: plot models as graphs; need the extra ``graphviz``."""

from __future__ import annotations

import os
import shutil
import sys
from html import escape
from typing import TYPE_CHECKING

from tapewright.core.nest import flatten
from tapewright.layers.base.input_layer import InputLayer
from tapewright.layers.base.layer import Layer
from tapewright.storage.atomic import writing_whole

from ..models.model import Model
from ..models.sequential import Sequential

if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

_DIRECTIONS = ("TB", "BT", "LR", "RL")
_SPLINES = ("ortho", "curved", "spline", "polyline", "line")


def model_to_dot(
    model: Model,
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    subgraph: bool = False,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
    **kwargs: Any,
) -> Any:
    """Convert a model to a Graphviz graph of its layers and tensors.

    Models with a custom ``call`` are drawn as one box.

    Args:
        model: Model to plot, built.
        show_shapes: If True, show the shapes of inputs and outputs.
        show_dtype: If True, show the dtypes.
        show_layer_names: If True, show the names of layers.
        rankdir: Direction: "TB" from top to bottom, "BT", "LR" from left to right, or
            "RL".
        expand_nested: If True, show the layers of nested models, in a frame.
        dpi: Dots per inch.
        subgraph: If True, return a part for another graph.
        show_layer_activations: If True, show the activation functions.
        show_trainable: If True, show which layers are trainable.
        splines: Form of edges: "ortho" for right angles, "curved", "spline", "polyline"
            or "line".
        **kwargs: No other options.

    Returns:
        A ``pydot.Dot``, or a ``pydot.Cluster`` for a ``subgraph``.

    Raises:
        ValueError: If the model is not built.
        ImportError: If pydot is not installed.
    """
    if kwargs.pop("layer_range", None) is not None or kwargs:
        unknown = ", ".join(kwargs) or "layer_range"
        raise ValueError(f"model_to_dot: there is no argument {unknown}")
    for name, given, known in (
        ("rankdir", rankdir, _DIRECTIONS),
        ("splines", splines, _SPLINES),
    ):
        if given not in known:
            raise ValueError(
                f"model_to_dot: {name} must be one of {known}, got {given!r}"
            )
    if not model.built:
        raise ValueError(
            f"model_to_dot: model '{model.name}' is not built; call it, or "
            "build(input_shape)"
        )
    pydot = _pydot()
    labels = _Labels(
        show_layer_names,
        show_shapes,
        show_dtype,
        show_layer_activations,
        show_trainable,
    )
    writer = _Writer(pydot, labels, expand_nested)
    if subgraph:
        graph = writer.cluster(model)
    else:
        graph = pydot.Dot(rankdir=rankdir, concentrate=True, dpi=dpi, splines=splines)
        graph.set_node_defaults(shape="plain", fontname="Helvetica")
    writer.add(graph, model)
    return graph


def plot_model(
    model: Model,
    to_file: str | PathLike[str] = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
    **kwargs: Any,
) -> Any:
    """Plot a model with Graphviz to a file: PNG, SVG, PDF or another format by suffix.

    Args:
        model: Model to plot, built.
        to_file: Path of the file; its suffix selects the format.
        show_shapes: If True, show the shapes of inputs and outputs.
        show_dtype: If True, show the dtypes.
        show_layer_names: If True, show the names of layers.
        rankdir: Direction: "TB" from top to bottom, "BT", "LR" from left to right, or
            "RL".
        expand_nested: If True, show the layers of nested models, in a frame.
        dpi: Dots per inch.
        show_layer_activations: If True, show the activation functions.
        show_trainable: If True, show which layers are trainable.
        splines: Form of edges: "ortho" for right angles, "curved", "spline", "polyline"
            or "line".
        **kwargs: No other options.

    Returns:
        The image in a notebook; otherwise, or for a PDF, None.

    Raises:
        ImportError: If pydot or Graphviz' program ``dot`` is not installed.
        ValueError: If the model is not built, or Graphviz does not support the suffix.
    """
    graph = model_to_dot(
        model,
        show_shapes,
        show_dtype,
        show_layer_names,
        rankdir,
        expand_nested,
        dpi,
        show_layer_activations=show_layer_activations,
        show_trainable=show_trainable,
        splines=splines,
        **kwargs,
    )
    if shutil.which("dot") is None:
        raise ImportError(
            "plot_model needs Graphviz' program dot, which pip does not install: apt "
            "install graphviz, brew install graphviz, or https://graphviz.org/download"
        )
    path = os.fspath(to_file)
    ending = os.path.splitext(path)[1][1:] or "png"
    try:
        picture = graph.create(format=ending)
    except AssertionError as error:
        raise ValueError(f"plot_model: {path!r} cannot be written: {error}") from None
    with writing_whole(path) as temporary, open(temporary, "wb") as file:
        file.write(picture)
    return _for_notebook(path, ending)


def _pydot():
    try:
        import pydot
    except ImportError as error:
        raise ImportError(
            "model_to_dot and plot_model need pydot: pip install 'tapewright[graphviz]'; "
            "to draw, also Graphviz' program dot, https://graphviz.org/download"
        ) from error
    return pydot


def _for_notebook(path, ending):
    display = sys.modules.get("IPython.display")  # a notebook has it loaded
    if display is None or ending == "pdf":
        return None
    return (display.SVG if ending == "svg" else display.Image)(filename=path)


class _Writer:
    """Writer of boxes and edges; boxes are numbered, so that the text is reproducible."""

    def __init__(self, pydot, labels, expand_nested):
        self._pydot, self._labels, self._expand = pydot, labels, expand_nested
        self._numbers = {}  # id of a layer or op -> the name of its box
        self._clusters = 0

    def add(self, graph, model):
        """Add the boxes and edges of a model to a graph."""
        if not _has_layers(model):
            self._add_box(graph, model, None)
            return
        nodes, calls = model._tw_need_graph("layers").nodes, {}
        for node in nodes:
            calls.setdefault(id(node.operation), node)
        for operation in model._tw_operations():
            if self._expands(operation):
                inner = self.cluster(operation)
                self.add(inner, operation)
                graph.add_subgraph(inner)
            else:
                self._add_box(graph, operation, calls.get(id(operation)))
        edges = [edge for node in nodes for edge in self._edges_to(node)]
        for source, target in dict.fromkeys(edges):
            if source in self._numbers and target in self._numbers:
                names = self._numbers[source], self._numbers[target]
                graph.add_edge(self._pydot.Edge(*names, penwidth=2))

    def cluster(self, model):
        """Return a frame for the layers of a model."""
        self._clusters += 1  # names would join frames that have one name
        return self._pydot.Cluster(
            str(self._clusters), label=model.name, style="dashed", labeljust="l"
        )

    def _expands(self, operation):
        return self._expand and isinstance(operation, Model) and _has_layers(operation)

    def _add_box(self, graph, operation, node):
        name = str(len(self._numbers))
        if self._numbers.setdefault(id(operation), name) == name:
            label = self._labels.label(operation, node)
            graph.add_node(self._pydot.Node(name, label=label))

    def _edges_to(self, node):
        """Yield the ids of a tensor's source and target, inside expanded models."""
        for index, tensor in enumerate(node.input_tensors):
            source, target = tensor._keras_history, node.operation
            while self._expands(source.operation):
                outputs = source.operation.outputs
                source = outputs[source.tensor_index]._keras_history
            while self._expands(target):
                if isinstance(target, Sequential):  # its input is no box
                    target = target.layers[0]
                else:
                    target = target.inputs[index]._keras_history.operation
            yield id(source.operation), id(target)


def _has_layers(model):
    """Return whether a model has layers and tensors that can be drawn."""
    try:
        return bool(model._tw_need_graph("layers").nodes and model._tw_operations())
    except AttributeError:  # a subclass
        return False


class _Labels:
    """Boxes as Graphviz' HTML: a title, and below it the requested lines."""

    def __init__(self, names, shapes, dtype, activations, trainable):
        self._names, self._shapes, self._dtype = names, shapes, dtype
        self._activations, self._trainable = activations, trainable

    def label(self, operation, node):
        """Return the label of one layer or op, whose call in the model is ``node``."""
        is_layer = isinstance(operation, Layer)
        label = type(operation).__name__ if is_layer else operation._tw_display_name
        label = escape(label)
        name = escape(operation.name)
        title = f"<b>{name}</b> ({label})" if self._names else f"<b>{label}</b>"
        cells = self._cells(operation, node)
        rows = [_row([("black", "white", 16, title)], len(cells))]
        activation = getattr(operation, "activation", None)
        if self._activations and activation is not None:
            text = getattr(activation, "__name__", None) or type(activation).__name__
            text = f"Activation: <b>{escape(text)}</b>"
            rows.append(_row([("white", "black", 14, text)], len(cells)))
        rows += [_row(cells)] if cells else []
        table = '<table border="0" cellborder="1" cellspacing="0" cellpadding="10">'
        return f"<{table}{''.join(rows)}</table>>"

    def _cells(self, operation, node):
        inputs = None if node is None else node.input_tensors
        outputs = None if node is None else node.output_tensors
        cells = []
        if self._shapes and not isinstance(operation, InputLayer):
            cells.append(f"Input shape: <b>{_shapes(inputs)}</b>")
        if self._shapes:
            cells.append(f"Output shape: <b>{_shapes(outputs)}</b>")
        if self._dtype:
            dtypes = dict.fromkeys([x.dtype.name for x in outputs or ()])
            cells.append(f"Output dtype: <b>{', '.join(dtypes) or '?'}</b>")
        cells = [("white", "black", 14, text) for text in cells]
        if self._trainable and getattr(operation, "weights", ()):
            trains = operation.trainable
            color = "forestgreen" if trains else "firebrick"
            text = f"<b>{'Trainable' if trains else 'Non-trainable'}</b>"
            cells.append((color, "white", 14, text))
        return cells


def _row(cells, columns=1):
    """Return a table row of cells (background, color, text size, text)."""
    span = f' colspan="{columns}"' if columns > 1 else ""
    inner = [
        f'<td bgcolor="{background}"{span}>'
        f'<font point-size="{size}" color="{color}">{text}</font></td>'
        for background, color, size, text in cells
    ]
    return f"<tr>{''.join(inner)}</tr>"


def _shapes(tensors):
    if tensors is None:
        return "?"
    return ", ".join([str(tuple(x.shape)) for x in flatten(tensors)]) or "()"
