"""Measure a training step over width, batch size and depth, on each target and in peers.

    python benchmarks/scaling.py                   (three sweeps, about 15 minutes)
    python benchmarks/scaling.py --quick           (a few sizes per sweep, two minutes)
    python benchmarks/scaling.py --read scaling.json --picture scaling.png

All implementations run the same step from the same weights: a network of equally wide ReLU
layers, softmax cross-entropy, Adam, float32. The losses of the first steps must agree. Each
implementation runs in its own process, which is stopped while another one runs. The script
prints the machine and the versions, medians in ms, ratios of the first implementation to the
others, the time of the first step (including tracing and compilation) and the peak memory.
Peers that are not installed are skipped.
"""

import argparse
import importlib
import json
import statistics
import sys

import machine
import numpy as np
from tqdm import tqdm
from turns import PACKAGES, arguments, save, serve, some_of, take_turns, working

__all__ = ["measure", "picture", "table"]

IMPLEMENTATIONS = ["native", "numpy", "eager", "jax", "torch"]

# name -> (sizes, sizes with --quick); FIXED has the other dimensions
SWEEPS = {
    "width": ([32, 64, 128, 256, 512, 1024, 2048, 4096], [32, 256, 1024]),
    "batch": ([1, 4, 16, 64, 256, 1024, 4096], [1, 64, 1024]),
    "depth": ([2, 5, 10, 20, 50, 100, 200], [2, 20, 100]),
}
FIXED = {
    "width": {"batch": 128, "depth": 2},
    "batch": {"width": 256, "depth": 2},
    "depth": {"width": 64, "batch": 128},
}
LABELS = {
    "native": "tapewright, traced",
    "numpy": "tapewright, traced to NumPy calls",
    "eager": "tapewright, eager",
    "jax": "JAX jit",
    "torch": "torch, eager",
}
CLASSES, EPSILON = 10, 1e-7
# So low that the weights hardly change: on a single batch, gradients would vanish within some
# hundred steps, and arithmetic on denormal numbers is many times slower.
RATE = 1e-7


# ------------------------------------------------------------------- the step, by peer


def network(width, batch, depth):
    """Return ``(weights, x, y)``: alternating kernels and biases, inputs, one-hot labels."""
    rng = np.random.default_rng(0)
    weights = []
    for rows, columns in [(width, width)] * depth + [(width, CLASSES)]:
        kernel = rng.standard_normal((rows, columns), np.float32)
        weights += [kernel * np.sqrt(2 / rows, dtype="f4"), np.zeros(columns, "f4")]
    x = rng.standard_normal((batch, width), np.float32)
    labels = rng.integers(CLASSES, size=batch)
    return weights, x, np.eye(CLASSES, dtype="f4")[labels]


def tensorflow_step(tf, weights, x, y, traced):
    """Return ``(step, number)`` for tapewright or TensorFlow."""
    variables = [tf.Variable(w) for w in weights]
    adam = tf.keras.optimizers.Adam(RATE, epsilon=EPSILON)
    adam.build(variables)
    x, y = tf.constant(x), tf.constant(y)

    def step(x, y):
        with tf.GradientTape() as tape:
            h, pairs = x, list(zip(variables[::2], variables[1::2]))
            for kernel, bias in pairs[:-1]:
                h = tf.nn.relu(tf.matmul(h, kernel) + bias)
            logits = tf.matmul(h, pairs[-1][0]) + pairs[-1][1]
            losses = tf.nn.softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, variables)
        adam.apply_gradients(zip(gradients, variables))
        return loss

    step = tf.function(step) if traced else step
    return (lambda: step(x, y)), (lambda loss: float(loss.numpy()))


def jax_step(weights, x, y):
    import jax

    def loss_of(weights, x, y):
        pairs = list(zip(weights[::2], weights[1::2]))
        for kernel, bias in pairs[:-1]:
            x = jax.nn.relu(x @ kernel + bias)
        logits = x @ pairs[-1][0] + pairs[-1][1]
        return -(y * jax.nn.log_softmax(logits)).sum(-1).mean()

    return jax_adam(loss_of, weights, x, y)


