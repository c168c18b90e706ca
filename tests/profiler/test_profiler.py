"""`tw.profiler`: what a trace holds, what it leaves behind, and what it costs when off."""

import json
import threading
import time

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_tracer
from tapewright.core.primitive import get_primitive, kernels_are_wrapped

from ..stand_in.gpu import install

RNG = np.random.default_rng(3)


def floats(*shape):
    return tw.constant(RNG.normal(size=shape).astype(np.float32))


def on_the_cpu():
    return devices.current_module() is np


@pytest.fixture
def on_cpu():
    """The test is about NumPy's arrays, or about replays of functions on them."""
    if not on_the_cpu():
        pytest.skip("is about the CPU")


def names_of(profile, category):
    return [e.name for e in profile.events if e.category == category]


def training_step():
    model = tw.Sequential([tw.layers.Dense(8, activation="tanh"), tw.layers.Dense(2)])
    optimizer = tw.optimizers.SGD(0.1)

    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.square(model(x)))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    x = floats(4, 3)
    step(x)
    return step, x


# ----------------------------------------------------------------------------- events


def test_ops_of_eager_code_are_recorded_with_shapes_and_bytes():
    x, y = floats(2, 3), floats(3, 4)
    with tw.profiler.trace(table=False) as profile:
        tw.exp(tw.matmul(x, y))
    assert names_of(profile, "op") == ["matmul", "exp"]
    event = profile.events[0]
    assert event.data["inputs"] == "f32[2,3], f32[3,4]"
    assert event.data["output"] == "f32[2,4]" and event.data["flops"] == 48
    assert event.nbytes == 4 * (6 + 12 + 8)


def test_gradients_are_recorded_with_their_ops_inside():
    x = tw.Variable([1.0, 2.0])
    with tw.profiler.trace(table=False) as profile:
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.square(x))
        tape.gradient(y, x)
    (walk,) = [e for e in profile.events if e.category == "tape"]
    ops = [e for e in profile.events if e.category == "op"]
    inside = [e for e in ops if walk.start <= e.start and e.stop <= walk.stop]
    assert walk.name == "gradient" and len(inside) >= 2


def test_gradients_are_the_same_while_profiling():
    step, x = training_step()
    w = tw.Variable(floats(3, 2))

    def gradient():
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.tanh(tw.matmul(x, w)) ** 2)
        return tape.gradient(y, w).numpy()

    expected = gradient()
    with tw.profiler.trace(table=False):
        found = gradient()
    np.testing.assert_array_equal(found, expected)


def test_the_instructions_of_a_replay_are_recorded_within_its_replay(
    numpy_target, on_cpu
):
    f = tw.function(lambda x: tw.tanh(tw.matmul(x, x)))
    x = floats(16, 16)
    expected = f(x).numpy()
    with tw.profiler.trace(table=False) as profile:
        found = f(x).numpy()
    np.testing.assert_array_equal(found, expected)
    assert names_of(profile, "instruction") == ["matmul", "tanh"]
    assert not names_of(profile, "op")
    (replay,) = [e for e in profile.events if e.category == "replay"]
    calls = [e for e in profile.events if e.category == "instruction"]
    assert all(replay.start <= e.start and e.stop <= replay.stop for e in calls)
    assert calls[0].data["flops"] == 2 * 16**3
    assert calls[0].data["line"].startswith("test_profiler.py:")


def test_tracing_and_compiling_are_recorded(on_cpu):
    with tw.profiler.trace(table=False) as profile:
        tw.function(lambda x: x + 1.0)(floats(3))
    assert names_of(profile, "trace") and names_of(profile, "compile")


def test_a_traced_step_trains_as_ever_while_profiling(on_cpu):
    losses = []
    for profiled in (False, True):
        tw.random.set_seed(5)
        w = tw.Variable([[0.5, -0.25]])
        optimizer = tw.optimizers.Adam(0.1)

        @tw.function
        def step(x, w=w, optimizer=optimizer):
            with tw.GradientTape() as tape:
                loss = tw.reduce_sum(tw.square(tw.matmul(x, w)))
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        x = tw.constant([[1.0], [2.0]])
        found = [float(step(x))]
        if profiled:
            with tw.profiler.trace(table=False) as profile:
                found += [float(step(x)) for _ in range(3)]
            assert "apply_gradients" in names_of(profile, "instruction")
        else:
            found += [float(step(x)) for _ in range(3)]
        losses.append(found + [float(step(x))])
    assert losses[0] == losses[1]


