"""Docstrings that tables define: all arguments of the signature, in its order."""

import inspect
import re

import pytest

from tapewright import keras
from tapewright.core.docstrings import compose


def documented_functions():
    for space in (keras.ops, keras.ops.image, keras.backend):
        for name in space.__all__:
            value = getattr(space, name)
            if inspect.isroutine(value) and value.__module__.startswith(space.__name__):
                yield f"{space.__name__}.{name}", value


def arguments(function):
    """Return the names that the signature has, and the names under ``Args:``."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    section = re.search(
        r"^Args:\n((?: +.*\n|\n)*)", inspect.getdoc(function) + "\n", re.M
    )
    found = re.findall(r"^    ([*\w]+):", section[1], re.M) if section else []
    expected = [stars.get(p.kind, "") + p.name for p in parameters]
    return [n for n in expected if n != "name"], [n for n in found if n != "name"]


@pytest.mark.parametrize("space", ["tapewright.keras.ops", "tapewright.keras.backend"])
def test_docstrings_list_the_arguments_of_the_signature_in_order(space):
    wrong = {
        name: found
        for name, function in documented_functions()
        if name.startswith(space)
        for expected, found in [arguments(function)]
        if expected != found
    }
    assert wrong == {}


def test_arguments_precede_the_first_section():
    def norm(x): ...

    doc = compose(
        norm, "Compute the norm.", "It is positive.\n\nReturns:\n    A scalar."
    )
    text = "Compute the norm.\n\nIt is positive.\n\n"
    assert doc == f"{text}Args:\n    x: Input tensor.\n\nReturns:\n    A scalar."


def test_an_argument_without_a_sentence_is_refused():
    def scale(x, factor): ...

    with pytest.raises(KeyError, match="factor"):
        compose(scale, "Multiply by a factor.")


def test_long_sentences_are_wrapped():
    def scale(x): ...

    doc = compose(scale, "Scale.", args={"x": "word " * 30})
    assert max(map(len, doc.splitlines())) <= 88
    assert doc.splitlines()[4].startswith(" " * 8 + "word")
