"""tapewright's part of `gpu.py`, in the names of TensorFlow and Keras."""

from contextlib import ExitStack

import numpy as np
from gpu_works import CHECKED, EPSILON, PENALTIES, RATES, arrays, weights_of

import tapewright as tw

__all__ = ["make"]

_STACK = ExitStack()  # holds the device for as long as the process runs


def make(name, work, tiny, device):
    """Return ``(step, numbers)`` of a work, on a device that stays the current one."""
    _STACK.enter_context(tw.device(device))
    data, traced = arrays(work, tiny), name == "tapewright"
    if work.startswith("epoch"):
        return _epoch(data, traced, 8 if work.endswith("8") else 1, 8 if tiny else 128)
    variables = [tw.Variable(data[key]) for key in weights_of(data)]
    given = [tw.constant(data[key]) for key in ("x", "y", "z") if key in data]
    if work == "row":
        return _row(variables, given, traced)
    return _train(work, variables, given, traced)


def _train(work, variables, given, traced):
    rate = RATES[work]
    optimizer = tw.optimizers.Adam(rate, epsilon=EPSILON)
    if work == "W3":
        optimizer = tw.optimizers.SGD(rate)
    optimizer.build(variables)
    gradients_of = GRADIENTS[work](variables)

    def train(*given):
        loss, gradients = gradients_of(*given)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    train = tw.function(train) if traced else train

    def step():
        return train(*given)

    def numbers(loss):
        return [float(loss), *[float(tw.reduce_sum(abs(v))) for v in variables]]

    step.wait = lambda loss: loss.numpy()
    return step, numbers


def _cross_entropy(y, logits):
    return tw.nn.softmax_cross_entropy_with_logits(y, logits)


def _mlp(variables):
    w1, b1, w2, b2 = variables

    def gradients(x, y):
        with tw.GradientTape() as tape:
            logits = tw.matmul(tw.nn.relu(tw.matmul(x, w1) + b1), w2) + b2
            penalty = tw.reduce_sum(w1 * w1) + tw.reduce_sum(w2 * w2)
            loss = tw.reduce_mean(_cross_entropy(y, logits)) + PENALTIES["W1"] * penalty
        found = tape.gradient(loss, variables)
        return loss, [tw.clip_by_norm(g, 1.0) for g in found]

    return gradients


def _gan(variables):
    gw1, gb1, gw2, gb2, dw1, db1, dw2, db2 = variables
    binary = tw.nn.sigmoid_cross_entropy_with_logits

    def judge(x):
        return tw.matmul(tw.nn.relu(tw.matmul(x, dw1) + db1), dw2) + db2

    def gradients(x, z):
        with tw.GradientTape(persistent=True) as tape:
            fake = tw.tanh(tw.matmul(tw.nn.relu(tw.matmul(z, gw1) + gb1), gw2) + gb2)
            real, made = judge(x), judge(fake)
            ones, zeros = tw.ones_like(made), tw.zeros_like(made)
            d_loss = tw.reduce_mean(binary(ones, real))
            d_loss += tw.reduce_mean(binary(zeros, made))
            g_loss = tw.reduce_mean(binary(ones, made))
        of_generator = tape.gradient(g_loss, variables[:4])
        return d_loss + g_loss, of_generator + tape.gradient(d_loss, variables[4:])

    return gradients


def _penalty(variables):
    w1, b1, w2, b2 = variables

    def gradients(x, y):
        with tw.GradientTape() as tape:
            with tw.GradientTape() as inner:
                inner.watch(x)
                logits = tw.matmul(tw.nn.relu(tw.matmul(x, w1) + b1), w2) + b2
                total = tw.reduce_sum(_cross_entropy(y, logits))
            slope = inner.gradient(total, x)
            penalty = tw.reduce_mean(tw.reduce_sum(slope * slope, 1))
            loss = total / float(x.shape[0]) + PENALTIES["W3"] * penalty
        return loss, tape.gradient(loss, variables)

    return gradients


def _normalized(variables):
    w1, gamma1, b1, w2, gamma2, b2, w3, b3 = variables
    moving = [tw.Variable(make(b1.shape)) for make in (tw.zeros, tw.ones) * 2]

    def hidden(x, w, gamma, beta, mean, variance):
        y = tw.matmul(x, w)
        m, v = tw.nn.moments(y, [0])
        mean.assign(mean * 0.99 + m * 0.01)
        variance.assign(variance * 0.99 + v * 0.01)
        return tw.nn.relu(tw.nn.batch_normalization(y, m, v, beta, gamma, 1e-3))

    def gradients(x, y):
        with tw.GradientTape() as tape:
            h = hidden(x, w1, gamma1, b1, *moving[:2])
            h = hidden(h, w2, gamma2, b2, *moving[2:])
            loss = tw.reduce_mean(_cross_entropy(y, tw.matmul(h, w3) + b3))
        return loss, tape.gradient(loss, variables)

    return gradients


def _convnet(variables):
    k1, c1, k2, c2, w3, b3 = variables

    def hidden(x, kernel, bias):
        y = tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "VALID") + bias)
        return tw.nn.max_pool2d(y, 2, 2, "VALID")

    def gradients(x, y):
        with tw.GradientTape() as tape:
            h = hidden(hidden(x, k1, c1), k2, c2)
            logits = tw.matmul(tw.reshape(h, [x.shape[0], -1]), w3) + b3
            loss = tw.reduce_mean(_cross_entropy(y, logits))
        return loss, tape.gradient(loss, variables)

    return gradients


GRADIENTS = {
    "W1": _mlp,
    "W2": _gan,
    "W3": _penalty,
    "W4": _normalized,
    "W10": _convnet,
}


def _row(variables, given, traced):
    w1, b1, w2, b2 = variables

    def call(x):
        return tw.nn.softmax(tw.matmul(tw.nn.relu(tw.matmul(x, w1) + b1), w2) + b2)

    call = tw.function(call) if traced else call

    def step():
        return call(*given)

    step.wait = lambda outputs: outputs.numpy()
    return step, (lambda outputs: outputs.numpy().ravel().tolist())


def _epoch(data, traced, steps, batch):
    keras = tw.keras
    units = data["w1"].shape[1]
    model = keras.Sequential(
        [
            keras.Input((data["x"].shape[1],)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.set_weights([data[key] for key in weights_of(data)])
    model.compile(
        keras.optimizers.Adam(RATES["epoch"], epsilon=EPSILON),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=not traced,
        steps_per_execution=steps,
    )
    epochs = 0

    def step():
        nonlocal epochs
        epochs += 1
        options = {"batch_size": batch, "shuffle": epochs > CHECKED, "verbose": 0}
        return model.fit(data["x"], data["y"], **options)

    def numbers(history):
        return [float(np.abs(w).sum()) for w in model.get_weights()]

    return step, numbers
