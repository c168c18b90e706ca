"""`works_programs` in JAX: each step is one compiled function that donates its state."""

import jax
import jax.numpy as jnp
from works import weights_of
from works_jax import _adam
from works_programs import (
    BETAS_1,
    LEAK,
    NORM_EPSILON,
    PENALTY,
    QKV,
    RATES,
    SIZES,
    VISCOSITY,
    arrays,
    checked,
    unfused,
)

__all__ = ["make"]

NHWC = ("NHWC", "HWIO", "NHWC")


def make(name, work, tiny, device, folder):
    """Return ``(step, numbers)`` of a workload on ``"GPU"`` or ``"CPU"``."""
    place = jax.devices("gpu" if device == "GPU" else "cpu")[0]
    if place != jax.devices()[0]:
        jax.config.update("jax_default_device", place)
    data = arrays(work, tiny)
    given = {key: jnp.asarray(data[key]) for key in ("x", "y", "z") if key in data}
    weights = _layout({key: jnp.asarray(data[key]) for key in weights_of(data)})
    train, state = _trained(work, weights, SIZES[work][tiny])
    first = jax.device_get(state)

    def step():
        nonlocal state
        state, losses = train(state, given)
        return losses

    def reset():
        nonlocal state
        state = jax.tree.map(jnp.array, first)

    def numbers(losses):
        sizes = [jnp.abs(unfused(state[0], key)).sum() for key in checked(data)]
        return [float(value) for value in (*losses, *sizes)]

    step.wait, step.reset = jax.block_until_ready, reset
    return step, numbers


def _layout(weights):
    """Fuse queries, keys and values; reorder the axes of depthwise kernels."""
    found = {}
    for name, weight in weights.items():
        if QKV[0] in name:
            parts = [weights[name.replace(QKV[0], part)] for part in QKV]
            found[name.replace(QKV[0], "qkv")] = jnp.stack(parts)
        elif name.endswith("depthwise"):
            found[name] = weight.swapaxes(2, 3)
        elif not any(part in name for part in QKV):
            found[name] = weight
    return found


def _trained(work, weights, sizes):
    """Return the compiled step and its initial state: weights, moments, count, others."""
    m, v = [jax.tree.map(jnp.zeros_like, weights) for _ in range(2)]
    moving = {  # means and variances of BatchNormalization
        name.removesuffix("_gamma"): (jnp.zeros_like(w), jnp.ones_like(w))
        for name, w in weights.items()
        if name.endswith("gamma") and work != "gpt"
    }

    def train(state, given):
        weights, m, v, t, moving = state
        t, losses = t + 1, []
        for loss_of, prefix in PHASES[work]:
            names = [name for name in weights if name.startswith(prefix)]

            def loss(some, loss_of=loss_of, weights=weights, moving=moving):
                moving = dict(moving)
                return loss_of(weights | some, given, moving, sizes), moving

            some = {name: weights[name] for name in names}
            (value, moving), gradients = jax.value_and_grad(loss, has_aux=True)(some)
            losses.append(value)
            lists = [
                [each[name] for name in names] for each in (weights, m, v, gradients)
            ]
            updated = _adam(*lists, t, RATES[work], BETAS_1[work])
            weights, m, v = [
                each | dict(zip(names, new, strict=True))
                for each, new in zip((weights, m, v), updated, strict=True)
            ]
        return (weights, m, v, t, moving), losses

    state = weights, m, v, jnp.zeros(()), moving
    return jax.jit(train, donate_argnums=0), state


# -------------------------------------------------------------------------- the losses
#
# Each has weights, inputs, moving averages, which it updates, and sizes.


def _dense(p, name, x):
    return x @ p[f"{name}_kernel"] + p[f"{name}_bias"]


def _entropy(logits, y):
    log = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log, y[..., None], -1).mean()


