"""Every rule and every option of the base class against steps of real Keras."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.core.hardware import devices
from tapewright.optimizers import schedules
from tapewright.optimizers.base import arithmetic, flat_buffers

from ..rounding import assert_as_eager

pytestmark = pytest.mark.gpu_first

REFERENCE = pathlib.Path(__file__).parent / "reference"
FILES = "keras.npz", "more.npz", "own.npz", "jax.npz"
KERAS = {k: v for name in FILES for k, v in np.load(REFERENCE / name).items()}


def load(name):
    spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = load("record")
OWN_RULES = load("own_rules").rules(tw.keras)

CONFIGS = json.loads((REFERENCE / "configs.json").read_text())

RUNS = sorted(name for name in KERAS if "|" in name)
# Small variables share blocks, large ones go alone, very large ones in many blocks; here
# the same variables are told that they are small, large, very large, or worth a call of
# BLAS.
LAYOUTS = {
    "together": (1 << 14, 1 << 17, 1 << 15),
    "alone": (0, 1 << 17, 1 << 15),
    "in blocks": (0, 3, 1 << 15),
    "by BLAS": (1 << 14, 1 << 17, 0),
}


def optimizer_of(rule, extra):
    if rule in OWN_RULES:
        return OWN_RULES[rule](record.OWN_RULES[rule], **record.ALL_EXTRAS[extra])
    name, arguments = record.ALL_RULES[rule]
    return getattr(optimizers, name)(**arguments, **record.ALL_EXTRAS[extra])


def tensor_of(gradient):
    if not isinstance(gradient, tuple):
        return tw.constant(gradient)
    values, rows = gradient
    return tw.IndexedSlices(tw.constant(values), tw.constant(rows), record.SHAPES[0])


def history(optimizer, starts, steps, traced=False):
    variables = [tw.Variable(start) for start in starts]
    seen = []

    def step(*gradients):
        optimizer.apply_gradients(zip(gradients, variables))

    step = tw.function(step) if traced else step
    for gradients in steps:
        step(*map(tensor_of, gradients))
        seen += [v.numpy().ravel() for v in variables]
    seen += [v.numpy().ravel() for v in optimizer.variables[2:]]
    return np.concatenate(seen)


@pytest.fixture(params=LAYOUTS)
def layout(request, monkeypatch):
    pooled, block, worth = LAYOUTS[request.param]
    monkeypatch.setattr(flat_buffers, "POOLED", pooled)
    monkeypatch.setattr(flat_buffers, "POOLED_ON_GPU", pooled)
    monkeypatch.setattr(flat_buffers, "BLOCK", block)
    monkeypatch.setattr(arithmetic, "WORTH", worth)


@pytest.mark.parametrize("run", RUNS)
def test_eight_steps_are_those_of_keras(run, layout):
    rule, extra, kind = run.split("|")
    starts, steps = record.problem(kind)
    ours = history(optimizer_of(rule, extra), starts, steps)
    assert ours.dtype == KERAS[run].dtype
    np.testing.assert_allclose(ours, KERAS[run], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("run", RUNS)
def test_a_traced_step_is_the_eager_one_to_the_bit(run, device):
    rule, extra, kind = run.split("|")
    starts, steps = record.problem(kind)
    optimizer = optimizer_of(rule, extra)
    eager = history(optimizer, starts, steps)
    traced = history(optimizer_of(rule, extra), starts, steps, traced=True)
    if device == "cpu" and optimizer._tw_updates_blocks:  # one code for both
        assert np.array_equal(eager, traced)
    else:
        assert_as_eager(traced, eager, ulps=64)


@pytest.mark.parametrize("traced", [False, True])
def test_a_dynamic_loss_scale_is_that_of_keras(traced):
    inner = optimizers.Adam(0.01)
    scaled = optimizers.LossScaleOptimizer(inner, **record.SCALED)
    ours = history(scaled, *record.scaled_problem(), traced)
    np.testing.assert_allclose(ours, KERAS["scaled"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", record.SCHEDULES)
def test_schedules_have_the_rates_of_keras(name):
    kind, arguments = record.SCHEDULES[name]
    schedule, steps = getattr(schedules, kind)(*arguments), record.STEPS_SEEN
    expected = KERAS[f"schedule {name}"]
    for rates in (
        [schedule._tw_at(step) for step in steps],
        [schedule(step).numpy() for step in steps],
        schedule(tw.constant(steps)).numpy(),
        tw.function(schedule)(tw.constant(steps, tw.int64)).numpy(),
    ):
        np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_of_keras_are_read_and_written(name):
    written = CONFIGS[name]
    schedule = written["module"].endswith("schedules")
    module = schedules if schedule else optimizers
    found = module.deserialize(written)
    assert type(found).__name__ == written["class_name"]
    config = found.get_config()
    if name == "LossScaleOptimizer":
        config["inner_optimizer"] |= {"module": "keras.optimizers"}
        config["inner_optimizer"] |= {"registered_name": None}
    elif not schedule:
        assert getattr(optimizers, name)().get_config() == config
    assert config == written["config"]


RULES = ["adam", "amsgrad", *record.MORE_RULES]


@pytest.mark.parametrize("rule", RULES)
def test_a_row_that_comes_twice_counts_as_the_sum_of_its_values(rule, layout):
    starts, steps = record.problem("repeated")
    sparse = history(optimizer_of(rule, "plain"), starts, steps)
    dense = history(optimizer_of(rule, "plain"), starts, record.summed(steps))
    np.testing.assert_allclose(sparse, dense, rtol=1e-6, atol=1e-6)


# A GPU has no blocks of a bounded size, and no call of BLAS.
@pytest.mark.parametrize("layout", ["together", "alone"], indirect=True)
@pytest.mark.parametrize("run", [run for run in RUNS if "float64" not in run])
def test_arrays_of_a_gpu_give_the_same_steps(run, strict, layout):
    rule, extra, kind = run.split("|")
    starts, steps = record.problem(kind)
    with devices.use_module(strict):
        ours = history(optimizer_of(rule, extra), starts, steps)
    np.testing.assert_allclose(ours, KERAS[run], rtol=1e-6, atol=1e-6)
