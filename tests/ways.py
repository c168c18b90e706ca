"""`ways`: a test of ``wrap(function)`` runs twice, on the function itself and traced."""

import pytest

import tapewright as tw

ways = pytest.mark.parametrize(
    "wrap", [lambda f: f, tw.function], ids=["eager", "traced"]
)
