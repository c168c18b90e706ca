"""The cost of a train step by width, batch and depth, on each target and beside peers.

    python benchmarks/scaling.py                   (three sweeps, some 15 minutes)
    python benchmarks/scaling.py --quick           (a few sizes of each, two minutes)

The step is the same everywhere: a network of equally wide relu layers, softmax
cross-entropy, Adam, float32, from the same weights; the losses of the first steps must
agree. Each implementation has a process of its own, which is stopped while another has
its turn. Printed: medians in ms, ratios of the first one to the others, the time of the
first step (tracing and compilation included) and the peak of memory. Peers that are not
installed are left out.
"""

import argparse
import importlib.util
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time

import numpy as np

__all__ = ["measure", "table"]

# name -> (package, what is run)
IMPLEMENTATIONS = {
    "tapewright": ("tapewright", "traced by tw.function"),
    "tapewright_numpy": ("tapewright", "traced, on NumPy calls alone"),
    "tapewright_eager": ("tapewright", "eager"),
    "jax": ("jax", "jax.jit, buffers donated"),
    "torch": ("torch", "eager, fused Adam"),
    "torch_compile": ("torch", "torch.compile, fused Adam"),
    "tensorflow": ("tensorflow", "tf.function"),
}
USUAL = ["tapewright", "tapewright_numpy", "tapewright_eager", "jax", "torch"]

# name -> sizes, and those of --quick; what is not swept stays as it is in FIXED
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
CLASSES, EPSILON, CHECKED = 10, 1e-7, 4  # losses compared
# So low that the weights stay where they are: on one batch gradients would vanish within
# some hundred steps, and arithmetic on denormal numbers takes many times as long.
RATE = 1e-7


# ------------------------------------------------------------------- the step, by peer


def network(width, batch, depth):
    """``(weights, x, y)``: kernels and biases in turn, inputs, labels one-hot."""
    rng = np.random.default_rng(0)
    weights = []
    for rows, columns in [(width, width)] * depth + [(width, CLASSES)]:
        kernel = rng.standard_normal((rows, columns), np.float32)
        weights += [kernel * np.sqrt(2 / rows, dtype="f4"), np.zeros(columns, "f4")]
    x = rng.standard_normal((batch, width), np.float32)
    labels = rng.integers(CLASSES, size=batch)
    return weights, x, np.eye(CLASSES, dtype="f4")[labels]


def tensorflow_step(tf, weights, x, y, traced):
    """A step for tapewright and TensorFlow alike: a function that returns the loss."""
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


def jax_adam(loss_of, weights, x, y):
    """``(step, number)``: a step of Adam on ``loss_of(weights, x, y)``, compiled."""
    import jax
    import jax.numpy as jnp

    def train(state, x, y):
        weights, m, v, t = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        t = t + 1
        rate = RATE * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients)]
        v = [0.999 * a + 0.001 * g * g for a, g in zip(v, gradients)]
        triples = zip(weights, m, v)
        weights = [w - rate * a / (jnp.sqrt(b) + EPSILON) for w, a, b in triples]
        return (weights, m, v, t), loss

    train = jax.jit(train, donate_argnums=0)
    weights, x, y = [jnp.asarray(w) for w in weights], jnp.asarray(x), jnp.asarray(y)
    m, v = ([jnp.zeros_like(w) for w in weights] for _ in range(2))
    state = weights, m, v, jnp.zeros(())

    def step():
        nonlocal state
        state, loss = train(state, x, y)
        return jax.block_until_ready(loss)

    return step, float


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


def made(name, weights, x, y):
    """``(step, number)`` of an implementation; ``number`` reads a loss."""
    if name == "jax":
        return jax_step(weights, x, y)
    if name.startswith("torch"):
        return torch_step(weights, x, y, name == "torch_compile")
    package = importlib.import_module(IMPLEMENTATIONS[name][0])
    return tensorflow_step(package, weights, x, y, name != "tapewright_eager")


# ------------------------------------------------------------------------- the worker


