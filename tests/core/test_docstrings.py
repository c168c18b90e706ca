"""Docstrings that tables define: all arguments of the signature, in its order."""

import inspect
import re

import pytest

from tapewright import keras
from tapewright.core.docstrings import arguments_of, compose
from tapewright.experimental import numpy as tnp


def documented_functions():
    for space in (keras.ops, keras.ops.image, keras.backend, tnp, tnp.random):
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


@pytest.mark.parametrize(
    "space",
    ["tapewright.keras.ops", "tapewright.keras.backend", tnp.__name__],
)
def test_docstrings_list_the_arguments_of_the_signature_in_order(space):
    wrong = {
        name: found
        for name, function in documented_functions()
        if name.startswith(space)
        for expected, found in [arguments(function)]
        if expected != found
    }
    assert wrong == {}


def test_functions_of_every_space_are_documented():
    names = {name.rpartition(".")[0] for name, _ in documented_functions()}
    assert {tnp.__name__, tnp.random.__name__, keras.ops.__name__} <= names


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


def test_variadic_arguments_have_their_stars():
    def join(*xs, **options): ...

    doc = compose(join, "Join.", args={"xs": "Tensors.", "options": "Settings."})
    assert doc.endswith("    *xs: Tensors.\n    **options: Settings.")


def shift(x, y, n=1):
    """Compute ``x + n * y``.

    Args:
        x: Input tensor.
        y: Step, which broadcasts with ``x``; x of the text stays, and the sentence
            continues with ``x[y]``.
        n: Number of steps.

    Returns:
        A tensor.
    """


def test_sentences_of_another_function_are_found_under_new_names():
    assert arguments_of(shift, ["a", "b"]) == {
        "a": "Input tensor.",
        "b": "Step, which broadcasts with ``a``; x of the text stays, and the sentence "
        "continues with ``a[b]``.",
        "n": "Number of steps.",
    }


def test_a_function_without_arguments_in_its_docstring_has_no_sentences():
    def shift(x):
        """Shift."""

    assert arguments_of(shift, ["a"]) == {}
