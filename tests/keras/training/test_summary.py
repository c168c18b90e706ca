"""`summary`: the table of Keras."""

import re

import tapewright as tw
from tapewright import Sequential
from tapewright.layers import BatchNormalization, Dense, Dropout, Flatten


def classifier(**kwargs):
    return Sequential(
        [Flatten(), Dense(4, activation="relu", name="hidden"), Dense(2, name="out")],
        **kwargs,
    )


# The table of Keras 3.15 for the same layers.
SUMMARY = """\
Model: "model"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ flat (Flatten)                  │ (None, 4)              │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 3)              │            15 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ inner (Sequential)              │ (None, 2)              │            16 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 31 (124.00 B)
 Trainable params: 27 (108.00 B)
 Non-trainable params: 4 (16.00 B)
"""


def summarized():
    inner = [Dense(2), Dropout(0.5), BatchNormalization()]
    return Sequential(
        [Flatten(name="flat"), Dense(3, name="dense"), Sequential(inner, name="inner")],
        name="model",
    )


def test_the_summary_is_the_table_of_keras(capsys):
    model = summarized()
    model.build((None, 2, 2))
    model.summary()
    assert capsys.readouterr().out == SUMMARY


def test_the_summary_of_a_called_model_shows_its_batch():
    model, lines = summarized(), []
    model(tw.ones([5, 2, 2]))
    model.summary(print_fn=lines.append)
    expected = SUMMARY.replace("(None, 4)   ", "(5, 4)      ")
    expected = expected.replace("(None, 3)   ", "(5, 3)      ")
    expected = expected.replace("(None, 2)   ", "(5, 2)      ")
    assert lines == [expected.rstrip("\n")]


def test_the_summary_tells_what_is_not_built():
    lines = []
    classifier().summary(print_fn=lines.append)
    assert "0 (unbuilt)" in lines[0] and " ? " in lines[0]


class Twins(tw.layers.Layer):
    def call(self, x):
        return x, 2 * x


def heads(model):
    """The first line of each row of the table."""
    lines = []
    model.summary(print_fn=lines.append)
    rows = [line for line in lines[0].splitlines() if line[0] in "┃│"]
    return [[cell.strip() for cell in row.split(row[0])[1:-1]] for row in rows]


def test_layers_in_a_line_need_no_names_of_their_inputs():
    x = tw.keras.Input((3,), name="x")
    hidden = Dense(2, name="hidden")(x)
    table = heads(tw.keras.Model(x, [hidden, Dense(1, name="out")(hidden)]))
    assert [row[0] for row in table] == ["Layer (type)", "x (InputLayer)"] + [
        "hidden (Dense)",
        "out (Dense)",
    ]
    assert len(table[0]) == 3
    first, second = Twins(name="twins")(x)
    table = heads(tw.keras.Model(x, Dense(1, name="out")(second)))
    assert len(table[0]) == 3
    assert table[2] == ["twins (Twins)", "[(None, 3), (None, 3)]", "0"]
    table = heads(tw.keras.Model(x, tw.layers.Add(name="sum")([first, second])))
    assert len(table[0]) == 4


def test_one_size_is_written_without_a_comma_as_in_keras(capsys):
    words = tw.keras.Input((), name="words", dtype="int32")
    model = tw.keras.Model(words, tw.keras.layers.Embedding(5, 4)(words))
    model.summary()
    table = capsys.readouterr().out
    assert "│ (None)  " in table and "│ (None, 4)  " in table


def test_a_notebook_shows_the_rows_of_the_summary():
    model = summarized()
    model.build((None, 4))
    page = model._repr_html_()
    rows = [line.strip("│ ").split("│") for line in SUMMARY.splitlines() if "│" in line]
    assert re.findall("<td[^>]*>([^<]*)</td>", page) == [
        cell.strip() for row in rows for cell in row
    ]
    assert "<div>Total params: 31 (124.00 B)</div>" in page


def test_names_of_layers_are_escaped_in_a_notebook():
    model = Sequential([Dense(1, name="<script>alert(1)")], name="<b>")
    page = model._repr_html_()
    assert "<script" not in page and "<b>" not in page and "&lt;script&gt;" in page
