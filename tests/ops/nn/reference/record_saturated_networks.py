"""Write ``saturated_networks.npz``: derivatives of small recurrent networks, to 17 digits.

Needs mpmath, which tapewright does not:

    python tests/ops/nn/reference/record_saturated_networks.py

A network of one unit runs two steps of one feature, ``x`` and ``x / 2``; its kernels are
`KERNEL` and `RECURRENT`, as many columns of them as it has gates. ``NETWORK|DTYPE|given``
has a row for each case: x, the initial states, the bias. ``NETWORK|DTYPE|by x`` has the last
h and its first three derivatives by x; ``NETWORK|DTYPE|by kernel`` the derivatives by the
kernel, and ``NETWORK|DTYPE|by kernel and x`` these by x. It was run with mpmath 1.3.
"""

from itertools import product
from pathlib import Path

import numpy as np

KERNEL, RECURRENT = [0.5, -0.75, 0.25, 1.0], [0.25, 0.5, -0.5, 0.75]
SIZES = {"float32": [10.0, 20.0, 40.0], "float64": [20.0, 40.0, 200.0]}
GATES = {"lstm": 4, "gru": 3, "tanh": 1}

if __name__ == "__main__":
    import mpmath as mp
    from mpmath import mpf

    mp.mp.dps = 1000


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def lstm(x, kernel, h, c, *bias):
    for now in (x, x / 2):
        i, f, n, o = [now * k + h * r + b for k, r, b in zip(kernel, RECURRENT, bias)]
        c = sigmoid(f) * c + sigmoid(i) * mp.tanh(n)
        h = sigmoid(o) * mp.tanh(c)
    return h


def gru(x, kernel, h, *bias):
    for now in (x, x / 2):
        z, r, n = [now * k + b for k, b in zip(kernel, bias)]
        of_z, of_r, of_n = [h * k for k in RECURRENT[:3]]
        z, r = sigmoid(z + of_z), sigmoid(r + of_r)
        h = z * h + (1 - z) * mp.tanh(n + r * of_n)
    return h


def plain(x, kernel, h, bias):
    for now in (x, x / 2):
        h = mp.tanh(now * kernel[0] + h * RECURRENT[0] + bias)
    return h


def cases(name, dtype):
    """Rows of x, the states, the bias: each gate far out on each side, or in between."""
    found = []
    for size in SIZES[dtype]:
        choices = [(size, -size, 0.5)] * GATES[name]
        states = {"lstm": [(0.5, 0.25), (0.5, size)], "gru": [(0.5,)], "tanh": [(0.5,)]}
        for state, bias in product(states[name], product(*choices)):
            found.append((1.0, *state, *bias))
    return found


def derivative(f, x, order):
    """By central differences, whose error is far below the last digit of a float64."""
    if not order:
        return f(x)
    step = mpf(10) ** -200
    ends = [derivative(f, x + s, order - 1) for s in (step, -step)]
    return (ends[0] - ends[1]) / (2 * step)


def of_case(f, kernel, row):
    """The derivatives by x, by the kernel, and by both."""
    x, *rest = [mpf(v) for v in row]

    def slope(x, j):
        def at(k):
            return f(x, [*kernel[:j], k, *kernel[j + 1 :]], *rest)

        return derivative(at, kernel[j], 1)

    by_x = [derivative(lambda x: f(x, kernel, *rest), x, order) for order in range(4)]
    by_kernel = [slope(x, j) for j in range(len(kernel))]
    by_both = [derivative(lambda x, j=j: slope(x, j), x, 1) for j in range(len(kernel))]
    return [[float(v) for v in part] for part in (by_x, by_kernel, by_both)]


def record():
    found = {}
    for name, f in {"lstm": lstm, "gru": gru, "tanh": plain}.items():
        kernel = [mpf(k) for k in KERNEL[: GATES[name]]]
        for dtype in SIZES:
            rows = cases(name, dtype)
            parts = zip(*[of_case(f, kernel, row) for row in rows])
            start = f"{name}|{dtype}|"
            found[start + "given"] = np.array(rows)
            for what in ("by x", "by kernel", "by kernel and x"):
                found[start + what] = np.array(next(parts))
    return found


if __name__ == "__main__":
    path = Path(__file__).with_name("saturated_networks.npz")
    np.savez_compressed(path, **record())
