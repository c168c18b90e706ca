"""Compare steps of common models on each target with JAX, PyTorch and TensorFlow.

    python benchmarks/native.py                     (four workloads, three minutes)
    python benchmarks/native.py --works mlp,row --peers jax,torch --rounds 3

``mlp``: a training step of an MLP 784-128-10, batch 128, with Adam. ``transformer``: a
training step of a block with 4 heads, batch 16, 64 tokens of width 128, with Adam.
``lstm``: an LSTM of 64 units over [32, 50, 32] and all its gradients. ``row``: one row
through an MLP 784-128-10.

Each implementation runs in its own process, which is stopped while another one runs. All
start from the same weights and must compute the same numbers. The script prints the median
time of a step, the ratio of the native target to it, and the time of the first call,
including tracing and compilation. The cache of machine code is disabled, unless ``--cached``
is given; an extra run then fills it first. Peers that are not installed are skipped.
"""

import argparse
import importlib
import statistics
import sys

import numpy as np
from scaling import jax_adam, jax_step, tensorflow_step, torch_step
from turns import PACKAGES, arguments, save, serve, take_turns, working

__all__ = ["measure"]

IMPLEMENTATIONS = ["native", "numpy", "jax", "torch", "torch_compile", "tensorflow"]
RATE, EPSILON = 1e-7, 1e-7  # for the low rate, see `scaling`
HEADS = 4


def glorot(rng, *shape):
    limit = np.sqrt(6 / (np.prod(shape[:-1]) + shape[-1]))
    return rng.uniform(-limit, limit, shape).astype("f4")


def zeros(*shape):
    return np.zeros(shape, "f4")


# ------------------------------------------------------------------------------- mlp


def mlp(name):
    rng = np.random.default_rng(1)
    weights = [glorot(rng, 784, 128), zeros(128), glorot(rng, 128, 10), zeros(10)]
    x = rng.random((128, 784), "f4")
    y = np.eye(10, dtype="f4")[rng.integers(10, size=128)]
    if name == "jax":
        return jax_step(weights, x, y)
    if name.startswith("torch"):
        return torch_step(weights, x, y, name == "torch_compile")
    return tensorflow_step(package(name), weights, x, y, traced=True)


def package(name):
    return importlib.import_module(PACKAGES[name])


# ----------------------------------------------------------------------- transformer


