"""Workloads in PyTorch: eager, and compiled with ``mode="reduce-overhead"``.

A compiled step is one function, including the optimizer. The addresses of its state do not
change, so that it becomes one CUDA graph.
"""

import os

import numpy as np
import torch
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

functional = torch.nn.functional


def make(name, work, tiny, device, folder):
    """Return ``(step, numbers)`` of a workload on ``"GPU"`` or ``"CPU"``."""
    place = torch.device("cuda" if device == "GPU" else "cpu")
    # set_default_device is not used: it slows down each call of torch from Python.
    data, work = arrays(work, tiny), work.removesuffix("_8")
    compiled = name == "torch_compile"
    if work in FILES:
        return _file(work, data, folder)
    if work.startswith("ops"):
        return _ops(work, CHAIN[tiny], torch.as_tensor(data["x"]).to(place), compiled)
    if work in DERIVATIVES:
        tensors = [torch.as_tensor(value).to(place) for value in data.values()]
        return _derivative(work, tensors, compiled)
    given = {key: torch.as_tensor(data[key]) for key in ("x", "y", "z") if key in data}
    given = {key: value.to(place) for key, value in given.items()}
    weights = [torch.as_tensor(data[k].copy()).to(place) for k in weights_of(data)]
    if work == "W10":
        weights, given = _channels_first(data, weights, given)
    if work == "row":
        return _row(weights, given["x"], compiled)
    train = (_Compiled if compiled else _Eager)(work, weights, given)
    if work == "epoch":
        return _epoch(train, given, batch_of(tiny))

    def step():
        return train(given)

    step.wait, step.reset = (lambda loss: loss.item()), train.reset
    return step, (lambda loss: [loss.item(), *train.numbers()])


def _channels_first(data, weights, given):
    k1, c1, k2, c2, w3, b3 = weights
    channels = data["c2"].size
    side = round((len(data["w3"]) / channels) ** 0.5)
    w3 = w3.reshape(side, side, channels, -1).permute(2, 0, 1, 3).flatten(0, 2)
    kernels = [k.permute(3, 2, 0, 1).contiguous() for k in (k1, k2)]
    x = given["x"].permute(0, 3, 1, 2).contiguous()
    found = [kernels[0], c1, kernels[1], c2, w3.contiguous(), b3]
    return found, given | {"x": x}


# -------------------------------------------------------------------------- the losses


def _hidden(x, w, b):
    return torch.relu(torch.addmm(b, x, w))


def _loss(work, p, c):
    """Return the loss of a workload for parameters and constants."""
    x, y = c["x"], c["y"]
    if work in ("W1", "epoch"):
        w1, b1, w2, b2 = p
        loss = functional.cross_entropy(torch.addmm(b2, _hidden(x, w1, b1), w2), y)
        penalty = (w1 * w1).sum() + (w2 * w2).sum() if work == "W1" else 0.0
        return loss + PENALTIES["W1"] * penalty
    if work == "W4":
        w1, gamma1, b1, w2, gamma2, b2, w3, b3 = p
        h = _normalized(x @ w1, *c["moving"][:2], gamma1, b1)
        h = _normalized(h @ w2, *c["moving"][2:], gamma2, b2)
        return functional.cross_entropy(torch.addmm(b3, h, w3), y)
    k1, c1, k2, c2, w3, b3 = p
    pool, conv = functional.max_pool2d, functional.conv2d
    h = pool(torch.relu(conv(x, k1, c1)), 2)
    h = pool(torch.relu(conv(h, k2, c2)), 2)
    return functional.cross_entropy(torch.addmm(b3, h.flatten(1), w3), y)


def _normalized(x, mean, variance, gamma, beta):
    normed = functional.batch_norm(x, mean, variance, gamma, beta, True, 0.01, 1e-3)
    return torch.relu(normed)


def _gan_losses(p, c):
    gw1, gb1, gw2, gb2, dw1, db1, dw2, db2 = p
    fake = torch.tanh(torch.addmm(gb2, _hidden(c["z"], gw1, gb1), gw2))
    real, made = [torch.addmm(db2, _hidden(x, dw1, db1), dw2) for x in (c["x"], fake)]
    binary = functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones_like(made), torch.zeros_like(made)
    return binary(real, ones) + binary(made, zeros), binary(made, ones)


def _entropy_sum(x, p, y):
    logits = torch.addmm(p[3], _hidden(x, p[0], p[1]), p[2])
    return functional.cross_entropy(logits, y, reduction="sum")


# --------------------------------------------------------------------------- the steps


