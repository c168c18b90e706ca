"""Traced functions as CUDA graphs: what a step asks of the driver, and its values."""

import gc
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.cuda.kernels.updates import UpdateKernel
from tapewright.compiler.targets.cuda.memory import DeviceInstance

from ....stand_in import driver
from .runtime_runs import asked, both, executable_of, graphs, new_log, on_numpy

RNG = np.random.default_rng(5)
X = RNG.normal(size=(33, 20)).astype("f")
Y = RNG.integers(0, 5, 33)


def classifier(optimizer=None, dropout=0.0, normalized=False):
    """A step of training, and the variables that it changes."""
    layers = [tw.layers.Dense(8, "relu")]
    layers += [tw.layers.BatchNormalization()] if normalized else []
    layers += [tw.layers.Dropout(dropout)] if dropout else []
    tw.keras.utils.set_random_seed(0)
    model = tw.keras.Sequential([*layers, tw.layers.Dense(5)])
    model(tw.constant(X))
    optimizer = optimizer or tw.optimizers.Adam(0.01)
    loss_of = tw.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tw.function
    def step(x, y):
        with tw.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step, [*model.variables, *optimizer.variables]


# ------------------------------------------------------------------- the order of a step


def test_a_step_is_one_launch_of_numbers_and_one_of_a_graph(gpu, unverified):
    step, _ = classifier()
    x, y = tw.constant(X), tw.constant(Y)
    step(x, y)
    new_log()
    step(x, y)
    assert asked() == ["launch", "graph", "memcpy"]  # numbers, graph, loss


def test_a_step_neither_waits_nor_allocates_nor_compiles(gpu, unverified):
    step, _ = classifier(dropout=0.5, normalized=True)
    x, y = tw.constant(X), tw.constant(Y)
    for _ in range(2):
        step(x, y)
    new_log()
    for _ in range(3):
        step(x, y)
    assert set(asked()) == {"launch", "graph", "memcpy"}


def test_what_is_captured_is_work_of_the_device_alone(gpu, captured):
    step, _ = classifier(normalized=True)
    x, y = tw.constant(X), tw.constant(Y)
    step(x, y)
    assert len(executable_of(step, x, y).segments) == 1
    assert {verb[0] for verb in captured[-1].verbs} <= {"launch", "product"}


def test_k_updates_of_one_function_are_one_graph(gpu, unverified):
    v, rule = tw.Variable(tw.ones([3])), tw.optimizers.Adam(0.1)

    @tw.function
    def steps(x):
        for k in range(4):
            rule.apply_gradients([(v * x[k], v)])

    x = tw.constant([[0.1] * 3, [0.2] * 3, [-0.3] * 3, [0.4] * 3])
    steps(x)
    new_log()
    steps(x)
    assert asked() == ["launch", "graph"]
    assert rule.iterations.numpy() == 8


def test_an_input_is_copied_at_most_once_whatever_views_there_are(gpu, unverified):
    @tw.function
    def f(x):
        return tw.reduce_sum(x[1:] * 2.0) + tw.reduce_sum(tw.transpose(x)[0] + x[0, 0])

    x = tw.constant(X)
    f(x)
    new_log()
    f(x)
    assert asked().count("memcpy") <= 2 and graphs() == (0, 1)


# ------------------------------------------------------------------------------- values


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("normalized", [False, True])
def test_training_gives_the_numbers_of_numpy(dropout, normalized, gpu):
    def train():
        step, variables = classifier(dropout=dropout, normalized=normalized)
        x, y = tw.constant(X), tw.constant(Y)
        return [*[step(x, y) for _ in range(4)], *variables]

    both(train, 2e-5)


