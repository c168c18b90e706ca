"""Recurrent layers on a GPU: the steps of their ops, for values and gradients."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.loops.recurrent_steps import RECURRENT
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.instructions.call_instructions import Opaque
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.targets.cuda.kernels.step_loop import StepLoop

from ..program_runs import Memory, add_input, compile_launches, new_program, run

layers = tw.keras.layers

LAYERS = {
    "lstm": lambda units, **kw: layers.LSTM(units, **kw),
    "gru": lambda units, **kw: layers.GRU(units, **kw),
    "tanh": lambda units, **kw: layers.SimpleRNN(units, **kw),
    "relu": lambda units, **kw: layers.SimpleRNN(units, activation="relu", **kw),
}
SIZES = [(3, 1, 4), (1, 5, 7), (2, 6, 2), (32, 4, 33)]
TOLERANCES = {"f": 3e-6, "d": 1e-14}


def numbers(rng, shape, dtype):
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) > 0.3
    return rng.uniform(0.1, 0.9, shape).astype(dtype)


def recurrent_in(run, *args):
    """The calls of recurrent ops in the program of a traced function."""
    concrete = tw.function(run).get_concrete_function(*map(tw.constant, args))
    program = lower(optimize(concrete.graph), in_loops=True)
    calls = [e for e in program.instructions if type(e) is Opaque]
    return [e for e in calls if e.node.op.name in RECURRENT]


def ops_of(layer, sizes, masked=False, dtype=np.float32):
    """The recurrent ops of a layer and its gradient."""
    batch, steps, _ = sizes

    def run(x, mask):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=mask if masked else None)
            loss = tw.reduce_sum(y * y)
        return tape.gradient(loss, [x, *layer.trainable_variables])

    rng = np.random.default_rng(0)
    args = numbers(rng, (batch, steps, 6), dtype), numbers(rng, (batch, steps), bool)
    return recurrent_in(run, *args)


def program_of(call, change=lambda arrays: None):
    """A program of a call on some arrays, and what NumPy gives."""
    rng, program = np.random.default_rng(1), new_program()
    arrays = [numbers(rng, a.shape, a.dtype) for a in call.operands]
    change(arrays)
    operands = [add_input(program, a) for a in arrays]
    copied = Opaque(call.function, operands, call.node, call.keywords)
    copied.outputs = call.outputs
    with np.errstate(all="ignore"):
        wanted = call.function(*[a.copy() for a in arrays], **call.keywords)
    return program, copied, wanted if type(wanted) is tuple else (wanted,)


def check(call, change=lambda arrays: None):
    """Run a call as a `StepLoop`; compare with NumPy."""
    program, copied, wanted = program_of(call, change)
    assert StepLoop.accepts(copied)
    kernel = StepLoop.of(program, copied)
    assert kernel is not None
    specs = [(out.shape, out.dtype) for out in copied.outputs]
    program.outputs = list(program.append(kernel, *specs))
    for how in ({}, {"grid": (2, 1, 1), "threads": "fibers"}):
        found = run(program, **how)
        for a, b in zip(found, wanted, strict=True):
            tolerance = TOLERANCES[b.dtype.char]
            np.testing.assert_allclose(a, b, tolerance, tolerance)
    return kernel


@pytest.fixture(autouse=True)
def products(stand_in):
    return stand_in


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("masked", [False, True], ids=["", "masked"])
def test_all_steps_are_those_of_numpy(name, sizes, masked):
    layer = LAYERS[name](sizes[-1], return_sequences=True)
    calls = ops_of(layer, sizes, masked)
    assert len(calls) == 2
    for call in calls:
        check(call)


@pytest.mark.parametrize("name", LAYERS)
def test_numbers_of_double_precision_and_steps_backwards(name):
    layer = LAYERS[name](7, dtype="float64", go_backwards=True)
    for call in ops_of(layer, (4, 6, 7), True, np.float64):
        check(call)


def second_derivatives(layer, masked):
    def run(x, mask):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, mask=mask if masked else None)
                loss = tw.reduce_sum(y * y)
            first = tape.gradient(loss, x)
            total = tw.reduce_sum(first * first)
        return outer.gradient(total, [x, *layer.trainable_variables])

    rng = np.random.default_rng(0)
    return recurrent_in(run, numbers(rng, (3, 4, 2), "f"), numbers(rng, (3, 4), bool))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("masked", [False, True], ids=["", "masked"])
def test_second_derivatives_are_those_of_numpy(name, masked):
    layer = LAYERS[name](5, return_sequences=True)
    calls = second_derivatives(layer, masked)
    assert {call.node.op.name.split("_")[-1] for call in calls} == {
        "steps",
        "vjp",
        "jvp",
    }
    for call in calls:
        check(call)


@pytest.mark.parametrize("name", LAYERS)
def test_nan_goes_where_it_goes_in_numpy(name):
    def change(arrays):
        arrays[0][1, 2, 0] = np.nan

    steps, _ = ops_of(LAYERS[name](5, return_sequences=True), (4, 6, 5))
    check(steps, change)


@pytest.mark.parametrize("name", LAYERS)
def test_steps_that_count_for_nobody_leave_the_states_as_they_are(name):
    def change(arrays):
        (mask,) = [a for a in arrays if a.dtype == bool]
        mask[:] = True
        mask[[0, 3]] = False

    for call in ops_of(LAYERS[name](5, return_sequences=True), (3, 6, 5), True):
        check(call, change)


def steps_of(name, count, units=5):
    call, *_ = ops_of(LAYERS[name](units, return_sequences=True), (3, count, units))
    program, copied, _ = program_of(call)
    kernel = StepLoop.of(program, copied)
    program.append(kernel, *[(out.shape, out.dtype) for out in copied.outputs])
    return kernel.steps_on(Memory().numbers)


@pytest.mark.parametrize("name", LAYERS)
def test_longer_sequences_need_no_more_functions(name):
    found = [{step.name for step in steps_of(name, count)} for count in (2, 9)]
    assert len(found[0]) == len(found[1])


def test_each_step_has_one_product_and_as_many_launches():
    few, many = steps_of("lstm", 2), steps_of("lstm", 9)
    assert len([step for step in many if step.name == "cublasLtMatmul"]) == 9
    assert (len(many) - len(few)) % 7 == 0


def test_float16_and_mixed_numbers_are_not_accepted():
    call, _ = ops_of(LAYERS["lstm"](4, return_sequences=True), (3, 2, 4))
    _, copied, _ = program_of(call)
    assert StepLoop.accepts(copied)
    copied.operands[0].dtype = np.dtype(np.float16)
    assert not StepLoop.accepts(copied)


def test_a_kernel_that_cannot_be_traced_stays_a_call(monkeypatch):
    call, _ = ops_of(LAYERS["gru"](4, return_sequences=True), (3, 2, 4))
    program, copied, _ = program_of(call)
    copied.operands[0].shape = (3, 2)
    assert StepLoop.of(program, copied) is None


@pytest.mark.parametrize("name", LAYERS)
def test_the_functions_are_compiled_for_gpus(name):
    compile_launches(steps_of(name, 3))