def test_updates_of_optimizers_are_recorded():
    step, x = training_step()
    with tw.profiler.trace(table=False) as profile:
        step(x)
    assert names_of(profile, "optimizer") == ["apply_gradients"]


def test_annotations_are_recorded_with_their_arguments():
    @tw.profiler.annotate("doubled")
    def doubled(x):
        return x * 2.0

    with tw.profiler.trace(table=False) as profile:
        with tw.profiler.annotate("load", batch=3):
            time.sleep(0.002)
        doubled(1.0)
    first, second = [e for e in profile.events if e.category == "user"]
    assert (first.name, first.data, second.name) == ("load", {"batch": 3}, "doubled")
    assert first.duration >= 2e6


def test_an_annotation_outside_of_a_trace_does_nothing():
    with tw.profiler.annotate("alone"):
        pass


def test_all_threads_are_recorded_each_under_its_own_number():
    x = floats(4)

    def work():
        tw.exp(x)

    with tw.profiler.trace(table=False) as profile:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
            thread.join()
        tw.exp(x)
    assert names_of(profile, "op") == ["exp"] * 4
    assert len({e.thread for e in profile.events}) >= 2


# --------------------------------------------------------------------------- the file


def traced_file(tmp_path):
    path = tmp_path / "out.json"
    step, x = training_step()
    f = tw.function(step)
    f(x)
    with tw.profiler.trace(path, table=False) as profile:
        with tw.profiler.annotate("whole"):
            step(x)
            f(x)
    return json.loads(path.read_text()), profile


