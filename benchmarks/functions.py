"""Time functions written with the TensorFlow API, unchanged, with tapewright and TensorFlow.

Each function is a program that is not a Keras model: derivatives, linear algebra,
recurrences, graphs, signals. It is one ``tf.function`` of its arguments, in TensorFlow
with and without XLA.
"""

import functools
import sys

import numpy as np
from programs import compare
from turns import serve

NAMES = ("native", "tensorflow", "tensorflow_xla")
FUNCTIONS = {}


def function(*arguments):
    """Decorator: a function of ``tf`` and of arrays made from ``arguments``.

    An argument is a shape, of normal numbers, or a function of a random generator.
    """

    def register(f):
        FUNCTIONS[f.__name__] = f, arguments
        return f

    return register


def integers(high, *shape):
    return lambda g: g.integers(0, high, shape)


def scaled(factor, *shape):
    return lambda g: (factor * g.normal(size=shape)).astype("f4")


def gradient(of):
    """Decorator: the gradient of a loss by ``of`` (the numbers of arguments)."""

    def wrap(loss):
        @functools.wraps(loss)
        def f(tf, *arguments):
            sources = [arguments[i] for i in of]
            with tf.GradientTape() as tape:
                tape.watch(sources)
                value = loss(tf, *arguments)
            found = tape.gradient(value, sources)
            return [tf.convert_to_tensor(each) for each in found]

        return f

    return wrap


# --- derivatives


@function((128, 64), integers(10, 128), scaled(0.1, 64, 128), scaled(0.1, 128, 10))
def per_example_gradients(tf, x, y, w1, w2):
    with tf.GradientTape() as tape:
        tape.watch([w1, w2])
        logits = tf.tanh(x @ w1) @ w2
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return [tf.reduce_mean(j * j) for j in tape.jacobian(losses, [w1, w2])]


@function((256, 64), scaled(0.1, 64, 64), scaled(0.1, 64, 64), (64, 64), (64, 64))
def hessian_vector_product(tf, x, w1, w2, v1, v2):
    with tf.GradientTape() as outer:
        outer.watch([w1, w2])
        with tf.GradientTape() as inner:
            inner.watch([w1, w2])
            loss = tf.reduce_mean(tf.nn.softplus(tf.nn.softplus(x @ w1) @ w2) ** 2)
        g1, g2 = inner.gradient(loss, [w1, w2])
        slope = tf.reduce_sum(g1 * v1) + tf.reduce_sum(g2 * v2)
    return outer.gradient(slope, [w1, w2])


@function((2000, 2), (2, 64), scaled(0.1, 64, 64), scaled(0.1, 64, 1))
@gradient(of=(1, 2, 3))
def eikonal(tf, x, w1, w2, w3):
    """Penalize the slope of a network of sines (SIREN)."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(tf.sin(3.0 * x @ w1) @ w2) @ w3
    slope = tf.norm(tape.gradient(y, x) + 1e-3, axis=1)
    return tf.reduce_mean((slope - 1) ** 2) + tf.reduce_mean(y * y)


@function((7, 5), (5, 8), (8,), (8, 6))
def small_jacobian(tf, x, w1, b, w2):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.elu(tf.nn.elu(x @ w1 + b) @ w2)
    return tape.jacobian(y, x)


# --- linear algebra, optimization


@function((300, 4), (300, 1), (4,))
@gradient(of=(2,))
def gaussian_process(tf, x, y, scales):
    z = x * tf.exp(scales)
    distances = tf.reduce_sum((z[:, None] - z[None]) ** 2, -1)
    factor = tf.linalg.cholesky(tf.exp(-0.5 * distances) + 0.1 * tf.eye(300))
    fit = tf.reduce_sum(y * tf.linalg.cholesky_solve(factor, y)) / 2
    return fit + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))


@function((1000, 20), (1000, 1), (20, 200))
@gradient(of=(2,))
def ridge_regression(tf, x, y, w):
    z = tf.cos(x @ w)
    gram = tf.matmul(z, z, transpose_a=True) + tf.eye(200)
    a = tf.linalg.solve(gram, tf.matmul(z, y, transpose_a=True))
    return tf.reduce_mean((z @ a - y) ** 2)


@function((500, 10), integers(2, 500))
def newton_steps(tf, x, y):
    y = tf.cast(y, tf.float32)

    def step(i, w):
        p = tf.sigmoid(tf.linalg.matvec(x, w))
        slope = tf.linalg.matvec(x, p - y, transpose_a=True) / 500 + 0.01 * w
        weighted = x * (p * (1 - p))[:, None]
        curvature = tf.matmul(x, weighted, transpose_a=True) / 500 + 0.01 * tf.eye(10)
        return i + 1, w - tf.linalg.solve(curvature, slope[:, None])[:, 0]

    return tf.while_loop(lambda i, w: i < 8, step, (0, tf.zeros(10)))[1]


@function(scaled(1, 500, 3, 3), (500, 3))
@gradient(of=(0,))
def small_matrices(tf, m, p):
    m = m + 4 * tf.eye(3)
    y = tf.linalg.matvec(tf.linalg.inv(m), p)
    return tf.reduce_sum(y * y) + tf.reduce_sum(tf.math.log(tf.abs(tf.linalg.det(m))))


@function((256, 256))
@gradient(of=(0,))
def optimal_transport(tf, costs):
    """Sinkhorn's iterations."""
    costs = tf.abs(costs)
    u, v = tf.zeros(256), tf.zeros(256)
    for _ in range(20):
        u = -tf.reduce_logsumexp(v[None] - costs, 1)
        v = -tf.reduce_logsumexp(u[:, None] - costs, 0)
    return tf.reduce_sum(tf.exp(u[:, None] + v[None] - costs) * costs)


