"""What holds on each target: numbers of eager mode, threads, processes, memory.

Machine code is cut into as many blocks and strips here as its arrays allow, so that small
ones show what large ones do.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.native import segments
from tapewright.ops.array.indexing import scatter_index

from .. import test_every_op as every_op

HAS_LLVM = importlib.util.find_spec("llvmlite") is not None
NATIVE = pytest.param(
    "native", marks=pytest.mark.skipif(not HAS_LLVM, reason="llvmlite is missing")
)
HERE = Path(__file__).parent


@pytest.fixture(params=["numpy", NATIVE])
def target(request):
    with tw.config.use_target(request.param):
        yield request.param


@pytest.fixture(params=[NATIVE])
def native(request):
    with tw.config.use_target(request.param):
        yield


@pytest.fixture
def small_blocks():
    nests = {"block_work": 32, "strip": 2, "strips": (4, 2), "local_entries": 32}
    with use_limits(**nests, small_sum=4, shared_work=1, kernel_work=4):
        yield


@pytest.fixture
def threads():
    yield tw.config.set_threads
    tw.config.set_threads(None)


def bits(outputs):
    return [np.asarray(x).tobytes() for x in tw.nest.flatten([outputs])]


# ------------------------------------------------------------------------------- ops

LINES = [
    (name, made)
    for name, made in every_op.each_line()
    if name not in every_op.MAY_NOT_BE_TRACED
]


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("part", range(8))
def test_every_op_gives_the_same_bits_on_any_number_of_threads(
    part, native, small_blocks, threads
):
    for name, made in LINES[part::8]:
        run = every_op.with_gradients(made)
        tensors = [tw.constant(a) for a in made.inputs]
        traced, found = tw.function(run), set()
        for count in (1, 2, 4, 4):
            threads(count)
            outputs = traced(*tensors)
            found.add(tuple(bits(outputs)))
        assert len(found) == 1, name
        wanted = every_op.arrays_of(run(*tensors))
        every_op.assert_same(every_op.arrays_of(outputs), wanted, str(made))


# ----------------------------------------------------------------------- larger arrays


def layers(x):
    y = tw.nn.softmax(tw.matmul(x, x, transpose_b=True) * 0.01)
    z = tw.tanh(tw.matmul(y, x))
    mean, variance = tw.nn.moments(z, [0])
    return (z - mean) * tw.math.rsqrt(variance + 1e-3)


def training(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = tw.reduce_mean(tw.square(layers(x))) + tw.reduce_sum(tw.exp(-x * x))
    return loss, tape.gradient(loss, x)


@pytest.mark.parametrize("shape", [(257, 129), (130, 1000)])
def test_large_arrays_give_the_same_bits_on_any_number_of_threads(
    target, threads, shape
):
    x = tw.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    traced, found = tw.function(training), set()
    for count in (1, 2, 4, 3):
        threads(count)
        found.update([tuple(bits(traced(x))) for _ in range(3)])
    assert len(found) == 1
    for a, b in zip(traced(x), training(x), strict=True):
        size = np.abs(b).max()
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * size)


def third(f, x):
    with tw.GradientTape() as a:
        a.watch(x)
        with tw.GradientTape() as b:
            b.watch(x)
            with tw.GradientTape() as c:
                c.watch(x)
                y = f(x)
            first = c.gradient(y, x)
        second = b.gradient(first, x)
    return first, second, a.gradient(second, x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tw.reduce_sum(tw.tanh(x) * tw.exp(-x)),
        lambda x: tw.reduce_sum(tw.math.log(tw.sigmoid(x)) * tw.sin(x)),
        lambda x: tw.reduce_sum(tw.square(layers(x * 3.0))[:2]),
    ],
    ids=["tanh", "sigmoid", "layers"],
)
def test_third_derivatives_are_differences_of_second_ones(target, f):
    random = np.random.default_rng(0)
    x = random.uniform(0.2, 1.0, (4, 3))
    direction, h = random.normal(size=x.shape), 1e-5
    traced = tw.function(lambda x: third(f, x))
    found = traced(tw.constant(x))[2].numpy()
    if f(tw.constant(x)).shape.rank:
        raise AssertionError("f is a number")

    def along(x):  # second derivatives of a sum are sums over rows of the Hessian
        return traced(tw.constant(x))[1].numpy()

    slope = (along(x + h * direction) - along(x - h * direction)) / (2 * h)
    # sum over all of H's rows: d(sum of second)/dx is `found`, along `direction`
    np.testing.assert_allclose(slope.sum(), (found * direction).sum(), rtol=1e-6)


# ------------------------------------------------------------------ layouts and memory


def odd_layouts(shape):
    array = np.random.default_rng(0).normal(size=shape)
    wide = np.repeat(np.repeat(array, 2, 0), 3, 1)
    unaligned = np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:]
    yield "plain", array
    yield "strided", wide[::2, ::3]
    yield "reversed", array[::-1, ::-1]
    yield "in Fortran's order", np.asfortranarray(array)
    yield "broadcast", np.broadcast_to(array[:1], shape)
    yield "read-only", np.frombuffer(array.tobytes()).reshape(shape)
    yield "of other byte order", array.astype(">f8")
    yield "unaligned", unaligned.view("f8").reshape(shape)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (1, 7), (0, 3), (33, 17)])
def test_inputs_of_any_layout_are_taken(target, shape):
    traced = tw.function(lambda x: (tw.sin(x) * 2.0, tw.reduce_sum(x * x, 1)))
    executable = None
    for name, array in odd_layouts(shape):
        before = array.tobytes()
        wanted = np.sin(np.asarray(array, "f8")) * 2.0, np.square(array).sum(1)
        found = [traced(tw.constant(array))]
        if executable is None:
            executable = traced.get_concrete_function(tw.constant(array)).executable
        if array.dtype.isnative:
            found.append(executable.run([array]))
        for outputs in found:
            for a, b in zip(outputs, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=name)
        assert array.tobytes() == before, name


def test_nothing_is_written_over_what_other_entries_still_need(target):
    def f(x):
        y = tw.matmul(x, x)
        z = tw.matmul(tw.transpose(y) * 2.0 + 1.0, x)
        shifted = tw.matmul(tw.concat([z[1:], z[:1]], 0), x)
        row = shifted - tw.reduce_max(shifted, 0)
        return tw.matmul(row[::-1] * 0.5, x), tw.matmul(tw.nn.softmax(row * 1e-3, 0), x)

    x = tw.constant(np.random.default_rng(0).uniform(-1, 1, (21, 21)))
    for a, b in zip(tw.function(f)(x), f(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-10)


def test_machine_code_touches_nothing_outside_of_its_arrays(native):
    run_script((HERE / "guarded.py").read_text(), "no fault", TAPEWRIGHT_VERIFY="0")


SIZES = (1, 2, 63, 64, 65, 1023, 1025, 70_001)


@pytest.mark.parametrize("make", ["SGD", "Adam", "RMSprop"])
def test_steps_of_optimizers_touch_their_arrays_alone(native, make):
    rule = getattr(tw.optimizers, make)(0.1)
    rule.build([tw.Variable(np.ones(3, np.float32))])
    block = rule._tw_block_rule
    slots, count = block.slots, block.numbers
    step = rule._tw_compiled_update(np, np.dtype(np.float32), count, False, False)
    numbers = [np.array(0.1, np.float32) for _ in range(count)]
    for size in SIZES:
        room = np.full((slots + 2, size + 64), 7.0, np.float32)
        arrays = [row[32 : 32 + size] for row in room]
        assert step(*arrays, *numbers) is None
        assert (room[:, :32] == 7).all() and (room[:, 32 + size :] == 7).all()
        assert (arrays[0] == 7).all() and (arrays[1] != 7).all(), size


# In a process of its own: the memory of one that runs tests changes by itself.
TRACED = """
import gc, os
import tapewright as tw
from tapewright.compiler.targets.native.jit import engine

