import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.native.jit import engine
from tapewright.formats.libraries import driver, export

from ... import machine_code
from .libraries import Library, compiled, exported

layers, schedules = keras.layers, keras.optimizers.schedules
X = np.random.default_rng(0).normal(size=(8, 20)).astype("f4")
LABELS = np.random.default_rng(1).integers(0, 5, 8).astype("i4")
SPECS = [tw.TensorSpec([8, 20]), tw.TensorSpec([8], tw.int32)]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
ARM = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
needs_arm = pytest.mark.skipif(
    None in map(shutil.which, ARM), reason="there is no linker for ARM, or no qemu"
)
pytestmark = needs_gcc


@pytest.fixture(autouse=True)
def native(monkeypatch):
    """Run LLVM's passes, which libraries are compiled with: bits depend on them."""
    monkeypatch.setattr(engine, "compiled", machine_code.with_passes)
    keras.utils.set_random_seed(0)
    with tw.config.use_target("native"):
        yield


def mlp():
    return keras.Sequential(
        [
            keras.Input((20,)),
            layers.Dense(16, activation="relu"),
            layers.Dense(5, activation="softmax"),
        ]
    )


def convnet():
    return keras.Sequential(
        [
            keras.Input((12, 12, 2)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(5, activation="softmax"),
        ]
    )


def recurrent():
    return keras.Sequential(
        [
            keras.Input((7, 3)),
            layers.LSTM(8, return_sequences=True),
            layers.GRU(8),
            layers.Dense(5),
        ]
    )


def transformer():
    x = inputs = keras.Input((6,), dtype="int32")
    x = layers.Embedding(11, 8)(x)
    attended = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + attended)
    return keras.Model(inputs, layers.Dense(5, activation="gelu")(x))


NETWORKS = {
    "mlp": (mlp, X),
    "convnet": (convnet, np.tile(X[:, :16], 18).reshape(8, 12, 12, 2)),
    "recurrent": (recurrent, np.tile(X, 2)[:, :21].reshape(8, 7, 3).copy()),
    "transformer": (transformer, np.arange(48, dtype="i4").reshape(8, 6) % 11),
}


def inference(name):
    """A traced model, its signature, and a batch."""
    make, x = NETWORKS[name]
    model = make()
    function = tw.function(lambda x: model(x, training=False))
    return function, [tw.TensorSpec(x.shape, x.dtype)], x


