"""Format the result of `describe` as aligned text, about 90 columns wide."""

from tapewright.core.errors import printable

MAX_ROWS = 500
WIDTH = 92
LONGEST = 1000  # characters of a line outside of tables
NUMBERS = ("parameters", "size", "arrays", "nodes", "traces")


def report(description):
    """Format a description as text.

    Control characters that could affect a terminal are removed from the file's text.
    """
    lines = [f"{description['path']}  ({size(description['bytes'])})", ""]
    lines += [f"{name:<12}{text}" for name, text in _facts(description) if text]
    for heading, rows in _tables(description):
        lines += ["", *_table(heading, rows)]
    lines += ["", _totals(description)]
    return "\n".join(_cut(printable(line).rstrip()) for line in lines)


def _cut(line):
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def size(count):
    """Format a number of bytes for people.

    Example:
        >>> from tapewright.inspection.report import size
        >>> size(12), size(20480), size(3_400_000)
        ('12 B', '20.0 KiB', '3.2 MiB')
    """
    if count < 1024:
        return f"{count} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"


def _facts(description):
    yield "format", description["format"]
    yield "seal", _seal(description["seal"])
    yield "written by", _pairs(description.get("written_by"))
    model = description.get("model", {})
    if model:
        name = f"{model['name']!r}, " if model["name"] else ""
        count = f"{model['layers']} layers" if model["layers"] else ""
        yield "model", f"{model['class']} {name}{count}".rstrip(" ,")
    yield from (
        (key, _value(value)) for key, value in description.get("facts", {}).items()
    )
    yield "optimizer", _optimizer(description.get("optimizer", {}))
    for key, value in description.get("training", {}).items():
        yield key.replace("_", " "), _value(value)
    classes = description.get("custom_classes", [])
    registered = ", ".join([each for each in classes if ">" in each])
    others = ", ".join([each for each in classes if ">" not in each])
    yield "needs", registered and f"{registered}: must be registered before loading"
    yield (
        "needs",
        others and f"{others}: must be passed to load_model as custom_objects",
    )
    graphs = ", ".join(description.get("classes_with_graphs", []))
    yield "graphs", graphs and f"{graphs}: load without their class"
    yield from (("note", note) for note in description.get("notes", []))


def _seal(seal):
    if seal == "intact":
        return "intact: every byte is as it was written"
    return "none: changes since writing cannot be detected"


def _optimizer(row):
    parts = [row["class"]] if row.get("class") else []
    if row.get("learning_rate") is not None:
        parts.append(f"learning rate {_value(row['learning_rate'])}")
    if row.get("iterations") is not None:
        parts.append(f"{row['iterations']} steps")
    if row.get("arrays"):
        parts.append(f"{row['arrays']} arrays, {size(row['bytes'])}")
    elif parts:
        parts.append("no state")
    return ", ".join(parts)


def _value(value):
    if isinstance(value, dict):
        return _pairs(value)
    if isinstance(value, list):
        return ", ".join(_value(each) for each in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _pairs(values):
    return ", ".join(f"{key}: {_value(value)}" for key, value in (values or {}).items())


def _tables(description):
    layers = description.get("layers", [])
    if layers:
        known = any(row["class"] for row in layers)
        second = "class" if known else "place"
        heading = ("layer", second, "weights", "dtype", "parameters", "size")
        yield heading, [_layer(row, second) for row in layers]
    others = [
        {
            "columns": ["besides", "arrays", "bytes"],
            "rows": description.get("others", []),
        }
    ]
    for table in [*description.get("tables", []), *others]:
        if table["rows"]:
            columns = table["columns"]
            rows = [
                [_cell(name, row[name]) for name in columns] for row in table["rows"]
            ]
            yield [{"bytes": "size"}.get(name, name) for name in columns], rows


def _cell(column, value):
    if column == "bytes":
        return size(value)
    if column == "shape":
        return _shape(value)
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _layer(row, second):
    shapes = [_shape(each["shape"]) for each in row["weights"]]
    dtypes = sorted({each["dtype"] for each in row["weights"]})
    return (
        row["name"], row[second] or row["place"], _shapes(shapes), ", ".join(dtypes),
        f"{row['parameters']:,}", size(row["bytes"]) if shapes else "",
    )  # fmt: skip


def _shape(shape):
    return "x".join(map(str, shape)) or "scalar"


def _shapes(shapes):
    if len(shapes) > 4:
        return f"{', '.join(shapes[:3])}, {len(shapes) - 3} more"
    return ", ".join(shapes)


def _table(heading, rows):
    """Format a table as lines; columns of numbers are right-aligned."""
    # A name may have a million letters; a line shows as many as fit.
    shown = [[printable(cell[: WIDTH + 1]) for cell in row] for row in rows[:MAX_ROWS]]
    widths = [max(map(len, column)) for column in zip(heading, *shown, strict=True)]
    widths = _narrowed(widths)
    right = [name in NUMBERS for name in heading]
    lines = [_line(heading, widths, right), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, right) for row in shown]
    if len(rows) > MAX_ROWS:
        lines.append(f"... and {len(rows) - MAX_ROWS} more; --json has all of them")
    return lines


def _narrowed(widths):
    """Narrow the widest columns until a line fits."""
    widths = [min(width, WIDTH) for width in widths]
    while sum(widths) + 2 * len(widths) > WIDTH and max(widths) > 12:
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(cells, widths, right):
    parts = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        cell = cell if len(cell) <= width else f"{cell[: width - 3]}..."
        parts.append(cell.rjust(width) if to_right else cell.ljust(width))
    return "  ".join(parts)


def _totals(description):
    totals = description["totals"]
    parts = [f"{totals['parameters']:,} parameters in {totals['weights']} arrays"]
    return f"total: {', '.join(parts)}, {size(totals['bytes'])}"
