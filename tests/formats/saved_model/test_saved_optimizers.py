"""Optimizers within saved functions."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware.devices import current_module
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context
from tapewright.keras import constraints, optimizers
from tapewright.storage.writer import writing

from ... import machine_code

pytestmark = pytest.mark.gpu_first

RNG = np.random.default_rng(3)
X = RNG.normal(size=(5, 3)).astype(np.float32)
Y = RNG.normal(size=(5, 2)).astype(np.float32)
SIGNATURE = [tw.TensorSpec([None, 3]), tw.TensorSpec([None, 2])]


class Trainer(tw.Module):
    def __init__(self, optimizer):
        self.w = tw.Variable(np.ones((3, 2), np.float32), name="w")
        self.b = tw.Variable(np.zeros(2, np.float32), name="b")
        self.optimizer = optimizer

    @tw.function(input_signature=SIGNATURE)
    def train(self, x, y):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean((tw.tanh(tw.matmul(x, self.w)) + self.b - y) ** 2)
        variables = [self.w, self.b]
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss


def trained(optimizer, steps=4):
    module = Trainer(optimizer)
    for _ in range(steps):
        module.train(X, Y)
    return module


def again(module, folder):
    path = folder / "module"
    tw.saved_model.save(module, path)
    return tw.saved_model.load(path)


def holding(**parts):
    module = tw.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def assert_goes_on_alike(module, loaded, steps=5):
    for _ in range(steps):
        loss, its = module.train(X, Y), loaded.train(X, Y)
    assert loss.numpy() == its.numpy()
    pairs = zip(module.variables, loaded.variables, strict=True)
    states = zip(module.optimizer.variables, loaded.optimizer.variables, strict=True)
    for own, other in [*pairs, *states]:
        np.testing.assert_array_equal(own, other)
        assert own.path == other.path


CASES = {
    "sgd": lambda: optimizers.SGD(0.1),
    "nesterov": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optimizers.Adam(0.1, amsgrad=True),
    "nadam": lambda: optimizers.Nadam(0.1),
    "ftrl": lambda: optimizers.Ftrl(0.1),
    "schedule": lambda: optimizers.Adam(optimizers.schedules.CosineDecay(0.1, 20)),
    "clipping": lambda: optimizers.Adam(0.1, global_clipnorm=0.1),
    "averages": lambda: optimizers.AdamW(
        0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3
    ),
    "accumulation": lambda: optimizers.RMSprop(0.1, gradient_accumulation_steps=3),
    "loss scale": lambda: optimizers.LossScaleOptimizer(
        optimizers.Adam(0.1), dynamic_growth_steps=3
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_train_function_goes_on_bit_for_bit(name, tmp_path):
    module = trained(CASES[name]())
    assert_goes_on_alike(module, again(module, tmp_path))


def test_a_fresh_process_goes_on_bit_for_bit(tmp_path):
    module, path = trained(optimizers.Adam(0.1, use_ema=True)), tmp_path / "m"
    tw.saved_model.save(module, path)
    code = f"""
{machine_code.as_here()}
import json
import numpy as np
import tapewright as tw
module = tw.saved_model.load({str(path)!r})
x, y = np.float32({X.tolist()}), np.float32({Y.tolist()})
for _ in range(5):
    module.train(x, y)
