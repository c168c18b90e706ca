"""`works_programs` in PyTorch: eager, and compiled with ``mode="reduce-overhead"``.

Images and kernels are mirrored. So torch's symmetric padding of strided convolutions and
pooling has the numbers of Keras' padding, with one more element at the end than at the
start, and needs no operation of its own.
"""

import torch
from torch.nn import functional
from works import BETA_2
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
from works_torch import _adam, _fused_step, _reset

__all__ = ["make"]


def make(name, work, tiny, device, folder):
    """Return ``(step, numbers)`` of a workload on ``"GPU"`` or ``"CPU"``."""
    place = torch.device("cuda" if device == "GPU" else "cpu")
    data = arrays(work, tiny)
    tensors = {key: torch.as_tensor(array.copy()) for key, array in data.items()}
    given = {key: tensors.pop(key) for key in ("x", "y", "z") if key in data}
    if given["x"].ndim == 4:
        given["x"] = _mirrored(given["x"].permute(0, 3, 1, 2))
    weights = LAYOUTS.get(work, lambda weights: weights)(tensors)
    weights = {key: _layout(key, value) for key, value in weights.items()}
    weights, given = [
        {key: value.contiguous().to(place) for key, value in found.items()}
        for found in (weights, given)
    ]
    sizes = SIZES[work][tiny]
    train = (_Compiled if name == "torch_compile" else _Eager)(work, weights, sizes)

    def step():
        return train(given)

    def numbers(losses):
        with torch.no_grad():
            sizes = [unfused(train.p, key).abs().sum() for key in checked(data)]
        return [value.item() for value in (*losses, *sizes)]

    step.wait, step.reset = (lambda losses: losses[-1].item()), train.reset
    return step, numbers


# -------------------------------------------------------------------------- the layout


def _mirrored(images):
    return images.flip(2, 3)


def _layout(name, weight):
    """Return a weight as torch's layers have it, mirrored if it is a convolution's."""
    if name.endswith("depthwise"):
        return _mirrored(weight.permute(2, 3, 0, 1))
    if weight.ndim == 4:
        return _mirrored(weight.permute(3, 2, 0, 1))
    return weight.T if name.endswith("kernel") else weight


def _fuse(weights):
    """Fuse the kernels and biases of queries, keys and values."""
    found, width = {}, weights["norm_gamma"].numel()
    for name, weight in weights.items():
        if QKV[0] in name:
            parts = [weights[name.replace(QKV[0], part)] for part in QKV]
            axis = 1 if name.endswith("kernel") else 0
            parts = [part.reshape(*[width] * (axis + 1)) for part in parts]
            found[name.replace(QKV[0], "qkv")] = torch.cat(parts, axis)
        elif name.endswith("output_kernel"):
            found[name] = weight.reshape(width, width)
        elif not any(part in name for part in QKV):
            found[name] = weight
    return found


def _flatten(weights):
    """Reorder what is flattened from ``[n, side, side, channels]`` for torch."""
    channels = weights["generator_norm0_gamma"].numel()
    side = round((weights["generator_seed_bias"].numel() / channels) ** 0.5)
    shape = -1, side, side, channels
    for name in "critic_score_kernel", "generator_seed_kernel", "generator_seed_bias":
        columns = weights[name].T if "critic" in name else weights[name]
        columns = _mirrored(columns.reshape(shape).permute(0, 3, 1, 2)).flatten(1)
        weights[name] = columns.T if "critic" in name else columns
    weights["generator_seed_bias"] = weights["generator_seed_bias"][0]
    return weights


LAYOUTS = {"gpt": _fuse, "wgan_gp": _flatten}


# -------------------------------------------------------------------------- the losses
#
# Each has weights, inputs, moving averages, ``slope(function, x)`` and sizes. The function
# returns a scalar and another result; its slope is the gradient and the other result.


def _linear(p, name, x):
    return functional.linear(x, p[f"{name}_kernel"], p[f"{name}_bias"])