class _Eager:
    """Eager steps, with autograd and torch's fused optimizers."""

    def __init__(self, work, weights, given):
        self.work, self.p = work, [w.requires_grad_() for w in weights]
        self.moving, self.count = _moving(work, weights), 0
        self.first = [w.detach().clone() for w in (*self.p, *self.moving)]
        if work == "W3":
            self.optimizer = torch.optim.SGD(self.p, RATES[work], fused=True)
        else:
            self.optimizer = torch.optim.Adam(self.p, RATES[work], fused=True)

    def __call__(self, c):
        loss, gradients = self.gradients(c | {"moving": self.moving})
        self.count += 1
        _fused_step(self.optimizer, self.p, gradients, self.count)
        return loss.detach()

    def reset(self):
        """Restore the initial weights, and set moments to zero."""
        self.count = 0
        slots = [s for each in self.optimizer.state.values() for s in each.values()]
        _reset([*self.p, *self.moving], self.first, slots)

    def gradients(self, c):
        p, grad = self.p, torch.autograd.grad
        if self.work == "W2":
            d_loss, g_loss = _gan_losses(p, c)
            of_d = grad(d_loss, p[4:], retain_graph=True)
            return d_loss + g_loss, grad(g_loss, p[:4]) + of_d
        if self.work == "W3":
            x = c["x"].detach().requires_grad_()
            total = _entropy_sum(x, p, c["y"])
            (slope,) = grad(total, x, create_graph=True)
            loss = total / len(x) + PENALTIES["W3"] * (slope * slope).sum(1).mean()
            return loss, grad(loss, p)
        loss = _loss(self.work, p, c)
        gradients = grad(loss, p)
        return loss, _clipped(gradients) if self.work == "W1" else gradients

    def numbers(self):
        return [p.detach().abs().sum().item() for p in self.p]


class _Compiled:
    """Steps as one compiled function, including the optimizer."""

    def __init__(self, work, weights, given):
        self.work, self.p = work, weights
        self.m, self.v = [[torch.zeros_like(w) for w in weights] for _ in range(2)]
        # On the device: a number of Python's would be copied there in each step.
        self.count = torch.zeros((), device=weights[0].device)
        self.moving = _moving(work, weights)
        for tensor in (*self.p, *self.m, *self.v, self.count, *self.moving):
            torch._dynamo.mark_static_address(tensor)
        self.first = [w.clone() for w in (*self.p, *self.moving)]
        # Else the smaller last batch of an epoch makes sizes symbolic.
        options = {"mode": "reduce-overhead", "dynamic": False}
        self.step = torch.compile(self.functional, **options)

    def __call__(self, c):
        with torch.no_grad():
            state = self.p, self.m, self.v, self.count
            loss = self.step(*state, c | {"moving": self.moving})
            return loss.clone()  # the next step overwrites it

    def reset(self):
        slots = [*self.m, *self.v, self.count]
        _reset([*self.p, *self.moving], self.first, slots)

    def functional(self, p, m, v, t, c):
        loss, gradients = self.gradients(p, c)
        if self.work == "W3":
            for each, g in zip(p, gradients, strict=True):
                each.sub_(g * RATES["W3"])
            return loss
        if self.work == "W1":
            gradients = _clipped(gradients)
        t.add_(1)
        rate = RATES[self.work] * (1 - BETA_2**t).sqrt() / (1 - BETA_1**t)
        _adam(p, m, v, list(gradients), rate)
        return loss

    def gradients(self, p, c):
        grad = torch.func.grad_and_value
        if self.work == "W2":
            of_g, g_loss = grad(lambda g: _gan_losses([*g, *p[4:]], c)[1])(p[:4])
            of_d, d_loss = grad(lambda d: _gan_losses([*p[:4], *d], c)[0])(p[4:])
            return d_loss + g_loss, [*of_g, *of_d]
        loss_of = self.penalized if self.work == "W3" else _loss
        gradients, loss = grad(lambda p: loss_of(self.work, p, c))(p)
        return loss, gradients

    @staticmethod
    def penalized(work, p, c):
        slope, total = torch.func.grad_and_value(_entropy_sum)(c["x"], p, c["y"])
        penalty = (slope * slope).sum(1).mean()
        return total / len(c["x"]) + PENALTIES["W3"] * penalty

    numbers = _Eager.numbers


