"""`tw.plot`: plots of a training as matplotlib figures; needs the extra ``plot``.

Every function returns the figure. With ``path=`` it also writes the figure: PNG, SVG or
PDF, by the ending. A notebook displays a figure that is not written at the end of the cell,
wherever the function is called. The state and settings of pyplot are not changed.
"""

from __future__ import annotations

import io
import math
import os
import sys
from typing import Any

import numpy as np

__all__ = [
    "confusion_matrix",
    "curves",
    "images",
    "new_figure",
    "save",
    "weight_histograms",
]

BLUE, ORANGE, GREEN, RED, GREY = "#3266ad", "#e07b39", "#2f8f5b", "#c0392b", "#5f6672"
MAX_NUMBERED = 25  # classes in a confusion matrix that has its numbers written in


def curves(history: Any, metrics: Any = None, *, path: Any = None) -> Any:
    """Plot learning curves: loss and metrics by epoch, for training and validation.

    Each metric has one panel.

    Args:
        history: Result of `fit`, or a dict of lists.
        metrics: Names to plot, without ``val_``; None plots all.
        path: File to write the figure to, or None.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: If a name is not in the history, or the history is empty.
    """
    values = getattr(history, "history", history)
    epochs = getattr(history, "epoch", None)
    known = list(dict.fromkeys(name.removeprefix("val_") for name in values))
    known.sort(key=lambda name: (name != "loss", name == "learning_rate"))
    metrics = known if metrics is None else list(_as_list(metrics))
    if not known:
        raise ValueError("plot.curves: history must have at least one epoch, got none")
    unknown = [name for name in metrics if name not in known]
    if unknown or not metrics:
        raise ValueError(
            f"plot.curves: metrics must be among {known}, got {unknown or metrics}"
        )
    columns = min(len(metrics), 3)
    figure, panels = _panels(len(metrics), columns, width=4.6, height=3.4)
    for axes, name in zip(panels, metrics):
        for key, color in ((name, BLUE), (f"val_{name}", ORANGE)):
            if key in values:
                _draw_curve(axes, key, epochs, values[key], color)
        _style(axes, name.replace("_", " "), "epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(axes.lines) > 1:
            axes.legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_curve(axes, key, epochs, values, color):
    values = np.asarray(values, float)
    if epochs is None or len(epochs) != len(values):
        epochs = range(len(values))
    label = "validation" if key.startswith("val_") else "training"
    marker = "o" if len(values) <= 30 else None
    x = np.asarray(epochs) + 1
    axes.plot(x, values, color=color, label=label, marker=marker, ms=3.5, lw=1.8)


def images(
    images: Any,
    labels: Any = None,
    predictions: Any = None,
    *,
    class_names: Any = None,
    columns: Any = None,
    path: Any = None,
) -> Any:
    """Plot a grid of images with their labels; wrong predictions are red.

    Args:
        images: Images ``[n, height, width]`` or ``[n, height, width, channels]`` with
            1, 3 or 4 channels: integers up to 255, or floats, which are scaled if they
            exceed the range 0 to 1.
        labels: Labels ``[n]``, or scores ``[n, classes]``.
        predictions: Predicted labels ``[n]``, or scores ``[n, classes]``.
        class_names: Name of each label.
        columns: Number of columns of the grid.
        path: File to write the figure to, or None.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: If the shapes are different.
    """
    pixels = _pixels(np.asarray(images))
    n = len(pixels)
    labels = _labels("labels", labels, n)
    predictions = _labels("predictions", predictions, n)
    columns = columns or min(n, max(4, math.ceil(math.sqrt(n * 1.6))))
    titled = labels is not None or predictions is not None
    height = 1.25 * pixels.shape[1] / pixels.shape[2] + 0.3 * titled
    figure, panels = _panels(n, columns, width=1.25, height=height)
    for i, axes in enumerate(panels):
        axes.imshow(pixels[i], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_axis_off()
        if titled:
            text, color = _caption(i, labels, predictions, class_names)
            axes.set_title(text, fontsize=9, color=color, pad=3)
    return save(figure, path)


def _pixels(pixels):
    if pixels.ndim == 4 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    is_grid = pixels.ndim == 3 or pixels.ndim == 4 and pixels.shape[-1] in (3, 4)
    if not is_grid or not pixels.size:
        raise ValueError(
            "plot.images: images must be [n, height, width] or [n, height, width, "
            f"channels] with 1, 3 or 4 channels, got shape {pixels.shape}"
        )
    if pixels.dtype.kind in "iu":
        return np.clip(pixels / 255, 0, 1)
    pixels = pixels.astype(float)
    low, high = np.nanmin(pixels), np.nanmax(pixels)
    if low < 0 or high > 1:
        pixels = (pixels - low) / max(high - low, 1e-12)
    return pixels


def _caption(i, labels, predictions, class_names):
    """Return the text above image ``i`` and its colour."""
    label = None if labels is None else _class_name(labels[i], class_names)
    if predictions is None:
        return label, GREY
    guess = _class_name(predictions[i], class_names)
    if labels is None:
        return guess, GREY
    right = labels[i] == predictions[i]
    return (guess, GREEN) if right else (f"{guess} (is {label})", RED)


def confusion_matrix(
    y_true: Any,
    y_pred: Any,
    class_names: Any = None,
    *,
    normalize: Any = False,
    title: Any = None,
    path: Any = None,
) -> Any:
    """Plot a confusion matrix: counts of true classes (rows) by predicted classes.

    Args:
        y_true: True labels ``[n]``, or scores ``[n, classes]``.
        y_pred: Predicted labels ``[n]``, or scores ``[n, classes]``.
        class_names: Name of each label.
        normalize: If True, plot the shares of each row instead of counts.
        title: Title of the figure; None for the accuracy.
        path: File to write the figure to, or None.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: If the lengths differ, or a label has no name.
    """
    y_true = _labels("y_true", y_true)
    y_pred = _labels("y_pred", y_pred, len(y_true))
    classes = 1 + max(y_true.max(initial=0), y_pred.max(initial=0))
    if class_names is not None:
        if len(class_names) < classes:
            raise ValueError(
                f"plot.confusion_matrix: class_names has {len(class_names)} names, "
                f"but labels go up to {classes - 1}"
            )
        classes = len(class_names)
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (y_true, y_pred), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(12, 2.2 + 0.5 * classes)
    figure, (axes,) = _panels(1, 1, width=side, height=side * 0.92)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [_class_name(i, class_names) for i in range(classes)]
    rotation = 45 if max(map(len, names)) > 3 else 0
    anchor = {"ha": "right", "rotation_mode": "anchor"} if rotation else {}
    axes.set_xticks(range(classes), names, rotation=rotation, fontsize=9, **anchor)
    axes.set_yticks(range(classes), names, fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    if classes <= MAX_NUMBERED:
        _write_numbers(axes, counts, shares, normalize)
    accuracy = np.trace(counts) / max(counts.sum(), 1)
    axes.set_title(title or f"{accuracy:.1%} right of {counts.sum():,}", fontsize=11)
    return save(figure, path)


def _write_numbers(axes, counts, shares, normalize):
    for (row, column), count in np.ndenumerate(counts):
        share = shares[row, column]
        text = f"{share:.2f}" if normalize else f"{count:,}"
        color = "white" if share > 0.55 else GREY if count else "#c9ced6"
        axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)


def weight_histograms(model: Any, *, path: Any = None) -> Any:
    """Plot a histogram of the entries of every weight, with one panel each.

    Args:
        model: Model or layer, or a list of variables.
        path: File to write the figure to, or None.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: If there are no weights, such as in a model that is not built.
    """
    weights = list(getattr(model, "weights", model))
    if not weights:
        raise ValueError(
            "plot.weight_histograms: the model has no weights; build it first, by a "
            "call or by build(input_shape)"
        )
    columns = min(len(weights), 4)
    figure, panels = _panels(len(weights), columns, width=3, height=2.3)
    for axes, weight in zip(panels, weights):
        values = np.asarray(weight.numpy(), float).ravel()
        finite = values[np.isfinite(values)]
        color = BLUE if weight.trainable else GREY
        axes.hist(finite, bins=min(60, max(10, finite.size // 4)), color=color)
        shape = " x ".join(map(str, weight.shape)) or "scalar"
        lost = values.size - finite.size
        name = "/".join(weight.path.split("/")[-2:])
        _style(axes, f"{name}\n{shape}", f"{lost} not finite" if lost else None)
        axes.title.set_fontsize(8.5)
        axes.tick_params(labelsize=7.5)
    return save(figure, path)


# -------------------------------------------------------------------------- figures


def new_figure(width: Any, height: Any, **options: Any) -> Any:
    """Create a figure that notebooks display and pyplot does not manage.

    Args:
        width: Width in inches.
        height: Height in inches.
        **options: Keyword arguments of ``matplotlib.figure.Figure``.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "tw.plot needs matplotlib: pip install 'tapewright[plot]'"
        ) from error

    class Picture(Figure):
        def _repr_png_(self):
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

        # Before any formatter, such as that of %matplotlib inline for all figures.
        def _ipython_display_(self):
            if self in _waiting:
                _waiting.remove(self)
            data = {"image/png": self._repr_png_(), "text/plain": repr(self)}
            sys.modules["IPython"].display.display(data, raw=True)

    figure = Picture(figsize=(width, height), **{"layout": "constrained", **options})
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Any, dpi: Any = 150) -> Any:
    """Write the figure to a file, completely or not at all, and return it.

    Args:
        figure: The matplotlib figure.
        path: File to write, PNG if it has no ending; None writes no file, and a
            notebook displays the figure.
        dpi: Resolution in dots per inch.

    Raises:
        ValueError: If the ending is not a format of matplotlib.
    """
    if path is None:
        _show_after_cell(figure)
        return figure
    path = os.fspath(path)
    kind = os.path.splitext(path)[1][1:].lower() or "png"
    kinds = figure.canvas.get_supported_filetypes()
    if kind not in kinds:
        raise ValueError(
            f"plot: path must end in one of {', '.join(f'.{k}' for k in sorted(kinds))}, "
            f"got {path!r}"
        )
    from .storage.atomic import replacing

    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=dpi)
    return figure


_waiting = []  # figures of the running cell that are not displayed yet


def _show_after_cell(figure):
    """Let a notebook display the figure at the end of the cell, unless it does so before.

    Displaying it at once would be too early: the figure may still be changed, or be the
    value of the cell.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if not hasattr(shell, "kernel"):  # no notebook, but a script or a terminal
        return
    shell.events.register("post_execute", _show_waiting)  # once, however often called
    _waiting.append(figure)


def _show_waiting():
    while _waiting:  # a figure that cannot be shown is not tried again
        sys.modules["IPython"].display.display(_waiting.pop(0))


def _panels(n, columns, width, height):
    """Create a figure of ``n`` panels of this size, in inches, in rows of ``columns``."""
    rows = math.ceil(n / columns)
    figure = new_figure(width * columns, height * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[n:]:
        axes.set_axis_off()
    return figure, grid[:n]


def _style(axes, title, xlabel=None):
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(xlabel or "", fontsize=9, color=GREY)
    axes.tick_params(labelsize=8.5, colors=GREY, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#b5bac2")
    axes.grid(axis="y", color="#e6e8ec", linewidth=0.8)
    axes.set_axisbelow(True)


def _as_list(names):
    return (names,) if isinstance(names, str) else names


def _labels(name, values, count=None):
    """Return labels as integers ``[n]``; for scores, the index of the largest."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.ndim == 2:
        one = values.shape[1] == 1
        values = values[:, 0] if one else values.argmax(1)
        if one and values.dtype.kind == "f":
            values = values > 0.5  # the probability of class 1
    if values.ndim != 1 or (count is not None and len(values) != count):
        wanted = "n" if count is None else count
        raise ValueError(
            f"plot: {name} must be labels [{wanted}] or scores [{wanted}, classes], "
            f"got shape {values.shape}"
        )
    return values.astype(int) if values.dtype.kind in "biuf" else values


def _class_name(label, class_names):
    return str(label) if class_names is None else str(class_names[label])
