"""The example scripts as modules, on few images, writing into the test's own folder."""

import copy
import functools
import importlib.util
import sys
from pathlib import Path

import pytest

import tapewright as tw
from tapewright.datasets import digits

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
drawn = functools.cache(digits.load_data)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """``run(script, *arguments)`` gives the exit code and what was printed.

    The picture, slow to draw, is left out unless ``picture`` is True; ``images`` is the
    number of those to train on.
    """

    def run(script, *arguments, picture=False, images=1500):
        count = {"n_train": images, "n_test": 300}
        monkeypatch.setattr(digits, "load_data", lambda: copy.deepcopy(drawn(**count)))
        if not picture:
            monkeypatch.setattr(script, "draw", lambda *args: None)
        monkeypatch.setattr(sys, "argv", [script.__file__, "--out", str(tmp_path)])
        sys.argv += arguments
        code = script.main()
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def interrupted(monkeypatch):
    """``interrupted(script, n)``: as if the user pressed Ctrl-C in step ``n`` of it."""

    def interrupted(script, n):
        step, calls = script.train_step, []

        def train_step(*args):
            calls.append(args)
            if len(calls) == n:
                raise KeyboardInterrupt
            return step(*args)

        monkeypatch.setattr(script, "train_step", train_step)

    return interrupted


@pytest.fixture
def interrupted_fit(monkeypatch):
    """``interrupted_fit(n)``: as if the user pressed Ctrl-C in step ``n`` of ``fit``."""
    fit = tw.Model.fit

    def interrupted_fit(n):
        steps = []

        def count(batch, logs):
            steps.append(batch)
            if len(steps) == n:
                raise KeyboardInterrupt

        def counted(model, *args, callbacks=(), **options):
            hook = tw.callbacks.LambdaCallback(on_train_batch_begin=count)
            return fit(model, *args, callbacks=[*callbacks, hook], **options)

        monkeypatch.setattr(tw.Model, "fit", counted)

    return interrupted_fit


@pytest.fixture
def without_matplotlib(monkeypatch):
    """As if matplotlib were not installed."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mnist_mlp():
    return load("mnist_mlp")


@pytest.fixture
def gan():
    return load("gan")


@pytest.fixture
def script(request):
    """The example that the test file is named after."""
    return load(request.path.stem.removeprefix("test_"))