tw.config.set_target("native")

def trace(n):
    x = tw.ones([2 + n % 10, 3])
    assert float(tw.function(lambda x: tw.reduce_sum(tw.exp(x) * 0.5))(x)) > 0

def alive():
    gc.collect()
    engine._close_dropped()
    return sum([type(each) is engine.Library for each in gc.get_objects()])

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

for n in range(50):
    trace(n)
libraries, before = alive(), resident()
for n in range(500):
    trace(n)
print(alive() - libraries, resident() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux alone has it")
@pytest.mark.skipif(not HAS_LLVM, reason="llvmlite is missing")
def test_functions_traced_again_and_again_leave_nothing_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRACED],
        env=os.environ | {"TAPEWRIGHT_CACHE": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    libraries, grown = map(int, done.stdout.split())
    assert libraries <= 0 and grown < 4 << 20


# -------------------------------------------------------------- threads and processes


def test_eight_threads_call_one_function_at_once(target, in_threads):
    traced = tw.function(training)
    arrays = [np.random.default_rng(n).normal(size=(65, 30)) for n in range(8)]
    wanted = [bits(traced(tw.constant(a))) for a in arrays]

    def work(n):
        def run():
            for _ in range(10):
                assert bits(traced(tw.constant(arrays[n]))) == wanted[n]

        return run

    in_threads(*map(work, range(8)))


def run_script(code, expected, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **variables},
    )
    last = f"{done.stdout[-300:]}\n{done.stderr[-2000:]}"
    assert done.returncode == 0 and expected in done.stdout, last


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_calls_and_compiles_functions(target):
    code = """
import os, sys, warnings
import numpy as np
import tapewright as tw
warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
tw.config.set_target(sys.argv[1])
tw.config.set_threads(3)
f = tw.function(lambda x: tw.reduce_sum(tw.exp(tw.matmul(x, x) * 1e-3) * x))
x = tw.constant(np.ones((400, 400), np.float32))
wanted = f(x).numpy()
child = os.fork()
assert f(x).numpy() == wanted
assert float(tw.function(lambda x: tw.reduce_sum(x * 2.0))(x)) == 320000
if not child:
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
print("done")
"""
    run_script(code, "done", target)