def training(model, optimizer):
    """A traced training step."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    @tw.function
    def step(x, labels):
        with tw.GradientTape() as tape:
            value = loss(labels, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
        return value

    return step


def logits(*hidden):
    return keras.Sequential([keras.Input((20,)), *hidden, layers.Dense(5)])


# -------------------------------------------------------------------------- same digits


@pytest.mark.parametrize("weights", ["inside", "beside"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_bits_of_its_function(name, weights, tmp_path):
    function, signature, x = inference(name)
    library = exported(function, signature, tmp_path, weights=weights)
    with use_limits(is_standalone=True):
        again, _, _ = inference(name)  # of the same code, with products by the same
        concrete = again.get_concrete_function(*signature)
        for variable, other in zip(concrete.variables, function_variables(function)):
            variable.assign(other)
        expected = concrete(tw.constant(x)).numpy()
    (y,) = library.run(x)
    assert np.array_equal(y, expected)
    np.testing.assert_allclose(y, function(tw.constant(x)).numpy(), 1e-5, 1e-7)


def function_variables(function):
    return function.concrete_functions[-1].variables


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: keras.optimizers.Adam(0.01),
    "AdamW": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "clipped": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.5),
    "cosine": lambda: keras.optimizers.RMSprop(schedules.CosineDecay(0.1, 3)),
    "pieces": lambda: keras.optimizers.SGD(
        schedules.PiecewiseConstantDecay([0, 2], [0.1, 0.05, 0.01])
    ),
    "cycles": lambda: keras.optimizers.SGD(
        schedules.PolynomialDecay(0.1, 2, power=2.0, cycle=True)
    ),
    "stairs": lambda: keras.optimizers.SGD(
        schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)
    ),
    "norms": lambda: keras.optimizers.Lamb(0.01),
    "Muon": lambda: keras.optimizers.Muon(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_steps_change_variables_as_the_function_does(name, tmp_path):
    model, optimizer = logits(layers.Dense(16, "relu")), OPTIMIZERS[name]()
    step = training(model, optimizer)
    library = exported(step, SPECS, tmp_path)
    for _ in range(4):
        (loss,) = library.run(X, LABELS)
        with use_limits(is_standalone=True):  # when it is compiled
            expected = step(tw.constant(X), tw.constant(LABELS)).numpy()
        np.testing.assert_allclose(loss, expected, 1e-6)
    changed = [*model.trainable_variables, *optimizer.variables]
    after = sorted_values([v.numpy() for v in changed if v.path[-4:] != "rate"])
    for own, other in zip(sorted_values(library.variables()), after, strict=True):
        if name in ("clipped", "norms"):  # whose sums have another order
            np.testing.assert_allclose(own, other, 1e-6, 1e-8)
        else:
            assert np.array_equal(own, other)


def sorted_values(arrays):
    return sorted(arrays, key=lambda a: (a.shape, a.astype("f8").round(3).tolist()))


@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_large_variables_are_overwritten_in_their_place(weights, tmp_path):
    model, optimizer = logits(layers.Dense(2000, "relu")), keras.optimizers.Adam(0.01)
    step = training(model, optimizer)
    library = exported(step, SPECS, tmp_path, weights=weights)
    for _ in range(3):
        library.run(X, LABELS)
        with use_limits(is_standalone=True):
            step(tw.constant(X), tw.constant(LABELS))
    expected = {v.numpy().tobytes() for v in model.trainable_variables}
    assert expected <= {v.tobytes() for v in library.variables()}
    memory = int(re.search(r"all memory: (\d+) bytes", library.header)[1])
    assert memory < 2.2 * 3 * 4 * model.count_params()


def test_dropout_continues_its_random_numbers(tmp_path):
    model = logits(layers.Dropout(0.5))
    function = tw.function(lambda x: model(x, training=True))
    library = exported(function, SPECS[:1], tmp_path)
    results = [library.run(X)[0] for _ in range(3)]
    assert not np.array_equal(results[0], results[1])
    for own in results:
        expected = function(tw.constant(X)).numpy()
        np.testing.assert_allclose(own, expected, 1e-5, 1e-6)


def test_structures_are_flattened_and_views_and_constants_are_results(tmp_path):
    table = tw.constant(np.arange(6.0, dtype="f4").reshape(2, 3))

    @tw.function
    def function(pair, scale):
        a, b = pair["a"], pair["b"]
        joined = tw.concat([a, b], 0)
        return {
            "flat": tw.reshape(a * scale, [6]),
            "moved": tw.transpose(joined * scale),
            "part": (a * scale)[1:, ::2],
            "same": a,
            "twice": [joined * scale, joined * scale],
            "fixed": table,
        }

    pair = {"a": tw.TensorSpec([2, 3]), "b": tw.TensorSpec([1, 3])}
    library = exported(function, [pair, tw.TensorSpec([])], tmp_path)
    a, b = X[:2, :3], X[:1, 5:8]
    expected = function(
        {"a": tw.constant(a), "b": tw.constant(b)}, tw.constant(np.float32(3))
    )
    found = library.run(a, b, np.float32(3))
    for own, other in zip(found, tw.nest.flatten(expected), strict=True):
        assert np.array_equal(own, other.numpy())
    assert "const float *pair_a, const float *pair_b, const float *scale" in (
        library.header
    )
    assert "float *fixed, float *flat, float *moved, float *part," in library.header
    assert "float *same, float *twice_0, float *twice_1, int threads" in library.header


def test_assignments_exchange_variables(tmp_path):
    v, w = tw.Variable([1.0, 2.0]), tw.Variable([3.0, 4.0])

    @tw.function
    def exchange(x):
        old = v + 0.0
        v.assign(w)
        w.assign(old)
        return v * x

    library = exported(exchange, [tw.TensorSpec([])], tmp_path)
    (y,) = library.run(np.float32(10))
    assert y.tolist() == [30, 40]
    assert sorted(x.tolist() for x in library.variables()) == [[1, 2], [3, 4]]
    assert library.run(np.float32(10))[0].tolist() == [10, 20]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "bool"])
def test_other_dtypes(dtype, tmp_path):
    x = (X * 3).astype(dtype)
    function = tw.function(lambda x: (x, tw.cast(x, "float32") * 2))
    library = exported(function, [tw.TensorSpec(x.shape, dtype)], tmp_path)
    same, doubled = library.run(x.view("u2") if dtype == "float16" else x)
    assert same.tobytes() == x.tobytes()
    assert np.array_equal(doubled, x.astype("f4") * 2)


def test_a_function_of_nothing_and_one_without_results(tmp_path):
    count = tw.Variable(3.0)
    library = exported(tw.function(lambda: count * 2), [], tmp_path, "read")
    assert library.run()[0] == 6

    @tw.function
    def add(x):
        count.assign_add(x)

    library = exported(add, [tw.TensorSpec([])], tmp_path, "add")
    assert library.run(np.float32(2)) == [] and library.variables() == [5]


# ----------------------------------------------------------------------- what is needed


def needed(path):
    """The undefined symbols of a library, without versions."""
    shown = subprocess.run(["nm", "-D", "-u", path], capture_output=True, text=True)
    return {line.split()[-1].partition("@")[0] for line in shown.stdout.splitlines()}


OF_THE_LINKER = {
    "__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable", "__stack_chk_fail",
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_but_the_c_library_is_needed(name, tmp_path):
    function, signature, _ = inference(name)
    tw.export_library(function, signature, tmp_path / "model.so")
    assert needed(tmp_path / "model.so") - OF_THE_LINKER <= {
        *("aligned_alloc", "fclose", "fopen", "fread", "free"),
        *("memcpy", "memmove", "memset", "fmod", "fmodf"),
    }


def test_two_libraries_in_one_process_have_their_own_memory(tmp_path):
    function, signature, x = inference("mlp")
    first = exported(function, signature, tmp_path, "first")
    (before,) = first.run(x)
    second = exported(tw.function(lambda x: x * 2), SPECS[:1], tmp_path, "second")
    assert np.array_equal(second.run(x)[0], x * 2)
    assert np.array_equal(first.run(x)[0], before)


TWO = """
#include <stdio.h>
#include "first.h"
#include "second.h"

