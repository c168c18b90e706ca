"""Which functions are converted, from which source, and how they behave as functions."""

import contextlib
import functools
import gc
import inspect
import linecache
import os
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.autograph import conversion

from .test_branches import check


def relu(x):
    return x if x > 0 else x * 0.0


def twice(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(function(*args, **kwargs))

    return wrapper


@twice
def shrunk(x):
    if x > 1:
        x = x * 0.5
    return x


def test_functions_that_are_called_are_converted():
    scale = 3.0

    def inner(x, *, shift=1.0):
        if x > shift:
            return x * scale
        return relu(x)

    check(lambda x: inner(x) + inner(x, shift=0.0) + shrunk(x), (2.0,), (0.5,), (-1.0,))


def test_lambdas_of_one_line():
    first, second = (lambda x: x if x > 0 else -x), (lambda x: x if x > 1 else x * 5.0)
    check(lambda x: first(x) + second(x), (0.5,), (-2.0,), (3.0,))


def test_methods_static_methods_class_methods_and_objects():
    class Base:
        def step(self, x):
            return x + 1.0 if x > 0 else x

    class Model(Base):
        __rate = 2.0

        def __init__(self):
            self.__offset = 10.0

        def step(self, x):
            x = super().step(x)
            while x < self.__offset:
                x = x * self.__rate if x > 1 else super().step(x) + self.__shift(x)
            return x

        def __shift(self, x):
            return 0.5 if x > 0 else 0.25

        @staticmethod
        def sign(x):
            return 1.0 if x > 0 else -1.0

        @classmethod
        def scaled(cls, x):
            return cls.sign(x) * cls.__rate

        def __call__(self, x):
            return self.step(x) if x > -5 else self.scaled(x)

    model = Model()
    calls = (2.0,), (0.5,), (-1.0,), (-9.0,), (50.0,)
    check(lambda x: model(x) + Model.sign(x) + model.scaled(x), *calls)
    check(model.step, *calls)
    check(functools.partial(model), *calls)
    check(model, *calls)


def test_closures_are_shared():
    count = 0
    total = []

    def outer(x):
        nonlocal count
        count += 1

        def add(y):
            nonlocal x
            if y > 0:
                x = x + y
            total.append(1)

        add(x)
        add(-x)
        return x

    found = tw.function(outer)(tw.constant(2.0))
    assert (found.numpy(), count, len(total)) == (4.0, 1, 2)


def test_functions_inside_that_call_functions_of_imported_modules():
    @tw.function
    def outer(x):
        def inner(x):
            if x > 0:
                x = tw.square(x)
            return x

        return inner(x)

    assert outer(tw.constant(3.0)).numpy() == 9.0
    assert outer(tw.constant(-3.0)).numpy() == -3.0


GLOBAL = 1.0


def test_globals():
    @tw.function
    def f(x):
        global GLOBAL
        kept = GLOBAL
        if x > 0:
            GLOBAL = x * 2.0
        found = GLOBAL * 1.0
        GLOBAL = kept
        return found

    assert f(tw.constant(3.0)).numpy() == 6
    assert f(tw.constant(-3.0)).numpy() == 1
    assert GLOBAL == 1.0


def test_functions_that_are_passed_on():
    def power(x):
        return x * x if x > 0 else x

    @tw.function
    def f(xs):
        mapped = tw.map_fn(power, xs)
        folded = tw.foldl(lambda a, x: a + x if x > 0 else a, xs)
        chosen = tw.switch_case(
            tw.cast(xs[0], "int32"), [lambda: relu(xs[1]), lambda: xs[0]]
        )
        return mapped, folded, chosen

    mapped, folded, chosen = f(tw.constant([0.0, -2.0, 3.0]))
    assert mapped.numpy().tolist() == [0.0, -2.0, 9.0]
    assert (folded.numpy(), chosen.numpy()) == (3.0, 0.0)


def test_custom_gradients():
    @tw.custom_gradient
    def clipped(x):
        y = x if x < 1 else x * 0.0 + 1.0

        def gradient(g):
            return g if g < 2 else g * 0.5

        return y, gradient

    @tw.function
    def slope(x, factor):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = clipped(x) * factor
        return y, tape.gradient(y, x)

    for x, factor in ((0.5, 1.0), (3.0, 4.0)):
        found = [y.numpy() for y in slope(tw.constant(x), tw.constant(factor))]
        assert found == [min(x, 1) * factor, 1.0 if factor == 1 else 2.0]


def test_layers_losses_and_metrics_of_the_user():
    class Gate(tw.keras.layers.Layer):
        def call(self, inputs, training=False):
            if training and tw.reduce_mean(inputs) > 0:
                return inputs * 2.0
            return inputs

    class Robust(tw.keras.losses.Loss):
        def call(self, y_true, y_pred):
            error = tw.reduce_mean(tw.square(y_true - y_pred), -1)
            if tw.reduce_max(error) > 100:
                error = tw.sqrt(error)
            return error

    class Positive(tw.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="positive")
            self.count = self.add_weight(name="count", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            for value in tw.reshape(y_pred, [-1]):
                if value > 0:
                    self.count.assign_add(1.0)

        def result(self):
            return self.count if self.count > 0 else -1.0

    def run(eagerly):
        tw.keras.utils.set_random_seed(0)
        model = tw.keras.Sequential([Gate(), tw.keras.layers.Dense(2), Gate()])
        model.compile("sgd", Robust(), metrics=[Positive()], run_eagerly=eagerly)
        x = np.linspace(-1, 2, 12).reshape(4, 3).astype("float32")
        history = model.fit(x, x[:, :2] * 30, epochs=2, batch_size=2, verbose=0)
        return [
            history.history["loss"],
            history.history["positive"],
            model.predict(x, verbose=0),
        ]

    for a, b in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_train_step_of_the_user():
    class Model(tw.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tw.keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tw.GradientTape() as tape:
                loss = tw.reduce_mean((self(x) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            scale = 1.0
            if tw.linalg.global_norm(gradients) > 1:
                scale = 1.0 / tw.linalg.global_norm(gradients)
            self.optimizer.apply_gradients(
                [(g * scale, v) for g, v in zip(gradients, self.trainable_variables)]
            )
            return {"loss": loss}

    def run(eagerly):
        tw.keras.utils.set_random_seed(1)
        model = Model()
        model.compile("sgd", run_eagerly=eagerly)
        return model.fit(np.ones((4, 3)), np.full((4, 1), 9.0), epochs=3, verbose=0)

    np.testing.assert_allclose(
        run(True).history["loss"], run(False).history["loss"], rtol=1e-5
    )


def test_recursion():
    def factorial(n):
        return 1.0 if n == 0 else n * factorial(n - 1)

    @tw.function
    def f(x):
        return factorial(4) * (x if x > 0 else -x)

    assert f(tw.constant(-2.0)).numpy() == 48


def test_names_signatures_and_defaults_are_kept():
    def f(x, scale=2.0, *args, shift: float = 1.0, **options):
        """Scale and shift."""
        return x * scale + shift if x > 0 else x

    f.tag = "kept"
    new = tw.autograph.to_graph(f)
    assert new is not f
    assert (new.__name__, new.__doc__, new.tag) == ("f", "Scale and shift.", "kept")
    assert inspect.signature(new) == inspect.signature(f)
    assert (new(3.0), new(3.0, 4.0, shift=0.0)) == (7.0, 12.0)
    assert conversion.convert(new) is new


def test_functions_without_control_flow_stay_the_same_objects():
    def f(x):
        return x + 1

    assert conversion.convert(f) is f
    for function in (len, np.mean, contextlib.suppress, textwrap.dedent, 3, None):
        assert conversion.convert(function) is function


def test_builtin_functions_of_tensors():
    def f(x, xs):
        whole = int(x) + 1
        share = float(whole) / 2
        return (
            whole, share, bool(x), abs(x), max(x, 2.0), min(xs), max(xs), sum(xs),
            any(xs > 2), all(xs > 0), len(xs), round(2.5), max([1, 5]), sum([1, 2]),
        )  # fmt: skip

    found = tw.function(f)(tw.constant(1.75), tw.constant([3.0, 1.0]))
    values = [np.asarray(y).item() for y in found]
    assert values == [2, 1.0, True, 1.75, 2.0, 1.0, 3.0, 4.0, True, True, 2, 2, 5, 3]


def test_comprehensions_convert_what_they_call():
    def f(x):
        parts = [relu(x - i) for i in range(3)]
        named = {i: relu(x * i) for i in range(2)}
        return sum(parts) + named[1] + len([p for p in parts if p is not None])

    check(f, (1.5,), (-1.0,))


def test_walrus():
    def f(x):
        if (y := x * 2.0) > 1:
            x = y
        while (z := x + 1.0) < 5:
            x = z
        return x, y

    check(f, (0.1,), (3.0,))


# --------------------------------------------------------------- what is left alone


def reason(function, *args):
    with pytest.raises(tw.errors.TracingError) as caught:
        tw.function(function)(*args)
    return str(caught.value)


def test_generators_coroutines_and_frames_are_refused():
    def generate(x):
        if x > 0:
            yield x

    def framed(x):
        known = locals()
        return known["x"] if x > 0 else x

    x = tw.constant(1.0)
    assert "'generate' is not converted: it is a generator" in reason(
        lambda x: list(generate(x)), x
    )
    assert "'framed' is not converted: it calls locals()" in reason(framed, x)
    with pytest.raises(
        ValueError, match="generate is not converted: it is a generator"
    ):
        tw.autograph.to_code(generate)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_jumps_out_of_a_finally_are_refused(tmp_path):
    path, space = tmp_path / "jumping.py", {}
    path.write_text(
        "def f(x):\n    try:\n        y = x\n    finally:\n"
        "        if x > 0:\n            return y\n    return x\n"
    )
    exec(compile(path.read_text(), str(path), "exec"), space)
    assert "line 5 jumps out of a finally" in reason(space["f"], tw.constant(1.0))


def test_warnings_of_a_line_are_given_once_though_functions_are_converted():
    x = tw.constant(1.0)
    tw.function(lambda x: x if x > 0 else -x)(x)  # has the file parsed
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        for negative in (lambda x: -x if x > 0 else x, lambda x: 0 - x if x > 0 else x):
            assert tw.function(negative)(x).numpy() == -1
            warnings.warn("a line", stacklevel=1)
    assert len(given) == 1


def test_conversion_can_be_switched_off():
    def f(x):
        return x if x > 0 else -x

    x = tw.constant(1.0)
    with pytest.raises(tw.errors.TracingError, match="autograph=False"):
        tw.function(f, autograph=False)(x)

    @tw.autograph.experimental.do_not_convert
    def plain(x):
        return f(x)

    assert "do_not_convert" in reason(lambda x: plain(x) if x > 0 else x, x)
    assert plain(2.0) == 2.0
    assert tw.autograph.experimental.do_not_convert()(f)(-1.0) == 1.0


def test_source_that_cannot_be_found():
    space = {}
    exec("def f(x):\n    return x if x > 0 else -x\n", space)
    assert "its source, <string>, cannot be found" in reason(
        space["f"], tw.constant(1.0)
    )


def test_source_that_has_changed(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    return x if x > 0 else -x\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_text("def f(x):\n    return x if x > 1 else x * 7.0\n")
    linecache.checkcache(str(path))
    assert "has changed since" in reason(space["f"], tw.constant(1.0))


def test_to_code_shows_the_result():
    def f(x):
        while x > 1:
            x = x / 2
        return x

    code = tw.autograph.to_code(tw.function(f))
    compile(code, "<converted>", "exec")
    assert code.startswith("def f(x):")
    assert "ag__.while_stmt(" in code


# ------------------------------------------------------------------------ sources


def output_of(*arguments, text=None):
    done = subprocess.run(
        [sys.executable, *arguments], input=text, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout.split()


PROGRAM = """
import tapewright as tw

@tw.function
def f(x):
    if x > 0:
        return x * 2.0
    return -x

print(f(tw.constant(3.0)).numpy(), f(tw.constant(-3.0)).numpy())
"""


def test_source_of_the_command_line():
    assert output_of("-c", PROGRAM) == ["6.0", "3.0"]


def test_source_of_the_prompt():
    pty = pytest.importorskip("pty")
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal: {error}")
    lines = PROGRAM.strip().replace("-x\n", "-x\n\n") + "\nexit()\n"
    out = b""
    with subprocess.Popen(  # the prompt keeps lines if it reads and writes a terminal
        [sys.executable, "-q", "-i"], stdin=slave, stdout=slave,
        stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"},
    ) as process:  # fmt: skip
        os.close(slave)
        os.write(master, lines.encode())
        try:
            while more := os.read(master, 1024):
                out += more
        except OSError:  # how Linux tells of the other side's end
            pass
        os.close(master)
    assert process.returncode == 0
    assert b"6.0 3.0" in out


def test_functions_given_to_functions_of_python_are_converted():
    def f(x):
        doubled = map(lambda y: y * 2.0 if y > 0 else y, [x, x + 1.0])
        return functools.reduce(lambda a, b: a if a > b else b, doubled)

    for value in (2.0, -0.5, -2.0):
        x = tw.constant(value)
        assert float(tw.function(f)(x)) == float(f(x))


def _pause(phase, info):
    time.sleep(0)


@pytest.fixture
def threads_switch_often():
    """Let other threads run in each garbage collection, also inside of the parser."""
    before = gc.get_threshold()
    gc.callbacks.append(_pause)
    gc.set_threshold(100)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(_pause)


@pytest.mark.usefixtures("threads_switch_often")
def test_threads_may_convert_at_once():
    def trace(source, start, results):
        space = {}
        exec(source, space)
        start.wait()
        try:
            results.append(conversion.convert(space["f"]) is space["f"])
        except SystemError as error:
            results.append(error)

    for k in range(2):
        text = "def f(x):\n" + "".join(
            [f"    if x > {i + k}:\n        x = x + 1\n" for i in range(30)]
        )
        start, results, threads = threading.Barrier(4), [], []
        for i in range(4):
            name = f"<threads {k} {i}>"
            linecache.cache[name] = len(text), None, text.splitlines(True), name
            code = compile(text, name, "exec")
            threads.append(threading.Thread(target=trace, args=(code, start, results)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [False] * 4


def test_int_and_float_keep_wide_numbers():
    @tw.function
    def f(n, x):
        return int(n), float(x), int(x)

    n, x = tw.constant(2**40 + 1, "int64"), tw.constant(1e12 + 0.25, "float64")
    assert [y.numpy() for y in f(n, x)] == [2**40 + 1, 1e12 + 0.25, 10**12]
    assert [y.dtype for y in f(tw.constant(3), tw.constant(2.5))] == [
        tw.int32,
        tw.float32,
        tw.int32,
    ]


def test_code_may_die_after_the_names_of_the_module(monkeypatch):
    code = compile("x = 1", "a_file", "exec")
    conversion._remember(code, None)
    monkeypatch.setattr(conversion, "_CONVERTED", None)  # as at the exit of Python
    del code
    gc.collect()  # an exception in the callback of the weak reference is a warning: an error


def test_an_unknown_size_is_None_as_in_tensorflow():
    found = []

    def sizes(x):
        """The static size, or the tensor of it: as code for TensorFlow asks."""
        dynamic = tw.shape(x)
        return [dynamic[i] if n is None else n for i, n in enumerate(x.shape)]

    @tw.function(input_signature=[tw.TensorSpec([None, 3])])
    def run(x):
        n, m = x.shape
        found.append((n is None, None is n, n is not None, m is None, m is not None))
        found.append([n is None is None, any(k is None for k in x.shape)])
        found.append((lambda k: k is None)(n))
        if n is None:
            n = tw.shape(x)[0]
        found.append(n is None)
        rows, columns = sizes(tw.concat([x, x], 0))
        found.append((rows is None, columns))
        return tw.reshape(x, (n * 3,)), rows

    for size in (2, 5):
        flat, rows = run(np.ones((size, 3), "float32"))
        assert flat.shape == (3 * size,) and rows.numpy() == 2 * size
    assert found == [
        (True, True, False, False, True),
        [True, True],
        True,
        False,
        (False, 3),
    ]


def test_a_number_that_is_computed_from_an_unknown_size_is_not_None():
    def pieces(x, size=None):
        size = 1 if size is None else size
        return tw.reshape(x, (-1, size))

    @tw.function(input_signature=[tw.TensorSpec([None, 3])])
    def run(x):
        return pieces(x, x.shape[0] * 3), pieces(x, tw.keras.ops.shape(x)[0])

    first, second = run(np.ones((4, 3), "float32"))
    assert first.shape == (1, 12) and second.shape == (3, 4)


def test_a_dimension_that_is_computed_is_None_in_the_shape_of_its_tensor():
    @tw.function(input_signature=[tw.TensorSpec([None, 3])])
    def run(x):
        half = x.shape[0] // 2
        y = tw.zeros([half, 3])
        assert half is not None and y.shape[0] is None
        assert half is not None and tw.TensorShape([half])[0] is None
        return y

    assert run(np.ones((5, 3), "float32")).shape == (2, 3)


def test_None_is_None_in_converted_code():
    def what(x, y=None):
        if y is None:
            return x
        return x + y if y is not None else x - 1

    f = tw.function(what)
    assert f(1.0) == 1.0 and f(1.0, tw.constant(2.0)) == 3.0
