"""Progress on the screen: a tqdm bar with low overhead, and plain lines.

The bar is drawn at most twenty times a second; nothing is formatted in between. If the
output is not a terminal, it consists of lines without control codes.
"""

import os
import shutil
import sys
import time
import warnings

from tapewright.core.messages.logger import get_logger

from ..config import is_interactive_logging_enabled
from ..training.workers import is_first_worker

INTERVAL = 0.05  # seconds between two drawings
_WIDE = 100  # columns with room for the rate, a long bar, and two values
_WIDE_FORMAT = "{desc}{n_fmt}/{total_fmt} |{bar:20}| {elapsed}<{remaining}, {rate_fmt}"
_NARROW_FORMAT = "{desc}{n_fmt}/{total_fmt} |{bar:10}| {elapsed}<{remaining}"


def say(message, model=None):
    """Print a line on standard output, above any progress bars, or log it.

    If several workers train ``model``, only the first prints it.
    """
    if not is_first_worker(model):
        return
    if not is_interactive_logging_enabled():
        get_logger().info(message)
        return
    if sys.stdout is None:  # there is no console
        return
    if "tqdm" in sys.modules:
        from tqdm import tqdm

        tqdm.write(message, file=sys.stdout)
    else:
        print(message, file=sys.stdout)
    sys.stdout.flush()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return "ipykernel.zmqshell" in sys.modules


def is_live() -> bool:
    """Return whether a moving bar should be shown on standard output."""
    if not is_interactive_logging_enabled():
        return False
    return in_notebook() or bool(getattr(sys.stdout, "isatty", bool)())


class Bar:
    """A tqdm bar for a known or unknown number of steps, followed by values.

    Args:
        total: Number of steps, or None.
        title: Text in front of the bar.
        unit: Name of a step.
        leave: If True, leave the bar on the screen at the end.
        bar: Class to use instead of the one chosen by tqdm.
        **options: Arguments of ``bar``.
    """

    def __init__(self, total, title="", unit="step", leave=True, bar=None, **options):
        self._is_default = bar is None
        if bar is None:
            bar = _bar_class()
            options.setdefault("file", sys.stdout)
            if not in_notebook():
                is_wide = shutil.get_terminal_size().columns >= _WIDE
                text = _WIDE_FORMAT if is_wide else _NARROW_FORMAT
                options.setdefault("bar_format", text + "{postfix}")
                title = f"{title} " if title else ""
        settings = {**_screen(), "mininterval": 0, "miniters": 0, **options}
        self._bar = bar(total=total, desc=title, unit=unit, leave=leave, **settings)
        self._next = 0.0

    def move_to(self, count, logs=None, at_once=False):
        """Show ``count`` steps and ``logs``, unless the bar has just been drawn."""
        now = time.perf_counter()
        if at_once or now >= self._next:
            self._draw(count, logs)
            self._next = now + INTERVAL

    def _draw(self, count, logs):
        if logs:
            self._bar.set_postfix_str(_values_text(logs), refresh=False)
        if count > self._bar.n:
            self._bar.update(count - self._bar.n)
        else:
            self._bar.refresh()

    def start_at(self, count):
        """Start with ``count`` completed steps, if the bar shows fewer."""
        if self._bar.n < count:
            self._bar.n = self._bar.last_print_n = self._bar.initial = count

    def restart(self, total):
        """Start again with another total."""
        self._bar.set_postfix_str("", refresh=False)
        self._bar.reset(total=total)
        self._next = 0.0

    def finish(self, count, logs=None):
        """Show the final values, even if they need more than a line, and close."""
        if self._bar is None:
            return
        if self._bar.total is None:
            self._bar.total = count
        if logs:
            self._bar.set_postfix_str(_values_text(logs), refresh=False)
        self._bar.n = count
        if self._is_default:
            self._bar.dynamic_ncols = self._bar.ncols = None  # nothing is cut off
        self.close()

    def close(self, count=None):
        """Leave the bar as it is, or at ``count``, and move the cursor to a new line."""
        if self._bar is not None:
            bar, self._bar = self._bar, None
            bar.n = bar.n if count is None else count
            bar.close()

    def widget(self):
        """Return the bar's widget in a notebook, else None."""
        return getattr(self._bar, "container", None)


def _screen():
    """Return tqdm's options for the screen size; on a size of 0 it would draw nothing."""
    try:
        is_known = all(os.get_terminal_size(sys.stdout.fileno()))
    except (OSError, AttributeError, ValueError):  # no terminal, or no file at all
        is_known = True
    return {"dynamic_ncols": True} if is_known else {"ncols": 80, "nrows": 24}


def _bar_class():
    """Return tqdm's bar class for this output, without its thread and warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    class QuietBar(tqdm):
        monitor_interval = 0  # the thread would speed up bars that lag; ours do not

    return QuietBar


def _values_text(logs) -> str:
    """Return the values as text for a line; arrays are shown by their mean, as in Keras.

    Example:
        >>> from tapewright.keras.callbacks.console import _values_text
        >>> _values_text({"accuracy": 0.91239, "loss": 0.00002})
        'accuracy: 0.9124 - loss: 2.0000e-05'
    """
    return " - ".join(f"{name}: {_value_text(value)}" for name, value in logs.items())


def _value_text(value):
    kind = getattr(getattr(value, "dtype", None), "kind", "O")  # of an array
    if kind in "biuf":
        value = float(value.mean()) if value.size else float("nan")
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4f}" if abs(value) > 1e-3 else f"{value:.4e}"


def epoch_line(count, total, seconds, logs=None) -> str:
    """Return the line that replaces a finished bar on outputs without bars.

    Example:
        >>> from tapewright.keras.callbacks.console import epoch_line
        >>> epoch_line(79, 79, 1.2, {"loss": 0.5})
        '79/79 - 1s - 15ms/step - loss: 0.5000'
    """
    parts = [f"{count}/{total}", f"{seconds:.0f}s", _duration(seconds / max(count, 1))]
    return " - ".join([*parts, _values_text(logs)] if logs else parts)


def _duration(seconds):
    if seconds >= 1:
        return f"{seconds:.0f}s/step"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.0f}ms/step"
    return f"{seconds * 1e6:.0f}us/step"
