"""Programs of which Jacobians are taken, at once and entry by entry."""

import numpy as np

import tapewright as tw


def weights(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.3, 1.5, shape)


def jacobians(function, x, **options):
    """The vectorized and the sequential Jacobian of ``function`` at ``x``."""
    x = tw.Variable(x)
    with tw.GradientTape(persistent=True) as tape:
        y = function(x)
    return (
        tape.jacobian(y, x, **options),
        tape.jacobian(y, x, experimental_use_pfor=False),
    )


A, B, C = weights(4, 3, seed=1), weights(3, 3, seed=2), weights(3, seed=3)
PROGRAMS = {
    "elementwise": lambda x: tw.tanh(x) * x + tw.sqrt(x) / (x + 1.0),
    "powers": lambda x: x**2 + x**1.5 - 2.0**x,
    "left product": lambda x: tw.matmul(A, x),
    "right product": lambda x: tw.matmul(x, B),
    "product with itself": lambda x: tw.matmul(x, x),
    "product with its transpose": lambda x: tw.matmul(x, x, transpose_b=True),
    "transposed product": lambda x: tw.matmul(x, B, transpose_a=True),
    "transpose": lambda x: tw.transpose(x) * C,
    "reshape": lambda x: tw.reshape(x, [9]) ** 2,
    "reshape and back": lambda x: tw.reshape(tw.reshape(x, [9]) * 2.0, [3, 3]) * x,
    "sum of rows": lambda x: tw.reduce_sum(x * x, axis=1),
    "sum of columns": lambda x: tw.reduce_sum(x * x, axis=0),
    "mean, kept": lambda x: x - tw.reduce_mean(x, axis=1, keepdims=True),
    "mean of columns": lambda x: x - tw.reduce_mean(x, axis=0),
    "mean of all": lambda x: x * tw.reduce_mean(x),
    "max": lambda x: tw.reduce_max(x, axis=1) * C,
    "product": lambda x: tw.reduce_prod(x, axis=0),
    "logsumexp": lambda x: tw.reduce_logsumexp(x, axis=1),
    "variance": lambda x: tw.math.reduce_variance(x, axis=1),
    "norm": lambda x: tw.norm(x, axis=0),
    "broadcast row": lambda x: x * C + x[0],
    "broadcast column": lambda x: x * tw.reshape(x[:, 0], [3, 1]),
    "broadcast scalar": lambda x: x * x[1, 2],
    "outer": lambda x: tw.expand_dims(x[0], 1) * tw.expand_dims(x[1], 0),
    "gather rows": lambda x: tw.gather(x, [2, 0, 2]) * x,
    "gather columns": lambda x: tw.gather(x, [2, 0], axis=1),
    "index": lambda x: x[1:, ::2] * 2.0,
    "backwards": lambda x: x[::-1] * x,
    "new axis": lambda x: x[:, None] * x[None],
    "concat": lambda x: tw.concat([x, x * x], axis=0),
    "concat columns": lambda x: tw.concat([x, A[:3] * x], axis=1),
    "stack": lambda x: tw.stack([x[0], x[1] * x[2]]),
    "split": lambda x: tw.split(x * x, 3, axis=1)[1] * tw.split(x, 3)[0],
    "unstack": lambda x: tw.unstack(x)[2] * tw.unstack(x, axis=1)[0],
    "where": lambda x: tw.where(x > 0.8, x * x, 3.0 * x),
    "maximum": lambda x: tw.maximum(x, tw.reverse(x, [1])),
    "clip": lambda x: tw.clip_by_value(x, 0.5, 1.0) * x,
    "pad": lambda x: tw.pad(x, [[1, 0], [0, 2]]) ** 2,
    "tile": lambda x: tw.tile(x, [1, 2]),
    "softmax": tw.nn.softmax,
    "softmax of columns": lambda x: tw.nn.softmax(x, axis=0),
    "log softmax": tw.nn.log_softmax,
    "cross entropy": lambda x: tw.nn.softmax_cross_entropy_with_logits(A[:3], x),
    "relu": lambda x: tw.nn.relu(tw.matmul(x - 0.9, B)),
    "affine": lambda x: tw.nn.affine(x, B, C),
    "two layers": lambda x: tw.nn.affine(tw.tanh(tw.nn.affine(x, B, C)), A.T, A[:, 0]),
    "batch norm": lambda x: tw.nn.fused_batch_norm(x, C, C, [0])[0],
    "moments": lambda x: tw.nn.batch_normalization(
        x, *tw.nn.moments(x, [0]), C, C, 1e-3
    ),
    "einsum": lambda x: tw.einsum("ij,kj->ik", x, x),
    "trace": lambda x: tw.einsum("ii->i", x),
    "tensordot": lambda x: tw.tensordot(x, B, 1),
    "solve": lambda x: tw.linalg.solve(x + 3.0 * np.eye(3), B),
    "inverse": lambda x: tw.linalg.inv(x + 3.0 * np.eye(3)),
    "three axes": lambda x: tw.reshape(x, [3, 1, 3]) * weights(3, 2, 3),
    "batched product": lambda x: tw.matmul(
        tw.reshape(x, [3, 1, 3]), weights(3, 3, 2, seed=5)
    ),
    "stopped": lambda x: x * tw.stop_gradient(x * x),
    "constant rows": lambda x: x * [[1.0], [0.0], [2.0]],
}


def random_program(rng):
    """A chain of three to six shape-keeping steps on a ``[3, 4]`` value."""
    m, n = rng.uniform(-1, 1, (4, 4)), rng.uniform(-1, 1, (3, 3))
    rows, columns = rng.integers(0, 3, 3), rng.integers(0, 4, 4)
    cut = int(rng.integers(1, 3))
    steps = [
        lambda x: tw.matmul(x, m),
        lambda x: tw.matmul(n, x),
        lambda x: tw.tanh(x) + x,
        lambda x: x * x * 0.5,
        lambda x: x + tw.reduce_mean(x, axis=0),
        lambda x: x - tw.reduce_sum(x, axis=1, keepdims=True),
        lambda x: x * tw.reduce_logsumexp(x, axis=1, keepdims=True),
        lambda x: tw.gather(x, rows),
        lambda x: tw.gather(x, columns, axis=1),
        lambda x: tw.concat([x[cut:], x[:cut]], axis=0),
        lambda x: tw.concat([x[:, cut:], x[:, :cut] * 2.0], axis=1),
        lambda x: tw.transpose(tw.reshape(tw.transpose(x), [4, 3])),
        lambda x: tw.reshape(tw.transpose(x), [3, 4]),
        lambda x: tw.reshape(tw.reshape(x, [2, 6]) * 1.5, [3, 4]),
        lambda x: tw.where(x > 0.0, x, 0.1 * x),
        lambda x: tw.nn.softmax(x) + x,
        lambda x: tw.nn.softmax(x, axis=0) * x,
        lambda x: tw.nn.fused_batch_norm(x, np.ones(4), np.zeros(4), [0])[0],
        lambda x: tw.sin(x)[::-1],
        lambda x: tw.maximum(x, x[:, ::-1]),
        lambda x: tw.stack(tw.unstack(x, axis=1), axis=1) * tw.norm(x),
    ]
    chosen = rng.choice(len(steps), size=rng.integers(3, 7))

    def program(x):
        for i in chosen:
            x = steps[i](x)
        return x

    return program
