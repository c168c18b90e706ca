"""`plot_model`: a model as boxes and arrows; needs the extra ``plot``."""

from tapewright.core.nest import flatten
from tapewright.layers.base.input_layer import InputLayer
from tapewright.layers.base.layer import Layer
from tapewright.plot import new_figure, save

from ..models.model import Model
from ..models.sequential import Sequential
from .graph_layout import draw_layered

__all__ = ["plot_model"]

DARK, GREEN, LINE, FRAME = "#34435e", "#2f8f5b", "#5f6672", "#9aa3b2"
TITLE_SIZE, TEXT_SIZE = 10.0, 8.5  # points, as all lengths here
PAD, MARGIN, RADIUS = 8.0, 14.0, 4.0
MAX_PIXELS = 60_000  # along a side; matplotlib takes no more than 2 ** 16
DIRECTIONS = ("TB", "BT", "LR", "RL")
SPLINES = ("ortho", "curved", "spline", "polyline", "line")


def plot_model(
    model,
    to_file="model.png",
    show_shapes=False,
    show_dtype=False,
    show_layer_names=False,
    rankdir="TB",
    expand_nested=False,
    dpi=200,
    show_layer_activations=False,
    show_trainable=False,
    splines="ortho",
):
    """Draws the layers of a model and what leads from one to another.

    Args: ``to_file``: PNG, SVG or PDF by its ending, or None; ``show_*``: what the boxes
    tell; ``rankdir``: "TB" from top to bottom, "BT", "LR" from left to right, "RL";
    ``expand_nested``: draw the layers of models inside, in a frame; ``dpi``: pixels per
    inch; ``splines``: "ortho" for lines with right angles, "curved", or "line".

    Returns: the figure, which a notebook shows.
    Raises: ``ValueError`` if the model is not built, ``ImportError`` without matplotlib.
    """
    if rankdir not in DIRECTIONS or splines not in SPLINES:
        raise ValueError(
            f"plot_model: rankdir must be one of {DIRECTIONS} and splines one of "
            f"{SPLINES}, got {rankdir!r} and {splines!r}"
        )
    if not model.built:
        raise ValueError(
            f"plot_model: model '{model.name}' is not built; call it, or "
            "build(input_shape)"
        )
    shown = {
        "names": show_layer_names,
        "shapes": show_shapes,
        "dtype": show_dtype,
        "activations": show_layer_activations,
        "trainable": show_trainable,
    }
    graph = _Graph(model, shown, expand_nested, rankdir in ("LR", "RL"))
    canvas = _Canvas(graph, rankdir, splines)
    if to_file is not None:
        longest = max(canvas.figure.get_size_inches())
        save(canvas.figure, to_file, min(dpi, MAX_PIXELS / longest))
    return canvas.figure


# --------------------------------------------------------------- what there is to draw


class _Box:
    """A layer or op, with its lines of text; ``inner`` is the graph of an expanded model."""

    def __init__(self, operation, title, lines, inner=None):
        self.operation, self.inner = operation, inner
        self.title, self.lines = title, lines
        widths = [_text_width(title, TITLE_SIZE, True)]
        widths += [_text_width(line, TEXT_SIZE) for line in lines]
        self.head = TITLE_SIZE + 2 * 5.5
        self.width = max(widths) + 2 * PAD
        self.height = self.head + len(lines) * (TEXT_SIZE + 4) + (7 if lines else 0)
        if inner is not None:
            self.width = max(self.width, inner.width + 2 * MARGIN)
            self.height += inner.height + 2 * MARGIN


class _Graph:
    """Boxes with their places; lengths are measured from the top left corner."""

    def __init__(self, model, shown, expand_nested, sideways):
        nodes, operations = _nodes_of(model)
        calls = {}
        for node in nodes:
            calls.setdefault(id(node.operation), node)
        self.boxes = {}
        for operation in operations:
            inner = None
            if expand_nested and _is_expandable(operation):
                inner = _Graph(operation, shown, True, sideways)
            title, lines = _texts(operation, calls.get(id(operation)), shown)
            self.boxes[id(operation)] = _Box(operation, title, lines, inner)
        edges = [
            (id(parent.operation), id(node.operation))
            for node in nodes
            for parent in node.parents
            if id(parent.operation) in self.boxes
        ]
        if nodes or len(operations) < 2:
            self.edges = list(dict.fromkeys(edges))
        else:  # layers whose order is known, but no tensors between them
            self.edges = list(zip(self.boxes, list(self.boxes)[1:]))
        sizes = {key: (box.width, box.height) for key, box in self.boxes.items()}
        if sideways:
            sizes = {key: (height, width) for key, (width, height) in sizes.items()}
        self.drawing = draw_layered(sizes, self.edges)
        across, along = self.drawing.width, self.drawing.height
        self.width, self.height = (along, across) if sideways else (across, along)


def _nodes_of(model):
    """The calls inside a model, and its layers and ops in order."""
    try:
        network = model._need_network("layers")
    except AttributeError:  # a subclass: only that it is there is known
        return [], [model]
    operations = network.operations
    if isinstance(model, Sequential):
        operations = model.layers
    own = {id(operation) for operation in operations}
    return [n for n in network.nodes if id(n.operation) in own], operations


def _is_expandable(operation):
    return isinstance(operation, Model) and _nodes_of(operation)[1] != [operation]


