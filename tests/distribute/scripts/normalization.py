"""`BatchNormalization` of several replicas, beside that of one process."""

from contextlib import nullcontext

import numpy as np
from parts import RANK, bounds, check_same, part, replica, total

import tapewright as tw

random = np.random.default_rng(2)
COUNT = 7
images = random.normal(2.0, 3.0, (COUNT, 3, 2, 4))
factors = random.normal(size=images.shape)
mask = random.random((COUNT, 3, 2)) < 0.6
mask[-1] = False  # of one part nothing may be left
mask[-2] = False


def layer(axis, **options):
    made = tw.layers.BatchNormalization(axis, 0.9, dtype="float64", **options)
    made.build(images.shape)
    made.gamma.assign(np.linspace(0.5, 1.5, made.gamma.shape[0]))
    return made


def derivatives(layer, inputs, factors, mask):
    """Return outputs, and first and second derivatives of a target."""
    x = tw.constant(inputs)
    sources = [x, layer.gamma]
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as inner:
            inner.watch(x)
            outputs = layer(x, training=True, mask=mask)
            target = tw.reduce_sum(tw.sin(outputs) * factors)
        first = inner.gradient(target, sources)
        squares = tw.reduce_sum(first[0] ** 2)
    return outputs, *first, *outer.gradient(squares, sources)


def check_synchronized(axis, mask, traced, context):
    reference, own = layer(axis), layer(axis, synchronized=True)
    expected = derivatives(reference, images, factors, mask)
    run = tw.function(derivatives) if traced else derivatives
    with context():
        got = run(own, part(images), part(factors) * IS_ACTIVE, maskpart(mask))
    name = f"{axis=}, mask={mask is not None}, {traced=}, {context.__name__}"
    for i, (a, b) in enumerate(zip(got, expected)):
        b = b.numpy()
        of_all = i in (2, 4)  # of gamma: each replica has a term of it
        a, b = (total(a), b) if of_all else (a.numpy(), part(b))
        if of_all or IS_ACTIVE:
            np.testing.assert_allclose(a, b, 1e-9, 1e-11, err_msg=f"{name}, {i}")
    check_moving(name, own, reference)


def check_moving(name, own, reference, rtol=1e-12):
    moving = [own.moving_mean.numpy(), own.moving_variance.numpy()]
    check_same(name, moving)
    for a, b in zip(moving, (reference.moving_mean, reference.moving_variance)):
        np.testing.assert_allclose(a, b.numpy(), rtol, 1e-13, err_msg=name)


def maskpart(mask):
    return None if mask is None else tw.constant(part(mask))


def in_replica():
    return replica(COUNT)


def alone():
    return nullcontext()


starts, ends = bounds(COUNT)
IS_ACTIVE = float(ends[RANK] > starts[RANK])
for traced in (False, True):
    for axis, each in (-1, None), (-1, mask), (1, None):
        check_synchronized(axis, each, traced, in_replica)

# Outside of a replica context each process has a batch that counts.
if starts[-1] < COUNT:
    check_synchronized(-1, None, False, alone)
    check_synchronized(-1, mask, False, alone)

# Not synchronized: normalized by own moments; the moving ones follow the averages.
for each in None, mask:
    for traced in (False, True):
        own, expected = layer(-1), layer(-1)
        run = tw.function(derivatives) if traced else derivatives
        with replica(COUNT):
            got = run(own, part(images), part(factors), maskpart(each))
        local = layer(-1)
        by_hand = derivatives(local, part(images), part(factors), maskpart(each))
        for a, b in zip(got, by_hand):
            np.testing.assert_allclose(a, b.numpy(), 1e-12)
        new_mean, new_variance = 0.0, 0.0
        kept = np.ones_like(mask) if each is None else mask
        whole = kept.sum()
        for start, end in zip(starts, ends):
            rows = images[start:end][kept[start:end]]
            if len(rows):
                new_mean += rows.mean(0) * len(rows) / whole
                new_variance += rows.var(0) * len(rows) / whole
        expected.moving_mean.assign(0.1 * new_mean)
        expected.moving_variance.assign(0.9 + 0.1 * new_variance)
        check_moving("local", own, expected, 1e-7)  # Keras adds 1e-7 to counts

# In half precision sums do not overflow.
wide = tw.layers.BatchNormalization(synchronized=True, dtype="float16")
with replica(COUNT):
    outputs = wide(np.full((4000, 2), 100.0, "float16"), training=True)
assert np.isfinite(outputs.numpy()).all() and outputs.dtype == "float16"
assert abs(wide.moving_mean.numpy()[0] - 1.0) < 0.01
