"""Workloads with TensorFlow's and Keras' names, for tapewright and TensorFlow."""

import importlib
import os
from contextlib import ExitStack

import numpy as np
from turns import PACKAGES
from works import (
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

__all__ = ["load", "make"]

_STACK = ExitStack()  # keeps the device until the process ends
tf = None  # the package; `load` sets it


def make(name, work, tiny, device, folder):
    """Return ``(step, numbers)`` of a workload; a GPU remains the current device."""
    load(name, device)
    data = arrays(work, tiny)
    if work.startswith("epoch"):
        return _epoch(name, data, 8 if work.endswith("8") else 1, batch_of(tiny))
    if work in FILES:
        return _file(work, data, folder)
    trace = _tracer(name)
    if work.startswith("ops"):
        return _ops(trace, work, CHAIN[tiny], data["x"])
    if work in DERIVATIVES:
        return _derivative(trace, work, data)
    variables = [tf.Variable(data[key]) for key in weights_of(data)]
    given = [tf.constant(data[key]) for key in ("x", "y", "z") if key in data]
    if work == "row":
        return _row(trace, variables, given)
    return _train(trace, work, variables, given)


def load(name, device):
    """Return the package of an implementation; a GPU becomes the current device."""
    global tf
    tf = importlib.import_module(PACKAGES[name])
    if device != "CPU":
        _STACK.enter_context(tf.device(device))
    return tf


def _tracer(name):
    if name.endswith("eager"):
        return lambda function: function
    if name == "tensorflow_xla":
        return tf.function(jit_compile=True)
    return tf.function


def _waits(step):
    step.wait = lambda outputs: outputs.numpy()
    return step


def _resets(step, variables):
    """Add ``step.reset()``, which restores the current values of the variables."""
    first = [(v, v.numpy()) for v in variables]

    def reset():
        for variable, value in first:
            variable.assign(value)

    step.reset = reset
    return step


def _train(trace, work, variables, given):
    rate = RATES[work]
    optimizer = tf.keras.optimizers.Adam(rate, epsilon=EPSILON)
    if work == "W3":
        optimizer = tf.keras.optimizers.SGD(rate)
    optimizer.build(variables)
    gradients_of = GRADIENTS[work](variables)

    def train(*given):
        loss, gradients = gradients_of(*given)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    train = trace(train)

    def step():
        return train(*given)

    def numbers(loss):
        return [float(loss), *[float(tf.reduce_sum(abs(v))) for v in variables]]

    return _resets(_waits(step), [*variables, *optimizer.variables]), numbers


def _cross_entropy(y, logits):
    return tf.nn.softmax_cross_entropy_with_logits(y, logits)


def _mlp(variables):
    w1, b1, w2, b2 = variables

    def gradients(x, y):
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
            penalty = tf.reduce_sum(w1 * w1) + tf.reduce_sum(w2 * w2)
            loss = tf.reduce_mean(_cross_entropy(y, logits)) + PENALTIES["W1"] * penalty
        found = tape.gradient(loss, variables)
        return loss, [tf.clip_by_norm(g, 1.0) for g in found]

    return gradients


def _gan(variables):
    gw1, gb1, gw2, gb2, dw1, db1, dw2, db2 = variables
    binary = tf.nn.sigmoid_cross_entropy_with_logits

    def judge(x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, dw1) + db1), dw2) + db2

    def gradients(x, z):
        with tf.GradientTape(persistent=True) as tape:
            fake = tf.tanh(tf.matmul(tf.nn.relu(tf.matmul(z, gw1) + gb1), gw2) + gb2)
            real, made = judge(x), judge(fake)
            ones, zeros = tf.ones_like(made), tf.zeros_like(made)
            d_loss = tf.reduce_mean(binary(ones, real))
            d_loss += tf.reduce_mean(binary(zeros, made))
            g_loss = tf.reduce_mean(binary(ones, made))
        of_generator = tape.gradient(g_loss, variables[:4])
        return d_loss + g_loss, of_generator + tape.gradient(d_loss, variables[4:])

    return gradients


def _penalty(variables):
    w1, b1, w2, b2 = variables

    def gradients(x, y):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
                total = tf.reduce_sum(_cross_entropy(y, logits))
            slope = inner.gradient(total, x)
            penalty = tf.reduce_mean(tf.reduce_sum(slope * slope, 1))
            loss = total / float(x.shape[0]) + PENALTIES["W3"] * penalty
        return loss, tape.gradient(loss, variables)

    return gradients