RESULTS = {
    "an input": lambda x: x,
    "an input twice": lambda x: (x, x),
    "a view of an input": lambda x: tw.transpose(x)[1:],
    "a constant": lambda x: tw.constant([1.0, 2.0]),
    "nothing": lambda x: None,
    "a number": lambda x: tw.reduce_max(x),
    "a view of a result": lambda x: tw.transpose(tw.exp(x))[2],
    "a result and its view": lambda x: (lambda y: (y, y[0], tw.reshape(y, [-1])))(
        x * 2
    ),
    "equal results": lambda x: (x + 1.0, x + 1.0),
    "an empty array": lambda x: x[:0] * 2.0,
    "a sum over nothing": lambda x: tw.reduce_sum(x[:0], axis=0),
    "complex numbers": lambda x: tw.signal.fft(tw.cast(x, "complex64")),
    "a sort between graphs": lambda x: tw.exp(tw.sort(x * 2.0)) - x,
    "an inverse between graphs": lambda x: (
        tw.linalg.inv(x @ tw.transpose(x) + tw.eye(4)) * 3
    ),
    "half precision": lambda x: tw.cast(tw.cast(x, "float16") * 2, "float32"),
    "whole numbers": lambda x: tw.cast(x * 100.0, "int8") // tw.constant(7, "int8"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_results_of_every_kind_are_those_of_numpy(what, gpu):
    x = RNG.normal(size=(4, 3)).astype("f")
    with on_numpy():
        wanted = tw.nest.flatten(tw.function(RESULTS[what])(tw.constant(x)))
    function = tw.function(RESULTS[what])
    for _ in range(2):
        found = tw.nest.flatten(function(tw.constant(x)))
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        if b is not None and b.numpy().dtype.kind in "biufc":
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-4)
        elif b is not None:
            assert a.numpy() == b.numpy()


def test_results_of_one_call_outlive_the_next(gpu):
    f = tw.function(lambda x: (x * 2.0, tw.reduce_sum(x)))
    first = f(tw.constant([1.0, 2.0]))
    f(tw.constant([5.0, 6.0]))
    assert first[0].numpy().tolist() == [2.0, 4.0] and first[1].numpy() == 3.0


def test_an_input_in_another_order_is_read_as_it_is(gpu):
    f = tw.function(lambda x: x * tw.constant(np.arange(6.0, dtype="f").reshape(2, 3)))
    x = np.arange(6, dtype="f").reshape(3, 2)
    for _ in range(2):
        found = f(tw.transpose(tw.constant(x)))
        assert np.array_equal(found.numpy(), x.T * np.arange(6).reshape(2, 3))


def test_other_shapes_are_traced_for_themselves(gpu):
    f = tw.function(lambda x: tw.reduce_sum(x * x, axis=-1))
    for shape in [(2, 3), (4, 3), (), (0, 3), (2, 3)]:
        x = RNG.normal(size=shape or (1,)).astype("f")
        np.testing.assert_allclose(f(tw.constant(x)).numpy(), (x * x).sum(-1), 1e-6)


def test_sizes_that_a_signature_leaves_open(gpu):
    spec = tw.TensorSpec([None, 3], "float32")
    f = tw.function(lambda x: tw.exp(x) / tw.reduce_sum(x), input_signature=[spec])
    for n in (2, 5, 2, 1):
        x = RNG.uniform(1, 2, (n, 3)).astype("f")
        np.testing.assert_allclose(f(tw.constant(x)).numpy(), np.exp(x) / x.sum(), 1e-5)


def test_gradients_of_a_function_of_the_first_and_second_order(gpu):
    def train():
        f = tw.function(lambda x: tw.reduce_sum(tw.tanh(x) ** 3))
        x = tw.constant(np.linspace(-1, 1, 7, dtype="f"))
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return y, g, outer.gradient(g, x)

    both(train, 1e-5)


def test_a_saved_function_runs_as_graphs_after_it_is_loaded(gpu, tmp_path):
    class Model(tw.Module):
        def __init__(self):
            super().__init__()
            self.w = tw.Variable(X[:3].T.copy())

        @tw.function(input_signature=[tw.TensorSpec([None, 20], "float32")])
        def __call__(self, x):
            return tw.tanh(x @ self.w)

    model = Model()
    wanted = model(tw.constant(X)).numpy()
    tw.saved_model.save(model, str(tmp_path / "m"))
    loaded = tw.saved_model.load(str(tmp_path / "m"))
    loaded(tw.constant(X))
    new_log()
    np.testing.assert_allclose(loaded(tw.constant(X)).numpy(), wanted, 1e-6)
    assert "graph" in asked()


# ------------------------------------------------------------------------ control flow


def test_a_loop_whose_body_runs_on_the_device(gpu):
    def train():
        @tw.function
        def f(x, n):
            return tw.while_loop(
                lambda i, y: i < n, lambda i, y: (i + 1, tw.sin(y) + x), (0, x)
            )

        return f(tw.constant([0.5, -1.0]), tw.constant(5))

    both(train)


