"""An update by gradients of several replicas is the update by their sums."""

import numpy as np
from parts import RANK, SIZE, check_same, replica

import tapewright as tw

STEPS, COUNT = 5, 9
random = np.random.default_rng(11)
SHAPES = (4, 3), (3,), (50, 2), (7, 2)
initial = [random.normal(size=shape).astype("float32") for shape in SHAPES]
initial[2] = np.concatenate([initial[2]] * 800)  # its updates take another way
SHAPES = [x.shape for x in initial]
terms = [  # of each replica, in each step
    [[random.normal(size=s).astype("float32") for s in SHAPES] for _ in range(SIZE)]
    for _ in range(STEPS)
]
ROWS = [random.integers(0, 7, 1 + 2 * r) for r in range(SIZE)]  # with duplicates
rows = [
    [random.normal(size=(len(r), 2)).astype("float32") for r in ROWS]
    for _ in range(STEPS)
]

CLIPPING = {"clipnorm": 0.3}, {"clipvalue": 0.2}, {"global_clipnorm": 0.5}
CASES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "gradient_accumulation_steps": 2}),
    *[("SGD", {"momentum": 0.9, **clipping}) for clipping in CLIPPING],
    *[("Adam", clipping) for clipping in CLIPPING],
    ("Adam", {"amsgrad": True, "weight_decay": 0.01}),
    ("Adam", {"use_ema": True, "ema_overwrite_frequency": 2}),
    ("Adam", {"gradient_accumulation_steps": 2, "global_clipnorm": 0.5}),
    ("Adam", {"loss_scale_factor": 8.0}),
    *[(name, {}) for name in (
        "AdamW", "Adamax", "Nadam", "Adagrad", "Adadelta", "RMSprop", "Ftrl", "Lion",
        "Adafactor", "Lamb", "Muon", "ScheduleFreeAdamW") if hasattr(tw.optimizers, name)],
]  # fmt: skip


class InOps(tw.optimizers.Optimizer):
    """A rule in ops, as in Keras."""

    def update_step(self, gradient, variable, learning_rate):
        self.assign_sub(variable, gradient * learning_rate)


def run(optimizer, traced, gradients_of, own):
    """Return the variables after all steps; ``own``: as a replica."""
    variables = [tw.Variable(x, name=f"v{i}") for i, x in enumerate(initial)]
    variables[1].constraint = lambda x: tw.maximum(x, -0.5)

    def step(dense, values, indices):
        slices = tw.IndexedSlices(values, indices, SHAPES[3])
        gradients = [*dense[:3], slices]
        if not own:
            optimizer.apply(gradients, variables)
            return
        with replica(COUNT):
            optimizer.apply(gradients, variables)

    step = tw.function(step, reduce_retracing=True) if traced else step
    for i in range(STEPS):
        step(*gradients_of(i))
    return [*variables, *optimizer.variables]


def of_this_replica(i):
    dense = [tw.constant(x) for x in terms[i][RANK]]
    return dense, tw.constant(rows[i][RANK]), tw.constant(ROWS[RANK])


def of_all(i):
    dense = [tw.constant(np.sum(x, 0, dtype=x[0].dtype)) for x in zip(*terms[i])]
    rest = tw.constant(np.concatenate(rows[i])), tw.constant(np.concatenate(ROWS))
    return dense, *rest


def scaled(name, **options):
    inner = getattr(tw.optimizers, name)(0.05, **options)
    return tw.optimizers.LossScaleOptimizer(inner, dynamic_growth_steps=2)


makers = {
    f"{name} {options}": lambda n=name, o=options: getattr(tw.optimizers, n)(0.05, **o)
    for name, options in CASES
}
makers["in ops"] = lambda: InOps(0.05, global_clipnorm=0.5)
makers["scaled"] = lambda: scaled("Adam", global_clipnorm=0.5)
WAYS = [  # sharded, traced, with the gradients of this replica or with their sums
    *[(sharded, traced, True) for sharded in (False, True) for traced in (False, True)],
    *[(True, traced, False) for traced in (False, True)],
]
for name, make in makers.items():
    expected = [v.numpy() for v in run(make(), False, of_all, False)]
    for sharded, traced, own in WAYS:
        where = f"{name}, {sharded=}, {traced=}, {own=}"
        optimizer = tw.distribute.shard_optimizer(make()) if sharded else make()
        gradients = of_this_replica if own else of_all
        got = [v.numpy() for v in run(optimizer, traced, gradients, own)]
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, 2e-5, 2e-6, err_msg=where)
        check_same(where, got)

# One replica whose gradient is infinite makes all skip the step.
for traced in (False, True):
    optimizer, v = scaled("SGD"), tw.Variable([1.0, 2.0])

    def step(gradient, optimizer=optimizer, v=v):
        with replica(COUNT):
            optimizer.apply([gradient], [v])

    step = tw.function(step) if traced else step
    step(tw.constant([np.inf if RANK == SIZE - 1 else 1.0, 1.0]))
    assert v.numpy().tolist() == [1.0, 2.0]
    assert optimizer.dynamic_scale.numpy() == 2.0**14

# Outside of a replica context each process is for itself.
v = tw.Variable([0.0])
tw.optimizers.SGD(1.0).apply([tw.constant([RANK + 1.0])], [v])
assert v.numpy() == -(RANK + 1.0)
