"""Optimizers that are divided among several processes."""

from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parent / "scripts"


def lines_of(run_ranks, count, script, *args):
    """Return the sorted lines that ranks print."""
    ended = run_ranks(count, script, *args)
    assert ended.rc == 0, ended.stderr
    return sorted(ended.stdout.splitlines())


LOOP = """
import numpy as np
import tapewright as tw
from tapewright.core.communication.job import communicator

rank, size = tw.distribute.rank(), tw.distribute.size()
shapes = [(20, 50), (50,), (50, 30), (30,)]
variables = [tw.Variable(np.full(s, 0.1, "f4"), name=f"v{i}") for i, s in enumerate(shapes)]
optimizer = tw.distribute.shard_optimizer(tw.optimizers.Adam(0.1))

def step(x, also=lambda gradients: None):
    with tw.GradientTape() as tape:
        hidden = tw.tanh(x @ variables[0] + variables[1])
        y = tw.reduce_mean((hidden @ variables[2] + variables[3]) ** 2)
    tape = tw.distribute.DistributedGradientTape(tape)
    gradients = tape.gradient(y, variables)
    also(gradients)
    optimizer.apply(gradients, variables)
    return y

x = tw.constant(np.random.default_rng(rank).normal(size=(8, 20)).astype("f4"))
calls, run = [], communicator()._collective

def noted(signature, *args):
    calls.append(signature.split(" to ")[0].split(" of ")[0])
    return run(signature, *args)
"""


def test_a_traced_loop_reduces_each_gradient_to_the_part_that_is_needed(run_ranks):
    script = """
traced = tw.function(step)
traced(x)
communicator()._collective = noted
traced(x)
print(rank, "alone:", *calls, sep=", ")
looked = tw.function(lambda x: step(x, also=lambda g: tw.print(tw.linalg.global_norm(g))))
looked(x)
calls.clear()
looked(x)
print(rank, "with a norm:", *calls, sep=", ")
step(x)
calls.clear()
step(x)
print(rank, "eager:", *calls, sep=", ")
tw.distribute.check_variables(variables)
start, ends = [v.numpy() for v in variables], []
for run_step in (step, tw.function(step)):
    for v, value in zip(variables, start):
        v.assign(value)
    optimizer = tw.distribute.shard_optimizer(tw.optimizers.SGD(0.5))
    run_step(x)
    ends.append([v.numpy() for v in variables])
for a, b in zip(*ends):
    np.testing.assert_allclose(a, b, 1e-5, 1e-6)
"""
    first, *lines = [
        line for line in lines_of(run_ranks, 2, LOOP + script) if ", " in line
    ]
    assert first == "0, alone:, reduce_scatter mean, all_gather_pieces"
    for line in lines:
        if "alone" not in line:
            assert line.endswith(":, all_reduce mean, all_gather_pieces"), line


def test_each_process_has_its_share_of_the_slots(run_ranks):
    script = """
import numpy as np
import tapewright as tw

def slots(optimizer):
    return sum([v._array.nbytes for v in optimizer.variables if tuple(v.shape)])

options = {"use_ema": True, "gradient_accumulation_steps": 2}
for name in ("Adam", "SGD", "Lamb", "Muon", "Adafactor"):
    variables = [tw.Variable(np.zeros((120, 100), "f4")) for _ in range(9)]
    variables += [tw.Variable(np.zeros(100, "f4")) for _ in range(9)]
    whole, part = [getattr(tw.optimizers, name)(0.1, **options) for _ in range(2)]
    whole.build(variables)
    tw.distribute.shard_optimizer(part).build(variables)
    share = slots(part) / slots(whole)
    assert abs(share - 1 / 3) < 0.02, (name, share)
    assert [v.name for v in part.variables] == [v.name for v in whole.variables]
    assert [v.shape for v in part.variables] == [v.shape for v in whole.variables]
"""
    lines_of(run_ranks, 3, script)


