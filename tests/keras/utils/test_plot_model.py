"""Drawings of models: what the boxes say, what is joined, and that nothing overlaps."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.keras.utils.graph_layout import draw_layered
from tapewright.keras.utils.plot_model import plot_model

# --------------------------------------------------------------------------- layout

GRAPHS = {
    "line": ["ab", "bc"],
    "branches": ["ab", "ac", "bd", "cd"],
    "skip": ["ab", "bc", "cd", "ad", "bd"],
    "two inputs": ["ac", "bc", "cd", "ce"],
    "crossing": ["ad", "be", "cd", "ae", "bf", "cf"],
    "ladder": ["ab", "bc", "cd", "de", "ef", "fg", "ac", "bd", "ce", "df", "eg"],
    "far input": ["bc", "cd", "de", "ae"],
    "alone": [],
    "comes back": ["ab", "bb", "bc", "ca"],
}


def layout(edges):
    names = sorted(set("".join(edges))) or ["a"]
    sizes = {n: (40.0 + 15 * i, 20.0 + 5 * (i % 3)) for i, n in enumerate(names)}
    return sizes, draw_layered(sizes, [tuple(edge) for edge in edges])


def rectangles(sizes, drawing):
    return {
        n: (x - sizes[n][0] / 2, y - sizes[n][1] / 2, x + sizes[n][0] / 2,
            y + sizes[n][1] / 2)
        for n, (x, y) in drawing.centers.items()
    }  # fmt: skip


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_boxes_do_not_overlap_and_lie_inside(edges):
    sizes, drawing = layout(edges)
    boxes = list(rectangles(sizes, drawing).values())
    for left, top, right, bottom in boxes:
        assert left >= -1e-9 and top >= -1e-9
        assert right <= drawing.width + 1e-9 and bottom <= drawing.height + 1e-9
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = other[0] > right or other[2] < left
            assert apart or other[1] > bottom or other[3] < top


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_every_edge_is_a_line_from_box_to_box(edges):
    sizes, drawing = layout(edges)
    boxes = rectangles(sizes, drawing)
    assert set(drawing.lines) == {tuple(edge) for edge in edges}
    for (a, b), pieces in drawing.lines.items():
        for one, other in zip(pieces, pieces[1:]):
            assert one.end == other.start
        for name, (x, y) in ((a, pieces[0].start), (b, pieces[-1].end)):
            left, top, right, bottom = boxes[name]
            assert left - 1e-9 <= x <= right + 1e-9 and top - 1e-9 <= y <= bottom + 1e-9


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_lines_that_lead_down_pass_beside_other_boxes(edges):
    sizes, drawing = layout(edges)
    boxes = rectangles(sizes, drawing)
    for (a, b), pieces in drawing.lines.items():
        if a >= b:
            continue
        for piece in pieces:
            (x, y), (_, end_y) = piece.start, piece.end
            heights = np.linspace(y, end_y, 9)[1:-1]
            for left, top, right, bottom in (
                boxes[n] for n in boxes if n not in (a, b)
            ):
                if piece.turn is None:
                    inside = left < x < right and ((heights > top) & (heights < bottom))
                    assert not np.any(inside)
                else:
                    assert not top < piece.turn < bottom


def test_a_line_of_boxes_is_straight():
    _, drawing = layout(GRAPHS["line"])
    assert len({round(x, 6) for x, _ in drawing.centers.values()}) == 1
    assert all(p.start[0] == p.end[0] for p in drawing.lines["a", "b"])


def test_lines_that_need_not_cross_do_not():
    _, drawing = layout(["ad", "be", "cf", "af"])
    x = {n: drawing.centers[n][0] for n in "abcdef"}
    assert sum((x[a] - x[b]) * (x[c] - x[d]) < 0 for a, c in (("a", "d"), ("a", "f"))
               for b, d in (("b", "e"), ("c", "f"))) <= 1  # fmt: skip


def test_an_input_stands_right_above_its_use():
    _, drawing = layout(GRAPHS["far input"])
    assert drawing.centers["a"][1] == drawing.centers["d"][1]


# --------------------------------------------------------------------------- models


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def arrows(figure):
    return [p for p in figure.axes[0].patches if hasattr(p, "get_arrowstyle")]


def sequential():
    return tw.Sequential(
        [tw.keras.Input((4,)), layers.Dense(3, activation="relu"), layers.Dense(2)],
        name="small",
    )


def functional():
    a, b = tw.keras.Input((4,), name="a"), tw.keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    x = layers.Add(name="sum")([shared(a), shared(b)])
    outputs = [layers.Dense(1, name="left")(x), layers.Dense(2, name="right")(x * 2.0)]
    return tw.keras.Model([a, b], outputs)


def test_boxes_tell_what_is_asked_for(tmp_path):
    figure = plot_model(
        sequential(),
        tmp_path / "model.png",
        show_shapes=True,
        show_dtype=True,
        show_layer_names=True,
        show_layer_activations=True,
        show_trainable=True,
    )
    assert texts(figure)[1:6] == [
        "activation: relu",
        "input: (None, 4)",
        "output: (None, 3)",
        "dtype: float32",
        "trainable",
    ]
    assert texts(figure)[0].startswith("dense") and texts(figure)[0].endswith("(Dense)")
    assert (tmp_path / "model.png").read_bytes().startswith(b"\x89PNG")


def test_by_default_boxes_tell_their_class_alone():
    assert texts(plot_model(sequential(), None)) == ["Dense", "Dense"]


def test_a_functional_model_shows_inputs_branches_and_ops():
    figure = plot_model(functional(), None, show_layer_names=True)
    assert sorted(texts(figure))[:2] == ["a (InputLayer)", "b (InputLayer)"]
    assert {"shared (Dense)", "sum (Add)", "left (Dense)"} < set(texts(figure))
    assert any(text.endswith("(Multiply)") for text in texts(figure))
    assert len(arrows(figure)) == 6  # a shared layer is one box, its line to sum one


def nested():
    inputs = tw.keras.Input((4,))
    return tw.keras.Model(inputs, layers.Dense(1)(sequential()(inputs)))


def test_models_inside_are_a_box_or_their_layers():
    assert texts(plot_model(nested(), None)) == ["InputLayer", "Sequential", "Dense"]
    expanded = plot_model(nested(), None, expand_nested=True)
    assert sorted(texts(expanded)) == ["Dense"] * 3 + ["InputLayer", "Sequential"]
    assert len(arrows(expanded)) == 3


def test_a_subclass_is_a_box():
    class Own(tw.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, inputs):
            return self.dense(inputs)

    model = Own()
    model(tw.ones((2, 3)))
    assert texts(plot_model(model, None, show_shapes=True)) == [
        "Own",
        "input: ?",
        "output: ?",
    ]


def test_a_layer_that_is_called_on_its_own_output_has_a_line_back():
    inputs, again = tw.keras.Input((4,)), layers.Dense(4)
    figure = plot_model(tw.keras.Model(inputs, again(again(inputs))), None)
    assert len(arrows(figure)) == 2


@pytest.mark.parametrize("direction", ["TB", "BT", "LR", "RL"])
def test_the_model_runs_in_the_direction_asked_for(direction):
    figure = plot_model(sequential(), None, show_shapes=True, rankdir=direction)
    first, last = (figure.axes[0].texts[i].get_position() for i in (0, 3))
    axis, sign = {"TB": (1, 1), "BT": (1, -1), "LR": (0, 1), "RL": (0, -1)}[direction]
    assert (last[axis] - first[axis]) * sign > 20
    assert abs(last[1 - axis] - first[1 - axis]) < 1


@pytest.mark.parametrize("splines", ["ortho", "curved", "line"])
def test_lines_have_the_form_asked_for(splines, tmp_path):
    path = tmp_path / "model.svg"
    assert len(arrows(plot_model(functional(), path, splines=splines))) == 6
    assert path.stat().st_size


def test_a_file_without_an_ending_is_a_png(tmp_path):
    plot_model(sequential(), tmp_path / "model")
    assert (tmp_path / "model").read_bytes().startswith(b"\x89PNG")


def test_a_model_that_is_not_built_is_refused():
    with pytest.raises(ValueError, match="model '.*' is not built"):
        plot_model(tw.Sequential([layers.Dense(2)]), None)


@pytest.mark.parametrize("wrong", [{"rankdir": "DOWN"}, {"splines": "wild"}])
def test_other_directions_and_lines_are_refused(wrong):
    with pytest.raises(ValueError, match="rankdir must be one of"):
        plot_model(sequential(), None, **wrong)
