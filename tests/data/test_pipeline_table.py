"""The table of a data set in a notebook."""

import re
from html import unescape

import numpy as np

from tapewright.data import Dataset


def cells(dataset):
    """The texts of the rows."""
    rows = re.findall("<tr>(.*?)</tr>", dataset._repr_html_())
    return [re.findall(">([^<]*)</t[hd]>", unescape(row)) for row in rows]


def test_steps_are_listed_from_the_source_on():
    dataset = Dataset.from_tensor_slices(np.ones((10, 3), "f")).shuffle(4).batch(4)
    assert cells(dataset) == [
        ["Step", "Elements", "Cardinality"],
        ["Slices", "float32 (3,)", "10"],
        ["Shuffle", "float32 (3,)", "10"],
        ["Batch", "float32 (None, 3)", "3"],
    ]


def test_the_inputs_of_a_step_are_indented():
    dataset = Dataset.zip((Dataset.range(3), Dataset.range(5).repeat()))
    assert cells(dataset)[1:] == [
        ["   └ Counter", "int64 ()", "3"],
        ["   └ Counter", "int64 ()", "5"],
        ["   └ Repeat", "int64 ()", "endless"],
        ["Zip", "(int64 (), int64 ())", "3"],
    ]


def test_a_table_neither_traces_nor_reads():
    def refuse(*_):
        raise AssertionError("this must not be called")

    dataset = Dataset.range(3).map(refuse)
    assert cells(dataset)[-1] == ["Map", "?", "3"]
    dataset = Dataset.from_generator(refuse)
    assert cells(dataset)[-1][1:] == ["?", "unknown"]


def test_elements_are_shown_once_they_are_known():
    dataset = Dataset.range(3).map(lambda x: {"a": x})
    assert dataset.element_spec["a"].shape == ()
    assert cells(dataset)[-1] == ["Map", "{'a': int64 ()}", "3"]