@pytest.mark.parametrize(("saved_by", "loaded_by"), [(2, 1), (1, 2), (2, 3)])
def test_files_load_on_any_number_of_processes(
    run_ranks, tmp_path, saved_by, loaded_by
):
    script = SCRIPTS / "sharded_files.py"
    for count, what in ((saved_by, "save"), (loaded_by, "load")):
        lines_of(run_ranks, count, script, what, tmp_path)
    with np.load(tmp_path / "outcomes.npz") as found:
        expected = found["whole"]
        names = [name for name in found if name != "whole"]
        assert names == ["keras", "h5", "weights", "checkpoint", "manager", "callback"]
        for name in names:
            np.testing.assert_allclose(found[name], expected, 1e-5, 1e-6, err_msg=name)


def test_a_failed_write_raises_the_same_error_in_all_processes(run_ranks, tmp_path):
    script = """
import sys
optimizer.apply([tw.ones_like(v) for v in variables], variables)
checkpoint = tw.train.Checkpoint(optimizer=optimizer)
print(rank, checkpoint.write(sys.argv[1] + "/file") == sys.argv[1] + "/file")
try:
    checkpoint.write(sys.argv[1] + "/file/is_no_folder")
except tw.errors.SavingError as error:
    print(rank, type(error).__name__)
"""
    lines = lines_of(run_ranks, 2, LOOP + script, tmp_path)
    assert lines == ["0 SavingError", "0 True", "1 SavingError", "1 True"]


def test_a_save_by_one_process_alone_ends_the_job_and_names_the_line(
    run_ranks, tmp_path
):
    script = """
import sys
optimizer.apply([tw.ones_like(v) for v in variables], variables)
if rank == 0:
    tw.train.Checkpoint(optimizer=optimizer).write(sys.argv[1] + "/file")
"""
    rc, _, stderr = run_ranks(2, LOOP + script, tmp_path)
    assert rc != 0
    line = len((LOOP + script).splitlines())
    assert f".py:{line})\n  rank 1: leave the job" in stderr


@pytest.mark.parametrize("count", [2, 3])
def test_random_programs_have_the_numbers_of_one_process(run_ranks, count):
    script = SCRIPTS / "sharded_programs.py"
    assert lines_of(run_ranks, count, script, 100 * count, 20) == ["20 programs"]


def test_an_error_in_a_step_changes_nothing(run_ranks):
    script = """
def state():
    return [v.numpy() for each in optimizers for v in (*variables, *each.variables)]

def raises(*args):
    if fails:
        raise LookupError

def constraint(x):
    raises()
    return x * 0.5

variables[0].constraint = constraint
rate = tw.keras.optimizers.schedules.LearningRateSchedule
class Rate(rate):
    def __call__(self, step):
        raises()
        return 0.1

first, second = tw.optimizers.Adam(0.1), tw.optimizers.SGD(Rate(), momentum=0.9)
several = tw.optimizers.MultiOptimizer(lambda v: first if v is variables[2] else second)
gradients = [tw.ones_like(v) for v in variables]
for make, optimizers in (
    (lambda: tw.optimizers.Adam(0.1), None),
    (lambda: several, [first, second]),
):
    optimizer, fails = tw.distribute.shard_optimizer(make()), False
    optimizers = optimizers or [optimizer]
    optimizer.apply(gradients, variables)
    before, fails = state(), True
    for _ in range(2):
        try:
            optimizer.apply(gradients, variables)
        except LookupError:
            pass
        else:
            raise AssertionError(optimizer)
    fails = False
    for a, b in zip(state(), before):
        np.testing.assert_array_equal(a, b)
    optimizer.apply(gradients, variables)
    assert int(optimizers[0].iterations) == 2
"""
    lines_of(run_ranks, 2, LOOP + script)


def test_a_tensor_that_is_kept_does_not_keep_all_weights(run_ranks):
    script = """
import weakref
kernel, bias = tw.Variable(np.ones((500, 100), "f4")), tw.Variable(np.ones(4, "f4"))
pair = [kernel, bias]
optimizer.apply([tw.ones_like(v) for v in pair], pair)
kept = bias.read()
gone = weakref.ref(kernel._array.base)
optimizer.apply([tw.ones_like(v) for v in pair], pair)
assert gone() is None
"""
    lines_of(run_ranks, 2, LOOP + script)


