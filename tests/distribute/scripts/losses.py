"""Losses of parts add up to that of the whole batch, and so do their gradients."""

import numpy as np
from parts import part, replica, total

import tapewright as tw

random = np.random.default_rng(3)
COUNT = 7
inputs = random.normal(size=(COUNT, 4, 5))
kernel = tw.Variable(random.normal(size=(5, 3)) / 3, dtype="float64")
classes = random.integers(0, 3, (COUNT, 4))
labels = np.eye(3)[classes]
mask = random.random((COUNT, 4)) < 0.6
weights = {
    "none": None,
    "examples": random.random(COUNT),
    "entries": random.random((COUNT, 4)),
}


def of_batch(loss, x, y, weight, mask):
    """Return the loss of a batch, and its gradient."""
    with tw.GradientTape() as tape:
        outputs = tw.nn.softmax(tw.constant(x) @ kernel)
        if mask is not None:
            outputs._keras_mask = tw.constant(mask)
        value = loss(y, outputs, weight)
    return value, tape.gradient(value, kernel)


def check(name, loss, y, weight, mask):
    whole = of_batch(loss, inputs, y, weight, mask)
    arrays = [inputs, y, weight, mask]
    arguments = [None if a is None else part(a) for a in arrays]
    with replica(COUNT):
        own = of_batch(loss, *arguments)
        traced = tw.function(of_batch)(loss, *arguments)
    for each in own, traced:
        if loss.reduction == "none":
            each = tw.reduce_sum(each[0]), each[1]
            whole = tw.reduce_sum(whole[0]), whole[1]
        for a, b in zip(each, whole):
            np.testing.assert_allclose(total(a), b.numpy(), 1e-12, 1e-14, err_msg=name)


for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight", "none"):
    options = {"reduction": reduction, "dtype": "float64"}
    for weighted, weight in weights.items():
        for masked in (None, mask):
            name = f"{reduction}, weights {weighted}, {'no ' * (masked is None)}mask"
            loss = tw.losses.CategoricalCrossentropy(**options)
            check(name, loss, labels, weight, masked)
    loss = tw.losses.SparseCategoricalCrossentropy(**options)
    check(f"sparse {reduction}", loss, classes, weights["examples"], mask)
    for axis in (None, (0, 1), (-3,), (1, 2)):
        for kind in (tw.losses.Dice, tw.losses.Tversky):
            loss = kind(axis=axis, **options)
            check(f"{kind.__name__} {axis} {reduction}", loss, labels, None, None)

nothing = np.zeros_like(mask)
loss = tw.losses.MeanSquaredError(dtype="float64")
check("everything is masked", loss, labels, None, nothing)
only_first = nothing.copy()
only_first[0] = True
check("one replica is masked", loss, labels, None, only_first)
with replica(COUNT):
    scalar = tw.losses.LossFunctionWrapper(
        lambda y, p: tw.reduce_mean(tw.square(y - p)), dtype="float64"
    )
    own = of_batch(scalar, part(inputs), part(labels), None, None)
whole = of_batch(scalar, inputs, labels, None, None)
for a, b in zip(own, whole):
    np.testing.assert_allclose(total(a), b.numpy(), 1e-12)
