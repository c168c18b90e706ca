"""Averages, accumulated gradients, scaled losses: what every rule can be asked for."""

import copy

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.optimizers import SGD, Adam, LossScaleOptimizer, RMSprop


def variable(*values, name="v"):
    return tw.Variable(list(values), dtype="float32", name=name)


def run(optimizer, variables, *steps, traced=False):
    """Applies each of the steps, a list of gradients."""

    def step(*gradients):
        optimizer.apply(gradients, variables)

    step = tw.function(step) if traced else step
    for gradients in steps:
        step(*[tw.constant(g) for g in gradients])


# --- averages


def test_the_first_average_is_the_variable_and_the_next_ones_follow():
    v = variable(1.0)
    optimizer = SGD(1.0, use_ema=True, ema_momentum=0.75)
    run(optimizer, [v], [[1.0]])  # v = 0
    average = optimizer.variables[2]
    assert average.path == "sgd/v_average" and average.numpy() == 0.0
    run(optimizer, [v], [[-4.0]])  # v = 4
    assert average.numpy() == 1.0 and v.numpy() == 4.0


def test_averages_of_variables_without_a_gradient_move_too():
    a, b = variable(1.0), variable(2.0)
    optimizer = SGD(1.0, use_ema=True)
    optimizer.build([a, b])
    optimizer.apply([tw.constant([1.0])], [a])
    assert optimizer.variables[3].numpy() == 2.0


def test_at_the_end_variables_become_their_averages():
    v = variable(1.0)
    optimizer = SGD(1.0, use_ema=True, ema_momentum=0.5)
    run(optimizer, [v], [[1.0]], [[-4.0]])
    optimizer.finalize_variable_values([v])
    assert v.numpy() == 2.0
    run(optimizer, [v], [[0.0]])  # and training can go on
    assert (v.numpy(), optimizer.variables[2].numpy()) == (2.0, 2.0)
    with pytest.raises(ValueError, match="no average of 'w'"):
        optimizer.finalize_variable_values([variable(1.0, name="w")])


def test_without_averages_the_end_changes_nothing():
    v = variable(1.0)
    SGD().finalize_variable_values([v])
    assert v.numpy() == 1.0


@pytest.mark.parametrize("traced", [False, True])
def test_variables_are_overwritten_every_so_many_steps(traced):
    v = variable(0.0)
    optimizer = SGD(1.0, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2)
    seen = []
    for _ in range(4):
        run(optimizer, [v], [[-8.0]], traced=traced)
        seen.append(float(v.numpy()[0]))
    # variable and average: 8, 8; 16, 12 and so 12; 20, 16; 28, 22 and so 22
    assert seen == [8.0, 12.0, 20.0, 22.0]


# --- accumulated gradients


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_are_averaged_over_the_calls_of_an_update(traced):
    v = variable(1.0)
    optimizer = SGD(1.0, gradient_accumulation_steps=2)
    run(optimizer, [v], [[1.0]], traced=traced)
    assert v.numpy() == 1.0 and optimizer.iterations.numpy() == 0
    assert optimizer.variables[2].path == "sgd/v_gradient_accumulator"
    assert optimizer.variables[2].numpy() == 1.0
    run(optimizer, [v], [[3.0]], traced=traced)
    assert v.numpy() == -1.0 and optimizer.iterations.numpy() == 1
    assert optimizer.variables[2].numpy() == 0.0
    assert optimizer.variables[0].numpy() == 2


def test_accumulated_steps_are_those_of_one_batch():
    big, small = variable(1.0, -1.0), variable(1.0, -1.0)
    run(Adam(0.1), [big], [[2.0, 1.0]], [[4.0, -1.0]])
    optimizer = Adam(0.1, gradient_accumulation_steps=2)
    grads = [[1.0, 2.0]], [[3.0, 0.0]], [[4.0, -3.0]], [[4.0, 1.0]]
    run(optimizer, [small], *grads)
    np.testing.assert_allclose(small.numpy(), big.numpy(), rtol=1e-6)


def test_a_repeated_row_counts_twice_in_a_sum():
    v = tw.Variable(np.zeros((4, 2), np.float32))
    optimizer = SGD(1.0, gradient_accumulation_steps=2)
    rows = tw.IndexedSlices(tw.ones((3, 2)), tw.constant([1, 3, 1]), (4, 2))
    for _ in range(2):
        optimizer.apply([rows], [v])
    assert v.numpy()[:, 0].tolist() == [0.0, -2.0, 0.0, -1.0]


def test_a_schedule_counts_calls_and_not_updates():
    rates = []

    def rate(step):
        rates.append(int(step))
        return 1.0

    optimizer = SGD(rate, gradient_accumulation_steps=2)
    run(optimizer, [variable(1.0)], *[[[1.0]]] * 4)
    assert rates == [1, 3]


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