@function((128, 128), (128,))
@gradient(of=(0,))
def spectral_norm(tf, w, u):
    for _ in range(3):
        v = tf.math.l2_normalize(tf.linalg.matvec(w, u, transpose_a=True))
        u = tf.math.l2_normalize(tf.linalg.matvec(w, v))
    return tf.tensordot(tf.stop_gradient(u), tf.linalg.matvec(w, v), 1)


# --- graphs, tables, order


@function((2000, 64), scaled(0.1, 64, 64), integers(2000, 10000), integers(2000, 10000))
@gradient(of=(1,))
def message_passing(tf, nodes, w, source, target):
    for _ in range(3):
        messages = tf.gather(nodes @ w, source)
        sums = tf.math.unsorted_segment_sum(messages, target, 2000)
        nodes = tf.nn.relu(nodes + sums)
    return tf.reduce_mean(nodes * nodes)


@function((5000, 32), (50, 32))
def k_means(tf, x, centers):
    squares = tf.reduce_sum(centers * centers, 1)
    nearest = tf.argmin(squares - 2 * x @ tf.transpose(centers), 1)
    sums = tf.math.unsorted_segment_sum(x, nearest, 50)
    counts = tf.math.unsorted_segment_sum(tf.ones(5000), nearest, 50)
    return sums / tf.maximum(counts, 1.0)[:, None]


@function((512, 18), integers(18, 512), (512,), (18, 18))
@gradient(of=(3,))
def q_learning(tf, states, actions, rewards, w):
    values = tf.nn.relu(states @ w) @ w
    target = rewards + 0.99 * tf.stop_gradient(tf.reduce_max(values, 1))
    return tf.reduce_mean((tf.gather(values, actions, batch_dims=1) - target) ** 2)


@function((256, 1000))
@gradient(of=(0,))
def best_of_many(tf, scores):
    best, _ = tf.math.top_k(scores, 10)
    return tf.reduce_sum(tf.nn.softmax(best)[:, 0])


@function((64, 500), (64, 500))
@gradient(of=(0,))
def wasserstein(tf, x, y):
    return tf.reduce_mean(tf.abs(tf.sort(x, 1) - tf.sort(y, 1)))


@function((1000, 16), (200, 16), lambda g: g.permutation(1000)[:200, None])
@gradient(of=(0, 1))
def scattered_updates(tf, x, rows, places):
    x = tf.tensor_scatter_nd_update(x, places, rows)
    return tf.reduce_sum(tf.tensor_scatter_nd_add(x, places, rows * rows) ** 3)


# --- recurrences


@function((64,), (200, 32, 64))
@gradient(of=(0,))
def linear_recurrence(tf, rates, x):
    rates = tf.sigmoid(rates)
    step = lambda h, u: rates * h + (1 - rates) * tf.tanh(u)  # noqa: E731
    return tf.reduce_mean(tf.scan(step, x, tf.zeros((32, 64))) ** 2)