def test_a_manager_saves_when_one_process_is_asked_to_end(run_ranks, tmp_path):
    script = """
import os, signal, sys
checkpoint = tw.train.Checkpoint(optimizer=optimizer, variables=variables)
manager = tw.train.CheckpointManager(checkpoint, sys.argv[1], 3, save_on_sigterm=True)
manager._termination.pass_on = lambda: print(rank, "ends", flush=True)
for number in range(5):
    optimizer.apply([tw.ones_like(v) for v in variables], variables)
    if number == 2 and rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    if manager.save_if_asked():
        print(rank, "saved", int(optimizer.iterations), int(checkpoint.save_counter))
        break
"""
    lines = lines_of(run_ranks, 2, LOOP + script, tmp_path)
    assert lines == ["0 saved 3 1", "1 ends", "1 saved 3 1"]
    assert [path.name for path in tmp_path.glob("*.h5")] == ["ckpt-1.h5"]


def test_an_interrupted_gather_leaves_the_variables_as_they_were(run_ranks):
    script = """
for make in (tw.optimizers.Adam, tw.optimizers.Muon):
    optimizer = tw.distribute.shard_optimizer(make(0.1))
    gradients = [tw.ones_like(v) for v in variables]
    optimizer.apply(gradients, variables)
    before = [v.numpy() for v in variables]
    job = communicator()
    gather = type(job).all_gather_pieces

    def interrupted(flat, bounds):
        gather(job, flat, bounds)  # the others go on
        if rank == 1:
            raise KeyboardInterrupt

    job.all_gather_pieces = interrupted
    try:
        optimizer.apply(gradients, variables)
    except KeyboardInterrupt:
        assert rank == 1
        for v, old in zip(variables, before):
            np.testing.assert_array_equal(v.numpy(), old)
    else:
        assert rank == 0
        assert all([(v.numpy() != old).any() for v, old in zip(variables, before)])
    del job.all_gather_pieces
    tw.distribute.broadcast_variables(variables)
"""
    lines_of(run_ranks, 2, LOOP + script)


def test_mistakes_are_named(run_ranks):
    script = """
def error_of(function):
    try:
        function()
    except Exception as error:
        print(rank, str(error).splitlines()[0])

v = variables[1]
error_of(lambda: optimizer.apply([tw.ones_like(v) * float(rank)], [v]))

class Counts(tw.optimizers.Optimizer):
    def build(self, variables):
        super().build(variables)
        self.total = self.add_variable((), name="total")

    def update_step(self, gradient, variable, learning_rate):
        self.total.assign_add(1.0)

class Module(tw.Module):
    def __init__(self):
        super().__init__()
        self.v, self.optimizer = v, optimizer

    @tw.function(input_signature=[tw.TensorSpec([50])])
    def step(self, gradient):
        self.optimizer.apply([gradient], [self.v])
        return self.v + 0.0

error_of(lambda: tw.saved_model.save(Module(), "never_written"))
counts, two = tw.distribute.shard_optimizer(Counts(0.1)), [v, tw.Variable(v)]
error_of(lambda: counts.apply([tw.ones_like(v) for v in two], two))
"""
    lines = lines_of(run_ranks, 2, LOOP + script)
    for rank in range(2):
        own = [line for line in lines if line.startswith(f"{rank} ")]
        differ, assigns, saves = sorted(own, reverse=True)
        assert "function 'step'" in saves and "'adam' is sharded, and updates" in saves
        assert "the gradients of 'v1' and other variables of a sharded" in differ
        assert "update_step assigns to 'counts/total', of which all" in assigns


def test_workers_that_did_not_all_load_the_state_are_told(run_ranks):
    script = """
import numpy as np
import tapewright as tw

rank = tw.distribute.rank()
with tw.keras.distribution.DataParallel(shard_optimizer=True).scope():
    model = tw.Sequential([tw.Input((3,)), tw.layers.Dense(1)])
model.compile("adam", "mse")
model.optimizer.build(model.trainable_variables)
if rank == 0:
    model.optimizer.iterations.assign(5)
try:
    model.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), verbose=0)
except ValueError as error:
    print(rank, error)
"""
    lines = lines_of(run_ranks, 2, script)
    assert len(lines) == 2
    assert all(["different numbers of steps, [5, 0]" in line for line in lines])