int main(void) {
  float x[FIRST_X_SIZE], y[FIRST_Y_SIZE], z[SECOND_Y_SIZE];
  for (int i = 0; i < FIRST_X_SIZE; i++) x[i] = 1;
  if (first_init(NULL) || second_init(NULL)) return 1;
  if (first_run(x, y, 1) || second_run(x, z, 1)) return 2;
  second_free();
  if (first_run(x, y, 1)) return 3;
  printf("%g %g\\n", y[0], z[0]);
  first_free();
  return 0;
}
"""


@pytest.mark.parametrize("kind", [".o", ".so"])
def test_two_libraries_in_one_program_share_no_names(kind, tmp_path):
    kernels = [tw.Variable(np.full((20, 16), n, "f4")) for n in (1, 2)]
    for name, kernel in zip(("first", "second"), kernels):
        function = tw.function(lambda x, kernel=kernel: x @ kernel)
        path = tmp_path / f"{name}{kind}"
        tw.export_library(function, [tw.TensorSpec([8, 20])], path)
    (tmp_path / "main.c").write_text(TWO)
    more = tmp_path / f"first{kind}", tmp_path / f"second{kind}"
    program = compiled("main.c", tmp_path, *more)
    shown = subprocess.run([program], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (0, "20 40\n")


def test_a_weights_file_is_apart_from_a_small_library(tmp_path):
    model = keras.Sequential([keras.Input((784,)), layers.Dense(128), layers.Dense(10)])
    function = tw.function(lambda x: model(x, training=False))
    path = tmp_path / "model.so"
    tw.export_library(function, [tw.TensorSpec([1, 784])], path, weights="beside")
    assert path.stat().st_size < 1 << 16
    assert path.with_suffix(".weights").stat().st_size > 4 * model.count_params()


# ------------------------------------------------------------------- programs, other CPUs


PROGRAM = """
#include <stdio.h>
#include "model.h"