def transformer(name):
    """``h = x + attention(norm(x)); h + dense(gelu(dense(norm(h))))``, squared error."""
    rng, n = np.random.default_rng(2), 128
    attention = []
    for _ in range(3):
        attention += [
            glorot(rng, n, n).reshape(n, HEADS, n // HEADS),
            zeros(HEADS, n // HEADS),
        ]
    attention += [glorot(rng, n, n).reshape(HEADS, n // HEADS, n), zeros(n)]
    norm = [np.ones(n, "f4"), zeros(n)]
    dense = [glorot(rng, n, 4 * n), zeros(4 * n), glorot(rng, 4 * n, n), zeros(n)]
    weights = [*norm, *attention, *norm, *dense]
    x, y = [rng.standard_normal((16, 64, n), "f4") for _ in range(2)]
    if name == "jax":
        return jax_transformer(weights, x, y)
    if name.startswith("torch"):
        return torch_transformer(weights, x, y, name == "torch_compile")
    return keras_transformer(package(name), weights, x, y)


def keras_transformer(tf, weights, x, y):
    layers = tf.keras.layers
    n = x.shape[-1]
    parts = [
        layers.LayerNormalization(epsilon=1e-5),
        layers.MultiHeadAttention(HEADS, n // HEADS),
        layers.LayerNormalization(epsilon=1e-5),
        layers.Dense(4 * n, activation="gelu"),
        layers.Dense(n),
    ]
    norm, attention, norm2, wide, narrow = parts

    def block(x):
        h = norm(x)
        x = x + attention(h, h)
        return x + narrow(wide(norm2(x)))

    x, y = tf.constant(x), tf.constant(y)
    block(x)
    given = iter(weights)
    for part in parts:
        part.set_weights([next(given) for _ in part.get_weights()])
    variables = [v for part in parts for v in part.trainable_variables]
    adam = tf.keras.optimizers.Adam(RATE, epsilon=EPSILON)
    adam.build(variables)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((block(x) - y) ** 2)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return (lambda: step(x, y)), (lambda loss: float(loss.numpy()))


def jax_transformer(weights, x, y):
    import jax
    import jax.numpy as jnp

    def norm(x, gamma, beta):
        x = x - x.mean(-1, keepdims=True)
        variance = (x * x).mean(-1, keepdims=True)
        return x * jax.lax.rsqrt(variance + 1e-5) * gamma + beta

    def loss_of(weights, x, y):
        g1, b1, wq, bq, wk, bk, wv, bv, wo, bo, g2, b2, w1, c1, w2, c2 = weights
        h = norm(x, g1, b1)
        pairs = ((wq, bq), (wk, bk), (wv, bv))
        q, k, v = [jnp.einsum("btn,nhd->bthd", h, w) + b for w, b in pairs]
        x = x + jnp.einsum("bthd,hdn->btn", jax.nn.dot_product_attention(q, k, v), wo)
        x = x + bo
        h = jax.nn.gelu(norm(x, g2, b2) @ w1 + c1, approximate=False)
        return ((x + h @ w2 + c2 - y) ** 2).mean()

    return jax_adam(loss_of, weights, x, y)


def torch_transformer(weights, x, y, compiled):
    import torch

    functional, n = torch.nn.functional, x.shape[-1]
    g1, b1, wq, bq, wk, bk, wv, bv, wo, bo, g2, b2, w1, c1, w2, c2 = weights
    joined = np.concatenate([w.reshape(n, n) for w in (wq, wk, wv)], 1)
    bias = np.concatenate([b.reshape(n) for b in (bq, bk, bv)])
    weights = [g1, b1, joined.T, bias, wo.reshape(n, n).T, bo, g2, b2]
    weights += [w1.T, c1, w2.T, c2]  # the layout of torch.nn.Linear
    weights = [torch.tensor(w.copy(), requires_grad=True) for w in weights]
    x, y = torch.tensor(x), torch.tensor(y)
    adam = torch.optim.Adam(weights, RATE, eps=EPSILON, fused=True)

    def loss_of(x, y):
        g1, b1, wqkv, bqkv, wo, bo, g2, b2, w1, c1, w2, c2 = weights
        linear, norm = functional.linear, functional.layer_norm
        h = linear(norm(x, (n,), g1, b1), wqkv, bqkv)
        parts = h.view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        h = functional.scaled_dot_product_attention(*parts)
        x = x + linear(h.transpose(1, 2).reshape(x.shape), wo, bo)
        h = functional.gelu(linear(norm(x, (n,), g2, b2), w1, c1))
        return functional.mse_loss(x + linear(h, w2, c2), y)

    loss_of = torch.compile(loss_of) if compiled else loss_of

    def step():
        adam.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        adam.step()
        return loss

    return step, (lambda loss: loss.item())


# ------------------------------------------------------------------------------ lstm


def lstm(name):
    """Compute all gradients of the squared outputs of each time step."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((32, 50, 32), "f4")
    kernel, recurrent = glorot(rng, 32, 256), glorot(rng, 64, 256)
    bias = zeros(256)
    bias[64:128] = 1
    weights = [kernel, recurrent, bias]
    if name == "jax":
        return jax_lstm(weights, x)
    if name.startswith("torch"):
        return torch_lstm(weights, x, name == "torch_compile")
    return keras_lstm(package(name), weights, x)


def keras_lstm(tf, weights, x):
    layer = tf.keras.layers.LSTM(64, return_sequences=True)
    x = tf.constant(x)
    layer(x)
    layer.set_weights(weights)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    return (lambda: step(x)), (lambda found: float(np.abs(found[1].numpy()).sum()))


def jax_lstm(weights, x):
    import jax
    import jax.numpy as jnp

    def loss_of(weights, x):
        kernel, recurrent, bias = weights
        projected = jnp.swapaxes(x @ kernel + bias, 0, 1)

        def cell(state, z):
            h, c = state
            i, f, g, o = jnp.split(z + h @ recurrent, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = (jnp.zeros((x.shape[0], 64)),) * 2
        return (jax.lax.scan(cell, start, projected)[1] ** 2).mean()

    gradient = jax.jit(jax.grad(loss_of))
    weights, x = [jnp.asarray(w) for w in weights], jnp.asarray(x)

    def step():
        return jax.block_until_ready(gradient(weights, x))

    return step, (lambda found: float(jnp.abs(found[1]).sum()))


def torch_lstm(weights, x, compiled):
    import torch

    layer, x = torch.nn.LSTM(32, 64, batch_first=True), torch.tensor(x)
    kernel, recurrent, bias = [torch.tensor(w) for w in weights]
    with torch.no_grad():
        layer.weight_ih_l0.copy_(kernel.T)
        layer.weight_hh_l0.copy_(recurrent.T)
        layer.bias_ih_l0.copy_(bias)
        layer.bias_hh_l0.zero_()

    def loss_of(x):
        return (layer(x)[0] ** 2).mean()

    loss_of = torch.compile(loss_of) if compiled else loss_of

    def step():
        layer.zero_grad()
        loss_of(x).backward()
        return layer.weight_hh_l0.grad

    return step, (lambda found: found.abs().sum().item())


# ------------------------------------------------------------------------------- row


def row(name):
    rng = np.random.default_rng(4)
    weights = [glorot(rng, 784, 128), zeros(128), glorot(rng, 128, 10), zeros(10)]
    x = rng.random((1, 784), "f4")
    if name == "jax":
        import jax

        @jax.jit
        def call(weights, x):
            w1, b1, w2, b2 = weights
            return jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)

        weights, x = [jax.numpy.asarray(w) for w in weights], jax.numpy.asarray(x)
        return (lambda: jax.block_until_ready(call(weights, x))), _first
    if name.startswith("torch"):
        return torch_row(weights, x, name == "torch_compile")
    tf = package(name)
    w1, b1, w2, b2 = [tf.Variable(w) for w in weights]

    @tf.function
    def call(x):
        h = tf.nn.relu(tf.matmul(x, w1) + b1)
        return tf.nn.softmax(tf.matmul(h, w2) + b2)

    x = tf.constant(x)
    return (lambda: call(x)), _first


def torch_row(weights, x, compiled):
    import torch

    w1, b1, w2, b2 = [torch.tensor(w) for w in weights]
    x = torch.tensor(x)

    def call(x):
        h = torch.relu(torch.addmm(b1, x, w1))
        return torch.softmax(torch.addmm(b2, h, w2), -1)

    call = torch.compile(call) if compiled else call

    def step():
        with torch.inference_mode():
            return call(x)

    return step, _first


def _first(outputs):
    return float(np.asarray(outputs)[0, 0])


WORKS = {"mlp": mlp, "transformer": transformer, "lstm": lstm, "row": row}


# ---------------------------------------------------------------------- measurements


def make(name, which):
    return WORKS[which](name)


def measure(names, which, options):
    """Return the median and the first call of each implementation, in ms.

    Raises:
        RuntimeError: If an implementation computes other numbers than the first one.
    """
    cache = {} if options.cached else {"TAPEWRIGHT_CACHE": "0"}
    with working(names, options.realtime, **cache) as workers:
        facts = {worker.name: worker.ask(make=[which]) for worker in workers}
        take_turns(workers, options.rounds, options.seconds)
    expected = facts[names[0]]["numbers"]
    for name in names:
        numbers = facts[name]["numbers"]
        if not np.allclose(numbers, expected, rtol=1e-2):
            raise RuntimeError(f"{name}: {numbers}, {names[0]}: {expected}")
    return {
        worker.name: {
            "ms": statistics.median(worker.times) * 1e3,
            "first": facts[worker.name]["first"] * 1e3,
        }
        for worker in workers
    }


def table(which, found):
    """Return the results of `measure` as lines of a table."""
    lines = [f"\n### {which}\n", "| | ms | native / it | first call, ms |"]
    lines.append("| --- | --: | --: | --: |")
    ours = found.get("native")
    for name, row in found.items():
        ratio = f"{ours['ms'] / row['ms']:.2f}" if ours else ""
        lines.append(f"| {name} | {row['ms']:.4g} | {ratio} | {row['first']:.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", default=",".join(WORKS), help="workloads to run")
    parser.add_argument("--cached", action="store_true", help="use cached machine code")
    options = arguments(parser, IMPLEMENTATIONS, rounds=5, seconds=0.3)
    names = options.peers
    results = {}
    for which in options.works.split(","):
        if options.cached and "native" in names:
            with working(["native"]) as [worker]:
                worker.ask(make=[which])
        results[which] = measure(names, which, options)
        print(table(which, results[which]), flush=True)
    save(results, options.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:])
    else:
        main()