def test_a_saved_function_runs_in_a_fresh_process(target, tmp_path):
    class Model(tw.Module):
        def __init__(self):
            super().__init__()
            self.weight = tw.Variable(np.linspace(-1, 1, 12).reshape(3, 4))

        @tw.function(input_signature=[tw.TensorSpec([None, 3], tw.float64)])
        def __call__(self, x):
            return tw.nn.softmax(tw.matmul(x, self.weight)) * 2.0

    model, x = Model(), np.linspace(0, 1, 15).reshape(5, 3)
    wanted = model(tw.constant(x)).numpy()
    tw.saved_model.save(model, str(tmp_path / "model"))
    code = """
import sys
import numpy as np
import tapewright as tw
folder, target, wanted = sys.argv[1:]
tw.config.set_target(target)
assert tw.config.target() == target
loaded = tw.saved_model.load(folder + "/model")
found = loaded(tw.constant(np.linspace(0, 1, 15).reshape(5, 3))).numpy()
assert found.tobytes().hex() == wanted, found
print("same bits")
"""
    arguments = str(tmp_path), target, wanted.tobytes().hex()
    run_script(code, "same bits", *arguments)


def test_training_goes_on_from_a_checkpoint_with_the_same_bits(target, tmp_path):
    def made():
        tw.random.set_seed(1)
        model = tw.keras.Sequential(
            [
                tw.keras.layers.Dense(16, "relu"),
                tw.keras.layers.BatchNormalization(),
                tw.keras.layers.Dense(4),
            ]
        )
        model.build((None, 8))
        optimizer = tw.optimizers.Adam(0.01, global_clipnorm=0.5)

        @tw.function
        def step(x):
            with tw.GradientTape() as tape:
                loss = tw.reduce_mean(tw.square(model(x, training=True)))
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        return model, optimizer, step

    batches = np.random.default_rng(0).normal(size=(6, 20, 8)).astype(np.float32)
    model, optimizer, step = made()
    for x in batches[:3]:
        step(tw.constant(x))
    path = tw.train.Checkpoint(model=model, optimizer=optimizer).save(
        str(tmp_path / "checkpoint")
    )
    wanted = [bits(step(tw.constant(x))) for x in batches[3:]]
    other, its_optimizer, its_step = made()
    tw.train.Checkpoint(model=other, optimizer=its_optimizer).restore(path)
    assert [bits(its_step(tw.constant(x))) for x in batches[3:]] == wanted
    assert bits(other.weights) == bits(model.weights)


# ------------------------------------------------------------------------ small things


def test_sums_of_nothing_keep_their_dtype(target):
    x = tw.constant(np.zeros((0, 3), np.int32))
    total = tw.function(lambda x: tw.reduce_sum(x * 2, 0))(x)
    assert total.dtype == tw.int32
    np.testing.assert_array_equal(total, [0, 0, 0])
    every = tw.function(lambda x: (tw.reduce_all(x > 0), tw.reduce_any(x > 0, 0)))(x)
    assert every[0].numpy() and not every[1].numpy().any()


def test_numbers_are_placed_at_several_entries(target):
    g = tw.constant(np.full(2, 3.0))
    place = tw.function(
        lambda g: scatter_index(g * 2.0, shape=(2, 3), index=("...", 1))
    )
    np.testing.assert_array_equal(place(g), [[0, 6, 0], [0, 6, 0]])


def test_a_constant_number_picks_a_row(target):
    pick = tw.function(lambda x: tw.gather(x * 2.0, tw.constant(1)))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(pick(tw.constant(x)), x[1] * 2)


def test_a_segment_refuses_arrays_that_are_not_as_expected(native):
    f = tw.function(lambda x, y: (tw.exp(x) + y, tw.reduce_sum(y, 0)))
    x, y = tw.ones((5, 7)), tw.ones((3, 1, 7))
    (segment,) = f.get_concrete_function(x, y).executable.segments
    arrays = [None] * len(segment.arrays)
    for key, n in segment.arrays.items():
        shape, dtype = (segment.arena_size,), np.uint8
        if key != segments.ARENA:
            shape, dtype = key.shape, key.dtype
        arrays[n] = np.zeros(shape, dtype)
    assert segment.function(*arrays) is None
    assert segment.function(*arrays, arrays[0]) is True
    assert 0 < len(segment.written) < len(arrays)
    for n, array in enumerate(arrays):
        frozen = array.copy()
        frozen.flags.writeable = False
        others = [array.tolist(), array[None], array[1:], array.astype("f2")]
        for other in others:
            assert segment.function(*arrays[:n], other, *arrays[n + 1 :]) is True
        refused = segment.function(*arrays[:n], frozen, *arrays[n + 1 :])
        assert refused is (True if n in segment.written else None)
