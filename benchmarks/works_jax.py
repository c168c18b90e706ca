"""Workloads in JAX: each step is one compiled function that donates its state."""

import os

import jax
import jax.numpy as jnp
import numpy as np
from works import (
    BETA_1,
    BETA_2,
    CHAIN,
    CHECKED,
    DERIVATIVES,
    EPSILON,
    FILES,
    PENALTIES,
    RATES,
    arrays,
    batch_of,
    sums,
    weights_of,
)

__all__ = ["make"]


def make(name, work, tiny, device, folder):
    """Return ``(step, numbers)`` of a workload on ``"GPU"`` or ``"CPU"``."""
    place = jax.devices("gpu" if device == "GPU" else "cpu")[0]
    if place != jax.devices()[0]:
        jax.config.update("jax_default_device", place)
    data, work = arrays(work, tiny), work.removesuffix("_8")
    if work in FILES:
        return _file(work, data, folder)
    if work.startswith("ops"):
        return _ops(work, CHAIN[tiny], jnp.asarray(data["x"]))
    if work in DERIVATIVES:
        return _derivative(work, [jnp.asarray(value) for value in data.values()])
    weights = [jnp.asarray(data[key]) for key in weights_of(data)]
    given = [jnp.asarray(data[key]) for key in ("x", "y", "z") if key in data]
    if work == "row":
        return _row(weights, *given)
    train, state = _trained(work, weights)
    if work == "epoch":
        return _epoch(train, state, *given, batch_of(tiny))
    first = jax.device_get(state)

    def step():
        nonlocal state
        state, loss = train(state, *given)
        return loss

    def reset():
        nonlocal state
        state = jax.tree.map(jnp.array, first)

    step.reset = reset
    return _waits(step), (lambda loss: [float(loss), *_sums(state)])


def _waits(step):
    step.wait = lambda outputs: outputs.block_until_ready()
    return step


def _sums(state):
    return [float(jnp.abs(w).sum()) for w in state[0]]


def _trained(work, weights):
    """Return the compiled step and its initial state: weights, moments, count, others."""
    zeros = [jnp.zeros_like(w) for w in weights]
    moving = []
    if work == "W4":
        moving = [make(weights[2]) for make in (jnp.zeros_like, jnp.ones_like) * 2]
    state = weights, zeros, [jnp.zeros_like(w) for w in weights], jnp.zeros(()), moving

    def train(state, *given):
        weights, m, v, t, moving = state
        loss, gradients, moving = GRADIENTS[work](weights, moving, *given)
        if work == "W3":
            pairs = zip(weights, gradients, strict=True)
            return ([w - RATES[work] * g for w, g in pairs], m, v, t, moving), loss
        t = t + 1
        weights, m, v = _adam(weights, m, v, gradients, t, RATES[work])
        return (weights, m, v, t, moving), loss

    return jax.jit(train, donate_argnums=0), state


def _adam(weights, m, v, gradients, t, rate, beta_1=BETA_1):
    """Return the weights and the moments after step ``t``."""
    rate = rate * jnp.sqrt(1 - BETA_2**t) / (1 - beta_1**t)
    m = [beta_1 * a + (1 - beta_1) * g for a, g in zip(m, gradients, strict=True)]
    v = [BETA_2 * a + (1 - BETA_2) * g * g for a, g in zip(v, gradients, strict=True)]
    triples = zip(weights, m, v, strict=True)
    return [w - rate * a / (jnp.sqrt(b) + EPSILON) for w, a, b in triples], m, v


def _dense(x, w1, b1, w2, b2):
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def _entropies(y, logits):
    return -(y * jax.nn.log_softmax(logits)).sum(-1)


def _by_loss(loss_of):
    """Return ``(loss, gradients, moving)`` of a loss without other state."""

    def gradients(weights, moving, *given):
        return *jax.value_and_grad(loss_of)(weights, *given), moving

    return gradients


def _mlp(weights, moving, x, y):
    def loss_of(p):
        penalty = (p[0] ** 2).sum() + (p[2] ** 2).sum()
        return _entropies(y, _dense(x, *p)).mean() + PENALTIES["W1"] * penalty

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    norms = [jnp.sqrt((g * g).sum()) for g in gradients]
    clipped = [g / jnp.maximum(n, 1.0) for g, n in zip(gradients, norms, strict=True)]
    return loss, clipped, moving


def _gan(weights, moving, x, z):
    def losses(g, d):
        fake = jnp.tanh(_dense(z, *g))
        real, made = _dense(x, *d), _dense(fake, *d)
        softplus = jax.nn.softplus
        d_loss = softplus(-real).mean() + softplus(made).mean()
        return d_loss, softplus(-made).mean()

    g, d = weights[:4], weights[4:]
    g_loss, of_g = jax.value_and_grad(lambda g: losses(g, d)[1])(g)
    d_loss, of_d = jax.value_and_grad(lambda d: losses(g, d)[0])(d)
    return d_loss + g_loss, of_g + of_d, moving


