"""Recurrent layers as loops of machine code over their steps: values and gradients."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.kernels.step_loop import StepLoop
from tapewright.compiler.targets.native.kernels.step_loop import _chunks as chunks_of
from tapewright.compiler.targets.native.segments import NativeSegment, code_of
from tapewright.ops.nn.simple_rnn import simple_rnn

pytest.importorskip("llvmlite")
few_passes = pytest.mark.usefixtures("few_passes")
layers = tw.keras.layers

LAYERS = {
    "lstm": lambda units, **kw: layers.LSTM(units, **kw),
    "gru": lambda units, **kw: layers.GRU(units, **kw),
    "tanh": lambda units, **kw: layers.SimpleRNN(units, **kw),
    "relu": lambda units, **kw: layers.SimpleRNN(units, activation="relu", **kw),
}
SIZES = [(3, 1, 4), (1, 5, 7), (2, 9, 2), (32, 11, 64), (130, 3, 33)]


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def arrays_of(outputs):
    return [x.numpy() for x in outputs]


def check(run, *args, rtol=2e-5):
    """Compare a traced function with eager mode, for 1, 2 and 4 threads."""
    wanted, traced, before = arrays_of(run(*args)), tw.function(run), None
    threads = config.threads()
    try:
        for n in (1, 2, 4):
            config.set_threads(n)
            found = arrays_of(traced(*args))
            for a, b in zip(found, wanted, strict=True):
                size = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
                np.testing.assert_allclose(a, b, rtol, rtol * size)
            if before is not None:
                assert [a.tobytes() for a in found] == before
            before = [a.tobytes() for a in found]
    finally:
        config.set_threads(threads)
    instructions = traced.get_concrete_function(*args).executable.program.instructions
    rest = [each.name for each in instructions if code_of(each) is None]
    assert not [name for name in rest if "steps" in name or "vjp" in name]
    return [each.name for each in instructions if type(each) is StepLoop]


def with_gradients(layer, mask=None, of=lambda y: tw.reduce_sum(y * y)):
    def run(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = layer(x) if mask is None else layer(x, mask=mask)
            loss = of(y)
        return [y, *tape.gradient(loss, [x, *layer.trainable_variables])]

    return run


@few_passes
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_what_eager_mode_computes(name, sizes):
    batch, steps, units = sizes
    masked = ([*LAYERS].index(name) + SIZES.index(sizes)) % 2 > 0
    layer = LAYERS[name](units, return_sequences=masked)
    mask = np.random.default_rng(1).random((batch, steps)) > 0.3 if masked else None
    mask = mask if mask is None else tw.constant(mask)
    run = with_gradients(layer, mask)
    assert len(check(run, tw.constant(numbers(batch, steps, 6)))) == 2


@few_passes
@pytest.mark.parametrize(
    ("name", "dtype", "units"),
    [("lstm", "float32", 33), ("gru", "float64", 8), ("relu", "float64", 8)],
)
def test_results_do_not_depend_on_how_a_batch_is_cut(name, dtype, units):
    layer = LAYERS[name](units, return_sequences=True, dtype=dtype)
    mask = tw.constant(np.random.default_rng(1).random((12, 6)) > 0.3)
    x = tw.constant(numbers(12, 6, 5, dtype=dtype))
    run, chunks, found, before = with_gradients(layer, mask), [], [], config.threads()
    wanted = arrays_of(run(x))
    try:
        for threads in (1, 2, 5):
            config.set_threads(threads)
            traced = tw.function(run)
            found.append([a.tobytes() for a in arrays_of(traced(x))])
            program = traced.get_concrete_function(x).executable.program
            loops = [each for each in program.instructions if type(each) is StepLoop]
            chunks.append([each.chunks for each in loops])
            assert all([each.packed for each in loops])
    finally:
        config.set_threads(before)
    assert chunks == [[1, 1], [2, 2], [3, 3]]
    assert found[0] == found[1] == found[2]
    for a, b in zip(found[0], wanted):
        a = np.frombuffer(a, dtype).reshape(b.shape)
        np.testing.assert_allclose(a, b, 1e-4, 2e-5 * np.abs(b).max())


@pytest.mark.parametrize(
    ("batch", "threads", "chunks"),
    [
        (32, 2, 2),
        (32, 16, 8),
        (128, 2, 4),
        (7, 2, 1),
        (31, 4, 1),
        (33, 2, 3),
        (8, 8, 2),
    ],
)
def test_chunks_of_a_batch_are_neither_short_nor_long(batch, threads, chunks):
    assert chunks_of(batch, threads) == chunks


@few_passes
@pytest.mark.parametrize("batch", [5, 8, 31])
@pytest.mark.parametrize("units", [2, 3, 15, 17, 70])
def test_products_of_steps_have_all_rows_and_columns(batch, units):
    layer = LAYERS["relu"](units, return_sequences=True)
    loops = check(with_gradients(layer), tw.constant(numbers(batch, 7, 4)))
    assert len(loops) == 2


@few_passes
@pytest.mark.parametrize("registers", [(64, 32), (32, 16), (16, 32)], ids=str)
@pytest.mark.parametrize("batch", [4, 15, 62])
def test_products_of_steps_do_with_other_registers(monkeypatch, registers, batch):
    monkeypatch.setattr(engine, "vector_registers", lambda: registers)
    layer = LAYERS["lstm"](21, return_sequences=True)
    assert len(check(with_gradients(layer), tw.constant(numbers(batch, 9, 4)))) == 2


@pytest.mark.parametrize("sizes", [(8, 8), (64, 64)], ids=str)
def test_a_state_may_be_the_kernel(sizes):
    def run(x, kernel):
        with tw.GradientTape() as tape:
            tape.watch([x, kernel])
            y, last = simple_rnn(x, kernel, tw.eye(sizes[1]), kernel)
            loss = tw.reduce_sum(y * y) + tw.reduce_sum(last)
        return [y, *tape.gradient(loss, [x, kernel])]

    x, kernel = numbers(sizes[0], 3, sizes[1]), numbers(*sizes) * 0.2
    assert len(check(run, tw.constant(x), tw.constant(kernel))) == 2


@few_passes
@pytest.mark.parametrize("name", LAYERS)
def test_steps_that_count_for_nobody_leave_the_states_as_they_are(name):
    mask = np.ones((3, 6), bool)
    mask[:, [0, 3]] = False
    layer = LAYERS[name](5, return_sequences=True)
    check(with_gradients(layer, tw.constant(mask)), tw.constant(numbers(3, 6, 2)))


@few_passes
@pytest.mark.parametrize("name", LAYERS)
def test_numbers_of_double_precision_and_steps_backwards(name):
    layer = LAYERS[name](7, dtype="float64", go_backwards=True)
    x = tw.constant(numbers(4, 6, 3, dtype=np.float64))
    check(with_gradients(layer), x, rtol=1e-12)


@few_passes
@pytest.mark.parametrize("name", LAYERS)
def test_nan_goes_where_it_goes_in_eager_mode(name):
    x = numbers(4, 6, 3)
    x[1, 2, 0] = np.nan
    layer = LAYERS[name](5, return_sequences=True)

    def run(x):
        return [layer(x)]

    check(run, tw.constant(x))


@few_passes
@pytest.mark.parametrize("name", ["lstm", "gru", "tanh"])
def test_initial_states_and_last_states_have_gradients(name):
    layer = LAYERS[name](5, return_state=True, return_sequences=True)

    def run(x, *states):
        with tw.GradientTape() as tape:
            tape.watch([x, *states])
            y, *last = layer(x, initial_state=list(states))
            loss = tw.reduce_sum(y * y) + tw.add_n([tw.reduce_sum(s) for s in last])
        return [y, *last, *tape.gradient(loss, [x, *states])]

    states = [tw.constant(numbers(4, 5) * 0.3) for _ in range(1 + (name == "lstm"))]
    check(run, tw.constant(numbers(4, 6, 3)), *states)


@few_passes
@pytest.mark.parametrize("name", ["lstm", "gru", "tanh"])
def test_second_derivatives_run_through_loops_as_well(name):
    layer = LAYERS[name](5)

    def run(x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                loss = tw.reduce_sum(layer(x) ** 2.0)
            slope = tw.reduce_sum(inner.gradient(loss, x) ** 2.0)
        return outer.gradient(slope, [x, *layer.trainable_variables])

    loops = check(run, tw.constant(numbers(4, 6, 3)), rtol=1e-4)
    assert any(["jvp" in each for each in loops])


def test_cells_that_run_step_by_step_get_rows_and_kernels_in_order(monkeypatch):
    calls, again = [], NativeSegment.run_with_copies

    def counted(self, *arrays):
        calls.append(self.name)
        return again(self, *arrays)

    monkeypatch.setattr(NativeSegment, "run_with_copies", counted)
    layer = layers.RNN(layers.LSTMCell(6), return_sequences=True)
    run, x = with_gradients(layer), tw.constant(numbers(3, 20, 4))
    wanted, traced = arrays_of(run(x)), tw.function(run)
    for a, b in zip(arrays_of(traced(x)), wanted, strict=True):
        np.testing.assert_allclose(a, b, 2e-5, 1e-5)
    assert len(calls) < 5  # and not in each of the steps


def test_a_sequence_of_no_steps_is_left_to_numpy():
    layer = layers.LSTM(4)
    layer.build((2, None, 3))
    x = tw.constant(np.zeros((2, 0, 3), np.float32))
    np.testing.assert_array_equal(tw.function(layer)(x), layer(x))


def test_a_training_step_gives_the_same_bits_for_any_number_of_threads():
    def trained(threads):
        config.set_threads(threads)
        tw.random.set_seed(3)
        model = tw.keras.Sequential([layers.LSTM(64), layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=False)
        x, y = numbers(64, 20, 8), numbers(64, 1)
        model.fit(x, y, batch_size=32, epochs=2, shuffle=False, verbose=0)
        return [w.tobytes() for w in model.get_weights()]

    before = config.threads()
    try:
        assert trained(1) == trained(2) == trained(4)
    finally:
        config.set_threads(before)
