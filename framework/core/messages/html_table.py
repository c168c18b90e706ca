"""Tables for notebooks: HTML that opens and closes by a click, without scripts or colors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MOST_OPEN = 30  # rows of a table that is open at first
# White space in a cell indents inner rows. A theme sets the colors, light or dark.
_STYLE = "text-align: {}; white-space: pre-wrap"


def html_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Iterable[str] = (),
    numbers: Sequence[str] = (),
) -> str:
    """Return a title, with a table and lines below it that a click shows and hides.

    Args:
        title: The text that is always shown.
        header: The names of the columns.
        rows: The cells of each row. All texts are escaped.
        lines: Lines of text below the table.
        numbers: The columns that are aligned to the right.
    """
    from html import escape  # its table of characters is for notebooks only

    def cells(row, tag):
        for name, text in zip(header, row):
            style = _STYLE.format("right" if name in numbers else "left")
            yield f'<{tag} style="{style}">{escape(text)}</{tag}>'

    parts = [f"<details{' open' if len(rows) <= _MOST_OPEN else ''}>"]
    parts.append(f"<summary>{escape(title)}</summary>")
    parts.append(
        f"<table><thead><tr>{''.join(cells(header, 'th'))}</tr></thead><tbody>"
    )
    parts += [f"<tr>{''.join(cells(row, 'td'))}</tr>" for row in rows]
    parts.append("</tbody></table>")
    parts += [f"<div>{escape(line)}</div>" for line in lines]
    return "".join([*parts, "</details>"])
