"""Random programs of maps, reductions and views as thread nests, against NumPy."""

import random

import numpy as np
import pytest

from tapewright.compiler.program.instructions.array_instructions import View

from ....stand_in import shim
from .nest_runs import Kernel, nests_of, run

pytestmark = pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")

SIZES = [
    (1, 1),
    (2, 3),
    (5, 1),
    (1, 7),
    (9, 33),
    (40, 70),
    (300, 12),
    (3, 1500),
    (3000, 4),
]
UNARY = [np.negative, np.tanh, np.abs, np.sin, np.arctan]
BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.arctan2]
REDUCTIONS = [np.add, np.maximum, np.minimum]


class Maker:
    """Makes a program up, of values that stay small."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        rows, columns = self.rng.choice(SIZES)
        rng = np.random.default_rng(seed)
        shapes = [(rows, columns), (columns,), (rows, 1), (), (2, rows, columns)]
        self.kernel = Kernel(*[rng.standard_normal(s) for s in shapes])
        self.values = list(self.kernel.inputs)

    def program(self):
        for _ in range(self.rng.randint(4, 16)):
            step = self.rng.choice(
                [self.unary, self.binary, self.binary, self.reduction, self.view]
            )
            made = step(self.rng.choice(self.values[-8:]))
            if made is not None:
                self.values.append(made)
        made = [v for v in self.values if v.instruction is not None]
        return self.kernel, self.rng.sample(made, min(len(made), 4))

    def unary(self, x):
        return self.kernel.map(self.rng.choice(UNARY), x)

    def binary(self, x):
        fitting = [y for y in self.values if fits(x.shape, y.shape)]
        return self.kernel.map(self.rng.choice(BINARY), x, self.rng.choice(fitting))

    def reduction(self, x):
        if not x.shape:
            return None
        axes = self.rng.sample(range(len(x.shape)), self.rng.randint(1, len(x.shape)))
        axis = None if len(axes) == len(x.shape) else tuple(sorted(axes))
        keepdims = self.rng.random() < 0.5
        ufunc = self.rng.choice(REDUCTIONS)
        out = self.kernel.reduce(ufunc, x, axis, keepdims)
        return self.kernel.map(np.arctan, out) if ufunc is np.add else out

    def view(self, x):
        if not x.shape:
            return None
        kind = self.rng.randrange(4)
        if kind == 0:
            axes = tuple(self.rng.sample(range(len(x.shape)), len(x.shape)))
            return self.kernel.view(x, np.ndarray.transpose, axes)
        if kind == 1:
            return self.kernel.view(x, np.ndarray.reshape, (*x.shape, 1))
        if kind == 2:
            return self.kernel.view(x, np.ndarray.__getitem__, slice(None, None, -1))
        return self.kernel.view(x, np.broadcast_to, (2, *x.shape))


def fits(a, b):
    try:
        return np.prod(np.broadcast_shapes(a, b)) <= 1 << 16
    except ValueError:
        return False


def by_numpy(kernel, outputs):
    """What NumPy computes, instruction by instruction."""
    held = dict(zip(kernel.inputs, kernel.arrays))
    for each in kernel.program.instructions:
        (out,) = each.outputs
        if type(each) is View:
            held[out] = each.apply(held[each.viewed])
        else:
            args = [held[a] for a in each.operands]
            held[out] = np.asarray(each.function(*args, **each.keywords))
    return [held[out] for out in outputs]


@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_gives_what_numpy_gives(seed):
    kernel, outputs = Maker(seed).program()
    wanted = by_numpy(kernel, outputs)
    program = kernel.formed(*outputs)
    assert nests_of(program) or all([v.is_view for v in outputs])
    for threads in ("one", "fibers"):
        for got, want in zip(run(program, kernel.arrays, threads, seed), wanted):
            np.testing.assert_allclose(got, want, 1e-9, 1e-11)