state = [*module.variables, *module.optimizer.variables]
print(json.dumps([v.numpy().tolist() for v in state]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for _ in range(5):
        module.train(X, Y)
    state = [*module.variables, *module.optimizer.variables]
    found = [np.float32(v) for v in json.loads(done.stdout)]
    if current_module() is np:
        assert [v.tolist() for v in found] == [v.numpy().tolist() for v in state]
    for value, variable in zip(found, state, strict=True):  # a GPU has sums of its own
        np.testing.assert_allclose(value, variable.numpy(), rtol=1e-4)


def test_a_loaded_optimizer_is_the_one_that_functions_run(tmp_path):
    loaded = again(trained(optimizers.SGD(0.1)), tmp_path)
    loaded.optimizer.learning_rate = 0.0
    before = loaded.w.numpy()
    loaded.train(X, Y)
    np.testing.assert_array_equal(loaded.w, before)
    assert loaded.optimizer.iterations.numpy() == 5
    loaded.optimizer.learning_rate = 1.0
    loaded.optimizer.apply_gradients([(np.ones(2, np.float32), loaded.b)])
    assert loaded.optimizer.iterations.numpy() == 6


def test_the_state_of_an_optimizer_is_none_of_the_variables_of_a_module(tmp_path):
    loaded = again(trained(optimizers.Adam(0.1)), tmp_path)
    assert [v.path for v in loaded.variables] == ["b", "w"]


def test_what_was_loaded_is_saved_again_and_goes_on(tmp_path):
    module = trained(optimizers.Adam(0.1))
    once = again(module, tmp_path)
    for each in (module, once):
        each.train(X, Y)
    assert_goes_on_alike(module, again(once, tmp_path))


def test_an_optimizer_that_no_attribute_holds_is_kept(tmp_path):
    w, adam = tw.Variable([1.0, 2.0]), optimizers.Adam(0.1)

    @tw.function
    def step(g):
        adam.apply_gradients([(g, w)])

    module = holding(step=step, w=w)
    step(tw.constant([1.0, -1.0]))
    loaded = again(module, tmp_path)
    for each in (module, loaded):
        each.step(tw.constant([0.5, 3.0]))
    np.testing.assert_array_equal(loaded.w, w)


def test_functions_of_one_optimizer_share_it_when_loaded(tmp_path):
    v, sgd = tw.Variable(1.0), optimizers.SGD(1.0, momentum=0.5)

    def step(g):
        sgd.apply_gradients([(g, v)])
        return sgd.iterations + 0

    module = holding(a=tw.function(step), b=tw.function(step), v=v)
    for f in (module.a, module.b):
        f(tw.constant(1.0))
    loaded = again(module, tmp_path)
    counts = [int(f(tw.constant(1.0))) for f in (loaded.a, loaded.b)]
    assert counts == [3, 4]
    assert float(loaded.v) == 1 - 1 - 1.5 - 1.75 - 1.875


def test_updates_inside_of_loops_and_branches_are_kept(tmp_path):
    v, sgd = tw.Variable(8.0), optimizers.SGD(0.5)

    @tw.function(input_signature=[tw.TensorSpec([], "int32")])
    def steps(n):
        def body(i):
            sgd.apply_gradients([(v + 0.0, v)])
            return (i + 1,)

        def half():
            sgd.apply_gradients([(v + 0.0, v)])
            return v + 0.0

        tw.while_loop(lambda i: i < n, body, (tw.constant(0),))
        return tw.cond(n > 1, half, lambda: v + 0.0)

    loaded = again(holding(steps=steps, v=v, sgd=sgd), tmp_path)
    assert float(loaded.steps(2)) == 1.0 and float(loaded.v) == 1.0
    assert float(loaded.steps(1)) == 0.5 and loaded.sgd.iterations.numpy() == 4
    assert float(v) == 8.0


@pytest.mark.parametrize("context", [None, ReplicaContext(1, 0, 1.0)])
def test_sparse_gradients_are_applied_as_they_were(context, tmp_path):
    table, adagrad = tw.Variable(np.ones((6, 2), np.float32)), optimizers.Adagrad(0.5)

    @tw.function(input_signature=[tw.TensorSpec([None], "int32")])
    def train(places):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.gather(table, places) ** 2)
        gradient = tape.gradient(loss, table)
        assert isinstance(gradient, tw.IndexedSlices)
        with in_replica_context(context):
            adagrad.apply_gradients([(gradient, table)])
        return loss

    module = holding(train=train, table=table)
    train(tw.constant([1, 2, 1]))
    loaded = again(module, tmp_path)
    for each in (module, loaded):
        each.train(tw.constant([0, 1]))
    np.testing.assert_array_equal(loaded.table, table)
    with pytest.raises((ValueError, IndexError)):
        loaded.train(tw.constant([7]))


def test_constraints_and_what_decay_spares_are_kept(tmp_path):
    module = Trainer(optimizers.AdamW(0.1, weight_decay=0.5))
    module.w.constraint = constraints.MaxNorm(0.5)
    module.optimizer.exclude_from_weight_decay([module.b])
    module.train(X, Y)
    loaded = again(module, tmp_path)
    assert_goes_on_alike(module, loaded)
    assert float(tw.norm(loaded.w[:, 0])) <= 0.5001


def test_an_optimizer_that_is_not_built_yet_is_kept_as_it_is(tmp_path):
    loaded = again(holding(sgd=optimizers.SGD(0.25, momentum=0.5)), tmp_path)
    v = tw.Variable(1.0)
    loaded.sgd.apply_gradients([(tw.constant(1.0), v)])
    assert float(v) == 0.75


def test_a_train_function_of_a_keras_model_is_saved_with_the_model(tmp_path):
    model = tw.Sequential([tw.Input((3,)), tw.layers.Dense(2, activation="tanh")])
    adam, loss_of = optimizers.Adam(0.1), tw.keras.losses.MeanSquaredError()

    @tw.function(input_signature=SIGNATURE)
    def train(x, y):
        with tw.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        adam.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    module = holding(model=model, train=train, optimizer=adam)
    train(X, Y)
    loaded = again(module, tmp_path)
    assert_goes_on_alike(module, loaded)


class Plain(optimizers.SGD):
    """Known to this module alone."""


@tw.keras.saving.register_keras_serializable(package="tests_of_optimizers")
class Known(optimizers.SGD):
    """Registered."""


def test_a_class_that_nobody_registered_is_refused_with_the_line(tmp_path):
    module = trained(Plain(0.1))
    with pytest.raises(
        tw.errors.SavingError,
        match=r"test_saved_optimizers.*py:\d+.*the optimizer .* cannot be saved",
    ):
        tw.saved_model.save(module, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_registered_class_is_found_and_another_process_needs_it(tmp_path):
    module = trained(Known(0.1, momentum=0.9))
    assert_goes_on_alike(module, again(module, tmp_path))
    code = f"import tapewright as tw; tw.saved_model.load({str(tmp_path / 'module')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SavingError" in done.stderr and "tests_of_optimizers>Known" in done.stderr
    arguments = [sys.executable, "-m", "tapewright", "verify", str(tmp_path / "module")]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0
    assert "registered names tests_of_optimizers>Known" in done.stdout


def test_show_names_the_optimizers(tmp_path):
    from tapewright.inspection.description import describe

    tw.saved_model.save(trained(optimizers.Adam(0.1)), tmp_path / "m")
    assert "'optimizers': ['Adam']" in str(describe(tmp_path / "m"))


def test_a_rate_that_is_code_is_refused_with_the_line(tmp_path):
    module = trained(optimizers.SGD(lambda: 0.1))
    with pytest.raises(
        tw.errors.SavingError, match=r"test_saved_optimizers.*py:\d+.*lambda"
    ):
        tw.saved_model.save(module, tmp_path / "m")


def test_an_optimizer_of_an_unknown_class_that_no_function_runs_is_left_out(tmp_path):
    loaded = again(holding(v=tw.Variable(1.0), rule=Plain(0.1)), tmp_path)
    assert not hasattr(loaded, "rule") and float(loaded.v) == 1.0


def _changed(tmp_path, monkeypatch, name, change):
    """The error that loading raises after one of the JSON texts was changed."""
    from tapewright.storage import writer

    group = writer.GroupWriter
    plain = group.json

    def json_of(self, key, value):
        plain(self, key, change(value) if key == name else value)

    monkeypatch.setattr(group, "json", json_of)
    with pytest.raises(tw.errors.SavingError) as caught:
        again(trained(optimizers.Adam(0.1), steps=1), tmp_path)
    return str(caught.value)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda x: 3, "list of optimizers"),
        (lambda x: [{**x[0], "config": None}], "optimizer"),
        (lambda x: [{**x[0], "variables": [0, 99]}], "no variable 99"),
        (lambda x: [{**x[0], "variables": [0, 0]}], "twice"),
        (lambda x: [{**x[0], "state": {}}], "has the state"),
        (lambda x: [x[0], x[0]], "state of two"),
        (lambda x: [{**x[0], "state": dict.fromkeys(x[0]["state"], 0)}], "must be"),
        (lambda x: [{**x[0], "constraints": ["os.system"] * 2}], "os.system"),
        (lambda x: [{**x[0], "spared": [5]}], "no variable 5"),
        (
            lambda x: [{**x[0], "config": {"class_name": "Dense", "config": {}}}],
            "known|optimizer",
        ),
    ],
)
def test_optimizers_that_no_file_of_ours_has_are_refused(
    change, words, tmp_path, monkeypatch
):
    import re

    assert re.search(words, _changed(tmp_path, monkeypatch, "optimizers", change))


