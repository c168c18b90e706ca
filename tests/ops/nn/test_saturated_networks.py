"""Recurrent networks whose gates are far out: derivatives beside those of mpmath.

`reference/record_saturated_networks.py` recorded them. What is a normal number in the dtype
must be right relative to its own size: the rounded output of a gate has lost it.
"""

from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.nn.gru import gru
from tapewright.ops.nn.lstm import lstm
from tapewright.ops.nn.simple_rnn import simple_rnn

RECORDED = np.load(Path(__file__).parent / "reference" / "saturated_networks.npz")
KERNEL, RECURRENT = [0.5, -0.75, 0.25, 1.0], [0.25, 0.5, -0.5, 0.75]
GATES = {"lstm": 4, "gru": 3, "tanh": 1}
TOLERANCE = {"float32": 1e-3, "float64": 1e-11}
DTYPES = ["float32", "float64"]


class Networks:
    """All cases as one batch: each example has rows of the kernel, and a bias, of its own."""

    def __init__(self, name, dtype):
        self.name, self.dtype, gates = name, dtype, GATES[name]
        rows = RECORDED[f"{name}|{dtype}|given"].astype(dtype)
        states = 2 if name == "lstm" else 1
        self.x = tw.constant(rows[:, 0])
        self.states = [tw.constant(rows[:, 1 + i, None]) for i in range(states)]
        self.biases = tw.constant(rows[:, 1 + states :])
        self.kernel = tw.constant(
            np.tile(np.array(KERNEL[:gates], dtype), (len(rows), 1))
        )
        self.recurrent = tw.constant([RECURRENT[:gates]], dtype)
        self.kept = np.full(len(rows), True)
        # The state after a step has been rounded to 1: h - n has no digit.
        if name == "gru":
            size, (_, _, z, _, n) = 5, rows.T
            self.kept = (z > -size) | (np.abs(n) < size)
        self.own = tw.constant(np.eye(len(rows), dtype=dtype))

    def run(self, x, kernel, states=None):
        own, states = self.own, states or self.states
        steps = [tw.concat([own * now[:, None], own], 1) for now in (x, x * 0.5)]
        inputs = tw.stack(steps, 1)
        kernel = tw.concat([kernel, self.biases], 0)
        op = {"lstm": lstm, "gru": gru, "tanh": simple_rnn}[self.name]
        return op(inputs, *states, kernel, self.recurrent)[1][:, 0]

    def by_x(self, x, order):
        if not order:
            return self.run(x, self.kernel)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = self.by_x(x, order - 1)
        return tape.gradient(y, x)

    def by_kernel(self, x):
        with tw.GradientTape() as tape:
            tape.watch(self.kernel)
            y = self.run(x, self.kernel)
        return tape.gradient(y, self.kernel)

    def by_kernel_and_x(self, x):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            slopes = tw.unstack(self.by_kernel(x), axis=1)
        return tw.stack([tape.gradient(s, x) for s in slopes], 1)

    def all(self, x):
        orders = tw.stack([self.by_x(x, order) for order in range(4)], 1)
        return orders, self.by_kernel(x), self.by_kernel_and_x(x)

    def check(self, found):
        for what, got in zip(("by x", "by kernel", "by kernel and x"), found):
            self.check_one(what, got.numpy())

    def check_one(self, what, got):
        wanted = RECORDED[f"{self.name}|{self.dtype}|{what}"]
        wanted, got = wanted[self.kept, : got.shape[1]], got[self.kept]
        smallest = float(np.finfo(self.dtype).tiny)
        apart = np.abs(got - wanted)
        wrong = ~(apart <= TOLERANCE[self.dtype] * np.abs(wanted) + 100 * smallest)
        cases = RECORDED[f"{self.name}|{self.dtype}|given"][self.kept][wrong.any(1)]
        assert not wrong.any(), (what, cases[:3], got[wrong][:5], wanted[wrong][:5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", GATES)
def test_derivatives_of_saturated_networks_are_those_of_mpmath(name, dtype):
    networks = Networks(name, dtype)
    networks.check(networks.all(networks.x))


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("name", GATES)
def test_they_are_so_in_traced_functions(name, target):
    if target == "native":
        pytest.importorskip("llvmlite")
    networks = Networks(name, "float32")
    with tw.config.use_target(target):
        networks.check(tw.function(networks.all)(networks.x))


class Cells(Networks):
    """The same, a step of a `GRUCell` at a time."""

    def run(self, x, kernel, states=None):
        cell = tw.layers.GRUCell(1, use_bias=False, dtype=self.dtype)
        cell.build((None, 2 * len(self.own)))
        cell.kernel = tw.concat([kernel, self.biases], 0)
        cell.recurrent_kernel = self.recurrent
        (h,) = self.states
        for now in (x, x * 0.5):
            h, _ = cell(tw.concat([self.own * now[:, None], self.own], 1), [h])
        return h[:, 0]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_so_in_cells(dtype, traced):
    cells = Cells("gru", dtype)
    cells.check((tw.function(cells.all) if traced else cells.all)(cells.x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", GATES)
def test_they_are_so_in_forward_mode(name, dtype):
    networks = Networks(name, dtype)
    x = networks.x
    with tw.autodiff.ForwardAccumulator(x, tw.ones_like(x)) as accumulator:
        y = networks.run(x, networks.kernel)
    found = tw.stack([y, accumulator.jvp(y)], 1)
    networks.check_one("by x", found.numpy())
