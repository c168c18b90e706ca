"""Optimizers written for Keras: ``update_step(self, gradient, variable, learning_rate)``."""

import importlib.util
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright.optimizers import SGD, Adam, Optimizer, schedules

REFERENCE = pathlib.Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location("own_rules", REFERENCE / "own_rules.py")
own_rules = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(own_rules)
RULES = own_rules.rules(tw.keras)
Momentum = RULES["Momentum"]


def after_steps(optimizer, gradients, start):
    """The value of a variable after a step with each gradient."""
    v = tw.Variable(start)
    for gradient in gradients:
        optimizer.apply([gradient], [v])
    return v.numpy()


GRADIENTS = np.random.default_rng(0).normal(size=(5, 4, 2)).astype("float32")


def test_a_sparse_gradient_comes_as_a_whole_one():
    rows = tw.IndexedSlices(tw.ones((3, 2)), tw.constant([2, 0, 2]), (4, 2))
    found = after_steps(Momentum(0.5), [rows, rows], np.zeros((4, 2), "f4"))
    # velocity -0.5 g, then -0.95 g: together -1.45 g, of which row 2 has twice as much
    np.testing.assert_allclose(found[:, 0], [-1.45, 0, -2.9, 0], rtol=1e-6)


def test_variables_are_those_of_keras_in_order_and_by_path():
    v = tw.Variable([1.0, 2.0], name="v")
    v.path = "dense/v"
    moments = RULES["Moments"](0.1, use_ema=True, name="mine")
    moments.build([v, tw.Variable(1.0, name="w")])
    assert [w.path for w in moments.variables] == [
        "mine/iteration", "mine/learning_rate", "mine/dense_v_average",
        "mine/w_average", "mine/dense_v_momentum", "mine/dense_v_velocity",
        "mine/w_momentum", "mine/w_velocity",
    ]  # fmt: skip
    product = RULES["Product"](0.1)
    product.build([v])
    assert product.variables[-1] is product._product and len(product.variables) == 3


