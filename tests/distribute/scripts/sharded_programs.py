"""Random programs with a sharded optimizer have the numbers of one process.

mpiexec -n 2 python sharded_programs.py FIRST COUNT
"""

import gc
import sys

import numpy as np
from parts import RANK, SIZE, replica

import tapewright as tw

NAMES = (
    *("SGD", "Adam", "AdamW", "Adamax", "Nadam", "Adagrad", "Adadelta", "RMSprop"),
    *("Ftrl", "Lion", "Adafactor", "Lamb", "Muon", "ScheduleFreeAdamW", "InOps"),
)


class InOps(tw.optimizers.Optimizer):
    def build(self, variables):
        super().build(variables)
        self.momenta = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient, variable, learning_rate):
        momentum = self.momenta[self._get_variable_index(variable)]
        self.assign(momentum, momentum * 0.9 + gradient)
        self.assign_sub(variable, momentum * learning_rate)


class Program:
    """Steps of an optimizer on variables, drawn from a seed."""

    def __init__(self, seed):
        self.random = random = np.random.default_rng(seed)
        sizes = [0, 1, 2, 3, 5, 8, 40, 70]
        shares = [0.04, 0.1, 0.2, 0.2, 0.2, 0.16, 0.05, 0.05]
        self.shapes = [
            tuple(random.choice(sizes, random.integers(0, 4), p=shares).tolist())
            for _ in range(random.integers(1, 7))
        ]
        self.values = [random.normal(size=s).astype("f4") for s in self.shapes]
        self.is_constrained = random.random(len(self.shapes)) < 0.25
        self.name, self.options = str(random.choice(NAMES)), self.drawn_options()
        self.is_scaled = random.random() < 0.25
        self.steps = [self.drawn_step() for _ in range(random.integers(3, 6))]

    def drawn_options(self):
        random, options = self.random, {}
        clipping = "clipnorm", "clipvalue", "global_clipnorm", None
        if (limit := clipping[random.integers(4)]) is not None:
            options[limit] = 0.3
        if random.random() < 0.3:
            options["weight_decay"] = 0.05
        if random.random() < 0.3:
            options |= {"use_ema": True, "ema_momentum": 0.7}
            options["ema_overwrite_frequency"] = (None, 1, 2)[random.integers(3)]
        if random.random() < 0.3:
            options["gradient_accumulation_steps"] = 2
        return options

    def drawn_step(self):
        """Draw what happens before a step, and the gradients of each rank."""
        random, gradients = self.random, {}
        for i, shape in enumerate(self.shapes):
            kind = random.choice(
                ["none", "sparse", "absent", "dense"], p=[0.1, 0.2, 0.1, 0.6]
            )
            if kind == "sparse" and shape and shape[0]:
                rows = [
                    random.integers(0, shape[0], random.integers(5))
                    for _ in range(SIZE)
                ]
                values = [random.normal(size=(len(r), *shape[1:])) for r in rows]
                gradients[i] = [*zip(values, rows)]
            elif kind == "dense" or not i:
                gradients[i] = [random.normal(size=shape) for _ in range(SIZE)]
            elif kind != "absent":
                gradients[i] = None
        assigned = [i for i in range(len(self.shapes)) if random.random() < 0.1]
        return assigned, gradients, self.is_scaled and random.random() < 0.2

    def run(self, sharded, traced, own):
        """Return the variables and the state; ``own``: with the gradients of this rank."""
        variables = [tw.Variable(x, name=f"v{i}") for i, x in enumerate(self.values)]
        for variable, is_constrained in zip(variables, self.is_constrained):
            if is_constrained:
                variable.constraint = lambda x: tw.clip_by_value(x, -0.8, 0.8)
        cls = InOps if self.name == "InOps" else getattr(tw.optimizers, self.name)
        optimizer = cls(0.05, **self.options)
        if self.is_scaled:
            optimizer = tw.optimizers.LossScaleOptimizer(optimizer, 4.0, 2)
        if sharded:
            tw.distribute.shard_optimizer(optimizer)
        optimizer.build(variables)
        for assigned, gradients, overflows in self.steps:
            for i in assigned:
                variables[i].assign(variables[i] * 0.5)
            ranks = [RANK] if own else range(SIZE)
            given = [
                self.gradient(g, i, ranks, overflows) for i, g in gradients.items()
            ]
            trained = [variables[i] for i in gradients]

            def step(given, trained=trained):
                optimizer.apply(given, trained)

            step = tw.function(step) if traced else step
            if own:
                with replica(4):
                    step(given)
            else:
                step(given)
        return [v.numpy() for v in (*variables, *optimizer.variables)]

    def gradient(self, terms, i, ranks, overflows):
        if terms is None:
            return None
        if isinstance(terms[0], tuple):
            values, rows = [np.concatenate(x) for x in zip(*[terms[r] for r in ranks])]
            values = tw.constant(values, "float32")
            return tw.IndexedSlices(values, tw.constant(rows), self.shapes[i])
        total = np.asarray(sum([terms[r] for r in ranks]), "f4").copy()
        if overflows and total.size and SIZE - 1 in ranks:
            total.reshape(-1)[0] = np.inf
        return tw.constant(total)

    def check(self):
        expected = self.run(False, False, False)
        for traced in (False, True):
            for own in (False, True):
                found = self.run(True, traced, own)
                for a, b in zip(found, expected, strict=True):
                    where = f"{traced=} {own=} {self.name} {self.options} {self.shapes}"
                    np.testing.assert_allclose(a, b, 5e-4, 5e-5, err_msg=where)


def main(first, count):
    gc.freeze()  # or each collection would look at all that was imported
    for seed in range(int(first), int(first) + int(count)):
        try:
            Program(seed).check()
        except BaseException as error:
            error.add_note(f"in the program of seed {seed}")
            raise
    if RANK == 0:
        print(count, "programs")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
