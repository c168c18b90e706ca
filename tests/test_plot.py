"""Pictures: what is drawn, in which files, and that nothing else is touched."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tapewright as tw
from tapewright import plot
from tapewright.keras.callbacks import CallbackList, History

VALUES = {"loss": [1.0, 0.5], "val_loss": [1.5, 1.0], "accuracy": [0.1, 0.9]}


def lines(figure):
    """Titles of the panels, each with its curves."""
    return {
        axes.get_title(): [
            (line.get_label(), list(line.get_xdata()), list(line.get_ydata()))
            for line in axes.lines
        ]
        for axes in figure.axes
        if axes.axison
    }


def test_training_and_validation_stand_together():
    assert lines(plot.curves(VALUES)) == {
        "loss": [("training", [1, 2], [1.0, 0.5]), ("validation", [1, 2], [1.5, 1.0])],
        "accuracy": [("training", [1, 2], [0.1, 0.9])],
    }


def test_metrics_can_be_chosen():
    assert list(lines(plot.curves(VALUES, ["accuracy"]))) == ["accuracy"]
    assert list(lines(plot.curves(VALUES, "accuracy"))) == ["accuracy"]


def test_a_history_draws_itself_at_its_epochs(tmp_path):
    history = History()
    callbacks = CallbackList(history)
    callbacks.on_train_begin()
    for epoch in (4, 5):
        callbacks.on_epoch_end(epoch, {"loss": 1.0 / epoch})
    figure = history.plot(tmp_path / "curves.png")
    assert lines(figure)["loss"][0][1] == [5, 6]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_names_and_empty_histories_are_refused():
    with pytest.raises(
        ValueError, match=r"metrics .*\['loss', 'accuracy'\].*got \['mae'\]"
    ):
        plot.curves(VALUES, ["mae"])
    with pytest.raises(ValueError, match="history must have at least one epoch"):
        plot.curves({})


def drawn(figure):
    return [axes.images[0].get_array() for axes in figure.axes if axes.images]


@pytest.mark.parametrize("shape", [(5, 4, 3), (5, 4, 3, 1), (5, 4, 3, 3), (5, 4, 3, 4)])
def test_images_are_a_grid(shape):
    pixels = np.random.default_rng(0).random(shape)
    figure = plot.images(pixels, columns=3)
    found = drawn(figure)
    assert len(found) == 5 and not any([axes.axison for axes in figure.axes])
    np.testing.assert_allclose(found[2], pixels[2].reshape(found[2].shape))


def test_integers_go_up_to_255_and_floats_beyond_1_are_scaled():
    whole = drawn(plot.images(np.full((1, 2, 2), 51, np.uint8)))[0]
    assert (np.asarray(whole) == 0.2).all()
    scaled = drawn(plot.images(np.array([[[-1.0, 1.0], [3.0, 0.0]]])))[0]
    np.testing.assert_allclose(scaled, [[0, 0.5], [1, 0.25]])


def test_wrong_predictions_are_red_and_name_the_label():
    pixels = np.zeros((3, 2, 2))
    scores = np.eye(3)[[0, 1, 1]]
    figure = plot.images(pixels, [0, 1, 2], scores, class_names=["a", "b", "c"])
    titles = [(a.get_title(), a.title.get_color()) for a in figure.axes if a.images]
    green, red = plot.GREEN, plot.RED
    assert titles == [("a", green), ("b", green), ("b (is c)", red)]


@pytest.mark.parametrize("name", ["labels", "predictions"])
def test_labels_or_predictions_alone_are_grey(name):
    figure = plot.images(np.zeros((2, 2, 2)), **{name: [1, 0]}, class_names=["a", "b"])
    titles = [(a.get_title(), a.title.get_color()) for a in figure.axes]
    assert titles == [("b", plot.GREY), ("a", plot.GREY)]


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3, 2), (0, 4, 3), (2, 2, 4, 3, 3)])
def test_other_shapes_of_images_are_refused(shape):
    with pytest.raises(ValueError, match=r"images .*\[n, height, width\].*got shape"):
        plot.images(np.zeros(shape))


def test_labels_must_be_as_many_as_images():
    with pytest.raises(ValueError, match=r"labels .*\[2\].*got shape \(1,\)"):
        plot.images(np.zeros((2, 3, 3)), labels=[1])


def numbers(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_confusion_matrix_counts_rows_of_truth_and_columns_of_predictions():
    figure = plot.confusion_matrix([0, 0, 1, 2], tw.constant([0, 1, 1, 1]))
    assert numbers(figure) == ["1", "1", "0", "0", "1", "0", "0", "1", "0"]
    assert figure.axes[0].get_title() == "50.0% right of 4"


def test_scores_become_classes_and_counts_shares():
    scores = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]
    figure = plot.confusion_matrix([0, 0, 1], scores, ["no", "yes"], normalize=True)
    assert numbers(figure) == ["0.50", "0.50", "0.00", "1.00"]
    labels = [t.get_text() for t in figure.axes[0].get_xticklabels()]
    assert labels == ["no", "yes"]


def test_one_column_of_scores_is_the_probability_of_class_1():
    figure = plot.confusion_matrix([[0], [1]], [[0.2], [0.7]])
    assert numbers(figure) == ["1", "0", "0", "1"]


def test_a_label_without_a_name_is_refused():
    with pytest.raises(ValueError, match="class_names .*2"):
        plot.confusion_matrix([0, 2], [0, 1], ["a", "b"])


def test_every_weight_has_its_histogram():
    first = tw.Variable([[1.0, 2.0], [np.nan, 4.0]], name="kernel")
    second = tw.Variable(0.0, trainable=False, name="count")
    figure = plot.weight_histograms([first, second])
    panels = [axes for axes in figure.axes if axes.axison]
    assert [sum(bar.get_height() for bar in a.patches) for a in panels] == [3, 1]
    assert "2 x 2" in panels[0].get_title() and "scalar" in panels[1].get_title()
    assert panels[0].get_xlabel() == "1 not finite"


def test_without_weights_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="model .*weights.*build"):
        plot.weight_histograms([])


@pytest.mark.parametrize(
    ("ending", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_ending_of_the_path_is_the_format(tmp_path, ending, head):
    path = tmp_path / f"curves.{ending}"
    plot.curves(VALUES, path=path)
    assert path.read_bytes().startswith(head)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_an_ending_of_no_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"path .*\.png.*got"):
        plot.curves(VALUES, path=tmp_path / "curves.txt")


def test_what_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "curves.png"
    path.write_bytes(b"old")
    figure = plot.curves(VALUES)

    def fail(part, **options):
        with open(part, "wb") as file:
            file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk is full"):
        plot.save(figure, path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["curves.png"]


def test_a_notebook_shows_the_figure():
    assert plot.curves(VALUES)._repr_png_().startswith(b"\x89PNG")


class Notebook:
    """A stand-in for IPython in a notebook: a shell whose cells end by `end_cell`."""

    def __init__(self):
        self.kernel = object()
        self.callbacks, self.shown, self.events = [], [], self

    def register(self, event, callback):
        assert event == "post_execute"
        if callback not in self.callbacks:
            self.callbacks.append(callback)

    def end_cell(self, value=None):
        if value is not None:
            value._ipython_display_()
        for callback in self.callbacks:
            callback()
        shown, self.shown = self.shown, []
        return shown


@pytest.fixture
def notebook(monkeypatch):
    shell = Notebook()

    def display(thing, raw=False):
        if raw:
            shell.shown.append(thing["image/png"])
        else:
            thing._ipython_display_()

    module = SimpleNamespace(
        get_ipython=lambda: shell, display=SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", module)
    return shell


def test_a_notebook_shows_a_figure_wherever_the_call_stands(notebook):
    plot.curves(VALUES)
    plot.images(np.zeros((2, 4, 4)))
    assert notebook.shown == []
    first, second = notebook.end_cell()
    assert first.startswith(b"\x89PNG") and first != second
    assert notebook.end_cell() == []


def test_the_figure_at_the_end_of_a_cell_is_shown_once(notebook):
    figure = plot.curves(VALUES)
    assert len(notebook.end_cell(figure)) == 1
    assert len(notebook.end_cell(figure)) == 1  # of the next cell


def test_a_figure_is_shown_with_what_the_cell_has_changed(notebook):
    before = plot.curves(VALUES)._repr_png_()
    notebook.end_cell()
    figure = plot.curves(VALUES)
    figure.axes[0].set_title("changed")
    (shown,) = notebook.end_cell()
    assert shown == figure._repr_png_() != before


def test_a_figure_that_is_written_is_not_shown_by_itself(notebook, tmp_path):
    figure = plot.curves(VALUES, path=tmp_path / "curves.png")
    assert notebook.end_cell() == []
    assert len(notebook.end_cell(figure)) == 1


def test_a_terminal_shows_no_figure(notebook):
    del notebook.kernel
    plot.curves(VALUES)
    assert notebook.end_cell() == []


def test_pyplot_is_not_imported_and_matplotlib_only_to_draw():
    code = (
        "import sys, tapewright.plot as plot\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plot.curves({'loss': [1.0]})\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"'tapewright\[plot\]'"):
        plot.curves(VALUES)