def model_of(optimizer):
    tw.random.set_seed(0)
    model = tw.Sequential([tw.Input((3,)), tw.layers.Dense(4), tw.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


def data(n=32):
    random = np.random.default_rng(0)
    return random.normal(size=(n, 3)).astype("f4"), random.normal(size=(n, 1))


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_fit_trains_as_with_the_rule_of_blocks(run_eagerly):
    found, expected = model_of(Momentum(0.1)), model_of(SGD(0.1, momentum=0.9))
    found.run_eagerly = run_eagerly
    for model in (found, expected):
        model.fit(*data(), batch_size=8, epochs=3, shuffle=False, verbose=0)
    for a, b in zip(found.get_weights(), expected.get_weights()):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["keras", "checkpoint"])
def test_training_goes_on_from_a_file(form, tmp_path):
    first = model_of(RULES["Moments"](0.05))
    first.fit(*data(), epochs=2, shuffle=False, verbose=0)
    if form == "keras":
        first.save(tmp_path / "m.keras")
        objects = {"Moments": RULES["Moments"]}
        second = tw.keras.models.load_model(
            tmp_path / "m.keras", custom_objects=objects
        )
        assert second.optimizer.beta_1 == 0.9
    else:
        path = tw.train.Checkpoint(model=first, opt=first.optimizer).save(
            tmp_path / "c"
        )
        second = model_of(RULES["Moments"](0.05))
        second.optimizer.build(second.trainable_variables)
        tw.train.Checkpoint(model=second, opt=second.optimizer).restore(path)
    for model in (first, second):
        model.fit(*data(), epochs=1, shuffle=False, verbose=0)
    for a, b in zip(first.optimizer.variables, second.optimizer.variables):
        assert np.array_equal(a.numpy(), b.numpy())
    assert np.array_equal(first.get_weights()[0], second.get_weights()[0])


def test_slots_are_made_once_however_often_it_is_built():
    a, b = tw.Variable([1.0]), tw.Variable([1.0])
    optimizer = Momentum(0.5, momentum=1.0)
    optimizer.build([a, b])
    for _ in range(2):
        optimizer.build([a, b])
        optimizer.apply([tw.ones(1), tw.ones(1)], [a, b])
        optimizer.apply([tw.ones(1)], [a])  # another update of the same optimizer
    assert len(optimizer.variables) == 4
    # velocities -0.5, -1, -1.5, -2 of a, and -0.5, -1 of b
    assert (a.numpy(), b.numpy()) == (-4.0, -0.5)


def test_a_saved_function_goes_on_with_its_slots(tmp_path):
    class Training(tw.Module):
        def __init__(self):
            self.v, self.optimizer = tw.Variable([1.0, 2.0]), Momentum(0.5)

        @tw.function(input_signature=[tw.TensorSpec([2])])
        def step(self, gradient):
            self.optimizer.apply([gradient], [self.v])
            return self.v + 0.0

    training, gradient = Training(), tw.constant([1.0, -1.0])
    training.step(gradient)
    with tw.keras.utils.custom_object_scope({"Momentum": Momentum}):
        tw.saved_model.save(training, tmp_path / "m")
        loaded = tw.saved_model.load(tmp_path / "m")
    for _ in range(3):
        assert np.array_equal(loaded.step(gradient), training.step(gradient))


def test_own_variables_go_into_a_store_and_back():
    v, store = tw.Variable([1.0, 2.0]), {}
    optimizer = Momentum(0.5)
    optimizer.apply([tw.constant([1.0, -1.0])], [v])
    optimizer.save_own_variables(store)
    assert sorted(store) == ["0", "1", "2"]
    twin = Momentum(0.25)
    with pytest.warns(UserWarning, match="2 variables .* 3 variables"):
        twin.load_own_variables(store)
    twin.build([v])
    twin.load_own_variables(store)
    assert [w.numpy().tolist() for w in twin.variables] == [1, 0.5, [-0.5, 0.5]]


def test_a_config_makes_another():
    schedule = schedules.ExponentialDecay(0.5, 10, 0.8)
    config = Momentum(schedule, momentum=0.5, clipnorm=1.0).get_config()
    twin = Momentum.from_config(config)
    assert twin.momentum == 0.5 and twin.clipnorm == 1.0
    assert twin.get_config() == config


def test_a_rule_may_stand_on_one_of_blocks():
    class Half(Adam):
        """Adam that steps by halves, and keeps what it was given."""

        def update_step(self, gradient, variable, learning_rate):
            self.seen = gradient
            super().update_step(gradient, variable, learning_rate * 0.5)

    start = np.ones((4, 2), "float32")
    found = after_steps(Half(0.02), GRADIENTS, start)
    expected = after_steps(Adam(0.01), GRADIENTS, start)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_decay_spares_what_is_excluded():
    a, b = tw.Variable([1.0], name="a"), tw.Variable([1.0], name="bias")
    optimizer = Momentum(0.5, weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer.apply([tw.zeros(1), tw.zeros(1)], [a, b])
    np.testing.assert_allclose([a.numpy(), b.numpy()], [[0.95], [1.0]], rtol=1e-6)


class OpsAdam(Adam):
    def update_step(self, gradient, variable, learning_rate):
        i, step = self._get_variable_index(variable), self.iterations + 1
        m, v = self._momentums[i], self._velocities[i]
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (gradient * gradient - v) * (1 - self.beta_2))
        step = tw.cast(step, variable.dtype)
        left_1, left_2 = (1 - b**step for b in (self.beta_1, self.beta_2))
        rate = learning_rate * tw.sqrt(left_2) / left_1
        self.assign_sub(variable, rate * m / (tw.sqrt(v) + self.epsilon))


class OpsMomentum(SGD):
    def update_step(self, gradient, variable, learning_rate):
        m = self.momentums[self._get_variable_index(variable)]
        self.assign(m, m * self.momentum - gradient * learning_rate)
        self.assign_add(variable, m)


@pytest.mark.parametrize(
    ("own", "known"),
    [(OpsAdam(0.1), Adam(0.1)), (OpsMomentum(0.1, 0.9), SGD(0.1, 0.9))],
)
def test_a_rule_in_ops_finds_the_slots_of_the_class_it_overrides(own, known):
    found = []
    for optimizer in (own, known):
        w = tw.Variable([1.0, -2.0])
        step = tw.function(lambda g, o=optimizer, w=w: o.apply([g * w], [w]))
        for scale in (1.0, 0.5, 2.0):
            step(tw.constant([scale, 3.0]))
        found.append([w] + optimizer.variables)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


class Keeping(Optimizer):
    """Assigns the gradient itself to a slot."""

    def build(self, variables):
        super().build(variables)
        self.kept = self.add_optimizer_variables(variables, "kept")

    def update_step(self, gradient, variable, learning_rate):
        self.assign(self.kept[self._get_variable_index(variable)], gradient)
        self.assign_sub(variable, gradient * learning_rate)


class Counting(Optimizer):
    """Counts in a variable of its own making, tracked as in Keras."""

    def build(self, variables):
        super().build(variables)
        self._table = {"count": tw.Variable(1.0, name="count")}
        self._track_variable(self._table["count"])

    def update_step(self, gradient, variable, learning_rate):
        self._table["count"].assign_add(1.0)
        self.assign_sub(variable, gradient * self._table["count"])


def test_a_tracked_variable_belongs_to_the_state():
    v, optimizer = tw.Variable([1.0]), Counting(0.5)
    optimizer.apply([tw.ones(1)], [v])
    assert [x.name for x in optimizer.variables] == [
        "iteration",
        "learning_rate",
        "count",
    ]
    copy = Counting(0.5)
    copy.build([v])
    copy.set_weights([x.numpy() for x in optimizer.variables])
    copy.apply([tw.ones(1)], [v])
    assert v.numpy() == [1 - 2 - 3]


@pytest.mark.parametrize("size", [3, 5000])
def test_a_traced_gradient_that_is_kept_does_not_change_later(size):
    v, optimizer = tw.Variable(tw.ones(size)), Keeping(0.5)

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(v * x * 2.0)
        optimizer.apply(tape.gradient(loss, [v]), [v])

    step(tw.ones(size))
    kept = optimizer.kept[0].read()
    step(tw.fill((size,), 3.0))
    assert (kept.numpy() == 2).all() and (optimizer.kept[0].numpy() == 6).all()
    assert (v.numpy() == 1 - 0.5 * (2 + 6)).all()


def test_a_step_in_a_branch_and_in_a_loop_sees_what_was_assigned():
    v, optimizer = tw.Variable([1.0, 2.0]), Momentum(1.0, momentum=0.0)

    @tw.function
    def steps(n):
        v.assign(v * 2.0)
        tw.cond(n > 1, lambda: optimizer.apply([v * 0.5], [v]), lambda: None)
        for _ in range(2):
            optimizer.apply([v * 0.5], [v])
        return v + 0.0

    assert steps(tw.constant(2)).numpy().tolist() == [0.25, 0.5]
    assert steps(tw.constant(1)).numpy().tolist() == [0.125, 0.25]
    assert optimizer.iterations.numpy() == 5


def test_python_decides_anew_in_each_traced_call():
    class EverySecond(Optimizer):
        def update_step(self, gradient, variable, learning_rate):
            if self.iterations % 2 == 0:
                self.assign_sub(variable, gradient * learning_rate)

    v, optimizer = tw.Variable(0.0), EverySecond(1.0)
    step = tw.function(lambda: optimizer.apply([tw.constant(1.0)], [v]))
    found = [(step(), float(v))[1] for _ in range(4)]
    assert found == [-1, -1, -2, -2]


def test_a_traced_step_that_fails_changes_nothing():
    class Failing(Optimizer):
        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, gradient)
            if variable is b:
                raise FloatingPointError("no")

    a, b, count = tw.Variable([1.0]), tw.Variable([2.0]), tw.Variable(0)
    other, failing = SGD(1.0), Failing(1.0)

    @tw.function
    def step():
        count.assign_add(1)
        other.apply([tw.ones(1)], [a])
        failing.apply([tw.ones(1), tw.ones(1)], [a, b])

    for _ in range(2):
        with pytest.raises(FloatingPointError, match="no"):
            step()
    assert (a.numpy(), b.numpy(), count.numpy()) == (1.0, 2.0, 0)
    assert other.iterations.numpy() == failing.iterations.numpy() == 0