def _fused_step(optimizer, p, gradients, count):
    """Update parameters by one of torch's fused optimizers, Adam as in Keras."""
    for each, g in zip(p, gradients, strict=True):
        each.grad = g.contiguous()  # fused optimizers need this layout
    if isinstance(optimizer, torch.optim.Adam):
        # torch adds epsilon after the bias correction.
        corrected = EPSILON / (1 - BETA_2**count) ** 0.5
        optimizer.param_groups[0]["eps"] = corrected
    optimizer.step()


def _adam(p, m, v, gradients, rate, beta_1=BETA_1):
    """Update parameters and moments in place, at a rate with the bias correction."""
    torch._foreach_lerp_(m, gradients, 1 - beta_1)
    torch._foreach_mul_(v, BETA_2)
    torch._foreach_addcmul_(v, gradients, gradients, 1 - BETA_2)
    roots = torch._foreach_sqrt(v)
    torch._foreach_add_(roots, EPSILON)
    updates = torch._foreach_div(m, roots)
    torch._foreach_mul_(updates, rate)
    torch._foreach_sub_(p, updates)


@torch.no_grad()
def _reset(tensors, values, slots):
    for tensor, value in zip(tensors, values, strict=True):
        tensor.copy_(value)
    for slot in slots:
        slot.zero_()


def _moving(work, weights):
    """Return the moving means and variances of W4."""
    makers = (torch.zeros_like, torch.ones_like) * 2 if work == "W4" else ()
    return [make(weights[2]).detach() for make in makers]


def _clipped(gradients):
    norms = torch._foreach_norm(gradients)
    return [g / n.clamp(min=1.0) for g, n in zip(gradients, norms, strict=True)]


def _row(weights, x, compiled):
    w1, b1, w2, b2 = weights

    def call(x):
        return torch.softmax(torch.addmm(b2, _hidden(x, w1, b1), w2), -1)

    call = torch.compile(call, mode="reduce-overhead") if compiled else call

    def step():
        with torch.no_grad():
            return call(x)

    step.wait = lambda outputs: outputs.cpu()
    return step, _listed


def _listed(outputs):
    return np.asarray(outputs.cpu()).ravel().tolist()


def _epoch(train, given, batch):
    x, y, epochs = given["x"], given["y"], 0

    def step():
        nonlocal epochs
        epochs += 1
        make = torch.randperm if epochs > CHECKED else torch.arange
        order = make(len(x), device=x.device)
        for rows in order.split(batch):
            loss = train({"x": x[rows], "y": y[rows]})
        return loss.item()

    step.reset = train.reset
    return step, (lambda loss: train.numbers())


# -------------------------------------------------------- small ops, derivatives, files


def _ops(work, rounds, x, compiled):
    def chain(x):
        for _ in range(rounds):
            x = x * 1.01
            x = x + 0.01
            x = torch.tanh(x)
            x = x - 0.02
        return x

    if work == "ops_gradient":
        chain = torch.compile(chain) if compiled else chain
        x.requires_grad_()

        def step():
            return torch.autograd.grad(chain(x).sum(), x)[0]

    else:
        chain = torch.compile(chain) if compiled else chain

        def step():
            with torch.no_grad():
                return chain(x)

    step.wait = lambda outputs: outputs.cpu()
    return step, (lambda outputs: _listed(outputs.detach()))


def _derivative(work, tensors, compiled):
    def dense(x, w1, b1, w2, b2):
        elu = functional.elu
        return elu(torch.addmm(b2, elu(torch.addmm(b1, x, w1)), w2))

    def row(x, *weights):
        return dense(x[None], *weights)[0]

    def loss(x, k):
        return (torch.tanh(x @ k) ** 2).mean()

    call = torch.func.jacrev(dense)
    if work == "batch_jacobian":
        over = (0, *[None] * (len(tensors) - 1))
        call = torch.func.vmap(torch.func.jacrev(row), in_dims=over)
    elif work == "hessian":
        call = torch.func.hessian(loss, argnums=1)
    call = torch.compile(call) if compiled else call

    def step():
        with torch.no_grad():
            return call(*tensors)

    step.wait = lambda outputs: outputs.cpu()
    return step, (lambda outputs: sums([outputs.cpu()]))


def _file(work, data, folder):
    path, module = os.path.join(folder, "weights.pt"), torch.nn.ParameterDict()
    for key, value in data.items():
        module[key] = torch.nn.Parameter(torch.tensor(value))

    def write():
        torch.save(module.state_dict(), path)

    def read():
        module.load_state_dict(torch.load(path))

    def numbers(_):
        with torch.no_grad():
            for parameter in module.values():
                parameter.zero_()
        read()
        return sums([module[key].detach().cpu() for key in data])

    if work == "write":
        return write, numbers
    write()
    return read, numbers
