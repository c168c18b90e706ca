"""The table printed by ``summary()``, in Keras' layout."""

import textwrap

from tapewright.core.messages.logger import get_logger
from tapewright.core.messages.suggestions import suggestion
from tapewright.layers.base.layer import Layer
from tapewright.layers.base.summary_rows import (
    HEADER,
    html_summary,
    summary_row,
    summary_totals,
)

from ..config import is_interactive_logging_enabled

# The widths of the columns that fill a line of 80, as Keras chooses them.
_WIDTHS = {
    ("Layer (type)", "Output Shape", "Param #"): (33, 24, 15),
    ("Layer (type)", "Output Shape", "Param #", "Connected to"): (21, 19, 12, 19),
    ("Layer (type)", "Output Shape", "Param #", "Trainable"): (28, 20, 12, 11),
    ("Layer (type)", "Output Shape", "Param #", "Connected to", "Trainable"): (
        (17, 17, 10, 15, 11)
    ),
}

# The lines of the table for outputs that cannot show them.
_PLAIN = str.maketrans("━─│┃┏┳┓┡╇┩├┼┤└┴┘", "=-||" + "+" * 12)


def print_summary(
    model,
    line_length=None,
    positions=None,
    print_fn=None,
    expand_nested=False,
    show_trainable=False,
    layer_range=None,
):
    """Print the table; see `Model.summary`."""
    lines = _summary_lines(
        model, line_length, positions, expand_nested, show_trainable, layer_range
    )
    (print_fn or _print)("\n".join(lines))


def _print(text):
    if not is_interactive_logging_enabled():
        get_logger().info(text)
        return
    try:
        print(text)
    except UnicodeEncodeError:  # such as a pipe on Windows, or the C locale
        print(text.translate(_PLAIN).encode("ascii", "replace").decode())


def _summary_lines(
    model,
    line_length=None,
    positions=None,
    expand_nested=False,
    show_trainable=False,
    layer_range=None,
) -> list:
    """Return the lines: name, output shape and weights of each layer, then the totals."""
    header, rows = _table(model, expand_nested, show_trainable, layer_range)
    widths = _widths(header, line_length, positions)
    lines = [f'Model: "{model.name}"', _rule("┏┳┓", "━", widths)]
    lines += [*_cells(header, "┃", widths, header), _rule("┡╇┩", "━", widths)]
    for i, row in enumerate(rows):
        lines += [_rule("├┼┤", "─", widths)] if i else []
        lines += _cells(row, "│", widths, header)
    lines.append(_rule("└┴┘", "─", widths))
    return lines + summary_totals(model)


def summary_html(model) -> str:
    """Return the table for a notebook."""
    header, rows = _table(model)
    return html_summary(model, f'Model: "{model.name}"', header, rows)


def _table(model, expand_nested=False, show_trainable=False, layer_range=None):
    """The header, and the cells of each row."""
    links, header, rows = _links(model), [*HEADER], []
    if links is not None:
        header.append("Connected to")
    if show_trainable:
        header.append("Trainable")
    for operation in _in_range(model, layer_range):
        rows += _rows(operation, links, show_trainable, expand_nested, "")
    return header, rows


def _in_range(model, layer_range):
    operations = model._tw_operations()
    if layer_range is None:
        return operations
    names = [operation.name for operation in operations]
    for name in layer_range:
        if name not in names:
            raise ValueError(
                f"layer_range: there is no layer {name!r}"
                f"{suggestion(name, names, 'there are')}"
            )
    first, last = [names.index(name) for name in layer_range]
    return operations[first : last + 1]


def _links(model):
    """Map operation ids to the names of their inputs; None for a plain chain of layers."""
    graph = getattr(model, "_tw_functional", None)
    if graph is None or _is_line(graph):
        return None
    nodes, links = {id(node) for node in graph.nodes}, {}
    for operation in graph.operations:
        sources = []
        for node in operation._inbound_nodes:
            if id(node) in nodes:
                for x in node.input_tensors:
                    maker, call, index = x._keras_history
                    sources.append(f"{maker.name}[{call}][{index}]")
        links[id(operation)] = sources
    return links


def _is_line(graph):
    if len(graph.inputs) > 1:
        return False
    inner = [node for node in graph.nodes if node.args]
    if any([len(node.input_tensors) != 1 for node in inner]):
        return False
    ends = [node.input_tensors[0]._keras_history[:2] for node in inner]
    ends = [(id(operation), call) for operation, call in ends]
    operations = {id(node.operation) for node in inner}
    return len(set(ends)) == len(ends) and len(operations) == len(inner)


def _rows(operation, links, show_trainable, expand_nested, indent):
    title, *cells = summary_row(operation)
    cells = [indent + title, *cells]
    if links is not None:
        cells.append(", ".join(links.get(id(operation), [])) or "-")
    if show_trainable:
        known = isinstance(operation, Layer) and operation.weights
        cells.append(("Y" if operation.trainable else "N") if known else "-")
    rows = [cells]
    if expand_nested and hasattr(operation, "operations"):
        for inner in operation._tw_operations():
            rows += _rows(
                inner, links and {}, show_trainable, True, f"   {indent or '└ '}"
            )
    return rows


def _widths(header, line_length, positions):
    if positions is not None:
        ends = [round(p * (line_length or 80)) if p <= 1 else p for p in positions]
        return [end - start - 1 for start, end in zip([0, *ends], ends)]
    widths = list(_WIDTHS[tuple(header)])
    if line_length is not None:
        widths[0] = max(12, widths[0] + line_length - sum(widths) - len(widths) - 1)
    return widths


def _rule(ends, line, widths):
    return ends[0] + ends[1].join(line * n for n in widths) + ends[2]


def _cells(row, line, widths, header):
    """Yield the lines of a row; text that is too long for its column is wrapped."""
    texts = [_wrapped(text, width - 2) for text, width in zip(row, widths)]
    for i in range(max([len(text) for text in texts])):
        cells = []
        for text, width, title in zip(texts, widths, header):
            part = text[i] if i < len(text) else ""
            if title == "Param #":
                cells.append(f"{part} ".rjust(width))
            elif title == "Trainable":
                cells.append(part.center(width))
            else:
                cells.append(f" {part}".ljust(width))
        yield line + line.join(cells) + line


def _wrapped(text, width):
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [x if len(x) <= width else f"{x[: width - 1]}…" for x in lines]
