"""Write ``sure_classes.npz``: derivatives of softmax and its losses, to 17 digits.

Needs mpmath, which tapewright does not:

    python tests/ops/nn/reference/record_sure_classes.py

The logits are `ROW`, whose second entry leads by each of `LEADS`. ``DTYPE|NAME`` has, for
each lead, the gradient of a function, and the gradients of its derivatives along `ALONG`:
along the first, and along both. ``softmax`` and ``log_softmax`` are weighted by `WEIGHTS`;
the others are losses of `LABELS`. ``DTYPE|labels`` has the derivatives by the labels of a
loss's derivative along the first of `ALONG`. It was run with mpmath 1.3.
"""

from pathlib import Path

import numpy as np

ROW = [0.0, -1.0, 0.5, -0.25]
LEADS = {
    "float32": [3.0, 12.0, 17.0, 30.0, 60.0],
    "float64": [3.0, 20.0, 36.0, 40.0, 200.0],
}
WEIGHTS = [1.5, -0.75, 0.5, 2.25]
ALONG = [0.25, 1.5, -1.25, 0.75], [-0.5, 1.25, 2.0, 0.375]
LABELS = {
    "the true class": [0.0, 1.0, 0.0, 0.0],
    "a wrong class": [0.0, 0.0, 1.0, 0.0],
    "all classes": [0.125, 0.5, 0.25, 0.125],
    "a sum of 2.75": [0.25, 2.0, 0.5, 0.0],
}

if __name__ == "__main__":
    import mpmath as mp
    from mpmath import mpf

    mp.mp.dps = 600


def softmax(x):
    powers = [mp.exp(v) for v in x]
    return [v / mp.fsum(powers) for v in powers]


def log_softmax(x):
    total = mp.log(mp.fsum([mp.exp(v) for v in x]))
    return [v - total for v in x]


def weighted(f, weights):
    return lambda x: mp.fsum([w * v for w, v in zip(weights, f(x))])


def functions():
    losses = {name: [-v for v in labels] for name, labels in LABELS.items()}
    return {
        "softmax": weighted(softmax, WEIGHTS),
        "log_softmax": weighted(log_softmax, WEIGHTS),
        "reduce_logsumexp": lambda x: mp.log(mp.fsum([mp.exp(v) for v in x])),
        **{name: weighted(log_softmax, minus) for name, minus in losses.items()},
    }


def derivative(f, direction):
    """By central differences, whose error is far below the last digit of a float64."""
    step = mpf(10) ** -150

    def along(x):
        ends = [[v + s * d for v, d in zip(x, direction)] for s in (step, -step)]
        return (f(ends[0]) - f(ends[1])) / (2 * step)

    return along


def gradients(f, x):
    unit = np.eye(len(x), dtype=int).tolist()
    first = derivative(f, ALONG[0])
    second = derivative(first, ALONG[1])
    return [[float(derivative(g, d)(x)) for d in unit] for g in (f, first, second)]


def by_labels(x):
    unit = np.eye(len(x), dtype=int).tolist()
    return [-float(derivative(weighted(log_softmax, d), ALONG[0])(x)) for d in unit]


def record():
    found = {}
    for dtype, leads in LEADS.items():
        rows = [[mpf(v) + lead * (i == 1) for i, v in enumerate(ROW)] for lead in leads]
        for name, f in functions().items():
            found[f"{dtype}|{name}"] = np.array([gradients(f, x) for x in rows])
        found[f"{dtype}|labels"] = np.array([by_labels(x) for x in rows])
    return found


if __name__ == "__main__":
    path = Path(__file__).with_name("sure_classes.npz")
    np.savez_compressed(path, **record())
