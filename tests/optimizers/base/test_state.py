"""State of optimizers: order, names, copies, steps without state."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.optimizers import SGD, Adam, Muon, RMSprop

from ..steps import EVERY_RULE, run, stepped, variable


def test_the_state_is_listed_in_the_order_of_keras():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    optimizer = RMSprop(
        momentum=0.5, centered=True, use_ema=True, gradient_accumulation_steps=2
    )
    optimizer.build([a, b])
    kinds = (
        "average",
        "gradient_accumulator",
        "velocity",
        "momentum",
        "average_gradient",
    )
    assert [v.path for v in optimizer.variables] == [
        "rm_sprop/iteration",
        "rm_sprop/learning_rate",
        *[f"rm_sprop/{v}_{kind}" for kind in kinds for v in "ab"],
    ]


def test_weights_are_set_in_the_order_of_the_variables():
    one, two, v = Adam(0.1), Adam(0.2), variable(1.0, 2.0)
    with pytest.raises(ValueError, match="call.*build"):
        two.set_weights([])
    run(one, [v], [[1.0, 2.0]])
    two.build([v])
    two.set_weights([w.numpy() for w in one.variables])
    for a, b in zip(one.variables, two.variables):
        assert np.array_equal(a.numpy(), b.numpy())
    with pytest.raises(ValueError, match="4 values.* got 1"):
        two.set_weights([0])
    with pytest.raises(ValueError, match="'adam_1/v_momentum' .*3"):
        two.set_weights([0, 0.1, np.zeros(3), np.zeros(2)])


@pytest.mark.parametrize("name", EVERY_RULE)
def test_a_copy_of_every_rule_goes_on_from_the_same_state(name):
    v, g = variable(1.0, -2.0), tw.constant([0.5, 1.0])
    optimizer = getattr(optimizers, name)(0.1, use_ema=True)
    optimizer.apply([g], [v])
    twin, w = copy.deepcopy((optimizer, v))
    for each, values in ((optimizer, v), (twin, w)):
        each.apply([2 * g], [values])
    assert np.array_equal(v.numpy(), w.numpy())
    for a, b in zip(optimizer.variables, twin.variables):
        assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("rule", [SGD, Adam])
def test_a_step_without_state_gives_values_and_changes_none(rule, traced):
    v, twin = variable(1.0, 2.0), variable(5.0, 7.0)
    one, other = rule(0.5), rule(0.5)
    one.build([v])
    other.apply([tw.constant([1.0, 3.0])], [twin])
    state = [w.read() for w in other.variables]
    before = [w.numpy() for w in [v, *one.variables]]
    gradient = tw.constant([2.0, -4.0])

    def step(values, state):
        return one.stateless_apply(state, [gradient], values)

    step = tw.function(step) if traced else step
    values, after = step([twin.read()], state)
    other.apply([gradient], [twin])
    for found, right in zip([*values, *after], [twin, *other.variables]):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-6)
    for w, old in zip([v, *one.variables], before):
        assert np.array_equal(w.numpy(), old)


def test_a_step_without_state_needs_all_values():
    optimizer, v = SGD(), variable(1.0)
    with pytest.raises(ValueError, match="build"):
        optimizer.stateless_apply([], [], [])
    optimizer.build([v])
    with pytest.raises(ValueError, match="optimizer_variables .*2 values, got 1"):
        optimizer.stateless_apply([0], [tw.ones(1)], [v.read()])


def test_state_is_listed_in_the_order_and_with_the_names_of_keras():
    a, b = variable(1.0, name="kernel"), variable(1.0, name="bias")
    a.path, b.path = "net/dense/kernel", "net/dense/bias"
    optimizer = Adam(amsgrad=True)
    assert [v.path for v in optimizer.variables] == [
        "adam/iteration",
        "adam/learning_rate",
    ]
    optimizer.build([a, b])
    assert [v.path for v in optimizer.variables] == [
        "adam/iteration",
        "adam/learning_rate",
        "adam/net_dense_kernel_momentum",
        "adam/net_dense_kernel_velocity",
        "adam/net_dense_bias_momentum",
        "adam/net_dense_bias_velocity",
        "adam/net_dense_kernel_velocity_hat",
        "adam/net_dense_bias_velocity_hat",
    ]
    assert [v.name for v in optimizer.variables[:3]] == [
        "iteration",
        "learning_rate",
        "net_dense_kernel_momentum",
    ]
    assert [v.dtype for v in optimizer.variables[:3]] == ["int64", "float32", "float32"]


@pytest.mark.parametrize(
    "name, slots",
    [
        ("Adadelta", ["accumulated_grad", "accumulated_delta_var"]),
        ("Adagrad", ["accumulator"]),
        ("Adamax", ["momentum", "norm"]),
        ("Ftrl", ["accumulator", "linear"]),
        ("Lamb", ["momentum", "velocity"]),
        ("Lion", ["momentum"]),
        ("Nadam", ["momentum", "velocity"]),
        ("RMSprop", ["velocity"]),
    ],
)
def test_slots_have_the_names_of_keras(name, slots):
    optimizer = getattr(optimizers, name)()
    optimizer.build([variable(1.0)])
    assert list(optimizer.__children__())[2 : 2 + len(slots)] == slots
    named = [v.name for v in optimizer.variables if v.name.startswith("v_")]
    assert named == [f"v_{slot}" for slot in slots]


def test_all_variables_of_an_optimizer_share_one_lock():
    optimizer = Adam(use_ema=True)
    optimizer.build([variable(1.0), variable(2.0)])
    assert len({id(v._tw_lock) for v in optimizer.variables}) == 1


def test_sgd_has_slots_only_with_momentum():
    v = variable(1.0)
    plain, heavy = SGD(), SGD(momentum=0.9)
    plain.build([v])
    heavy.build([v])
    assert [len(o.variables) for o in (plain, heavy)] == [2, 3]


def test_iterations_count_the_updates():
    optimizer, v = SGD(), variable(1.0)
    for _ in range(3):
        last = optimizer.apply_gradients([(tw.constant([1.0]), v)])
    assert last is optimizer.iterations
    assert optimizer.iterations.numpy() == 3


@pytest.mark.parametrize("rule", [Adam(0.1, amsgrad=True), SGD(0.1, momentum=0.9)])
def test_zeroed_state_is_as_new(rule):
    gradient = [1.0, -2.0]
    first = stepped(rule, [1.0, 1.0], gradient, steps=3)
    again = type(rule).from_config(rule.get_config())
    v = variable(7.0, 7.0)
    for _ in range(2):
        again.apply_gradients([(tw.constant([5.0, 5.0]), v)])
    for state in again.variables:
        if not state.path.endswith("learning_rate"):
            state.assign(np.zeros(state.shape, state.dtype))
    v.assign([1.0, 1.0])
    for _ in range(3):
        again.apply_gradients([(tw.constant(gradient), v)])
    assert np.array_equal(v.numpy(), first)


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))]
)
@pytest.mark.parametrize("rule", [Adam, Muon])
def test_a_copy_goes_on_alone_from_the_same_state(clone, rule):
    v, g = variable(1.0, 2.0), tw.constant([1.0, -1.0])
    optimizer = rule(0.1)
    optimizer.apply_gradients([(g, v)])
    twin, w = clone((optimizer, v))
    optimizer.apply_gradients([(g, v)])
    after = v.numpy()
    twin.apply_gradients([(g, w)])
    assert np.array_equal(w.numpy(), after) and np.array_equal(v.numpy(), after)