def jax_adam(loss_of, weights, x, y, rate=RATE):
    """Return ``(step, number)``: a compiled Adam step on ``loss_of(weights, x, y)``."""
    import jax

    def train(state, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(state[0], x, y)
        return jax_updated(state, gradients, rate), loss

    train = jax.jit(train, donate_argnums=0)
    state = jax_state(weights)
    x, y = jax.tree.map(jax.numpy.asarray, (x, y))

    def step():
        nonlocal state
        state, loss = train(state, x, y)
        return jax.block_until_ready(loss)

    return step, float


def jax_state(weights):
    """Return Adam's state before the first step: weights, moments, step count."""
    import jax.numpy as jnp

    weights = [jnp.asarray(w) for w in weights]
    m, v = ([jnp.zeros_like(w) for w in weights] for _ in range(2))
    return weights, m, v, jnp.zeros(())


def jax_updated(state, gradients, rate):
    import jax.numpy as jnp

    weights, m, v, t = state
    t = t + 1
    rate = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients)]
    v = [0.999 * a + 0.001 * g * g for a, g in zip(v, gradients)]
    triples = zip(weights, m, v)
    weights = [w - rate * a / (jnp.sqrt(b) + EPSILON) for w, a, b in triples]
    return weights, m, v, t


def torch_step(weights, x, y, compiled):
    import torch

    functional = torch.nn.functional
    weights = [torch.tensor(w, requires_grad=True) for w in weights]
    x, y = torch.tensor(x), torch.tensor(y)
    adam = torch.optim.Adam(weights, RATE, eps=EPSILON, fused=True)

    def loss_of(x, y):
        pairs = list(zip(weights[::2], weights[1::2]))
        for kernel, bias in pairs[:-1]:
            x = torch.relu(torch.addmm(bias, x, kernel))
        return functional.cross_entropy(torch.addmm(pairs[-1][1], x, pairs[-1][0]), y)

    loss_of = torch.compile(loss_of) if compiled else loss_of

    def step():
        adam.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        adam.step()
        return loss

    return step, (lambda loss: loss.item())


def make(name, width, batch, depth):
    """Return ``(step, number)`` of an implementation; ``number`` reads a loss."""
    weights, x, y = network(width, batch, depth)
    if name == "jax":
        return jax_step(weights, x, y)
    if name.startswith("torch"):
        return torch_step(weights, x, y, name == "torch_compile")
    package = importlib.import_module(PACKAGES[name])
    return tensorflow_step(package, weights, x, y, name != "eager")


# ------------------------------------------------------------------------- the sweeps


def measure(names, sizes, options):
    """Return ``ms``, ``first`` (ms) and ``peak`` (MB) for each implementation.

    Args:
        names: Names of the implementations.
        sizes: Dict with ``width``, ``batch`` and ``depth``.
        options: Command-line options.

    Raises:
        RuntimeError: If an implementation computes other losses than the first one.
    """
    sizes = [sizes[key] for key in ("width", "batch", "depth")]
    with working(names, options.realtime, TAPEWRIGHT_CACHE="0") as workers:
        facts = {worker.name: worker.ask(make=sizes) for worker in workers}
        take_turns(workers, options.rounds, options.seconds)
        for worker in workers:
            facts[worker.name] |= worker.ask(peak=True)
    found = {}
    for worker in workers:
        name, row = worker.name, facts[worker.name]
        losses, expected = row["numbers"], facts[names[0]]["numbers"]
        if not np.allclose(losses, expected, rtol=2e-2):
            raise RuntimeError(
                f"losses of {name} are {losses}, losses of {names[0]} are {expected}"
            )
        found[name] = {
            "ms": round(statistics.median(worker.times) * 1e3, 6),
            "first": round(row["first"] * 1e3, 3),
            "peak": round(row["peak"], 1),
        }
    return found


def head(sweep, names):
    """Return the first lines of a table."""
    fixed = ", ".join([f"{key} {value}" for key, value in FIXED[sweep].items()])
    columns = [sweep, *[f"{name} ms" for name in names]]
    columns += [f"{names[0]} / {name}" for name in names[1:]]
    columns += [f"first ms, {name}" for name in names]
    columns += [f"peak MB, {name}" for name in names]
    rule = "|".join(["--:"] * len(columns))
    return f"\n### {sweep} ({fixed})\n\n| {' | '.join(columns)} |\n|{rule}|"