def test_a_read_value_does_not_change():
    v, optimizer = tw.Variable([1.0, 2.0]), Momentum(0.5)
    held = []
    for _ in range(3):
        held.append(v.read())
        optimizer.apply([tw.ones(2)], [v])
    assert [h.numpy()[0] for h in held] == pytest.approx([1.0, 0.5, -0.45])


def test_a_rule_of_blocks_under_the_name_of_keras_is_refused_when_it_is_defined():
    with pytest.raises(TypeError, match="Blocks.update_step .* update_block"):

        class Blocks(Optimizer):
            def update_step(self, xp, gradient, variable, scratch, coefficients):
                xp.subtract(variable, gradient, out=variable)


def test_initializers_must_be_as_many_as_names():
    with pytest.raises(ValueError, match="'zeros'"):
        SGD().add_optimizer_variables([], ["a", "b"], ["zeros"])


@pytest.mark.parametrize("through", ["apply", "fit"])
def test_a_forgotten_super_init_is_named(through):
    class Forgetful(Optimizer):
        def __init__(self):
            self.rate = 1.0

        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, gradient * self.rate)

    with pytest.raises(RuntimeError, match=r"Forgetful: .*super\(\).__init__\(\)"):
        if through == "apply":
            Forgetful().apply([[1.0]], [tw.Variable([1.0])])
        else:
            model_of(Forgetful()).fit(*data(), verbose=0)


