"""Drawings of models: what the boxes say and what is joined, in Graphviz' language."""

import re
import shutil
import sys
import types

import pytest

import tapewright as tw
from tapewright import layers
from tapewright.keras.utils import model_to_dot, plot_model

pydot = pytest.importorskip("pydot")
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")


def boxes(graph):
    """The text of each box by its number, those of frames inside included."""
    found = {}
    for part in (graph, *graph.get_subgraphs()):
        for node in part.get_nodes():
            if "label" in node.get_attributes():
                label = re.sub(r"</td>|</tr>", "|", node.get_label()[1:-1])
                text = re.sub(r"\|+", "|", re.sub(r"<[^>]*>", "", label))
                found[node.get_name()] = text.strip("|")
    nested = [boxes(part) for part in graph.get_subgraphs()]
    return {name: text for each in (found, *nested) for name, text in each.items()}


def edges(graph):
    """Pairs of texts of the boxes that are joined."""
    texts, found = boxes(graph), []
    parts = [graph]
    while parts:
        part = parts.pop()
        parts += part.get_subgraphs()
        found += [
            (texts[edge.get_source()], texts[edge.get_destination()])
            for edge in part.get_edges()
        ]
    return sorted(found)


def sequential(name="small"):
    return tw.Sequential(
        [
            tw.keras.Input((4,)),
            layers.Dense(3, activation="relu", name=f"{name}_first"),
            layers.Dense(2, name=f"{name}_second"),
        ],
        name=name,
    )


def functional():
    a, b = tw.keras.Input((4,), name="a"), tw.keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    x = layers.Add(name="sum")([shared(a), shared(b)])
    outputs = [layers.Dense(1, name="left")(x), layers.Dense(2, name="right")(x * 2.0)]
    return tw.keras.Model([a, b], outputs)


def nested():
    inputs = tw.keras.Input((4,), name="x")
    return tw.keras.Model(inputs, layers.Dense(1, name="end")(sequential()(inputs)))


def test_boxes_tell_what_is_asked_for():
    model = sequential()
    model.layers[1].trainable = False
    graph = model_to_dot(
        model,
        show_shapes=True,
        show_dtype=True,
        show_layer_activations=True,
        show_trainable=True,
    )
    first, second = boxes(graph).values()
    assert first.split("|") == [
        "small_first (Dense)",
        "Activation: relu",
        "Input shape: (None, 4)",
        "Output shape: (None, 3)",
        "Output dtype: float32",
        "Trainable",
    ]
    assert second.endswith("|Non-trainable")


def test_by_default_boxes_tell_name_and_class():
    texts = ["small_first (Dense)", "small_second (Dense)"]
    assert list(boxes(model_to_dot(sequential())).values()) == texts
    graph = model_to_dot(sequential(), show_layer_names=False)
    assert list(boxes(graph).values()) == ["Dense", "Dense"]


def test_a_functional_model_shows_inputs_branches_and_ops():
    graph = model_to_dot(functional())
    multiply = next(text for text in boxes(graph).values() if "(Multiply)" in text)
    assert edges(graph) == sorted([
        ("a (InputLayer)", "shared (Dense)"),
        ("b (InputLayer)", "shared (Dense)"),
        ("shared (Dense)", "sum (Add)"),  # one line for two calls
        ("sum (Add)", "left (Dense)"),
        ("sum (Add)", multiply),
        (multiply, "right (Dense)"),
    ])  # fmt: skip


def test_models_inside_are_a_box_or_their_layers():
    assert edges(model_to_dot(nested(), show_layer_names=False)) == [
        ("InputLayer", "Sequential"),
        ("Sequential", "Dense"),
    ]
    graph = model_to_dot(nested(), expand_nested=True)
    assert edges(graph) == sorted([
        ("x (InputLayer)", "small_first (Dense)"),
        ("small_first (Dense)", "small_second (Dense)"),
        ("small_second (Dense)", "end (Dense)"),
    ])  # fmt: skip
    (frame,) = graph.get_subgraphs()
    assert frame.get_label() == "small"