def table(size, found):
    """Return a line of a table, for the results of `measure` at one size."""
    cells = [str(size), *[_short(row["ms"]) for row in found.values()]]
    first, *others = found.values()
    cells += [f"{first['ms'] / row['ms']:.2f}" for row in others]
    cells += [f"{row['first']:.0f}" for row in found.values()]
    cells += [f"{row['peak']:.0f}" for row in found.values()]
    return f"| {' | '.join(cells)} |"


def _short(ms):
    return f"{ms:.3f}" if ms < 10 else f"{ms:.1f}"


def run(sweeps, options):
    """Measure sweeps; print and save each row."""
    names, results = options.peers, {"machine": machine.lines()}
    print(*[f"{title}: {text}" for title, text in results["machine"].items()], sep="\n")
    progress = tqdm(
        total=sum(map(len, sweeps.values())), file=sys.stderr, dynamic_ncols=True
    )
    for sweep, sizes in sweeps.items():
        progress.write(head(sweep, names))
        results[sweep] = {}
        for size in sizes:
            progress.set_postfix_str(f"{sweep} {size}")
            found = measure(names, {**FIXED[sweep], sweep: size}, options)
            results[sweep][str(size)] = found
            progress.write(table(size, found))
            progress.update()
            sys.stdout.flush()
            save(results, options.json)
    progress.close()
    return results


def show(results):
    """Print figures saved by `run`."""
    print(*[f"{title}: {text}" for title, text in results["machine"].items()], sep="\n")
    for sweep in [sweep for sweep in SWEEPS if sweep in results]:
        rows = results[sweep]
        print(head(sweep, list(next(iter(rows.values())))))
        for size, found in rows.items():
            print(table(size, found))


def picture(results, path):
    """Draw the time of a step: one panel per sweep, one line per implementation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sweeps = [sweep for sweep in SWEEPS if sweep in results]
    names = next(iter(results[sweeps[0]].values()))
    figure, axes = plt.subplots(
        1,
        len(sweeps),
        squeeze=False,
        figsize=(8, 3.6),
        layout="constrained",
    )
    for axis, sweep in zip(axes[0], sweeps):
        sizes = [int(size) for size in results[sweep]]
        for name in names:
            times = [row[name]["ms"] for row in results[sweep].values()]
            ours = name in IMPLEMENTATIONS[:3]
            style = {"linestyle": "-" if ours else "--", "marker": "o", "markersize": 4}
            axis.plot(sizes, times, label=LABELS.get(name, name), **style)
        axis.set(xscale="log", yscale="log", xlabel=sweep)
        axis.minorticks_off()
        axis.set_xticks(sizes[:: 1 + len(sizes) // 5], sizes[:: 1 + len(sizes) // 5])
        axis.set_title(
            ", ".join(f"{key} {value}" for key, value in FIXED[sweep].items()),
            fontsize="medium",
        )
        axis.yaxis.set_major_formatter("{x:g}")
        axis.grid(color="gainsboro")
    axes[0, 0].set_ylabel("ms per training step")
    lines = axes[0, 0].get_lines()
    figure.legend(handles=lines, loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="a few sizes of each sweep")
    add("--sweeps", default=",".join(SWEEPS), help="sweeps to run")
    add("--sizes", help="sizes to use instead of the defaults, e.g. 32,64")
    add("--read", metavar="FILE", help="show figures saved with --json")
    add("--picture", metavar="FILE", help="draw the times (matplotlib)")
    options = arguments(parser, IMPLEMENTATIONS, rounds=5, seconds=0.25)
    if options.quick:
        options.rounds = min(options.rounds, 3)
    asked = some_of(parser, "--sweeps", options.sweeps, SWEEPS)
    sweeps = {sweep: SWEEPS[sweep][options.quick] for sweep in asked}
    if options.sizes:
        sizes = [int(n) for n in options.sizes.split(",")]
        sweeps = dict.fromkeys(asked, sizes)
    if options.read:
        with open(options.read) as file:
            results = json.load(file)
        show(results)
    else:
        results = run(sweeps, options)
    if options.picture:
        picture(results, options.picture)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:])
    else:
        main()