@pytest.mark.parametrize(
    "attributes, words",
    [
        ({"optimizer": 7}, "no optimizer 7"),
        ({"variables": [0, 77]}, "no variable 77"),
        ({"variables": [0, 2]}, "does not fit|Unknown variable"),
        ({"gradients": ["dense", "code"]}, "not a kind of gradient"),
        ({"gradients": ["dense", "sparse"]}, "different number of gradients"),
        ({"gradients": ["dense"]}, "different number of gradients"),
        ({"more": 1}, "more"),
    ],
)
def test_updates_that_no_file_of_ours_has_are_refused(
    attributes, words, tmp_path, monkeypatch
):
    import re

    def change(graph):
        for node in graph["nodes"]:
            if "effect" in node:
                pairs = dict(node["attributes"]["dict"]) | attributes
                node["attributes"]["dict"] = [[k, v] for k, v in pairs.items()]
        return graph

    assert re.search(words, _changed(tmp_path, monkeypatch, "graph", change))


def test_a_file_without_a_place_for_optimizers_says_so(tmp_path):
    from tapewright.formats.saved_model.functions import write_function

    module = trained(optimizers.SGD(0.1), steps=1)
    with pytest.raises(tw.errors.SavingError, match="cannot hold an optimizer"):
        with writing(tmp_path / "f") as root:
            write_function(root, module.train, [])