def _normalized(variables):
    w1, gamma1, b1, w2, gamma2, b2, w3, b3 = variables
    moving = [tf.Variable(make(b1.shape)) for make in (tf.zeros, tf.ones) * 2]

    def hidden(x, w, gamma, beta, mean, variance):
        y = tf.matmul(x, w)
        m, v = tf.nn.moments(y, [0])
        mean.assign(mean * 0.99 + m * 0.01)
        variance.assign(variance * 0.99 + v * 0.01)
        return tf.nn.relu(tf.nn.batch_normalization(y, m, v, beta, gamma, 1e-3))

    def gradients(x, y):
        with tf.GradientTape() as tape:
            h = hidden(x, w1, gamma1, b1, *moving[:2])
            h = hidden(h, w2, gamma2, b2, *moving[2:])
            loss = tf.reduce_mean(_cross_entropy(y, tf.matmul(h, w3) + b3))
        return loss, tape.gradient(loss, variables)

    return gradients


def _convnet(variables):
    k1, c1, k2, c2, w3, b3 = variables

    def hidden(x, kernel, bias):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "VALID") + bias)
        return tf.nn.max_pool2d(y, 2, 2, "VALID")

    def gradients(x, y):
        with tf.GradientTape() as tape:
            h = hidden(hidden(x, k1, c1), k2, c2)
            logits = tf.matmul(tf.reshape(h, [x.shape[0], -1]), w3) + b3
            loss = tf.reduce_mean(_cross_entropy(y, logits))
        return loss, tape.gradient(loss, variables)

    return gradients


GRADIENTS = {
    "W1": _mlp,
    "W2": _gan,
    "W3": _penalty,
    "W4": _normalized,
    "W10": _convnet,
}


def _row(trace, variables, given):
    w1, b1, w2, b2 = variables
    call = trace(
        lambda x: tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2)
    )
    step = _waits(lambda: call(*given))
    return step, (lambda outputs: outputs.numpy().ravel().tolist())


# ------------------------------------------------------------- small ops, derivatives


def _ops(trace, work, rounds, x):
    def chain(x):
        for _ in range(rounds):
            x = x * 1.01
            x = x + 0.01
            x = tf.tanh(x)
            x = x - 0.02
        return x

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(chain(x))
        return tape.gradient(total, x)

    call = trace(gradient if work == "ops_gradient" else chain)
    x = tf.constant(x)
    return _waits(lambda: call(x)), (lambda outputs: outputs.numpy().tolist())


def _derivative(trace, work, data):
    def jacobian(x, w1, b1, w2, b2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.elu(tf.matmul(tf.nn.elu(tf.matmul(x, w1) + b1), w2) + b2)
        if work == "batch_jacobian":
            return tape.batch_jacobian(y, x)
        return tape.jacobian(y, x)

    def hessian(x, k):
        with tf.GradientTape() as outer:
            outer.watch(k)
            with tf.GradientTape() as inner:
                inner.watch(k)
                loss = tf.reduce_mean(tf.tanh(tf.matmul(x, k)) ** 2)
            slope = inner.gradient(loss, k)
        return outer.jacobian(slope, k)

    # Pass arguments: constants could be folded during tracing.
    given = [tf.constant(value) for value in data.values()]
    call = trace(hessian if work == "hessian" else jacobian)
    return _waits(lambda: call(*given)), (lambda outputs: sums([outputs.numpy()]))


# ----------------------------------------------------------------- models of Keras


def _epoch(name, data, steps, batch):
    keras = tf.keras
    units = data["w1"].shape[1]
    model = keras.Sequential(
        [
            keras.Input((data["x"].shape[1],)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.set_weights([data[key] for key in weights_of(data)])
    # By default, Keras on TensorFlow decides whether to use XLA.
    compiler = {"jit_compile": name == "tensorflow_xla"} if "tensor" in name else {}
    model.compile(
        keras.optimizers.Adam(RATES["epoch"], epsilon=EPSILON),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=name.endswith("eager"),
        steps_per_execution=steps,
        **compiler,
    )
    model.optimizer.build(model.trainable_variables)
    epochs = 0

    def step():
        nonlocal epochs
        epochs += 1
        options = {"batch_size": batch, "shuffle": epochs > CHECKED, "verbose": 0}
        return model.fit(data["x"], data["y"], **options)

    def numbers(history):
        return [float(np.abs(w).sum()) for w in model.get_weights()]

    return _resets(step, [*model.variables, *model.optimizer.variables]), numbers


def _file(work, data, folder):
    """Write or read the weights of a model without biases, as Keras' HDF5 file."""
    keras, path = tf.keras, os.path.join(folder, f"{tf.__name__}.weights.h5")
    side, zeros = len(data["w0"]), [np.zeros_like(w) for w in data.values()]
    layers = [keras.layers.Dense(side, use_bias=False) for _ in data]
    model = keras.Sequential([keras.Input((side,)), *layers])
    model.set_weights(list(data.values()))

    def write():
        model.save_weights(path)

    def read():
        model.load_weights(path)

    def numbers(_):
        model.set_weights(zeros)
        read()
        return sums(model.get_weights())

    if work == "write":
        return write, numbers
    write()
    return read, numbers