def _texts(operation, node, shown):
    """The title of a box and the lines below it."""
    kind = type(operation).__name__ if isinstance(operation, Layer) else operation.kind
    title = f"{operation.name} ({kind})" if shown["names"] else kind
    lines = []
    activation = getattr(operation, "activation", None)
    if shown["activations"] and activation is not None:
        name = getattr(activation, "__name__", None) or type(activation).__name__
        lines.append(f"activation: {name}")
    inputs = None if node is None else node.input_tensors
    outputs = None if node is None else node.output_tensors
    if shown["shapes"]:
        if not isinstance(operation, InputLayer):
            lines.append(f"input: {_shapes(inputs)}")
        lines.append(f"output: {_shapes(outputs)}")
    if shown["dtype"]:
        dtypes = [x.dtype.name for x in outputs or ()]
        lines.append(f"dtype: {', '.join(dict.fromkeys(dtypes)) or '?'}")
    if shown["trainable"] and getattr(operation, "weights", ()):
        lines.append("trainable" if operation.trainable else "not trainable")
    return title, lines


def _shapes(tensors):
    if tensors is None:
        return "?"
    return ", ".join([str(tuple(x.shape)) for x in flatten(tensors)]) or "()"


# ------------------------------------------------------------------------ the picture


class _Canvas:
    """A figure with one unit per point, the origin at the top left."""

    def __init__(self, graph, rankdir, splines):
        self.rankdir, self.splines = rankdir, splines
        self._level = 2.0
        width, height = graph.width + 2 * MARGIN, graph.height + 2 * MARGIN
        self.figure = new_figure(width / 72, height / 72, layout=None)
        self.axes = self.figure.add_axes([0, 0, 1, 1])
        self.axes.set_axis_off()
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(height, 0)
        self.draw_graph(graph, MARGIN, MARGIN)

    def draw_graph(self, graph, left, top):
        """Draws the boxes of a graph and its edges, from a corner."""
        for line in graph.drawing.lines.values():
            self._draw_line(graph, line, left, top)
        for key, box in graph.boxes.items():
            x, y = self._at(graph, *graph.drawing.centers[key])
            self._draw_box(box, left + x - box.width / 2, top + y - box.height / 2)

    def _at(self, graph, across, along):
        """A point of the layout, which runs downwards, in the direction asked for."""
        if self.rankdir in ("BT", "RL"):
            along = graph.drawing.height - along
        return (across, along) if self.rankdir in ("TB", "BT") else (along, across)

    def _draw_line(self, graph, pieces, left, top):
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        points, codes = [pieces[0].start], [Path.MOVETO]
        for piece in pieces:
            (x, y), (end_x, end_y) = piece.start, piece.end
            if piece.turn is None or x == end_x or self.splines in ("line", "polyline"):
                between, code = [], Path.LINETO
            elif self.splines == "ortho":
                between, code = [(x, piece.turn), (end_x, piece.turn)], Path.LINETO
            else:
                middle = (y + end_y) / 2
                between, code = [(x, middle), (end_x, middle)], Path.CURVE4
            points += [*between, piece.end]
            codes += [code] * (len(between) + 1)
        points = [self._at(graph, *point) for point in points]
        path = Path([(left + x, top + y) for x, y in points], codes)
        self._level += 0.001
        self.axes.add_patch(
            FancyArrowPatch(
                path=path, arrowstyle="-|>", mutation_scale=9, color=LINE, linewidth=1.3,
                shrinkA=0, shrinkB=0, joinstyle="round", capstyle="butt",
                zorder=self._level,
            )
        )  # fmt: skip

    def _draw_box(self, box, left, top):
        color = GREEN if isinstance(box.operation, InputLayer) else DARK
        middle, expanded = left + box.width / 2, box.inner is not None
        self._frame(left, top, box.width, box.height, expanded, color)
        head = box.head if box.lines or expanded else box.height
        if not expanded:
            self._band(left, top, box.width, head, head == box.height, color)
        title_color = color if expanded else "white"
        self._text(middle, top + head / 2, box.title, TITLE_SIZE, title_color, "bold")
        y = top + box.head + 3.5
        for line in box.lines:
            y += TEXT_SIZE + 4
            self._text(middle, y - (TEXT_SIZE + 4) / 2, line, TEXT_SIZE, "#30363f")
        if expanded:
            x = left + (box.width - box.inner.width) / 2
            self.draw_graph(box.inner, x, top + box.height - MARGIN - box.inner.height)

    def _frame(self, left, top, width, height, expanded, color):
        face, edge = ("#f1f4f8", FRAME) if expanded else ("white", color)
        self._patch(_rounded(left, top, width, height), face, edge)

    def _band(self, left, top, width, height, is_whole, color):
        self._patch(_rounded(left, top, width, height, is_whole), color, color)

    def _patch(self, path, face, edge):
        from matplotlib.patches import PathPatch

        self._level += 0.001  # each above what was drawn before
        patch = PathPatch(path, facecolor=face, edgecolor=edge, linewidth=1.1)
        patch.set_zorder(self._level)
        self.axes.add_patch(patch)

    def _text(self, x, y, text, size, color, weight="normal"):
        self.axes.text(
            x, y, text, fontsize=size, color=color, ha="center", va="center_baseline",
            fontweight=weight, zorder=self._level + 0.0005, parse_math=False,
        )  # fmt: skip


def _rounded(left, top, width, height, round_bottom=True):
    """A rectangle with round corners, or with those above alone."""
    from matplotlib.path import Path

    right, bottom, r = left + width, top + height, RADIUS
    low = r if round_bottom else 0.0
    points = [
        (left, bottom - low), (left, top + r), (left, top), (left + r, top),
        (right - r, top), (right, top), (right, top + r),
        (right, bottom - low), (right, bottom), (right - low, bottom),
        (left + low, bottom), (left, bottom), (left, bottom - low), (left, bottom),
    ]  # fmt: skip
    line, curve = Path.LINETO, Path.CURVE3
    codes = [Path.MOVETO, line, curve, curve] + [line, curve, curve] * 3
    return Path(points, [*codes, Path.CLOSEPOLY])


def _text_width(text, size, bold=False):
    """The width of a line of text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
