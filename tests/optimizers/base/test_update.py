"""The arithmetic of an optimizer's step as a program: the same bits as the step itself."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.call_instructions import Update
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.numpy.executable import Executable

RULES = {
    "SGD": tw.optimizers.SGD(0.1),
    "SGD with momentum": tw.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "RMSprop": tw.optimizers.RMSprop(0.1),
    "RMSprop, centered": tw.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
    "Adam": tw.optimizers.Adam(0.1),
    "Adam with amsgrad": tw.optimizers.Adam(0.1, amsgrad=True),
    "AdamW": tw.optimizers.AdamW(0.1),
    "Adamax": tw.optimizers.Adamax(0.1),
    "Nadam": tw.optimizers.Nadam(0.1),
    "Adagrad": tw.optimizers.Adagrad(0.1),
    "Adadelta": tw.optimizers.Adadelta(0.1),
    "Lion": tw.optimizers.Lion(0.1),
}


def program_of(rule, shape=(7,), dtype=np.float32, decays=False):
    rule.build([tw.Variable(np.zeros(shape, dtype))])
    return rule._tw_block_rule.program(shape, dtype, decays)


@pytest.mark.parametrize("decays", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_the_program_of_a_rule_does_what_its_blocks_do(name, decays):
    rule, rng = RULES[name], np.random.default_rng(0)
    program = program_of(rule, decays=decays)
    verify_program(program, "tracing")
    block = rule._tw_block_rule
    arrays = [rng.uniform(0.1, 1, 7).astype(np.float32) for _ in range(2 + block.slots)]
    numbers = rng.uniform(0.1, 0.9, block.numbers).astype(np.float32)
    numbers = [np.array(n) for n in numbers]
    found = Executable(program).instance()(*arrays, *numbers)
    scratch = [np.empty(7, np.float32) for _ in range(block.scratch)]
    copies = [a.copy() for a in arrays]
    block.function(np, copies, scratch, numbers, decays)
    for a, b in zip(found, copies[1:], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(copies[0], arrays[0])


def test_a_rule_that_looks_at_whole_variables_has_no_program():
    assert program_of(tw.optimizers.Lamb(0.1)) is None


class InOps(tw.optimizers.Optimizer):
    def update_step(self, gradient, variable, learning_rate):
        variable.assign_sub(gradient * learning_rate)


def update_of(rule):
    v = tw.Variable(tw.ones([3]))

    def step(x):
        rule.apply_gradients([(x, v)])

    graph = tw.function(step).get_concrete_function(tw.ones([3])).graph
    (update,) = updates(lower(graph))
    return update


def updates(program):
    """The updates of a program, and of the branches in it."""
    for each in program.instructions:
        if isinstance(each, Update):
            yield each.update
        for inner in getattr(each, "programs", ()):
            yield from updates(inner)


def test_an_update_says_whether_code_of_the_users_runs_in_it():
    assert not update_of(tw.optimizers.SGD(0.1)).runs_user_code
    assert update_of(InOps(0.1)).runs_user_code
    assert update_of(InOps(0.1)).block_rule is None


def test_so_does_one_that_scales_losses_around_another():
    scaled = tw.optimizers.LossScaleOptimizer
    assert not update_of(scaled(tw.optimizers.SGD(0.1))).runs_user_code
    assert update_of(scaled(tw.optimizers.SGD(0.1))).block_rule is not None
    assert update_of(scaled(InOps(0.1))).runs_user_code


def test_a_scaled_rule_of_the_users_sees_what_was_assigned_before_it():
    factor, v = tw.Variable(1.0), tw.Variable([1.0, 1.0])

    class Factored(tw.optimizers.Optimizer):
        def update_step(self, gradient, variable, learning_rate):
            variable.assign_sub(gradient * factor)

    rule = tw.optimizers.LossScaleOptimizer(Factored(0.1), initial_scale=1.0)

    @tw.function
    def step():
        factor.assign(0.25)
        rule.apply_gradients([(tw.ones(2), v)])

    step()
    np.testing.assert_array_equal(v.numpy(), [0.75, 0.75])