def _gpt(p, c, moving, slope, sizes):
    batch, length, width, heads, blocks, _ = sizes

    def normed(name, x):
        scale = p[f"{name}_gamma"], p[f"{name}_beta"]
        return functional.layer_norm(x, (width,), *scale, NORM_EPSILON)

    x = functional.embedding(c["x"], p["tokens"]) + p["positions"]
    for i in range(blocks):
        at = f"block{i}_"
        y = _linear(p, f"{at}qkv", normed(f"{at}norm1", x))
        q, k, v = y.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, width)
        x = x + _linear(p, f"{at}output", y)
        y = functional.gelu(_linear(p, f"{at}widen", normed(f"{at}norm2", x)))
        x = x + _linear(p, f"{at}narrow", y)
    logits = _linear(p, "head", normed("norm", x))
    return functional.cross_entropy(logits.flatten(0, 1), c["y"].flatten())


def _batch_normed(p, moving, name, x):
    scale = p[f"{name}_gamma"], p[f"{name}_beta"]
    return functional.batch_norm(x, *moving[name], *scale, True, 0.01, NORM_EPSILON)


def _xception(p, c, moving, slope, sizes):
    conv2d = functional.conv2d

    def separable(name, x):
        depthwise = p[f"{name}_depthwise"]
        x = conv2d(x, depthwise, padding=1, groups=len(depthwise))
        x = conv2d(x, p[f"{name}_pointwise"])
        return _batch_normed(p, moving, f"{name}_norm", x)

    x = conv2d(c["x"], p["stem_kernel"], stride=2, padding=1)
    x = residual = torch.relu(_batch_normed(p, moving, "stem_norm", x))
    for i in range(len(sizes[3])):
        at = f"block{i}_"
        for part in "first", "second":
            x = separable(f"{at}{part}", torch.relu(x))
        x = functional.max_pool2d(x, 3, 2, padding=1)
        # Mirrored, the strides start at the last pixel of an even side.
        start = 1 - residual.shape[2] % 2
        residual = residual[:, :, start::2, start::2]
        residual = conv2d(residual, p[f"{at}residual_kernel"], p[f"{at}residual_bias"])
        x = residual = x + residual
    x = torch.relu(separable("last", x)).mean((2, 3))
    return functional.cross_entropy(_linear(p, "head", x), c["y"])


def _scores(p, x, sizes):
    for i in range(len(sizes[3])):
        kernel, bias = p[f"critic_conv{i}_kernel"], p[f"critic_conv{i}_bias"]
        x = functional.leaky_relu(functional.conv2d(x, kernel, bias, 2, 2), LEAK)
    return _linear(p, "critic_score", x.flatten(1))


def _images(p, noise, moving, sizes):
    _, side, _, channels = sizes
    x, small = _linear(p, "generator_seed", noise), side // 2 ** len(channels)
    x = x.view(len(noise), -1, small, small)
    for i in range(len(channels)):
        x = _batch_normed(p, moving, f"generator_norm{i}", x)
        kernel = p[f"generator_kernel{i}"]
        x = functional.leaky_relu(x, LEAK)
        x = functional.conv_transpose2d(x, kernel, None, 2, 2, output_padding=1)
    kernel, bias = p["generator_image_kernel"], p["generator_image_bias"]
    return torch.tanh(functional.conv2d(x, kernel, bias, padding=2))


def _critic(p, c, moving, slope, sizes):
    with torch.no_grad():
        made = _images(p, c["z"][0], moving, sizes)
    images = c["x"]
    slopes, _ = slope(
        lambda x: (_scores(p, x, sizes).sum(), ()), images + c["y"] * (made - images)
    )
    norms = torch.sqrt((slopes * slopes).sum((1, 2, 3)) + 1e-12)
    gap = _scores(p, made, sizes).mean() - _scores(p, images, sizes).mean()
    return gap + PENALTY * ((norms - 1.0) ** 2).mean()


def _generator(p, c, moving, slope, sizes):
    return -_scores(p, _images(p, c["z"][1], moving, sizes), sizes).mean()


def _pinn(p, c, moving, slope, sizes):
    depth = len(sizes[2])

    def wave(x):
        for i in range(depth):
            x = torch.tanh(_linear(p, f"dense{i}", x))
        return _linear(p, f"dense{depth}", x)

    def first(x):
        u = wave(x)
        return u.sum(), u

    def second(x):
        du, u = slope(first, x)
        return du[:, 1].sum(), (u, du)

    ddu, (u, du) = slope(second, c["x"])
    residual = du[:, 0] + u[:, 0] * du[:, 1] - VISCOSITY * ddu[:, 1]
    return (residual**2).mean() + ((wave(c["z"]) - c["y"]) ** 2).mean()