def _gpt(p, c, moving, sizes):
    def normed(name, x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(variance + NORM_EPSILON)
        return x * p[f"{name}_gamma"] + p[f"{name}_beta"]

    x = p["tokens"][c["x"]] + p["positions"]
    for i in range(sizes[4]):
        at = f"block{i}_"
        kernel, bias = p[f"{at}qkv_kernel"], p[f"{at}qkv_bias"]
        y = jnp.einsum("btw,cwhd->cbthd", normed(f"{at}norm1", x), kernel)
        y = jax.nn.dot_product_attention(*(y + bias[:, None, None]), is_causal=True)
        y = jnp.einsum("bthd,hdw->btw", y, p[f"{at}output_kernel"])
        x = x + y + p[f"{at}output_bias"]
        y = jax.nn.gelu(_dense(p, f"{at}widen", normed(f"{at}norm2", x)), False)
        x = x + _dense(p, f"{at}narrow", y)
    return _entropy(_dense(p, "head", normed("norm", x)), c["y"])


def _conv(x, kernel, strides=1, groups=1):
    return jax.lax.conv_general_dilated(
        x, kernel, (strides, strides), "SAME",
        dimension_numbers=NHWC, feature_group_count=groups,
    )  # fmt: skip


def _batch_normed(p, moving, name, x):
    m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
    mean, variance = moving[name]
    moving[name] = mean * 0.99 + m * 0.01, variance * 0.99 + v * 0.01
    x = (x - m) * jax.lax.rsqrt(v + NORM_EPSILON)
    return x * p[f"{name}_gamma"] + p[f"{name}_beta"]


def _xception(p, c, moving, sizes):
    def separable(name, x):
        x = _conv(x, p[f"{name}_depthwise"], groups=x.shape[-1])
        x = _conv(x, p[f"{name}_pointwise"])
        return _batch_normed(p, moving, f"{name}_norm", x)

    x = _conv(c["x"], p["stem_kernel"], 2)
    x = residual = jax.nn.relu(_batch_normed(p, moving, "stem_norm", x))
    for i in range(len(sizes[3])):
        at = f"block{i}_"
        for part in "first", "second":
            x = separable(f"{at}{part}", jax.nn.relu(x))
        window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "SAME")
        residual = _conv(residual, p[f"{at}residual_kernel"], 2)
        x = residual = x + residual + p[f"{at}residual_bias"]
    x = jax.nn.relu(separable("last", x)).mean((1, 2))
    return _entropy(_dense(p, "head", x), c["y"])


def _scores(p, x, sizes):
    for i in range(len(sizes[3])):
        x = _conv(x, p[f"critic_conv{i}_kernel"], 2) + p[f"critic_conv{i}_bias"]
        x = jax.nn.leaky_relu(x, LEAK)
    return _dense(p, "critic_score", x.reshape(len(x), -1))


def _images(p, noise, moving, sizes):
    _, side, _, channels = sizes
    x, small = _dense(p, "generator_seed", noise), side // 2 ** len(channels)
    x = x.reshape(len(noise), small, small, -1)
    for i in range(len(channels)):
        x = jax.nn.leaky_relu(_batch_normed(p, moving, f"generator_norm{i}", x), LEAK)
        x = jax.lax.conv_transpose(
            x, p[f"generator_kernel{i}"], (2, 2), "SAME",
            dimension_numbers=NHWC, transpose_kernel=True,
        )  # fmt: skip
    x = _conv(x, p["generator_image_kernel"]) + p["generator_image_bias"]
    return jnp.tanh(x)


def _critic(p, c, moving, sizes):
    images = c["x"]
    made = _images(p, c["z"][0], moving, sizes)
    slope = jax.grad(lambda x: _scores(p, x, sizes).sum())
    slopes = slope(images + c["y"] * (made - images))
    norms = jnp.sqrt((slopes * slopes).sum((1, 2, 3)) + 1e-12)
    gap = _scores(p, made, sizes).mean() - _scores(p, images, sizes).mean()
    return gap + PENALTY * ((norms - 1.0) ** 2).mean()


def _generator(p, c, moving, sizes):
    return -_scores(p, _images(p, c["z"][1], moving, sizes), sizes).mean()


def _pinn(p, c, moving, sizes):
    depth = len(sizes[2])

    def wave(x):
        for i in range(depth):
            x = jnp.tanh(_dense(p, f"dense{i}", x))
        return _dense(p, f"dense{depth}", x)

    def residual(t, x):
        def along(of, x):  # of one point: value and derivative
            return jax.jvp(of, (x,), (jnp.ones_like(x),))

        def u(t, x):
            return wave(jnp.stack([t, x]))[0]

        (value, u_x), (_, u_xx) = along(lambda x: along(lambda x: u(t, x), x), x)
        _, u_t = along(lambda t: u(t, x), t)
        return u_t + value * u_x - VISCOSITY * u_xx

    residuals = jax.vmap(residual)(c["x"][:, 0], c["x"][:, 1])
    return (residuals**2).mean() + ((wave(c["z"]) - c["y"]) ** 2).mean()


# Phases of a step, each with the prefix of the weights that it updates.
PHASES = {
    "gpt": ((_gpt, ""),),
    "xception": ((_xception, ""),),
    "wgan_gp": ((_critic, "critic"), (_generator, "generator")),
    "pinn": ((_pinn, ""),),
}