def test_a_rule_without_an_update_is_named():
    class Idle(Optimizer):
        pass

    with pytest.raises(NotImplementedError, match="Idle must define update_step"):
        Idle(0.1).apply([[1.0]], [tw.Variable([1.0])])


@pytest.mark.parametrize("slots", ["velocity", ("velocity",)])
def test_slots_are_groups_of_names(slots):
    with pytest.raises(TypeError, match=r"Wrong.slots must be .*\(\('momentum'"):
        type("Wrong", (Optimizer,), {"slots": slots, "update_block": lambda *_: None})


@pytest.mark.parametrize("rule", ["Adafactor", "Muon", "ScheduleFreeAdamW"])
def test_rows_of_a_sparse_gradient_count_as_a_matrix(rule):
    values, rows = np.float32([[1, 2], [3, -4], [0.5, 1]]), [2, 0, 2]
    dense = np.zeros((4, 2), np.float32)
    np.add.at(dense, rows, values)
    found = []
    for gradient in (tw.constant(dense), tw.IndexedSlices(values, rows, [4, 2])):
        v = tw.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
        optimizer = getattr(tw.keras.optimizers, rule)(0.1)
        for _ in range(3):
            optimizer.apply([gradient], [v])
        found.append(v.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_muon_searches_its_patterns_in_linear_time():
    names = ["a" * 2000, "norm_1", "dense"]
    variables = [tw.Variable(np.eye(2, dtype="f4"), name=name) for name in names]
    optimizer = tw.optimizers.Muon(0.1, exclude_layers=["(.+.+)+!", r"norm_\d+$"])
    optimizer.build(variables)
    kinds = [velocity is None for velocity in optimizer._velocities]
    assert kinds == [True, False, True]
    with pytest.raises(ValueError, match="the regular expression '\\(': missing"):
        tw.optimizers.Muon(exclude_layers=["("])