int main(int count, char **arguments) {
  static float x[MODEL_X_SIZE], y[MODEL_Y_SIZE];
  FILE *file = fopen(arguments[1], "rb");
  if (count != 2 || fread(x, sizeof x, 1, file) != 1) return 1;
  fclose(file);
  if (model_init(NULL) != MODEL_OK || model_run(x, y, 1) != MODEL_OK) return 2;
  for (int i = 0; i < MODEL_Y_SIZE; i++) printf("%.9g\\n", y[i]);
  model_free();
  return 0;
}
"""


def printed(
    function, signature, x, folder, library, target=None, compiler="gcc", run=()
):
    """Return what a C program prints that is linked with a library."""
    tw.export_library(function, signature, folder / library, target=target)
    (folder / "main.c").write_text(PROGRAM)
    x.tofile(folder / "x")
    more = folder / library, f"-Wl,-rpath,{folder}"
    program = compiled("main.c", folder, *more, compiler=compiler)
    command = [*run, program, folder / "x"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return np.array(shown.split(), np.float32)


@pytest.mark.parametrize("library", ["model.so", "model.o"])
@pytest.mark.parametrize("name", ["mlp", "convnet"])
def test_a_c_program_computes_the_same(name, library, tmp_path):
    function, signature, x = inference(name)
    found = printed(function, signature, x, tmp_path, library)
    expected = function(tw.constant(x)).numpy().ravel()
    np.testing.assert_allclose(found, expected, 1e-5, 1e-7)


def test_the_program_of_the_guide_compiles_and_runs(tmp_path):
    page = Path(__file__).parents[3] / "docs" / "guide" / "production.md"
    (program,) = re.findall(r"```c\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "main.c").write_text(program)
    model = keras.Sequential([keras.Input((784,)), layers.Dense(10, "softmax")])
    function = tw.function(lambda x: model(x, training=False))
    tw.export_library(function, [tw.TensorSpec([1, 784])], tmp_path / "digits.o")
    shown = subprocess.run(
        [compiled("main.c", tmp_path, "digits.o")], capture_output=True
    )
    assert shown.stdout == b"0.100000\n"


@pytest.mark.parametrize("name", ["mlp", "convnet"])
def test_a_library_for_other_machines_of_this_architecture(name, tmp_path):
    from tapewright.compiler.targets.native.jit.engine import this_cpu

    if this_cpu().architecture != "x86_64":
        pytest.skip("this machine has another architecture")
    function, signature, x = inference(name)
    found = printed(function, signature, x, tmp_path, "model.so", "x86-64-v3")
    expected = function(tw.constant(x)).numpy().ravel()
    np.testing.assert_allclose(found, expected, 1e-5, 1e-7)


@needs_arm
@pytest.mark.parametrize("name", ["mlp", "convnet", "recurrent"])
def test_a_library_for_arm(name, tmp_path):
    function, signature, x = inference(name)
    run = "qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"
    how = "aarch64", ARM[0], run
    found = printed(function, signature, x, tmp_path, "model.so", *how)
    expected = function(tw.constant(x)).numpy().ravel()
    np.testing.assert_allclose(found, expected, 1e-5, 1e-7)


def test_an_object_file_for_arm_needs_no_linker(tmp_path):
    function, signature, _ = inference("convnet")
    tw.export_library(function, signature, tmp_path / "a.o", target="aarch64")
    code = (tmp_path / "a.o").read_bytes()
    assert code[:4] == b"\x7fELF" and code[18:20] == (183).to_bytes(2, "little")


# ------------------------------------------------------------------------------- refused


def test_all_parts_without_machine_code_are_listed_with_their_lines(tmp_path):
    def function(x):
        if tw.reduce_sum(x) > 0:
            x = x + 1
        return tw.sort(x), tw.linalg.cholesky(x)

    with pytest.raises(NotImplementedError) as error:
        tw.export_library(function, [tw.TensorSpec([4, 4])], tmp_path / "a.so")
    text = str(error.value)
    assert "no machine code for sort: the op sort" in text
    assert "no machine code for cholesky: the op cholesky" in text
    assert "a branch or a loop: the op if" in text
    assert text.count(__file__) == 3 and not [*tmp_path.iterdir()]


PYTHON = {
    "state": lambda: keras.optimizers.Nadam(),
    "a rate": lambda: keras.optimizers.SGD(lambda: 0.1),
    "averages": lambda: keras.optimizers.SGD(0.1, use_ema=True),
    "sums": lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("name", PYTHON)
def test_a_step_that_python_computes_is_refused(name, tmp_path):
    step = training(logits(), PYTHON[name]())
    with pytest.raises(
        NotImplementedError,
        match="that Python computes: the op apply_gradients, .*test_export",
    ):
        tw.export_library(step, SPECS, tmp_path / "a.so")


def test_code_that_calls_anything_else_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "C_LIBRARY", {"free", "fopen"})
    with pytest.raises(RuntimeError, match="calls aligned_alloc, which the C library"):
        tw.export_library(lambda x: x, [tw.TensorSpec([2])], tmp_path / "a.o")
    assert not [*tmp_path.iterdir()]


def test_complex_numbers_are_refused(tmp_path):
    spec = [tw.TensorSpec([2], tw.complex64)]
    with pytest.raises(NotImplementedError, match="no type for arrays of complex64"):
        tw.export_library(lambda x: x, spec, tmp_path / "a.o")
    assert not [*tmp_path.iterdir()]


def test_arguments_are_checked(tmp_path):
    path, spec = tmp_path / "a.so", [tw.TensorSpec([2])]
    with pytest.raises(ValueError, match="'x' of '<lambda>' has the shape"):
        tw.export_library(lambda x: x, [tw.TensorSpec([None])], path)
    with pytest.raises(ValueError, match="one of 'aarch64', 'x86-64-v3', got 'arm'"):
        tw.export_library(lambda x: x, spec, path, target="arm")
    with pytest.raises(ValueError, match="'inside' or 'beside', got 'none'"):
        tw.export_library(lambda x: x, spec, path, weights="none")
    with pytest.raises(ValueError, match="must be an identifier of C, got '2x'"):
        tw.export_library(lambda x: x, spec, path, name="2x")


def test_without_a_linker_the_error_names_the_object_file(tmp_path, monkeypatch):
    monkeypatch.setattr(export.shutil, "which", lambda name: None)
    with pytest.raises(tw.errors.SavingError, match="write 'a.o' instead"):
        tw.export_library(lambda x: x, [tw.TensorSpec([2])], tmp_path / "a.so")
    tw.export_library(lambda x: x, [tw.TensorSpec([2])], tmp_path / "a.o")
    assert (tmp_path / "a.o").is_file()


def test_code_for_another_cpu_is_not_loaded(monkeypatch):
    from tapewright.compiler.targets.native.jit import engine
    from tapewright.compiler.targets.native.jit.host import TARGETS

    with engine.compiling_for(TARGETS["aarch64"]):
        assert engine.host().architecture == "aarch64"
        assert engine.vector_registers() == (16, 32)
        with pytest.raises(RuntimeError, match="is for another CPU"):
            engine.compiled("")
    assert engine.host() is engine.this_cpu()


def test_a_library_of_its_name_has_its_functions(tmp_path):
    tw.export_library(lambda x: x + 1, [tw.TensorSpec([2])], tmp_path / "my-net.so")
    library = Library(tmp_path / "my-net.so", "my_net")
    assert library.init() == 0
    assert library.run(np.ones(2, "f4"))[0].tolist() == [2, 2]
