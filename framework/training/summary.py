"""The table that ``summary()`` prints, in the form of Keras'."""

import math

__all__ = ["summary_lines"]

_HEADER = ("Layer (type)", "Output Shape", "Param #")
_WIDTHS = (33, 24, 15)  # at least


def summary_lines(model) -> list:
    """Name, output shape and weights of each layer of ``model``, then the totals."""
    rows = [_row(layer) for layer in model.layers]
    cells = [_HEADER, *rows]
    widths = [
        max(least, 2 + max(len(row[i]) for row in cells))
        for i, least in enumerate(_WIDTHS)
    ]
    lines = [f'Model: "{model.name}"', _rule("┏┳┓", "━", widths)]
    lines += [_cells(_HEADER, "┃", widths), _rule("┡╇┩", "━", widths)]
    for i, row in enumerate(rows):
        lines += [_rule("├┼┤", "─", widths)] if i else []
        lines.append(_cells(row, "│", widths))
    lines.append(_rule("└┴┘", "─", widths))
    for name, weights in (
        ("Total", model.weights),
        ("Trainable", model.trainable_weights),
        ("Non-trainable", model.non_trainable_weights),
    ):
        count = sum(math.prod(v.shape) for v in weights)
        size = sum(math.prod(v.shape) * v.dtype.size for v in weights)
        lines.append(f" {name} params: {count:,} ({_readable(size)})")
    return lines


def _row(layer):
    shape = layer._output_shape
    known = layer.built or layer.weights
    params = f"{layer.count_params():,}" if known else "0 (unbuilt)"
    title = f"{layer.name} ({type(layer).__name__})"
    return title, "?" if shape is None else str(tuple(shape)), params


def _rule(ends, line, widths):
    return ends[0] + ends[1].join(line * n for n in widths) + ends[2]


def _cells(row, line, widths):
    title, shape, params = row
    cells = (
        f" {title}".ljust(widths[0]),
        f" {shape}".ljust(widths[1]),
        f"{params} ".rjust(widths[2]),
    )
    return line + line.join(cells) + line


def _readable(size):
    """Bytes in the largest unit of which there is at least one.

    >>> _readable(906 * 4)
    '3.54 KB'
    """
    power = min(int(math.log2(size)) // 10, 5) if size else 0
    return f"{size / 1024**power:.2f} {('B', 'KB', 'MB', 'GB', 'TB', 'PB')[power]}"