def _penalized(p, x, y):
    total, slope = jax.value_and_grad(lambda x: _entropies(y, _dense(x, *p)).sum())(x)
    return total / len(x) + PENALTIES["W3"] * (slope**2).sum(1).mean()


def _normalized(weights, moving, x, y):
    def hidden(x, w, gamma, beta, mean, variance):
        y = x @ w
        m, v = y.mean(0), y.var(0)
        moved = [mean * 0.99 + m * 0.01, variance * 0.99 + v * 0.01]
        y = (y - m) * jax.lax.rsqrt(v + 1e-3) * gamma + beta
        return jax.nn.relu(y), moved

    def loss_of(p):
        h, first = hidden(x, *p[:3], *moving[:2])
        h, second = hidden(h, *p[3:6], *moving[2:])
        return _entropies(y, h @ p[6] + p[7]).mean(), first + second

    (loss, moved), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
    return loss, gradients, moved


def _convnet(p, x, y):
    def hidden(x, kernel, bias):
        numbers = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "VALID", dimension_numbers=numbers
        )
        window = (1, 2, 2, 1)
        return jax.lax.reduce_window(
            jax.nn.relu(y + bias), -jnp.inf, jax.lax.max, window, window, "VALID"
        )

    k1, c1, k2, c2, w3, b3 = p
    h = hidden(hidden(x, k1, c1), k2, c2)
    return _entropies(y, h.reshape(len(x), -1) @ w3 + b3).mean()


def _classified(p, x, y):
    log = jax.nn.log_softmax(_dense(x, *p))
    return -jnp.take_along_axis(log, y[:, None], 1).mean()


GRADIENTS = {
    "W1": _mlp,
    "W2": _gan,
    "W3": _by_loss(_penalized),
    "W4": _normalized,
    "W10": _by_loss(_convnet),
    "epoch": _by_loss(_classified),
}


def _row(weights, x):
    call = jax.jit(lambda weights, x: jax.nn.softmax(_dense(x, *weights)))

    step = _waits(lambda: call(weights, x))
    return step, (lambda outputs: np.asarray(outputs).ravel().tolist())


def _epoch(train, state, x, y, batch):
    def train_rows(state, x, y, order, first, count):
        rows = jax.lax.dynamic_slice_in_dim(order, first, count)
        return train(state, x[rows], y[rows])

    train_rows = jax.jit(train_rows, static_argnums=5, donate_argnums=0)
    epochs, rng, initial = 0, np.random.default_rng(0), jax.device_get(state)

    def step():
        nonlocal epochs, state
        epochs += 1
        order = rng.permutation(len(x)) if epochs > CHECKED else np.arange(len(x))
        order = jnp.asarray(order)
        for first in range(0, len(x), batch):
            given = order, np.int32(first), min(batch, len(x) - first)
            state, loss = train_rows(state, x, y, *given)
        return float(loss)

    def reset():
        nonlocal state
        state = jax.tree.map(jnp.array, initial)

    step.reset = reset
    return step, (lambda loss: _sums(state))


def _ops(work, rounds, x):
    def chain(x):
        for _ in range(rounds):
            x = x * 1.01
            x = x + 0.01
            x = jnp.tanh(x)
            x = x - 0.02
        return x

    gradient = jax.grad(lambda x: chain(x).sum())
    call = jax.jit(gradient if work == "ops_gradient" else chain)
    return _waits(lambda: call(x)), (lambda outputs: np.asarray(outputs).tolist())


def _derivative(work, given):
    def dense(x, w1, b1, w2, b2):
        return jax.nn.elu(jax.nn.elu(x @ w1 + b1) @ w2 + b2)

    call = jax.jacrev(dense)
    if work == "batch_jacobian":
        call = jax.vmap(jax.jacrev(dense), (0, *[None] * (len(given) - 1)))
    elif work == "hessian":
        call = jax.hessian(lambda x, k: (jnp.tanh(x @ k) ** 2).mean(), argnums=1)
    call = jax.jit(call)
    return _waits(lambda: call(*given)), (lambda outputs: sums([outputs]))


def _file(work, data, folder):
    """Write or read a NumPy file of arrays: JAX has no file format."""
    path = os.path.join(folder, "jax.npz")
    weights = {key: jnp.asarray(value) for key, value in data.items()}

    def write():
        np.savez(path, **weights)

    def read():
        with np.load(path) as arrays:
            found = {key: jnp.asarray(arrays[key]) for key in weights}
        return jax.block_until_ready(found)

    if work == "write":
        return write, (lambda _: sums(read().values()))
    write()
    return read, (lambda found: sums(found.values()))