# Phases of a step, each with the prefix of the weights that it updates.
PHASES = {
    "gpt": ((_gpt, ""),),
    "xception": ((_xception, ""),),
    "wgan_gp": ((_critic, "critic"), (_generator, "generator")),
    "pinn": ((_pinn, ""),),
}


# --------------------------------------------------------------------------- the steps


class _Steps:
    """What eager and compiled steps share."""

    def __init__(self, work, weights, sizes):
        self.work, self.p, self.sizes = work, weights, sizes
        self.moving = {  # means and variances of BatchNormalization
            name.removesuffix("_gamma"): (torch.zeros_like(w), torch.ones_like(w))
            for name, w in weights.items()
            if name.endswith("gamma") and work != "gpt"
        }
        moving = [tensor for pair in self.moving.values() for tensor in pair]
        self.state = [*weights.values(), *moving]
        self.first = [tensor.clone() for tensor in self.state]
        self.phases = [
            (loss_of, [name for name in weights if name.startswith(prefix)])
            for loss_of, prefix in PHASES[work]
        ]


class _Eager(_Steps):
    """Eager steps, with autograd and torch's fused Adam."""

    def __init__(self, work, weights, sizes):
        super().__init__(work, weights, sizes)
        self.count, betas = 0, (BETAS_1[work], BETA_2)
        for weight in weights.values():
            weight.requires_grad_()
        self.optimizers = [
            torch.optim.Adam(
                [weights[k] for k in names], RATES[work], betas, fused=True
            )
            for _, names in self.phases
        ]

    def __call__(self, c):
        self.count += 1
        losses = []
        for (loss_of, names), optimizer in zip(
            self.phases, self.optimizers, strict=True
        ):
            loss = loss_of(self.p, c, self.moving, self.slope, self.sizes)
            p = [self.p[name] for name in names]
            _fused_step(optimizer, p, torch.autograd.grad(loss, p), self.count)
            losses.append(loss.detach())
        return losses

    @staticmethod
    def slope(function, x):
        if not x.requires_grad:
            x = x.detach().requires_grad_()
        value, other = function(x)
        return torch.autograd.grad(value, x, create_graph=True)[0], other

    def reset(self):
        """Restore the initial weights, and set moments to zero."""
        self.count = 0
        states = [s for each in self.optimizers for s in each.state.values()]
        _reset(self.state, self.first, [slot for s in states for slot in s.values()])


class _Compiled(_Steps):
    """Steps as one compiled function, including the optimizers."""

    def __init__(self, work, weights, sizes):
        super().__init__(work, weights, sizes)
        m, v = [{k: torch.zeros_like(w) for k, w in weights.items()} for _ in range(2)]
        count = torch.zeros((), device=next(iter(weights.values())).device)
        self.slots = [*m.values(), *v.values(), count]
        for tensor in (*self.state, *self.slots):
            torch._dynamo.mark_static_address(tensor)
        self.arguments = weights, m, v, count, self.moving
        options = {"mode": "reduce-overhead", "dynamic": False}
        self.step = torch.compile(self.functional, **options)

    def __call__(self, c):
        with torch.no_grad():
            losses = self.step(*self.arguments, c)
            return [loss.clone() for loss in losses]  # the next step overwrites them

    def functional(self, p, m, v, count, moving, c):
        count.add_(1)
        beta_1, losses = BETAS_1[self.work], []
        rate = RATES[self.work] * (1 - BETA_2**count).sqrt() / (1 - beta_1**count)
        for loss_of, names in self.phases:

            def loss(some, loss_of=loss_of):
                return loss_of(p | some, c, moving, self.slope, self.sizes)

            some = {name: p[name] for name in names}
            gradients, value = torch.func.grad_and_value(loss)(some)
            losses.append(value)
            lists = [[each[name] for name in names] for each in (p, m, v, gradients)]
            _adam(*lists, rate, beta_1)
        return losses

    @staticmethod
    def slope(function, x):
        return torch.func.grad(function, has_aux=True)(x)

    def reset(self):
        _reset(self.state, self.first, self.slots)
