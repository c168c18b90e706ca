"""Lines for what images go through: pooling, convolutions, and their forms in a program."""

import functools

import numpy as np

import tapewright as tw

from .lines import REAL, ROLES, Line, gradient


def pooled(x, b, size=2):
    return tw.nn.max_pool2d(tw.nn.relu(x + b), size, size, "VALID")


def images(dtype, side, count, special=(np.nan, np.inf, -np.inf, -0.0), last=np.inf):
    """Images and a bias for each channel, special values among whole numbers."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (4, side // 2, 7, 3)).astype(dtype)
    for k, value in enumerate(special):
        x[k % 4, k : 2 * k + 1, :3, k % 3] = value
    return [x, np.array([1, -np.inf, last], dtype)][:count]


def filters_and_images(dtype, side, count):
    """Images, filters and a cotangent, with an infinity and a NaN."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (4, 9, 8, 2)).astype(dtype)
    x[0, 2, 2], x[1, 3, 3, 0], x[2] = np.inf, np.nan, -0.0
    return [x, rng.integers(-2, 3, (3, 3, 2, 4)).astype(dtype)][:count]


def convolved(x, f, padding="VALID", **options):
    return tw.nn.conv2d(x, f, 1, padding, **options)


def cotangent_of_convolution(x, f):
    with tw.GradientTape() as tape:
        tape.watch([x, f])
        y = convolved(x, f)
        out = tw.nn.max_pool2d(y, 2, 2, "VALID")
    return tape.gradient(out, [y, x, f])


OF_IMAGES = tuple([name for name in ROLES if name != "broadcast"])
CONVOLUTION = dict(
    operands=2,
    dtypes=REAL,
    make=(filters_and_images,),
    roles=OF_IMAGES,
)


IMAGES = {
    "pool_first": Line(
        [
            pooled,
            lambda x, b: tw.nn.max_pool2d(tw.nn.relu(b + x), (2, 1), (2, 1), "VALID"),
            lambda x, b: pooled(tw.transpose(x, [0, 2, 1, 3]), b, 3),
        ],
        [
            lambda x, b: tw.nn.max_pool2d(x + b, 2, 2, "VALID"),
            lambda x, b: tw.nn.avg_pool2d(tw.nn.relu(x + b), 2, 2, "VALID"),
            lambda x, b: (pooled(x, b), tw.nn.relu(x + b)),
        ],
        also=[
            lambda x, b: pooled(x, x),
            lambda x, b: pooled(-x, tw.reshape(b[:1], [1, 1, 1, 1])),
        ],
        operands=2,
        dtypes=REAL,
        make=(images,),
        roles=OF_IMAGES,
    ),
    "pool_first, backward": Line(
        [
            lambda x, b: gradient(pooled, x, b),
            lambda x, b: gradient(functools.partial(pooled, size=3), x, b),
            lambda x, b: gradient(lambda x, c: pooled(x + c, b), x, x[:1, :, :1, :1])[2],
        ],
        operands=2,
        dtypes=REAL,
        exact=False,
        sides=(28, 180),
        make=(functools.partial(images, special=(np.inf, -np.inf, -0.0), last=-2),),
        roles=OF_IMAGES,
    ),
    "cropped_convolutions": Line(
        [
            lambda x, f: tw.nn.max_pool2d(convolved(x, f), 2, 2, "VALID"),
            lambda x, f: gradient(
                lambda x, f: tw.nn.max_pool2d(convolved(x, f), 2, 2, "VALID"), x, f
            ),
            lambda x, f: tw.nn.max_pool2d(convolved(x, f, "SAME"), 2, 2, "VALID"),
        ],
        [
            cotangent_of_convolution,
            lambda x, f: tw.nn.max_pool2d(convolved(x[:, :8], f), 2, 2, "VALID"),
            lambda x, f: (
                tw.nn.max_pool2d(convolved(x, f), 2, 2, "VALID"), convolved(x, f)
            ),
        ],
        **CONVOLUTION | {"exact": False},
    ),
}  # fmt: skip
