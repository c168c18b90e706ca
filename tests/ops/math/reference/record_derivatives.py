"""Write ``derivatives.npz``: values and derivatives at special points, to 17 digits.

Needs mpmath, which tapewright does not:

    python tests/ops/math/reference/record_derivatives.py

``NAME|DTYPE|x at`` (and ``y at``, for functions of two) are the points, numbers of the dtype;
``NAME|DTYPE|WORD`` is the derivative by the letters of the word, in float64: "" the value,
"xx" the second derivative. It was run with mpmath 1.3.
"""

from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    import mpmath as mp
    from mpmath import mpf

    mp.mp.dps = 700  # differences of exp(720) and exp(-720), and steps of 1e-60

FAR = [0.1, 0.3, 1.5, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 87.0]
FAR += [100.0, 300.0, 700.0]
NEAR = [1e-30, 1e-8, 1e-4, 1e-2]
LARGE = [1e4, 1e8, 1e18]


def signed(*lists):
    return sorted({s * v for part in lists for v in part for s in (1, -1)})


AT_ALL, AT_REAL = [*signed(NEAR, FAR), 0.0], [*signed(NEAR, FAR, LARGE), 0.0]
CORNERED = signed(NEAR, FAR)  # but for the corner at 0
POSITIVE = [*NEAR, *FAR[:-3], *LARGE]
INSIDE = [*signed(NEAR, [0.1, 0.5, 0.9, 1 - 1e-4, 1 - 1e-6]), 0.0]
PAIRS = [(a, b) for a in AT_ALL[::3] for b in [*AT_ALL[1::4], 0.0]]
TIES = [(v, v) for v in signed(NEAR, FAR)] + [(v, v + 1e-4) for v in [0.0, 1.0]]


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(x))


def below(x, scale=1):
    return x if x > 0 else scale * mp.expm1(x / scale)


# name: the function in mpmath, and the points
CASES = {
    "tanh": (lambda x: mp.tanh(x), AT_ALL),
    "sigmoid": (sigmoid, AT_ALL),
    "softplus": (softplus, AT_ALL),
    "log_sigmoid": (lambda x: -softplus(-x), AT_ALL),
    "elu": (below, CORNERED),
    "selu": (
        lambda x: (
            mpf(1.0507009873554805)
            * (x if x > 0 else mpf(1.6732632423543772) * mp.expm1(x))
        ),
        CORNERED,
    ),
    "celu": (lambda x: below(x, mpf(1.5)), CORNERED),
    "silu": (lambda x: x * sigmoid(x), AT_ALL),
    "mish": (lambda x: x * mp.tanh(softplus(x)), AT_ALL),
    "gelu": (lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, AT_ALL),
    "gelu by tanh": (
        lambda x: x * sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3)),
        AT_ALL,
    ),
    "softsign": (lambda x: x / (1 + abs(x)), signed(NEAR, FAR, LARGE)),
    "tanh_shrink": (lambda x: x - mp.tanh(x), AT_ALL),
    "squareplus": (lambda x: (x + mp.sqrt(x * x + 4)) / 2, AT_REAL),
    "log_cosh": (lambda x: mp.log(mp.cosh(x)), AT_ALL),
    "exp2": (lambda x: mp.power(2, x), [*AT_ALL, 127.0, 128.0, 1023.5, 1024.0]),
    "expm1": (lambda x: mp.expm1(x), AT_ALL),
    "log1p": (lambda x: mp.log1p(x), [v for v in AT_REAL if v > -1]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), signed(NEAR, FAR, LARGE)),
    "sinc": (lambda x: mp.sinc(mp.pi * x), [*signed(NEAR, [0.05, 0.2, 0.3, 0.7]), 0.0]),
    "asin": (lambda x: mp.asin(x), INSIDE),
    "acos": (lambda x: mp.acos(x), INSIDE),
    "atan": (lambda x: mp.atan(x), AT_REAL),
    "asinh": (lambda x: mp.asinh(x), AT_REAL),
    "atanh": (lambda x: mp.atanh(x), INSIDE),
    "erf": (lambda x: mp.erf(x), AT_ALL),
    "erfc": (lambda x: mp.erfc(x), AT_ALL),
    "hypot": (
        lambda x, y: mp.sqrt(x * x + y * y),
        [
            p
            for p in [*PAIRS, *TIES, (1e18, 1e18)]
            if any(p) and max(map(abs, p)) > 1e-9
        ],
    ),
    "arctan2": (  # whose mixed derivative is 0 where the angle is half a right one
        lambda x, y: mp.atan2(x, y),
        [
            p
            for p in PAIRS
            if abs(p[0]) != abs(p[1]) and (p[1] > 1e-9 or abs(p[0]) > 1e-3 < abs(p[1]))
        ],
    ),
    "logaddexp": (lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), [*PAIRS, *TIES]),
    "logaddexp2": (
        lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y), 2),
        [*PAIRS, *TIES],
    ),
}
WORDS = {
    1: ["", "x", "xx", "xxx"],
    2: ["".join(w) for n in range(4) for w in combinations_with_replacement("xy", n)],
}


def derivative(f, point, word):
    """By central differences, whose error is far below the last digit of a float64."""
    if not word:
        return f(*point)
    at = "xy".index(word[0])
    size = min([abs(v) for v in point if v] + [mpf(1)])
    ends = []
    for step in (size * mpf(10) ** -40, -size * mpf(10) ** -40):
        moved = list(point)
        moved[at] += step
        ends.append(derivative(f, moved, word[1:]))
    return (ends[0] - ends[1]) / (2 * size * mpf(10) ** -40)


def without_noise(rows, values):
    """0 for what differences leave of it at 0 and at ties."""
    special = rows[:, 0] == (rows[:, 1] if rows.shape[1] > 1 else 0)
    return np.where(special & (np.abs(values) < 1e-70), 0.0, values)


def record():
    found = {}
    for name, (f, points) in CASES.items():
        for dtype in (np.float32, np.float64):
            rows = np.unique(np.array(points, dtype).reshape(len(points), -1), axis=0)
            largest = np.finfo(dtype).max
            rows = rows[(np.abs(rows) < largest).all(1)]
            start = f"{name}|{dtype.__name__}|"
            for letter, column in zip("xy", rows.T):
                found[start + letter + " at"] = column
            exact = [[mpf(float(v)) for v in row] for row in rows]
            for word in WORDS[rows.shape[1]]:
                values = [float(mp.re(derivative(f, row, word))) for row in exact]
                found[start + word] = without_noise(rows, np.array(values))
    return found


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("derivatives.npz"), **record())
