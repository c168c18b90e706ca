"""Steps of optimizers as parts of graphs, beside NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.variable_update import (
    DeviceUpdate,
    UpdateGroup,
)
from tapewright.compiler.program.program import Buffer, Kind
from tapewright.compiler.targets.cuda.kernels.table import KERNEL_PASSES
from tapewright.compiler.targets.cuda.kernels.updates import UpdateKernel

from ..program_runs import NODE, new_program
from ..runtime_runs import asked, both, executable_of, graphs, new_log

RNG = np.random.default_rng(2)
SHAPES = [(3,), (2, 4), (), (0, 3), (5, 1)]
VALUES = [RNG.normal(size=s).astype("f") for s in SHAPES]

RULES = {
    "SGD": {},
    "momentum": {"of": "SGD", "momentum": 0.9},
    "nesterov": {"of": "SGD", "momentum": 0.9, "nesterov": True},
    "Adam": {},
    "amsgrad": {"of": "Adam", "amsgrad": True},
    "AdamW": {"weight_decay": 0.1},
    "Adamax": {},
    "Nadam": {},
    "Adagrad": {},
    "Adadelta": {},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Ftrl": {},
    "Lion": {},
    "Lamb": {},
}
OPTIONS = {
    "plain": {},
    "clipnorm": {"clipnorm": 0.5},
    "clipvalue": {"clipvalue": 0.2},
    "global_clipnorm": {"global_clipnorm": 0.7},
    "decay": {"weight_decay": 0.05},
    "loss_scale": {"loss_scale_factor": 4.0},
    "average": {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2},
    "accumulation": {"gradient_accumulation_steps": 2},
}


def new_rule(name, **more):
    arguments = dict(RULES[name])
    kind = getattr(tw.optimizers, arguments.pop("of", name))
    return kind(0.1, **{**arguments, **more})


class Setting:
    def __init__(self, rule):
        self.variables = [tw.Variable(x, name=f"v{i}") for i, x in enumerate(VALUES)]
        self.rule, self.other = rule, tw.optimizers.SGD(0.01, momentum=0.5)
        self.labels = tw.constant([0, 2])

    def gradients(self, x, variables=None):
        variables = variables or self.variables
        with tw.GradientTape() as tape:
            loss = tw.add_n([tw.reduce_sum(tw.sin(v * x) * v) for v in variables])
        return tape.gradient(loss, variables)

    def apply(self, gradients, variables=None, rule=None):
        pairs = zip(gradients, variables or self.variables)
        (rule or self.rule).apply_gradients(pairs)

    def check(self):
        """Look at labels, so that all that follows is guarded."""
        logits = tw.reshape(self.variables[1], [2, 4])
        tw.nn.sparse_softmax_cross_entropy_with_logits(self.labels, logits)

    def values(self):
        rules = [*self.rule.variables, *self.other.variables]
        return [v.numpy() for v in (*self.variables, *rules)]


def run(name, program, **options):
    def train():
        s, found = Setting(new_rule(name, **options)), []
        step = tw.function(lambda x: program(s, x))
        for x in (0.5, -0.25, 1.5):
            made = step(tw.constant(x))
            found += [] if made is None else tw.nest.flatten(made)
        return [*found, *s.values()]

    both(train, 2e-5)


def plain(s, x):
    s.apply(s.gradients(x))


def with_a_check(s, x):
    gradients = s.gradients(x)
    logits = tw.reshape(s.variables[1], [2, 4])
    loss = tw.nn.sparse_softmax_cross_entropy_with_logits(s.labels, logits)
    s.apply(gradients)
    return loss


def one_is_frozen(s, x):
    rest = [s.variables[i] for i in (0, 2, 4)]
    s.apply(s.gradients(x, rest), rest)


def one_is_frozen_and_assigned(s, x):
    one_is_frozen(s, x)
    s.variables[1].assign_add(x * tw.ones([2, 4]))
    one_is_frozen(s, x)


def some_have_no_gradient(s, x):
    a, b, *_ = s.gradients(x)
    s.rule.build(s.variables)
    s.apply([a, b, None, None, None])


def the_empty_one_alone(s, x):
    s.rule.build(s.variables)
    s.apply(s.gradients(x, s.variables[3:4]), s.variables[3:4])


def clipped_afterwards(s, x):
    s.apply(s.gradients(x))
    for v in s.variables[:3]:
        v.assign(tw.clip_by_value(v, -0.4, 0.4))


def assigned_before(s, x):
    s.variables[0].assign(s.variables[0] * 0.5)
    s.apply(s.gradients(x))
    s.variables[0].assign(s.variables[0] * 2.0)
    s.apply(s.gradients(x))


def read_before_and_after(s, x):
    before = s.variables[0].read()
    s.apply(s.gradients(x))
    return before, s.variables[0].read(), before + s.variables[0]


def two_optimizers_share_variables(s, x):
    first = s.gradients(x)
    s.apply(first)
    s.apply(first[:2], s.variables[:2], s.other)
    s.apply(s.gradients(x * 2.0))


def overlapping_subsets(s, x):
    s.rule.build(s.variables)
    s.apply(s.gradients(x, s.variables[:3]), s.variables[:3])
    s.apply(s.gradients(x, s.variables[1:]), s.variables[1:])


def a_gradient_is_a_variable(s, x):
    s.rule.build(s.variables)
    s.apply([s.variables[0].read()], s.variables[:1])


def a_gradient_is_a_part(s, x):
    s.rule.build(s.variables)
    both_rows = tw.reshape(tw.range(6, dtype="float32") * x, [2, 3])
    s.apply([both_rows[1]], s.variables[:1])
    s.apply([tw.transpose(tw.reshape(tw.range(8, dtype="float32"), [4, 2])) * 1.0],
            s.variables[1:2])  # fmt: skip


PROGRAMS = [
    plain, with_a_check, one_is_frozen, one_is_frozen_and_assigned, some_have_no_gradient,
    the_empty_one_alone, clipped_afterwards, assigned_before, read_before_and_after,
    two_optimizers_share_variables, overlapping_subsets, a_gradient_is_a_variable,
    a_gradient_is_a_part,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_give_the_numbers_of_numpy(program, name, gpu):
    run(name, program)


@pytest.mark.parametrize("program", [plain, with_a_check], ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", RULES)
def test_every_rule_gives_the_numbers_of_numpy(name, program, gpu):
    run(name, program)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Lamb"])
@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_gives_the_numbers_of_numpy(option, name, gpu):
    run(name, with_a_check, **OPTIONS[option])


@pytest.mark.parametrize(
    "option", ["plain", "clipnorm", "clipvalue", "global_clipnorm"]
)
def test_a_step_is_a_part_of_the_graph(option, gpu, unverified):
    s = Setting(new_rule("Adam", **OPTIONS[option]))
    del s.variables[3]  # an empty one has a norm that no kernel computes
    step = tw.function(lambda x: plain(s, x))
    step(tw.constant(0.5))
    new_log()
    step(tw.constant(0.5))
    assert graphs()[1] == 1
    kinds = [
        type(e) for e in executable_of(step, tw.constant(0.5)).program.instructions
    ]
    assert kinds.count(UpdateKernel) == 1


# ------------------------------------------------------- steps that no optimizer has yet


class Exchange(tw.optimizers.Optimizer):
    """Results that lie in the memory of other arrays, or of which one is two."""

    slots = (("previous",), ("older",))

    def coefficients(self, step, learning_rate, real):
        return (learning_rate,)

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, previous, older
    ):
        xp.negative(previous, out=older)
        xp.negative(variable, out=previous)
        xp.multiply(gradient, coefficients[0], out=scratch)
        xp.subtract(variable, scratch, out=variable)


class Doubled(Exchange):
    """Two slots with one value."""

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, previous, older
    ):
        xp.add(gradient, variable, out=previous)
        xp.add(gradient, variable, out=older)


@pytest.mark.parametrize("rule", [Exchange, Doubled])
def test_results_that_lie_in_other_arrays_get_copies(rule, gpu, unverified):
    def train():
        v, optimizer = tw.Variable(VALUES[1]), rule(0.5)
        optimizer.build([v])
        step = tw.function(lambda g: optimizer.apply_gradients([(g, v)]))
        for n in range(4):
            step(tw.constant(VALUES[1] * (n - 1.0)))
        return [v, *optimizer.variables]

    both(train)
    assert "graph" in asked()


class Steps(DeviceUpdate):
    """An update whose arithmetic is ``function(gradient, *flats)``."""

    def __init__(self, function, flats):
        self.function = function
        self.groups = [UpdateGroup(np.dtype("f"), 0, 4, flats, 1)]

    def trace(self, xp, gradients, groups, empty):
        ((flats, _),) = groups
        return [self.function(*gradients, *flats)]

    is_current = segments = holders = advance = versions = flats = arrays = None
    trace_advance = columns = None


COPIED = {  # how many results cannot be written over the arrays that they replace
    "a sum": (lambda g, a: [a + g], 0),
    "entries in another order": (lambda g, a: [a[::-1] + g], 1),
    "a view of the own entries": (lambda g, a: [(a[::-1] * g)[::-1]], 0),
    "two that are exchanged": (lambda g, a, b: [b, a], 1),
    "one for two": (lambda g, a, b: [a + g] * 2, 0),
    "nothing": (lambda g, a: [a], 0),
    "the gradient": (lambda g, a: [g], 0),
}


@pytest.mark.parametrize("what", COPIED)
def test_what_is_still_read_is_not_written_over(what):
    function, copied = COPIED[what]
    step = Steps(function, function.__code__.co_argcount - 1)
    update = SimpleNamespace(on_device=lambda: step)
    gradient = Buffer((4,), np.dtype("f"), Kind.NEW)
    instruction = SimpleNamespace(update=update, operands=(gradient,), node=NODE)
    kernel = UpdateKernel.of(new_program(), instruction, KERNEL_PASSES)
    assert len(kernel._copied) == copied


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_that_the_dtype_cannot_hold_is_infinite(dtype, gpu):
    v, rule = tw.Variable(np.ones(3, dtype)), tw.optimizers.SGD(1e60)
    step = tw.function(lambda g: rule.apply_gradients([(g, v)]))
    step(tw.constant(np.array([1, -1, 0], dtype)))
    assert np.array_equal(v.numpy(), [-np.inf, np.inf, np.nan], equal_nan=True)