def work(name, width, batch, depth, realtime):
    """The life of a process: one step made, then timed whenever a line asks for it."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries may print

    def answer(**values):
        answers.write(json.dumps(values) + "\n")

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    weights, x, y = network(width, batch, depth)
    importlib.import_module(IMPLEMENTATIONS[name][0])
    for thread in os.listdir("/proc/self/task") if realtime else ():
        os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))
    begin = time.perf_counter()
    step, number = made(name, weights, x, y)
    del weights, x, y
    losses = [number(step())]
    first = time.perf_counter() - begin
    losses += [number(step()) for _ in range(CHECKED - 1)]
    answer(first=first, losses=losses)
    for line in sys.stdin:
        answer(times=timed(step, number, json.loads(line)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer(peak=peak)


def timed(step, number, seconds):
    """Seconds a step, of several runs of steps that take ``seconds`` in all."""
    step()
    begin = time.perf_counter()
    number(step())
    count = max(1, int(seconds / 8 / (time.perf_counter() - begin)))
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(count):
            loss = step()
        number(loss)
        times.append((time.perf_counter() - begin) / count)
    return times


class Worker:
    """The process of one implementation, stopped between its turns."""

    def __init__(self, name, sizes, realtime):
        self.name, self.times = name, []
        sizes = [sizes[key] for key in ("width", "batch", "depth")]
        target = "numpy" if name == "tapewright_numpy" else "auto"
        arguments = [name, *map(str, [*sizes, int(realtime)])]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TAPEWRIGHT_TARGET": target},
        )
        self.facts = self.read()
        self.send(signal.SIGSTOP)

    def send(self, number):
        os.kill(self.process.pid, number)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended: see its message above")
        return json.loads(line)

    def turn(self, seconds):
        self.send(signal.SIGCONT)
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        self.times += self.read()["times"]
        self.send(signal.SIGSTOP)

    def end(self):
        self.send(signal.SIGCONT)
        self.process.stdin.close()
        self.facts |= self.read()
        self.process.wait()


# ------------------------------------------------------------------------- the sweeps


def measure(names, sizes, rounds, seconds, realtime=False):
    """For each implementation a dict: ``ms``, ``first`` (ms), ``peak`` (MB), ``losses``.

    Args: ``sizes``: a dict with ``width``, ``batch``, ``depth``.
    Raises: ``RuntimeError`` where one of them computes something else than the first.
    """
    workers = []
    try:
        for name in names:
            workers.append(Worker(name, sizes, realtime))
        for i in range(rounds):
            at = i % len(workers)
            for worker in workers[at:] + workers[:at]:
                worker.turn(seconds)
        for worker in workers:
            worker.end()
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()
    found = {}
    for worker in workers:
        facts = worker.facts
        if not np.allclose(facts["losses"], workers[0].facts["losses"], rtol=2e-2):
            raise RuntimeError(
                f"{worker.name}: other losses, {facts['losses']}, than {names[0]}: "
                f"{workers[0].facts['losses']}"
            )
        ms = statistics.median(worker.times) * 1e3
        first = facts["first"] * 1e3
        found[worker.name] = {"ms": ms, "first": first, "peak": facts["peak"]}
        found[worker.name]["losses"] = facts["losses"]
    return found


def head(sweep, names):
    """The first lines of a table."""
    fixed = ", ".join([f"{key} {value}" for key, value in FIXED[sweep].items()])
    columns = [sweep, *[f"{name} ms" for name in names]]
    columns += [f"tapewright / {name}" for name in names[1:]]
    columns += [f"first ms, {name}" for name in names]
    columns += [f"peak MB, {name}" for name in names]
    rule = "|".join(["--:"] * len(columns))
    return f"\n### {sweep} ({fixed})\n\n| {' | '.join(columns)} |\n|{rule}|"


def table(size, found):
    """A line of a table, for what `measure` found at one size."""
    cells = [str(size), *[_short(row["ms"]) for row in found.values()]]
    first, *others = found.values()
    cells += [f"{first['ms'] / row['ms']:.2f}" for row in others]
    cells += [f"{row['first']:.0f}" for row in found.values()]
    cells += [f"{row['peak']:.0f}" for row in found.values()]
    return f"| {' | '.join(cells)} |"


def _short(ms):
    return f"{ms:.3f}" if ms < 10 else f"{ms:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="a few sizes of each sweep"
    )
    parser.add_argument("--sweeps", default=",".join(SWEEPS), help="some of them")
    parser.add_argument("--sizes", help="others than the usual, e.g. 32,64")
    parser.add_argument(
        "--peers", help="implementations: " + ", ".join(IMPLEMENTATIONS)
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.25, help="of a turn")
    parser.add_argument(
        "--realtime", action="store_true", help="outrank all else (root)"
    )
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    names = options.peers.split(",") if options.peers else USUAL
    names = [n for n in names if importlib.util.find_spec(IMPLEMENTATIONS[n][0])]
    rounds = min(options.rounds, 3) if options.quick else options.rounds
    results = {}
    for sweep in options.sweeps.split(","):
        sizes = SWEEPS[sweep][1 if options.quick else 0]
        if options.sizes:
            sizes = [int(n) for n in options.sizes.split(",")]
        print(head(sweep, names), flush=True)
        for size in sizes:
            all_sizes = {**FIXED[sweep], sweep: size}
            args = names, all_sizes, rounds, options.seconds, options.realtime
            found = measure(*args)
            results.setdefault(sweep, {})[size] = found
            print(table(size, found), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main()