def test_branches_and_loops_with_updates_inside(gpu):
    def train():
        v, rule = tw.Variable([1.0, 2.0]), tw.optimizers.SGD(0.1, momentum=0.9)

        @tw.function
        def f(x):
            def body(i):
                with tw.GradientTape() as tape:
                    loss = tw.reduce_sum(v * v * x)
                rule.apply_gradients([(tape.gradient(loss, v), v)])
                return (i + 1,)

            tw.while_loop(lambda i: i < tw.cast(x * 3.0, "int32"), body, (0,))
            tw.cond(x > 1.0, lambda: v.assign_add([1.0, 1.0]) is v and x, lambda: x)
            return tw.reduce_sum(v)

        return [*[f(tw.constant(a)) for a in (1.0, 2.0, 0.5)], v, *rule.variables]

    both(train)


def test_a_scan_and_its_gradient(gpu):
    def train():
        x = tw.constant(RNG_ROWS)

        @tw.function
        def f(x):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = tw.scan(lambda a, b: tw.tanh(a + b), x)
            return y, tape.gradient(y, x)

        return f(x)

    both(train, 1e-5)


RNG_ROWS = RNG.normal(size=(6, 3)).astype("f")


def test_what_is_compiled_again_keeps_its_limits(gpu):
    rule = tw.optimizers.Adam(0.01)
    step, _ = classifier(rule)
    x, y = tw.constant(X), tw.constant(Y)
    with use_limits(grid_blocks=3) as limits:
        step(x, y)
        executable = executable_of(step, x, y)
    before = executable.program
    rule.clipvalue = 0.1
    step(x, y)
    program = executable.program
    (update,) = [e for e in program.instructions if type(e) is UpdateKernel]
    assert program is not before
    assert program.limits == update.program.limits == limits


# ------------------------------------------------------------------------------- memory


def test_a_function_that_dies_frees_its_memory_by_its_count_of_references(
    gpu, unverified, monkeypatch
):
    made = []
    init = DeviceInstance.__init__

    def noted(self, *args):
        init(self, *args)
        made.append(weakref.ref(self))

    monkeypatch.setattr(DeviceInstance, "__init__", noted)
    v = tw.Variable(tw.ones([3]))
    f = tw.function(lambda x: v.assign_add(tw.exp(x)) is v and tw.sin(x))
    f(tw.ones([3]))
    gc.collect()
    gc.disable()
    try:
        assert made[0]() is not None
        del f
        assert made[0]() is None
    finally:
        gc.enable()


def test_an_array_of_a_variable_dies_with_it(gpu):
    v = tw.Variable(tw.ones([3]))
    f = tw.function(lambda v, x: v * x)
    f(v, tw.ones([3]))
    seen = weakref.ref(v._array)
    v.assign(tw.zeros([3]))
    assert seen() is None


def test_many_threads_give_the_numbers_of_one(gpu):
    x = RNG.normal(size=(5, 3)).astype("f")

    def train():
        v, w = tw.Variable(tw.ones([3, 4])), tw.Variable(tw.zeros([4]))
        rule = tw.optimizers.Adam(0.1, global_clipnorm=1.0)

        @tw.function
        def step(x, y):
            with tw.GradientTape() as tape:
                logits = x @ v + w
                loss = tw.reduce_mean(
                    tw.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
                )
            rule.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w]))
            w.assign(w * 0.9)
            return loss

        y = tw.constant([0, 3, 1, 2, 0])
        return [*[step(tw.constant(x), y) for _ in range(3)], v, w, *rule.variables]

    with driver.threads("fibers"):
        both(train, 1e-5)


def test_what_a_region_returns_is_read_before_its_variable_changes(gpu):
    def run():
        v, rule = tw.Variable([1.0, 2.0]), tw.optimizers.SGD(0.5)

        @tw.function
        def f(x):
            y = tw.cond(x[0] > 0, lambda: v.read_value(), lambda: x) + 1.0
            rule.apply_gradients([(x, v)])
            return y * v

        return [*[f(tw.constant([1.0, 3.0])) for _ in range(3)], v]

    both(run)


def test_the_choice_of_algorithms_writes_to_no_memory_of_the_program(gpu):
    """The second graph is captured when the arena holds what the first one has made."""
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(128, 128)).astype("f") for _ in range(3)]

    def run():
        x, w, u = map(tw.constant, matrices)

        @tw.function
        def f(x):
            a = x @ w
            b = a * tw.tanh(tw.linalg.inv(x))
            c = tw.tanh(tw.tanh(b) @ u) @ tw.transpose(u)  # may lie where a was
            return tw.reduce_sum(c, 0)

        return [f(x), f(x)]

    tw.config.autotune(True)
    try:
        both(run, tolerance=1e-3)
    finally:
        tw.config.autotune(False)