def test_models_at_every_depth_are_expanded():
    a, b = tw.keras.Input((4,), name="p"), tw.keras.Input((4,), name="q")
    inner = tw.keras.Model([a, b], [b * 1.0, layers.Dense(4, name="deep")(a)])
    middle = tw.Sequential([tw.keras.Input((4,)), sequential("low")], name="middle")
    x, y = tw.keras.Input((4,), name="x"), tw.keras.Input((4,), name="y")
    left, right = inner([y, x])
    model = tw.keras.Model([x, y], [middle(left), layers.ReLU(name="act")(right)])
    found = edges(model_to_dot(model, expand_nested=True))
    assert ("y (InputLayer)", "p (InputLayer)") in found
    assert ("x (InputLayer)", "q (InputLayer)") in found
    assert ("deep (Dense)", "act (ReLU)") in found
    assert [pair for pair in found if pair[1] == "low_first (Dense)"][0][0].endswith(
        "(Multiply)"
    )


def test_a_subclass_is_a_box():
    class Own(tw.keras.Model):
        def __init__(self):
            super().__init__(name="mine")
            self.dense = layers.Dense(1)

        def call(self, inputs):
            return self.dense(inputs)

    model = Own()
    model(tw.ones((2, 3)))
    texts = boxes(model_to_dot(model, show_shapes=True)).values()
    assert list(texts) == ["mine (Own)|Input shape: ?|Output shape: ?"]


def test_a_layer_that_is_called_on_its_own_output_has_a_line_back():
    inputs = tw.keras.Input((4,), name="x")
    again = layers.Dense(4, name="again")
    graph = model_to_dot(tw.keras.Model(inputs, again(again(inputs))))
    assert edges(graph) == [
        ("again (Dense)", "again (Dense)"),
        ("x (InputLayer)", "again (Dense)"),
    ]


def test_names_are_escaped_and_the_text_is_the_same_each_time():
    def text():
        model = tw.Sequential([tw.keras.Input((4,)), layers.Dense(2, name="a<b>&c")])
        return model_to_dot(model).to_string()

    assert "<b>a&lt;b&gt;&amp;c</b>" in text()
    assert text() == text()


def test_the_graph_has_the_attributes_asked_for():
    graph = model_to_dot(sequential(), rankdir="LR", dpi=90, splines="curved")
    assert graph.get_rankdir() == "LR" and graph.get_splines() == "curved"
    assert int(graph.get_dpi()) == 90
    assert isinstance(model_to_dot(sequential(), subgraph=True), pydot.Cluster)


@pytest.mark.parametrize(
    "wrong", [{"rankdir": "DOWN"}, {"splines": "wild"}, {"shapes": True}]
)
def test_other_directions_lines_and_arguments_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        plot_model(sequential(), **wrong)


def test_a_model_that_is_not_built_is_refused():
    with pytest.raises(ValueError, match="model '.*' is not built"):
        model_to_dot(tw.Sequential([layers.Dense(2)]))


def test_without_pydot_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(ImportError, match=r"tapewright\[graphviz\].*program dot"):
        model_to_dot(sequential())


def test_without_graphviz_the_error_names_the_program(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match="program dot"):
        plot_model(sequential(), tmp_path / "model.png")
    assert not list(tmp_path.iterdir())


@needs_dot
@pytest.mark.parametrize(
    "name, start", [("m.png", b"\x89PNG"), ("model", b"\x89PNG"), ("m.svg", b"<?xml")]
)
@pytest.mark.parametrize("expand", [False, True])
def test_graphviz_draws_the_file(tmp_path, name, start, expand):
    plot_model(nested(), tmp_path / name, show_shapes=True, expand_nested=expand)
    assert (tmp_path / name).read_bytes().startswith(start)


@needs_dot
@pytest.mark.parametrize("ending, kind", [("png", "Image"), ("svg", "SVG")])
def test_a_notebook_shows_the_picture(monkeypatch, tmp_path, ending, kind):
    display = types.SimpleNamespace(
        Image=lambda filename: ("Image", filename),
        SVG=lambda filename: ("SVG", filename),
    )
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    path = tmp_path / f"m.{ending}"
    assert plot_model(sequential(), path) == (kind, str(path))


@needs_dot
def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match="m.wild"):
        plot_model(sequential(), tmp_path / "m.wild")
    assert not list(tmp_path.iterdir())
