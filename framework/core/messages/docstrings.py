"""Docstrings of functions that tables define: summary, ``Args:``, further sections.

`compose` describes the arguments by the sentences of `ARGUMENTS`, which an entry in the
function's table can override. `summary_of` and `arguments_of` take the summary and the
sentences of another function, with other names of the arguments.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# The sentences about arguments that mean the same in most functions.
ARGUMENTS = {
    "x": "Input tensor.",
    "y": "Second tensor; broadcasts with ``x``.",
    "x1": "First tensor.",
    "x2": "Second tensor; broadcasts with ``x1``.",
    "axis": "Axis or tuple of axes to reduce; None reduces all axes.",
    "keepdims": "If True, keep reduced axes with size 1.",
    "dtype": "Dtype of the result; None keeps the dtype of ``x``.",
    "name": "Name of the operation; it changes nothing.",
}

_WIDTH = 88
_CODE = re.compile("``.*?``")
_NAME = re.compile(r"\w+")
_ARGS = re.compile(r"^Args:\n((?: +.*\n|\n)*)", re.MULTILINE)
_ARG = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_SECTION = re.compile("^(Shapes|Returns|Raises|References|Example):$", re.MULTILINE)


def compose(
    function: Callable[..., Any],
    summary: str,
    details: str = "",
    args: Mapping[str, str] | None = None,
) -> str:
    """Return a docstring in Google style, with all arguments in the order of the signature.

    Args:
        function: Function whose signature lists the arguments.
        summary: First paragraph.
        details: Paragraphs and sections that follow; ``Args:`` precedes the sections.
        args: Sentences about arguments that override `ARGUMENTS`.

    Raises:
        KeyError: If an argument has no sentence.

    Example:
        >>> from tapewright.core.messages.docstrings import compose
        >>> def twice(x, axis): ...
        >>> print(compose(twice, "Double the entries.", args={"axis": "Axis to double."}))
        Double the entries.
        <BLANKLINE>
        Args:
            x: Input tensor.
            axis: Axis to double.
    """
    details = inspect.cleandoc(details)
    section = _SECTION.search(details)
    start = section.start() if section else len(details)
    sentences = {**ARGUMENTS, **(args or {})}
    parameters = inspect.signature(function).parameters.values()
    entries = [
        _entry(_STARS.get(p.kind, "") + p.name, sentences[p.name]) for p in parameters
    ]
    parts = [summary, details[:start], "\n".join(["Args:", *entries]), details[start:]]
    return "\n\n".join([part.strip() for part in parts if part])


def _entry(name, sentence):
    line = f"    {name}: {sentence}"
    if len(line) <= _WIDTH:
        return line
    return textwrap.fill(line, _WIDTH, subsequent_indent=" " * 8)


def summary_of(op: Callable[..., Any], names: Iterable[str]) -> str:
    """Return the first paragraph of an op's docstring with renamed arguments.

    Args:
        op: Function that has the docstring.
        names: New names of its first arguments, in order; they replace the old names in
            code.

    Example:
        >>> from tapewright.core.messages.docstrings import summary_of
        >>> def shift(x, y):
        ...     '''Compute ``x * 2 ** y``.'''
        >>> summary_of(shift, ["x1", "x2"])
        'Compute ``x1 * 2 ** x2``.'
    """
    summary = (inspect.getdoc(op) or "").partition("\n\n")[0]
    return _renamed(summary, _new_names(op, names))


def arguments_of(op: Callable[..., Any], names: Iterable[str]) -> dict[str, str]:
    """Return the sentences about the arguments in an op's docstring, with other names.

    Args:
        op: Function that has the docstring.
        names: New names of its first arguments, in order.

    Example:
        >>> from tapewright.core.messages.docstrings import arguments_of
        >>> def shift(x, y):
        ...     '''Compute ``x * 2 ** y``.
        ...
        ...     Args:
        ...         x: Input tensor.
        ...         y: Power of 2, which broadcasts with ``x``.
        ...     '''
        >>> arguments_of(shift, ["a"])
        {'a': 'Input tensor.', 'y': 'Power of 2, which broadcasts with ``a``.'}
    """
    new_names = _new_names(op, names)
    section = _ARGS.search((inspect.getdoc(op) or "") + "\n")
    entries = _ARG.findall(section[1]) if section else []
    return {
        new_names.get(name, name): _renamed(" ".join(text.split()), new_names)
        for name, text in entries
    }


def _new_names(op, names):
    return dict(zip(inspect.signature(op).parameters, names))


def _renamed(text, new_names):
    """Return a text with other names in its code."""

    def rename(code):
        return _NAME.sub(lambda name: new_names.get(name[0], name[0]), code[0])

    return _CODE.sub(rename, text)