@function((30, 32, 16), scaled(0.1, 16, 128), scaled(0.1, 32, 128))
@gradient(of=(1, 2))
def unrolled_lstm(tf, x, w, u):
    h, c = tf.zeros((32, 32)), tf.zeros((32, 32))
    for each in tf.unstack(x):
        i, f, o, z = tf.split(each @ w + h @ u, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(z)
        h = tf.sigmoid(o) * tf.tanh(c)
    return tf.reduce_mean(h * h)


@function((64, 200), (64, 200))
@gradient(of=(1,))
def discounted_returns(tf, rewards, values):
    discounts = tf.constant(0.99) ** tf.range(200, dtype=tf.float32)
    returns = tf.cumsum(rewards * discounts, 1, reverse=True) / discounts
    return tf.reduce_mean((returns - values) ** 2)


@function((256, 50))
@gradient(of=(0,))
def stick_breaking(tf, x):
    v = tf.sigmoid(x)
    p = v * tf.math.cumprod(1 - v, 1, exclusive=True)
    return tf.reduce_sum(p * tf.math.log(p + 1e-6))


@function((32, 50, 8), (8, 8))
@gradient(of=(1,))
def mapped(tf, x, w):
    return tf.reduce_sum(tf.map_fn(lambda row: tf.reduce_sum(tf.tanh(row @ w)), x) ** 2)


# --- densities, attention, signals, images


@function((512, 16), *[scaled(0.1, *s) for s in [(8, 64), (64, 16)] * 6])
@gradient(of=range(1, 13))
def normalizing_flow(tf, x, *weights):
    a, b = tf.split(x, 2, 1)
    change = 0.0
    for w1, w2 in zip(weights[::2], weights[1::2]):
        scale, shift = tf.split(tf.tanh(a @ w1) @ w2, 2, 1)
        scale = tf.tanh(scale)
        a, b = b * tf.exp(scale) + shift, a
        change += tf.reduce_sum(scale, 1)
    return tf.reduce_mean(0.5 * tf.reduce_sum(a * a + b * b, 1) - change)


@function((1024, 1), (1024, 1), (1, 64), scaled(0.1, 64, 60))
@gradient(of=(2, 3))
def mixture_density(tf, x, y, w1, w2):
    weights, means, scales = tf.split(tf.tanh(x @ w1) @ w2, 3, 1)
    exponents = 0.5 * ((y - means) / tf.exp(scales)) ** 2
    logs = tf.nn.log_softmax(weights) - scales - exponents
    return -tf.reduce_mean(tf.reduce_logsumexp(logs, 1))


@function((4, 4, 512, 32), (4, 4, 512, 32), (4, 4, 512, 32))
@gradient(of=(0, 1, 2))
def causal_attention(tf, q, k, v):
    scores = tf.matmul(q, k, transpose_b=True) * 0.17
    past = tf.linalg.band_part(tf.ones((512, 512)), -1, 0) > 0
    weights = tf.nn.softmax(tf.where(past, scores, -1e9))
    return tf.reduce_sum(tf.matmul(weights, v) ** 2)


@function((8, 64, 4, 32), (8, 64, 4, 32), (8, 64, 4, 32))
@gradient(of=(0, 1, 2))
def einsum_attention(tf, q, k, v):
    weights = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k))
    return tf.reduce_sum(tf.einsum("bhqk,bkhd->bqhd", weights, v) ** 2)


@function((8, 8000), scaled(0.1, 129, 40))
@gradient(of=(0, 1))
def spectrogram(tf, x, w):
    s = tf.abs(tf.signal.stft(x, 256, 128))
    return tf.reduce_mean(tf.math.log(tf.matmul(s, tf.abs(w)) + 1e-3) ** 2)


@function((32, 1024), (1024,))
@gradient(of=(1,))
def fft_convolution(tf, x, kernel):
    y = tf.signal.irfft(tf.signal.rfft(x) * tf.signal.rfft(kernel))
    return tf.reduce_mean(y * y)


@function((8, 32, 32, 16))
@gradient(of=(0,))
def resized_images(tf, x):
    return tf.reduce_mean(tf.image.resize(x, (64, 64)) ** 2)


@function((1000, 3))
@gradient(of=(0,))
def particles(tf, x):
    distances = tf.reduce_sum((x[:, None] - x[None]) ** 2, -1) + 0.01
    energies = 1 / distances**3 - 1 / distances
    return tf.reduce_sum(tf.linalg.band_part(energies, 0, -1))


@function((16, 60, 30), lambda g: g.integers(1, 30, (16, 12)).astype("i4"))
@gradient(of=(0,))
def ctc(tf, logits, labels):
    lengths = tf.fill([16], 12), tf.fill([16], 60)
    options = {"logits_time_major": False, "blank_index": 0}
    return tf.reduce_mean(tf.nn.ctc_loss(labels, logits, *lengths, **options))


# --- one call


def make(name, program):
    """Return a call of a function, and the sums of its results to compare."""
    if name == "native":
        import tapewright as tf

        tf.get_logger().setLevel("ERROR")
    else:
        import tensorflow as tf
    f, arguments = FUNCTIONS[program]
    generator = np.random.default_rng(0)
    arrays = [
        tf.constant(each(generator) if callable(each) else scaled(1, *each)(generator))
        for each in arguments
    ]
    options = {"jit_compile": True} if name == "tensorflow_xla" else {}
    compiled = tf.function(lambda *arrays: f(tf, *arrays), **options)

    def call():
        return compiled(*arrays)

    def numbers(outputs):
        return [[float(np.abs(x.numpy()).sum()) for x in tf.nest.flatten(outputs)]]

    call.wait = lambda outputs: tf.nest.flatten(outputs)[-1].numpy()
    return call, numbers


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:])
    else:
        compare(FUNCTIONS, NAMES, __doc__)