def test_the_file_is_a_chrome_trace(tmp_path):
    content, profile = traced_file(tmp_path)
    events = content["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(profile.events)
    for event in complete:
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= event.keys()
        assert event["ts"] >= 0 and event["dur"] >= 0
    assert {e["ph"] for e in events} == {"M", "X", *("C" * on_the_cpu())}
    threads = {
        e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"
    }
    assert {e["tid"] for e in complete} <= threads


def test_events_of_a_thread_are_nested(tmp_path):
    content, _ = traced_file(tmp_path)
    stacks = {}
    for event in [e for e in content["traceEvents"] if e["ph"] == "X"]:
        start, stop = event["ts"], event["ts"] + event["dur"]
        stack = stacks.setdefault(event["tid"], [])
        while stack and stack[-1] <= start + 1e-6:
            stack.pop()
        assert not stack or stop <= stack[-1] + 1e-3
        stack.append(stop)


def test_the_file_counts_the_memory_of_results(tmp_path, on_cpu):
    path = tmp_path / "out.json"
    x = floats(1000)
    with tw.profiler.trace(path, table=False):
        y = tw.exp(x)
        z = tw.exp(y)
        del y
        tw.sin(z)
    counts = [e["args"]["bytes"] for e in json.loads(path.read_text())["traceEvents"]
              if e["ph"] == "C"]  # fmt: skip
    assert counts[:4] == [4000, 8000, 4000, 8000]


def test_an_exception_inside_still_leaves_a_whole_file(tmp_path):
    path = tmp_path / "out.json"
    with pytest.raises(ZeroDivisionError), tw.profiler.trace(path, table=False):
        tw.exp(floats(3))
        raise ZeroDivisionError
    names = [e["name"] for e in json.loads(path.read_text())["traceEvents"]]
    assert "exp" in names and not kernels_are_wrapped()
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_a_folder_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of path .*no/out.json"):
        tw.profiler.trace(tmp_path / "no" / "out.json").__enter__()
    assert not kernels_are_wrapped()


# -------------------------------------------------------------------------- the table


def test_the_table_is_printed_at_the_end(capsys):
    with tw.profiler.trace():
        tw.exp(floats(3))
    text = capsys.readouterr().out
    on_gpu = "" if on_the_cpu() else "allocated peak "
    heading = f"calls total ms mean us own ms share bytes {on_gpu}kind name"
    assert heading in [" ".join(line.split()) for line in text.splitlines()]
    assert text.rstrip().endswith("exp")


def test_times_of_their_own_add_up_to_no_more_than_the_whole():
    step, x = training_step()
    f = tw.function(step)
    f(x)
    with tw.profiler.trace(table=False) as profile:
        step(x)
        f(x)
    own = sum(row.own for row in profile.rows if row.category != "gpu")
    assert 0 < own <= profile.duration * 1e6 * 1.001
    assert all(row.own <= row.total + 1e-6 for row in profile.rows)


def test_what_calls_itself_is_counted_once_in_its_total():
    @tw.profiler.annotate("outer")
    def again(n):
        time.sleep(0.001)
        return n and again(n - 1)

    with tw.profiler.trace(table=False) as profile:
        again(3)
    (row,) = profile.rows
    assert row.calls == 4 and row.total <= profile.duration * 1e6


# ------------------------------------------------------------------- on and off again


def test_a_second_trace_is_refused():
    with tw.profiler.trace(table=False):
        with pytest.raises(RuntimeError, match="another trace is active"):
            tw.profiler.trace(table=False).__enter__()
    with tw.profiler.trace(table=False) as profile:
        tw.exp(floats(2))
    assert names_of(profile, "op") == ["exp"]


def test_nothing_is_left_in_place_afterwards(numpy_target):
    from tapewright.compiler.targets.numpy.executable import Executable

    watched = (tw.GradientTape, "gradient"), (Executable, "run")
    before = [vars(owner)[name] for owner, name in watched]
    f, x = tw.function(lambda x: tw.exp(x)), floats(3)
    with (
        tw.config.use_target("numpy"),
        tw.profiler.trace(table=False) as profile,
    ):
        assert vars(tw.GradientTape)["gradient"] is not before[0]
        f(x)  # its executable is made while every kernel is wrapped
    count = len(profile.events)
    assert [vars(owner)[name] for owner, name in watched] == before
    assert not kernels_are_wrapped()
    f(x)
    tw.exp(x)
    assert len(profile.events) == count
    if not on_the_cpu():
        return
    executable = f.get_concrete_function(x).executable
    (instruction,) = [
        each for each in executable.program.instructions if not each.is_free
    ]
    assert instruction.function is np.exp


def test_checks_of_numbers_go_on_under_a_trace():
    tw.debugging.enable_check_numerics()
    try:
        with tw.profiler.trace(table=False) as profile:
            tw.exp(floats(3))
            with pytest.raises(FloatingPointError, match="log produced"):
                tw.math.log(tw.zeros(2))
        assert kernels_are_wrapped("check") and not kernels_are_wrapped("profile")
        with pytest.raises(FloatingPointError):
            tw.math.log(tw.zeros(2))
    finally:
        tw.debugging.disable_check_numerics()
    assert "exp" in names_of(profile, "op")


def test_names_of_tensorflow(tmp_path):
    with tw.profiler.experimental.Profile(tmp_path / "a"):
        with tw.profiler.experimental.Trace("train", step_num=1):
            tw.exp(floats(2))
    tw.profiler.experimental.start(tmp_path / "b")
    tw.exp(floats(2))
    tw.profiler.experimental.stop()
    for folder in ("a", "b"):
        assert json.loads((tmp_path / folder / "trace.json").read_text())["traceEvents"]
    with pytest.raises(RuntimeError, match="no profile is active"):
        tw.profiler.experimental.stop()


def test_an_error_in_a_replay_names_the_users_line_under_a_trace_too(on_cpu):
    def refuse(value):
        raise ZeroDivisionError("no")

    def f(x):
        active_tracer().effect("refuse", refuse, [x])
        return x + 1.0

    g = tw.function(f)
    with tw.profiler.trace(table=False), pytest.raises(ZeroDivisionError) as caught:
        g(floats(2))
    assert any("test_profiler.py" in note for note in caught.value.__notes__)


def test_an_array_that_an_op_hands_on_is_counted_once(tmp_path, on_cpu):
    path = tmp_path / "out.json"
    x = floats(1000)
    with tw.profiler.trace(path, table=False):
        y = tw.stop_gradient(x)
        z = tw.stop_gradient(tw.exp(y))
    counts = [e["args"]["bytes"] for e in json.loads(path.read_text())["traceEvents"]
              if e["ph"] == "C"]  # fmt: skip
    assert counts == [4000] and z.shape == (1000,)


# -------------------------------------------------------------------------- on a GPU


@pytest.fixture
def cuda(monkeypatch, strict):
    return install(monkeypatch, strict)


def profile_of_gpu(cuda, strict, monkeypatch, path=None):
    """A profile of `exp`, whose call is over before the GPU takes 3 ms for it."""
    with devices.use_module(strict):
        x = tw.ones([2, 3])
    op, kernel = get_primitive("exp"), get_primitive("exp").kernel

    def slow(xp, x):
        cuda.malloc(100)
        cuda.malloc(24)
        result = kernel(xp, x)
        cuda.release(100)
        cuda.time += 3.0
        return result

    monkeypatch.setattr(op, "kernel", slow)
    op.kernels.clear()
    try:
        with tw.profiler.trace(path, table=False) as profile:
            tw.exp(x)
            cuda.time += 1.0  # of work that is no op
            tw.exp(x)
    finally:
        monkeypatch.undo()
        op.kernels.clear()
    return profile


def test_work_on_a_gpu_has_the_times_of_the_gpu(cuda, strict, monkeypatch):
    profile = profile_of_gpu(cuda, strict, monkeypatch)
    first, second = [e for e in profile.events if e.category == "gpu"]
    assert first.name == second.name == "exp"
    assert first.duration == second.duration == 3_000_000
    assert second.start - first.stop == 1_000_000
    (call, _) = [e for e in profile.events if e.category == "op"]
    assert abs(first.start - call.start) < 1e9  # one clock
    assert cuda.waits == 2  # at the beginning, and at the end


def test_work_on_a_gpu_has_the_bytes_that_it_took(cuda, strict, monkeypatch):
    profile = profile_of_gpu(cuda, strict, monkeypatch)
    (event, _) = [e for e in profile.events if e.category == "gpu"]
    assert (event.data["allocated"], event.data["peak"]) == (124, 124)
    (row,) = [row for row in profile.rows if row.category == "gpu"]
    assert (row.calls, row.allocated, row.peak, row.total) == (2, 248, 124, 6000.0)
    assert not cuda.hooks
    head = repr(profile).split("\n")[1].split()
    assert head[-4:] == ["allocated", "peak", "kind", "name"]


def test_a_gpu_has_a_row_and_a_memory_of_its_own_in_the_file(
    cuda, strict, monkeypatch, tmp_path
):
    path = tmp_path / "out.json"
    profile_of_gpu(cuda, strict, monkeypatch, path)
    events = json.loads(path.read_text())["traceEvents"]
    (thread,) = [e["tid"] for e in events if e["args"].get("name") == "GPU 0"]
    works = [e for e in events if e["ph"] == "X" and e["cat"] == "gpu"]
    assert {e["tid"] for e in works} == {thread} and works[0]["dur"] == 3000
    held = [e["args"]["bytes"] for e in events if e["name"] == "memory of GPU 0"]
    assert held == [100, 124, 24, 124, 148, 48]


def test_a_replay_on_a_gpu_is_recorded_by_its_instructions(strict):
    with devices.use_module(strict), tw.config.use_target("auto"):
        w = tw.Variable(floats(3, 2))
        f = tw.function(lambda x: tw.tanh(tw.matmul(x, w)))
        x = floats(4, 3)
        expected = f(x).numpy()
        with tw.profiler.trace(table=False) as profile:
            found = f(x).numpy()
    np.testing.assert_array_equal(found, expected)
    assert names_of(profile, "instruction") == ["matmul+tanh"]


def test_a_profile_of_the_cpu_has_no_columns_of_a_gpu(on_cpu):
    x = tw.constant(np.ones(3, np.float32))
    with tw.profiler.trace(table=False) as profile:
        tw.exp(x)
    assert "allocated" not in repr(profile)
    assert not names_of(profile, "gpu")
