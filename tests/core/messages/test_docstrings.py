"""Docstrings that tables define; `tests/docs` holds all of them to their signatures."""

import pytest

from tapewright.core.messages.docstrings import arguments_of, compose


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
