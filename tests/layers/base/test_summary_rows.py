"""The rows of a summary, and the table of a layer in a notebook."""

import re

import numpy as np

from tapewright import keras
from tapewright.layers.base.summary_rows import summary_row, summary_totals


def cells(page):
    """The texts of the rows of a table."""
    rows = re.findall("<tr>(.*?)</tr>", page)
    return [re.findall(">([^<]*)</t[hd]>", row) for row in rows]


def test_a_layer_that_is_not_built_has_a_row():
    layer = keras.layers.Dense(3, name="d")
    assert summary_row(layer) == ("d (Dense)", "?", "0 (unbuilt)")


def test_totals_count_entries_and_bytes():
    layer = keras.layers.Dense(3)
    layer.build((None, 2))
    assert summary_totals(layer)[0] == " Total params: 9 (36.00 B)"


def test_a_notebook_shows_the_layers_inside_of_a_layer():
    layer = keras.layers.TimeDistributed(keras.layers.Dense(3, name="in"), name="out")
    layer(np.ones((2, 4, 5), "float32"))
    header, *rows = cells(layer._repr_html_())
    assert header == ["Layer (type)", "Output Shape", "Param #"]
    assert rows[0] == ["out (TimeDistributed)", "(2, 4, 3)", "18"]
    assert [row[0] for row in rows[1:]] == ["   └ in (Dense)"]
    assert "Total params: 18 (72.00 B)" in layer._repr_html_()


def test_a_layer_that_refers_to_itself_is_shown_once():
    class Knot(keras.layers.Layer):
        def __init__(self):
            super().__init__(name="knot")
            self.inner = keras.layers.Dense(2, name="inner")
            self.inner.outer = self

    assert len(cells(Knot()._repr_html_())) == 3