# --- scaled losses


def test_a_loss_is_scaled_and_its_gradient_scaled_back():
    v, optimizer = variable(1.0, 2.0), SGD(1.0, loss_scale_factor=1024.0)
    with tw.GradientTape() as tape:
        loss = optimizer.scale_loss(tw.reduce_sum(v))
    assert float(loss) == 3072.0
    optimizer.apply(tape.gradient(loss, [v]), [v])
    assert v.numpy().tolist() == [0.0, 1.0]
    assert SGD().scale_loss(3.0) == 3.0


def test_what_is_clipped_is_scaled_back_first():
    v = variable(0.0, 0.0)
    run(SGD(1.0, loss_scale_factor=2.0, clipnorm=5.0), [v], [[6.0, 8.0]])
    assert v.numpy().tolist() == [-3.0, -4.0]


def test_a_scaled_sparse_gradient_is_scaled_back():
    v = tw.Variable(np.zeros((4, 2), np.float32))
    rows = tw.IndexedSlices(tw.ones((2, 2)), tw.constant([1, 1]), (4, 2))
    SGD(1.0, loss_scale_factor=4.0).apply([rows], [v])
    assert v.numpy()[:, 0].tolist() == [0.0, -0.5, 0.0, 0.0]


@pytest.mark.parametrize("traced", [False, True])
def test_a_dynamic_scale_halves_and_skips_at_infinity_and_doubles_after_a_while(traced):
    v = variable(1.0)
    inner = SGD(1.0)
    optimizer = LossScaleOptimizer(inner, 8.0, dynamic_growth_steps=2)
    scales = []
    for gradient in (8.0, np.inf, 4.0, 4.0, 8.0):
        run(optimizer, [v], [[gradient]], traced=traced)
        scales.append(float(optimizer.dynamic_scale))
    assert scales == [8.0, 4.0, 4.0, 8.0, 8.0]
    assert v.numpy() == 1.0 - 1 - 1 - 1 - 1
    assert inner.iterations.numpy() == optimizer.iterations.numpy() == 4


def test_a_traced_step_reads_the_scale_of_its_time():
    v = variable(2.0)
    optimizer = LossScaleOptimizer(SGD(0.25), 4.0, dynamic_growth_steps=1)

    @tw.function
    def step():
        with tw.GradientTape() as tape:
            loss = optimizer.scale_loss(tw.reduce_sum(v * v))
        optimizer.apply(tape.gradient(loss, [v]), [v])
        return loss

    assert [float(step()) for _ in range(3)] == [16.0, 8.0, 4.0]
    assert v.numpy() == 0.25


def test_finite_gradients_whose_sum_runs_over_are_taken():
    v = tw.Variable(np.zeros(2, np.float16))
    g = tw.constant(np.array([60000.0, 60000.0], np.float16))
    LossScaleOptimizer(SGD(1.0), 32768.0).apply([g], [v])
    assert (v.numpy() < 0).all()


def test_a_dynamic_scale_lists_its_state_before_that_of_the_inner_optimizer():
    optimizer = LossScaleOptimizer(SGD(momentum=0.5))
    optimizer.build([variable(1.0)])
    assert [v.path for v in optimizer.variables] == [
        "loss_scale_optimizer/iteration",
        "loss_scale_optimizer/learning_rate",
        "loss_scale_optimizer/step_counter",
        "loss_scale_optimizer/dynamic_scale",
        "sgd/iteration",
        "sgd/learning_rate",
        "sgd/v_momentum",
    ]


def test_a_dynamic_scale_hands_the_rest_to_the_inner_optimizer():
    v = variable(2.0)
    optimizer = LossScaleOptimizer(SGD(0.5, use_ema=True, weight_decay=0.1))
    optimizer.exclude_from_weight_decay(var_list=[v])
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25
    run(optimizer, [v], [[32768.0]])
    assert v.numpy() == 1.75
    v.assign([9.0])
    optimizer.finalize_variable_values([v])
    assert v.numpy() == 1.75


def test_a_dynamic_scale_comes_back_from_its_config():
    optimizer = LossScaleOptimizer(Adam(0.5), 4.0, 7, name="mine")
    twin = optimizers.deserialize(optimizers.serialize(optimizer))
    assert twin.get_config() == optimizer.get_config()
    assert type(twin.inner_optimizer) is Adam


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"clipnorm": 1.0}, ValueError, "'clipnorm': set it on the"),
        ({"dynamic": False}, ValueError, "dynamic must be True"),
        ({"speed": 1.0}, ValueError, "`speed`"),
    ],
)
def test_a_dynamic_scale_refuses_options_of_the_inner_optimizer(
    arguments, error, message
):
    with pytest.raises(error, match=message):
        LossScaleOptimizer(SGD(), **arguments)
    LossScaleOptimizer(SGD(), clipnorm=None, use_ema=False, dynamic=True)
    with pytest.raises(TypeError, match="inner_optimizer must be an Optimizer"):
        LossScaleOptimizer("sgd")


