"""Uncaught errors: the lines of the user, then the message."""

import gc
import logging
import os
import re
import subprocess
import sys
import threading
import traceback
import types
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.errors import InternalError, ShapeError, VerificationError
from tapewright.core.messages.source_lines import is_own_code
from tapewright.core.messages.tracebacks import install_traceback_hooks

FRAME = re.compile(r'^ +File "(.+)", line \d+, in (\S+)$', re.MULTILINE)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def raised(function):
    """Return the error of a call, whose traceback begins in this function."""
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("it ran")


def report(error):
    """Print an error as Python does at the end of a program."""
    sys.excepthook(type(error), error, error.__traceback__)


@pytest.fixture
def printed(capsys):
    def text(function):
        report(raised(function))
        return capsys.readouterr().err

    return text


@pytest.fixture
def unfiltered():
    tw.debugging.disable_traceback_filtering()
    yield
    tw.debugging.enable_traceback_filtering()


def functions_in(text):
    """Return the names of the functions in a printed traceback."""
    return [name for _, name in FRAME.findall(text)]


def ours_in(text):
    """Return the frames of tapewright in a printed traceback."""
    return [frame for frame in FRAME.findall(text) if is_own_code(frame[0])]


def inner_part(error):
    """Return the traceback of an error from the first frame of tapewright on."""
    trace = error.__traceback__
    while not is_own_code(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


# ------------------------------------------------------------ where errors come from


class Failing(keras.layers.Layer):
    def call(self, inputs):
        return self.product(inputs)

    def product(self, x):
        return tw.matmul(x, tw.ones((7, 2)))


def failing_loss(y_true, y_pred):
    return tw.reduce_sum(tw.matmul(y_true, y_pred))


class FailingCallback(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise KeyError("the callback's")


def compiled(*layers, loss="mse"):
    model = keras.Sequential(layers)
    model.compile("sgd", loss)
    return model


def call_an_op():
    tw.matmul(tw.ones((2, 3)), tw.ones((2, 3)))


def use_an_operator():
    tw.ones((2, 3)) @ tw.ones((2, 3))


def call_a_layer():
    layer = keras.layers.Dense(3)
    layer(zeros(2, 4))
    layer(zeros(2, 5))


def fit_other_inputs():
    model = compiled(keras.layers.Dense(3), keras.layers.Dense(1))
    model.fit(zeros(8, 4), zeros(8, 1), verbose=0)
    model.fit(zeros(8, 5), zeros(8, 1), verbose=0)


def fit_a_failing_layer():
    compiled(keras.layers.Dense(3), Failing()).fit(zeros(8, 4), zeros(8, 1), verbose=0)


def fit_a_failing_loss():
    model = compiled(keras.layers.Dense(3), loss=failing_loss)
    model.fit(zeros(8, 4), zeros(8, 5), verbose=0)


def fit_with_a_failing_callback():
    model = compiled(keras.layers.Dense(3))
    model.fit(zeros(8, 4), zeros(8, 3), verbose=0, callbacks=[FailingCallback()])


def fit_a_failing_generator():
    def batches():
        yield zeros(2, 4), zeros(2, 3)
        raise OSError("the generator's")

    compiled(keras.layers.Dense(3)).fit(batches(), verbose=0)


def build_a_functional_model():
    Failing()(keras.Input((4,)))


def trace_a_function():
    @tw.function
    def converted(a, b):
        if tw.reduce_sum(a) > 0:
            a = a + 1
        return tw.matmul(a, b)

    converted(tw.ones((2, 3)), tw.ones((2, 3)))


def differentiate():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = x * 2
    tape.gradient(y, x, output_gradients=tw.ones((3,)))


def differentiate_a_custom_gradient():
    @tw.custom_gradient
    def doubled(x):
        def rule(g):
            return tw.matmul(g, tw.ones((9, 9)))

        return x * 2, rule

    x = tw.Variable(tw.ones((2, 3)))
    with tw.GradientTape() as tape:
        y = doubled(x)
    tape.gradient(y, x)


def apply_gradients():
    variable = tw.Variable([1.0, 2.0])
    keras.optimizers.SGD().apply_gradients([(tw.ones((3,)), variable)])


def call_a_loss():
    keras.losses.MeanSquaredError()(tw.ones((2, 3)), tw.ones((2, 4)))


def map_in_threads():
    def product(x):
        return tw.matmul(x, x)

    data = tw.data.Dataset.from_tensor_slices(zeros(4, 2, 3))
    list(data.map(product, num_parallel_calls=2).prefetch(2))


def load_a_missing_file():
    keras.models.load_model("no/such/model.keras")


def read_a_missing_name():
    return tw.no_such_name


USER_FRAMES = {
    call_an_op: [],
    use_an_operator: [],
    call_a_layer: [],
    fit_other_inputs: [],
    fit_a_failing_layer: ["call", "product"],
    fit_a_failing_loss: ["failing_loss"],
    fit_with_a_failing_callback: ["on_epoch_end"],
    fit_a_failing_generator: ["batches"],
    build_a_functional_model: ["call", "product"],
    trace_a_function: ["converted"],
    differentiate: [],
    differentiate_a_custom_gradient: ["rule"],
    apply_gradients: [],
    call_a_loss: [],
    map_in_threads: ["product"],
    load_a_missing_file: [],
    read_a_missing_name: [],
}


@pytest.mark.parametrize("function", USER_FRAMES, ids=lambda f: f.__name__)
def test_the_lines_of_the_user_are_printed_and_no_others(function, printed):
    own_names = ["raised", function.__name__, *USER_FRAMES[function]]
    assert functions_in(printed(function)) == own_names


@pytest.mark.parametrize("function", USER_FRAMES, ids=lambda f: f.__name__)
def test_all_frames_are_printed_without_the_filter(function, printed, unfiltered):
    text = printed(function)
    assert ours_in(text)
    assert set(USER_FRAMES[function]) <= set(functions_in(text))


def test_converted_code_is_shown_at_its_own_line(printed):
    text = printed(trace_a_function)
    start = trace_a_function.__code__.co_firstlineno
    assert f'File "{__file__}", line {start + 5}, in converted' in text
    assert "return tw.matmul(a, b)" in text


def test_the_lines_are_those_that_the_error_came_through(capsys):
    error = raised(fit_a_failing_layer)
    report(error)
    printed = re.findall(
        r"line (\d+), in (\S+)$", capsys.readouterr().err, re.MULTILINE
    )
    passed = [
        (str(f.lineno), f.name) for f in traceback.extract_tb(error.__traceback__)
    ]
    assert len(printed) == 4 and set(printed) <= set(passed)


def test_the_message_and_its_notes_are_printed_as_they_are(printed):
    text = printed(fit_a_failing_layer)
    error = raised(fit_a_failing_layer)
    message = "".join(traceback.format_exception_only(error))
    assert "in layer 'failing" in message
    assert text.partition("tapewright.errors")[2].count("\n") == message.count("\n")


def test_numpy_called_by_the_user_is_shown(printed):
    class Array:
        def __array__(self, dtype=None, copy=None):
            raise KeyError("the array's")

    names = functions_in(printed(lambda: np.linspace(Array(), 1.0)))
    assert names[0] == "raised" and "linspace" in names and names[-1] == "__array__"


# ------------------------------------------------------------------- chained errors


def test_the_frames_of_a_cause_are_filtered(printed):
    def load():
        try:
            tw.matmul(tw.ones((2, 3)), tw.ones((2, 3)))
        except ShapeError as error:
            raise KeyError("mine") from error

    text = printed(load)
    assert functions_in(text) == ["load", "raised", "load"]
    assert "direct cause" in text and "inner dimensions" in text


def test_a_cause_without_a_line_of_the_user_is_printed_as_its_message(printed):
    def load():
        cause = raised(call_an_op)
        raise KeyError("mine") from cause.with_traceback(inner_part(cause))

    text = printed(load)
    assert text.startswith("tapewright.errors.ShapeError: matmul: inner")
    assert functions_in(text) == ["raised", "load"]


def test_the_parts_of_a_group_are_filtered(printed):
    def fail_twice():
        raise ExceptionGroup("both", [raised(call_an_op), raised(call_a_layer)])

    text = printed(fail_twice)
    assert "call_an_op" in text and "call_a_layer" in text and "both" in text
    assert "dispatch.py" not in text and "layer.py" not in text


# --------------------------------------------------------- where all frames are kept


@pytest.mark.parametrize("kind", [InternalError, VerificationError])
def test_a_defect_of_tapewright_is_printed_with_all_frames(kind, printed, monkeypatch):
    def defect(*args, **kwargs):
        raise kind("a defect")

    monkeypatch.setattr(tw.Variable, "read", defect)
    assert ours_in(printed(lambda: tw.sqrt(tw.Variable(1.0))))


def test_an_error_without_a_line_of_the_user_keeps_its_frames(capsys):
    error = raised(call_an_op)
    sys.excepthook(type(error), error, inner_part(error))
    assert ours_in(capsys.readouterr().err)


def test_an_error_that_is_caught_has_all_frames():
    error = raised(fit_a_failing_layer)
    whole = error.__traceback__
    assert ours_in("".join(traceback.format_exception(error)))
    report(error)
    assert error.__traceback__ is whole


def test_logging_shows_all_frames(caplog):
    try:
        call_an_op()
    except ShapeError:
        logging.getLogger("mine").exception("it failed")
    assert ours_in(caplog.text)


def test_an_error_that_allows_no_attributes_is_printed(printed):
    class Frozen(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def fail():
        raise Frozen("frozen")

    assert functions_in(printed(lambda: tw.map_fn(lambda x: fail(), tw.ones(2)))) == [
        "raised",
        "<lambda>",
        "<lambda>",
        "fail",
    ]


def test_an_object_that_refuses_to_be_looked_at_hides_no_error(printed):
    class Unbound:
        @property
        def __dict__(self):
            raise RuntimeError("not bound to a request")

    def misspelt(proxy):
        return tw.concat([proxy], dim=0)

    assert "unexpected keyword argument 'dim'" in printed(lambda: misspelt(Unbound()))


def test_an_error_whose_message_fails_is_printed(printed):
    class Unreadable(Exception):
        def __str__(self):
            raise RuntimeError("no message")

    def fail():
        raise Unreadable

    assert "Unreadable" in printed(fail)


def test_printing_keeps_nothing_alive(capsys):
    gc.collect()
    gc.disable()
    try:
        tensors = [tw.ones((2, 3))]
        alive = weakref.ref(tensors[0])
        report(raised(lambda: tw.matmul(tensors[0], tensors[0])))
        tensors.clear()
        assert alive() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------ hooks and switches


def test_an_error_of_a_thread_is_filtered(capsys, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    install_traceback_hooks()
    thread = threading.Thread(target=call_an_op, name="trainer")
    thread.start()
    thread.join()
    text = capsys.readouterr().err
    assert "Exception in thread trainer" in text
    assert functions_in(text)[-1] == "call_an_op"


def test_the_formatter_of_ipython_gets_the_filtered_traceback(monkeypatch):
    class Formatter:
        def structured_traceback(self, kind, error, trace, tb_offset=None):
            assert error.__traceback__ is trace and tb_offset == 1
            return traceback.format_exception(kind, error, trace)

    shell = types.SimpleNamespace(InteractiveTB=Formatter())
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    install_traceback_hooks()
    error = raised(call_an_op)
    show = shell.InteractiveTB.structured_traceback
    lines = show(type(error), error, error.__traceback__, tb_offset=1)
    assert functions_in("".join(lines)) == ["raised", "call_an_op"]


def test_the_switch_is_on_by_default_and_the_same_everywhere(unfiltered):
    for space in tw.debugging, keras.config:
        assert not space.is_traceback_filtering_enabled()
        space.enable_traceback_filtering()
        assert tw.debugging.is_traceback_filtering_enabled()
        space.disable_traceback_filtering()


SCRIPT = """
import tapewright as tw

def train():
    tw.matmul(tw.ones((2, 3)), tw.ones((2, 3)))

train()
"""


@pytest.mark.parametrize(("value", "is_whole"), [("1", False), ("0", True)])
def test_the_environment_variable_shows_all_frames(value, is_whole, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, path],
        env={**os.environ, "TAPEWRIGHT_TRACEBACK_FILTERING": value},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert functions_in(done.stderr)[:2] == ["<module>", "train"]
    assert bool(ours_in(done.stderr)) is is_whole
    assert "inner dimensions must agree" in done.stderr


def test_the_frames_of_numpy_below_the_users_line_are_left_out(printed):
    def mean(x):
        return np.mean(x)

    text = printed(lambda: tw.function(mean)(tw.ones([2])))
    assert functions_in(text)[-1] == "mean" and "site-packages" not in text
