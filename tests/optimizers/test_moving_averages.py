"""Averages of variables: their weights, and when they take the place of variables."""

import pytest

import tapewright as tw
from tapewright.optimizers import SGD

from .steps import run, variable


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
    with pytest.raises(ValueError, match="average of 'w'"):
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


def test_a_variable_to_be_overwritten_by_its_gradient_is_refused():
    v = variable(1.0, name="scale")
    v.overwrite_with_gradient = True
    with pytest.raises(ValueError, match="'scale' .*overwrite_with_gradient"):
        SGD().apply([tw.ones(1)], [v])