# --- ranges, weights, configs, copies


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"gradient_accumulation_steps": 1}, "must be an integer of 2 or more"),
        ({"gradient_accumulation_steps": 2.5}, "must be an integer of 2 or more"),
        ({"use_ema": True, "ema_momentum": 1.5}, "ema_momentum must be from 0 to 1"),
        (
            {"use_ema": True, "ema_overwrite_frequency": 0.5},
            "ema_overwrite_frequency must be an integer of 1 or more",
        ),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SGD(**arguments)


def test_weights_are_set_in_the_order_of_the_variables():
    one, two, v = Adam(0.1), Adam(0.2), variable(1.0, 2.0)
    with pytest.raises(ValueError, match="call.*build"):
        two.set_weights([])
    run(one, [v], [[1.0, 2.0]])
    two.build([v])
    two.set_weights([w.numpy() for w in one.variables])
    for a, b in zip(one.variables, two.variables):
        assert np.array_equal(a.numpy(), b.numpy())
    with pytest.raises(ValueError, match="4 values are needed, got 1"):
        two.set_weights([0])
    with pytest.raises(ValueError, match="'adam_1/v_momentum' .*3"):
        two.set_weights([0, 0.1, np.zeros(3), np.zeros(2)])


EVERY_RULE = [
    "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion", "Nadam",
    "RMSprop", "SGD",
]  # fmt: skip


@pytest.mark.parametrize("name", EVERY_RULE)
def test_every_option_of_every_rule_is_in_its_config(name):
    options = {
        "learning_rate": 0.5,
        "weight_decay": 0.25,
        "clipvalue": 2.0,
        "use_ema": True,
        "ema_momentum": 0.5,
        "ema_overwrite_frequency": 3,
        "loss_scale_factor": 4.0,
        "gradient_accumulation_steps": 2,
        "name": "mine",
    }
    optimizer = getattr(optimizers, name)(**options)
    config = optimizer.get_config()
    assert config.items() >= options.items()
    assert optimizers.get({"class_name": name, "config": config}).get_config() == config
    assert type(optimizers.get(name.lower())) is type(optimizer)


@pytest.mark.parametrize("name", EVERY_RULE)
def test_every_rule_goes_down_a_bowl(name):
    rate = {"Adadelta": 50.0, "Adagrad": 0.5, "Ftrl": 0.5, "Lion": 0.03}.get(name, 0.05)
    v = variable(1.0, -2.0)
    optimizer = getattr(optimizers, name)(rate)
    for _ in range(60):
        optimizer.apply([2 * v.read()], [v])
    assert np.abs(v.numpy()).max() < 0.7


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


def test_rules_refuse_numbers_out_of_range():
    with pytest.raises(ValueError, match="`beta_1` .*0.0"):
        optimizers.Lion(beta_1=0.0)
    with pytest.raises(ValueError, match="`weight_decay` .*None"):
        optimizers.AdamW(weight_decay=None)
    with pytest.raises(ValueError, match="`l1_regularization_strength` .*-1.0"):
        optimizers.Ftrl(l1_regularization_strength=-1.0)
    with pytest.raises(ValueError, match="`learning_rate_power` .*1.0"):
        optimizers.Ftrl(learning_rate_power=1.0)


def test_optimizers_are_numbered_as_in_keras():
    names = [rule().name for rule in (Adam, Adam, SGD, Adam)]
    assert names == ["adam", "adam_1", "sgd", "adam_2"]
    assert Adam(name="mine").variables[0].path == "mine/iteration"


def test_a_variable_to_be_overwritten_by_its_gradient_is_refused():
    v = variable(1.0, name="scale")
    v.overwrite_with_gradient = True
    with pytest.raises(ValueError, match="'scale' .*overwrite_with_gradient"):
        SGD().apply([tw.ones(1)], [v])


def test_the_argument_decay_of_older_versions_is_passed_over_with_a_warning():
    with pytest.warns(UserWarning, match="`decay`"):
        assert SGD(decay=0.1).weight_decay is None


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


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"clipnorm": 1.0}, [0.6, 0.8]),
        ({"clipvalue": 3.5}, [3.0, 3.5]),
        ({"global_clipnorm": 10.0}, [3.0, 4.0]),
    ],
)
def test_gradients_are_clipped_for_those_who_ask(arguments, expected):
    found, none = SGD(**arguments)._clip_gradients([tw.constant([3.0, 4.0]), None])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    assert none is None
